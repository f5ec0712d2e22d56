#include "config/state_record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"

static int make_path(char out[PATH_MAX], const char *dir, struct mo_err *e)
{
    int n = snprintf(out, PATH_MAX, "%s/" MO_STATE_FILE, dir);

    return n < 0 || n >= PATH_MAX
               ? mo_fail(e, MO_ETOOBIG, "store.dir is too long")
               : 0;
}

int mo_state_record_read(const char *dir, struct mo_state_version *out,
                         struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_STATE_RECORD_MAX};
    char path[PATH_MAX];
    int rc = make_path(path, dir, e);

    *out = (struct mo_state_version){1, 1, "0.1.0"};
    if (rc == 0)
        rc = mo_file_read(path, MO_STATE_RECORD_MAX, &b, NULL, e);
    if (rc == MO_ENOTFOUND)
        return 0;
    if (rc == 0)
        rc = mo_state_version_read(mo_buf_view(&b), out, e);
    return rc < 0 ? mo_wrap(e, "%s", path) : 0;
}

static int read_and_judge(const char *dir, struct mo_state_version *v,
                          struct mo_err *e)
{
    char what[PATH_MAX];
    int rc = mo_state_record_read(dir, v, e);

    (void)snprintf(what, sizeof(what), "state directory %.80s", dir);
    return rc < 0 ? rc : mo_state_version_judge(v, MO_STATE_FORMAT, what, e);
}

int mo_state_record_check(const char *dir, struct mo_err *e)
{
    struct mo_state_version v;

    return read_and_judge(dir, &v, e);
}

int mo_state_record_write(const char *dir, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_STATE_RECORD_MAX};
    struct mo_state_version v;
    char path[PATH_MAX];
    int rc = read_and_judge(dir, &v, e);

    if (rc < 0 || v.format >= MO_STATE_FORMAT)
        return rc;
    mo_state_version_put(&b, MO_STATE_FORMAT, MO_STATE_READS);
    (void)mo_buf_putc(&b, '\n');
    if (mo_buf_err(&b) == 0 && make_path(path, dir, NULL) == 0)
        (void)mo_file_save(path, mo_buf_view(&b), 0600, NULL);
    return 0;
}

/* --- in use ----------------------------------------------------------------
 */

/* -1: there is none, or it cannot be made. */
static int open_lock(const char *dir, bool makes)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/run", dir);

    if (n < 0 || (size_t)n + sizeof("/" MO_STATE_USE) > sizeof(path))
        return -1;
    if (makes)
        (void)mkdir(path, 0700);
    (void)snprintf(path + n, sizeof(path) - (size_t)n, "/" MO_STATE_USE);
    return open(path,
                O_RDONLY | (makes ? O_CREAT : 0) | O_NOFOLLOW | O_NONBLOCK |
                    O_CLOEXEC,
                0600);
}

static bool is_taken(int fd, int how)
{
    return fd >= 0 && flock(fd, how | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

int mo_state_use(const char *dir, bool is_server, int *fd, struct mo_err *e)
{
    *fd = open_lock(dir, is_server);
    if (!is_taken(*fd, LOCK_SH))
        return 0;
    mo_close_fd(fd);
    return mo_fail(e, MO_EBUSY,
                   "a backup is being restored to %.120s: try again when that "
                   "is done",
                   dir);
}

int mo_state_replace(const char *dir, int *fd, struct mo_err *e)
{
    *fd = open_lock(dir, true);
    if (!is_taken(*fd, LOCK_EX))
        return 0;
    mo_close_fd(fd);
    return mo_fail(
        e, MO_EBUSY,
        "a server runs with %.120s, or a gateway, or a command: stop "
        "it first",
        dir);
}
