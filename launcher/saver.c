#include "launcher/saver.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "launcher/mounts.h"

#define FDS_MAX 1024

void mo_saver_init(struct mo_saver *s)
{
    *s = (struct mo_saver){.workspace = -1, .from = -1, .result = -1};
}

/* A mount in /workspace is not ours to keep. */
static bool wants_kept(const struct mo_boxreq *r)
{
    struct mo_mount m = {.rw = false};
    uint64_t dev, ino;

    for (size_t i = 0; r->mounts[i]; i++)
        if (mo_mounts_read(r->mounts[i], &m, &dev, &ino, NULL) == 0 &&
            mo_path_is_in(m.box, MO_MOUNT_WORKSPACE))
            return false;
    return *r->files;
}

int mo_saver_open(struct mo_saver *s, struct mo_boxreq *r, int dir,
                  const struct mo_owner *owner, struct mo_err *e)
{
    uint64_t bytes = 0, inodes = 0;
    int rc;

    if (!wants_kept(r))
        return 0;
    if (!mo_boxreq_id_ok(r->files))
        return mo_fail(e, MO_EPROTO, "kept files: not an id");
    mo_kept_init(&s->place, dir, r->files, owner);
    rc = mo_kept_open(&s->place, &s->from, &bytes, &inodes, e);
    if (rc == 1 && bytes > r->workspace)
        r->workspace = bytes;
    if (rc == 1 && inodes > r->workspace_inodes)
        r->workspace_inodes = inodes;
    return rc < 0 ? rc : 0;
}

int mo_saver_load(struct mo_saver *s, const struct mo_cg *g, uid_t uid,
                  bool root, struct mo_err *e)
{
    int rc = 0;

    if (!s->place.name[0])
        return 0;
    s->workspace = open(MO_MOUNT_WORKSPACE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->workspace < 0)
        return mo_fail_sys(e, "kept files: workspace");
    if (s->from >= 0)
        rc = mo_kept_load(s->from, s->workspace, g, uid, root, e);
    mo_close_fd(&s->from);
    s->due = mo_now_ns() + MO_SAVER_MS * MO_MS;
    return rc;
}

uint64_t mo_saver_left(const struct mo_saver *s)
{
    uint64_t now = mo_now_ns();

    if (s->pid > 0)
        return UINT64_MAX;
    return s->due > now ? (s->due - now) / MO_MS : 0;
}

/* Other descriptors are closed: their readers wait for the end of file. */
static void run_child(struct mo_saver *s, const struct mo_kept_head *labels,
                      int result)
{
    int rc;

    for (int fd = 3; fd < FDS_MAX; fd++)
        if (fd != s->place.dir && fd != s->workspace && fd != result)
            close(fd);
    rc = mo_kept_save(&s->place, s->workspace, labels, NULL);
    if (rc == 0 && write(result, &s->place.print, sizeof(s->place.print)) < 0)
        rc = MO_EIO;
    _exit(rc < 0);
}

void mo_saver_begin(struct mo_saver *s, const struct mo_cg *g,
                    const struct mo_kept_head *labels)
{
    struct mo_boxstats st;
    int result[2];

    s->began = mo_now_ns();
    s->due = s->began + MO_SAVER_MS * MO_MS;
    mo_cg_stats(g, &st);
    if (st.cpu_us == s->cpu_us || pipe2(result, O_CLOEXEC) < 0)
        return;
    s->pid = fork();
    if (s->pid == 0)
        run_child(s, labels, result[1]);
    close(result[1]);
    if (s->pid < 0) {
        s->pid = 0;
        close(result[0]);
        return;
    }
    s->cpu_us = st.cpu_us;
    s->result = result[0];
}

void mo_saver_end(struct mo_saver *s)
{
    uint64_t print, now;

    if (s->pid <= 0)
        return;
    if (read(s->result, &print, sizeof(print)) == (ssize_t)sizeof(print))
        mo_kept_saved(&s->place, print);
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    s->pid = 0;
    mo_close_fd(&s->result);
    now = mo_now_ns();
    if (now + (now - s->began) * MO_SAVER_PART > s->due)
        s->due = now + (now - s->began) * MO_SAVER_PART;
}

/* A child under way is waited for: the file that it is about to put in place
 * must be known as ours. */
int mo_saver_last(struct mo_saver *s, const struct mo_kept_head *labels,
                  struct mo_err *e)
{
    int rc;

    mo_saver_end(s);
    rc = mo_kept_save(&s->place, s->workspace, labels, e);
    return rc < 0 ? rc : 0;
}
