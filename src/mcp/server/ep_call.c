/* ep_call.c - one request in the hands of the handler: its memory, its end, and
 * the handler's functions. The two eras write results and questions. */
#include <stdio.h>

#include "mcp/edit.h"
#include "mcp/server/ep_priv.h"

/* --- life ---------------------------------------------------------------- */

static void free_filter(struct call *c)
{
    if (!c->filter)
        return;
    if (c->filter->counted) {
        mo_ep_watch_tasks(c, false);
        mo_ep_unwatch_all(c->ep, &c->filter->uris);
    }
    mo_map_fini(&c->filter->uris);
    mo_map_fini(&c->filter->tasks);
    mo_free(c->filter);
    c->filter = NULL;
}

static void unlink_call(struct call *c)
{
    struct mo_endpoint *ep = c->ep;

    if (mo_list_empty(&c->node))
        return;
    mo_list_del(&c->node);
    mo_list_del(&c->wnode);
    ep->ncalls--;
    if (c->filter)
        ep->nlistens--;
    if (c->sess) {
        mo_list_del(&c->snode);
        c->sess->ncalls--;
        c->sess = NULL;
    }
}

/* Ends the use of its way; NULL: it has none any more. */
static struct mo_ep_way *take_way(struct call *c)
{
    struct mo_ep_way *w = mo_take_ptr(&c->way);

    if (w && w->call == &c->pub)
        w->call = NULL;
    return w;
}

static void free_call(struct call *c)
{
    if (c->pub.span) {
        if (c->gone)
            mo_trace_fail(c->pub.span, "cancelled");
        mo_trace_end(mo_take_ptr(&c->pub.span));
    }
    (void)take_way(c);
    mo_ep_within_outer_gone(c);
    mo_timer_stop(c->ep->loop, &c->timer);
    mo_later_cancel(&c->tell);
    free_filter(c);
    mo_ep_level_wanted(c->ep, c->level, false);
    mo_arena_fini(&c->arena);
    mo_free(c);
}

void mo_ep_call_end(struct call *c)
{
    unlink_call(c);
    c->state = CALL_DONE;
    if (!c->running)
        free_call(c);
}

void mo_ep_call_bury(struct call *c)
{
    bool told = c->gone && mo_list_empty(&c->tell.node);

    MO_BUG_ON(c->running);
    c->gone = true;
    if (c->way)
        c->way->drop(c->way);
    c->way = NULL;
    unlink_call(c);
    if (c->state == CALL_WAITING)
        mo_ep_call_abandon(c);
    if (c->state == CALL_RUNNING && c->pub.canceled && !told) {
        c->running++; /* an answer from inside the handler must not free it */
        c->pub.canceled(&c->pub);
        c->running--;
    }
    free_call(c);
}

void mo_ep_call_abandon(struct call *c)
{
    const struct mo_endpoint_opts *o = &c->ep->o;

    if (o->abandoned)
        o->abandoned(o->ctx, c->state_bytes);
}

static void on_tell(struct mo_later *d)
{
    struct call *c = mo_container_of(d, struct call, tell);

    if (c->pub.canceled)
        c->pub.canceled(&c->pub);
}

void mo_ep_call_cancel(struct call *c)
{
    struct mo_ep_way *w;

    if (c->gone || c->state == CALL_DONE)
        return;
    c->gone = true;
    if (c->state == CALL_WAITING) {
        mo_ep_legacy_unask(c);
        mo_ep_call_abandon(c);
    }
    w = take_way(c);
    if (w)
        w->drop(w);
    if (c->state == CALL_RUNNING)
        mo_loop_defer(c->ep->loop, &c->tell);
    else
        mo_ep_call_end(c);
}

void mo_ep_call_lost(struct mo_ep_call *pub)
{
    struct call *c = call_of(pub);

    c->way = NULL;
    mo_ep_call_cancel(c);
}

static void on_late(struct mo_timer *t)
{
    struct call *c = mo_container_of(t, struct call, timer);

    mo_ep_legacy_unask(c);
    mo_ep_call_abandon(c);
    mo_ep_call_refuse(c, 200, MO_RPC_INTERNAL,
                      "the client did not answer our question in time");
}

/* Translate a handle into the message to one into its copy. */
static struct mo_json move_handle(struct mo_json v, const struct mo_rpc *m,
                                  const char *copy)
{
    if (!v.p)
        return v;
    return (struct mo_json){copy + (v.p - m->root.p), v.n};
}

static void init_call(struct call *c, struct mo_endpoint *ep, size_t text)
{
    c->ep = ep;
    mo_list_init(&c->node);
    mo_list_init(&c->snode);
    mo_list_init(&c->wnode);
    mo_list_init(&c->inputs);
    mo_list_init(&c->needs);
    mo_list_init(&c->within);
    mo_arena_init(&c->arena, 2 * text + EP_CALL_EXTRA);
    mo_timer_init(&c->timer, on_late);
    mo_later_init(&c->tell, on_tell);
    c->level = MO_MCP_LEVELS;
}

/* Find all members in one walk: params may be long. */
static void find_parts(struct call *c)
{
    const char *key = c->m && c->m->key ? c->m->key : "";

    mo_json_each_while (m, c->pub.params,
                        mo_json_is(c->pub.params, MO_JSON_OBJECT)) {
        if (mo_json_str_eq(m.key, MO_SPAN("arguments")))
            c->pub.arguments = m.val;
        else if (key[0] && mo_json_str_eq(m.key, mo_span_cstr(key)))
            c->parts.key = m.val;
        else if (mo_json_str_eq(m.key, MO_SPAN("_meta")))
            c->parts.meta = m.val;
        else if (mo_json_str_eq(m.key, MO_SPAN("task")))
            c->parts.task = m.val;
    }
}

static int fill_call(struct call *c, const struct mo_ep_from *from,
                     const struct mo_rpc *m)
{
    struct mo_span text = mo_span_dup(&c->arena, mo_json_text(m->root));

    if (!text.p)
        return MO_ENOMEM;
    c->text = text;
    c->home = from->home;
    c->view = from->view;
    c->id = move_handle(m->id, m, text.p);
    c->pub.params = move_handle(m->params, m, text.p);
    c->pub.request = from->request;
    c->pub.scope = c->ep->o.ctx;
    c->pub.caller = mo_span_dup(&c->arena, from->caller);
    if (from->grant.n)
        c->pub.grant = mo_span_dup(&c->arena, from->grant);
    if (!c->pub.caller.p || (from->grant.n && !c->pub.grant.p))
        return MO_ENOMEM;
    c->pub.person = c->pub.caller;
    if (from->head && mo_trace_head(from->head, &c->arena, &c->pub.trace) < 0)
        return MO_ENOMEM;
    find_parts(c);
    c->token = mo_json_get(c->parts.meta, "progressToken");
    return mo_json_str(move_handle(m->method, m, text.p), &c->arena,
                       &c->pub.method);
}

/* --- its span ------------------------------------------------------------ */

/* The server span of the request. A context in _meta goes before the headers,
 * which belong to the HTTP request around it. */
static void begin_span(struct call *c, struct mo_tracer *t,
                       const struct mo_ep_from *from)
{
    bool inside = from->sess && from->sess->inside.n;
    struct mo_trace in = c->pub.trace;
    struct mo_trace_span *s;

    if (c->parts.meta.p)
        mo_trace_meta(c->parts.meta, &in);
    s = from->outer
            ? mo_trace_child(from->outer->pub.span, MO_TRACE_INTERNAL,
                             "request")
            : mo_trace_begin(t, MO_TRACE_SERVER, "request", &in, inside);
    if (!s)
        return;
    c->pub.span = s;
    if (!c->m) /* a name that the client may have invented */
        return;
    mo_trace_rename(s, c->pub.method, mo_span(NULL, 0));
    mo_trace_text(s, "mcp.method.name", c->pub.method);
    if (!inside && !from->outer)
        mo_trace_text(s, "network.transport",
                      from->head ? MO_SPAN("tcp") : MO_SPAN("pipe"));
}

/* Attributes that are known when the request is handled. */
static void describe_span(const struct call *c)
{
    struct mo_trace_span *s = c->pub.span;
    bool tool = mo_span_is(c->pub.method, "tools/call");

    mo_trace_text(s, "mcp.protocol.version",
                  mo_span_cstr(mo_mcp_version_text(c->pub.version)));
    if (c->id.n <= MO_TRACE_TEXT_MAX)
        mo_trace_text(s, "jsonrpc.request.id", mo_json_text(c->id));
    if (tool)
        mo_trace_text(s, "gen_ai.operation.name", MO_SPAN("execute_tool"));
    if (tool || mo_span_is(c->pub.method, "prompts/get")) {
        mo_trace_rename(s, c->pub.method, c->pub.name);
        mo_trace_text(s, tool ? "gen_ai.tool.name" : "gen_ai.prompt.name",
                      c->pub.name);
    }
}

static void fail_span(const struct call *c, int64_t code)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", (long long)code);
    mo_trace_fail(c->pub.span, text);
    mo_trace_text(c->pub.span, "rpc.response.status_code", mo_span_cstr(text));
}

/* -------------------------------------------------------------------------- */

struct call *mo_ep_call_new(struct mo_endpoint *ep,
                            const struct mo_ep_from *from,
                            const struct mo_rpc *m, const struct ep_method *em)
{
    struct call *c = mo_new(struct call);

    if (c) {
        init_call(c, ep, m->root.n);
        c->m = em;
    }
    if (!c || fill_call(c, from, m) < 0) {
        if (c)
            free_call(c);
        mo_ep_refuse(ep, from->way, 200, m->id, MO_RPC_INTERNAL,
                     "out of memory");
        return NULL;
    }
    c->way = from->way;
    c->way->call = &c->pub;
    mo_list_push(&ep->calls, &c->node);
    ep->ncalls++;
    if (from->sess) {
        c->sess = from->sess;
        mo_list_push(&c->sess->calls, &c->snode);
        c->sess->ncalls++;
    }
    if (mo_loop_tracer(ep->loop))
        begin_span(c, mo_loop_tracer(ep->loop), from);
    return c;
}

bool mo_ep_call_pass(struct call *c, const char *instance, const char *gone)
{
    const struct mo_ep_away to = {instance, gone, c->text};
    struct mo_ep_way *w = take_way(c);

    if (w->pass && w->pass(w, &to)) {
        mo_ep_call_end(c);
        return true;
    }
    c->way = w;
    w->call = &c->pub;
    return false;
}

bool mo_ep_call_elsewhere(struct mo_ep_call *pub, const char *instance,
                          const char *gone)
{
    struct call *c = call_of(pub);

    return c->home && c->way && mo_ep_call_pass(c, instance, gone);
}

struct call *mo_ep_call_find(struct mo_list *calls, struct mo_json id)
{
    mo_list_each_entry (c, calls, struct call, snode) {
        if (mo_span_eq(mo_json_text(c->id), mo_json_text(id)))
            return c;
    }
    return NULL;
}

const char *mo_ep_call_check(struct call *c)
{
    struct mo_json p = c->pub.params;
    struct mo_json args = c->pub.arguments;

    if (p.p && !mo_json_is(p, MO_JSON_OBJECT))
        return "params must be an object";
    if (args.p && !mo_json_is(args, MO_JSON_OBJECT))
        return "params.arguments must be an object";
    if (!c->m || !c->m->key)
        return NULL;
    if (!mo_json_is(c->parts.key, MO_JSON_STRING))
        return "params must name the thing asked for, as a string";
    if (mo_json_str(c->parts.key, &c->arena, &c->pub.name) < 0)
        return "out of memory";
    return NULL;
}

void mo_ep_call_run(struct call *c)
{
    struct mo_endpoint *ep = c->ep;

    c->state = CALL_RUNNING;
    mo_list_init(&c->needs);
    c->pub.data = NULL;
    c->pub.canceled = NULL;
    c->running++;
    if (c->pub.span)
        describe_span(c);
    ep->o.handler(ep->o.ctx, &c->pub);
    c->running--;
    if (c->state == CALL_DONE && !c->running)
        free_call(c);
}

/* --- answers ------------------------------------------------------------- */

void mo_ep_call_answer(struct call *c, int status)
{
    struct mo_endpoint *ep = c->ep;
    struct mo_ep_way *w = take_way(c);

    if (w)
        mo_ep_answer_scratch(ep, w, status);
    else
        mo_ep_scratch_done(ep);
    mo_ep_call_end(c);
}

void mo_ep_call_refuse_data(struct call *c, int status, int code,
                            const char *msg, struct mo_span data)
{
    if (c->pub.span)
        fail_span(c, code);
    (void)mo_rpc_put_error(mo_ep_scratch(c->ep), mo_json_text(c->id), code,
                           mo_span_cstr(msg), data);
    mo_ep_call_answer(c, status);
}

void mo_ep_call_refuse(struct call *c, int status, int code, const char *msg)
{
    mo_ep_call_refuse_data(c, status, code, msg, mo_span(NULL, 0));
}

/* An answer that is dropped: the call was canceled. */
static bool is_dropped(struct call *c)
{
    MO_BUG_ON(c->state != CALL_RUNNING);
    if (!c->gone)
        return false;
    mo_ep_call_end(c);
    return true;
}

void mo_ep_call_result(struct mo_ep_call *pub, struct mo_span json)
{
    struct call *c = call_of(pub);
    struct mo_json result = {json.p, json.n};

    if (is_dropped(c))
        return;
    MO_BUG_ON(!mo_json_is(result, MO_JSON_OBJECT));
    if (c->pub.span && mo_json_flag(result, "isError"))
        mo_trace_fail(c->pub.span, "tool_error");
    if (mo_mcp_is_modern(pub->version))
        mo_ep_modern_result(c, result);
    else
        mo_ep_legacy_result(c, result);
}

static bool is_resource_read(const struct call *c)
{
    return mo_span_is(c->pub.method, "resources/read");
}

void mo_ep_call_error(struct mo_ep_call *pub, int code, const char *msg,
                      struct mo_span data)
{
    struct call *c = call_of(pub);
    struct mo_json d = {data.p, data.n};

    if (is_dropped(c))
        return;
    if (!mo_mcp_is_modern(pub->version) && code == MO_RPC_INVALID_PARAMS &&
        is_resource_read(c) && mo_json_get(d, "uri").p)
        code = MO_MCP_RESOURCE_NOT_FOUND;
    mo_ep_call_refuse_data(c, code == MO_MCP_MISSING_CAPABILITY ? 400 : 200,
                           code, msg, data);
}

/* Translate the code of another server's error for this client. */
static int64_t translate_code(const struct call *c, struct mo_json error)
{
    bool modern = mo_mcp_is_modern(c->pub.version);
    int64_t code = MO_RPC_INTERNAL;

    if (mo_json_i64(mo_json_get(error, "code"), &code) < 0)
        return MO_RPC_INTERNAL;
    if (code == MO_RPC_INVALID_PARAMS && !modern && is_resource_read(c) &&
        mo_json_get(mo_json_get(error, "data"), "uri").p)
        return MO_MCP_RESOURCE_NOT_FOUND;
    if (code == MO_MCP_RESOURCE_NOT_FOUND && modern)
        return MO_RPC_INVALID_PARAMS;
    if (code == MO_MCP_URL_ELICITATION && c->pub.version != MO_MCP_2025_11_25)
        return MO_RPC_INTERNAL;
    /* These codes are between that server and us; a client's capabilities reach
     * that server in its own requests. */
    if (code == MO_MCP_HEADER_MISMATCH || code == MO_MCP_UNSUPPORTED_VERSION ||
        (code == MO_MCP_MISSING_CAPABILITY && !modern))
        return MO_RPC_INTERNAL;
    return code;
}

void mo_ep_call_error_raw(struct mo_ep_call *pub, struct mo_json error)
{
    struct call *c = call_of(pub);
    int64_t number = translate_code(c, error);
    struct mo_buf *b;
    char code[24];
    struct mo_edit ed = {"code", mo_span(code, 0)};

    if (is_dropped(c))
        return;
    if (c->pub.span)
        fail_span(c, number);
    ed.to = mo_span(
        code, (size_t)snprintf(code, sizeof(code), "%lld", (long long)number));
    b = mo_ep_scratch(c->ep);
    (void)mo_buf_puts(b, "{\"jsonrpc\":\"2.0\",\"id\":");
    (void)mo_buf_span(b, mo_json_text(c->id));
    (void)mo_buf_puts(b, ",\"error\":");
    (void)mo_edit(b, error, &ed, 1);
    (void)mo_buf_putc(b, '}');
    mo_ep_call_answer(c, number == MO_MCP_MISSING_CAPABILITY ? 400 : 200);
}

void mo_ep_call_fail(struct mo_ep_call *pub, const char *text)
{
    mo_autobuf struct mo_buf b = {.max = EP_CALL_EXTRA};

    (void)mo_buf_puts(&b, "{\"content\":[{\"type\":\"text\",\"text\":");
    (void)mo_json_quote(&b, mo_span_cstr(text));
    (void)mo_buf_puts(&b, "}],\"isError\":true}");
    if (mo_buf_err(&b))
        mo_ep_call_error(pub, MO_RPC_INTERNAL, "out of memory",
                         mo_span(NULL, 0));
    else
        mo_ep_call_result(pub, mo_buf_view(&b));
}

/* --- other functions of the handler -------------------------------------- */

void mo_ep_call_pause(struct mo_ep_call *pub)
{
    struct call *c = call_of(pub);

    if (c->way && c->way->pause)
        c->way->pause(c->way);
}

struct mo_endpoint *mo_ep_call_endpoint(const struct mo_ep_call *pub)
{
    return call_of(pub)->ep;
}

/* --- asking -------------------------------------------------------------- */

bool mo_ep_call_can(const struct mo_ep_call *c, const char *what)
{
    return mo_json_is(mo_json_get(c->caps, what), MO_JSON_OBJECT);
}

bool mo_ep_call_has_ext(const struct mo_ep_call *c, const char *id)
{
    struct mo_json all = mo_json_get(c->caps, "extensions");

    return mo_json_is(mo_json_get(all, id), MO_JSON_OBJECT);
}

bool mo_ep_call_lacks_tasks(struct call *c)
{
    if (mo_ep_call_has_ext(&c->pub, MO_MCP_EXT_TASKS))
        return false;
    mo_ep_call_refuse_data(c, 400, MO_MCP_MISSING_CAPABILITY,
                           "the client does not speak the tasks extension",
                           MO_SPAN("{\"requiredCapabilities\":{\"extensions\":{"
                                   "\"" MO_MCP_EXT_TASKS "\":{}}}}"));
    return true;
}

static struct ep_input *find_input(struct call *c, struct mo_span key)
{
    mo_list_each_entry (in, &c->inputs, struct ep_input, node) {
        if (mo_span_eq(in->key, key))
            return in;
    }
    return NULL;
}

static struct mo_json value_of(struct mo_ep_call *pub, const char *key,
                               bool refused)
{
    struct ep_input *in = find_input(call_of(pub), mo_span_cstr(key));

    return in && in->refused == refused ? in->value : (struct mo_json){NULL, 0};
}

struct mo_json mo_ep_call_input(struct mo_ep_call *pub, const char *key)
{
    return value_of(pub, key, false);
}

struct mo_json mo_ep_call_refusal(struct mo_ep_call *pub, const char *key)
{
    return value_of(pub, key, true);
}

int mo_ep_call_add_input(struct call *c, struct mo_span key, struct mo_json v,
                         bool refused)
{
    struct ep_input *in = find_input(c, key);
    struct mo_span value = mo_span_dup(&c->arena, mo_json_text(v));

    if (!value.p)
        return MO_ENOMEM;
    if (!in) {
        if (c->ninputs == EP_INPUTS_MAX)
            return MO_ETOOBIG;
        in = mo_arena_new(&c->arena, struct ep_input);
        if (!in)
            return MO_ENOMEM;
        in->key = mo_span_dup(&c->arena, key);
        if (!in->key.p)
            return MO_ENOMEM;
        mo_list_push(&c->inputs, &in->node);
        c->ninputs++;
    }
    in->value = (struct mo_json){value.p, value.n};
    in->refused = refused;
    return 0;
}

void mo_ep_call_need(struct mo_ep_call *pub, const char *key,
                     const char *method, struct mo_span params)
{
    struct call *c = call_of(pub);
    struct ep_need *q = mo_arena_new(&c->arena, struct ep_need);

    if (!q) {
        c->oom = true;
        return;
    }
    q->key = mo_span_dup(&c->arena, mo_span_cstr(key));
    q->method = mo_span_dup(&c->arena, mo_span_cstr(method));
    q->params = mo_span_dup(&c->arena, params.n ? params : MO_SPAN("{}"));
    if (!q->key.p || !q->method.p || !q->params.p)
        c->oom = true;
    mo_list_push(&c->needs, &q->node);
}

enum mo_ep_waiting mo_ep_call_wait(struct mo_ep_call *pub)
{
    struct call *c = call_of(pub);
    const char *why = NULL;

    if (is_dropped(c))
        return MO_EP_ENDED;
    MO_BUG_ON(!c->oom && mo_list_empty(&c->needs));
    if (c->oom)
        why = "out of memory";
    else if (++c->rounds > c->ep->o.limits.rounds)
        why = "too many rounds of questions";
    if (why) {
        mo_ep_call_error(pub, MO_RPC_INTERNAL, why, mo_span(NULL, 0));
        return MO_EP_ENDED;
    }
    return mo_mcp_is_modern(pub->version) ? mo_ep_modern_wait(c)
                                          : mo_ep_legacy_wait(c);
}

struct mo_span mo_ep_call_state(const struct mo_ep_call *pub)
{
    return call_of(pub)->state_bytes;
}

void mo_ep_call_set_state(struct mo_ep_call *pub, struct mo_span state)
{
    struct call *c = call_of(pub);

    c->state_bytes = mo_span_dup(&c->arena, state);
    if (!c->state_bytes.p)
        c->oom = true;
}
