/* Names of tools, URIs and templates, as tables. */
#include "gateway/catalog/name.h"

#include "mo_test.h"

#define T10 "tttttttttt"
#define T60 T10 T10 T10 T10 T10 T10
#define T64 T60 "tttt"
#define X40 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void test_names(void **state)
{
    static const struct {
        const char *name, *prefix, *tool;
        bool prefixed, taken;
        const char *out;
    } rows[] = {
        {"own", "files", "read", false, false, "read"},
        {"prefixed", "files", "read", true, false, "files_read"},
        {"taken", "files", "read", true, true, "files_read_93d677"},
        {"own and taken", "files", "read", false, true, "read_93d677"},
        {"a dot", "files", "read.file", false, false, "read_file_978752"},
        {"a dot, prefixed", "files", "read.file", true, false,
         "files_read_file_978752"},
        {"odd prefix, not shown", "my server", "x", false, false, "x"},
        {"odd prefix", "my server", "x", true, false, "my_server_x_9dbd6e"},
        {"UTF-8", "f", "\xc3\xa9", false, false, "___84a67b"},
        {"64 bytes", "s", T64, false, false, T64},
        {"one more", "s", T64 "t", false, false, NULL},
        {"empty prefix", "", "x", true, false, "_x"},
        {"nothing", "", "", false, false, "_6e340b"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        char out[MO_GW_NAME_MAX];

        memset(out, 'X', sizeof(out));
        mo_gw_name(mo_span_cstr(rows[i].prefix), mo_span_cstr(rows[i].tool),
                   rows[i].prefixed, rows[i].taken, out);
        check_row(rows[i].name, memchr(out, '\0', sizeof(out)) != NULL);
        if (rows[i].out)
            check_row(rows[i].name, strcmp(out, rows[i].out) == 0);
        else
            check_row(rows[i].name, strlen(out) == 64 && out[57] == '_');
    }
}

/* Any input gives a short plain name; the same pair gives the same name, and
 * two that differ only after the cut do not. */
static void test_any_name(void **state)
{
    char in[200], a[MO_GW_NAME_MAX], b[MO_GW_NAME_MAX];

    (void)state;
    for (unsigned seed = 1; seed < 3000; seed++) {
        size_t n = seed % sizeof(in);

        for (size_t i = 0; i < n; i++)
            in[i] = (char)(seed * 31 + i * (seed % 7));
        mo_gw_name(MO_SPAN("some-server"), mo_span(in, n), seed & 1, seed & 2,
                   a);
        mo_gw_name(MO_SPAN("some-server"), mo_span(in, n), seed & 1, seed & 2,
                   b);
        assert_string_equal(a, b);
        assert_true(strlen(a) > 0 && strlen(a) < MO_GW_NAME_MAX);
        assert_int_equal(
            strspn(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                      "0123456789_-"),
            strlen(a));
    }
    mo_gw_name(MO_SPAN("s"), MO_SPAN(T64 "a"), true, false, a);
    mo_gw_name(MO_SPAN("s"), MO_SPAN(T64 "b"), true, false, b);
    assert_string_not_equal(a, b);
}

static void test_labels(void **state)
{
    static const struct {
        const char *server, *label;
    } rows[] = {
        {"files", "files"},
        {"a.b-c9", "a.b-c9"},
        {"My_Server", "my-server-5d96c7"},
        {"9lives", "s9lives-404690"},
        {"", "s-6e340b"},
        {"files" X40, "filesxxxxxxxxxxxxxxxxxxxxxxxxxxx-308fcc"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span server, uri;
        struct mo_span own = i % 2 ? MO_SPAN("file:///a+b") : MO_SPAN("ui://a");
        char label[MO_GW_LABEL_MAX];
        struct mo_buf b;

        mo_gw_label(mo_span_cstr(rows[i].server), label);
        assert_string_equal(label, rows[i].label);
        mo_buf_init(&b, 4096);
        assert_int_equal(mo_gw_uri(label, own, &b), 0);
        check_row(rows[i].server,
                  mo_gw_uri_split(mo_buf_view(&b), &server, &uri));
        check_row(rows[i].server, mo_span_is(server, label));
        check_row(rows[i].server, mo_span_eq(uri, own));
        mo_buf_fini(&b);
    }
}

static void test_split(void **state)
{
    static const struct {
        const char *in, *server, *uri; /* server NULL: not ours */
    } rows[] = {
        {"files+file:///a", "files", "file:///a"},
        {"git+ssh://x", "git", "ssh://x"},
        {"a+b+c:d", "a", "b+c:d"},
        {"a+", "a", ""},
        {"file:///a", NULL, NULL},
        {"file:///a+b", NULL, NULL},
        {"+file:///a", NULL, NULL},
        {"Files+file:///a", NULL, NULL},
        {"9+x:y", NULL, NULL},
        {"a_b+x:y", NULL, NULL},
        {"", NULL, NULL},
        {X40 "+x:y", NULL, NULL},
        {"ui://files/+ui://a/b", "files", "ui://a/b"},
        {"ui://a/+ui://b/+ui://c", "a", "ui://b/+ui://c"},
        {"ui://a/+file:///b", NULL, NULL},
        {"ui://a/+", NULL, NULL},
        {"ui://a/b+c", NULL, NULL},
        {"ui://a+b", NULL, NULL},
        {"ui:///+ui://a", NULL, NULL},
        {"ui://A/+ui://b", NULL, NULL},
        {"ui://", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span server, uri;
        bool ours = mo_gw_uri_split(mo_span_cstr(rows[i].in), &server, &uri);

        check_row(rows[i].in, ours == (rows[i].server != NULL));
        if (!ours)
            continue;
        check_row(rows[i].in, mo_span_is(server, rows[i].server));
        check_row(rows[i].in, mo_span_is(uri, rows[i].uri));
    }
}

static void test_uri_limit(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 8);
    assert_int_equal(mo_gw_uri("files", MO_SPAN("abc"), &b), MO_ETOOBIG);
    mo_buf_fini(&b);
}

static void test_templates(void **state)
{
    static const struct {
        const char *t, *uri;
        bool fits;
    } rows[] = {
        {"file:///a", "file:///a", true},
        {"file:///a", "file:///ab", false},
        {"file:///{name}", "file:///x", true},
        {"file:///{name}", "file:///", false},
        {"file:///{name}", "file:///x/y", false},
        {"file:///{+path}", "file:///x/y", true},
        {"file:///{+path}", "file:///", false},
        {"{scheme}:{+rest}", "a:b/c", true},
        {"{+uri}", "x", true},
        {"{+uri}", "", false},
        {"db://{db}/t/{table}", "db://a/t/b", true},
        {"db://{db}/t/{table}", "db://a/u/b", false},
        {"db://{db}/t/{table}", "db://t/t/t", true},
        {"db://{+db}/t/{table}", "db://a/t/t/t/b", true},
        {"db://{+db}/t/{table}", "db://a/t/b/c", false},
        {"x:{a,b}", "x:1,2", true},
        {"x:{a}.{b}", "x:1.2.3", true},
        {"x:{a}.{b}", "x:12", false},
        {"x:a{.ext}", "x:a.txt", true},
        {"x:a{.ext}", "x:a", false},
        {"x:a{/seg}", "x:a/b", true},
        {"x:a{/seg}", "x:a/b/c", false},
        {"x:a{/seg*}", "x:a/b/c", true},
        {"x:a{/s,t}", "x:a/b/c", true},
        {"x:a{?q,r}", "x:a", true},
        {"x:a{?q,r}", "x:a?q=1&r=2", true},
        {"x:a{?q}", "x:ab", false},
        {"x:a?f=1{&q}", "x:a?f=1&q=2", true},
        {"x:a?f=1{&q}", "x:a?f=1", true},
        {"x:a{;p}/b", "x:a;p=1/b", true},
        {"x:a{;p}/b", "x:a/b", true},
        {"x:a{#frag}", "x:a#b/c", true},
        {"x:a{#frag}", "x:a", true},
        {"x:{never", "x:{never", true},
        {"x:{never", "x:y", false},
        {"x:{}y", "x:ay", true},
        {"", "", true},
        {"", "a", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].t, mo_gw_template_match(mo_span_cstr(rows[i].t),
                                                  mo_span_cstr(rows[i].uri)) ==
                                 rows[i].fits);
}

/* Would take exponential time with backtracking. */
static void test_hostile_template(void **state)
{
    static char t[MO_GW_TEMPLATE_MAX + 1], uri[MO_GW_URI_MAX + 1];

    (void)state;
    for (size_t i = 0; i + 4 <= MO_GW_TEMPLATE_MAX; i += 4)
        memcpy(t + i, "{+a}", 4);
    memset(uri, 'a', sizeof(uri));
    assert_true(mo_gw_template_match(mo_span(t, MO_GW_TEMPLATE_MAX),
                                     mo_span(uri, MO_GW_URI_MAX)));
    t[MO_GW_TEMPLATE_MAX - 1] = 'x'; /* now the last is a literal: "{+ax" */
    assert_false(mo_gw_template_match(mo_span(t, MO_GW_TEMPLATE_MAX),
                                      mo_span(uri, MO_GW_URI_MAX)));
    assert_false(
        mo_gw_template_match(MO_SPAN("{+a}"), mo_span(uri, MO_GW_URI_MAX + 1)));
    memset(t, '{', sizeof(t));
    assert_false(mo_gw_template_match(mo_span(t, MO_GW_TEMPLATE_MAX + 1),
                                      mo_span(t, MO_GW_TEMPLATE_MAX + 1)));
    for (size_t i = 0; i + 3 <= MO_GW_TEMPLATE_MAX; i += 3)
        memcpy(t + i, "{.}", 3); /* as many steps as bytes */
    assert_false(mo_gw_template_match(mo_span(t, MO_GW_TEMPLATE_MAX),
                                      mo_span(uri, 100)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_any_name),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_uri_limit),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_hostile_template),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
