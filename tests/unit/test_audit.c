/* Rows of the audit log in the file: in order, complete after closing, each
 * with its own time. */
#include "audit/audit.h"

#include <unistd.h>

#include "base/file.h"
#include "mo_net.h"
#include "mo_test.h"

#define ROWS 500

static void set_flag(void *ctx)
{
    *(bool *)ctx = true;
}

static bool flag(void *ctx)
{
    return *(bool *)ctx;
}

static void remove_all(const char *dir)
{
    static const char *const names[] = {MO_AUDIT_FILE_FILE, MO_AUDIT_FILE_HEAD,
                                        MO_AUDIT_FILE_KEY};
    char path[256];

    for (size_t i = 0; i < MO_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

/* Everything that tell() puts, closed at once: nothing has been written by
 * then. The lines come back in out. */
static void write_and_close(void (*tell)(struct mo_audit *a),
                            struct mo_log *log, struct mo_buf *out)
{
    char dir[] = "/tmp/mo-audit-XXXXXX", path[256];
    struct mo_config cfg = {
        .store.dir = dir, .audit.max_mb = 1, .audit.files = 2};
    struct mo_audit_file_report r;
    struct mo_loop *l;
    struct mo_audit *a;
    bool gone = false;
    struct mo_err e;

    assert_non_null(mkdtemp(dir));
    l = mo_loop_new(log, &e);
    assert_non_null(l);
    assert_int_equal(mo_audit_open(l, &cfg, &a, &e), 0);
    tell(a);
    mo_audit_close(a, set_flag, &gone);
    assert_true(mo_loop_until(l, flag, &gone, WAIT_MS));
    mo_loop_free(l);
    assert_int_equal(mo_audit_file_verify(dir, NULL, &r, &e), 0);
    assert_true(r.ok);
    (void)snprintf(path, sizeof(path), "%s/" MO_AUDIT_FILE_FILE, dir);
    assert_int_equal(mo_file_read(path, out->max, out, NULL, &e), 0);
    remove_all(dir);
}

static void tell_calls(struct mo_audit *a)
{
    struct mo_gw_case k = {.server = MO_SPAN("s"), .tool = MO_SPAN("t")};

    for (unsigned i = 0; i < ROWS; i++) {
        k.bytes = i;
        mo_audit_call(a, MO_AUDIT_DONE, &k, mo_span(NULL, 0), NULL);
    }
}

static void closing_writes_all_in_order(void **state)
{
    char last[MO_ISO8601_MAX] = "";
    struct mo_span rest, line;
    struct mo_json_doc d;
    struct mo_json what;
    struct mo_buf b, at;
    uint64_t bytes;

    (void)state;
    mo_buf_init(&b, 1 << 20);
    mo_buf_init(&at, 64);
    write_and_close(tell_calls, NULL, &b);
    rest = mo_buf_view(&b);
    for (unsigned i = 0; i < ROWS; i++) {
        line = mo_span_cut(&rest, '\n');
        assert_int_equal(mo_json_parse(line, 0, &d, NULL), 0);
        what = mo_json_get(d.root, "what");
        assert_int_equal(mo_json_u64(mo_json_get(what, "bytes"), &bytes), 0);
        assert_int_equal(bytes, i);
        mo_buf_reset(&at);
        assert_int_equal(mo_json_str_buf(mo_json_get(d.root, "at"), &at), 0);
        assert_int_equal(at.len, sizeof("2026-11-15T12:18:17.618Z") - 1);
        assert_true(strcmp(mo_buf_cstr(&at), last) >= 0);
        (void)snprintf(last, sizeof(last), "%s", mo_buf_cstr(&at));
    }
    assert_int_equal(rest.n, 0);
    mo_buf_fini(&at);
    mo_buf_fini(&b);
}

static const struct {
    float sure;
    const char *text;
} sures[] = {{0, "0}"},        {1, "1}"},          {0.5f, "0.5}"},
             {0.25f, "0.25}"}, {0.123f, "0.123}"}, {0.0004f, "0}"},
             {0.9996f, "1}"},  {0.061f, "0.061}"}};

static void tell_routes(struct mo_audit *a)
{
    for (size_t i = 0; i < MO_COUNT(sures); i++) {
        struct mo_gw_guess g = {MO_SPAN("s"), MO_SPAN("t"), sures[i].sure};
        struct mo_gw_routing r = {.by = "execute",
                                  .who = "c:",
                                  .words = MO_SPAN("do \"it\""),
                                  .v = &g,
                                  .n = 1};

        mo_audit_routing(a, &r);
    }
}

static void confidence_has_three_digits(void **state)
{
    struct mo_span rest, line;
    char want[64];
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 20);
    write_and_close(tell_routes, NULL, &b);
    rest = mo_buf_view(&b);
    for (size_t i = 0; i < MO_COUNT(sures); i++) {
        line = mo_span_cut(&rest, '\n');
        (void)snprintf(want, sizeof(want), "\"confidence\":%s", sures[i].text);
        check_row(sures[i].text, mo_span_search(line, mo_span_cstr(want)) > 0);
    }
    mo_buf_fini(&b);
}

static const char plain_secret[] = "of-nobodys-business";
static const char odd_secret[] = "has \"quotes\" and \\";

/* Each secret at every offset of the words that somebody routed by. */
static void tell_secrets(struct mo_audit *a)
{
    static const char *const secrets[] = {plain_secret, odd_secret};
    char words[64];

    for (int at = 0; at < 16; at++) {
        for (size_t i = 0; i < MO_COUNT(secrets); i++) {
            struct mo_gw_routing r = {.by = "execute", .who = "c:"};

            (void)snprintf(words, sizeof(words), "%*s%s.", at, "", secrets[i]);
            r.words = mo_span_cstr(words);
            mo_audit_routing(a, &r);
        }
    }
}

static void secrets_are_blanked(void **state)
{
    struct mo_span rest, line;
    struct mo_log log;
    struct mo_buf b;

    (void)state;
    mo_log_init(&log, 2);
    assert_int_equal(mo_log_secret(&log, mo_span_cstr(plain_secret)), 0);
    assert_int_equal(mo_log_secret(&log, mo_span_cstr(odd_secret)), 0);
    mo_buf_init(&b, 1 << 20);
    write_and_close(tell_secrets, &log, &b);
    assert_true(mo_span_search(mo_buf_view(&b), MO_SPAN("business")) < 0);
    assert_true(mo_span_search(mo_buf_view(&b), MO_SPAN("quotes")) < 0);
    rest = mo_buf_view(&b);
    for (unsigned i = 0; i < 32; i++) {
        line = mo_span_cut(&rest, '\n');
        assert_true(mo_span_search(line, MO_SPAN("[secret].")) > 0);
    }
    mo_buf_fini(&b);
    mo_log_fini(&log);
}

static void tell_connections(struct mo_audit *a)
{
    struct mo_egress_row r = {.name = "api.test",
                              .address = "127.0.0.1",
                              .port = 443,
                              .allowed = true,
                              .rule = "*.test",
                              .reason = "closed",
                              .sent = 1,
                              .received = 2,
                              .ms = 3};

    mo_audit_connection(a, "github", NULL, &r);
    r = (struct mo_egress_row){.name = "",
                               .address = "10.0.0.1",
                               .port = 80,
                               .rule = "",
                               .reason = "not allowed",
                               .uncounted = 7};
    mo_audit_connection(a, NULL, "s1", &r);
    mo_audit_connection(NULL, NULL, "s1", &r);
}

static void connections_have_their_owner(void **state)
{
    static const char *const want[] = {
        "{\"kind\":\"connection\",\"server\":\"github\",\"host\":\"api.test\","
        "\"address\":\"127.0.0.1\",\"port\":443,\"rule\":\"*.test\","
        "\"outcome\":\"ok\",\"reason\":\"closed\",\"sent\":1,\"received\":2,"
        "\"ms\":3}",
        "{\"kind\":\"connection\",\"session\":\"s1\",\"address\":\"10.0.0.1\","
        "\"port\":80,\"outcome\":\"denied\",\"reason\":\"not allowed\","
        "\"sent\":0,\"received\":0,\"ms\":0,\"more\":7}",
    };
    mo_autobuf struct mo_buf b = {.max = 1 << 20};
    struct mo_span rest;

    (void)state;
    write_and_close(tell_connections, NULL, &b);
    rest = mo_buf_view(&b);
    for (size_t i = 0; i < MO_COUNT(want); i++) {
        struct mo_span line = mo_span_cut(&rest, '\n');

        check_row(want[i], mo_span_search(line, mo_span_cstr(want[i])) > 0);
    }
    assert_int_equal(rest.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_writes_all_in_order),
        cmocka_unit_test(confidence_has_three_digits),
        cmocka_unit_test(secrets_are_blanked),
        cmocka_unit_test(connections_have_their_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
