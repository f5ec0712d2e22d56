#include "mo_test.h"

#include "codec/http/sio.h"

/* --- good packets -------------------------------------------------------- */

static void test_decode(void **state)
{
    static const struct {
        const char *in;
        enum mo_sio_type type;
        const char *nsp;
        int64_t id; /* -1: none */
        const char *data, *name;
    } cases[] = {
        {"0", MO_SIO_CONNECT, "/", -1, "", ""},
        {"0{\"token\":\"x\"}", MO_SIO_CONNECT, "/", -1, "{\"token\":\"x\"}",
         ""},
        {"0/admin", MO_SIO_CONNECT, "/admin", -1, "", ""},
        {"0/admin,", MO_SIO_CONNECT, "/admin", -1, "", ""},
        {"0/,", MO_SIO_CONNECT, "/", -1, "", ""},
        {"0/admin,{}", MO_SIO_CONNECT, "/admin", -1, "{}", ""},
        {"1", MO_SIO_DISCONNECT, "/", -1, "", ""},
        {"1/a.b-c_d~e%20/f,", MO_SIO_DISCONNECT, "/a.b-c_d~e%20/f", -1, "", ""},
        {"2[\"x\"]", MO_SIO_EVENT, "/", -1, "[\"x\"]", "\"x\""},
        {"2[\"\"]", MO_SIO_EVENT, "/", -1, "[\"\"]", "\"\""},
        {"2/nsp,12[\"x\"]", MO_SIO_EVENT, "/nsp", 12, "[\"x\"]", "\"x\""},
        {"20[\"x\",{\"a\":[1,2]}]", MO_SIO_EVENT, "/", 0,
         "[\"x\",{\"a\":[1,2]}]", "\"x\""},
        {"2007[\"x\"]", MO_SIO_EVENT, "/", 7, "[\"x\"]", "\"x\""},
        {"29007199254740991[\"x\"]", MO_SIO_EVENT, "/", 9007199254740991,
         "[\"x\"]", "\"x\""},
        {"2[ \"x\" , 1 ] ", MO_SIO_EVENT, "/", -1, "[ \"x\" , 1 ]", "\"x\""},
        {"2[\"a,b\",\"/c,\"]", MO_SIO_EVENT, "/", -1, "[\"a,b\",\"/c,\"]",
         "\"a,b\""},
        {"312[]", MO_SIO_ACK, "/", 12, "[]", ""},
        {"3/n,0[null,\"ok\"]", MO_SIO_ACK, "/n", 0, "[null,\"ok\"]", ""},
        {"4{\"message\":\"no\"}", MO_SIO_CONNECT_ERROR, "/", -1,
         "{\"message\":\"no\"}", ""},
        {"4\"no\"", MO_SIO_CONNECT_ERROR, "/", -1, "\"no\"", ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        struct mo_err e = {0};
        struct mo_sio p;
        int rc = mo_sio_decode(mo_span_cstr(cases[i].in), &p, &e);

        check_row(cases[i].in, rc == 0 && e.code == 0);
        check_row(cases[i].in, p.type == cases[i].type);
        check_row(cases[i].in, mo_span_is(p.nsp, cases[i].nsp));
        check_row(cases[i].in, p.has_id == (cases[i].id >= 0));
        check_row(cases[i].in, !p.has_id || p.id == (uint64_t)cases[i].id);
        check_row(cases[i].in, mo_span_is(mo_json_text(p.data), cases[i].data));
        check_row(cases[i].in, mo_span_is(mo_json_text(p.name), cases[i].name));
    }
}

/* --- bad packets --------------------------------------------------------- */

static void test_refused(void **state)
{
    static const char *const bad[] = {
        "",
        /* types */
        "7",
        "9",
        "9[\"x\"]",
        "/",
        ":",
        " 2[\"x\"]",
        "-1",
        "\xff",
        /* data that does not fit the type */
        "0[]",
        "0\"x\"",
        "0null",
        "0{",
        "0{}x",
        "1{}",
        "1[]",
        "1null",
        "2",
        "2[]",
        "2{}",
        "2\"x\"",
        "2[1]",
        "2[null]",
        "2[[\"x\"]]",
        "2[\"x\"",
        "2[\"x\"]]",
        "2 [\"x\"]",
        "2\n[\"x\"]",
        "2[\"x\"]2[\"y\"]",
        "2[\"\xff\"]",
        "3",
        "31",
        "31{}",
        "4",
        "4[]",
        "4{} x",
        /* names that are the machinery's own */
        "2[\"connect\"]",
        "2[\"connect_error\"]",
        "2[\"disconnect\"]",
        "2[\"disconnecting\"]",
        "2[\"newListener\"]",
        "2[\"removeListener\"]",
        "2[\"\\u0063onnect\"]",
        /* ids */
        "3[]",
        "01{}",
        "01",
        "11",
        "41{}",
        "29007199254740992[\"x\"]",
        "218446744073709551616[\"x\"]",
        "218446744073709551617[\"x\"]",
        "299999999999999999999999999999999999999[\"x\"]",
        "2-1[\"x\"]",
        "2+1[\"x\"]",
        "21.5[\"x\"]",
        "21e3[\"x\"]",
        "20x1[\"x\"]",
        "3 12[]",
        "21 2[\"x\"]",
        /* namespaces */
        "0/a b",
        "0/a?token=x",
        "0/a?token=x,{}",
        "0/a#b",
        "0/\xc3\xa9",
        "0/a\n",
        "0/a\"b",
        "0/a{}",
        "0/a\\b",
        "2/nsp[\"x\"]",
        "2/nsp[\"x\",1]",
        "2/nsp12[\"x\"]",
        "2nsp,[\"x\"]",
        "2,[\"x\"]",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        struct mo_err e = {0};
        struct mo_sio p;

        check_row(bad[i],
                  mo_sio_decode(mo_span_cstr(bad[i]), &p, &e) == MO_EPROTO);
        check_row(bad[i], e.code == MO_EPROTO && e.msg[0]);
    }
}

/* The receiver refuses binary packets: only their type is read. */
static void test_binary(void **state)
{
    static const char *const cases[] = {
        "51-[\"a\",{\"_placeholder\":true,\"num\":0}]",
        "52-/n,7[\"a\"]",
        "5",
        "5x",
        "61-3[{\"_placeholder\":true,\"num\":0}]",
        "6\xff",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        struct mo_sio p;

        check_row(cases[i],
                  mo_sio_decode(mo_span_cstr(cases[i]), &p, NULL) == 0);
        check_row(cases[i], p.type == (cases[i][0] == '5' ? MO_SIO_BINARY_EVENT
                                                          : MO_SIO_BINARY_ACK));
        check_row(cases[i], mo_span_is(p.nsp, "/") && !p.has_id);
        check_row(cases[i], !p.data.p && !p.name.p);
    }
}

static int decode_nested(const char *head, size_t depth)
{
    struct mo_buf b;
    struct mo_sio p;
    int rc;

    mo_buf_init(&b, 10000);
    mo_buf_puts(&b, head);
    for (size_t i = 0; i < depth; i++)
        mo_buf_puts(&b, i ? "[" : "[\"x\",");
    mo_buf_puts(&b, "1");
    for (size_t i = 0; i < depth; i++)
        mo_buf_puts(&b, "]");
    rc = mo_sio_decode(mo_buf_view(&b), &p, NULL);
    mo_buf_fini(&b);
    return rc;
}

static void test_depth(void **state)
{
    (void)state;
    assert_int_equal(decode_nested("2", MO_SIO_DEPTH_MAX), 0);
    assert_int_equal(decode_nested("2", MO_SIO_DEPTH_MAX + 1), MO_EPROTO);
}

static void test_nsp_limit(void **state)
{
    char text[MO_SIO_NSP_MAX + 10];
    struct mo_sio p;

    (void)state;
    memset(text, 'a', sizeof(text));
    memcpy(text, "0/", 2);
    assert_int_equal(mo_sio_decode(mo_span(text, MO_SIO_NSP_MAX + 1), &p, NULL),
                     0);
    assert_int_equal(p.nsp.n, MO_SIO_NSP_MAX);
    assert_int_equal(mo_sio_decode(mo_span(text, MO_SIO_NSP_MAX + 2), &p, NULL),
                     MO_EPROTO);
}

/* Every packet cut short, from a block of its exact size: refused or a whole
 * packet itself, and never a byte read too far. */
static void test_cut_short(void **state)
{
    static const char *const full[] = {
        "2/nsp,12[\"x\",\"\\u00e9\",{\"a\":-1.5e3}]",
        "0/admin,{\"token\":\"x\"}",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(full); i++) {
        size_t len = strlen(full[i]);

        for (size_t n = 0; n <= len; n++) {
            char *copy = test_malloc(n ? n : 1);
            struct mo_sio p;
            int rc;

            memcpy(copy, full[i], n);
            rc = mo_sio_decode(mo_span(copy, n), &p, NULL);
            check_row(full[i], rc == 0 || rc == MO_EPROTO);
            check_row(full[i], n < len || rc == 0);
            check_row(full[i], full[i][0] == '0' || n == len || rc < 0);
            test_free(copy);
        }
    }
}

/* --- writing ------------------------------------------------------------- */

static void test_put(void **state)
{
    struct mo_span none = {0};
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1000);
    mo_sio_put_head(&b, MO_SIO_CONNECT, MO_SPAN("/"), -1);
    mo_buf_puts(&b, "{\"sid\":\"x\"}\n");
    mo_sio_put_head(&b, MO_SIO_DISCONNECT, MO_SPAN("/n"), -1);
    mo_buf_putc(&b, '\n');
    mo_sio_put_event(&b, none, -1, MO_SPAN("say"), none);
    mo_buf_putc(&b, '\n');
    mo_sio_put_event(&b, MO_SPAN("/n"), 12, MO_SPAN("a\"b"),
                     MO_SPAN("1,{\"x\":2}"));
    mo_buf_putc(&b, '\n');
    mo_sio_put_ack(&b, none, 0, none);
    mo_buf_putc(&b, '\n');
    mo_sio_put_ack(&b, MO_SPAN("/n"), 9007199254740991, MO_SPAN("null,1"));
    assert_string_equal(mo_buf_cstr(&b), "0{\"sid\":\"x\"}\n"
                                         "1/n,\n"
                                         "2[\"say\"]\n"
                                         "2/n,12[\"a\\\"b\",1,{\"x\":2}]\n"
                                         "3"
                                         "0[]\n"
                                         "3/n,9007199254740991[null,1]");
    mo_buf_fini(&b);
}

static void starve(void *ctx)
{
    struct mo_sio p;
    struct mo_buf b;
    int rc;

    (void)ctx;
    mo_buf_init(&b, 1000);
    rc = mo_sio_decode(MO_SPAN("2[\"\\u0063onnected\",1]"), &p, NULL);
    assert_int_equal(rc, 0); /* decoding allocates nothing */
    rc = mo_sio_put_event(&b, MO_SPAN("/n"), 1, MO_SPAN("x"), MO_SPAN("1"));
    assert_true(rc == 0 || rc == MO_ENOMEM);
    rc = mo_sio_put_ack(&b, MO_SPAN("/n"), 1, MO_SPAN("1"));
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
        cmocka_unit_test(test_decode),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_binary),    cmocka_unit_test(test_depth),
        cmocka_unit_test(test_nsp_limit), cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_put),       cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests_name("sio", tests, NULL, NULL);
}
