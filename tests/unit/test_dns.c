/* Queries are read strictly; answers are what a resolver library takes. */
#include "codec/dns.h"

#include "mo_test.h"

#define HEAD(flags, qd, ar) "\x12\x34" flags "\x00" qd "\x00\x00\x00\x00\x00" ar
#define Q                   HEAD("\x01\x00", "\x01", "\x00")
#define Q_EDNS              HEAD("\x01\x00", "\x01", "\x01")
#define NAME                                                                   \
    "\x03"                                                                     \
    "aPi\x04"                                                                  \
    "tEst\x00"
#define A_IN "\x00\x01\x00\x01"
#define OPT  "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"

static void test_read(void **state)
{
    static const struct {
        const char *name;
        struct mo_span in;
        int rc;
    } rows[] = {
        {"plain", MO_SPAN(Q NAME A_IN), MO_DNS_NOERROR},
        {"with EDNS", MO_SPAN(Q_EDNS NAME A_IN OPT), MO_DNS_NOERROR},
        {"the root", MO_SPAN(Q "\x00" A_IN), MO_DNS_NOERROR},
        {"another class", MO_SPAN(Q NAME "\x00\x01\x00\x03"), MO_DNS_REFUSED},
        {"no bytes", MO_SPAN(""), MO_EPROTO},
        {"half a head", MO_SPAN("\x12\x34\x01\x00\x00"), MO_EPROTO},
        {"an answer", MO_SPAN(HEAD("\x81\x00", "\x01", "\x00") NAME A_IN),
         MO_EPROTO},
        {"another opcode", MO_SPAN(HEAD("\x28\x00", "\x01", "\x00") NAME A_IN),
         MO_DNS_NOTIMP},
        {"no question", MO_SPAN(HEAD("\x01\x00", "\x00", "\x00")),
         MO_DNS_FORMERR},
        {"two questions",
         MO_SPAN(HEAD("\x01\x00", "\x02", "\x00") NAME A_IN NAME A_IN),
         MO_DNS_FORMERR},
        {"a byte too many", MO_SPAN(Q NAME A_IN "x"), MO_DNS_FORMERR},
        {"a byte too few", MO_SPAN(Q NAME "\x00\x01\x00"), MO_DNS_FORMERR},
        {"a pointer", MO_SPAN(Q "\xc0\x0c" A_IN), MO_DNS_FORMERR},
        {"a name without end",
         MO_SPAN(Q "\x03"
                   "api"),
         MO_DNS_FORMERR},
        {"a label over the end",
         MO_SPAN(Q "\x3f"
                   "api"),
         MO_DNS_FORMERR},
        {"EDNS without OPT", MO_SPAN(Q_EDNS NAME A_IN), MO_DNS_FORMERR},
        {"OPT not counted", MO_SPAN(Q NAME A_IN OPT), MO_DNS_FORMERR},
        {"OPT cut", MO_SPAN(Q_EDNS NAME A_IN "\x00\x00\x29\x04\xd0"),
         MO_DNS_FORMERR},
        {"a record that is no OPT",
         MO_SPAN(Q_EDNS NAME A_IN
                 "\x00\x00\x01\x04\xd0\x00\x00\x00\x00\x00\x00"),
         MO_DNS_FORMERR},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_dns_query q;

        check_row(rows[i].name, mo_dns_read(rows[i].in, &q) == rows[i].rc);
    }
}

static void test_names(void **state)
{
    struct mo_dns_query q;
    char long_name[300] = Q;
    size_t n = sizeof(Q) - 1;

    (void)state;
    assert_int_equal(mo_dns_read(MO_SPAN(Q NAME A_IN), &q), 0);
    assert_string_equal(q.name, "api.test");
    assert_int_equal(q.id, 0x1234);
    assert_int_equal(q.type, MO_DNS_A);
    assert_true(q.recursion && !q.edns && !q.odd);
    assert_int_equal(q.question.n, sizeof(NAME A_IN) - 1);
    /* a dot inside a label is not a separator */
    assert_int_equal(mo_dns_read(MO_SPAN(Q "\x05"
                                           "a.b\x00"
                                           "c\x00" A_IN),
                                 &q),
                     0);
    assert_true(q.odd);
    /* 253 bytes of text are the most: 63.63.63.61 */
    for (int i = 0; i < 4; i++) {
        int len = i < 3 ? 63 : 61;

        long_name[n++] = (char)len;
        memset(long_name + n, 'a', (size_t)len);
        n += (size_t)len;
    }
    memcpy(long_name + n, "\x00" A_IN, 5);
    assert_int_equal(mo_dns_read(mo_span(long_name, n + 5), &q), 0);
    assert_int_equal(q.name_len, MO_DNS_NAME_MAX);
    long_name[n - 62] = 62;
    memcpy(long_name + n, "a\x00" A_IN, 6);
    assert_int_equal(mo_dns_read(mo_span(long_name, n + 6), &q),
                     MO_DNS_FORMERR);
}

static void check_answer(struct mo_span query, const struct mo_dns_answer *a,
                         struct mo_span want)
{
    mo_autobuf struct mo_buf b = {.max = MO_DNS_ANSWER_MAX};
    struct mo_dns_query q;

    (void)mo_dns_read(query, &q);
    mo_dns_write(&b, &q, a);
    assert_int_equal(b.len, want.n);
    assert_memory_equal(b.p, want.p, want.n);
}

static void test_write(void **state)
{
    struct mo_ip v4, v6;

    (void)state;
    assert_true(mo_ip_parse(MO_SPAN("198.18.0.7"), &v4));
    assert_true(mo_ip_parse(MO_SPAN("fd00::7"), &v6));
    check_answer(
        MO_SPAN(Q NAME A_IN), &(struct mo_dns_answer){.ip = &v4, .ttl = 60},
        MO_SPAN("\x12\x34\x85\x80\x00\x01\x00\x01\x00\x00\x00\x00" NAME A_IN
                "\xc0\x0c" A_IN "\x00\x00\x00\x3c\x00\x04"
                "\xc6\x12\x00\x07"));
    check_answer(
        MO_SPAN(Q_EDNS NAME "\x00\x1c\x00\x01" OPT),
        &(struct mo_dns_answer){.ip = &v6, .ttl = 0x10203},
        MO_SPAN("\x12\x34\x85\x80\x00\x01\x00\x01\x00\x00\x00\x01" NAME
                "\x00\x1c\x00\x01\xc0\x0c\x00\x1c\x00\x01\x00\x01\x02\x03\x00"
                "\x10\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
                "\x00\x07" OPT));
    check_answer(
        MO_SPAN(Q NAME A_IN), &(struct mo_dns_answer){.rcode = MO_DNS_NXDOMAIN},
        MO_SPAN("\x12\x34\x85\x83\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN));
    check_answer(
        MO_SPAN(Q NAME A_IN), &(struct mo_dns_answer){.rcode = MO_DNS_NOERROR},
        MO_SPAN("\x12\x34\x85\x80\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN));
    check_answer(
        MO_SPAN(Q NAME A_IN),
        &(struct mo_dns_answer){.rcode = MO_DNS_SERVFAIL, .ip = &v4},
        MO_SPAN("\x12\x34\x85\x82\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN));
    check_answer(
        MO_SPAN(Q NAME A_IN),
        &(struct mo_dns_answer){.ip = &v4, .truncated = true},
        MO_SPAN("\x12\x34\x87\x80\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN));
    check_answer(MO_SPAN(Q "\xc0"),
                 &(struct mo_dns_answer){.rcode = MO_DNS_FORMERR},
                 MO_SPAN("\x12\x34\x85\x81\x00\x00\x00\x00\x00\x00\x00\x00"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
