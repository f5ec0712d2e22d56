/* box_client - starts a native box and lives with it, for tests.
 *
 *   box_client run MO_BOX DIR [key=value...] -- CMD [ARG...]
 *   box_client run fd:N DIR ...   on a socket that mo-box has already
 *   box_client attach|describe|kill|freeze|thaw|stats|close-in DIR ID
 *   box_client restart DIR ID -- CMD [ARG...]
 *
 * run and restart pass stdin, stdout and stderr on until the program ends,
 * then print "END {json}" as the last line of stderr and exit with the
 * program's code (oom 70, killed 71, refused 72, stopped 73). Keys: every
 * number of struct mo_boxreq, id, session, root, view, mount, files,
 * by_fd=FILE, env=K=V, and detach=1   print the box's id and leave it running
 *   keep=1     do not remove the box when its program has ended
 *   time=1     print the microseconds from spawn to the answer, to the first
 *              byte of stdout, and to the end
 * attach does the same with a box that lives. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "launcher/wire.h"

#define BUF ((size_t)64 * 1024)

static const char *const end_names[] = {"stopped", "exited", "oom", "killed"};
static const int end_codes[] = {73, 0, 70, 71};

struct client {
    struct mo_wire wire;
    struct mo_boxmsg req;
    const char *mo_box;
    char id[MO_BOXREQ_ID_MAX + 1];
    int program;
    bool detach, keep, time;
    size_t nenv, nviews, nmounts;
    uint64_t began, answered, first;
    int std[3];
    struct mo_boxend end;
    bool ended, gone;
};

static void die(const char *what)
{
    fprintf(stderr, "box_client: %s: %s\n", what, strerror(errno));
    exit(99);
}

/* --- the request --------------------------------------------------------- */

#define NUMBER(name)                                                           \
    {                                                                          \
#        name, offsetof(struct mo_boxreq, name)                                \
    }

static const struct {
    const char *name;
    size_t at;
} numbers[] = {
    NUMBER(expires),    NUMBER(linger_ms),
    NUMBER(memory),     NUMBER(cpu_milli),
    NUMBER(pids),       NUMBER(workspace),
    NUMBER(tmp),        NUMBER(workspace_inodes),
    NUMBER(tmp_inodes), NUMBER(file_size),
    NUMBER(open_files),
};

static const char *const env_default[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/workspace",
    "LANG=C.UTF-8"};

static void defaults(struct client *c, const char *dir)
{
    struct mo_boxreq *r = &c->req.u.req;

    *r = (struct mo_boxreq){
        .dir = dir,
        .session = "s1",
        .instance = "test",
        .store = "test",
        .policy = "none",
        .root = "",
        .expires = 4000000000,
        .linger_ms = 60000,
        .memory = (uint64_t)256 << 20,
        .cpu_milli = 2000,
        .pids = 64,
        .workspace = (uint64_t)64 << 20,
        .workspace_inodes = 16384,
        .tmp = (uint64_t)16 << 20,
        .tmp_inodes = 4096,
        .file_size = (uint64_t)64 << 20,
        .open_files = 256,
    };
    for (size_t i = 0; i < MO_COUNT(env_default); i++)
        r->env[c->nenv++] = env_default[i];
    mo_random_token(c->id, 12);
    for (char *p = c->id; *p; p++)
        *p = (char)((*p | 0x20) == '_' || *p == '-' || *p == '_' ? 'x'
                                                                 : *p | 0x20);
    r->id = c->id;
}

/* The file as sealed memory, the way the orchestrator gives the toolbox. */
static int sealed(const char *file)
{
    static char bytes[8 << 20];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    int mem = memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ssize_t n = read(fd, bytes, sizeof(bytes));

    if (n <= 0 || write(mem, bytes, (size_t)n) != n || fchmod(mem, 0555) < 0 ||
        fcntl(mem, F_ADD_SEALS,
              F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        die(file);
    close(fd);
    return mem;
}

static void option(struct client *c, char *arg)
{
    struct mo_boxreq *r = &c->req.u.req;
    char *value = strchr(arg, '=');

    if (!value)
        die(arg);
    *value++ = '\0';
    for (size_t i = 0; i < MO_COUNT(numbers); i++)
        if (strcmp(arg, numbers[i].name) == 0)
            *(uint64_t *)(void *)((char *)r + numbers[i].at) =
                strtoull(value, NULL, 10);
    if (strcmp(arg, "id") == 0)
        snprintf(c->id, sizeof(c->id), "%s", value);
    if (strcmp(arg, "session") == 0)
        r->session = value;
    if (strcmp(arg, "root") == 0)
        r->root = value;
    if (strcmp(arg, "ports") == 0)
        r->ports = value;
    if (strcmp(arg, "files") == 0)
        r->files = value;
    if (strcmp(arg, "view") == 0 && c->nviews < MO_BOXREQ_VIEWS)
        r->views[c->nviews++] = value;
    if (strcmp(arg, "mount") == 0 && c->nmounts < MO_MOUNTS_MAX)
        r->mounts[c->nmounts++] = value;
    if (strcmp(arg, "env") == 0 && c->nenv < MO_BOXREQ_WORDS)
        r->env[c->nenv++] = value;
    if (strcmp(arg, "by_fd") == 0) {
        r->by_fd = 1;
        c->program = sealed(value);
    }
    c->detach |= strcmp(arg, "detach") == 0;
    c->keep |= strcmp(arg, "keep") == 0;
    c->time |= strcmp(arg, "time") == 0;
}

static void command(struct client *c, char **argv)
{
    size_t n = 0;

    for (; argv[n] && n < MO_BOXREQ_WORDS; n++)
        c->req.u.req.argv[n] = argv[n];
}

static char **options(struct client *c, char **argv)
{
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        option(c, *argv);
    return *argv ? argv + 1 : argv;
}

/* --- the keeper ---------------------------------------------------------- */

/* Spawned as the orchestrator does: no environment, one descriptor. */
static int spawn_keeper(const char *file)
{
    static char name[] = "mo-box";
    char *argv[] = {name, NULL}, *env[] = {NULL};
    posix_spawn_file_actions_t fa;
    int pair[2], status;
    pid_t pid;

    if (strncmp(file, "fd:", 3) == 0)
        return (int)strtol(file + 3, NULL, 10);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        die("socketpair");
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, pair[1], 0);
    if (posix_spawn(&pid, file, &fa, NULL, argv, env) != 0)
        die(file);
    posix_spawn_file_actions_destroy(&fa);
    close(pair[1]);
    if (waitpid(pid, &status, 0) < 0)
        die("waitpid");
    return pair[0];
}

static int connect_keeper(const char *dir, const char *id)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s.sock", at,
             id);
    if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
        die(id);
    close(at);
    return fd;
}

static void send_msg(struct client *c, const struct mo_boxmsg *m)
{
    struct mo_err e;

    if (mo_wire_send(c->wire.fd, m, &c->program, &e) < 0) {
        fprintf(stderr, "box_client: %s\n", e.msg);
        exit(98);
    }
}

static void send_plain(struct client *c, enum mo_boxmsg_type t)
{
    send_msg(c, &(struct mo_boxmsg){.type = t});
}

static void print_desc(const struct mo_boxdesc *d)
{
    printf("{\"id\":\"%s\",\"session\":\"%s\",\"instance\":\"%s\","
           "\"state\":%d,\"pid\":%d,\"uid\":%d,\"starts\":%d,"
           "\"landlock\":%d,\"attached\":%d,\"expires\":%llu}\n",
           d->id, d->session, d->instance, (int)d->state, (int)d->pid,
           (int)d->uid, (int)d->starts, (int)d->landlock, (int)d->attached,
           (unsigned long long)d->expires);
    fflush(stdout);
}

static void refused(const struct mo_boxrefused *r)
{
    fprintf(stderr, "REFUSED %s: %s\n", mo_err_name(-(int)r->code), r->msg);
    exit(72);
}

/* One frame; exits when the keeper refuses or is gone. */
static void receive(struct client *c, struct mo_boxmsg *m)
{
    struct mo_err e;
    int rc = mo_wire_next(&c->wire, m, &e);

    while (rc == 0) {
        rc = mo_wire_fill(&c->wire, &e);
        if (rc == 0)
            rc = mo_wire_next(&c->wire, m, &e);
    }
    if (rc < 0) {
        fprintf(stderr, "box_client: %s\n", e.msg);
        exit(97);
    }
    if (m->type == MO_BOXMSG_REFUSED)
        refused(&m->u.refused);
}

/* --- passing bytes on ---------------------------------------------------- */

/* false at the end of file. */
static bool pass(int from, int to)
{
    static char buf[BUF];
    ssize_t n = read(from, buf, sizeof(buf)), at = 0;

    if (n <= 0)
        return n < 0 && errno == EINTR;
    while (at < n) {
        ssize_t w = write(to, buf + at, (size_t)(n - at));

        if (w < 0)
            return errno == EINTR;
        at += w;
    }
    return true;
}

static void on_frame(struct client *c)
{
    struct mo_boxmsg m;
    struct mo_err e;
    int rc = mo_wire_fill(&c->wire, &e);

    if (rc < 0)
        c->gone = true;
    while (rc == 0 && mo_wire_next(&c->wire, &m, &e) == 1) {
        if (m.type == MO_BOXMSG_TAKEN) {
            fprintf(stderr, "TAKEN\n");
            exit(74);
        }
        if (m.type == MO_BOXMSG_ENDED) {
            c->end = m.u.end;
            c->ended = true;
        }
    }
}

static void close_stdin(struct client *c)
{
    mo_close_fd(&c->std[0]);
    if (!c->ended && !c->gone)
        mo_wire_send(c->wire.fd,
                     &(struct mo_boxmsg){.type = MO_BOXMSG_CLOSE_IN}, NULL,
                     NULL);
}

static void live(struct client *c)
{
    bool in = c->std[0] >= 0;

    while ((!c->ended && !c->gone) || c->std[1] >= 0 || c->std[2] >= 0) {
        struct pollfd p[4] = {
            {.fd = c->ended || c->gone ? -1 : c->wire.fd, .events = POLLIN},
            {.fd = c->std[1], .events = POLLIN},
            {.fd = c->std[2], .events = POLLIN},
            {.fd = in && !c->ended ? 0 : -1, .events = POLLIN}};

        if (poll(p, 4, -1) < 0)
            continue;
        if (p[1].revents && !c->first)
            c->first = mo_now_ns();
        if (p[1].revents && !pass(c->std[1], 1))
            mo_close_fd(&c->std[1]);
        if (p[2].revents && !pass(c->std[2], 2))
            mo_close_fd(&c->std[2]);
        if (p[3].revents && !pass(0, c->std[0])) {
            in = false;
            close_stdin(c);
        }
        if (p[0].revents)
            on_frame(c);
    }
}

static int us(const struct client *c, uint64_t at)
{
    return at ? (int)((at - c->began) / 1000) : -1;
}

static void await_end(struct client *c)
{
    while (!c->gone)
        on_frame(c);
}

static int conclude(struct client *c)
{
    struct mo_boxend end = c->end;
    uint64_t ended = mo_now_ns();

    if (!c->ended)
        end = (struct mo_boxend){.cause = MO_BOXEND_KILLED};
    if (c->ended && end.kept && !c->keep) {
        send_plain(c, MO_BOXMSG_KILL);
        await_end(c);
    }
    if (c->time)
        fprintf(stderr, "TIME answered=%d first=%d ended=%d removed=%d\n",
                us(c, c->answered), us(c, c->first), us(c, ended),
                us(c, mo_now_ns()));
    fprintf(stderr,
            "END {\"cause\":\"%s\",\"code\":%d,\"signal\":%d,\"kept\":%d,"
            "\"id\":\"%s\"}\n",
            c->ended ? end_names[end.cause] : "keeper gone", (int)end.code,
            (int)end.signal, (int)end.kept, c->id);
    if (c->ended && end.cause == MO_BOXEND_EXITED)
        return (int)end.code;
    return c->ended ? end_codes[end.cause] : 75;
}

/* Wait for the description with the pipes, then pass bytes until the end. */
static int take_over(struct client *c)
{
    struct mo_boxmsg m;

    receive(c, &m);
    c->answered = mo_now_ns();
    snprintf(c->id, sizeof(c->id), "%s", m.u.desc.id);
    for (unsigned i = 0; i < 3; i++)
        c->std[i] = mo_wire_take_fd(&c->wire, i);
    if (c->detach) {
        print_desc(&m.u.desc);
        return 0;
    }
    live(c);
    return conclude(c);
}

/* --- commands ------------------------------------------------------------ */

static int cmd_run(struct client *c, char **argv)
{
    defaults(c, argv[1]);
    c->req.type = MO_BOXMSG_START;
    command(c, options(c, argv + 2));
    c->req.fds = (unsigned)c->req.u.req.by_fd;
    c->began = mo_now_ns();
    mo_wire_init(&c->wire, spawn_keeper(argv[0]));
    send_msg(c, &c->req);
    return take_over(c);
}

static int cmd_restart(struct client *c, char **argv)
{
    defaults(c, argv[0]);
    c->req.type = MO_BOXMSG_RESTART;
    mo_wire_init(&c->wire, connect_keeper(argv[0], argv[1]));
    snprintf(c->id, sizeof(c->id), "%s", argv[1]);
    command(c, options(c, argv + 2));
    c->req.fds = (unsigned)c->req.u.req.by_fd;
    c->began = mo_now_ns();
    send_msg(c, &c->req);
    return take_over(c);
}

static int cmd_attach(struct client *c, char **argv)
{
    mo_wire_init(&c->wire, connect_keeper(argv[0], argv[1]));
    options(c, argv + 2);
    send_plain(c, MO_BOXMSG_ATTACH);
    return take_over(c);
}

static int cmd_label(struct client *c, char **argv)
{
    struct mo_boxmsg m = {.type = MO_BOXMSG_LABEL};

    mo_wire_init(&c->wire, connect_keeper(argv[0], argv[1]));
    m.u.label = (struct mo_boxlabel){
        .session = argv[2] ? argv[2] : "",
        .instance = "test",
        .expires = 4000000000,
        .linger_ms = argv[2] && argv[3] ? strtoull(argv[3], NULL, 10) : 60000,
    };
    send_msg(c, &m);
    receive(c, &m);
    print_desc(&m.u.desc);
    return 0;
}

static int ask(struct client *c, char **argv, enum mo_boxmsg_type t)
{
    const struct mo_boxstats *s;
    struct mo_boxmsg m;

    mo_wire_init(&c->wire, connect_keeper(argv[0], argv[1]));
    send_plain(c, t);
    receive(c, &m);
    s = &m.u.stats;
    if (m.type == MO_BOXMSG_DESC)
        print_desc(&m.u.desc);
    else if (m.type == MO_BOXMSG_STATS_ARE)
        printf("{\"memory\":%llu,\"peak\":%llu,\"cpu_us\":%llu,"
               "\"pids\":%llu,\"oom_kills\":%llu}\n",
               (unsigned long long)s->memory,
               (unsigned long long)s->memory_peak,
               (unsigned long long)s->cpu_us, (unsigned long long)s->pids,
               (unsigned long long)s->oom_kills);
    else if (m.type == MO_BOXMSG_ENDED)
        printf("{\"cause\":\"%s\"}\n", end_names[m.u.end.cause]);
    return 0;
}

static const struct {
    const char *name;
    enum mo_boxmsg_type type;
} asks[] = {
    {"describe", MO_BOXMSG_DESCRIBE}, {"kill", MO_BOXMSG_KILL},
    {"freeze", MO_BOXMSG_FREEZE},     {"thaw", MO_BOXMSG_THAW},
    {"stats", MO_BOXMSG_STATS},       {"close-in", MO_BOXMSG_CLOSE_IN},
};

static int run(struct client *c, int argc, char **argv)
{
    if (argc >= 4 && strcmp(argv[1], "run") == 0)
        return cmd_run(c, argv + 2);
    if (argc >= 4 && strcmp(argv[1], "restart") == 0)
        return cmd_restart(c, argv + 2);
    if (argc >= 4 && strcmp(argv[1], "attach") == 0)
        return cmd_attach(c, argv + 2);
    if (argc >= 4 && strcmp(argv[1], "label") == 0)
        return cmd_label(c, argv + 2);
    for (size_t i = 0; argc == 4 && i < MO_COUNT(asks); i++)
        if (strcmp(argv[1], asks[i].name) == 0)
            return ask(c, argv + 2, asks[i].type);
    fprintf(stderr, "box_client: see the head of tests/it/box_client.c\n");
    return 2;
}

int main(int argc, char **argv)
{
    static struct client c = {.program = -1, .std = {-1, -1, -1}};
    int rc;

    signal(SIGPIPE, SIG_IGN);
    c.wire.fd = -1;
    rc = run(&c, argc, argv);
    for (int i = 0; i < 3; i++)
        mo_close_fd(&c.std[i]);
    mo_wire_fini(&c.wire);
    mo_close_fd(&c.program);
    return rc;
}
