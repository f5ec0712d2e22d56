/* accounts.h - persons who have signed in at a server by themselves (people
 * see them as "Connections").
 *
 * A server with `credentials: user` gets the tokens of the person who calls,
 * and of nobody else. An account is the pair of such a server and a person.
 * Its tokens are in a sealed file (account_file.h), which exists exactly
 * while the person is connected. In memory it lives only while links use it or
 * the person is signing in.
 *
 * Signing in: mo_accounts_begin() asks the server who issues its tokens and
 * returns the address to open. The browser comes back to the page with `state`;
 * mo_accounts_finish() looks for it among the sign-ins of the person who
 * came, so nobody can finish, or be made to finish, a sign-in of another.
 *
 * Several processes that share store.dir refresh a token once (tokens.h), and
 * one that finds the file removed stops using its tokens. For servers with
 * another store.dir: shared_accounts.h.
 *
 * Limit: MO_ACCOUNTS_MAX connections in memory; MO_EBUSY beyond.
 * Ownership: the object belongs to its struct mo_server_link. Links that use
 * an auth must be gone, or released, before it is closed. */
#ifndef MO_CONNECT_ACCOUNTS_H
#define MO_CONNECT_ACCOUNTS_H

#include "connect/sign_in.h"
#include "mcp/client/conn.h"

#define MO_ACCOUNTS_MAX      4096
#define MO_ACCOUNTS_PROBE_MS 20000 /* until the server has answered */

struct mo_accounts;
struct mo_audit;

struct mo_accounts_opts {
    struct mo_loop *loop;
    /* Opens a link to the server with the person's tokens. */
    int (*dial)(void *ctx, const char *server, struct mo_span person,
                struct mo_conn *c, struct mo_err *e);
    /* The HTTP client; NULL and *e: none. */
    struct mo_httpc *(*http)(void *ctx, struct mo_err *e);
    void *ctx;
};

int mo_accounts_new(const struct mo_accounts_opts *o,
                    const struct mo_config *cfg, struct mo_accounts **out,
                    struct mo_err *e);
/* Also the callbacks of requests under way fire. */
void mo_accounts_close(struct mo_accounts *c, void (*gone)(void *ctx),
                       void *ctx);
void mo_accounts_config(struct mo_accounts *c, const struct mo_config *cfg);
/* Has the connections in common with servers that have another store.dir
 * (shared_accounts.h), until it closes. Everything is borrowed. */
struct mo_accounts_sharing {
    struct mo_store *store;
    const char *instance;
    void (*told)(void *ctx, const char *server, const char *person, bool on);
    void *ctx;
};
int mo_accounts_share(struct mo_accounts *c,
                      const struct mo_accounts_sharing *w, struct mo_err *e);
void mo_accounts_unshare(struct mo_accounts *c);
/* False: connections of other servers may be missing. */
bool mo_accounts_are_read(const struct mo_accounts *c);
/* Where connects, disconnects and failed refreshes are recorded; or NULL. */
void mo_accounts_audit(struct mo_accounts *c, struct mo_audit *a);
/* The address of the page, without a path; "": there is no page. */
int mo_accounts_page(struct mo_accounts *c, const char *url);
/* Appends the address at which a person connects, or nothing. */
void mo_accounts_put_page(const struct mo_accounts *c, const char *server,
                          struct mo_buf *out);

/* True if the person has tokens for the server. */
bool mo_accounts_has(struct mo_accounts *c, const char *server,
                     struct mo_span person);
/* The auth of a link; one mo_accounts_release() for each. ask and err as in
 * struct mo_sign_in_opts. */
int mo_accounts_use(struct mo_accounts *c, const struct mo_sign_in_opts *base,
                    struct mo_auth **out, struct mo_err *e);
void mo_accounts_release(struct mo_accounts *c, const char *server,
                         struct mo_span person);
/* The sign-in in memory, or NULL. */
struct mo_sign_in *mo_accounts_sign_in(const struct mo_accounts *c,
                                       const char *server,
                                       struct mo_span person);

/* text: the address to open; of a finished sign-in the server's name. Borrowed.
 * Fires once, from the loop. */
typedef void mo_accounts_done_fn(void *ctx, const char *text,
                                 const struct mo_err *why);

/* True if persons connect to a server of that name. */
bool mo_accounts_serves(const struct mo_accounts *c, const char *server);
/* MO_ENOTFOUND: no such server; MO_EBUSY: one is being begun. */
int mo_accounts_begin(struct mo_accounts *c, const char *server,
                      const char *person, mo_accounts_done_fn *done, void *ctx,
                      struct mo_err *e);
/* MO_EINVAL: no sign-in of this person waits for that answer. */
int mo_accounts_finish(struct mo_accounts *c, const char *person,
                       struct mo_span query, mo_accounts_done_fn *done,
                       void *ctx, struct mo_err *e);
/* Removes the tokens at once and tells the issuer, if it wants to know. done:
 * why says why the issuer still accepts them, perhaps. MO_ENOTFOUND: not
 * connected. */
int mo_accounts_remove(struct mo_accounts *c, const char *server,
                       const char *person, mo_accounts_done_fn *done, void *ctx,
                       struct mo_err *e);

/* Writes [{server, url, connected, since?, scope?}, ...] for the person: every
 * enabled server with credentials of its users. */
void mo_accounts_put(struct mo_accounts *c, const char *person,
                     struct mo_jw *w);
unsigned mo_accounts_count(const struct mo_accounts *c); /* in memory */

#endif
