/* watch.c - an engine's events. */
#include "engine/watch.h"

#include <stdio.h>

#include "base/rand.h"
#include "codec/frame.h"

#define PAUSE_MS     100u
#define PAUSE_MAX_MS 5000u

struct mo_watch {
    struct mo_loop *loop;
    struct mo_engine *en;
    const struct mo_watch_cb *cb;
    void *ctx;
    struct mo_buf path;
    struct mo_frame lines;
    struct mo_engine_call *call; /* NULL: waits for the next attempt */
    struct mo_timer again;
    unsigned pause_ms;
    bool up, stopped;
};

static void watch_free(struct mo_watch *w)
{
    mo_timer_stop(w->loop, &w->again);
    mo_frame_fini(&w->lines);
    mo_buf_fini(&w->path);
    mo_free(w);
}

static void read_event(struct mo_watch *w, struct mo_span line)
{
    struct mo_json_doc doc;
    mo_autoarena struct mo_arena a = {.cap = MO_WATCH_LINE_MAX};
    struct mo_span id, action;

    if (!line.n || mo_json_parse(line, 0, &doc, NULL) < 0)
        return;
    if (mo_json_str(mo_json_get(mo_json_get(doc.root, "Actor"), "ID"), &a,
                    &id) == 0 &&
        mo_json_str(mo_json_get(doc.root, "Action"), &a, &action) == 0)
        w->cb->on_event(w->ctx, id, action);
}

static void on_data(void *ctx, struct mo_span data)
{
    struct mo_watch *w = ctx;
    struct mo_span line;
    int rc = 1;

    while (rc == 1 && !w->stopped) {
        rc = mo_frame_next(&w->lines, &data, &line);
        if (rc == 1)
            read_event(w, line);
    }
    if (rc < 0 && !w->stopped && w->call)
        mo_engine_cancel(w->call);
}

static void wait_again(struct mo_watch *w)
{
    w->pause_ms = w->pause_ms ? w->pause_ms * 2 : PAUSE_MS;
    if (w->pause_ms > PAUSE_MAX_MS)
        w->pause_ms = PAUSE_MAX_MS;
    mo_timer_start(w->loop, &w->again,
                   w->pause_ms / 2 + mo_random_u64() % (w->pause_ms / 2));
}

static void on_done(void *ctx, const struct mo_engine_reply *r,
                    const struct mo_err *why)
{
    struct mo_watch *w = ctx;

    (void)r;
    w->call = NULL;
    if (w->stopped) {
        watch_free(w);
        return;
    }
    wait_again(w);
    if (!w->up)
        return;
    w->up = false;
    w->cb->on_lost(w->ctx,
                   why ? why
                       : mo_error(MO_EUNAVAIL, "the engine ended its events"));
}

/* A head with 200: events arrive from here on. */
static void on_head(void *ctx)
{
    struct mo_watch *w = ctx;

    if (w->stopped || w->up)
        return;
    w->up = true;
    w->pause_ms = 0;
    w->cb->on_back(w->ctx);
}

static int open_events(struct mo_watch *w, struct mo_err *e)
{
    struct mo_engine_req req = {.path = mo_buf_cstr(&w->path),
                                .stream = true,
                                .on_head = on_head,
                                .on_data = on_data};

    mo_frame_fini(&w->lines);
    mo_frame_init(&w->lines, MO_WATCH_LINE_MAX);
    return mo_engine_ask(w->en, &req, on_done, w, &w->call, e);
}

static void on_again(struct mo_timer *t)
{
    struct mo_watch *w = mo_container_of(t, struct mo_watch, again);

    if (open_events(w, NULL) < 0)
        wait_again(w);
}

int mo_watch_start(struct mo_loop *l, struct mo_engine *en, const char *label,
                   const struct mo_watch_cb *cb, void *ctx,
                   struct mo_watch **out, struct mo_err *e)
{
    struct mo_watch *w = mo_new(struct mo_watch);
    int rc;

    if (!w)
        return mo_fail(e, MO_ENOMEM, "engine's events");
    *w = (struct mo_watch){.loop = l, .en = en, .cb = cb, .ctx = ctx};
    mo_timer_init(&w->again, on_again);
    mo_frame_init(&w->lines, MO_WATCH_LINE_MAX);
    mo_buf_init(&w->path, MO_ENGINE_PATH_MAX);
    rc = mo_engine_put_filter(&w->path, "/events?filters=", "[\"container\"]",
                              label);
    if (rc < 0)
        (void)mo_fail(e, rc, "engine's events");
    else
        rc = open_events(w, e);
    if (rc < 0)
        watch_free(w);
    else
        *out = w;
    return rc;
}

void mo_watch_stop(struct mo_watch *w)
{
    w->stopped = true;
    if (w->call)
        mo_engine_cancel(w->call); /* on_done() frees */
    else
        watch_free(w);
}

bool mo_watch_is_up(const struct mo_watch *w)
{
    return w->up;
}
