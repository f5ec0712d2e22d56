/* A server out of a request: keys leave it, everything else stays; what is
 * shown of it has none; what servers said last; who may change them. */
#include "servers/manage.h"

#include <stdlib.h>
#include <unistd.h>

#include "connect/stderr_tail.h"
#include "loop/loop.h"
#include "mo_test.h"
#include "secrets/key.h"
#include "servers/manage_priv.h"
#include "servers/try_tool.h"

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
    mo_entry_wipe(&x.secrets);
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
        {"{\"url\":\"https://h/x#k?1\"}", "{\"url\":\"https://h/x#***\"}"},
        {"{\"oauth\":{\"clientId\":\"i\",\"clientSecret\":\"s\"}}",
         "{\"oauth\":{\"clientId\":\"i\",\"clientSecret\":\"***\"}}"},
        /* keys with escapes stay as they are, and hide nothing */
        {"{\"a\\\"b\":1,\"x\":{\"c\\\\d\":2}}",
         "{\"a\\\"b\":1,\"x\":{\"c\\\\d\":2}}"},
        {"{\"\\u0065nv\":{\"A\\n\":\"b\"}}",
         "{\"\\u0065nv\":{\"A\\n\":\"***\"}}"},
        {"{\"\\u0075rl\":\"https://u:p@h/x\"}",
         "{\"\\u0075rl\":\"https://***@h/x\"}"},
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

/* --- closed -------------------------------------------------------------- */

static void on_gone(void *ctx)
{
    ++*(int *)ctx;
}

static bool is_positive(void *ctx)
{
    return *(int *)ctx > 0;
}

/* gone() is called once, and never from inside the call that closes. */
static void test_close(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    const struct mo_manage_opts mo = {.loop = l};
    const struct mo_try_tool_opts to = {.loop = l};
    struct mo_manage *m = mo_manage_new(&mo);
    struct mo_try_tool *t = NULL;
    struct mo_err e;
    int gone = 0;

    (void)state;
    assert_non_null(m);
    mo_manage_close(m, on_gone, &gone);
    assert_int_equal(gone, 0);
    assert_true(mo_loop_until(l, is_positive, &gone, 10000));
    gone = 0;
    assert_int_equal(mo_try_tool_new(&to, &t, &e), 0);
    mo_try_tool_close(t, on_gone, &gone);
    assert_int_equal(gone, 0);
    assert_true(mo_loop_until(l, is_positive, &gone, 10000));
    mo_loop_run(l); /* until nothing is left */
    assert_int_equal(gone, 1);
    mo_loop_free(l);
}

/* --- a change that fails midway ------------------------------------------ */

struct undo_case {
    char dir[64], config[96];
    struct mo_config_holder h;
    struct mo_loop *loop;
};

static void undo_open(struct undo_case *c)
{
    const struct mo_config_input in = {.file = c->config, .dir = "/nowhere"};
    struct mo_config_report rep;
    struct mo_err e;
    struct mo_buf b;

    (void)snprintf(c->dir, sizeof(c->dir), "/tmp/mo-manage-XXXXXX");
    assert_non_null(mkdtemp(c->dir));
    (void)snprintf(c->config, sizeof(c->config), "%s/config.json", c->dir);
    mo_buf_init(&b, 256);
    mo_buf_printf(&b, "{\"store\":{\"dir\":\"%s\"}}", c->dir);
    assert_int_equal(mo_file_replace(c->config, mo_buf_view(&b), &e), 0);
    mo_buf_fini(&b);
    assert_int_equal(mo_config_open(&c->h, &in, &rep, &e), 0);
    c->loop = mo_loop_new(NULL, &e);
    assert_non_null(c->loop);
}

static void undo_close(struct undo_case *c)
{
    static const char *const names[] = {MO_SECRETS_FILE, MO_SECRET_KEY_FILE,
                                        "config.json"};
    char path[128];

    mo_loop_free(c->loop);
    mo_config_close(&c->h);
    for (size_t i = 0; i < MO_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", c->dir, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(c->dir), 0);
}

/* Sets the secret `old` and removes the secret `new`. */
static void undo_reset(const struct undo_case *c)
{
    struct mo_secrets *s = NULL;
    struct mo_err e;

    assert_int_equal(mo_secrets_for(c->h.now, true, &s, &e), 0);
    assert_int_equal(mo_secrets_put(s, MO_SPAN("s.old"), MO_SPAN("first"), &e),
                     0);
    if (mo_secrets_has(s, MO_SPAN("s.new")))
        assert_int_equal(mo_secrets_drop(s, MO_SPAN("s.new"), &e), 0);
    mo_secrets_close(s);
}

static void undo_check(const struct undo_case *c, const char *old, bool new)
{
    struct mo_secrets *s = NULL;
    struct mo_err e;
    struct mo_buf b;

    mo_buf_init(&b, 2 * MO_SECRET_MAX);
    assert_int_equal(mo_secrets_for(c->h.now, true, &s, &e), 0);
    if (mo_secrets_get(s, MO_SPAN("s.old"), &b, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(mo_buf_cstr(&b), old);
    assert_int_equal(mo_secrets_has(s, MO_SPAN("s.new")), new);
    mo_secrets_close(s);
    mo_buf_fini(&b);
}

/* Stores two secrets while allocation `at` fails, then undoes it. Returns the
 * number of allocations. */
static uint64_t undo_try(struct undo_case *c, uint64_t at, bool new_first)
{
    struct mo_manage m = {.o = {.loop = c->loop, .config = &c->h}};
    struct job j = {.m = &m, .server = "s"};
    char a[] = "second", b[] = "other";
    struct mo_entry_secret old = {NULL, MO_SPAN("s.old"), a, sizeof(a) - 1};
    struct mo_entry_secret new = {NULL, MO_SPAN("s.new"), b, sizeof(b) - 1};
    uint64_t n = 0;
    struct mo_err e;
    int rc = 0;

    undo_reset(c);
    mo_arena_init(&j.a, BODY_ARENA);
    j.entry.secrets = new_first ? &new : &old;
    j.entry.secrets->next = new_first ? &old : &new;
    mo_mem_fail_at(at, false);
    rc = mo_manage_edit_store(&j, &e);
    n = mo_mem_count();
    mo_mem_fail_at(0, false);
    assert_true(rc == MO_EIO || rc == 0); /* some failures are tolerated */
    assert_true(rc == 0 || at > 0);
    if (rc == 0)
        undo_check(c, "second", true);
    mo_manage_edit_unstore(&j);
    undo_check(c, "first", false);
    mo_arena_fini(&j.a);
    return n;
}

/* The old value comes back wherever the change failed: also where the old
 * value could not be read, and where a new one could not be written. */
static void test_undo(void **state)
{
    struct undo_case c;

    (void)state;
    undo_open(&c);
    for (int new_first = 0; new_first < 2; new_first++) {
        uint64_t n = undo_try(&c, 0, new_first);

        for (uint64_t i = 1; i <= n; i++)
            (void)undo_try(&c, i, new_first);
    }
    undo_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry),    cmocka_unit_test(test_torture),
        cmocka_unit_test(test_show),     cmocka_unit_test(test_tails),
        cmocka_unit_test(test_tail_cut), cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_undo),     cmocka_unit_test(test_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
