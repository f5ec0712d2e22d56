/* auth.h - the seam between a link over HTTP and whoever has its tokens.
 *
 * The link asks for the Authorization header of each request, and hands over
 * a refusal (401, 403) together with a ticket; when the ticket's done comes
 * without an error, the request is worth another try.
 *
 * done fires once, never from inside refused(); taking the ticket out of its
 * list (mo_list_del) is how one stops waiting, and it fires no more then. */
#ifndef MO_MCP_OAUTH_AUTH_H
#define MO_MCP_OAUTH_AUTH_H

#include "base/list.h"
#include "base/str.h"

struct mo_auth_wait {
    struct mo_list node;
    uint64_t serial; /* of the header that was refused */
    bool local;      /* who refused it is at a private address */
    void (*done)(struct mo_auth_wait *w, const struct mo_err *why);
};

struct mo_auth;

struct mo_auth_ops {
    /* The header's value, empty: none; borrowed until the loop turns. */
    struct mo_span (*header)(struct mo_auth *a, uint64_t *serial);
    /* 0: done will come. Else there is nothing to be done about it. */
    int (*refused)(struct mo_auth *a, struct mo_auth_wait *w, int status,
                   struct mo_span challenge, struct mo_err *e);
};

struct mo_auth {
    const struct mo_auth_ops *ops;
};

#endif
