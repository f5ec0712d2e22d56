/* kube_box.c - the life of a kubernetes box, until it runs. */
#include <stdio.h>

#include "box/kube_priv.h"

#define START_MS     120000 /* from create until its container runs */
#define POLL_MS      2000   /* while the pods cannot be watched */
#define PATIENCE_MS  10000  /* for the answer to create, once it is stopped */
#define NAME_TRIES   4
#define POD_TRIES    3   /* of which the others were deleted from outside */
#define ATTACH_MS    200 /* between attempts to attach; doubles */
#define ATTACH_TRIES 5

void mo_kbox_move(struct kb_box *b, enum kb_step to)
{
    static const unsigned legal[] = {
        [KB_WAITING] = MO_TO(KB_FINDING) | MO_TO(KB_CLAIMING) |
                       MO_TO(KB_CREATING) | MO_TO(KB_REMOVING) | MO_TO(KB_DONE),
        [KB_FINDING] = MO_TO(KB_NETWORK) | MO_TO(KB_ATTACHING) |
                       MO_TO(KB_REMOVING) | MO_TO(KB_DONE),
        [KB_CLAIMING] =
            MO_TO(KB_CREATING) | MO_TO(KB_REMOVING) | MO_TO(KB_DONE),
        [KB_CREATING] = MO_TO(KB_CREATING) | MO_TO(KB_PENDING) |
                        MO_TO(KB_REMOVING) | MO_TO(KB_DONE),
        [KB_PENDING] = MO_TO(KB_WAITING) | MO_TO(KB_NETWORK) |
                       MO_TO(KB_ATTACHING) | MO_TO(KB_REMOVING) |
                       MO_TO(KB_DONE),
        [KB_NETWORK] =
            MO_TO(KB_ATTACHING) | MO_TO(KB_REMOVING) | MO_TO(KB_DONE),
        [KB_ATTACHING] = MO_TO(KB_UP) | MO_TO(KB_FINDING) | MO_TO(KB_PENDING) |
                         MO_TO(KB_REMOVING) | MO_TO(KB_DONE),
        [KB_UP] = MO_TO(KB_JUDGING) | MO_TO(KB_REMOVING) | MO_TO(KB_DONE),
        [KB_JUDGING] = MO_TO(KB_UP) | MO_TO(KB_REMOVING) | MO_TO(KB_DONE),
        [KB_REMOVING] = MO_TO(KB_DONE),
        [KB_DONE] = 0,
    };

    MO_MOVE(b->step, to, legal);
    b->since = mo_now_ns();
}

int mo_kbox_ask(struct kb_box *b, const char *method, const char *tail,
                struct mo_span body, mo_kube_done *done, struct mo_err *e)
{
    struct kb *d = mo_kb_of_box(b);
    char path[MO_KUBE_PATH_MAX];
    struct mo_kube_req req = {.method = method, .path = path, .body = body};

    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods%s%s", d->ns,
                   *tail ? "/" : "", tail);
    return mo_kube_ask(d->api, &req, done, b, &b->call, e);
}

void mo_kbox_retry(struct kb_box *b, void (*fire)(struct mo_timer *t),
                   uint64_t ms)
{
    b->timer.fire = fire;
    mo_timer_start(mo_kb_of_box(b)->bs.loop, &b->timer, ms);
}

void mo_kbox_news(struct kb_box *b)
{
    if (b->step == KB_PENDING || b->step == KB_UP || b->held)
        mo_loop_defer(mo_kb_of_box(b)->bs.loop, &b->later);
}

/* --- attach -------------------------------------------------------------- */

static bool has_image(const struct kb_box *b)
{
    return b->spec.image && *b->spec.image;
}

static void attach_box(struct kb_box *b);
static void find_pod(struct kb_box *b);
static void on_tick(struct mo_timer *t);

static void on_find_again(struct mo_timer *t)
{
    struct kb_box *b = mo_container_of(t, struct kb_box, timer);

    if (b->step == KB_ATTACHING && !b->call)
        find_pod(b);
}

void mo_kbox_bring_up(struct kb_box *b)
{
    struct mo_box_io io = {b->io.io, b->io.err};

    b->streams_ours = b->held = false;
    b->owned |= !b->warm && !b->stopping;
    mo_kbox_move(b, KB_UP);
    mo_box_up(&b->b, b->name, &io);
    if (b->stopping || b->eof || b->seen)
        mo_kbox_news(b);
}

/* The container may run before its node accepts an attach, and may have ended
 * since: then the pod tells. The pod of an adopted box is left alone if its
 * node cannot be reached. */
void mo_kbox_attach_later(struct kb_box *b, const struct mo_err *why)
{
    if (b->tries++ < ATTACH_TRIES) {
        if (!b->adopted)
            mo_kbox_move(b, KB_PENDING);
        b->doubt = true;
        mo_kbox_retry(b, b->adopted ? on_find_again : on_tick,
                      (uint64_t)ATTACH_MS << b->tries);
    } else if (b->adopted) {
        mo_kbox_engine_gone(b, why);
    } else {
        mo_kbox_give_up(b, why);
    }
}

static void on_attached(void *ctx, struct mo_stream *s, struct mo_span early,
                        enum mo_split_wire wire, const struct mo_err *why)
{
    struct kb_box *b = ctx;
    struct mo_err e;
    int rc;

    b->call = NULL;
    if (why && !b->has_end && !b->stopping && why->code == MO_EUNAVAIL) {
        mo_kbox_attach_later(b, why);
        return;
    }
    rc = why ? why->code : mo_split(s, wire, early, mo_kbox_cut, b, &b->io, &e);
    b->streams_ours = rc == 0;
    if (b->has_end)
        mo_kbox_wind_up(b);
    else if (rc < 0 || b->stopping)
        mo_kbox_give_up(b, why ? why : &e);
    else if (!b->adopted && !has_image(b))
        mo_kbox_hold(b); /* a program of our image waits for us */
    else
        mo_kbox_bring_up(b);
}

static void attach_box(struct kb_box *b)
{
    struct kb *d = mo_kb_of_box(b);
    char path[MO_KUBE_PATH_MAX];
    struct mo_err e;

    if (b->step != KB_ATTACHING)
        mo_kbox_move(b, KB_ATTACHING);
    (void)snprintf(
        path, sizeof(path),
        "/api/v1/namespaces/%s/pods/%s/attach?container=" MO_POD_CONTAINER
        "&stdin=1&stdout=1&stderr=1",
        d->ns, b->name);
    if (mo_kube_attach(d->api, path, on_attached, b, &b->call, &e) < 0)
        mo_kbox_give_up(b, &e);
}

void mo_kbox_attach(struct kb_box *b)
{
    attach_box(b);
}

/* Its network comes first, once. */
static void start_parts(struct kb_box *b)
{
    if (b->net.wanted && !b->net.net.relay)
        mo_kbox_net_start(b);
    else
        attach_box(b);
}

/* --- until its container runs -------------------------------------------- */

/* By somebody else, perhaps because the policy that owns it is gone. Another
 * pod is tried, unless a network was begun in this one. */
static void on_deleted(struct kb_box *b)
{
    struct kb *d = mo_kb_of_box(b);

    d->policy_ok = false;
    if (b->pods++ < POD_TRIES - 1 && !b->net.net.relay) {
        mo_kbox_move(b, KB_WAITING);
        b->state = (struct mo_pod_state){.code = -1};
        b->uid[0] = b->name[0] = '\0';
        b->made = b->seen = b->doubt = false;
        b->tries = 0;
        mo_kb_wait(d, &b->wait);
        return;
    }
    mo_kbox_give_up(
        b, mo_error(MO_ENOTFOUND, "its pod was deleted before it ran"));
}

static void on_polled(void *ctx, const struct mo_kube_reply *r,
                      const struct mo_err *why)
{
    struct kb_box *b = ctx;
    struct mo_pod_state s;
    bool read = !why && mo_pod_read(r->json, &s, NULL) == 0;

    b->call = NULL;
    if (b->has_end) {
        mo_kbox_wind_up(b);
        return;
    }
    if ((why && why->code == MO_ENOTFOUND) ||
        (read && mo_kbox_is_other(b, &s))) {
        b->made = false;
        on_deleted(b);
        return;
    }
    if (read && !b->seen) /* the watch may have told of a newer state */
        b->state = s;
    mo_kbox_pending(b);
}

static void on_tick(struct mo_timer *t)
{
    struct kb_box *b = mo_container_of(t, struct kb_box, timer);

    if (b->step != KB_PENDING)
        return;
    b->doubt |= !mo_pods_is_up(mo_kb_of_box(b)->watch);
    mo_kbox_pending(b);
}

static void on_overdue(struct kb_box *b)
{
    if (!b->overdue) {
        b->overdue = true;
        if (mo_kbox_claim_ask(b))
            return;
    }
    mo_kbox_give_up(
        b, mo_error(MO_ETIMEOUT, "its pod did not start in %d s: %s",
                    START_MS / 1000,
                    b->state.why[0] ? b->state.why : "no reason is known"));
}

static void poll_pod(struct kb_box *b)
{
    struct mo_err e;

    b->doubt = false;
    if (mo_kbox_ask(b, "GET", b->name, mo_span(NULL, 0), on_polled, &e) < 0)
        mo_kbox_give_up(b, &e);
}

void mo_kbox_pending(struct kb_box *b)
{
    const struct mo_pod_state *s = &b->state;

    if (b->step != KB_PENDING)
        mo_kbox_move(b, KB_PENDING);
    if (b->call)
        return; /* its answer continues */
    b->seen = false;
    if (b->stopping)
        mo_kbox_give_up(b, mo_error(MO_ECANCELED, "stopped"));
    else if (s->phase == MO_POD_ENDED)
        mo_kbox_ended(b);
    else if (s->deleting)
        on_deleted(b);
    else if (s->hopeless)
        mo_kbox_give_up(
            b, mo_error(MO_EUNAVAIL, "its pod cannot start: %s", s->why));
    else if (b->doubt)
        poll_pod(b);
    else if (s->phase == MO_POD_RUNNING && s->net_ended)
        mo_kbox_give_up(
            b, mo_error(MO_EUNAVAIL, "the network of its pod has ended"));
    else if (s->phase == MO_POD_RUNNING)
        start_parts(b);
    else if (mo_now_ns() - b->began > START_MS * MO_MS)
        on_overdue(b);
    else if (!mo_kbox_claim_due(b) || !mo_kbox_claim_ask(b))
        mo_kbox_retry(b, on_tick, POLL_MS);
}

/* --- create -------------------------------------------------------------- */

static void create_pod(struct kb_box *b);

static void on_created(void *ctx, const struct mo_kube_reply *r,
                       const struct mo_err *why)
{
    struct kb_box *b = ctx;
    struct mo_err e;
    int rc;

    b->call = NULL;
    if (why && r->status >= 400 && r->status < 500) { /* nothing was created */
        b->made = false;
        if (why->code == MO_EEXISTS && b->tries++ < NAME_TRIES && !b->stopping)
            create_pod(b);
        else
            mo_kbox_give_up(b, why);
        return;
    }
    if (why) {
        mo_kbox_give_up(b, why);
        return;
    }
    rc = b->seen ? 0 : mo_pod_read(r->json, &b->state, &e);
    (void)mo_json_str_copy(mo_json_get(mo_json_get(r->json, "metadata"), "uid"),
                           b->uid, sizeof(b->uid));
    if (rc == 0)
        rc = mo_pod_compare(&b->pod, r->json, &e);
    b->tries = 0;
    if (rc < 0 || b->stopping)
        mo_kbox_give_up(b, &e);
    else
        mo_kbox_pending(b);
}

static void create_pod(struct kb_box *b)
{
    mo_autobuf struct mo_buf body = {.max = MO_POD_BODY_MAX};
    struct mo_err e;
    int rc = mo_kbox_fill(mo_kb_of_box(b), b, &e);

    mo_kbox_move(b, KB_CREATING);
    b->began = b->since;
    if (rc == 0 && mo_pod_write(&b->pod, &body) < 0)
        rc = mo_fail(&e, mo_buf_err(&body), "box");
    if (rc == 0)
        rc = mo_kbox_ask(b, "POST", "", mo_buf_view(&body), on_created, &e);
    b->made = rc == 0;
    if (rc < 0)
        mo_kbox_give_up(b, &e);
}

void mo_kbox_create(struct kb_box *b)
{
    create_pod(b);
}

/* --- adopt --------------------------------------------------------------- */

/* One that was kept warm may not say whose it is. */
static bool is_of_another(const struct kb_box *b, struct mo_json session)
{
    const char *mine = b->spec.session ? b->spec.session : "";

    return *mine && mo_json_is(session, MO_JSON_STRING) &&
           !mo_json_str_eq(session, MO_SPAN("")) &&
           !mo_json_str_eq(session, mo_span_cstr(mine));
}

static int check_found(struct kb_box *b, struct mo_json pod, struct mo_err *e)
{
    struct mo_json notes =
        mo_json_get(mo_json_get(pod, "metadata"), "annotations");

    if (!mo_kb_is_ours(mo_kb_of_box(b), pod, KB_ROLE_BOX))
        return mo_fail(e, MO_EPOLICY, "box %s is not one of ours", b->name);
    if (is_of_another(b, mo_json_get(notes, "mo.session")))
        return mo_fail(e, MO_EPOLICY, "box %s is of another session", b->name);
    b->made = true;
    if (mo_pod_read(pod, &b->state, e) < 0)
        return e->code;
    (void)snprintf(b->uid, sizeof(b->uid), "%s", b->state.uid);
    if (b->state.phase != MO_POD_RUNNING || b->state.deleting)
        return mo_fail(e, MO_ENOTFOUND, "box %s does not run any more",
                       b->name);
    if (mo_kbox_net_read(b, notes, e) < 0)
        return e->code;
    if (mo_kbox_files_read(b, notes, e) < 0)
        return e->code;
    return mo_pod_compare_fixed(pod, b->net.wanted, b->net.files,
                                b->b.files[0] ? b->b.files : NULL, e);
}

static void on_found(void *ctx, const struct mo_kube_reply *r,
                     const struct mo_err *why)
{
    struct kb_box *b = ctx;
    struct mo_err e;
    int rc = why ? why->code : check_found(b, r->json, &e);

    b->call = NULL;
    if (rc < 0 || b->stopping)
        mo_kbox_give_up(b, why ? why : &e);
    else
        start_parts(b);
}

static void find_pod(struct kb_box *b)
{
    struct mo_err e;

    mo_kbox_move(b, KB_FINDING);
    if (mo_kbox_ask(b, "GET", b->name, mo_span(NULL, 0), on_found, &e) < 0)
        mo_kbox_give_up(b, &e);
}

/* --- beginning ----------------------------------------------------------- */

static void on_cluster(struct kb_wait *w, const struct mo_err *why)
{
    struct kb_box *b = mo_container_of(w, struct kb_box, wait);

    if (why || b->stopping)
        mo_kbox_give_up(b, why);
    else if (b->adopted)
        find_pod(b);
    else
        mo_kbox_files_prepare(b);
}

static void begin_box(struct kb_box *b)
{
    b->wait.go = on_cluster;
    mo_list_init(&b->wait.node);
    mo_timer_init(&b->timer, NULL);
    mo_timer_init(&b->net.timer, NULL);
    mo_later_init(&b->later, mo_kbox_later);
    mo_kb_wait(mo_kb_of_box(b), &b->wait);
}

static int check_spec(const struct kb *d, const struct mo_box_spec *spec,
                      struct mo_err *e)
{
    if (spec->installed)
        return mo_fail(e, MO_EINVAL,
                       "a server of `mcp install` runs in a native box only: "
                       "set 'sandbox' to native");
    if (spec->folder || (spec->mounts && *spec->mounts))
        return mo_fail(e, MO_EINVAL,
                       "a pod cannot see folders of this machine");
    if (!d->image[0] && !(spec->image && *spec->image))
        return mo_fail(e, MO_EINVAL,
                       "no image: set 'sandbox.kubernetes.image'");
    return 0;
}

int mo_kbox_start(struct mo_box *box, const struct mo_box_spec *spec, bool warm,
                  struct mo_err *e)
{
    struct kb_box *b = mo_kbox_of(box);
    int rc = check_spec(mo_kb_of(box->bs), spec, e);

    mo_box_net_init(&b->net.net, box->bs);
    if (rc == 0)
        rc = mo_kbox_net_want(b, spec, e);
    if (rc < 0)
        return rc;
    mo_box_net_claim(&b->net.net, spec);
    mo_arena_init(&b->arena, KB_ARENA_MAX);
    if (mo_box_spec_copy(&b->arena, spec, &b->spec) < 0) {
        mo_arena_fini(&b->arena);
        (void)mo_box_net_close(&b->net.net, NULL, NULL);
        return mo_fail(e, MO_ENOMEM, "box");
    }
    b->warm = warm;
    begin_box(b);
    return 0;
}

int mo_kbox_adopt(struct mo_box *box, const char *id, const char *session,
                  struct mo_err *e)
{
    struct kb_box *b = mo_kbox_of(box);

    if (!mo_kube_is_label(mo_span_cstr(id)) || strlen(id) >= sizeof(b->name))
        return mo_fail(e, MO_EINVAL, "box: the id is not valid");
    mo_box_net_init(&b->net.net, box->bs);
    if (mo_box_net_want(&b->net.net, mo_kb_of(box->bs)->network, e) < 0) {
        (void)mo_box_net_close(&b->net.net, NULL, NULL);
        return e->code;
    }
    mo_arena_init(&b->arena, KB_ARENA_MAX);
    (void)snprintf(b->name, sizeof(b->name), "%s", id);
    b->spec.session = mo_arena_strndup(&b->arena, session, strlen(session));
    b->adopted = true;
    begin_box(b);
    return 0;
}

/* --- asked for from above ------------------------------------------------ */

static void on_patience(struct mo_timer *t)
{
    struct kb_box *b = mo_container_of(t, struct kb_box, timer);

    if (b->call && (b->step == KB_CREATING || b->step == KB_CLAIMING))
        mo_kube_cancel(b->call);
}

/* A query is cancelled; its end continues. Create is waited for: the cluster
 * may go on with it whether we listen or not. */
void mo_kbox_stop(struct mo_box *box)
{
    struct kb_box *b = mo_kbox_of(box);

    if (b->stopping)
        return;
    b->stopping = true;
    if (b->step == KB_CREATING || b->step == KB_CLAIMING)
        mo_kbox_retry(b, on_patience, PATIENCE_MS);
    else if (b->call && b->step < KB_REMOVING)
        mo_kube_cancel(b->call);
    else
        mo_loop_defer(mo_kb_of_box(b)->bs.loop, &b->later);
}

void mo_kbox_let_go(struct mo_box *box)
{
    struct kb_box *b = mo_kbox_of(box);

    b->letting_go = true;
    mo_loop_defer(mo_kb_of_box(b)->bs.loop, &b->later);
}
