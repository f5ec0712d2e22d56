#include "budget/shared.h"

#include "base/clock.h"
#include "base/rand.h"

#define PROBES 16 /* slots that a name may be in */

int mo_budget_shared_init(struct mo_budget_shared *s, struct mo_err *e)
{
    s->k0 = mo_random_u64();
    s->k1 = mo_random_u64();
    return mo_lock_init(&s->lock, e);
}

/* Whatever a process was writing when it died: a row has its name before it
 * counts, and a holder its texts before it is one, so the worst is a call that
 * is not counted. Only the number of holders may be out of range. */
static void take(struct mo_budget_shared *s)
{
    if (!mo_lock_take(&s->lock) && s->nholds > MO_SHARED_HOLDS)
        s->nholds = 0;
}

static void put_text(char *out, size_t size, struct mo_span text)
{
    size_t n = text.n < size ? text.n : size - 1;

    if (n)
        memcpy(out, text.p, n);
    out[n] = 0;
}

/* --- calls --------------------------------------------------------------- */

/* The window of a name, in one of its slots; or that of all others. */
static struct mo_local_window *window_of(struct mo_budget_shared *s,
                                         struct mo_span name, uint64_t second)
{
    size_t at = mo_siphash(s->k0, s->k1, name) % MO_SHARED_NAMES;
    struct mo_shared_window *old = NULL;

    for (size_t i = 0; i < PROBES; i++) {
        struct mo_shared_window *x = &s->windows[(at + i) % MO_SHARED_NAMES];

        if (mo_span_is(name, x->name)) {
            mo_local_roll(&x->w, second);
            return &x->w;
        }
        if (!old && (!x->name[0] || second >= x->w.last + MO_LOCAL_SECONDS))
            old = x;
    }
    if (!old) {
        mo_local_roll(&s->others, second);
        return &s->others;
    }
    put_text(old->name, sizeof(old->name), name);
    old->w = (struct mo_local_window){.last = second};
    return &old->w;
}

/* --- holders ------------------------------------------------------------- */

static struct mo_shared_hold *find(struct mo_budget_shared *s,
                                   struct mo_span name, struct mo_span holder)
{
    for (size_t i = 0; i < s->nholds; i++)
        if (mo_span_is(holder, s->holds[i].holder) &&
            mo_span_is(name, s->holds[i].name))
            return &s->holds[i];
    return NULL;
}

static void drop(struct mo_budget_shared *s, struct mo_shared_hold *h)
{
    *h = s->holds[s->nholds - 1];
    s->nholds--;
}

static void expire(struct mo_budget_shared *s, uint64_t now)
{
    for (size_t i = s->nholds; i > 0; i--)
        if (s->holds[i - 1].until && s->holds[i - 1].until <= now)
            drop(s, &s->holds[i - 1]);
}

static size_t holders(const struct mo_budget_shared *s, struct mo_span name)
{
    size_t n = 0;

    for (size_t i = 0; i < s->nholds; i++)
        n += mo_span_is(name, s->holds[i].name);
    return n;
}

/* False: the table is full, or the holder's name is too long for it. */
static bool hold(struct mo_budget_shared *s, unsigned owner,
                 const struct mo_shared_want *x)
{
    struct mo_shared_hold *h = find(s, x->name, x->holder);

    if (!h) {
        if (s->nholds == MO_SHARED_HOLDS || x->holder.n > MO_SHARED_HOLDER_MAX)
            return false;
        h = &s->holds[s->nholds];
        put_text(h->name, sizeof(h->name), x->name);
        put_text(h->holder, sizeof(h->holder), x->holder);
        s->nholds++;
    }
    h->owner = owner;
    h->until = 0;
    return true;
}

void mo_budget_shared_clear(struct mo_budget_shared *s, unsigned owner)
{
    take(s);
    for (size_t i = s->nholds; i > 0; i--)
        if (s->holds[i - 1].owner == owner)
            drop(s, &s->holds[i - 1]);
    mo_lock_drop(&s->lock);
}

void mo_budget_shared_release(struct mo_budget_shared *s, struct mo_span name,
                              struct mo_span holder)
{
    struct mo_shared_hold *h;

    take(s);
    h = find(s, name, holder);
    if (h)
        drop(s, h);
    mo_lock_drop(&s->lock);
}

void mo_budget_shared_release_at(struct mo_budget_shared *s,
                                 struct mo_span name, struct mo_span holder,
                                 uint64_t until)
{
    struct mo_shared_hold *h;

    take(s);
    h = find(s, name, holder);
    if (h)
        h->until = until;
    mo_lock_drop(&s->lock);
}

/* --- a question ---------------------------------------------------------- */

static bool has_room(struct mo_budget_shared *s, const struct mo_shared_want *x,
                     uint64_t now, uint64_t *wait_ms)
{
    *wait_ms = 0;
    if (!x->holder.p)
        return mo_local_fits(window_of(s, x->name, now / MO_S), x->limit, now,
                             wait_ms);
    return find(s, x->name, x->holder) || holders(s, x->name) < x->limit;
}

static int count_all(struct mo_budget_shared *s, unsigned owner,
                     const struct mo_shared_want *v, size_t n, uint64_t now)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].holder.p && !hold(s, owner, &v[i])) {
            while (i-- > 0) {
                struct mo_shared_hold *h = find(s, v[i].name, v[i].holder);

                if (h)
                    drop(s, h);
            }
            return MO_ENOMEM;
        }
    for (size_t i = 0; i < n; i++)
        if (!v[i].holder.p)
            mo_local_add(window_of(s, v[i].name, now / MO_S), now);
    return 0;
}

int mo_budget_shared_count(struct mo_budget_shared *s, unsigned owner,
                           const struct mo_shared_want *v, size_t n,
                           uint64_t now, size_t *which, uint64_t *wait_ms)
{
    int rc = 0;

    take(s);
    expire(s, now);
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (has_room(s, &v[i], now, wait_ms))
            continue;
        *which = i;
        rc = MO_EBUSY;
    }
    if (rc == 0)
        rc = count_all(s, owner, v, n, now);
    mo_lock_drop(&s->lock);
    return rc;
}
