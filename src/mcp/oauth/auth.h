/* auth.h - interface between an HTTP link and the holder of its tokens.
 *
 * The link asks for the Authorization header of each request, and for the proof
 * that a token bound to a key needs (dpop.h). It reports a
 * refusal (401, 403) together with a ticket. When the ticket's done comes
 * without an error the request can be sent again.
 *
 * done fires once, never from inside refused(). Removing the ticket from its
 * list (mo_list_del) stops waiting; done does not fire then. */
#ifndef MO_MCP_OAUTH_AUTH_H
#define MO_MCP_OAUTH_AUTH_H

#include "base/list.h"
#include "base/str.h"

struct mo_auth_wait {
    struct mo_list node;
    uint64_t serial; /* serial of the refused header */
    bool local;      /* the refusing server is at a private address */
    bool nonced;     /* refused for its nonce since the last good answer */
    void (*done)(struct mo_auth_wait *w, const struct mo_err *why);
};

struct mo_auth;

struct mo_auth_ops {
    /* The header's value; empty: none. Borrowed until the loop runs again. */
    struct mo_span (*header)(struct mo_auth *a, uint64_t *serial);
    /* Returns 0 if done will follow; an error if nothing can be done. */
    int (*refused)(struct mo_auth *a, struct mo_auth_wait *w, int status,
                   struct mo_span challenge, struct mo_err *e);
    /* The value of the header DPoP; empty: the token needs no proof. Borrowed
     * likewise. NULL: no token does. */
    struct mo_span (*proof)(struct mo_auth *a, const char *method,
                            const char *url);
    /* The server's nonce (DPoP-Nonce) for the next proofs. */
    void (*nonce)(struct mo_auth *a, struct mo_span nonce);
};

struct mo_auth {
    const struct mo_auth_ops *ops;
};

#endif
