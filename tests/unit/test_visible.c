/* Untrusted names: nothing in them moves a cursor or makes a line. */
#include "mo_test.h"

#include "codec/text/visible.h"

static void rows_are_shown(void **state)
{
    static const struct {
        const char *in, *text, *name;
    } rows[] = {
        {"plain", "plain", "plain"},
        {"a\nb\tc", "a\nb\tc", "a<0a>b<09>c"},
        {"\x1b[2J", "<1b>[2J", "<1b>[2J"},
        {"a\rb\x7f", "a<0d>b<7f>", "a<0d>b<7f>"},
        {"\xc2\x9b", "<U+009B>", "<U+009B>"},
        {"\xe2\x80\xae", "<U+202E>", "<U+202E>"},
        {"\xf3\xa0\x81\x81", "<U+E0041>", "<U+E0041>"},
        {"\xff\xc3", "<ff><c3>", "<ff><c3>"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"", "", ""},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1000);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        mo_visible_text(&b, mo_span_cstr(rows[i].in));
        check_row(rows[i].text, strcmp(mo_buf_cstr(&b), rows[i].text) == 0);
        mo_buf_reset(&b);
        mo_visible_name(&b, mo_span_cstr(rows[i].in));
        check_row(rows[i].name, strcmp(mo_buf_cstr(&b), rows[i].name) == 0);
    }
    mo_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_shown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
