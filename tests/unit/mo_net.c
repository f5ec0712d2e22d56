/* mo_net.c - loops, recording streams, certificates: see mo_net.h. */
#include "mo_net.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct mo_loop *loop_new(void)
{
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);

    assert_non_null(l);
    return l;
}

unsigned fds_open(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

/* --- one side of a stream ------------------------------------------------ */

static void end_read(void *ctx, char *p, size_t n)
{
    struct end *me = ctx;

    assert_int_equal(me->closes, 0);
    me->reads++;
    (void)mo_buf_put(&me->got, p, n);
    memset(p, 'x', n); /* the bytes are ours until we return */
    if (me->saw)
        me->saw(me);
}

static void end_eof(void *ctx)
{
    struct end *me = ctx;

    assert_false(me->eof);
    me->eof = true;
}

static void end_drain(void *ctx)
{
    ((struct end *)ctx)->drains++;
}

static void end_close(void *ctx, const struct mo_err *why)
{
    struct end *me = ctx;

    me->closes++;
    me->s = NULL;
    if (why)
        me->why = *why;
}

static const struct mo_stream_cb end_cb = {end_read, end_eof, end_drain,
                                           end_close};

void end_init(struct end *me)
{
    *me = (struct end){.s = NULL};
    mo_buf_init(&me->got, GOT_MAX);
}

void end_attach(struct end *me, struct mo_stream *s)
{
    me->s = s;
    mo_stream_attach(s, &end_cb, me);
}

bool end_closed(void *ctx)
{
    return ((struct end *)ctx)->closes > 0;
}

bool end_at_eof(void *ctx)
{
    return ((struct end *)ctx)->eof;
}

void stream_pair(struct mo_loop *l, struct mo_stream *out[2])
{
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mo_stream_from_fds(l, fd[i], fd[i], &out[i], NULL), 0);
}

/* --- other programs, scratch files --------------------------------------- */

pid_t run_argv(char *const argv[], int in, int out)
{
    posix_spawn_file_actions_t fa;
    pid_t pid;

    assert_int_equal(posix_spawn_file_actions_init(&fa), 0);
    (void)posix_spawn_file_actions_adddup2(&fa, in, 0);
    (void)posix_spawn_file_actions_adddup2(&fa, out, 1);
    (void)posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    assert_int_equal(posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ), 0);
    (void)posix_spawn_file_actions_destroy(&fa);
    return pid;
}

void split_words(char *line, char **argv, size_t max)
{
    size_t n = 0;

    for (char *p = line; *p && n + 1 < max; p++) {
        if (*p == ' ')
            *p = '\0';
        else if (p == line || p[-1] == '\0')
            argv[n++] = p;
    }
    argv[n] = NULL;
}

void run_words(const char *fmt, ...)
{
    char line[1024], *argv[48];
    va_list ap;
    int st, nul = open("/dev/null", O_RDWR | O_CLOEXEC);

    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    split_words(line, argv, MO_COUNT(argv));
    assert_true(waitpid(run_argv(argv, nul, nul), &st, 0) > 0);
    (void)close(nul);
    assert_int_equal(st, 0);
}

void certs_make(struct certs *c)
{
    static const struct {
        size_t at;
        const char *name;
    } names[] = {
        {offsetof(struct certs, cert), "cert.pem"},
        {offsetof(struct certs, key), "key.pem"},
        {offsetof(struct certs, other_cert), "other-cert.pem"},
        {offsetof(struct certs, other_key), "other-key.pem"},
        {offsetof(struct certs, locked_key), "locked-key.pem"},
        {offsetof(struct certs, junk), "junk.pem"},
        {offsetof(struct certs, none), "none.pem"},
    };
    char dir[] = "/tmp/mo-test-XXXXXX";
    int fd;

    assert_non_null(mkdtemp(dir));
    (void)snprintf(c->dir, sizeof(c->dir), "%s", dir);
    for (size_t i = 0; i < MO_COUNT(names); i++)
        (void)snprintf((char *)c + names[i].at, PATH_LEN, "%s/%s", dir,
                       names[i].name);
    run_words("openssl req -x509 -newkey ec -pkeyopt "
              "ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost "
              "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 "
              "-keyout %s -out %s",
              c->key, c->cert);
    run_words("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "
              "/CN=other.test -addext subjectAltName=DNS:other.test "
              "-keyout %s -out %s",
              c->other_key, c->other_cert);
    run_words("openssl pkey -in %s -aes256 -passout pass:secret -out %s",
              c->key, c->locked_key);
    fd = open(c->junk, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "not a pem file\n", 15), 15);
    (void)close(fd);
    mo_loop_free(loop_new()); /* libuv keeps two descriptors open */
}

void certs_drop(struct certs *c)
{
    const char *files[] = {c->cert,      c->key,        c->other_cert,
                           c->other_key, c->locked_key, c->junk};

    for (size_t i = 0; i < MO_COUNT(files); i++)
        (void)unlink(files[i]);
    (void)rmdir(c->dir);
}
