/* docker_net.c - the network of a docker box.
 *
 * A box with a network has a second container, the network container: our
 * image, no network, and CAP_NET_ADMIN for mo-box (launcher/container_net.h),
 * which makes the routes and sockets of the namespace. The box is created when
 * that is done and gets the other's network ("container:ID"), so its program
 * finds the network when it starts.
 *
 * The rights come from the engine: this process enters no namespace and needs
 * no rights of its own. The sockets come through a directory below `dir` that
 * only the network container mounts. An engine that does not see that
 * directory, or that is reached over TCP, is elsewhere: then the connections
 * come over a stream (docker_net_far.c).
 *
 * create -> inspect -> start -> the sockets come -> the box is created; or
 * create -> inspect -> attach -> start -> the container greets -> ... An
 * adopted box's sockets are fetched from its network container, or it is
 * attached to again; if it is gone, the box is removed.
 *
 * The network container ends with the box. Its key is in the names of container
 * and directory, and in the box's label mo.net. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rand.h"
#include "box/docker_priv.h"

#define KEY_BYTES  8
#define SOCKETS_MS 20000 /* from the start to the sockets */
#define AGAIN_MS   500   /* to attach to it again */
#define TRIES_MAX  20
#define IPV6       "/proc/sys/net/ipv6" /* not there: the kernel has none */
#define MIB        ((uint64_t)1024 * 1024)

/* --- names --------------------------------------------------------------- */

static int make_path(const struct dk *d, const char *key,
                     char out[DK_NET_PATH_MAX])
{
    int n = snprintf(out, DK_NET_PATH_MAX, "%s/net/%s", d->dir, key);

    return n < 0 || n >= DK_NET_PATH_MAX ? MO_ETOOBIG : 0;
}

void mo_docker_net_name(const char *key, char out[DK_NAME_MAX])
{
    (void)snprintf(out, DK_NAME_MAX, "mo-net-%s", key);
}

void mo_docker_net_rmdir(const struct dk *d, const char *key)
{
    char path[DK_NET_PATH_MAX];

    if (d->dir && make_path(d, key, path) == 0)
        mo_net_socket_rmdir(path);
}

static bool is_key(struct mo_span s)
{
    if (s.n != DK_NET_KEY_MAX - 1)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!strchr("0123456789abcdef", s.p[i]))
            return false;
    return true;
}

bool mo_docker_net_read_key(struct mo_json labels, char key[DK_NET_KEY_MAX])
{
    struct mo_json v = mo_json_get(labels, "mo.net");

    return mo_json_str_copy(v, key, DK_NET_KEY_MAX) == 0 &&
           is_key(mo_span_cstr(key));
}

bool mo_docker_net_read_label(struct mo_json labels, char key[DK_NET_KEY_MAX],
                              char id[MO_BOX_ID_MAX])
{
    char text[DK_NET_LABEL_MAX];
    struct mo_span rest, first;

    key[0] = id[0] = '\0';
    if (mo_json_str_copy(mo_json_get(labels, "mo.net"), text, sizeof(text)) < 0)
        return false;
    rest = mo_span_cstr(text);
    first = mo_span_cut(&rest, ':');
    if (!is_key(first) || !rest.p || !mo_engine_is_name(rest))
        return false;
    (void)snprintf(key, DK_NET_KEY_MAX, "%.*s", (int)first.n, first.p);
    (void)snprintf(id, MO_BOX_ID_MAX, "%.*s", (int)rest.n, rest.p);
    return true;
}

/* --- coming up ----------------------------------------------------------- */

static void drop_sockets(struct dk_net *x)
{
    while (x->nfds > 0)
        mo_close_fd(&x->fds[--x->nfds]);
}

void mo_docker_net_cancel(struct dk_box *b)
{
    mo_timer_stop(b->b.bs->loop, &b->net.timer);
    mo_net_socket_cancel(mo_take_ptr(&b->net.socket));
    b->net.waiting = false;
}

static void finish_waiting(struct dk_box *b, const struct mo_err *why)
{
    struct mo_err e;

    if (why) {
        e = *why;
        (void)mo_wrap(&e, "network");
    }
    mo_docker_net_cancel(b);
    mo_docker_net_up(b, why ? &e : NULL);
}

static void finish_if_complete(struct dk_box *b)
{
    const struct dk_net *x = &b->net;

    if (x->waiting && x->started &&
        (x->nfds > 0 || (x->greeted && x->filled == x->files)))
        finish_waiting(b, NULL);
}

static void on_sockets(void *ctx, const int *fds, size_t n,
                       const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct dk_net *x = &b->net;

    x->socket = NULL;
    if (!why)
        memcpy(x->fds, fds, n * sizeof(fds[0]));
    x->nfds = why ? 0 : n;
    if (why && !x->failed.code)
        x->failed = *why;
    if (why && x->started)
        finish_waiting(b, &x->failed);
    else
        finish_if_complete(b); /* else when the engine has answered */
}

static void on_late(struct mo_timer *t)
{
    struct dk_box *b = mo_container_of(t, struct dk_box, net.timer);
    struct mo_err e;

    (void)mo_fail(&e, MO_ETIMEOUT,
                  "the network container at %s does not answer",
                  mo_engine_host(mo_docker_of_box(b)->en));
    finish_waiting(b, &e);
}

static void start_timer(struct dk_box *b)
{
    mo_timer_init(&b->net.timer, on_late);
    mo_timer_start(b->b.bs->loop, &b->net.timer, SOCKETS_MS);
}

static void on_started(void *ctx, const struct mo_engine_reply *r,
                       const struct mo_err *why)
{
    struct dk_box *b = ctx;

    (void)r;
    b->call = NULL;
    b->net.started = true;
    if (why || b->stopping || b->net.failed.code) {
        finish_waiting(b, why ? why : &b->net.failed);
        return;
    }
    start_timer(b);
    finish_if_complete(b); /* which stops it */
}

/* --- the stream of an engine elsewhere ----------------------------------- */

/* A new container is not started yet. */
void mo_docker_net_attached(struct dk_box *b, const struct mo_err *why)
{
    struct dk_net *x = &b->net;
    struct mo_err e;
    int rc = why ? why->code : 0;

    if (why)
        e = *why;
    if (rc == 0 && x->waiting && !x->started)
        rc = b->stopping
                 ? mo_fail(&e, MO_ECANCELED, "stopped")
                 : mo_docker_ask(b, "POST", x->id, "/start", on_started, &e);
    if (rc < 0)
        mo_docker_net_greeted(b, &e);
}

static void on_again(struct mo_timer *t)
{
    struct dk_box *b = mo_container_of(t, struct dk_box, net.timer);
    struct mo_err e;

    if (mo_docker_far_open(b, &e) < 0)
        mo_docker_net_greeted(b, &e);
}

/* The stream of a box that runs has ended. */
static void attach_again(struct dk_box *b, const struct mo_err *why)
{
    struct dk_net *x = &b->net;
    struct mo_loop *l = b->b.bs->loop;

    x->greeted = false;
    if (why->code == MO_EPROTO || x->tries++ == TRIES_MAX) {
        mo_log_err(mo_loop_log(l), MO_WARN, "box", why,
                   "box %s has lost its network", b->id);
        return;
    }
    mo_timer_init(&x->timer, on_again);
    mo_timer_start(l, &x->timer, AGAIN_MS);
}

void mo_docker_net_greeted(struct dk_box *b, const struct mo_err *why)
{
    struct dk_net *x = &b->net;
    struct mo_err e;

    x->greeted = why == NULL;
    if (!why && x->files && !x->filled) {
        if (mo_docker_far_send_files(b, &e) < 0)
            mo_docker_net_greeted(b, &e);
        return;
    }
    /* the programs of an adopted box do not wait */
    if (x->waiting && !why && b->adopted &&
        mo_docker_net_relay(b, b->session, &e) < 0)
        why = &e;
    if (x->waiting && why && x->started)
        finish_waiting(b, why);
    else if (x->waiting && why)
        x->failed = *why; /* the engine's answer is waited for */
    else if (x->waiting)
        finish_if_complete(b);
    else if (why)
        attach_again(b, why);
}

static void fill_container(const struct dk *d, struct dk_net *x,
                           struct mo_ctr *c)
{
    static const char *const env[] = {"PATH=/bin", NULL}; /* as the image */

    *c = (struct mo_ctr){
        .flavour = d->facts.podman ? MO_CTR_PODMAN : MO_CTR_DOCKER,
        .image = d->image.id,
        .share = x->far ? "" : x->path,
        .ipv6 = access(IPV6, F_OK) == 0,
        .files = x->files,
        .argv = x->argv,
        .env = env,
        .workdir = "/",
        .labels = x->labels,
        .nlabels = MO_COUNT(x->labels),
        .memory = (x->far ? 96 : 32) * MIB,
        .workspace = MIB,
        .tmp = MIB,
        .file_size = 8 * MIB,
        .cpu_milli = x->far ? 1000 : 500,
        .pids = 16,
        .open_files = x->far ? 1024 : 64,
        .workspace_inodes = 64,
        .tmp_inodes = 64,
    };
    x->argv[0] = MO_IMAGE_LAUNCHER;
    x->argv[1] = "--network";
    x->argv[2] = x->ports;
    x->argv[3] = x->far ? "-" : MO_CTR_SHARE;
    x->argv[4] = x->files ? MO_CTR_FILES : NULL;
    x->labels[0] = (struct mo_ctr_label){"mo.store", d->store};
    x->labels[1] = (struct mo_ctr_label){"mo.instance", d->instance};
    x->labels[2] = (struct mo_ctr_label){"mo.role", DK_ROLE_NET};
    x->labels[3] = (struct mo_ctr_label){"mo.net", x->key};
}

static void on_inspected(void *ctx, const struct mo_engine_reply *r,
                         const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct mo_ctr c;
    struct mo_err e;
    int rc = why ? why->code : 0;

    b->call = NULL;
    if (why)
        e = *why;
    fill_container(mo_docker_of_box(b), &b->net, &c);
    if (rc == 0)
        rc = mo_ctr_compare(&c, r->json, &e);
    if (rc == 0 && b->net.files)
        rc = mo_ctr_read_volume(r->json, b->net.volume, &e);
    if (rc == 0 && b->stopping)
        rc = mo_fail(&e, MO_ECANCELED, "stopped");
    if (rc == 0)
        rc = b->net.far ? mo_docker_far_open(b, &e)
                        : mo_docker_ask(b, "POST", b->net.id, "/start",
                                        on_started, &e);
    if (rc < 0)
        finish_waiting(b, &e);
}

static int create_container(struct dk_box *b, struct mo_err *e);

/* The engine refused the mount: it does not see our directory. */
static int go_far(struct dk_box *b, struct mo_err *e)
{
    struct dk *d = mo_docker_of_box(b);
    struct dk_net *x = &b->net;

    mo_net_socket_cancel(mo_take_ptr(&x->socket));
    mo_docker_net_rmdir(d, x->key);
    mo_docker_set_far(d, true);
    x->far = true;
    x->files = mo_docker_trust_wanted(b);
    return create_container(b, e);
}

static void on_created(void *ctx, const struct mo_engine_reply *r,
                       const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct dk_net *x = &b->net;
    struct mo_err e;
    int rc = why ? why->code : 0;

    b->call = NULL;
    if (why)
        e = *why;
    if (why && r->status >= 400 && r->status < 500)
        x->made = false;
    if (why && r->status == 400 && !x->far && !b->stopping) {
        if (go_far(b, &e) < 0)
            finish_waiting(b, &e);
        return;
    }
    if (rc == 0 && (mo_json_str_copy(mo_json_get(r->json, "Id"), x->id,
                                     sizeof(x->id)) < 0 ||
                    !mo_engine_is_name(mo_span_cstr(x->id)))) {
        x->id[0] = '\0';
        rc = mo_fail(&e, MO_EPROTO, "the engine gave the container no id");
    }
    if (rc == 0 && b->stopping)
        rc = mo_fail(&e, MO_ECANCELED, "stopped");
    if (rc == 0)
        rc = mo_docker_ask(b, "GET", x->id, "/json", on_inspected, &e);
    if (rc < 0)
        finish_waiting(b, &e);
}

static void make_key(struct dk_net *x)
{
    unsigned char r[KEY_BYTES];

    mo_random(r, sizeof(r));
    mo_hex(r, sizeof(r), x->key);
}

static int make_directory(struct dk *d, struct dk_net *x, struct mo_err *e)
{
    char above[DK_NET_PATH_MAX], real[PATH_MAX];
    int n;

    n = snprintf(above, sizeof(above), "%s/net", d->dir);
    if (n < 0 || (size_t)n >= sizeof(above))
        return mo_fail(e, MO_ETOOBIG, "network: the state directory's path");
    if (mo_file_mkdir(above, e) < 0)
        return e->code;
    if (!realpath(above, real)) /* an engine reports and wants it so */
        return mo_fail_sys(e, "network: %s", above);
    n = snprintf(x->path, sizeof(x->path), "%s/%s", real, x->key);
    if (n < 0 || (size_t)n >= sizeof(x->path))
        return mo_fail(e, MO_ETOOBIG, "network: the state directory's path");
    return mo_net_socket_mkdir(x->path, e);
}

static int create_container(struct dk_box *b, struct mo_err *e)
{
    char tail[64], name[DK_NAME_MAX];
    mo_autobuf struct mo_buf body = {.max = MO_CTR_BODY_MAX};
    struct mo_ctr c;
    int rc;

    mo_docker_net_name(b->net.key, name);
    fill_container(mo_docker_of_box(b), &b->net, &c);
    if (mo_ctr_write(&c, &body) < 0)
        return mo_fail(e, mo_buf_err(&body), "network container");
    (void)snprintf(tail, sizeof(tail), "create?name=%s", name);
    rc = mo_docker_post(b, tail, mo_buf_view(&body), on_created, e);
    b->net.made = rc == 0;
    return rc;
}

int mo_docker_net_start(struct dk_box *b, struct mo_err *e)
{
    struct dk *d = mo_docker_of_box(b);
    struct dk_net *x = &b->net;
    int rc;

    if (!d->dir || !d->launcher.n)
        return mo_fail(e, MO_EINVAL,
                       "network: needs mo-box and a state directory");
    x->far = d->far;
    x->files = x->far && mo_docker_trust_wanted(b);
    make_key(x);
    rc = mo_box_net_ports(b->spec.network, x->ports, e);
    if (rc == 0 && !x->far)
        rc = make_directory(d, x, e);
    if (rc == 0 && !x->far)
        rc = mo_net_socket_await(d->bs.loop, x->path, on_sockets, b, &x->socket,
                                 e);
    if (rc == 0)
        rc = create_container(b, e);
    x->waiting = rc == 0;
    return rc;
}

int mo_docker_net_find(struct dk_box *b, struct mo_err *e)
{
    struct dk *d = mo_docker_of_box(b);
    struct dk_net *x = &b->net;
    int rc;

    x->started = true;
    if (!d->dir || make_path(d, x->key, x->path) < 0)
        return mo_fail(e, MO_ENOTFOUND, "network: no state directory");
    x->far = d->far || access(x->path, F_OK) < 0;
    rc = x->far ? mo_docker_far_open(b, e)
                : mo_net_socket_fetch(d->bs.loop, x->path, on_sockets, b,
                                      &x->socket, e);
    if (rc < 0)
        return mo_wrap(e, "the box has lost its network");
    x->waiting = true;
    start_timer(b);
    return 0;
}

int mo_docker_net_relay(struct dk_box *b, const char *session, struct mo_err *e)
{
    struct dk_net *x = &b->net;
    size_t n = x->nfds;

    if (x->far)
        return x->net.relay ? 0
                            : mo_box_net_open_far(&x->net, b->id, session,
                                                  x->v6, false, e);
    x->nfds = 0; /* taken, also on failure */
    return mo_box_net_open(&x->net, b->id, session, x->fds, n, e);
}

/* --- the end ------------------------------------------------------------- */

static void on_removed(void *ctx, const struct mo_err *why)
{
    struct dk_box *b = ctx;

    (void)why; /* the sweep finds it */
    mo_docker_net_rmdir(mo_docker_of_box(b), b->net.key);
    mo_docker_net_gone(b);
}

static void remove_container(void *ctx)
{
    struct dk_box *b = ctx;
    struct dk_net *x = &b->net;
    char name[DK_NAME_MAX];

    if (!mo_docker_far_close(b))
        return; /* mo_docker_net_end() again */
    mo_docker_net_name(x->key, name);
    if (x->keep)
        mo_docker_net_gone(b);
    else if (!x->made || mo_docker_remove_one(b->b.bs, x->id[0] ? x->id : name,
                                              on_removed, b, NULL) < 0)
        on_removed(b, NULL);
}

void mo_docker_net_end(struct dk_box *b, bool keep)
{
    struct dk_net *x = &b->net;

    x->keep = keep;
    mo_docker_net_cancel(b);
    drop_sockets(x);
    if (mo_box_net_close(&x->net, remove_container, b))
        return;
    if (x->key[0])
        remove_container(b);
    else
        mo_docker_net_gone(b);
}
