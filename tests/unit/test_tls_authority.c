/* The authority: its key, its certificates and who accepts them. Judges are our
 * own TLS client and the openssl command. */
#include "loop/tls_authority.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "loop/net.h"
#include "loop/tls_keystore.h"
#include "mo_net.h"

static const struct mo_tls_names two = {{"b.test", "a.test"}, 2};
static const struct mo_tls_names again = {{"a.test", "b.test", "a.test"}, 3};
static const struct mo_tls_names one = {{"a.test"}, 1};

struct place {
    char dir[64], key[96], bundle[96];
};

static int enter(void **state)
{
    struct place *p = test_calloc(1, sizeof(*p));

    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/mo-authority-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->key, sizeof(p->key), "%s/key.pem", p->dir);
    (void)snprintf(p->bundle, sizeof(p->bundle), "%s/bundle.pem", p->dir);
    *state = p;
    return 0;
}

static int leave(void **state)
{
    struct place *p = *state;

    (void)unlink(p->key);
    (void)unlink(p->bundle);
    (void)rmdir(p->dir);
    test_free(p);
    return 0;
}

static struct mo_tls_authority *open_it(const struct place *p)
{
    struct mo_tls_authority *a = NULL;
    struct mo_err e = {0};

    if (mo_tls_authority_open(p->key, &a, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(e.code, 0);
    return a;
}

static void write_bundle(const struct place *p,
                         const struct mo_tls_authority *a,
                         const struct mo_tls_names *names)
{
    mo_autobuf struct mo_buf pem = {.max = 1 << 16};
    struct mo_err e = {0};

    if (mo_tls_authority_cert(a, names, &pem, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(mo_file_save(p->bundle, mo_buf_view(&pem), 0644, &e), 0);
}

/* --- the key ------------------------------------------------------------- */

static void the_key_is_private_and_stays(void **state)
{
    const struct place *p = *state;
    char id[MO_TLS_LIST_ID], same[MO_TLS_LIST_ID];
    struct mo_tls_authority *a = open_it(p);
    struct stat st;

    assert_int_equal(stat(p->key, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_uid, geteuid());
    mo_tls_authority_id(a, &two, id);
    mo_tls_authority_free(a);
    a = open_it(p); /* as after a restart */
    mo_tls_authority_id(a, &again, same);
    assert_string_equal(id, same);
    mo_tls_authority_id(a, &one, same);
    assert_string_not_equal(id, same);
    mo_tls_authority_free(a);
    assert_int_equal(unlink(p->key), 0);
    a = open_it(p);
    mo_tls_authority_id(a, &two, same);
    assert_string_not_equal(id, same);
    mo_tls_authority_free(a);
}

static void a_bad_key_is_refused(void **state)
{
    const struct place *p = *state;
    struct mo_tls_authority *a = open_it(p);
    struct mo_err e = {0};

    mo_tls_authority_free(a);
    assert_int_equal(chmod(p->key, 0644), 0);
    assert_int_equal(mo_tls_authority_open(p->key, &a, &e), MO_EPOLICY);
    assert_int_equal(unlink(p->key), 0);
    assert_int_equal(mo_file_create(p->key, MO_SPAN("junk\n"), &e), 0);
    assert_int_equal(mo_tls_authority_open(p->key, &a, &e), MO_EINVAL);
    assert_non_null(strstr(e.msg, "no key of an authority"));
}

/* --- what it is valid for ------------------------------------------------ */

static void the_certificate_is_constrained(void **state)
{
    const struct place *p = *state;
    struct mo_tls_authority *a = open_it(p);
    mo_autobuf struct mo_buf file = {.max = 1 << 16};
    const char *text;

    write_bundle(p, a, &two);
    mo_tls_authority_free(a);
    run_words("openssl x509 -text -noout -in %s -out %s", p->bundle, p->key);
    assert_int_equal(mo_file_read(p->key, 1 << 16, &file, NULL, NULL), 0);
    text = mo_buf_cstr(&file);
    assert_non_null(strstr(text, "Name Constraints: critical"));
    assert_non_null(strstr(text, "Permitted:\n                  DNS:a.test\n"
                                 "                  DNS:b.test\n"
                                 "                Excluded:\n"
                                 "                  IP:0.0.0.0/0.0.0.0\n"));
    assert_non_null(strstr(text, "CA:TRUE, pathlen:0"));
    assert_non_null(strstr(text, "X509v3 Key Usage: critical\n"
                                 "                Certificate Sign\n"));
}

/* For Java; it/inject shows that Java reads it. */
static void the_keystore_has_all(void **state)
{
    const struct place *p = *state;
    mo_autobuf struct mo_buf pem = {.max = 1 << 16}, out = {.max = 1 << 16};
    struct mo_tls_authority *a = open_it(p);
    struct mo_err e = {0};

    assert_int_equal(mo_tls_authority_cert(a, &one, &pem, &e), 0);
    mo_buf_puts(&pem, "some text between them\n");
    assert_int_equal(mo_tls_authority_cert(a, &two, &pem, &e), 0);
    mo_tls_authority_free(a);
    assert_int_equal(mo_tls_keystore(mo_buf_view(&pem), &out, &e), 0);
    assert_memory_equal(out.p, "\xFE\xED\xFE\xED\0\0\0\2\0\0\0\2", 12);
    mo_buf_reset(&out);
    assert_int_equal(mo_tls_keystore(MO_SPAN("junk"), &out, &e), 0);
    assert_int_equal(out.len, 12 + 20);
}

struct talk {
    struct mo_loop *l;
    struct mo_stream *in, *out;
    bool ready, h2;
    char why[240];
    unsigned open;
};

static void on_read(void *ctx, char *b, size_t n)
{
    (void)ctx;
    (void)b;
    (void)n;
}

static void on_gone(void *ctx, const struct mo_err *why)
{
    struct talk *t = ctx;

    if (why && !*t->why)
        (void)snprintf(t->why, sizeof(t->why), "%s", why->msg);
    t->open--;
}

static const struct mo_stream_cb cb = {.on_read = on_read, .on_close = on_gone};

static void on_ready(void *ctx)
{
    struct talk *t = ctx;

    t->ready = true;
    t->h2 = mo_tls_is_h2(t->out);
    mo_stream_close(t->out, NULL);
    mo_stream_close(t->in, NULL);
}

static bool is_over(void *ctx)
{
    return ((struct talk *)ctx)->open == 0;
}

/* A handshake between two contexts, over a pair of sockets. */
static void shake_hands(struct talk *t, struct mo_tls_ctx *server,
                        struct mo_tls_ctx *client, const char *host)
{
    struct mo_stream *a, *b;
    struct mo_err e;
    int fds[2];

    *t = (struct talk){.l = loop_new(), .open = 2};
    assert_int_equal(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
        0);
    assert_int_equal(mo_stream_from_fds(t->l, fds[0], fds[0], &a, &e), 0);
    assert_int_equal(mo_stream_from_fds(t->l, fds[1], fds[1], &b, &e), 0);
    assert_int_equal(mo_tls_wrap(server, a, true, NULL, &t->in, &e), 0);
    assert_int_equal(mo_tls_wrap(client, b, false, host, &t->out, &e), 0);
    mo_tls_on_ready(t->out, on_ready, t);
    mo_stream_attach(t->in, &cb, t);
    mo_stream_attach(t->out, &cb, t);
    assert_true(mo_loop_until(t->l, is_over, t, 10000));
    mo_loop_free(t->l);
}

static void leaves_are_accepted_for_their_host(void **state)
{
    static const struct {
        const char *name;
        const struct mo_tls_names *trusted, *issued;
        const char *leaf, *asked, *wrong;
    } rows[] = {
        {"a host", &two, &two, "a.test", "a.test", NULL},
        {"the other one", &two, &again, "b.test", "b.test", NULL},
        {"another name", &two, &two, "a.test", "b.test", "hostname mismatch"},
        {"another list", &one, &two, "a.test", "a.test", "unable to get local"},
        {"not in the list", &two, &two, "c.test", "c.test",
         "permitted subtree violation"},
        {"above it", &two, &two, "test", "test", "permitted subtree violation"},
    };
    const struct place *p = *state;

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_tls_client_opts o = {.ca = p->bundle};
        struct mo_tls_authority *a = open_it(p);
        struct mo_tls_ctx *server, *client;
        struct mo_err e = {0};
        struct talk t;

        write_bundle(p, a, rows[i].trusted);
        mo_tls_authority_free(a);
        a = open_it(p); /* as after a restart */
        server = mo_tls_authority_server(a, rows[i].issued, rows[i].leaf, &e);
        client = mo_tls_client_new(&o, &e);
        check_row(rows[i].name, server && client);
        shake_hands(&t, server, client, rows[i].asked);
        check_row(rows[i].name, t.ready == !rows[i].wrong);
        if (rows[i].wrong && !strstr(t.why, rows[i].wrong))
            fail_msg("%s: %s", rows[i].name, t.why);
        mo_tls_free(server);
        mo_tls_free(client);
        mo_tls_authority_free(a);
    }
}

static void protocols_are_agreed(void **state)
{
    const struct place *p = *state;
    struct mo_tls_client_opts o = {.ca = p->bundle};
    struct mo_tls_authority *a = open_it(p);

    write_bundle(p, a, &one);
    for (unsigned i = 0; i < 4; i++) {
        bool out = i & 1, in = i & 2;
        struct mo_err e = {0};
        struct mo_tls_ctx *server =
            mo_tls_authority_server(a, &one, "a.test", &e);
        struct mo_tls_ctx *client = mo_tls_client_new(&o, &e);
        struct talk t;

        assert_int_equal(in ? mo_tls_use_h2(server, &e) : 0, 0);
        assert_int_equal(out ? mo_tls_use_h2(client, &e) : 0, 0);
        shake_hands(&t, server, client, "a.test");
        assert_int_equal(t.ready, out || !in);
        assert_int_equal(t.h2, in && out);
        mo_tls_free(server);
        mo_tls_free(client);
    }
    mo_tls_authority_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_key_is_private_and_stays, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(a_bad_key_is_refused, enter, leave),
        cmocka_unit_test_setup_teardown(the_certificate_is_constrained, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(the_keystore_has_all, enter, leave),
        cmocka_unit_test_setup_teardown(leaves_are_accepted_for_their_host,
                                        enter, leave),
        cmocka_unit_test_setup_teardown(protocols_are_agreed, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
