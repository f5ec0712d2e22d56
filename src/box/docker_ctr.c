/* docker_ctr.c - makes a container's description from a spec. */
#include <stdio.h>

#include "box/docker_priv.h"

#define ENV_MAX (2 * MO_BOX_WORDS_MAX + MO_IMAGE_WORDS_MAX)

/* --- environment --------------------------------------------------------- */

struct env {
    const char **v;
    size_t n;
};

static size_t key_len(const char *entry)
{
    return (size_t)mo_span_find(mo_span_cstr(entry), '=');
}

/* A later entry of the same name replaces an earlier one. */
static void env_put(struct env *env, const char *entry)
{
    size_t len = key_len(entry);

    for (size_t i = 0; i < env->n; i++)
        if (key_len(env->v[i]) == len && memcmp(env->v[i], entry, len) == 0) {
            env->v[i] = entry;
            return;
        }
    env->v[env->n++] = entry;
}

static void env_all(struct env *env, const char *const *v)
{
    for (; v && *v; v++)
        env_put(env, *v);
}

static int fill_env(struct dk_box *b)
{
    struct env env = {
        mo_arena_zalloc(&b->arena, (ENV_MAX + 1) * sizeof(char *)), 0};

    if (!env.v)
        return MO_ENOMEM;
    env_put(&env, b->image ? "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:"
                             "/usr/bin:/sbin:/bin"
                           : "PATH=/bin");
    if (b->image)
        env_all(&env, b->image->env);
    env_all(&env, b->ca_env);
    env_put(&env, "HOME=" MO_CTR_WORKSPACE);
    env_put(&env, "LANG=C.UTF-8");
    env_all(&env, b->spec.env);
    b->ctr.env = env.v;
    return 0;
}

/* --- program ------------------------------------------------------------- */

/* Our toolbox with arguments. */
static int fill_toolbox(struct dk_box *b, struct mo_err *e)
{
    const char **v =
        mo_arena_zalloc(&b->arena, (MO_BOX_WORDS_MAX + 1) * sizeof(*v));

    if (!v)
        return mo_fail(e, MO_ENOMEM, "box");
    v[0] = MO_IMAGE_TOOLBOX;
    for (size_t i = 1; i < MO_BOX_WORDS_MAX && b->spec.argv[i]; i++)
        v[i] = b->spec.argv[i];
    b->ctr.argv = v;
    return 0;
}

static int fill_program(struct dk_box *b, struct mo_err *e)
{
    static const char *const toolbox[] = {MO_IMAGE_TOOLBOX, NULL};

    b->ctr.workdir = MO_CTR_WORKSPACE;
    if (mo_box_spec_names_toolbox(&b->spec))
        return fill_toolbox(b, e);
    if (b->spec.argv) {
        b->ctr.argv = b->spec.argv;
        return 0;
    }
    if (!b->image) {
        b->ctr.argv = toolbox;
        return 0;
    }
    if (!b->image->argv[0])
        return mo_fail(e, MO_EPOLICY,
                       "image %s has no program of its own, give a command",
                       b->spec.image);
    /* The image's own program, in its own directory. */
    b->ctr.argv = b->image->argv;
    if (strcmp(b->image->workdir, "/") != 0)
        b->ctr.workdir = b->image->workdir;
    return 0;
}

/* --- labels ----------------------------------------------------------------
 *
 * All of them, always: an image may carry labels too, and ours win. */

static int fill_labels(struct dk *d, struct dk_box *b)
{
    struct mo_ctr_label *l = mo_arena_zalloc(&b->arena, DK_LABELS * sizeof(*l));
    char *expires = mo_arena_zalloc(&b->arena, 24);
    char *policy = mo_arena_zalloc(&b->arena, MO_BOX_DIGEST_MAX);

    if (!l || !expires || !policy)
        return MO_ENOMEM;
    (void)snprintf(expires, 24, "%llu", (unsigned long long)b->spec.expires);
    mo_box_spec_digest(&b->spec, policy);
    l[0] = (struct mo_ctr_label){"mo.store", d->store};
    l[1] = (struct mo_ctr_label){"mo.instance", d->instance};
    l[2] = (struct mo_ctr_label){"mo.session",
                                 b->spec.session ? b->spec.session : ""};
    l[3] = (struct mo_ctr_label){"mo.expires", expires};
    l[4] = (struct mo_ctr_label){"mo.policy", policy};
    l[5] = (struct mo_ctr_label){"mo.warm", b->warm ? "1" : "0"};
    l[6] = (struct mo_ctr_label){"mo.role", DK_ROLE_BOX};
    if (b->net.key[0])
        (void)snprintf(b->net.label, sizeof(b->net.label), "%s:%s", b->net.key,
                       b->net.id);
    l[7] = (struct mo_ctr_label){"mo.net", b->net.label};
    l[8] = (struct mo_ctr_label){"mo.trust", b->trust};
    l[9] = (struct mo_ctr_label){"mo.files", b->b.files};
    b->ctr.labels = l;
    b->ctr.nlabels = DK_LABELS;
    return 0;
}

int mo_docker_ctr_fill(struct dk *d, struct dk_box *b, struct mo_err *e)
{
    const struct mo_box_limits *lim = &b->spec.limits;
    unsigned uid = mo_docker_files_uid(b->b.files);

    if (!uid)
        uid = (unsigned)(MO_CTR_UID_FIRST + b->slot);
    b->ctr = (struct mo_ctr){
        .flavour = d->facts.podman ? MO_CTR_PODMAN : MO_CTR_DOCKER,
        .image = b->image ? b->image->id : d->image.id,
        .uid = uid,
        .gid = uid,
        .volumes = b->image ? b->image->volumes : NULL,
        .seccomp = mo_buf_cstr(&d->seccomp[b->net.key[0] != '\0']),
        .network = b->net.key[0] ? b->net.id : NULL,
        .once = b->spec.with_us && !d->facts.podman,
        .memory = lim->memory,
        .workspace = lim->workspace,
        .tmp = lim->tmp,
        .file_size = lim->file_size,
        .cpu_milli = lim->cpu_milli,
        .pids = lim->pids,
        .open_files = lim->open_files,
        .workspace_inodes = lim->workspace_inodes,
        .tmp_inodes = lim->tmp_inodes,
    };
    if (mo_docker_mounts_fill(b, e) < 0 || mo_docker_trust_fill(b, e) < 0 ||
        mo_docker_files_fill(b, &b->ctr, e) < 0)
        return e->code;
    if (fill_env(b) < 0 || fill_labels(d, b) < 0)
        return mo_fail(e, MO_ENOMEM, "box");
    return fill_program(b, e);
}
