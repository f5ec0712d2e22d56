/* Which addresses a stranger must not send us to. */
#include "codec/ip.h"

#include <arpa/inet.h>

#include "mo_test.h"

static void test_rows(void **state)
{
    static const struct {
        const char *text;
        bool is_private;
    } rows[] = {
        {"0.0.0.0", true},
        {"0.255.255.255", true},
        {"1.0.0.0", false},
        {"9.255.255.255", false},
        {"10.0.0.0", true},
        {"10.255.255.255", true},
        {"11.0.0.0", false},
        {"100.63.255.255", false},
        {"100.64.0.0", true},
        {"100.127.255.255", true},
        {"100.128.0.0", false},
        {"127.0.0.1", true},
        {"128.0.0.0", false},
        {"169.253.255.255", false},
        {"169.254.169.254", true},
        {"169.255.0.0", false},
        {"172.15.255.255", false},
        {"172.16.0.0", true},
        {"172.31.255.255", true},
        {"172.32.0.0", false},
        {"192.0.0.8", true},
        {"192.0.1.0", false},
        {"192.168.0.0", true},
        {"192.169.0.0", false},
        {"198.17.255.255", false},
        {"198.18.0.0", true},
        {"198.19.255.255", true},
        {"198.20.0.0", false},
        {"223.255.255.255", false},
        {"224.0.0.0", true},
        {"255.255.255.255", true},
        {"::", true},
        {"::1", true},
        {"::8.8.8.8", true},
        {"::ffff:8.8.8.8", false},
        {"::ffff:10.0.0.1", true},
        {"64:ff9b::8.8.8.8", false},
        {"64:ff9b::10.0.0.1", true},
        {"64:ff9b:1::8.8.8.8", true},
        {"2001:db8::1", true},
        {"2001:db7::1", false},
        {"2001::1", true},
        {"2001:1::1", false},
        {"100::1", true},
        {"3fff:fff::1", true},
        {"4000::1", false},
        {"168.63.129.16", true},
        {"168.63.129.17", false},
        {"192.0.2.1", true},
        {"198.51.100.255", true},
        {"203.0.113.0", true},
        {"2002:808:808::1", false},
        {"2002:a00:1::1", true},
        {"fbff::1", false},
        {"fc00::1", true},
        {"fdff::1", true},
        {"fe7f::1", false},
        {"fe80::1", true},
        {"fec0::1", true},
        {"ff02::1", true},
        {"2606:4700::1111", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        unsigned char b[16];
        bool v4 = inet_pton(AF_INET, rows[i].text, b) == 1;

        if (!v4)
            assert_int_equal(inet_pton(AF_INET6, rows[i].text, b), 1);
        check_row(rows[i].text,
                  (v4 ? mo_ip4_is_private(b) : mo_ip6_is_private(b)) ==
                      rows[i].is_private);
    }
}

static void test_text(void **state)
{
    static const struct {
        const char *text, *back; /* back NULL: refused */
    } rows[] = {
        {"192.0.2.1", "192.0.2.1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"2001:DB8:0::1", "2001:db8::1"},
        {"::", "::"},
        {"", NULL},
        {"1", NULL},
        {"1.2.3", NULL},
        {"1.2.3.4.", NULL},
        {"01.2.3.4", NULL},
        {"0x7f.0.0.1", NULL},
        {"[::1]", NULL},
        {"fe80::1%lo", NULL},
        {"::1 ", NULL},
        {"1111:2222:3333:4444:5555:6666:7777:8888:9", NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        char back[MO_IP_TEXT] = "";
        struct mo_ip ip;
        bool ok = mo_ip_parse(mo_span_cstr(rows[i].text), &ip);

        check_row(rows[i].text, ok == (rows[i].back != NULL));
        if (!ok)
            continue;
        mo_ip_text(&ip, back);
        check_row(rows[i].text, strcmp(back, rows[i].back) == 0);
    }
}

static void test_embedded(void **state)
{
    static const struct {
        const char *text;
        bool v4, embeds;
    } rows[] = {
        {"192.0.2.1", true, false},        {"::ffff:8.8.8.8", true, false},
        {"64:ff9b::8.8.8.8", false, true}, {"2002:808:808::1", false, true},
        {"2606:4700::1111", false, false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_ip ip;

        assert_true(mo_ip_parse(mo_span_cstr(rows[i].text), &ip));
        check_row(rows[i].text, mo_ip_is_v4(&ip) == rows[i].v4);
        check_row(rows[i].text, mo_ip_embeds_v4(&ip) == rows[i].embeds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_embedded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
