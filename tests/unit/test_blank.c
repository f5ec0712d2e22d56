/* Blanking a secret looks at each byte of a text a fixed number of times,
 * however often the secret occurs. Counts bytes searched and moved, not time:
 * log.c is compiled here with counting versions of its two primitives. */
#include <string.h>

#include "base/str.h"
#include "mo_test.h"

static uint64_t work;

static void *count_move(void *to, const void *from, size_t n)
{
    work += n;
    return memmove(to, from, n);
}

static ptrdiff_t count_search(struct mo_span s, struct mo_span what)
{
    ptrdiff_t at = mo_span_search(s, what);

    work += at < 0 ? s.n : (size_t)at + what.n;
    return at;
}

#undef memmove
#define memmove        count_move
#define mo_span_search count_search
/* NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "base/log.c"
#undef memmove
#undef mo_span_search

#define SECRET "sk-0123456789abcdef"
#define MARK   "[secret]"

/* n secrets with `between` after each of them. */
static char *make_text(size_t n, const char *between)
{
    size_t step = sizeof(SECRET) - 1 + strlen(between);
    char *text = mo_alloc(n * step + 1), *p = text;

    assert_non_null(text);
    for (size_t i = 0; i < n; i++, p += step) {
        memcpy(p, SECRET, sizeof(SECRET) - 1);
        memcpy(p + sizeof(SECRET) - 1, between, strlen(between));
    }
    *p = '\0';
    return text;
}

static void work_is_linear(void **state)
{
    size_t n = (size_t)4 * 1024 * 1024 / sizeof(SECRET);
    char *text = make_text(n, ",");
    size_t was = strlen(text);

    (void)state;
    work = 0;
    mo_log_blank(text, MO_SPAN(SECRET));
    assert_int_equal(strlen(text), n * sizeof(MARK));
    assert_true(work <= 3 * was);
    assert_null(strstr(text, "sk-0"));
    mo_free(text);
}

static const struct {
    const char *name, *in, *out;
} rows[] = {
    {"none", "a text", "a text"},
    {"alone", SECRET, MARK},
    {"twice, adjacent", SECRET SECRET, MARK MARK},
    {"in a text", "a " SECRET " b", "a " MARK " b"},
    {"cut at the end", SECRET " sk-0123456789", MARK " " MARK},
    {"too short a beginning", "x sk-", "x sk-"},
    {"empty", "", ""},
};

static void texts_are_blanked(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        char text[128];

        (void)snprintf(text, sizeof(text), "%s", rows[i].in);
        mo_log_blank(text, MO_SPAN(SECRET));
        check_row(rows[i].name, strcmp(text, rows[i].out) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_linear),
        cmocka_unit_test(texts_are_blanked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
