/* first.c - from exec to the first answer.
 *
 *   first IDLE_MS PATH PROGRAM [ARG...]
 *
 * Starts PROGRAM with every "@PORT@" in its arguments replaced by a free port
 * of 127.0.0.1, connects as soon as that works, asks for PATH and waits for
 * the 200. Then lets it rest for IDLE_MS, weighs its memory, kills it and
 * prints one line of JSON: wall time and the program's CPU time up to the
 * answer, memory at rest. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "meter.h"

#define ARGS_MAX    32
#define ARG_MAX_LEN 512
#define TRY_NS      100000 /* between two attempts to connect */
#define GIVE_UP_NS  ((uint64_t)20 * 1000000000u)
#define PORT_MARK   "@PORT@"

extern char **environ;

static struct sockaddr_in loopback(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* One that was free a moment ago; nobody else opens ports in a hurry. */
static unsigned free_port(void)
{
    mo_autofd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = loopback(0);
    socklen_t n = sizeof(a);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        meter_die("no free port: %s", strerror(errno));
    return ntohs(a.sin_port);
}

static void put_port(char out[ARG_MAX_LEN], const char *arg, unsigned port)
{
    const char *at = strstr(arg, PORT_MARK);
    int n;

    if (at)
        n = snprintf(out, ARG_MAX_LEN, "%.*s%u%s", (int)(at - arg), arg, port,
                     at + sizeof(PORT_MARK) - 1);
    else
        n = snprintf(out, ARG_MAX_LEN, "%s", arg);
    if (n < 0 || n >= ARG_MAX_LEN)
        meter_die("argument too long: %s", arg);
}

static pid_t start(char **argv, int argc, unsigned port)
{
    static char text[ARGS_MAX][ARG_MAX_LEN];
    char *args[ARGS_MAX + 1] = {NULL};
    posix_spawn_file_actions_t fa;
    pid_t pid;
    int rc;

    if (argc > ARGS_MAX)
        meter_die("more than %d arguments", ARGS_MAX);
    for (int i = 0; i < argc; i++) {
        put_port(text[i], argv[i], port);
        args[i] = text[i];
    }
    (void)posix_spawn_file_actions_init(&fa);
    (void)posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    rc = posix_spawnp(&pid, args[0], &fa, NULL, args, environ);
    (void)posix_spawn_file_actions_destroy(&fa);
    if (rc != 0)
        meter_die("%s: %s", args[0], strerror(rc));
    return pid;
}

/* fd of the connection, or -1 when nobody listens yet. */
static int try_connect(unsigned port)
{
    mo_autofd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = loopback(port);

    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        return -1;
    return mo_take_fd(&fd);
}

static bool answers(int fd, const char *path)
{
    char text[1024];
    int n = snprintf(text, sizeof(text),
                     "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path);
    ssize_t got;

    if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        return false;
    got = recv(fd, text, sizeof(text), 0);
    return got > 12 && memcmp(text, "HTTP/1.1 200", 12) == 0;
}

static void nap(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
                         .tv_nsec = (long)(ns % 1000000000u)};

    (void)nanosleep(&t, NULL);
}

/* NULL, or why there was no answer. */
static const char *await(pid_t pid, unsigned port, const char *path,
                         uint64_t until)
{
    for (;;) {
        mo_autofd int fd = try_connect(port);

        if (fd >= 0)
            return answers(fd, path) ? NULL : "the answer is not a 200";
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return "the program ended";
        if (meter_now_ns() > until)
            return "nobody listens";
        nap(TRY_NS);
    }
}

int main(int argc, char **argv)
{
    uint64_t t0, wall, cpu;
    struct meter_mem m;
    const char *wrong;
    unsigned idle_ms, port;
    pid_t pid;

    if (argc < 4)
        meter_die("usage: first IDLE_MS PATH PROGRAM [ARG...]");
    idle_ms = meter_arg(argv[1], "idle", 10000);
    port = free_port();
    t0 = meter_now_ns();
    pid = start(argv + 3, argc - 3, port);
    wrong = await(pid, port, argv[2], t0 + GIVE_UP_NS);
    if (wrong) {
        (void)kill(pid, SIGKILL);
        meter_die("%s: %s", argv[3], wrong);
    }
    wall = meter_now_ns() - t0;
    cpu = meter_cpu_ns(pid);
    nap((uint64_t)idle_ms * 1000000u);
    m = meter_mem(pid);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    printf("{\"wall_ns\":%llu,\"cpu_ns\":%llu,\"rss\":%llu,\"pss\":%llu}\n",
           (unsigned long long)wall, (unsigned long long)cpu,
           (unsigned long long)m.rss, (unsigned long long)m.pss);
    return 0;
}
