/* Bytes and descriptors over a real socket, as a hostile peer may send them.
 * Input: pieces, each with a byte of length, a byte that is the number of
 * descriptors, and its bytes.
 *
 * Beyond not crashing: a frame has as many descriptors as it says, and none
 * stays open at the end. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/wire.h"

#define FDS_MAX (MO_BOXMSG_FDS_MAX + 2u) /* more than a frame may have */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void send_piece(int fd, struct mo_span bytes, unsigned nfds)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    } c = {.room = {0}};
    struct iovec v = {(void *)(uintptr_t)bytes.p, bytes.n};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};

    if (nfds) {
        struct cmsghdr *m;

        h.msg_control = &c;
        h.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
        m = CMSG_FIRSTHDR(&h);
        m->cmsg_level = SOL_SOCKET;
        m->cmsg_type = SCM_RIGHTS;
        m->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
        for (unsigned i = 0; i < nfds; i++)
            memcpy(CMSG_DATA(m) + i * sizeof(int), &fd, sizeof(fd));
    }
    (void)sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Reads everything that has come; false at a malformed frame. */
static bool read_frames(struct mo_wire *w)
{
    struct mo_boxmsg m;
    int rc = mo_wire_fill(w, NULL);

    while (rc == 0) {
        rc = mo_wire_next(w, &m, NULL);
        if (rc <= 0)
            break;
        if (m.fds > MO_BOXMSG_FDS_MAX ||
            mo_wire_take_fd(w, MO_BOXMSG_FDS_MAX) >= 0)
            abort();
        for (unsigned i = 0; i < m.fds; i++) {
            int fd = mo_wire_take_fd(w, i);

            if (fd < 0 || !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
                abort();
            mo_close_fd(&fd);
        }
        rc = 0;
    }
    return rc == 0;
}

static int lowest_free_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), was = fd;

    mo_close_fd(&fd);
    return was;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mo_span in = mo_span((const char *)data, size);
    int pair[2], before = lowest_free_fd();
    struct mo_wire w;
    bool good = true;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   pair) < 0)
        return 0;
    mo_wire_init(&w, pair[0]);
    while (good && in.n > 2) {
        struct mo_span head = mo_span_take(&in, 2);
        size_t n = (unsigned char)head.p[0];

        send_piece(pair[1], mo_span_take(&in, n ? n : in.n),
                   (unsigned char)head.p[1] % (FDS_MAX + 1));
        good = read_frames(&w);
    }
    mo_wire_fini(&w);
    mo_close_fd(&pair[1]);
    if (lowest_free_fd() != before)
        abort();
    return 0;
}
