/* serve_subscriptions.c - subscriptions to resources are those of all processes
 * of the store. See serve_priv.h and mo_gateway_share_watching().
 *
 * A process tells the others what its clients have subscribed to:
 *
 *   workers           a page of shared memory (watch_page.h), which they read
 *                     before each request and when they are told so
 *   other processes   POST /watch {"from","watched":[URI...]} over the relay:
 *                     SOON_MS after a change, and every AGAIN_MS while there is
 *                     any. What is not repeated for FORGET_MS is forgotten:
 *                     that process has ended
 *
 * and is told of updates: POST /watch {"updated":[URI...]}. One such request is
 * under way to each process; what comes meanwhile goes with the next one, each
 * URI once.
 *
 * Limits: MO_WATCH_PAGE_MAX bytes of URIs are told, and as many updates wait;
 * further ones are left out. An update for a process that does not answer is
 * lost. */
#include <stdio.h>

#include "app/serve_priv.h"
#include "base/mem.h"
#include "codec/json/json.h"
#include "peer/others.h"

#define SOON_MS   20
#define AGAIN_MS  5000
#define FORGET_MS ((uint64_t)20 * 1000)
#define BODY_MAX  (8 * MO_WATCH_PAGE_MAX) /* with escapes */
#define FACTS_MAX ((size_t)1024)
#define TOLD      "W"

/* A process that is no worker beside this one, and has told. */
struct watcher {
    struct mo_list node;
    char name[MO_INSTANCE_MAX];
    uint64_t until; /* ms */
};

/* Updates for one process. */
struct news {
    struct mo_list node;
    struct mo_serve_subscriptions *all;
    char to[MO_INSTANCE_MAX]; /* its name, or the number of a worker */
    struct mo_buf uris;       /* JSON, with commas */
    bool busy;                /* a request is under way */
};

struct mo_serve_subscriptions {
    struct server *s;
    struct mo_watch_seen seen[MO_WORKERS_MAX];
    unsigned changes; /* of common, as far as the pages were read */
    struct mo_later write;
    bool removed;          /* the page must be written anew */
    struct mo_timer again; /* tells the others, and forgets some */
    bool told;             /* they know of some */
    struct mo_list watchers, news;
};

static struct mo_gateway *gateway_of(const struct mo_serve_subscriptions *a)
{
    return mo_gateway_setup_gateway(a->s->gateway);
}

static bool is_over(const struct mo_serve_subscriptions *a)
{
    return a->s->closing || !a->s->gateway;
}

/* --- asking other processes ----------------------------------------------- */

static int ask(const struct mo_serve_subscriptions *a, const char *path,
               struct mo_span body,
               void (*done)(void *ctx, int status, struct mo_span body),
               void *ctx)
{
    mo_autobuf struct mo_buf facts = {.max = FACTS_MAX};
    struct mo_relay_ask q = {
        .path = path, .method = "POST", .url = "/watch", .body = body};
    struct mo_err e;

    if (is_over(a) || !a->s->relay || !path[0] ||
        mo_relay_own_facts(&facts) < 0)
        return MO_EUNAVAIL;
    q.facts = mo_buf_view(&facts);
    return mo_relay_ask(a->s->relay, &q, done, ctx, &e);
}

/* --- updates -------------------------------------------------------------- */

static void send_news(struct news *x);

static void news_done(struct news *x)
{
    x->busy = false;
    if (x->uris.len && !is_over(x->all)) {
        send_news(x);
        return;
    }
    mo_list_del(&x->node);
    mo_buf_fini(&x->uris);
    mo_free(x);
}

static void on_news_answer(void *ctx, int status, struct mo_span body)
{
    (void)status; /* lost, if it has not come there */
    (void)body;
    news_done(ctx);
}

static void send_to(struct news *x, const char *path)
{
    mo_autobuf struct mo_buf b = {.max = BODY_MAX};

    (void)mo_buf_puts(&b, "{\"updated\":[");
    (void)mo_buf_span(&b, mo_buf_view(&x->uris));
    (void)mo_buf_puts(&b, "]}");
    mo_buf_reset(&x->uris);
    if (mo_buf_err(&b) ||
        ask(x->all, path, mo_buf_view(&b), on_news_answer, x) < 0)
        news_done(x);
}

static void on_news_found(void *ctx, const struct mo_other *v, size_t n,
                          const struct mo_err *why)
{
    send_to(ctx, why || n == 0 ? "" : v[0].path);
}

/* The socket of a worker, by its number. False: it is none. */
static bool path_of_worker(struct server *s, const char *number,
                           char out[MO_API_WORKER_MAX])
{
    uint64_t i = 0;

    out[0] = '\0';
    return mo_span_u64(mo_span_cstr(number), &i) == 0 && s->api.worker &&
           s->api.worker(s, (unsigned)i - 1, out);
}

static void send_news(struct news *x)
{
    struct server *s = x->all->s;
    char path[MO_API_WORKER_MAX];
    struct mo_err e;

    x->busy = true;
    if (path_of_worker(s, x->to, path))
        send_to(x, path);
    else if (!s->api.peers ||
             mo_others_find(s->api.peers, x->to, on_news_found, x, &e) < 0)
        send_to(x, "");
}

static struct news *news_for(struct mo_serve_subscriptions *a, const char *to)
{
    struct news *x;

    mo_list_each_entry (have, &a->news, struct news, node)
        if (strcmp(have->to, to) == 0)
            return have;
    x = mo_new(struct news);
    if (!x)
        return NULL;
    x->all = a;
    (void)snprintf(x->to, sizeof(x->to), "%s", to);
    mo_buf_init(&x->uris, MO_WATCH_PAGE_MAX);
    mo_list_push(&a->news, &x->node);
    return x;
}

static void add_uri(struct mo_buf *to, struct mo_span quoted)
{
    if (mo_span_search(mo_buf_view(to), quoted) >= 0 ||
        to->len + quoted.n + 1 > to->max)
        return;
    if (to->len)
        (void)mo_buf_putc(to, ',');
    (void)mo_buf_span(to, quoted);
}

static void on_updated(void *ctx, const char *to, struct mo_span uri)
{
    struct mo_serve_subscriptions *a = ctx;
    mo_autobuf struct mo_buf quoted = {.max = MO_WATCH_PAGE_MAX};
    struct news *x;

    if (is_over(a) || mo_json_quote(&quoted, uri) < 0)
        return;
    x = news_for(a, to);
    if (!x)
        return;
    add_uri(&x->uris, mo_buf_view(&quoted));
    if (!x->busy)
        send_news(x);
}

/* --- telling what clients here have subscribed to --------------------------
 */

struct round { /* one telling of all others */
    struct mo_serve_subscriptions *all;
    struct mo_buf body;
};

static void round_free(struct round *r)
{
    mo_buf_fini(&r->body);
    mo_free(r);
}

static bool is_worker(const struct server *s, const char *instance)
{
    char name[MO_INSTANCE_MAX] = "";

    for (unsigned i = 1; s->worker.number && i <= s->worker.count; i++)
        if (mo_worker_named(&s->worker, i, name) && strcmp(name, instance) == 0)
            return true;
    return false;
}

static void on_told(void *ctx, int status, struct mo_span body)
{
    (void)ctx; /* it is told again */
    (void)status;
    (void)body;
}

static void on_others(void *ctx, const struct mo_other *v, size_t n,
                      const struct mo_err *why)
{
    struct round *r = ctx;

    for (size_t i = 0; !why && i < n; i++)
        if (!is_worker(r->all->s, v[i].instance))
            (void)ask(r->all, v[i].path, mo_buf_view(&r->body), on_told, NULL);
    round_free(r);
}

/* Each text ends with a NUL. */
static int put_watched(const struct mo_serve_subscriptions *a,
                       struct mo_span texts, struct mo_buf *out)
{
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_cstr(&w, "from", a->s->api.instance);
    mo_jw_member_arr(&w, "watched");
    while (texts.n) {
        mo_jw_str(&w, mo_span_cut(&texts, '\0'));
        if (!texts.p)
            break;
    }
    mo_jw_end_all(&w);
    return mo_buf_err(out);
}

/* False: there is nothing to tell. */
static bool tell_others(struct mo_serve_subscriptions *a)
{
    mo_autobuf struct mo_buf texts = {.max = MO_WATCH_PAGE_MAX};
    struct round *r = NULL;
    bool had_any = a->told;
    struct mo_err e;

    mo_gateway_put_watched(gateway_of(a), &texts);
    a->told = texts.len > 0;
    if ((!a->told && !had_any) || !a->s->api.peers)
        return a->told;
    r = mo_new(struct round);
    if (!r)
        return a->told;
    r->all = a;
    mo_buf_init(&r->body, BODY_MAX);
    if (put_watched(a, mo_buf_view(&texts), &r->body) < 0 ||
        mo_others_list(a->s->api.peers, on_others, r, &e) < 0)
        round_free(r);
    return a->told;
}

/* False: all are gone. */
static bool forget_some(struct mo_serve_subscriptions *a)
{
    uint64_t now = mo_now_ns() / MO_MS;

    mo_list_each_entry_safe (x, &a->watchers, struct watcher, node) {
        if (x->until > now)
            continue;
        mo_gateway_others_watch(gateway_of(a), x->name, mo_span(NULL, 0), true);
        mo_list_del(&x->node);
        mo_free(x);
    }
    return !mo_list_empty(&a->watchers);
}

static void on_again(struct mo_timer *t)
{
    struct mo_serve_subscriptions *a =
        mo_container_of(t, struct mo_serve_subscriptions, again);
    bool more;

    if (is_over(a))
        return;
    more = tell_others(a);
    if (forget_some(a) || more)
        mo_timer_start(a->s->loop, &a->again, AGAIN_MS);
}

static void on_write(struct mo_later *d)
{
    struct mo_serve_subscriptions *a =
        mo_container_of(d, struct mo_serve_subscriptions, write);
    mo_autobuf struct mo_buf texts = {.max = MO_WATCH_PAGE_MAX};
    struct mo_worker *w = &a->s->worker;

    if (is_over(a))
        return;
    if (a->removed) {
        a->removed = false;
        mo_gateway_put_watched(gateway_of(a), &texts);
        mo_watch_page_write(&w->common->watched[w->number - 1],
                            mo_buf_view(&texts));
        atomic_fetch_add(&w->common->watches, 1);
    }
    mo_worker_tell(w, MO_SPAN(TOLD));
}

static void on_changed(void *ctx, struct mo_span uri, bool on)
{
    struct mo_serve_subscriptions *a = ctx;
    const struct mo_worker *w = &a->s->worker;

    if (is_over(a))
        return;
    if (!on)
        a->removed = true;
    else if (w->number &&
             mo_watch_page_add(&w->common->watched[w->number - 1], uri))
        atomic_fetch_add(&w->common->watches, 1);
    if (w->number)
        mo_loop_defer(a->s->loop, &a->write);
    mo_timer_start(a->s->loop, &a->again, SOON_MS);
}

/* --- learning what clients elsewhere have subscribed to --------------------
 */

void mo_serve_subscriptions_catch_up(struct server *s)
{
    struct mo_serve_subscriptions *a = s->subscriptions;
    const struct mo_worker *w = &s->worker;
    unsigned now = a && w->number ? atomic_load(&w->common->watches) : 0;

    if (!a || !w->number || now == a->changes || is_over(a))
        return;
    a->changes = now;
    for (unsigned i = 0; i < w->count; i++) {
        mo_autobuf struct mo_buf texts = {.max = MO_WATCH_PAGE_MAX};
        char name[MO_U64_DIGITS + 1];
        bool anew;

        if (i + 1 == w->number ||
            !mo_watch_page_read(&w->common->watched[i], &a->seen[i], &texts,
                                &anew))
            continue;
        (void)snprintf(name, sizeof(name), "%u", i + 1);
        mo_gateway_others_watch(gateway_of(a), name, mo_buf_view(&texts), anew);
    }
}

bool mo_serve_subscriptions_told(struct server *s, struct mo_span text)
{
    if (!mo_span_is(text, TOLD))
        return false;
    mo_serve_subscriptions_catch_up(s);
    return true;
}

/* Numbers are those of workers. */
static struct watcher *watcher_of(struct mo_serve_subscriptions *a,
                                  struct mo_span name)
{
    struct watcher *x;
    uint64_t number;

    mo_list_each_entry (have, &a->watchers, struct watcher, node)
        if (mo_span_is(name, have->name))
            return have;
    if (!name.n || name.n >= MO_INSTANCE_MAX || mo_span_u64(name, &number) == 0)
        return NULL;
    x = mo_new(struct watcher);
    if (!x)
        return NULL;
    (void)snprintf(x->name, sizeof(x->name), "%.*s", (int)name.n, name.p);
    mo_list_push(&a->watchers, &x->node);
    return x;
}

static void take_watched(struct mo_serve_subscriptions *a, struct mo_json from,
                         struct mo_json watched)
{
    mo_autobuf struct mo_buf texts = {.max = BODY_MAX};
    char name[MO_INSTANCE_MAX];
    struct watcher *x;

    if (mo_json_str_copy(from, name, sizeof(name)) < 0)
        return;
    x = watcher_of(a, mo_span_cstr(name));
    if (!x)
        return;
    x->until = mo_now_ns() / MO_MS + FORGET_MS;
    mo_json_each (at, watched) {
        (void)mo_json_str_buf(at.val, &texts);
        (void)mo_buf_putc(&texts, '\0');
    }
    if (mo_buf_err(&texts))
        return;
    mo_gateway_others_watch(gateway_of(a), name, mo_buf_view(&texts), true);
    if (!mo_timer_on(&a->again))
        mo_timer_start(a->s->loop, &a->again, AGAIN_MS);
}

static void take_updated(struct mo_serve_subscriptions *a,
                         struct mo_json updated)
{
    mo_json_each (at, updated) {
        mo_autobuf struct mo_buf uri = {.max = MO_WATCH_PAGE_MAX};

        if (mo_json_str_buf(at.val, &uri) == 0)
            mo_gateway_updated(gateway_of(a), mo_buf_view(&uri));
    }
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    struct mo_serve_subscriptions *a = rq->data;
    struct mo_json watched;
    struct mo_json_doc d;

    if (is_over(a)) {
        mo_req_problem(rq, 503, "closing", "the server is shutting down");
        return;
    }
    if (mo_json_parse(body, 0, &d, NULL) < 0) {
        mo_req_problem(rq, 400, "bad_json", "the body is no JSON");
        return;
    }
    watched = mo_json_get(d.root, "watched");
    if (mo_json_is(watched, MO_JSON_ARRAY))
        take_watched(a, mo_json_get(d.root, "from"), watched);
    take_updated(a, mo_json_get(d.root, "updated"));
    mo_req_reply(rq, 204, NULL, mo_span(NULL, 0));
}

bool mo_serve_subscriptions_relayed(struct server *s, struct mo_req *rq)
{
    if (rq->head->method != MO_HTTP_POST || !mo_span_is(rq->path, "/watch") ||
        !s->subscriptions || rq->who[0] || strcmp(rq->door, "socket") != 0)
        return false;
    rq->data = s->subscriptions;
    mo_req_body(rq, BODY_MAX, on_body);
    return true;
}

/* --- life ----------------------------------------------------------------- */

void mo_serve_subscriptions_share(struct server *s)
{
    struct mo_serve_subscriptions *a = mo_new(struct mo_serve_subscriptions);
    const struct mo_gw_watching w = {on_changed, on_updated, a};

    if (!a)
        return; /* each process has its own */
    a->s = s;
    mo_later_init(&a->write, on_write);
    mo_timer_init(&a->again, on_again);
    mo_list_init(&a->watchers);
    mo_list_init(&a->news);
    s->subscriptions = a;
    if (s->worker.number) {
        mo_watch_page_write(&s->worker.common->watched[s->worker.number - 1],
                            mo_span(NULL, 0));
        a->changes = atomic_fetch_add(&s->worker.common->watches, 1) - 1;
    }
    mo_gateway_share_watching(gateway_of(a), &w);
}

void mo_serve_subscriptions_end(struct server *s)
{
    struct mo_serve_subscriptions *a = s->subscriptions;

    if (!a)
        return;
    mo_later_cancel(&a->write);
    mo_timer_stop(s->loop, &a->again);
    if (!s->worker.number)
        return;
    mo_watch_page_write(&s->worker.common->watched[s->worker.number - 1],
                        mo_span(NULL, 0));
    atomic_fetch_add(&s->worker.common->watches, 1);
}

void mo_serve_subscriptions_free(struct server *s)
{
    struct mo_serve_subscriptions *a = mo_take_ptr(&s->subscriptions);

    if (!a)
        return;
    mo_list_each_entry_safe (x, &a->watchers, struct watcher, node)
        mo_free(x);
    mo_list_each_entry_safe (x, &a->news, struct news, node) {
        mo_buf_fini(&x->uris);
        mo_free(x);
    }
    mo_free(a);
}
