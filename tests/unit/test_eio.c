#include "mo_test.h"

#include "codec/http/eio.h"

/* --- one packet ---------------------------------------------------------- */

static void test_decode(void **state)
{
    static const struct {
        const char *in;
        int type; /* -1: refused */
        const char *data;
    } cases[] = {
        {"0{}", MO_EIO_OPEN, "{}"},
        {"1", MO_EIO_CLOSE, ""},
        {"2", MO_EIO_PING, ""},
        {"2probe", MO_EIO_PING, "probe"},
        {"3probe", MO_EIO_PONG, "probe"},
        {"42[\"a\"]", MO_EIO_MESSAGE, "2[\"a\"]"},
        {"4\x1e", MO_EIO_MESSAGE, "\x1e"}, /* no separator in a frame */
        {"5", MO_EIO_UPGRADE, ""},
        {"6", MO_EIO_NOOP, ""},
        {"", -1, ""},
        {"7", -1, ""},
        {"9", -1, ""},
        {"/", -1, ""},
        {":", -1, ""},
        {" 4", -1, ""},
        {"bAQID", -1, ""}, /* base64 is for polling */
        {"\xff", -1, ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        struct mo_eio p = {0};
        struct mo_err e = {0};
        int rc = mo_eio_decode(mo_span_cstr(cases[i].in), &p, &e);

        check_row(cases[i].in, rc == (cases[i].type < 0 ? MO_EPROTO : 0));
        check_row(cases[i].in, e.code == rc);
        if (rc < 0)
            continue;
        check_row(cases[i].in, (int)p.type == cases[i].type && !p.binary);
        check_row(cases[i].in, mo_span_is(p.data, cases[i].data));
    }
}

/* --- polling bodies ------------------------------------------------------ */

/* Trace: type and data of each packet, "b:" before a binary one, "!" on an
 * error. */
static void walk(struct mo_span body, struct mo_buf *t, int *rc)
{
    struct mo_eio p;
    unsigned n = 0;

    do {
        struct mo_err e = {0};

        *rc = mo_eio_next(&body, &n, &p, &e);
        assert_int_equal(*rc < 0 ? *rc : 0, e.code);
        if (*rc == 1) {
            mo_buf_printf(t, "(%s%u ", p.binary ? "b:" : "", p.type);
            mo_buf_span(t, p.data);
            mo_buf_putc(t, ')');
        }
    } while (*rc == 1);
    if (*rc < 0)
        mo_buf_putc(t, '!');
}

static void test_bodies(void **state)
{
    static const struct {
        const char *in, *trace;
    } cases[] = {
        {"4hello", "(4 hello)"},
        {"4hello\x1e"
         "2\x1e"
         "4world",
         "(4 hello)(2 )(4 world)"},
        {"bAQID", "(b:4 )"},
        {"4x\x1e"
         "baGk=",
         "(4 x)(b:4 )"},
        {"b", "(b:4 )"},
        {"1", "(1 )"},
        {"", "!"},
        {"\x1e", "!"},
        {"4a\x1e", "(4 a)!"},
        {"4a\x1e\x1e"
         "4b",
         "(4 a)!"},
        {"9", "!"},
        {"4a\x1e"
         "9\x1e"
         "4b",
         "(4 a)!"},
        {"baGkh", "(b:4 )"},
        {"baG", "(b:4 )"},
        {"ba\ngk=", "(b:4 )"},
        {"b*", "(b:4 )"},
        {"4caf\xc3\xa9", "(4 caf\xc3\xa9)"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        struct mo_buf t;
        int rc;

        mo_buf_init(&t, 1000);
        walk(mo_span_cstr(cases[i].in), &t, &rc);
        check_row(cases[i].in, strcmp(mo_buf_cstr(&t), cases[i].trace) == 0);
        mo_buf_fini(&t);
    }
}

static unsigned count_packets(struct mo_span body, int *rc)
{
    struct mo_eio p;
    unsigned n = 0;

    do {
        *rc = mo_eio_next(&body, &n, &p, NULL);
    } while (*rc == 1);
    return n;
}

/* A flood of the smallest packets stops at the limit. */
static void test_packet_limit(void **state)
{
    enum { MANY = 1000000 };
    char *body = test_malloc(MANY);
    int rc;

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        body[i] = i % 2 ? '\x1e' : '6';
    assert_int_equal(count_packets(mo_span(body, MANY - 1), &rc),
                     MO_EIO_PACKETS_MAX);
    assert_int_equal(rc, MO_EPROTO);
    assert_int_equal(
        count_packets(mo_span(body, MO_EIO_PACKETS_MAX * 2 - 1), &rc),
        MO_EIO_PACKETS_MAX);
    assert_int_equal(rc, 0);
    memset(body, '\x1e', MANY); /* a million empty ones */
    assert_int_equal(count_packets(mo_span(body, MANY), &rc), 1);
    assert_int_equal(rc, MO_EPROTO);
    test_free(body);
}

/* --- writing ------------------------------------------------------------- */

static void test_put(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1000);
    mo_eio_put_polling(&b, MO_EIO_MESSAGE, MO_SPAN("hello"));
    mo_eio_put_polling(&b, MO_EIO_PONG, MO_SPAN("probe"));
    mo_eio_put_polling(&b, MO_EIO_NOOP, mo_span(NULL, 0));
    assert_string_equal(mo_buf_cstr(&b), "4hello\x1e"
                                         "3probe\x1e"
                                         "6");
    mo_buf_fini(&b);
}

static void test_put_open(void **state)
{
    const struct mo_eio_open o = {
        .sid = MO_SPAN("lv_VI97HAXpY6yYWAAAC"),
        .can_upgrade = true,
        .ping_interval_ms = 25000,
        .ping_timeout_ms = 20000,
        .max_payload = 1000000,
    };
    struct mo_eio_open no = o;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1000);
    mo_eio_put_open(&b, &o);
    assert_string_equal(mo_buf_cstr(&b),
                        "{\"sid\":\"lv_VI97HAXpY6yYWAAAC\",\"upgrades\":"
                        "[\"websocket\"],\"pingInterval\":25000,"
                        "\"pingTimeout\":20000,\"maxPayload\":1000000}");
    no.can_upgrade = false;
    mo_buf_reset(&b);
    mo_eio_put_open(&b, &no);
    assert_true(mo_span_search(mo_buf_view(&b), MO_SPAN("\"upgrades\":[],")) >
                0);
    mo_buf_fini(&b);
}

static void starve(void *ctx)
{
    const struct mo_eio_open o = {.sid = MO_SPAN("x")};
    struct mo_buf b;
    int rc;

    (void)ctx;
    mo_buf_init(&b, 1000);
    rc = mo_eio_put_polling(&b, MO_EIO_MESSAGE, MO_SPAN("hi"));
    assert_true(rc == 0 || rc == MO_ENOMEM);
    rc = mo_eio_put_open(&b, &o);
    assert_true(rc == 0 || rc == MO_ENOMEM);
    mo_buf_fini(&b);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    torture(starve, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_packet_limit),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_put_open),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests_name("eio", tests, NULL, NULL);
}
