/* Images: ours is always the same; what others declare is judged. */
#include "mo_test.h"

#include <elf.h>

#include "codec/sha256.h"
#include "codec/tar.h"
#include "engine/image.h"

#if defined(__aarch64__)
#    define HERE EM_AARCH64
#else
#    define HERE EM_X86_64
#endif

static struct {
    Elf64_Ehdr h;
    Elf64_Phdr ph;
    char name; /* so that two programs differ */
} elf[2];

static struct mo_span program(int i, unsigned machine, unsigned segment)
{
    memset(&elf[i], 0, sizeof(elf[i]));
    memcpy(elf[i].h.e_ident, ELFMAG, SELFMAG);
    elf[i].h.e_ident[EI_CLASS] = ELFCLASS64;
    elf[i].h.e_machine = (Elf64_Half)machine;
    elf[i].h.e_phoff = sizeof(elf[i].h);
    elf[i].h.e_phnum = 1;
    elf[i].ph.p_type = segment;
    elf[i].name = (char)('a' + i);
    return mo_span((const char *)&elf[i], sizeof(elf[i]));
}

static struct mo_image_parts parts(void)
{
    return (struct mo_image_parts){.toolbox = program(0, HERE, PT_LOAD),
                                   .busybox = program(1, HERE, PT_LOAD),
                                   .arch = "arm64"};
}

static void static_programs(void **state)
{
    struct mo_span p = program(0, HERE, PT_LOAD);

    (void)state;
    assert_true(mo_image_is_static(p));
    assert_false(mo_image_is_static(program(0, HERE, PT_INTERP)));
    assert_false(mo_image_is_static(program(0, EM_S390, PT_LOAD)));
    assert_false(mo_image_is_static(mo_span(p.p, 10)));
    assert_false(mo_image_is_static(MO_SPAN("#!/bin/sh\n")));
    (void)program(0, HERE, PT_LOAD);
    elf[0].h.e_phnum = 60000;
    assert_false(mo_image_is_static(p));
    elf[0].h.e_phnum = 1;
    elf[0].h.e_phoff = UINT64_MAX - 4;
    assert_false(mo_image_is_static(p));
}

/* The paths in a tar, one after the other; layers are looked into. */
static void names(struct mo_span in, struct mo_buf *out)
{
    enum mo_tar_event ev = MO_TAR_ENTRY;
    bool layer = false;
    struct mo_span piece;
    struct mo_err e;
    struct mo_tar t;

    mo_tar_init(&t);
    while (ev == MO_TAR_ENTRY || ev == MO_TAR_DATA) {
        ev = mo_tar_next(&t, &in, &piece, &e);
        if (ev == MO_TAR_ENTRY) {
            (void)mo_buf_span(out, t.entry.path);
            (void)mo_buf_putc(out, ' ');
            layer = mo_span_ends(t.entry.path, MO_SPAN("layer.tar"));
        } else if (ev == MO_TAR_DATA && layer) {
            names(piece, out);
        }
    }
    assert_int_equal(ev, MO_TAR_END);
    mo_tar_fini(&t);
}

static void ours_is_always_the_same(void **state)
{
    struct mo_image_parts p = parts();
    struct mo_image_tar a, b;
    struct mo_buf seen;
    struct mo_err e;

    (void)state;
    assert_int_equal(mo_image_make(&p, &a, &e), 0);
    assert_int_equal(mo_image_make(&p, &b, &e), 0);
    assert_string_equal(a.id, b.id);
    assert_int_equal(strlen(a.id), 7 + 64);
    assert_true(mo_span_eq(mo_buf_view(&a.tar), mo_buf_view(&b.tar)));
    assert_int_equal(strncmp(a.tag, "mo-toolbox:", 11), 0);
    assert_int_equal(strncmp(a.tag + 11, a.id + 7, 12), 0);
    mo_buf_init(&seen, 65536);
    names(mo_buf_view(&a.tar), &seen);
    assert_non_null(strstr(mo_buf_cstr(&seen), " toolbox "));
    assert_non_null(strstr(mo_buf_cstr(&seen), " bin/busybox "));
    assert_non_null(strstr(mo_buf_cstr(&seen), " bin/sh "));
    assert_non_null(strstr(mo_buf_cstr(&seen), " workspace/ "));
    assert_non_null(strstr(mo_buf_cstr(&seen), " manifest.json "));
    assert_non_null(strstr(mo_buf_cstr(&seen), a.id + 7));
    mo_buf_fini(&seen);
    mo_buf_fini(&b.tar);

    elf[1].name = 'z'; /* another busybox is another image */
    assert_int_equal(mo_image_make(&p, &b, &e), 0);
    assert_string_not_equal(a.id, b.id);
    mo_buf_fini(&a.tar);
    mo_buf_fini(&b.tar);
}

static void parts_that_will_not_do(void **state)
{
    struct mo_image_parts p = parts();
    struct mo_image_tar t;
    struct mo_err e;

    (void)state;
    p.toolbox = MO_SPAN("no program");
    assert_int_equal(mo_image_make(&p, &t, &e), MO_EINVAL);
    p = parts();
    p.busybox = MO_SPAN("");
    assert_int_equal(mo_image_make(&p, &t, &e), MO_EUNAVAIL);
    assert_non_null(strstr(e.msg, "busybox-static"));
}

#define ID "0123456789012345678901234567890123456789012345678901234567890123"
#define IMAGE(config)                                                          \
    "{\"Id\":\"sha256:" ID "\",\"Os\":\"linux\",\"Config\":" config "}"

static int read_image(const char *text, struct mo_image **im, struct mo_err *e)
{
    struct mo_json_doc doc;

    assert_int_equal(mo_json_parse(mo_span_cstr(text), 0, &doc, NULL), 0);
    return mo_image_read(doc.root, im, e);
}

static void honest_ones(void **state)
{
    struct mo_image *im = NULL;
    struct mo_err e;

    (void)state;
    assert_int_equal(
        read_image(IMAGE("{\"Entrypoint\":[\"node\"],\"Cmd\":[\"a.js\"],"
                         "\"Env\":[\"PATH=/x\",\"A=\"],\"WorkingDir\":\"/app\","
                         "\"Volumes\":{\"/data\":{},\"/tmp\":{},\"/v\":{}}}"),
                   &im, &e),
        0);
    assert_string_equal(im->id, "sha256:" ID);
    assert_string_equal(im->argv[0], "node");
    assert_string_equal(im->argv[1], "a.js");
    assert_null(im->argv[2]);
    assert_string_equal(im->env[1], "A=");
    assert_null(im->env[2]);
    assert_string_equal(im->workdir, "/app");
    assert_string_equal(im->volumes[0], "/data");
    assert_string_equal(im->volumes[1], "/v");
    assert_null(im->volumes[2]);
    mo_image_free(im);
    assert_int_equal(read_image(IMAGE("{}"), &im, &e), 0);
    assert_string_equal(im->workdir, "/");
    assert_null(im->argv[0]);
    mo_image_free(im);
    assert_int_equal(
        read_image("{\"Id\":\"" ID "\",\"Os\":\"linux\"}", &im, &e), 0);
    assert_string_equal(im->id, "sha256:" ID);
    mo_image_free(im);
    mo_image_free(NULL);
}

static void others(void **state)
{
    static const struct {
        const char *name, *text;
        int code;
    } rows[] = {
        {"no id", "{\"Os\":\"linux\"}", MO_EPROTO},
        {"short id", "{\"Id\":\"sha256:12\",\"Os\":\"linux\"}", MO_EPROTO},
        {"odd id",
         "{\"Id\":\"sha256:../../../../../../../../../../../../../../../../../"
         "../../../../x\",\"Os\":\"linux\"}",
         MO_EPROTO},
        {"windows", "{\"Id\":\"" ID "\",\"Os\":\"windows\"}", MO_EPOLICY},
        {"workdir", IMAGE("{\"WorkingDir\":\"/proc/self/fd/8\"}"), MO_EPOLICY},
        {"workdir up", IMAGE("{\"WorkingDir\":\"/a/../b\"}"), MO_EPOLICY},
        {"workdir relative", IMAGE("{\"WorkingDir\":\"a\"}"), MO_EPOLICY},
        {"workdir double", IMAGE("{\"WorkingDir\":\"//a\"}"), MO_EPOLICY},
        {"workdir control", IMAGE("{\"WorkingDir\":\"/a\\nb\"}"), MO_EPOLICY},
        {"workdir dev", IMAGE("{\"WorkingDir\":\"/dev\"}"), MO_EPOLICY},
        {"volume colon", IMAGE("{\"Volumes\":{\"/a:/b\":{}}}"), MO_EPOLICY},
        {"volume comma", IMAGE("{\"Volumes\":{\"/a,exec\":{}}}"), MO_EPOLICY},
        {"volume sys", IMAGE("{\"Volumes\":{\"/sys/x\":{}}}"), MO_EPOLICY},
        {"volume root", IMAGE("{\"Volumes\":{\"/\":{}}}"), MO_EPOLICY},
        {"volume slash", IMAGE("{\"Volumes\":{\"/a/\":{}}}"), MO_EPOLICY},
        {"env", IMAGE("{\"Env\":[\"noequals\"]}"), MO_EPOLICY},
        {"env nameless", IMAGE("{\"Env\":[\"=x\"]}"), MO_EPOLICY},
        {"word", IMAGE("{\"Cmd\":[1]}"), MO_EPROTO},
        {"NUL", IMAGE("{\"Cmd\":[\"a\\u0000b\"]}"), MO_EPOLICY},
    };
    struct mo_image *im;
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].name,
                  read_image(rows[i].text, &im, &e) == rows[i].code);
    /* not below, only alike */
    assert_int_equal(
        read_image(IMAGE("{\"WorkingDir\":\"/process\"}"), &im, &e), 0);
    mo_image_free(im);
}

static void torture_body(void *ctx)
{
    struct mo_image_parts p = parts();
    struct mo_image_tar t;
    struct mo_image *im;
    struct mo_err e;

    (void)ctx;
    (void)mo_image_make(&p, &t, &e);
    mo_buf_fini(&t.tar);
    if (read_image(IMAGE("{\"Cmd\":[\"a\\tb\"],\"Env\":[\"A=\\t\"],"
                         "\"WorkingDir\":\"/\\u0061\","
                         "\"Volumes\":{\"/a\":{}}}"),
                   &im, &e) == 0)
        mo_image_free(im);
}

static void memory_may_fail(void **state)
{
    (void)state;
    torture(torture_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(static_programs),
        cmocka_unit_test(ours_is_always_the_same),
        cmocka_unit_test(parts_that_will_not_do),
        cmocka_unit_test(honest_ones),
        cmocka_unit_test(others),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
