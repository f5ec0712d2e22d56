#include "web/merge.h"

#include "base/mem.h"

/* --- numbers -------------------------------------------------------------- */

static uint64_t number(struct mo_json v)
{
    uint64_t n = 0;

    return mo_json_u64(v, &n) == 0 ? n : 0;
}

uint64_t mo_merge_sum(const struct mo_json *v, size_t n, const char *key)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += number(mo_json_get(v[i], key));
    return sum;
}

/* 0 is no time: nothing has happened. */
static uint64_t extreme(const struct mo_json *v, size_t n, const char *key,
                        bool largest)
{
    uint64_t best = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t x = number(mo_json_get(v[i], key));

        if (x && (!best || (largest ? x > best : x < best)))
            best = x;
    }
    return best;
}

/* --- arrays of numbers ---------------------------------------------------- */

/* One place of the arrays `key` of all objects. */
static uint64_t place(const struct mo_json *v, size_t n,
                      const struct mo_merge_rule *r, size_t at)
{
    uint64_t sum = 0, most = 0, weights = 0, weighted = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t x = number(mo_json_at(mo_json_get(v[i], r->key), at));
        uint64_t weight =
            r->by ? number(mo_json_at(mo_json_get(v[i], r->by), at)) : 0;

        sum += x;
        most = x > most ? x : most;
        weights += weight;
        weighted += x * weight;
    }
    if (r->op == MO_MERGE_EACH_MEAN)
        return weights ? weighted / weights : 0;
    return r->op == MO_MERGE_EACH_SUM ? sum : most;
}

static void put_places(struct mo_jw *w, const struct mo_json *v, size_t n,
                       const struct mo_merge_rule *r)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        size_t own = mo_json_len(mo_json_get(v[i], r->key));

        len = own > len ? own : len;
    }
    mo_jw_arr(w);
    for (size_t at = 0; at < len; at++)
        mo_jw_u64(w, place(v, n, r, at));
    mo_jw_end(w);
}

static void put_joined(struct mo_jw *w, const struct mo_json *v, size_t n,
                       const char *key)
{
    mo_jw_arr(w);
    for (size_t i = 0; i < n; i++)
        mo_json_each (it, mo_json_get(v[i], key))
            mo_jw_raw(w, mo_json_text(it.val));
    mo_jw_end(w);
}

/* --- rows ----------------------------------------------------------------- */

struct row {
    struct mo_json v[MO_MERGE_MAX]; /* the same row of each that has it */
    size_t n;
    uint64_t rank;
};

struct rows {
    struct row *v;
    size_t n;
};

static bool agree(struct mo_json a, struct mo_json b, const char *key)
{
    return !key || mo_span_eq(mo_json_text(mo_json_get(a, key)),
                              mo_json_text(mo_json_get(b, key)));
}

static void add_row(struct rows *all, struct mo_json one,
                    const struct mo_merge_rule *r)
{
    struct row *to = NULL;

    for (size_t i = 0; i < all->n && !to; i++)
        if (agree(all->v[i].v[0], one, r->by) &&
            agree(all->v[i].v[0], one, r->and) &&
            agree(all->v[i].v[0], one, r->also))
            to = &all->v[i];
    if (!to && all->n < MO_MERGE_ROWS)
        to = &all->v[all->n++];
    if (!to || to->n == MO_MERGE_MAX)
        return;
    to->v[to->n++] = one;
}

static void rank_rows(struct rows *all, const struct mo_merge_rule *r)
{
    bool is_time = false;

    for (const struct mo_merge_rule *k = r->in; k->key; k++)
        is_time |= strcmp(k->key, r->order) == 0 && k->op == MO_MERGE_LATEST;
    for (size_t i = 0; i < all->n; i++) {
        struct row *x = &all->v[i];

        x->rank = is_time ? extreme(x->v, x->n, r->order, true)
                          : mo_merge_sum(x->v, x->n, r->order);
    }
}

/* Stable: few rows. */
static void sort_rows(struct rows *all)
{
    for (size_t i = 1; i < all->n; i++) {
        struct row x = all->v[i];
        size_t k = i;

        for (; k > 0 && all->v[k - 1].rank < x.rank; k--)
            all->v[k] = all->v[k - 1];
        all->v[k] = x;
    }
}

static size_t count_rows(const struct mo_json *v, size_t n, const char *key)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += mo_json_len(mo_json_get(v[i], key));
    return sum < MO_MERGE_ROWS ? sum : MO_MERGE_ROWS;
}

static void put_rows(struct mo_jw *w, const struct mo_json *v, size_t n,
                     const struct mo_merge_rule *r)
{
    mo_autofree struct row *rows =
        mo_zalloc((count_rows(v, n, r->key) + 1) * sizeof(*rows));
    struct rows all = {.v = rows};

    mo_jw_arr(w);
    for (size_t i = 0; rows && i < n; i++)
        mo_json_each (it, mo_json_get(v[i], r->key))
            add_row(&all, it.val, r);
    if (r->order) {
        rank_rows(&all, r);
        sort_rows(&all);
    }
    for (size_t i = 0; i < all.n && (!r->most || i < r->most); i++)
        mo_merge(w, all.v[i].v, all.v[i].n, r->in);
    mo_jw_end(w);
}

/* --- objects -------------------------------------------------------------- */

static bool is_cold(struct mo_json v)
{
    return mo_json_str_eq(mo_json_get(v, "state"), MO_SPAN("cold")) ||
           mo_json_str_eq(mo_json_get(v, "status"), MO_SPAN("disconnected"));
}

struct mo_json mo_merge_base(const struct mo_json *v, size_t n)
{
    struct mo_json best = v[0];

    for (size_t i = 1; i < n; i++) {
        bool warmer = is_cold(best) && !is_cold(v[i]);
        bool colder = !is_cold(best) && is_cold(v[i]);

        if (warmer || (!colder && number(mo_json_get(v[i], "lastCheck")) >
                                      number(mo_json_get(best, "lastCheck"))))
            best = v[i];
    }
    return best;
}

/* The objects `key` of all that have one. */
static void put_inner(struct mo_jw *w, const struct mo_json *v, size_t n,
                      const struct mo_merge_rule *r, struct mo_json base)
{
    struct mo_json in[MO_MERGE_MAX];
    size_t k = 0;

    in[k++] = mo_json_get(base, r->key);
    for (size_t i = 0; i < n && k < MO_MERGE_MAX; i++) {
        struct mo_json one = mo_json_get(v[i], r->key);

        if (v[i].p != base.p && mo_json_is(one, MO_JSON_OBJECT))
            in[k++] = one;
    }
    mo_merge(w, in, k, r->in);
}

static const struct mo_merge_rule *rule_of(const struct mo_merge_rule *rules,
                                           struct mo_json key)
{
    for (; rules->key; rules++)
        if (mo_json_str_eq(key, mo_span_cstr(rules->key)))
            return rules;
    return NULL;
}

static void put_value(struct mo_jw *w, const struct mo_json *v, size_t n,
                      const struct mo_merge_rule *r, struct mo_json base)
{
    switch (r->op) {
    case MO_MERGE_SUM:
        mo_jw_u64(w, mo_merge_sum(v, n, r->key));
        break;
    case MO_MERGE_LATEST:
    case MO_MERGE_FIRST:
        mo_jw_u64(w, extreme(v, n, r->key, r->op == MO_MERGE_LATEST));
        break;
    case MO_MERGE_EACH_SUM:
    case MO_MERGE_EACH_MOST:
    case MO_MERGE_EACH_MEAN:
        put_places(w, v, n, r);
        break;
    case MO_MERGE_JOIN:
        put_joined(w, v, n, r->key);
        break;
    case MO_MERGE_BY:
        put_rows(w, v, n, r);
        break;
    case MO_MERGE_IN:
        put_inner(w, v, n, r, base);
        break;
    case MO_MERGE_PUT:
        r->put(w, v, n);
        break;
    case MO_MERGE_HIDE:
        break;
    }
}

void mo_merge(struct mo_jw *w, const struct mo_json *v, size_t n,
              const struct mo_merge_rule *rules)
{
    struct mo_json base = mo_merge_base(v, n);

    mo_jw_obj(w);
    mo_json_each (it, base) {
        const struct mo_merge_rule *r = rule_of(rules, it.key);

        if (r && r->op == MO_MERGE_HIDE)
            continue;
        mo_jw_key_raw(w, it.key);
        if (r)
            put_value(w, v, n, r, base);
        else
            mo_jw_raw(w, mo_json_text(it.val));
    }
    mo_jw_end(w);
}
