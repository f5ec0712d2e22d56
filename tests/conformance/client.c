/* client.c - main() of the conformance client, and calls that wait. */
#include "conformance/client.h"

#include <stdio.h>
#include <stdlib.h>

#include "mcp/client/pages.h"

#define ANSWER_MAX ((size_t)16 * 1024 * 1024)
#define WAIT_MS    60000u

/* --- the connection's news ----------------------------------------------- */

static int on_dial(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct driver *d = ctx;
    struct mo_link *k;
    int rc = mo_link_http(d->loop, &d->link, &k, e);

    if (rc < 0)
        return rc;
    mo_conn_dialed(c, k, NULL);
    return 0;
}

static void on_open(void *ctx, struct mo_conn *c)
{
    struct driver *d = ctx;

    (void)c;
    d->opened = true;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct driver *d = ctx;

    d->conn = NULL;
    if (why)
        d->why = *why;
    else
        (void)mo_fail(&d->why, MO_ECLOSED, "closed");
}

static const struct mo_conn_cb conn_cb = {
    .on_open = on_open,
    .on_close = on_close,
};

static bool is_settled(void *ctx)
{
    struct driver *d = ctx;

    return d->opened || !d->conn;
}

static bool is_closed(void *ctx)
{
    return !((struct driver *)ctx)->conn;
}

static bool is_done(void *ctx)
{
    return ((struct driver *)ctx)->done;
}

int driver_open(struct driver *d, struct mo_err *e)
{
    int rc;

    d->opened = false;
    rc = mo_conn_open(d->loop, &d->opts, &d->conn, e);
    if (rc < 0)
        return rc;
    (void)mo_loop_until(d->loop, is_settled, d, WAIT_MS);
    if (d->opened && d->conn)
        return 0;
    *e = d->why;
    return e->code ? e->code : mo_fail(e, MO_ETIMEOUT, "not open in time");
}

void driver_close(struct driver *d)
{
    if (!d->conn)
        return;
    mo_conn_close(d->conn, NULL);
    (void)mo_loop_until(d->loop, is_closed, d, WAIT_MS);
}

/* --- calls that wait ----------------------------------------------------- */

static void keep(struct driver *d, struct mo_json v, const struct mo_reply *r)
{
    d->done = true;
    d->rc = 0;
    mo_buf_reset(&d->answer);
    if (r->err) {
        d->err = *r->err;
        d->rc = d->err.code;
    } else if (!v.p) {
        d->rc = mo_fail(&d->err, MO_EINVAL, "the server answers error %lld",
                        (long long)r->code);
    } else if (mo_buf_span(&d->answer, mo_json_text(v)) < 0) {
        d->rc = mo_fail(&d->err, MO_ETOOBIG, "the answer is too big");
    }
}

static void on_reply(void *ctx, const struct mo_reply *r)
{
    keep(ctx, r->result, r);
}

static void on_list(void *ctx, struct mo_json items, const struct mo_reply *r)
{
    keep(ctx, items, r);
}

static int await(struct driver *d, struct mo_json *out, struct mo_err *e)
{
    if (!mo_loop_until(d->loop, is_done, d, WAIT_MS))
        return mo_fail(e, MO_ETIMEOUT, "no answer in time");
    if (d->rc < 0)
        *e = d->err;
    else
        *out = (struct mo_json){d->answer.p, d->answer.len};
    return d->rc;
}

int driver_call(struct driver *d, const char *method, struct mo_span params,
                const struct mo_call_opts *more, struct mo_json *out,
                struct mo_err *e)
{
    struct mo_call_opts o = more ? *more : (struct mo_call_opts){.idle_ms = 0};

    if (!d->conn)
        return mo_fail(e, MO_ECLOSED, "no connection");
    o.done = on_reply;
    o.ctx = d;
    d->done = false;
    if (!mo_conn_request(d->conn, method, params, &o, e))
        return e->code;
    return await(d, out, e);
}

int driver_tool(struct driver *d, const char *tool, struct mo_span arguments,
                struct mo_json *out, struct mo_err *e)
{
    struct mo_call_opts o = {.name = mo_span_cstr(tool)};
    struct mo_buf b;
    struct mo_jw w;
    int rc;

    mo_buf_init(&b, ANSWER_MAX);
    mo_jw_init(&w, &b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "name");
    mo_jw_cstr(&w, tool);
    mo_jw_key(&w, "arguments");
    mo_jw_raw(&w, arguments);
    mo_jw_end(&w);
    rc = mo_buf_err(&b);
    if (rc < 0)
        (void)mo_fail(e, rc, "arguments");
    else
        rc = driver_call(d, "tools/call", mo_buf_view(&b), &o, out, e);
    mo_buf_fini(&b);
    return rc;
}

int driver_list(struct driver *d, const char *method, const char *key,
                struct mo_json *out, struct mo_err *e)
{
    struct mo_pages_opts o = {
        .method = method,
        .key = key,
        .done = on_list,
        .ctx = d,
    };
    struct mo_pages *p;
    int rc;

    if (!d->conn)
        return mo_fail(e, MO_ECLOSED, "no connection");
    d->done = false;
    rc = mo_pages_start(d->conn, &o, &p, e);
    return rc < 0 ? rc : await(d, out, e);
}

/* --- main ---------------------------------------------------------------- */

static const char *env(const char *name)
{
    const char *v = getenv(name);

    return v ? v : "";
}

static int fill_in(struct driver *d, struct mo_err *e)
{
    struct mo_span context = mo_span_cstr(env("MCP_CONFORMANCE_CONTEXT"));
    struct mo_json_doc doc;

    d->scenario = env("MCP_CONFORMANCE_SCENARIO");
    d->version = env("MCP_CONFORMANCE_PROTOCOL_VERSION");
    d->modern = mo_mcp_text_is_modern(mo_span_cstr(d->version));
    if (context.n && mo_json_parse(context, 0, &doc, e) < 0)
        return mo_wrap(e, "context");
    if (context.n)
        d->context = doc.root;
    d->opts = (struct mo_conn_opts){
        .mode = d->modern ? MO_CONN_MODERN : MO_CONN_LEGACY,
        .pin = mo_mcp_version(mo_span_cstr(d->version)),
        .name = "mo-conformance-client",
        .version = "1.0.0",
        .dial = on_dial,
        .cb = &conn_cb,
        .ctx = d,
    };
    d->link = (struct mo_link_http_opts){.http = d->http, .url = d->url};
    return 0;
}

static int play(struct driver *d)
{
    int rc = auth_scenario(d, d->scenario);

    if (rc == NO_SUCH_SCENARIO)
        rc = skills_scenario(d, d->scenario);
    if (rc == NO_SUCH_SCENARIO)
        rc = core_scenario(d, d->scenario);
    if (rc == NO_SUCH_SCENARIO)
        (void)fprintf(stderr, "no such scenario: %s\n", d->scenario);
    driver_close(d);
    return rc;
}

int main(int argc, char **argv)
{
    struct mo_log log;
    struct driver d = {.url = argc > 1 ? argv[argc - 1] : ""};
    struct mo_httpc_opts ho = {.active = 64};
    struct mo_err e = {0};
    int rc = -1;

    mo_log_init(&log, 2);
    mo_buf_init(&d.answer, ANSWER_MAX);
    d.loop = mo_loop_new(&log, &e);
    if (!d.loop)
        return 2;
    d.http = mo_httpc_new(d.loop, &ho, &e);
    if (d.http && fill_in(&d, &e) == 0)
        rc = play(&d);
    if (e.code)
        (void)fprintf(stderr, "%s\n", e.msg);
    if (d.http)
        mo_httpc_close(d.http, NULL, NULL);
    mo_loop_run(d.loop);
    mo_loop_free(d.loop);
    mo_buf_fini(&d.answer);
    mo_log_fini(&log);
    return rc ? 1 : 0;
}
