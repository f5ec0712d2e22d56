/* mcp_http_client.c - conn over link_http as a command line, for the node
 * tests: opens a server, makes requests one after the other, prints a line
 * for each thing that happens.
 *
 *   mcp_http_client URL legacy|auto|modern|sse [METHOD PARAMS]...
 *
 * Mcp-Name is taken from params.name or params.uri, as a gateway does. */
#include <stdio.h>
#include <stdlib.h>

#include "loop/httpc.h"
#include "mcp/client/conn.h"
#include "mcp/link/link_sse.h"

#define SAMPLED                                                                \
    "{\"role\":\"assistant\",\"model\":\"none\",\"content\":"                  \
    "{\"type\":\"text\",\"text\":\"sampled here\"}}"

struct client {
    struct mo_loop *l;
    struct mo_httpc *http;
    struct mo_conn *conn;
    const char *url;
    char **next, **end;
    bool over;
    bool sse; /* the old transport */
    int status;
};

static void say(const char *what, struct mo_span text)
{
    printf("%s %.*s\n", what, (int)text.n, text.n ? text.p : "");
    (void)fflush(stdout);
}

static void on_reply(void *ctx, const struct mo_reply *r);

static void on_progress(void *ctx, struct mo_json params)
{
    (void)ctx;
    say("progress", mo_json_text(params));
}

static struct mo_span name_of(struct mo_span params, struct mo_arena *a)
{
    struct mo_span name = {NULL, 0};
    struct mo_json_doc doc;
    struct mo_json v;

    if (mo_json_parse(params, 0, &doc, NULL) < 0)
        return name;
    v = mo_json_get(doc.root, "name");
    if (!v.p)
        v = mo_json_get(doc.root, "uri");
    if (mo_json_is(v, MO_JSON_STRING))
        (void)mo_json_str(v, a, &name);
    return name;
}

static void next_request(struct client *c)
{
    struct mo_call_opts o = {
        .done = on_reply, .on_progress = on_progress, .ctx = c};
    struct mo_span params;
    struct mo_arena a;
    struct mo_err e;

    if (c->end - c->next < 2) {
        mo_conn_close(c->conn, NULL);
        return;
    }
    params = mo_span_cstr(c->next[1]);
    mo_arena_init(&a, 65536);
    o.name = name_of(params, &a);
    if (!mo_conn_request(c->conn, c->next[0], params, &o, &e)) {
        say("refused", mo_span_cstr(e.msg));
        mo_conn_close(c->conn, NULL);
    }
    mo_arena_fini(&a);
    c->next += 2;
}

static void on_reply(void *ctx, const struct mo_reply *r)
{
    struct client *c = ctx;

    if (r->err)
        say("failed", mo_span_cstr(r->err->msg));
    else if (r->error.p)
        say("error", mo_json_text(r->error));
    else
        say("result", mo_json_text(r->result));
    next_request(c);
}

static void on_open(void *ctx, struct mo_conn *conn)
{
    const struct mo_conn_info *i = mo_conn_info(conn);

    say(i->modern ? "modern" : "legacy",
        mo_span_cstr(mo_mcp_version_text(i->version)));
    next_request(ctx);
}

static void on_notify(void *ctx, struct mo_conn *conn, const struct mo_rpc *m,
                      uint64_t stream_of)
{
    (void)ctx;
    (void)conn;
    say(stream_of ? "note-of-call" : "note", mo_json_text(m->method));
}

static void on_ask(void *ctx, struct mo_conn *conn, struct mo_ask *a)
{
    static const char *const answers[MO_ASK_KINDS] = {
        [MO_ASK_SAMPLING] = SAMPLED,
        [MO_ASK_ELICIT] = "{\"action\":\"decline\"}",
        [MO_ASK_ROOTS] = "{\"roots\":[]}",
    };

    (void)ctx;
    (void)conn;
    say("asked", mo_span_cstr(mo_ask_method(a->kind)));
    mo_ask_answer(a, mo_span_cstr(answers[a->kind]));
}

static void on_gone(void *ctx)
{
    ((struct client *)ctx)->over = true;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct client *c = ctx;

    say("closed", mo_span_cstr(why ? why->msg : ""));
    c->status = why ? 1 : 0;
    mo_httpc_close(c->http, on_gone, c);
}

static int dial(void *ctx, struct mo_conn *conn, struct mo_err *e)
{
    struct client *c = ctx;
    struct mo_link_http_opts o = {.http = c->http, .url = c->url};
    struct mo_link *k;
    int rc =
        c->sse ? mo_link_sse(c->l, &o, &k, e) : mo_link_http(c->l, &o, &k, e);

    if (rc == 0)
        mo_conn_dialed(conn, k, NULL);
    return rc;
}

static enum mo_conn_mode mode_of(const char *s)
{
    if (strcmp(s, "auto") == 0)
        return MO_CONN_AUTO;
    return strcmp(s, "modern") == 0 ? MO_CONN_MODERN : MO_CONN_LEGACY;
}

int main(int argc, char **argv)
{
    static const struct mo_conn_cb cb = {.on_open = on_open,
                                         .on_ask = on_ask,
                                         .on_notify = on_notify,
                                         .on_close = on_close};
    struct mo_httpc_opts ho = {.active = 80};
    struct mo_conn_opts o = {
        .capabilities =
            MO_SPAN("{\"sampling\":{},\"elicitation\":{},\"roots\":{}}"),
        .cb = &cb,
        .dial = dial,
    };
    struct client c = {.next = argv + 3, .end = argv + argc};
    struct mo_err e;

    if (argc < 3)
        return 2;
    c.url = argv[1];
    o.mode = mode_of(argv[2]);
    c.sse = strcmp(argv[2], "sse") == 0;
    o.ctx = &c;
    c.l = mo_loop_new(NULL, &e);
    c.http = c.l ? mo_httpc_new(c.l, &ho, &e) : NULL;
    if (!c.http || mo_conn_open(c.l, &o, &c.conn, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        return 2;
    }
    mo_loop_run(c.l);
    mo_loop_free(c.l);
    return c.over ? c.status : 3;
}
