#include "egress/edge.h"

#include "base/mem.h"

#define VALUE_MAX ((size_t)16 * 1024) /* bytes of a header */
#define OUT_MAX   ((size_t)1024 * 1024)
#define HEAD_ROOM ((size_t)48 * 1024) /* growing would leave copies */

struct mo_edge {
    struct mo_edges *of;
    struct mo_edge_start s;
    struct mo_buf first;
    struct mo_buf values[MO_EGRESS_HEADERS_MAX]; /* secrets */
    struct mo_http_edge_header headers[MO_EGRESS_HEADERS_MAX];
    struct mo_http_edge *http;
    struct mo_buf out;
    uint64_t count; /* of requests, when `out` was written last */
};

/* --- of a relay ---------------------------------------------------------- */

void mo_edge_names(const struct mo_egress_policy *p, struct mo_tls_names *out)
{
    _Static_assert(MO_EGRESS_INJECT_MAX <= MO_TLS_NAMES_MAX, "names fit");
    out->n = 0;
    for (size_t i = 0; i < p->ninject; i++)
        out->v[out->n++] = p->inject[i].host;
}

void mo_edges_init(struct mo_edges *x, struct mo_loop *l,
                   const struct mo_egress_opts *o)
{
    *x = (struct mo_edges){.loop = l,
                           .policy = o->policy,
                           .authority = o->authority,
                           .secret = o->secret,
                           .secret_ctx = o->secret_ctx};
    mo_edge_names(o->policy, &x->names);
}

void mo_edges_fini(struct mo_edges *x)
{
    for (size_t h2 = 0; h2 < 2; h2++) {
        mo_tls_free(x->outside[h2]);
        for (size_t i = 0; x->leaves[h2] && i < x->policy->ninject; i++)
            mo_tls_free(x->leaves[h2][i].tls);
        mo_free(x->leaves[h2]);
    }
}

static struct mo_tls_ctx *outside_ctx(struct mo_edges *x, bool h2,
                                      struct mo_err *e)
{
    struct mo_tls_client_opts system = {.ca = NULL};
    struct mo_tls_ctx *c = x->outside[h2];

    if (c)
        return c;
    c = mo_tls_client_new(&system, e);
    if (c && h2 && mo_tls_use_h2(c, e) < 0) {
        mo_tls_free(c);
        return NULL;
    }
    x->outside[h2] = c;
    return c;
}

/* Streams keep the context that they began with. */
static struct mo_tls_ctx *leaf_ctx(struct mo_edges *x,
                                   const struct mo_egress_inject *j, bool h2,
                                   struct mo_err *e)
{
    uint64_t now = mo_loop_now(x->loop);
    struct mo_edge_leaf *leaf;

    if (!x->leaves[h2])
        x->leaves[h2] = mo_zalloc(x->policy->ninject * sizeof(*x->leaves[h2]));
    if (!x->leaves[h2])
        return mo_null(mo_fail(e, MO_ENOMEM, "certificate"));
    leaf = &x->leaves[h2][j - x->policy->inject];
    if (leaf->tls && now < leaf->until_ns)
        return leaf->tls;
    mo_tls_free(leaf->tls);
    leaf->until_ns = now + MO_TLS_LEAF_MS * MO_MS;
    leaf->tls = mo_tls_authority_server(x->authority, &x->names, j->host, e);
    if (leaf->tls && h2 && mo_tls_use_h2(leaf->tls, e) < 0)
        mo_tls_free(mo_take_ptr(&leaf->tls));
    return leaf->tls;
}

/* --- secrets ------------------------------------------------------------- */

static int resolve_value(struct mo_edge *x, size_t i, struct mo_err *e)
{
    const char *name = x->s.inject->headers[i].name;
    struct mo_buf *b = &x->values[i];
    int rc;

    b->max = VALUE_MAX;
    if (!mo_buf_room(b, VALUE_MAX)) /* growing would leave copies */
        return mo_fail(e, MO_ENOMEM, "inject");
    rc = x->of->secret(x->of->secret_ctx, x->s.inject->headers[i].value, b, e);
    if (rc < 0)
        return mo_wrap(e, "inject: %s", name);
    if (mo_buf_err(b) || b->len == 0 ||
        !mo_span_between(mo_buf_view(b), ' ', '~') || b->p[0] == ' ' ||
        b->p[b->len - 1] == ' ')
        return mo_fail(e, MO_EINVAL,
                       "inject: the value of %s cannot be a header", name);
    x->headers[i] = (struct mo_http_edge_header){name, mo_buf_view(b)};
    return 0;
}

static int resolve_all(struct mo_edge *x, struct mo_err *e)
{
    int rc = 0;

    if (!x->of->authority || !x->of->secret)
        return mo_fail(e, MO_EUNAVAIL, "inject: there is no authority");
    for (size_t i = 0; rc == 0 && i < x->s.inject->n; i++)
        rc = resolve_value(x, i, e);
    return rc;
}

/* --- start --------------------------------------------------------------- */

static int wrap_in(struct mo_edge *x, bool h2, struct mo_err *e)
{
    struct mo_tls_ctx *leaf = leaf_ctx(x->of, x->s.inject, h2, e);
    int rc;

    if (!leaf)
        return e->code;
    rc = mo_tls_wrap(leaf, *x->s.in, true, NULL, x->s.in, e);
    if (rc < 0)
        return rc;
    rc = mo_tls_feed(*x->s.in, mo_buf_view(&x->first), e);
    mo_buf_fini(&x->first);
    mo_stream_attach(*x->s.in, x->s.in_cb, x->s.ctx);
    return rc;
}

/* The host has accepted. */
static void on_outside(void *ctx)
{
    struct mo_edge *x = ctx;
    struct mo_http_edge_opts o = {.host = x->s.inject->host,
                                  .port = x->s.port,
                                  .h2 = mo_tls_is_h2(*x->s.out),
                                  .headers = x->headers,
                                  .n = x->s.inject->n};
    struct mo_err e = {0};
    int rc;

    x->http = mo_http_edge_new(&o);
    rc = x->http ? wrap_in(x, o.h2, &e) : mo_fail(&e, MO_ENOMEM, "inject");
    if (rc < 0)
        x->s.failed(x->s.ctx, &e);
}

static int wrap_out(struct mo_edge *x, struct mo_err *e)
{
    struct mo_tls_ctx *c = outside_ctx(x->of, x->s.hello->h2, e);
    int rc;

    if (!c)
        return e->code;
    rc = mo_tls_wrap(c, *x->s.out, false, x->s.inject->host, x->s.out, e);
    if (rc < 0)
        return rc;
    mo_tls_on_ready(*x->s.out, on_outside, x);
    mo_stream_attach(*x->s.out, x->s.out_cb, x->s.ctx);
    return 0;
}

int mo_edge_start(struct mo_edges *of, const struct mo_edge_start *s,
                  struct mo_edge **out, struct mo_err *e)
{
    struct mo_edge *x = mo_new(struct mo_edge);
    int rc;

    if (!x)
        return mo_fail(e, MO_ENOMEM, "inject");
    x->of = of;
    x->s = *s;
    mo_buf_init(&x->first, s->first.n);
    mo_buf_init(&x->out, OUT_MAX);
    rc = mo_buf_span(&x->first, s->first);
    rc = rc ? mo_fail(e, rc, "inject") : resolve_all(x, e);
    if (rc == 0)
        rc = wrap_out(x, e);
    x->s.hello = NULL;
    if (rc < 0)
        mo_edge_free(x);
    else
        *out = x;
    return rc;
}

void mo_edge_free(struct mo_edge *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < MO_COUNT(x->values); i++)
        mo_buf_wipe(&x->values[i]);
    mo_http_edge_free(x->http);
    mo_buf_wipe(&x->out);
    mo_buf_fini(&x->first);
    mo_free(x);
}

/* --- requests ------------------------------------------------------------ */

int mo_edge_request(struct mo_edge *x, struct mo_span data, struct mo_span *out,
                    struct mo_err *e)
{
    int rc;

    if (!x->out.cap)
        (void)mo_buf_room(&x->out, data.n + HEAD_ROOM);
    rc = mo_http_edge_feed(x->http, data, &x->out, e);
    *out = mo_buf_view(&x->out);
    return rc;
}

void mo_edge_sent(struct mo_edge *x)
{
    uint64_t now = mo_http_edge_count(x->http);

    if (now != x->count)
        mo_buf_wipe(&x->out);
    else
        mo_buf_reset(&x->out);
    x->count = now;
}

bool mo_edge_is_open(const struct mo_edge *x)
{
    return x->http != NULL;
}

const struct mo_egress_inject *mo_edge_injected(const struct mo_edge *x)
{
    return x && x->http && mo_http_edge_count(x->http) ? x->s.inject : NULL;
}
