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
    {"skills/list", MO_EP_SKILLS, NULL, M_CACHE},
    {"skills/get", MO_EP_SKILLS, "uri", M_CACHE | M_UNNAMED},
    {"resources/directory/read", MO_EP_SKILLS, "uri", M_CACHE | M_UNNAMED},
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
#define FILL(x, usual) l->x = l->x ? l->x : (usual)
    FILL(calls, 256);
    FILL(listens, 1024);
    FILL(uris, 256);
    FILL(rounds, 10);
    FILL(ask_ms, (uint64_t)600 * 1000);
    FILL(state_ms, (uint64_t)900 * 1000);
    FILL(message, (size_t)32 * 1024 * 1024);
    FILL(sessions, 4096);
    FILL(session_ms, (uint64_t)30 * 60 * 1000);
    FILL(replay, (size_t)1024 * 1024);
    FILL(replay_all, (size_t)32 * 1024 * 1024);
    FILL(keepalive_ms, (uint64_t)15 * 1000);
    FILL(soon_ms, 20);
    FILL(tasks, 64);
    FILL(task_ms, (uint64_t)3600 * 1000);
    FILL(task_bytes, (size_t)32 * 1024 * 1024);
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
    while (!mo_list_empty(&ep->calls))
        mo_ep_call_bury(mo_container_of(ep->calls.next, struct call, node));
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

void mo_ep_put_info(const struct mo_endpoint *ep, struct mo_jw *w)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", ep->o.name);
    mo_jw_member_cstr(w, "version", ep->o.version);
    if (ep->o.title)
        mo_jw_member_cstr(w, "title", ep->o.title);
    mo_jw_end(w);
}

static void put_extensions(unsigned caps, struct mo_jw *w,
                           enum mo_mcp_version v)
{
    bool tasks = mo_mcp_is_modern(v) && (caps & MO_EP_TASKS);
    bool skills = v >= MO_MCP_2025_11_25 && (caps & MO_EP_SKILLS);

    if (!tasks && !skills)
        return;
    mo_jw_member_obj(w, "extensions");
    if (tasks)
        mo_jw_member_raw(w, MO_MCP_EXT_TASKS, MO_SPAN("{}"));
    if (skills)
        mo_jw_member_raw(w, MO_MCP_EXT_SKILLS,
                         MO_SPAN("{\"directoryRead\":true}"));
    mo_jw_end(w);
}

void mo_ep_put_caps(const struct mo_endpoint *ep, struct mo_jw *w,
                    enum mo_mcp_version v)
{
    static const struct {
        unsigned cap;
        const char *name;
        bool changes; /* its list may change */
    } all[] = {
        {MO_EP_LOGGING, "logging", false},
        {MO_EP_COMPLETIONS, "completions", false},
        {MO_EP_PROMPTS, "prompts", true},
        {MO_EP_RESOURCES, "resources", true},
        {MO_EP_TOOLS, "tools", true},
    };
    unsigned caps = ep->o.caps;

    mo_jw_obj(w);
    for (size_t i = 0; i < MO_COUNT(all); i++) {
        if (!(caps & all[i].cap))
            continue;
        mo_jw_member_obj(w, all[i].name);
        if (all[i].cap == MO_EP_RESOURCES && (caps & MO_EP_SUBSCRIBE))
            mo_jw_member_bool(w, "subscribe", true);
        if (all[i].changes && (caps & MO_EP_LISTCHANGED))
            mo_jw_member_bool(w, "listChanged", true);
        mo_jw_end(w);
    }
    if (v == MO_MCP_2025_11_25 && (caps & MO_EP_CALL_TASKS))
        mo_jw_member_raw(w, "tasks",
                         MO_SPAN("{\"list\":{},\"cancel\":{},\"requests\":"
                                 "{\"tools\":{\"call\":{}}}}"));
    put_extensions(caps, w, v);
    mo_jw_end(w);
}

void mo_ep_answer_scratch(struct mo_endpoint *ep, struct mo_ep_way *w,
                          int status)
{
    if (mo_buf_err(&ep->scratch))
        w->drop(w);
    else
        w->answer(w, status, mo_buf_view(&ep->scratch));
    mo_ep_scratch_done(ep);
}

void mo_ep_note_scratch(struct mo_endpoint *ep, struct mo_ep_way *w)
{
    if (!mo_buf_err(&ep->scratch))
        w->note(w, mo_buf_view(&ep->scratch));
    mo_ep_scratch_done(ep);
}

void mo_ep_refuse(struct mo_endpoint *ep, struct mo_ep_way *w, int status,
                  struct mo_json id, int code, const char *msg)
{
    (void)mo_rpc_put_error(mo_ep_scratch(ep),
                           id.p ? mo_json_text(id) : MO_SPAN("null"), code,
                           mo_span_cstr(msg), mo_span(NULL, 0));
    mo_ep_answer_scratch(ep, w, status);
}

bool mo_ep_is_modern(const struct mo_rpc *m)
{
    struct mo_json meta = mo_json_get(m->params, "_meta");
    struct mo_json v = mo_json_get(meta, MO_MCP_P_VERSION);

    if ((m->kind != MO_RPC_REQUEST && m->kind != MO_RPC_NOTIFICATION) || !v.p)
        return false;
    return !mo_json_str_eq(m->method, MO_SPAN("initialize")) ||
           mo_json_str_eq(v, MO_SPAN(MO_MCP_NEWEST));
}

/* --- subscriptions and log levels of all clients ------------------------
 *
 * The handler is told when the first client subscribes to a resource, when the
 * last one unsubscribes, and when the most verbose log level changes. */

/* The map holds counts. */
static uintptr_t count_of(const struct mo_endpoint *ep, struct mo_span uri)
{
    return (uintptr_t)mo_map_get(&ep->watched, uri);
}

static void notify_handler(struct mo_endpoint *ep, struct mo_span uri, bool on)
{
    if (ep->o.watch)
        ep->o.watch(ep->o.ctx, uri, on);
}

int mo_ep_watch(struct mo_endpoint *ep, struct mo_span uri)
{
    uintptr_t n = count_of(ep, uri) + 1;
    int rc = mo_map_put(&ep->watched, uri, (void *)n, NULL); /* NOLINT */

    if (rc == 0 && n == 1)
        notify_handler(ep, uri, true);
    return rc;
}

void mo_ep_unwatch(struct mo_endpoint *ep, struct mo_span uri)
{
    uintptr_t n = count_of(ep, uri);

    if (n > 1)
        /* Replacing needs no memory. */
        (void)mo_map_put(&ep->watched, uri, (void *)(n - 1), NULL); /* NOLINT */
    else if (mo_map_del(&ep->watched, uri))
        notify_handler(ep, uri, false);
}

int mo_ep_watch_all(struct mo_endpoint *ep, const struct mo_map *uris)
{
    int rc = 0;

    mo_map_each (en, uris) {
        rc = mo_ep_watch(ep, mo_map_key(en));
        if (rc == 0)
            continue;
        mo_map_each (done, uris) {
            if (done == en)
                break;
            mo_ep_unwatch(ep, mo_map_key(done));
        }
        break;
    }
    return rc;
}

void mo_ep_unwatch_all(struct mo_endpoint *ep, const struct mo_map *uris)
{
    mo_map_each (en, uris)
        mo_ep_unwatch(ep, mo_map_key(en));
}

void mo_ep_watch_tasks(struct call *c, bool on)
{
    const struct mo_endpoint_opts *o = &c->ep->o;

    mo_map_each (en, &c->filter->tasks) {
        if (o->watch_task)
            o->watch_task(o->ctx, &c->pub, mo_map_key(en), on);
    }
}

void mo_ep_level_wanted(struct mo_endpoint *ep, enum mo_mcp_level lv, bool on)
{
    unsigned least = 0;

    if (lv == MO_MCP_LEVELS)
        return;
    ep->levels[lv] += on ? 1 : -1U;
    while (least < MO_MCP_LEVELS && !ep->levels[least])
        least++;
    if (least == (unsigned)ep->level)
        return;
    ep->level = (enum mo_mcp_level)least;
    if (ep->o.level)
        ep->o.level(ep->o.ctx, ep->level);
}

enum mo_mcp_level mo_endpoint_level(const struct mo_endpoint *ep)
{
    return ep->level;
}

/* --- notifications ------------------------------------------------------- */

struct mo_ep_sess *mo_ep_find_peer(struct mo_endpoint *ep, uint64_t peer)
{
    mo_list_each_entry (s, &ep->sessions, struct mo_ep_sess, node) {
        if (s->peer == peer && s->ready)
            return s;
    }
    return NULL;
}

void mo_ep_send_cancelled(struct mo_endpoint *ep, struct mo_ep_way *way,
                          uint64_t id)
{
    struct mo_jw w = mo_ep_begin_note(ep, "notifications/cancelled");

    mo_jw_member_u64(&w, "requestId", id);
    mo_jw_end_all(&w);
    mo_ep_note_scratch(ep, way);
}

static const char *const notices[] = {
    [MO_EP_CH_TOOLS] = "notifications/tools/list_changed",
    [MO_EP_CH_PROMPTS] = "notifications/prompts/list_changed",
    [MO_EP_CH_RESOURCES] = "notifications/resources/list_changed",
};

/* uri empty: a list changed. id none: for a legacy peer. */
static void push_notice(struct mo_endpoint *ep, struct mo_ep_way *way,
                        const char *method, struct mo_span uri,
                        struct mo_json id)
{
    struct mo_jw w;

    if (!way)
        return;
    w = mo_jw_object(mo_ep_scratch(ep));
    mo_jw_member_cstr(&w, "jsonrpc", "2.0");
    mo_jw_member_cstr(&w, "method", method);
    if (uri.p || id.p)
        mo_jw_member_obj(&w, "params");
    if (uri.p)
        mo_jw_member(&w, "uri", uri);
    if (id.p)
        mo_ep_put_sub(&w, id);
    mo_jw_end_all(&w);
    mo_ep_note_scratch(ep, way);
}

static bool is_subscribed(const struct call *c, int what, struct mo_span uri)
{
    if (c->state != CALL_LISTENING || !c->filter)
        return false;
    return what < 0 ? mo_map_get(&c->filter->uris, uri) != NULL
                    : c->filter->what[what];
}

static void notify_listens(struct mo_endpoint *ep, int what, const char *method,
                           struct mo_span uri)
{
    mo_list_each_entry_safe (c, &ep->calls, struct call, node) {
        if (is_subscribed(c, what, uri))
            push_notice(ep, c->way, method, uri, c->id);
    }
}

static void notify_clients(struct mo_endpoint *ep, int what, struct mo_span uri)
{
    const char *method =
        what < 0 ? "notifications/resources/updated" : notices[what];

    mo_list_each_entry_safe (s, &ep->sessions, struct mo_ep_sess, node) {
        if (what >= 0 && !s->push)
            s->missed[what] = s->ready;
        else if (s->ready && (what >= 0 || mo_map_get(&s->uris, uri)))
            push_notice(ep, s->push, method, uri, (struct mo_json){NULL, 0});
    }
    notify_listens(ep, what, method, uri);
}

void mo_ep_tell_missed(struct mo_ep_sess *s)
{
    for (size_t i = 0; i < MO_COUNT(notices); i++) {
        if (s->missed[i])
            push_notice(s->ep, s->push, notices[i], mo_span(NULL, 0),
                        (struct mo_json){NULL, 0});
        s->missed[i] = false;
    }
}

void mo_endpoint_changed(struct mo_endpoint *ep, enum mo_ep_what what)
{
    if (ep->o.caps & MO_EP_LISTCHANGED)
        notify_clients(ep, (int)what, mo_span(NULL, 0));
}

void mo_endpoint_changed_listens(struct mo_endpoint *ep, enum mo_ep_what what)
{
    if (ep->nlistens)
        notify_listens(ep, (int)what, notices[what], mo_span(NULL, 0));
}

void mo_endpoint_updated(struct mo_endpoint *ep, struct mo_span uri)
{
    if (ep->o.caps & MO_EP_SUBSCRIBE)
        notify_clients(ep, -1, uri);
}
