/* Refused attempts: the first is written at once, the others as counts, and no
 * attacker writes more than a few rows. */
#include "audit/audit_attempts.h"

#include "base/clock.h"
#include "mo_test.h"

#define MINUTE (60 * MO_S)

struct seen {
    unsigned rows;
    uint64_t attempts;
    struct mo_buf last;
};

static void on_row(void *ctx, const struct mo_audit_row *r)
{
    struct seen *s = ctx;

    s->rows++;
    s->attempts += r->count;
    mo_buf_reset(&s->last);
    mo_audit_row_put(&s->last, r);
}

static void attempt(struct mo_audit_attempts *t, struct seen *s,
                    const char *peer, const char *reason, uint64_t now)
{
    const struct mo_audit_row r = {.reason = reason,
                                   .via = "token",
                                   .peer = mo_span_cstr(peer),
                                   .path = MO_SPAN("/api/sessions")};

    mo_audit_attempts_add(t, &r, now, on_row, s);
}

static void test_same_entry(void **state)
{
    static const struct {
        const char *peer, *reason;
        unsigned rows; /* written for it, after one of 1.2.3.4:5, "a" */
    } rows[] = {
        {"1.2.3.4:5", "a", 0}, {"1.2.3.4:6", "a", 0}, {"1.2.3.4:5", "b", 1},
        {"1.2.3.5:5", "a", 1}, {"[::1]:5", "a", 1},   {"1.2.3.4", "a", 0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_audit_attempts t = {0};
        struct seen s = {.last.max = 4096};

        attempt(&t, &s, "1.2.3.4:5", "a", 1);
        assert_int_equal(s.rows, 1);
        assert_string_equal(mo_buf_cstr(&s.last),
                            "{\"kind\":\"access\",\"outcome\":\"refused\","
                            "\"reason\":\"a\",\"door\":\"token\",\"peer\":"
                            "\"1.2.3.4\",\"path\":\"/api/sessions\","
                            "\"count\":1}");
        attempt(&t, &s, rows[i].peer, rows[i].reason, 2);
        check_row(rows[i].peer, s.rows == 1 + rows[i].rows);
        mo_buf_fini(&s.last);
    }
}

/* Somebody who goes on for a day writes a few rows; every attempt counts. */
static void test_a_day(void **state)
{
    struct mo_audit_attempts t = {0};
    struct seen s = {.last.max = 4096};
    const unsigned minutes = 24 * 60, each = 100;

    (void)state;
    for (unsigned m = 0; m < minutes; m++) {
        for (unsigned k = 0; k < each; k++)
            attempt(&t, &s, "1.2.3.4:5", "a", m * MINUTE + k);
        assert_true(
            mo_audit_attempts_flush(&t, (m + 1) * MINUTE, false, on_row, &s));
        if (m == 0)
            assert_int_equal(s.rows, 2); /* after a minute: the first counts */
    }
    assert_true(s.rows < 32);
    assert_true(
        mo_audit_attempts_flush(&t, minutes * MINUTE, true, on_row, &s));
    assert_int_equal(s.attempts, (uint64_t)minutes * each);
    /* it stops, and is forgotten; the next one is written at once */
    assert_false(mo_audit_attempts_flush(&t, (minutes + 61) * MINUTE, false,
                                         on_row, &s));
    s.rows = 0;
    attempt(&t, &s, "1.2.3.4:5", "a", (minutes + 62) * MINUTE);
    assert_int_equal(s.rows, 1);
    mo_buf_fini(&s.last);
}

static void test_many_peers(void **state)
{
    struct mo_audit_attempts t = {0};
    struct seen s = {.last.max = 4096};
    char peer[32];

    (void)state;
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(peer, sizeof(peer), "127.0.%u.%u:1", i / 250, i % 250);
        attempt(&t, &s, peer, i % 2 ? "a" : "b", i);
    }
    assert_int_equal(s.rows, MO_AUDIT_ATTEMPTS_PEERS + 1);
    assert_non_null(strstr(mo_buf_cstr(&s.last), "\"peer\":\"others\""));
    (void)mo_audit_attempts_flush(&t, MINUTE + 1, true, on_row, &s);
    assert_int_equal(s.rows, MO_AUDIT_ATTEMPTS_PEERS + 2);
    assert_int_equal(s.attempts, 5000);
    assert_false(mo_audit_attempts_flush(&t, 4 * MINUTE, false, on_row, &s));
    mo_buf_fini(&s.last);
}

/* Texts of a peer are cut, and are one line of ASCII. */
static void test_text(void **state)
{
    struct mo_audit_attempts t = {0};
    struct seen s = {.last.max = 4096};
    char text[2000];
    struct mo_audit_row r = {.reason = "a", .peer = MO_SPAN("p")};
    struct mo_json_doc d;

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i % 256);
    r.origin = r.host = r.path = r.who = r.peer = mo_span(text, sizeof(text));
    mo_audit_attempts_add(&t, &r, 1, on_row, &s);
    assert_int_equal(mo_json_parse(mo_buf_view(&s.last), 0, &d, NULL), 0);
    assert_true(s.last.len < 1024);
    for (size_t i = 0; i < s.last.len; i++)
        assert_true(s.last.p[i] >= ' ' && s.last.p[i] <= '~');
    mo_buf_fini(&s.last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_entry),
        cmocka_unit_test(test_a_day),
        cmocka_unit_test(test_many_peers),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
