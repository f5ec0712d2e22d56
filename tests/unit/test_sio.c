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
        unsigned attachments;
        const char *data, *name;
    } cases[] = {
        {"0", MO_SIO_CONNECT, "/", -1, 0, "", ""},
        {"0{\"token\":\"x\"}", MO_SIO_CONNECT, "/", -1, 0, "{\"token\":\"x\"}",
         ""},
        {"0/admin", MO_SIO_CONNECT, "/admin", -1, 0, "", ""},
        {"0/admin,", MO_SIO_CONNECT, "/admin", -1, 0, "", ""},
        {"0/,", MO_SIO_CONNECT, "/", -1, 0, "", ""},
        {"0/admin,{}", MO_SIO_CONNECT, "/admin", -1, 0, "{}", ""},
        {"1", MO_SIO_DISCONNECT, "/", -1, 0, "", ""},
        {"1/a.b-c_d~e%20/f,", MO_SIO_DISCONNECT, "/a.b-c_d~e%20/f", -1, 0, "",
         ""},
        {"2[\"x\"]", MO_SIO_EVENT, "/", -1, 0, "[\"x\"]", "\"x\""},
        {"2[\"\"]", MO_SIO_EVENT, "/", -1, 0, "[\"\"]", "\"\""},
        {"2/nsp,12[\"x\"]", MO_SIO_EVENT, "/nsp", 12, 0, "[\"x\"]", "\"x\""},
        {"20[\"x\",{\"a\":[1,2]}]", MO_SIO_EVENT, "/", 0, 0,
         "[\"x\",{\"a\":[1,2]}]", "\"x\""},
        {"2007[\"x\"]", MO_SIO_EVENT, "/", 7, 0, "[\"x\"]", "\"x\""},
        {"29007199254740991[\"x\"]", MO_SIO_EVENT, "/", 9007199254740991, 0,
         "[\"x\"]", "\"x\""},
        {"2[ \"x\" , 1 ] ", MO_SIO_EVENT, "/", -1, 0, "[ \"x\" , 1 ]", "\"x\""},
        {"2[\"a,b\",\"/c,\"]", MO_SIO_EVENT, "/", -1, 0, "[\"a,b\",\"/c,\"]",
         "\"a,b\""},
        {"312[]", MO_SIO_ACK, "/", 12, 0, "[]", ""},
        {"3/n,0[null,\"ok\"]", MO_SIO_ACK, "/n", 0, 0, "[null,\"ok\"]", ""},
        {"4{\"message\":\"no\"}", MO_SIO_CONNECT_ERROR, "/", -1, 0,
         "{\"message\":\"no\"}", ""},
        {"4\"no\"", MO_SIO_CONNECT_ERROR, "/", -1, 0, "\"no\"", ""},
        {"51-[\"a\",{\"_placeholder\":true,\"num\":0}]", MO_SIO_BINARY_EVENT,
         "/", -1, 1, "[\"a\",{\"_placeholder\":true,\"num\":0}]", "\"a\""},
        {"52-/n,7[\"a\",{\"num\":1,\"_placeholder\":true},"
         "{\"_placeholder\":true,\"num\":0}]",
         MO_SIO_BINARY_EVENT, "/n", 7, 2,
         "[\"a\",{\"num\":1,\"_placeholder\":true},"
         "{\"_placeholder\":true,\"num\":0}]",
         "\"a\""},
        {"61-3[{\"_placeholder\":true,\"num\":0}]", MO_SIO_BINARY_ACK, "/", 3,
         1, "[{\"_placeholder\":true,\"num\":0}]", ""},
        {"564-[\"a\"]", MO_SIO_BINARY_EVENT, "/", -1, 64, "[\"a\"]", "\"a\""},
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
        check_row(cases[i].in, p.attachments == cases[i].attachments);
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
        "51-[\"connect\"]",
        /* ids */
        "3[]",
        "61-[]",
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
        /* attachments */
        "5",
        "51",
        "5-",
        "5-[\"a\"]",
        "50-[\"a\"]",
        "5[\"a\"]",
        "51[\"a\"]",
        "51 -[\"a\"]",
        "5 1-[\"a\"]",
        "5-1-[\"a\"]",
        "5+1-[\"a\"]",
        "51.0-[\"a\"]",
        "51e0-[\"a\"]",
        "5x-[\"a\"]",
        "565-[\"a\"]",
        "51000000000-[\"a\"]",
        "54294967297-[\"a\"]",
        "518446744073709551617-[\"a\"]",
        "51-",
        "51-{}",
        "51-[]",
        /* placeholders */
        "51-[\"a\",{\"_placeholder\":true,\"num\":1}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":1000000000}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":18446744073709551616}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":-1}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":0.5}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":\"0\"}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":null}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":[0]}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":{\"num\":0}}]",
        "51-[\"a\",{\"_placeholder\":true}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":0,\"num\":1}]",
        "51-[\"a\",{\"_placeholder\":false,\"_placeholder\":true}]",
        "51-[\"a\",{\"\\u005fplaceholder\":true,\"num\":1}]",
        "51-[\"a\",{\"_placeholder\" : true , \"n\\u0075m\" : 1 } ]",
        "51-[\"a\",{\"x\":{\"y\":[{\"_placeholder\":true,\"num\":7}]}}]",
        "51-[\"a\",{\"_placeholder\":true,\"x\":{\"num\":0}}]",
        "61-1[{\"_placeholder\":true,\"num\":1}]",
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

/* What only looks like a placeholder, and real ones in odd places. */
static void test_placeholders(void **state)
{
    static const char *const good[] = {
        "51-[\"a\",{\"_placeholder\":false,\"num\":9}]",
        "51-[\"a\",{\"_placeholder\":\"true\",\"num\":9}]",
        "51-[\"a\",{\"_placeholder\":1,\"num\":9}]",
        "51-[\"a\",{\"_placeholder\":[true],\"num\":9}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":9,\"_placeholder\":0}]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":9,\"num\":0}]",
        "51-[\"a\",\"_placeholder\",true,\"num\",9]",
        "51-[\"a\",{\"x\":\"_placeholder\",\"y\":true,\"num\":9}]",
        "51-[\"_placeholder\",{\"a\":\"}\\\"{\",\"num\":5}]",
        "51-[\"a\",{\"n\":1,\"_placeholder\":true,\"num\":0,\"z\":[{}]}]",
        "51-[\"a\",[[{\"_placeholder\":true,\"num\":0}],{\"num\":3}]]",
        "51-[\"a\",{\"_placeholder\":true,\"num\":0},{\"num\":4}]",
        "51-[\"a\",{},[],{\"a\":{}},\"\",-1e5,null]",
        "51-[\"a\",{\"_placeholder\" : true , \"num\" : 0 } ]",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(good); i++) {
        struct mo_sio p;

        check_row(good[i], mo_sio_decode(mo_span_cstr(good[i]), &p, NULL) == 0);
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
    assert_int_equal(decode_nested("51-", MO_SIO_DEPTH_MAX), 0);
    assert_int_equal(decode_nested("2", MO_SIO_DEPTH_MAX + 1), MO_EPROTO);
    assert_int_equal(decode_nested("51-", MO_SIO_DEPTH_MAX + 1), MO_EPROTO);
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
        "52-/n,7[\"a\",{\"num\":1,\"_placeholder\":true}]",
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
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_placeholders),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_nsp_limit),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests_name("sio", tests, NULL, NULL);
}
