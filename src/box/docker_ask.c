/* docker_ask.c - queries about docker boxes: list, remove, stats, check. */
#include <stdio.h>

#include "base/clock.h"
#include "box/docker_priv.h"

#define LIST_ARENA_MAX ((size_t)16 * 1024 * 1024)
#define ORPHAN_S       120 /* a box is made in less */

struct query {
    struct dk *d;
    mo_box_rows_fn *rows; /* who waits for the answer: one of these */
    mo_box_stats_fn *stats;
    void *ctx;
    char from[MO_BOX_ID_MAX]; /* rows after this one */
};

static int ask_engine(const struct dk *d, const char *path,
                      mo_engine_done *done, struct query query,
                      struct mo_err *e)
{
    struct mo_engine_req req = {.path = path};
    struct query *q = mo_new(struct query);
    int rc;

    if (!q)
        return mo_fail(e, MO_ENOMEM, "box");
    *q = query;
    rc = mo_engine_ask(d->en, &req, done, q, NULL, e);
    if (rc < 0)
        mo_free(q);
    return rc;
}

/* --- list ---------------------------------------------------------------- */

/* A string member; "" if missing; NULL: no memory. */
static const char *member_text(struct mo_arena *a, struct mo_json obj,
                               const char *key)
{
    struct mo_json v = mo_json_get(obj, key);
    struct mo_span s;

    if (!mo_json_is(v, MO_JSON_STRING))
        return "";
    return mo_json_str(v, a, &s) < 0 ? NULL : mo_span_dup(a, s).p;
}

static int read_row(struct mo_arena *a, struct mo_json v, struct mo_box_row *r)
{
    struct mo_json labels = mo_json_get(v, "Labels");
    struct mo_json state = mo_json_get(v, "State");
    const char *expires = member_text(a, labels, "mo.expires");

    *r = (struct mo_box_row){
        .id = member_text(a, v, "Id"),
        .session = member_text(a, labels, "mo.session"),
        .instance = member_text(a, labels, "mo.instance"),
        .policy = member_text(a, labels, "mo.policy"),
        .paused = mo_json_str_eq(state, MO_SPAN("paused")),
        .warm = mo_json_str_eq(mo_json_get(labels, "mo.warm"), MO_SPAN("1")),
    };
    r->running = r->paused || mo_json_str_eq(state, MO_SPAN("running"));
    if (!r->id || !r->session || !r->instance || !r->policy || !expires)
        return MO_ENOMEM;
    (void)mo_span_u64(mo_span_cstr(expires), &r->expires);
    (void)mo_json_u64(mo_json_get(v, "Created"), &r->started);
    return 0;
}

static bool is_network(struct mo_json v)
{
    return mo_json_str_eq(mo_json_get(mo_json_get(v, "Labels"), "mo.role"),
                          MO_SPAN(DK_ROLE_NET));
}

static int read_rows(struct mo_arena *a, struct mo_json array,
                     struct mo_box_row **out, size_t *n)
{
    size_t max = mo_json_len(array);

    *n = 0;
    *out = mo_arena_zalloc(a, (max + 1) * sizeof(**out));
    if (!*out)
        return MO_ENOMEM;
    mo_json_each_while (at, array, *n < max)
        if (!is_network(at.val) && read_row(a, at.val, &(*out)[(*n)++]) < 0)
            return MO_ENOMEM;
    return 0;
}

/* --- network containers without a box ------------------------------------ */

static bool has_box(struct mo_json array, const char *key)
{
    char one[DK_NET_KEY_MAX], id[MO_BOX_ID_MAX];

    mo_json_each (at, array)
        if (!is_network(at.val) &&
            mo_docker_net_read_label(mo_json_get(at.val, "Labels"), one, id) &&
            strcmp(one, key) == 0)
            return true;
    return false;
}

static void on_swept(void *ctx, const struct mo_err *why)
{
    (void)ctx;
    (void)why; /* the next list finds it again */
}

/* A process died while it made or removed a box. A new one may still get its
 * box. */
static void sweep_networks(struct dk *d, struct mo_json array)
{
    uint64_t now = mo_wall_ms() / 1000;

    mo_json_each (at, array) {
        char key[DK_NET_KEY_MAX], name[DK_NAME_MAX];
        uint64_t created = now;

        (void)mo_json_u64(mo_json_get(at.val, "Created"), &created);
        if (!is_network(at.val) || created > now - ORPHAN_S ||
            !mo_docker_net_read_key(mo_json_get(at.val, "Labels"), key) ||
            has_box(array, key))
            continue;
        mo_docker_net_name(key, name);
        mo_docker_net_rmdir(d, key);
        (void)mo_docker_remove_one(&d->bs, name, on_swept, NULL, NULL);
    }
}

static void on_list(void *ctx, const struct mo_engine_reply *r,
                    const struct mo_err *why)
{
    struct query *q = ctx;
    mo_autoarena struct mo_arena arena = {.cap = LIST_ARENA_MAX};
    struct mo_box_row *rows = NULL;
    struct mo_err e;
    size_t n = 0;

    if (!why && !mo_json_is(r->json, MO_JSON_ARRAY)) {
        (void)mo_fail(&e, MO_EPROTO, "the engine's list of containers");
        why = &e;
    } else if (!why && read_rows(&arena, r->json, &rows, &n) < 0) {
        (void)mo_fail(&e, MO_ENOMEM, "list of boxes");
        why = &e;
    }
    if (!why)
        sweep_networks(q->d, r->json);
    mo_boxes_tell_part(rows, why ? 0 : n, q->from, q->rows, q->ctx, why);
    mo_free(q);
}

int mo_docker_list(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                   void *ctx, struct mo_err *e)
{
    struct dk *d = mo_docker_of(bs);
    mo_autobuf struct mo_buf label = {.max = 1024};
    mo_autobuf struct mo_buf path = {.max = 1024};
    struct query q = {.d = d, .rows = done, .ctx = ctx};
    int rc = mo_buf_printf(&label, "mo.store=%s", d->store);

    (void)snprintf(q.from, sizeof(q.from), "%s", from ? from : "");
    if (rc == 0)
        rc =
            mo_engine_put_filter(&path, "/containers/json?all=1&filters=", NULL,
                                 mo_buf_cstr(&label));
    return rc < 0 ? mo_fail(e, rc, "list of boxes")
                  : ask_engine(d, mo_buf_cstr(&path), on_list, q, e);
}

/* --- remove -------------------------------------------------------------- */

#define REMOVE_TRIES 60
#define REMOVE_MS    50

/* A box, then its network container. */
struct removal {
    struct dk *d;
    struct mo_timer timer;
    mo_done_fn *done;
    void *ctx;
    unsigned tries;
    char id[MO_BOX_ID_MAX];
    char key[DK_NET_KEY_MAX]; /* of the network that is removed next, or "" */
};

static int removal_ask(struct removal *s, struct mo_err *e);

static void on_again(struct mo_timer *t)
{
    struct removal *s = mo_container_of(t, struct removal, timer);
    struct mo_err e;

    if (removal_ask(s, &e) == 0)
        return;
    s->done(s->ctx, &e);
    mo_free(s);
}

/* Returns false if there is none, or it cannot be asked for. */
static bool remove_network(struct removal *s)
{
    char key[DK_NET_KEY_MAX];

    if (!s->key[0])
        return false;
    memcpy(key, s->key, sizeof(key));
    s->key[0] = '\0';
    s->tries = 0;
    mo_docker_net_rmdir(s->d, key);
    mo_docker_net_name(key, s->id);
    return removal_ask(s, NULL) == 0;
}

/* 409: it is being removed already, which ends in 404. */
static void on_removed(void *ctx, const struct mo_engine_reply *r,
                       const struct mo_err *why)
{
    struct removal *s = ctx;

    if (why && why->code == MO_ENOTFOUND)
        why = NULL;
    if (why && r->status != 0 && ++s->tries < REMOVE_TRIES) {
        mo_timer_start(s->d->bs.loop, &s->timer,
                       REMOVE_MS * (s->tries < 10 ? s->tries : 10));
        return;
    }
    if (!why && remove_network(s))
        return;
    s->done(s->ctx, why);
    mo_free(s);
}

static int removal_ask(struct removal *s, struct mo_err *e)
{
    char path[128];
    struct mo_engine_req req = {.method = "DELETE", .path = path};

    (void)snprintf(path, sizeof(path), "/containers/%s?force=1&v=1", s->id);
    return mo_engine_ask(s->d->en, &req, on_removed, s, NULL, e);
}

static struct removal *removal_new(struct mo_boxes *bs, const char *id,
                                   mo_done_fn *done, void *ctx,
                                   struct mo_err *e)
{
    struct removal *s;

    if (!mo_engine_is_name(mo_span_cstr(id)) || strlen(id) >= MO_BOX_ID_MAX) {
        (void)mo_fail(e, MO_EINVAL, "box: the id is not valid");
        return NULL;
    }
    s = mo_new(struct removal);
    if (!s) {
        (void)mo_fail(e, MO_ENOMEM, "box");
        return NULL;
    }
    *s = (struct removal){.d = mo_docker_of(bs), .done = done, .ctx = ctx};
    mo_timer_init(&s->timer, on_again);
    (void)snprintf(s->id, sizeof(s->id), "%s", id);
    return s;
}

int mo_docker_remove_one(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                         void *ctx, struct mo_err *e)
{
    struct removal *s = removal_new(bs, id, done, ctx, e);
    int rc;

    if (!s)
        return e ? e->code : MO_EINVAL;
    rc = removal_ask(s, e);
    if (rc < 0)
        mo_free(s);
    return rc;
}

/* Its labels name its network. If it is not there, that is found by the sweep.
 */
static void on_described(void *ctx, const struct mo_engine_reply *r,
                         const struct mo_err *why)
{
    struct removal *s = ctx;
    char id[MO_BOX_ID_MAX];
    struct mo_err e;

    if (!why)
        (void)mo_docker_net_read_label(
            mo_json_get(mo_json_get(r->json, "Config"), "Labels"), s->key, id);
    if (removal_ask(s, &e) == 0)
        return;
    s->done(s->ctx, &e);
    mo_free(s);
}

int mo_docker_remove(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                     void *ctx, struct mo_err *e)
{
    char path[128];
    struct mo_engine_req req = {.path = path};
    struct removal *s = removal_new(bs, id, done, ctx, e);
    int rc;

    if (!s)
        return e ? e->code : MO_EINVAL;
    (void)snprintf(path, sizeof(path), "/containers/%s/json", id);
    rc = mo_engine_ask(s->d->en, &req, on_described, s, NULL, e);
    if (rc < 0)
        mo_free(s);
    return rc;
}

/* --- stats --------------------------------------------------------------- */

static uint64_t member_number(struct mo_json v, const char *a, const char *b)
{
    uint64_t n = 0;

    (void)mo_json_u64(mo_json_get(mo_json_get(v, a), b), &n);
    return n;
}

static void on_stats(void *ctx, const struct mo_engine_reply *r,
                     const struct mo_err *why)
{
    struct query *q = ctx;
    struct mo_box_stats out = {.memory = 0};
    struct mo_json cpu = mo_json_get(r->json, "cpu_stats");

    if (!why) {
        out.memory = member_number(r->json, "memory_stats", "usage");
        out.memory_peak = member_number(r->json, "memory_stats", "max_usage");
        out.cpu_us = member_number(cpu, "cpu_usage", "total_usage") / 1000;
        out.pids = (unsigned)member_number(r->json, "pids_stats", "current");
        if (out.memory_peak < out.memory)
            out.memory_peak = out.memory; /* cgroup v2 has no peak */
    }
    q->stats(q->ctx, why ? NULL : &out, why);
    mo_free(q);
}

int mo_docker_stats(struct mo_box *box, mo_box_stats_fn *done, void *ctx,
                    struct mo_err *e)
{
    struct query q = {.stats = done, .ctx = ctx};
    char path[128];

    (void)snprintf(path, sizeof(path),
                   "/containers/%s/stats?stream=0&one-shot=1",
                   mo_docker_box_of(box)->id);
    return ask_engine(mo_docker_of(box->bs), path, on_stats, q, e);
}

/* --- check --------------------------------------------------------------- */

struct check {
    struct dk_wait wait;
    struct dk *d;
    mo_boxes_ready_fn *done;
    void *ctx;
};

static void on_ready(struct dk_wait *w, const struct mo_err *why)
{
    struct check *c = mo_container_of(w, struct check, wait);
    const struct mo_engine_facts *f = &c->d->facts;
    struct mo_boxes_ready r = {.ok = why == NULL};

    if (f->version[0])
        (void)snprintf(r.what, sizeof(r.what), "%s %s (API 1.%u) at %s%s",
                       f->podman ? "podman" : "Docker", f->version, f->api,
                       mo_engine_host(c->d->en),
                       f->userns ? ", userns-remap" : "");
    else
        (void)snprintf(r.what, sizeof(r.what), "container engine at %s",
                       mo_engine_host(c->d->en));
    if (why)
        (void)snprintf(r.why, sizeof(r.why), "%s", why->msg);
    c->done(c->ctx, &r);
    mo_free(c);
}

int mo_docker_check(struct mo_boxes *bs, mo_boxes_ready_fn *done, void *ctx,
                    struct mo_err *e)
{
    struct check *c = mo_new(struct check);

    if (!c)
        return mo_fail(e, MO_ENOMEM, "box");
    *c = (struct check){.wait = {.go = on_ready, .image = true},
                        .d = mo_docker_of(bs),
                        .done = done,
                        .ctx = ctx};
    mo_docker_wait(c->d, &c->wait);
    return 0;
}
