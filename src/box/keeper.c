/* keeper.c - see keeper.h. */
#include "box/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "box/privileged_helper.h"
#include "loop/spawn.h"

#define SELF_FD_MAX 64

union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int) * MO_BOXMSG_FDS_MAX)];
};

/* --- programs in memory -------------------------------------------------- */

int mo_keeper_seal(struct mo_span program, const char *name, int *fd,
                   struct mo_err *e)
{
    const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    mo_autofd int mem = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (mem < 0)
        return mo_fail_sys(e, "%s: memory", name);
    if (mo_file_write_all(mem, program, e) < 0)
        return mo_wrap(e, "%s: memory", name);
    if (fchmod(mem, 0555) < 0 || fcntl(mem, F_ADD_SEALS, seals) < 0)
        return mo_fail_sys(e, "%s: seal", name);
    *fd = mo_take_fd(&mem);
    return 0;
}

/* We are not dumpable: a child cannot open files of our /proc entry, but it can
 * open those of its own. */
static int run_launcher(int launcher, const char *const *argv, const int fds[3],
                        struct mo_err *e)
{
    char file[SELF_FD_MAX];
    struct mo_spawn s = {
        .file = file, .argv = argv, .keep = launcher, .outlive = true};
    mo_autofd int pidfd = -1;
    siginfo_t si = {0};
    pid_t pid;
    int rc;

    memcpy(s.fds, fds, sizeof(s.fds));
    (void)snprintf(file, sizeof(file), "/proc/self/fd/%d", launcher);
    rc = mo_spawn(&s, &pid, &pidfd, e);
    if (rc < 0)
        return mo_wrap(e, "mo-box");
    while (waitid(P_PIDFD, (id_t)pidfd, &si, WEXITED) < 0)
        if (errno != EINTR)
            return mo_fail_sys(e, "mo-box");
    if (si.si_code != CLD_EXITED || si.si_status != 0)
        return mo_fail(e, MO_EIO, "mo-box ended with %d", si.si_status);
    return 0;
}

/* mo-box detaches at once, so the wait is short. */
int mo_keeper_spawn(int launcher, int *sock, struct mo_err *e)
{
    static const char *const argv[] = {"mo-box", NULL};
    mo_autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    mo_autofd int ours = -1, theirs = -1;
    int pair[2], rc;

    if (null < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return mo_fail_sys(e, "mo-box: socket");
    ours = pair[0];
    theirs = pair[1];
    rc = mo_privileged_is(launcher)
             ? mo_privileged_box(launcher, theirs, e)
             : run_launcher(launcher, argv, (const int[3]){theirs, null, null},
                            e);
    if (rc == 0)
        *sock = mo_take_fd(&ours);
    return rc;
}

int mo_keeper_sweep(int launcher, const char *dir, struct mo_err *e)
{
    const char *const argv[] = {"mo-box", "--sweep", dir, NULL};
    mo_autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (mo_privileged_is(launcher))
        return mo_privileged_sweep(launcher, e);
    if (null < 0)
        return mo_fail_sys(e, "/dev/null");
    return run_launcher(launcher, argv, (const int[3]){null, null, null}, e);
}

/* --- frames -------------------------------------------------------------- */

int mo_keeper_connect(const char *dir, const char *id, int *sock,
                      struct mo_err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    mo_autofd int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    mo_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n, rc;

    if (at < 0 || fd < 0)
        return mo_fail_sys(e, "box %s", id);
    if (!mo_boxreq_id_ok(id))
        return mo_fail(e, MO_ENOTFOUND, "box: no such id");
    /* through /proc: a long path does not fit into an address */
    n = snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s.sock", at,
                 id);
    MO_BUG_ON(n < 0 || (size_t)n >= sizeof(a.sun_path));
    if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0) {
        rc = errno == ENOENT         ? MO_ENOTFOUND
             : errno == ECONNREFUSED ? MO_ECLOSED
                                     : MO_EIO;
        (void)mo_fail_sys(e, "box %s", id);
        if (e)
            e->code = rc;
        return rc;
    }
    *sock = mo_take_fd(&fd);
    return 0;
}

int mo_keeper_send(int sock, struct mo_span frame, int fd, struct mo_err *e)
{
    union control c;
    struct iovec v = {(void *)(uintptr_t)frame.p, frame.n};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
    struct cmsghdr *m;

    if (fd >= 0) {
        memset(&c, 0, sizeof(c));
        h.msg_control = &c;
        h.msg_controllen = CMSG_SPACE(sizeof(int));
        m = CMSG_FIRSTHDR(&h);
        m->cmsg_level = SOL_SOCKET;
        m->cmsg_type = SCM_RIGHTS;
        m->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(m), &fd, sizeof(fd));
    }
    if (sendmsg(sock, &h, MSG_NOSIGNAL) != (ssize_t)frame.n)
        return mo_fail_sys(e, "keeper: request");
    return 0;
}

static void keep_fds(struct mo_keeper_answer *a, struct msghdr *h)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        for (size_t i = 0; i < n && c->cmsg_type == SCM_RIGHTS; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (i < MO_BOXMSG_FDS_MAX && a->fds[i] < 0)
                a->fds[i] = fd;
            else
                close(fd);
        }
    }
}

/* At most `want` bytes: bytes behind the frame stay in the socket. */
static int take_bytes(int sock, struct mo_keeper_answer *a, size_t want,
                      uint64_t until, struct mo_err *e)
{
    union control c;
    struct iovec v;
    struct msghdr h = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &c,
                       .msg_controllen = sizeof(c)};
    struct pollfd p = {.fd = sock, .events = POLLIN};
    uint64_t now = mo_now_ns();
    ssize_t n;

    if (now >= until || poll(&p, 1, (int)((until - now) / MO_MS) + 1) == 0)
        return mo_fail(e, MO_ETIMEOUT, "keeper: no answer in %d s",
                       MO_KEEPER_ANSWER_MS / 1000);
    v = (struct iovec){mo_buf_room(&a->bytes, want), want};
    if (!v.iov_base)
        return mo_fail(e, MO_ENOMEM, "keeper: answer");
    n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n < 0)
        return mo_fail_sys(e, "keeper: answer");
    if (n == 0)
        return mo_fail(e, MO_ECLOSED, "the keeper has ended");
    keep_fds(a, &h);
    mo_buf_add(&a->bytes, (size_t)n);
    return 0;
}

int mo_keeper_receive(int sock, struct mo_keeper_answer *a, struct mo_err *e)
{
    uint64_t until = mo_now_ns() + MO_KEEPER_ANSWER_MS * MO_MS;
    size_t len = MO_BOXMSG_HEAD;
    struct mo_span in;
    int rc = 0;

    for (int i = 0; i < MO_BOXMSG_FDS_MAX; i++)
        a->fds[i] = -1;
    mo_buf_init(&a->bytes, MO_BOXMSG_HEAD + MO_BOXMSG_MAX);
    while (rc == 0 && a->bytes.len < len) {
        rc = take_bytes(sock, a, len - a->bytes.len, until, e);
        if (rc == 0 && a->bytes.len == MO_BOXMSG_HEAD)
            rc = mo_boxmsg_len(mo_buf_view(&a->bytes), &len, e);
    }
    if (rc == 0) {
        in = mo_buf_view(&a->bytes);
        rc = mo_boxmsg_next(&in, &a->m, e);
    }
    if (rc == 1 && a->m.type == MO_BOXMSG_REFUSED) {
        rc = mo_fail(e, -(int)a->m.u.refused.code, "%s", a->m.u.refused.msg);
        if (e)
            e->sys = (int)a->m.u.refused.sys;
    }
    if (rc < 0)
        mo_keeper_drop(a);
    return rc < 0 ? rc : 0;
}

void mo_keeper_drop(struct mo_keeper_answer *a)
{
    for (int i = 0; i < MO_BOXMSG_FDS_MAX; i++)
        mo_close_fd(&a->fds[i]);
    mo_buf_fini(&a->bytes);
}

int mo_keeper_ask(int sock, enum mo_boxmsg_type what,
                  struct mo_keeper_answer *a, struct mo_err *e)
{
    struct mo_boxmsg m = {.type = what};
    mo_autobuf struct mo_buf b = {.max = MO_BOXMSG_HEAD};
    int rc = mo_boxmsg_put(&b, &m, e);

    if (rc == 0)
        rc = mo_keeper_send(sock, mo_buf_view(&b), -1, e);
    return rc ? rc : mo_keeper_receive(sock, a, e);
}
