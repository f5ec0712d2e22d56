#include "launcher/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "launcher/cgroup.h"
#include "launcher/confine.h"
#include "launcher/net.h"
#include "launcher/program.h"
#include "launcher/run.h"
#include "launcher/saver.h"
#include "launcher/slot.h"
#include "launcher/view.h"
#include "launcher/wire.h"

#define POLL_MAX_MS   60000 /* because the wall clock may jump */
#define POLL_ALONE_MS 2000  /* checks whether the socket still exists */
#define BACKLOG       16

struct label {
    char session[MO_BOXREQ_TEXT_MAX + 1];
    char instance[MO_BOXREQ_TEXT_MAX + 1];
    uint64_t expires, linger_ms;
};

struct keeper {
    struct mo_wire starter; /* holds the request's bytes */
    struct mo_boxreq r;
    struct label label;
    struct mo_cg cg;
    struct mo_run run;
    struct mo_net net;
    struct mo_wire clients[MO_KEEPER_CLIENTS];
    struct mo_wire *attached; /* a member of clients, or NULL */
    uint64_t alone_since;     /* mo_now_ns(), while nobody is attached */
    uint64_t started;         /* wall clock, s */
    uint64_t starts;
    uint64_t landlock;
    uid_t uid;
    struct mo_owner owner;
    bool root, frozen, running, done;
    int slot, dir, listener, signals, program;
    int proc; /* of the host, if the box has a network; or -1 */
    struct mo_saver saver;
};

/* --- send to clients ----------------------------------------------------- */

static void drop_client(struct keeper *k, struct mo_wire *c)
{
    if (k->attached == c) {
        k->attached = NULL;
        k->alone_since = mo_now_ns();
    }
    mo_wire_fini(c);
}

static void send_message(struct keeper *k, struct mo_wire *c,
                         const struct mo_boxmsg *m, const int *fds)
{
    if (c->fd >= 0 && mo_wire_send(c->fd, m, fds, NULL) < 0)
        drop_client(k, c);
}

/* The pipes of the program, and its network. Returns their number. */
static unsigned list_fds(const struct keeper *k, int out[MO_BOXMSG_FDS_MAX])
{
    _Static_assert(3 + MO_COUNT(k->net.fds) <= MO_BOXMSG_FDS_MAX, "fds");
    memcpy(out, k->run.std, sizeof(k->run.std));
    memcpy(out + 3, k->net.fds, k->net.n * sizeof(out[0]));
    return 3 + k->net.n;
}

static void send_desc(struct keeper *k, struct mo_wire *c, bool with_fds)
{
    int fds[MO_BOXMSG_FDS_MAX];
    struct mo_boxmsg m = {.type = MO_BOXMSG_DESC};

    m.u.desc = (struct mo_boxdesc){
        .id = k->r.id,
        .session = k->label.session,
        .instance = k->label.instance,
        .store = k->r.store,
        .policy = k->r.policy,
        .expires = k->label.expires,
        .started = k->started,
        .state = !k->running ? MO_BOX_HAS_ENDED
                 : k->frozen ? MO_BOX_IS_FROZEN
                             : MO_BOX_IS_RUNNING,
        .pid = (uint64_t)k->run.pid,
        .uid = k->uid,
        .starts = k->starts,
        .landlock = k->landlock,
        .attached = k->attached != NULL,
    };
    m.fds = with_fds && k->running ? list_fds(k, fds) : 0;
    send_message(k, c, &m, fds);
}

/* Send the program's pipes. If the box ends with its client, its input ends
 * when the client closes it; otherwise the keeper holds it open. */
static void send_pipes(struct keeper *k, struct mo_wire *c)
{
    if (k->running && k->run.std[0] < 0) /* closed: /dev/null */
        k->run.std[0] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    send_desc(k, c, true);
    if (k->label.linger_ms == 0)
        mo_close_fd(&k->run.std[0]);
}

static void send_refused(struct keeper *k, struct mo_wire *c,
                         const struct mo_err *e)
{
    struct mo_boxmsg m = {.type = MO_BOXMSG_REFUSED};

    m.u.refused = (struct mo_boxrefused){
        .code = (uint64_t)-e->code, .sys = (uint64_t)e->sys, .msg = e->msg};
    send_message(k, c, &m, NULL);
}

static void send_ended(struct keeper *k, struct mo_wire *c,
                       const struct mo_boxend *end)
{
    struct mo_boxmsg m = {.type = MO_BOXMSG_ENDED};

    m.u.end = *end;
    send_message(k, c, &m, NULL);
}

/* --- the socket ---------------------------------------------------------- */

static int open_dir(struct keeper *k, struct mo_err *e)
{
    struct stat st;

    k->dir = mo_owner_open_dir(&k->owner, k->r.dir);
    if (k->dir < 0 || fstat(k->dir, &st) < 0)
        return mo_fail_sys(e, "%s", k->r.dir);
    if (st.st_uid != k->owner.uid || (st.st_mode & 077))
        return mo_fail(e, MO_EPOLICY,
                       "%s: must belong to the owner alone (mode 0700)",
                       k->r.dir);
    return 0;
}

/* Listen before the socket has its name, so nobody finds it refusing. The path
 * through /proc keeps long directories within the 108 bytes of an address. */
static int name_socket(struct keeper *k, struct mo_err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char name[MO_BOXREQ_ID_MAX + 8], temp[MO_BOXREQ_ID_MAX + 8];

    snprintf(name, sizeof(name), "%s.sock", k->r.id);
    snprintf(temp, sizeof(temp), "%s.new", k->r.id);
    snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", k->dir,
             temp);
    if (faccessat(k->dir, name, F_OK, 0) == 0)
        return mo_fail(e, MO_EEXISTS, "box %s", k->r.id);
    k->listener =
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (k->listener < 0 ||
        bind(k->listener, (const struct sockaddr *)&a, sizeof(a)) < 0)
        return mo_fail_sys(e, "socket of box %s", k->r.id);
    if (fchmodat(k->dir, temp, 0600, 0) < 0 ||
        listen(k->listener, BACKLOG) < 0 ||
        renameat(k->dir, temp, k->dir, name) < 0) {
        unlinkat(k->dir, temp, 0);
        return mo_fail_sys(e, "socket of box %s", k->r.id);
    }
    return 0;
}

static int open_socket(struct keeper *k, struct mo_err *e)
{
    int rc;

    mo_owner_enter(&k->owner);
    rc = name_socket(k, e);
    mo_owner_leave(&k->owner);
    return rc;
}

static void close_socket(struct keeper *k)
{
    char name[MO_BOXREQ_ID_MAX + 8];

    if (k->listener < 0)
        return;
    snprintf(name, sizeof(name), "%s.sock", k->r.id);
    mo_owner_enter(&k->owner);
    unlinkat(k->dir, name, 0);
    mo_owner_leave(&k->owner);
    mo_close_fd(&k->listener);
}

static bool may_connect(const struct keeper *k, int fd)
{
    struct ucred who;
    socklen_t n = sizeof(who);

    /* in a user namespace the owner has the box's id, and other users, root
     * too, appear as the overflow user */
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
           (who.uid == (k->root ? k->owner.uid : k->uid) ||
            (k->root && who.uid == 0));
}

static void on_connection(struct keeper *k)
{
    int fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    for (int i = 0; i < MO_KEEPER_CLIENTS && may_connect(k, fd); i++) {
        if (k->clients[i].fd >= 0)
            continue;
        mo_wire_init(&k->clients[i], fd);
        return;
    }
    close(fd);
}

/* --- the workspace that is kept ------------------------------------------ */

/* A box without a session has nothing to keep. */
static bool may_save(const struct keeper *k)
{
    return k->saver.workspace >= 0 && k->label.session[0];
}

static struct mo_kept_head labels_of(const struct keeper *k)
{
    return (struct mo_kept_head){.store = mo_span_cstr(k->r.store),
                                 .session = mo_span_cstr(k->label.session),
                                 .instance = mo_span_cstr(k->label.instance)};
}

/* ms until the next save may begin; UINT64_MAX: none will. */
static uint64_t save_left(const struct keeper *k)
{
    return may_save(k) ? mo_saver_left(&k->saver) : UINT64_MAX;
}

static void save_now(struct keeper *k)
{
    const struct mo_kept_head labels = labels_of(k);

    mo_saver_begin(&k->saver, &k->cg, &labels);
}

/* When no program runs any more. */
static bool save_last(struct keeper *k)
{
    const struct mo_kept_head labels = labels_of(k);

    return may_save(k) && mo_saver_last(&k->saver, &labels, NULL) == 0;
}

/* --- end ----------------------------------------------------------------- */

static int start_program(struct keeper *k, const struct mo_boxreq *r,
                         int program, struct mo_err *e)
{
    int rc = k->frozen ? mo_cg_freeze(&k->cg, false, e) : 0;

    if (rc == 0)
        rc = mo_run_start(&k->run, r, &k->cg, k->uid, k->root, program, e);
    k->running = rc == 0;
    k->frozen = false;
    k->starts += rc == 0;
    return rc;
}

/* The program ended by itself; its files stay. */
static void on_program_gone(struct keeper *k)
{
    struct mo_boxend end;

    mo_run_reap(&k->run, &k->cg, &end);
    k->running = false;
    end.kept = 1;
    if (k->attached)
        send_ended(k, k->attached, &end);
}

/* Remove everything; the socket last, and only if the groups are gone. */
static void remove_all(struct keeper *k)
{
    struct mo_boxend end = {.cause = MO_BOXEND_STOPPED}, how;

    if (k->running) {
        mo_run_kill(&k->run, &k->cg);
        mo_run_reap(&k->run, &k->cg, &how);
        k->running = false;
    }
    end.kept = save_last(k);
    if (mo_cg_remove(&k->cg, NULL) == 0)
        close_socket(k);
    for (int i = 0; i < MO_KEEPER_CLIENTS; i++)
        if (k->clients[i].fd >= 0)
            send_ended(k, &k->clients[i], &end);
    k->done = true;
}

/* --- requests of clients ------------------------------------------------- */

static void on_attach(struct keeper *k, struct mo_wire *c)
{
    static const struct mo_boxmsg taken = {.type = MO_BOXMSG_TAKEN};

    if (k->attached && k->attached != c) {
        struct mo_wire *old = k->attached;

        send_message(k, old, &taken, NULL);
        if (old->fd >= 0)
            drop_client(k, old);
    }
    k->attached = c;
    send_pipes(k, c);
}

static void on_restart(struct keeper *k, struct mo_wire *c,
                       const struct mo_boxreq *want)
{
    mo_autofd int program = want->by_fd ? mo_wire_take_fd(c, 0) : -1;
    struct mo_boxreq r = k->r;
    struct mo_err e = {.code = MO_EBUSY, .msg = "the program is still running"};

    memcpy(r.argv, want->argv, sizeof(r.argv));
    memcpy(r.env, want->env, sizeof(r.env));
    if (want->by_fd && program < 0)
        mo_fail(&e, MO_EPROTO, "the request has no program attached");
    else if (!k->running && start_program(k, &r, program, &e) == 0) {
        on_attach(k, c);
        return;
    }
    send_refused(k, c, &e);
}

static void on_freeze(struct keeper *k, struct mo_wire *c, bool frozen)
{
    struct mo_err e = {.code = MO_EINVAL, .msg = "no program is running"};

    if (k->running && mo_cg_freeze(&k->cg, frozen, &e) == 0) {
        k->frozen = frozen;
        send_desc(k, c, false);
        return;
    }
    send_refused(k, c, &e);
}

static void set_label(struct keeper *k, const char *session,
                      const char *instance, uint64_t expires,
                      uint64_t linger_ms)
{
    struct label *l = &k->label;

    snprintf(l->session, sizeof(l->session), "%s", session);
    snprintf(l->instance, sizeof(l->instance), "%s", instance);
    l->expires = expires;
    l->linger_ms = linger_ms;
}

static void on_stats(struct keeper *k, struct mo_wire *c)
{
    struct mo_boxmsg m = {.type = MO_BOXMSG_STATS_ARE};

    mo_cg_stats(&k->cg, &m.u.stats);
    send_message(k, c, &m, NULL);
}

static void on_who(struct keeper *k, struct mo_wire *c,
                   const struct mo_boxwho *w)
{
    char path[MO_BOXREQ_TEXT_MAX + 1] = "";
    struct mo_boxmsg m = {.type = MO_BOXMSG_PROGRAM};

    if (k->proc >= 0 && k->running)
        mo_program_find(k->proc, &k->cg, w, path);
    m.u.program.path = path;
    send_message(k, c, &m, NULL);
}

static void on_message(struct keeper *k, struct mo_wire *c,
                       const struct mo_boxmsg *m)
{
    const struct mo_boxlabel *l = &m->u.label;

    switch (m->type) {
    case MO_BOXMSG_ATTACH:
        on_attach(k, c);
        break;
    case MO_BOXMSG_RESTART:
        on_restart(k, c, &m->u.req);
        break;
    case MO_BOXMSG_KILL:
        remove_all(k);
        break;
    case MO_BOXMSG_FREEZE:
    case MO_BOXMSG_THAW:
        on_freeze(k, c, m->type == MO_BOXMSG_FREEZE);
        break;
    case MO_BOXMSG_LABEL:
        set_label(k, l->session, l->instance, l->expires, l->linger_ms);
        send_desc(k, c, false);
        break;
    case MO_BOXMSG_CLOSE_IN:
        mo_close_fd(&k->run.std[0]);
        send_desc(k, c, false);
        break;
    case MO_BOXMSG_STATS:
        on_stats(k, c);
        break;
    case MO_BOXMSG_WHO:
        on_who(k, c, &m->u.who);
        break;
    case MO_BOXMSG_DESCRIBE:
        send_desc(k, c, false);
        break;
    default:
        drop_client(k, c); /* only a keeper sends these */
    }
}

static void on_client(struct keeper *k, struct mo_wire *c)
{
    struct mo_boxmsg m;
    int rc = mo_wire_fill(c, NULL);

    while (rc == 0 && c->fd >= 0 && !k->done) {
        rc = mo_wire_next(c, &m, NULL);
        if (rc == 0)
            return;
        if (rc == 1) {
            on_message(k, c, &m);
            rc = 0;
        }
    }
    if (rc < 0 && c->fd >= 0)
        drop_client(k, c);
}

/* --- main loop ----------------------------------------------------------- */

static uint64_t client_left(uint64_t now, uint64_t end)
{
    return end > now ? end - now : 0;
}

/* Without its socket no client can come back. */
static bool can_be_found(const struct keeper *k)
{
    char name[MO_BOXREQ_ID_MAX + 8];

    snprintf(name, sizeof(name), "%s.sock", k->r.id);
    return faccessat(k->dir, name, F_OK, 0) == 0;
}

/* ms until a box without a client expires; 0: now. */
static uint64_t ms_left(const struct keeper *k)
{
    uint64_t linger, wall;

    if (k->attached)
        return POLL_MAX_MS;
    if (!can_be_found(k))
        return 0;
    linger = k->alone_since / MO_MS + k->label.linger_ms;
    linger = client_left(mo_now_ns() / MO_MS, linger);
    wall = UINT64_MAX; /* 0: never */
    if (k->label.expires && k->label.expires < UINT64_MAX / 1000)
        wall = client_left(mo_wall_ms(), k->label.expires * 1000);
    return linger < wall ? linger : wall;
}

static void on_events(struct keeper *k, const struct pollfd *p)
{
    if (p[2].revents)
        on_program_gone(k);
    if (p[3].revents)
        mo_saver_end(&k->saver);
    for (int i = 0; i < MO_KEEPER_CLIENTS && !k->done; i++)
        if (p[4 + i].revents && k->clients[i].fd == p[4 + i].fd)
            on_client(k, &k->clients[i]);
    if (k->done)
        return;
    if (p[1].revents)
        on_connection(k);
    if (p[0].revents)
        remove_all(k);
    else if (save_left(k) == 0)
        save_now(k);
}

static void run_once(struct keeper *k)
{
    struct pollfd p[4 + MO_KEEPER_CLIENTS] = {
        {.fd = k->signals, .events = POLLIN},
        {.fd = k->listener, .events = POLLIN},
        {.fd = k->running ? k->run.pidfd : -1, .events = POLLIN},
        {.fd = k->saver.result, .events = POLLIN},
    };
    uint64_t wait = ms_left(k), save = save_left(k);
    uint64_t most = k->attached ? POLL_MAX_MS : POLL_ALONE_MS;

    for (int i = 0; i < MO_KEEPER_CLIENTS; i++)
        p[4 + i] = (struct pollfd){.fd = k->clients[i].fd, .events = POLLIN};
    most = save < most ? save + 1 : most;
    if (wait == 0) {
        remove_all(k);
        return;
    }
    /* one ms more, so as not to wake before the time */
    if (poll(p, MO_COUNT(p), (int)(wait < most ? wait + 1 : most)) >= 0)
        on_events(k, p);
}

/* --- start --------------------------------------------------------------- */

static int await_request(struct keeper *k, struct mo_err *e)
{
    struct timeval t = {.tv_sec = MO_KEEPER_WAIT_S};
    struct mo_boxmsg m = {0};
    int rc;

    setsockopt(k->starter.fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    do {
        size_t before = k->starter.in.len;

        rc = mo_wire_fill(&k->starter, e);
        if (rc == 0 && k->starter.in.len == before)
            rc = mo_fail(e, MO_ETIMEOUT, "no request received in time");
        if (rc == 0)
            rc = mo_wire_next(&k->starter, &m, e);
    } while (rc == 0);
    if (rc < 0)
        return rc;
    if (m.type != MO_BOXMSG_START || !mo_boxreq_id_ok(m.u.req.id) ||
        m.fds != m.u.req.by_fd)
        return mo_fail(e, MO_EPROTO, "not a request to start a box");
    if (k->owner.is_other && m.u.req.views[0])
        return mo_fail(e, MO_EPOLICY, "views of the host are not for others");
    k->r = m.u.req;
    k->program = mo_wire_take_fd(&k->starter, 0);
    return 0;
}

/* A program that the box could modify would be modified for the next box. */
static int check_program(const struct keeper *k, struct mo_err *e)
{
    struct stat st;
    int seals;

    if (k->program < 0)
        return 0;
    seals = fcntl(k->program, F_GET_SEALS);
    if (fstat(k->program, &st) < 0 || !S_ISREG(st.st_mode))
        return mo_fail(e, MO_EINVAL, "the program is not a file");
    if (seals >= 0 && !(seals & F_SEAL_WRITE))
        return mo_fail(e, MO_EPOLICY, "the program's memory is not sealed");
    if (seals < 0 && (st.st_mode & S_IWOTH))
        return mo_fail(e, MO_EPOLICY,
                       "the program file is writable by everyone");
    return 0;
}

static int open_signals(struct keeper *k, struct mo_err *e)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    if (sigprocmask(SIG_SETMASK, &ends, NULL) < 0)
        return mo_fail_sys(e, "signals");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    k->signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    return k->signals < 0 ? mo_fail_sys(e, "signals") : 0;
}

static int set_up_box(struct keeper *k, struct mo_err *e)
{
    int rc = open_dir(k, e);

    if (rc == 0)
        rc = check_program(k, e);
    if (rc == 0)
        rc = mo_slot_take(&k->uid, &k->slot, e);
    if (rc == 0)
        rc = open_socket(k, e);
    if (rc == 0)
        rc = mo_cg_open(&k->cg, &k->r, &k->owner, e);
    if (rc == 0 && *k->r.ports) /* for on_who() */
        k->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0)
        rc = mo_saver_open(&k->saver, &k->r, k->dir, &k->owner, e);
    if (rc == 0)
        rc = mo_view_enter(&k->r, k->uid, &k->owner, e);
    if (rc == 0)
        rc = mo_saver_load(&k->saver, &k->cg, k->uid, k->root, e);
    if (rc == 0)
        rc = mo_net_open(&k->net, k->r.ports, e);
    if (rc == 0)
        rc = start_program(k, &k->r, k->program, e);
    mo_close_fd(&k->program);
    return rc;
}

static void keeper_init(struct keeper *k, int fd, const struct mo_owner *owner)
{
    *k = (struct keeper){.slot = -1,
                         .dir = -1,
                         .listener = -1,
                         .signals = -1,
                         .program = -1,
                         .proc = -1,
                         .owner = *owner,
                         .root = geteuid() == 0,
                         .landlock = mo_landlock_abi(),
                         .started = mo_wall_ms() / 1000};
    mo_wire_init(&k->starter, fd);
    mo_run_init(&k->run);
    mo_saver_init(&k->saver);
    for (int i = 0; i < MO_CG_KINDS; i++)
        k->cg.parent[i] = k->cg.dir[i] = -1;
    for (int i = 0; i < MO_KEEPER_CLIENTS; i++)
        k->clients[i].fd = -1;
}

static int start_box(struct keeper *k, struct mo_err *e)
{
    int rc = open_signals(k, e);

    if (rc == 0)
        rc = await_request(k, e);
    if (rc < 0)
        return rc;
    set_label(k, k->r.session, k->r.instance, k->r.expires, k->r.linger_ms);
    return set_up_box(k, e);
}

/* The starter's connection becomes the first client. */
static void adopt_starter(struct keeper *k)
{
    mo_wire_init(&k->clients[0], mo_take_fd(&k->starter.fd));
    fcntl(k->clients[0].fd, F_SETFL, O_NONBLOCK);
    on_attach(k, &k->clients[0]);
}

int mo_keeper(int fd, const struct mo_owner *owner)
{
    struct keeper k;
    struct mo_err e;
    int rc;

    keeper_init(&k, fd, owner);
    rc = start_box(&k, &e);
    if (rc == 0) {
        adopt_starter(&k);
        while (!k.done)
            run_once(&k);
    } else {
        mo_cg_remove(&k.cg, NULL);
        close_socket(&k);
        send_refused(&k, &k.starter, &e);
    }
    return rc == 0 ? 0 : 1;
}
