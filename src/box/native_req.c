/* native_req.c - a spec as a request to mo-box. See native.c. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rand.h"
#include "box/native_priv.h"

#define ID_BYTES 10

static void make_id(char out[MO_BOXREQ_ID_MAX + 1])
{
    unsigned char r[ID_BYTES];

    mo_random(r, sizeof(r));
    out[0] = 'b';
    mo_hex(r, sizeof(r), out + 1);
}

static void put_words(const char **to, size_t *n, const char *const *from)
{
    for (size_t i = 0; from && from[i] && *n < MO_BOXREQ_WORDS; i++)
        to[(*n)++] = from[i];
}

static int put_command(struct native *d, const struct mo_box_spec *spec,
                       struct mo_boxmsg *m, struct mo_err *e)
{
    static const char *const toolbox[] = {MO_BOX_TOOLBOX, NULL};
    static const char *const env[] = {
        "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/workspace",
        "LANG=C.UTF-8", NULL};
    struct mo_boxreq *r = &m->u.req;
    size_t na = 0, ne = 0;

    r->by_fd = spec->argv == NULL || mo_box_spec_names_toolbox(spec);
    if (r->by_fd && d->toolbox < 0)
        return mo_fail(e, MO_EUNAVAIL, "box: this build carries no toolbox");
    m->fds = (unsigned)r->by_fd;
    put_words(r->argv, &na, spec->argv ? spec->argv : toolbox);
    put_words(r->env, &ne, env);
    put_words(r->env, &ne, spec->env);
    return 0;
}

/* The certificates that its programs trust. */
static int put_trust(struct native *d, const struct mo_box_spec *spec,
                     struct mo_native_req *out, struct mo_err *e)
{
    struct mo_egress_policy *p = NULL;
    int rc;

    out->ca[0] = '\0';
    if (!spec->network || !*spec->network)
        return 0;
    rc = mo_egress_policy_read(mo_span_cstr(spec->network), &p, e);
    if (rc == 0)
        rc = mo_box_trust_write(&d->bs, p, false, out->ca, e);
    mo_egress_policy_free(p);
    return rc;
}

/* Read-only mounts after the others. The inode is that of now; mo-box opens it
 * with the rights of our user. */
static int put_installed(const struct mo_box_spec *spec,
                         struct mo_native_req *out, struct mo_err *e)
{
    const char **to = out->m.u.req.mounts;
    size_t n = 0;

    while (to[n])
        n++;
    for (size_t i = 0; spec->installed && spec->installed[i]; i++) {
        const char *path = spec->installed[i];
        char *text = out->installed[i], put[MO_MOUNT_TEXT_MAX];
        struct mo_mount m;
        struct stat st;

        if (mo_mount_parse(mo_span_cstr(path), NULL, &m, e) < 0)
            return mo_wrap(e, "installed files");
        if (lstat(path, &st) < 0)
            return mo_fail_sys(e, "installed files: %s", path);
        if (n == MO_MOUNTS_MAX)
            return mo_fail(e, MO_EINVAL, "installed files: too many mounts");
        mo_mount_put(&m, put);
        (void)snprintf(text, sizeof(out->installed[i]), "%llu %llu %s",
                       (unsigned long long)st.st_dev,
                       (unsigned long long)st.st_ino, put);
        to[n++] = text;
    }
    return 0;
}

static void put_mount(struct mo_native_req *out, size_t i,
                      const struct mo_host_inode *at, const char *text)
{
    (void)snprintf(out->mounts[i], sizeof(out->mounts[i]), "%llu %llu %s",
                   (unsigned long long)at->dev, (unsigned long long)at->ino,
                   text);
    out->m.u.req.mounts[i] = out->mounts[i];
}

/* The host's paths are judged now, and mo-box takes these inodes only. */
static int put_mounts(struct native *d, const struct mo_box_spec *spec,
                      struct mo_native_req *out, struct mo_err *e)
{
    char text[MO_MOUNT_TEXT_MAX];
    struct mo_host_inode at;
    struct mo_mount m;
    size_t n = 0;
    int rc = 0;

    for (; rc == 0 && spec->mounts && spec->mounts[n]; n++) {
        rc = mo_mount_parse(mo_span_cstr(spec->mounts[n]), NULL, &m, e);
        if (rc == 0)
            rc = mo_host_path_judge(&m, d->guard, &at, e);
        if (rc == 0)
            put_mount(out, n, &at, spec->mounts[n]);
    }
    if (rc < 0 || !spec->folder)
        return rc;
    rc = mo_host_path_workspace(spec->folder, &at, e);
    (void)snprintf(text, sizeof(text), "%s:%s:rw", spec->folder,
                   MO_MOUNT_WORKSPACE);
    if (rc == 0)
        put_mount(out, n, &at, text);
    return rc;
}

/* A new workspace has the id of its first box. A folder or mount in its place
 * is kept by itself; with a mount below it nothing is kept, or the files of the
 * host would be. */
static void put_files(struct native *d, const struct mo_box_spec *spec,
                      struct mo_native_req *out)
{
    const char *const *m = out->m.u.req.mounts;
    char path[MO_BOXREQ_PATH_MAX + MO_BOXREQ_ID_MAX + 16];
    struct mo_mount at;

    out->m.u.req.files = out->files;
    if (!spec->keep || spec->folder)
        return;
    for (size_t i = 0; spec->mounts && spec->mounts[i] && m[i]; i++)
        if (mo_mount_parse(mo_span_cstr(spec->mounts[i]), NULL, &at, NULL) ==
                0 &&
            mo_path_is_in(at.box, MO_MOUNT_WORKSPACE))
            return;
    if (spec->files && mo_boxreq_id_ok(spec->files)) {
        (void)snprintf(path, sizeof(path), "%s/%s" MO_NATIVE_FILES, d->dir,
                       spec->files);
        out->old_files = access(path, F_OK) == 0;
    }
    (void)snprintf(out->files, sizeof(out->files), "%s",
                   out->old_files ? spec->files : out->id);
}

uint64_t mo_native_linger(const struct mo_box_spec *spec)
{
    return spec->linger_ms < MO_NATIVE_LINGER_MAX ? spec->linger_ms
                                                  : MO_NATIVE_LINGER_MAX;
}

int mo_native_request(struct native *d, const struct mo_box_spec *spec,
                      enum mo_boxmsg_type type, struct mo_native_req *out,
                      struct mo_err *e)
{
    const struct mo_box_limits *l = &spec->limits;
    int rc;

    make_id(out->id);
    out->files[0] = '\0';
    out->old_files = false;
    mo_box_spec_digest(spec, out->digest);
    out->m = (struct mo_boxmsg){.type = type};
    out->m.u.req = (struct mo_boxreq){
        .id = out->id,
        .dir = d->dir,
        .session = spec->session ? spec->session : "",
        .instance = d->instance,
        .store = d->store,
        .policy = out->digest,
        .expires = spec->expires < INT64_MAX ? spec->expires : INT64_MAX,
        .linger_ms = mo_native_linger(spec),
        .memory = l->memory,
        .cpu_milli = l->cpu_milli,
        .pids = l->pids,
        .workspace = l->workspace,
        .workspace_inodes = l->workspace_inodes,
        .tmp = l->tmp,
        .tmp_inodes = l->tmp_inodes,
        .file_size = l->file_size,
        .open_files = l->open_files,
        .root = spec->image ? spec->image : "",
        .ports = out->ports,
        .ca = out->ca,
    };
    rc = mo_box_net_ports(spec->network, out->ports, e);
    if (rc == 0)
        rc = put_trust(d, spec, out, e);
    if (rc == 0 && type == MO_BOXMSG_START)
        rc = put_mounts(d, spec, out, e);
    if (rc == 0 && type == MO_BOXMSG_START)
        rc = put_installed(spec, out, e);
    put_files(d, spec, out);
    return rc ? rc : put_command(d, spec, &out->m, e);
}
