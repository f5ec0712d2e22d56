/* image_look.c - checks a foreign image's command, environment and volumes. */
#include <stdio.h>

#include "codec/http/url.h"
#include "engine/image.h"

#define ARENA_MAX ((size_t)256 * 1024)

/* The engine mounts these itself: no start or mount inside them. */
static const char *const reserved[] = {"/proc", "/dev", "/sys"};

static int no_memory(struct mo_err *e)
{
    return mo_fail(e, MO_ENOMEM, "image");
}

void mo_image_free(struct mo_image *im)
{
    if (!im)
        return;
    mo_arena_fini(&im->arena);
    mo_free(im);
}

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == 0);
}

/* "/a/b": absolute, nothing empty, no "." or "..", no control bytes. */
static bool is_clean(const char *path)
{
    struct mo_span rest = mo_span_cstr(path);

    if (path[0] != '/')
        return false;
    for (const char *p = path; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == ':' || *p == ',')
            return false;
    if (rest.n == 1)
        return true;
    rest = mo_span_skip(rest, 1);
    while (rest.p) {
        struct mo_span part = mo_span_cut(&rest, '/');

        if (!part.n || mo_span_is(part, ".") || mo_span_is(part, ".."))
            return false;
    }
    return true;
}

static int check_path(const char *what, const char *path, struct mo_err *e)
{
    if (!is_clean(path))
        return mo_fail(e, MO_EPOLICY,
                       "image: its %s '%.80s' is not a plain "
                       "absolute path",
                       what, path);
    for (size_t i = 0; i < MO_COUNT(reserved); i++)
        if (is_below(path, reserved[i]))
            return mo_fail(e, MO_EPOLICY, "image: its %s '%.80s' is in %s",
                           what, path, reserved[i]);
    return 0;
}

/* --- reading ------------------------------------------------------------- */

/* Copies a string of the engine; NULL and why. */
static const char *copy_word(struct mo_image *im, struct mo_json v,
                             struct mo_err *e)
{
    const char *out = NULL;
    struct mo_span s;

    if (!mo_json_is(v, MO_JSON_STRING))
        return mo_null(mo_fail(e, MO_EPROTO, "image: a word is not text"));
    if (mo_json_str(v, &im->arena, &s) == 0)
        out = mo_span_dup(&im->arena, s).p;
    if (!out)
        return mo_null(no_memory(e));
    if (strlen(out) != s.n)
        return mo_null(mo_fail(e, MO_EPOLICY, "image: a word with NUL"));
    return out;
}

/* Append an array's words to v, which has room for MO_IMAGE_WORDS_MAX. */
static int append_words(struct mo_image *im, struct mo_json array,
                        const char **v, size_t *n, struct mo_err *e)
{
    mo_json_each (at, array) {
        if (*n >= MO_IMAGE_WORDS_MAX)
            return mo_fail(e, MO_EPOLICY,
                           "image: more than %d words of command or "
                           "environment",
                           MO_IMAGE_WORDS_MAX);
        v[*n] = copy_word(im, at.val, e);
        if (!v[*n])
            return e->code;
        (*n)++;
    }
    return 0;
}

static const char **words_new(struct mo_image *im)
{
    return mo_arena_zalloc(&im->arena,
                           (MO_IMAGE_WORDS_MAX + 1) * sizeof(char *));
}

static int read_words(struct mo_image *im, struct mo_json config,
                      struct mo_err *e)
{
    const char **argv = words_new(im);
    const char **env = words_new(im);
    size_t nargv = 0, nenv = 0;
    int rc;

    if (!argv || !env)
        return no_memory(e);
    rc = append_words(im, mo_json_get(config, "Entrypoint"), argv, &nargv, e);
    if (rc == 0)
        rc = append_words(im, mo_json_get(config, "Cmd"), argv, &nargv, e);
    if (rc == 0)
        rc = append_words(im, mo_json_get(config, "Env"), env, &nenv, e);
    for (size_t i = 0; rc == 0 && i < nenv; i++)
        if (mo_span_find(mo_span_cstr(env[i]), '=') < 1)
            rc = mo_fail(e, MO_EPOLICY, "image: its environment entry '%.80s'",
                         env[i]);
    im->argv = argv;
    im->env = env;
    return rc;
}

static int read_workdir(struct mo_image *im, struct mo_json config,
                        struct mo_err *e)
{
    struct mo_json v = mo_json_get(config, "WorkingDir");
    const char *path;

    im->workdir = "/";
    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str_eq(v, MO_SPAN("")))
        return 0;
    path = copy_word(im, v, e);
    if (!path)
        return e->code;
    im->workdir = path;
    return check_path("WORKDIR", path, e);
}

/* {"/data": {}}: each is covered by a tmpfs, else it would be on the host's
 * disk. */
static int read_volumes(struct mo_image *im, struct mo_json config,
                        struct mo_err *e)
{
    const char **v = words_new(im);
    const char *path;
    size_t n = 0;

    if (!v)
        return no_memory(e);
    im->volumes = v;
    mo_json_each (at, mo_json_get(config, "Volumes")) {
        if (n >= MO_IMAGE_VOLUMES_MAX)
            return mo_fail(e, MO_EPOLICY, "image: more than %d VOLUMEs",
                           MO_IMAGE_VOLUMES_MAX);
        path = copy_word(im, at.key, e);
        if (!path || check_path("VOLUME", path, e) < 0)
            return e->code;
        if (strcmp(path, "/") == 0)
            return mo_fail(e, MO_EPOLICY, "image: its root is a VOLUME");
        /* these two are ours already */
        if (strcmp(path, "/tmp") != 0 && strcmp(path, "/workspace") != 0)
            v[n++] = path;
    }
    return 0;
}

static int read_id(struct mo_image *im, struct mo_json inspect,
                   struct mo_err *e)
{
    const char *id = copy_word(im, mo_json_get(inspect, "Id"), e);
    const char *kind = "sha256:";

    if (!id)
        return e->code;
    /* podman omits "sha256:" */
    if (strncmp(id, kind, 7) == 0)
        id += 7;
    if (strlen(id) != 64 || strspn(id, "0123456789abcdef") != 64)
        return mo_fail(e, MO_EPROTO, "image: the engine gave it no id");
    (void)snprintf(im->id, sizeof(im->id), "%s%s", kind, id);
    if (!mo_json_str_eq(mo_json_get(inspect, "Os"), MO_SPAN("linux")))
        return mo_fail(e, MO_EPOLICY, "image: it is not for Linux");
    return 0;
}

int mo_image_read(struct mo_json inspect, struct mo_image **out,
                  struct mo_err *e)
{
    struct mo_json config = mo_json_get(inspect, "Config");
    struct mo_image *im = mo_new(struct mo_image);

    if (!im)
        return no_memory(e);
    mo_arena_init(&im->arena, ARENA_MAX);
    if (read_id(im, inspect, e) < 0 || read_words(im, config, e) < 0 ||
        read_workdir(im, config, e) < 0 || read_volumes(im, config, e) < 0) {
        mo_image_free(im);
        return e->code;
    }
    *out = im;
    return 0;
}

/* --- asking -------------------------------------------------------------- */

struct look {
    mo_image_looked *done;
    void *ctx;
    char ref[256];
};

static void on_inspected(void *ctx, const struct mo_engine_reply *r,
                         const struct mo_err *why)
{
    struct look *s = ctx;
    struct mo_image *im = NULL;
    struct mo_err e;
    int rc = why ? why->code : mo_image_read(r->json, &im, &e);

    if (why)
        e = *why;
    if (rc < 0)
        (void)mo_wrap(&e, "image %s", s->ref);
    s->done(s->ctx, im, rc < 0 ? &e : NULL);
    mo_free(s);
}

int mo_image_look(struct mo_engine *en, const char *ref, mo_image_looked *done,
                  void *ctx, struct mo_engine_call **out, struct mo_err *e)
{
    struct mo_engine_req req = {.method = "GET"};
    mo_autobuf struct mo_buf b = {.max = MO_ENGINE_PATH_MAX};
    struct look *s;
    int rc;

    if (strlen(ref) >= sizeof(s->ref))
        return mo_fail(e, MO_EINVAL, "image: its name is too long");
    s = mo_new(struct look);
    if (!s)
        return no_memory(e);
    *s = (struct look){.done = done, .ctx = ctx};
    (void)snprintf(s->ref, sizeof(s->ref), "%s", ref);
    (void)mo_buf_puts(&b, "/images/");
    (void)mo_pct_encode(&b, mo_span_cstr(ref));
    (void)mo_buf_puts(&b, "/json");
    req.path = mo_buf_cstr(&b);
    rc = mo_buf_err(&b) ? mo_fail(e, mo_buf_err(&b), "image")
                        : mo_engine_ask(en, &req, on_inspected, s, out, e);
    if (rc < 0)
        mo_free(s);
    return rc;
}
