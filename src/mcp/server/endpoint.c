#include "mcp/server/ep_priv.h"

#define WATCHED_MAX ((size_t)1024 * 1024) /* URIs in total */

/* --- methods passed to the handler --------------------------------------- */

static const struct ep_method methods[] = {
    {"tools/list", MO_EP_TOOLS, NULL, M_CACHE},
    {"tools/call", MO_EP_TOOLS, "name", M_MRTR},
    {"resources/list", MO_EP_RESOURCES, NULL, M_CACHE},
    {"resources/templates/list", MO_EP_RESOURCES, NULL, M_CACHE},
    {"resources/read", MO_EP_RESOURCES, "uri", M_CACHE | M_MRTR},
    {"prompts/list", MO_EP_PROMPTS, NULL, M_CACHE},
    {"prompts/get", MO_EP_PROMPTS, "name", M_MRTR},
    {"completion/complete", MO_EP_COMPLETIONS, NULL, 0},
    {"tasks/get", MO_EP_TASKS, "taskId", M_MODERN},
    {"tasks/update", MO_EP_TASKS, "taskId", M_MODERN},
    {"tasks/cancel", MO_EP_TASKS, "taskId", M_MODERN},
};

const struct ep_method *mo_ep_method(const struct mo_endpoint *ep,
                                     struct mo_json method, bool modern)
{
    for (size_t i = 0; i < MO_COUNT(methods); i++) {
        const struct ep_method *m = &methods[i];

        if (!mo_json_str_eq(method, mo_span_cstr(m->name)))
            continue;
        if (!(ep->o.caps & m->cap) || (!modern && (m->flags & M_MODERN)))
            return NULL;
        return m;
    }
    return NULL;
}

static const char *const levels[MO_MCP_LEVELS] = {
    "debug", "info",     "notice", "warning",
    "error", "critical", "alert",  "emergency",
};

enum mo_mcp_level mo_ep_level(struct mo_json v)
{
    unsigned i = 0;

    while (i < MO_MCP_LEVELS && !mo_json_str_eq(v, mo_span_cstr(levels[i])))
        i++;
    return (enum mo_mcp_level)i;
}

const char *mo_ep_level_text(enum mo_mcp_level lv)
{
    return levels[lv];
}

/* --- life ---------------------------------------------------------------- */

static void fill_limits(struct mo_endpoint_limits *l)
{
    static const struct mo_endpoint_limits usual = {
        .calls = 256,
        .listens = 1024,
        .uris = 256,
        .rounds = 10,
        .ask_ms = (uint64_t)600 * 1000,
        .state_ms = (uint64_t)900 * 1000,
        .message = (size_t)32 * 1024 * 1024,
        .sessions = 4096,
        .session_ms = (uint64_t)30 * 60 * 1000,
        .replay = (size_t)1024 * 1024,
        .replay_all = (size_t)32 * 1024 * 1024,
        .keepalive_ms = (uint64_t)15 * 1000,
        .soon_ms = 20,
        .tasks = 64,
        .task_ms = (uint64_t)3600 * 1000,
        .task_bytes = (size_t)32 * 1024 * 1024,
    };

#define FILL(x) l->x = l->x ? l->x : usual.x
    FILL(calls);
    FILL(listens);
    FILL(uris);
    FILL(rounds);
    FILL(ask_ms);
    FILL(state_ms);
    FILL(message);
    FILL(sessions);
    FILL(session_ms);
    FILL(replay);
    FILL(replay_all);
    FILL(keepalive_ms);
    FILL(soon_ms);
    FILL(tasks);
    FILL(task_ms);
    FILL(task_bytes);
#undef FILL
}

struct mo_endpoint *mo_endpoint_new(struct mo_loop *l,
                                    const struct mo_endpoint_opts *o,
                                    struct mo_err *e)
{
    struct mo_endpoint *ep = mo_new(struct mo_endpoint);

    if (!ep)
        return mo_null(mo_fail(e, MO_ENOMEM, "endpoint"));
    ep->loop = l;
    ep->o = *o;
    fill_limits(&ep->o.limits);
    mo_list_init(&ep->calls);
    mo_list_init(&ep->sessions);
    mo_buf_init(&ep->scratch, ep->o.limits.message);
    mo_seal_init(&ep->seal);
    mo_map_init(&ep->watched, WATCHED_MAX);
    ep->level = MO_MCP_LEVELS;
    return ep;
}

void mo_endpoint_ask_ms(struct mo_endpoint *ep, uint64_t ms)
{
    ep->o.limits.ask_ms = ms;
}

void mo_endpoint_free(struct mo_endpoint *ep)
{
    if (!ep)
        return;
    MO_BUG_ON(!mo_list_empty(&ep->sessions));
    while (!mo_list_empty(&ep->calls)) {
        struct call *c = mo_container_of(ep->calls.next, struct call, node);

        mo_ep_call_bury(c);
    }
    mo_buf_fini(&ep->scratch);
    mo_map_fini(&ep->watched);
    mo_free(ep);
}

struct mo_endpoint_stats mo_endpoint_stats(const struct mo_endpoint *ep)
{
    return (struct mo_endpoint_stats){
        .calls = ep->ncalls,
        .listens = ep->nlistens,
        .sessions = ep->nsessions,
        .replay = ep->replay,
        .task_bytes = ep->task_bytes,
    };
}

/* --- writing ------------------------------------------------------------- */

struct mo_buf *mo_ep_scratch(struct mo_endpoint *ep)
{
    mo_buf_reset(&ep->scratch);
    return &ep->scratch;
}

void mo_ep_scratch_done(struct mo_endpoint *ep)
{
    if (ep->scratch.cap > EP_SCRATCH_KEEP)
        mo_buf_fini(&ep->scratch);
}

void mo_ep_put_info(const struct mo_endpoint *ep, struct mo_jw *w)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", ep->o.name);
    mo_jw_member_cstr(w, "version", ep->o.version);
    if (ep->o.title)
        mo_jw_member_cstr(w, "title", ep->o.title);
    mo_jw_end(w);
}

static void put_capability(struct mo_jw *w, const char *name, bool changed,
                           bool subscribe)
{
    mo_jw_member_obj(w, name);
    if (subscribe)
        mo_jw_member_bool(w, "subscribe", true);
    if (changed)
        mo_jw_member_bool(w, "listChanged", true);
    mo_jw_end(w);
}

static void put_extensions(struct mo_jw *w)
{
    mo_jw_member_obj(w, "extensions");
    mo_jw_member_obj(w, MO_MCP_EXT_TASKS);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void put_tasks(struct mo_jw *w)
{
    mo_jw_member_raw(w, "tasks",
                     MO_SPAN("{\"list\":{},\"cancel\":{},\"requests\":"
                             "{\"tools\":{\"call\":{}}}}"));
}

void mo_ep_put_caps(const struct mo_endpoint *ep, struct mo_jw *w,
                    enum mo_mcp_version v)
{
    unsigned caps = ep->o.caps;
    bool changed = caps & MO_EP_LISTCHANGED;

    mo_jw_obj(w);
    if (caps & MO_EP_LOGGING)
        put_capability(w, "logging", false, false);
    if (caps & MO_EP_COMPLETIONS)
        put_capability(w, "completions", false, false);
    if (caps & MO_EP_PROMPTS)
        put_capability(w, "prompts", changed, false);
    if (caps & MO_EP_RESOURCES)
        put_capability(w, "resources", changed, caps & MO_EP_SUBSCRIBE);
    if (caps & MO_EP_TOOLS)
        put_capability(w, "tools", changed, false);
    if (v == MO_MCP_2025_11_25 && (caps & MO_EP_CALL_TASKS))
        put_tasks(w);
    if (mo_mcp_is_modern(v) && (caps & MO_EP_TASKS))
        put_extensions(w);
    mo_jw_end(w);
}

void mo_ep_answer_scratch(struct mo_endpoint *ep, struct mo_ep_way *w)
{
    if (mo_buf_err(&ep->scratch))
        w->drop(w);
    else
        w->answer(w, 200, mo_buf_view(&ep->scratch));
    mo_ep_scratch_done(ep);
}

void mo_ep_refuse(struct mo_endpoint *ep, struct mo_ep_way *w, int status,
                  struct mo_json id, int code, const char *msg,
                  struct mo_span data)
{
    struct mo_span idtext = id.p ? mo_json_text(id) : MO_SPAN("null");
    struct mo_buf *b = mo_ep_scratch(ep);

    if (mo_rpc_put_error(b, idtext, code, mo_span_cstr(msg), data) < 0)
        w->drop(w);
    else
        w->answer(w, status, mo_buf_view(b));
    mo_ep_scratch_done(ep);
}

enum mo_ep_era mo_ep_classify(const struct mo_rpc *m)
{
    struct mo_json meta = mo_json_get(m->params, "_meta");
    struct mo_json v = mo_json_get(meta, MO_MCP_P_VERSION);

    if (m->kind != MO_RPC_REQUEST && m->kind != MO_RPC_NOTIFICATION)
        return EP_LEGACY;
    if (!v.p)
        return EP_LEGACY;
    if (mo_json_str_eq(m->method, MO_SPAN("initialize")))
        return mo_json_str_eq(v, MO_SPAN(MO_MCP_NEWEST)) ? EP_MODERN
                                                         : EP_LEGACY;
    return EP_MODERN;
}

/* --- notifications ------------------------------------------------------- */

struct mo_ep_sess *mo_ep_find_peer(struct mo_endpoint *ep, uint64_t peer)
{
    mo_list_each (n, &ep->sessions) {
        struct mo_ep_sess *s = mo_container_of(n, struct mo_ep_sess, node);

        if (s->peer == peer && s->ready)
            return s;
    }
    return NULL;
}

void mo_ep_send_cancelled(struct mo_endpoint *ep, struct mo_ep_way *way,
                          uint64_t id)
{
    struct mo_buf *b = mo_ep_scratch(ep);

    (void)mo_buf_printf(b,
                        "{\"jsonrpc\":\"2.0\",\"method\":"
                        "\"notifications/cancelled\",\"params\":"
                        "{\"requestId\":%llu}}",
                        (unsigned long long)id);
    if (!mo_buf_err(b))
        way->note(way, mo_buf_view(b));
    mo_ep_scratch_done(ep);
}

static const char *const notices[] = {
    [MO_EP_CH_TOOLS] = "notifications/tools/list_changed",
    [MO_EP_CH_PROMPTS] = "notifications/prompts/list_changed",
    [MO_EP_CH_RESOURCES] = "notifications/resources/list_changed",
};

/* uri empty: a list changed. id none: for a legacy peer. */
static struct mo_span put_notice(struct mo_endpoint *ep, const char *method,
                                 struct mo_span uri, struct mo_json id)
{
    struct mo_buf *b = mo_ep_scratch(ep);
    struct mo_jw w;

    mo_ep_begin_note(ep, &w, method);
    if (uri.p || id.p) {
        mo_jw_member_obj(&w, "params");
        if (uri.p)
            mo_jw_member(&w, "uri", uri);
        if (id.p) {
            mo_jw_member_obj(&w, "_meta");
            mo_jw_member_raw(&w, MO_MCP_P_SUB, mo_json_text(id));
            mo_jw_end(&w);
        }
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
    return mo_buf_view(b);
}

static void push_notice(struct mo_endpoint *ep, struct mo_ep_way *way,
                        const char *method, struct mo_span uri,
                        struct mo_json id)
{
    struct mo_span msg = put_notice(ep, method, uri, id);

    if (msg.n && way)
        way->note(way, msg);
}

static bool is_subscribed(const struct call *c, int what, struct mo_span uri)
{
    if (c->state != CALL_LISTENING || !c->filter)
        return false;
    return what < 0 ? mo_map_get(&c->filter->uris, uri) != NULL
                    : c->filter->what[what];
}

static void notify_clients(struct mo_endpoint *ep, int what, struct mo_span uri)
{
    const char *method =
        what < 0 ? "notifications/resources/updated" : notices[what];

    mo_list_each_safe (n, &ep->sessions) {
        struct mo_ep_sess *s = mo_container_of(n, struct mo_ep_sess, node);

        if (s->ready && (what >= 0 || mo_map_get(&s->uris, uri)))
            push_notice(ep, s->push, method, uri, (struct mo_json){NULL, 0});
    }
    mo_list_each_safe (n, &ep->calls) {
        struct call *c = mo_container_of(n, struct call, node);

        if (is_subscribed(c, what, uri))
            push_notice(ep, c->way, method, uri, c->id);
    }
    mo_ep_scratch_done(ep);
}

void mo_endpoint_changed(struct mo_endpoint *ep, enum mo_ep_what what)
{
    if (ep->o.caps & MO_EP_LISTCHANGED)
        notify_clients(ep, (int)what, mo_span(NULL, 0));
}

void mo_endpoint_updated(struct mo_endpoint *ep, struct mo_span uri)
{
    if (ep->o.caps & MO_EP_SUBSCRIBE)
        notify_clients(ep, -1, uri);
}
