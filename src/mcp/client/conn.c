/* conn.c - state machine of a connection and owner of its link.
 *
 *   NEW -> DIALING -> PROBING -> OPEN -> CLOSING
 *             |  ^        |  \     ^
 *             |  +-REDIAL-+   v    |
 *             +------------> INIT -+
 *
 * end_conn() frees the connection. It runs from the link's on_close, or from
 * the loop when there is no link: never inside a call or callback of the owner.
 */
#include "mcp/client/conn_priv.h"

#define ARENA_MAX ((size_t)256 * 1024) /* copied options */

void mo_conn_move(struct mo_conn *c, enum conn_state to)
{
    static const uint8_t legal[] = {
        [C_NEW] = MO_TO(C_DIALING) | MO_TO(C_CLOSING),
        [C_DIALING] = MO_TO(C_PROBING) | MO_TO(C_INIT) | MO_TO(C_CLOSING),
        [C_PROBING] = MO_TO(C_INIT) | MO_TO(C_REDIAL) | MO_TO(C_DIALING) |
                      MO_TO(C_OPEN) | MO_TO(C_CLOSING),
        [C_INIT] = MO_TO(C_REDIAL) | MO_TO(C_DIALING) | MO_TO(C_OPEN) |
                   MO_TO(C_CLOSING),
        [C_REDIAL] = MO_TO(C_DIALING) | MO_TO(C_CLOSING),
        [C_OPEN] = MO_TO(C_CLOSING),
        [C_CLOSING] = 0,
    };

    MO_MOVE(c->state, to, legal);
}

/* --- the end ------------------------------------------------------------- */

static void end_conn(struct mo_conn *c)
{
    const struct mo_conn_cb *cb = c->o.cb;
    void *ctx = c->o.ctx;
    struct mo_err why = c->why, told = c->why;

    if (!told.code)
        (void)mo_fail(&told, MO_ECANCELED, "the connection was closed");
    mo_conn_call_end_all(c, &told);
    mo_conn_task_end_all(c, &told);
    mo_conn_ask_orphan(&c->asks);
    mo_later_cancel(&c->later);
    mo_buf_fini(&c->out);
    mo_buf_fini(&c->compact);
    mo_buf_fini(&c->opened);
    mo_arena_fini(&c->a);
    mo_pool_fini(&c->spare);
    mo_free(c);
    cb->on_close(ctx, why.code ? &why : NULL);
}

void mo_conn_close(struct mo_conn *c, const struct mo_err *why)
{
    if (c->state == C_CLOSING)
        return;
    mo_conn_move(c, C_CLOSING);
    if (why)
        c->why = *why;
    if (c->link)
        mo_link_close(c->link, why);
    else if (!c->dialing)
        mo_loop_defer(c->loop, &c->later);
}

bool mo_conn_is_closing(const struct mo_conn *c)
{
    return c->state == C_CLOSING;
}

/* --- receiving ----------------------------------------------------------- */

static void on_notification(struct mo_conn *c, const struct mo_rpc *m,
                            uint64_t stream_of)
{
    const struct mo_call *k;

    if (mo_json_str_eq(m->method, MO_SPAN("notifications/progress"))) {
        mo_conn_call_progress(c, m->params);
        return;
    }
    if (mo_json_str_eq(m->method, MO_SPAN(MO_CONN_SCRIPT))) {
        mo_conn_call_script(c, m->params);
        return;
    }
    if (mo_json_str_eq(m->method, MO_SPAN("notifications/tasks/status")))
        mo_conn_task_news(c, mo_json_get(m->params, "taskId"));
    if (mo_json_str_eq(m->method, MO_SPAN("notifications/cancelled")))
        mo_conn_ask_cancelled(c, mo_json_get(m->params, "requestId"));
    if (c->state != C_OPEN || !c->o.cb->on_notify)
        return;
    k = stream_of ? mo_conn_call_find(c, stream_of) : NULL;
    c->o.cb->on_notify(c->o.ctx, c, m, k ? k->number : stream_of);
}

static void dispatch_message(struct mo_conn *c, const struct mo_rpc *m,
                             uint64_t stream_of)
{
    switch (m->kind) {
    case MO_RPC_REQUEST:
        mo_conn_ask_request(c, m, stream_of);
        break;
    case MO_RPC_NOTIFICATION:
        on_notification(c, m, stream_of);
        break;
    case MO_RPC_RESULT:
    case MO_RPC_ERROR:
        mo_conn_call_answer(c, m);
        break;
    case MO_RPC_INVALID:
    case MO_RPC_BATCH:
        c->stats.invalid++;
        break;
    }
}

/* Only revision 2025-03-26 has batches. */
static void on_batch(struct mo_conn *c, const struct mo_rpc *m,
                     uint64_t stream_of)
{
    struct mo_rpc one;

    mo_json_each_while (at, m->root, c->state != C_CLOSING) {
        if (mo_rpc_parse(mo_json_text(at.val), &one, NULL) == 0)
            dispatch_message(c, &one, stream_of);
    }
}

static void on_message(void *ctx, const struct mo_rpc *m, uint64_t stream_of)
{
    struct mo_conn *c = ctx;

    if (c->state == C_CLOSING || c->state == C_REDIAL)
        return;
    if (c->o.tap)
        c->o.tap(c->o.ctx, false, mo_json_text(m->root));
    if (m->kind == MO_RPC_BATCH && c->state == C_OPEN &&
        c->speak == MO_MCP_2025_03_26)
        on_batch(c, m, stream_of);
    else
        dispatch_message(c, m, stream_of);
}

static void on_failed(void *ctx, uint64_t id, int status, struct mo_span body,
                      const struct mo_err *why)
{
    struct mo_conn *c = ctx;

    if (c->state == C_CLOSING || c->state == C_REDIAL)
        return;
    mo_conn_call_failed(c, id, status, body, why);
    if (status == 404 && !c->modern && c->state == C_OPEN)
        mo_conn_close(c, why); /* the session ended: a new one is needed */
}

static void on_noise(void *ctx, struct mo_span line)
{
    struct mo_conn *c = ctx;

    c->stats.noise++;
    if (c->o.cb->on_noise)
        c->o.cb->on_noise(c->o.ctx, line);
}

static void on_link_close(void *ctx, const struct mo_err *why)
{
    struct mo_conn *c = ctx;

    c->link = NULL;
    if (c->state != C_CLOSING) {
        if (mo_conn_lost_in_probe(c))
            return;
        mo_conn_move(c, C_CLOSING);
        c->why =
            why ? *why
                : *mo_error(MO_ECLOSED, "the server closed the connection");
    }
    end_conn(c);
}

static const struct mo_link_cb link_cb = {
    .on_message = on_message,
    .on_failed = on_failed,
    .on_noise = on_noise,
    .on_close = on_link_close,
};

/* --- sending ------------------------------------------------------------- */

int mo_conn_write(struct mo_conn *c, struct mo_link_msg *m)
{
    bool first = !c->modern && c->state != C_OPEN;

    if (!c->link)
        return MO_ECLOSED;
    m->version = first ? NULL : mo_mcp_version_text(c->speak);
    m->modern = c->modern;
    if (c->o.tap)
        c->o.tap(c->o.ctx, true, m->text);
    return mo_link_send(c->link, m);
}

int mo_conn_notify(struct mo_conn *c, const char *method, struct mo_span params)
{
    struct mo_link_msg m = {.method = method};
    int rc;

    params = mo_conn_codec_one_line(c, params);
    mo_buf_reset(&c->out);
    rc = mo_rpc_put_notification(&c->out, method, params);
    m.text = mo_buf_view(&c->out);
    return rc < 0 ? rc : mo_conn_write(c, &m);
}

/* --- opening ------------------------------------------------------------- */

static void on_later(struct mo_later *d)
{
    struct mo_conn *c = mo_container_of(d, struct mo_conn, later);

    if (c->state == C_CLOSING)
        end_conn(c);
    else
        mo_conn_start(c);
}

void mo_conn_dialed(struct mo_conn *c, struct mo_link *k,
                    const struct mo_err *why)
{
    MO_BUG_ON(!c->dialing || c->link);
    c->dialing = false;
    if (k) {
        c->link = k;
        mo_link_attach(k, &link_cb, c);
    }
    if (c->state == C_CLOSING && k)
        mo_link_close(k, c->why.code ? &c->why : NULL);
    else if (c->state == C_CLOSING)
        mo_loop_defer(c->loop, &c->later);
    else if (!k)
        mo_conn_close(c, why);
    else
        mo_conn_start(c);
}

static const char *copy_or_default(struct mo_arena *a, const char *s,
                                   const char *usual)
{
    const char *from = s ? s : usual;

    return from ? mo_arena_strndup(a, from, strlen(from)) : NULL;
}

static int copy_opts(struct mo_conn *c, const struct mo_conn_opts *o)
{
    struct mo_span caps = o->capabilities.n ? o->capabilities : MO_SPAN("{}");
    struct mo_json v = {caps.p, caps.n};
    mo_autobuf struct mo_buf b = {.max = ARENA_MAX / 4};

    (void)mo_json_compact(v, &b);
    c->o = *o;
    c->o.name = copy_or_default(&c->a, o->name, "mcp-orchestrator");
    c->o.version = copy_or_default(&c->a, o->version, MO_VERSION);
    c->o.log_level = copy_or_default(&c->a, o->log_level, NULL);
    c->o.capabilities = mo_span(mo_arena_strndup(&c->a, b.p, b.len), b.len);
    c->can = mo_buf_err(&b) ? 0 : mo_conn_codec_can(v);
    if (!c->o.name || !c->o.version || !c->o.capabilities.p ||
        c->o.capabilities.n == 0 || (o->log_level && !c->o.log_level))
        return MO_ENOMEM;
    c->o.open_ms = o->open_ms ? o->open_ms : MO_CONN_OPEN_MS;
    c->o.install_ms = o->install_ms ? o->install_ms : MO_CONN_INSTALL_MS;
    c->o.probe_ms = o->probe_ms ? o->probe_ms : MO_CONN_PROBE_MS;
    return 0;
}

int mo_conn_open(struct mo_loop *l, const struct mo_conn_opts *o,
                 struct mo_conn **out, struct mo_err *e)
{
    struct mo_conn *c = mo_new(struct mo_conn);

    if (!c)
        return mo_fail(e, MO_ENOMEM, "connection");
    mo_arena_init(&c->a, ARENA_MAX);
    if (copy_opts(c, o) < 0) {
        mo_arena_fini(&c->a);
        mo_free(c);
        return mo_fail(e, MO_ENOMEM, "connection");
    }
    c->loop = l;
    c->last_id = o->after_id;
    for (size_t i = 0; i < CALL_BUCKETS; i++)
        mo_list_init(&c->calls[i]);
    mo_list_init(&c->parked);
    mo_list_init(&c->tasks);
    mo_list_init(&c->asks);
    mo_buf_init(&c->out, MO_CONN_TEXT_MAX);
    mo_buf_init(&c->compact, MO_CONN_TEXT_MAX);
    mo_buf_init(&c->opened, MO_CONN_TEXT_MAX);
    mo_later_init(&c->later, on_later);
    mo_loop_defer(l, &c->later);
    *out = c;
    return 0;
}

const struct mo_conn_info *mo_conn_info(const struct mo_conn *c)
{
    return &c->info;
}

const struct mo_conn_stats *mo_conn_stats(const struct mo_conn *c)
{
    return &c->stats;
}

struct mo_link *mo_conn_link(const struct mo_conn *c)
{
    return c->link;
}

bool mo_conn_can(const struct mo_conn *c, const char *capability)
{
    return mo_json_is(mo_json_get(c->info.capabilities, capability),
                      MO_JSON_OBJECT);
}

struct mo_json mo_conn_extension(const struct mo_conn *c, const char *id)
{
    struct mo_json all = mo_json_get(c->info.capabilities, "extensions");
    struct mo_json v = mo_json_get(all, id);

    return mo_json_is(v, MO_JSON_OBJECT) ? v : (struct mo_json){NULL, 0};
}
