#include <math.h>

#include "codec/prom.h"
#include "mo_test.h"

/* --- a strict reader of the text format, for the test only ------------------
 *
 * Every line is HELP, TYPE or a sample; HELP and TYPE stand once, in this
 * order, before the samples of their metric, which stand together; no series
 * twice; buckets rise, never fall in count, and end in +Inf == _count. */
struct page {
    char name[64], type[16];
    struct mo_buf seen; /* "name{labels}\n" of all samples */
    uint64_t bucket, inf;
    double bound;
    bool help, has_inf;
};

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static struct mo_span take_name(struct mo_span *s, bool colon)
{
    struct mo_span all = *s;

    assert_true(all.n && (letter(all.p[0]) || (colon && all.p[0] == ':')));
    while (s->n && (letter(s->p[0]) || (s->p[0] >= '0' && s->p[0] <= '9') ||
                    (colon && s->p[0] == ':')))
        *s = mo_span_skip(*s, 1);
    return mo_span_head(all, all.n - s->n);
}

static void take_char(struct mo_span *s, char c)
{
    assert_true(s->n && s->p[0] == c);
    *s = mo_span_skip(*s, 1);
}

/* "..." with \\ \" \n only. */
static struct mo_span take_string(struct mo_span *s)
{
    struct mo_span all;

    take_char(s, '"');
    all = *s;
    while (s->n && s->p[0] != '"') {
        if (s->p[0] == '\\') {
            take_char(s, '\\');
            assert_true(s->n && strchr("\\\"n", s->p[0]));
        }
        assert_true(s->p[0] >= ' ' && s->p[0] < 0x7f);
        *s = mo_span_skip(*s, 1);
    }
    all.n -= s->n;
    take_char(s, '"');
    return all;
}

static double number(struct mo_span s)
{
    char tmp[64];
    char *end;
    double v;

    assert_true(s.n > 0 && s.n < sizeof(tmp) && s.p[0] != ' ');
    memcpy(tmp, s.p, s.n);
    tmp[s.n] = '\0';
    v = strtod(tmp, &end);
    assert_true(*end == '\0');
    return v;
}

/* Labels; le is taken out and given back. */
static struct mo_span take_labels(struct mo_span *s)
{
    struct mo_span le = {0};
    bool more = s->n && s->p[0] == '{';

    while (more) {
        struct mo_span name, value;

        *s = mo_span_skip(*s, 1); /* { or , */
        name = take_name(s, false);
        take_char(s, '=');
        value = take_string(s);
        if (mo_span_is(name, "le"))
            le = value;
        more = s->n && s->p[0] == ',';
        if (!more)
            take_char(s, '}');
    }
    return le;
}

static void check_bucket(struct page *p, struct mo_span le, double v)
{
    double bound = number(le);

    assert_true(v >= 0 && v == floor(v));
    if (p->bucket == UINT64_MAX || p->has_inf) { /* first of its series */
        p->has_inf = false;
    } else {
        assert_true(bound > p->bound);
        assert_true((uint64_t)v >= p->bucket);
    }
    p->bucket = (uint64_t)v;
    p->bound = bound;
    p->has_inf = isinf(bound);
    p->inf = p->bucket;
}

static void check_new(struct page *p, struct mo_span series)
{
    size_t from = p->seen.len;
    struct mo_span line;

    mo_buf_putc(&p->seen, '\n');
    mo_buf_span(&p->seen, series);
    mo_buf_putc(&p->seen, '\n');
    line = mo_span_skip(mo_buf_view(&p->seen), from);
    assert_int_equal(mo_span_search(mo_buf_view(&p->seen), line), from);
}

static void check_sample(struct page *p, struct mo_span line)
{
    struct mo_span all = line, name = take_name(&line, true);
    struct mo_span le = take_labels(&line), series;
    struct mo_span suffix = mo_span_skip(name, strlen(p->name));
    double v;

    series = mo_span_head(all, all.n - line.n);
    take_char(&line, ' ');
    v = number(line);
    assert_true(mo_span_starts(name, mo_span_cstr(p->name)));
    if (strcmp(p->type, "histogram") == 0) {
        assert_int_equal(mo_span_is(suffix, "_bucket"), le.p != NULL);
        if (le.p)
            check_bucket(p, le, v);
        else
            assert_true(p->has_inf); /* _sum and _count after the buckets */
        if (mo_span_is(suffix, "_count"))
            assert_true((uint64_t)v == p->inf);
        else
            assert_true(le.p || mo_span_is(suffix, "_sum"));
    } else {
        assert_true(suffix.n == 0 && !le.p);
    }
    check_new(p, series);
}

static void check_meta(struct page *p, struct mo_span line)
{
    bool help = mo_span_starts(line, MO_SPAN("# HELP "));
    struct mo_span name;

    assert_true(help || mo_span_starts(line, MO_SPAN("# TYPE ")));
    line = mo_span_skip(line, 7);
    name = take_name(&line, true);
    take_char(&line, ' ');
    if (help) {
        assert_false(p->help);
        assert_true(name.n < sizeof(p->name));
        memcpy(p->name, name.p, name.n);
        p->name[name.n] = '\0';
        p->help = true;
        return;
    }
    assert_true(p->help && mo_span_is(name, p->name));
    assert_true(mo_span_is(line, "counter") || mo_span_is(line, "gauge") ||
                mo_span_is(line, "histogram"));
    memcpy(p->type, line.p, line.n);
    p->type[line.n] = '\0';
    p->help = false;
    p->bucket = UINT64_MAX;
    p->has_inf = false;
}

static void check_page(struct mo_span s)
{
    struct page p = {0};

    mo_buf_init(&p.seen, 1 << 20);
    assert_true(s.n == 0 || s.p[s.n - 1] == '\n');
    while (s.n) {
        struct mo_span line = mo_span_cut(&s, '\n');

        assert_true(line.n > 0);
        if (line.p[0] == '#') {
            check_meta(&p, line);
        } else {
            assert_true(p.type[0] && !p.help);
            check_sample(&p, line);
        }
    }
    mo_buf_fini(&p.seen);
}

/* --- descriptors --------------------------------------------------------- */

static const double three[] = {0.5, 1, 2.5};

static const struct mo_prom_desc plain = {
    .name = "mo_plain_total",
    .help = "back\\slash and\nline",
    .kind = MO_PROM_COUNTER,
};
static const struct mo_prom_desc labelled = {
    .name = "mo_calls_total",
    .help = "calls",
    .kind = MO_PROM_COUNTER,
    .labels = {"tool", "outcome"},
};
static const struct mo_prom_desc gauge = {
    .name = "mo_gauge",
    .help = "g",
    .kind = MO_PROM_GAUGE,
};
static const struct mo_prom_desc hist = {
    .name = "mo_seconds",
    .help = "h",
    .kind = MO_PROM_HISTOGRAM,
    .labels = {"door"},
    .buckets = three,
    .nbuckets = 3,
};

static void check_text(struct mo_prom *p, const char *want)
{
    struct mo_buf b;

    mo_buf_init(&b, 1 << 20);
    assert_int_equal(mo_prom_write(p, &b), 0);
    assert_string_equal(mo_buf_cstr(&b), want);
    check_page(mo_buf_view(&b));
    mo_buf_fini(&b);
}

static void test_page(void **state)
{
    struct mo_prom *p = mo_prom_new();
    struct mo_prom_series *s;
    struct mo_prom_metric *m;

    (void)state;
    check_text(p, "");
    m = mo_prom_add(p, &plain, NULL);
    mo_prom_count(mo_prom_with(m, NULL), 3);
    mo_prom_count(mo_prom_with(m, NULL), UINT64_MAX - 3);
    m = mo_prom_add(p, &labelled, NULL); /* no series yet: left out */
    m = mo_prom_add(p, &gauge, NULL);
    mo_prom_set(mo_prom_with(m, NULL), -0.1);
    m = mo_prom_add(p, &hist, NULL);
    s = mo_prom_with(m, (struct mo_span[]){MO_SPAN("http")});
    mo_prom_observe(s, 0.5); /* a bound belongs to its bucket */
    mo_prom_observe(s, 0.75);
    mo_prom_observe(s, -1);
    mo_prom_observe(s, 100);
    mo_prom_observe(s, (double)NAN);
    check_text(p, "# HELP mo_plain_total back\\\\slash and\\nline\n"
                  "# TYPE mo_plain_total counter\n"
                  "mo_plain_total 18446744073709551615\n"
                  "# HELP mo_gauge g\n# TYPE mo_gauge gauge\nmo_gauge -0.1\n"
                  "# HELP mo_seconds h\n# TYPE mo_seconds histogram\n"
                  "mo_seconds_bucket{door=\"http\",le=\"0.5\"} 2\n"
                  "mo_seconds_bucket{door=\"http\",le=\"1\"} 3\n"
                  "mo_seconds_bucket{door=\"http\",le=\"2.5\"} 3\n"
                  "mo_seconds_bucket{door=\"http\",le=\"+Inf\"} 4\n"
                  "mo_seconds_sum{door=\"http\"} 100.25\n"
                  "mo_seconds_count{door=\"http\"} 4\n");
    mo_prom_free(p);
    mo_prom_free(NULL);
}

static void test_label_values(void **state)
{
    static const struct {
        struct mo_span in;
        const char *want;
    } rows[] = {
        {{"", 0}, ""},
        {{"a b", 3}, "a b"},
        {{"\"q\"", 3}, "\\\"q\\\""},
        {{"\\", 1}, "\\\\"},
        {{"a\nb", 3}, "a\\nb"},
        {{"\r\t\0\x7f", 4}, "????"},
        {{"\xc3\xa9\xff", 3}, "???"},
        {{"\"} 1\nevil 2", 11}, "\\\"} 1\\nevil 2"},
    };
    struct mo_prom *p = mo_prom_new();
    struct mo_prom_metric *m = mo_prom_add(p, &labelled, NULL);
    struct mo_buf want, got;

    (void)state;
    mo_buf_init(&want, 8192);
    mo_buf_init(&got, 8192);
    mo_buf_puts(&want, "# HELP mo_calls_total calls\n"
                       "# TYPE mo_calls_total counter\n");
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span v[] = {rows[i].in, MO_SPAN("ok")};
        struct mo_prom_series *s = mo_prom_with(m, v);

        mo_prom_count(s, i);
        assert_ptr_equal(s, mo_prom_with(m, v));
        mo_buf_printf(&want, "mo_calls_total{tool=\"%s\",outcome=\"ok\"} %zu\n",
                      rows[i].want, i);
    }
    check_text(p, mo_buf_cstr(&want));
    mo_buf_fini(&want);
    mo_buf_fini(&got);
    mo_prom_free(p);
}

/* Another format gets the same metrics, and values that are not escaped. */
static void test_other_formats(void **state)
{
    static const char *const values[] = {"",        "a b",       "\"q\"", "\\",
                                         "\\n\n\\", "a=\"b\",c", ","};
    struct mo_prom *p = mo_prom_new();
    struct mo_prom_metric *m = mo_prom_add(p, &labelled, NULL);
    const struct mo_prom_series *s = NULL;
    struct mo_prom_label l;

    (void)state;
    assert_ptr_equal(mo_prom_at(p, 0), m);
    assert_null(mo_prom_at(p, 1));
    assert_ptr_equal(mo_prom_desc(m), &labelled);
    assert_null(mo_prom_next(m, NULL));
    for (size_t i = 0; i < MO_COUNT(values); i++) {
        struct mo_span v[] = {mo_span_cstr(values[i]), MO_SPAN("ok")};

        mo_prom_count(mo_prom_with(m, v), i);
    }
    mo_prom_count(
        mo_prom_with(m, (struct mo_span[]){MO_SPAN("other"), MO_SPAN("other")}),
        9);
    for (size_t i = 0; i < MO_COUNT(values); i++) {
        const char *at;

        s = mo_prom_next(m, s);
        assert_int_equal(s->count, i);
        at = s->labels;
        assert_true(mo_prom_label(&at, &l));
        assert_true(mo_span_is(l.name, "tool"));
        assert_true(mo_span_is(mo_span(l.value, l.n), values[i]));
        assert_true(mo_prom_label(&at, &l));
        assert_true(mo_span_is(l.name, "outcome"));
        assert_string_equal(l.value, "ok");
        assert_false(mo_prom_label(&at, &l));
    }
    s = mo_prom_next(m, s);
    assert_int_equal(s->count, 9);
    assert_null(mo_prom_next(m, s));
    mo_prom_free(p);
}

static void test_series_limit(void **state)
{
    struct mo_prom *p = mo_prom_new();
    struct mo_prom_metric *m = mo_prom_add(p, &labelled, NULL);
    char longest[MO_PROM_VALUE_MAX + 2];
    struct mo_prom_series *a, *b;
    struct mo_buf page;

    (void)state;
    memset(longest, '\\', sizeof(longest));
    a = mo_prom_with(m, (struct mo_span[]){{longest, MO_PROM_VALUE_MAX},
                                           {longest, sizeof(longest)}});
    b = mo_prom_with(m, (struct mo_span[]){{longest, MO_PROM_VALUE_MAX + 1},
                                           {longest, sizeof(longest) - 1}});
    assert_ptr_equal(a, b); /* cut at the limit */
    for (unsigned i = 0; i < MO_PROM_SERIES_MAX + 10; i++) {
        char name[16];
        int n = snprintf(name, sizeof(name), "t%u", i);
        struct mo_span v[] = {mo_span(name, (size_t)n), MO_SPAN("ok")};

        mo_prom_count(mo_prom_with(m, v), 1);
    }
    b = mo_prom_with(m, (struct mo_span[]){MO_SPAN("other"), MO_SPAN("other")});
    assert_int_equal(b->count, 11);
    mo_buf_init(&page, 1 << 20);
    assert_int_equal(mo_prom_write(p, &page), 0);
    check_page(mo_buf_view(&page));
    assert_true(
        mo_span_search(mo_buf_view(&page),
                       MO_SPAN("{tool=\"other\",outcome=\"other\"} 11\n")) > 0);
    mo_buf_fini(&page);
    mo_prom_free(p);
}

static void test_numbers(void **state)
{
    static const struct {
        double v;
        const char *want;
    } rows[] = {
        {0, "0"},           {1, "1"},
        {-3, "-3"},         {0.1, "0.1"},
        {1e21, "1e+21"},    {1.0 / 3, "0.3333333333333333"},
        {1e-9, "1e-09"},    {123456789, "123456789"},
        {INFINITY, "+Inf"}, {-INFINITY, "-Inf"},
        {NAN, "NaN"},       {2251799813685249.5, "2251799813685249.5"},
    };
    struct mo_prom *p = mo_prom_new();
    struct mo_prom_metric *m = mo_prom_add(p, &gauge, NULL);
    char want[128];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        (void)snprintf(want, sizeof(want),
                       "# HELP mo_gauge g\n# TYPE mo_gauge gauge\n"
                       "mo_gauge %s\n",
                       rows[i].want);
        mo_prom_set(mo_prom_with(m, NULL), rows[i].v);
        check_text(p, want);
    }
    mo_prom_free(p);
}

static void test_refused(void **state)
{
    static const double falling[] = {1, 1}, inf[] = {1, INFINITY};
    static const double many[MO_PROM_BUCKETS_MAX + 1] = {0};
    static const struct mo_prom_desc bad[] = {
        {.name = NULL, .help = ""},
        {.name = "", .help = ""},
        {.name = "1a", .help = ""},
        {.name = "a-b", .help = ""},
        {.name = "a b", .help = ""},
        {.name = "a\n", .help = ""},
        {.name = "\xc3\xa9", .help = ""},
        {.name = "a", .help = NULL},
        {.name = "a", .help = "", .labels = {""}},
        {.name = "a", .help = "", .labels = {"a:b"}},
        {.name = "a", .help = "", .labels = {"__a"}},
        {.name = "a", .help = "", .labels = {"a", "b", "a"}},
        {.name = "a", .help = "", .buckets = three, .nbuckets = 3},
        {.name = "a", .help = "", .kind = MO_PROM_HISTOGRAM},
        {"a", "", MO_PROM_HISTOGRAM, {"le"}, three, 3},
        {"a", "", MO_PROM_HISTOGRAM, {NULL}, falling, 2},
        {"a", "", MO_PROM_HISTOGRAM, {NULL}, inf, 2},
        {"a", "", MO_PROM_HISTOGRAM, {NULL}, many, MO_COUNT(many)},
    };
    static const struct mo_prom_desc twin = {
        .name = "mo_gauge", .help = "g", .kind = MO_PROM_GAUGE};
    struct mo_prom *p = mo_prom_new();
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        assert_null(mo_prom_add(p, &bad[i], &e));
        assert_int_equal(e.code, MO_EINVAL);
    }
    assert_non_null(mo_prom_add(p, &gauge, &e));
    assert_ptr_equal(mo_prom_add(p, &gauge, &e), mo_prom_add(p, &gauge, &e));
    assert_null(mo_prom_add(p, &twin, &e));
    assert_int_equal(e.code, MO_EEXISTS);
    mo_prom_free(p);
}

static void test_metrics_limit(void **state)
{
    static struct mo_prom_desc d[MO_PROM_METRICS_MAX + 1];
    static char names[MO_PROM_METRICS_MAX + 1][16];
    struct mo_prom *p = mo_prom_new();
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(d); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "m%zu", i);
        d[i] = (struct mo_prom_desc){.name = names[i], .help = ""};
        if (i < MO_PROM_METRICS_MAX)
            assert_non_null(mo_prom_add(p, &d[i], &e));
    }
    assert_null(mo_prom_add(p, &d[MO_PROM_METRICS_MAX], &e));
    assert_int_equal(e.code, MO_EBUSY);
    mo_prom_free(p);
}

static void on_hook(void *ctx)
{
    mo_prom_set(ctx, 42);
}

static void test_hooks(void **state)
{
    struct mo_prom *p = mo_prom_new();
    struct mo_prom_series *s = mo_prom_with(mo_prom_add(p, &gauge, NULL), NULL);

    (void)state;
    for (int i = 0; i < MO_PROM_HOOKS_MAX; i++)
        assert_int_equal(mo_prom_hook(p, on_hook, s), 0);
    assert_int_equal(mo_prom_hook(p, on_hook, s), MO_EBUSY);
    check_text(p, "# HELP mo_gauge g\n# TYPE mo_gauge gauge\nmo_gauge 42\n");
    mo_prom_free(p);
}

static void test_no_registry(void **state)
{
    (void)state;
    assert_null(mo_prom_with(NULL, NULL));
    mo_prom_count(NULL, 1);
    mo_prom_set(NULL, 1);
    mo_prom_observe(NULL, 1);
}

static void test_seconds(void **state)
{
    static const struct mo_prom_desc d = {
        "s", "", MO_PROM_HISTOGRAM, {NULL}, mo_prom_seconds, MO_PROM_SECONDS_N};
    struct mo_prom *p = mo_prom_new();

    (void)state;
    assert_non_null(mo_prom_add(p, &d, NULL));
    mo_prom_free(p);
}

/* Registration may fail; counting may not. */
static void body_oom(void *ctx)
{
    struct mo_prom *p = mo_prom_new();
    struct mo_prom_metric *m;
    struct mo_buf b;

    (void)ctx;
    if (!p)
        return;
    m = mo_prom_add(p, &labelled, NULL);
    if (m) {
        struct mo_span v[] = {MO_SPAN("a"), MO_SPAN("b")};
        struct mo_prom_series *s = mo_prom_with(m, v);

        assert_non_null(s);
        mo_prom_count(s, 1);
    }
    m = mo_prom_add(p, &plain, NULL);
    if (m)
        assert_non_null(mo_prom_with(m, NULL));
    mo_buf_init(&b, 4096);
    (void)mo_prom_write(p, &b);
    mo_buf_fini(&b);
    mo_prom_free(p);
}

static void test_join(void **state)
{
    static const char want[] = "# HELP a_total A\n# TYPE a_total counter\n"
                               "a_total{worker=\"1\",x=\"{ \"} 1\n"
                               "a_total{worker=\"1\",x=\"z\"} 2\n"
                               "a_total{worker=\"3\",x=\"z\"} 5\n"
                               "# HELP b B\n# TYPE b gauge\n"
                               "b{worker=\"1\"} 7\nb{worker=\"3\"} 8\n"
                               "# HELP c C\n# TYPE c gauge\n"
                               "c{worker=\"3\"} 9\n";
    const struct mo_span pages[] = {
        MO_SPAN("# HELP a_total A\n# TYPE a_total counter\n"
                "a_total{x=\"{ \"} 1\na_total{x=\"z\"} 2\n"
                "# HELP b B\n# TYPE b gauge\nb 7\n"),
        MO_SPAN(""),
        MO_SPAN("# HELP b B\n# TYPE b gauge\nb 8\n"
                "# HELP c C\n# TYPE c gauge\nc 9\n"
                "# HELP a_total A\n# TYPE a_total counter\n"
                "a_total{x=\"z\"} 5\n"),
    };
    mo_autobuf struct mo_buf b = {.max = 4096};
    mo_autobuf struct mo_buf small = {.max = 16};

    (void)state;
    assert_int_equal(mo_prom_join(pages, 3, "worker", &b), 0);
    assert_string_equal(mo_buf_cstr(&b), want);
    assert_int_equal(mo_prom_join(pages, 3, "worker", &small), MO_ETOOBIG);
}

static void test_oom(void **state)
{
    (void)state;
    torture(body_oom, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_label_values),
        cmocka_unit_test(test_other_formats),
        cmocka_unit_test(test_series_limit),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_metrics_limit),
        cmocka_unit_test(test_hooks),
        cmocka_unit_test(test_no_registry),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
