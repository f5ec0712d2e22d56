/* Cache files: round trip, and every way a file can be wrong. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "catalog_kit.h"

/* How many files are below dir; the last one's path. */
static size_t files(const char *dir, char path[400])
{
    DIR *d = opendir(dir);
    const struct dirent *en = NULL;
    size_t n = 0;

    if (d == NULL)
        return 0;
    for (en = readdir(d); en; en = readdir(d)) {
        if (en->d_name[0] == '.')
            continue;
        snprintf(path, 400, "%s/%s", dir, en->d_name);
        n++;
    }
    closedir(d);
    return n;
}

static void write_file(const char *path, struct mo_span text)
{
    mo_autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.p, text.n), (ssize_t)text.n);
}

static void read_file(const char *path, struct mo_buf *b)
{
    mo_autofd int fd = open(path, O_RDONLY);
    ssize_t n = 0;

    assert_true(fd >= 0);
    n = read(fd, mo_buf_room(b, 65536), 65536);
    assert_true(n > 0);
    mo_buf_add(b, (size_t)n);
}

static struct mo_catalog *again(const char *dir, const char *spec)
{
    return kit_new(COLLISION, dir, MO_CAT_TOOLS, spec);
}

#define SPEC "a/../b -"

/* A server with items of every kind, on disk. */
static void fill(const char *dir)
{
    struct mo_catalog *c = again(dir, SPEC " r,\"x\":[1,\t0.10] s.t");
    unsigned changed = 0;

    assert_int_equal(kit_put(c, 0, MO_CAT_RESOURCES, "x:1", &changed), 0);
    assert_int_equal(kit_put(c, 0, MO_CAT_TEMPLATES, "x:{a}", &changed), 0);
    assert_int_equal(kit_put(c, 0, MO_CAT_PROMPTS, "", &changed), 0);
    mo_catalog_done(c, 0, js("{ \"tools\":\n{} }"), js("{\"name\":\"N\"}"));
    assert_false(c->v[0].lists->dirty);
    mo_catalog_free(c);
}

static void test_round_trip(void **state)
{
    char top[64], dir[80], path[400];
    struct mo_catalog *c = NULL;
    struct mo_buf b;
    struct stat st, later;

    (void)state;
    kit_dir(top);
    snprintf(dir, sizeof(dir), "%s/x/y", top); /* made when it is needed */
    mo_buf_init(&b, 1 << 20);
    fill(dir);
    assert_int_equal(files(dir, path), 1);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);

    c = again(dir, SPEC);
    assert_true(mo_catalog_known(c, 0));
    assert_null(mo_catalog_why(c, 0));
    assert_true(mo_span_starts(mo_span_cstr(kit_words(c, MO_CAT_TOOLS, &b)),
                               MO_SPAN("r=0/r s_t_")));
    assert_true(
        mo_span_is(mo_json_text(mo_catalog_at(c, MO_CAT_TOOLS, 0)->item),
                   "{\"name\":\"r\",\"x\":[1,\t0.10]}"));
    assert_string_equal(kit_words(c, MO_CAT_RESOURCES, &b), "x:1=0/x:1");
    assert_string_equal(kit_words(c, MO_CAT_TEMPLATES, &b), "x:{a}=0/x:{a}");
    assert_true(
        mo_span_is(mo_buf_view(&c->v[0].lists->caps), "{\"tools\":{}}"));
    assert_true(
        mo_span_is(mo_json_text(mo_catalog_info(c, 0)), "{\"name\":\"N\"}"));
    assert_int_equal(strlen(c->v[0].lists->date), MO_ISO8601_MAX - 1);

    /* the same again is not written again */
    mo_catalog_done(c, 0, js("{\"tools\":{}}"), js("{\"name\":\"N\"}"));
    assert_int_equal(stat(path, &later), 0);
    assert_true(later.st_ino == st.st_ino);
    mo_catalog_done(c, 0, js("{}"), js("{\"name\":\"N\"}"));
    assert_int_equal(files(dir, path), 1); /* no temporary file is left */
    mo_catalog_free(c);

    c = again(dir, SPEC ";other -");
    assert_true(mo_span_is(mo_buf_view(&c->v[0].lists->caps), "{}"));
    assert_false(mo_catalog_known(c, 1));
    mo_catalog_free(c);
    mo_buf_fini(&b);
    kit_undir(top);
}

/* A file cut at any byte is ignored; with any byte changed, the result is
 * still a catalogue. */
static void test_damaged(void **state)
{
    char dir[64], path[400];
    struct mo_buf b;
    static const char name[] = "a/../b", digest[] = "digest of a/../b";

    (void)state;
    kit_dir(dir);
    fill(dir);
    assert_int_equal(files(dir, path), 1);
    mo_buf_init(&b, 1 << 20);
    read_file(path, &b);
    for (size_t i = 0; i < b.len; i++) {
        struct server_lists *s = mo_catalog_lists_new();

        assert_int_equal(
            mo_catalog_cache_parse(mo_span(b.p, i), name, digest, s),
            MO_EPROTO);
        assert_false(s->known);
        assert_null(s->list[0]);
        mo_catalog_lists_free(s);
    }
    for (size_t i = 0; i < 8 * b.len; i++) {
        struct server_lists *s = mo_catalog_lists_new();
        int rc = 0;

        b.p[i / 8] = (char)(b.p[i / 8] ^ (1 << i % 8));
        rc = mo_catalog_cache_parse(mo_buf_view(&b), name, digest, s);
        assert_true(rc == 0 || rc == MO_EPROTO);
        assert_true(s->known == (rc == 0));
        b.p[i / 8] = (char)(b.p[i / 8] ^ (1 << i % 8));
        mo_catalog_lists_free(s);
    }
    write_file(path, mo_span(b.p, b.len / 2));
    assert_int_equal(files(dir, path), 1);
    {
        struct mo_catalog *c = again(dir, SPEC " new");

        assert_false(mo_catalog_known(c, 0));
        mo_catalog_done(c, 0, nothing, nothing); /* and the file is repaired */
        mo_catalog_free(c);
        c = again(dir, SPEC);
        assert_true(mo_catalog_known(c, 0));
        assert_non_null(mo_catalog_find(c, MO_CAT_TOOLS, MO_SPAN("new")));
        mo_catalog_free(c);
    }
    mo_buf_fini(&b);
    kit_undir(dir);
}

#define HEAD "{\"version\":3,\"name\":\"n\",\"digest\":\"d\""

static void test_foreign(void **state)
{
    static const struct {
        const char *name, *text;
        int rc;
    } rows[] = {
        {"nothing in it", HEAD "}", 0},
        {"more than we know", HEAD ",\"x\":1}", 0},
        {"lists", HEAD ",\"tools\":[{\"name\":\"a\"}]}", 0},
        {"odd date", HEAD ",\"date\":7}", 0},
        {"another version", "{\"version\":1,\"name\":\"n\",\"digest\":\"d\"}",
         MO_EPROTO},
        {"no version", "{\"name\":\"n\",\"digest\":\"d\"}", MO_EPROTO},
        {"a version in quotes",
         "{\"version\":\"3\",\"name\":\"n\",\"digest\":\"d\"}", MO_EPROTO},
        {"another server", "{\"version\":3,\"name\":\"m\",\"digest\":\"d\"}",
         MO_EPROTO},
        {"another digest", "{\"version\":3,\"name\":\"n\",\"digest\":\"e\"}",
         MO_EPROTO},
        {"digest twice", HEAD ",\"digest\":\"e\"}", MO_EPROTO},
        {"tools are no array", HEAD ",\"tools\":{}}", MO_EPROTO},
        {"capabilities are no object", HEAD ",\"capabilities\":[]}", MO_EPROTO},
        {"more behind it", HEAD "} {}", MO_EPROTO},
        {"an array", "[1]", MO_EPROTO},
        {"empty", "", MO_EPROTO},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct server_lists *s = mo_catalog_lists_new();

        check_row(rows[i].name,
                  mo_catalog_cache_parse(mo_span_cstr(rows[i].text), "n", "d",
                                         s) == rows[i].rc);
        check_row(rows[i].name, s->known == (rows[i].rc == 0));
        mo_catalog_lists_free(s);
    }
}

/* Changes made to a list are known after a restart, too. */
static void test_notes(void **state)
{
    static const struct mo_definition_notes notes = {
        .nmended = 2,
        .nleft_out = 1,
        .mended = "tool a (it has no inputSchema), tool \"b\" (x)",
        .left_out = "tool c (y)",
    };
    char dir[64];
    struct mo_catalog *c = NULL;
    mo_autobuf struct mo_buf b = {.max = 4096};

    (void)state;
    kit_dir(dir);
    c = again(dir, "s - a b");
    mo_catalog_note(c, 0, MO_CAT_TOOLS, &notes);
    mo_catalog_done(c, 0, nothing, nothing);
    mo_catalog_free(c);
    c = again(dir, "s -");
    assert_true(mo_catalog_known(c, 0));
    assert_string_equal(mo_catalog_why(c, 0), "1 tools left out: tool c (y)");
    mo_catalog_put_mended(c, 0, &b);
    assert_string_equal(mo_buf_cstr(&b),
                        "2 tools mended: tool a (it has no inputSchema), "
                        "tool \"b\" (x)");
    mo_catalog_free(c);
    kit_undir(dir);
}

static void check_unread(const char *dir)
{
    struct mo_catalog *c = again(dir, SPEC);

    assert_false(mo_catalog_known(c, 0));
    mo_catalog_free(c);
}

/* Anything may exist under the file's name. */
static void test_no_file(void **state)
{
    char dir[64], path[400], to[440];

    (void)state;
    kit_dir(dir);
    fill(dir);
    assert_int_equal(files(dir, path), 1);
    snprintf(to, sizeof(to), "%s/elsewhere", dir);
    assert_int_equal(rename(path, to), 0);
    check_unread(dir);
    assert_int_equal(symlink(to, path), 0);
    check_unread(dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    check_unread(dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    check_unread(dir);
    assert_int_equal(rmdir(path), 0);
    write_file(path, MO_SPAN("x"));
    assert_int_equal(truncate(path, (off_t)CAT_FILE_MAX + 1), 0);
    check_unread(dir);
    assert_int_equal(truncate(path, 0), 0);
    check_unread(dir);
    kit_undir(dir);
}

static void test_unsaved(void **state)
{
    char dir[64], path[400];
    struct mo_catalog *c = NULL;

    (void)state;
    kit_dir(dir);
    snprintf(path, sizeof(path), "%s/file", dir);
    write_file(path, MO_SPAN("x"));
    c = again(path, SPEC " r");
    mo_catalog_done(c, 0, nothing, nothing);
    assert_true(c->v[0].lists->dirty);
    assert_null(mo_catalog_why(c, 0)); /* clients see everything */
    assert_int_equal(mo_catalog_count(c, MO_CAT_TOOLS), 1);
    mo_catalog_free(c);
    kit_undir(dir);
}

/* Another process has read the lists again. */
static void test_reread(void **state)
{
    char dir[64], path[400];
    struct mo_catalog *c = NULL, *other = NULL;
    bool changed[MO_CAT_KINDS];
    mo_autobuf struct mo_buf b = {.max = 65536};

    (void)state;
    kit_dir(dir);
    c = again(dir, SPEC);
    assert_false(mo_catalog_known(c, 0));
    mo_catalog_fail(c, 0, "it is away");
    assert_int_equal(mo_catalog_reread(c, 0, changed), 0); /* nothing there */
    assert_false(mo_catalog_known(c, 0));
    other = again(dir, SPEC " r s");
    assert_true(mo_catalog_done(other, 0, nothing, js("{\"name\":\"N\"}")));
    assert_false(mo_catalog_done(other, 0, nothing, js("{\"name\":\"N\"}")));

    assert_int_equal(mo_catalog_reread(c, 0, changed), 0);
    assert_true(mo_catalog_known(c, 0) && changed[MO_CAT_TOOLS]);
    assert_false(changed[MO_CAT_RESOURCES]);
    assert_null(mo_catalog_failed(c, 0));
    assert_string_equal(kit_words(c, MO_CAT_TOOLS, &b), "r=0/r s=0/s");
    assert_int_equal(mo_catalog_reread(c, 0, changed), 0);
    assert_false(changed[MO_CAT_TOOLS]);

    /* a file of other settings, or a damaged one, changes nothing */
    assert_int_equal(files(dir, path), 1);
    write_file(path, MO_SPAN("{\"version\":2"));
    assert_int_equal(mo_catalog_reread(c, 0, changed), 0);
    assert_string_equal(kit_words(c, MO_CAT_TOOLS, &b), "r=0/r s=0/s");
    mo_catalog_free(other);
    mo_catalog_free(c);
    kit_undir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_foreign),    cmocka_unit_test(test_notes),
        cmocka_unit_test(test_no_file),    cmocka_unit_test(test_unsaved),
        cmocka_unit_test(test_reread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
