/* privileged_client - a server that gave up root and was then taken over.
 *
 *   privileged_client MO_BOX DIR UID FILE ATTACK [ARG...]
 *
 * Starts the privileged helper as root, with the file as the only one of its
 * list, becomes UID and does one of these:
 *
 *   file N          ask for the N-th file; print its content or the refusal
 *   box CLIENT ARG...   run box_client with a socket that mo-box has:
 *                   CLIENT run fd:N ARG...
 *   sweep           ask for a sweep
 *   forge           send packets that are no requests
 *   odd             requests with descriptors of other kinds
 *   many            one request with many descriptors
 *   flood N         N requests for a box, never a word to mo-box
 *
 * Prints "helper PID" first. After an attack it asks for file 0 and prints
 * "alive", waits for the end of its input and exits. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "box/keeper.h"
#include "box/privileged_helper.h"
#include "loop/rights.h"

#define MANY 200
#define BOX  1 /* the first byte of that request */

static void die(const char *what)
{
    fprintf(stderr, "privileged_client: %s: %s\n", what, strerror(errno));
    exit(99);
}

static void die_of(const struct mo_err *e)
{
    fprintf(stderr, "privileged_client: %s\n", e->msg);
    exit(98);
}

/* Any bytes with any descriptors, as a packet. */
static int send_raw(int fd, const void *p, size_t n, const int *fds,
                    size_t nfds)
{
    static char room[CMSG_SPACE(sizeof(int) * MANY)];
    struct iovec v = {(void *)(uintptr_t)p, n};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
    struct cmsghdr *m;

    if (nfds) {
        h.msg_control = room;
        h.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
        m = CMSG_FIRSTHDR(&h);
        m->cmsg_level = SOL_SOCKET;
        m->cmsg_type = SCM_RIGHTS;
        m->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
        memcpy(CMSG_DATA(m), fds, sizeof(int) * nfds);
    }
    return sendmsg(fd, &h, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static int print_file(int helper, unsigned n)
{
    struct mo_file_stamp stamp;
    struct mo_err e = {0};
    char text[4096];
    int content;
    ssize_t got;

    if (mo_privileged_open(helper, n, false, &stamp, &content, &e) < 0) {
        printf("refused %s: %s\n", mo_err_name(e.code), e.msg);
        return 1;
    }
    got = pread(content, text, sizeof(text), 0);
    printf("%.*s\n", got < 0 ? 0 : (int)got, text);
    if (pwrite(content, "x", 1, 0) == 1)
        printf("written\n");
    close(content);
    return 0;
}

static int run_client(int helper, char **argv)
{
    char *args[64], name[32];
    struct mo_err e;
    int pair[2], n = 0;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        die("socketpair");
    if (mo_privileged_box(helper, pair[1], &e) < 0)
        die_of(&e);
    close(pair[1]);
    snprintf(name, sizeof(name), "fd:%d", pair[0]);
    args[n++] = argv[0];
    args[n++] = (char[]){"run"};
    args[n++] = name;
    for (int i = 1; argv[i] && n < 63; i++)
        args[n++] = argv[i];
    args[n] = NULL;
    fflush(stdout);
    execv(args[0], args);
    die(args[0]);
    return 1;
}

static void forge(int helper)
{
    static const char big[5000];
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        die("socketpair");
    for (unsigned what = 0; what < 256; what++) {
        unsigned char ask[2] = {(unsigned char)what, (unsigned char)~what};

        if (what != BOX && what != BOX + 1)
            send_raw(helper, ask, 2, &pair[1], 1);
        send_raw(helper, ask, 2, NULL, 0);
        send_raw(helper, ask, 1, &pair[1], 1);
    }
    for (size_t n = 3; n < sizeof(big); n += 97)
        send_raw(helper, big, n, &pair[1], 1);
    close(pair[0]);
    close(pair[1]);
}

static void odd(int helper)
{
    static const unsigned char ask[2] = {BOX};
    int pipes[2];
    int fds[6] = {open("/dev/null", O_RDWR | O_CLOEXEC),
                  open("/etc/passwd", O_RDONLY | O_CLOEXEC),
                  open("/", O_PATH | O_CLOEXEC),
                  socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                  socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
                  helper};

    if (pipe2(pipes, O_CLOEXEC) < 0)
        die("pipe");
    for (unsigned char what = 1; what < 5; what++)
        for (size_t i = 0; i < MO_COUNT(fds); i++)
            send_raw(helper, (unsigned char[2]){what}, 2, &fds[i], 1);
    send_raw(helper, ask, 2, &pipes[0], 1);
    send_raw(helper, ask, 2, &pipes[1], 1);
}

static void many(int helper)
{
    static const unsigned char ask[2] = {3, 200}; /* a file it has not */
    int fds[MANY];

    for (int i = 0; i < MANY; i++)
        fds[i] = dup(STDERR_FILENO);
    for (int i = 0; i < 50; i++)
        send_raw(helper, ask, 2, fds, MANY);
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
}

/* The sockets stay open, so that each mo-box waits for its request. */
static void flood(int helper, unsigned n)
{
    unsigned busy = 0, open_now = 0;
    int *socks = mo_zalloc(n * sizeof(int));
    struct mo_err e;

    for (unsigned i = 0; i < n; i++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            die("socketpair");
        if (mo_privileged_box(helper, pair[1], &e) < 0)
            die_of(&e);
        close(pair[1]);
        socks[i] = pair[0];
    }
    print_file(helper, 0); /* after this all were answered */
    for (unsigned i = 0; i < n; i++) {
        struct pollfd p = {.fd = socks[i], .events = POLLIN};
        struct mo_keeper_answer a;

        if (poll(&p, 1, 0) == 0)
            open_now++;
        else if (mo_keeper_receive(socks[i], &a, &e) == MO_EBUSY)
            busy++;
    }
    printf("started %u busy %u\n", open_now, busy);
    for (unsigned i = 0; i < n; i++)
        close(socks[i]);
    mo_free(socks);
}

static int attack(int helper, char **argv)
{
    const char *what = argv[0];
    struct mo_err e = {0};

    if (strcmp(what, "file") == 0)
        return print_file(helper, (unsigned)strtoul(argv[1], NULL, 10));
    if (strcmp(what, "box") == 0)
        return run_client(helper, argv + 1);
    if (strcmp(what, "sweep") == 0)
        printf("sweep %d %s\n", mo_privileged_sweep(helper, &e), e.msg);
    if (strcmp(what, "forge") == 0)
        forge(helper);
    if (strcmp(what, "odd") == 0)
        odd(helper);
    if (strcmp(what, "many") == 0)
        many(helper);
    if (strcmp(what, "flood") == 0)
        flood(helper, (unsigned)strtoul(argv[1], NULL, 10));
    if (print_file(helper, 0) == 0)
        printf("alive\n");
    fflush(stdout);
    while (read(STDIN_FILENO, (char[16]){0}, 16) > 0)
        continue;
    return 0;
}

int main(int argc, char **argv)
{
    mo_autobuf struct mo_buf launcher = {.max = (size_t)8 << 20};
    struct mo_privileged_opts o = {0};
    int helper = -1;
    struct mo_err e;
    pid_t pid;

    if (argc < 6)
        return 2;
    if (mo_file_read(argv[1], launcher.max, &launcher, NULL, &e) < 0)
        die_of(&e);
    o.launcher = mo_buf_view(&launcher);
    o.dir = argv[2];
    o.uid = (uid_t)strtoul(argv[3], NULL, 10);
    o.gid = (gid_t)o.uid;
    o.files[0] = argv[4];
    if (mo_privileged_start(&o, &helper, &pid, &e) < 0 ||
        mo_rights_become(o.uid, o.gid, NULL, 0, false, &e) < 0)
        die_of(&e);
    printf("helper %d\n", (int)pid);
    return attack(helper, argv + 5);
}
