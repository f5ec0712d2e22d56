#include "box/privileged_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "box/keeper.h"
#include "box/roots_path.h"
#include "loop/spawn.h"

#define ANSWER_MS  30000
#define BURST      128
#define PER_SECOND 20

enum what { ASK_BOX = 1, ASK_SWEEP, ASK_FILE, ASK_STAMP };

struct ask {
    uint8_t what, file;
};

/* Answer to FILE and STAMP; a descriptor with the content comes with it. */
struct told {
    struct mo_err err; /* code 0: success */
    struct mo_file_stamp stamp;
};

union control { /* room for one descriptor; alignment may let in a second */
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int))];
};

struct helper {
    int sock, launcher, null;
    int server;     /* pidfd */
    char owner[32]; /* "UID:GID" */
    char dir[PATH_MAX];
    char files[MO_PRIVILEGED_FILES][PATH_MAX];
    uint64_t spent_until; /* ns: when the budget of boxes is full again */
};

/* --- messages with a descriptor ------------------------------------------ */

static int send_fd(int sock, const void *p, size_t n, int fd, int flags)
{
    union control c;
    struct iovec v = {(void *)(uintptr_t)p, n};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
    struct cmsghdr *m;
    ssize_t sent;

    if (fd >= 0) {
        memset(&c, 0, sizeof(c));
        h.msg_control = &c;
        h.msg_controllen = sizeof(c);
        m = CMSG_FIRSTHDR(&h);
        m->cmsg_level = SOL_SOCKET;
        m->cmsg_type = SCM_RIGHTS;
        m->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(m), &fd, sizeof(fd));
    }
    do {
        sent = sendmsg(sock, &h, flags | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)n ? 0 : -1;
}

/* Returns the number of bytes as recvmsg(); *fd is -1 or the caller's. */
static ssize_t receive_fd(int sock, void *p, size_t n, int *fd)
{
    union control c;
    struct iovec v = {p, n};
    struct msghdr h = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &c,
                       .msg_controllen = sizeof(c)};
    ssize_t got;

    *fd = -1;
    do {
        got = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    for (struct cmsghdr *m = got < 0 ? NULL : CMSG_FIRSTHDR(&h); m;
         m = CMSG_NXTHDR(&h, m)) {
        size_t count = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        for (size_t i = 0; i < count && m->cmsg_type == SCM_RIGHTS; i++) {
            int one;

            memcpy(&one, CMSG_DATA(m) + i * sizeof(int), sizeof(one));
            if (*fd < 0)
                *fd = one;
            else
                (void)close(one);
        }
    }
    return got;
}

/* --- in the helper: files ------------------------------------------------- */

/* Content in memory that cannot be changed: the server gets no descriptor of
 * the file itself. */
static int read_file(const char *path, bool with_content, struct told *t,
                     int *content)
{
    mo_autowipe struct mo_buf b = {.max = MO_PRIVILEGED_BYTES};
    int rc;

    errno = 0;
    if (!mo_roots_path(path) && errno == ENOENT)
        return mo_fail(&t->err, MO_ENOTFOUND, "%s: no such file", path);
    if (!mo_roots_path(path))
        return mo_fail(&t->err, MO_EPOLICY,
                       "%s: others than root can change it or a directory "
                       "above it",
                       path);
    mo_file_stamp(path, &t->stamp);
    if (!with_content)
        return 0;
    rc = mo_file_read(path, MO_PRIVILEGED_BYTES, &b, &t->stamp, &t->err);
    if (rc == 0)
        rc = mo_keeper_seal(mo_buf_view(&b), "file", content, &t->err);
    return rc;
}

static void answer_file(struct helper *h, const struct ask *a, int sock)
{
    mo_autofd int content = -1;
    struct told t;

    memset(&t, 0, sizeof(t)); /* also the bytes between members */
    if (a->file < MO_PRIVILEGED_FILES)
        t.err.code =
            read_file(h->files[a->file], a->what == ASK_FILE, &t, &content);
    else
        (void)mo_fail(&t.err, MO_EINVAL, "no such file");
    (void)send_fd(sock, &t, sizeof(t), content, MSG_DONTWAIT);
}

/* --- in the helper: mo-box ------------------------------------------------ */

static void refuse(int sock, const struct mo_err *e)
{
    struct mo_boxmsg m = {.type = MO_BOXMSG_REFUSED};
    mo_autobuf struct mo_buf b = {.max = MO_BOXMSG_HEAD + MO_BOXMSG_MAX};

    m.u.refused = (struct mo_boxrefused){
        .code = (uint64_t)-e->code, .sys = (uint64_t)e->sys, .msg = e->msg};
    if (mo_boxmsg_put(&b, &m, NULL) == 0)
        (void)send_fd(sock, b.p, b.len, -1, MSG_DONTWAIT);
}

/* A box costs 1/PER_SECOND s of a budget of BURST boxes. */
static bool may_start(struct helper *h)
{
    const uint64_t cost = 1000 * MO_MS / PER_SECOND;
    uint64_t now = mo_now_ns();

    if (h->spent_until < now)
        h->spent_until = now;
    if (h->spent_until - now > (BURST - 1) * cost)
        return false;
    h->spent_until += cost;
    return true;
}

/* Nobody waits for mo-box: SIGCHLD is ignored. */
static int run_launcher(struct helper *h, const char *const *argv, int in,
                        int out, struct mo_err *e)
{
    char file[64];
    struct mo_spawn s = {.file = file,
                         .argv = argv,
                         .fds = {in, out, h->null},
                         .keep = h->launcher,
                         .outlive = true};
    int pidfd = -1, rc;
    pid_t pid;

    if (h->launcher < 0)
        return mo_fail(e, MO_EUNAVAIL, "this build carries no mo-box");
    (void)snprintf(file, sizeof(file), "/proc/self/fd/%d", h->launcher);
    rc = mo_spawn(&s, &pid, &pidfd, e);
    if (rc == 0)
        (void)close(pidfd);
    return rc;
}

static void answer_box(struct helper *h, int sock)
{
    const char *const argv[] = {"mo-box", "--owner", h->owner, NULL};
    struct mo_err e;

    if (!may_start(h))
        (void)mo_fail(&e, MO_EBUSY, "too many boxes in a short time");
    else if (run_launcher(h, argv, sock, h->null, &e) == 0)
        return;
    refuse(sock, &e);
}

static void answer_sweep(struct helper *h, int sock)
{
    const char *const argv[] = {"mo-box",  "--owner", h->owner,
                                "--sweep", h->dir,    NULL};

    if (may_start(h))
        (void)run_launcher(h, argv, h->null, sock, NULL);
}

/* --- in the helper: its life ---------------------------------------------- */

static void answer(struct helper *h, const struct ask *a, int sock)
{
    switch (a->what) {
    case ASK_BOX:
        answer_box(h, sock);
        break;
    case ASK_SWEEP:
        answer_sweep(h, sock);
        break;
    case ASK_FILE:
    case ASK_STAMP:
        answer_file(h, a, sock);
        break;
    default: /* not ours: the closed socket is the answer */
        break;
    }
}

/* A copy of the socket in another process does not keep the helper: without the
 * server it ends. */
static bool await_request(const struct helper *h)
{
    struct pollfd p[2] = {{.fd = h->sock, .events = POLLIN},
                          {.fd = h->server, .events = POLLIN}};

    while (poll(p, 2, -1) < 0)
        if (errno != EINTR)
            return false;
    return p[1].revents == 0;
}

static void run_helper(struct helper *h)
{
    while (await_request(h)) {
        struct ask a[2]; /* a longer packet is not ours */
        mo_autofd int sock = -1;
        ssize_t n = receive_fd(h->sock, a, sizeof(a), &sock);

        if (n == 0 ||
            (n < 0 && errno != ENOBUFS && errno != ENOMEM && errno != EMFILE))
            return;
        if (n == (ssize_t)sizeof(*a) && sock >= 0)
            answer(h, a, sock);
    }
}

/* The terminal's and the service manager's signals are for the server; the
 * helper ends when the server's end of the socket is closed. */
static void leave_server(struct helper *h)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,
                                  SIGPIPE, SIGCHLD, SIGQUIT};
    int fds[] = {h->sock, h->launcher, h->null, h->server};

    (void)prctl(PR_SET_NAME, "mo-privileged");
    for (size_t i = 0; i < MO_COUNT(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
    for (int i = 0; i <= STDERR_FILENO; i++)
        (void)dup2(h->null, i);
    for (size_t i = 0; i < MO_COUNT(fds); i++) /* above those to be closed */
        fds[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 16);
    for (int i = 0; i < (int)MO_COUNT(fds); i++)
        if (fds[i] >= 0)
            (void)dup3(fds[i], 3 + i, O_CLOEXEC);
    h->sock = 3;
    h->launcher = h->launcher < 0 ? -1 : 4;
    h->null = 5;
    h->server = 6;
    closefrom(7);
    if (setgroups(0, NULL) < 0)
        _exit(1);
}

static int helper_init(struct helper *h, const struct mo_privileged_opts *o,
                       struct mo_err *e)
{
    *h = (struct helper){.sock = -1, .launcher = -1};
    h->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    h->server = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (h->null < 0 || h->server < 0)
        return mo_fail_sys(e, "privileged helper");
    (void)snprintf(h->owner, sizeof(h->owner), "%u:%u", (unsigned)o->uid,
                   (unsigned)o->gid);
    (void)snprintf(h->dir, sizeof(h->dir), "%s", o->dir);
    for (size_t i = 0; i < MO_PRIVILEGED_FILES; i++)
        if (o->files[i])
            (void)snprintf(h->files[i], sizeof(h->files[i]), "%s", o->files[i]);
    return o->launcher.n
               ? mo_keeper_seal(o->launcher, "mo-box", &h->launcher, e)
               : 0;
}

static void helper_close(struct helper *h)
{
    mo_close_fd(&h->null);
    mo_close_fd(&h->server);
    mo_close_fd(&h->launcher);
    mo_close_fd(&h->sock);
    mo_free(h);
}

int mo_privileged_start(const struct mo_privileged_opts *o, int *fd, pid_t *pid,
                        struct mo_err *e)
{
    struct helper *h = mo_new(struct helper);
    int pair[2] = {-1, -1}, rc;

    if (!h)
        return mo_fail(e, MO_ENOMEM, "privileged helper");
    rc = helper_init(h, o, e);
    if (rc == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        rc = mo_fail_sys(e, "privileged helper");
    if (rc == 0) {
        h->sock = pair[1];
        *pid = fork();
        if (*pid == 0) {
            leave_server(h);
            run_helper(h);
            _exit(0);
        }
        if (*pid < 0)
            rc = mo_fail_sys(e, "privileged helper");
    }
    if (rc == 0)
        *fd = pair[0];
    else
        mo_close_fd(&pair[0]);
    helper_close(h);
    return rc;
}

/* --- in the server -------------------------------------------------------- */

bool mo_privileged_is(int fd)
{
    int type = 0;
    socklen_t n = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 &&
           type == SOCK_SEQPACKET;
}

bool mo_privileged_alive(int fd, pid_t pid)
{
    struct pollfd p = {.fd = fd};

    if (poll(&p, 1, 0) == 0)
        return true;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return false;
}

static int has_ended(struct mo_err *e)
{
    return mo_fail(e, MO_EUNAVAIL,
                   "the privileged helper of this server has ended; restart "
                   "the server");
}

static int ask(int fd, struct ask a, int theirs, struct mo_err *e)
{
    return send_fd(fd, &a, sizeof(a), theirs, 0) < 0 ? has_ended(e) : 0;
}

int mo_privileged_box(int fd, int theirs, struct mo_err *e)
{
    return ask(fd, (struct ask){.what = ASK_BOX}, theirs, e);
}

/* Sends the request with a new socket; returns the other end of it. */
static int ask_apart(int fd, struct ask a, int type, struct mo_err *e)
{
    mo_autofd int ours = -1, theirs = -1;
    int pair[2];

    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) < 0)
        return mo_fail_sys(e, "socket");
    ours = pair[0];
    theirs = pair[1];
    if (ask(fd, a, theirs, e) < 0)
        return e ? e->code : MO_EUNAVAIL;
    return mo_take_fd(&ours);
}

static bool can_read(int sock)
{
    struct pollfd p = {.fd = sock, .events = POLLIN};

    return poll(&p, 1, ANSWER_MS) > 0;
}

/* mo-box prints a number if it has swept. */
int mo_privileged_sweep(int fd, struct mo_err *e)
{
    mo_autofd int sock =
        ask_apart(fd, (struct ask){.what = ASK_SWEEP}, SOCK_STREAM, e);
    char text[16];

    if (sock < 0)
        return sock;
    if (!can_read(sock) || read(sock, text, sizeof(text)) <= 0)
        return mo_fail(e, MO_EIO, "what killed boxes left was not removed");
    return 0;
}

int mo_privileged_open(int fd, unsigned n, bool only_stamp,
                       struct mo_file_stamp *stamp, int *content,
                       struct mo_err *e)
{
    const struct ask a = {.what = only_stamp ? ASK_STAMP : ASK_FILE,
                          .file = (uint8_t)n};
    mo_autofd int sock = ask_apart(fd, a, SOCK_SEQPACKET, e);
    struct told t;

    *content = -1;
    *stamp = (struct mo_file_stamp){.there = false};
    if (sock < 0)
        return sock;
    if (!can_read(sock) ||
        receive_fd(sock, &t, sizeof(t), content) != (ssize_t)sizeof(t)) {
        mo_close_fd(content);
        return has_ended(e);
    }
    *stamp = t.stamp;
    if (t.err.code < 0 && e)
        *e = t.err;
    return t.err.code;
}
