/* saved_image.c - reads an archive of `docker save` and notes what is in its
 * files. */
#include "codec/ca_files.h"
#include "engine/saved_image_priv.h"

static const char *const guarded[] = {"dev", "proc", "sys",
                                      "tmp", "etc",  "workspace"};

/* Files that engines mount if there is a network. */
static const char *const of_network[] = {"etc/resolv.conf", "etc/hosts",
                                         "etc/hostname"};

/* Links that every engine puts into /dev itself. */
static const struct {
    const char *path, *to;
} usual[] = {
    {"dev/fd", "/proc/self/fd"},       {"dev/stdin", "/proc/self/fd/0"},
    {"dev/stdout", "/proc/self/fd/1"}, {"dev/stderr", "/proc/self/fd/2"},
    {"dev/ptmx", "pts/ptmx"},          {"dev/core", "/proc/kcore"},
};

int mo_saved_image_refuse(struct mo_span path, const char *what,
                          struct mo_err *e)
{
    char shown[81];
    size_t n = path.n < sizeof(shown) - 1 ? path.n : sizeof(shown) - 1;

    n = path.p ? n : 0;
    for (size_t i = 0; i < n; i++) { /* names are the image author's */
        unsigned char c = (unsigned char)path.p[i];

        shown[i] = c >= ' ' && c < 0x7f ? path.p[i] : '?';
    }
    shown[n] = 0;
    return mo_fail(e, MO_EPOLICY, "image: /%s %s", shown, what);
}

/* --- an entry of a layer ------------------------------------------------- */

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

static bool is_guarded(const struct mo_image *im, struct mo_span path)
{
    for (size_t i = 0; i < MO_COUNT(guarded); i++)
        if (mo_span_is(path, guarded[i]))
            return true;
    for (size_t i = 0; im->network && i < MO_COUNT(of_network); i++)
        if (mo_span_is(path, of_network[i]))
            return true;
    if (mo_span_starts(path, MO_SPAN("dev/")) || leads_to(path, im->workdir))
        return true;
    for (const char *const *v = im->volumes; *v; v++)
        if (leads_to(path, *v))
            return true;
    return false;
}

static struct mo_span parent_of(struct mo_span path)
{
    while (path.p && path.n && path.p[path.n - 1] != '/')
        path.n--;
    return path.n ? mo_span_head(path, path.n - 1) : path;
}

/* Is this what the trail ends with? */
static bool is_last(const struct mo_saved_image *s, char kind,
                    struct mo_span path)
{
    const char *end = s->trail.p + s->trail.len, *at;

    if (s->trail.len - s->file->from < path.n + 2)
        return false;
    at = end - path.n - 2;
    return (at == s->trail.p + s->file->from || at[-1] == 0) && *at == kind &&
           memcmp(at + 1, path.p, path.n) == 0;
}

/* Notes a path in the trail. An entry in the same directory as the one before
 * it adds nothing. */
static int note(struct mo_saved_image *s, char kind, struct mo_span path)
{
    struct mo_buf *b = &s->trail;

    if (mo_buf_err(b) || is_last(s, kind, path))
        return mo_buf_err(b);
    mo_buf_putc(b, kind);
    mo_buf_span(b, path);
    return mo_buf_putc(b, 0);
}

static void note_ca_files(struct mo_saved_image *s, struct mo_span path,
                          const struct mo_tar_entry *t, bool link)
{
    if (link && leads_to(path, MO_CA_DIR))
        s->ca_links |= 1u << MO_CA_FILES;
    for (unsigned i = 0; i < MO_CA_FILES; i++) {
        if (!leads_to(path, mo_ca_files[i].path))
            continue;
        if (link)
            s->ca_links |= 1u << i;
        else if (t->kind == MO_TAR_FILE &&
                 path.n + 1 == strlen(mo_ca_files[i].path))
            s->ca_seen |= 1u << i;
    }
}

unsigned mo_saved_image_ca_files(const struct mo_saved_image *s)
{
    return (s->ca_seen | 1 | 1u << MO_CA_FILES) & ~s->ca_links;
}

static int check_entry(struct mo_saved_image *s, const struct mo_tar_entry *t,
                       struct mo_err *e)
{
    bool link = t->kind == MO_TAR_SYMLINK || t->kind == MO_TAR_HARDLINK;
    struct mo_span path, rest, dir;

    mo_buf_reset(&s->path);
    if (mo_tar_clean(&s->path, t->path) < 0)
        return mo_fail(e, mo_buf_err(&s->path), "image");
    path = rest = mo_buf_view(&s->path);
    if (!path.n)
        return link ? mo_saved_image_refuse(path, "is a link", e) : 0;
    while (rest.p)
        if (mo_span_is(mo_span_cut(&rest, '/'), ".."))
            return mo_saved_image_refuse(path, "leads out of its layer", e);
    if (link && is_guarded(s->im, path) && !is_usual(t, path))
        return mo_saved_image_refuse(path, "is a link", e);
    note_ca_files(s, path, t, link);
    dir = parent_of(path);
    if (dir.n && note(s, 'w', dir) < 0)
        return mo_fail(e, MO_EPOLICY, "image: too many directories");
    /* A hard link may be one to a link. */
    if ((link || t->kind == MO_TAR_DIR) && note(s, link ? 'l' : 'd', path) < 0)
        return mo_fail(e, MO_EPOLICY, "image: too many links");
    return 0;
}

/* --- a file of the archive ----------------------------------------------- */

static bool all_zero(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i])
            return false;
    return true;
}

/* Reads the file as a layer, until something is found. */
static void read_layer(struct mo_saved_image *s, struct mo_span data)
{
    struct saved_file *f = s->file;
    enum mo_tar_event ev = MO_TAR_ENTRY;
    struct mo_span piece;

    while (!f->why.code && !s->inner_ended && ev != MO_TAR_MORE) {
        ev = mo_tar_next(&s->inner, &data, &piece, &f->why);
        if (ev == MO_TAR_ENTRY)
            (void)check_entry(s, &s->inner.entry, &f->why);
        s->inner_ended = ev == MO_TAR_END;
    }
    if (s->inner_ended && !f->why.code && !all_zero(data))
        (void)mo_fail(&f->why, MO_EPROTO, "tar: bytes behind its end");
}

/* Keeps the bytes of a file that begins like a JSON document. */
static void keep_text(struct mo_saved_image *s, struct mo_span data)
{
    struct saved_file *f = s->file;

    if (f->no_text)
        return;
    if (!f->text.len && data.p[0] != '{' && data.p[0] != '[')
        f->no_text = true;
    else if (s->texts + data.n > TEXTS_MAX || mo_buf_span(&f->text, data) < 0)
        f->no_text = true;
    if (!f->no_text) {
        s->texts += data.n;
        return;
    }
    s->texts -= f->text.len;
    mo_buf_fini(&f->text);
}

static void end_file(struct mo_saved_image *s)
{
    struct saved_file *f = s->file;

    if (!f)
        return;
    f->is_layer =
        !f->why.code && (s->inner_ended || mo_tar_complete(&s->inner));
    f->to = s->trail.len;
    if (!f->is_layer && !mo_buf_err(&s->trail))
        f->to = s->trail.len = f->from;
    s->file = NULL;
}

/* Sets where a link of the archive leads, relative to its own directory. */
static int set_target(struct saved_file *f, struct mo_span path,
                      struct mo_span to)
{
    struct mo_span dir = parent_of(path), rest = to;
    mo_autobuf struct mo_buf b = {.max = sizeof(f->target) - 1};

    while (mo_span_strip(&rest, MO_SPAN("../")) && dir.n)
        dir = parent_of(dir);
    mo_buf_span(&b, dir);
    mo_buf_putc(&b, '/');
    mo_buf_span(&b, rest);
    if (mo_buf_err(&b))
        return mo_buf_err(&b);
    memcpy(f->target, mo_buf_cstr(&b), b.len + 1);
    return 0;
}

static int begin_file(struct mo_saved_image *s, struct mo_err *e)
{
    const struct mo_tar_entry *t = &s->outer.entry;
    struct saved_file *f;
    int rc;

    end_file(s);
    mo_buf_reset(&s->path);
    if (t->kind != MO_TAR_FILE && t->kind != MO_TAR_SYMLINK)
        return 0;
    f = mo_new(struct saved_file);
    rc = f ? mo_tar_clean(&s->path, t->path) : MO_ENOMEM;
    if (rc == 0)
        rc = mo_map_add(&s->files, mo_buf_view(&s->path), f);
    if (rc < 0) {
        mo_free(f);
        return mo_fail(e, rc == MO_ENOMEM ? rc : MO_EPOLICY,
                       "image: %s in the engine's archive",
                       rc == MO_EEXISTS ? "two files of one name"
                                        : "too many files");
    }
    mo_buf_init(&f->text, DOCUMENT_MAX);
    f->from = f->to = s->trail.len;
    if (t->kind == MO_TAR_SYMLINK)
        return set_target(f, mo_buf_view(&s->path), t->link) < 0
                   ? mo_fail(e, MO_EPOLICY, "image: a link in the archive")
                   : 0;
    mo_tar_fini(&s->inner);
    mo_tar_init(&s->inner);
    s->inner_ended = false;
    s->file = f;
    return 0;
}

static void read_file(struct mo_saved_image *s, struct mo_span data)
{
    struct saved_file *f = s->file;

    for (size_t i = 0; i < data.n && f->nfirst < sizeof(f->first); i++)
        f->first[f->nfirst++] = data.p[i];
    keep_text(s, data);
    read_layer(s, data);
}

/* --- the archive --------------------------------------------------------- */

struct mo_saved_image *mo_saved_image_new(const struct mo_image *im)
{
    struct mo_saved_image *s = mo_new(struct mo_saved_image);

    if (!s)
        return NULL;
    s->im = im;
    mo_tar_init(&s->outer);
    mo_tar_init(&s->inner);
    mo_map_init(&s->files, FILES_MAX);
    mo_buf_init(&s->path, MO_TAR_META_MAX);
    mo_buf_init(&s->trail, TRAIL_MAX);
    return s;
}

void mo_saved_image_free(struct mo_saved_image *s)
{
    if (!s)
        return;
    mo_map_each (en, &s->files) {
        struct saved_file *f = en->value;

        mo_buf_fini(&f->text);
        mo_free(f);
    }
    mo_map_fini(&s->files);
    mo_tar_fini(&s->outer);
    mo_tar_fini(&s->inner);
    mo_buf_fini(&s->path);
    mo_buf_fini(&s->trail);
    mo_free(s);
}

int mo_saved_image_feed(struct mo_saved_image *s, struct mo_span data,
                        struct mo_err *e)
{
    enum mo_tar_event ev = MO_TAR_ENTRY;
    struct mo_span piece;

    while (ev != MO_TAR_MORE && ev != MO_TAR_END) {
        ev = mo_tar_next(&s->outer, &data, &piece, e);
        if (ev == MO_TAR_ERROR)
            return mo_wrap(e, "image: the engine's archive");
        if (ev == MO_TAR_ENTRY && begin_file(s, e) < 0)
            return e->code;
        if (ev == MO_TAR_DATA && s->file)
            read_file(s, piece);
        if (ev == MO_TAR_END)
            end_file(s);
    }
    return 0;
}
