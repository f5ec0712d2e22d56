/* server_link.h - opens links to configured servers.
 *
 * A link is a child process under the guardian, Streamable HTTP, HTTP+SSE, or a
 * program in a box (boxed_link.h). Environment, headers and addresses are
 * resolved for each link and not kept (resolved_server.h). The era of each
 * server is remembered between runs (era_cache.h). OAuth tokens are used and
 * refreshed. Only a command (sync_client.h) asks a person to sign in; else the
 * error names the command that does.
 *
 * The guardian, the HTTP client and the box drivers are opened by the first
 * server that needs them. A sign-in is kept until the end, because links may
 * use it after their server's configuration changed. Limit:
 * MO_SERVER_LINK_SIGN_INS sign-ins; further links that need one fail.
 *
 * Ownership: the loop is borrowed, configurations are referenced. All links
 * must be gone before mo_server_link_close(). */
#ifndef MO_CONNECT_SERVER_LINK_H
#define MO_CONNECT_SERVER_LINK_H

#include "config/config.h"
#include "connect/stderr_tail.h"
#include "mcp/client/conn.h"
#include "policy/approvals.h"

#define MO_SERVER_LINK_SIGN_INS 1024

struct mo_accounts_sharing;
struct mo_server_link;
struct mo_sign_in;
struct mo_accounts; /* accounts.h */

/* How connections to it are opened. */
enum mo_conn_mode mo_server_link_mode(const struct mo_config_mcp *s);
/* The configured server of this name, or NULL. */
const struct mo_config_mcp *mo_server_link_find(const struct mo_config *cfg,
                                                struct mo_span name);

int mo_server_link_new(struct mo_loop *l, const struct mo_config *cfg,
                       struct mo_server_link **out, struct mo_err *e);
void mo_server_link_close(struct mo_server_link *d, void (*gone)(void *ctx),
                          void *ctx);

/* For a command. extra: a server that is not configured, found by its name
 * before the others; borrowed, or NULL. ask: a person may be asked to sign in;
 * err: descriptor for messages to them. */
void mo_server_link_command(struct mo_server_link *d,
                            const struct mo_config_mcp *extra, bool ask,
                            int err);
/* The sign-in that links to this server use; NULL: none yet. */
struct mo_sign_in *mo_server_link_sign_in(const struct mo_server_link *d,
                                          const struct mo_config_mcp *s);

/* Sets the configuration of new links. */
void mo_server_link_config(struct mo_server_link *d,
                           const struct mo_config *cfg);
const struct mo_config *mo_server_link_now(const struct mo_server_link *d);

/* Decide about hosts that a server's box asks about, and record its
 * connections; borrowed until closing. */
void mo_server_link_approvals(struct mo_server_link *d,
                              struct mo_approvals *approvals);

/* Persons' connections are in common with other servers from now on
 * (accounts.h); nothing while no server has them. */
void mo_server_link_share(struct mo_server_link *d,
                          const struct mo_accounts_sharing *w);
void mo_server_link_unshare(struct mo_server_link *d);
/* NULL, or why not all connections are known. ctx: the link. */
const char *mo_server_link_why(void *ctx);
/* The persons' own sign-ins; made by the first call. NULL and *e: no memory. */
struct mo_accounts *mo_server_link_accounts(struct mo_server_link *d,
                                            struct mo_err *e);

/* The person sent this access token of a provider with a request; for servers
 * with `credentials: exchange`. */
void mo_server_link_subject(struct mo_server_link *d, const char *person,
                            struct mo_span token);

/* The last stderr output of each server. */
const struct mo_stderr_tail *
mo_server_link_said(const struct mo_server_link *d);

/* Callbacks for struct mo_upstream_opts; ctx is the struct mo_server_link. */
int mo_server_link_server(void *ctx, const char *server, struct mo_span who,
                          struct mo_conn *c, struct mo_err *e);
/* A connection that was made for `who` is closed. */
void mo_server_link_done(void *ctx, const char *server, struct mo_span who);
/* True if the person may use the server: has credentials there, or needs none.
 * Else the address at which to connect is appended, if there is one. */
bool mo_server_link_connected(void *ctx, const char *server,
                              struct mo_span person, struct mo_buf *address);
struct mo_conn_verdict mo_server_link_verdict(void *ctx, const char *server);
void mo_server_link_learnt(void *ctx, const char *server,
                           struct mo_conn_verdict v);
/* Adds a line that is not JSON to the stderr tail. */
void mo_server_link_noise(void *ctx, const char *server, struct mo_span line);

#endif
