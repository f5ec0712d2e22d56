/* kube_ask.c - queries about kubernetes boxes: list, remove, stats, check. */
#include <stdio.h>

#include "box/kube_priv.h"
#include "kube/list.h"

#define SAMPLE_CLAIM   "mo-files-100000-0000000000000000" /* never created */
#define LIST_ARENA_MAX ((size_t)16 * 1024 * 1024)
#define FORGOTTEN_MAX  3 /* below 10 */

/* --- list ---------------------------------------------------------------- */

_Static_assert(MO_BOX_PLACE_MAX > MO_KUBE_PLACE_MAX, "places of a list");

struct query {
    struct kb *d;
    const char *kind, *role;
    mo_kb_read_fn *read;
    mo_box_rows_fn *rows;
    void *ctx;
    char place[MO_KUBE_PLACE_MAX];
    unsigned forgotten; /* times the cluster did not know a place any more */
};

static const char *member_text(struct mo_arena *a, struct mo_json obj,
                               const char *key)
{
    struct mo_json v = mo_json_get(obj, key);
    struct mo_span s;

    if (!mo_json_is(v, MO_JSON_STRING))
        return "";
    return mo_json_str(v, a, &s) < 0 ? NULL : mo_span_dup(a, s).p;
}

static int read_row(struct mo_arena *a, struct mo_json pod,
                    struct mo_box_row *r)
{
    struct mo_json meta = mo_json_get(pod, "metadata");
    struct mo_json notes = mo_json_get(meta, "annotations");
    const char *expires = member_text(a, notes, "mo.expires");
    const char *started = member_text(a, notes, "mo.started");
    struct mo_pod_state s;

    *r = (struct mo_box_row){
        .id = member_text(a, meta, "name"),
        .session = member_text(a, notes, "mo.session"),
        .instance = member_text(a, notes, "mo.instance"),
        .policy = member_text(a, notes, "mo.policy"),
        .warm = mo_json_str_eq(mo_json_get(notes, "mo.warm"), MO_SPAN("1")),
    };
    if (!r->id || !r->session || !r->instance || !r->policy || !expires ||
        !started)
        return MO_ENOMEM;
    (void)mo_span_u64(mo_span_cstr(expires), &r->expires);
    (void)mo_span_u64(mo_span_cstr(started), &r->started);
    r->running = mo_pod_read(pod, &s, NULL) == 0 && s.phase != MO_POD_ENDED;
    return 0;
}

static int read_pods(struct kb *d, struct mo_json items, struct mo_arena *a,
                     struct mo_box_row *out, size_t *n)
{
    (void)d;
    mo_json_each (at, items)
        if (read_row(a, at.val, &out[(*n)++]) < 0)
            return MO_ENOMEM;
    return 0;
}

/* Reads a part; a cluster may ignore `limit`. `next` is q->forgotten as a digit
 * and a place, so that a list ends whatever the cluster forgets. */
static int read_part(const struct query *q, struct mo_json list,
                     struct mo_arena *a, struct mo_box_rows *out,
                     char next[MO_BOX_PLACE_MAX], struct mo_err *e)
{
    struct mo_json items = mo_json_get(list, "items");
    char place[MO_KUBE_PLACE_MAX];
    struct mo_box_row *rows =
        mo_arena_zalloc(a, (mo_json_len(items) + 1) * sizeof(*rows));

    if (!rows || q->read(q->d, items, a, rows, &out->n) < 0)
        return mo_fail(e, MO_ENOMEM, "list of %s", q->kind);
    out->v = rows;
    if (mo_kube_list_place(list, place, e) < 0)
        return e->code;
    (void)snprintf(next, MO_BOX_PLACE_MAX, "%u%s", q->forgotten, place);
    out->next = place[0] ? next : NULL;
    return 0;
}

static int ask_part(struct query *q, struct mo_err *e);

/* The cluster has forgotten the place. It may name one to go on at; otherwise
 * the list begins again. */
static bool ask_again(struct query *q, const struct mo_kube_reply *r,
                      const struct mo_err *why)
{
    if (why->code != MO_ECLOSED || !q->place[0] ||
        q->forgotten++ >= FORGOTTEN_MAX)
        return false;
    return mo_kube_list_place(r->json, q->place, NULL) == 0 &&
           ask_part(q, NULL) == 0;
}

static void on_part(void *ctx, const struct mo_kube_reply *r,
                    const struct mo_err *why)
{
    struct query *q = ctx;
    mo_autoarena struct mo_arena a = {.cap = LIST_ARENA_MAX};
    struct mo_box_rows rows = {.n = 0};
    char next[MO_BOX_PLACE_MAX];
    struct mo_err e;

    if (why && ask_again(q, r, why))
        return;
    if (!why && read_part(q, r->json, &a, &rows, next, &e) < 0)
        why = &e;
    q->rows(q->ctx, why ? &(struct mo_box_rows){.n = 0} : &rows, why);
    mo_free(q);
}

static int ask_part(struct query *q, struct mo_err *e)
{
    char path[MO_KUBE_PATH_MAX], selector[160];
    struct mo_kube_req req = {.path = path};

    (void)snprintf(selector, sizeof(selector),
                   "mo.role%%3D%s%%2Cmo.store%%3D%s", q->role, q->d->store);
    if (mo_kube_list_path(path, q->d->ns, q->kind, selector, q->place, e) < 0)
        return MO_ETOOBIG;
    return mo_kube_ask(q->d->api, &req, on_part, q, NULL, e);
}

int mo_kb_query(struct kb *d, const char *kind, const char *role,
                const char *from, mo_kb_read_fn *read, mo_box_rows_fn *done,
                void *ctx, struct mo_err *e)
{
    struct query *q = mo_new(struct query);
    int rc;

    if (!q)
        return mo_fail(e, MO_ENOMEM, "list of %s", kind);
    *q = (struct query){.d = d,
                        .kind = kind,
                        .role = role,
                        .read = read,
                        .rows = done,
                        .ctx = ctx};
    if (from && *from) {
        q->forgotten = (unsigned)(from[0] - '0');
        (void)snprintf(q->place, sizeof(q->place), "%s", from + 1);
    }
    rc = ask_part(q, e);
    if (rc < 0)
        mo_free(q);
    return rc;
}

int mo_kb_list(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
               void *ctx, struct mo_err *e)
{
    return mo_kb_query(mo_kb_of(bs), "pods", KB_ROLE_BOX, from, read_pods, done,
                       ctx, e);
}

/* --- remove -------------------------------------------------------------- */

struct removal {
    struct kb *d;
    const char *role;
    mo_done_fn *done;
    void *ctx;
    char path[MO_KUBE_PATH_MAX];
};

static void finish_removal(struct removal *m, const struct mo_err *why)
{
    bool gone = !why || why->code == MO_ENOTFOUND || why->code == MO_EEXISTS;

    m->done(m->ctx, gone ? NULL : why);
    mo_free(m);
}

static void on_deleted(void *ctx, const struct mo_kube_reply *r,
                       const struct mo_err *why)
{
    (void)r;
    finish_removal(ctx, why);
}

/* Only an object with our labels is removed, and only the one that was seen. */
static void on_looked(void *ctx, const struct mo_kube_reply *r,
                      const struct mo_err *why)
{
    struct removal *m = ctx;
    mo_autobuf struct mo_buf body = {.max = KB_BODY_MAX};
    struct mo_kube_req req = {.method = "DELETE", .path = m->path};
    struct mo_json meta = mo_json_get(r->json, "metadata");
    char uid[64] = "";
    struct mo_err e;
    int rc = why ? why->code : 0;

    if (rc == 0 &&
        mo_json_str_copy(mo_json_get(meta, "uid"), uid, sizeof(uid)) < 0)
        rc = mo_fail(&e, MO_EPROTO, "the cluster's account of %s", m->path);
    if (rc == 0 && !mo_kb_is_ours(m->d, r->json, m->role))
        rc = mo_fail(&e, MO_EPOLICY, "%s is not one of ours",
                     strrchr(m->path, '/') + 1);
    if (rc == 0 && mo_kb_put_delete(&body, uid) < 0)
        rc = mo_fail(&e, MO_ENOMEM, "box");
    req.body = mo_buf_view(&body);
    if (rc == 0)
        rc = mo_kube_ask(m->d->api, &req, on_deleted, m, NULL, &e);
    if (rc < 0)
        finish_removal(m, why ? why : &e);
}

int mo_kb_remove_object(struct kb *d, const char *kind, const char *name,
                        const char *role, mo_done_fn *done, void *ctx,
                        struct mo_err *e)
{
    struct removal *m;
    struct mo_kube_req req = {.path = NULL};
    int rc;

    if (!mo_kube_is_label(mo_span_cstr(name)))
        return mo_fail(e, MO_EINVAL, "box: the id is not valid");
    m = mo_new(struct removal);
    if (!m)
        return mo_fail(e, MO_ENOMEM, "box");
    m->d = d;
    m->role = role;
    m->done = done;
    m->ctx = ctx;
    (void)snprintf(m->path, sizeof(m->path), "/api/v1/namespaces/%s/%s/%s",
                   d->ns, kind, name);
    req.path = m->path;
    rc = mo_kube_ask(d->api, &req, on_looked, m, NULL, e);
    if (rc < 0)
        mo_free(m);
    return rc;
}

int mo_kb_remove(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                 void *ctx, struct mo_err *e)
{
    return mo_kb_remove_object(mo_kb_of(bs), "pods", id, KB_ROLE_BOX, done, ctx,
                               e);
}

/* --- stats --------------------------------------------------------------- */

/* The API tells nothing of a pod's use without a metrics server. */
int mo_kb_stats(struct mo_box *b, mo_box_stats_fn *done, void *ctx,
                struct mo_err *e)
{
    (void)b;
    (void)done;
    (void)ctx;
    return mo_fail(e, MO_EUNAVAIL, "kubernetes does not tell what a box uses");
}

/* --- check ---------------------------------------------------------------
 *
 * The version, then each right, then the NetworkPolicy and the watch, then a
 * claim and a pod that are admitted and not created. */

static const struct right {
    const char *group, *resource, *sub, *verb;
    bool claims; /* only if files are kept in claims */
} rights[] = {
    {"", "pods", "", "create"},
    {"", "pods", "", "get"},
    {"", "pods", "", "list"},
    {"", "pods", "", "watch"},
    {"", "pods", "", "delete"},
    {"", "pods", "attach", "get"},
    {"", "pods", "exec", "get"},
    {"networking.k8s.io", "networkpolicies", "", "get"},
    {"networking.k8s.io", "networkpolicies", "", "create"},
    {"", "persistentvolumeclaims", "", "create", true},
    {"", "persistentvolumeclaims", "", "get", true},
    {"", "persistentvolumeclaims", "", "list", true},
    {"", "persistentvolumeclaims", "", "delete", true},
};

struct check {
    struct kb *d;
    struct kb_wait wait;
    mo_boxes_ready_fn *done;
    void *ctx;
    struct mo_boxes_ready r;
    size_t at; /* in rights */
    struct kb_box *box;
};

static void finish_check(struct check *c, const struct mo_err *why)
{
    c->r.ok = why == NULL;
    if (why)
        (void)snprintf(c->r.why, sizeof(c->r.why), "%s", why->msg);
    c->done(c->ctx, &c->r);
    if (c->box)
        mo_arena_fini(&c->box->arena);
    mo_free(c->box);
    mo_free(c);
}

static void on_admitted(void *ctx, const struct mo_kube_reply *r,
                        const struct mo_err *why)
{
    struct check *c = ctx;
    struct mo_err e;

    if (why) {
        e = *why;
        (void)mo_wrap(&e, "a box's pod is not admitted");
        finish_check(c, &e);
    } else if (mo_pod_compare(&c->box->pod, r->json, &e) < 0) {
        finish_check(c, &e);
    } else {
        finish_check(c, NULL);
    }
}

static int try_pod(struct check *c, struct mo_err *e)
{
    char path[MO_KUBE_PATH_MAX];
    mo_autobuf struct mo_buf body = {.max = MO_POD_BODY_MAX};
    struct mo_kube_req req = {.method = "POST", .path = path};

    if (mo_kbox_fill(c->d, c->box, e) < 0)
        return e->code;
    if (mo_pod_write(&c->box->pod, &body) < 0)
        return mo_fail(e, MO_ENOMEM, "box");
    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods?dryRun=All",
                   c->d->ns);
    req.body = mo_buf_view(&body);
    return mo_kube_ask(c->d->api, &req, on_admitted, c, NULL, e);
}

static void on_claim_admitted(void *ctx, const struct mo_kube_reply *r,
                              const struct mo_err *why)
{
    struct check *c = ctx;
    struct mo_err e;

    (void)r;
    if (why) {
        e = *why;
        (void)mo_wrap(&e, "a claim for files is not admitted");
        finish_check(c, &e);
    } else if (try_pod(c, &e) < 0) {
        finish_check(c, &e);
    }
}

static int try_claim(struct check *c, struct mo_err *e)
{
    char path[MO_KUBE_PATH_MAX];
    mo_autobuf struct mo_buf body = {.max = KB_BODY_MAX};
    struct mo_kube_req req = {.method = "POST", .path = path};
    int rc = mo_kb_put_claim(c->d, SAMPLE_CLAIM, "",
                             c->box->spec.limits.workspace, &body);

    if (rc < 0)
        return mo_fail(e, rc, "box");
    (void)snprintf(c->box->b.files, sizeof(c->box->b.files), "%s",
                   SAMPLE_CLAIM);
    (void)snprintf(path, sizeof(path),
                   "/api/v1/namespaces/%s/persistentvolumeclaims?dryRun=All",
                   c->d->ns);
    req.body = mo_buf_view(&body);
    return mo_kube_ask(c->d->api, &req, on_claim_admitted, c, NULL, e);
}

static int try_admission(struct check *c, struct mo_err *e)
{
    c->box = mo_new(struct kb_box);
    if (!c->box)
        return mo_fail(e, MO_ENOMEM, "box");
    mo_arena_init(&c->box->arena, KB_ARENA_MAX);
    c->box->spec = (struct mo_box_spec){.limits = mo_box_limits_default};
    if (!c->d->image[0])
        return mo_fail(e, MO_EINVAL,
                       "no image: set 'sandbox.kubernetes.image'");
    return c->d->claims ? try_claim(c, e) : try_pod(c, e);
}

static void on_cluster(struct kb_wait *w, const struct mo_err *why)
{
    struct check *c = mo_container_of(w, struct check, wait);
    struct mo_err e;

    if (why)
        finish_check(c, why);
    else if (try_admission(c, &e) < 0)
        finish_check(c, &e);
}

static int ask_right(struct check *c, struct mo_err *e);

static void on_right(void *ctx, const struct mo_kube_reply *r,
                     const struct mo_err *why)
{
    struct check *c = ctx;
    const struct right *v = &rights[c->at];
    struct mo_err e;
    bool allowed;

    if (why) {
        finish_check(c, why);
        return;
    }
    allowed = mo_json_flag(mo_json_get(r->json, "status"), "allowed");
    if (strcmp(v->sub, "exec") == 0) { /* only a network needs it */
        c->d->no_exec = !allowed;
    } else if (!allowed) {
        (void)mo_fail(&e, MO_EPOLICY,
                      "no right to %s %s%s%s in namespace %s: see "
                      "docs/kubernetes.md",
                      v->verb, v->resource, *v->sub ? "/" : "", v->sub,
                      c->d->ns);
        finish_check(c, &e);
        return;
    }
    do {
        c->at++;
    } while (c->at < MO_COUNT(rights) && rights[c->at].claims && !c->d->claims);
    if (c->at == MO_COUNT(rights))
        mo_kb_wait(c->d, &c->wait);
    else if (ask_right(c, &e) < 0)
        finish_check(c, &e);
}

static int ask_right(struct check *c, struct mo_err *e)
{
    const struct right *v = &rights[c->at];
    mo_autobuf struct mo_buf body = {.max = KB_BODY_MAX};
    struct mo_jw w = mo_jw_object(&body);
    struct mo_kube_req req = {
        .method = "POST",
        .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"};

    mo_jw_member_cstr(&w, "apiVersion", "authorization.k8s.io/v1");
    mo_jw_member_cstr(&w, "kind", "SelfSubjectAccessReview");
    mo_jw_member_obj(&w, "spec");
    mo_jw_member_obj(&w, "resourceAttributes");
    mo_jw_member_cstr(&w, "namespace", c->d->ns);
    mo_jw_member_cstr(&w, "group", v->group);
    mo_jw_member_cstr(&w, "resource", v->resource);
    mo_jw_member_cstr(&w, "subresource", v->sub);
    mo_jw_member_cstr(&w, "verb", v->verb);
    mo_jw_end_all(&w);
    if (mo_buf_err(&body))
        return mo_fail(e, MO_ENOMEM, "box");
    req.body = mo_buf_view(&body);
    return mo_kube_ask(c->d->api, &req, on_right, c, NULL, e);
}

static void on_version(void *ctx, const struct mo_kube_reply *r,
                       const struct mo_err *why)
{
    struct check *c = ctx;
    char version[32];
    struct mo_err e;

    if (why) {
        finish_check(c, why);
        return;
    }
    (void)mo_json_str_copy(mo_json_get(r->json, "gitVersion"), version,
                           sizeof(version));
    (void)snprintf(c->r.what, sizeof(c->r.what),
                   "Kubernetes %s at %.60s, namespace %s%s%.40s", version,
                   mo_kube_server(c->d->api), c->d->ns,
                   c->d->claims ? ", files in claims " : "",
                   c->d->claims && c->d->storage_class[0] ? c->d->storage_class
                                                          : "");
    if (ask_right(c, &e) < 0)
        finish_check(c, &e);
}

int mo_kb_check(struct mo_boxes *bs, mo_boxes_ready_fn *done, void *ctx,
                struct mo_err *e)
{
    static const struct mo_kube_req version = {.path = "/version"};
    struct check *c = mo_new(struct check);
    int rc;

    if (!c)
        return mo_fail(e, MO_ENOMEM, "box");
    c->d = mo_kb_of(bs);
    c->done = done;
    c->ctx = ctx;
    c->wait.go = on_cluster;
    mo_list_init(&c->wait.node);
    (void)snprintf(c->r.what, sizeof(c->r.what), "Kubernetes at %.100s",
                   mo_kube_server(c->d->api));
    rc = mo_kube_ask(c->d->api, &version, on_version, c, NULL, e);
    if (rc < 0)
        mo_free(c);
    return rc;
}
