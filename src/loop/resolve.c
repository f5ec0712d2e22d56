#include "loop/resolve.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "loop/priv.h"

#define NAME_MAX_BYTES 256

struct mo_resolve {
    uv_getaddrinfo_t req;
    mo_resolve_fn *done; /* NULL: dropped */
    void *ctx;
    char name[NAME_MAX_BYTES];
};

static bool read_address(const struct sockaddr *a, struct mo_ip *out)
{
    const struct sockaddr_in6 *a6 = (const void *)a;
    const struct sockaddr_in *a4 = (const void *)a;

    *out = (struct mo_ip){{[10] = 0xFF, [11] = 0xFF}};
    if (a->sa_family == AF_INET)
        memcpy(out->b + 12, &a4->sin_addr, 4);
    else if (a->sa_family == AF_INET6)
        memcpy(out->b, &a6->sin6_addr, 16);
    else
        return false;
    return true;
}

static void on_resolved(uv_getaddrinfo_t *req, int rc, struct addrinfo *list)
{
    struct mo_resolve *r = req->data;
    struct mo_ip v[MO_RESOLVE_MAX];
    struct mo_err e;
    size_t n = 0;

    for (struct addrinfo *ai = list; ai && n < MO_RESOLVE_MAX; ai = ai->ai_next)
        n += read_address(ai->ai_addr, &v[n]);
    if (list)
        uv_freeaddrinfo(list);
    if (rc < 0)
        (void)mo_fail_uv(&e, rc, "%s", r->name);
    else if (n == 0)
        (void)mo_fail(&e, MO_ENOTFOUND, "%s: no address", r->name);
    if (r->done)
        r->done(r->ctx, v, n, n ? NULL : &e);
    mo_free(r);
}

int mo_resolve(struct mo_loop *l, const char *name, mo_resolve_fn *done,
               void *ctx, struct mo_resolve **out, struct mo_err *e)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM};
    struct mo_resolve *r = mo_new(struct mo_resolve);
    size_t n = strlen(name);
    int rc;

    if (!r)
        return mo_fail(e, MO_ENOMEM, "%s", name);
    if (n >= sizeof(r->name)) {
        mo_free(r);
        return mo_fail(e, MO_EINVAL, "the name is too long");
    }
    memcpy(r->name, name, n);
    r->done = done;
    r->ctx = ctx;
    r->req.data = r;
    rc = uv_getaddrinfo(&l->uv, &r->req, on_resolved, r->name, NULL, &hints);
    if (rc < 0) {
        mo_free(r);
        return mo_fail_uv(e, rc, "%s", name);
    }
    *out = r;
    return 0;
}

void mo_resolve_drop(struct mo_resolve *r)
{
    r->done = NULL;
    (void)uv_cancel((uv_req_t *)&r->req);
}
