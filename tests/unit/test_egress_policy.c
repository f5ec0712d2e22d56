/* Which entries are accepted, what they allow, and the names of a box. */
#include "codec/dns.h"
#include "egress/name_server.h"
#include "mo_test.h"

static void test_entries(void **state)
{
    static const struct {
        const char *text, *wrong; /* wrong: part of the reason, NULL: good */
    } rows[] = {
        {"api.github.com", NULL},
        {"API.GitHub.com.", NULL},
        {"api.github.com:443", NULL},
        {"*.example.org:8443", NULL},
        {"**.example.org", NULL},
        {"**", NULL},
        {"**:443", NULL},
        {"db", NULL},
        {"my_service.local", NULL},
        {"xn--bcher-kva.example", NULL},
        {"10.0.0.5:5432", NULL},
        {"127.0.0.1:8080", NULL},
        {"93.184.216.34", NULL},
        {"[2001:db8::1]:22", NULL},
        {"[::1]", NULL},
        {"api.test=127.0.0.1:8443", NULL},
        {"api.test=[::1]:8443", NULL},
        {"1password.com", NULL},
        {"1.2.3.4.example", NULL},
        {"", "1 to"},
        {"*", "only at the start"},
        {"a.*.org", "only at the start"},
        {"*a.org", "only at the start"},
        {"*.*.org", "only at the start"},
        {"*.", "not the name"},
        {"a..b", "not the name"},
        {".a", "not the name"},
        {"-a.b", "not the name"},
        {"a-.b", "not the name"},
        {"a b", "not the name"},
        {"127.1", "not the name"},
        {"2130706433", "not the name"},
        {"0x7f000001", "not the name"},
        {"127.0.0.0x1", "not the name"},
        {"010.0.0.1", "not the name"},
        {"1.2.3.4.5", "not the name"},
        {"1.2.3.4.", "not the name"},
        {"b\xc3\xbc"
         "cher.example",
         "ASCII form"},
        {"https://a.org", "not an URL"},
        {"a.org/path", "not an URL"},
        {"10.0.0.0/8", "not an URL"},
        {"a.org:", "a port is"},
        {"a.org:0", "a port is"},
        {"a.org:080", "a port is"},
        {"a.org:65536", "a port is"},
        {"a.org:https", "a port is"},
        {"a.org:53", "port 53"},
        {"10.0.0.5:53", "port 53"},
        {"2001:db8::1", "[ADDRESS]"},
        {"[2001:db8::1", "write an address"},
        {"[2001:db8::1]22", "write an address"},
        {"[10.0.0.5]:22", "write an address"},
        {"[fe80::1%eth0]:22", "write an address"},
        {"localhost", "127.0.0.1:PORT"},
        {"LOCALHOST.:80", "127.0.0.1:PORT"},
        {"0.0.0.0:80", "no host"},
        {"0.1.2.3:80", "no host"},
        {"[::]:80", "no host"},
        {"224.0.0.1:80", "one host"},
        {"255.255.255.255:80", "one host"},
        {"[ff02::1]:80", "one host"},
        {"[fe80::1]:80", "one link"},
        {"198.18.0.1:80", "for names"},
        {"198.19.255.255:80", "for names"},
        {"[fd6d:6f2d:626f:7800::1]:80", "for names"},
        {"[64:ff9b::a00:1]:80", "IPv4 address"},
        {"[2002:a00:1::]:80", "IPv4 address"},
        {"[::ffff:10.0.0.1]:80", "write an address"},
        {"*.test=127.0.0.1:80", "only one host"},
        {"api.test=other.test", "write an address"},
        {"api.test=", "write an address"},
        {"=127.0.0.1", "not the name"},
        {"10.0.0.5=127.0.0.1", "not the name"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_egress_rule r;
        struct mo_err e = {0};
        int rc = mo_egress_rule_read(mo_span_cstr(rows[i].text), &r, &e);

        check_row(rows[i].text, rc == (rows[i].wrong ? MO_EINVAL : 0));
        if (rows[i].wrong && !strstr(e.msg, rows[i].wrong))
            fail_msg("row '%s': %s", rows[i].text, e.msg);
    }
}

static struct mo_egress_policy *read_policy(const char *json)
{
    struct mo_egress_policy *p = NULL;
    struct mo_err e;

    if (mo_egress_policy_read(mo_span_cstr(json), &p, &e) < 0)
        fail_msg("%s: %s", json, e.msg);
    return p;
}

static void test_json(void **state)
{
    static const struct {
        const char *json, *wrong;
    } rows[] = {
        {"\"none\"", NULL},
        {"{}", NULL},
        {"{\"allow\":[]}", NULL},
        {"{\"allow\":[\"a.org\"],\"maxConnections\":1,\"maxMegabytes\":1,"
         "\"idleSeconds\":1,\"maxSeconds\":1}",
         NULL},
        {"\"all\"", "must be \"none\""},
        {"true", "must be \"none\""},
        {"{\"allow\":\"a.org\"}", "must be a list"},
        {"{\"allow\":[1]}", "must be a text"},
        {"{\"allow\":[\"a b\"]}", "not the name"},
        {"{\"allow\":[],\"allow\":[]}", "twice"},
        {"{\"allwo\":[]}", "unknown key \"allwo\""},
        {"{\"maxConnections\":0}", "from 1 to"},
        {"{\"maxConnections\":4097}", "from 1 to"},
        {"{\"maxMegabytes\":1.5}", "from 1 to"},
        {"{\"idleSeconds\":\"1\"}", "from 1 to"},
        {"{\"ask\":true}", NULL},
        {"{\"ask\":1}", "must be true or false"},
#define INJECT(v) "{\"allow\":[\"a.org\",\"*.b.org:444\"],\"inject\":" v "}"
        {INJECT("{}"), NULL},
        {INJECT("{\"a.org\":{\"Authorization\":\"x\"}}"), NULL},
        {INJECT("{\"A.org.:443\":{\"x-key\":\"${secret:y}\"}}"), NULL},
        {INJECT("{\"c.b.org\":{\"A\":\"x\"}}"), NULL},
        {INJECT("{\"c.b.org:443\":{\"A\":\"x\"}}"), "not allowed by an entry"},
        {INJECT("{\"a.org:22\":{\"A\":\"x\"}}"), "not allowed by an entry"},
        {INJECT("{\"d.org\":{\"A\":\"x\"}}"), "not allowed by an entry"},
        {INJECT("{\"*.b.org\":{\"A\":\"x\"}}"), "without '*'"},
        {INJECT("{\"1.2.3.4\":{\"A\":\"x\"}}"), "without '*'"},
        {INJECT("{\"a.org:0\":{\"A\":\"x\"}}"), "a port is"},
        {INJECT("{\"a.org\":{\"A\":\"x\"},\"A.ORG\":{\"B\":\"x\"}}"), "twice"},
        {INJECT("{\"a.org\":{\"A\":\"x\",\"a\":\"y\"}}"), "twice"},
        {INJECT("{\"a.org\":{\"A\":1}}"), "must be a text"},
        {INJECT("{\"a.org\":{}}"), "must be an object"},
        {INJECT("{\"a.org\":[]}"), "must be an object"},
        {INJECT("[]"), "inject must be an object"},
        {INJECT("{\"a.org\":{\"A b\":\"x\"}}"), "not a header"},
        {INJECT("{\"a.org\":{\"\":\"x\"}}"), "not a header"},
        {INJECT("{\"a.org\":{\"A\\r\\nB\":\"x\"}}"), "not a header"},
        {INJECT("{\"a.org\":{\"Host\":\"x\"}}"), "not a header"},
        {INJECT("{\"a.org\":{\"content-LENGTH\":\"1\"}}"), "not a header"},
        {INJECT("{\"a.org\":{\"Transfer-Encoding\":\"x\"}}"), "not a header"},
        {"{", "line 1"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_egress_policy *p = NULL;
        struct mo_err e = {0};
        int rc = mo_egress_policy_read(mo_span_cstr(rows[i].json), &p, &e);

        check_row(rows[i].json, (rc < 0) == (rows[i].wrong != NULL));
        if (rows[i].wrong && !strstr(e.msg, rows[i].wrong))
            fail_msg("row '%s': %s", rows[i].json, e.msg);
        mo_egress_policy_free(p);
    }
}

static void test_inject(void **state)
{
    struct mo_egress_policy *p = read_policy(
        "{\"inject\":{\"a.org\":{\"A\":\"every\"},\"a.org:8443\":{\"A\":"
        "\"one\"},\"b.org:443\":{\"A\":\"b\"}},"
        "\"allow\":[\"**\",\"**:8443\"]}");

    (void)state;
    assert_string_equal(
        mo_egress_find_inject(p, "a.org", 443)->headers[0].value, "every");
    assert_string_equal(
        mo_egress_find_inject(p, "a.org", 8443)->headers[0].value, "one");
    assert_non_null(mo_egress_find_inject(p, "b.org", 443));
    assert_null(mo_egress_find_inject(p, "b.org", 80));
    assert_null(mo_egress_find_inject(p, "x.a.org", 443));
    assert_null(mo_egress_find_inject(p, "c.org", 443));
    mo_egress_policy_free(p);
}

static void test_ports(void **state)
{
    static const uint16_t want[] = {80, 443, 5432, 8443};
    struct mo_egress_policy *p =
        read_policy("{\"allow\":[\"b.org:8443\",\"a.org\",\"10.0.0.5:5432\","
                    "\"c.org:443\"]}");
    mo_autobuf struct mo_buf many = {.max = 8192};
    struct mo_egress_policy *none = NULL;

    (void)state;
    assert_int_equal(p->nports, MO_COUNT(want));
    assert_memory_equal(p->ports, want, sizeof(want));
    mo_egress_policy_free(p);
    p = read_policy("{\"allow\":[\"a.org:8443\"],\"ask\":true}");
    assert_int_equal(p->nports, 3); /* 80 and 443 */
    assert_true(p->ask && !mo_egress_find_name(p, "b.org", 443));
    mo_egress_policy_free(p);
    mo_buf_puts(&many, "{\"allow\":[\"a.org:1000\"");
    for (int i = 1; i <= MO_EGRESS_PORTS_MAX; i++)
        mo_buf_printf(&many, ",\"a.org:%d\"", 1000 + i);
    mo_buf_puts(&many, "]}");
    assert_int_equal(mo_egress_policy_read(mo_buf_view(&many), &none, NULL),
                     MO_EINVAL);
}

static void test_names(void **state)
{
    static const struct {
        const char *name;
        uint16_t port;
        const char *rule; /* NULL: not allowed */
    } rows[] = {
        {"a.org", 443, "A.org"},
        {"a.org", 80, "A.org"},
        {"a.org", 0, "A.org"},
        {"a.org", 22, NULL},
        {"b.a.org", 443, NULL},
        {"xa.org", 443, NULL},
        {"one.org", 443, NULL},
        {"x.one.org", 443, "*.one.org"},
        {"y.x.one.org", 443, NULL},
        {"xone.org", 443, NULL},
        {".one.org", 443, NULL},
        {"deep.org", 8443, NULL},
        {"x.deep.org", 8443, "**.deep.org:8443"},
        {"y.x.deep.org", 8443, "**.deep.org:8443"},
        {"y.x.deep.org", 443, NULL},
        {"ydeep.org", 8443, NULL},
        {"f.deep.org", 8443, "f.deep.org=10.0.0.1:8443"},
        {"f.deep.org", 0, "f.deep.org=10.0.0.1:8443"},
        {"10.0.0.5", 5432, NULL},
    };
    struct mo_egress_policy *p =
        read_policy("{\"allow\":[\"A.org\",\"*.one.org\",\"**.deep.org:8443\","
                    "\"f.deep.org=10.0.0.1:8443\",\"10.0.0.5:5432\"]}");
    struct mo_egress_policy *every = read_policy("{\"allow\":[\"**\"]}");

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct mo_egress_rule *r =
            mo_egress_find_name(p, rows[i].name, rows[i].port);

        check_row(rows[i].name, (r != NULL) == (rows[i].rule != NULL));
        check_row(rows[i].name, !r || strcmp(r->text, rows[i].rule) == 0);
    }
    assert_non_null(mo_egress_find_name(every, "x.y.z", 443));
    assert_null(mo_egress_find_name(every, "x.y.z", 22));
    mo_egress_policy_free(p);
    mo_egress_policy_free(every);
}

static void test_addresses(void **state)
{
    static const struct {
        const char *ip;
        bool named, by_name, fixed;
    } rows[] = {
        {"10.0.0.5", true, false, false},
        {"10.0.0.6", false, false, false},
        {"127.0.0.1", false, false, true},
        {"169.254.169.254", false, false, false},
        {"100.64.0.1", false, false, false},
        {"224.0.0.1", false, false, false},
        {"192.0.2.1", false, false, false},
        {"8.8.8.8", false, true, false},
        {"::ffff:8.8.8.8", false, true, false},
        {"::1", false, false, false},
        {"fe80::1", false, false, false},
        {"fd00:ec2::254", false, false, false},
        {"64:ff9b::a00:5", false, false, false},
        {"2002:a00:5::", false, false, false},
        {"2001:db8::1", false, false, false},
        {"2606:4700::1111", false, true, false},
    };
    struct mo_egress_policy *p = read_policy(
        "{\"allow\":[\"10.0.0.5:5432\",\"a.org\",\"t.org=127.0.0.1:443\"]}");

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_ip ip;

        assert_true(mo_ip_parse(mo_span_cstr(rows[i].ip), &ip));
        check_row(rows[i].ip, (mo_egress_find_address(p, &ip, 5432) != NULL) ==
                                  rows[i].named);
        assert_null(mo_egress_find_address(p, &ip, 443));
        check_row(rows[i].ip,
                  mo_egress_may_reach(&p->rules[1], &ip) == rows[i].by_name);
        check_row(rows[i].ip,
                  mo_egress_may_reach(&p->rules[2], &ip) == rows[i].fixed);
    }
    mo_egress_policy_free(p);
}

static void test_table(void **state)
{
    struct mo_egress_names t, again;
    struct mo_egress_name *first = NULL, *x = NULL;
    char text[32];
    struct mo_ip ip;

    (void)state;
    mo_egress_names_init(&t, false);
    mo_egress_names_init(&again, false);
    assert_int_equal(mo_egress_names_add(&t, "n0.org", &first), 0);
    for (int i = 0; i < MO_EGRESS_NAMES_MAX; i++) {
        struct mo_ip v4, v6;

        (void)snprintf(text, sizeof(text), "n%d.org", i);
        assert_int_equal(mo_egress_names_add(&t, text, &x), 0);
        v4 = mo_egress_name_v4(&t, x);
        v6 = mo_egress_name_v6(x);
        assert_true(mo_egress_is_inside(&v4) && mo_ip_is_v4(&v4));
        assert_true(mo_egress_is_inside(&v6) && !mo_ip_is_v4(&v6));
        assert_ptr_equal(mo_egress_names_at(&t, &v4), x);
        assert_ptr_equal(mo_egress_names_at(&t, &v6), x);
    }
    assert_int_equal(mo_egress_names_add(&t, "n0.org", &x), 0);
    assert_ptr_equal(x, first);
    assert_int_equal(mo_egress_names_add(&t, "more.org", &x), MO_EBUSY);
    /* the same address in another process */
    assert_int_equal(mo_egress_names_add(&again, "n0.org", &x), 0);
    assert_int_equal(x->index, first->index);
    assert_true(mo_ip_parse(MO_SPAN("10.0.0.1"), &ip));
    assert_null(mo_egress_names_at(&t, &ip));
    mo_egress_names_fini(&t);
    mo_egress_names_fini(&again);
}

/* In a pod: every address is one of the loopback's, and no other is a name. */
static void test_loopback_table(void **state)
{
    static const char *const others[] = {"127.0.0.1", "127.17.255.255",
                                         "127.20.0.1", "198.18.0.1"};
    struct mo_egress_names t;
    struct mo_egress_name *x = NULL;
    char text[32];
    struct mo_ip ip;

    (void)state;
    mo_egress_names_init(&t, true);
    for (int i = 0; i < MO_EGRESS_NAMES_MAX; i++) {
        (void)snprintf(text, sizeof(text), "n%d.org", i);
        assert_int_equal(mo_egress_names_add(&t, text, &x), 0);
        ip = mo_egress_name_v4(&t, x);
        assert_int_equal(ip.b[12], 127);
        assert_int_equal(ip.b[13] & 0xFE, 18);
        assert_ptr_equal(mo_egress_names_at(&t, &ip), x);
        ip.b[12] = 198;
        assert_null(mo_egress_names_at(&t, &ip));
    }
    for (size_t i = 0; i < MO_COUNT(others); i++) {
        assert_true(mo_ip_parse(mo_span_cstr(others[i]), &ip));
        assert_null(mo_egress_names_at(&t, &ip));
    }
    mo_egress_names_fini(&t);
}

static void put_query(struct mo_buf *b, const char *name, int type)
{
    struct mo_span rest = mo_span_cstr(name);

    mo_buf_reset(b);
    mo_buf_put(b, "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
    while (rest.p && rest.n) {
        struct mo_span label = mo_span_cut(&rest, '.');

        mo_buf_putc(b, (char)label.n);
        mo_buf_span(b, label);
    }
    mo_buf_putc(b, 0);
    mo_buf_putc(b, 0);
    mo_buf_putc(b, (char)type);
    mo_buf_put(b, "\x00\x01", 2);
}

static void test_answers(void **state)
{
    static const struct {
        const char *name;
        int type, rcode, records;
    } rows[] = {
        {"A.ORG", MO_DNS_A, MO_DNS_NOERROR, 1},
        {"a.org", MO_DNS_AAAA, MO_DNS_NOERROR, 1},
        {"a.org", MO_DNS_ANY, MO_DNS_NOERROR, 1},
        {"a.org", 16, MO_DNS_NOERROR, 0},
        {"a.org", 65, MO_DNS_NOERROR, 0},
        {"x.b.org", MO_DNS_A, MO_DNS_NOERROR, 1},
        {"b.org", MO_DNS_A, MO_DNS_NXDOMAIN, 0},
        {"secret-0123456789.evil.org", MO_DNS_A, MO_DNS_NXDOMAIN, 0},
        {"localhost", MO_DNS_A, MO_DNS_NOERROR, 1},
        {"7.0.18.198.in-addr.arpa", 12, MO_DNS_NXDOMAIN, 0},
        {"", MO_DNS_A, MO_DNS_NXDOMAIN, 0},
    };
    struct mo_egress_policy *p =
        read_policy("{\"allow\":[\"a.org\",\"*.b.org:8443\"]}");
    mo_autobuf struct mo_buf q = {.max = 512}, a = {.max = 512};
    struct mo_egress_names names;
    struct mo_egress_zone z = {p, &names, true};

    (void)state;
    mo_egress_names_init(&names, false);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        put_query(&q, rows[i].name, rows[i].type);
        mo_buf_reset(&a);
        assert_true(mo_egress_answer(&z, mo_buf_view(&q), &a));
        check_row(rows[i].name, (a.p[3] & 15) == rows[i].rcode);
        check_row(rows[i].name, a.p[7] == rows[i].records);
    }
    z.v6 = false;
    put_query(&q, "a.org", MO_DNS_AAAA);
    mo_buf_reset(&a);
    assert_true(mo_egress_answer(&z, mo_buf_view(&q), &a));
    assert_int_equal(a.p[7], 0);
    assert_false(mo_egress_answer(&z, MO_SPAN("no query"), &a));
    mo_egress_names_fini(&names);
    mo_egress_policy_free(p);
}

static void add_and_read(void *ctx)
{
    struct mo_egress_policy *p = NULL;
    struct mo_egress_names t;
    struct mo_egress_name *x;

    (void)ctx;
    mo_egress_names_init(&t, false);
    if (mo_egress_policy_read(
            MO_SPAN("{\"allow\":[\"a.org\",\"\\u0062.org\"]}"), &p, NULL) == 0)
        mo_egress_policy_free(p);
    (void)mo_egress_names_add(&t, "a.org", &x);
    mo_egress_names_fini(&t);
}

static void test_memory(void **state)
{
    (void)state;
    torture(add_and_read, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries), cmocka_unit_test(test_json),
        cmocka_unit_test(test_ports),   cmocka_unit_test(test_inject),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_table),   cmocka_unit_test(test_loopback_table),
        cmocka_unit_test(test_answers), cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
