/* listen_auth.h - listen address, tokens and start messages of the server.
 *
 * There is always a token of the operator: server.token, or the one in the file
 * `token` of the state directory (0600), which the first start creates. In
 * addition there may be tokens of named persons (gate.h). `serve --no-auth`
 * creates no token; if none is configured either, everyone on this machine is
 * admitted, and only local addresses are served.
 *
 * Only the tokens are kept here; addresses are read from the configuration that
 * the server started with. */
#ifndef MO_APP_LISTEN_AUTH_H
#define MO_APP_LISTEN_AUTH_H

#include "config/config.h"
#include "config/listen.h"
#include "web/site.h"

#define MO_LISTEN_AUTH_TOKEN_FILE "token"      /* in store.dir */
#define MO_LISTEN_AUTH_TOKEN_MIN  ((size_t)16) /* created ones have 32 */
#define MO_LISTEN_AUTH_TOKEN_MAX  MO_GATE_TOKEN_MAX
#define MO_LISTEN_AUTH_PEOPLE_MAX 64

struct mo_listen_auth {
    bool no_auth;                         /* create no token */
    char token[MO_LISTEN_AUTH_TOKEN_MAX]; /* the operator's; "": none */
    struct mo_gate_person people[MO_LISTEN_AUTH_PEOPLE_MAX];
    size_t npeople;
};

/* Sets the tokens from `c`, for a server that listens on `listen`. On failure
 * nothing changes: MO_EINVAL, the error names the key; MO_EPOLICY, others can
 * read or write the token file. */
int mo_listen_auth_token(struct mo_listen_auth *d, const struct mo_config *c,
                         const char *listen, struct mo_log *log,
                         struct mo_err *e);

/* True if there are no tokens: everyone on this machine is the operator. */
bool mo_listen_auth_is_open(const struct mo_listen_auth *d);

/* Binds c->workers sockets to the address, for a process that gives up its
 * rights before it listens. A socket of the service manager is used instead;
 * then all workers share it. The errors of both say what to do. */
int mo_listen_auth_bind(const struct mo_config_server *c,
                        int fds[MO_CONFIG_WORKERS_MAX], struct mo_err *e);
/* Starts listening. bound: from mo_listen_auth_bind(), taken; 0: none. */
int mo_listen_auth_open(struct mo_site *s, const struct mo_config_server *c,
                        int bound, struct mo_err *e);

/* Appends the address of the server; nothing for a unix socket. */
void mo_listen_auth_url(const struct mo_config_server *c, bool tls,
                        unsigned port, struct mo_buf *out);
/* Writes the address that signs a browser in; "" for a unix socket. */
void mo_listen_auth_link(const struct mo_listen_auth *d,
                         const struct mo_config_server *c, bool tls,
                         unsigned port, struct mo_buf *out);
/* Prints the line with the address to open. with_link: it contains the token,
 * so standard output must not be a log. */
void mo_listen_auth_tell_ready(const struct mo_listen_auth *d,
                               const struct mo_config_server *c, bool tls,
                               unsigned port, bool with_link);

#endif
