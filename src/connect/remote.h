/* remote.h - a server of this program elsewhere, used as the person who has
 * signed in there with `mcp-orchestrator login`.
 *
 * The tokens are in the token file (sign_in.h) under the address of the
 * server's /mcp, so that a configured server with that address uses the same
 * ones. They are sent to that origin only: the address is https, or http on
 * this machine; redirects are not followed. An expired token is refreshed.
 *
 * All functions block and run the loop. Ownership: loop and configuration are
 * borrowed. */
#ifndef MO_CONNECT_REMOTE_H
#define MO_CONNECT_REMOTE_H

#include "config/config.h"
#include "loop/loop.h"
#include "mcp/oauth/oauth_device.h"

#define MO_REMOTE_PROVIDERS_MAX 16
#define MO_REMOTE_MS            30000u /* for an answer */
#define MO_REMOTE_BYTES         ((size_t)16 * 1024 * 1024)

struct mo_remote;

/* url: of the server; a path is not used. NULL: of the configuration. */
int mo_remote_open(struct mo_loop *l, const struct mo_config *cfg,
                   const char *url, struct mo_remote **out, struct mo_err *e);
void mo_remote_close(struct mo_remote *r); /* NULL is fine */

const char *mo_remote_url(const struct mo_remote *r); /* without a path */
bool mo_remote_has_token(const struct mo_remote *r);

/* Sends a request as the person; body.p NULL: GET, else POST of JSON.
 * MO_EPOLICY with the status 401: nobody is signed in (any more). */
int mo_remote_ask(struct mo_remote *r, const char *path, struct mo_span body,
                  int *status, struct mo_buf *out, struct mo_err *e);

/* --- signing in ---------------------------------------------------------- */

struct mo_remote_provider {
    const char *name, *title, *issuer;
    const char *client; /* NULL: the program registers itself */
    const char *scope;  /* NULL: none needed */
};

struct mo_remote_person { /* how they are told what to do */
    void (*on_device)(void *ctx, const struct mo_oauth_device *d,
                      const struct mo_oauth_server *issuer);
    void (*on_url)(void *ctx, const char *url);
    void *ctx;
};

/* Asks the server which providers it has; *v is borrowed until the end of r.
 * MO_ENOTFOUND: none. */
int mo_remote_providers(struct mo_remote *r,
                        const struct mo_remote_provider **v, size_t *n,
                        struct mo_err *e);
/* By the device flow if the provider has it, else in a browser on this
 * machine. The token is kept if the server accepts it; *me is its answer to
 * GET /api/me. */
int mo_remote_login(struct mo_remote *r, const struct mo_remote_provider *p,
                    const struct mo_remote_person *person, struct mo_buf *me,
                    struct mo_err *e);
/* Forgets the tokens of the server. MO_ENOTFOUND: there were none. */
int mo_remote_logout(struct mo_remote *r, struct mo_err *e);

#endif
