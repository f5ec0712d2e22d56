/* server_link.h - a link to any configured server, for the gateway.
 *
 * A child process under the guardian, Streamable HTTP, the old HTTP+SSE, or a
 * program in a box (boxed_link.h); environment, headers and addresses are
 * resolved for each link and kept nowhere (resolved_server.h). The era that a
 * server was found to speak is remembered across runs (era_cache.h). Tokens of
 * remote servers are used and refreshed, but nobody is asked to sign in from
 * here: the error says which command does that.
 *
 * Guardian, HTTP client and sandbox come with the first server that needs
 * them. A sign-in is kept until the end, since links may still use it after
 * its server was configured otherwise; MO_SERVER_LINK_SIGN_INS of them, then
 * links to further ones are refused.
 *
 * Ownership: the loop is borrowed, configurations are referenced. All links
 * must be gone before mo_server_link_close(). */
#ifndef MO_CONNECT_SERVER_LINK_H
#define MO_CONNECT_SERVER_LINK_H

#include "config/config.h"
#include "connect/stderr_tail.h"
#include "mcp/client/conn.h"

#define MO_SERVER_LINK_SIGN_INS 1024

struct mo_server_link;

int mo_server_link_new(struct mo_loop *l, const struct mo_config *cfg,
                       struct mo_server_link **out, struct mo_err *e);
void mo_server_link_close(struct mo_server_link *d, void (*gone)(void *ctx),
                          void *ctx);

/* What is dialled from now on. */
void mo_server_link_config(struct mo_server_link *d,
                           const struct mo_config *cfg);
const struct mo_config *mo_server_link_now(const struct mo_server_link *d);

/* What its servers last wrote on their standard error. */
const struct mo_stderr_tail *
mo_server_link_said(const struct mo_server_link *d);

/* For struct mo_gateway_opts; ctx is the struct mo_server_link. */
int mo_server_link_server(void *ctx, const char *server, struct mo_span who,
                          struct mo_conn *c, struct mo_err *e);
struct mo_conn_verdict mo_server_link_verdict(void *ctx, const char *server);
void mo_server_link_learnt(void *ctx, const char *server,
                           struct mo_conn_verdict v);
/* Shown with what it says on its standard error. */
void mo_server_link_noise(void *ctx, const char *server, struct mo_span line);

#endif
