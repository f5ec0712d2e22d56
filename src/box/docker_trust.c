/* docker_trust.c - certificates in a docker box (box_trust.h).
 *
 * They are read-only binds of files below the state directory, which a local
 * engine sees. A file of an image is covered only if no layer has a link on the
 * way to it: the engine opens the place in the image, as root.
 *
 * If the engine is elsewhere, they are in a volume of the network container
 * (docker_net_far.c). A volume is a directory, so it is mounted at MO_CA_DIR,
 * and over the directories in which the image has such files.
 *
 * The label mo.trust names the source and the files, so that an adopted box is
 * compared with what it was started with: "ID:BITS", ID being the directory, or
 * "volume:NAME:BITS". */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "box/box_trust.h"
#include "box/docker_priv.h"
#include "codec/ca_files.h"

#define JAVA   (1u << (MO_CA_FILES - 1))
#define VOLUME "volume:"

/* Where the volume is mounted if the image has one of these files. */
static const struct {
    const char *path;
    unsigned files;
} far_dirs[] = {
    {MO_CA_DIR, 1u << MO_CA_FILES},
    {"/etc/ssl/certs", 1u << 1 | JAVA},
    {"/etc/pki/ca-trust/extracted/pem", 1u << 5},
};

static int add_binds(struct mo_arena *a, const char *dir, unsigned files,
                     struct mo_ctr *c, struct mo_err *e)
{
    struct mo_ctr_bind *v =
        mo_arena_zalloc(a, (c->nbinds + MO_CA_FILES) * sizeof(*v));

    if (!v)
        return mo_fail(e, MO_ENOMEM, "box");
    if (c->nbinds)
        memcpy(v, c->binds, c->nbinds * sizeof(*v));
    for (unsigned i = 0; i < MO_CA_FILES; i++) {
        const struct mo_ca_file *f = &mo_ca_files[i];
        size_t n = strlen(dir) + strlen(f->source) + 2;
        char *source;

        if (!(files & (1u << i)))
            continue;
        source = mo_arena_zalloc(a, n);
        if (!source)
            return mo_fail(e, MO_ENOMEM, "box");
        (void)snprintf(source, n, "%s/%s", dir, f->source);
        v[c->nbinds++] = (struct mo_ctr_bind){source, f->path, false};
    }
    c->binds = v;
    return 0;
}

/* An engine reports and wants the resolved path. */
static int resolve(const char *dir, char out[PATH_MAX], struct mo_err *e)
{
    return realpath(dir, out) ? 0 : mo_fail_sys(e, "certificates: %s", dir);
}

/* --- an engine elsewhere -------------------------------------------------- */

static int add_volume(struct mo_arena *a, const char *volume, unsigned files,
                      struct mo_ctr *c, struct mo_err *e)
{
    struct mo_ctr_bind *v =
        mo_arena_zalloc(a, (c->nbinds + MO_COUNT(far_dirs)) * sizeof(*v));

    if (!v)
        return mo_fail(e, MO_ENOMEM, "box");
    if (c->nbinds)
        memcpy(v, c->binds, c->nbinds * sizeof(*v));
    for (size_t i = 0; i < MO_COUNT(far_dirs); i++)
        if (files & far_dirs[i].files)
            v[c->nbinds++] = (struct mo_ctr_bind){
                .source = volume, .target = far_dirs[i].path, .volume = true};
    c->binds = v;
    return 0;
}

/* The variables with the path in MO_CA_DIR. */
static int fill_far_env(struct dk_box *b, struct mo_err *e)
{
    const char **v =
        mo_arena_zalloc(&b->arena, (MO_CA_VARIABLES + 1) * sizeof(*v));

    for (size_t i = 0; v && i < MO_CA_VARIABLES; i++) {
        size_t name = strcspn(mo_ca_env[i], "=");
        size_t n = name + sizeof("=" MO_CA_DIR "/" MO_CA_BUNDLE);
        char *text = mo_arena_zalloc(&b->arena, n);

        if (!text)
            return mo_fail(e, MO_ENOMEM, "box");
        (void)snprintf(text, n, "%.*s=%s", (int)name, mo_ca_env[i],
                       MO_CA_DIR "/" MO_CA_BUNDLE);
        v[i] = text;
    }
    b->ca_env = v;
    return v ? 0 : mo_fail(e, MO_ENOMEM, "box");
}

static int fill_far(struct dk_box *b, unsigned files, struct mo_err *e)
{
    (void)snprintf(b->trust, sizeof(b->trust), VOLUME "%s:%x", b->net.volume,
                   files);
    if (fill_far_env(b, e) < 0)
        return e->code;
    return add_volume(&b->arena, b->net.volume, files, &b->ctr, e);
}

/* --- a new box ----------------------------------------------------------- */

static unsigned files_of(const struct dk_box *b)
{
    return b->image ? b->image->ca_files : 1 | 1u << MO_CA_FILES;
}

bool mo_docker_trust_wanted(const struct dk_box *b)
{
    return b->net.net.policy && b->net.net.policy->ninject > 0;
}

bool mo_docker_trust_java(const struct dk_box *b)
{
    return (files_of(b) & JAVA) != 0;
}

static int fill_near(struct dk_box *b, unsigned files, struct mo_err *e)
{
    char dir[MO_BOX_TRUST_MAX], real[PATH_MAX];
    int rc = mo_box_trust_write(b->b.bs, b->net.net.policy,
                                mo_docker_trust_java(b), dir, e);

    if (rc == 0)
        rc = resolve(dir, real, e);
    if (rc < 0)
        return rc;
    (void)snprintf(b->trust, sizeof(b->trust), "%s:%x", strrchr(dir, '/') + 1,
                   files);
    b->ca_env = mo_ca_env;
    return add_binds(&b->arena, real, files, &b->ctr, e);
}

int mo_docker_trust_fill(struct dk_box *b, struct mo_err *e)
{
    unsigned files = files_of(b), place = b->net.far ? 1u << MO_CA_FILES : 1;

    b->trust[0] = '\0';
    b->ca_env = NULL;
    if (!mo_docker_trust_wanted(b))
        return 0;
    if (!(files & place))
        return mo_fail(e, MO_EPOLICY,
                       "network.inject: image: a link leads to %s",
                       b->net.far ? MO_CA_DIR : MO_CA_PATH);
    return b->net.far ? fill_far(b, files, e) : fill_near(b, files, e);
}

/* --- an adopted one ------------------------------------------------------ */

static int bad_label(const struct dk_box *b, struct mo_err *e)
{
    return mo_fail(e, MO_EPOLICY, "box %s: its label mo.trust", b->id);
}

/* text: up to the end of the label. */
static int read_files(struct mo_span text, unsigned *files)
{
    char *end;

    if (!text.p || !text.n)
        return MO_EPROTO;
    *files = (unsigned)strtoul(text.p, &end, 16);
    return *end || *files >= 2u << MO_CA_FILES ? MO_EPROTO : 0;
}

/* "NAME:BITS" */
static int read_volume(struct dk_box *b, struct mo_span rest, struct mo_ctr *c,
                       struct mo_err *e)
{
    struct mo_span name = mo_span_cut(&rest, ':');
    unsigned files;
    char *volume;

    if (!mo_engine_is_name(name) || read_files(rest, &files) < 0)
        return bad_label(b, e);
    volume = mo_arena_strndup(&b->arena, name.p, name.n);
    return volume ? add_volume(&b->arena, volume, files, c, e)
                  : mo_fail(e, MO_ENOMEM, "box");
}

int mo_docker_trust_read(struct dk_box *b, struct mo_json labels,
                         struct mo_ctr *c, struct mo_err *e)
{
    const char *above = b->b.bs->authority_dir;
    char dir[MO_BOX_TRUST_MAX], real[PATH_MAX];
    struct mo_span rest, id;
    unsigned files;

    if (mo_json_str_copy(mo_json_get(labels, "mo.trust"), b->trust,
                         sizeof(b->trust)) < 0 ||
        !b->trust[0])
        return 0;
    rest = mo_span_cstr(b->trust);
    if (mo_span_strip(&rest, MO_SPAN(VOLUME)))
        return read_volume(b, rest, c, e);
    id = mo_span_cut(&rest, ':');
    if (id.n != MO_TLS_LIST_ID - 1 || !mo_engine_is_name(id) || !above ||
        read_files(rest, &files) < 0 ||
        snprintf(dir, sizeof(dir), "%s/%.*s", above, (int)id.n, id.p) >=
            (int)sizeof(dir))
        return bad_label(b, e);
    if (resolve(dir, real, e) < 0)
        return e->code;
    return add_binds(&b->arena, real, files, c, e);
}
