/* One request against a scripted server: what is sent, how often, and that it
 * ends exactly once. */
#include "agent/llm/llm.h"

#include "llm_rows.h"
#include "mo_peer.h"

struct got {
    int texts, waits, dones;
    bool inside;
    char code[32], text[64];
    struct mo_err err;
    struct mo_llm_x *x;
    bool cancel_at_wait;
};

static void on_text(void *ctx, struct mo_span s)
{
    struct got *g = ctx;

    (void)s;
    assert_false(g->inside);
    assert_int_equal(g->dones, 0);
    g->texts++;
}

static void on_wait(void *ctx, unsigned attempt, unsigned ms,
                    const struct mo_llm_failure *f)
{
    struct got *g = ctx;

    assert_true(ms > 0 && f->code);
    assert_int_equal(attempt, ++g->waits);
    if (g->cancel_at_wait)
        mo_llm_cancel(g->x);
}

static void on_done(void *ctx, const struct mo_llm_reply *r,
                    const struct mo_llm_failure *f)
{
    struct got *g = ctx;

    assert_false(g->inside);
    assert_true(!r != !f);
    g->dones++;
    if (f)
        g->err = f->err;
    (void)snprintf(g->code, sizeof(g->code), "%s", f ? f->code : "");
    (void)snprintf(g->text, sizeof(g->text), "%.*s", r ? (int)r->text.n : 0,
                   r ? r->text.p : "");
}

static const struct mo_llm_cb cb = {on_text, NULL, on_wait, on_done};

static bool is_done(void *ctx)
{
    return ((struct got *)ctx)->dones > 0;
}

struct rig {
    struct mo_loop *l;
    struct peer p;
    struct mo_httpc *hc;
    struct mo_llm *m;
    unsigned fds;
};

static void rig_up(struct rig *r, struct peer script, enum mo_llm_kind k)
{
    struct mo_httpc_opts o = {.active = 0};
    struct mo_llm_opts lo = {
        .kind = k, .key = MO_SPAN("TOPSECRET"), .idle_ms = 5000};
    char url[PATH_LEN + 16];
    struct mo_err e;

    mo_loop_free(loop_new()); /* libuv never closes two descriptors */
    *r = (struct rig){.p = script, .fds = fds_open()};
    r->l = loop_new();
    peer_open(&r->p, r->l, "127.0.0.1:0");
    (void)snprintf(url, sizeof(url), "http://%s/", r->p.addr);
    lo.base_url = url;
    r->hc = mo_httpc_new(r->l, &o, &e);
    r->m = mo_llm_new(r->l, r->hc, &lo, &e);
    assert_non_null(r->m);
}

static void rig_down(struct rig *r)
{
    bool gone = false;

    mo_llm_free(r->m);
    mo_httpc_close(r->hc, set_flag, &gone);
    wait_for(r->l, flag_set, &gone);
    peer_close(&r->p);
    mo_loop_run(r->l);
    mo_loop_free(r->l);
    assert_int_equal(fds_open(), r->fds);
}

static const char user[] =
    "{\"role\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"a\"}]}";

static int start(struct rig *r, struct got *g, const char *model,
                 struct mo_err *e)
{
    struct mo_span entry = mo_span_cstr(user);
    struct mo_llm_request rq = {
        .model = model, .entries = &entry, .nentries = 1};
    int rc;

    g->inside = true;
    rc = mo_llm_start(r->m, &rq, &cb, g, &g->x, e);
    g->inside = false;
    return rc;
}

#define HEAD                                                                   \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"                   \
    "Connection: close\r\n\r\n"

static struct mo_buf answer(const struct llm_row *row)
{
    struct mo_buf b;

    mo_buf_init(&b, 65536);
    (void)mo_buf_puts(&b, HEAD);
    (void)mo_buf_puts(&b, row->stream);
    assert_int_equal(mo_buf_err(&b), 0);
    return b;
}

static bool sent(struct rig *r, const char *what)
{
    return mo_span_search(mo_buf_view(&r->p.last), mo_span_cstr(what)) >= 0;
}

static void every_provider_by_the_byte(void **state)
{
    static const char *const headers[] = {
        "\r\nauthorization: Bearer TOPSECRET\r\nanthropic-version: 2026-10-21",
        "\r\nx-goog-api-key: TOPSECRET\r\n",
        "\r\nauthorization: Bearer TOPSECRET\r\n",
        "\r\nauthorization: Bearer TOPSECRET\r\n",
    };
    static const char *const paths[] = {
        "POST /v1/messages HTTP",
        "POST /v1beta/models/gemini-4-argon:streamGenerateContent?alt=sse HTTP",
        "POST /v1/chat/completions HTTP",
        "POST /v1/responses HTTP",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(llm_rows); i++) {
        const struct llm_row *row = &llm_rows[i];
        struct mo_buf b = answer(row);
        struct got g = {0};
        struct mo_err e;
        struct rig r;

        rig_up(&r,
               (struct peer){.reply = mo_buf_view(&b), .piece = 1, .then = END},
               row->kind);
        assert_int_equal(start(&r, &g, row->model, &e), 0);
        wait_for(r.l, is_done, &g);
        check_row(row->name, strcmp(g.text, row->text) == 0);
        check_row(row->name, g.texts >= 2 && g.waits == 0);
        check_row(row->name, sent(&r, headers[i]));
        check_row(row->name, sent(&r, paths[i]));
        rig_down(&r);
        assert_int_equal(g.dones, 1);
        mo_buf_fini(&b);
    }
}

/* The server sends its end but keeps the connection open: the reply does not
 * wait. */
static void a_server_that_stays(void **state)
{
    struct mo_buf b = answer(&llm_rows[0]);
    struct got g = {0};
    struct mo_err e;
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = mo_buf_view(&b), .then = STAY},
           MO_LLM_CLAUDE);
    assert_int_equal(start(&r, &g, "m", &e), 0);
    wait_for(r.l, is_done, &g);
    assert_string_equal(g.code, "");
    rig_down(&r);
    mo_buf_fini(&b);
}

static void ends(void **state)
{
    static const struct {
        const char *name, *reply;
        enum peer_then then;
        const char *code;
        unsigned requests;
    } rows[] = {
        {"closes at once", "", END, "network", 3},
        {"breaks in the head", "HTTP/1.1 200 OK\r\n", BREAK, "network", 3},
        {"breaks in the stream", HEAD "data: {\"type\":\"ping\"}\n\n", BREAK,
         "network", 1},
        {"ends in the stream", HEAD "data: {\"type\":\"ping\"}\n\n", END,
         "network", 1},
        {"an empty stream", HEAD, END, "network", 1},
        {"not HTTP", "hello there, who are you?\r\n", END, "network", 1},
        {"a page",
         "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
         "Content-Length: 6\r\n\r\n<html>",
         STAY, "network", 1},
        {"JSON that is no stream",
         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
         "Content-Length: 26\r\n\r\n{\"type\":\"error\",\"error\":1}",
         STAY, "bad_request", 1},
        {"moved",
         "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0"
         "\r\n\r\n",
         STAY, "bad_request", 1},
        {"busy",
         "HTTP/1.1 529 x\r\nretry-after-ms: 2\r\nContent-Length: 0"
         "\r\n\r\n",
         STAY, "overloaded", 3},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct got g = {0};
        struct mo_err e;
        struct rig r;

        rig_up(&r,
               (struct peer){.reply = mo_span_cstr(rows[i].reply),
                             .then = rows[i].then},
               MO_LLM_CLAUDE);
        assert_int_equal(start(&r, &g, "m", &e), 0);
        wait_for(r.l, is_done, &g);
        if (strcmp(g.code, rows[i].code) != 0)
            fail_msg("row '%s': %s, %s", rows[i].name, g.code, g.err.msg);
        check_row(rows[i].name, r.p.requests == rows[i].requests);
        check_row(rows[i].name, g.waits == (int)rows[i].requests - 1);
        check_row(rows[i].name, !strstr(g.err.msg, "TOPSECRET"));
        rig_down(&r);
        assert_int_equal(g.dones, 1);
    }
}

static void cancel(void **state)
{
    struct got g = {0};
    struct mo_err e;
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(HEAD)}, MO_LLM_CLAUDE);
    assert_int_equal(start(&r, &g, "m", &e), 0);
    mo_llm_cancel(g.x);
    assert_int_equal(g.dones, 0);
    mo_llm_cancel(g.x); /* cancelling twice is harmless */
    wait_for(r.l, is_done, &g);
    assert_string_equal(g.code, "canceled");
    assert_int_equal(g.err.code, MO_ECANCELED);

    g = (struct got){.cancel_at_wait = true};
    r.p.reply = MO_SPAN("HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(start(&r, &g, "m", &e), 0);
    wait_for(r.l, is_done, &g);
    assert_string_equal(g.code, "canceled");
    rig_down(&r);
}

/* The connection stays open, and the idle timeout is longer. */
static void a_request_has_a_timeout(void **state)
{
    struct mo_llm_opts o = {.kind = MO_LLM_CLAUDE, .total_ms = 50};
    char url[PATH_LEN + 16];
    struct got g = {0};
    struct mo_err e;
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(HEAD)}, MO_LLM_CLAUDE);
    mo_llm_free(r.m);
    (void)snprintf(url, sizeof(url), "http://%s/", r.p.addr);
    o.base_url = url;
    r.m = mo_llm_new(r.l, r.hc, &o, &e);
    assert_int_equal(start(&r, &g, "m", &e), 0);
    wait_for(r.l, is_done, &g);
    assert_string_equal(g.code, "network");
    assert_int_equal(g.err.code, MO_ETIMEOUT);
    rig_down(&r);
}

static void refused_at_once(void **state)
{
    static const char *const urls[] = {"http://u:p@x.test", "http://x.test?k=1",
                                       "ftp:/x", "x", ""};
    struct got g = {0};
    struct mo_err e;
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN("")}, MO_LLM_CLAUDE);
    assert_int_equal(start(&r, &g, "", &e), MO_EINVAL);
    for (size_t i = 0; i < MO_COUNT(urls); i++) {
        struct mo_llm_opts o = {.kind = MO_LLM_CLAUDE, .base_url = urls[i]};

        assert_null(mo_llm_new(r.l, r.hc, &o, &e));
        assert_int_equal(e.code, MO_EINVAL);
    }
    rig_down(&r);
}

static void reply_once(void *ctx)
{
    struct rig *r = ctx;
    struct got g = {0};
    struct mo_err e;

    if (start(r, &g, "m", &e) == 0)
        assert_true(mo_loop_until(r->l, is_done, &g, WAIT_MS));
}

/* The scripted server's allocations fail too, which is one more way it can
 * fail. */
static void replies_without_memory(void **state)
{
    struct mo_buf b = answer(&llm_rows[0]);
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = mo_buf_view(&b), .then = END},
           MO_LLM_CLAUDE);
    for (uint64_t i = 1; i < 120; i++) {
        struct got g = {0};
        struct mo_err e;
        int rc;

        mo_mem_fail_at(i, false);
        rc = start(&r, &g, "m", &e);
        mo_mem_fail_at(0, false);
        if (rc == 0)
            wait_for(r.l, is_done, &g);
        else
            assert_int_equal(e.code, MO_ENOMEM);
    }
    reply_once(&r);
    rig_down(&r);
    mo_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_provider_by_the_byte),
        cmocka_unit_test(a_server_that_stays),
        cmocka_unit_test(ends),
        cmocka_unit_test(cancel),
        cmocka_unit_test(a_request_has_a_timeout),
        cmocka_unit_test(refused_at_once),
        cmocka_unit_test(replies_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
