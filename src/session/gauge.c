/* gauge.c - see gauge.h.
 *
 * A round owns copies of all it needs: sessions, and the table of them, may be
 * gone when the last box answers. It is freed when all have. */
#include "session/gauge.h"

#include <stdio.h>

#include "session/priv.h"

#define GAUGE_MS 2000

struct round;

struct question {
    struct round *r;
    struct mo_gauge g;
    bool known;
};

struct round {
    struct mo_loop *loop;
    struct mo_timer timer; /* also ends a round without boxes */
    mo_gauge_fn *done;     /* NULL: called already */
    void *ctx;
    struct mo_gateway_metrics out;
    unsigned waiting;
    size_t n;
    struct question v[];
};

static void report_round(struct round *r)
{
    mo_gauge_fn *done = r->done;
    mo_autofree struct mo_gauge *v = NULL;

    if (done == NULL)
        return;
    r->done = NULL;
    mo_timer_stop(r->loop, &r->timer);
    v = mo_alloc((r->n + 1) * sizeof(*v));
    for (size_t i = 0; v && i < r->n; i++)
        if (r->v[i].known)
            v[r->out.n++] = r->v[i].g;
    r->out.v = v;
    done(r->ctx, &r->out);
}

static void maybe_free(struct round *r)
{
    if (r->waiting == 0 && r->done == NULL)
        mo_free(r);
}

static void on_time(struct mo_timer *t)
{
    struct round *r = mo_container_of(t, struct round, timer);

    report_round(r);
    maybe_free(r);
}

static void on_stats(void *ctx, const struct mo_box_stats *s,
                     const struct mo_err *why)
{
    struct question *q = ctx;
    struct round *r = q->r;

    (void)why; /* a box that has ended is left out */
    if (s) {
        q->known = true;
        q->g.stats = *s;
        q->g.at = mo_now_ns();
    }
    r->waiting--;
    if (r->waiting == 0)
        report_round(r);
    maybe_free(r);
}

static void ask_box(struct round *r, struct session *s)
{
    struct question *q = &r->v[r->n];

    q->r = r;
    (void)snprintf(q->g.session, sizeof(q->g.session), "%s", s->id);
    (void)snprintf(q->g.box, sizeof(q->g.box), "%s", mo_box_id(s->box));
    (void)snprintf(q->g.driver, sizeof(q->g.driver), "%s",
                   mo_box_driver(s->box));
    if (mo_box_stats(s->box, on_stats, q, NULL) < 0)
        return;
    r->n++;
    r->waiting++;
}

int mo_sessions_gauge(struct mo_sessions *ss, mo_gauge_fn *done, void *ctx,
                      struct mo_err *e)
{
    struct round *r = mo_zalloc(sizeof(*r) + ss->n * sizeof(r->v[0]));

    if (r == NULL)
        return mo_fail(e, MO_ENOMEM, "boxes: out of memory");
    r->loop = ss->loop;
    r->done = done;
    r->ctx = ctx;
    r->out.memory_limit = ss->o.spec.limits.memory;
    r->out.cpu_milli = ss->o.spec.limits.cpu_milli;
    mo_timer_init(&r->timer, on_time);
    mo_list_each_entry (s, &ss->all, struct session, node) {
        if (s->state == S_READY && s->box)
            ask_box(r, s);
    }
    mo_timer_start(r->loop, &r->timer, r->waiting > 0 ? GAUGE_MS : 0);
    return 0;
}
