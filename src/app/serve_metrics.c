/* serve_metrics.c - /metrics of a server with workers.
 *
 * Each worker writes its page to shared memory every PUBLISH_MS; a scrape of
 * any of them joins the pages, with a label `worker`. So the counters of a
 * scrape do not depend on the worker that the kernel chose. See serve_priv.h.
 */
#include "app/serve_priv.h"
#include "base/mem.h"

#define LOOK_MS     1
#define TRIES       200
#define METRICS_MAX ((size_t)64 * 1024 * 1024)

static int publish(struct server *s)
{
    mo_autobuf struct mo_buf b = {.max = METRICS_MAX};
    int rc = s->site ? mo_prom_write(mo_site_prom(s->site), &b) : MO_ECLOSED;

    if (rc == 0)
        mo_worker_publish(&s->worker, mo_buf_view(&b));
    return rc;
}

static int join_pages(struct server *s, struct mo_buf *out)
{
    struct mo_buf pages[MO_WORKERS_MAX] = {{.max = 0}};
    struct mo_span views[MO_WORKERS_MAX];
    int rc = publish(s);

    for (unsigned i = 0; i < s->worker.count; i++) {
        pages[i].max = METRICS_MAX;
        if (rc == 0)
            rc = mo_worker_page(&s->worker, i + 1, &pages[i]);
        views[i] = mo_buf_view(&pages[i]);
    }
    if (rc == 0)
        rc = mo_prom_join(views, s->worker.count, "worker", out);
    for (unsigned i = 0; i < s->worker.count; i++)
        mo_buf_fini(&pages[i]);
    return rc;
}

struct scrape {
    struct server *s;
    struct mo_req *rq;
    struct mo_timer timer;
    unsigned versions[MO_WORKERS_MAX], tries;
};

static void scrape_free(struct mo_req *rq)
{
    struct scrape *x = rq->data;

    mo_timer_stop(x->s->loop, &x->timer);
    mo_free(x);
}

static void answer(struct scrape *x)
{
    mo_autobuf struct mo_buf b = {.max = METRICS_MAX};

    if (join_pages(x->s, &b) < 0)
        mo_req_problem(x->rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(x->rq, 200, MO_PROM_TYPE, mo_buf_view(&b));
}

/* A worker that does not answer in time is shown with its last page. */
static void on_look(struct mo_timer *t)
{
    struct scrape *x = mo_container_of(t, struct scrape, timer);

    if (x->s->closing || ++x->tries >= TRIES ||
        mo_worker_answered(&x->s->worker, x->versions))
        answer(x);
    else
        mo_timer_start(x->s->loop, t, LOOK_MS);
}

static void show(void *ctx, struct mo_req *rq)
{
    struct server *s = ctx;
    struct scrape *x = mo_new(struct scrape);

    if (!x) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return;
    }
    x->s = s;
    x->rq = rq;
    rq->data = x;
    rq->gone = scrape_free;
    mo_timer_init(&x->timer, on_look);
    mo_worker_ask(&s->worker, x->versions);
    mo_timer_start(s->loop, &x->timer, LOOK_MS);
}

void mo_serve_publish(void *ctx)
{
    (void)publish(ctx); /* without memory the last one stays */
}

void mo_serve_metrics(struct server *s)
{
    if (!s->worker.number)
        return;
    mo_site_metrics(s->site, show, s);
    mo_serve_publish(s);
}
