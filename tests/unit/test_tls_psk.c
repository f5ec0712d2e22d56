/* TLS with a shared key: both ends prove it, or neither gets a byte. */
#include "loop/tls.h"

#include "mo_net.h"

#define KEY   "0123456789abcdef0123456789abcdef"
#define OTHER "0123456789abcdef0123456789abcdeF"

static struct certs files;

static struct mo_tls_ctx *ctx_new(bool server, const char *key,
                                  const char *protocols, const char *name)
{
    const struct mo_tls_psk_opts o = {.server = server,
                                      .key = mo_span_cstr(key),
                                      .protocols = protocols,
                                      .name = name};
    struct mo_err e;
    struct mo_tls_ctx *c = mo_tls_psk_new(&o, &e);

    if (!c)
        fail_msg("%s", e.msg);
    return c;
}

struct pair {
    struct mo_loop *l;
    struct end a, b; /* client, server */
};

static void wrap_pair(struct pair *p, struct mo_tls_ctx *client,
                      const char *wants, struct mo_tls_ctx *server)
{
    struct mo_stream *s[2], *t[2];
    struct mo_err e;

    p->l = loop_new();
    end_init(&p->a);
    end_init(&p->b);
    stream_pair(p->l, s);
    assert_int_equal(mo_tls_wrap(client, s[0], false, wants, &t[0], &e), 0);
    assert_int_equal(mo_tls_wrap(server, s[1], true, NULL, &t[1], &e), 0);
    end_attach(&p->a, t[0]);
    end_attach(&p->b, t[1]);
    assert_int_equal(mo_stream_write(t[0], MO_SPAN("secret")), 0);
    assert_int_equal(mo_stream_write(t[1], MO_SPAN("answer")), 0);
}

static bool both_closed(void *ctx)
{
    struct pair *p = ctx;

    return p->a.closes && p->b.closes;
}

static bool both_got(void *ctx)
{
    struct pair *p = ctx;

    return (p->a.got.len == 6 && p->b.got.len == 6) || p->a.closes ||
           p->b.closes;
}

static void pair_drop(struct pair *p)
{
    if (!p->a.closes)
        mo_stream_close(p->a.s, NULL);
    if (!p->b.closes)
        mo_stream_close(p->b.s, NULL);
    wait_for(p->l, both_closed, p);
    mo_buf_fini(&p->a.got);
    mo_buf_fini(&p->b.got);
    mo_loop_free(p->l);
}

static void holders_of_the_key_talk(void **state)
{
    struct mo_tls_ctx *server = ctx_new(true, KEY, "mo-peer/1 http/1.1", NULL);
    static const char *const protocols[] = {"mo-peer/1", "http/1.1"};

    (void)state;
    mo_tls_psk_name(server, "iAlice");
    for (size_t i = 0; i < MO_COUNT(protocols); i++) {
        struct mo_tls_ctx *client = ctx_new(false, KEY, protocols[i], NULL);
        struct pair p;

        wrap_pair(&p, client, "iAlice", server);
        wait_for(p.l, both_got, &p);
        assert_true(mo_span_is(mo_buf_view(&p.a.got), "answer"));
        assert_true(mo_span_is(mo_buf_view(&p.b.got), "secret"));
        assert_true(mo_span_is(mo_tls_protocol(p.b.s), protocols[i]));
        assert_true(mo_tls_is_ready(p.a.s));
        pair_drop(&p);
        mo_tls_free(client);
    }
    mo_tls_free(server);
}

static struct mo_tls_ctx *with_certificate(bool server)
{
    const struct mo_tls_client_opts o = {.ca = files.cert};
    struct mo_err e;

    return server ? mo_tls_server_new(files.cert, files.key, &e)
                  : mo_tls_client_new(&o, &e);
}

static void others_get_no_byte(void **state)
{
    static const struct {
        const char *name, *client, *server; /* keys; NULL: a certificate */
        const char *wants, *is, *protocol;
        const char *says; /* to the server, in part; NULL: anything */
    } rows[] = {
        {"another key", OTHER, KEY, "iA", "iA", "http/1.1", "another key"},
        {"another server", KEY, KEY, "iB", "iA", "http/1.1", "another server"},
        {"its prefix", KEY, KEY, "i", "iA", "http/1.1", "another server"},
        {"a longer name", KEY, KEY, "iAA", "iA", "http/1.1", "another server"},
        {"no name", KEY, KEY, "", "iA", "http/1.1", "another server"},
        {"not yet named", KEY, KEY, "", "", "http/1.1", "another server"},
        {"a client without a key", NULL, KEY, "localhost", "iA", NULL, NULL},
        {"a server without a key", KEY, NULL, "iA", NULL, "http/1.1", NULL},
        {"another protocol", KEY, KEY, "iA", "iA", "h2", NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_tls_ctx *client =
            rows[i].client
                ? ctx_new(false, rows[i].client, rows[i].protocol, NULL)
                : with_certificate(false);
        struct mo_tls_ctx *server =
            rows[i].server
                ? ctx_new(true, rows[i].server, "http/1.1", rows[i].is)
                : with_certificate(true);
        struct pair p;

        wrap_pair(&p, client, rows[i].wants, server);
        wait_for(p.l, both_closed, &p);
        check_row(rows[i].name, p.a.got.len == 0 && p.b.got.len == 0);
        check_row(rows[i].name, p.a.why.code != 0 && p.b.why.code != 0);
        check_row(rows[i].name,
                  !rows[i].says || strstr(p.b.why.msg, rows[i].says));
        check_row(rows[i].name,
                  !rows[i].says || strstr(p.a.why.msg, "another key, or"));
        pair_drop(&p);
        mo_tls_free(client);
        mo_tls_free(server);
    }
}

static void short_keys_are_refused(void **state)
{
    struct mo_tls_psk_opts o = {.key = mo_span(KEY, MO_TLS_PSK_KEY_MIN - 1),
                                .protocols = "http/1.1"};
    struct mo_err e;

    (void)state;
    assert_null(mo_tls_psk_new(&o, &e));
    assert_int_equal(e.code, MO_EINVAL);
    o.key.n++;
    o.protocols = "a-name-that-is-too-long-0123456789012345678901234567890123";
    mo_tls_free(mo_tls_psk_new(&o, &e));
    o.protocols = "two  blanks";
    assert_null(mo_tls_psk_new(&o, &e));
}

static int make_files(void **state)
{
    (void)state;
    certs_make(&files);
    return 0;
}

static int drop_files(void **state)
{
    (void)state;
    certs_drop(&files);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_of_the_key_talk),
        cmocka_unit_test(others_get_no_byte),
        cmocka_unit_test(short_keys_are_refused),
    };

    return cmocka_run_group_tests(tests, make_files, drop_files);
}
