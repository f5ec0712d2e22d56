/* docker_mounts.c - folders of the host in a docker box.
 *
 * The engine opens the paths itself, as root, when it starts the container. So
 * they are judged before it is created, again directly before the start and
 * after it: another inode removes the box. A change that is undone in between
 * is not seen; native boxes have no such gap.
 *
 * The engine cannot map user ids. A box with mounts has the user of this
 * process instead of one of its own, so it has that user's file rights and no
 * more; if that is root, the box keeps its own user, which reads what everybody
 * can. */
#include <stdio.h>
#include <unistd.h>

#include "box/docker_priv.h"

static int judge_one(struct dk_box *b, size_t i, struct mo_host_inode *at,
                     struct mo_err *e)
{
    struct mo_mount m;
    const char *text = b->spec.mounts ? b->spec.mounts[i] : NULL;
    int rc;

    if (!text)
        return mo_host_path_workspace(b->spec.folder, at, e);
    rc = mo_mount_parse(mo_span_cstr(text), NULL, &m, e);
    return rc ? rc : mo_host_path_judge(&m, mo_docker_of_box(b)->guard, at, e);
}

int mo_docker_mounts_again(struct dk_box *b, struct mo_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < b->judged; i++) {
        struct mo_host_inode at;

        rc = judge_one(b, i, &at, e);
        if (rc == 0 && memcmp(&at, &b->inodes[i], sizeof(at)) != 0)
            rc = mo_fail(e, MO_EPOLICY,
                         "mount %.100s: it was replaced meanwhile",
                         b->ctr.binds[i].source);
    }
    return rc;
}

static int check_engine(const struct dk *d, const struct dk_box *b, bool rw,
                        struct mo_err *e)
{
    if (strncmp(mo_engine_host(d->en), "unix:", 5) != 0)
        return mo_fail(e, MO_EPOLICY,
                       "mounts: the engine at %s is not on this machine",
                       mo_engine_host(d->en));
    if (d->facts.podman)
        return mo_fail(e, MO_EPOLICY,
                       "mounts: not with podman; use native boxes");
    if (rw && geteuid() == 0)
        return mo_fail(e, MO_EPOLICY,
                       "mounts: this program is root, so its docker boxes "
                       "cannot write to the host%s; use native boxes, or run "
                       "as another user (--user)",
                       b->spec.folder ? " (workspace)" : "");
    return 0;
}

static size_t count(const char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    return n;
}

int mo_docker_binds(struct mo_arena *a, const char *const *mounts,
                    const char *folder, struct mo_ctr *c, struct mo_err *e)
{
    size_t n = count(mounts);
    struct mo_ctr_bind *v =
        mo_arena_zalloc(a, (n + 1) * sizeof(*v)); /* one for the folder */
    struct mo_mount m;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "box");
    for (size_t i = 0; i < n; i++) {
        int rc = mo_mount_parse(mo_span_cstr(mounts[i]), NULL, &m, e);

        if (rc < 0)
            return rc;
        v[i] = (struct mo_ctr_bind){mo_arena_strndup(a, m.host, strlen(m.host)),
                                    mo_arena_strndup(a, m.box, strlen(m.box)),
                                    m.rw};
        if (!v[i].source || !v[i].target)
            return mo_fail(e, MO_ENOMEM, "box");
    }
    if (folder)
        v[n++] = (struct mo_ctr_bind){folder, MO_CTR_WORKSPACE, true};
    c->binds = v;
    c->nbinds = n;
    return 0;
}

int mo_docker_mounts_fill(struct dk_box *b, struct mo_err *e)
{
    struct mo_ctr *c = &b->ctr;
    bool rw = false;
    int rc = mo_docker_binds(&b->arena, b->spec.mounts, b->spec.folder, c, e);

    b->judged = rc < 0 ? 0 : c->nbinds;
    if (rc < 0 || c->nbinds == 0)
        return rc;
    for (size_t i = 0; i < c->nbinds; i++)
        rw |= c->binds[i].rw;
    rc = check_engine(mo_docker_of_box(b), b, rw, e);
    b->inodes = mo_arena_zalloc(&b->arena, c->nbinds * sizeof(*b->inodes));
    if (rc == 0 && !b->inodes)
        rc = mo_fail(e, MO_ENOMEM, "box");
    for (size_t i = 0; rc == 0 && i < c->nbinds; i++)
        rc = judge_one(b, i, &b->inodes[i], e);
    if (geteuid() != 0) {
        c->uid = geteuid();
        c->gid = getegid();
    }
    return rc;
}
