/* The layers of an image: found by the manifest, whatever stands beside them;
 * refused if they cannot be read or lead astray. */
#include "mo_test.h"

#include "codec/tar.h"
#include "engine/saved_image.h"

#define MAX ((size_t)1 << 20)

#define A "sha256:aaaa"

static void put(struct mo_buf *b, enum mo_tar_kind kind, const char *path,
                const char *link, struct mo_span data)
{
    struct mo_tar_entry t = {
        .kind = kind, .path = mo_span_cstr(path), .link = mo_span_cstr(link)};

    assert_int_equal(mo_tar_put(b, &t, data), 0);
}

/* A layer from words: "dir/", "file", "link>to", "hard=to". */
static void put_entries(struct mo_buf *b, const char *words)
{
    struct mo_span rest = mo_span_cstr(words);

    while (rest.p && rest.n) {
        struct mo_span word = mo_span_cut(&rest, ' ');
        ptrdiff_t soft = mo_span_find(word, '>'),
                  hard = mo_span_find(word, '=');
        ptrdiff_t at = soft >= 0 ? soft : hard;
        char path[64], link[64] = "";

        (void)snprintf(path, sizeof(path), "%.*s",
                       (int)(at < 0 ? (ptrdiff_t)word.n : at), word.p);
        if (at >= 0)
            (void)snprintf(link, sizeof(link), "%.*s",
                           (int)word.n - (int)at - 1, word.p + at + 1);
        put(b,
            soft >= 0                          ? MO_TAR_SYMLINK
            : hard >= 0                        ? MO_TAR_HARDLINK
            : mo_span_ends(word, MO_SPAN("/")) ? MO_TAR_DIR
                                               : MO_TAR_FILE,
            path, link,
            at < 0 && !mo_span_ends(word, MO_SPAN("/")) ? MO_SPAN("x")
                                                        : MO_SPAN(""));
    }
}

static void put_layer(struct mo_buf *b, const char *path, const char *words)
{
    struct mo_buf layer;

    mo_buf_init(&layer, MAX);
    put_entries(&layer, words);
    (void)mo_tar_put_end(&layer);
    put(b, MO_TAR_FILE, path, "", mo_buf_view(&layer));
    mo_buf_fini(&layer);
}

static void put_text(struct mo_buf *b, const char *path, const char *text)
{
    put(b, MO_TAR_FILE, path, "", mo_span_cstr(text));
}

static int judge(struct mo_buf *b, size_t cut, struct mo_err *e)
{
    static const char *const none[] = {NULL};
    struct mo_image im = {.workdir = "/app/run", .volumes = none};
    struct mo_saved_image *s = mo_saved_image_new(&im);
    struct mo_span all = mo_buf_view(b);
    int rc = MO_ENOMEM;

    e->code = 0;
    e->msg[0] = 0;
    if (s) {
        rc = mo_saved_image_feed(s, mo_span_head(all, cut), e);
        if (rc == 0)
            rc = mo_saved_image_feed(s, mo_span_skip(all, cut), e);
        if (rc == 0)
            rc = mo_saved_image_end(s, e);
    }
    mo_saved_image_free(s);
    return rc;
}

/* Judges the archive, cut in two at many places; want: a part of the refusal,
 * or NULL. The archive is emptied. */
static void check(const char *name, struct mo_buf *b, const char *want)
{
    struct mo_err e;

    (void)mo_tar_put_end(b);
    assert_int_equal(mo_buf_err(b), 0);
    for (size_t cut = 0; cut <= b->len; cut += 97) {
        int rc = judge(b, cut, &e);

        if (want ? rc != MO_EPOLICY || !strstr(e.msg, want) : rc != 0)
            fail_msg("%s, cut at %zu: %d %s", name, cut, rc, e.msg);
    }
    mo_buf_reset(b);
}

#define CONFIG(ids)  "{\"rootfs\":{\"diff_ids\":[" ids "]}}"
#define LIST(layers) "[{\"Config\":\"c.json\",\"Layers\":[" layers "]}]"

/* manifest.json with one layer, in the form of old engines. */
static void put_one(struct mo_buf *b)
{
    put_text(b, "c.json", CONFIG("1"));
    put_text(b, "manifest.json", LIST("\"0/layer.tar\""));
}

static void one_layer(void **state)
{
    static const struct {
        const char *words, *want;
    } rows[] = {
        {"bin/ bin/a bin/b>a usr/bin>../bin", NULL},
        {"dev/ dev/fd>/proc/self/fd etc/mtab>/proc/mounts", NULL},
        {"", NULL},
        {"{x a", NULL},
        {"{x dev>/x", "/dev is a link"},
        {"[x dev/null>/x", "/dev/null is a link"},
        {"dev/null=x", "/dev/null is a link"},
        {"app>/x", "/app is a link"},
        {"app/run>/x", "/app/run is a link"},
        {"app/run2>/x", NULL},
        {"./dev>/x", "/dev is a link"},
        {"a/../dev>/x", "leads out of its layer"},
        {"x>. x/dev>/x", "through it"},
        {"x>. y=x y/dev>/x", "through it"},
        {"x>. x/a/b/c", "through it"},
        {"x>. x/ x/a", NULL},
        {"zwx>a x/ x/dev", NULL},
        {"x>a zwx x/b", "through it"},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        put_layer(&b, "0/layer.tar", rows[i].words);
        put_one(&b);
        check(rows[i].words, &b, rows[i].want);
    }
    mo_buf_fini(&b);
}

/* Files that certificates may be mounted over: no link is on the way. */
static void certificates(void **state)
{
    static const struct {
        const char *words;
        unsigned files;
    } rows[] = {
        {"bin/a", 1},
        {"run/ etc/ssl/certs/ca-certificates.crt", 3},
        {"etc/ssl/certs/ etc/ssl/certs/ca-certificates.crt/a", 1},
        {"etc/ssl", 1},
        {"etc/ssl>x", 1},
        {"etc/ssl/cert.pem>certs/a etc/ssl/ca-bundle.pem", 5},
        {"etc/ssl/ca-bundle.pem etc/ssl/ca-bundle.pem=b", 1},
        {"run>x", 128},
        {"run/ca-certificates>x", 129},
        {"run/ca-certificates.crt>x etc/ssl/certs/java/cacerts", 64},
        {"etc/ssl/certs>../pki etc/pki/ca-trust/extracted/pem/"
         "tls-ca-bundle.pem",
         33},
    };
    static const char *const none[] = {NULL};
    struct mo_image im = {.workdir = "/", .volumes = none};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_saved_image *s = mo_saved_image_new(&im);
        mo_autobuf struct mo_buf b = {.max = MAX};
        struct mo_err e;

        put_layer(&b, "0/layer.tar", rows[i].words);
        put_one(&b);
        (void)mo_tar_put_end(&b);
        check_row(rows[i].words,
                  mo_saved_image_feed(s, mo_buf_view(&b), &e) == 0 &&
                      mo_saved_image_end(s, &e) == 0 &&
                      mo_saved_image_ca_files(s) == (rows[i].files ^ 128));
        mo_saved_image_free(s);
    }
}

/* The order is that of the manifest, not that of the archive. */
static void the_manifest_orders(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    put_layer(&b, "a.tar", "x/dev>/m");
    put_layer(&b, "b.tar", "x>.");
    put_text(&b, "c.json", CONFIG("1,2"));
    put_text(&b, "manifest.json", LIST("\"b.tar\",\"a.tar\""));
    check("upper layer first in the archive", &b, "through it");
    put_layer(&b, "a.tar", "x/ x/a");
    put_layer(&b, "b.tar", "x>.");
    put_text(&b, "c.json", CONFIG("1,2"));
    put_text(&b, "manifest.json", LIST("\"b.tar\",\"a.tar\""));
    check("a directory on top of a link", &b, NULL);
    put_layer(&b, "a.tar", "a");
    put_layer(&b, "other.tar", "dev>/x");
    put_text(&b, "c.json", CONFIG("1"));
    put_text(&b, "manifest.json", LIST("\"a.tar\""));
    check("a file that is no layer", &b, NULL);
    put_layer(&b, "a", "dev>/x");
    put_text(&b, "c.json", CONFIG("1"));
    put_text(&b, "manifest.json", LIST("\"a\""));
    check("a layer of any name", &b, "/dev is a link");
    put_text(&b, "c.json", CONFIG("1,2"));
    put_text(&b, "manifest.json", LIST("\"a.tar\",\"x/layer.tar\""));
    put(&b, MO_TAR_SYMLINK, "x/layer.tar", "../a.tar", MO_SPAN(""));
    put_layer(&b, "a.tar", "a");
    check("a layer twice, by a link", &b, NULL);
    mo_buf_fini(&b);
}

static void no_manifest_no_start(void **state)
{
    static const struct {
        const char *config, *manifest, *want;
    } rows[] = {
        {CONFIG("1"), "[]", "one image"},
        {CONFIG("1"), "{}", "one image"},
        {CONFIG("1"), "[{", "one image"},
        {CONFIG("1"), LIST("\"0/layer.tar\"") " x", "one image"},
        {CONFIG("1"), "[{},{}]", "one image"},
        {CONFIG("1"), LIST("\"1/layer.tar\""), "is missing"},
        {CONFIG("1"), LIST("1"), "is missing"},
        {CONFIG("1"), LIST(""), "different layers"},
        {CONFIG("1,2"), LIST("\"0/layer.tar\""), "different layers"},
        {"[]", LIST("\"0/layer.tar\""), "different layers"},
        {"x", LIST("\"0/layer.tar\""), "no configuration"},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        put_layer(&b, "0/layer.tar", "a");
        put_text(&b, "c.json", rows[i].config);
        put_text(&b, "manifest.json", rows[i].manifest);
        check(rows[i].manifest, &b, rows[i].want);
    }
    put_layer(&b, "0/layer.tar", "a");
    check("no manifest at all", &b, "no manifest");
    put_layer(&b, "0/layer.tar", "dev>/x");
    put_one(&b);
    put_layer(&b, "./0/layer.tar", "a");
    check("two of one name", &b, "two files of one name");
    mo_buf_fini(&b);
}

static void layers_in_other_forms(void **state)
{
    static const struct {
        struct mo_span data;
        const char *want;
    } rows[] = {
        {{"\x1f\x8b\x08\0\0", 5}, "compressed"},
        {{"\x28\xb5\x2f\xfd", 4}, "compressed"},
        {{"{\"a\":1}", 7}, "ends early"},
        {{"x", 1}, "ends early"},
    };
    char junk[1024];
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        put(&b, MO_TAR_FILE, "0/layer.tar", "", rows[i].data);
        put_one(&b);
        check(rows[i].want, &b, rows[i].want);
    }
    memset(junk, 'x', sizeof(junk));
    put(&b, MO_TAR_FILE, "0/layer.tar", "", mo_span(junk, sizeof(junk)));
    put_one(&b);
    check("no tar", &b, "a layer: tar: bad header");
    mo_buf_fini(&b);
}

static void nothing_behind_the_end(void **state)
{
    struct mo_buf b, layer;

    (void)state;
    mo_buf_init(&b, MAX);
    mo_buf_init(&layer, MAX);
    put_entries(&layer, "a");
    (void)mo_tar_put_end(&layer);
    (void)mo_tar_put_end(&layer); /* filler, as GNU tar adds */
    put(&b, MO_TAR_FILE, "0/layer.tar", "", mo_buf_view(&layer));
    put_one(&b);
    check("filler", &b, NULL);
    put_entries(&layer, "dev>/x");
    put(&b, MO_TAR_FILE, "0/layer.tar", "", mo_buf_view(&layer));
    put_one(&b);
    check("a second archive", &b, "behind its end");
    mo_buf_fini(&layer);
    mo_buf_fini(&b);
}

/* --- OCI layout ---------------------------------------------------------- */

#define TAR_TYPE "application/vnd.oci.image.layer.v1.tar"
#define INDEX                                                                  \
    "{\"manifests\":[{\"mediaType\":"                                          \
    "\"application/vnd.oci.image.manifest.v1+json\","                          \
    "\"digest\":\"sha256:mmmm\"}]}"
#define MANIFEST(type)                                                         \
    "{\"config\":{\"digest\":\"sha256:cccc\"},\"layers\":[{\"mediaType\":"     \
    "\"" type "\",\"digest\":\"" A "\"}]}"

static void put_oci(struct mo_buf *b, const char *words, const char *manifest)
{
    put_layer(b, "blobs/sha256/aaaa", words);
    put_text(b, "blobs/sha256/cccc", CONFIG("1"));
    put_text(b, "blobs/sha256/mmmm", manifest);
    put_text(b, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
}

static void oci_layout(void **state)
{
    static const struct {
        const char *words, *manifest, *want;
    } rows[] = {
        {"a", MANIFEST(TAR_TYPE), NULL},
        {"a", MANIFEST("application/vnd.docker.image.rootfs.diff.tar"), NULL},
        {"{x dev>/x", MANIFEST(TAR_TYPE), "/dev is a link"},
        {"a", MANIFEST(TAR_TYPE "+gzip"), "media type"},
        {"a", MANIFEST("application/x"), "media type"},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        put_oci(&b, rows[i].words, rows[i].manifest);
        put_text(&b, "index.json", INDEX);
        check(rows[i].manifest, &b, rows[i].want);
        /* and with the manifest of old engines beside it */
        put_oci(&b, rows[i].words, rows[i].manifest);
        put_text(&b, "index.json", INDEX);
        put_text(&b, "manifest.json",
                 "[{\"Config\":\"blobs/sha256/cccc\",\"Layers\":"
                 "[\"blobs/sha256/aaaa\"]}]");
        check(rows[i].manifest, &b, rows[i].want);
    }
    put_oci(&b, "a", MANIFEST(TAR_TYPE));
    put_text(&b, "index.json", "{\"manifests\":[]}");
    check("no image", &b, "one image manifest");
    put_oci(&b, "a", MANIFEST(TAR_TYPE));
    put_text(&b, "index.json",
             "{\"manifests\":[{\"mediaType\":\"application/x\","
             "\"digest\":\"sha256:mmmm\"}]}");
    check("unknown manifest", &b, "one image manifest");
    mo_buf_fini(&b);
}

/* An index that names itself is read once. */
static void loops_end(void **state)
{
    static const char loop[] = "{\"manifests\":[{\"digest\":\"sha256:mmmm\"},"
                               "{\"digest\":\"sha256:mmmm\"}]}";
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    put_layer(&b, "0/layer.tar", "a");
    put_one(&b);
    put_text(&b, "blobs/sha256/mmmm", loop);
    put_text(&b, "index.json", loop);
    check("index in itself", &b, NULL);
    put(&b, MO_TAR_SYMLINK, "manifest.json", "manifest.json", MO_SPAN(""));
    check("link to itself", &b, "no manifest");
    mo_buf_fini(&b);
}

static void an_early_end(void **state)
{
    struct mo_buf b;
    struct mo_err e;

    (void)state;
    mo_buf_init(&b, MAX);
    put_layer(&b, "0/layer.tar", "a");
    put_one(&b);
    for (size_t i = 0; i < b.len; i += 61) {
        struct mo_buf part = b;

        part.len = i;
        if (judge(&part, i / 2, &e) != MO_EPOLICY)
            fail_msg("cut off at %zu: %s", i, e.msg);
    }
    mo_buf_fini(&b);
}

static void torture_body(void *ctx)
{
    struct mo_err e;

    (void)judge(ctx, 700, &e);
}

static void memory_may_fail(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    put_oci(&b, "a b>a c/ c/d", MANIFEST(TAR_TYPE));
    put_text(&b, "index.json", INDEX);
    (void)mo_tar_put_end(&b);
    torture(torture_body, &b);
    mo_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_layer),
        cmocka_unit_test(certificates),
        cmocka_unit_test(the_manifest_orders),
        cmocka_unit_test(no_manifest_no_start),
        cmocka_unit_test(layers_in_other_forms),
        cmocka_unit_test(nothing_behind_the_end),
        cmocka_unit_test(oci_layout),
        cmocka_unit_test(loops_end),
        cmocka_unit_test(an_early_end),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
