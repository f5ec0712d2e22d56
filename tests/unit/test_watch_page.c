/* The page by which workers tell each other what their clients watch: a reader
 * sees each text once, in order, and never half of one. */
#include "mo_test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/watch_page.h"
#include "base/mem.h"

static struct mo_watch_page *page_new(void)
{
    struct mo_watch_page *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    return p;
}

/* New texts, with '|' for each NUL; "": none. */
static const char *read_page(const struct mo_watch_page *p,
                             struct mo_watch_seen *seen, bool *anew)
{
    static char text[256];
    mo_autobuf struct mo_buf b = {.max = MO_WATCH_PAGE_MAX};

    text[0] = '\0';
    if (!mo_watch_page_read(p, seen, &b, anew))
        return text;
    assert_true(b.len < sizeof(text));
    for (size_t i = 0; i < b.len; i++)
        text[i] = b.p[i] ? b.p[i] : '|';
    text[b.len] = '\0';
    return text;
}

static void added_texts_are_read_once(void **state)
{
    struct mo_watch_page *p = page_new();
    struct mo_watch_seen seen = {0};
    bool anew;

    (void)state;
    assert_string_equal(read_page(p, &seen, &anew), "");
    mo_watch_page_write(p, mo_span(NULL, 0));
    assert_true(mo_watch_page_add(p, MO_SPAN("a://1")));
    assert_string_equal(read_page(p, &seen, &anew), "a://1|");
    assert_true(anew);
    assert_string_equal(read_page(p, &seen, &anew), "");
    assert_true(mo_watch_page_add(p, MO_SPAN("b://2")));
    assert_true(mo_watch_page_add(p, MO_SPAN("c://3")));
    assert_string_equal(read_page(p, &seen, &anew), "b://2|c://3|");
    assert_false(anew);
    mo_watch_page_write(p, MO_SPAN("c://3\0"));
    assert_string_equal(read_page(p, &seen, &anew), "c://3|");
    assert_true(anew);
    mo_watch_page_write(p, mo_span(NULL, 0));
    seen.n = 3; /* it had read some */
    assert_string_equal(read_page(p, &seen, &anew), "");
    assert_true(anew);
    free(p);
}

static void a_full_page_keeps_what_it_has(void **state)
{
    struct mo_watch_page *p = page_new();
    struct mo_watch_seen seen = {0};
    mo_autobuf struct mo_buf b = {.max = MO_WATCH_PAGE_MAX};
    char text[128];
    unsigned n = 0;
    bool anew;

    (void)state;
    assert_false(mo_watch_page_add(p, MO_SPAN("")));
    assert_false(mo_watch_page_add(p, MO_SPAN("with\0nul")));
    do
        (void)snprintf(text, sizeof(text), "test://%0100u", n++);
    while (mo_watch_page_add(p, mo_span_cstr(text)));
    assert_int_equal(n - 1, MO_WATCH_PAGE_MAX / 108);
    /* A shorter one may still fit, to the last byte. */
    memset(text, 'x', sizeof(text));
    while (mo_watch_page_add(p, MO_SPAN("y")))
        ;
    assert_true(MO_WATCH_PAGE_MAX - p->n < 2);
    assert_true(mo_watch_page_read(p, &seen, &b, &anew));
    assert_int_equal(b.len, p->n);
    free(p);
}

/* One that was killed in the middle leaves nothing to be read. */
static void half_a_page_is_not_read(void **state)
{
    struct mo_watch_page *p = page_new();
    struct mo_watch_seen seen = {0};
    bool anew;

    (void)state;
    p->version = 7;
    p->n = 5;
    assert_string_equal(read_page(p, &seen, &anew), "");
    p->n = MO_WATCH_PAGE_MAX + 1;
    p->version = 8;
    assert_string_equal(read_page(p, &seen, &anew), "");
    p->version = 7;
    mo_watch_page_write(p, MO_SPAN("a\0"));
    assert_string_equal(read_page(p, &seen, &anew), "a|");
    free(p);
}

/* --- a writer and a reader at the same time --------------------------------
 */

#define ROUNDS 300

static void *write_rounds(void *ctx)
{
    struct mo_watch_page *p = ctx;
    char text[64];

    for (int i = 1; i <= ROUNDS; i++) {
        mo_watch_page_write(p, mo_span(NULL, 0));
        for (int k = 0; k < 50; k++) {
            (void)snprintf(text, sizeof(text), "%d-%d", i, k);
            assert_true(mo_watch_page_add(p, mo_span_cstr(text)));
        }
    }
    return NULL;
}

/* Every text that is read is the next one of its round. */
static void check_texts(struct mo_span s, bool anew, int *round, int *next)
{
    if (anew)
        *next = 0;
    while (s.n) {
        struct mo_span one = mo_span_cut(&s, '\0');
        char text[64];
        int i, k;

        (void)snprintf(text, sizeof(text), "%.*s", (int)one.n, one.p);
        if (one.n == 0)
            break;
        assert_int_equal(sscanf(text, "%d-%d", &i, &k), 2);
        assert_true(i >= *round);
        assert_true(*next == 0 || i == *round);
        assert_int_equal(k, *next);
        *round = i;
        *next = k + 1;
        if (!s.p)
            break;
    }
}

static void nothing_is_torn(void **state)
{
    struct mo_watch_page *p = page_new();
    struct mo_watch_seen seen = {0};
    int round = 0, next = 0;
    pthread_t writer;

    (void)state;
    assert_int_equal(pthread_create(&writer, NULL, write_rounds, p), 0);
    while (round < ROUNDS || next < 50) {
        mo_autobuf struct mo_buf b = {.max = MO_WATCH_PAGE_MAX};
        bool anew;

        if (mo_watch_page_read(p, &seen, &b, &anew))
            check_texts(mo_buf_view(&b), anew, &round, &next);
    }
    assert_int_equal(pthread_join(writer, NULL), 0);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_texts_are_read_once),
        cmocka_unit_test(a_full_page_keeps_what_it_has),
        cmocka_unit_test(half_a_page_is_not_read),
        cmocka_unit_test(nothing_is_torn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
