#include "trace/export.h"

#include "base/rand.h"
#include "loop/httpc.h"

#define ANSWER_MAX ((uint64_t)64 * 1024)
#define HEADERS    17 /* MO_TRACE_HEADER_MAX and Content-Type */

struct mo_export {
    struct mo_export_opts o;
    char *url;
    struct mo_http_header headers[HEADERS];
    size_t nheaders;
    struct mo_buf secret; /* bytes of the headers */
    struct mo_httpc *http;
    struct mo_httpc_x *x; /* NULL: no request is under way */
    struct mo_buf body;
    unsigned items; /* in body; 0: none */
    unsigned tries;
    int status;
    uint64_t after_ms;     /* from Retry-After; 0: none */
    struct mo_timer pause; /* runs before the next try */
    struct mo_timer deadline;
    struct mo_later later; /* a request that could not start */
    uint64_t failures;
    bool failing; /* and it was logged */
    bool closing, ending;
    struct mo_gone gone;
};

static void send_body(struct mo_export *x);
static void end_export(struct mo_export *x);

/* --- the end of a try ---------------------------------------------------- */

static void end_batch(struct mo_export *x, bool taken)
{
    unsigned n = x->items;

    x->items = x->tries = 0;
    mo_buf_reset(&x->body);
    x->o.done(x->o.ctx, n, taken);
}

static bool is_temporary(const struct mo_export *x, const struct mo_err *why)
{
    if (why)
        return why->code != MO_EPOLICY && why->code != MO_EINVAL;
    return x->status == 429 || (x->status >= 502 && x->status <= 504);
}

static void log_failure(struct mo_export *x, const struct mo_err *why)
{
    const struct mo_log *log = mo_loop_log(x->o.loop);

    x->failures++;
    if (x->failing)
        return;
    x->failing = true;
    if (why)
        mo_log_err(log, MO_WARN, "trace", why, "%s cannot be exported",
                   x->o.what);
    else
        mo_log(log, MO_WARN, "trace",
               "%s cannot be exported: the collector answered with status %d",
               x->o.what, x->status);
}

/* Half of the pause is random, so that many servers do not come at once. */
static uint64_t pause_of(const struct mo_export *x)
{
    uint64_t ms = (uint64_t)MO_EXPORT_PAUSE_MS << (x->tries - 1);

    return x->after_ms ? x->after_ms : ms / 2 + mo_random_u64() % (ms / 2 + 1);
}

static void end_try(struct mo_export *x, const struct mo_err *why)
{
    bool good = !why && x->status >= 200 && x->status < 300;

    if (good && x->failing)
        mo_log(mo_loop_log(x->o.loop), MO_INFO, "trace",
               "%s are exported again", x->o.what);
    x->failing = x->failing && !good;
    if (!good && !x->ending)
        log_failure(x, why);
    if (!good && !x->closing && is_temporary(x, why) &&
        x->tries < MO_EXPORT_TRIES) {
        mo_timer_start(x->o.loop, &x->pause, pause_of(x));
        return;
    }
    end_batch(x, good);
    if (x->closing && !good)
        end_export(x);
    else
        mo_export_kick(x);
}

static void on_head(void *ctx, const struct mo_http_head *h)
{
    struct mo_export *x = ctx;
    uint64_t s = 0;

    x->status = h->status;
    if (mo_span_u64(mo_span_trim(mo_http_get(h, "Retry-After")), &s) == 0 && s)
        x->after_ms =
            s > MO_EXPORT_AFTER_MAX / 1000 ? MO_EXPORT_AFTER_MAX : s * 1000;
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct mo_export *x = ctx;

    x->x = NULL;
    end_try(x, why);
}

static void on_later(struct mo_later *d)
{
    struct mo_err e;

    (void)mo_fail(&e, MO_EUNAVAIL, "no request can be sent");
    end_try(mo_container_of(d, struct mo_export, later), &e);
}

/* --- a try --------------------------------------------------------------- */

static void send_body(struct mo_export *x)
{
    static const struct mo_http_cb cb = {.on_head = on_head,
                                         .on_done = on_done};
    const struct mo_http_call call = {
        .method = "POST",
        .url = x->url,
        .headers = x->headers,
        .nheaders = x->nheaders,
        .body = mo_buf_view(&x->body),
        .total_ms = MO_EXPORT_TOTAL_MS,
        .max_bytes = ANSWER_MAX,
    };

    x->tries++;
    x->status = 0;
    x->after_ms = 0;
    if (mo_httpc_start(x->http, &call, &cb, x, &x->x, NULL) < 0)
        mo_loop_defer(x->o.loop, &x->later);
}

static void on_pause(struct mo_timer *t)
{
    send_body(mo_container_of(t, struct mo_export, pause));
}

void mo_export_kick(struct mo_export *x)
{
    if (x->items || x->ending)
        return;
    x->items = x->o.fill(x->o.ctx, &x->body);
    if (x->items)
        send_body(x);
    else if (x->closing)
        end_export(x);
}

bool mo_export_busy(const struct mo_export *x)
{
    return x->items > 0;
}

uint64_t mo_export_failures(const struct mo_export *x)
{
    return x->failures;
}

/* --- from new to close --------------------------------------------------- */

static void export_free(struct mo_export *x)
{
    mo_timer_stop(x->o.loop, &x->pause);
    mo_timer_stop(x->o.loop, &x->deadline);
    mo_later_cancel(&x->later);
    mo_buf_wipe(&x->secret);
    mo_buf_fini(&x->body);
    mo_free(x->url);
    mo_free(x);
}

static void on_http_gone(void *ctx)
{
    struct mo_export *x = ctx;
    struct mo_gone gone = x->gone;

    export_free(x);
    mo_gone_fire(gone);
}

static void end_export(struct mo_export *x)
{
    if (x->ending)
        return;
    x->ending = true;
    mo_timer_stop(x->o.loop, &x->pause);
    mo_timer_stop(x->o.loop, &x->deadline);
    mo_later_cancel(&x->later);
    if (x->items && !x->x)
        end_batch(x, false);
    mo_httpc_close(mo_take_ptr(&x->http), on_http_gone, x);
}

static void on_deadline(struct mo_timer *t)
{
    end_export(mo_container_of(t, struct mo_export, deadline));
}

void mo_export_close(struct mo_export *x, uint64_t ms, struct mo_gone gone)
{
    x->closing = true;
    x->gone = gone;
    mo_timer_start(x->o.loop, &x->deadline, ms);
    if (mo_timer_on(&x->pause)) {
        mo_timer_stop(x->o.loop, &x->pause);
        send_body(x);
    }
    mo_export_kick(x);
}

static int copy_headers(struct mo_export *x, const struct mo_export_opts *o)
{
    size_t n = 0;
    const char *at;

    for (size_t i = 0; i < o->nheaders; i++)
        n += o->headers[i].name.n + o->headers[i].value.n;
    mo_buf_init(&x->secret, n + 1);
    if (o->nheaders + 1 > HEADERS || !mo_buf_room(&x->secret, n + 1))
        return MO_ENOMEM;
    for (size_t i = 0; i < o->nheaders; i++) {
        struct mo_http_header *h = &x->headers[x->nheaders++];

        at = x->secret.p + x->secret.len;
        (void)mo_buf_span(&x->secret, o->headers[i].name);
        (void)mo_buf_span(&x->secret, o->headers[i].value);
        h->name = mo_span(at, o->headers[i].name.n);
        h->value = mo_span(at + h->name.n, o->headers[i].value.n);
    }
    x->headers[x->nheaders++] =
        (struct mo_http_header){MO_SPAN("Content-Type"), mo_span_cstr(o->type)};
    return 0;
}

struct mo_export *mo_export_new(const struct mo_export_opts *o,
                                struct mo_err *e)
{
    const struct mo_httpc_opts http = {.active = 1, .waiting = 1};
    struct mo_export *x = mo_new(struct mo_export);

    if (!x)
        return mo_null(mo_fail(e, MO_ENOMEM, "telemetry"));
    x->o = *o;
    mo_buf_init(&x->body, MO_EXPORT_BODY_MAX);
    mo_timer_init(&x->pause, on_pause);
    mo_timer_init(&x->deadline, on_deadline);
    mo_later_init(&x->later, on_later);
    x->url = mo_strndup(o->url, strlen(o->url));
    if (!x->url || copy_headers(x, o) < 0)
        (void)mo_fail(e, MO_ENOMEM, "telemetry");
    else
        x->http = mo_httpc_new(o->loop, &http, e);
    if (x->http)
        return x;
    export_free(x);
    return NULL;
}
