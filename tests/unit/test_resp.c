/* test_resp.c - replies of Redis: every row is fed whole and cut in two at
 * every byte, and written back as it is understood. */
#include "mo_test.h"

#include "codec/resp.h"

#define MAX ((size_t)4096)

static void show(struct mo_buf *b, const struct mo_resp *r)
{
    switch (r->kind) {
    case MO_RESP_NIL:
        (void)mo_buf_puts(b, "nil");
        break;
    case MO_RESP_STATUS:
        (void)mo_buf_printf(b, "+%.*s", (int)r->text.n, r->text.p);
        break;
    case MO_RESP_ERROR:
        (void)mo_buf_printf(b, "-%.*s", (int)r->text.n, r->text.p);
        break;
    case MO_RESP_NUMBER:
        (void)mo_buf_printf(b, "%lld", (long long)r->number);
        break;
    case MO_RESP_BULK:
        (void)mo_buf_printf(b, "'%.*s'", (int)r->text.n, r->text.p);
        break;
    case MO_RESP_ARRAY:
        (void)mo_buf_puts(b, "[");
        for (size_t i = 0; i < r->n; i++) {
            if (i)
                (void)mo_buf_puts(b, " ");
            show(b, &r->v[i]);
        }
        (void)mo_buf_puts(b, "]");
        break;
    }
}

/* All replies there are; stops at the first error. */
static int drain(struct mo_resp_in *in, struct mo_buf *b)
{
    const struct mo_resp *r;
    struct mo_arena a;
    struct mo_err e;
    int rc;

    mo_arena_init(&a, (size_t)64 * 1024 * 1024);
    for (rc = mo_resp_next(in, &a, &r, &e); rc == 1;
         rc = mo_resp_next(in, &a, &r, &e)) {
        if (b->len)
            (void)mo_buf_puts(b, ";");
        show(b, r);
        mo_arena_reset(&a);
    }
    mo_arena_fini(&a);
    return rc;
}

static const struct {
    const char *name, *in, *out;
    int rc;
} rows[] = {
    {"nothing", "", "", 0},
    {"a status", "+OK\r\n", "+OK", 0},
    {"an empty status", "+\r\n", "+", 0},
    {"an error", "-ERR no\r\n", "-ERR no", 0},
    {"a number", ":-12\r\n", "-12", 0},
    {"a text", "$5\r\na\r\nbc\r\n", "'a\r\nbc'", 0},
    {"an empty text", "$0\r\n\r\n", "''", 0},
    {"nil", "$-1\r\n", "nil", 0},
    {"nil array", "*-1\r\n", "nil", 0},
    {"an empty array", "*0\r\n", "[]", 0},
    {"nested", "*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n+x\r\n", "[1 ['a' []] +x]",
     0},
    {"two replies", "+A\r\n:7\r\n", "+A;7", 0},
    {"half of the second", "+A\r\n$3\r\nab", "+A", 0},
    {"depth 8", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
     "[[[[[[[[1]]]]]]]]", 0},
    {"depth 9", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
     "", MO_EPROTO},
    {"RESP 3", "%1\r\n", "", MO_EPROTO},
    {"no type", "hello\r\n", "", MO_EPROTO},
    {"no digits", ":\r\n", "", MO_EPROTO},
    {"digits and more", ":1x\r\n", "", MO_EPROTO},
    {"a lonely CR", "+a\rb\r\n", "", MO_EPROTO},
    {"a text that is longer", "$1\r\nab\r\n", "", MO_EPROTO},
    {"a negative length", "$-2\r\n", "", MO_EPROTO},
    {"a length beyond numbers", "$99999999999999999999\r\n", "", MO_EPROTO},
    {"a length beyond the limit", "$999999999\r\n", "", MO_ETOOBIG},
    {"too many values", "*1048577\r\n", "", MO_EPROTO},
    {"too many in two", "*1048574\r\n*9\r\n", "", MO_EPROTO},
    {"HTTP", "HTTP/1.1 400 Bad Request\r\n", "", MO_EPROTO},
};

static void run_row(size_t i, size_t cut)
{
    size_t n = strlen(rows[i].in);
    struct mo_resp_in in;
    struct mo_buf out;
    int rc;

    mo_resp_init(&in, MAX);
    mo_buf_init(&out, MAX);
    rc = mo_resp_feed(&in, rows[i].in, cut);
    if (rc == 0)
        rc = drain(&in, &out);
    if (rc == 0)
        rc = mo_resp_feed(&in, rows[i].in + cut, n - cut);
    if (rc == 0)
        rc = drain(&in, &out);
    check_row(rows[i].name, rc == rows[i].rc);
    if (rc < 0) /* and it stays so */
        check_row(rows[i].name, mo_resp_feed(&in, "+A\r\n", 4) == rc);
    check_row(rows[i].name, strcmp(mo_buf_cstr(&out), rows[i].out) == 0);
    mo_buf_fini(&out);
    mo_resp_fini(&in);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        for (size_t cut = 0; cut <= strlen(rows[i].in); cut++)
            run_row(i, cut);
    }
}

static void test_endless(void **state)
{
    struct mo_resp_in in;
    const struct mo_resp *r;
    struct mo_arena a;
    struct mo_err e;
    char line[1024];
    int rc = 0;

    (void)state;
    memset(line, 'x', sizeof(line));
    line[0] = '+';
    mo_arena_init(&a, MAX);
    mo_resp_init(&in, MO_RESP_LINE_MAX * 4);
    for (int i = 0; i < 64 && rc == 0; i++) {
        rc = mo_resp_feed(&in, line, sizeof(line));
        if (rc == 0)
            rc = mo_resp_next(&in, &a, &r, &e);
    }
    assert_int_equal(rc, MO_EPROTO);
    mo_resp_fini(&in);
    mo_arena_fini(&a);
}

static void test_request(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    (void)mo_resp_put_head(&b, 3);
    (void)mo_resp_put(&b, MO_SPAN("SET"));
    (void)mo_resp_put(&b, MO_SPAN(""));
    (void)mo_resp_put_u64(&b, UINT64_MAX);
    assert_string_equal(mo_buf_cstr(&b), "*3\r\n$3\r\nSET\r\n$0\r\n\r\n"
                                         "$20\r\n18446744073709551615\r\n");
    mo_buf_fini(&b);
}

static void test_word(void **state)
{
    struct mo_resp r = {.kind = MO_RESP_ERROR, .text = MO_SPAN("OOM no room")};

    (void)state;
    assert_true(mo_span_is(mo_resp_word(&r), "OOM"));
    r.text = MO_SPAN("ERR");
    assert_true(mo_span_is(mo_resp_word(&r), "ERR"));
    r.kind = MO_RESP_STATUS;
    assert_true(mo_span_is(mo_resp_word(&r), ""));
}

static void suffer(void *ctx)
{
    const struct mo_span reply = MO_SPAN("*2\r\n$1\r\na\r\n*1\r\n:1\r\n");
    struct mo_resp_in in;
    struct mo_buf out;

    (void)ctx;
    mo_resp_init(&in, MAX);
    mo_buf_init(&out, MAX);
    if (mo_resp_feed(&in, reply.p, reply.n) == 0)
        (void)drain(&in, &out);
    mo_buf_fini(&out);
    mo_resp_fini(&in);
}

static void test_torture(void **state)
{
    (void)state;
    torture(suffer, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_endless),
        cmocka_unit_test(test_request), cmocka_unit_test(test_word),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
