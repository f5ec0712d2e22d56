#include "toolbox/server.h"

#include "toolbox/reply.h"

/* Replaces a message that is too big. */
static const struct mo_err no_room = {
    MO_ETOOBIG, 0, "the result is too big to be sent: ask for less of it"};

/* --- calls --------------------------------------------------------------- */

void tb_result_init(struct tb_result *r)
{
    mo_buf_init(&r->text, TB_RESULT_MAX);
    mo_buf_init(&r->data, TB_RESULT_MAX);
    r->failed = false;
}

void tb_result_fini(struct tb_result *r)
{
    mo_buf_fini(&r->text);
    mo_buf_fini(&r->data);
}

static struct tb_call *new_call(struct mo_span id, struct mo_span token)
{
    struct tb_call *c = mo_zalloc(sizeof(*c) + id.n + token.n);
    char *tail = (char *)(c + 1);

    MO_BUG_ON(id.n == 0);
    if (!c)
        return NULL;
    memcpy(tail, id.p, id.n);
    c->id = mo_span(tail, id.n);
    if (token.p)
        memcpy(tail + id.n, token.p, token.n);
    c->token = mo_span(tail + id.n, token.n);
    return c;
}

static void end_call(struct tb_call *c)
{
    mo_list_del(&c->node);
    c->server->ncalls--;
    mo_free(c);
}

void tb_call_done(struct tb_call *c, const struct tb_result *r)
{
    struct tb_server *s = c->server;

    if (mo_buf_err(&r->text) || mo_buf_err(&r->data)) {
        tb_call_fail(c, &no_room);
        return;
    }
    tb_reply_result(c, r);
    if (mo_buf_err(&s->message))
        tb_reply_failure(c, &no_room);
    end_call(c);
}

void tb_call_fail(struct tb_call *c, const struct mo_err *e)
{
    tb_reply_failure(c, e);
    end_call(c);
}

bool tb_call_is_live(const struct tb_call *c)
{
    return c->token.n || c->level <= TB_INFO;
}

void tb_call_live(struct tb_call *c, const char *stream, struct mo_span text,
                  uint64_t bytes)
{
    c->progress += bytes;
    if (c->token.n && bytes)
        tb_reply_progress(c, text);
    if (c->level <= TB_INFO)
        tb_reply_log(c, stream, text);
}

static void cancel_call(struct tb_call *c)
{
    c->cancel(c);
    end_call(c);
}

void tb_server_cancel_all(struct tb_server *s)
{
    while (!mo_list_empty(&s->calls))
        cancel_call(mo_container_of(s->calls.next, struct tb_call, node));
}

static struct tb_call *find_call(struct tb_server *s, struct mo_json id)
{
    mo_list_each (n, &s->calls) {
        struct tb_call *c = mo_container_of(n, struct tb_call, node);

        if (mo_span_eq(c->id, mo_json_text(id)))
            return c;
    }
    return NULL;
}

/* --- requests ------------------------------------------------------------ */

static const char *const level_names[] = {"debug",   "info",     "notice",
                                          "warning", "error",    "critical",
                                          "alert",   "emergency"};

/* TB_SILENT if it is not a level. */
static enum tb_level read_level(struct mo_json v)
{
    for (unsigned i = 0; i < MO_COUNT(level_names); i++) {
        if (mo_json_str_eq(v, mo_span_cstr(level_names[i])))
            return (enum tb_level)i;
    }
    return TB_SILENT;
}

struct request {
    const struct mo_rpc *m;
    struct mo_span id;
    struct mo_json meta;
    enum tb_version version;
    enum tb_level level;
};

static void bad_params(struct tb_server *s, const struct request *rq,
                       const char *why)
{
    tb_reply_error(s, rq->id, MO_RPC_INVALID_PARAMS, why);
}

static void on_initialize(struct tb_server *s, const struct request *rq)
{
    struct mo_json asked = mo_json_get(rq->m->params, "protocolVersion");
    enum tb_version v = tb_version(asked);

    if (!mo_json_is(asked, MO_JSON_STRING)) {
        bad_params(s, rq, "params.protocolVersion must be a string");
        return;
    }
    tb_server_cancel_all(s);
    s->version = v == TB_NO_VERSION || tb_is_modern(v) ? TB_2025_11_25 : v;
    s->level = TB_SILENT;
    tb_reply_welcome(s, rq->id);
}

static void on_discover(struct tb_server *s, const struct request *rq)
{
    tb_reply_discover(s, rq->id);
}

static void on_ping(struct tb_server *s, const struct request *rq)
{
    tb_reply_empty(s, rq->id);
}

static void on_level(struct tb_server *s, const struct request *rq)
{
    enum tb_level lv = read_level(mo_json_get(rq->m->params, "level"));

    if (lv == TB_SILENT) {
        bad_params(s, rq,
                   "params.level must be a level from debug to "
                   "emergency");
        return;
    }
    s->level = lv;
    tb_reply_empty(s, rq->id);
}

static void on_list(struct tb_server *s, const struct request *rq)
{
    if (mo_json_get(rq->m->params, "cursor").p)
        bad_params(s, rq, "there is one page of tools, and no such cursor");
    else
        tb_reply_tools(s, rq->id, rq->version);
}

static const struct tb_tool *find_tool(const struct tb_server *s,
                                       struct mo_json name)
{
    for (size_t i = 0; s->tools[i]; i++) {
        if (mo_json_str_eq(name, mo_span_cstr(s->tools[i]->name)))
            return s->tools[i];
    }
    if (s->unlisted && mo_json_str_eq(name, mo_span_cstr(s->unlisted->name)))
        return s->unlisted;
    return NULL;
}

static void start_call(struct tb_server *s, struct tb_call *c,
                       struct mo_json args)
{
    struct mo_err e = {0};
    bool busy = s->ncalls >= TB_CALLS_MAX;

    mo_list_push(&s->calls, &c->node);
    s->ncalls++;
    if (busy)
        (void)mo_fail(&e, MO_EBUSY,
                      "%d calls are under way, which is the most: wait for "
                      "one of them or cancel it",
                      TB_CALLS_MAX);
    else if (c->tool->run(s->ctx, c, args, &e) == 0)
        return;
    tb_call_fail(c, &e);
}

static void on_call(struct tb_server *s, const struct request *rq)
{
    struct mo_json args = mo_json_get(rq->m->params, "arguments");
    const struct tb_tool *tool =
        find_tool(s, mo_json_get(rq->m->params, "name"));
    struct mo_json token = mo_json_get(rq->meta, "progressToken");
    struct tb_call *c;

    if (!tool || (args.p && !mo_json_is(args, MO_JSON_OBJECT))) {
        bad_params(s, rq,
                   tool ? "params.arguments must be an object"
                        : "there is no such tool, see tools/list");
        return;
    }
    if (find_call(s, rq->m->id)) {
        tb_reply_error(s, rq->id, MO_RPC_INVALID_REQUEST, "this id is in use");
        return;
    }
    if (token.n > TB_ID_MAX || (token.p && !mo_json_is(token, MO_JSON_STRING) &&
                                !mo_json_is(token, MO_JSON_NUMBER)))
        token = (struct mo_json){NULL, 0};
    c = new_call(rq->id, mo_json_text(token));
    if (!c) {
        tb_reply_error(s, rq->id, MO_RPC_INTERNAL, "out of memory");
        return;
    }
    c->server = s;
    c->tool = tool;
    c->version = rq->version;
    c->level = rq->level;
    c->meta = rq->meta;
    start_call(s, c, args);
}

enum { LEGACY = 1, MODERN = 2, EARLY = 4 }; /* EARLY: before initialize too */

static const struct method {
    const char *name;
    unsigned when;
    void (*run)(struct tb_server *s, const struct request *rq);
} methods[] = {
    {"initialize", LEGACY | EARLY, on_initialize},
    {"ping", LEGACY | EARLY, on_ping},
    {"logging/setLevel", LEGACY, on_level},
    {"server/discover", MODERN, on_discover},
    {"tools/list", LEGACY | MODERN, on_list},
    {"tools/call", LEGACY | MODERN, on_call},
};

static const struct method *find_method(struct mo_json name, unsigned era)
{
    for (size_t i = 0; i < MO_COUNT(methods); i++) {
        if ((methods[i].when & era) &&
            mo_json_str_eq(name, mo_span_cstr(methods[i].name)))
            return &methods[i];
    }
    return NULL;
}

static const struct tb_method *find_other(const struct tb_server *s,
                                          struct mo_json name)
{
    for (size_t i = 0; s->methods && s->methods[i]; i++) {
        for (const struct tb_method *m = s->methods[i]; m->name; m++) {
            if (mo_json_str_eq(name, mo_span_cstr(m->name)))
                return m;
        }
    }
    return NULL;
}

static void dispatch_request(struct tb_server *s, const struct request *rq)
{
    unsigned era = tb_is_modern(rq->version) ? MODERN : LEGACY;
    const struct method *m = find_method(rq->m->method, era);
    const struct tb_method *other = m ? NULL : find_other(s, rq->m->method);

    if (other && rq->version)
        tb_reply_method(s, rq->id, rq->version, other,
                        mo_json_get(rq->m->params, "arguments"));
    else if (!m && !other)
        tb_reply_error(s, rq->id, MO_RPC_METHOD_NOT_FOUND, "no such method");
    else if (!m || (era == LEGACY && !rq->version && !(m->when & EARLY)))
        tb_reply_error(s, rq->id, MO_RPC_INVALID_REQUEST,
                       "the first request must be initialize");
    else
        m->run(s, rq);
}

/* --- classify a message by revision -------------------------------------- */

static void on_modern(struct tb_server *s, struct request *rq,
                      struct mo_json version)
{
    struct mo_json level = mo_json_get(rq->meta, TB_P_LOG);

    rq->version = TB_2026_07_28;
    rq->level = read_level(level);
    if (!mo_json_is(version, MO_JSON_STRING))
        bad_params(s, rq, "_meta[\"" TB_P_VERSION "\"] must be a string");
    else if (!mo_json_is(mo_json_get(rq->meta, TB_P_CAPS), MO_JSON_OBJECT))
        bad_params(s, rq, "_meta[\"" TB_P_CAPS "\"] must be an object");
    else if (tb_version(version) != TB_2026_07_28)
        tb_reply_unsupported(s, rq->id, version);
    else if (level.p && rq->level == TB_SILENT)
        bad_params(s, rq, "_meta[\"" TB_P_LOG "\"] is no level");
    else
        dispatch_request(s, rq);
}

static void on_request(struct tb_server *s, const struct mo_rpc *m)
{
    struct request rq = {.m = m,
                         .id = mo_json_text(m->id),
                         .meta = mo_json_get(m->params, "_meta"),
                         .version = s->version,
                         .level = s->level};
    struct mo_json version = mo_json_get(rq.meta, TB_P_VERSION);
    bool opens = mo_json_str_eq(m->method, MO_SPAN("initialize"));

    if (m->id.n > TB_ID_MAX)
        tb_reply_error(s, mo_span(NULL, 0), MO_RPC_INVALID_REQUEST,
                       "the id is too long");
    else if (version.p && !(opens && !tb_is_modern(tb_version(version))))
        on_modern(s, &rq, version);
    else
        dispatch_request(s, &rq);
}

static void on_note(struct tb_server *s, const struct mo_rpc *m)
{
    struct tb_call *c;

    if (!mo_json_str_eq(m->method, MO_SPAN("notifications/cancelled")))
        return;
    c = find_call(s, mo_json_get(m->params, "requestId"));
    if (c)
        cancel_call(c);
}

/* --- lines --------------------------------------------------------------- */

/* Answers to a batch are sent one by one, as each is ready. */
static void on_batch(struct tb_server *s, struct mo_json all)
{
    struct mo_json_iter it;
    struct mo_json key, val;

    if (s->version != TB_2025_03_26) {
        tb_reply_error(s, mo_span(NULL, 0), MO_RPC_INVALID_REQUEST,
                       "batches are of protocol version 2025-03-26 only");
        return;
    }
    mo_json_iter(&it, all);
    while (mo_json_next(&it, &key, &val)) {
        if (mo_json_is(val, MO_JSON_OBJECT))
            tb_server_line(s, mo_json_text(val));
        else
            tb_reply_error(s, mo_span(NULL, 0), MO_RPC_INVALID_REQUEST,
                           "no JSON-RPC message in a batch");
    }
}

/* A batch holds objects only, so the recursion is one level deep. */
/* NOLINTNEXTLINE(misc-no-recursion) */
void tb_server_line(struct tb_server *s, struct mo_span line)
{
    struct mo_err e = {0};
    struct mo_rpc m;

    if (mo_span_trim(line).n == 0)
        return;
    if (mo_rpc_parse(line, &m, &e) < 0) {
        tb_reply_error(s, mo_span(NULL, 0), MO_RPC_PARSE_ERROR, e.msg);
        return;
    }
    switch (m.kind) {
    case MO_RPC_REQUEST:
        on_request(s, &m);
        break;
    case MO_RPC_NOTIFICATION:
        on_note(s, &m);
        break;
    case MO_RPC_BATCH:
        on_batch(s, m.root);
        break;
    case MO_RPC_INVALID:
        tb_reply_error(
            s, m.id.n > TB_ID_MAX ? mo_span(NULL, 0) : mo_json_text(m.id),
            MO_RPC_INVALID_REQUEST, e.msg);
        break;
    case MO_RPC_RESULT: /* we send no requests */
    case MO_RPC_ERROR:
        break;
    }
}

void tb_server_overlong(struct tb_server *s, struct mo_span id)
{
    tb_reply_error(s, id, MO_RPC_INVALID_REQUEST,
                   "the line is too long and was dropped: send less at a time");
}

void tb_server_init(struct tb_server *s)
{
    s->version = TB_NO_VERSION;
    s->level = TB_SILENT;
    s->ncalls = 0;
    mo_list_init(&s->calls);
    mo_buf_init(&s->message, TB_RESULT_MAX);
}

void tb_server_fini(struct tb_server *s)
{
    tb_server_cancel_all(s);
    mo_buf_fini(&s->message);
}
