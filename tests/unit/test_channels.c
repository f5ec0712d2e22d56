/* Connections over one stream. The test plays the network container. */
#include "loop/channels.h"

#include "codec/net_frame.h"
#include "mo_net.h"

#define MAX ((size_t)8 * 1024 * 1024)

struct rig {
    struct mo_loop *l;
    struct end far; /* the container's end */
    struct mo_net_frames *frames;
    size_t read; /* bytes of far.got */
    struct mo_channels *m;
    unsigned char nonce[MO_NET_NONCE];
    int ready, opened, ended;
    bool v6;
    struct mo_err why;
    struct end ends[MO_NET_CHANNELS_MAX]; /* the connections, in order */
    struct mo_ip ip;
    unsigned port;
    bool paused;       /* owners do not read */
    char queries[64];  /* that came */
    struct mo_buf log; /* frames that the container got, as text */
    size_t data;       /* bytes of DATA */
};

static void on_ready(void *ctx, bool v6)
{
    struct rig *r = ctx;

    r->ready++;
    r->v6 = v6;
}

static void on_open(void *ctx, struct mo_stream *s, const struct mo_ip *ip,
                    unsigned port)
{
    struct rig *r = ctx;
    struct end *e = &r->ends[r->opened++];

    r->ip = *ip;
    r->port = port;
    end_init(e);
    end_attach(e, s);
    if (r->paused)
        mo_stream_pause(s);
}

static void on_query(void *ctx, uint32_t id, struct mo_span query)
{
    struct rig *r = ctx;

    (void)snprintf(r->queries, sizeof(r->queries), "%u %.*s", id, (int)query.n,
                   query.p);
    mo_channels_answer(r->m, id, MO_SPAN("answer"));
}

static void on_end(void *ctx, const struct mo_err *why)
{
    struct rig *r = ctx;

    r->ended++;
    r->why = *why;
    r->m = NULL;
}

static void on_file(void *ctx, uint32_t id, bool ok)
{
    struct rig *r = ctx;

    (void)snprintf(r->queries, sizeof(r->queries), "file %u %d", id, ok);
}

static const struct mo_channels_cb cb = {on_ready, on_open, on_query, on_file,
                                         on_end};

static void take_frame(struct rig *r, const struct mo_net_frame *f)
{
    if (f->type == MO_NET_HELLO)
        memcpy(r->nonce, f->data.p, MO_NET_NONCE);
    else if (f->type == MO_NET_DATA || f->type == MO_NET_FILE)
        r->data += f->data.n;
    else if (f->type == MO_NET_CREDIT)
        mo_buf_printf(&r->log, "credit %u %u;", f->id, f->credit);
    else
        mo_buf_printf(&r->log, "%d %u %.*s;", f->type, f->id, (int)f->data.n,
                      f->data.p);
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Runs the loop for a few turns and reads what has come. */
static void turns(struct rig *r)
{
    struct mo_net_frame f;
    struct mo_span in;

    for (int i = 0; i < 10; i++)
        (void)mo_loop_until(r->l, never, NULL, 1);
    in = mo_span_skip(mo_buf_view(&r->far.got), r->read);
    r->read = r->far.got.len;
    while (mo_net_frames_next(r->frames, &in, &f) == 1)
        take_frame(r, &f);
    assert_int_equal(in.n, 0);
}

static void send(struct rig *r, struct mo_buf *b)
{
    assert_int_equal(mo_buf_err(b), 0);
    assert_int_equal(mo_stream_write(r->far.s, mo_buf_view(b)), 0);
    mo_buf_reset(b);
    turns(r);
}

static void say(struct rig *r, enum mo_net_type type, uint32_t id,
                struct mo_span data)
{
    mo_autobuf struct mo_buf b = {.max = MAX};

    mo_net_put(&b, type, id, data);
    send(r, &b);
}

static void say_many(struct rig *r, uint32_t id, size_t n)
{
    static char zeros[MO_NET_DATA_MAX];

    while (n) {
        size_t one = n < sizeof(zeros) ? n : sizeof(zeros);

        say(r, MO_NET_DATA, id, mo_span(zeros, one));
        n -= one;
    }
}

static void say_open(struct rig *r, uint32_t id)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    struct mo_ip ip;

    assert_true(mo_ip_parse(MO_SPAN("198.18.0.1"), &ip));
    mo_net_put_open(&b, id, &ip, 443);
    send(r, &b);
}

static void say_credit(struct rig *r, uint32_t id, uint32_t n)
{
    mo_autobuf struct mo_buf b = {.max = MAX};

    mo_net_put_credit(&b, id, n);
    send(r, &b);
}

static void say_hello(struct rig *r)
{
    mo_autobuf struct mo_buf b = {.max = MAX};

    mo_net_put_hello(&b, r->nonce, MO_NET_V6);
    send(r, &b);
}

static void rig_up(struct rig *r)
{
    struct mo_stream *pair[2];

    *r = (struct rig){.l = loop_new()};
    mo_buf_init(&r->log, MAX);
    r->frames = mo_new(struct mo_net_frames);
    mo_net_frames_init(r->frames, false);
    end_init(&r->far);
    stream_pair(r->l, pair);
    end_attach(&r->far, pair[0]);
    assert_int_equal(mo_channels_open(r->l, pair[1], &cb, r, &r->m, NULL), 0);
    turns(r);
    assert_int_equal(r->ready, 0);
}

static void rig_ready(struct rig *r)
{
    rig_up(r);
    say_hello(r);
    assert_int_equal(r->ready, 1);
}

static void rig_down(struct rig *r)
{
    mo_channels_forget(r->m);
    if (r->far.s)
        mo_stream_close(r->far.s, NULL);
    mo_loop_run(r->l);
    mo_loop_free(r->l);
    for (int i = 0; i < r->opened; i++) {
        assert_int_equal(r->ends[i].closes, 1);
        mo_buf_fini(&r->ends[i].got);
    }
    mo_buf_fini(&r->far.got);
    mo_buf_fini(&r->log);
    mo_free(r->frames);
}

static bool logged(struct rig *r, const char *text)
{
    bool yes = strstr(mo_buf_cstr(&r->log), text) != NULL;

    mo_buf_reset(&r->log);
    return yes;
}

/* --- cases --------------------------------------------------------------- */

static struct rig r;

static void a_greeting(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    unsigned char other[MO_NET_NONCE] = {1};

    (void)state;
    rig_up(&r);
    mo_buf_put(&b, "\x03\x00\x00\x05rest of a frame", 19);
    mo_net_put_hello(&b, other, 0); /* a program wrote that */
    mo_net_put(&b, MO_NET_DATA, 7, MO_SPAN("forged"));
    send(&r, &b);
    assert_int_equal(r.ready, 0);
    say_hello(&r);
    assert_int_equal(r.ready, 1);
    assert_true(r.v6);
    say_open(&r, 1);
    assert_int_equal(r.opened, 1);
    assert_int_equal(r.port, 443);
    rig_down(&r);
    assert_int_equal(r.ended, 0);
}

static void both_ways(void **state)
{
    (void)state;
    rig_ready(&r);
    say_open(&r, 1);
    say_open(&r, 2);
    say(&r, MO_NET_DATA, 2, MO_SPAN("two"));
    say(&r, MO_NET_DATA, 1, MO_SPAN("one"));
    assert_true(mo_span_is(mo_buf_view(&r.ends[0].got), "one"));
    assert_true(mo_span_is(mo_buf_view(&r.ends[1].got), "two"));
    assert_int_equal(mo_stream_write(r.ends[1].s, MO_SPAN("back")), 0);
    turns(&r);
    assert_int_equal(r.data, 4);
    say(&r, MO_NET_QUERY, 5, MO_SPAN("who?"));
    assert_string_equal(r.queries, "5 who?");
    assert_true(logged(&r, "8 5 answer;"));
    /* an end in one direction, then in the other */
    say(&r, MO_NET_EOF, 2, MO_SPAN(""));
    assert_true(r.ends[1].eof);
    mo_stream_shutdown(r.ends[1].s);
    turns(&r);
    assert_true(logged(&r, "5 2 ;"));
    mo_stream_close(r.ends[1].s, NULL);
    turns(&r);
    assert_false(logged(&r, "6 2 ;")); /* it needs no reset */
    /* a reset from each side */
    mo_stream_close(r.ends[0].s, NULL);
    turns(&r);
    assert_true(logged(&r, "6 1 ;"));
    say_open(&r, 3);
    say(&r, MO_NET_RESET, 3, MO_SPAN(""));
    assert_int_equal(r.ends[2].closes, 1);
    assert_int_equal(r.ends[2].why.code, MO_ECLOSED);
    rig_down(&r);
}

static void files(void **state)
{
    static char big[100000];

    (void)state;
    rig_ready(&r);
    mo_channels_send_file(r.m, MO_NET_FILE_BUNDLE, mo_span(big, sizeof(big)));
    turns(&r);
    assert_int_equal(r.data, sizeof(big));
    say(&r, MO_NET_FILE, MO_NET_FILE_BUNDLE, MO_SPAN("\1"));
    assert_string_equal(r.queries, "file 1 1");
    mo_channels_send_file(r.m, MO_NET_FILE_JAVA, MO_SPAN(""));
    turns(&r);
    say(&r, MO_NET_FILE, MO_NET_FILE_JAVA, mo_span("\0", 1));
    assert_string_equal(r.queries, "file 2 0");
    rig_down(&r);
}

static void the_window_holds(void **state)
{
    static char big[200000];

    (void)state;
    rig_ready(&r);
    say_open(&r, 1);
    assert_int_equal(mo_stream_write(r.ends[0].s, mo_span(big, sizeof(big))),
                     0);
    mo_stream_shutdown(r.ends[0].s);
    turns(&r);
    assert_int_equal(r.data, MO_NET_WINDOW);
    assert_int_equal(mo_stream_queued(r.ends[0].s), sizeof(big) - r.data);
    say_credit(&r, 1, 1000);
    assert_int_equal(r.data, MO_NET_WINDOW + 1000);
    assert_false(logged(&r, "5 1 ;"));
    while (r.data < sizeof(big))
        say_credit(&r, 1, 30000);
    assert_true(logged(&r, "5 1 ;")); /* the end comes last */
    assert_int_equal(r.ends[0].drains, 1);
    rig_down(&r);
}

static void a_paused_owner(void **state)
{
    (void)state;
    rig_ready(&r);
    r.paused = true;
    say_open(&r, 1);
    say_many(&r, 1, MO_NET_WINDOW);
    say(&r, MO_NET_EOF, 1, MO_SPAN(""));
    assert_int_equal(r.ends[0].got.len, 0);
    assert_false(logged(&r, "credit"));
    mo_stream_resume(r.ends[0].s);
    turns(&r);
    assert_int_equal(r.ends[0].got.len, MO_NET_WINDOW);
    assert_true(r.ends[0].eof);
    /* one that reads gives credit */
    r.paused = false;
    say_open(&r, 2);
    say_many(&r, 2, MO_NET_WINDOW / 2);
    assert_true(logged(&r, "credit 2 32768;"));
    rig_down(&r);
}

static void late_frames(void **state)
{
    (void)state;
    rig_ready(&r);
    say_open(&r, 1);
    mo_stream_close(r.ends[0].s, NULL);
    turns(&r);
    say(&r, MO_NET_DATA, 1, MO_SPAN("late"));
    say_credit(&r, 1, 5);
    say(&r, MO_NET_EOF, 1, MO_SPAN(""));
    say(&r, MO_NET_RESET, 1, MO_SPAN(""));
    assert_int_equal(r.ended, 0);
    rig_down(&r);
}

static void bytes_beyond_the_window(void)
{
    r.paused = true;
    say_open(&r, 3);
    say_many(&r, 3, MO_NET_WINDOW);
    say_many(&r, 3, 1);
}

static void data_after_eof(void)
{
    say(&r, MO_NET_EOF, 1, MO_SPAN(""));
    say_many(&r, 1, 1);
}

static void eof_twice(void)
{
    say(&r, MO_NET_EOF, 1, MO_SPAN(""));
    say(&r, MO_NET_EOF, 1, MO_SPAN(""));
}

static void an_old_id(void)
{
    say_open(&r, 1);
}

static void an_unknown_id(void)
{
    say_many(&r, 3, 1);
}

static void a_reset_of_an_unknown_id(void)
{
    say(&r, MO_NET_RESET, 77, MO_SPAN(""));
}

static void too_much_credit(void)
{
    say_credit(&r, 1, 1);
}

static void an_answer(void)
{
    say(&r, MO_NET_ANSWER, 1, MO_SPAN("x"));
}

static void a_second_hello(void)
{
    say_hello(&r);
}

static void garbage(void)
{
    mo_autobuf struct mo_buf b = {.max = MAX};

    for (int i = 0; i < 100000; i++)
        mo_buf_putc(&b, (char)(i * 7 + i / 3));
    send(&r, &b);
}

/* Each ends all connections, and nothing else. */
static void forged_frames(void **state)
{
    static const struct {
        const char *name;
        void (*act)(void);
    } rows[] = {
        {"bytes beyond the window", bytes_beyond_the_window},
        {"data after eof", data_after_eof},
        {"eof twice", eof_twice},
        {"an old id", an_old_id},
        {"an unknown id", an_unknown_id},
        {"a reset of an unknown id", a_reset_of_an_unknown_id},
        {"too much credit", too_much_credit},
        {"an answer", an_answer},
        {"a second hello", a_second_hello},
        {"garbage", garbage},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        rig_ready(&r);
        say_open(&r, 1);
        say_open(&r, 2);
        rows[i].act();
        turns(&r);
        check_row(rows[i].name, r.ended == 1 && r.why.code == MO_EPROTO);
        check_row(rows[i].name, r.ends[0].closes == 1 && r.ends[1].closes == 1);
        rig_down(&r);
    }
}

static void a_flood(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    struct mo_ip ip = {{0}};

    (void)state;
    rig_ready(&r);
    for (uint32_t i = 1, id = 1; i <= MO_NET_CHANNELS_MAX;
         i++, id = mo_net_next_id(id))
        mo_net_put_open(&b, id, &ip, 80);
    send(&r, &b);
    assert_int_equal(r.opened, MO_NET_CHANNELS_MAX);
    say_open(&r, 1000);
    assert_int_equal(r.opened, MO_NET_CHANNELS_MAX);
    assert_true(logged(&r, "6 1000 ;"));
    assert_int_equal(r.ended, 0);
    rig_down(&r);
}

static void the_stream_ends(void **state)
{
    (void)state;
    rig_ready(&r);
    say_open(&r, 1);
    mo_stream_close(r.far.s, NULL);
    turns(&r);
    assert_int_equal(r.ended, 1);
    assert_int_equal(r.why.code, MO_ECLOSED);
    assert_int_equal(r.ends[0].closes, 1);
    rig_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_greeting),
        cmocka_unit_test(both_ways),
        cmocka_unit_test(the_window_holds),
        cmocka_unit_test(a_paused_owner),
        cmocka_unit_test(late_frames),
        cmocka_unit_test(forged_frames),
        cmocka_unit_test(a_flood),
        cmocka_unit_test(the_stream_ends),
        cmocka_unit_test(files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
