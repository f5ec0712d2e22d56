/* listen_auth.h - listen address, tokens and start messages of the server.
 *
 * Loopback and unix sockets need no token. Any other address does: the
 * configured one, or a random one for this run, which is printed once on
 * standard output and stored nowhere. In addition there may be tokens of named
 * persons (gate.h).
 *
 * Only the tokens are kept here; addresses are read from the configuration that
 * the server started with. */
#ifndef MO_APP_LISTEN_AUTH_H
#define MO_APP_LISTEN_AUTH_H

#include "config/config.h"
#include "config/listen.h"
#include "web/site.h"

#define MO_LISTEN_AUTH_TOKEN_MIN  ((size_t)16) /* generated ones have 32 */
#define MO_LISTEN_AUTH_TOKEN_MAX  MO_GATE_TOKEN_MAX
#define MO_LISTEN_AUTH_PEOPLE_MAX 64

struct mo_listen_auth {
    char token[MO_LISTEN_AUTH_TOKEN_MAX]; /* "": no token needed */
    bool made;                            /* generated for this run */
    bool told;                            /* it was printed */
    struct mo_gate_person people[MO_LISTEN_AUTH_PEOPLE_MAX];
    size_t npeople;
};

/* Sets the tokens from `c` for a server that listens on `listen`. On failure
 * nothing changes: MO_EINVAL, the error names the key. */
int mo_listen_auth_token(struct mo_listen_auth *d, const struct mo_config *c,
                         const char *listen, struct mo_log *log,
                         struct mo_err *e);

/* Starts listening. The error says what to do. */
int mo_listen_auth_open(struct mo_site *s, const struct mo_config_server *c,
                        struct mo_err *e);

/* Prints a generated token on standard output, once. */
void mo_listen_auth_tell_token(struct mo_listen_auth *d);
/* Prints the line with the address to open. */
void mo_listen_auth_tell_ready(const struct mo_config_server *c, bool tls,
                               unsigned port);

#endif
