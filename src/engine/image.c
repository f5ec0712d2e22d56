/* image.c - our own image: makes it, names it by its content, loads it. */
#include "engine/image.h"

#include <elf.h>
#include <stdio.h>

#include "base/file.h"
#include "codec/sha256.h"
#include "codec/tar.h"

#define LAYER_MAX   ((size_t)64 * 1024 * 1024)
#define LOAD_MS     600000u
#define BUSYBOX_MAX ((size_t)16 * 1024 * 1024)

#if defined(__aarch64__)
#    define ELF_HERE  EM_AARCH64
#    define ARCH_HERE "arm64"
#else
#    define ELF_HERE  EM_X86_64
#    define ARCH_HERE "amd64"
#endif

/* Useful in a box's shell; nothing that needs a network, a device or another
 * user. */
static const char *const applets[] = {
    "[",          "[[",       "ar",       "arch",     "ascii",     "ash",
    "awk",        "base64",   "basename", "bc",       "bunzip2",   "bzcat",
    "bzip2",      "cal",      "cat",      "chmod",    "clear",     "cmp",
    "cp",         "cpio",     "cut",      "date",     "dc",        "dd",
    "df",         "diff",     "dirname",  "dos2unix", "du",        "echo",
    "ed",         "egrep",    "env",      "expand",   "expr",      "factor",
    "fallocate",  "false",    "fgrep",    "find",     "fold",      "free",
    "getopt",     "grep",     "groups",   "gunzip",   "gzip",      "head",
    "hexdump",    "hostname", "id",       "kill",     "killall",   "less",
    "link",       "ln",       "logname",  "ls",       "lzcat",     "lzma",
    "lzop",       "md5sum",   "mkdir",    "mkfifo",   "mktemp",    "more",
    "mv",         "nl",       "nproc",    "od",       "paste",     "patch",
    "pidof",      "printf",   "ps",       "pwd",      "readlink",  "realpath",
    "reset",      "rev",      "rm",       "rmdir",    "run-parts", "sed",
    "seq",        "setsid",   "sh",       "sha1sum",  "sha256sum", "sha512sum",
    "shred",      "shuf",     "sleep",    "sort",     "stat",      "strings",
    "stty",       "sync",     "tac",      "tail",     "tar",       "taskset",
    "tee",        "test",     "time",     "timeout",  "top",       "touch",
    "tr",         "true",     "truncate", "ts",       "tty",       "uname",
    "uncompress", "unexpand", "uniq",     "unix2dos", "unlink",    "unlzma",
    "unxz",       "unzip",    "uptime",   "usleep",   "uudecode",  "uuencode",
    "vi",         "watch",    "wc",       "which",    "whoami",    "xargs",
    "xxd",        "xz",       "xzcat",    "yes",      "zcat",
};

/* --- the layer ----------------------------------------------------------- */

static void put_dir(struct mo_buf *b, const char *path, unsigned mode)
{
    struct mo_tar_entry t = {
        .kind = MO_TAR_DIR, .path = mo_span_cstr(path), .mode = mode};

    (void)mo_tar_put(b, &t, MO_SPAN(""));
}

static void put_file(struct mo_buf *b, const char *path, unsigned mode,
                     struct mo_span data)
{
    struct mo_tar_entry t = {
        .kind = MO_TAR_FILE, .path = mo_span_cstr(path), .mode = mode};

    (void)mo_tar_put(b, &t, data);
}

static void put_link(struct mo_buf *b, const char *path, const char *to)
{
    struct mo_tar_entry t = {.kind = MO_TAR_SYMLINK,
                             .path = mo_span_cstr(path),
                             .link = mo_span_cstr(to),
                             .mode = 0777};

    (void)mo_tar_put(b, &t, MO_SPAN(""));
}

static void put_busybox(struct mo_buf *b, struct mo_span busybox)
{
    char path[64];

    put_dir(b, "bin/", 0755);
    put_file(b, "bin/busybox", 0755, busybox);
    for (size_t i = 0; i < MO_COUNT(applets); i++) {
        (void)snprintf(path, sizeof(path), "bin/%s", applets[i]);
        put_link(b, path, "busybox");
    }
    put_dir(b, "usr/", 0755);
    put_link(b, "usr/bin", "../bin");
}

/* A directory has the mode of the tmpfs that is mounted on it; the box's only
 * user owns that. */
static int put_layer(struct mo_buf *b, const struct mo_image_parts *p)
{
    put_dir(b, "dev/", 0755);
    put_dir(b, "etc/", 0755);
    put_file(b, "etc/passwd", 0644, MO_SPAN("root:x:0:0:root:/:/bin/false\n"));
    put_file(b, "etc/group", 0644, MO_SPAN("root:x:0:\n"));
    put_dir(b, "proc/", 0555);
    put_dir(b, "sys/", 0555);
    put_dir(b, "tmp/", 01777);
    put_busybox(b, p->busybox);
    put_dir(b, "workspace/", 0777);
    put_file(b, &MO_IMAGE_TOOLBOX[1], 0755, p->toolbox);
    if (p->launcher.n)
        put_file(b, &MO_IMAGE_LAUNCHER[1], 0755, p->launcher);
    return mo_tar_put_end(b);
}

/* --- its description ----------------------------------------------------- */

static void put_words(struct mo_jw *w, const char *key, const char *word)
{
    mo_jw_member_arr(w, key);
    mo_jw_cstr(w, word);
    mo_jw_end(w);
}

static int put_config(struct mo_buf *b, const struct mo_image_parts *p,
                      const char *layer)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "architecture", p->arch);
    mo_jw_member_obj(&w, "config");
    put_words(&w, "Entrypoint", MO_IMAGE_TOOLBOX);
    put_words(&w, "Env", "PATH=/bin");
    mo_jw_member_cstr(&w, "User", "20000:20000");
    mo_jw_member_cstr(&w, "WorkingDir", "/workspace");
    mo_jw_end(&w);
    mo_jw_member_cstr(&w, "created", "1970-01-01T00:00:00Z");
    mo_jw_member_cstr(&w, "os", "linux");
    mo_jw_member_obj(&w, "rootfs");
    mo_jw_member_cstr(&w, "type", "layers");
    put_words(&w, "diff_ids", layer);
    mo_jw_end(&w);
    mo_jw_end(&w);
    return mo_buf_err(b);
}

static int put_manifest(struct mo_buf *b, const char *config, const char *tag)
{
    struct mo_jw w = mo_jw_array(b);

    mo_jw_obj(&w);
    mo_jw_member_cstr(&w, "Config", config);
    put_words(&w, "RepoTags", tag);
    put_words(&w, "Layers", "toolbox/layer.tar");
    mo_jw_end(&w);
    mo_jw_end(&w);
    return mo_buf_err(b);
}

/* --- all of it ----------------------------------------------------------- */

bool mo_image_is_static(struct mo_span elf)
{
    Elf64_Ehdr h;
    Elf64_Phdr ph;

    if (elf.n < sizeof(h))
        return false;
    memcpy(&h, elf.p, sizeof(h));
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
        h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != ELF_HERE)
        return false;
    for (size_t i = 0; i < h.e_phnum; i++) {
        if (h.e_phoff > elf.n || elf.n - h.e_phoff < (i + 1) * sizeof(ph))
            return false;
        memcpy(&ph, elf.p + h.e_phoff + i * sizeof(ph), sizeof(ph));
        if (ph.p_type == PT_INTERP)
            return false;
    }
    return true;
}

static int check_parts(const struct mo_image_parts *p, struct mo_err *e)
{
    if (!mo_image_is_static(p->toolbox))
        return mo_fail(e, MO_EINVAL,
                       "mo-toolbox is not a static program of this machine");
    if (!mo_image_is_static(p->busybox))
        return mo_fail(e, MO_EUNAVAIL,
                       "no static busybox for the image; "
                       "install the package busybox-static");
    return 0;
}

static int make_tar(const struct mo_image_parts *p, struct mo_image_tar *out)
{
    mo_autobuf struct mo_buf layer = {.max = LAYER_MAX};
    mo_autobuf struct mo_buf config = {.max = 4096};
    mo_autobuf struct mo_buf manifest = {.max = 4096};
    char diff_id[MO_IMAGE_ID_MAX] = "sha256:", id[MO_SHA256_HEX + 1],
         file[MO_SHA256_HEX + 8];
    int rc = put_layer(&layer, p);

    if (rc == 0) {
        mo_sha256_hex(mo_buf_view(&layer), diff_id + strlen(diff_id));
        rc = put_config(&config, p, diff_id);
    }
    if (rc < 0)
        return rc;
    mo_sha256_hex(mo_buf_view(&config), id);
    (void)snprintf(file, sizeof(file), "%s.json", id);
    (void)snprintf(out->id, sizeof(out->id), "sha256:%s", id);
    (void)snprintf(out->tag, sizeof(out->tag), "mo-toolbox:%.12s", id);
    rc = put_manifest(&manifest, file, out->tag);
    if (rc < 0)
        return rc;
    put_file(&out->tar, "toolbox/layer.tar", 0644, mo_buf_view(&layer));
    put_file(&out->tar, file, 0644, mo_buf_view(&config));
    put_file(&out->tar, "manifest.json", 0644, mo_buf_view(&manifest));
    return mo_tar_put_end(&out->tar);
}

int mo_image_make(const struct mo_image_parts *p, struct mo_image_tar *out,
                  struct mo_err *e)
{
    int rc = check_parts(p, e);

    *out = (struct mo_image_tar){.tar = {.max = MO_IMAGE_TAR_MAX}};
    if (rc < 0)
        return rc;
    rc = make_tar(p, out);
    return rc < 0 ? mo_fail(e, rc, "image") : 0;
}

/* Leaves b empty if there is none. */
static void read_busybox(struct mo_buf *b)
{
    static const char *const places[] = {"/bin/busybox", "/usr/bin/busybox",
                                         "/usr/local/bin/busybox"};

    for (size_t i = 0; i < MO_COUNT(places); i++) {
        if (mo_file_read(places[i], BUSYBOX_MAX, b, NULL, NULL) == 0 &&
            mo_image_is_static(mo_buf_view(b)))
            return;
        mo_buf_reset(b);
    }
}

int mo_image_make_here(const struct mo_image_parts *p, struct mo_image_tar *out,
                       struct mo_err *e)
{
    mo_autobuf struct mo_buf busybox = {.max = BUSYBOX_MAX};
    struct mo_image_parts all = *p;

    read_busybox(&busybox);
    all.busybox = mo_buf_view(&busybox);
    if (!all.arch)
        all.arch = ARCH_HERE;
    return mo_image_make(&all, out, e);
}

/* --- into the engine ----------------------------------------------------- */

struct ensure {
    struct mo_engine *en;
    const struct mo_image_tar *t;
    char path[128];
    bool loaded;
    mo_done_fn *done;
    void *ctx;
};

static void ensure_end(struct ensure *s, const struct mo_err *why)
{
    s->done(s->ctx, why);
    mo_free(s);
}

static void on_loaded(void *ctx, const struct mo_engine_reply *r,
                      const struct mo_err *why);

static int ensure_load(struct ensure *s, struct mo_err *e)
{
    struct mo_engine_req req = {.method = "POST",
                                .path = "/images/load?quiet=1",
                                .body = mo_buf_view(&s->t->tar),
                                .type = "application/x-tar",
                                .total_ms = LOAD_MS};

    s->loaded = mo_engine_ask(s->en, &req, on_loaded, s, NULL, e) == 0;
    return s->loaded ? 0 : e->code;
}

static void on_inspected(void *ctx, const struct mo_engine_reply *r,
                         const struct mo_err *why)
{
    struct ensure *s = ctx;
    bool missing = why && why->code == MO_ENOTFOUND;
    struct mo_err e;

    (void)r;
    if (missing && !s->loaded && ensure_load(s, &e) == 0)
        return;
    if (missing && s->loaded)
        (void)mo_fail(&e, MO_EPOLICY,
                      "the engine changed our image while loading it");
    ensure_end(s, missing ? &e : why);
}

static int ensure_inspect(struct ensure *s, struct mo_err *e)
{
    struct mo_engine_req req = {.path = s->path};

    return mo_engine_ask(s->en, &req, on_inspected, s, NULL, e);
}

/* It may answer 200 and report an error in the body: look the image up again.
 */
static void on_loaded(void *ctx, const struct mo_engine_reply *r,
                      const struct mo_err *why)
{
    struct ensure *s = ctx;
    struct mo_err e;

    (void)r;
    if (why) {
        e = *why;
        (void)mo_wrap(&e, "loading our image");
        ensure_end(s, &e);
        return;
    }
    if (ensure_inspect(s, &e) < 0)
        ensure_end(s, &e);
}

int mo_engine_image_ensure(struct mo_engine *en, const struct mo_image_tar *t,
                           mo_done_fn *done, void *ctx, struct mo_err *e)
{
    struct ensure *s = mo_new(struct ensure);
    int rc;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "image");
    *s = (struct ensure){.en = en, .t = t, .done = done, .ctx = ctx};
    (void)snprintf(s->path, sizeof(s->path), "/images/%s/json", t->id);
    rc = ensure_inspect(s, e);
    if (rc < 0)
        mo_free(s);
    return rc;
}
