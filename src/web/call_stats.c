#include "web/call_stats.h"

#include <stdlib.h>

#include "agent/chat/tally.h"
#include "base/map.h"
#include "base/mem.h"

#define KEY_MAX ((size_t)512) /* of server and tool together */

/* Upper bounds in ms, each about a third above the last. One more bucket
 * counts longer calls. */
static const unsigned bounds[] = {
    1,     2,     3,     4,     6,     8,      11,     15,    20,   27,
    36,    48,    64,    85,    110,   150,    200,    270,   360,  480,
    640,   850,   1100,  1500,  2000,  2700,   3600,   4800,  6400, 8500,
    11000, 15000, 20000, 30000, 60000, 120000, 300000, 600000};

struct sum {
    uint64_t calls, errors;
    uint64_t longest;
    uint32_t took[MO_COUNT(bounds) + 1];
};

struct row {
    struct sum sum;
    size_t server;    /* bytes of the server's name in the key */
    struct row *of;   /* row of a tool's server; NULL: a server's row */
    uint64_t owner[]; /* the owner's bytes, of a tool */
};

struct mo_call_stats {
    struct sum all;
    struct mo_tally minutes;
    size_t own;
    struct mo_map rows; /* "server" or "server NUL tool" -> struct row */
};

struct mo_call_stats *mo_call_stats_new(size_t own)
{
    struct mo_call_stats *s = mo_new(struct mo_call_stats);

    if (!s)
        return NULL;
    s->own = own;
    mo_map_init(&s->rows, MO_CALL_STATS_ROWS);
    return s;
}

void mo_call_stats_free(struct mo_call_stats *s)
{
    if (!s)
        return;
    mo_map_each (en, &s->rows)
        mo_free(en->value);
    mo_map_fini(&s->rows);
    mo_free(s);
}

/* --- counting ------------------------------------------------------------ */

static size_t bucket_of(uint64_t ms)
{
    size_t i = 0;

    while (i < MO_COUNT(bounds) && ms > bounds[i])
        i++;
    return i;
}

static void count_call(struct sum *r, const struct mo_call_stats_call *c)
{
    r->calls++;
    r->errors += c->failed;
    r->took[bucket_of(c->ms)]++;
    r->longest = c->ms > r->longest ? c->ms : r->longest;
}

/* Adds a row. of: a tool's server; NULL: a server's row. NULL: the limit is
 * reached, or out of memory. */
static struct row *row_new(struct mo_call_stats *s, struct mo_span key,
                           size_t server, struct row *of)
{
    struct row *r = mo_zalloc(sizeof(*r) + (of ? s->own : 0));

    if (!r)
        return NULL;
    r->server = server;
    r->of = of;
    if (mo_map_put(&s->rows, key, r, NULL) == 0)
        return r;
    mo_free(r);
    return NULL;
}

/* Adds the rows of a tool and its server. Returns the server's row if there
 * is no place for the tool. */
static struct row *add_tool_row(struct mo_call_stats *s, struct mo_span key,
                                size_t n)
{
    struct row *server = mo_map_get(&s->rows, mo_span(key.p, n));
    struct row *tool = NULL;

    if (!server)
        server = row_new(s, mo_span(key.p, n), n, NULL);
    if (server)
        tool = row_new(s, key, n, server);
    return tool ? tool : server;
}

/* The tool's row, or its server's at the limit, or NULL. */
static struct row *find_or_add_row(struct mo_call_stats *s,
                                   const struct mo_call_stats_call *c)
{
    size_t n = c->server.n + 1 + c->tool.n;
    struct row *r = NULL;
    char key[KEY_MAX];

    if (n > sizeof(key))
        return NULL;
    memcpy(key, c->server.p, c->server.n);
    key[c->server.n] = '\0';
    memcpy(key + c->server.n + 1, c->tool.p, c->tool.n);
    r = mo_map_get(&s->rows, mo_span(key, n));
    return r ? r : add_tool_row(s, mo_span(key, n), c->server.n);
}

void *mo_call_stats_add(struct mo_call_stats *s,
                        const struct mo_call_stats_call *c, uint64_t now)
{
    struct row *r = find_or_add_row(s, c);

    count_call(&s->all, c);
    mo_tally_call(&s->minutes, c->ms, c->failed, now);
    if (!r)
        return NULL;
    count_call(&r->sum, c);
    if (!r->of)
        return NULL;
    count_call(&r->of->sum, c);
    return r->owner;
}

/* --- output -------------------------------------------------------------- */

/* Estimates a percentile, assuming that calls are spread evenly in a bucket. */
static double quantile(const struct sum *r, double percent)
{
    double want = (double)r->calls * percent / 100, below = 0;

    for (size_t i = 0; i < MO_COUNT(r->took); i++) {
        double n = r->took[i], from = i ? bounds[i - 1] : 0;
        double to = i < MO_COUNT(bounds) ? bounds[i] : (double)r->longest;

        to = to < (double)r->longest ? to : (double)r->longest;
        if (n > 0 && below + n >= want)
            return to > from ? from + (to - from) * (want - below) / n : to;
        below += n;
    }
    return 0;
}

static double rounded(double ms)
{
    return (double)(int64_t)(ms * 10 + 0.5) / 10;
}

static void put_ms(struct mo_jw *w, const char *key, double ms)
{
    mo_jw_member_f64(w, key, rounded(ms));
}

/* For mo_call_stats_put_p50(). */
static void put_buckets(struct mo_jw *w, const struct sum *r)
{
    mo_jw_member_u64(w, "longest", r->longest);
    mo_jw_member_arr(w, "took");
    for (size_t i = 0; i < MO_COUNT(r->took); i++)
        mo_jw_u64(w, r->took[i]);
    mo_jw_end(w);
}

static void put_sum(struct mo_jw *w, const struct sum *r, bool raw)
{
    mo_jw_member_u64(w, "calls", r->calls);
    mo_jw_member_u64(w, "errors", r->errors);
    put_ms(w, "p50Ms", quantile(r, 50));
    put_ms(w, "p95Ms", quantile(r, 95));
    if (raw)
        put_buckets(w, r);
}

/* --- of several processes ------------------------------------------------- */

static void add_sum(struct sum *to, struct mo_json v)
{
    uint64_t longest = 0;
    size_t i = 0;

    (void)mo_json_u64(mo_json_get(v, "longest"), &longest);
    to->longest = longest > to->longest ? longest : to->longest;
    mo_json_each_while (it, mo_json_get(v, "took"), i < MO_COUNT(to->took)) {
        uint64_t n = 0;

        (void)mo_json_u64(it.val, &n);
        to->took[i++] += (uint32_t)n;
        to->calls += n;
    }
}

static void put_merged(struct mo_jw *w, const struct mo_json *v, size_t n,
                       double percent)
{
    struct sum all = {.calls = 0};

    for (size_t i = 0; i < n; i++)
        add_sum(&all, v[i]);
    mo_jw_f64(w, rounded(quantile(&all, percent)));
}

void mo_call_stats_put_p50(struct mo_jw *w, const struct mo_json *v, size_t n)
{
    put_merged(w, v, n, 50);
}

void mo_call_stats_put_p95(struct mo_jw *w, const struct mo_json *v, size_t n)
{
    put_merged(w, v, n, 95);
}

/* --- by minute ------------------------------------------------------------ */

enum column { CALLS, ERRORS, LONGEST, COLUMNS };

static uint64_t minute_value(const struct mo_tally_minute *m, enum column c)
{
    return c == CALLS ? m->calls : c == ERRORS ? m->failed : m->longest_ms;
}

/* The current minute is the last one. */
static void put_minutes(const struct mo_call_stats *s, uint64_t now,
                        struct mo_jw *w)
{
    static const char *const names[COLUMNS] = {"perMinute", "errorsPerMinute",
                                               "longestMs"};

    for (int c = 0; c < COLUMNS; c++) {
        mo_jw_member_arr(w, names[c]);
        for (unsigned ago = MO_TALLY_MINUTES; ago > 0; ago--) {
            struct mo_tally_minute m = mo_tally_at(&s->minutes, now, ago - 1);

            mo_jw_u64(w, minute_value(&m, (enum column)c));
        }
        mo_jw_end(w);
    }
}

void mo_call_stats_put(const struct mo_call_stats *s, uint64_t now, bool raw,
                       struct mo_jw *w)
{
    put_sum(w, &s->all, raw);
    put_minutes(s, now, w);
}

/* --- one server ---------------------------------------------------------- */

struct tool {
    struct mo_span name;
    const struct sum *sum;
};

static int by_calls(const void *a, const void *b)
{
    const struct sum *x = ((const struct tool *)a)->sum;
    const struct sum *y = ((const struct tool *)b)->sum;

    return (x->calls < y->calls) - (x->calls > y->calls);
}

static bool is_tool_of(const struct mo_map_entry *en, struct mo_span server)
{
    const struct row *r = en->value;

    return en->key_len > r->server &&
           mo_span_eq(mo_span(en->key, r->server), server);
}

static void put_tools(const struct mo_call_stats *s, struct mo_span server,
                      size_t most, bool raw, struct mo_jw *w)
{
    mo_autofree struct tool *v = mo_alloc((s->rows.len + 1) * sizeof(*v));
    size_t n = 0;

    mo_map_each (en, &s->rows) {
        const struct row *r = en->value;

        if (v && is_tool_of(en, server))
            v[n++] = (struct tool){mo_span_skip(mo_map_key(en), server.n + 1),
                                   &r->sum};
    }
    if (n > 1)
        qsort(v, n, sizeof(*v), by_calls);
    for (size_t i = 0; i < n && i < most; i++) {
        mo_jw_obj(w);
        mo_jw_member(w, "name", v[i].name);
        put_sum(w, v[i].sum, raw);
        mo_jw_end(w);
    }
}

void mo_call_stats_put_server(const struct mo_call_stats *s,
                              struct mo_span server, size_t most, bool raw,
                              struct mo_jw *w)
{
    static const struct sum none;
    const struct row *r = mo_map_get(&s->rows, server);

    put_sum(w, r ? &r->sum : &none, raw);
    mo_jw_member_arr(w, "tools");
    if (r)
        put_tools(s, server, most, raw, w);
    mo_jw_end(w);
}
