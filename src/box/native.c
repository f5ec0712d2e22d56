/* native.c - the native driver: boxes by mo-box, one keeper process each.
 *
 * Requests that wait for a keeper's answer with descriptors (start, adopt,
 * revive) or for several keepers (list, remove, check) are jobs for a few
 * worker threads, done by keeper.h. Once a box is up, its connection to the
 * keeper is a stream of the loop: KILL, LABEL and STATS go out, ENDED comes
 * in. If it ends without ENDED, the keeper has died.
 *
 * A program that ended by itself leaves its workspace with the keeper, for
 * mo_box_revive(), for linger_ms. With linger_ms 0 it is removed before
 * on_gone.
 *
 * A workspace that is kept (spec.keep) is a file beside the keeper's socket,
 * boxes/ID.files, which the keeper writes and loads (launcher/kept.h). Here it
 * is only found, listed and removed.
 *
 * on_gone waits until the owner has read the program's last output, at most
 * SETTLE_MS: the report of the end may overtake the output. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/native_priv.h"

#define STOP_MS   15000 /* for a keeper to remove everything */
#define SAVE_KB   8192  /* a kept workspace is saved at least so fast, per s */
#define SETTLE_MS 1000
#define STATS_MAX 4 /* questions at a time */

#define FIRST_SOCKET 3 /* of the network, among the keeper's descriptors */

struct question {
    mo_box_stats_fn *done;
    void *ctx;
};

struct nbox {
    struct mo_box box;
    struct mo_job job;
    bool busy; /* a job runs: frame, sock, answer are the worker's */
    struct mo_buf frame;
    char id[MO_BOXREQ_ID_MAX + 1];
    bool spawn; /* start a keeper; else connect to that of id */
    bool by_fd;
    int sock;
    struct mo_keeper_answer answer;
    struct mo_box_net net;
    int rc;
    struct mo_err err; /* end.why points here, or is NULL */

    struct mo_stream *ctl;
    struct mo_buf in;
    struct mo_timer timer; /* stopping, or settling */
    int tail[2];           /* stdout and stderr, to see them empty */
    unsigned settled_ms;
    bool stopping, ended, removing;
    uint64_t linger_ms, stop_ms;
    struct mo_box_end end;
    struct question asked[STATS_MAX];
    size_t nasked;
};

static struct nbox *nbox_of(struct mo_box *b)
{
    return mo_container_of(b, struct nbox, box);
}

/* --- the end of a box ---------------------------------------------------- */

static void report_gone(void *ctx)
{
    struct nbox *n = ctx;

    mo_box_down(&n->box, &n->end);
}

static void report_down(struct nbox *n)
{
    mo_timer_stop(n->box.bs->loop, &n->timer);
    mo_close_fd(&n->tail[0]);
    mo_close_fd(&n->tail[1]);
    mo_buf_wipe(&n->frame);
    mo_buf_fini(&n->in);
    if (!mo_box_net_close(&n->net, report_gone, n))
        report_gone(n);
}

static void end_with(struct nbox *n, enum mo_box_cause cause,
                     const struct mo_err *why)
{
    if (n->ended)
        return;
    n->ended = true;
    n->end = (struct mo_box_end){.cause = cause, .code = -1};
    if (why && why != &n->err)
        n->err = *why;
    if (why)
        n->end.why = &n->err;
}

static void answer_stats(struct nbox *n, const struct mo_boxstats *s,
                         const struct mo_err *why)
{
    struct question q = n->asked[0];
    struct mo_box_stats out;

    if (n->nasked == 0)
        return;
    n->nasked--;
    memmove(n->asked, n->asked + 1, n->nasked * sizeof(n->asked[0]));
    if (s)
        out = (struct mo_box_stats){.memory = s->memory,
                                    .memory_peak = s->memory_peak,
                                    .cpu_us = s->cpu_us,
                                    .pids = (unsigned)s->pids};
    q.done(q.ctx, s ? &out : NULL, why);
}

static void on_ctl_close(void *ctx, const struct mo_err *why)
{
    struct nbox *n = ctx;

    n->ctl = NULL;
    if (!n->ended) /* else n->err may say why */
        end_with(n, MO_BOX_ENGINE_GONE,
                 why ? why
                     : mo_error(MO_ECLOSED, "the keeper of the box has ended"));
    while (n->nasked)
        answer_stats(n, NULL, mo_error(MO_ECLOSED, "the box has ended"));
    report_down(n);
}

/* --- talking to the keeper ----------------------------------------------- */

static void send_to_keeper(struct nbox *n, const struct mo_boxmsg *m)
{
    struct mo_err e;
    mo_autobuf struct mo_buf b = {.max = MO_BOXMSG_HEAD + MO_BOXMSG_MAX};

    if (n->ctl == NULL)
        return;
    if (mo_boxmsg_put(&b, m, &e) < 0)
        mo_stream_close(n->ctl, &e);
    else if (mo_stream_write(n->ctl, mo_buf_view(&b)) < 0)
        mo_stream_close(n->ctl, NULL);
}

static void tell_plain(struct nbox *n, enum mo_boxmsg_type t)
{
    struct mo_boxmsg m = {.type = t};

    send_to_keeper(n, &m);
}

static bool is_read(int fd)
{
    int left = 0;

    return fd < 0 || ioctl(fd, FIONREAD, &left) < 0 || left == 0;
}

/* The program has ended and its last output was read, or SETTLE_MS have
 * passed. */
static void report_end(struct nbox *n)
{
    if ((!is_read(n->tail[0]) || !is_read(n->tail[1])) &&
        n->settled_ms < SETTLE_MS && !n->stopping) {
        n->settled_ms++;
        mo_timer_start(n->box.bs->loop, &n->timer, 1);
        return;
    }
    if (n->linger_ms == 0 && n->end.workspace_kept) {
        n->end.workspace_kept = false;
        n->removing = true;
        mo_timer_start(n->box.bs->loop, &n->timer, n->stop_ms);
        tell_plain(n, MO_BOXMSG_KILL);
        return;
    }
    mo_stream_close(n->ctl, NULL);
}

static void on_timer(struct mo_timer *t)
{
    struct nbox *n = mo_container_of(t, struct nbox, timer);

    if (n->ctl == NULL)
        return;
    if (n->ended && !n->removing && !n->stopping) {
        report_end(n);
        return;
    }
    mo_stream_close(n->ctl,
                    mo_error(MO_ETIMEOUT, "the keeper did not remove the box"));
}

static void on_ended(struct nbox *n, const struct mo_boxend *end)
{
    static const enum mo_box_cause causes[] = {
        [MO_BOXEND_STOPPED] = MO_BOX_STOPPED,
        [MO_BOXEND_EXITED] = MO_BOX_EXITED,
        [MO_BOXEND_OOM] = MO_BOX_OOM,
        [MO_BOXEND_KILLED] = MO_BOX_KILLED,
    };
    bool all_gone = end->cause == MO_BOXEND_STOPPED;

    end_with(n, n->stopping ? MO_BOX_STOPPED : causes[end->cause], NULL);
    if (all_gone) {
        n->end.workspace_kept = false;
        mo_stream_close(n->ctl, NULL);
    } else if (!n->stopping) {
        n->end.code = n->end.cause == MO_BOX_EXITED ? (int)end->code : -1;
        n->end.signal = (int)end->signal;
        n->end.workspace_kept = end->kept;
        report_end(n);
    } /* stopping: the answer to our KILL will come */
}

static void on_frame(struct nbox *n, const struct mo_boxmsg *m)
{
    if (m->type == MO_BOXMSG_ENDED) {
        on_ended(n, &m->u.end);
    } else if (m->type == MO_BOXMSG_STATS_ARE) {
        answer_stats(n, &m->u.stats, NULL);
    } else if (m->type == MO_BOXMSG_TAKEN) {
        mo_stream_close(
            n->ctl, mo_error(MO_ECLOSED, "another instance has taken the box"));
    } /* DESC answers LABEL and has nothing new */
}

static void on_ctl_read(void *ctx, char *p, size_t len)
{
    struct nbox *n = ctx;
    struct mo_boxmsg m;
    struct mo_span in;
    struct mo_err e;
    int rc = mo_buf_put(&n->in, p, len);
    size_t before;

    if (rc < 0)
        (void)mo_fail(&e, rc, "keeper: frame");
    in = mo_buf_view(&n->in);
    before = in.n;
    while (rc >= 0 && n->ctl) {
        rc = mo_boxmsg_next(&in, &m, &e);
        if (rc == 0)
            break;
        if (rc == 1)
            on_frame(n, &m);
    }
    if (rc < 0)
        mo_stream_close(n->ctl, &e);
    else
        mo_buf_drop(&n->in, before - in.n);
}

static const struct mo_stream_cb ctl_cb = {.on_read = on_ctl_read,
                                           .on_close = on_ctl_close};

/* --- coming up ----------------------------------------------------------- */

/* On a worker. */
static void run_birth(struct mo_job *j)
{
    struct nbox *n = mo_container_of(j, struct nbox, job);
    struct native *d = native_of(n->box.bs);

    n->rc = n->spawn ? mo_keeper_spawn(d->launcher, &n->sock, &n->err)
                     : mo_keeper_connect(d->dir, n->id, &n->sock, &n->err);
    if (!n->spawn && n->rc == MO_ECLOSED) { /* killed: it will not come back */
        (void)mo_keeper_sweep(d->launcher, d->dir, NULL);
        n->rc = n->err.code = MO_ENOTFOUND;
    }
    if (n->rc == 0)
        n->rc = mo_keeper_send(n->sock, mo_buf_view(&n->frame),
                               n->by_fd ? d->toolbox : -1, &n->err);
    if (n->rc == 0)
        n->rc = mo_keeper_receive(n->sock, &n->answer, &n->err);
    if (n->rc < 0)
        mo_close_fd(&n->sock);
}

static int open_streams(struct nbox *n, struct mo_box_io *io)
{
    struct mo_loop *l = n->box.bs->loop;
    int *fds = n->answer.fds, rc;

    n->tail[0] = fcntl(fds[1], F_DUPFD_CLOEXEC, 3);
    n->tail[1] = fcntl(fds[2], F_DUPFD_CLOEXEC, 3);
    rc = mo_stream_from_fds(l, mo_take_fd(&fds[1]), mo_take_fd(&fds[0]),
                            &io->io, &n->err);
    if (rc == 0)
        rc = mo_stream_from_fds(l, mo_take_fd(&fds[2]), -1, &io->err, &n->err);
    if (rc < 0 && io->io) {
        mo_stream_close(io->io, NULL);
        io->io = NULL;
    }
    return rc;
}

/* Its sockets are behind the pipes. */
static int open_network(struct nbox *n)
{
    const struct mo_boxdesc *d = &n->answer.m.u.desc;

    return mo_box_net_open(&n->net, d->id, d->session,
                           n->answer.fds + FIRST_SOCKET,
                           n->answer.m.fds - FIRST_SOCKET, &n->err);
}

/* The keeper was found, but its program has ended. */
static void found_ended(struct nbox *n)
{
    (void)mo_fail(&n->err, MO_ECLOSED,
                  "the program ended while no process was attached");
    end_with(n, MO_BOX_EXITED, &n->err);
    n->end.workspace_kept = true;
    mo_stream_close(n->ctl, NULL);
}

static void come_up(struct nbox *n)
{
    struct mo_box_io io = {NULL, NULL};

    mo_stream_attach(n->ctl, &ctl_cb, n);
    if (n->stopping) {
        mo_timer_start(n->box.bs->loop, &n->timer, n->stop_ms);
        tell_plain(n, MO_BOXMSG_KILL);
    } else if (n->answer.m.fds < 3) {
        found_ended(n);
    } else if (open_network(n) < 0 || open_streams(n, &io) < 0) {
        end_with(n, MO_BOX_REFUSED, &n->err);
        tell_plain(n, MO_BOXMSG_KILL);
        mo_stream_finish(n->ctl, n->stop_ms);
    } else {
        mo_box_up(&n->box, n->answer.m.u.desc.id, &io);
    }
}

static void birth_done(struct mo_job *j, bool canceled)
{
    struct nbox *n = mo_container_of(j, struct nbox, job);

    n->busy = false;
    mo_buf_wipe(&n->frame);
    if (canceled)
        n->rc = mo_fail(&n->err, MO_ECANCELED, "the program is ending");
    if (n->rc == 0) {
        n->rc = mo_stream_from_fds(n->box.bs->loop, n->sock, n->sock, &n->ctl,
                                   &n->err);
        n->sock = -1; /* owned, also on failure; the keeper then lingers */
    }
    if (n->rc < 0) {
        mo_keeper_drop(&n->answer);
        end_with(n, n->stopping ? MO_BOX_STOPPED : MO_BOX_REFUSED, &n->err);
        report_down(n);
        return;
    }
    come_up(n);
    mo_keeper_drop(&n->answer);
}

int mo_native_submit(struct native *d, struct mo_job *j, struct mo_err *e)
{
    unsigned best = d->next++ % MO_NATIVE_WORKERS;

    for (unsigned i = 0; i < MO_NATIVE_WORKERS; i++)
        if (mo_work_pending(d->work[i]) < mo_work_pending(d->work[best]))
            best = i;
    if (mo_work_submit(d->work[best], j) < 0)
        return mo_fail(e, MO_EBUSY, "box: too many questions at a time");
    return 0;
}

static void nbox_init(struct nbox *n)
{
    n->sock = n->tail[0] = n->tail[1] = -1;
    n->stop_ms = STOP_MS;
    for (int i = 0; i < MO_BOXMSG_FDS_MAX; i++)
        n->answer.fds[i] = -1;
    mo_box_net_init(&n->net, n->box.bs);
    mo_buf_init(&n->frame, MO_BOXMSG_HEAD + MO_BOXMSG_MAX);
    mo_buf_init(&n->in, MO_BOXMSG_HEAD + MO_BOXMSG_MAX + 65536);
    mo_buf_init(&n->answer.bytes, MO_BOXMSG_HEAD + MO_BOXMSG_MAX);
    mo_timer_init(&n->timer, on_timer);
    mo_job_init(&n->job, run_birth, birth_done);
}

static int submit_birth(struct nbox *n, const struct mo_boxmsg *m,
                        struct mo_err *e)
{
    int rc = mo_boxmsg_put(&n->frame, m, e);

    n->by_fd = m->fds > 0;
    if (rc == 0)
        rc = mo_native_submit(native_of(n->box.bs), &n->job, e);
    n->busy = rc == 0;
    if (rc < 0) {
        mo_buf_wipe(&n->frame);
        (void)mo_box_net_close(&n->net, NULL, NULL); /* its policy */
    }
    return rc;
}

/* --- what box.c asks for ------------------------------------------------- */

/* A fresh program, in the keeper of id or, without one, in a new keeper. */
static int bear_box(struct mo_box *b, const char *id,
                    const struct mo_box_spec *spec, struct mo_err *e)
{
    struct nbox *n = nbox_of(b);
    struct mo_native_req r;
    int rc;

    nbox_init(n);
    n->spawn = id == NULL;
    (void)snprintf(n->id, sizeof(n->id), "%s", id ? id : "");
    rc = mo_native_request(native_of(b->bs), spec,
                           id ? MO_BOXMSG_RESTART : MO_BOXMSG_START, &r, e);
    n->linger_ms = r.m.u.req.linger_ms;
    if (spec->keep)
        n->stop_ms += spec->limits.workspace / 1024 * 1000 / SAVE_KB;
    if (!id) {
        (void)snprintf(b->files, sizeof(b->files), "%s", r.files);
        b->old_files = r.old_files;
    }
    mo_box_net_claim(&n->net, spec);
    if (rc == 0)
        rc = mo_box_net_want(&n->net, spec->network, e);
    return rc ? rc : submit_birth(n, &r.m, e);
}

static int nat_start(struct mo_box *b, const struct mo_box_spec *spec,
                     bool warm, struct mo_err *e)
{
    (void)warm; /* a program that waits for input costs nothing */
    return bear_box(b, NULL, spec, e);
}

static int nat_adopt(struct mo_box *b, const char *id, const char *session,
                     struct mo_err *e)
{
    struct nbox *n = nbox_of(b);
    struct mo_boxmsg m = {.type = MO_BOXMSG_ATTACH};
    int rc;

    (void)session; /* its keeper knows it */
    nbox_init(n);
    n->linger_ms =
        MO_NATIVE_LINGER_MAX; /* its files are wanted whatever it was */
    (void)snprintf(n->id, sizeof(n->id), "%s", id);
    rc = mo_box_net_want(&n->net, native_of(b->bs)->network, e);
    return rc ? rc : submit_birth(n, &m, e);
}

static void nat_stop(struct mo_box *b)
{
    struct nbox *n = nbox_of(b);

    if (n->stopping)
        return;
    n->stopping = true;
    if (n->busy || n->ctl == NULL || n->removing)
        return;
    mo_timer_start(b->bs->loop, &n->timer, n->stop_ms);
    tell_plain(n, MO_BOXMSG_KILL);
}

static void nat_let_go(struct mo_box *b)
{
    struct nbox *n = nbox_of(b);

    if (n->ctl == NULL || n->removing)
        return;
    end_with(n, MO_BOX_LET_GO, NULL);
    mo_stream_close(n->ctl, NULL);
}

static void nat_claim(struct mo_box *b, const struct mo_box_spec *spec)
{
    struct nbox *n = nbox_of(b);
    struct mo_boxmsg m = {.type = MO_BOXMSG_LABEL};

    n->linger_ms = mo_native_linger(spec);
    mo_box_net_claim(&n->net, spec);
    m.u.label = (struct mo_boxlabel){
        .session = spec->session ? spec->session : "",
        .instance = native_of(b->bs)->instance,
        .expires = spec->expires < INT64_MAX ? spec->expires : INT64_MAX,
        .linger_ms = n->linger_ms,
    };
    send_to_keeper(n, &m);
}

/* The keeper saves nothing of a box without a session. */
static void nat_drop_files(struct mo_box *b)
{
    struct nbox *n = nbox_of(b);
    struct mo_boxmsg m = {.type = MO_BOXMSG_LABEL};

    m.u.label = (struct mo_boxlabel){
        .session = "",
        .instance = native_of(b->bs)->instance,
        .linger_ms = n->linger_ms,
    };
    send_to_keeper(n, &m);
}

static int nat_stats(struct mo_box *b, mo_box_stats_fn *done, void *ctx,
                     struct mo_err *e)
{
    struct nbox *n = nbox_of(b);

    if (n->ctl == NULL || n->ended)
        return mo_fail(e, MO_ECLOSED, "box: it does not run");
    if (n->nasked == STATS_MAX)
        return mo_fail(e, MO_EBUSY, "box: too many questions at a time");
    n->asked[n->nasked++] = (struct question){done, ctx};
    tell_plain(n, MO_BOXMSG_STATS);
    return 0;
}

void mo_native_name_caller(struct mo_boxes *bs, const char *box,
                           uint64_t number, const char *program)
{
    mo_list_each_entry (b, &bs->boxes, struct mo_box, node) {
        struct nbox *n = nbox_of(b);

        if (n->net.relay && strcmp(n->net.id, box) == 0)
            mo_egress_name_caller(n->net.relay, number, mo_span_cstr(program));
    }
}

/* --- the driver ---------------------------------------------------------- */

static void native_free(struct native *d)
{
    mo_close_fd(&d->launcher);
    mo_close_fd(&d->toolbox);
    mo_free(d->dir);
    mo_free(d->store);
    mo_free(d->instance);
    mo_free(d->network);
    mo_box_net_fini(&d->bs);
    mo_free(d);
}

static void worker_gone(void *ctx)
{
    struct native *d = ctx;
    struct mo_gone gone = d->bs.gone;

    d->working--;
    if (d->working > 0)
        return;
    native_free(d);
    mo_gone_fire(gone);
}

static void nat_close(struct mo_boxes *bs)
{
    struct native *d = native_of(bs);

    for (unsigned i = 0; i < MO_NATIVE_WORKERS; i++)
        if (d->work[i])
            mo_work_stop(d->work[i], MO_WORK_DRAIN, worker_gone, d);
}

static const struct mo_box_ops ops = {
    .name = "native",
    .box_size = sizeof(struct nbox),
    .start = nat_start,
    .adopt = nat_adopt,
    .revive = bear_box,
    .stop = nat_stop,
    .let_go = nat_let_go,
    .drop_files = nat_drop_files,
    .claim = nat_claim,
    .stats = nat_stats,
    .list = mo_native_list,
    .remove = mo_native_remove,
    .files = mo_native_files,
    .forget = mo_native_forget,
    .check = mo_native_check,
    .close = nat_close,
};

static int keep_texts(struct native *d, const struct mo_boxes_opts *o,
                      struct mo_err *e)
{
    mo_autobuf struct mo_buf path = {.max = MO_BOXREQ_PATH_MAX};

    (void)mo_buf_printf(&path, "%s/boxes", o->dir);
    d->dir = mo_buf_err(&path) ? NULL : mo_strndup(path.p, path.len);
    d->store = mo_boxes_text(o->store);
    d->instance = mo_boxes_text(o->instance);
    d->network = mo_boxes_text(o->network);
    if (!d->dir || !d->store || !d->instance || !d->network ||
        !d->bs.authority_dir)
        return mo_fail(e, MO_ENOMEM, "box: out of memory");
    if (mkdir(d->dir, 0700) < 0 && errno != EEXIST)
        return mo_fail_sys(e, "%s", d->dir);
    return 0;
}

static int take_launcher(struct native *d, const struct mo_boxes_opts *o,
                         struct mo_err *e)
{
    if (!o->helper)
        return mo_keeper_seal(o->launcher, "mo-box", &d->launcher, e);
    d->launcher = fcntl(o->helper, F_DUPFD_CLOEXEC, 3);
    return d->launcher < 0 ? mo_fail_sys(e, "privileged helper") : 0;
}

static int native_init(struct native *d, const struct mo_boxes_opts *o,
                       struct mo_err *e)
{
    int rc = keep_texts(d, o, e);

    if (rc == 0)
        rc = take_launcher(d, o, e);
    if (rc == 0 && o->toolbox.n)
        rc = mo_keeper_seal(o->toolbox, "mo-toolbox", &d->toolbox, e);
    for (unsigned i = 0; rc == 0 && i < MO_NATIVE_WORKERS; i++) {
        d->work[i] = mo_work_start(d->bs.loop, "box", MO_BOX_MAX * 2, e);
        if (d->work[i])
            d->working++;
        else
            rc = MO_EIO;
    }
    return rc;
}

int mo_boxes_native(struct mo_loop *l, const struct mo_boxes_opts *o,
                    struct mo_boxes **out, struct mo_err *e)
{
    struct native *d;
    int rc;

    if (!o->dir)
        return mo_fail(e, MO_EINVAL,
                       "box: the native driver needs a directory");
    if (!o->launcher.n)
        return mo_fail(e, MO_EUNAVAIL, "box: this build carries no mo-box");
    d = mo_new(struct native);
    if (d == NULL)
        return mo_fail(e, MO_ENOMEM, "box: out of memory");
    d->launcher = d->toolbox = -1;
    d->guard = o->guard;
    mo_boxes_setup(&d->bs, l, &ops);
    mo_box_net_setup(&d->bs, o);
    d->bs.find_program = mo_native_find_program;
    d->bs.network_way = "by its sockets, from mo-box";
    mo_boxes_are_here(&d->bs, o->dir);
    d->bs.on_mounts = o->on_mounts;
    d->bs.mounts_ctx = o->connection_ctx;
    rc = native_init(d, o, e);
    if (rc == 0) {
        *out = &d->bs;
    } else if (d->working) {
        nat_close(&d->bs); /* which frees it later */
    } else {
        native_free(d);
    }
    return rc;
}
