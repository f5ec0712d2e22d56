/* docker_box.c - the life of one docker box.
 *
 * wait for the engine -> (look at the image) -> (make the network) -> create
 * -> inspect and attach -> start -> up -> something ended -> inspect says what
 * -> remove -> down.
 *
 * A container that does not agree with what was asked is removed before it
 * was ever started. The way from up to down is docker_end.c. */
#include <stdio.h>

#include "base/rand.h"
#include "box/docker_priv.h"

#define PATIENCE_MS 10000 /* to wait for an answer after a stop */

void mo_docker_move(struct dk_box *b, enum dk_step to)
{
    static const uint16_t legal[] = {
        [DK_WAITING] = MO_TO(DK_LOOKING) | MO_TO(DK_NETWORK) |
                       MO_TO(DK_CREATING) | MO_TO(DK_CHECKING) | MO_TO(DK_DONE),
        [DK_LOOKING] = MO_TO(DK_NETWORK) | MO_TO(DK_CREATING) | MO_TO(DK_DONE),
        [DK_NETWORK] = MO_TO(DK_CREATING) | MO_TO(DK_DONE),
        [DK_CREATING] = MO_TO(DK_WAITING) | MO_TO(DK_CREATING) |
                        MO_TO(DK_LOOKING) | MO_TO(DK_CHECKING) |
                        MO_TO(DK_FINDING) | MO_TO(DK_REMOVING) | MO_TO(DK_DONE),
        [DK_CHECKING] = MO_TO(DK_STARTING) | MO_TO(DK_UP) | MO_TO(DK_REMOVING) |
                        MO_TO(DK_DONE),
        [DK_STARTING] = MO_TO(DK_UP) | MO_TO(DK_REMOVING) | MO_TO(DK_DONE),
        [DK_UP] = MO_TO(DK_JUDGING) | MO_TO(DK_REMOVING) | MO_TO(DK_DONE),
        [DK_JUDGING] = MO_TO(DK_UP) | MO_TO(DK_REMOVING) | MO_TO(DK_DONE),
        [DK_FINDING] = MO_TO(DK_REMOVING) | MO_TO(DK_DONE),
        [DK_REMOVING] = MO_TO(DK_DONE),
        [DK_DONE] = 0,
    };

    MO_MOVE(b->step, to, legal);
}

static int ask_engine(struct dk_box *b, const char *method, const char *what,
                      const char *tail, struct mo_span body,
                      mo_engine_done *done, struct mo_err *e)
{
    char path[256];
    struct mo_engine_req req = {.method = method, .path = path, .body = body};

    (void)snprintf(path, sizeof(path), "/containers/%s%s", what, tail);
    return mo_engine_ask(mo_docker_of_box(b)->en, &req, done, b, &b->call, e);
}

int mo_docker_ask(struct dk_box *b, const char *method, const char *what,
                  const char *tail, mo_engine_done *done, struct mo_err *e)
{
    return ask_engine(b, method, what, tail, mo_span(NULL, 0), done, e);
}

int mo_docker_post(struct dk_box *b, const char *tail, struct mo_span body,
                   mo_engine_done *done, struct mo_err *e)
{
    return ask_engine(b, "POST", "", tail, body, done, e);
}

void mo_docker_retry(struct dk_box *b, void (*fire)(struct mo_timer *t),
                     uint64_t ms)
{
    struct mo_loop *l = mo_docker_of_box(b)->bs.loop;

    mo_timer_stop(l, &b->timer);
    mo_timer_init(&b->timer, fire);
    mo_timer_start(l, &b->timer, ms);
}

/* --- up ------------------------------------------------------------------ */

static void report_up(struct dk_box *b)
{
    struct mo_box_io io = {.io = b->io.io, .err = b->io.err};

    mo_docker_move(b, DK_UP);
    b->tries = 0;
    if (b->stopping || b->eof)
        mo_loop_defer(mo_docker_of_box(b)->bs.loop, &b->later);
    b->streams_ours = false;
    mo_box_up(&b->b, b->id, &io);
}

static void on_started(void *ctx, const struct mo_engine_reply *r,
                       const struct mo_err *why)
{
    struct dk_box *b = ctx;

    struct mo_err e;

    (void)r;
    b->call = NULL;
    if (why || b->stopping)
        mo_docker_give_up(b, why);
    else if (mo_docker_mounts_again(b, &e) < 0)
        mo_docker_give_up(b, &e);
    else
        report_up(b);
}

/* Inspect and attach have both succeeded. */
static void start_container(struct dk_box *b)
{
    struct mo_err e;

    if (b->attaching || b->call)
        return;
    if (mo_docker_net_relay(b, b->session, &e) < 0) {
        mo_docker_give_up(b, &e);
        return;
    }
    if (b->adopted) {
        report_up(b);
        return;
    }
    mo_docker_move(b, DK_STARTING);
    if (mo_docker_mounts_again(b, &e) < 0 ||
        mo_docker_ask(b, "POST", b->id, "/start", on_started, &e) < 0)
        mo_docker_give_up(b, &e);
}

/* --- inspect and attach -------------------------------------------------- */

static void on_attached(void *ctx, struct mo_stream *s, struct mo_span early,
                        const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct mo_err e;
    int rc = why ? why->code
                 : mo_split(s, MO_SPLIT_DOCKER, early, mo_docker_box_cut, b,
                            &b->io, &e);

    if (why)
        e = *why;
    b->attaching = NULL;
    b->streams_ours = rc == 0;
    if (b->has_end) /* the box was given up meanwhile */
        mo_docker_wind_up(b);
    else if (rc < 0 && b->call)
        b->why = e; /* on_inspected() sees it */
    else if (rc < 0)
        mo_docker_give_up(b, &e);
    else
        start_container(b);
}

static int check_adopted(struct dk_box *b, struct mo_json inspect,
                         struct mo_err *e)
{
    struct dk *d = mo_docker_of_box(b);
    struct mo_json labels =
        mo_json_get(mo_json_get(inspect, "Config"), "Labels");
    bool network = mo_docker_net_read_label(labels, b->net.key, b->net.id);
    struct mo_ctr c = {.flavour =
                           d->facts.podman ? MO_CTR_PODMAN : MO_CTR_DOCKER,
                       .seccomp = mo_buf_cstr(&d->seccomp[network]),
                       .network = network ? b->net.id : NULL};

    if (!mo_json_str_eq(mo_json_get(labels, "mo.store"),
                        mo_span_cstr(d->store))) {
        b->net.key[0] = '\0';
        return mo_fail(e, MO_EPOLICY, "box %s is not one of ours", b->id);
    }
    b->made = true;
    b->net.made = network;
    if (!mo_json_flag(mo_json_get(inspect, "State"), "Running"))
        return mo_fail(e, MO_ENOTFOUND, "box %s does not run any more", b->id);
    if (mo_docker_binds(&b->arena, d->mounts, NULL, &c, e) < 0 ||
        mo_docker_trust_read(b, labels, &c, e) < 0 ||
        mo_docker_files_read(b, labels, &c, e) < 0)
        return e->code;
    return mo_ctr_compare_fixed(&c, inspect, e);
}

static int attach_box(struct dk_box *b, struct mo_err *e)
{
    return mo_engine_attach(mo_docker_of_box(b)->en, b->id, on_attached, b,
                            &b->attaching, e);
}

static void on_unpaused(void *ctx, const struct mo_engine_reply *r,
                        const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct mo_err e;

    (void)r;
    b->call = NULL;
    if (why || b->stopping)
        mo_docker_give_up(b, why);
    else if (attach_box(b, &e) < 0)
        mo_docker_give_up(b, &e);
}

/* The box is ours, and its network is there. */
static int continue_adoption(struct dk_box *b, struct mo_err *e)
{
    if (b->paused)
        return mo_docker_ask(b, "POST", b->id, "/unpause", on_unpaused, e);
    return attach_box(b, e);
}

static void on_found(struct dk_box *b, struct mo_json inspect)
{
    struct mo_err e;
    int rc = check_adopted(b, inspect, &e);

    b->paused = mo_json_flag(mo_json_get(inspect, "State"), "Paused");
    if (rc == 0 && !b->stopping)
        rc = b->net.key[0] ? mo_docker_net_find(b, &e)
                           : continue_adoption(b, &e);
    if (rc < 0 || b->stopping)
        mo_docker_give_up(b, &e);
}

static void on_inspected(void *ctx, const struct mo_engine_reply *r,
                         const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct mo_err e;
    int rc;

    b->call = NULL;
    if (b->adopted && !why) {
        on_found(b, r->json);
        return;
    }
    if (why) {
        e = *why;
        rc = e.code;
    } else {
        rc = mo_ctr_compare(&b->ctr, r->json, &e);
    }
    if (rc == 0 && b->why.code && !b->attaching) { /* the attach failed */
        e = b->why;
        rc = e.code;
    }
    if (rc < 0 || b->stopping)
        mo_docker_give_up(b, &e);
    else
        start_container(b);
}

/* Inspect and attach at the same time: neither changes the other's answer. An
 * adopted box is attached only after inspect has shown that it is ours. */
static void check_container(struct dk_box *b)
{
    struct mo_err e;

    mo_docker_move(b, DK_CHECKING);
    if (mo_docker_ask(b, "GET", b->id, "/json", on_inspected, &e) < 0) {
        mo_docker_give_up(b, &e);
        return;
    }
    if (!b->adopted && attach_box(b, &e) < 0)
        b->why = e; /* on_inspected() sees it */
}

/* --- create -------------------------------------------------------------- */

static void create_container(struct dk_box *b);

/* The box's second slot is the next one: a random one could be the same. */
static int take_slot(struct dk_box *b, struct mo_err *e)
{
    struct dk *d = mo_docker_of_box(b);
    unsigned at = b->slot < 0 ? (unsigned)(mo_random_u64() % DK_SLOTS)
                              : (unsigned)(b->slot + 1) % DK_SLOTS;

    if (b->slot >= 0)
        d->slots[b->slot] = false;
    b->slot = -1;
    for (unsigned i = 0; i < DK_SLOTS; i++, at = (at + 1) % DK_SLOTS)
        if (!d->slots[at]) {
            d->slots[at] = true;
            b->slot = (int)at;
            (void)snprintf(b->name, sizeof(b->name), "mo-box-%u",
                           MO_CTR_UID_FIRST + at);
            return 0;
        }
    return mo_fail(e, MO_EBUSY, "box: no uid is free");
}

/* A box with a kept workspace has its user id from that. */
static int take_user(struct dk_box *b, struct mo_err *e)
{
    unsigned uid = mo_docker_files_uid(b->b.files);

    if (!uid)
        return take_slot(b, e);
    (void)snprintf(b->name, sizeof(b->name), "mo-box-%u", uid);
    return 0;
}

static int read_id(struct dk_box *b, struct mo_json v, struct mo_err *e)
{
    if (mo_json_str_copy(mo_json_get(v, "Id"), b->id, sizeof(b->id)) == 0 &&
        mo_engine_is_name(mo_span_cstr(b->id)))
        return 0;
    b->id[0] = '\0';
    return mo_fail(e, MO_EPROTO, "the engine gave the container no id");
}

/* The name is taken: another process uses that uid, take the next. The image
 * is missing: it was removed, load it again. */
static bool try_otherwise(struct dk_box *b, const struct mo_err *why)
{
    if (b->stopping || b->tries++ >= DK_SLOT_TRIES)
        return false;
    if (why->code == MO_EEXISTS && b->b.files[0])
        return mo_docker_files_again(b);
    if (why->code == MO_EEXISTS) {
        create_container(b);
        return true;
    }
    if (why->code == MO_ENOTFOUND && !b->image && b->tries == 1) {
        mo_docker_of_box(b)->image_ok = false;
        mo_docker_move(b, DK_WAITING);
        mo_docker_wait(mo_docker_of_box(b), &b->wait);
        return true;
    }
    return false;
}

static void on_created(void *ctx, const struct mo_engine_reply *r,
                       const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct mo_err e;

    b->call = NULL;
    if (why && r->status >= 400 && r->status < 500) { /* nothing was created */
        b->made = false;
        if (!try_otherwise(b, why))
            mo_docker_give_up(b, why);
        return;
    }
    if (why || read_id(b, r->json, &e) < 0 || b->stopping)
        mo_docker_give_up(b, why ? why : &e);
    else
        check_container(b);
}

static void create_container(struct dk_box *b)
{
    char tail[64];
    mo_autobuf struct mo_buf body = {.max = MO_CTR_BODY_MAX};
    struct mo_err e;
    int rc = take_user(b, &e);

    mo_docker_move(b, DK_CREATING);
    if (rc == 0)
        rc = mo_docker_ctr_fill(mo_docker_of_box(b), b, &e);
    if (rc == 0 && mo_ctr_write(&b->ctr, &body) < 0)
        rc = mo_fail(&e, mo_buf_err(&body), "box");
    (void)snprintf(tail, sizeof(tail), "create?name=%s", b->name);
    if (rc == 0)
        rc =
            ask_engine(b, "POST", "", tail, mo_buf_view(&body), on_created, &e);
    b->made = rc == 0;
    if (rc < 0)
        mo_docker_give_up(b, &e);
}

/* --- the network --------------------------------------------------------- */

static bool wants_network(const struct dk_box *b)
{
    return b->spec.network && *b->spec.network;
}

/* Our image is gone: it is loaded for the next box. */
void mo_docker_net_up(struct dk_box *b, const struct mo_err *why)
{
    struct mo_err e;

    if (why && why->code == MO_ENOTFOUND && !b->adopted)
        mo_docker_of_box(b)->image_ok = false;
    if (why || b->stopping)
        mo_docker_give_up(b, why);
    else if (!b->adopted)
        create_container(b);
    else if (continue_adoption(b, &e) < 0)
        mo_docker_give_up(b, &e);
}

void mo_docker_prepare(struct dk_box *b)
{
    struct mo_err e;

    if (!wants_network(b)) {
        create_container(b);
        return;
    }
    mo_docker_move(b, DK_NETWORK);
    if (mo_docker_net_start(b, &e) < 0)
        mo_docker_give_up(b, &e);
}

/* --- a foreign image ----------------------------------------------------- */

/* The image and the purpose that it was scanned for. */
static struct mo_span scan_key(const struct dk_box *b,
                               char out[MO_IMAGE_ID_MAX + 8])
{
    int n;

    MO_BUG_ON(!b->image);
    n = snprintf(out, MO_IMAGE_ID_MAX + 8, "%s%s", b->image->id,
                 b->image->network ? " network" : "");
    return mo_span(out, (size_t)n);
}

static void on_scanned(void *ctx, const struct mo_err *why)
{
    struct dk_box *b = ctx;
    char key[MO_IMAGE_ID_MAX + 8];
    struct mo_err e;

    b->call = NULL;
    if (why) {
        e = *why;
        (void)mo_wrap(&e, "%s", b->spec.image);
    }
    if (b->stopping || why) {
        mo_docker_give_up(b, &e);
        return;
    }
    /* A full map: the image is scanned again next time. */
    (void)mo_map_put(&mo_docker_of_box(b)->clean, scan_key(b, key),
                     (void *)(uintptr_t)(b->image->ca_files + 1), NULL);
    mo_docker_prepare(b);
}

static void on_looked(void *ctx, struct mo_image *im, const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct dk *d = mo_docker_of_box(b);
    char key[MO_IMAGE_ID_MAX + 8];
    struct mo_err e;
    uintptr_t known = 0;

    b->call = NULL;
    b->image = im;
    if (im) {
        im->network = wants_network(b);
        known = (uintptr_t)mo_map_get(&d->clean, scan_key(b, key));
    }
    if (known)
        im->ca_files = (unsigned)known - 1;
    if (b->stopping || why)
        mo_docker_give_up(b, why);
    else if (known)
        mo_docker_prepare(b);
    else if (mo_image_scan(d->en, im, on_scanned, b, &b->call, &e) < 0)
        mo_docker_give_up(b, &e);
}

/* --- beginning ----------------------------------------------------------- */

static bool has_image(const struct dk_box *b)
{
    return b->spec.image && *b->spec.image;
}

static void on_engine(struct dk_wait *w, const struct mo_err *why)
{
    struct dk_box *b = mo_container_of(w, struct dk_box, wait);
    struct mo_err e;

    if (why || b->stopping) {
        mo_docker_give_up(b, why);
    } else if (b->adopted) {
        check_container(b);
    } else if (!has_image(b)) {
        mo_docker_files_prepare(b);
    } else {
        mo_docker_move(b, DK_LOOKING);
        if (mo_image_look(mo_docker_of_box(b)->en, b->spec.image, on_looked, b,
                          &b->call, &e) < 0)
            mo_docker_give_up(b, &e);
    }
}

static void begin_box(struct dk_box *b)
{
    b->slot = -1;
    b->wait.go = on_engine;
    mo_list_init(&b->wait.node);
    mo_timer_init(&b->timer, NULL);
    mo_timer_init(&b->net.timer, NULL);
    mo_later_init(&b->later, mo_docker_box_later);
    mo_docker_wait(mo_docker_of_box(b), &b->wait);
}

int mo_docker_box_start(struct mo_box *box, const struct mo_box_spec *spec,
                        bool warm, struct mo_err *e)
{
    struct dk_box *b = mo_docker_box_of(box);

    int rc;

    if (spec->installed)
        return mo_fail(e, MO_EINVAL,
                       "a server of `mcp install` runs in a native box only: "
                       "set 'sandbox' to native");
    mo_arena_init(&b->arena, DK_ARENA_MAX);
    mo_box_net_init(&b->net.net, box->bs);
    rc = mo_box_net_want(&b->net.net, spec->network, e);
    if (rc == 0 && mo_box_spec_copy(&b->arena, spec, &b->spec) < 0)
        rc = mo_fail(e, MO_ENOMEM, "box");
    if (rc < 0) {
        (void)mo_box_net_close(&b->net.net, NULL, NULL); /* its policy */
        mo_arena_fini(&b->arena);
        return rc;
    }
    mo_box_net_claim(&b->net.net, spec);
    b->warm = warm;
    b->wait.image = !has_image(b) || wants_network(b);
    begin_box(b);
    return 0;
}

int mo_docker_box_adopt(struct mo_box *box, const char *id, const char *session,
                        struct mo_err *e)
{
    struct dk_box *b = mo_docker_box_of(box);
    int rc;

    if (!mo_engine_is_name(mo_span_cstr(id)) || strlen(id) >= sizeof(b->id))
        return mo_fail(e, MO_EINVAL, "box: the id is not valid");
    mo_box_net_init(&b->net.net, box->bs);
    rc = mo_box_net_want(&b->net.net, mo_docker_of(box->bs)->network, e);
    if (rc < 0)
        return rc;
    mo_arena_init(&b->arena, DK_ARENA_MAX);
    (void)snprintf(b->id, sizeof(b->id), "%s", id);
    (void)snprintf(b->session, sizeof(b->session), "%s", session);
    b->adopted = true;
    begin_box(b);
    return 0;
}

/* --- asked for from above ------------------------------------------------ */

static void on_patience(struct mo_timer *t)
{
    struct dk_box *b = mo_container_of(t, struct dk_box, timer);

    if (b->call && (b->step == DK_CREATING || b->step == DK_STARTING ||
                    b->step == DK_NETWORK))
        mo_engine_cancel(b->call);
}

/* A query is cancelled; the cancellation leads to the end. A change is waited
 * for: an engine that was asked to create goes on with it whether we listen or
 * not. */
void mo_docker_box_stop(struct mo_box *box)
{
    struct dk_box *b = mo_docker_box_of(box);

    if (b->stopping)
        return;
    b->stopping = true;
    if (b->step == DK_UP || b->step == DK_WAITING ||
        (b->net.waiting && !b->call)) {
        mo_loop_defer(mo_docker_of_box(b)->bs.loop, &b->later);
    } else if (b->step == DK_CREATING || b->step == DK_STARTING ||
               b->step == DK_NETWORK) {
        mo_docker_retry(b, on_patience, PATIENCE_MS);
    } else if (b->call && b->step < DK_FINDING) {
        mo_engine_cancel(b->call);
    } else if (b->attaching) {
        mo_docker_give_up(b, NULL); /* cancels it; its callback continues */
    }
}

void mo_docker_box_let_go(struct mo_box *box)
{
    struct dk_box *b = mo_docker_box_of(box);

    b->letting_go = true;
    mo_loop_defer(mo_docker_of_box(b)->bs.loop, &b->later);
}

static void on_parked(void *ctx, const struct mo_engine_reply *r,
                      const struct mo_err *why)
{
    (void)ctx;
    (void)r;
    (void)why; /* an unpaused box is as good; a lost one is reported by its
                  events */
}

/* Our own program uses nothing while it waits; a foreign one might. */
static void set_paused(const struct mo_box *box, const char *verb)
{
    struct dk_box *b = mo_docker_box_of(box);
    char path[128];
    struct mo_engine_req req = {.method = "POST", .path = path};

    if (!b->image && !b->spec.argv)
        return;
    (void)snprintf(path, sizeof(path), "/containers/%s/%s", b->id, verb);
    (void)mo_engine_ask(mo_docker_of_box(b)->en, &req, on_parked, NULL, NULL,
                        NULL);
}

void mo_docker_box_park(struct mo_box *box)
{
    set_paused(box, "pause");
}

void mo_docker_box_claim(struct mo_box *box, const struct mo_box_spec *spec)
{
    mo_box_net_claim(&mo_docker_box_of(box)->net.net, spec);
    set_paused(box, "unpause");
}
