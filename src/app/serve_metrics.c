/* serve_metrics.c - /metrics of a server with workers.
 *
 * Each worker writes its page to shared memory every PUBLISH_MS; a scrape of
 * any of them joins the pages, with a label `worker`. So the counters of a
 * scrape do not depend on the worker that the kernel chose. See serve_priv.h.
 */
#include "app/serve_priv.h"
#include "base/mem.h"

#define PUBLISH_MS  1000
#define METRICS_MAX ((size_t)64 * 1024 * 1024)

static int publish(struct server *s)
{
    mo_autobuf struct mo_buf b = {.max = METRICS_MAX};
    int rc = mo_prom_write(mo_site_prom(s->site), &b);

    if (rc == 0)
        mo_worker_publish(&s->worker, mo_buf_view(&b));
    return rc;
}

static void on_publish(struct mo_timer *t)
{
    struct server *s = mo_container_of(t, struct server, publish);

    if (s->closing)
        return;
    (void)publish(s); /* without memory the last one stays */
    mo_timer_start(s->loop, t, PUBLISH_MS);
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

static void show(void *ctx, struct mo_req *rq)
{
    mo_autobuf struct mo_buf b = {.max = METRICS_MAX};

    if (join_pages(ctx, &b) < 0)
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(rq, 200, MO_PROM_TYPE, mo_buf_view(&b));
}

void mo_serve_metrics(struct server *s)
{
    mo_timer_init(&s->publish, on_publish);
    if (!s->worker.number)
        return;
    mo_site_metrics(s->site, show, s);
    (void)publish(s);
    mo_timer_start(s->loop, &s->publish, PUBLISH_MS);
}
