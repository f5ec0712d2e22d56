/* Any label value: the page keeps its lines and its quotes. */
#include <stdlib.h>

#include "codec/prom.h"

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static const struct mo_prom_desc calls = {
    .name = "calls_total",
    .help = "calls",
    .kind = MO_PROM_COUNTER,
    .labels = {"a", "b"},
};

static const struct mo_prom_desc seconds = {
    .name = "seconds",
    .help = "seconds",
    .kind = MO_PROM_HISTOGRAM,
    .labels = {"a"},
    .buckets = mo_prom_seconds,
    .nbuckets = MO_PROM_SECONDS_N,
};

/* Unescape a quoted value and compare it with what was put in. */
static struct mo_span check_value(struct mo_span s, struct mo_span want)
{
    want = mo_span_head(want, MO_PROM_VALUE_MAX);
    for (size_t i = 0; i < want.n; i++) {
        char c = want.p[i];
        bool plain = c >= ' ' && c < 0x7f;

        if (c == '\\' || c == '"' || c == '\n') {
            expect(s.n > 1 && s.p[0] == '\\');
            expect(s.p[1] == (c == '\n' ? 'n' : c));
            s = mo_span_skip(s, 2);
        } else {
            expect(s.n && s.p[0] == (plain ? c : '?'));
            s = mo_span_skip(s, 1);
        }
    }
    return s;
}

static struct mo_span skip_text(struct mo_span s, const char *text)
{
    expect(mo_span_starts(s, mo_span_cstr(text)));
    return mo_span_skip(s, strlen(text));
}

static void check_calls(struct mo_span page, const struct mo_span v[2])
{
    page = skip_text(page, "# HELP calls_total calls\n"
                           "# TYPE calls_total counter\n"
                           "calls_total{a=\"");
    page = check_value(page, v[0]);
    page = skip_text(page, "\",b=\"");
    page = check_value(page, v[1]);
    page = skip_text(page, "\"} 1\n");
    page = skip_text(page, "# HELP seconds seconds\n# TYPE ");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span in = mo_span((const char *)data, n);
    struct mo_span v[2] = {mo_span_head(in, n / 2), mo_span_skip(in, n / 2)};
    struct mo_prom *p = mo_prom_new();
    struct mo_prom_metric *m = mo_prom_add(p, &calls, NULL);
    struct mo_prom_series *s = mo_prom_with(m, v);
    struct mo_buf b;
    double d = 0;
    size_t lines = 0;

    expect(s == mo_prom_with(m, v));
    mo_prom_count(s, 1);
    memcpy(&d, data, n < sizeof(d) ? n : sizeof(d));
    mo_prom_observe(mo_prom_with(mo_prom_add(p, &seconds, NULL), v), d);
    mo_buf_init(&b, 1 << 20);
    expect(mo_prom_write(p, &b) == 0);
    check_calls(mo_buf_view(&b), v);
    for (size_t i = 0; i < b.len; i++)
        lines += b.p[i] == '\n';
    expect(lines == 3 + 2 + MO_PROM_SECONDS_N + 3);
    mo_buf_fini(&b);
    mo_prom_free(p);
    return 0;
}
