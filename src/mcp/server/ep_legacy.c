/* ep_legacy.c - translation for peers that open with `initialize` (2024-10-07
 * to 2025-11-25): the handshake, the state of a session, results without newer
 * members. ep_ask.c sends questions to the client. */
#include "base/rand.h"
#include "mcp/server/ep_priv.h"

void mo_ep_sess_init(struct mo_ep_sess *s, struct mo_endpoint *ep)
{
    *s = (struct mo_ep_sess){.ep = ep, .level = MO_MCP_INFO};
    mo_list_init(&s->calls);
    mo_list_init(&s->tasks);
    mo_list_init(&s->asks);
    mo_map_init(&s->uris, ep->o.limits.uris);
    mo_list_push(&ep->sessions, &s->node);
    ep->nsessions++;
    while (!s->peer)
        s->peer = mo_random_u64();
}

void mo_ep_sess_fini(struct mo_ep_sess *s)
{
    mo_ep_tasks_end(s);
    mo_ep_push_end(s);
    mo_list_drain (c, &s->calls, struct call, snode) {
        c->sess = NULL;
        mo_ep_call_cancel(c);
    }
    mo_list_del(&s->node);
    s->ep->nsessions--;
    mo_ep_unwatch_all(s->ep, &s->uris);
    mo_map_fini(&s->uris);
    if (s->asked_level)
        mo_ep_level_wanted(s->ep, s->level, false);
    if (s->ep->o.session_gone)
        s->ep->o.session_gone(s->ep->o.ctx, s->peer);
    mo_free(s->caps);
    mo_free(s->client);
}

int mo_ep_sess_revive(struct mo_ep_sess *s, enum mo_mcp_version version,
                      struct mo_span caps, struct mo_span client)
{
    s->caps = caps.n ? mo_strndup(caps.p, caps.n) : NULL;
    s->client = client.n ? mo_strndup(client.p, client.n) : NULL;
    if ((caps.n && !s->caps) || (client.n && !s->client))
        return MO_ENOMEM;
    s->version = version;
    s->ready = true;
    return 0;
}

/* --- the handshake ------------------------------------------------------- */

static int copy_json(char **to, struct mo_json v)
{
    mo_free(*to);
    *to = NULL;
    if (!mo_json_is(v, MO_JSON_OBJECT))
        return 0;
    *to = mo_strndup(v.p, v.n);
    return *to ? 0 : MO_ENOMEM;
}

static enum mo_mcp_version choose_version(struct mo_json asked)
{
    for (int v = MO_MCP_2024_10_07; v <= MO_MCP_2025_11_25; v++) {
        const char *text = mo_mcp_version_text((enum mo_mcp_version)v);

        if (mo_json_str_eq(asked, mo_span_cstr(text)))
            return (enum mo_mcp_version)v;
    }
    return MO_MCP_2025_11_25;
}

static void put_init_result(struct mo_ep_sess *s, struct mo_json id)
{
    struct mo_endpoint *ep = s->ep;
    struct mo_jw w = mo_ep_begin_result(ep, id);

    mo_jw_member_cstr(&w, "protocolVersion", mo_mcp_version_text(s->version));
    mo_jw_key(&w, "capabilities");
    mo_ep_put_caps(ep, &w, s->version);
    mo_jw_key(&w, "serverInfo");
    mo_ep_put_info(ep, &w);
    if (ep->o.instructions)
        mo_jw_member_cstr(&w, "instructions", ep->o.instructions);
    mo_jw_end_all(&w);
}

static const char *on_initialize(struct mo_ep_sess *s,
                                 const struct mo_ep_from *from,
                                 const struct mo_rpc *m)
{
    struct mo_json asked = mo_json_get(m->params, "protocolVersion");

    if (s->version != MO_MCP_UNKNOWN) {
        mo_ep_refuse(s->ep, from->way, 400, m->id, MO_RPC_INVALID_REQUEST,
                     "already initialized");
        return NULL;
    }
    if (!mo_json_is(asked, MO_JSON_STRING)) {
        mo_ep_refuse(s->ep, from->way, 400, m->id, MO_RPC_INVALID_PARAMS,
                     "params.protocolVersion must be a string");
        return NULL;
    }
    if (copy_json(&s->caps, mo_json_get(m->params, "capabilities")) < 0 ||
        copy_json(&s->client, mo_json_get(m->params, "clientInfo")) < 0) {
        mo_ep_refuse(s->ep, from->way, 200, m->id, MO_RPC_INTERNAL,
                     "out of memory");
        return NULL;
    }
    s->version = choose_version(asked);
    put_init_result(s, m->id);
    mo_ep_answer_scratch(s->ep, from->way, 200);
    return NULL;
}

/* --- plumbing ------------------------------------------------------------ */

static const char *send_empty_result(struct mo_ep_sess *s,
                                     const struct mo_ep_from *from,
                                     const struct mo_rpc *m)
{
    (void)mo_rpc_put_result(mo_ep_scratch(s->ep), mo_json_text(m->id),
                            MO_SPAN("{}"));
    mo_ep_answer_scratch(s->ep, from->way, 200);
    return NULL;
}

static const char *on_level(struct mo_ep_sess *s, const struct mo_ep_from *from,
                            const struct mo_rpc *m)
{
    enum mo_mcp_level lv = mo_ep_level(mo_json_get(m->params, "level"));

    if (lv == MO_MCP_LEVELS)
        return "no such level";
    mo_ep_level_wanted(s->ep, lv, true);
    if (s->asked_level)
        mo_ep_level_wanted(s->ep, s->level, false);
    s->asked_level = true;
    s->level = lv;
    return send_empty_result(s, from, m);
}

static int add_uri(struct mo_ep_sess *s, struct mo_span uri)
{
    void *old = NULL;
    int rc = mo_map_put(&s->uris, uri, s, &old);

    if (rc < 0 || old)
        return rc;
    rc = mo_ep_watch(s->ep, uri);
    if (rc < 0)
        (void)mo_map_del(&s->uris, uri);
    return rc;
}

static int set_subscription(struct mo_ep_sess *s, struct mo_json uri, bool on)
{
    mo_autobuf struct mo_buf b = {.max = EP_CALL_EXTRA};
    int rc = mo_json_str_buf(uri, &b);

    if (rc == 0 && on)
        rc = add_uri(s, mo_buf_view(&b));
    else if (rc == 0 && mo_map_del(&s->uris, mo_buf_view(&b)))
        mo_ep_unwatch(s->ep, mo_buf_view(&b));
    return rc;
}

static const char *on_subscription(struct mo_ep_sess *s,
                                   const struct mo_ep_from *from,
                                   const struct mo_rpc *m)
{
    bool on = mo_json_str_eq(m->method, MO_SPAN("resources/subscribe"));
    struct mo_json uri = mo_json_get(m->params, "uri");
    int rc = MO_EINVAL;

    if (mo_json_is(uri, MO_JSON_STRING))
        rc = set_subscription(s, uri, on);
    if (rc == 0)
        return send_empty_result(s, from, m);
    return rc == MO_EBUSY ? "too many subscriptions"
                          : "params.uri must be a string";
}

static const struct plumbing {
    const char *name;
    unsigned cap;
    enum mo_mcp_version since; /* MO_MCP_UNKNOWN: allowed before initialize */
    ep_plumbing_fn *run;
} plumbing[] = {
    {"initialize", 0, MO_MCP_UNKNOWN, on_initialize},
    {"ping", 0, MO_MCP_UNKNOWN, send_empty_result},
    {"logging/setLevel", MO_EP_LOGGING, MO_MCP_2024_10_07, on_level},
    {"resources/subscribe", MO_EP_SUBSCRIBE, MO_MCP_2024_10_07,
     on_subscription},
    {"resources/unsubscribe", MO_EP_SUBSCRIBE, MO_MCP_2024_10_07,
     on_subscription},
    {"tasks/get", MO_EP_CALL_TASKS, MO_MCP_2025_11_25, mo_ep_task_get},
    {"tasks/result", MO_EP_CALL_TASKS, MO_MCP_2025_11_25, mo_ep_task_result},
    {"tasks/list", MO_EP_CALL_TASKS, MO_MCP_2025_11_25, mo_ep_task_list},
    {"tasks/cancel", MO_EP_CALL_TASKS, MO_MCP_2025_11_25, mo_ep_task_cancel},
};

static const struct plumbing *find_plumbing(const struct mo_ep_sess *s,
                                            struct mo_json method)
{
    for (size_t i = 0; i < MO_COUNT(plumbing); i++) {
        const struct plumbing *p = &plumbing[i];

        if (mo_json_str_eq(method, mo_span_cstr(p->name)) &&
            s->version >= p->since && (s->ep->o.caps & p->cap) == p->cap)
            return p;
    }
    return NULL;
}

/* --- calls --------------------------------------------------------------- */

static int borrow_json(struct call *c, const char *text, struct mo_json *out)
{
    struct mo_span s;

    *out = (struct mo_json){NULL, 0};
    if (!text)
        return 0;
    s = mo_span_dup(&c->arena, mo_span_cstr(text));
    *out = (struct mo_json){s.p, s.n};
    return s.p ? 0 : MO_ENOMEM;
}

/* As a task, if the call asks for one and the tool allows that. */
static void run_call(struct call *c)
{
    const struct mo_endpoint_opts *o = &c->ep->o;
    bool task = c->parts.task.p;
    enum mo_ep_task_support can = MO_EP_TASK_OPTIONAL;

    if (c->pub.version < MO_MCP_2025_11_25 || !call_is_tool(c) ||
        !(o->caps & MO_EP_CALL_TASKS)) {
        mo_ep_call_run(c);
        return;
    }
    if (o->task)
        can = o->task(o->ctx, c->pub.name);
    if (can == (task ? MO_EP_TASK_FORBIDDEN : MO_EP_TASK_REQUIRED))
        mo_ep_call_refuse(c, 200, MO_RPC_METHOD_NOT_FOUND,
                          "see execution.taskSupport of this tool");
    else if (task)
        mo_ep_task_begin(c);
    else
        mo_ep_call_run(c);
}

static void start_call(struct mo_ep_sess *s, const struct mo_ep_from *from,
                       const struct mo_rpc *m, const struct ep_method *em)
{
    struct call *c = mo_ep_call_new(s->ep, from, m, em);
    const char *bad;

    if (!c)
        return;
    c->pub.version = s->version;
    c->pub.session = s->id;
    c->pub.peer = s->peer;
    bad = mo_ep_call_check(c);
    if (!bad && (borrow_json(c, s->caps, &c->pub.caps) < 0 ||
                 borrow_json(c, s->client, &c->pub.client) < 0))
        bad = "out of memory";
    if (!bad && s->inside.n) {
        c->pub.inside = mo_span_dup(&c->arena, s->inside);
        c->pub.person = mo_span_dup(&c->arena, s->person);
        bad = c->pub.inside.p && c->pub.person.p ? NULL : "out of memory";
    }
    if (bad)
        mo_ep_call_refuse(c, 200, MO_RPC_INVALID_PARAMS, bad);
    else
        run_call(c);
}

static void on_request(struct mo_ep_sess *s, const struct mo_ep_from *from,
                       const struct mo_rpc *m)
{
    const struct plumbing *p = find_plumbing(s, m->method);
    const struct ep_method *em = mo_ep_method(s->ep, m->method, false);
    const char *why = NULL;
    int code = MO_RPC_INVALID_REQUEST;

    if (s->version == MO_MCP_UNKNOWN && !p)
        why = "the first request must be initialize";
    else if (mo_ep_call_find(&s->calls, m->id))
        why = "this id is in use";
    else if (s->ncalls >= s->ep->o.limits.calls)
        why = "too many requests under way";
    if (!why && !p && !em) {
        code = MO_RPC_METHOD_NOT_FOUND;
        why = "no such method";
    }
    if (!why && p) {
        code = MO_RPC_INVALID_PARAMS;
        why = p->run(s, from, m);
    } else if (!why) {
        start_call(s, from, m, em);
    }
    if (why)
        mo_ep_refuse(s->ep, from->way, 200, m->id, code, why);
}

static void on_notification(struct mo_ep_sess *s, const struct mo_rpc *m)
{
    const struct mo_endpoint_opts *o = &s->ep->o;
    struct call *c;

    if (mo_json_str_eq(m->method, MO_SPAN("notifications/initialized"))) {
        s->ready = s->version != MO_MCP_UNKNOWN;
        return;
    }
    if (mo_json_str_eq(m->method,
                       MO_SPAN("notifications/roots/list_changed")) &&
        o->roots_changed)
        o->roots_changed(o->ctx, s->peer);
    if (!mo_json_str_eq(m->method, MO_SPAN("notifications/cancelled")))
        return;
    c = mo_ep_call_find(&s->calls, mo_json_get(m->params, "requestId"));
    if (c)
        mo_ep_call_cancel(c);
}

void mo_ep_legacy(struct mo_ep_sess *s, const struct mo_ep_from *from,
                  const struct mo_rpc *m)
{
    struct mo_ep_from full = *from;

    full.sess = s;
    full.caller = s->caller;
    switch (m->kind) {
    case MO_RPC_REQUEST:
        on_request(s, &full, m);
        break;
    case MO_RPC_NOTIFICATION:
        on_notification(s, m);
        break;
    case MO_RPC_RESULT:
    case MO_RPC_ERROR:
        mo_ep_legacy_reply(s, m);
        break;
    default:
        break;
    }
}

void mo_ep_legacy_result(struct call *c, struct mo_json result)
{
    struct mo_buf *b = mo_ep_scratch(c->ep);

    (void)mo_buf_puts(b, "{\"jsonrpc\":\"2.0\",\"id\":");
    (void)mo_buf_span(b, mo_json_text(c->id));
    (void)mo_buf_puts(b, ",\"result\":");
    (void)mo_ep_downgrade(c->ep, b, c->pub.version, result);
    (void)mo_buf_puts(b, "}");
    mo_ep_call_answer(c, 200);
}
