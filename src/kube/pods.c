/* pods.c - the pods with a label, and every change of them; see pods.h. */
#include "kube/pods.h"

#include <stdio.h>

#include "base/rand.h"
#include "codec/frame.h"
#include "kube/list.h"

#define PAUSE_MS     100u
#define PAUSE_MAX_MS 5000u
#define WATCH_S      240    /* the cluster ends a watch after this */
#define SILENCE_MS   300000 /* ... so one that is silent for longer is dead */
#define VERSION_MAX  64

struct mo_pods {
    struct mo_loop *loop;
    struct mo_kube *k;
    const struct mo_pods_cb *cb;
    void *ctx;
    char ns[80], selector[200];
    char version[VERSION_MAX];     /* where to watch from; "": list first */
    char place[MO_KUBE_PLACE_MAX]; /* where the next part of the list begins */
    struct mo_frame lines;
    struct mo_kube_call *call; /* NULL: waits for the next attempt */
    struct mo_timer again;
    unsigned pause_ms;
    bool up, stopped;
    bool inside; /* a callback runs that may stop it; then its caller frees */
};

static void free_pods(struct mo_pods *p)
{
    mo_timer_stop(p->loop, &p->again);
    mo_frame_fini(&p->lines);
    mo_free(p);
}

static void lose(struct mo_pods *p, const struct mo_err *why)
{
    p->up = false;
    p->inside = true;
    p->cb->on_lost(p->ctx, why);
    p->inside = false;
}

static void wait_again(struct mo_pods *p)
{
    p->pause_ms = p->pause_ms ? p->pause_ms * 2 : PAUSE_MS;
    if (p->pause_ms > PAUSE_MAX_MS)
        p->pause_ms = PAUSE_MAX_MS;
    mo_timer_start(p->loop, &p->again,
                   p->pause_ms / 2 + mo_random_u64() % (p->pause_ms / 2));
}

static int keep_version(struct mo_pods *p, struct mo_json object)
{
    return mo_json_str_copy(
        mo_json_get(mo_json_get(object, "metadata"), "resourceVersion"),
        p->version, sizeof(p->version));
}

/* --- watch --------------------------------------------------------------- */

/* A watch that fails in the middle: the version may be too old. */
static void read_error(struct mo_pods *p)
{
    p->version[0] = '\0';
    if (p->call)
        mo_kube_cancel(p->call);
}

static void read_event(struct mo_pods *p, struct mo_span line)
{
    struct mo_json_doc doc;
    struct mo_json type, object;

    if (!line.n)
        return;
    if (mo_json_parse(line, 0, &doc, NULL) < 0) {
        read_error(p);
        return;
    }
    type = mo_json_get(doc.root, "type");
    object = mo_json_get(doc.root, "object");
    if (mo_json_str_eq(type, MO_SPAN("ERROR")) || keep_version(p, object) < 0)
        read_error(p);
    else if (!mo_json_str_eq(type, MO_SPAN("BOOKMARK")))
        p->cb->on_pod(p->ctx, object, mo_json_str_eq(type, MO_SPAN("DELETED")));
}

static void on_data(void *ctx, struct mo_span data)
{
    struct mo_pods *p = ctx;
    struct mo_span line;
    int rc = 1;

    while (rc == 1 && !p->stopped && p->version[0]) {
        rc = mo_frame_next(&p->lines, &data, &line);
        if (rc == 1)
            read_event(p, line);
    }
    if (rc < 0 && !p->stopped)
        read_error(p);
}

/* Pauses only after a failure: a regular end is followed at once, by a watch or
 * (no version) a list. */
static void on_watched(void *ctx, const struct mo_kube_reply *r,
                       const struct mo_err *why)
{
    struct mo_pods *p = ctx;
    bool gone = why && (why->code == MO_ECLOSED || why->code == MO_ECANCELED);

    (void)r;
    p->call = NULL;
    if (p->stopped) {
        free_pods(p);
        return;
    }
    if (why)
        p->version[0] = '\0';
    if (!why || gone) {
        mo_timer_start(p->loop, &p->again, PAUSE_MS);
        return;
    }
    lose(p, why);
    if (p->stopped)
        free_pods(p);
    else
        wait_again(p);
}

static int start_watch(struct mo_pods *p, struct mo_err *e)
{
    char path[MO_KUBE_PATH_MAX];
    struct mo_kube_req req = {
        .path = path, .on_data = on_data, .idle_ms = SILENCE_MS, .once = true};

    (void)snprintf(path, sizeof(path),
                   "/api/v1/namespaces/%s/pods?watch=1&labelSelector=%s"
                   "&allowWatchBookmarks=true&timeoutSeconds=%d"
                   "&resourceVersion=%s",
                   p->ns, p->selector, WATCH_S, p->version);
    mo_frame_fini(&p->lines);
    mo_frame_init(&p->lines, MO_PODS_LINE_MAX);
    return mo_kube_ask(p->k, &req, on_watched, p, &p->call, e);
}

/* --- list ---------------------------------------------------------------- */

static int start_list(struct mo_pods *p, struct mo_err *e);

static void tell_part(struct mo_pods *p, struct mo_json list, bool first)
{
    p->inside = true;
    if (first)
        p->cb->on_list(p->ctx);
    mo_json_each_while (at, mo_json_get(list, "items"), !p->stopped)
        p->cb->on_pod(p->ctx, at.val, false);
    if (!p->stopped && !p->place[0]) {
        p->up = true;
        p->pause_ms = 0;
        p->cb->on_listed(p->ctx);
    }
    p->inside = false;
}

/* All parts have the version of the first; it counts after the last. */
static int read_part(struct mo_pods *p, struct mo_json list, struct mo_err *e)
{
    bool first = p->place[0] == '\0';
    int rc = mo_kube_list_place(list, p->place, e);

    if (rc == 0 && !p->place[0] && keep_version(p, list) < 0)
        rc = mo_fail(e, MO_EPROTO, "the cluster's list of pods");
    if (rc == 0)
        tell_part(p, list, first);
    return rc;
}

static void on_part(void *ctx, const struct mo_kube_reply *r,
                    const struct mo_err *why)
{
    struct mo_pods *p = ctx;
    bool forgotten = why && why->code == MO_ECLOSED && p->place[0];
    struct mo_err e;
    int rc = why ? why->code : 0;

    p->call = NULL;
    if (!p->stopped && !why)
        rc = read_part(p, r->json, &e);
    if (!p->stopped && rc < 0 && !forgotten)
        lose(p, why ? why : &e);
    if (p->stopped) {
        free_pods(p);
        return;
    }
    if (rc == 0 &&
        (p->place[0] ? start_list(p, NULL) : start_watch(p, NULL)) == 0)
        return;
    p->place[0] = '\0'; /* from the beginning */
    wait_again(p);
}

static int start_list(struct mo_pods *p, struct mo_err *e)
{
    char path[MO_KUBE_PATH_MAX];
    struct mo_kube_req req = {.path = path, .once = true};

    if (mo_kube_list_path(path, p->ns, "pods", p->selector, p->place, e) < 0)
        return MO_ETOOBIG;
    return mo_kube_ask(p->k, &req, on_part, p, &p->call, e);
}

static void on_again(struct mo_timer *t)
{
    struct mo_pods *p = mo_container_of(t, struct mo_pods, again);
    int rc = p->version[0] ? start_watch(p, NULL) : start_list(p, NULL);

    if (rc < 0)
        wait_again(p);
}

int mo_pods_start(struct mo_loop *l, struct mo_kube *k, const char *ns,
                  const char *selector, const struct mo_pods_cb *cb, void *ctx,
                  struct mo_pods **out, struct mo_err *e)
{
    struct mo_pods *p = mo_new(struct mo_pods);
    int rc;

    if (!p)
        return mo_fail(e, MO_ENOMEM, "pods");
    *p = (struct mo_pods){.loop = l, .k = k, .cb = cb, .ctx = ctx};
    (void)snprintf(p->ns, sizeof(p->ns), "%s", ns);
    (void)snprintf(p->selector, sizeof(p->selector), "%s", selector);
    mo_timer_init(&p->again, on_again);
    mo_frame_init(&p->lines, MO_PODS_LINE_MAX);
    rc = start_list(p, e);
    if (rc < 0)
        free_pods(p);
    else
        *out = p;
    return rc;
}

void mo_pods_stop(struct mo_pods *p)
{
    p->stopped = true;
    if (p->call)
        mo_kube_cancel(p->call); /* its end frees */
    else if (!p->inside)
        free_pods(p);
}

bool mo_pods_is_up(const struct mo_pods *p)
{
    return p->up;
}
