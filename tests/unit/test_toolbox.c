/* Parts of the toolbox without a server: patterns, cut outputs, edits,
 * arguments, the rules on paths, its small printf, and the start of a keeper.
 */
#include "mo_test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "toolbox/clip.h"
#include "toolbox/edit.h"
#include "toolbox/field.h"
#include "toolbox/format.h"
#include "toolbox/glob.h"
#include "toolbox/keeper.h"
#include "toolbox/root.h"

/* --- glob ---------------------------------------------------------------- */

static void glob_rows(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool hit;
    } rows[] = {
        {"*.c", "a.c", true},
        {"*.c", "src/a.c", true},
        {"*.c", "a.cc", false},
        {"a", "b/a", true},
        {"a/b", "x/a/b", false},
        {"?.c", "a.c", true},
        {"?.c", "ab.c", false},
        {"?", "/", false},
        {"src/*.c", "src/a.c", true},
        {"src/*.c", "src/x/a.c", false},
        {"src/**/*.c", "src/a.c", true},
        {"src/**/*.c", "src/x/y/a.c", true},
        {"src/**", "src/x/y", true},
        {"**/a", "a", true},
        {"**/a", "x/a", true},
        {"**/a", "x/ba", false},
        {"*.{ts,tsx}", "a.tsx", true},
        {"*.{ts,tsx}", "a.js", false},
        {"{a,b{c,d}}.x", "bd.x", true},
        {"{a,b{c,d}}.x", "b.x", false},
        {"{a,}.x", ".x", true},
        {"{a", "{a", true},
        {"a}", "a}", true},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[]a]", "]", true},
        {"[a", "[a", true},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"", "", true},
        {"*", "", true},
        {"\xc3\xa4*", "\xc3\xa4x", true},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].pattern,
                  tb_glob(mo_span_cstr(rows[i].pattern),
                          mo_span_cstr(rows[i].path)) == rows[i].hit);
}

/* Exponential patterns end and match nothing. */
static void glob_is_bounded(void **state)
{
    char stars[400], text[200], nest[400];

    (void)state;
    for (size_t i = 0; i < sizeof(stars); i++)
        stars[i] = i % 2 ? 'a' : '*';
    memset(text, 'a', sizeof(text));
    assert_false(tb_glob(mo_span(stars, 398), mo_span(text, sizeof(text))));
    memset(nest, '{', sizeof(nest));
    memset(nest + 200, '}', 200);
    assert_false(tb_glob(mo_span(nest, sizeof(nest)), MO_SPAN("a")));
}

/* --- clip ---------------------------------------------------------------- */

static struct mo_span clip_text(struct tb_clip *c, struct mo_buf *b)
{
    mo_buf_reset(b);
    assert_int_equal(tb_clip_text(c, b), 0);
    return mo_buf_view(b);
}

/* The same ends are kept, however the input is split. */
static void clip_keeps_both_ends(void **state)
{
    static const struct {
        const char *in, *want;
    } rows[] = {
        {"", ""},
        {"abcdefgh", "abcdefgh"},
        {"abcdefghi", "abcd\n[... 1 bytes cut here ...]\nfghi"},
        {"abcdefghijklmnop", "abcd\n[... 8 bytes cut here ...]\nmnop"},
        {"abc\xc3\xa4xxxxx\xc3\xa4yz",
         "abc\n[... 7 bytes cut here ...]\n\xc3\xa4yz"},
        {"abcdxxxx\xe2\x82\xacxyz", "abcd\n[... 7 bytes cut here ...]\nxyz"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span in = mo_span_cstr(rows[i].in);

        for (size_t cut = 0; cut <= in.n; cut++) {
            struct tb_clip c;
            struct mo_buf b;

            tb_clip_init(&c, 8);
            mo_buf_init(&b, 256);
            assert_int_equal(tb_clip_put(&c, mo_span_head(in, cut)), 0);
            assert_int_equal(tb_clip_put(&c, mo_span_skip(in, cut)), 0);
            check_row(rows[i].in, mo_span_is(clip_text(&c, &b), rows[i].want));
            check_row(rows[i].in, c.total == in.n);
            tb_clip_fini(&c);
            mo_buf_fini(&b);
        }
    }
}

static void clip_turns_often(void **state)
{
    struct tb_clip c;
    struct mo_buf b;

    (void)state;
    tb_clip_init(&c, 100);
    mo_buf_init(&b, 4096);
    for (int i = 0; i < 1000; i++) {
        char piece[8];
        int n = snprintf(piece, sizeof(piece), "%03d,", i);

        assert_int_equal(tb_clip_put(&c, mo_span(piece, (size_t)n)), 0);
    }
    assert_true(mo_span_starts(clip_text(&c, &b), MO_SPAN("000,001,")));
    assert_true(mo_span_ends(clip_text(&c, &b), MO_SPAN("998,999,")));
    assert_int_equal(tb_clip_cut(&c), 3900);
    tb_clip_fini(&c);
    mo_buf_fini(&b);
}

/* --- edit ---------------------------------------------------------------- */

static void edit_rows(void **state)
{
    static const struct {
        const char *name, *text, *old, *new;
        bool all;
        int rc;
        const char *out, *why;
    } rows[] = {
        {"once", "a b c", "b", "x", false, 1, "a x c", NULL},
        {"not there", "abc", "z", "x", false, MO_ENOTFOUND, NULL, "not occur"},
        {"twice", "b\nb", "b", "x", false, MO_EEXISTS, NULL, "lines 1 2:"},
        {"many", "b\nb\nb\nb\nb\nb\nb", "b", "x", false, MO_EEXISTS, NULL,
         "7 times, at lines 1 2 3 4 5 ..."},
        {"all", "bbb", "b", "xy", true, 3, "xyxyxy", NULL},
        {"no overlap", "aaa", "aa", "b", true, 1, "ba", NULL},
        {"the new holds the old", "a", "a", "aa", true, 1, "aa", NULL},
        {"removed", "abc", "b", "", false, 1, "ac", NULL},
        {"lines", "a\r\nb\n", "\r\n", "\n", false, 1, "a\nb\n", NULL},
        {"empty", "a", "", "x", false, MO_EINVAL, NULL, "empty"},
        {"too large", "aaaaaaaaaaaaaaaa", "a", "bbbb", true, MO_ETOOBIG, NULL,
         "too large"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_err e = {0};
        struct mo_buf b;
        int rc;

        mo_buf_init(&b, 32);
        rc = tb_edit(mo_span_cstr(rows[i].text), mo_span_cstr(rows[i].old),
                     mo_span_cstr(rows[i].new), rows[i].all, &b, &e);
        check_row(rows[i].name, rc == rows[i].rc);
        if (rows[i].out)
            check_row(rows[i].name, mo_span_is(mo_buf_view(&b), rows[i].out));
        else
            check_row(rows[i].name, strstr(e.msg, rows[i].why) != NULL);
        mo_buf_fini(&b);
    }
}

/* --- fields -------------------------------------------------------------- */

struct taken {
    struct mo_span text;
    int64_t n;
    uint64_t wait;
    bool flag;
    unsigned choice;
    struct mo_json list, map;
};

static const char *const choices[] = {"red", "blue", NULL};

static const struct tb_field fields[] = {
    {"text", "A text.", TB_TEXT, true, offsetof(struct taken, text)},
    {"n", NULL, TB_INT, false, offsetof(struct taken, n), 1, 9},
    {"wait", NULL, TB_SECONDS, false, offsetof(struct taken, wait), 0, 60},
    {"flag", NULL, TB_BOOL, false, offsetof(struct taken, flag)},
    {"choice", NULL, TB_CHOICE, false, offsetof(struct taken, choice), 0, 0,
     choices},
    {"list", NULL, TB_TEXTS, false, offsetof(struct taken, list)},
    {"map", NULL, TB_MAP, false, offsetof(struct taken, map)},
    {0},
};

static int take(const char *text, struct mo_arena *a, struct taken *t,
                struct mo_err *e)
{
    struct mo_json_doc doc;

    assert_int_equal(mo_json_parse(mo_span_cstr(text), 0, &doc, NULL), 0);
    return tb_fields_read(doc.root, fields, a, t, e);
}

static void fields_refuse(void **state)
{
    static const struct {
        const char *in, *why;
    } rows[] = {
        {"{}", "text is missing"},
        {"{\"text\":null}", "text must be a string"},
        {"{\"text\":1}", "text must be a string"},
        {"{\"text\":\"\",\"n\":0}", "n must lie between 1 and 9"},
        {"{\"text\":\"\",\"n\":10}", "n must lie between"},
        {"{\"text\":\"\",\"n\":1.5}", "n must be an integer"},
        {"{\"text\":\"\",\"n\":\"1\"}", "n must be an integer"},
        {"{\"text\":\"\",\"wait\":61}", "wait must lie"},
        {"{\"text\":\"\",\"wait\":60.001}", "wait must lie"},
        {"{\"text\":\"\",\"wait\":-1}", "plain number"},
        {"{\"text\":\"\",\"wait\":1e1}", "plain number"},
        {"{\"text\":\"\",\"wait\":1.0e1}", "plain number"},
        {"{\"text\":\"\",\"wait\":\"1\"}", "plain number"},
        {"{\"text\":\"\",\"wait\":99999999999999999999}", "plain number"},
        {"{\"text\":\"\",\"flag\":1}", "true or false"},
        {"{\"text\":\"\",\"choice\":\"green\"}", "one of \"red\", \"blue\""},
        {"{\"text\":\"\",\"list\":{}}", "array of strings"},
        {"{\"text\":\"\",\"list\":[1]}", "strings only"},
        {"{\"text\":\"\",\"map\":[]}", "object of strings"},
        {"{\"text\":\"\",\"map\":{\"a\":null}}", "strings only"},
        {"{\"text\":\"\",\"Text\":\"\"}", "no argument \"Text\"; known are: "
                                          "text n wait"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct taken t = {0};
        struct mo_err e = {0};
        struct mo_arena a;

        mo_arena_init(&a, 4096);
        check_row(rows[i].in, take(rows[i].in, &a, &t, &e) == MO_EINVAL);
        check_row(e.msg, strstr(e.msg, rows[i].why) != NULL);
        mo_arena_fini(&a);
    }
}

static void fields_take(void **state)
{
    struct taken t = {.n = 5, .wait = 7};
    struct mo_err e = {0};
    struct mo_arena a;

    (void)state;
    mo_arena_init(&a, 4096);
    assert_int_equal(
        take("{\"text\":\"a\\nb\",\"wait\":1.2505,\"flag\":true,"
             "\"choice\":\"blue\",\"list\":[\"x\"],\"map\":{},\"n\":null}",
             &a, &t, &e),
        0);
    assert_true(mo_span_is(t.text, "a\nb"));
    assert_int_equal(t.n, 5);
    assert_int_equal(t.wait, 1250 * MO_MS);
    assert_true(t.flag);
    assert_int_equal(t.choice, 1);
    assert_int_equal(mo_json_len(t.list), 1);
    assert_non_null(t.map.p);
    mo_arena_fini(&a);
}

static void fields_write_their_schema(void **state)
{
    struct mo_buf b;
    struct mo_jw w;

    (void)state;
    mo_buf_init(&b, 4096);
    mo_jw_init(&w, &b);
    tb_fields_schema(&w, fields, true);
    assert_string_equal(
        mo_buf_cstr(&b),
        "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\","
        "\"description\":\"A text.\"},\"n\":{\"type\":\"integer\",\"minimum\":"
        "1,\"maximum\":9},\"wait\":{\"type\":\"number\",\"minimum\":0,"
        "\"maximum\":60},\"flag\":{\"type\":\"boolean\"},\"choice\":{\"type\":"
        "\"string\",\"enum\":[\"red\",\"blue\"]},\"list\":{\"type\":\"array\","
        "\"items\":{\"type\":\"string\"}},\"map\":{\"type\":\"object\","
        "\"additionalProperties\":{\"type\":\"string\"}}},\"required\":"
        "[\"text\"],\"additionalProperties\":false}");
    mo_buf_fini(&b);
}

/* --- paths --------------------------------------------------------------- */

static void path_rules(void **state)
{
    static const struct {
        const char *root, *in, *out; /* out NULL: refused */
    } rows[] = {
        {"/workspace", "a/b", "a/b"},
        {"/workspace", "/workspace", "."},
        {"/workspace", "/workspace/", "."},
        {"/workspace", "/workspace//a", "a"},
        {"/workspace", "/workspace-evil/x", NULL},
        {"/workspace", "/workspac", NULL},
        {"/workspace", "/", NULL},
        {"/workspace", "//workspace/a", NULL},
        {"/workspace", "", NULL},
        {"/workspace", "..", NULL},
        {"/workspace", "a/../", NULL},
        {"/workspace", "a/..b", "a/..b"},
        {"/workspace", "a..", "a.."},
        {"/workspace", "../a", "../a"}, /* left to the kernel to refuse */
        {"", "/etc/x", "etc/x"},
        {"", "/", "."},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_err e = {0};
        struct tb_root r = {.fd = -1};
        struct tb_path p;
        int rc;

        memcpy(r.name, rows[i].root, strlen(rows[i].root) + 1);
        rc = tb_path_read(&r, mo_span_cstr(rows[i].in), &p, &e);
        check_row(rows[i].in, rc == (rows[i].out ? 0 : MO_EPATH));
        if (rows[i].out)
            check_row(rows[i].in, strcmp(p.text, rows[i].out) == 0);
    }
}

/* --- format -------------------------------------------------------------- */

/* The same text and length as the real one, at every size of the buffer. */
#define SAME(...)                                                              \
    do {                                                                       \
        char want_[128], got_[128];                                            \
        for (size_t n_ = 0; n_ <= sizeof(want_); n_++) {                       \
            memset(want_, '#', sizeof(want_));                                 \
            memset(got_, '#', sizeof(got_));                                   \
            assert_int_equal(tb_snprintf(got_, n_, __VA_ARGS__),               \
                             snprintf(want_, n_, __VA_ARGS__));                \
            assert_memory_equal(want_, got_, sizeof(want_));                   \
        }                                                                      \
    } while (0)

static void format_is_printf(void **state)
{
    (void)state;
    SAME("plain %% text");
    SAME("%s|%.3s|%.*s|%10s", "abc", "abcdef", 2, "xyz", "right");
    SAME("%.*s", 5, "ab");
    SAME("%d %d %d %u", 0, INT_MAX, INT_MIN, UINT_MAX);
    SAME("%ld %lu %lld %llu", LONG_MIN, ULONG_MAX, LLONG_MAX, ULLONG_MAX);
    SAME("%zu %c", (size_t)12345, 'x');
    SAME("%04x|%x|%02d|%05d|%5d", 0x1f, 0xdeadbeefu, 7, -42, -42);
}

/* --- keeper -------------------------------------------------------------- */

/* The keeper's descriptors are 0 to 5, so `most` of 6 leaves none over. */
static void start_with(rlim_t most, int order, int report)
{
    static char name[] = "true", *argv[] = {name, NULL}, *env[] = {NULL};
    const struct tb_start s = {argv, env, 0, 1, 2, 3, 4, 5};
    struct rlimit limit = {most, most};
    int null = fcntl(open("/dev/null", O_RDWR), F_DUPFD, 20);
    int dir = fcntl(open("/", O_RDONLY | O_DIRECTORY), F_DUPFD, 20);

    order = fcntl(order, F_DUPFD, 20);
    report = fcntl(report, F_DUPFD, 20);
    for (int fd = 0; fd < 3; fd++)
        (void)dup2(null, fd);
    (void)dup2(dir, 3);
    (void)dup2(order, 4);
    (void)dup2(report, 5);
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || tb_keeper_start(&s) < 0)
        _exit(1);
    _exit(0);
}

static void keeper_needs_a_descriptor(void **state)
{
    static const struct {
        rlim_t most;
        struct tb_report want[3];
        size_t n;
    } rows[] = {
        {64, {{TB_STARTED, 0}, {TB_ENDED, 0}}, 2},
        {6, {{TB_NO_EXEC, EMFILE}}, 1},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        int order[2], report[2], status = -1;
        struct tb_report got;
        size_t n = 0;
        pid_t pid;

        assert_int_equal(pipe2(order, O_CLOEXEC), 0);
        assert_int_equal(pipe2(report, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            start_with(rows[i].most, order[0], report[1]);
        (void)close(order[0]);
        (void)close(report[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        for (; read(report[0], &got, sizeof(got)) == sizeof(got); n++) {
            assert_true(n < rows[i].n);
            assert_int_equal(got.kind, rows[i].want[n].kind);
            if (got.kind != TB_STARTED)
                assert_int_equal(got.value, rows[i].want[n].value);
        }
        assert_int_equal(n, rows[i].n);
        (void)close(order[1]);
        (void)close(report[0]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(glob_rows),
        cmocka_unit_test(glob_is_bounded),
        cmocka_unit_test(clip_keeps_both_ends),
        cmocka_unit_test(clip_turns_often),
        cmocka_unit_test(edit_rows),
        cmocka_unit_test(fields_refuse),
        cmocka_unit_test(fields_take),
        cmocka_unit_test(fields_write_their_schema),
        cmocka_unit_test(path_rules),
        cmocka_unit_test(format_is_printf),
        cmocka_unit_test(keeper_needs_a_descriptor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
