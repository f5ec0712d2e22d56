/* A server out of a request: keys leave it, everything else stays; what is
 * shown of it has none; what servers said last; who may change them. */
#include "servers/manage.h"

#include <stdlib.h>
#include <unistd.h>

#include "connect/stderr_tail.h"
#include "loop/loop.h"
#include "mo_test.h"
#include "servers/manage_entry.h"

/* --- entries ------------------------------------------------------------- */

static const struct {
    const char *name, *in, *keep, *out, *secrets;
    int rc;
} rows[] = {
    {"as it is", "{\"command\":\"x\",\"args\":[\"a b\", 1.50]}", NULL,
     "{\"command\":\"x\",\"args\":[\"a b\",1.50]}", "", 0},
    {"the request's own names are not the server's",
     "{\"name\":\"n\",\"test\":true,\"dryRun\":1,\"replace\":1,\"secrets\":1,"
     "\"url\":\"u\"}",
     NULL, "{\"url\":\"u\"}", "", 0},
    {"older names",
     "{\"containerImage\":\"i\",\"containerEnv\":{\"A\":\"b\"},"
     "\"containerMemory\":1,\"containerCpu\":2,\"transport\":\"stdio-docker\","
     "\"cwd\":null}",
     NULL, "{\"image\":\"i\",\"env\":{\"A\":\"b\"},\"memoryMb\":1,\"cpus\":2}",
     "", 0},
    {"a key by its name",
     "{\"env\":{\"API_KEY\":\"0123456789\",\"PLAIN\":\"0123456789\"}}", NULL,
     "{\"env\":{\"API_KEY\":\"${secret:s.API_KEY}\",\"PLAIN\":\"0123456789\"}}",
     "s.API_KEY=0123456789;", 0},
    {"a key by its look", "{\"env\":{\"X\":\"sk-ant-0123456789abcdef\"}}",
     "true", "{\"env\":{\"X\":\"${secret:s.X}\"}}",
     "s.X=sk-ant-0123456789abcdef;", 0},
    {"a header, with its escapes undone",
     "{\"headers\":{\"Authorization\":\"Bearer \\u0061bc/\\/d\"}}", NULL,
     "{\"headers\":{\"Authorization\":\"${secret:s.Authorization}\"}}",
     "s.Authorization=Bearer abc//d;", 0},
    {"a reference is none", "{\"env\":{\"API_KEY\":\"${env:MY_OWN_KEY}\"}}",
     NULL, "{\"env\":{\"API_KEY\":\"${env:MY_OWN_KEY}\"}}", "", 0},
    {"nothing is kept, if so said", "{\"env\":{\"API_KEY\":\"0123456789\"}}",
     "false", "{\"env\":{\"API_KEY\":\"0123456789\"}}", "", 0},
    {"only what is named",
     "{\"env\":{\"API_KEY\":\"0123456789\",\"B\":\"word\"}}", "[\"B\"]",
     "{\"env\":{\"API_KEY\":\"0123456789\",\"B\":\"${secret:s.B}\"}}",
     "s.B=word;", 0},
    {"an empty value is none", "{\"env\":{\"B\":\"\"}}", "[\"B\"]",
     "{\"env\":{\"B\":\"\"}}", "", 0},
    {"what is no text is left to the loader",
     "{\"env\":{\"API_KEY\":[1]},\"headers\":7}", NULL,
     "{\"env\":{\"API_KEY\":[1]},\"headers\":7}", "", 0},
    {"no name for a secret", "{\"env\":{\"MY KEY\":\"word\"}}", "[\"MY KEY\"]",
     NULL, NULL, MO_EINVAL},
    {"no value for one", "{\"env\":{\"A_KEY\":\"0123\\u00004567\"}}",
     "[\"A_KEY\"]", NULL, NULL, MO_EINVAL},
};

static struct mo_json parse(const char *text)
{
    struct mo_json_doc doc = {.bad_at = 0};

    if (text)
        assert_int_equal(mo_json_parse(mo_span_cstr(text), 0, &doc, NULL), 0);
    return doc.root;
}

static void put_secrets(const struct mo_entry *x, struct mo_buf *b)
{
    for (const struct mo_entry_secret *s = x->secrets; s; s = s->next)
        mo_buf_printf(b, "%.*s=%.*s;", (int)s->name.n, s->name.p, (int)s->n,
                      s->value);
}

static void run_row(size_t i, bool strict)
{
    struct mo_entry x = {.server = "s", .keep = parse(rows[i].keep)};
    struct mo_err e = {0};
    struct mo_buf out, kept;
    struct mo_arena a;
    int rc = 0;

    mo_arena_init(&a, 1 << 20);
    mo_buf_init(&out, MO_ENTRY_JSON_MAX);
    mo_buf_init(&kept, 4096);
    x.a = &a;
    rc = mo_entry_put(&x, parse(rows[i].in), &out, &e);
    if (strict) {
        check_row(rows[i].name, rc == rows[i].rc);
        check_row(rows[i].name, rc == 0 || e.msg[0] != '\0');
    }
    if (strict && rc == 0) {
        put_secrets(&x, &kept);
        check_row(rows[i].name, mo_span_is(mo_buf_view(&out), rows[i].out));
        check_row(rows[i].name,
                  mo_span_is(mo_buf_view(&kept), rows[i].secrets));
    }
    mo_entry_wipe(&x);
    check_row(rows[i].name, x.secrets == NULL);
    mo_buf_fini(&out);
    mo_buf_fini(&kept);
    mo_arena_fini(&a);
}

static void test_entry(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        run_row(i, true);
}

static void torture_body(void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        run_row(i, false);
}

static void test_torture(void **state)
{
    (void)state;
    torture(torture_body, NULL);
}

static void test_show(void **state)
{
    static const struct {
        const char *in, *out;
    } all[] = {
        {"{\"command\":\"x\",\"args\":[1]}",
         "{\"command\":\"x\",\"args\":[1]}"},
        {"{\"env\":{\"A\":\"b\",\"C\":\"x${secret:d}\",\"E\":1}}",
         "{\"env\":{\"A\":\"***\",\"C\":\"***${secret:d}\",\"E\":\"\"}}"},
        {"{\"url\":\"https://u:p@h/x?k=1\"}",
         "{\"url\":\"https://***@h/x?***\"}"},
        {"{\"oauth\":{\"clientId\":\"i\",\"clientSecret\":\"s\"}}",
         "{\"oauth\":{\"clientId\":\"i\",\"clientSecret\":\"***\"}}"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(all); i++) {
        struct mo_buf b;
        struct mo_jw w;

        mo_buf_init(&b, 4096);
        mo_jw_init(&w, &b);
        mo_entry_show(&w, parse(all[i].in));
        assert_string_equal(mo_buf_cstr(&b), all[i].out);
        mo_buf_fini(&b);
    }
}

/* --- last words ---------------------------------------------------------- */

static void check_tail(const struct mo_stderr_tail *t, const char *name,
                       const char *want)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_TAIL_MAX);
    assert_int_equal(mo_stderr_tail_get(t, name, &b), 0);
    assert_string_equal(mo_buf_cstr(&b), want);
    mo_buf_fini(&b);
}

static void test_tails(void **state)
{
    struct mo_log log;
    struct mo_loop *l = NULL;
    struct mo_stderr_tail *t = NULL;
    struct mo_err e;

    (void)state;
    mo_log_init(&log, -1);
    l = mo_loop_new(&log, &e);
    t = mo_stderr_tail_new(l);
    assert_non_null(t);
    check_tail(t, "nobody", "");
    check_tail(NULL, "nobody", "");
    mo_stderr_tail_add(t, "a", MO_SPAN("one\n"), true);
    mo_stderr_tail_add(t, "a", MO_SPAN("two\n"), false);
    mo_stderr_tail_add(t, "b", MO_SPAN("other\0x"), true);
    check_tail(t, "a", "one\ntwo\n");
    check_tail(t, "b", "other x");
    mo_stderr_tail_add(t, "a", MO_SPAN("again\n"), true);
    check_tail(t, "a", "again\n");
    assert_int_equal(mo_loop_secret(l, MO_SPAN("hush-hush")), 0);
    mo_stderr_tail_add(t, "a", MO_SPAN("key hush-hush!\n"), false);
    check_tail(t, "a", "again\nkey [secret]!\n");
    mo_stderr_tail_drop(t, "a");
    check_tail(t, "a", "");
    mo_stderr_tail_free(t);
    mo_loop_free(l);
    mo_log_fini(&log);
}

/* The first line that is whole, and never more than the limit. */
static void test_tail_cut(void **state)
{
    struct mo_loop *l = NULL;
    struct mo_stderr_tail *t = NULL;
    struct mo_err e;
    struct mo_buf b;

    (void)state;
    l = mo_loop_new(NULL, &e);
    t = mo_stderr_tail_new(l);
    assert_non_null(t);
    for (int i = 0; i < 1000; i++)
        mo_stderr_tail_add(t, "a", MO_SPAN("0123456789\n"), i == 0);
    mo_buf_init(&b, MO_TAIL_MAX);
    assert_int_equal(mo_stderr_tail_get(t, "a", &b), 0);
    assert_int_equal(b.len, MO_TAIL_MAX / 11 * 11);
    assert_true(mo_span_starts(mo_buf_view(&b), MO_SPAN("0123456789\n")));
    mo_buf_fini(&b);
    mo_stderr_tail_free(t);
    mo_loop_free(l);
}

/* --- who may ------------------------------------------------------------- */

static void test_allowed(void **state)
{
    static const struct {
        const char *text, *listen;
        bool may;
    } all[] = {
        {"{}", "127.0.0.1", true},
        {"{}", "::1", true},
        {"{}", "unix:/tmp/x", true},
        {"{}", "0.0.0.0", false},
        {"{}", "192.0.2.1", false},
        {"{\"server\":{\"manage\":true}}", "0.0.0.0", true},
        {"{\"server\":{\"manage\":false}}", "127.0.0.1", false},
    };
    char path[] = "/tmp/mo-manage-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    for (size_t i = 0; i < MO_COUNT(all); i++) {
        const struct mo_config_input in = {.file = path, .dir = "/nowhere"};
        struct mo_config_report rep;
        struct mo_config_holder h;
        struct mo_err e;

        assert_int_equal(mo_file_replace(path, mo_span_cstr(all[i].text), &e),
                         0);
        assert_int_equal(mo_config_open(&h, &in, &rep, &e), 0);
        check_row(all[i].text,
                  mo_manage_allowed(h.now, all[i].listen) == all[i].may);
        mo_config_close(&h);
    }
    (void)close(fd);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry),    cmocka_unit_test(test_torture),
        cmocka_unit_test(test_show),     cmocka_unit_test(test_tails),
        cmocka_unit_test(test_tail_cut), cmocka_unit_test(test_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
