/* ep_ask.c - questions to a legacy client: requests on the way of the call that
 * needs them, and their replies.
 *
 * When all replies are there the handler is called again from the top. The
 * capabilities that a question needs are known here for both eras. */
#include "base/rand.h"
#include "mcp/server/ep_priv.h"

#define ASK_TOKEN 12 /* random bytes of an elicitationId */

/* --- capabilities that a question needs ---------------------------------- */

static const struct ep_kind {
    const char *method, *cap, *sub; /* needs cap.sub; sub NULL: cap */
} kinds[] = {
    {"sampling/createMessage", "sampling", NULL},
    {"sampling/createMessage", "sampling", "tools"},
    {"elicitation/create", "elicitation", "form"},
    {"elicitation/create", "elicitation", "url"},
    {"roots/list", "roots", NULL},
};

enum { SAMPLING, SAMPLING_TOOLS, FORM, URL, ROOTS, NO_KIND };

static bool is_url(struct mo_json params)
{
    return mo_json_str_eq(mo_json_get(params, "mode"), MO_SPAN("url"));
}

static int kind_of(struct mo_span method, struct mo_json params)
{
    if (mo_span_is(method, kinds[FORM].method))
        return is_url(params) ? URL : FORM;
    if (mo_span_is(method, kinds[SAMPLING].method))
        return mo_json_get(params, "tools").p ? SAMPLING_TOOLS : SAMPLING;
    return mo_span_is(method, kinds[ROOTS].method) ? ROOTS : NO_KIND;
}

/* An empty elicitation object means forms: older revisions had nothing else. */
static bool has_capability(struct mo_json caps, enum mo_mcp_version v, int kind)
{
    struct mo_json cap;

    if (kind == NO_KIND)
        return false; /* no client can declare that */
    cap = mo_json_get(caps, kinds[kind].cap);
    if (!mo_json_is(cap, MO_JSON_OBJECT))
        return false;
    if (kind == URL && v < MO_MCP_2025_11_25)
        return false;
    if (kind == FORM && !mo_json_get(cap, "url").p)
        return true;
    return !kinds[kind].sub ||
           mo_json_is(mo_json_get(cap, kinds[kind].sub), MO_JSON_OBJECT);
}

/* Nobody can be asked about a call that the handler made itself. */
static bool is_mute(const struct mo_ep_call *c)
{
    return c->within && !c->within->asks;
}

unsigned mo_ep_missing(const struct call *c)
{
    unsigned missing = 0;

    mo_list_each_entry (q, &c->needs, struct ep_need, node) {
        int kind =
            kind_of(q->method, (struct mo_json){q->params.p, q->params.n});

        if (is_mute(&c->pub) ||
            !has_capability(c->pub.caps, c->pub.version, kind))
            missing |= 1U << kind;
    }
    return missing;
}

bool mo_ep_call_takes(const struct mo_ep_call *pub, const char *method,
                      struct mo_json params)
{
    return !is_mute(pub) &&
           has_capability(pub->caps, pub->version,
                          kind_of(mo_span_cstr(method), params));
}

bool mo_ep_sess_takes(const struct mo_ep_sess *s, const char *method,
                      struct mo_json params)
{
    struct mo_json caps = {s->caps, s->caps ? strlen(s->caps) : 0};

    return has_capability(caps, s->version,
                          kind_of(mo_span_cstr(method), params));
}

bool mo_ep_call_may_ask(const struct mo_ep_call *pub)
{
    return !is_mute(pub) && (!mo_mcp_is_modern(pub->version) ||
                             (call_of(pub)->m->flags & M_MRTR));
}

/* Write the missing parts of one capability; forms are implied. */
static void put_missing_parts(const struct call *c, struct mo_jw *w,
                              const char *cap, unsigned missing)
{
    bool has = mo_ep_call_can(&c->pub, cap);

    mo_jw_member_obj(w, cap);
    for (int k = 0; k < (int)MO_COUNT(kinds); k++) {
        if (!(missing & 1U << k) || strcmp(kinds[k].cap, cap) != 0 ||
            !kinds[k].sub || (k == FORM && !has))
            continue;
        mo_jw_member_obj(w, kinds[k].sub);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

void mo_ep_put_missing(const struct call *c, unsigned missing, struct mo_buf *b)
{
    static const char *const caps[] = {"sampling", "elicitation", "roots"};
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_obj(&w, "requiredCapabilities");
    for (size_t i = 0; i < MO_COUNT(caps); i++) {
        bool any = false;

        for (size_t k = 0; k < MO_COUNT(kinds); k++)
            any |= (missing & 1U << k) && strcmp(kinds[k].cap, caps[i]) == 0;
        if (any)
            put_missing_parts(c, &w, caps[i], missing);
    }
    mo_jw_end_all(&w);
}

/* --- asking -------------------------------------------------------------- */

/* Take back the questions that are still open. */
void mo_ep_legacy_unask(struct call *c)
{
    mo_list_each_entry (q, &c->needs, struct ep_need, node) {
        if (q->ask && !q->answered && c->way)
            mo_ep_send_cancelled(c->ep, c->way, q->ask);
    }
}

/* End the call without calling the handler again: with a text that the model
 * can read, or an error where there is no model. */
static void end_unanswered(struct call *c, const char *why)
{
    mo_ep_legacy_unask(c);
    if (c->state == CALL_WAITING)
        mo_ep_call_abandon(c);
    c->state = CALL_RUNNING;
    mo_timer_stop(c->ep->loop, &c->timer);
    if (call_is_tool(c))
        mo_ep_call_fail(&c->pub, why);
    else
        mo_ep_call_error(&c->pub, MO_RPC_INTERNAL, why, mo_span(NULL, 0));
}

/* Write the question's parameters and the members that this era adds. */
static void put_params(const struct call *c, const struct ep_need *q,
                       struct mo_jw *w)
{
    struct mo_json p = {q->params.p, q->params.n};
    bool nameless = is_url(p) && !mo_json_get(p, "elicitationId").p;
    char name[MO_TOKEN_LEN(ASK_TOKEN) + 1];

    if (!c->task && !nameless) {
        mo_jw_raw(w, q->params);
        return;
    }
    mo_jw_obj(w);
    mo_ep_put_members(w, p, EP_KEYS("_meta"));
    if (nameless) { /* this era has an id for a page that a person opens */
        mo_random_token(name, ASK_TOKEN);
        mo_jw_member_cstr(w, "elicitationId", name);
    }
    mo_jw_member_obj(w, "_meta");
    mo_ep_put_members(w, mo_json_get(p, "_meta"), EP_KEYS(MO_MCP_P_TASK));
    if (c->task)
        mo_ep_task_meta(c->task, w);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void send_question(struct call *c, struct ep_need *q)
{
    struct mo_jw w = mo_jw_object(mo_ep_scratch(c->ep));

    q->ask = ++c->sess->next_ask;
    mo_jw_member_cstr(&w, "jsonrpc", "2.0");
    mo_jw_member_u64(&w, "id", q->ask);
    mo_jw_member(&w, "method", q->method);
    mo_jw_key(&w, "params");
    put_params(c, q, &w);
    mo_jw_end(&w);
    mo_ep_note_scratch(c->ep, c->way);
}

void mo_ep_legacy_ask(struct call *c)
{
    mo_list_each_entry (q, &c->needs, struct ep_need, node) {
        if (!q->ask)
            send_question(c, q);
    }
}

enum mo_ep_waiting mo_ep_legacy_wait(struct call *c)
{
    if (mo_ep_missing(c)) {
        end_unanswered(c,
                       "this needs a client that supports "
                       "sampling, elicitation or roots; this client does not");
        return MO_EP_ENDED;
    }
    if (!c->way || !c->sess) {
        mo_ep_call_end(c);
        return MO_EP_ENDED;
    }
    c->state = CALL_WAITING;
    mo_timer_start(c->ep->loop, &c->timer, c->ep->o.limits.ask_ms);
    if (c->task)
        mo_ep_task_asks(c->task, true);
    else
        mo_ep_legacy_ask(c);
    return MO_EP_WAITS;
}

/* Call the handler again with the answers so far. */
static void call_handler_again(struct call *c)
{
    mo_timer_stop(c->ep->loop, &c->timer);
    if (c->task)
        mo_ep_task_asks(c->task, false);
    mo_ep_call_run(c);
}

bool mo_endpoint_wake(struct mo_endpoint *ep, struct mo_span state)
{
    mo_list_each_entry (c, &ep->calls, struct call, node) {
        if (c->state != CALL_WAITING || !mo_span_eq(c->state_bytes, state))
            continue;
        mo_ep_legacy_unask(c);
        call_handler_again(c);
        return true;
    }
    return false;
}

static struct ep_need *find_need(struct mo_ep_sess *s, uint64_t ask,
                                 struct call **out)
{
    mo_list_each_entry (c, &s->calls, struct call, snode) {
        if (c->state != CALL_WAITING)
            continue;
        mo_list_each_entry (q, &c->needs, struct ep_need, node) {
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

static void handle_refusal(struct call *c, const struct ep_need *q,
                           struct mo_json error)
{
    mo_autobuf struct mo_buf b = {.max = EP_CALL_EXTRA};

    (void)mo_buf_puts(&b, "the client refused ");
    (void)mo_buf_span(&b, q->method);
    (void)mo_buf_puts(&b, ": ");
    (void)mo_json_str_buf(mo_json_get(error, "message"), &b);
    end_unanswered(c, mo_buf_cstr(&b));
}

void mo_ep_legacy_reply(struct mo_ep_sess *s, const struct mo_rpc *m)
{
    struct call *c = NULL;
    struct ep_need *q;
    uint64_t id;
    bool error;

    if (mo_json_u64(m->id, &id) < 0)
        return;
    q = find_need(s, id, &c);
    if (!q) {
        mo_ep_push_reply(s, id, m);
        return;
    }
    q->answered = true;
    error = m->kind == MO_RPC_ERROR;
    if (error && !s->ep->o.refusals)
        handle_refusal(c, q, m->error);
    else if (mo_ep_call_add_input(c, q->key, error ? m->error : m->result,
                                  error) < 0)
        end_unanswered(c, "the client's answer is too big");
    else if (all_answered(c))
        call_handler_again(c);
}
