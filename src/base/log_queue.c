#include "base/log_queue.h"

#include <pthread.h>
#include <stdalign.h>

#include "base/log_line.h"

#define FACT_MAX ((size_t)200)

struct records {
    char *p; /* MO_LOG_QUEUE_BYTES */
    size_t len, at;
    uint64_t n; /* of them that were not taken */
};

struct mo_log_queue {
    pthread_mutex_t lock; /* of all but taken */
    bool stopped;
    struct records filled;
    uint64_t dropped;
    struct records taken; /* of the thread that takes */
};

/* --- from a line to a record --------------------------------------------- */

/* Everything that is put into a record lies in one line, without separators. */
static void begin_text(struct mo_log_record *r, enum mo_log_record_text which,
                       const struct mo_log_line *out)
{
    r->at[which] = (uint16_t)out->n;
}

static void end_text(struct mo_log_record *r, enum mo_log_record_text which,
                     const struct mo_log_line *out)
{
    r->n[which] = (uint16_t)(out->n - r->at[which]);
}

static void put_message(struct mo_log_record *r, struct mo_log_line *out,
                        const struct mo_log *l, const struct mo_log_message *m)
{
    begin_text(r, MO_LOG_MESSAGE, out);
    mo_log_line_message(out, l, m);
    end_text(r, MO_LOG_MESSAGE, out);
}

static void put_fact(struct mo_log_record *r, struct mo_log_line *out,
                     const struct mo_log *l, enum mo_log_record_text which,
                     struct mo_span v)
{
    begin_text(r, which, out);
    if (!v.n || out->full)
        return;
    mo_log_line_text(out, l, mo_span_head(v, FACT_MAX), v.n > FACT_MAX);
    if (out->full) { /* not half of it */
        out->n = r->at[which];
        out->full = false;
    }
    end_text(r, which, out);
}

static void put_facts(struct mo_log_record *r, struct mo_log_line *out,
                      const struct mo_log *l, const struct mo_log_facts *f)
{
    put_fact(r, out, l, MO_LOG_SESSION, mo_span_cstr(f->session));
    put_fact(r, out, l, MO_LOG_TURN, mo_span_cstr(f->turn));
    put_fact(r, out, l, MO_LOG_CALL, f->call);
    put_fact(r, out, l, MO_LOG_SERVER, f->server);
    put_fact(r, out, l, MO_LOG_TOOL, f->tool);
    put_fact(r, out, l, MO_LOG_WHO, mo_span_cstr(f->who));
    put_fact(r, out, l, MO_LOG_FROM, mo_span_cstr(f->from));
    r->request = f->request;
    r->status = f->status;
    r->ns = f->ns;
    r->code = f->err ? f->err->code : 0;
    r->sys = f->err ? f->err->sys : 0;
    r->traced = f->trace != NULL;
    if (f->trace)
        r->trace = *f->trace;
}

static void append_record(struct mo_log_queue *q, struct mo_log_record *r,
                          const struct mo_log_line *texts)
{
    const size_t step = alignof(struct mo_log_record);
    struct records *to = &q->filled;

    r->size = (sizeof(*r) + texts->n + step - 1) / step * step;
    (void)pthread_mutex_lock(&q->lock);
    if (q->stopped) {
        (void)pthread_mutex_unlock(&q->lock);
        return;
    }
    if (r->size > MO_LOG_QUEUE_BYTES - to->len) {
        q->dropped++;
    } else {
        memcpy(to->p + to->len, r, sizeof(*r));
        memcpy(to->p + to->len + sizeof(*r), texts->p, texts->n);
        to->len += r->size;
        to->n++;
    }
    (void)pthread_mutex_unlock(&q->lock);
}

void mo_log_queue_put(struct mo_log_queue *q, const struct mo_log *l,
                      const struct mo_log_entry *x)
{
    struct mo_log_record r = {.level = x->level, .worker = l->worker};
    struct mo_log_line texts MO_UNINITIALIZED;

    if (strcmp(x->room, MO_LOG_QUEUE_NOT) == 0)
        return;
    r.wall_ms = x->wall_ms;
    mo_log_line_init(&texts, false);
    put_fact(&r, &texts, l, MO_LOG_ROOM, mo_span_cstr(x->room));
    put_message(&r, &texts, l, x->message);
    put_facts(&r, &texts, l, x->facts);
    append_record(q, &r, &texts);
}

/* --- records ------------------------------------------------------------- */

/* Hands the filled half over, if all of the other was taken. */
static void swap_halves(struct mo_log_queue *q)
{
    struct records empty = q->taken;

    empty.len = empty.at = 0;
    (void)pthread_mutex_lock(&q->lock);
    q->taken = q->filled;
    q->filled = empty;
    (void)pthread_mutex_unlock(&q->lock);
}

const struct mo_log_record *mo_log_queue_take(struct mo_log_queue *q)
{
    const struct mo_log_record *r;

    if (q->taken.at == q->taken.len)
        swap_halves(q);
    if (q->taken.at == q->taken.len)
        return NULL;
    r = (const struct mo_log_record *)(const void *)(q->taken.p + q->taken.at);
    q->taken.at += r->size;
    q->taken.n--;
    return r;
}

struct mo_span mo_log_record_text(const struct mo_log_record *r,
                                  enum mo_log_record_text which)
{
    return mo_span((const char *)(r + 1) + r->at[which], r->n[which]);
}

struct mo_log_queue_stats mo_log_queue_stats(struct mo_log_queue *q)
{
    struct mo_log_queue_stats s = {.waiting = q->taken.n};

    (void)pthread_mutex_lock(&q->lock);
    s.waiting += q->filled.n;
    s.dropped = q->dropped;
    (void)pthread_mutex_unlock(&q->lock);
    return s;
}

/* --- from start to the end of the log ------------------------------------ */

struct mo_log_queue *mo_log_queue_start(struct mo_log *l)
{
    struct mo_log_queue *q = l->queue;

    if (q)
        return q;
    q = mo_new(struct mo_log_queue);
    if (!q)
        return NULL;
    (void)pthread_mutex_init(&q->lock, NULL);
    q->filled.p = mo_alloc(MO_LOG_QUEUE_BYTES);
    q->taken.p = mo_alloc(MO_LOG_QUEUE_BYTES);
    if (!q->filled.p || !q->taken.p) {
        mo_log_queue_free(q);
        return NULL;
    }
    __atomic_store_n(&l->queue, q, __ATOMIC_RELEASE);
    return q;
}

void mo_log_queue_stop(struct mo_log_queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    q->stopped = true;
    (void)pthread_mutex_unlock(&q->lock);
}

void mo_log_queue_free(struct mo_log_queue *q)
{
    if (!q)
        return;
    (void)pthread_mutex_destroy(&q->lock);
    mo_free(q->filled.p);
    mo_free(q->taken.p);
    mo_free(q);
}
