#include "codec/picture.h"
#include "mo_test.h"

#include <string.h>

static const struct {
    const char *name;
    struct mo_span bytes;
    const char *type; /* NULL: none */
    uint32_t width, height;
} rows[] = {
    {"png", MO_SPAN("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\0\x02"),
     "image/png", 256, 2},
    {"png without its size", MO_SPAN("\x89PNG\r\n\x1a\n"), "image/png", 0, 0},
    {"gif", MO_SPAN("GIF89a\x10\0\x01\x01\0"), "image/gif", 16, 257},
    {"jpeg, the frame after another segment",
     MO_SPAN(
         "\xff\xd8\xff\xe0\0\x04\0\0\xff\xff\xc2\0\x11\x08\x01\x02\x03\x04"),
     "image/jpeg", 0x304, 0x102},
    {"jpeg, data before a frame",
     MO_SPAN("\xff\xd8\xff\xda\0\x04\0\0\xff\xc0\0\x11\x08\x01\x02\x03\x04"),
     "image/jpeg", 0, 0},
    {"jpeg, a segment of no length", MO_SPAN("\xff\xd8\xff\xe0\0\0\xff\xc0"),
     "image/jpeg", 0, 0},
    {"webp, lossy",
     MO_SPAN("RIFF....WEBPVP8 ....\0\0\0\x9d\x01\x2a\x02\x40\x03\0"),
     "image/webp", 2, 3},
    {"webp, lossless", MO_SPAN("RIFF....WEBPVP8L....\x2f\x01\x80\0\0"),
     "image/webp", 2, 3},
    {"webp, extended",
     MO_SPAN("RIFF....WEBPVP8X....\0\0\0\0\x0f\0\0\x01\x01\0"), "image/webp",
     16, 258},
    {"a wave", MO_SPAN("RIFF....WAVEfmt "), NULL, 0, 0},
    {"svg", MO_SPAN("<svg xmlns='http://www.w3.org/2000/svg'/>"), NULL, 0, 0},
    {"a script with a name of an image", MO_SPAN("#!/bin/sh\n"), NULL, 0, 0},
    {"nothing", MO_SPAN(""), NULL, 0, 0},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_picture m;
        int rc = mo_picture_read(rows[i].bytes, &m);

        print_message("%s\n", rows[i].name);
        assert_int_equal(rc, rows[i].type ? 0 : MO_EINVAL);
        if (rc < 0)
            continue;
        assert_string_equal(m.type, rows[i].type);
        assert_int_equal(m.width, rows[i].width);
        assert_int_equal(m.height, rows[i].height);
    }
}

/* Nothing is read past the end: the copy is exactly as long. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        for (size_t n = 0; n <= rows[i].bytes.n; n++) {
            char *copy = test_malloc(n + 1);
            struct mo_picture m;

            memcpy(copy + 1, rows[i].bytes.p, n);
            (void)mo_picture_read(mo_span(copy + 1, n), &m);
            test_free(copy);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
