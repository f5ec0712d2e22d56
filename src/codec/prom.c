#include "codec/prom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* Bytes of all labels of one series: names are ours and short. */
#define LABELS_TEXT_MAX ((size_t)2048)
#define NAME_MAX_LEN    ((size_t)128)

const double mo_prom_seconds[MO_PROM_SECONDS_N] = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60,
};

struct mo_prom_metric {
    const struct mo_prom_desc *desc;
    struct mo_prom *prom;
    struct mo_prom_series *first, **last;
    struct mo_prom_series *other; /* made early: cannot fail */
    unsigned nseries;             /* not counting "other" */
    unsigned nlabels;
};

struct mo_prom {
    struct mo_prom_metric *metrics[MO_PROM_METRICS_MAX];
    size_t nmetrics;
    struct {
        void (*fn)(void *ctx);
        void *ctx;
    } hooks[MO_PROM_HOOKS_MAX];
    size_t nhooks;
    struct mo_buf scratch; /* the labels of the current lookup */
};

/* --- names --------------------------------------------------------------- */

static bool name_ok(const char *s, bool colon)
{
    size_t n = s ? strlen(s) : 0;

    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        bool letter = mo_is_alpha(c) || c == '_' || (colon && c == ':');

        if (!letter && (i == 0 || !mo_is_digit(c)))
            return false;
    }
    return n > 0 && n <= NAME_MAX_LEN;
}

static bool label_ok(const struct mo_prom_desc *d, unsigned i)
{
    const char *s = d->labels[i];

    if (!name_ok(s, false) || strncmp(s, "__", 2) == 0)
        return false;
    if (d->kind == MO_PROM_HISTOGRAM && strcmp(s, "le") == 0)
        return false;
    for (unsigned k = 0; k < i; k++) {
        if (strcmp(s, d->labels[k]) == 0)
            return false;
    }
    return true;
}

static bool buckets_ok(const struct mo_prom_desc *d)
{
    if (d->kind != MO_PROM_HISTOGRAM)
        return d->nbuckets == 0;
    if (d->nbuckets == 0 || d->nbuckets > MO_PROM_BUCKETS_MAX)
        return false;
    for (size_t i = 0; i < d->nbuckets; i++) {
        if (!isfinite(d->buckets[i]))
            return false;
        if (i && d->buckets[i] <= d->buckets[i - 1])
            return false;
    }
    return true;
}

/* Number of labels, or -1 for an invalid descriptor. */
static int check_desc(const struct mo_prom_desc *d)
{
    unsigned n = 0;

    if (!name_ok(d->name, true) || !d->help || !buckets_ok(d))
        return -1;
    while (n < MO_PROM_LABELS_MAX && d->labels[n]) {
        if (!label_ok(d, n))
            return -1;
        n++;
    }
    return (int)n;
}

/* --- text ---------------------------------------------------------------- */

static void put_value(struct mo_buf *b, struct mo_span v)
{
    v = mo_span_head(v, MO_PROM_VALUE_MAX);
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];

        if (c == '\\' || c == '"')
            mo_buf_putc(b, '\\');
        if (c == '\n')
            mo_buf_puts(b, "\\n");
        else
            mo_buf_putc(b, c >= ' ' && c < 0x7f ? c : '?');
    }
}

/* Write the fewest digits that read back as the same number. */
static void put_double(struct mo_buf *b, double v)
{
    char tmp[40];

    if (isnan(v)) {
        mo_buf_puts(b, "NaN");
        return;
    }
    if (isinf(v)) {
        mo_buf_puts(b, v > 0 ? "+Inf" : "-Inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(tmp, sizeof(tmp), "%.*g", digits, v);
        if (strtod(tmp, NULL) == v)
            break;
    }
    mo_buf_puts(b, tmp);
}

static void put_help(struct mo_buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '\\' || *s == '\n')
            mo_buf_putc(b, '\\');
        mo_buf_putc(b, *s == '\n' ? 'n' : *s);
    }
}

/* Write name[suffix]{labels[,le="bound"]} and the blank before the value. */
static void put_series(struct mo_buf *b, const struct mo_prom_series *s,
                       const char *suffix, const double *bound)
{
    mo_buf_puts(b, s->desc->name);
    mo_buf_puts(b, suffix);
    if (s->labels[0] || bound) {
        mo_buf_putc(b, '{');
        mo_buf_puts(b, s->labels);
        if (bound) {
            mo_buf_puts(b, s->labels[0] ? ",le=\"" : "le=\"");
            put_double(b, *bound);
            mo_buf_putc(b, '"');
        }
        mo_buf_putc(b, '}');
    }
    mo_buf_putc(b, ' ');
}

static void put_u64(struct mo_buf *b, uint64_t v)
{
    mo_buf_u64(b, v);
    mo_buf_putc(b, '\n');
}

static void put_counter(struct mo_buf *b, const struct mo_prom_series *s,
                        const char *suffix)
{
    put_series(b, s, suffix, NULL);
    put_u64(b, s->count);
}

static void put_gauge(struct mo_buf *b, const struct mo_prom_series *s,
                      const char *suffix)
{
    put_series(b, s, suffix, NULL);
    put_double(b, s->value);
    mo_buf_putc(b, '\n');
}

static void write_series(struct mo_buf *b, const struct mo_prom_series *s)
{
    const double inf = INFINITY;
    uint64_t sum = 0;

    if (s->desc->kind == MO_PROM_COUNTER) {
        put_counter(b, s, "");
        return;
    }
    if (s->desc->kind == MO_PROM_GAUGE) {
        put_gauge(b, s, "");
        return;
    }
    for (size_t i = 0; i < s->desc->nbuckets; i++) {
        sum += s->buckets[i];
        put_series(b, s, "_bucket", &s->desc->buckets[i]);
        put_u64(b, sum);
    }
    put_series(b, s, "_bucket", &inf);
    put_u64(b, s->count);
    put_gauge(b, s, "_sum");
    put_counter(b, s, "_count");
}

static bool used(const struct mo_prom_series *s)
{
    return s->count || s->value != 0;
}

static void write_metric(struct mo_buf *b, const struct mo_prom_metric *m)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    const struct mo_prom_desc *d = m->desc;

    if (!m->first && !used(m->other))
        return;
    mo_buf_printf(b, "# HELP %s ", d->name);
    put_help(b, d->help);
    mo_buf_printf(b, "\n# TYPE %s %s\n", d->name, kinds[d->kind]);
    for (const struct mo_prom_series *s = m->first; s; s = s->next)
        write_series(b, s);
    if (used(m->other))
        write_series(b, m->other);
}

void mo_prom_measure(struct mo_prom *p)
{
    for (size_t i = 0; i < p->nhooks; i++)
        p->hooks[i].fn(p->hooks[i].ctx);
}

int mo_prom_write(struct mo_prom *p, struct mo_buf *b)
{
    mo_prom_measure(p);
    for (size_t i = 0; i < p->nmetrics; i++)
        write_metric(b, p->metrics[i]);
    return mo_buf_err(b);
}

/* --- other formats ------------------------------------------------------- */

const struct mo_prom_metric *mo_prom_at(const struct mo_prom *p, size_t i)
{
    return i < p->nmetrics ? p->metrics[i] : NULL;
}

const struct mo_prom_desc *mo_prom_desc(const struct mo_prom_metric *m)
{
    return m->desc;
}

const struct mo_prom_series *mo_prom_next(const struct mo_prom_metric *m,
                                          const struct mo_prom_series *s)
{
    const struct mo_prom_series *next = s ? s->next : m->first;

    if (next)
        return next;
    return s != m->other && used(m->other) ? m->other : NULL;
}

bool mo_prom_label(const char **at, struct mo_prom_label *out)
{
    const char *s = *at, *equals = strchr(s, '=');

    if (!equals)
        return false;
    out->name = mo_span(s, (size_t)(equals - s));
    out->n = 0;
    for (s = equals + 2; *s && *s != '"'; s++) {
        bool escaped = *s == '\\';

        s += escaped;
        MO_BUG_ON(out->n >= MO_PROM_VALUE_MAX);
        out->value[out->n++] = escaped && *s == 'n' ? '\n' : *s;
    }
    out->value[out->n] = '\0';
    *at = s[0] && s[1] == ',' ? s + 2 : "";
    return true;
}

/* --- registry ------------------------------------------------------------ */

struct mo_prom *mo_prom_new(void)
{
    struct mo_prom *p = mo_new(struct mo_prom);

    if (p)
        mo_buf_init(&p->scratch, LABELS_TEXT_MAX);
    return p;
}

static void free_series(struct mo_prom_series *s)
{
    while (s) {
        struct mo_prom_series *next = s->next;

        mo_free(s->labels);
        mo_free(s);
        s = next;
    }
}

static void free_metric(struct mo_prom_metric *m)
{
    free_series(m->first);
    free_series(m->other);
    mo_free(m);
}

void mo_prom_free(struct mo_prom *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->nmetrics; i++)
        free_metric(p->metrics[i]);
    mo_buf_fini(&p->scratch);
    mo_free(p);
}

int mo_prom_hook(struct mo_prom *p, void (*fn)(void *ctx), void *ctx)
{
    if (p->nhooks == MO_PROM_HOOKS_MAX)
        return MO_EBUSY;
    p->hooks[p->nhooks].fn = fn;
    p->hooks[p->nhooks].ctx = ctx;
    p->nhooks++;
    return 0;
}

static struct mo_prom_series *new_series(const struct mo_prom_desc *d,
                                         struct mo_span labels)
{
    struct mo_prom_series *s =
        mo_zalloc(sizeof(*s) + d->nbuckets * sizeof(s->buckets[0]));

    if (!s)
        return NULL;
    s->desc = d;
    s->labels = mo_strndup(labels.p, labels.n);
    if (s->labels)
        return s;
    mo_free(s);
    return NULL;
}

/* Write a="x",b="y" into the scratch buffer; every value is "other" if NULL. */
static int render(struct mo_prom_metric *m, const struct mo_span *values)
{
    struct mo_buf *b = &m->prom->scratch;

    mo_buf_reset(b);
    for (unsigned i = 0; i < m->nlabels; i++) {
        if (i)
            mo_buf_putc(b, ',');
        mo_buf_puts(b, m->desc->labels[i]);
        mo_buf_puts(b, "=\"");
        put_value(b, values ? values[i] : MO_SPAN("other"));
        mo_buf_putc(b, '"');
    }
    return mo_buf_err(b);
}

/* NULL when the scratch buffer or the series could not be made. */
static struct mo_prom_series *make(struct mo_prom_metric *m,
                                   const struct mo_span *values)
{
    if (render(m, values) < 0)
        return NULL;
    return new_series(m->desc, mo_buf_view(&m->prom->scratch));
}

static void append(struct mo_prom_metric *m, struct mo_prom_series *s)
{
    *m->last = s;
    m->last = &s->next;
    m->nseries++;
}

static struct mo_prom_metric *
new_metric(struct mo_prom *p, const struct mo_prom_desc *d, unsigned nlabels)
{
    struct mo_prom_metric *m = mo_new(struct mo_prom_metric);
    struct mo_prom_series *only;

    if (!m)
        return NULL;
    m->desc = d;
    m->prom = p;
    m->nlabels = nlabels;
    m->last = &m->first;
    m->other = make(m, NULL);
    only = m->other && nlabels == 0 ? make(m, NULL) : NULL;
    if (only)
        append(m, only);
    if (m->other && (only || nlabels))
        return m;
    free_metric(m);
    return NULL;
}

static struct mo_prom_metric *find_metric(const struct mo_prom *p,
                                          const char *name)
{
    for (size_t i = 0; i < p->nmetrics; i++) {
        if (strcmp(p->metrics[i]->desc->name, name) == 0)
            return p->metrics[i];
    }
    return NULL;
}

struct mo_prom_metric *
mo_prom_add(struct mo_prom *p, const struct mo_prom_desc *d, struct mo_err *e)
{
    int nlabels = check_desc(d);
    struct mo_prom_metric *m = nlabels < 0 ? NULL : find_metric(p, d->name);

    if (nlabels < 0)
        return mo_null(
            mo_fail(e, MO_EINVAL, "bad metric '%s'", d->name ? d->name : ""));
    if (m && m->desc != d)
        return mo_null(mo_fail(e, MO_EEXISTS, "two metrics '%s'", d->name));
    if (m)
        return m;
    if (p->nmetrics == MO_PROM_METRICS_MAX)
        return mo_null(mo_fail(e, MO_EBUSY, "too many metrics"));
    m = new_metric(p, d, (unsigned)nlabels);
    if (m)
        p->metrics[p->nmetrics++] = m;
    else
        (void)mo_fail(e, MO_ENOMEM, "metric '%s'", d->name);
    return m;
}

struct mo_prom_series *mo_prom_with(struct mo_prom_metric *m,
                                    const struct mo_span *values)
{
    struct mo_prom_series *s;

    if (!m)
        return NULL;
    if (m->nlabels == 0)
        return m->first;
    if (render(m, values) < 0)
        return m->other;
    for (s = m->first; s; s = s->next) {
        if (mo_span_is(mo_buf_view(&m->prom->scratch), s->labels))
            return s;
    }
    if (mo_span_is(mo_buf_view(&m->prom->scratch), m->other->labels) ||
        m->nseries == MO_PROM_SERIES_MAX)
        return m->other;
    s = new_series(m->desc, mo_buf_view(&m->prom->scratch));
    if (!s)
        return m->other;
    append(m, s);
    return s;
}

void mo_prom_observe(struct mo_prom_series *s, double v)
{
    size_t i = 0;

    if (!s || isnan(v))
        return;
    while (i < s->desc->nbuckets && v > s->desc->buckets[i])
        i++;
    if (i < s->desc->nbuckets)
        s->buckets[i]++;
    s->count++;
    s->value += v;
}

/* --- pages of several processes ------------------------------------------ */

/* Cuts the next metric off: from its "# HELP" line to the next one. */
static struct mo_span cut_metric(struct mo_span *page)
{
    struct mo_span all = *page;
    ptrdiff_t at = mo_span_search(mo_span_skip(all, 1), MO_SPAN("\n# HELP "));

    if (at < 0)
        *page = mo_span(NULL, 0);
    else
        *page = mo_span_skip(all, (size_t)at + 2);
    return mo_span(all.p, all.n - page->n);
}

/* The "# HELP" line, which names the metric. */
static struct mo_span head_of(struct mo_span metric)
{
    return mo_span_cut(&metric, '\n');
}

/* The metric of that head in the page; n == 0: there is none. */
static struct mo_span find_part(struct mo_span page, struct mo_span head)
{
    while (page.n > 0) {
        struct mo_span m = cut_metric(&page);

        if (mo_span_eq(head_of(m), head))
            return m;
    }
    return mo_span(NULL, 0);
}

static void put_joined(struct mo_span metric, const char *label, size_t number,
                       struct mo_buf *b)
{
    while (metric.n > 0) {
        struct mo_span line = mo_span_cut(&metric, '\n');
        size_t name = 0;

        if (line.n == 0 || line.p[0] == '#')
            continue;
        while (name < line.n && line.p[name] != '{' && line.p[name] != ' ')
            name++;
        mo_buf_put(b, line.p, name);
        mo_buf_printf(b, "{%s=\"%zu\"", label, number);
        line = mo_span_skip(line, name);
        if (line.n > 0 && line.p[0] == '{') {
            mo_buf_puts(b, ",");
            line = mo_span_skip(line, 1);
        } else {
            mo_buf_puts(b, "}");
        }
        mo_buf_span(b, line);
        mo_buf_puts(b, "\n");
    }
}

/* Only the first page that has the metric writes it, for all. */
static bool was_written(const struct mo_span *pages, size_t n,
                        struct mo_span head)
{
    for (size_t i = 0; i < n; i++)
        if (find_part(pages[i], head).n > 0)
            return true;
    return false;
}

int mo_prom_join(const struct mo_span *pages, size_t n, const char *label,
                 struct mo_buf *b)
{
    for (size_t i = 0; i < n; i++) {
        struct mo_span page = pages[i];

        while (page.n > 0) {
            struct mo_span m = cut_metric(&page), rest = m;
            struct mo_span head = head_of(m);

            if (was_written(pages, i, head))
                continue;
            (void)mo_span_cut(&rest, '\n');
            mo_buf_span(b, head);
            mo_buf_puts(b, "\n");
            mo_buf_span(b, mo_span_cut(&rest, '\n')); /* "# TYPE" */
            mo_buf_puts(b, "\n");
            for (size_t k = i; k < n; k++)
                put_joined(find_part(pages[k], head), label, k + 1, b);
        }
    }
    return mo_buf_err(b);
}
