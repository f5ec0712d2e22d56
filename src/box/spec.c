/* spec.c - a box's spec as data: check, compare, copy, digest. */
#include <stdio.h>

#include "box/driver.h"
#include "codec/sha256.h"
#include "egress/policy.h"

#define MIB ((uint64_t)1024 * 1024)

const struct mo_box_limits mo_box_limits_default = {
    .memory = 512 * MIB,
    .cpu_milli = 500,
    .pids = 128,
    .workspace = 256 * MIB,
    .tmp = 64 * MIB,
    .workspace_inodes = 65536,
    .tmp_inodes = 16384,
    .file_size = 256 * MIB,
    .open_files = 256,
};

/* Every limit, its offset, and its range. The digest is made of the names, so
 * neither they nor their order may change. */
struct limit {
    const char *name;
    size_t at;
    bool wide; /* uint64_t, else unsigned */
    uint64_t min, max;
};

#define LIMIT(field, wide_, min_, max_)                                        \
    {                                                                          \
#        field, offsetof(struct mo_box_limits, field), wide_, min_, max_       \
    }

static const struct limit limits[] = {
    LIMIT(memory, true, 16 * MIB, (uint64_t)1024 * 1024 * MIB),
    LIMIT(cpu_milli, false, 10, 1024 * 1000),
    LIMIT(pids, false, 4, 32768),
    LIMIT(workspace, true, MIB, (uint64_t)1024 * 1024 * MIB),
    LIMIT(tmp, true, MIB, (uint64_t)1024 * 1024 * MIB),
    LIMIT(workspace_inodes, false, 64, 1u << 24),
    LIMIT(tmp_inodes, false, 64, 1u << 24),
    LIMIT(file_size, true, 4096, (uint64_t)1024 * 1024 * MIB),
    LIMIT(open_files, false, 16, 65536),
};

static uint64_t limit_of(const struct mo_box_spec *s, const struct limit *l)
{
    const char *at = (const char *)&s->limits + l->at;

    if (l->wide)
        return *(const uint64_t *)(const void *)at;
    return *(const unsigned *)(const void *)at;
}

static size_t count_words(const char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    return n;
}

static int check_env(const char *const *env, struct mo_err *e)
{
    for (size_t i = 0; env && env[i]; i++)
        if (mo_span_find(mo_span_cstr(env[i]), '=') < 1)
            return mo_fail(e, MO_EINVAL,
                           "box: environment entry %zu is not NAME=VALUE", i);
    return 0;
}

static bool has_network(const struct mo_box_spec *s)
{
    return s->network && *s->network;
}

static int check_network(const struct mo_box_spec *s, struct mo_err *e)
{
    struct mo_egress_policy *p = NULL;
    int rc = 0;

    if (has_network(s))
        rc = mo_egress_policy_read(mo_span_cstr(s->network), &p, e);
    mo_egress_policy_free(p);
    if (rc < 0)
        (void)mo_wrap(e, "box: network");
    return rc;
}

static bool is_nested(const char *a, const char *b)
{
    return mo_path_is_in(a, b) || mo_path_is_in(b, a);
}

/* Their text, and that no place in the box is in another. */
static int check_mounts(const struct mo_box_spec *s, struct mo_err *e)
{
    struct mo_mount a, b;

    if (count_words(s->mounts) > MO_MOUNTS_MAX - 1)
        return mo_fail(e, MO_EINVAL, "box: more than %d mounts",
                       MO_MOUNTS_MAX - 1);
    for (size_t i = 0; s->mounts && s->mounts[i]; i++) {
        int rc = mo_mount_parse(mo_span_cstr(s->mounts[i]), NULL, &a, e);

        if (rc < 0)
            return mo_wrap(e, "box: mount");
        if (s->folder && mo_path_is_in(a.box, MO_MOUNT_WORKSPACE))
            return mo_fail(e, MO_EINVAL,
                           "box: %s is in the workspace, which is kept", a.box);
        for (size_t k = 0; k < i; k++)
            if (mo_mount_parse(mo_span_cstr(s->mounts[k]), NULL, &b, NULL) ==
                    0 &&
                is_nested(a.box, b.box))
                return mo_fail(e, MO_EINVAL,
                               "box: the mounts %s and %s are one in the other",
                               b.box, a.box);
    }
    return 0;
}

int mo_box_spec_check(const struct mo_box_spec *s, struct mo_err *e)
{
    for (size_t i = 0; i < MO_COUNT(limits); i++) {
        uint64_t v = limit_of(s, &limits[i]);

        if (v < limits[i].min || v > limits[i].max)
            return mo_fail(e, MO_EINVAL,
                           "box: %s is %llu, must be between %llu and %llu",
                           limits[i].name, (unsigned long long)v,
                           (unsigned long long)limits[i].min,
                           (unsigned long long)limits[i].max);
    }
    if (count_words(s->argv) > MO_BOX_WORDS_MAX ||
        count_words(s->env) > MO_BOX_WORDS_MAX)
        return mo_fail(e, MO_EINVAL,
                       "box: more than %d words of command or environment",
                       MO_BOX_WORDS_MAX);
    if (s->argv && count_words(s->argv) == 0)
        return mo_fail(e, MO_EINVAL, "box: the command is empty");
    if (s->session && strlen(s->session) >= MO_BOX_LABEL_MAX)
        return mo_fail(e, MO_EINVAL, "box: the session's label is too long");
    if (count_words(s->installed) > MO_BOX_INSTALLED_MAX)
        return mo_fail(e, MO_EINVAL, "box: too many installed directories");
    if (check_env(s->env, e) < 0 || check_mounts(s, e) < 0)
        return MO_EINVAL;
    return check_network(s, e);
}

bool mo_box_spec_names_toolbox(const struct mo_box_spec *s)
{
    return s->argv && !(s->image && *s->image) &&
           strcmp(s->argv[0], MO_BOX_TOOLBOX) == 0;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_words(const char *const *a, const char *const *b)
{
    size_t n = count_words(a);

    if (count_words(b) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

bool mo_box_spec_same(const struct mo_box_spec *a, const struct mo_box_spec *b)
{
    for (size_t i = 0; i < MO_COUNT(limits); i++)
        if (limit_of(a, &limits[i]) != limit_of(b, &limits[i]))
            return false;
    return a->keep == b->keep && same_text(a->image, b->image) &&
           same_text(a->network, b->network) &&
           same_text(a->folder, b->folder) &&
           same_words(a->installed, b->installed) &&
           same_words(a->mounts, b->mounts) && same_words(a->argv, b->argv) &&
           same_words(a->env, b->env);
}

static int copy_text(struct mo_arena *a, const char *from, const char **to)
{
    *to = from ? mo_arena_strndup(a, from, strlen(from)) : NULL;
    return from && *to == NULL ? MO_ENOMEM : 0;
}

static int copy_words(struct mo_arena *a, const char *const *from,
                      const char *const **to)
{
    size_t n = count_words(from);
    const char **v = NULL;

    *to = NULL;
    if (from == NULL)
        return 0;
    v = mo_arena_zalloc(a, (n + 1) * sizeof(*v));
    if (v == NULL)
        return MO_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (copy_text(a, from[i], &v[i]) < 0)
            return MO_ENOMEM;
    *to = v;
    return 0;
}

int mo_box_spec_copy(struct mo_arena *a, const struct mo_box_spec *from,
                     struct mo_box_spec *to)
{
    *to = *from;
    if (copy_text(a, from->image, &to->image) < 0 ||
        copy_text(a, from->session, &to->session) < 0 ||
        copy_text(a, from->network, &to->network) < 0 ||
        copy_text(a, from->owner, &to->owner) < 0 ||
        copy_words(a, from->installed, &to->installed) < 0 ||
        copy_text(a, from->folder, &to->folder) < 0 ||
        copy_text(a, from->files, &to->files) < 0 ||
        copy_words(a, from->mounts, &to->mounts) < 0 ||
        copy_words(a, from->argv, &to->argv) < 0)
        return MO_ENOMEM;
    return copy_words(a, from->env, &to->env);
}

/* Each part has its length in front, so that different specs have different
 * input. */
static void hash_part(struct mo_sha256 *h, const char *name, struct mo_span v)
{
    char head[64];
    int n = snprintf(head, sizeof(head), "%s %zu:", name, v.n);

    mo_sha256_put(h, head, (size_t)n);
    mo_sha256_put(h, v.p, v.n);
}

static void put_words(struct mo_sha256 *h, const char *name,
                      const char *const *v)
{
    for (size_t i = 0; v && v[i]; i++)
        hash_part(h, name, mo_span_cstr(v[i]));
}

void mo_box_spec_digest(const struct mo_box_spec *s,
                        char out[MO_BOX_DIGEST_MAX])
{
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;
    char text[24];

    mo_sha256_init(&h);
    for (size_t i = 0; i < MO_COUNT(limits); i++) {
        int n = snprintf(text, sizeof(text), "%llu",
                         (unsigned long long)limit_of(s, &limits[i]));

        hash_part(&h, limits[i].name, mo_span(text, (size_t)n));
    }
    hash_part(&h, "image", mo_span_cstr(s->image ? s->image : ""));
    put_words(&h, "argv", s->argv);
    put_words(&h, "env", s->env);
    put_words(&h, "installed", s->installed);
    if (has_network(s))
        hash_part(&h, "network", mo_span_cstr(s->network));
    put_words(&h, "mount", s->mounts);
    if (s->folder)
        hash_part(&h, "folder", mo_span_cstr(s->folder));
    if (s->keep)
        hash_part(&h, "keep", MO_SPAN("1"));
    mo_sha256_end(&h, sum);
    mo_hex(sum, sizeof(sum), out);
}
