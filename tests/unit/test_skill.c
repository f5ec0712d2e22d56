/* Entries of skills: which are valid, and URIs that are replaced in them. ' is
 * written for ". */
#include "codec/sha256.h"
#include "mcp/skill.h"
#include "mcp/skill_file.h"
#include "mo_test.h"

#define SUM                                                                    \
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FILE_OF(uri) "{'uri':'" uri "','digest':'" SUM "','size':3}"
#define FRONT(more)  "'frontmatter':{'name':'a-1','description':'d'" more "}"
#define SELF         FILE_OF("skill://a-1/SKILL.md")
#define ENTRY(front, files)                                                    \
    "{'uri':'skill://a-1/SKILL.md'," front ",'resources':" files "}"

static struct mo_json quoted(const char *in, struct mo_buf *b)
{
    struct mo_json_doc d;

    mo_buf_reset(b);
    for (; *in; in++)
        mo_buf_putc(b, *in == '\'' ? '"' : *in);
    assert_int_equal(mo_json_parse(mo_buf_view(b), 0, &d, NULL), 0);
    return d.root;
}

static const struct {
    const char *entry, *why;
} rows[] = {
    {ENTRY(FRONT(""), "[" SELF "]"), NULL},
    {ENTRY(FRONT(""), "'dynamic'"), NULL},
    {ENTRY(FRONT(",'metadata':{'x':'y'},'compatibility':'c'"), "'dynamic'"),
     NULL},
    {"{'uri':'x://deep/er/a-1/SKILL.md'," FRONT("") ",'resources':'dynamic'}",
     NULL},
    {ENTRY(FRONT(""), "[" SELF "," FILE_OF("skill://a-1/b/c.md") "]"), NULL},
    {"{'uri':'skill://a-1/skill.md'," FRONT("") ",'resources':'dynamic'}",
     "its URI is not that of a SKILL.md in a named directory"},
    {"{'uri':'skill:///SKILL.md'," FRONT("") ",'resources':'dynamic'}",
     "its URI is not that of a SKILL.md in a named directory"},
    {"{'uri':'a-1/SKILL.md'," FRONT("") ",'resources':'dynamic'}",
     "its URI is not that of a SKILL.md in a named directory"},
    {"{'uri':'skill://b/SKILL.md'," FRONT("") ",'resources':'dynamic'}",
     "its name differs from its directory"},
    {ENTRY("'frontmatter':7", "'dynamic'"), "its name is not valid"},
    {ENTRY("'frontmatter':{'name':'A','description':'d'}", "'dynamic'"),
     "its name is not valid"},
    {ENTRY("'frontmatter':{'name':'a--1','description':'d'}", "'dynamic'"),
     "its name is not valid"},
    {ENTRY("'frontmatter':{'name':'a-1','description':''}", "'dynamic'"),
     "its description is not valid"},
    {ENTRY(FRONT(",'metadata':{'x':1}"), "'dynamic'"), "metadata is not valid"},
    {ENTRY(FRONT(",'compatibility':''"), "'dynamic'"),
     "compatibility is not valid"},
    {ENTRY(FRONT(""), "'static'"), "resources is not valid"},
    {ENTRY(FRONT(""), "[]"), "resources does not include its SKILL.md"},
    {ENTRY(FRONT(""), "[" SELF "," SELF "]"), "a file is listed twice"},
    {ENTRY(FRONT(""), "[" SELF "," FILE_OF("skill://a-10/x") "]"),
     "a file is outside the skill"},
    {ENTRY(FRONT(""), "[" SELF "," FILE_OF("skill://a-1/../x") "]"),
     "a file is outside the skill"},
    {ENTRY(FRONT(""), "[" SELF "," FILE_OF("skill://a-1/x?y") "]"),
     "a file is outside the skill"},
    {ENTRY(FRONT(""), "[" SELF "," FILE_OF("skill://a-1/") "]"),
     "a file is outside the skill"},
    {ENTRY(FRONT(""), "[" SELF ",7]"), "a file has no URI"},
    {ENTRY(FRONT(""), "[{'uri':'skill://a-1/SKILL.md','size':3}]"),
     "a file has no SHA-256 digest"},
    {ENTRY(FRONT(""),
           "[{'uri':'skill://a-1/SKILL.md','digest':'" SUM "','size':-1}]"),
     "a file has no size"},
};

static void test_check(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 16);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const char *why = mo_skill_check(quoted(rows[i].entry, &b));

        check_row(rows[i].entry, rows[i].why == NULL
                                     ? why == NULL
                                     : why && strcmp(why, rows[i].why) == 0);
    }
    mo_buf_fini(&b);
}

static int put_new(void *ctx, struct mo_json uri, struct mo_buf *out)
{
    (void)uri;
    return mo_buf_printf(out, "%d", ++*(int *)ctx);
}

static void test_replace(void **state)
{
    static const struct {
        bool entry;
        const char *in, *out;
    } v[] = {
        {true, "{'uri':'a','resources':[{'uri':'b'},{'x':{'uri':'c'}}]}",
         "{'uri':1,'resources':[{'uri':2},{'x':{'uri':'c'}}]}"},
        {false, "{'uri':'a','resources':[{'uri':'b','uri':'c'}]}",
         "{'uri':'a','resources':[{'uri':1,'uri':2}]}"},
        {true, "{'resources':'dynamic' , 'uri':'a'}",
         "{'resources':'dynamic' , 'uri':1}"},
        {false, "{'resources':[1,null,{'uri':7}]}",
         "{'resources':[1,null,{'uri':7}]}"},
        {false, "{}", "{}"},
    };
    struct mo_buf in, want, out;

    (void)state;
    mo_buf_init(&in, 1 << 16);
    mo_buf_init(&want, 1 << 16);
    mo_buf_init(&out, 1 << 16);
    for (size_t i = 0; i < MO_COUNT(v); i++) {
        struct mo_json to = quoted(v[i].out, &want);
        int n = 0;

        mo_buf_reset(&out);
        assert_int_equal(mo_skill_replace_uris(quoted(v[i].in, &in), v[i].entry,
                                               "resources", put_new, &n, &out),
                         0);
        check_row(v[i].in, mo_span_eq(mo_buf_view(&out), mo_json_text(to)));
    }
    mo_buf_fini(&in);
    mo_buf_fini(&want);
    mo_buf_fini(&out);
}

/* --- files ---------------------------------------------------------------- */

#define MANIFEST "skill://a-1/SKILL.md"
#define GOOD     "---\nname: a-1\ndescription: d\n---\nDo it.\n"

/* An entry that lists SKILL.md with the digest of `of`. */
static struct mo_json entry_of(const char *of, const char *front,
                               struct mo_buf *b)
{
    char sum[MO_SHA256_HEX + 1];
    struct mo_json_doc d;

    mo_sha256_hex(mo_span_cstr(of), sum);
    mo_buf_reset(b);
    mo_buf_printf(b,
                  "{\"uri\":\"" MANIFEST "\",\"frontmatter\":%s,"
                  "\"resources\":[{\"uri\":\"" MANIFEST "\",\"digest\":"
                  "\"sha256:%s\",\"size\":%zu}]}",
                  front, sum, strlen(of));
    assert_int_equal(mo_json_parse(mo_buf_view(b), 0, &d, NULL), 0);
    return d.root;
}

static void test_verify(void **state)
{
    static const char front[] = "{\"name\":\"a-1\",\"description\":\"d\"}";
    static const struct {
        const char *listed, *read, *front, *why; /* why NULL: it is right */
    } v[] = {
        {GOOD, GOOD, front, NULL},
        {"\xef\xbb\xbf---\r\nname: a-1\r\ndescription: >-\r\n  d\r\n---  \r\n",
         NULL, front, NULL},
        {"---\nname: a-1\ndescription: d\nn: 1.0\nt: [a, b]\n---", NULL,
         "{\"t\":[\"a\",\"b\"],\"name\":\"a-1\",\"description\":\"d\","
         "\"n\":1}",
         NULL},
        {GOOD, "---\nname: a-1\ndescription: d\n---\nDo no.\n", front,
         "digest"},
        {GOOD, GOOD "x", front, "bytes"},
        {"---\nname: a-1\ndescription: e\n---\n", NULL, front, "not that of"},
        {"---\nname: a-1\n---\n", NULL, front, "not that of"},
        {"---\nname: a-1\ndescription: d\ndescription: d\n---\n", NULL, front,
         "not that of"},
        {"---\nname: a-1\ndescription: d\nx: 1\n---\n", NULL, front,
         "not that of"},
        {"name: a-1\n", NULL, front, "no frontmatter"},
        {"---\nname: a-1\n", NULL, front, "no frontmatter"},
        {"---\nname: &x a-1\n---\n", NULL, front, "line 1"},
        {"---\nname: a-1\ndescription: d\n---\n\xff", NULL, front, "UTF-8"},
    };
    mo_autobuf struct mo_buf b = {.max = 1 << 16};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(v); i++) {
        struct mo_json entry = entry_of(v[i].listed, v[i].front, &b);
        const char *read = v[i].read ? v[i].read : v[i].listed;
        struct mo_err e = {0};
        int rc =
            mo_skill_verify(entry, MO_SPAN(MANIFEST), mo_span_cstr(read), &e);

        check_row(read, v[i].why ? rc == MO_EPROTO && strstr(e.msg, v[i].why)
                                 : rc == 0);
    }
}

static void test_files(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 1 << 16};
    struct mo_json entry = entry_of(GOOD, "{}", &b);
    struct mo_err e;

    (void)state;
    assert_int_equal(
        mo_skill_verify(entry, MO_SPAN("skill://a-1/b.md"), MO_SPAN("x"), &e),
        MO_EPROTO);
    assert_non_null(strstr(e.msg, "no such file"));
    assert_true(mo_skill_is_verifiable(entry));
    entry = quoted("{'uri':'skill://a-1/SKILL.md','resources':'dynamic'}", &b);
    assert_false(mo_skill_is_verifiable(entry));
    assert_int_equal(
        mo_skill_verify(entry, MO_SPAN("skill://a-1/b.md"), MO_SPAN("x"), &e),
        0);
}

static void test_bytes(void **state)
{
    static const struct {
        const char *in, *out; /* out NULL: refused */
    } v[] = {
        {"{'contents':[{'uri':'u','text':'a\\nb'}]}", "a\nb"},
        {"{'contents':[{'uri':'v','text':'no'},{'uri':'u','blob':'eHl6'}]}",
         "xyz"},
        {"{'contents':[{'uri':'u','text':''}]}", ""},
        {"{'contents':[{'uri':'v','text':'no'}]}", NULL},
        {"{'contents':[{'uri':'u','text':'a'},{'uri':'u','text':'b'}]}", NULL},
        {"{'contents':[{'uri':'u','text':'a','blob':'eHl6'}]}", NULL},
        {"{'contents':[{'uri':'u','blob':'%'}]}", NULL},
        {"{'contents':[{'uri':'u'}]}", NULL},
        {"{}", NULL},
    };
    mo_autobuf struct mo_buf in = {.max = 1 << 16};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(v); i++) {
        mo_autobuf struct mo_buf out = {.max = 1 << 16};
        struct mo_err e;
        int rc =
            mo_skill_file_bytes(quoted(v[i].in, &in), MO_SPAN("u"), &out, &e);

        check_row(v[i].in,
                  v[i].out ? rc == 0 && mo_span_is(mo_buf_view(&out), v[i].out)
                           : rc == MO_EPROTO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),  cmocka_unit_test(test_replace),
        cmocka_unit_test(test_verify), cmocka_unit_test(test_files),
        cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
