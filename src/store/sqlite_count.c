/* sqlite_count.c - sums of a day as rows, on the writer's thread, in the
 * savepoint of the batch. */
#include "store/sqlite_priv.h"

#define DAY_MS ((uint64_t)24 * 3600 * 1000)

struct sum {
    struct mo_span name;
    int64_t day, now;
};

static int read_sum(struct mo_sql *sql, struct mo_op *op, struct sum *s)
{
    return mo_sql_number(sql, MO_SQL_DAILY_GET, &s->now, &op->err, "it", s->day,
                         s->name);
}

/* A name too many is "other", with what follows the tab. */
static struct mo_span name_of_others(struct mo_op *op, struct mo_span name)
{
    ptrdiff_t tab = mo_span_find(name, '\t');
    struct mo_span rest =
        tab < 0 ? MO_SPAN("") : mo_span_skip(name, (size_t)tab);
    char *p = mo_arena_alloc(&op->mem, rest.n + 5);

    if (!p)
        return MO_SPAN("other");
    memcpy(p, "other", 5);
    if (rest.n)
        memcpy(p + 5, rest.p, rest.n);
    return mo_span(p, rest.n + 5);
}

static int find_sum(struct mo_sql *sql, struct mo_op *op, struct sum *s)
{
    int64_t names = 0;
    int rc = read_sum(sql, op, s);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = mo_sql_number(sql, MO_SQL_DAILY_NAMES, &names, &op->err, "i", s->day);
    if (rc >= 0 && names >= MO_COUNTER_NAMES) {
        s->name = name_of_others(op, s->name);
        rc = read_sum(sql, op, s);
    }
    return rc < 0 ? rc : 0;
}

static bool has_room(const struct mo_counter *c, const struct sum *s)
{
    return !c->limit || s->now + c->add <= (int64_t)c->limit;
}

static int64_t clamp_sum(int64_t v)
{
    return v < 0 ? 0 : v > MO_COUNTER_SUM_MAX ? MO_COUNTER_SUM_MAX : v;
}

int mo_sqlite_count(struct mo_sqlite *q, struct mo_op *op)
{
    struct mo_sql *sql = &q->writer.sql;
    uint64_t today = op->now_ms / DAY_MS;
    struct sum v[MO_COUNTERS_MAX];
    int rc = 0;

    op->counted.day = today;
    for (size_t i = 0; i < op->ncounters && rc == 0; i++) {
        const struct mo_counter *c = &op->counters[i];

        v[i] = (struct sum){.name = c->name,
                            .day = (int64_t)(c->day ? c->day : today)};
        rc = find_sum(sql, op, &v[i]);
        if (rc == 0 && !has_room(c, &v[i])) {
            op->counted.refused = true;
            op->counted.which = i;
            op->counted.wait_ms = (today + 1) * DAY_MS - op->now_ms;
            return 0;
        }
    }
    for (size_t i = 0; i < op->ncounters && rc >= 0; i++)
        rc = mo_sql_do(sql, MO_SQL_DAILY_PUT, &op->err, "iti", v[i].day,
                       v[i].name, clamp_sum(v[i].now + op->counters[i].add));
    return rc < 0 ? rc : 0;
}
