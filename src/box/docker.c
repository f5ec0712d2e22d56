/* docker.c - the docker driver: the engine, our image in it, its events. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "box/docker_priv.h"
#include "codec/seccomp.h"

/* --- who waits for the engine -------------------------------------------- */

/* Runs the waiting boxes: all of them after a failure, else those that have
 * what they need. */
static void run_waiting(struct dk *d, const struct mo_err *why)
{
    struct mo_list now, rest;

    mo_list_init(&now);
    mo_list_init(&rest);
    mo_list_splice(&now, &d->waiting);
    mo_list_drain (w, &now, struct dk_wait, node) {
        if (!why && w->image && !d->image_ok)
            mo_list_push(&rest, &w->node);
        else
            w->go(w, why);
    }
    mo_list_splice(&d->waiting, &rest);
}

static bool image_wanted(const struct dk *d)
{
    mo_list_each_entry (w, &d->waiting, struct dk_wait, node)
        if (w->image)
            return true;
    return false;
}

/* --- our image ----------------------------------------------------------- */

static int make_image(struct dk *d, struct mo_err *e)
{
    struct mo_image_parts p = {
        .toolbox = d->toolbox, .launcher = d->launcher, .arch = d->facts.arch};
    int rc;

    if (d->image.tar.len)
        return 0;
    mo_buf_fini(&d->image.tar);
    rc = mo_image_make_here(&p, &d->image, e);
    if (rc < 0)
        mo_buf_fini(&d->image.tar);
    return rc;
}

static void on_image(void *ctx, const struct mo_err *why)
{
    struct dk *d = ctx;

    d->image_asked = false;
    d->image_ok = why == NULL;
    mo_buf_fini(&d->image.tar);
    run_waiting(d, why);
}

static void ask_image(struct dk *d)
{
    struct mo_err e;

    if (d->image_ok || d->image_asked || !image_wanted(d))
        return;
    d->image_asked = true;
    if (make_image(d, &e) == 0 &&
        mo_engine_image_ensure(d->en, &d->image, on_image, d, &e) == 0)
        return;
    on_image(d, &e);
}

/* --- its news ------------------------------------------------------------ */

static void on_event(void *ctx, struct mo_span id, struct mo_span action)
{
    bool oom = mo_span_is(action, "oom");
    struct dk *d = ctx;

    if (!oom && !mo_span_is(action, "die") && !mo_span_is(action, "destroy"))
        return;
    mo_list_each_entry_safe (b, &d->bs.boxes, struct dk_box, b.node) {
        if (!mo_span_is(id, b->id))
            continue;
        b->oom |= oom;
        if (!oom)
            mo_docker_box_news(b);
    }
}

/* Every box must ask: events were lost. */
static void on_back(void *ctx)
{
    struct dk *d = ctx;

    mo_list_each_entry_safe (b, &d->bs.boxes, struct dk_box, b.node)
        mo_docker_box_news(b);
}

static void on_lost(void *ctx, const struct mo_err *why)
{
    struct dk *d = ctx;

    d->greeted = false;
    d->image_ok = false;
    mo_log_err(mo_loop_log(d->bs.loop), MO_WARN, "box", why,
               "the engine at %s cannot be reached", mo_engine_host(d->en));
    on_back(d);
}

static const struct mo_watch_cb watch_cb = {on_event, on_back, on_lost};

static int start_watch(struct dk *d, struct mo_err *e)
{
    char label[MO_BOX_LABEL_MAX + 16];

    if (d->watch)
        return 0;
    (void)snprintf(label, sizeof(label), "mo.store=%s", d->store);
    return mo_watch_start(d->bs.loop, d->en, label, &watch_cb, d, &d->watch, e);
}

/* --- greeting ------------------------------------------------------------ */

/* MO_EPOLICY if the engine cannot keep one of the promises. */
static int judge_engine(const struct dk *d, const struct mo_engine_facts *f,
                        struct mo_err *e)
{
    const struct {
        bool ok;
        const char *what;
    } rows[] = {
        {f->memory_limit, "memory limits (cgroup memory controller)"},
        {f->swap_limit,
         "swap limits (boot the host with swapaccount=1, or cgroup v2)"},
        {f->pids_limit, "process limits (cgroup pids controller)"},
        {f->cpu_quota, "CPU limits (cgroup cpu controller)"},
        {f->seccomp, "seccomp"},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (!rows[i].ok)
            return mo_fail(e, MO_EPOLICY, "the engine at %s has no %s",
                           mo_engine_host(d->en), rows[i].what);
    return 0;
}

/* podman takes the profile as a file on its own machine. */
static int profile_file(struct dk *d, const char *name, struct mo_buf *profile,
                        struct mo_err *e)
{
    char path[512];
    int n;

    if (strncmp(mo_engine_host(d->en), "unix:", 5) != 0 || !d->dir)
        return mo_fail(e, MO_EPOLICY,
                       "podman reads seccomp profiles from its own machine: "
                       "only a podman on this one can be used");
    n = snprintf(path, sizeof(path), "%s/%s", d->dir, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return mo_fail(e, MO_ETOOBIG, "seccomp profile");
    if (mo_file_save(path, mo_buf_view(profile), 0644, e) < 0)
        return mo_wrap(e, "seccomp profile");
    return mo_buf_set(profile, mo_span_cstr(path));
}

static int make_profiles(struct dk *d, struct mo_err *e)
{
    static const char *const files[] = {"seccomp.json", "seccomp-network.json"};
    int rc = 0;

    for (int i = 0; i < 2 && rc == 0; i++) {
        mo_buf_reset(&d->seccomp[i]);
        if (mo_seccomp_json(i == 1, &d->seccomp[i]) < 0)
            rc = mo_fail(e, MO_ENOMEM, "seccomp profile");
        else if (d->facts.podman)
            rc = profile_file(d, files[i], &d->seccomp[i], e);
    }
    return rc;
}

static void on_hello(void *ctx, const struct mo_engine_facts *f,
                     const struct mo_err *why)
{
    struct dk *d = ctx;
    struct mo_err e;
    int rc;

    d->greeting = false;
    if (why) {
        run_waiting(d, why);
        return;
    }
    d->facts = *f;
    rc = judge_engine(d, f, &e);
    if (rc == 0)
        rc = make_profiles(d, &e);
    if (rc == 0)
        rc = start_watch(d, &e);
    d->greeted = rc == 0;
    run_waiting(d, rc < 0 ? &e : NULL);
    if (rc == 0)
        ask_image(d);
}

static void on_later(struct mo_later *l)
{
    struct dk *d = mo_container_of(l, struct dk, later);
    struct mo_err e;

    if (mo_list_empty(&d->waiting) || d->greeting)
        return;
    if (d->greeted) {
        run_waiting(d, NULL);
        ask_image(d);
        return;
    }
    d->greeting = true;
    if (mo_engine_hello(d->en, on_hello, d, &e) < 0) {
        d->greeting = false;
        run_waiting(d, &e);
    }
}

void mo_docker_wait(struct dk *d, struct dk_wait *w)
{
    mo_list_push(&d->waiting, &w->node);
    mo_loop_defer(d->bs.loop, &d->later);
}

/* --- opening and closing ------------------------------------------------- */

static void dk_free(struct dk *d)
{
    mo_later_cancel(&d->later);
    mo_buf_fini(&d->image.tar);
    mo_buf_fini(&d->seccomp[0]);
    mo_buf_fini(&d->seccomp[1]);
    mo_map_fini(&d->clean);
    mo_free(d->store);
    mo_free(d->instance);
    mo_free(d->dir);
    mo_free(d->network);
    mo_box_net_fini(&d->bs);
    mo_free(d);
}

static void on_engine_gone(void *ctx)
{
    struct dk *d = ctx;
    struct mo_gone gone = d->bs.gone;

    run_waiting(d, mo_error(MO_ECLOSED, "the driver is closing"));
    dk_free(d);
    mo_gone_fire(gone);
}

static void dk_close(struct mo_boxes *bs)
{
    struct dk *d = mo_docker_of(bs);

    if (d->watch)
        mo_watch_stop(d->watch);
    mo_engine_close(d->en, on_engine_gone, d);
}

static const struct mo_box_ops ops = {
    .name = "docker",
    .box_size = sizeof(struct dk_box),
    .start = mo_docker_box_start,
    .adopt = mo_docker_box_adopt,
    .stop = mo_docker_box_stop,
    .let_go = mo_docker_box_let_go,
    .park = mo_docker_box_park,
    .claim = mo_docker_box_claim,
    .stats = mo_docker_stats,
    .list = mo_docker_list,
    .remove = mo_docker_remove,
    .files = mo_docker_files,
    .forget = mo_docker_forget,
    .check = mo_docker_check,
    .close = dk_close,
};

static bool is_socket(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* DOCKER_HOST, else the first default socket that exists. */
static void default_engine(char *out, size_t max)
{
    const char *host = getenv("DOCKER_HOST");
    const char *run = getenv("XDG_RUNTIME_DIR");
    char path[200];
    const struct {
        const char *dir, *file;
    } places[] = {{"/var/run", "docker.sock"},
                  {run, "docker.sock"},
                  {"/run/podman", "podman.sock"},
                  {run, "podman/podman.sock"}};

    (void)snprintf(out, max, "unix:///var/run/docker.sock");
    if (host && host[0]) {
        (void)snprintf(out, max, "%s", host);
        return;
    }
    for (size_t i = 0; i < MO_COUNT(places); i++) {
        if (!places[i].dir)
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", places[i].dir,
                       places[i].file);
        if (!is_socket(path))
            continue;
        (void)snprintf(out, max, "unix://%s", path);
        return;
    }
}

static int open_engine(struct dk *d, const char *engine, struct mo_err *e)
{
    char host[MO_ENGINE_HOST_MAX];
    const char *certs = getenv("DOCKER_CERT_PATH");
    const char *verify = getenv("DOCKER_TLS_VERIFY");
    struct mo_engine_opts o = {.host = host};

    if (engine && engine[0])
        (void)snprintf(host, sizeof(host), "%s", engine);
    else
        default_engine(host, sizeof(host));
    if (certs && certs[0])
        o.certs = certs;
    else if (verify && verify[0])
        return mo_fail(e, MO_EINVAL,
                       "DOCKER_TLS_VERIFY is set, DOCKER_CERT_PATH is not");
    if (strncmp(host, "unix:", 5) == 0)
        mo_boxes_are_here(&d->bs, host);
    d->en = mo_engine_new(d->bs.loop, &o, e);
    return d->en ? 0 : MO_EINVAL;
}

void mo_docker_set_far(struct dk *d, bool far)
{
    d->far = far;
    d->bs.network_way =
        far ? "over the stream of a network container (the engine is elsewhere)"
            : "by its sockets, from a network container";
}

int mo_boxes_docker(struct mo_loop *l, const struct mo_boxes_opts *o,
                    struct mo_boxes **out, struct mo_err *e)
{
    struct dk *d = mo_new(struct dk);

    if (!d)
        return mo_fail(e, MO_ENOMEM, "docker");
    mo_boxes_setup(&d->bs, l, &ops);
    mo_box_net_setup(&d->bs, o);
    d->bs.on_mounts = o->on_mounts;
    d->bs.mounts_ctx = o->connection_ctx;
    mo_buf_init(&d->seccomp[0], MO_SECCOMP_JSON_MAX);
    mo_buf_init(&d->seccomp[1], MO_SECCOMP_JSON_MAX);
    mo_buf_init(&d->image.tar, 0);
    mo_list_init(&d->waiting);
    mo_later_init(&d->later, on_later);
    d->toolbox = o->toolbox;
    d->guard = o->guard;
    d->mounts = o->mounts;
    d->volumes = o->volumes;
    d->launcher = o->launcher;
    d->network = mo_boxes_text(o->network);
    d->store = mo_boxes_text(o->store);
    d->instance = mo_boxes_text(o->instance);
    d->dir = o->dir ? mo_boxes_text(o->dir) : NULL;
    mo_map_init(&d->clean, DK_CLEAN_MAX);
    if (!d->store || !d->instance || !d->network ||
        (o->dir && (!d->dir || !d->bs.authority_dir))) {
        dk_free(d);
        return mo_fail(e, MO_ENOMEM, "docker");
    }
    if (open_engine(d, o->engine, e) < 0) {
        dk_free(d);
        return MO_EINVAL;
    }
    mo_docker_set_far(d, strncmp(mo_engine_host(d->en), "unix:", 5) != 0);
    *out = &d->bs;
    return 0;
}
