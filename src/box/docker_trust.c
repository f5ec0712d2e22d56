/* docker_trust.c - certificates in a docker box (box_trust.h).
 *
 * They are read-only binds of files below the state directory, which a local
 * engine sees. A file of an image is covered only if no layer has a link on the
 * way to it: the engine opens the place in the image, as root.
 *
 * The label mo.trust, "ID:BITS", names the directory and the files, so that an
 * adopted box is compared with what it was started with. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "box/box_trust.h"
#include "box/docker_priv.h"
#include "codec/ca_files.h"

#define JAVA (1u << (MO_CA_FILES - 1))

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

int mo_docker_trust_fill(struct dk_box *b, struct mo_err *e)
{
    const struct mo_egress_policy *p = b->net.net.policy;
    unsigned files = b->image ? b->image->ca_files : 1;
    char dir[MO_BOX_TRUST_MAX], real[PATH_MAX];
    int rc;

    b->trust[0] = '\0';
    if (!p || p->ninject == 0)
        return 0;
    if (b->net.far)
        return mo_fail(e, MO_EINVAL,
                       "network.inject: the engine at %s is not on this "
                       "machine, or does not see %s; use native boxes",
                       mo_engine_host(mo_docker_of_box(b)->en),
                       b->b.bs->authority_dir);
    if (!(files & 1))
        return mo_fail(e, MO_EPOLICY,
                       "network.inject: image: a link leads to " MO_CA_PATH);
    rc = mo_box_trust_write(b->b.bs, p, (files & JAVA) != 0, dir, e);
    if (rc == 0)
        rc = resolve(dir, real, e);
    if (rc < 0)
        return rc;
    (void)snprintf(b->trust, sizeof(b->trust), "%s:%x", strrchr(dir, '/') + 1,
                   files);
    return add_binds(&b->arena, real, files, &b->ctr, e);
}

int mo_docker_trust_read(struct dk_box *b, struct mo_json labels,
                         struct mo_ctr *c, struct mo_err *e)
{
    const char *above = b->b.bs->authority_dir;
    char dir[MO_BOX_TRUST_MAX], real[PATH_MAX];
    struct mo_span rest, id;
    unsigned long files;
    char *end;

    if (mo_json_str_copy(mo_json_get(labels, "mo.trust"), b->trust,
                         sizeof(b->trust)) < 0 ||
        !b->trust[0])
        return 0;
    rest = mo_span_cstr(b->trust);
    id = mo_span_cut(&rest, ':');
    if (id.n != MO_TLS_LIST_ID - 1 || !mo_engine_is_name(id) || !rest.p ||
        !above)
        return mo_fail(e, MO_EPOLICY, "box %s: its label mo.trust", b->id);
    files = strtoul(rest.p, &end, 16);
    if (*end || files >= 1ul << MO_CA_FILES ||
        snprintf(dir, sizeof(dir), "%s/%.*s", above, (int)id.n, id.p) >=
            (int)sizeof(dir))
        return mo_fail(e, MO_EPOLICY, "box %s: its label mo.trust", b->id);
    if (resolve(dir, real, e) < 0)
        return e->code;
    return add_binds(&b->arena, real, (unsigned)files, c, e);
}
