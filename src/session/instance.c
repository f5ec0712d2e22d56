#include "session/instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rand.h"

#define SUFFIX   ".lock"
#define SOCKET   ".sock" /* control.h's, goes with it */
#define FILE_MAX (MO_INSTANCE_MAX + sizeof(SUFFIX))
#define AGAIN_MS 2000 /* between attempts to take the lease */

struct mo_instance {
    struct mo_loop *loop;
    struct mo_store *store;
    int dir, lock;
    struct mo_lease *lease; /* waited for or held */
    bool held;
    struct mo_timer again;
    struct mo_later later; /* the end */
    struct mo_gone gone;
    bool closing;
    char name[MO_INSTANCE_MAX], file[FILE_MAX];
};

/* --- the lease ----------------------------------------------------------- */

static void on_end(struct mo_later *d)
{
    struct mo_instance *in = mo_container_of(d, struct mo_instance, later);
    struct mo_gone gone = in->gone;

    mo_close_fd(&in->lock);
    mo_close_fd(&in->dir);
    mo_free(in);
    mo_gone_fire(gone);
}

static void try_later(struct mo_instance *in, const struct mo_err *why)
{
    mo_log_err(mo_loop_log(in->loop), MO_WARN, "session", why,
               "instance %s: others may think we are dead", in->name);
    mo_timer_start(in->loop, &in->again, AGAIN_MS);
}

static void on_held(void *ctx, struct mo_lease *l, uint64_t fence,
                    const struct mo_err *why)
{
    struct mo_instance *in = ctx;

    (void)l;
    (void)fence;
    in->held = !why;
    if (why)
        in->lease = NULL;
    if (in->closing)
        mo_loop_defer(in->loop, &in->later);
    else if (why)
        try_later(in, why);
}

static void on_lost(void *ctx, const struct mo_err *why)
{
    struct mo_instance *in = ctx;

    in->lease = NULL;
    in->held = false;
    if (!in->closing)
        try_later(in, why);
}

static void take_lease(struct mo_instance *in)
{
    static const struct mo_lease_cb cb = {on_held, on_lost};
    char name[sizeof(MO_INSTANCE_LEASE) + MO_INSTANCE_MAX];
    struct mo_err e;

    (void)snprintf(name, sizeof(name), MO_INSTANCE_LEASE "%s", in->name);
    if (mo_lease_take(in->store, mo_span_cstr(name), mo_span_cstr(in->name),
                      AGAIN_MS, &cb, in, &in->lease, &e) < 0)
        try_later(in, &e);
}

static void on_again(struct mo_timer *t)
{
    take_lease(mo_container_of(t, struct mo_instance, again));
}

/* --- the file ------------------------------------------------------------ */

static bool file_of(char out[FILE_MAX], struct mo_span name)
{
    if (name.n == 0 || name.n >= MO_INSTANCE_MAX || memchr(name.p, '/', name.n))
        return false;
    (void)snprintf(out, FILE_MAX, "%.*s" SUFFIX, (int)name.n, name.p);
    return true;
}

/* A file that can be locked has outlived its owner. */
static bool is_dead(int dir, const char *file)
{
    mo_autofd int fd =
        openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;
}

bool mo_instance_dead(void *ctx, struct mo_span name)
{
    struct mo_instance *in = ctx;
    char file[FILE_MAX];

    return file_of(file, name) && is_dead(in->dir, file);
}

bool mo_instance_dead_in(struct mo_span dir, struct mo_span name)
{
    char file[FILE_MAX], path[PATH_MAX];
    mo_autofd int fd = -1;

    if (dir.n >= sizeof(path) || !file_of(file, name))
        return false;
    (void)snprintf(path, sizeof(path), "%.*s", (int)dir.n, dir.p);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && is_dead(fd, file);
}

static bool is_old(int dir, const char *file)
{
    struct stat st;
    uint64_t now = mo_wall_ms() / 1000;

    return fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (uint64_t)st.st_mtime + MO_INSTANCE_KEEP_MS / 1000 < now;
}

static void remove_dead_file(int dir, struct mo_span file)
{
    static const char *const sockets[] = {SOCKET, MO_INSTANCE_PEER};
    char path[NAME_MAX + sizeof(SOCKET)];

    for (size_t i = 0; i < MO_COUNT(sockets); i++) {
        (void)snprintf(path, sizeof(path), "%.*s%s",
                       (int)(file.n - strlen(SUFFIX)), file.p, sockets[i]);
        (void)unlinkat(dir, path, 0);
    }
    (void)unlinkat(dir, file.p, 0);
}

static void remove_dead_files(struct mo_instance *in)
{
    int fd = openat(in->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *en = d ? readdir(d) : NULL;

    for (; en; en = readdir(d)) {
        struct mo_span name = mo_span_cstr(en->d_name);

        if (mo_span_ends(name, MO_SPAN(SUFFIX)) &&
            is_old(in->dir, en->d_name) && is_dead(in->dir, en->d_name))
            remove_dead_file(in->dir, name);
    }
    if (d)
        (void)closedir(d);
    else if (fd >= 0)
        (void)close(fd);
}

static int make_file(struct mo_instance *in, const char *dir, struct mo_err *e)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return mo_fail_sys(e, "instance: %s", dir);
    in->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in->dir < 0)
        return mo_fail_sys(e, "instance: %s", dir);
    (void)file_of(in->file, mo_span_cstr(in->name));
    in->lock =
        openat(in->dir, in->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (in->lock < 0 || flock(in->lock, LOCK_EX | LOCK_NB) < 0)
        return mo_fail_sys(e, "instance: %s/%s", dir, in->file);
    return 0;
}

/* --- life ---------------------------------------------------------------- */

int mo_instance_open(struct mo_loop *l, struct mo_store *store, const char *dir,
                     struct mo_instance **out, struct mo_err *e)
{
    struct mo_instance *in = mo_new(struct mo_instance);
    int rc;

    if (!in)
        return mo_fail(e, MO_ENOMEM, "instance");
    in->loop = l;
    in->store = store;
    in->dir = in->lock = -1;
    in->name[0] = 'i'; /* a name never looks like an option */
    mo_random_token(in->name + 1, 12);
    mo_timer_init(&in->again, on_again);
    mo_later_init(&in->later, on_end);
    rc = make_file(in, dir, e);
    if (rc < 0) {
        mo_close_fd(&in->lock);
        mo_close_fd(&in->dir);
        mo_free(in);
        return rc;
    }
    remove_dead_files(in);
    take_lease(in);
    *out = in;
    return 0;
}

void mo_instance_close(struct mo_instance *in, void (*gone)(void *ctx),
                       void *ctx)
{
    bool waits = in->lease && !in->held;

    in->closing = true;
    in->gone = (struct mo_gone){gone, ctx};
    mo_timer_stop(in->loop, &in->again);
    (void)unlinkat(in->dir, in->file, 0);
    if (in->lease)
        mo_lease_drop(mo_take_ptr(&in->lease));
    if (!waits)
        mo_loop_defer(in->loop, &in->later);
}

const char *mo_instance_name(const struct mo_instance *in)
{
    return in->name;
}
