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
        {"2001:db8::1", false},
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
