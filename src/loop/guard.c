/* guard.c - both ends of the guardian's socket.
 *
 * Our end comes first. The list of wards holds the registered children; the
 * guardian's copy is updated with notes of fixed size over a SOCK_SEQPACKET
 * pair. Nothing here waits long for the guardian: if a note does not fit, the
 * guardian has stopped reading (rule 3 of guard.h).
 *
 *    IDLE --first child--> UP --it died--> CLOSING --> DOWN or IDLE
 *                           \--stop------> ENDING ---> gone
 *
 * The guardian's end is at the bottom. It runs in a process of its own and
 * shares only the note format with the rest. */
#include "loop/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rand.h"
#include "loop/priv.h"
#include "loop/spawn.h"
#include "loop/stray.h"

#define ROOM        "guard"
#define STABLE_MS   1000 /* a guardian that lived shorter is restarted later */
#define RETELL_MS   10   /* until more entries are sent to a full socket */
#define ENDING_MS   500  /* then it is killed */
#define PATIENCE_MS 500  /* wait for a full socket; then it counts as stuck */
#define KEY_VAR     "MO_GUARD_KEY" /* of the guardian's environment */
#define GUARDIAN_IN 0              /* the guardian's end of the socket */

enum note_op { NOTE_ADD = 1, NOTE_DEL };

struct note {
    int32_t op;
    int32_t pid;
    uint32_t mark; /* NOTE_ADD; 0: none */
};

/* Descriptors of NOTE_ADD: the process, its mount namespace if known. */
struct note_fds {
    int pidfd, space; /* -1: none */
};

union control { /* of a note with descriptors */
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(struct note_fds))];
};

enum state { G_IDLE, G_UP, G_CLOSING, G_DOWN, G_ENDING, G_GONE };

struct mo_guard {
    struct mo_loop *loop;
    enum state state;
    struct mo_list wards;
    unsigned count;
    int sock;
    pid_t pid;
    int pidfd;
    uint64_t key;          /* of all marks (stray.h) */
    uint32_t marks;        /* given so far */
    uint32_t new_mark;     /* of the child that is being started */
    uv_poll_t poll;        /* open in UP, CLOSING, ENDING */
    uint64_t since;        /* ns, start of the guardian */
    struct mo_timer timer; /* UP: send more; DOWN: restart; ENDING: kill */
    struct mo_later later; /* stopped without a guardian to wait for */
    bool stopping;
    struct mo_gone gone;
};

static void guard_move(struct mo_guard *g, enum state to)
{
    static const uint8_t legal[] = {
        [G_IDLE] = MO_TO(G_UP) | MO_TO(G_GONE),
        [G_UP] = MO_TO(G_CLOSING) | MO_TO(G_ENDING),
        [G_CLOSING] = MO_TO(G_IDLE) | MO_TO(G_DOWN),
        [G_DOWN] = MO_TO(G_UP) | MO_TO(G_IDLE),
        [G_ENDING] = MO_TO(G_CLOSING),
        [G_GONE] = 0,
    };

    MO_MOVE(g->state, to, legal);
}

/* Returns 0 or an errno. Also runs in a new child: system calls only. Waits up
 * to PATIENCE_MS if the socket is full, because a busy machine may have kept
 * the guardian from reading. */
static int send_note(int sock, enum note_op op, pid_t pid, uint32_t mark,
                     struct note_fds fds)
{
    struct note n = {.op = op, .pid = pid, .mark = mark};
    struct iovec iov = {.iov_base = &n, .iov_len = sizeof(n)};
    union control c = {.room = {0}};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fds.pidfd >= 0) {
        struct cmsghdr *h = &c.align;
        size_t size = fds.space >= 0 ? sizeof(fds) : sizeof(fds.pidfd);

        m.msg_control = &c;
        m.msg_controllen = CMSG_SPACE(size);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(h), &fds, size);
    }
    return sendmsg(sock, &m, MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* --- start, death and restart of the guardian ---------------------------- */

static int guardian_up(struct mo_guard *g, struct mo_err *e);
static void continue_stop(struct mo_guard *g);

static void send_unsent(struct mo_guard *g)
{
    mo_list_each_entry (w, &g->wards, struct mo_ward, node) {
        mo_autofd int space = w->told ? -1 : mo_stray_space(w->pid);

        if (!w->told)
            w->told = send_note(g->sock, NOTE_ADD, w->pid, w->mark,
                                (struct note_fds){w->pidfd, space}) == 0;
        if (!w->told) {
            mo_timer_start(g->loop, &g->timer, RETELL_MS);
            return;
        }
    }
}

static void kill_guardian(struct mo_guard *g)
{
    (void)syscall(SYS_pidfd_send_signal, g->pidfd, SIGKILL, NULL, 0);
}

static void restart_guardian(struct mo_guard *g)
{
    struct mo_err e = {.code = 0};

    if (guardian_up(g, &e) == 0) {
        mo_log(mo_loop_log(g->loop), MO_WARN, ROOM,
               "started guardian, pid %d, for %u children", (int)g->pid,
               g->count);
        return;
    }
    mo_log_err(mo_loop_log(g->loop), MO_ERROR, ROOM, &e,
               "no guardian for %u children", g->count);
    mo_timer_start(g->loop, &g->timer, STABLE_MS);
}

static void on_timer(struct mo_timer *t)
{
    struct mo_guard *g = mo_container_of(t, struct mo_guard, timer);

    if (g->state == G_UP)
        send_unsent(g);
    else if (g->state == G_DOWN)
        restart_guardian(g);
    else if (g->state == G_ENDING)
        kill_guardian(g);
}

/* The guardian has been reaped: restart it if children still need one. */
static void on_poll_closed(uv_handle_t *h)
{
    struct mo_guard *g = h->data;
    uint64_t lived = mo_now_ns() - g->since;

    mo_close_fd(&g->pidfd);
    mo_close_fd(&g->sock);
    g->pid = 0;
    if (mo_list_empty(&g->wards)) {
        guard_move(g, G_IDLE);
        continue_stop(g);
        return;
    }
    guard_move(g, G_DOWN);
    mo_list_each (it, &g->wards)
        mo_container_of(it, struct mo_ward, node)->told = false;
    mo_timer_start(g->loop, &g->timer,
                   lived < STABLE_MS * MO_MS ? STABLE_MS : 0);
}

static void on_guardian_exit(uv_poll_t *h, int status, int events)
{
    struct mo_guard *g = h->data;
    struct mo_exit x;

    (void)status;
    (void)events;
    if (!mo_spawn_ended(g->pidfd, WNOHANG, &x))
        return;
    if (g->state == G_UP)
        mo_log(mo_loop_log(g->loop), MO_ERROR, ROOM, "guardian %d died (%s %d)",
               (int)g->pid, x.signal ? "signal" : "exit",
               x.signal ? x.signal : x.code);
    mo_timer_stop(g->loop, &g->timer);
    guard_move(g, G_CLOSING);
    uv_close((uv_handle_t *)h, on_poll_closed);
}

/* Only the key and the library path are passed on; the rest of our environment
 * (keys, tokens) is not for the guardian. */
static int exec_guardian(struct mo_guard *g, int theirs, struct mo_err *e)
{
    static const char *const argv[] = {MO_GUARD_NAME, NULL};
    const char *path = getenv("LD_LIBRARY_PATH");
    char var[MO_SPAWN_PATH_MAX], key[MO_STRAY_MAX];
    const char *env[] = {key, NULL, NULL};
    mo_autofd int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct mo_spawn s = {
        .file = "/proc/self/exe",
        .argv = argv,
        .env = env,
        .cwd = "/",
        .fds = {theirs, null, STDERR_FILENO},
        .outlive = true,
    };

    if (null < 0)
        return mo_fail_sys(e, "/dev/null");
    (void)snprintf(key, sizeof(key), KEY_VAR "=%" PRIx64, g->key);
    if (fcntl(STDERR_FILENO, F_GETFD) < 0)
        s.fds[2] = null;
    if (path) {
        (void)snprintf(var, sizeof(var), "LD_LIBRARY_PATH=%s", path);
        env[1] = var;
    }
    return mo_spawn(&s, &g->pid, &g->pidfd, e);
}

static int guardian_up(struct mo_guard *g, struct mo_err *e)
{
    const struct timeval patience = {.tv_usec = PATIENCE_MS * 1000};
    int pair[2], rc;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return mo_fail_sys(e, "guardian: socket");
    g->sock = pair[0];
    (void)setsockopt(g->sock, SOL_SOCKET, SO_SNDTIMEO, &patience,
                     sizeof(patience));
    rc = exec_guardian(g, pair[1], e);
    (void)close(pair[1]);
    if (rc == 0) {
        rc = mo_loop_watch(g->loop, &g->poll, g->pidfd, on_guardian_exit, g);
        if (rc < 0) { /* without entries it exits by itself; kill is quicker */
            (void)mo_fail_uv(e, rc, "guardian");
            kill_guardian(g);
            (void)mo_spawn_ended(g->pidfd, 0, &(struct mo_exit){0});
            mo_close_fd(&g->pidfd);
        }
    }
    if (rc < 0) {
        mo_close_fd(&g->sock);
        g->pid = 0;
        return mo_wrap(e, "guardian");
    }
    uv_unref((uv_handle_t *)&g->poll); /* must not keep the loop running */
    g->since = mo_now_ns();
    guard_move(g, G_UP);
    send_unsent(g);
    return 0;
}

/* --- public functions ---------------------------------------------------- */

struct mo_guard *mo_guard_new(struct mo_loop *l, struct mo_err *e)
{
    struct mo_guard *g = mo_new(struct mo_guard);

    if (!g)
        return mo_null(mo_fail(e, MO_ENOMEM, "guard"));
    g->loop = l;
    g->sock = -1;
    g->pidfd = -1;
    g->key = mo_random_u64();
    mo_list_init(&g->wards);
    mo_timer_init(&g->timer, on_timer);
    return g;
}

static void on_gone(struct mo_later *d)
{
    struct mo_guard *g = mo_container_of(d, struct mo_guard, later);
    struct mo_gone gone = g->gone;

    mo_free(g);
    mo_gone_fire(gone);
}

/* Continue stopping as far as possible now. */
static void continue_stop(struct mo_guard *g)
{
    if (!g->stopping || !mo_list_empty(&g->wards))
        return;
    if (g->state == G_UP) {
        guard_move(g, G_ENDING);
        mo_close_fd(&g->sock);
        uv_ref((uv_handle_t *)&g->poll);
        mo_timer_start(g->loop, &g->timer, ENDING_MS);
    } else if (g->state == G_DOWN) {
        mo_timer_stop(g->loop, &g->timer);
        guard_move(g, G_IDLE);
    }
    if (g->state == G_IDLE) {
        guard_move(g, G_GONE);
        mo_later_init(&g->later, on_gone);
        mo_loop_defer(g->loop, &g->later);
    }
}

void mo_guard_stop(struct mo_guard *g, void (*gone)(void *ctx), void *ctx)
{
    if (!g || g->stopping)
        return;
    g->stopping = true;
    g->gone = (struct mo_gone){gone, ctx};
    continue_stop(g);
}

struct mo_loop *mo_guard_loop(const struct mo_guard *g)
{
    return g->loop;
}

pid_t mo_guard_pid(const struct mo_guard *g)
{
    return g->pid;
}

/* --- registered children ------------------------------------------------- */

/* The descriptors are closed by exec. */
static int register_self(void *ctx)
{
    const struct mo_guard *g = ctx;
    pid_t pid = getpid();
    struct note_fds fds = {(int)syscall(SYS_pidfd_open, pid, 0),
                           mo_stray_space(0)};

    return fds.pidfd < 0 ? errno
                         : send_note(g->sock, NOTE_ADD, pid, g->new_mark, fds);
}

/* If the guardian does not read, it is replaced; the new one gets the current
 * entries. */
static void unregister_child(void *ctx, pid_t pid)
{
    struct mo_guard *g = ctx;

    if (send_note(g->sock, NOTE_DEL, pid, 0, (struct note_fds){-1, -1}) != 0)
        kill_guardian(g);
}

/* The environment of s and the mark; NULL: out of memory. */
static const char **marked_env(const struct mo_spawn *s, const char *var)
{
    size_t n = 0;
    const char **v = NULL;

    while (s->env && s->env[n])
        n++;
    v = mo_zalloc((n + 2) * sizeof(*v));
    for (size_t i = 0; v && i < n; i++)
        v[i] = s->env[i];
    if (v)
        v[n] = var;
    return v;
}

/* mo_spawn() with the mark in the environment. */
static int spawn_marked(struct mo_guard *g, struct mo_spawn *s,
                        struct mo_ward *w, struct mo_err *e)
{
    char var[MO_STRAY_MAX];
    mo_autofree const char **env = NULL;

    mo_stray_var(g->key, w->mark, var);
    env = marked_env(s, var);
    if (!env)
        return mo_fail(e, MO_ENOMEM, "environment");
    s->env = env;
    return mo_spawn(s, &w->pid, &w->pidfd, e);
}

int mo_guard_spawn(struct mo_guard *g, struct mo_spawn *s, bool marked,
                   struct mo_ward *w, struct mo_err *e)
{
    int rc = 0;

    if (g->stopping)
        return mo_fail(e, MO_ECLOSED, "cannot start a child: shutting down");
    if (g->count >= MO_GUARD_MAX)
        return mo_fail(e, MO_EBUSY, "too many child processes (%u)", g->count);
    if (g->state == G_IDLE)
        rc = guardian_up(g, e);
    if (rc < 0)
        return rc;
    if (g->state != G_UP)
        return mo_fail(e, MO_EUNAVAIL, "the guardian process is restarting");
    s->enlist = register_self;
    s->delist = unregister_child;
    s->ctx = g;
    w->mark = g->new_mark = marked ? ++g->marks : 0;
    rc = marked ? spawn_marked(g, s, w, e) : mo_spawn(s, &w->pid, &w->pidfd, e);
    if (rc < 0)
        return rc;
    w->told = true;
    g->count++;
    mo_list_push(&g->wards, &w->node);
    return 0;
}

void mo_guard_forget(struct mo_guard *g, struct mo_ward *w)
{
    if (g->state == G_UP && w->told)
        unregister_child(g, w->pid);
    mo_list_del(&w->node);
    g->count--;
    continue_stop(g);
}

/* --- the guardian process ------------------------------------------------ */

#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#    define PIDFD_SIGNAL_PROCESS_GROUP (1u << 2)
#endif

struct entries {
    struct entry {
        pid_t pid;
        uint32_t mark;
        struct note_fds fds;
        ino_t space; /* number of its mount namespace; 0: it has none */
    } of[MO_GUARD_MAX];
    unsigned n;
    ino_t space; /* of the guardian, and of the program that started it */
};

bool mo_guard_wanted(int argc, char *const *argv)
{
    return argc == 1 && strcmp(argv[0], MO_GUARD_NAME) == 0;
}

static struct note_fds received_fds(struct msghdr *m)
{
    struct cmsghdr *h = CMSG_FIRSTHDR(m);
    struct note_fds fds = {-1, -1};

    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
        h->cmsg_len <= CMSG_LEN(sizeof(fds)))
        memcpy(&fds, CMSG_DATA(h), h->cmsg_len - CMSG_LEN(0));
    return fds;
}

/* Read one note; false at the end of the socket. */
static bool next_note(struct note *n, struct note_fds *fds)
{
    struct iovec iov = {.iov_base = n, .iov_len = sizeof(*n)};
    union control c = {.room = {0}};
    struct msghdr m = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &c,
        .msg_controllen = sizeof(c),
    };
    ssize_t got;

    do {
        got = recvmsg(GUARDIAN_IN, &m, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    *fds = got > 0 ? received_fds(&m) : (struct note_fds){-1, -1};
    return got == sizeof(*n);
}

static ino_t number_of(int space)
{
    struct stat st;

    return space < 0 || fstat(space, &st) < 0 ? 0 : st.st_ino;
}

static void close_fds(struct note_fds *fds)
{
    mo_close_fd(&fds->pidfd);
    mo_close_fd(&fds->space);
}

/* Takes the entry out; its descriptors stay open. */
static struct entry entries_take(struct entries *b, pid_t pid)
{
    for (unsigned i = 0; i < b->n; i++) {
        struct entry was = b->of[i];

        if (was.pid != pid)
            continue;
        b->of[i] = b->of[--b->n];
        return was;
    }
    return (struct entry){.fds = {-1, -1}};
}

static void entries_add(struct entries *b, const struct note *n,
                        struct note_fds fds)
{
    struct entry old = entries_take(b, n->pid);
    ino_t space = number_of(fds.space);

    close_fds(&old.fds);
    if (b->n == MO_GUARD_MAX || n->pid <= 1) { /* never sent by our end */
        close_fds(&fds);
        return;
    }
    b->of[b->n++] = (struct entry){
        .pid = n->pid,
        .mark = n->mark,
        .fds = fds,
        .space = n->mark && space != b->space ? space : 0,
    };
}

static void kill_group(pid_t pid, int fd)
{
    if (fd >= 0 && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL,
                           PIDFD_SIGNAL_PROCESS_GROUP) == 0)
        return;
    if (fd < 0 || errno == EINVAL) /* kernel before 6.9 */
        (void)kill(-pid, SIGKILL);
}

/* The guardian holds one descriptor per child. */
static void widen_limits(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
}

/* A child was ended: ends what it left in other sessions. */
static void remove_child(struct entries *b, uint64_t key, pid_t pid)
{
    struct entry was = entries_take(b, pid);
    struct mo_stray s = {key, was.mark, &was.space, 1};

    if (was.mark)
        mo_stray_kill(&s);
    close_fds(&was.fds); /* now another namespace may get its number */
}

static void kill_all(const struct entries *b, uint64_t key)
{
    static ino_t spaces[MO_GUARD_MAX];
    struct mo_stray s = {key, MO_STRAY_ALL, spaces, b->n};

    for (unsigned i = 0; i < b->n; i++) {
        spaces[i] = b->of[i].space;
        kill_group(b->of[i].pid, b->of[i].fds.pidfd);
    }
    if (key)
        mo_stray_kill(&s);
}

void mo_guard_main(void)
{
    const char *text = getenv(KEY_VAR);
    uint64_t key = text ? strtoull(text, NULL, 16) : 0;
    int own = mo_stray_space(0);
    struct entries b = {.space = number_of(own)};
    struct note_fds fds;
    struct note n;
    sigset_t all;

    (void)sigfillset(&all); /* only SIGKILL may end it early */
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)prctl(PR_SET_NAME, MO_GUARD_NAME, 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    widen_limits();
    while (next_note(&n, &fds)) {
        if (n.op == NOTE_ADD)
            entries_add(&b, &n, fds);
        else if (n.op == NOTE_DEL)
            remove_child(&b, key, n.pid);
    }
    kill_all(&b, key);
    _exit(0);
}
