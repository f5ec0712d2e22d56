/* pool.c - warm boxes: started ahead, so that a session need not wait.
 *
 * One spec, `want` boxes of it. They are started one after the other, so that
 * sessions in use come first. After a failure the next attempt comes later, up
 * to a minute. A box leaves the pool for one session and never comes back. */
#include "box/driver.h"

#include "base/rand.h"

#define ARENA_MAX      ((size_t)256 * 1024)
#define AFTER_MS       20 /* a session that takes a box starts first */
#define BACKOFF_MS     500
#define BACKOFF_MAX    60000
/* Warm boxes end soon after this process dies. */
#define WARM_LINGER_MS 5000

/* A random time between half and all of the doubled delay, so that many
 * processes do not retry one engine together. */
static uint64_t backoff(unsigned failures)
{
    uint64_t ms = BACKOFF_MS;

    while (--failures > 0 && ms < BACKOFF_MAX)
        ms *= 2;
    ms = ms > BACKOFF_MAX ? BACKOFF_MAX : ms;
    return ms / 2 + mo_random_u64() % (ms / 2);
}

static void refill_after(struct mo_boxes *bs, uint64_t ms)
{
    struct mo_box_pool *p = &bs->pool;

    if (bs->closing || p->filling || p->have >= p->want)
        return;
    mo_timer_start(bs->loop, &p->refill,
                   p->failures ? backoff(p->failures) : ms);
}

static void refill_later(struct mo_boxes *bs)
{
    refill_after(bs, 0);
}

/* --- boxes come and go --------------------------------------------------- */

/* A refusal comes at once; the driver's report may come much later. */
static void on_refill(struct mo_timer *t)
{
    struct mo_box_pool *p = mo_container_of(t, struct mo_box_pool, refill);
    struct mo_boxes *bs = mo_container_of(p, struct mo_boxes, pool);
    struct mo_err e;
    int rc = mo_box_make(bs, NULL, NULL, &p->filling, &e);

    if (rc == 0) {
        p->filling->pooled = true;
        rc = bs->ops->start(p->filling, &p->spec, true, &e);
        if (rc < 0)
            mo_box_unmake(mo_take_ptr(&p->filling));
    }
    if (rc == 0)
        return;
    p->failures++;
    mo_log_err(mo_loop_log(bs->loop), MO_WARN, "box", &e,
               "no warm box could be started");
    refill_later(bs);
}

void mo_box_pool_add(struct mo_box *b, const struct mo_box_io *io)
{
    struct mo_boxes *bs = b->bs;
    struct mo_box_pool *p = &bs->pool;

    MO_BUG_ON(b != p->filling);
    p->filling = NULL;
    p->failures = 0;
    b->io = *io;
    mo_box_move(b, MO_BOX_PARKED);
    mo_list_push(&p->ready, &b->warm);
    p->have++;
    if (bs->ops->park)
        bs->ops->park(b);
    refill_later(bs);
}

/* Takes the box out of the pool. */
static void leave_pool(struct mo_box *b)
{
    struct mo_box_pool *p = &b->bs->pool;

    if (b == p->filling)
        p->filling = NULL;
    if (!mo_list_empty(&b->warm)) {
        mo_list_del(&b->warm);
        p->have--;
    }
}

void mo_box_pool_lost(struct mo_box *b, const struct mo_box_end *end)
{
    struct mo_boxes *bs = b->bs;

    leave_pool(b);
    if (end->cause == MO_BOX_STOPPED)
        return;
    bs->pool.failures++;
    mo_log(mo_loop_log(bs->loop), MO_WARN, "box", "a warm box was lost: %s%s%s",
           mo_box_cause_name(end->cause), end->why ? ", " : "",
           end->why ? end->why->msg : "");
    refill_later(bs);
}

struct mo_box *mo_box_pool_take(struct mo_boxes *bs,
                                const struct mo_box_spec *spec)
{
    struct mo_box_pool *p = &bs->pool;
    struct mo_box *b = mo_list_first(&p->ready, struct mo_box, warm);

    if (b == NULL || !mo_box_spec_same(&p->spec, spec) ||
        (spec->files && *spec->files)) /* they are loaded at a start */
        return NULL;
    leave_pool(b);
    b->pooled = false;
    mo_box_move(b, MO_BOX_CLAIMED);
    if (!mo_timer_on(&p->refill))
        refill_after(bs, AFTER_MS);
    return b;
}

/* --- how many, of what --------------------------------------------------- */

static void stop_warm(struct mo_boxes *bs, unsigned keep)
{
    struct mo_box_pool *p = &bs->pool;

    while (p->have > keep) {
        struct mo_box *b = mo_list_first(&p->ready, struct mo_box, warm);

        leave_pool(b);
        mo_box_stop(b);
    }
}

static void stop_filling(struct mo_boxes *bs)
{
    struct mo_box *b = mo_take_ptr(&bs->pool.filling);

    mo_timer_stop(bs->loop, &bs->pool.refill);
    if (b)
        mo_box_stop(b);
}

/* A new spec: warm boxes of the old one are stopped. */
static int change_spec(struct mo_boxes *bs, const struct mo_box_spec *spec,
                       struct mo_err *e)
{
    struct mo_box_pool *p = &bs->pool;
    struct mo_arena arena;
    struct mo_box_spec copy;

    mo_arena_init(&arena, ARENA_MAX);
    if (mo_box_spec_copy(&arena, spec, &copy) < 0) {
        mo_arena_fini(&arena);
        return mo_fail(e, MO_ENOMEM, "box: out of memory");
    }
    stop_filling(bs);
    stop_warm(bs, 0);
    mo_arena_fini(&p->arena);
    p->arena = arena;
    p->spec = copy;
    p->spec.session = "";
    p->spec.linger_ms = WARM_LINGER_MS;
    return 0;
}

int mo_boxes_warm(struct mo_boxes *bs, const struct mo_box_spec *spec,
                  unsigned n, struct mo_err *e)
{
    struct mo_box_pool *p = &bs->pool;
    int rc = mo_box_spec_check(spec, e);

    if (rc < 0)
        return rc;
    if (bs->closing)
        return mo_fail(e, MO_ECLOSED, "box: the program is ending");
    if (n > MO_BOX_WARM_MAX)
        return mo_fail(e, MO_EINVAL, "box: at most %d can be kept warm",
                       MO_BOX_WARM_MAX);
    if (!mo_box_spec_same(&p->spec, spec) && change_spec(bs, spec, e) < 0)
        return MO_ENOMEM;
    p->want = n;
    stop_warm(bs, n);
    refill_later(bs);
    return 0;
}

unsigned mo_boxes_warm_now(const struct mo_boxes *bs)
{
    return bs->pool.have;
}

void mo_box_pool_setup(struct mo_boxes *bs)
{
    struct mo_box_pool *p = &bs->pool;

    mo_arena_init(&p->arena, ARENA_MAX);
    mo_list_init(&p->ready);
    mo_timer_init(&p->refill, on_refill);
}

void mo_box_pool_close(struct mo_boxes *bs)
{
    bs->pool.want = 0;
    stop_filling(bs);
    stop_warm(bs, 0);
    mo_arena_fini(&bs->pool.arena);
}
