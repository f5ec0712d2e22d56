#include "store/notice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"

int mo_notice_open(struct mo_notice *n, struct mo_loop *l, const char *path,
                   struct mo_err *e)
{
    *n = (struct mo_notice){.loop = l, .dir = -1};
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return mo_fail_sys(e, "store: %s", path);
    n->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (n->dir < 0)
        return mo_fail_sys(e, "store: %s", path);
    return 0;
}

/* A fixed key: every process must hash a name to the same file. */
unsigned mo_notice_file(struct mo_span name)
{
    return (unsigned)(mo_siphash(0, 0, name) % MO_NOTICE_FILES);
}

static void file_name(char out[4], unsigned file)
{
    (void)snprintf(out, 4, "%02x", file & 0xff);
}

void mo_notice_give(const struct mo_notice *n, struct mo_span name)
{
    char file[4];
    int fd;

    file_name(file, mo_notice_file(name));
    fd =
        openat(n->dir, file, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    mo_close_fd(&fd);
}

static unsigned file_of(const struct inotify_event *ev, const char *name)
{
    char file[4];

    if (ev->mask & IN_Q_OVERFLOW)
        return MO_NOTICE_FILES;
    for (unsigned i = 0; ev->len && i < MO_NOTICE_FILES; i++) {
        file_name(file, i);
        if (strncmp(name, file, ev->len) == 0)
            return i;
    }
    return MO_NOTICE_FILES;
}

/* The kernel returns whole events only. */
static void on_events(void *ctx, char *p, size_t len)
{
    struct mo_notice *n = ctx;
    struct inotify_event ev;

    while (len >= sizeof(ev) && !n->closing) {
        memcpy(&ev, p, sizeof(ev));
        if (ev.len > len - sizeof(ev))
            return;
        n->heard(n->ctx, file_of(&ev, p + sizeof(ev)));
        p += sizeof(ev) + ev.len;
        len -= sizeof(ev) + ev.len;
    }
}

static void close_directory(struct mo_notice *n)
{
    mo_close_fd(&n->dir);
    n->gone(n->ctx);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct mo_notice *n = ctx;

    (void)why;
    n->ear = NULL;
    if (n->closing)
        close_directory(n);
}

int mo_notice_listen(struct mo_notice *n,
                     void (*heard)(void *ctx, unsigned file), void *ctx,
                     struct mo_err *e)
{
    static const struct mo_stream_cb cb = {.on_read = on_events,
                                           .on_close = on_close};
    mo_autofd int fd = -1;
    char path[64];
    int rc;

    if (n->ear)
        return 0;
    fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0)
        return mo_fail_sys(e, "inotify");
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", n->dir);
    if (inotify_add_watch(fd, path, IN_CLOSE_WRITE) < 0)
        return mo_fail_sys(e, "inotify");
    n->heard = heard;
    n->ctx = ctx;
    rc = mo_stream_from_fds(n->loop, mo_take_fd(&fd), -1, &n->ear, e);
    if (rc < 0)
        return rc;
    mo_stream_attach(n->ear, &cb, n);
    return 0;
}

void mo_notice_close(struct mo_notice *n, void (*gone)(void *ctx), void *ctx)
{
    n->closing = true;
    n->gone = gone;
    n->ctx = ctx;
    if (n->ear)
        mo_stream_close(n->ear, NULL);
    else
        close_directory(n);
}
