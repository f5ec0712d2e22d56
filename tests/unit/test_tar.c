/* Archives: what we write is read back, in any pieces; what others write is
 * understood or refused. */
#include "mo_test.h"

#include "codec/tar.h"

#define MAX ((size_t)1 << 20)

/* Every entry as "kind path>link mode size data;", "!" for an error, "." for
 * the end. */
static void trace(struct mo_span in, size_t cut, struct mo_buf *out)
{
    struct mo_span half[2] = {mo_span_head(in, cut), mo_span_skip(in, cut)};
    enum mo_tar_event ev = MO_TAR_MORE;
    struct mo_span piece;
    struct mo_err e;
    struct mo_tar t;

    mo_tar_init(&t);
    for (int i = 0; i < 2 && ev != MO_TAR_ERROR && ev != MO_TAR_END; i++)
        do {
            ev = mo_tar_next(&t, &half[i], &piece, &e);
            if (ev == MO_TAR_ENTRY)
                (void)mo_buf_printf(out, ";%c %.*s>%.*s %o %llu ",
                                    "fdlho"[t.entry.kind], (int)t.entry.path.n,
                                    t.entry.path.p, (int)t.entry.link.n,
                                    t.entry.link.p, t.entry.mode,
                                    (unsigned long long)t.entry.size);
            else if (ev == MO_TAR_DATA)
                (void)mo_buf_span(out, piece);
        } while (ev == MO_TAR_ENTRY || ev == MO_TAR_DATA);
    if (ev == MO_TAR_ERROR)
        (void)mo_buf_putc(out, '!');
    else if (ev == MO_TAR_END)
        (void)mo_buf_putc(out, '.');
    mo_tar_fini(&t);
}

static void check_trace(const char *name, struct mo_span in, const char *want)
{
    struct mo_buf out;

    mo_buf_init(&out, MAX);
    for (size_t cut = 0; cut <= in.n; cut++) {
        mo_buf_reset(&out);
        trace(in, cut, &out);
        if (strcmp(mo_buf_cstr(&out), want) != 0)
            fail_msg("row '%s' cut at %zu: %s", name, cut, mo_buf_cstr(&out));
    }
    mo_buf_fini(&out);
}

static void put(struct mo_buf *b, enum mo_tar_kind kind, const char *path,
                const char *link, const char *data)
{
    struct mo_tar_entry t = {.kind = kind,
                             .path = mo_span_cstr(path),
                             .link = mo_span_cstr(link),
                             .mode = 0750};

    (void)mo_tar_put(b, &t, mo_span_cstr(data));
}

static void written_is_read(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    put(&b, MO_TAR_DIR, "bin/", "", "");
    put(&b, MO_TAR_FILE, "bin/a", "", "hello");
    put(&b, MO_TAR_SYMLINK, "bin/b", "a", "");
    put(&b, MO_TAR_HARDLINK, "bin/c", "bin/a", "");
    put(&b, MO_TAR_FILE, "empty", "", "");
    assert_int_equal(mo_tar_put_end(&b), 0);
    assert_int_equal(b.len % MO_TAR_BLOCK, 0);
    check_trace("all kinds", mo_buf_view(&b),
                ";d bin/> 750 0 ;f bin/a> 750 5 hello;l bin/b>a 750 0 "
                ";h bin/c>bin/a 750 0 ;f empty> 750 0 .");
    mo_buf_fini(&b);
}

/* A path of any length, also where the record's own length gets another
 * digit. */
static void long_paths(void **state)
{
    static const char zeros[MO_TAR_BLOCK];
    static const size_t lengths[] = {1, 100, 101, 988, 989, 990, 991, 992};
    char path[1000], want[1100];

    (void)state;
    memset(path, 'p', sizeof(path));
    for (size_t i = 0; i < MO_COUNT(lengths); i++) {
        size_t n = lengths[i];
        const struct mo_tar_entry t = {.path = mo_span(path, n), .mode = 0750};
        struct mo_buf b;

        mo_buf_init(&b, MAX);
        assert_int_equal(mo_tar_put_pax_head(&b, &t, 2, 1700000000), 0);
        (void)mo_buf_puts(&b, "hi");
        (void)mo_buf_put(&b, zeros, mo_tar_padding(2));
        (void)mo_tar_put_end(&b);
        (void)snprintf(want, sizeof(want), ";f %.*s> 750 2 hi.", (int)n, path);
        check_trace("a long path", mo_buf_view(&b), want);
        mo_buf_fini(&b);
    }
}

static void the_same_bytes_each_time(void **state)
{
    struct mo_buf a, b;

    (void)state;
    mo_buf_init(&a, MAX);
    mo_buf_init(&b, MAX);
    put(&a, MO_TAR_FILE, "x", "", "data");
    put(&b, MO_TAR_FILE, "x", "", "data");
    assert_true(mo_span_eq(mo_buf_view(&a), mo_buf_view(&b)));
    assert_int_equal(a.len, 2 * MO_TAR_BLOCK);
    mo_buf_fini(&a);
    mo_buf_fini(&b);
}

static void refused_to_write(void **state)
{
    char name[102];
    struct mo_buf b;

    (void)state;
    memset(name, 'a', 101);
    name[101] = 0;
    mo_buf_init(&b, MAX);
    put(&b, MO_TAR_FILE, name, "", "");
    assert_int_equal(mo_buf_err(&b), MO_EINVAL);
    mo_buf_reset(&b);
    put(&b, MO_TAR_SYMLINK, "a", name, "");
    assert_int_equal(mo_buf_err(&b), MO_EINVAL);
    mo_buf_reset(&b);
    put(&b, MO_TAR_FILE, "", "", "");
    assert_int_equal(mo_buf_err(&b), MO_EINVAL);
    mo_buf_reset(&b);
    put(&b, MO_TAR_OTHER, "a", "", "");
    assert_int_equal(mo_buf_err(&b), MO_EINVAL);
    mo_buf_reset(&b);
    name[100] = 0;
    put(&b, MO_TAR_FILE, name, name, "");
    assert_int_equal(mo_buf_err(&b), 0);
    mo_buf_fini(&b);
}

/* --- what others write --------------------------------------------------- */

/* Turn the last head of b (its data excluded) into another type, with another
 * sum. */
static void retype(struct mo_buf *b, size_t at, char type)
{
    unsigned char *h = (unsigned char *)b->p + at;
    unsigned sum = 0;
    char text[8];

    h[156] = (unsigned char)type;
    memset(h + 148, ' ', 8);
    for (size_t i = 0; i < MO_TAR_BLOCK; i++)
        sum += h[i];
    (void)snprintf(text, sizeof(text), "%06o", sum);
    memcpy(h + 148, text, 7);
}

static void put_as(struct mo_buf *b, char type, const char *path,
                   const char *data)
{
    size_t at = b->len;

    put(b, MO_TAR_FILE, path, "", data);
    retype(b, at, type);
}

static void names_in_other_forms(void **state)
{
    static const struct {
        const char *name;
        char type;
        const char *data, *want;
    } rows[] = {
        {"GNU name", 'L', "a/long/name", ";f a/long/name> 750 1 x."},
        {"GNU link", 'K', "a/long/link", ";f s>a/long/link 750 1 x."},
        {"pax path", 'x', "16 path=in/pax\n", "!"},
        {"pax path", 'x', "15 path=in/pax\n", ";f in/pax> 750 1 x."},
        {"pax link", 'x', "15 linkpath=ab\n", ";f s>ab 750 1 x."},
        {"pax, of no concern", 'x', "11 mtime=1\n", ";f s> 750 1 x."},
        {"pax, two", 'x', "11 mtime=1\n10 path=p\n", ";f p> 750 1 x."},
        {"pax size", 'x', "10 size=1\n", ";f s> 750 1 x."},
        {"pax, empty", 'x', "", ";f s> 750 1 x."},
        {"pax for all", 'g', "13 comment=x\n", ";f s> 750 1 x."},
        {"xattr", 'x', "20 SCHILY.xattr.a=b\n", ";f s> 750 1 x."},
        {"binary names", 'x', "21 hdrcharset=BINARY\n", ";f s> 750 1 x."},
        {"a device", '3', "", ";o dev> 750 0 ;f s> 750 1 x."},
        {"pax without a length", 'x', "path=p\n", "!"},
        {"pax without a key", 'x', "5 abc\n", "!"},
        {"pax over its end", 'x', "99 path=p\n", "!"},
        {"pax of nothing", 'x', "0 \n", "!"},
        {"pax size that is none", 'x', "10 size=x\n", "!"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;

        mo_buf_init(&b, MAX);
        put_as(&b, rows[i].type, "dev", rows[i].data);
        put(&b, MO_TAR_FILE, "s", "", "x");
        (void)mo_tar_put_end(&b);
        check_trace(rows[i].name, mo_buf_view(&b), rows[i].want);
        mo_buf_fini(&b);
    }
}

/* Rows that two readers may read differently. */
static void ambiguous_ones(void **state)
{
    static const struct {
        const char *name;
        char type;
        const char *data;
    } rows[] = {
        {"sparse", 'S', "x"},
        {"sparse, by pax", 'x', "22 GNU.sparse.major=1\n"},
        {"sparse name", 'x', "25 GNU.sparse.name=dev/a\n"},
        {"sparse for all", 'g', "22 GNU.sparse.major=1\n"},
        {"star's sparse", 'x', "21 SCHILY.realsize=9\n"},
        {"directory dump", 'D', "x"},
        {"next volume", 'M', "x"},
        {"volume label", 'V', ""},
        {"contiguous", '7', "x"},
        {"Solaris' pax", 'X', "10 path=p\n"},
        {"path for all", 'g', "12 path=all\n"},
        {"size for all", 'g', "10 size=9\n"},
        {"link for all", 'g', "15 linkpath=ab\n"},
        {"two paths", 'x', "10 path=p\n10 path=q\n"},
        {"two links", 'x', "14 linkpath=p\n14 linkpath=q\n"},
        {"two sizes", 'x', "10 size=1\n10 size=1\n"},
        {"empty path", 'x', "8 path=\n"},
        {"empty size", 'x', "8 size=\n"},
        {"no key", 'x', "5 =x\n"},
        {"size beyond all", 'x', "28 size=9223372036854775807\n"},
        {"negative size", 'x', "11 size=-1\n"},
        {"another charset", 'x', "21 hdrcharset=LATIN1\n"},
        {"data of a directory", '5', "x"},
        {"data of a link", '2', "x"},
        {"data of a hard link", '1', "x"},
        {"empty long name", 'L', ""},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        put_as(&b, rows[i].type, "dev", rows[i].data);
        put(&b, MO_TAR_FILE, "s", "", "x");
        (void)mo_tar_put_end(&b);
        check_trace(rows[i].name, mo_buf_view(&b), "!");
    }
    mo_buf_fini(&b);
}

static void ambiguous_pairs(void **state)
{
    static const struct {
        const char *name;
        char type[2];
        const char *data[2];
    } rows[] = {
        {"two pax", {'x', 'x'}, {"10 path=p\n", "11 mtime=1\n"}},
        {"pax and GNU name", {'x', 'L'}, {"10 path=p\n", "q"}},
        {"GNU name and pax", {'L', 'x'}, {"q", "10 path=p\n"}},
        {"two GNU names", {'L', 'L'}, {"q", "p"}},
        {"for all between", {'x', 'g'}, {"10 path=p\n", "13 comment=x\n"}},
        {"for all behind a name", {'L', 'g'}, {"q", "13 comment=x\n"}},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        put_as(&b, rows[i].type[0], "a", rows[i].data[0]);
        put_as(&b, rows[i].type[1], "a", rows[i].data[1]);
        put(&b, MO_TAR_FILE, "s", "", "x");
        check_trace(rows[i].name, mo_buf_view(&b), "!");
    }
    mo_buf_fini(&b);
}

/* Changes of a header's bytes that readers take differently. */
static void ambiguous_headers(void **state)
{
    static const struct {
        const char *name;
        size_t at;
        struct mo_span bytes;
        const char *want;
    } rows[] = {
        {"GNU", 257, {"ustar  \0", 8}, ";f a> 750 1 x."},
        {"before ustar", 257, {"\0\0\0\0\0\0\0\0", 8}, ";f a> 750 1 x."},
        {"odd magic", 257, {"ustar.00", 8}, "!"},
        {"star's trailer", 508, {"tar\0", 4}, "!"},
        {"a file as a directory", 0, {"a/", 2}, "!"},
        {"size beyond all", 124, {"\x80\x7f\0\0", 4}, "!"},
        {"negative size", 124, {"\xff\xff\xff\xff", 4}, "!"},
        {"size with a gap", 124, {"0000 001\0\0\0\0", 12}, "!"},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        put(&b, MO_TAR_FILE, "a", "", "x");
        memcpy(b.p + rows[i].at, rows[i].bytes.p, rows[i].bytes.n);
        retype(&b, 0, '0');
        (void)mo_tar_put_end(&b);
        check_trace(rows[i].name, mo_buf_view(&b), rows[i].want);
    }
    /* Go's reader would put this in front of the name */
    mo_buf_reset(&b);
    put(&b, MO_TAR_FILE, "null", "", "");
    memcpy(b.p + 257, "ustar  ", 8);
    memcpy(b.p + 345, "dev", 3);
    retype(&b, 0, '0');
    check_trace("GNU with a prefix", mo_buf_view(&b), "!");
    memcpy(b.p + 345, "00000000001", 11);
    retype(&b, 0, '0');
    check_trace("GNU with a time", mo_buf_view(&b), ";f null> 750 0 ");
    mo_buf_fini(&b);
}

static void names_with_nul(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    put_as(&b, 'L', "x", "dev/null");
    put(&b, MO_TAR_FILE, "s", "", "");
    b.p[MO_TAR_BLOCK + 3] = 0;
    check_trace("GNU", mo_buf_view(&b), "!");
    mo_buf_reset(&b);
    put_as(&b, 'x', "x", "15 path=in/pax\n");
    put(&b, MO_TAR_FILE, "s", "", "");
    b.p[MO_TAR_BLOCK + 10] = 0;
    check_trace("pax", mo_buf_view(&b), "!");
    mo_buf_fini(&b);
}

static void a_prefix_counts(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    put(&b, MO_TAR_FILE, "name", "", "");
    memcpy(b.p + 345, "pre/fix", 7);
    retype(&b, 0, '0');
    (void)mo_tar_put_end(&b);
    check_trace("prefix", mo_buf_view(&b), ";f pre/fix/name> 750 0 .");
    mo_buf_fini(&b);
}

static void sizes_in_other_forms(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    put(&b, MO_TAR_FILE, "a", "", "abc");
    memset(b.p + 124, 0, 12);
    b.p[124] = (char)0x80;
    b.p[135] = 3;
    retype(&b, 0, '0');
    (void)mo_tar_put_end(&b);
    check_trace("base 256", mo_buf_view(&b), ";f a> 750 3 abc.");
    memset(b.p + 124, 0xff, 12);
    retype(&b, 0, '0');
    check_trace("beyond all", mo_buf_view(&b), "!");
    mo_buf_fini(&b);
}

static void broken_ones(void **state)
{
    struct mo_buf b;
    char big[MO_TAR_META_MAX + 2];

    (void)state;
    mo_buf_init(&b, MAX);
    put(&b, MO_TAR_FILE, "a", "", "abc");
    b.p[0] = 'b';
    check_trace("wrong sum", mo_buf_view(&b), "!");
    mo_buf_reset(&b);
    (void)mo_buf_put(&b, (char[MO_TAR_BLOCK]){0}, MO_TAR_BLOCK);
    put(&b, MO_TAR_FILE, "a", "", "");
    check_trace("empty block in the middle", mo_buf_view(&b), "!");
    mo_buf_reset(&b);
    memset(big, 'a', sizeof(big));
    big[sizeof(big) - 1] = 0;
    put_as(&b, 'L', "x", big);
    check_trace("name without end", mo_span(b.p, 1024), "!");
    mo_buf_fini(&b);
}

static void clean_paths(void **state)
{
    static const struct {
        const char *in, *want;
    } rows[] = {
        {"a/b", "a/b"},   {"./a/b", "a/b"}, {"/a//b/", "a/b"},
        {".", ""},        {"/", ""},        {"", ""},
        {"a/./b", "a/b"}, {"..", ".."},     {"a/../b", "a/../b"},
        {"./", ""},       {"...", "..."},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;

        mo_buf_init(&b, 100);
        check_row(rows[i].in, mo_tar_clean(&b, mo_span_cstr(rows[i].in)) == 0);
        check_row(rows[i].in, strcmp(mo_buf_cstr(&b), rows[i].want) == 0);
        mo_buf_fini(&b);
    }
}

static void torture_body(void *ctx)
{
    struct mo_buf out;

    mo_buf_init(&out, MAX);
    trace(*(struct mo_span *)ctx, 700, &out);
    mo_buf_fini(&out);
}

static void memory_may_fail(void **state)
{
    struct mo_span in;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    put_as(&b, 'L', "x", "a/long/name");
    put_as(&b, 'x', "x", "15 linkpath=ab\n");
    put(&b, MO_TAR_FILE, "a", "", "abc");
    (void)mo_tar_put_end(&b);
    in = mo_buf_view(&b);
    torture(torture_body, &in);
    mo_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_is_read),
        cmocka_unit_test(long_paths),
        cmocka_unit_test(the_same_bytes_each_time),
        cmocka_unit_test(refused_to_write),
        cmocka_unit_test(names_in_other_forms),
        cmocka_unit_test(ambiguous_ones),
        cmocka_unit_test(ambiguous_pairs),
        cmocka_unit_test(ambiguous_headers),
        cmocka_unit_test(names_with_nul),
        cmocka_unit_test(a_prefix_counts),
        cmocka_unit_test(sizes_in_other_forms),
        cmocka_unit_test(broken_ones),
        cmocka_unit_test(clean_paths),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
