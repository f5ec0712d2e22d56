#include "trace/trace.h"

#include <stdio.h>

#include "base/pool.h"
#include "base/rand.h"
#include "codec/text/utf8.h"
#include "trace/trace_priv.h"

/* --- ids and sampling ---------------------------------------------------- */

/* The kernel is asked for many bytes at once. */
static void take_random(struct mo_tracer *t, void *out, size_t n)
{
    if (t->random_left < n) {
        mo_random(t->random, sizeof(t->random));
        t->random_left = sizeof(t->random);
    }
    t->random_left -= n;
    memcpy(out, t->random + t->random_left, n);
}

static bool is_picked(struct mo_tracer *t)
{
    uint64_t r = 0;

    if (t->all || t->threshold == 0)
        return t->all;
    take_random(t, &r, sizeof(r));
    return r < t->threshold;
}

/* True while strangers have forced fewer requests in this second. */
static bool may_force(struct mo_tracer *t)
{
    uint64_t second = mo_loop_now(t->loop) / MO_S;

    if (second != t->forced_at) {
        t->forced_at = second;
        t->forced_left = t->forced;
    }
    if (t->forced_left == 0)
        return false;
    t->forced_left--;
    return true;
}

static bool is_sampled(struct mo_tracer *t, const struct mo_trace_ids *parent,
                       bool ours)
{
    if (!parent)
        return is_picked(t);
    if (!parent->sampled)
        return false;
    return ours || may_force(t) || is_picked(t);
}

/* --- spans --------------------------------------------------------------- */

static struct mo_trace_span *span_new(struct mo_tracer *t,
                                      enum mo_trace_kind kind, const char *name)
{
    struct mo_trace_span *s = NULL;

    if (!t->closing && t->nopen + t->nqueue < MO_TRACE_SPANS_MAX)
        s = mo_pool_take(&t->spare, sizeof(*s));
    if (!s) {
        t->stats.dropped++;
        return NULL;
    }
    s->t = t;
    s->kind = kind;
    s->began = mo_now_ns();
    s->ids.sampled = true;
    take_random(t, s->ids.span, sizeof(s->ids.span));
    s->ids.span[0] |= 1; /* never all zero */
    mo_trace_rename(s, mo_span_cstr(name), mo_span(NULL, 0));
    mo_list_push(&t->open, &s->node);
    t->nopen++;
    return s;
}

struct mo_trace_span *mo_trace_begin(struct mo_tracer *t,
                                     enum mo_trace_kind kind, const char *name,
                                     const struct mo_trace *in, bool ours)
{
    struct mo_trace_ids parent;
    struct mo_trace_span *s;
    bool has = t && in && mo_trace_parse(in->v[MO_TRACE_PARENT], &parent);

    if (!t || !is_sampled(t, has ? &parent : NULL, ours))
        return NULL;
    s = span_new(t, kind, name);
    if (!s)
        return NULL;
    s->has_parent = has;
    s->remote = has && !ours;
    if (has) {
        memcpy(s->ids.trace, parent.trace, sizeof(s->ids.trace));
        memcpy(s->parent, parent.span, sizeof(s->parent));
    } else {
        take_random(t, s->ids.trace, sizeof(s->ids.trace));
        s->ids.trace[0] |= 1;
    }
    return s;
}

struct mo_trace_span *mo_trace_child(const struct mo_trace_span *parent,
                                     enum mo_trace_kind kind, const char *name)
{
    struct mo_trace_span *s = parent ? span_new(parent->t, kind, name) : NULL;

    if (!s)
        return NULL;
    memcpy(s->ids.trace, parent->ids.trace, sizeof(s->ids.trace));
    memcpy(s->parent, parent->ids.span, sizeof(s->parent));
    s->has_parent = true;
    return s;
}

struct mo_trace_span *mo_trace_child_since(const struct mo_trace_span *parent,
                                           const char *name, uint64_t since)
{
    struct mo_trace_span *s = mo_trace_child(parent, MO_TRACE_INTERNAL, name);

    mo_trace_began(s, since);
    return s;
}

void mo_trace_began(struct mo_trace_span *s, uint64_t since)
{
    if (s)
        s->began = since;
}

void mo_trace_end(struct mo_trace_span *s)
{
    struct mo_tracer *t;

    if (!s)
        return;
    t = s->t;
    s->ended = mo_now_ns();
    mo_list_del(&s->node);
    mo_list_push(&t->queue, &s->node);
    t->nopen--;
    t->nqueue++;
    if (t->nqueue == TRACE_BATCH)
        mo_timer_start(t->loop, &t->timer, 0);
    else if (!mo_timer_on(&t->timer))
        mo_timer_start(t->loop, &t->timer, t->pause_ms);
}

void mo_trace_rename(struct mo_trace_span *s, struct mo_span what,
                     struct mo_span target)
{
    size_t n;

    if (!s)
        return;
    what = mo_span_head(what, mo_utf8_cut(what, sizeof(s->name) - 1));
    n = what.n;
    if (n)
        memcpy(s->name, what.p, n);
    if (target.n && n + 2 < sizeof(s->name)) {
        s->name[n++] = ' ';
        target =
            mo_span_head(target, mo_utf8_cut(target, sizeof(s->name) - 1 - n));
        if (target.n)
            memcpy(s->name + n, target.p, target.n);
        n += target.n;
    }
    s->name[n] = '\0';
}

/* --- attributes ---------------------------------------------------------- */

static struct trace_attr *take_attr(struct mo_trace_span *s, const char *key,
                                    enum attr_kind kind)
{
    struct trace_attr *a = NULL;

    for (unsigned i = 0; i < s->nattrs && !a; i++)
        if (strcmp(s->attrs[i].key, key) == 0)
            a = &s->attrs[i];
    if (!a && s->nattrs < MO_TRACE_ATTRS)
        a = &s->attrs[s->nattrs++];
    if (!a) {
        s->lost++;
        return NULL;
    }
    a->key = key;
    a->kind = kind;
    return a;
}

static void put_text(struct mo_trace_span *s, const char *key,
                     enum attr_kind kind, struct mo_span v)
{
    size_t room = s ? sizeof(s->texts) - s->ntexts : 0;
    struct trace_attr *a;

    if (!s || !v.n)
        return;
    room = room < MO_TRACE_TEXT_MAX ? room : MO_TRACE_TEXT_MAX;
    v = mo_span_head(v, mo_utf8_cut(v, room));
    a = take_attr(s, key, kind);
    if (!a)
        return;
    if (v.n)
        memcpy(s->texts + s->ntexts, v.p, v.n);
    a->at = (uint16_t)s->ntexts;
    a->n = (uint16_t)v.n;
    s->ntexts += v.n;
}

void mo_trace_text(struct mo_trace_span *s, const char *key, struct mo_span v)
{
    put_text(s, key, ATTR_TEXT, v);
}

void mo_trace_one(struct mo_trace_span *s, const char *key, struct mo_span v)
{
    put_text(s, key, ATTR_ONE, v);
}

void mo_trace_int(struct mo_trace_span *s, const char *key, int64_t v)
{
    struct trace_attr *a = s ? take_attr(s, key, ATTR_INT) : NULL;

    if (a)
        a->number = v;
}

void mo_trace_fail(struct mo_trace_span *s, const char *type)
{
    if (!s)
        return;
    s->failed = true;
    mo_trace_text(s, "error.type", mo_span_cstr(type));
}

const struct mo_log_trace *mo_trace_mark(const struct mo_trace_span *s,
                                         struct mo_log_trace *room)
{
    if (!s)
        return NULL;
    memcpy(room->trace, s->ids.trace, sizeof(room->trace));
    memcpy(room->span, s->ids.span, sizeof(room->span));
    return room;
}

void mo_trace_send(const struct mo_trace_span *s, struct mo_trace *out,
                   char room[MO_TRACE_PARENT_LEN + 1])
{
    if (!s)
        return;
    mo_trace_format(&s->ids, room);
    out->v[MO_TRACE_PARENT] = mo_span(room, MO_TRACE_PARENT_LEN);
}

/* --- export -------------------------------------------------------------- */

static void span_free(struct mo_tracer *t, struct mo_trace_span *s)
{
    MO_BUG_ON(!s);
    mo_list_del(&s->node);
    mo_pool_give(&t->spare, s);
}

static unsigned fill_batch(void *ctx, struct mo_buf *body)
{
    struct mo_tracer *t = ctx;
    unsigned n = t->nqueue < TRACE_BATCH ? t->nqueue : TRACE_BATCH;
    int rc = n ? mo_otlp_spans(t, n, body) : 0;

    for (unsigned i = 0; i < n; i++)
        span_free(t, mo_list_first(&t->queue, struct mo_trace_span, node));
    t->nqueue -= n;
    if (rc < 0) { /* out of memory: these are lost */
        mo_buf_reset(body);
        t->stats.dropped += n;
        return 0;
    }
    t->nsending = n;
    return n;
}

static void on_batch_done(void *ctx, unsigned n, bool taken)
{
    struct mo_tracer *t = ctx;

    t->nsending = 0;
    if (taken)
        t->stats.sent += n;
    else
        t->stats.dropped += n;
}

static void on_timer(struct mo_timer *timer)
{
    mo_export_kick(mo_container_of(timer, struct mo_tracer, timer)->export);
}

struct mo_tracer_stats mo_tracer_stats(const struct mo_tracer *t)
{
    struct mo_tracer_stats s = t->stats;

    s.waiting = t->nqueue + t->nsending;
    s.failed = mo_export_failures(t->export);
    return s;
}

/* --- from open to close -------------------------------------------------- */

static void tracer_free(struct mo_tracer *t)
{
    mo_timer_stop(t->loop, &t->timer);
    while (!mo_list_empty(&t->open))
        span_free(t, mo_list_first(&t->open, struct mo_trace_span, node));
    while (!mo_list_empty(&t->queue))
        span_free(t, mo_list_first(&t->queue, struct mo_trace_span, node));
    mo_pool_fini(&t->spare);
    mo_buf_fini(&t->resource);
    mo_free(t);
}

static void on_export_gone(void *ctx)
{
    struct mo_tracer *t = ctx;
    struct mo_gone gone = t->gone;

    if (t->stats.dropped)
        mo_log(mo_loop_log(t->loop), MO_WARN, "trace",
               "%llu spans were not exported",
               (unsigned long long)t->stats.dropped);
    tracer_free(t);
    mo_gone_fire(gone);
}

void mo_tracer_close(struct mo_tracer *t, void (*gone)(void *ctx), void *ctx)
{
    t->closing = true;
    t->gone = (struct mo_gone){gone, ctx};
    mo_loop_set_tracer(t->loop, NULL);
    mo_timer_stop(t->loop, &t->timer);
    mo_export_close(t->export, MO_TRACE_FLUSH_MS,
                    (struct mo_gone){on_export_gone, t});
}

int mo_tracer_open(const struct mo_tracer_opts *o, struct mo_tracer **out,
                   struct mo_err *e)
{
    struct mo_tracer *t = mo_new(struct mo_tracer);
    const struct mo_export_opts x = {
        .fill = fill_batch, .done = on_batch_done, .ctx = t};
    int rc;

    if (!t)
        return mo_fail(e, MO_ENOMEM, "telemetry");
    t->loop = o->to.loop;
    mo_list_init(&t->open);
    mo_list_init(&t->queue);
    mo_timer_init(&t->timer, on_timer);
    t->encoding = o->to.encoding;
    t->pause_ms = o->pause_ms ? o->pause_ms : TRACE_PAUSE_MS;
    t->all = o->sample >= 1;
    t->threshold = t->all || o->sample <= 0
                       ? 0
                       : (uint64_t)(o->sample * 18446744073709551616.0);
    t->forced = o->forced;
    rc = mo_otlp_target_resource(&o->to, &t->resource);
    if (rc < 0)
        (void)mo_fail(e, rc, "telemetry");
    else
        t->export = mo_otlp_target_export(&o->to, "traces", x, e);
    if (!t->export) {
        rc = e->code;
        tracer_free(t);
        return rc;
    }
    mo_loop_set_tracer(t->loop, t);
    *out = t;
    return 0;
}
