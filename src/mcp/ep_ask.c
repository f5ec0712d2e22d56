/* ep_ask.c - questions to a legacy client: real requests on the way of the call
 * that needs them, and the replies. When all are there the handler is called
 * again from the top. */
#include "mcp/ep_priv.h"

static const struct mo_span nothing = {NULL, 0};

static const struct {
    const char *method, *cap;
} asks[] = {
    {"sampling/createMessage", "sampling"},
    {"elicitation/create", "elicitation"},
    {"roots/list", "roots"},
};

const char *mo_ep_ask_cap(struct mo_span method)
{
    for (size_t i = 0; i < MO_COUNT(asks); i++) {
        if (mo_span_is(method, asks[i].method))
            return asks[i].cap;
    }
    return NULL;
}

static bool client_can(const struct call *c)
{
    mo_list_each (n, &c->needs) {
        struct ep_need *q = mo_container_of(n, struct ep_need, node);
        const char *cap = mo_ep_ask_cap(q->method);

        if (!cap || !mo_ep_call_can(&c->pub, cap))
            return false;
    }
    return true;
}

/* Questions that are still out are taken back. */
void mo_ep_legacy_unask(struct call *c)
{
    struct mo_buf *b;

    mo_list_each (n, &c->needs) {
        struct ep_need *q = mo_container_of(n, struct ep_need, node);

        if (!q->ask || q->answered || !c->way)
            continue;
        b = mo_ep_scratch(c->ep);
        (void)mo_buf_printf(b,
                            "{\"jsonrpc\":\"2.0\",\"method\":"
                            "\"notifications/cancelled\",\"params\":"
                            "{\"requestId\":%llu}}",
                            (unsigned long long)q->ask);
        if (!mo_buf_err(b))
            c->way->note(c->way, mo_buf_view(b));
    }
    mo_ep_scratch_done(c->ep);
}

/* The handler is not asked again: the call ends with what the model can
 * read, or an error where there is no model. */
static void give_up(struct call *c, const char *why)
{
    mo_ep_legacy_unask(c);
    c->state = CALL_RUNNING;
    mo_timer_stop(c->ep->loop, &c->timer);
    if (call_is_tool(c))
        mo_ep_call_fail(&c->pub, why);
    else
        mo_ep_call_error(&c->pub, MO_RPC_INTERNAL, why, nothing);
}

static bool is_meta(struct mo_json key)
{
    return mo_json_str_eq(key, MO_SPAN("_meta"));
}

static bool is_related(struct mo_json key)
{
    return mo_json_str_eq(key, MO_SPAN(MO_MCP_P_TASK));
}

/* The question's parameters, with the task that it is about. */
static void put_params(const struct call *c, const struct ep_need *q,
                       struct mo_jw *w)
{
    struct mo_json p = {q->params.p, q->params.n};

    if (!c->task) {
        mo_jw_raw(w, q->params);
        return;
    }
    mo_jw_obj(w);
    mo_ep_put_members(w, p, is_meta);
    mo_jw_key(w, "_meta");
    mo_jw_obj(w);
    mo_ep_put_members(w, mo_json_get(p, "_meta"), is_related);
    mo_ep_task_meta(c->task, w);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void ask(struct call *c, struct ep_need *q)
{
    struct mo_buf *b = mo_ep_scratch(c->ep);
    struct mo_jw w;

    q->ask = ++c->sess->next_ask;
    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "jsonrpc");
    mo_jw_cstr(&w, "2.0");
    mo_jw_key(&w, "id");
    mo_jw_u64(&w, q->ask);
    mo_jw_key(&w, "method");
    mo_jw_str(&w, q->method);
    mo_jw_key(&w, "params");
    put_params(c, q, &w);
    mo_jw_end(&w);
    if (!mo_buf_err(b))
        c->way->note(c->way, mo_buf_view(b));
    mo_ep_scratch_done(c->ep);
}

void mo_ep_legacy_ask(struct call *c)
{
    mo_list_each (n, &c->needs) {
        struct ep_need *q = mo_container_of(n, struct ep_need, node);

        if (!q->ask)
            ask(c, q);
    }
}

void mo_ep_legacy_wait(struct call *c)
{
    if (!client_can(c)) {
        give_up(c, "this needs a client that can be asked "
                   "(sampling, elicitation or roots); yours did not say so");
        return;
    }
    if (!c->way || !c->sess) {
        mo_ep_call_end(c);
        return;
    }
    c->state = CALL_WAITING;
    mo_timer_start(c->ep->loop, &c->timer, c->ep->o.limits.ask_ms);
    if (c->task)
        mo_ep_task_ask(c->task);
    else
        mo_ep_legacy_ask(c);
}

static struct ep_need *find_need(struct mo_ep_sess *s, uint64_t ask,
                                 struct call **out)
{
    mo_list_each (n, &s->calls) {
        struct call *c = mo_container_of(n, struct call, snode);

        if (c->state != CALL_WAITING)
            continue;
        mo_list_each (m, &c->needs) {
            struct ep_need *q = mo_container_of(m, struct ep_need, node);

            *out = c;
            if (q->ask && q->ask == ask && !q->answered)
                return q;
        }
    }
    return NULL;
}

static bool all_answered(const struct call *c)
{
    mo_list_each (n, &c->needs) {
        if (!mo_container_of(n, struct ep_need, node)->answered)
            return false;
    }
    return true;
}

static void refused(struct call *c, const struct ep_need *q,
                    struct mo_json error)
{
    struct mo_buf b;

    mo_buf_init(&b, EP_CALL_EXTRA);
    (void)mo_buf_puts(&b, "the client refused ");
    (void)mo_buf_span(&b, q->method);
    (void)mo_buf_puts(&b, ": ");
    (void)mo_json_str_buf(mo_json_get(error, "message"), &b);
    give_up(c, mo_buf_cstr(&b));
    mo_buf_fini(&b);
}

void mo_ep_legacy_reply(struct mo_ep_sess *s, const struct mo_rpc *m)
{
    struct call *c = NULL;
    struct ep_need *q;
    uint64_t id;

    if (mo_json_u64(m->id, &id) < 0)
        return;
    q = find_need(s, id, &c);
    if (!q)
        return;
    q->answered = true;
    if (m->kind == MO_RPC_ERROR) {
        refused(c, q, m->error);
    } else if (mo_ep_call_add_input(c, q->key, m->result) < 0) {
        give_up(c, "the client's answer is too big");
    } else if (all_answered(c)) {
        mo_timer_stop(c->ep->loop, &c->timer);
        if (c->task)
            mo_ep_task_goes_on(c->task);
        mo_ep_call_run(c);
    }
}
