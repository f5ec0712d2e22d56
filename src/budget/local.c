#include "budget/local.h"

#include "base/clock.h"

void mo_local_init(struct mo_local *l)
{
    *l = (struct mo_local){.others = {.last = 0}};
    mo_map_init(&l->windows, MO_LOCAL_NAMES);
    mo_list_init(&l->holds);
}

void mo_local_fini(struct mo_local *l)
{
    mo_map_each (en, &l->windows)
        mo_free(en->value);
    mo_map_fini(&l->windows);
    mo_list_each_entry_safe (h, &l->holds, struct mo_hold_row, node)
        mo_hold_row_free(h);
}

/* --- calls --------------------------------------------------------------- */

/* Forgets the seconds that are over. */
void mo_local_roll(struct mo_local_window *w, uint64_t second)
{
    if (second >= w->last + MO_LOCAL_SECONDS) {
        *w = (struct mo_local_window){.last = second};
        return;
    }
    while (w->last < second) {
        uint32_t *c = &w->counts[++w->last % MO_LOCAL_SECONDS];

        w->sum -= *c;
        *c = 0;
    }
}

/* Removes names without a call in the last minute. */
static void make_room(struct mo_local *l, uint64_t second)
{
    struct mo_map kept;

    mo_map_init(&kept, MO_LOCAL_NAMES);
    mo_map_each (en, &l->windows) {
        struct mo_local_window *w = en->value;

        if (second - w->last >= MO_LOCAL_SECONDS ||
            mo_map_put(&kept, mo_map_key(en), w, NULL) < 0)
            mo_free(w);
    }
    mo_map_fini(&l->windows);
    l->windows = kept;
}

static struct mo_local_window *window_of(struct mo_local *l,
                                         struct mo_span name, uint64_t second)
{
    struct mo_local_window *w = mo_map_get(&l->windows, name);

    if (!w) {
        if (l->windows.len >= MO_LOCAL_NAMES)
            make_room(l, second);
        w = mo_new(struct mo_local_window);
        if (w)
            w->last = second;
        if (w && mo_map_put(&l->windows, name, w, NULL) < 0)
            mo_free(mo_take_ptr(&w));
    }
    w = w ? w : &l->others;
    mo_local_roll(w, second);
    return w;
}

bool mo_local_fits(const struct mo_local_window *w, uint64_t limit,
                   uint64_t now, uint64_t *wait_ms)
{
    uint64_t second = now / MO_S, first = second;

    if (w->sum < limit)
        return true;
    for (uint64_t i = 0; i < MO_LOCAL_SECONDS && i <= second; i++)
        if (w->counts[(second - i) % MO_LOCAL_SECONDS])
            first = second - i;
    *wait_ms = ((first + MO_LOCAL_SECONDS) * MO_S - now) / MO_MS + 1;
    return false;
}

void mo_local_add(struct mo_local_window *w, uint64_t now)
{
    w->counts[now / MO_S % MO_LOCAL_SECONDS]++;
    w->sum++;
}

bool mo_local_has_room(struct mo_local *l, struct mo_span name, uint64_t limit,
                       uint64_t now, uint64_t *wait_ms)
{
    return mo_local_fits(window_of(l, name, now / MO_S), limit, now, wait_ms);
}

void mo_local_count(struct mo_local *l, struct mo_span name, uint64_t now)
{
    mo_local_add(window_of(l, name, now / MO_S), now);
}

/* --- holders ------------------------------------------------------------- */

struct mo_hold_row *mo_hold_row_new(struct mo_span name, struct mo_span holder)
{
    struct mo_hold_row *h = mo_new(struct mo_hold_row);

    if (!h)
        return NULL;
    mo_list_init(&h->node);
    h->name = mo_strndup(name.p, name.n);
    h->holder = mo_strndup(holder.p, holder.n);
    if (h->name && h->holder)
        return h;
    mo_hold_row_free(h);
    return NULL;
}

void mo_hold_row_free(struct mo_hold_row *h)
{
    if (!h)
        return;
    mo_list_del(&h->node);
    mo_free(h->name);
    mo_free(h->holder);
    mo_free(h);
}

void mo_local_hold(struct mo_local *l, struct mo_hold_row *h)
{
    mo_list_push(&l->holds, &h->node);
}

struct mo_hold_row *mo_local_held(const struct mo_local *l, struct mo_span name,
                                  struct mo_span holder)
{
    mo_list_each_entry (h, &l->holds, struct mo_hold_row, node)
        if (mo_span_is(name, h->name) && mo_span_is(holder, h->holder))
            return h;
    return NULL;
}

bool mo_local_hold_on(const struct mo_local *l, struct mo_span name,
                      struct mo_span holder)
{
    struct mo_hold_row *h = mo_local_held(l, name, holder);

    if (h)
        h->until = 0;
    return h != NULL;
}

void mo_local_expire(struct mo_local *l, uint64_t now)
{
    mo_list_each_entry_safe (h, &l->holds, struct mo_hold_row, node)
        if (h->until && h->until <= now)
            mo_hold_row_free(h);
}

uint64_t mo_local_holders(const struct mo_local *l, struct mo_span name)
{
    uint64_t n = 0;

    mo_list_each_entry (h, &l->holds, const struct mo_hold_row, node)
        n += mo_span_is(name, h->name);
    return n;
}
