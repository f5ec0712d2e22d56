/* test_zip.c - archives of others: read as they are, or refused. */
#include "codec/zip.h"
#include "mo_test.h"

static int keep_piece(void *ctx, struct mo_span piece, struct mo_err *e)
{
    (void)e;
    return mo_buf_span(ctx, piece);
}

/* Deflated texts, made with zlib: fixed codes, dynamic ones, a copied block, a
 * match over its own end. */
static void test_inflate(void **state)
{
    static const struct {
        const char *in;
        size_t n;
        const char *out; /* NULL: refused */
    } rows[] = {
        {"\x4b\x4c\x4a\x06\x00\x00", 6, NULL}, /* bytes behind it */
        {"\x4b\x4c\x4a\x06\x00", 5, "abc"},
        {"\x4b\x4c\x84\x01\x00", 5, "aaaaaaaaaa"},
        {"\x01\x03\x00\xfc\xff"
         "abc",
         8, "abc"},
        {"\x01\x03\x00\xfc\xfe"
         "abc",
         8, NULL},
        {"\x01\x04\x00\xfb\xff"
         "abc",
         8, NULL},
        {"\x03\x00", 2, ""},
        {"\x03", 1, NULL},
        {"", 0, NULL},
        {"\x07", 1, NULL},         /* the fourth kind of block */
        {"\x03\x02\x00", 3, NULL}, /* from before the start */
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 1000};
        struct mo_err e = {0};
        int rc = mo_inflate(mo_span(rows[i].in, rows[i].n), 1000, keep_piece,
                            &b, &e);

        if ((rc == 0) != (rows[i].out != NULL))
            fail_msg("row %zu: %d %s", i, rc, e.msg);
        if (rc == 0)
            assert_string_equal(b.len ? mo_buf_cstr(&b) : "", rows[i].out);
        for (size_t n = 0; rc == 0 && n < rows[i].n; n++) {
            mo_buf_reset(&b);
            assert_true(mo_inflate(mo_span(rows[i].in, n), 1000, keep_piece, &b,
                                   NULL) < 0);
        }
    }
}

static void test_inflate_limit(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 1000};

    (void)state;
    assert_int_equal(
        mo_inflate(MO_SPAN("\x4b\x4c\x84\x01\x00"), 9, keep_piece, &b, NULL),
        MO_ETOOBIG);
}

/* --- a writer of two entries, with a mistake if asked for --------------- */

static void put_n(struct mo_buf *b, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        (void)mo_buf_putc(b, (char)(v >> (8 * i)));
}

struct make {
    const char *name, *local; /* local: NULL: the same */
    uint32_t size, packed, crc, flags, method, at, mode, count, disk;
    const char *tail;
};
static const struct make good = {.name = "a/b.txt",
                                 .size = 3,
                                 .packed = 3,
                                 .crc = 0x352441c2,
                                 .mode = 0100644,
                                 .count = 1,
                                 .tail = ""};

static void put_common(struct mo_buf *b, const struct make *m, const char *name)
{
    put_n(b, 20, 2);
    put_n(b, m->flags, 2);
    put_n(b, m->method, 2);
    put_n(b, 0, 4);
    put_n(b, m->crc, 4);
    put_n(b, m->packed, 4);
    put_n(b, m->size, 4);
    put_n(b, (uint32_t)strlen(name), 2);
    put_n(b, 0, 2);
}

static void make_zip(const struct make *m, struct mo_buf *b)
{
    const char *local = m->local ? m->local : m->name;
    uint32_t dir;

    put_n(b, 0x04034b50, 4);
    put_common(b, m, local);
    mo_buf_puts(b, local);
    mo_buf_puts(b, "abc");
    dir = (uint32_t)b->len;
    put_n(b, 0x02014b50, 4);
    put_n(b, 3 << 8 | 20, 2);
    put_common(b, m, m->name);
    put_n(b, 0, 2);
    put_n(b, m->disk, 2);
    put_n(b, 0, 2);
    put_n(b, m->mode << 16, 4);
    put_n(b, m->at, 4);
    mo_buf_puts(b, m->name);
    {
        uint32_t size = (uint32_t)b->len - dir;

        put_n(b, 0x06054b50, 4);
        put_n(b, 0, 4);
        put_n(b, m->count, 2);
        put_n(b, m->count, 2);
        put_n(b, size, 4);
        put_n(b, dir, 4);
        put_n(b, 0, 2);
    }
    mo_buf_puts(b, m->tail);
}

/* All of it: 0, or the first error. */
static int read_all(struct mo_span file, struct mo_buf *out, struct mo_err *e)
{
    struct mo_zip_entry x;
    struct mo_zip z;
    int rc = mo_zip_open(&z, file, e);

    while (rc >= 0) {
        rc = mo_zip_next(&z, &x, e);
        if (rc <= 0)
            return rc;
        mo_buf_span(out, x.name);
        mo_buf_puts(out, x.is_link ? "@" : x.is_dir ? "/" : ":");
        rc = mo_zip_read(&x, keep_piece, out, e);
    }
    return rc;
}

static void test_zip(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 1000}, out = {.max = 1000};
    struct mo_err e = {0};

    (void)state;
    make_zip(&good, &b);
    assert_int_equal(read_all(mo_buf_view(&b), &out, &e), 0);
    assert_string_equal(mo_buf_cstr(&out), "a/b.txt:abc");
    for (size_t n = 0; n < b.len; n++) {
        mo_buf_reset(&out);
        assert_true(read_all(mo_span(b.p, n), &out, NULL) < 0);
    }
    for (size_t i = 0; i < b.len; i++) { /* no byte can crash it */
        b.p[i] ^= (char)0xff;
        mo_buf_reset(&out);
        (void)read_all(mo_buf_view(&b), &out, NULL);
        b.p[i] ^= (char)0xff;
    }
}

static void test_zip_refused(void **state)
{
    static const char *const names[] = {"",
                                        "/a",
                                        "../a",
                                        "a/../b",
                                        "a/..",
                                        "./a",
                                        "a//b",
                                        "a\\b",
                                        "c:a",
                                        "a\nb",
                                        "..",
                                        "a/./b",
                                        "a/../../etc/passwd"};
    static const struct {
        const char *why;
        struct make m;
    } rows[] = {
#define ROW(why, local, size, packed, crc, flags, method, at, count, disk,     \
            tail)                                                              \
    {                                                                          \
        why,                                                                   \
        {                                                                      \
            "a", local, size, packed, crc, flags, method, at, 0100644, count,  \
                disk, tail                                                     \
        }                                                                      \
    }
#define CRC 0x352441c2
        ROW("another CRC", NULL, 3, 3, 1, 0, 0, 0, 1, 0, ""),
        ROW("another local name", "b", 3, 3, CRC, 0, 0, 0, 1, 0, ""),
        ROW("encrypted", NULL, 3, 3, CRC, 1, 0, 0, 1, 0, ""),
        ROW("another method", NULL, 3, 3, CRC, 0, 9, 0, 1, 0, ""),
        ROW("stored with two sizes", NULL, 4, 3, CRC, 0, 0, 0, 1, 0, ""),
        ROW("longer than the file", NULL, 999, 999, CRC, 0, 0, 0, 1, 0, ""),
        ROW("an offset in the data", NULL, 3, 3, CRC, 0, 0, 2, 1, 0, ""),
        ROW("an offset behind the file", NULL, 3, 3, CRC, 0, 0, 99999, 1, 0,
            ""),
        ROW("another disk", NULL, 3, 3, CRC, 0, 0, 0, 1, 1, ""),
        ROW("more entries than there are", NULL, 3, 3, CRC, 0, 0, 0, 2, 0, ""),
        ROW("fewer", NULL, 3, 3, CRC, 0, 0, 0, 0, 0, ""),
        ROW("zip64", NULL, 3, 3, CRC, 0, 0, 0, 0xffff, 0, ""),
        ROW("bytes behind it", NULL, 3, 3, CRC, 0, 0, 0, 1, 0, "x"),
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(names) + MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 4096}, out = {.max = 4096};
        struct make m = good;
        struct mo_err e = {0};

        if (i < MO_COUNT(names))
            m.name = names[i];
        else
            m = rows[i - MO_COUNT(names)].m;
        make_zip(&m, &b);
        if (read_all(mo_buf_view(&b), &out, &e) >= 0)
            fail_msg("accepted: %s", i < MO_COUNT(names)
                                         ? names[i]
                                         : rows[i - MO_COUNT(names)].why);
    }
}

static void test_zip_links(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 1000}, out = {.max = 1000};
    struct make m = good;

    (void)state;
    m.mode = 0120777;
    make_zip(&m, &b);
    assert_int_equal(read_all(mo_buf_view(&b), &out, NULL), 0);
    assert_string_equal(mo_buf_cstr(&out), "a/b.txt@abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inflate),   cmocka_unit_test(test_inflate_limit),
        cmocka_unit_test(test_zip),       cmocka_unit_test(test_zip_refused),
        cmocka_unit_test(test_zip_links),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
