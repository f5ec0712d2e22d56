#include "codec/http/url.h"
#include "mo_test.h"

/* "scheme|userinfo|host|port|path|query|fragment", '-' for a missing one,
 * '!' for a refusal. */
static const char *render(struct mo_buf *b, struct mo_span in)
{
    struct mo_url u;
    struct mo_err e;
    const struct mo_span *parts[] = {&u.query, &u.fragment};

    mo_buf_reset(b);
    if (mo_url_parse(in, &u, &e) < 0) {
        assert_true(e.code == MO_EINVAL || e.code == MO_ETOOBIG);
        return "!";
    }
    mo_buf_span(b, u.scheme);
    mo_buf_putc(b, '|');
    mo_buf_span(b, u.userinfo.p ? u.userinfo : MO_SPAN("-"));
    mo_buf_printf(b, "|%.*s%s|%u%s|%.*s", (int)u.host.n, u.host.p,
                  u.ipv6 ? " v6" : "", u.port, u.has_port ? "" : "d",
                  (int)u.path.n, u.path.p);
    for (size_t i = 0; i < MO_COUNT(parts); i++) {
        mo_buf_putc(b, '|');
        mo_buf_span(b, parts[i]->p ? *parts[i] : MO_SPAN("-"));
    }
    return mo_buf_cstr(b);
}

#define URL(in, want)                                                          \
    {                                                                          \
        {in, sizeof(in) - 1}, want                                             \
    }

static const struct {
    struct mo_span in;
    const char *want;
} urls[] = {
    URL("http://a", "http|-|a|80d||-|-"),
    URL("HTTPS://Ex.Ample/", "HTTPS|-|Ex.Ample|443d|/|-|-"),
    URL("ws://a:8080/x?y#z", "ws|-|a|8080|/x|y|z"),
    URL("wss://a?y", "wss|-|a|443d||y|-"),
    URL("http://a#", "http|-|a|80d||-|"),
    URL("http://a/?", "http|-|a|80d|/||-"),
    URL("http://a/?b?c/d#e?f/", "http|-|a|80d|/|b?c/d|e?f/"),
    URL("redis://:p%40w@h:1/0", "redis|:p%40w|h|1|/0|-|-"),
    URL("redis://h", "redis|-|h|6379d||-|-"),
    URL("http://u@h", "http|u|h|80d||-|-"),
    URL("http://@h", "http||h|80d||-|-"),
    URL("http://[::1]:3000/", "http|-|::1 v6|3000|/|-|-"),
    URL("http://[::]", "http|-|:: v6|80d||-|-"),
    URL("http://[1::]", "http|-|1:: v6|80d||-|-"),
    URL("http://[1:2:3:4:5:6:7:8]", "http|-|1:2:3:4:5:6:7:8 v6|80d||-|-"),
    URL("http://[::ffff:1.2.3.4]", "http|-|::ffff:1.2.3.4 v6|80d||-|-"),
    URL("http://[1:2:3:4:5:6:1.2.3.4]",
        "http|-|1:2:3:4:5:6:1.2.3.4 v6|80d||-|-"),
    URL("http://127.0.0.1:65535", "http|-|127.0.0.1|65535||-|-"),
    URL("http://a.b.", "http|-|a.b.|80d||-|-"),
    URL("http://1a.b", "http|-|1a.b|80d||-|-"),
    URL("http://a_b-c", "http|-|a_b-c|80d||-|-"),
    URL("unix:///var/run/docker.sock", "unix|-||0d|/var/run/docker.sock|-|-"),
    URL("file:///a", "file|-||0d|/a|-|-"),
    URL("tcp://h:2375", "tcp|-|h|2375||-|-"),
    URL("a+b-c.d://h", "a+b-c.d|-|h|0d||-|-"),
    URL("http://a/%2F%c3%A9:@!$&'()*+,;=~", "http|-|a|80d|/%2F%c3%A9:@!$&'()*"
                                            "+,;=~|-|-"),
    URL("", "!"),
    URL("http", "!"),
    URL("http:/a", "!"),
    URL("http:a", "!"),
    URL("//a/", "!"),
    URL("://a", "!"),
    URL("1http://a", "!"),
    URL("ht tp://a", "!"),
    URL("http://", "!"),
    URL("http:///a", "!"),
    URL("unix://", "!"),
    URL("unix://u@/a", "!"),
    URL("http://a:", "!"),
    URL("http://a:0", "!"),
    URL("http://a:65536", "!"),
    URL("http://a:99999999999", "!"),
    URL("http://a:+80", "!"),
    URL("http://a:80:80", "!"),
    URL("http://a:8x", "!"),
    URL("http://a b/", "!"),
    URL("http://a\\b/", "!"),
    URL("http://a/\\b", "!"),
    URL("http://a/ b", "!"),
    URL("http://a/\tb", "!"),
    URL("http://a/b\r\n", "!"),
    URL("http://a/\0", "!"),
    URL("http://a\0.b/", "!"),
    URL("http://a/\x7f", "!"),
    URL("http://a/\xc3\xa9", "!"),
    URL("http://\xc3\xa9/", "!"),
    URL("http://a/%", "!"),
    URL("http://a/%4", "!"),
    URL("http://a/%4g", "!"),
    URL("http://a/?%zz", "!"),
    URL("http://a/#%z", "!"),
    URL("http://a/#b#c", "!"),
    URL("http://u@v@a/", "!"),
    URL("http://u%@a/", "!"),
    URL("http://%61/", "!"),
    URL("http://.a/", "!"),
    URL("http://a..b/", "!"),
    URL("http://./", "!"),
    URL("http://127.1/", "!"),
    URL("http://0x7f.1/", "!"),
    URL("http://2130706433/", "!"),
    URL("http://127.0.0.01/", "!"),
    URL("http://127.0.0.256/", "!"),
    URL("http://127.0.0.1.1/", "!"),
    URL("http://127.0.0.1./", "!"),
    URL("http://a.1/", "!"),
    URL("http://[::1/", "!"),
    URL("http://::1/", "!"),
    URL("http://[]/", "!"),
    URL("http://[:]/", "!"),
    URL("http://[:::]/", "!"),
    URL("http://[1]/", "!"),
    URL("http://[1:2:3:4:5:6:7]/", "!"),
    URL("http://[1:2:3:4:5:6:7:8:9]/", "!"),
    URL("http://[1:2:3:4::5:6:7:8]/", "!"),
    URL("http://[1::2::3]/", "!"),
    URL("http://[12345::]/", "!"),
    URL("http://[::g]/", "!"),
    URL("http://[::1%eth0]/", "!"),
    URL("http://[::1%25eth0]/", "!"),
    URL("http://[1.2.3.4::]/", "!"),
    URL("http://[::1.2.3]/", "!"),
    URL("http://[::1]x/", "!"),
    URL("http://[127.0.0.1]/", "!"),
};

static void test_urls(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    for (size_t i = 0; i < MO_COUNT(urls); i++) {
        /* a copy of exactly its size lets ASan see a step over the end */
        char *copy = mo_alloc(urls[i].in.n);
        const char *got;

        memcpy(copy, urls[i].in.p, urls[i].in.n);
        got = render(&b, mo_span(copy, urls[i].in.n));
        if (strcmp(got, urls[i].want) != 0)
            fail_msg("'%s': got %s, want %s", urls[i].in.p, got, urls[i].want);
        mo_free(copy);
    }
    mo_buf_fini(&b);
}

static void test_limits(void **state)
{
    struct mo_buf b;
    struct mo_url u;
    struct mo_err e;

    (void)state;
    mo_buf_init(&b, MO_URL_MAX + 1);
    mo_buf_puts(&b, "http://a/");
    while (b.len < MO_URL_MAX)
        mo_buf_putc(&b, 'x');
    assert_int_equal(mo_url_parse(mo_buf_view(&b), &u, &e), 0);
    mo_buf_putc(&b, 'x');
    assert_int_equal(mo_url_parse(mo_buf_view(&b), &u, &e), MO_ETOOBIG);
    mo_buf_reset(&b);
    mo_buf_puts(&b, "http://");
    for (int i = 0; i < 63; i++)
        mo_buf_putc(&b, 'x');
    assert_int_equal(mo_url_parse(mo_buf_view(&b), &u, &e), 0);
    mo_buf_putc(&b, 'x'); /* a label of 64 */
    assert_int_equal(mo_url_parse(mo_buf_view(&b), &u, &e), MO_EINVAL);
    mo_buf_reset(&b);
    mo_buf_puts(&b, "http://");
    for (int i = 0; i < 127; i++)
        mo_buf_puts(&b, "x.");
    mo_buf_puts(&b, "x");
    assert_int_equal(mo_url_parse(mo_buf_view(&b), &u, &e), 0); /* 255 */
    mo_buf_puts(&b, ".");
    assert_int_equal(mo_url_parse(mo_buf_view(&b), &u, &e), MO_EINVAL);
    mo_buf_fini(&b);
}

static void test_hosts(void **state)
{
    static const struct {
        const char *in, *name;
        int rc;
        unsigned port;
        bool v6, loopback;
    } rows[] = {
        {"localhost:3000", "localhost", 0, 3000, false, true},
        {"LOCALHOST.", "LOCALHOST.", 0, 80, false, true},
        {"x.localhost", "x.localhost", 0, 80, false, true},
        {"xlocalhost", "xlocalhost", 0, 80, false, false},
        {".localhost", NULL, MO_EINVAL, 0, false, false},
        {"localhost.evil", "localhost.evil", 0, 80, false, false},
        {"127.0.0.1.evil", "127.0.0.1.evil", 0, 80, false, false},
        {"127.9.9.9:1", "127.9.9.9", 0, 1, false, true},
        {"128.0.0.1", "128.0.0.1", 0, 80, false, false},
        {"[::1]:3000", "::1", 0, 3000, true, true},
        {"[::2]", "::2", 0, 80, true, false},
        {"", NULL, MO_EINVAL, 0, false, false},
        {":80", NULL, MO_EINVAL, 0, false, false},
        {"a:", NULL, MO_EINVAL, 0, false, false},
        {"a/b", NULL, MO_EINVAL, 0, false, false},
        {"u@a", NULL, MO_EINVAL, 0, false, false},
        {"::1", NULL, MO_EINVAL, 0, false, false},
        {"[::1", NULL, MO_EINVAL, 0, false, false},
    };
    struct mo_host h;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        int rc = mo_host_parse(mo_span_cstr(rows[i].in), 80, &h);

        check_row(rows[i].in, rc == rows[i].rc);
        if (rc < 0)
            continue;
        check_row(rows[i].in, mo_span_is(h.name, rows[i].name));
        check_row(rows[i].in, h.port == rows[i].port);
        check_row(rows[i].in, h.ipv6 == rows[i].v6);
        check_row(rows[i].in, mo_host_is_loopback(&h) == rows[i].loopback);
    }
}

static void test_origins(void **state)
{
    static const struct {
        const char *origin, *host;
        bool tls, same;
    } rows[] = {
        {"http://localhost:3000", "localhost:3000", false, true},
        {"http://LOCALHOST:3000", "localhost.:3000", false, true},
        {"http://localhost:3000", "localhost:3001", false, false},
        {"http://localhost", "localhost:80", false, true},
        {"https://localhost", "localhost", true, true},
        {"https://localhost", "localhost", false, false},
        {"http://localhost", "localhost", true, false},
        {"wss://a", "a", true, true},
        {"ws://a", "a", false, true},
        {"ftp://a", "a", false, false},
        {"http://[::1]:3000", "[::1]:3000", false, true},
        {"http://127.0.0.1.evil:3000", "127.0.0.1:3000", false, false},
        {"http://evil", "a", false, false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_url o;
        struct mo_host h;

        assert_int_equal(mo_origin_parse(mo_span_cstr(rows[i].origin), &o), 0);
        assert_int_equal(mo_host_parse(mo_span_cstr(rows[i].host),
                                       rows[i].tls ? 443 : 80, &h),
                         0);
        check_row(rows[i].origin,
                  mo_origin_is_host(&o, &h, rows[i].tls) == rows[i].same);
    }
}

static void test_origin_parse(void **state)
{
    static const char *const bad[] = {
        "",           "null",
        "http://a/",  "http://a/b",
        "http://a?",  "http://a#",
        "http://u@a", "http://@a",
        "a",          "a:80",
        "file:///",   "http://a ",
        " http://a",  "http://a,http://b",
        "http://",    "*",
    };
    struct mo_url a, b;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++)
        check_row(bad[i], mo_origin_parse(mo_span_cstr(bad[i]), &a) < 0);
    assert_int_equal(mo_origin_parse(MO_SPAN("https://A.b"), &a), 0);
    assert_int_equal(mo_origin_parse(MO_SPAN("HTTPS://a.B:443"), &b), 0);
    assert_true(mo_origin_eq(&a, &b));
    assert_int_equal(mo_origin_parse(MO_SPAN("http://a.B:443"), &b), 0);
    assert_false(mo_origin_eq(&a, &b));
    assert_int_equal(mo_origin_parse(MO_SPAN("https://a.B:444"), &b), 0);
    assert_false(mo_origin_eq(&a, &b));
    assert_int_equal(mo_origin_parse(MO_SPAN("https://a.c"), &b), 0);
    assert_false(mo_origin_eq(&a, &b));
}

static void test_escapes(void **state)
{
    static const struct {
        const char *in, *want; /* NULL: refused */
        bool plus;
    } rows[] = {
        {"", "", false},
        {"a%20b", "a b", false},
        {"a+b", "a+b", false},
        {"a+b%2B", "a b+", true},
        {"%C3%a9", "\xc3\xa9", false},
        {"%", NULL, false},
        {"a%4", NULL, false},
        {"%4x", NULL, false},
        {"%x4", NULL, false},
        {"%00", NULL, false},
        {"%%41", NULL, false},
        {"%2541", "%41", false},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 256);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        int rc;

        mo_buf_reset(&b);
        mo_buf_puts(&b, "<");
        rc = mo_pct_decode(&b, mo_span_cstr(rows[i].in), rows[i].plus);
        check_row(rows[i].in, rc == (rows[i].want ? 0 : MO_EINVAL));
        check_row(rows[i].in, strcmp(mo_buf_cstr(&b) + 1,
                                     rows[i].want ? rows[i].want : "") == 0);
    }
    assert_int_equal(mo_pct_decode(&b, MO_SPAN("\0"), false), MO_EINVAL);
    mo_buf_reset(&b);
    assert_int_equal(mo_pct_encode(&b, MO_SPAN("aZ9-._~ +/%\xc3\0")), 0);
    assert_string_equal(mo_buf_cstr(&b), "aZ9-._~%20%2B%2F%25%C3%00");
    mo_buf_fini(&b);
}

static void test_query(void **state)
{
    static const char q[] = "&a=1&b&&c=&d+e=f%26+g&a=2&%61%62=x=y&bad=%";
    static const struct {
        const char *key, *want; /* NULL: rc */
        int rc;
    } rows[] = {
        {"a", "1", 0},
        {"b", "", 0},
        {"c", "", 0},
        {"d e", "f& g", 0},
        {"ab", "x=y", 0},
        {"bad", "", MO_EINVAL},
        {"no", "", MO_ENOTFOUND},
        {"", "", MO_ENOTFOUND},
    };
    struct mo_span s = mo_span_cstr(q), k, v;
    struct mo_buf b;
    size_t n = 0;

    (void)state;
    mo_buf_init(&b, 256);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        check_row(rows[i].key, mo_query_get(s, rows[i].key, &b) == rows[i].rc);
        check_row(rows[i].key, strcmp(mo_buf_cstr(&b), rows[i].want) == 0);
    }
    assert_int_equal(mo_query_get(MO_SPAN("%=1&a=2"), "a", &b), MO_EINVAL);
    assert_int_equal(mo_query_get(mo_span(NULL, 0), "a", &b), MO_ENOTFOUND);
    while (mo_query_next(&s, &k, &v)) {
        n++;
        assert_int_equal(v.p == NULL, mo_span_is(k, "b"));
    }
    assert_int_equal(n, 7);
    mo_buf_fini(&b);
}

static void body_oom(void *ctx)
{
    struct mo_buf b;

    (void)ctx;
    mo_buf_init(&b, 256);
    if (mo_pct_decode(&b, MO_SPAN("a%20b"), false) < 0)
        assert_int_equal(mo_buf_err(&b), MO_ENOMEM);
    mo_buf_fini(&b);
    if (mo_query_get(MO_SPAN("a=b"), "a", &b) < 0)
        assert_int_equal(mo_buf_err(&b), MO_ENOMEM);
    mo_buf_fini(&b);
}

static void test_oom(void **state)
{
    (void)state;
    torture(body_oom, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),         cmocka_unit_test(test_limits),
        cmocka_unit_test(test_hosts),        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_origin_parse), cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_query),        cmocka_unit_test(test_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
