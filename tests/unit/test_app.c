/* Apps: metadata of tools, domains that are granted, the policy of a frame. '
 * is written for ". */
#include "mcp/app.h"
#include "mo_test.h"

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
    const char *tool, *uri; /* uri NULL: none */
    bool only, may_call;
} tools[] = {
    {"{}", NULL, false, true},
    {"{'_meta':{'ui':{'resourceUri':'ui://a'}}}", "'ui://a'", false, true},
    {"{'_meta':{'ui/resourceUri':'ui://b'}}", "'ui://b'", false, true},
    {"{'_meta':{'ui':{'resourceUri':'ui://a'},'ui/resourceUri':'ui://b'}}",
     "'ui://a'", false, true},
    {"{'_meta':{'ui':{'resourceUri':'https://a'}}}", NULL, false, true},
    {"{'_meta':{'ui':{'resourceUri':7}}}", NULL, false, true},
    {"{'_meta':7}", NULL, false, true},
    {"{'_meta':{'ui':[]}}", NULL, false, true},
    {"{'_meta':{'ui':{'visibility':['app']}}}", NULL, true, true},
    {"{'_meta':{'ui':{'visibility':['model']}}}", NULL, false, false},
    {"{'_meta':{'ui':{'visibility':['app','model']}}}", NULL, false, true},
    {"{'_meta':{'ui':{'visibility':[]}}}", NULL, true, false},
    {"{'_meta':{'ui':{'visibility':'app'}}}", NULL, false, true},
    {"{'_meta':{'ui':{'visibility':[7,{}]}}}", NULL, true, false},
};

static void test_tools(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 4096}, want = {.max = 4096};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(tools); i++) {
        struct mo_json tool = quoted(tools[i].tool, &b);
        struct mo_json uri = mo_app_uri(tool);

        assert_int_equal(uri.p != NULL, tools[i].uri != NULL);
        if (uri.p)
            assert_true(mo_span_eq(mo_json_text(uri),
                                   mo_json_text(quoted(tools[i].uri, &want))));
        assert_int_equal(mo_app_is_only(tool), tools[i].only);
        assert_int_equal(mo_app_may_call(tool), tools[i].may_call);
    }
}

static const struct {
    const char *domain, *granted;
    bool yes;
} domains[] = {
    {"https://a.com", "https://a.com", true},
    {"https://A.com", "https://a.com", true},
    {"https://a.com", "a.com", true},
    {"wss://a.com", "a.com", true},
    {"http://a.com", "a.com", false},
    {"http://a.com", "http://a.com", true},
    {"https://a.com", "http://a.com", false},
    {"https://a.com:8443", "https://a.com", false},
    {"https://a.com:8443", "https://a.com:8443", true},
    {"https://b.a.com", "a.com", false},
    {"https://b.a.com", "*.a.com", true},
    {"https://c.b.a.com", "*.a.com", true},
    {"https://a.com", "*.a.com", false},
    {"https://*.a.com", "*.a.com", true},
    {"https://*.b.a.com", "*.a.com", true},
    {"https://*.a.com", "a.com", false},
    {"https://*.com", "*.a.com", false},
    {"https://evila.com", "*.a.com", false},
    {"https://a.com", "*", true},
    {"https://*.a.com", "*", true},
    {"a.com", "*", false}, /* without a scheme */
    {"*", "*", false},
    {"https:", "*", false},
    {"data:", "*", false},
    {"'self'", "*", false},
    {"'unsafe-inline'", "*", false},
    {"https://a.com/path", "*", false},
    {"https://a.com; script-src x", "*", false},
    {"https://a.com\r\nX: y", "*", false},
    {"https://a.com https://b.com", "*", false},
    {"https://a.com:", "*", false},
    {"https://a.com:*", "*", false},
    {"https://a.com:999999", "*", false},
    {"https://", "*", false},
    {"https://.a.com", "*", false},
    {"https://a.com.", "*", false},
    {"https://user@a.com", "*", false},
    {"https://[::1]", "*", false},
    {"javascript://a.com", "*", false},
    {"", "*", false},
};

static void test_domains(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(domains); i++)
        if (mo_app_is_granted(mo_span_cstr(domains[i].domain),
                              domains[i].granted) != domains[i].yes)
            fail_msg("%s by %s", domains[i].domain, domains[i].granted);
    assert_true(mo_app_is_domain("*"));
    assert_true(mo_app_is_domain("https://a.com"));
    assert_true(mo_app_is_domain("*.a.com"));
    assert_false(mo_app_is_domain("https://a.com/x"));
    assert_false(mo_app_is_domain("'self'"));
    assert_false(mo_app_is_domain(""));
}

#define HEAD "sandbox allow-scripts allow-forms; default-src 'none'; "
#define TAIL "form-action 'none'; object-src 'none'; webrtc 'block'"
#define RESOURCES(r)                                                           \
    "script-src 'unsafe-inline' 'unsafe-eval' blob: data:" r                   \
    "; style-src 'unsafe-inline' blob: data:" r "; img-src data: blob:" r      \
    "; font-src data: blob:" r "; media-src data: blob:" r                     \
    "; worker-src blob: data:" r "; "

static const char *const granted[] = {"https://a.com", "*.b.com"};

static const struct {
    const char *csp, *policy, *refused;
} policies[] = {
    {"{}",
     HEAD RESOURCES("") "connect-src data: blob:; frame-src 'none'; base-uri "
                        "'none'; " TAIL,
     "[]"},
    {"{'connectDomains':['https://a.com','https://c.com'],'resourceDomains':"
     "['https://x.b.com','https://c.com'],'frameDomains':['https://a.com'],"
     "'baseUriDomains':['https://a.com']}",
     HEAD RESOURCES(" https://x.b.com") "connect-src data: blob: "
                                        "https://a.com; frame-src "
                                        "https://a.com; base-uri "
                                        "https://a.com; " TAIL,
     "['https://c.com','https://c.com']"},
    {"{'connectDomains':['https://a.com; img-src *',7,null,[]],"
     "'resourceDomains':{},'frameDomains':'https://a.com'}",
     HEAD RESOURCES("") "connect-src data: blob:; frame-src 'none'; base-uri "
                        "'none'; " TAIL,
     "['https://a.com; img-src *']"},
    {"[]",
     HEAD RESOURCES("") "connect-src data: blob:; frame-src 'none'; base-uri "
                        "'none'; " TAIL,
     "[]"},
};

static void test_policy(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 4096}, want = {.max = 4096};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(policies); i++) {
        mo_autobuf struct mo_buf out = {.max = MO_APP_POLICY_MAX};
        mo_autobuf struct mo_buf refused = {.max = 4096};
        struct mo_jw w = mo_jw_array(&refused);

        mo_app_policy(quoted(policies[i].csp, &b), granted, MO_COUNT(granted),
                      &out, &w);
        mo_jw_end(&w);
        assert_string_equal(mo_buf_cstr(&out), policies[i].policy);
        (void)quoted(policies[i].refused, &want);
        assert_string_equal(mo_buf_cstr(&refused), mo_buf_cstr(&want));
    }
}

/* Many domains: the first MO_APP_DOMAINS_MAX are taken. */
static void test_many(void **state)
{
    mo_autobuf struct mo_buf text = {.max = 65536};
    mo_autobuf struct mo_buf out = {.max = MO_APP_POLICY_MAX};
    mo_autobuf struct mo_buf refused = {.max = 65536};
    static const char *const all[] = {"*"};
    struct mo_jw w = mo_jw_array(&refused);
    struct mo_json_doc d;
    struct mo_json_doc back;

    (void)state;
    mo_buf_puts(&text, "{\"connectDomains\":[");
    for (int i = 0; i < MO_APP_DOMAINS_MAX + 3; i++)
        mo_buf_printf(&text, "%s\"https://h%d.com\"", i ? "," : "", i);
    mo_buf_puts(&text, "]}");
    assert_int_equal(mo_json_parse(mo_buf_view(&text), 0, &d, NULL), 0);
    mo_app_policy(d.root, all, 1, &out, &w);
    mo_jw_end(&w);
    assert_int_equal(mo_buf_err(&out), 0);
    assert_non_null(strstr(mo_buf_cstr(&out), "https://h63.com;"));
    assert_null(strstr(mo_buf_cstr(&out), "https://h64.com"));
    assert_int_equal(mo_json_parse(mo_buf_view(&refused), 0, &back, NULL), 0);
    assert_int_equal(mo_json_len(back.root), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_domains),
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
