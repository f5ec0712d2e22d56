/* mcp_driver - a client that says yes: opens the server given as argv[3..],
 * calls the tool argv[1] with the arguments argv[2], and answers everything
 * the server asks meanwhile. One JSON object a line on stdout: what was asked,
 * the progress, the notifications' names, the result, the end. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mcp/client/conn.h"
#include "mcp/link/link_child.h"

struct driver {
    struct mo_loop *l;
    struct mo_guard *g;
    struct mo_conn *c;
    char **argv; /* of the server */
    const char *tool, *args;
    int failed;
};

static void say(const char *what, struct mo_json v)
{
    (void)printf("{\"%s\":%.*s}\n", what, v.p ? (int)v.n : 4,
                 v.p ? v.p : "null");
}

static int on_dial(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct driver *d = ctx;
    struct mo_child_opts o = {
        .argv = (const char *const *)d->argv,
        .env = (const char *const *)environ,
    };
    struct mo_link *k;
    int rc = mo_link_child(d->g, &o, &k, e);

    if (rc == 0)
        mo_conn_dialed(c, k, NULL);
    return rc;
}

static void on_done(void *ctx, const struct mo_reply *r)
{
    struct driver *d = ctx;

    d->failed = r->err || r->error.p;
    if (r->err)
        (void)printf("{\"failed\":%d}\n", r->err->code);
    else
        say(r->result.p ? "result" : "error",
            r->result.p ? r->result : r->error);
    mo_conn_close(d->c, NULL);
}

static void on_progress(void *ctx, struct mo_json params)
{
    (void)ctx;
    say("progress", params);
}

static void on_open(void *ctx, struct mo_conn *c)
{
    struct driver *d = ctx;
    struct mo_call_opts o = {
        .on_progress = on_progress,
        .done = on_done,
        .ctx = d,
    };
    struct mo_buf b;
    struct mo_err e;

    (void)printf("{\"open\":\"%s\"}\n",
                 mo_mcp_version_text(mo_conn_info(c)->version));
    mo_buf_init(&b, 65536);
    mo_buf_printf(&b, "{\"name\":\"%s\",\"arguments\":%s}", d->tool, d->args);
    if (!mo_conn_request(c, "tools/call", mo_buf_view(&b), &o, &e))
        mo_conn_close(c, &e);
    mo_buf_fini(&b);
}

#define SAMPLED                                                                \
    "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":"         \
    "\"sampled\"},\"model\":\"m\"}"

static void on_ask(void *ctx, struct mo_conn *c, struct mo_ask *a)
{
    static const char *const answers[MO_ASK_KINDS] = {
        [MO_ASK_SAMPLING] = SAMPLED,
        [MO_ASK_ELICIT] =
            "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}",
        [MO_ASK_ROOTS] =
            "{\"roots\":[{\"uri\":\"file:///srv/x\",\"name\":\"x\"}]}",
    };

    (void)ctx;
    (void)c;
    (void)printf("{\"asked\":\"%s\"}\n", mo_ask_method(a->kind));
    mo_ask_answer(a, mo_span_cstr(answers[a->kind]));
}

static void on_notify(void *ctx, struct mo_conn *c, const struct mo_rpc *m,
                      uint64_t stream_of)
{
    (void)ctx;
    (void)c;
    (void)stream_of;
    say("notified", m->method);
}

static void on_gone(void *ctx)
{
    (void)ctx;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct driver *d = ctx;

    d->failed = d->failed || why;
    (void)printf("{\"closed\":%d}\n", why ? why->code : 0);
    mo_guard_stop(d->g, on_gone, NULL);
}

static const struct mo_conn_cb cb = {
    .on_open = on_open,
    .on_ask = on_ask,
    .on_notify = on_notify,
    .on_close = on_close,
};

int main(int argc, char **argv)
{
    struct mo_conn_opts o = {
        .mode = MO_CONN_AUTO,
        .capabilities = MO_SPAN("{\"sampling\":{},\"roots\":{},"
                                "\"elicitation\":{\"form\":{},\"url\":{}}}"),
        .dial = on_dial,
        .cb = &cb,
    };
    struct driver d = {0};
    struct mo_err e;

    if (mo_guard_wanted(argc, argv))
        mo_guard_main();
    if (argc < 4)
        return 2;
    d.tool = argv[1];
    d.args = argv[2];
    d.argv = argv + 3;
    o.ctx = &d;
    d.l = mo_loop_new(NULL, &e);
    d.g = d.l ? mo_guard_new(d.l, &e) : NULL;
    if (!d.g || mo_conn_open(d.l, &o, &d.c, &e) < 0)
        return 3;
    mo_loop_run(d.l);
    mo_loop_free(d.l);
    return d.failed;
}
