/* The gateway's calls in sums: counted, ordered, bounded. */
#include "web/call_stats.h"

#include <stdio.h>

#include "mo_test.h"

#define NOW ((uint64_t)1000 * 60000 + 30000)

static void add(struct mo_call_stats *s, const char *server, const char *tool,
                uint64_t ms, bool failed)
{
    const struct mo_call_stats_call c = {mo_span_cstr(server),
                                         mo_span_cstr(tool), ms, failed};

    mo_call_stats_add(s, &c, NOW);
}

/* What is said of a server; NULL: of all. */
static const char *said(const struct mo_call_stats *s, const char *server,
                        size_t most, struct mo_buf *b)
{
    struct mo_jw w;

    mo_buf_reset(b);
    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    if (server)
        mo_call_stats_put_server(s, mo_span_cstr(server), most, false, &w);
    else
        mo_call_stats_put(s, NOW, false, &w);
    mo_jw_end(&w);
    return mo_buf_cstr(b);
}

static void test_sums(void **state)
{
    struct mo_call_stats *s = mo_call_stats_new(0);
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 20);
    add(s, "a", "rare", 5, true);
    for (int i = 0; i < 3; i++)
        add(s, "a", "often", 5, false);
    add(s, "ab", "other", 5, false); /* begins like the other server */
    assert_string_equal(
        said(s, "a", 10, &b),
        "{\"calls\":4,\"errors\":1,\"p50Ms\":4.5,\"p95Ms\":5,\"tools\":["
        "{\"name\":\"often\",\"calls\":3,\"errors\":0,\"p50Ms\":4.5,"
        "\"p95Ms\":5},"
        "{\"name\":\"rare\",\"calls\":1,\"errors\":1,\"p50Ms\":4.5,"
        "\"p95Ms\":5}]}");
    assert_null(strstr(said(s, "a", 1, &b), "rare"));
    assert_string_equal(said(s, "nobody", 10, &b),
                        "{\"calls\":0,\"errors\":0,\"p50Ms\":0,\"p95Ms\":0,"
                        "\"tools\":[]}");
    assert_non_null(strstr(said(s, NULL, 0, &b), "\"calls\":5,\"errors\":1"));
    assert_non_null(strstr(mo_buf_cstr(&b), ",0,5],\"errorsPerMinute\""));
    assert_non_null(strstr(mo_buf_cstr(&b), ",0,1],\"longestMs\""));
    mo_buf_fini(&b);
    mo_call_stats_free(s);
}

/* The usual and the slow, of so many calls that take 1 to n ms. */
static void test_quantiles(void **state)
{
    static const struct {
        unsigned n;
        double p50, p95;
    } rows[] = {{1, 0.5, 1}, {100, 50, 95}, {2000, 1000, 1900}};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_call_stats *s = mo_call_stats_new(0);
        double p50 = 0, p95 = 0;
        struct mo_json_doc doc;
        struct mo_buf b;

        mo_buf_init(&b, 65536);
        for (unsigned ms = 1; ms <= rows[i].n; ms++)
            add(s, "a", "t", ms, false);
        (void)said(s, "a", 0, &b);
        assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
        (void)mo_json_f64(mo_json_get(doc.root, "p50Ms"), &p50);
        (void)mo_json_f64(mo_json_get(doc.root, "p95Ms"), &p95);
        assert_true(p50 > rows[i].p50 * 0.9 && p50 < rows[i].p50 * 1.1);
        assert_true(p95 > rows[i].p95 * 0.9 && p95 < rows[i].p95 * 1.1);
        mo_buf_fini(&b);
        mo_call_stats_free(s);
    }
}

/* The owner's bytes stay with their tool, whatever comes between. */
static void test_own(void **state)
{
    struct mo_call_stats *s = mo_call_stats_new(sizeof(unsigned));
    char name[32];

    (void)state;
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 300; i++) {
            struct mo_call_stats_call c = {.server = MO_SPAN("a")};
            unsigned *mine = NULL;

            (void)snprintf(name, sizeof(name), "t%u", i);
            c.tool = mo_span_cstr(name);
            mine = mo_call_stats_add(s, &c, NOW);
            assert_non_null(mine);
            assert_int_equal(*mine, round ? i + 1 : 0);
            *mine = i + 1;
        }
    mo_call_stats_free(s);
}

static void test_bounds(void **state)
{
    struct mo_call_stats *s = mo_call_stats_new(0);
    char name[32];
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 20);
    for (unsigned i = 0; i < MO_CALL_STATS_ROWS + 100; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        add(s, "a", name, UINT64_MAX / 4, true);
    }
    assert_non_null(strstr(said(s, NULL, 0, &b), "\"calls\":4196,"));
    assert_non_null(strstr(said(s, "a", 0, &b), "\"calls\":4196,"));
    mo_buf_fini(&b);
    mo_call_stats_free(s);
    mo_call_stats_free(NULL);
}

static void count_some(void *ctx)
{
    struct mo_call_stats *s = mo_call_stats_new(0);
    struct mo_buf b;

    (void)ctx;
    if (!s)
        return;
    mo_buf_init(&b, 65536);
    add(s, "a", "t", 1, false);
    add(s, "b", "t", 1, true);
    (void)said(s, "a", 10, &b);
    (void)said(s, NULL, 0, &b);
    mo_buf_fini(&b);
    mo_call_stats_free(s);
}

static void test_no_memory(void **state)
{
    (void)state;
    torture(count_some, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),      cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_own),       cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
