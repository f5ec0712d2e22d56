/* listen_auth.h - how the server is reached: its address, its token, its first
 * words.
 *
 * Loopback and unix sockets need no token. Any other address does: the
 * configured one, or one that is made up for this run and told once on
 * standard output, which is the only place it is ever written to.
 *
 * There may be tokens for persons by name besides (gate.h).
 *
 * Nothing is kept here but the tokens; addresses are read from the
 * configuration the server started with. */
#ifndef MO_APP_LISTEN_AUTH_H
#define MO_APP_LISTEN_AUTH_H

#include "config/config.h"
#include "config/listen.h"
#include "web/site.h"

#define MO_LISTEN_AUTH_TOKEN_MIN                                               \
    ((size_t)16) /* of a chosen one; ours have 32 */
#define MO_LISTEN_AUTH_TOKEN_MAX  MO_GATE_TOKEN_MAX
#define MO_LISTEN_AUTH_PEOPLE_MAX 64

struct mo_listen_auth {
    char token[MO_LISTEN_AUTH_TOKEN_MAX]; /* "" = none needed */
    bool made;                            /* by us, for this run */
    bool told;
    struct mo_gate_person people[MO_LISTEN_AUTH_PEOPLE_MAX];
    size_t npeople;
};

/* Set or replace the tokens as `c` wants them, for a server that listens on
 * `listen`. Nothing changes on failure: MO_EINVAL, the error names the key. */
int mo_listen_auth_token(struct mo_listen_auth *d, const struct mo_config *c,
                         const char *listen, struct mo_log *log,
                         struct mo_err *e);

/* Listen. A failure says what to do about it. */
int mo_listen_auth_open(struct mo_site *s, const struct mo_config_server *c,
                        struct mo_err *e);

/* A made-up token that was not told yet, on standard output. */
void mo_listen_auth_tell_token(struct mo_listen_auth *d);
/* The one line that says where to look. */
void mo_listen_auth_tell_ready(const struct mo_config_server *c, bool tls,
                               unsigned port);

#endif
