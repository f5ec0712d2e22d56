/* saved_image_judge.c - finds an image's layers by its manifest and judges
 * them. */
#include <stdio.h>

#include "engine/saved_image_priv.h"

#define LAYERS_MAX 512 /* engines have 127 at most */
#define NEST_MAX   3   /* indexes in indexes */
#define HOPS_MAX   4   /* links to links, in the archive */

/* Layers that are a plain tar. */
static const char *const plain[] = {
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.docker.image.rootfs.diff.tar",
    NULL,
};
static const char *const manifests[] = {
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    NULL,
};

struct judge {
    struct mo_saved_image *s;
    struct mo_map links; /* paths that are links so far; values unused */
    struct mo_buf name;
    struct saved_file *layers[LAYERS_MAX];
    size_t n;
};

static int refuse(struct mo_err *e, const char *what)
{
    return mo_fail(e, MO_EPOLICY, "image: %s", what);
}

/* --- files by name ------------------------------------------------------- */

static struct saved_file *find_file(struct judge *j, struct mo_span path)
{
    struct saved_file *f = NULL;

    for (int hop = 0; hop < HOPS_MAX; hop++) {
        mo_buf_reset(&j->name);
        if (mo_tar_clean(&j->name, path) < 0)
            return NULL;
        f = mo_map_get(&j->s->files, mo_buf_view(&j->name));
        if (!f || !f->target[0])
            return f;
        path = mo_span_cstr(f->target);
    }
    return NULL;
}

/* The file that a JSON text names: by its path, or by "sha256:DIGITS". */
static struct saved_file *find_named(struct judge *j, struct mo_json name,
                                     bool digest)
{
    char text[256], path[sizeof(text) + 8];

    if (mo_json_str_copy(name, text, sizeof(text)) < 0)
        return NULL;
    if (!digest)
        return find_file(j, mo_span_cstr(text));
    for (char *p = text; *p; p++)
        *p = *p == ':' ? '/' : *p;
    (void)snprintf(path, sizeof(path), "blobs/%s", text);
    return find_file(j, mo_span_cstr(path));
}

static struct saved_file *find_blob(struct judge *j, struct mo_json descriptor)
{
    return find_named(j, mo_json_get(descriptor, "digest"), true);
}

static int read_document(const struct saved_file *f, struct mo_json *out)
{
    struct mo_json_doc doc;

    if (!f || f->no_text ||
        mo_json_parse(mo_buf_view(&f->text), 16, &doc, NULL))
        return MO_EPROTO;
    *out = doc.root;
    return 0;
}

/* --- which files are layers ---------------------------------------------- */

static int add_layer(struct judge *j, struct saved_file *f, struct mo_err *e)
{
    if (!f)
        return refuse(e, "a layer of its manifest is missing");
    if (j->n == LAYERS_MAX)
        return refuse(e, "it has too many layers");
    j->layers[j->n++] = f;
    return 0;
}

/* As many layers as the configuration says, and at least one. */
static int check_count(struct judge *j, const struct saved_file *config,
                       struct mo_err *e)
{
    struct mo_json doc, ids;

    if (read_document(config, &doc) < 0)
        return refuse(e, "its manifest names no configuration");
    ids = mo_json_get(mo_json_get(doc, "rootfs"), "diff_ids");
    if (!j->n || mo_json_len(ids) != j->n)
        return refuse(e, "its manifest and its configuration name different "
                         "layers");
    return 0;
}

/* manifest.json: [{"Config": PATH, "Layers": [PATH]}], one image. */
static int read_manifest(struct judge *j, const struct saved_file *f,
                         struct mo_err *e)
{
    struct mo_json all, one;

    if (read_document(f, &all) < 0 || !mo_json_is(all, MO_JSON_ARRAY) ||
        mo_json_len(all) != 1)
        return refuse(e, "manifest.json does not describe one image");
    one = mo_json_at(all, 0);
    mo_json_each (at, mo_json_get(one, "Layers"))
        if (add_layer(j, find_named(j, at.val, false), e) < 0)
            return e->code;
    return check_count(j, find_named(j, mo_json_get(one, "Config"), false), e);
}

/* index.json of an OCI layout: one image manifest, or it is not clear which
 * one the engine runs. */
static int read_index(struct judge *j, const struct saved_file *f,
                      struct mo_err *e)
{
    struct mo_json index, one, manifest;

    if (read_document(f, &index) < 0)
        return refuse(e, "index.json is no JSON");
    one = mo_json_at(mo_json_get(index, "manifests"), 0);
    if (mo_json_len(mo_json_get(index, "manifests")) != 1 ||
        !mo_json_str_in(mo_json_get(one, "mediaType"), manifests) ||
        read_document(find_blob(j, one), &manifest) < 0)
        return refuse(e, "index.json does not name one image manifest");
    mo_json_each (at, mo_json_get(manifest, "layers"))
        if (add_layer(j, find_blob(j, at.val), e) < 0)
            return e->code;
    return check_count(j, find_blob(j, mo_json_get(manifest, "config")), e);
}

/* --- media types --------------------------------------------------------- */

/* Marks files that the index or a manifest of it calls something else than a
 * plain tar. Documents that the archive does not have are other platforms'. */
static void mark_types(struct judge *j, struct mo_json doc, int depth)
{
    mo_json_each (at, mo_json_get(doc, "layers")) {
        struct saved_file *f = find_blob(j, at.val);

        if (f && !mo_json_str_in(mo_json_get(at.val, "mediaType"), plain))
            f->odd_type = true;
    }
    if (depth == NEST_MAX)
        return;
    mo_json_each (at, mo_json_get(doc, "manifests")) {
        struct saved_file *f = find_blob(j, at.val);
        struct mo_json inner;

        if (!f || f->is_walked || read_document(f, &inner) < 0)
            continue;
        f->is_walked = true;
        mark_types(j, inner, depth + 1);
    }
}

/* --- verdict ------------------------------------------------------------- */

static bool is_compressed(const struct saved_file *f)
{
    static const struct mo_span magic[] = {
        {"\x1f\x8b", 2},         /* gzip */
        {"\x28\xb5\x2f\xfd", 4}, /* zstd */
        {"\xfd"
         "7zXZ",
         5},
        {"BZh", 3},
    };
    struct mo_span first = mo_span(f->first, f->nfirst);

    for (size_t i = 0; i < MO_COUNT(magic); i++)
        if (mo_span_starts(first, magic[i]))
            return true;
    return false;
}

static int check_file(const struct saved_file *f, struct mo_err *e)
{
    if (!f->is_layer && is_compressed(f))
        return refuse(e, "the engine keeps its layers compressed, so they "
                         "cannot be checked");
    if (f->odd_type)
        return refuse(e, "a layer's media type is not that of a plain tar, so "
                         "it cannot be checked");
    if (!f->why.code && !f->is_layer)
        return refuse(e, "a layer ends early");
    if (!f->why.code)
        return 0;
    *e = f->why;
    if (e->code != MO_EPOLICY && e->code != MO_ENOMEM) {
        (void)mo_wrap(e, "image: a layer");
        e->code = MO_EPOLICY;
    }
    return e->code;
}

/* No directory on the way to an entry is a link. */
static int check_way(struct judge *j, struct mo_span dir, struct mo_err *e)
{
    for (size_t i = 1; i <= dir.n; i++)
        if ((i == dir.n || dir.p[i] == '/') &&
            mo_map_get(&j->links, mo_span_head(dir, i)))
            return mo_saved_image_refuse(
                dir, "is a link, and a file is reached through it", e);
    return 0;
}

/* Follows a layer's trail on top of the layers below it. */
static int check_trail(struct judge *j, const struct saved_file *f,
                       struct mo_err *e)
{
    struct mo_span rest = mo_span(j->s->trail.p + f->from, f->to - f->from);

    while (rest.n) {
        struct mo_span path = mo_span_cut(&rest, 0);
        char kind = path.p[0];
        int rc = 0;

        path = mo_span_skip(path, 1);
        if (kind == 'w')
            rc = check_way(j, path, e);
        else if (kind == 'd')
            (void)mo_map_del(&j->links, path);
        else if (mo_map_put(&j->links, path, j, NULL) < 0)
            rc = refuse(e, "too many links");
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int judge_layers(struct judge *j, struct mo_err *e)
{
    struct saved_file *manifest = find_file(j, MO_SPAN("manifest.json"));
    struct saved_file *index = find_file(j, MO_SPAN("index.json"));
    struct mo_json doc;
    int rc;

    if (!manifest && !index)
        return refuse(e, "the engine's archive has no manifest");
    rc = manifest ? read_manifest(j, manifest, e) : read_index(j, index, e);
    if (rc == 0 && index && read_document(index, &doc) == 0)
        mark_types(j, doc, 0);
    for (size_t i = 0; rc == 0 && i < j->n; i++) {
        rc = check_file(j->layers[i], e);
        if (rc == 0)
            rc = check_trail(j, j->layers[i], e);
    }
    return rc;
}

int mo_saved_image_end(struct mo_saved_image *s, struct mo_err *e)
{
    struct judge *j;
    int rc;

    if (s->outer.zeros < 2 && !mo_tar_complete(&s->outer))
        return refuse(e, "the engine's archive ends early");
    j = mo_new(struct judge);
    if (!j)
        return mo_fail(e, MO_ENOMEM, "image");
    j->s = s;
    mo_map_init(&j->links, LINKS_MAX);
    mo_buf_init(&j->name, MO_TAR_META_MAX);
    rc = judge_layers(j, e);
    mo_map_fini(&j->links);
    mo_buf_fini(&j->name);
    mo_free(j);
    return rc;
}
