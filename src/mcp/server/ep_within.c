/* ep_within.c - calls that the handler makes on behalf of a call it holds; see
 * endpoint.h.
 *
 * Such a call has a way of its own, which ends at the handler. Questions and
 * log messages about it go the way of the outer call, as long as that is open.
 * Its id is null, which no request of a client has, so that a client cannot
 * name it. */
#include "mcp/server/ep_priv.h"

#define EXTRA ((size_t)4096) /* of its message, beyond the params */

struct within {
    struct mo_ep_way way;
    struct mo_list node; /* in the outer call */
    struct call *outer;  /* NULL: it has ended */
    struct mo_ep_within *pub;
};

static struct within *within_of(const struct mo_ep_way *w)
{
    return mo_container_of(w, struct within, way);
}

static void within_free(struct within *x)
{
    mo_list_del(&x->node);
    mo_free(x);
}

/* --- its way -------------------------------------------------------------- */

static void pass_note(struct mo_ep_way *w, struct mo_span msg)
{
    struct call *outer = within_of(w)->outer;

    if (outer && outer->way)
        outer->way->note(outer->way, msg);
}

/* The answer was written here; with its id it is no message for a parser. */
static void take_answer(struct mo_ep_way *w, int status, struct mo_span msg)
{
    struct mo_ep_within *pub = within_of(w)->pub;
    const struct mo_ep_call *c = mo_take_ptr(&pub->call);
    struct mo_json all = {msg.p, msg.n};
    struct mo_json result = mo_json_get(all, "result");

    (void)status;
    within_free(within_of(w));
    pub->done(pub, result, mo_json_get(all, "error"),
              c && result.p ? c->within : NULL);
}

static void take_drop(struct mo_ep_way *w)
{
    static const struct mo_json none = {NULL, 0};
    struct mo_ep_within *pub = within_of(w)->pub;

    within_free(within_of(w));
    pub->call = NULL;
    pub->done(pub, none, none, NULL);
}

void mo_ep_within_outer_gone(struct call *outer)
{
    mo_list_each_entry_safe (x, &outer->within, struct within, node) {
        x->outer = NULL;
        mo_list_del(&x->node);
    }
}

struct call *mo_ep_within_outer(const struct call *c)
{
    return c->way ? within_of(c->way)->outer : NULL;
}

/* --- its beginning -------------------------------------------------------- */

static struct mo_json copy_json(struct call *c, struct mo_json v)
{
    struct mo_span s = mo_span_dup(&c->arena, mo_json_text(v));

    return v.p ? (struct mo_json){s.p, s.n} : v;
}

/* It is a call of the same client. Texts are copied: it may end later. */
static int take_client(struct call *c, const struct call *outer)
{
    const struct mo_ep_call *o = &outer->pub;
    struct mo_ep_call *p = &c->pub;

    c->id = (struct mo_json){"null", 4};
    p->version = mo_mcp_is_modern(o->version) ? MO_MCP_2025_11_25 : o->version;
    p->session = o->session;
    p->peer = o->peer;
    p->person = mo_span_dup(&c->arena, o->person);
    p->caps = copy_json(c, o->caps);
    p->client = copy_json(c, o->client);
    for (size_t i = 0; i < MO_COUNT(o->trace.v); i++) {
        if (o->trace.v[i].n)
            p->trace.v[i] = mo_span_dup(&c->arena, o->trace.v[i]);
    }
    return !p->person.p || !p->caps.p != !o->caps.p ||
                   !p->client.p != !o->client.p
               ? MO_ENOMEM
               : 0;
}

static int put_message(struct mo_span params, struct mo_buf *b)
{
    mo_buf_puts(b, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"tools/call\","
                   "\"params\":");
    mo_buf_span(b, params);
    return mo_buf_putc(b, '}');
}

/* Its own copy: whoever made it may forget it before the handler does. */
static int take_origin(struct call *c, const struct call *outer,
                       const struct mo_ep_within *w)
{
    struct mo_ep_origin *o = mo_arena_new(&c->arena, struct mo_ep_origin);

    if (!o)
        return MO_ENOMEM;
    *o = (struct mo_ep_origin){
        .script = mo_span_dup(&c->arena, mo_span_cstr(w->script)),
        .line = w->line,
        .asks = c->sess && !outer->task,
    };
    c->pub.within = o;
    return o->script.p ? 0 : MO_ENOMEM;
}

static struct within *within_new(struct call *outer, struct mo_ep_within *w)
{
    struct within *x = mo_new(struct within);

    if (!x)
        return NULL;
    *x = (struct within){
        .way = {pass_note, take_answer, take_drop}, .outer = outer, .pub = w};
    mo_list_push(&outer->within, &x->node);
    return x;
}

int mo_ep_call_within(struct mo_ep_call *pub, struct mo_span params,
                      struct mo_ep_within *w)
{
    struct call *outer = call_of(pub), *c;
    mo_autobuf struct mo_buf text = {.max = params.n + EXTRA};
    bool legacy = !mo_mcp_is_modern(pub->version);
    struct mo_ep_from from = {.caller = pub->caller,
                              .grant = pub->grant,
                              .request = pub->request,
                              .sess = legacy ? outer->sess : NULL,
                              .view = outer->view,
                              .outer = outer};
    const char *bad = NULL;
    struct within *x;
    struct mo_rpc m;

    MO_BUG_ON(pub->within || pub->inside.n);
    w->call = NULL;
    if (outer->gone)
        return MO_ECANCELED;
    if (put_message(params, &text) < 0 ||
        mo_rpc_parse(mo_buf_view(&text), &m, NULL) < 0)
        return MO_EINVAL;
    x = within_new(outer, w);
    if (!x)
        return MO_ENOMEM;
    from.way = &x->way;
    c = mo_ep_call_new(outer->ep, &from, &m,
                       mo_ep_method(outer->ep, m.method, false));
    if (!c)
        return 0; /* it was answered with an error */
    w->call = &c->pub;
    if (take_client(c, outer) < 0 || take_origin(c, outer, w) < 0)
        bad = "out of memory";
    bad = bad ? bad : mo_ep_call_check(c);
    if (bad)
        mo_ep_call_refuse(c, 200, MO_RPC_INVALID_PARAMS, bad);
    else
        mo_ep_call_run(c);
    return 0;
}

void mo_ep_within_cancel(struct mo_ep_within *w)
{
    if (w->call)
        mo_ep_call_cancel(call_of(w->call));
}
