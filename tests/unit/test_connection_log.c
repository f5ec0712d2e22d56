/* Which hosts boxes have talked to: lines are summed up, and bounded. */
#include "policy/connection_log.h"

#include <stdio.h>

#include "mo_test.h"

static struct mo_egress_row row(const char *name, unsigned port, bool allowed)
{
    return (struct mo_egress_row){.name = name,
                                  .address = "192.0.2.1",
                                  .port = port,
                                  .allowed = allowed,
                                  .rule = allowed ? "a rule" : "",
                                  .reason = "closed",
                                  .sent = 3,
                                  .received = 5};
}

static struct mo_json list(const struct mo_connection_log *l,
                           const char *server, const char *session,
                           struct mo_buf *b, struct mo_json_doc *doc)
{
    struct mo_jw w;

    mo_buf_reset(b);
    mo_jw_init(&w, b);
    mo_connection_log_put(l, server, session, &w);
    assert_int_equal(mo_buf_err(b), 0);
    assert_int_equal(mo_json_parse(mo_buf_view(b), 0, doc, NULL), 0);
    return mo_json_get(doc->root, "connections");
}

static uint64_t number(struct mo_json v, const char *key)
{
    uint64_t n = 0;

    assert_int_equal(mo_json_u64(mo_json_get(v, key), &n), 0);
    return n;
}

static void test_lines(void **state)
{
    struct mo_buf b = {.max = 1 << 20};
    struct mo_egress_row r = row("a.test", 443, true);
    struct mo_connection_log l;
    struct mo_json_doc doc;
    struct mo_json v;

    (void)state;
    mo_connection_log_init(&l);
    mo_connection_log_add(&l, NULL, "s1", &r);
    mo_connection_log_add(&l, NULL, "s1", &r);
    r.port = 80;
    mo_connection_log_add(&l, NULL, "s1", &r);
    r = row("", 443, false); /* an address */
    mo_connection_log_add(&l, NULL, "s1", &r);
    r.address = "";
    r.uncounted = 7; /* refusals without a row */
    mo_connection_log_add(&l, NULL, "s1", &r);
    v = list(&l, NULL, "s1", &b, &doc);
    assert_int_equal(mo_json_len(v), 3);
    assert_int_equal(number(doc.root, "more"), 7);
    assert_true(mo_json_str_eq(mo_json_get(mo_json_at(v, 0), "host"),
                               MO_SPAN("192.0.2.1")));
    v = mo_json_at(v, 2); /* the oldest */
    assert_int_equal(number(v, "count"), 2);
    assert_int_equal(number(v, "sent"), 6);
    assert_int_equal(number(v, "received"), 10);
    assert_true(number(v, "last") >= number(v, "first"));
    /* a server of the name of a session is another box */
    assert_int_equal(mo_json_len(list(&l, "s1", NULL, &b, &doc)), 0);
    mo_connection_log_forget(&l, "s1");
    mo_connection_log_forget(&l, "nobody");
    assert_int_equal(mo_json_len(list(&l, NULL, "s1", &b, &doc)), 0);
    mo_connection_log_fini(&l);
    mo_buf_fini(&b);
}

static void test_limits(void **state)
{
    struct mo_buf b = {.max = 1 << 20};
    struct mo_connection_log l;
    struct mo_egress_row r;
    struct mo_json_doc doc;
    struct mo_json v;
    char name[32];

    (void)state;
    mo_connection_log_init(&l);
    for (int i = 0; i < MO_CONNECTION_LOG_LINES + 10; i++) {
        (void)snprintf(name, sizeof(name), "h%d.test", i);
        r = row(name, 443, true);
        mo_connection_log_add(&l, "web", NULL, &r);
    }
    v = list(&l, "web", NULL, &b, &doc);
    assert_int_equal(mo_json_len(v), MO_CONNECTION_LOG_LINES);
    assert_int_equal(number(doc.root, "more"), 10);
    for (int i = 0; i < MO_CONNECTION_LOG_OWNERS; i++) {
        (void)snprintf(name, sizeof(name), "s%d", i);
        mo_connection_log_add(&l, NULL, name, &r);
    }
    assert_int_equal(l.map.len, MO_CONNECTION_LOG_OWNERS);
    assert_int_equal(mo_json_len(list(&l, "web", NULL, &b, &doc)), 0);
    assert_int_equal(mo_json_len(list(&l, NULL, "s0", &b, &doc)), 1);
    mo_connection_log_fini(&l);
    mo_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
