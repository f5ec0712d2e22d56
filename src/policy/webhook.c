#include "policy/webhook.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/rand.h"
#include "loop/httpc.h"
#include "secrets/resolve.h"

#define TOTAL_MS   10000 /* for one try */
#define ANSWER_MAX 65536 /* bytes of an answer, which nobody reads */
#define ID_BYTES   12
#define TEXT_MAX   4096
#define BODY_MAX   ((size_t)64 * 1024)

struct message {
    struct mo_list node;
    char kind[32];
    size_t n;
    char body[];
};

struct hook {
    struct mo_webhooks *all;
    const struct mo_config_webhook *c; /* in all->cfg */
    struct mo_list queue;              /* struct message; the first is sent */
    unsigned n, tries;
    uint64_t dropped;
    struct mo_timer pause;
    struct attempt *attempt; /* NULL: none under way */
    bool failing;            /* the last message was not delivered */
};

/* A request ends after the webhook may be gone. */
struct attempt {
    struct hook *h; /* NULL: nobody waits for it */
    struct mo_httpc_x *x;
    int status;
};

struct mo_webhooks {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    struct mo_httpc *http; /* NULL: there are no webhooks */
    struct hook *v;
    size_t n;
    bool closing;
    struct mo_later later; /* calls gone() if there is no client */
    struct mo_gone gone;
};

static void send_first(struct hook *h);

static const struct mo_log *log_of(const struct hook *h)
{
    return mo_loop_log(h->all->loop);
}

/* --- one message --------------------------------------------------------- */

static void drop_first(struct hook *h)
{
    struct message *m = mo_list_first(&h->queue, struct message, node);

    mo_list_del(&m->node);
    mo_free(m);
    h->n--;
    h->tries = 0;
}

static void next_later(struct hook *h, uint64_t ms)
{
    if (!mo_list_empty(&h->queue))
        mo_timer_start(h->all->loop, &h->pause, ms);
}

static void on_pause(struct mo_timer *t)
{
    send_first(mo_container_of(t, struct hook, pause));
}

/* True if another try may succeed. */
static bool is_temporary(int status, const struct mo_err *why)
{
    if (why)
        return why->code != MO_EPOLICY && why->code != MO_EINVAL;
    return status >= 500 || status == 429 || status == 408;
}

static void on_head(void *ctx, const struct mo_http_head *head)
{
    ((struct attempt *)ctx)->status = head->status;
}

/* Logged once, until a message is delivered again. */
static void give_up(struct hook *h, int status, const struct mo_err *why)
{
    size_t i = (size_t)(h - h->all->v);

    if (!h->failing && why)
        mo_log_err(log_of(h), MO_WARN, "webhook", why,
                   "webhook %zu: a message was not delivered", i);
    else if (!h->failing)
        mo_log(log_of(h), MO_WARN, "webhook",
               "webhook %zu: a message was not delivered: status %d", i,
               status);
    h->failing = true;
    drop_first(h);
}

static void end_try(struct hook *h, int status, const struct mo_err *why)
{
    uint64_t pause = 0;

    if (!why && status >= 200 && status < 300) {
        h->failing = false;
        drop_first(h);
    } else if (is_temporary(status, why) && h->tries < MO_WEBHOOK_TRIES) {
        pause = (uint64_t)MO_WEBHOOK_PAUSE_MS << (h->tries - 1);
    } else {
        give_up(h, status, why);
    }
    next_later(h, pause);
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct attempt *a = ctx;

    if (a->h) {
        a->h->attempt = NULL;
        end_try(a->h, a->status, why);
    }
    mo_free(a);
}

static int start_request(struct hook *h, const struct mo_http_call *call,
                         struct mo_err *e)
{
    static const struct mo_http_cb cb = {.on_head = on_head,
                                         .on_done = on_done};
    struct attempt *a = mo_new(struct attempt);
    int rc;

    if (!a)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    a->h = h;
    rc = mo_httpc_start(h->all->http, call, &cb, a, &a->x, e);
    if (rc < 0)
        mo_free(a);
    else
        h->attempt = a;
    return rc;
}

static int start_try(struct hook *h, struct mo_err *e)
{
    const struct message *m = mo_list_first(&h->queue, struct message, node);
    mo_autowipe struct mo_buf url = {.max = TEXT_MAX};
    mo_autowipe struct mo_buf secret = {.max = TEXT_MAX};
    uint64_t now = mo_wall_ms() / 1000;
    char mac[MO_WEBHOOK_MAC], at[24];
    const struct mo_http_header headers[] = {
        {MO_SPAN("Content-Type"), MO_SPAN("application/json")},
        {MO_SPAN("X-MCP-Orchestrator-Event"), mo_span_cstr(m->kind)},
        {MO_SPAN("X-MCP-Orchestrator-Timestamp"), {at, 0}},
        {MO_SPAN("X-MCP-Orchestrator-Signature"), {mac, 0}},
    };
    struct mo_http_header v[MO_COUNT(headers)];
    struct mo_http_call call = {.method = "POST",
                                .headers = v,
                                .nheaders = MO_COUNT(v),
                                .body = {m->body, m->n},
                                .total_ms = TOTAL_MS,
                                .max_bytes = ANSWER_MAX,
                                .public_only = !h->c->private_net};

    if (mo_reference_resolve(h->all->cfg, h->c->url, &url, e) < 0 ||
        mo_reference_resolve(h->all->cfg, h->c->secret, &secret, e) < 0)
        return e->code;
    if (secret.len == 0)
        return mo_fail(e, MO_EINVAL, "the secret is empty");
    (void)snprintf(at, sizeof(at), "%llu", (unsigned long long)now);
    mo_webhook_sign(mo_buf_view(&secret), now, call.body, mac);
    memcpy(v, headers, sizeof(v));
    v[2].value = mo_span_cstr(at);
    v[3].value = mo_span_cstr(mac);
    call.url = mo_buf_cstr(&url);
    return start_request(h, &call, e);
}

static void send_first(struct hook *h)
{
    struct mo_err e;

    if (mo_list_empty(&h->queue) || h->attempt)
        return;
    h->tries++;
    if (start_try(h, &e) < 0)
        end_try(h, 0, &e);
}

/* --- telling ------------------------------------------------------------- */

static void make_link(const struct mo_webhooks *w,
                      const struct mo_webhook_event *ev, struct mo_buf *out)
{
    const char *url = w->cfg->people.url;
    size_t n = url ? strlen(url) : 0;

    while (n && url[n - 1] == '/')
        n--;
    if (n)
        (void)mo_buf_printf(out, "%.*s/approvals?call=%s", (int)n, url,
                            ev->call);
}

static void queue_message(struct hook *h, const struct mo_webhook_event *ev,
                          const char *id, const char *link)
{
    mo_autobuf struct mo_buf b = {.max = BODY_MAX};
    struct message *m = NULL;

    mo_webhook_body(&b, ev, id, link, h->c->arguments);
    if (mo_buf_err(&b) == 0 && h->n < MO_WEBHOOK_QUEUE)
        m = mo_alloc(sizeof(*m) + b.len);
    if (!m) {
        if (h->dropped++ == 0)
            mo_log(log_of(h), MO_WARN, "webhook",
                   "webhook %zu: messages are dropped: too many wait",
                   (size_t)(h - h->all->v));
        return;
    }
    *m = (struct message){.n = b.len};
    (void)snprintf(m->kind, sizeof(m->kind), "%s", ev->kind);
    memcpy(m->body, b.p, b.len);
    mo_list_push(&h->queue, &m->node);
    if (h->n++ == 0) {
        h->dropped = 0;
        next_later(h, 0);
    }
}

void mo_webhooks_tell(struct mo_webhooks *w, const struct mo_webhook_event *ev)
{
    mo_autobuf struct mo_buf link = {.max = TEXT_MAX};
    char id[MO_TOKEN_LEN(ID_BYTES) + 1];

    if (!w || w->closing || w->n == 0)
        return;
    mo_random_token(id, ID_BYTES);
    make_link(w, ev, &link);
    for (size_t i = 0; i < w->n; i++)
        if (ev->panel->need || w->v[i].c->calls == MO_WEBHOOK_ALL)
            queue_message(&w->v[i], ev, id, link.len ? mo_buf_cstr(&link) : "");
}

/* --- from new to close --------------------------------------------------- */

static void drop_hooks(struct mo_webhooks *w)
{
    for (size_t i = 0; i < w->n; i++) {
        struct attempt *a = mo_take_ptr(&w->v[i].attempt);

        if (a) {
            a->h = NULL;
            mo_httpc_cancel(a->x);
        }
        mo_timer_stop(w->loop, &w->v[i].pause);
        while (!mo_list_empty(&w->v[i].queue))
            drop_first(&w->v[i]);
    }
    mo_free(w->v);
    w->v = NULL;
    w->n = 0;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_hooks(const struct mo_config_webhooks *a,
                       const struct mo_config_webhooks *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++)
        same = same_text(a->v[i].url, b->v[i].url) &&
               same_text(a->v[i].secret, b->v[i].secret) &&
               a->v[i].calls == b->v[i].calls &&
               a->v[i].arguments == b->v[i].arguments &&
               a->v[i].private_net == b->v[i].private_net;
    return same;
}

static struct hook *make_hooks(struct mo_webhooks *w, size_t n)
{
    struct hook *v = mo_zalloc((n + 1) * sizeof(*v));

    for (size_t i = 0; v && i < n; i++) {
        v[i].all = w;
        mo_list_init(&v[i].queue);
        mo_timer_init(&v[i].pause, on_pause);
    }
    return v;
}

int mo_webhooks_reload(struct mo_webhooks *w, const struct mo_config *cfg,
                       struct mo_err *e)
{
    const struct mo_config_webhooks *to = &cfg->approvals.webhooks;
    const struct mo_httpc_opts o = {.active = 8};

    if (to->n && !w->http) {
        w->http = mo_httpc_new(w->loop, &o, e);
        if (!w->http)
            return e->code;
    }
    if (!w->cfg || !same_hooks(&w->cfg->approvals.webhooks, to)) {
        struct hook *v = make_hooks(w, to->n);

        if (!v)
            return mo_fail(e, MO_ENOMEM, "webhooks");
        drop_hooks(w);
        w->v = v;
        w->n = to->n;
    }
    for (size_t i = 0; i < w->n; i++)
        w->v[i].c = &to->v[i];
    mo_config_unref(w->cfg);
    w->cfg = mo_config_ref(cfg);
    return 0;
}

static void free_webhooks(void *ctx)
{
    struct mo_webhooks *w = ctx;
    struct mo_gone gone = w->gone;

    mo_config_unref(w->cfg);
    mo_free(w);
    mo_gone_fire(gone);
}

static void on_later(struct mo_later *d)
{
    free_webhooks(mo_container_of(d, struct mo_webhooks, later));
}

void mo_webhooks_close(struct mo_webhooks *w, void (*gone)(void *ctx),
                       void *ctx)
{
    w->closing = true;
    w->gone = (struct mo_gone){gone, ctx};
    drop_hooks(w);
    if (w->http)
        mo_httpc_close(mo_take_ptr(&w->http), free_webhooks, w);
    else
        mo_loop_defer(w->loop, &w->later);
}

int mo_webhooks_new(struct mo_loop *l, const struct mo_config *cfg,
                    struct mo_webhooks **out, struct mo_err *e)
{
    struct mo_webhooks *w = mo_new(struct mo_webhooks);

    if (!w)
        return mo_fail(e, MO_ENOMEM, "webhooks");
    w->loop = l;
    mo_later_init(&w->later, on_later);
    if (mo_webhooks_reload(w, cfg, e) < 0) {
        mo_webhooks_close(w, NULL, NULL);
        return e->code;
    }
    *out = w;
    return 0;
}
