#include "config/reference.h"

#include "mo_test.h"

/* Parts written as "t:text s:NAME e:NAME f:PATH|..." to compare at once. */
static void spell(struct mo_span text, struct mo_buf *b, struct mo_err *e)
{
    static const char letters[] = "tsef";
    struct mo_reference_part part;
    int rc;

    for (rc = mo_reference_next(&text, &part, e); rc > 0;
         rc = mo_reference_next(&text, &part, e)) {
        mo_buf_printf(b, "%c:", letters[part.kind]);
        mo_buf_span(b, part.text);
        mo_buf_putc(b, '|');
    }
    if (rc < 0)
        mo_buf_puts(b, "!");
}

static const struct {
    const char *in, *parts, *mask;
} rows[] = {
    {"", "", ""},
    {"plain", "t:plain|", "***"},
    {"${env:A}", "e:A|", "${env:A}"},
    {"Bearer ${secret:x-y.z}", "t:Bearer |s:x-y.z|", "***${secret:x-y.z}"},
    {"${file:/run/a b}", "f:/run/a b|", "${file:/run/a b}"},
    {"a${env:B}c${env:D}", "t:a|e:B|t:c|e:D|", "***${env:B}***${env:D}"},
    {"$${env:A}", "t:$|t:{env:A}|", "***"},
    {"cost $5 {x}", "t:cost $5 {x}|", "***"},
    {"$", "t:$|", "***"},
    {"}{", "t:}{|", "***"},
    {"${A}", "!", "***"},
    {"${", "!", "***"},
    {"x${env:A", "t:x|!", "***"},
    {"${env:}", "!", "***"},
    {"${env:A B}", "!", "***"},
    {"${file:}", "!", "***"},
    {"${nope:A}", "!", "***"},
    {"${}", "!", "***"},
    {"${file:a\nb}", "!", "***"},
    {"${env:A}${B}", "e:A|!", "${env:A}***"},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span in = mo_span_cstr(rows[i].in);
        bool broken = strchr(rows[i].parts, '!') != NULL;
        struct mo_err e = {0};
        struct mo_buf b;

        mo_buf_init(&b, 256);
        spell(in, &b, &e);
        check_row(rows[i].in, strcmp(mo_buf_cstr(&b), rows[i].parts) == 0);
        check_row(rows[i].in, broken == (e.code == MO_EINVAL));
        check_row(rows[i].in, broken == (mo_reference_check(in, NULL) < 0));
        mo_buf_reset(&b);
        check_row(rows[i].in, mo_reference_mask(in, &b) == 0);
        check_row(rows[i].in, strcmp(mo_buf_cstr(&b), rows[i].mask) == 0);
        mo_buf_fini(&b);
    }
}

static void test_any(void **state)
{
    (void)state;
    assert_false(mo_reference_any(MO_SPAN("plain")));
    assert_false(mo_reference_any(MO_SPAN("$${env:A}")));
    assert_true(mo_reference_any(MO_SPAN("x${env:A}")));
    assert_true(mo_reference_any(MO_SPAN("${broken")));
}

static void test_seed_style_gets_a_hint(void **state)
{
    struct mo_err e = {0};

    (void)state;
    assert_int_equal(mo_reference_check(MO_SPAN("${GITHUB_TOKEN}"), &e),
                     MO_EINVAL);
    assert_non_null(strstr(e.msg, "did you mean '${env:GITHUB_TOKEN}'?"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_any),
        cmocka_unit_test(test_seed_style_gets_a_hint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
