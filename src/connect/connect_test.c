#include "connect/connect_test.h"

#include "base/mem.h"
#include "loop/loop.h"
#include "mcp/client/pages.h"

#define INFO_MAX        ((size_t)64 * 1024)
#define INSTALL_POLL_MS 500

struct mo_connect_test {
    struct mo_connect_test_opts o;
    struct mo_conn *conn;
    struct mo_timer late;
    uint64_t began;
    bool settled;    /* the result is final, the connection is closing */
    bool not_dialed; /* the failure came before the server could ask for a
                        sign-in */
    struct mo_connect_test_result r;
    struct mo_buf info;
};

static void settle(struct mo_connect_test *a, const struct mo_err *why)
{
    if (a->settled)
        return;
    a->settled = true;
    a->r.ms = (mo_now_ns() - a->began) / MO_MS;
    if (why)
        a->r.why = *why;
    a->r.sign_in = why && why->code == MO_EPOLICY && !a->not_dialed;
    mo_timer_stop(a->o.loop, &a->late);
    if (a->conn)
        mo_conn_close(a->conn, why);
}

/* --- callbacks of the connection ------------------------------------------ */

static int on_dial(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct mo_connect_test *a = ctx;
    int rc = mo_server_link_server(a->o.link, a->o.server->name,
                                   mo_span(NULL, 0), c, e);

    a->not_dialed = rc < 0;
    return rc;
}

static void on_list(void *ctx, struct mo_json items, const struct mo_reply *r)
{
    struct mo_connect_test *a = ctx;
    mo_autobuf struct mo_buf b = {.max = 2 * MO_PAGES_BYTES_MAX};

    if (items.p) {
        a->r.tools = mo_json_len(items);
        (void)mo_definition_mend(MO_DEFINITION_TOOL, items, &b, &a->r.notes);
    }
    if (items.p || r->err) {
        settle(a, r->err);
        return;
    }
    (void)mo_json_str_buf(mo_json_get(r->error, "message"), &b);
    settle(a, mo_error(MO_EPROTO,
                       "the server refuses to list its tools (%lld): %s",
                       (long long)r->code, mo_buf_cstr(&b)));
}

static void on_open(void *ctx, struct mo_conn *c)
{
    struct mo_connect_test *a = ctx;
    const struct mo_conn_info *info = mo_conn_info(c);
    const struct mo_pages_opts o = {
        .method = "tools/list",
        .key = "tools",
        .page_ms = (uint64_t)a->o.server->timeout_ms,
        .done = on_list,
        .ctx = a,
    };
    struct mo_pages *list = NULL;
    struct mo_err e;

    a->r.version = mo_mcp_version_text(info->version);
    if (mo_json_is(info->server, MO_JSON_OBJECT) &&
        mo_json_compact(info->server, &a->info) == 0)
        a->r.info = mo_buf_view(&a->info);
    if (!mo_conn_can(c, "tools"))
        settle(a, NULL);
    else if (mo_pages_start(c, &o, &list, &e) < 0)
        settle(a, &e);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct mo_connect_test *a = ctx;

    a->conn = NULL;
    settle(a, why ? why : mo_error(MO_ECLOSED, "it was closed"));
    mo_loop_blank(a->o.loop, &a->r.why);
    a->o.done(a->o.ctx, &a->r);
    mo_buf_fini(&a->info);
    mo_free(a);
}

static const struct mo_conn_cb conn_cb = {.on_open = on_open,
                                          .on_close = on_close};

static void on_timeout(struct mo_timer *t)
{
    struct mo_connect_test *a =
        mo_container_of(t, struct mo_connect_test, late);
    const struct mo_link *k = a->conn ? mo_conn_link(a->conn) : NULL;

    if (k && mo_link_is_installing(k)) { /* the connection has a limit for it */
        mo_timer_start(a->o.loop, t, INSTALL_POLL_MS);
        return;
    }
    settle(a, mo_error(MO_ETIMEOUT, "the server did not answer within %llu s",
                       (unsigned long long)(a->o.timeout_ms + 999) / 1000));
}

int mo_connect_test_start(const struct mo_connect_test_opts *o,
                          struct mo_connect_test **out, struct mo_err *e)
{
    struct mo_connect_test *a = mo_new(struct mo_connect_test);
    struct mo_conn_opts co = {
        .mode = mo_server_link_mode(o->server),
        .known = mo_server_link_verdict(o->link, o->server->name),
        .open_ms = (uint64_t)o->server->start_ms,
        .install_ms = (uint64_t)o->server->install_ms,
        .dial = on_dial,
        .cb = &conn_cb,
        .ctx = a,
    };
    int rc = 0;

    if (a == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    a->o = *o;
    a->began = mo_now_ns();
    mo_buf_init(&a->info, INFO_MAX);
    mo_timer_init(&a->late, on_timeout);
    rc = mo_conn_open(o->loop, &co, &a->conn, e);
    if (rc < 0) {
        mo_free(a);
        return rc;
    }
    if (o->timeout_ms)
        mo_timer_start(o->loop, &a->late, o->timeout_ms);
    *out = a;
    return 0;
}

void mo_connect_test_stop(struct mo_connect_test *a)
{
    settle(a, mo_error(MO_ECANCELED, "it was stopped"));
}

void mo_connect_test_put_notes(struct mo_jw *w,
                               const struct mo_definition_notes *n)
{
    mo_jw_member_opt(w, "mended", mo_span_cstr(n->mended));
    mo_jw_member_opt(w, "leftOut", mo_span_cstr(n->left_out));
}

void mo_connect_test_json(struct mo_jw *w,
                          const struct mo_connect_test_result *r,
                          const struct mo_stderr_tail *tail, const char *server)
{
    mo_autobuf struct mo_buf b = {.max = MO_TAIL_MAX};

    mo_jw_member_bool(w, "ok", r->why.code == 0);
    mo_jw_member_u64(w, "ms", r->ms);
    if (r->version)
        mo_jw_member(w, "protocolVersion", mo_span_cstr(r->version));
    mo_jw_member_raw(w, "serverInfo", r->info);
    if (r->why.code == 0) {
        mo_jw_member_u64(w, "tools", r->tools);
        mo_connect_test_put_notes(w, &r->notes);
        return;
    }
    mo_jw_member(w, "error", mo_span_cstr(r->why.msg));
    if (r->sign_in)
        mo_jw_member(w, "signIn", MO_SPAN("needed"));
    if (mo_stderr_tail_get(tail, server, &b) == 0 && b.len > 0)
        mo_jw_member(w, "stderr", mo_buf_view(&b));
}
