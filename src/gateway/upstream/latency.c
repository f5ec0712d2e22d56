#include "gateway/upstream/latency.h"

#include "base/mem.h"

#define KEY_MAX ((size_t)1024) /* of server and tool together */

void mo_latency_init(struct mo_latency *p)
{
    mo_map_init(&p->rows, LATENCY_ROWS_MAX);
}

void mo_latency_fini(struct mo_latency *p)
{
    mo_map_each (en, &p->rows)
        mo_free(en->value);
    mo_map_fini(&p->rows);
}

/* The key is server, NUL, tool. Empty: too long. */
static struct mo_span make_key(char buf[KEY_MAX], const char *server,
                               struct mo_span tool)
{
    size_t n = strlen(server) + 1;

    if (n + tool.n > KEY_MAX)
        return mo_span(NULL, 0);
    memcpy(buf, server, n);
    if (tool.n)
        memcpy(buf + n, tool.p, tool.n);
    return mo_span(buf, n + tool.n);
}

struct mo_latency_row *mo_latency_row(struct mo_latency *p, const char *server,
                                      struct mo_span tool)
{
    char buf[KEY_MAX];
    struct mo_span key = make_key(buf, server, tool);
    struct mo_latency_row *r = key.n ? mo_map_get(&p->rows, key) : NULL;

    if (r || !key.n)
        return r;
    r = mo_new(struct mo_latency_row);
    if (r && mo_map_put(&p->rows, key, r, NULL) < 0) {
        mo_free(r);
        return NULL;
    }
    return r;
}

static void halve_counts(struct mo_latency_row *r)
{
    r->calls = 0;
    r->failed /= 2;
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        r->buckets[i] /= 2;
        r->calls += r->buckets[i];
    }
}

void mo_latency_add(struct mo_latency_row *r, uint64_t us, bool failed)
{
    uint64_t end = LATENCY_FIRST_US;
    size_t i = 0;

    if (!r)
        return;
    while (i + 1 < LATENCY_BUCKETS && us > end) {
        end *= 2;
        i++;
    }
    r->buckets[i]++;
    r->calls++;
    r->failed += failed;
    if (r->calls > LATENCY_FULL)
        halve_counts(r);
}

/* Upper end of the bucket that holds this percentile. */
static uint64_t percentile_us(const struct mo_latency_row *r, unsigned percent)
{
    uint64_t end = LATENCY_FIRST_US, sum = 0;

    for (size_t i = 0; i < LATENCY_BUCKETS; i++, end *= 2) {
        sum += r->buckets[i];
        if (sum * 100 >= (uint64_t)r->calls * percent)
            return end;
    }
    return end / 2;
}

bool mo_latency_get(const struct mo_latency *p, const char *server,
                    struct mo_span tool, struct mo_latency_stats *out)
{
    char buf[KEY_MAX];
    struct mo_span key = make_key(buf, server, tool);
    const struct mo_latency_row *r = key.n ? mo_map_get(&p->rows, key) : NULL;

    if (!r || r->calls == 0)
        return false;
    *out = (struct mo_latency_stats){.calls = r->calls,
                                     .failed = r->failed,
                                     .p50_us = percentile_us(r, 50),
                                     .p95_us = percentile_us(r, 95)};
    return true;
}
