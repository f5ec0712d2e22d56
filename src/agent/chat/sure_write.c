/* sure_write.c - see sure_write.h. */
#include "agent/chat/sure_write.h"

#include "agent/chat/chat_priv.h"
#include "agent/chat/event.h"

#define PAUSE_MS     500 /* before the second attempt; doubled each time */
#define PAUSE_MAX_MS 8000
#define ROWS_MAX     (MO_CHAT_QUEUE_MAX * 4)

static const char waits_text[] =
    "The state store does not answer. The conversation goes on when it does.";

static void end(struct chat *c, const struct mo_err *why)
{
    struct sure_write w = c->sure.now;

    c->sure.now = (struct sure_write){.done = NULL};
    w.done(c, w.arg, why);
}

/* --- the next attempt ---------------------------------------------------- */

static void wait_for_store(struct chat *c, const struct mo_err *why)
{
    struct sure_writing *s = &c->sure;

    if (s->pause == 0) {
        mo_chat_log(c, MO_WARN, 0, why, "turn waits for the store");
        mo_chat_event_message(c, NULL, waits_text);
    }
    s->pause = s->pause == 0 ? PAUSE_MS : 2 * s->pause;
    if (s->pause > PAUSE_MAX_MS)
        s->pause = PAUSE_MAX_MS;
    s->is_waiting = true;
    mo_timer_start(c->agent->loop, &s->timer, s->pause);
}

/* The outcome is not known, or the store has too much to do. */
static bool may_be_repeated(const struct chat *c, const struct mo_err *why)
{
    return c->state != CHAT_ENDING &&
           (why->code == MO_EUNAVAIL || why->code == MO_EBUSY);
}

static void end_or_wait(struct chat *c, const struct mo_err *why)
{
    if (why && may_be_repeated(c, why))
        wait_for_store(c, why);
    else
        end(c, why);
}

static void on_written(struct chat *c, void *arg, const struct mo_err *why)
{
    (void)arg;
    end_or_wait(c, why);
}

static const struct mo_row *find_entry(const struct mo_rows *rows,
                                       struct mo_span doc)
{
    for (size_t i = 0; i < rows->n; i++)
        if (mo_span_eq(rows->v[i].doc, doc))
            return &rows->v[i];
    return NULL;
}

static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct chat *c = ctx;
    const struct mo_row *row = why ? NULL : find_entry(rows, c->sure.now.doc);
    struct mo_err e;

    c->writes--;
    if (row) {
        c->transcript.seq = row->seq;
        end(c, NULL);
    } else if (why || c->state == CHAT_ENDING) {
        end_or_wait(c, why ? why : mo_error(MO_ECANCELED, "the session ended"));
    } else if (c->sure.now.write(c, c->sure.now.arg, on_written, &e) < 0) {
        end_or_wait(c, &e);
    }
    mo_chat_settle(c);
}

static void on_pause_over(struct mo_timer *t)
{
    struct chat *c = mo_container_of(t, struct chat, sure.timer);
    struct mo_read r = {.kind = MO_READ_HISTORY,
                        .session = mo_span_cstr(c->id),
                        .after = c->sure.after,
                        .limit = ROWS_MAX};
    struct mo_err e;

    c->sure.is_waiting = false;
    if (mo_store_read(c->agent->o.store, &r, on_rows, c, &e) == 0) {
        c->writes++;
        return;
    }
    end_or_wait(c, &e);
    mo_chat_settle(c);
}

/* --- beginning and end --------------------------------------------------- */

void mo_sure_write_init(struct chat *c)
{
    mo_timer_init(&c->sure.timer, on_pause_over);
}

int mo_sure_write(struct chat *c, const struct sure_write *w, struct mo_err *e)
{
    struct sure_writing *s = &c->sure;
    int rc = 0;

    MO_BUG_ON(s->now.done);
    s->now = *w;
    s->after = c->transcript.seq;
    s->pause = 0;
    rc = w->write(c, w->arg, on_written, e);
    if (rc < 0 && may_be_repeated(c, e)) {
        wait_for_store(c, e);
        return 0;
    }
    if (rc < 0)
        s->now = (struct sure_write){.done = NULL};
    return rc;
}

void mo_sure_write_stop(struct chat *c)
{
    if (!c->sure.is_waiting)
        return; /* nothing is written, or its answer comes */
    c->sure.is_waiting = false;
    mo_timer_stop(c->agent->loop, &c->sure.timer);
    end(c, mo_error(MO_ECANCELED, "the session ended"));
}
