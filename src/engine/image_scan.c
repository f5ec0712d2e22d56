/* image_scan.c - scans an image's layers for links where an engine will mount,
 * or a program start.
 *
 * An image is streamed as `docker save` writes it: a tar with a tar for each
 * layer. One such link in any layer is a refusal, even if a later layer
 * removes it. So is a file that is reached through a link of the same image:
 * then names do not tell where files are. */
#include <stdio.h>

#include "base/map.h"
#include "codec/tar.h"
#include "engine/image.h"

#define LINKS_MAX ((size_t)1 << 17)
#define SCAN_MAX  ((uint64_t)16 * 1024 * 1024 * 1024)
#define SCAN_MS   600000u

struct scan {
    const struct mo_image *im;
    struct mo_engine_call *call;
    struct mo_tar outer, inner;
    struct mo_map links; /* paths that are links; values unused */
    struct mo_buf path;
    bool in_layer, inner_on, any_layer;
    struct mo_err why; /* code 0: nothing found yet */
    mo_done_fn *done;
    void *ctx;
};

static const char *const guarded[] = {"dev", "proc", "sys",
                                      "tmp", "etc",  "workspace"};

/* Links that every engine puts into /dev itself. */
static const struct {
    const char *path, *to;
} usual[] = {
    {"dev/fd", "/proc/self/fd"},       {"dev/stdin", "/proc/self/fd/0"},
    {"dev/stdout", "/proc/self/fd/1"}, {"dev/stderr", "/proc/self/fd/2"},
    {"dev/ptmx", "pts/ptmx"},          {"dev/core", "/proc/kcore"},
};

/* True if path (clean, relative) is the absolute one, or a directory above it.
 */
static bool leads_to(struct mo_span path, const char *absolute)
{
    struct mo_span target = mo_span_skip(mo_span_cstr(absolute), 1);

    return mo_span_starts(target, path) &&
           (target.n == path.n || target.p[path.n] == '/');
}

static bool is_usual(const struct mo_tar_entry *t, struct mo_span path)
{
    for (size_t i = 0; i < MO_COUNT(usual); i++)
        if (mo_span_is(path, usual[i].path) && mo_span_is(t->link, usual[i].to))
            return true;
    return false;
}

static bool is_guarded(const struct scan *s, struct mo_span path)
{
    for (size_t i = 0; i < MO_COUNT(guarded); i++)
        if (mo_span_is(path, guarded[i]))
            return true;
    if (mo_span_starts(path, MO_SPAN("dev/")) || leads_to(path, s->im->workdir))
        return true;
    for (const char *const *v = s->im->volumes; *v; v++)
        if (leads_to(path, *v))
            return true;
    return false;
}

static int refuse_path(struct scan *s, struct mo_span path, const char *what)
{
    return mo_fail(&s->why, MO_EPOLICY, "image: /%.*s %s",
                   (int)(path.n < 80 ? path.n : 80), path.p, what);
}

/* No directory on the way to path is a link, nor "..". */
static int check_way(struct scan *s, struct mo_span path)
{
    struct mo_span rest = path;

    while (rest.p)
        if (mo_span_is(mo_span_cut(&rest, '/'), ".."))
            return refuse_path(s, path, "leads out of its layer");
    for (size_t i = 1; path.p && i < path.n; i++)
        if (path.p[i] == '/' &&
            mo_map_get(&s->links, mo_span_head(path, i)) != NULL)
            return refuse_path(s, path, "is reached through a link");
    return 0;
}

static int check_entry(struct scan *s, const struct mo_tar_entry *t)
{
    struct mo_span path;
    bool link = t->kind == MO_TAR_SYMLINK || t->kind == MO_TAR_HARDLINK;
    int rc;

    mo_buf_reset(&s->path);
    if (mo_tar_clean(&s->path, t->path) < 0)
        return mo_fail(&s->why, mo_buf_err(&s->path), "image");
    path = mo_buf_view(&s->path);
    if (!path.n)
        return link ? refuse_path(s, path, "is a link") : 0;
    if (check_way(s, path) < 0)
        return s->why.code;
    if (link && is_guarded(s, path) && !is_usual(t, path))
        return refuse_path(s, path, "is a link");
    if (t->kind != MO_TAR_SYMLINK) {
        (void)mo_map_del(&s->links, path);
        return 0;
    }
    rc = mo_map_put(&s->links, path, s, NULL);
    return rc < 0 ? mo_fail(&s->why, rc, "image: too many links") : 0;
}

static bool is_layer(struct mo_span path)
{
    return mo_span_ends(path, MO_SPAN(".tar")) ||
           mo_span_starts(path, MO_SPAN("blobs/"));
}

/* Blobs that are not tar are JSON, or compressed and cannot be read. */
static void layer_data(struct scan *s, struct mo_span data)
{
    enum mo_tar_event ev = MO_TAR_ENTRY;
    struct mo_span piece;

    if (!s->inner_on) {
        s->inner_on = true;
        s->in_layer = data.p[0] != '{' && data.p[0] != '[';
        if ((unsigned char)data.p[0] == 0x1f ||
            (unsigned char)data.p[0] == 0x28)
            (void)mo_fail(&s->why, MO_EPOLICY,
                          "image: the engine keeps its layers compressed, "
                          "so they cannot be checked");
    }
    while (s->in_layer && !s->why.code && ev != MO_TAR_MORE) {
        ev = mo_tar_next(&s->inner, &data, &piece, &s->why);
        if (ev == MO_TAR_ENTRY && check_entry(s, &s->inner.entry) < 0)
            return;
        if (ev == MO_TAR_END)
            s->in_layer = false;
        if (ev == MO_TAR_ENTRY || ev == MO_TAR_END)
            s->any_layer = true;
    }
}

static void begin_file(struct scan *s)
{
    mo_tar_fini(&s->inner);
    mo_tar_init(&s->inner);
    s->inner_on = false;
    s->in_layer =
        s->outer.entry.kind == MO_TAR_FILE && is_layer(s->outer.entry.path);
}

static void on_data(void *ctx, struct mo_span data)
{
    struct scan *s = ctx;
    enum mo_tar_event ev = MO_TAR_ENTRY;
    struct mo_span piece;

    while (!s->why.code && ev != MO_TAR_MORE && ev != MO_TAR_END) {
        ev = mo_tar_next(&s->outer, &data, &piece, &s->why);
        if (ev == MO_TAR_ENTRY)
            begin_file(s);
        else if (ev == MO_TAR_DATA && s->in_layer)
            layer_data(s, piece);
    }
    if (s->why.code && s->call) {
        mo_engine_cancel(s->call);
        s->call = NULL;
    }
}

static void scan_free(struct scan *s)
{
    mo_tar_fini(&s->outer);
    mo_tar_fini(&s->inner);
    mo_map_fini(&s->links);
    mo_buf_fini(&s->path);
    mo_free(s);
}

static void on_done(void *ctx, const struct mo_engine_reply *r,
                    const struct mo_err *why)
{
    struct scan *s = ctx;

    (void)r;
    if (!s->why.code && why)
        s->why = *why;
    if (!s->why.code && !s->any_layer)
        (void)mo_fail(&s->why, MO_EPOLICY,
                      "image: none of its layers could be checked");
    s->done(s->ctx, s->why.code ? &s->why : NULL);
    scan_free(s);
}

int mo_image_scan(struct mo_engine *en, const struct mo_image *im,
                  mo_done_fn *done, void *ctx, struct mo_engine_call **out,
                  struct mo_err *e)
{
    char path[128];
    struct mo_engine_req req = {.path = path,
                                .stream = true,
                                .total_ms = SCAN_MS,
                                .max_bytes = SCAN_MAX,
                                .on_data = on_data};
    struct scan *s = mo_new(struct scan);
    int rc;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "image");
    *s = (struct scan){.im = im, .done = done, .ctx = ctx};
    mo_tar_init(&s->outer);
    mo_tar_init(&s->inner);
    mo_map_init(&s->links, LINKS_MAX);
    mo_buf_init(&s->path, MO_TAR_META_MAX);
    (void)snprintf(path, sizeof(path), "/images/%s/get", im->id);
    rc = mo_engine_ask(en, &req, on_done, s, &s->call, e);
    if (rc < 0)
        scan_free(s);
    else if (out)
        *out = s->call;
    return rc;
}
