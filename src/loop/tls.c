/* tls.c - TLS streams: OpenSSL between two streams.
 *
 * OpenSSL uses two memory BIOs and never a socket. Ciphertext from the stream
 * below goes into `in`, is decrypted and delivered; bytes that OpenSSL leaves
 * in `out` are written below at once. A BIO that grew is replaced when it is
 * empty, so an idle connection holds little memory.
 *
 * Invariants:
 *  1. `out` is empty whenever control leaves this file.
 *  2. The stream below is read while the handshake runs, while our owner
 *     reads, and after the peer's close_notify (to see it close); otherwise it
 *     is paused.
 *  3. under == NULL only after its on_close; it is not called after that.
 *  4. The struct is freed in free_if_gone(), after under is gone. */
#include "loop/tls.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "loop/ossl.h"
#include "loop/priv.h"

#define RECORD    ((size_t)16 * 1024) /* maximum of one TLS record */
#define BATCH     ((size_t)64 * 1024) /* ciphertext per write below, roughly */
#define BIO_KEEP  ((size_t)4 * 1024)  /* a BIO that held more is replaced */
#define NO_LIMIT  (SIZE_MAX / 2)      /* base.max_queue is the limit */
#define NAME_SHOW 64

struct tls {
    struct mo_stream base;
    struct mo_tls_ctx *ctx;
    struct mo_stream *under;
    SSL *ssl;
    BIO *in, *out;       /* owned by ssl */
    size_t in_most;      /* largest input to `in` so far */
    struct mo_buf early; /* plaintext written before the handshake ended */
    struct mo_timer handshake;
    struct mo_later later; /* pump, report a kept failure, or gone */
    struct mo_err failed;  /* kept until an owner is attached */
    bool server, established, shut;
    struct mo_gone ready;       /* told when the handshake is complete */
    struct mo_tls_psk_conn psk; /* with a key */
    char name[NAME_SHOW];       /* the server's name, for messages */
};

static void close_with_error(struct tls *t, const struct mo_err *why)
{
    if (t->base.closing || t->failed.code)
        return;
    mo_timer_stop(t->base.loop, &t->handshake);
    if (t->base.cb) {
        mo_stream_close(&t->base, why);
        return;
    }
    t->failed = *why;
    if (t->under)
        mo_stream_pause(t->under);
}

/* --- write ciphertext below ---------------------------------------------- */

static void renew_out(struct tls *t)
{
    BIO *b = t->ctx->f.BIO_new(t->ctx->f.BIO_s_mem());

    if (!b)
        return; /* no memory for a new one: keep the big one */
    t->ctx->f.SSL_set0_wbio(t->ssl, b);
    t->out = b;
}

static int flush_out(struct tls *t)
{
    const struct mo_ossl *f = &t->ctx->f;
    char *p = NULL;
    long n = f->BIO_ctrl(t->out, BIO_CTRL_INFO, 0, &p);
    int rc;

    if (n <= 0)
        return 0;
    rc = t->under ? mo_stream_write(t->under, mo_span(p, (size_t)n))
                  : MO_ECLOSED;
    if ((size_t)n > BIO_KEEP && t->established)
        renew_out(t);
    (void)f->BIO_ctrl(t->out, BIO_CTRL_RESET, 0, NULL);
    if (rc == 0 || !t->under || t->under->closing)
        return rc; /* a closing stream below reports itself */
    close_with_error(t, mo_error(rc, "TLS write to %s", t->base.peer));
    return rc;
}

static int encrypt_all(struct tls *t, struct mo_span s)
{
    const struct mo_ossl *f = &t->ctx->f;
    struct mo_err e;

    while (s.n) {
        struct mo_span part = mo_span_head(s, BATCH);
        int rc;

        f->ERR_clear_error();
        if (f->SSL_write(t->ssl, part.p, (int)part.n) <= 0) {
            (void)mo_ossl_fail(f, &e, "TLS write to %s", t->base.peer);
            close_with_error(t, &e);
            return MO_ETLS;
        }
        s = mo_span_skip(s, part.n);
        rc = s.n ? flush_out(t) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Join small parts into one record, mostly the head and body of an answer. */
static int encrypt_small(struct tls *t, const struct mo_span *v, size_t n)
{
    char one[RECORD];
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (v[i].n)
            memcpy(one + len, v[i].p, v[i].n);
        len += v[i].n;
    }
    return encrypt_all(t, mo_span(one, len));
}

static int write_early(struct tls *t, const struct mo_span *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mo_buf_span(&t->early, v[i]);
    if (!mo_buf_err(&t->early))
        return 0;
    close_with_error(t, mo_error(MO_ENOMEM, "TLS write to %s", t->base.peer));
    return MO_ENOMEM;
}

static int tls_writev(struct mo_stream *s, const struct mo_span *v, size_t n)
{
    struct tls *t = mo_container_of(s, struct tls, base);
    size_t total = 0;
    int rc = 0;

    if (t->shut || t->failed.code)
        return MO_ECLOSED;
    if (!t->established)
        return write_early(t, v, n);
    for (size_t i = 0; i < n; i++)
        total += v[i].n;
    if (n > 1 && total <= RECORD)
        rc = encrypt_small(t, v, n);
    else
        for (size_t i = 0; i < n && rc == 0; i++)
            rc = encrypt_all(t, v[i]);
    return rc < 0 ? rc : flush_out(t);
}

static size_t tls_queued(const struct mo_stream *s)
{
    const struct tls *t = mo_container_of(s, struct tls, base);

    return t->early.len + (t->under ? mo_stream_queued(t->under) : 0);
}

/* Send our close_notify; then the stream below may end too. */
static void send_close_notify(struct tls *t)
{
    t->ctx->f.ERR_clear_error();
    (void)t->ctx->f.SSL_shutdown(t->ssl);
    t->ctx->f.ERR_clear_error();
    if (flush_out(t) == 0 && t->under)
        mo_stream_shutdown(t->under);
}

static void tls_shutdown(struct mo_stream *s)
{
    struct tls *t = mo_container_of(s, struct tls, base);

    if (t->shut)
        return;
    t->shut = true;
    if (t->established)
        send_close_notify(t);
}

/* --- handshake ----------------------------------------------------------- */

/* With a key: what an error of OpenSSL means, or NULL. */
static const char *hint_of_key(const struct tls *t, int reason)
{
    if (t->server && t->psk.refusal == MO_TLS_REFUSED_KEY)
        return "it has another key";
    if (t->server && t->psk.refusal == MO_TLS_REFUSED_NAME)
        return "it wanted another server than this one";
    if (reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE)
        return "it has another key, or is not the server that was wanted";
    if (reason == SSL_R_UNSUPPORTED_PROTOCOL)
        return "the peer does not speak TLS 1.3";
    return NULL;
}

static void handshake_failed(struct tls *t)
{
    static const struct {
        int reason;
        const char *text;
    } hints[] = {
        {SSL_R_HTTP_REQUEST, "the client speaks plain HTTP to a TLS port"},
        {SSL_R_WRONG_VERSION_NUMBER, "the peer does not speak TLS here"},
        {SSL_R_UNSUPPORTED_PROTOCOL, "the peer knows only TLS below 1.2"},
        {SSL_R_TLSV1_ALERT_UNKNOWN_CA, "the peer does not trust us"},
    };
    const struct mo_ossl *f = &t->ctx->f;
    const char *who = t->server ? t->base.peer : t->name;
    unsigned long last = f->ERR_peek_last_error();
    long verdict = f->SSL_get_verify_result(t->ssl);
    const char *hint = NULL;
    struct mo_err e;

    for (size_t i = 0; i < MO_COUNT(hints); i++)
        if (ERR_GET_LIB(last) == ERR_LIB_SSL &&
            ERR_GET_REASON(last) == hints[i].reason)
            hint = hints[i].text;
    if (t->ctx->psk && hint_of_key(t, ERR_GET_REASON(last)))
        hint = hint_of_key(t, ERR_GET_REASON(last));
    if (!t->server && verdict != X509_V_OK)
        hint = f->X509_verify_cert_error_string(verdict);
    if (hint) {
        f->ERR_clear_error();
        (void)mo_fail(&e, MO_ETLS, "%s of %s refused: %s",
                      !t->server && verdict != X509_V_OK ? "certificate"
                                                         : "TLS handshake",
                      who, hint);
    } else {
        (void)mo_ossl_fail(f, &e, "TLS handshake with %s", who);
    }
    close_with_error(t, &e);
}

/* Send what the owner wrote during the handshake. */
static void send_early(struct tls *t)
{
    bool waited = t->early.len > 0;

    if (waited && encrypt_all(t, mo_buf_view(&t->early)) < 0)
        return;
    mo_buf_fini(&t->early);
    if (flush_out(t) < 0)
        return;
    if (t->shut)
        send_close_notify(t);
    if (waited && t->under && mo_stream_queued(t->under) == 0)
        mo_stream_on_drained(&t->base);
}

/* Continue the handshake; true once it is complete. */
static bool continue_handshake(struct tls *t)
{
    const struct mo_ossl *f = &t->ctx->f;
    int rc, err;

    if (t->established)
        return true;
    f->ERR_clear_error();
    rc = f->SSL_do_handshake(t->ssl);
    err = f->SSL_get_error(t->ssl, rc);
    if (rc != 1 && err != SSL_ERROR_WANT_READ) {
        (void)flush_out(t); /* send the alert to the peer */
        handshake_failed(t);
        return false;
    }
    if (flush_out(t) < 0 || rc != 1)
        return false;
    if (t->ctx->psk && !f->SSL_session_reused(t->ssl)) {
        close_with_error(
            t, mo_error(MO_ETLS, "TLS with %s: without the key", t->base.peer));
        return false;
    }
    t->established = true;
    mo_timer_stop(t->base.loop, &t->handshake);
    mo_gone_fire(t->ready);
    if (t->base.closing)
        return false;
    send_early(t);
    return !t->base.closing;
}

static void on_handshake_late(struct mo_timer *tm)
{
    struct tls *t = mo_container_of(tm, struct tls, handshake);

    close_with_error(
        t, mo_error(MO_ETIMEOUT, "TLS handshake with %s: not done in %u ms",
                    t->server ? t->base.peer : t->name, t->ctx->handshake_ms));
}

/* --- deliver plaintext --------------------------------------------------- */

static void read_failed(struct tls *t, int err)
{
    struct mo_err e;

    if (err == SSL_ERROR_WANT_READ)
        return;
    if (err == SSL_ERROR_ZERO_RETURN) {
        mo_stream_on_eof(&t->base);
        return;
    }
    (void)flush_out(t);
    (void)mo_ossl_fail(&t->ctx->f, &e, "TLS read from %s", t->base.peer);
    close_with_error(t, &e);
}

static void deliver_plaintext(struct tls *t)
{
    const struct mo_ossl *f = &t->ctx->f;
    char plain[RECORD];

    while (t->base.reading && !t->base.closing) {
        int n;

        f->ERR_clear_error();
        n = f->SSL_read(t->ssl, plain, sizeof(plain));
        if (n <= 0) {
            read_failed(t, f->SSL_get_error(t->ssl, n));
            break;
        }
        (void)mo_stream_on_data(&t->base, plain, (size_t)n);
    }
    if (!t->base.closing)
        (void)flush_out(t); /* SSL_read may answer key updates */
}

/* Free memory until the next read. RELEASE_BUFFERS frees most, but not the
 * buffers that a ticket or an empty read allocated (2 x 16 KB). */
static void release_buffers(struct tls *t)
{
    const struct mo_ossl *f = &t->ctx->f;
    BIO *b;

    (void)f->SSL_free_buffers(t->ssl); /* does nothing while they are in use */
    if (t->in_most <= BIO_KEEP || f->BIO_ctrl(t->in, BIO_CTRL_PENDING, 0, NULL))
        return;
    b = f->BIO_new(f->BIO_s_mem());
    if (!b)
        return;
    f->SSL_set0_rbio(t->ssl, b);
    t->in = b;
    t->in_most = 0;
}

static void pump_stream(struct tls *t)
{
    if (!continue_handshake(t))
        return;
    deliver_plaintext(t);
    if (t->base.closing || t->failed.code || !t->under)
        return;
    release_buffers(t);
    if (t->base.reading || t->base.eof)
        mo_stream_resume(t->under);
    else
        mo_stream_pause(t->under);
}

static void on_under_read(void *ctx, char *p, size_t n)
{
    struct tls *t = ctx;

    if (t->base.closing || t->base.eof || t->failed.code)
        return; /* ignore bytes after a close_notify */
    if (n > t->in_most)
        t->in_most = n;
    if (t->ctx->f.BIO_write(t->in, p, (int)n) == (int)n)
        pump_stream(t);
    else
        close_with_error(t,
                         mo_error(MO_ENOMEM, "TLS read from %s", t->base.peer));
}

static void on_under_eof(void *ctx)
{
    struct tls *t = ctx;

    if (t->base.closing || t->base.eof)
        return;
    if (t->base.finishing)
        mo_stream_on_eof(&t->base);
    else
        close_with_error(
            t, mo_error(MO_ETLS, "%s %s: %s",
                        t->established ? "TLS from" : "TLS handshake with",
                        t->server ? t->base.peer : t->name,
                        t->established ? "truncated" : "the peer closed"));
}

static void on_under_drain(void *ctx)
{
    struct tls *t = ctx;

    if (t->established)
        mo_stream_on_drained(&t->base);
}

static void tls_reading(struct mo_stream *s, bool on)
{
    struct tls *t = mo_container_of(s, struct tls, base);

    if (on)
        mo_loop_defer(s->loop, &t->later);
    else if (t->established && t->under)
        mo_stream_pause(t->under);
}

/* --- create and close ---------------------------------------------------- */

static void free_if_gone(struct tls *t)
{
    t->ctx->f.SSL_free(t->ssl);
    mo_tls_free(t->ctx);
    mo_buf_fini(&t->early);
    mo_stream_gone(&t->base);
    mo_free(t);
}

static void on_later(struct mo_later *d)
{
    struct tls *t = mo_container_of(d, struct tls, later);

    if (t->base.closing)
        free_if_gone(t);
    else if (t->failed.code)
        mo_stream_close(&t->base, &t->failed);
    else
        pump_stream(t);
}

static void on_under_close(void *ctx, const struct mo_err *why)
{
    struct tls *t = ctx;
    struct mo_err e;

    t->under = NULL;
    if (t->base.closing) {
        free_if_gone(t);
        return;
    }
    if (!why)
        (void)mo_fail(&e, MO_ECLOSED, "TLS %s: closed", t->base.peer);
    close_with_error(t, why ? why : &e);
}

/* A clean close sends close_notify. A close with a reason does not: the peer
 * must not take a partial answer for a whole one. */
static void tls_close(struct mo_stream *s)
{
    struct tls *t = mo_container_of(s, struct tls, base);

    mo_timer_stop(s->loop, &t->handshake);
    mo_later_cancel(&t->later);
    if (t->established && t->under && !t->shut && !s->why.code) {
        t->shut = true;
        send_close_notify(t);
    }
    if (t->under)
        mo_stream_close(t->under, NULL);
    else
        mo_loop_defer(s->loop, &t->later);
}

static const struct mo_stream_ops tls_ops = {
    .writev = tls_writev,
    .queued = tls_queued,
    .reading = tls_reading,
    .shutdown = tls_shutdown,
    .close = tls_close,
    .tls = true,
};

static const struct mo_stream_cb under_cb = {
    .on_read = on_under_read,
    .on_eof = on_under_eof,
    .on_drain = on_under_drain,
    .on_close = on_under_close,
};

static bool is_ip(const char *name)
{
    unsigned char a[16];

    return inet_pton(AF_INET, name, a) == 1 ||
           inet_pton(AF_INET6, name, a) == 1;
}

static bool expect_name(struct tls *t, const char *name)
{
    const struct mo_ossl *f = &t->ctx->f;
    X509_VERIFY_PARAM *vp = f->SSL_get0_param(t->ssl);
    char copy[256]; /* SSL_ctrl takes a non-const pointer */

    if (is_ip(name))
        return f->X509_VERIFY_PARAM_set1_ip_asc(vp, name) == 1;
    if (snprintf(copy, sizeof(copy), "%s", name) >= (int)sizeof(copy))
        return false;
    return f->SSL_set1_host(t->ssl, name) == 1 &&
           f->SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                       TLSEXT_NAMETYPE_host_name, copy) == 1;
}

static bool ssl_init(struct tls *t, const char *sni)
{
    const struct mo_ossl *f = &t->ctx->f;

    t->ssl = f->SSL_new(t->ctx->ssl);
    t->in = t->ssl ? f->BIO_new(f->BIO_s_mem()) : NULL;
    t->out = t->in ? f->BIO_new(f->BIO_s_mem()) : NULL;
    if (!t->out) {
        (void)f->BIO_free(t->in);
        return false;
    }
    f->SSL_set0_rbio(t->ssl, t->in);
    f->SSL_set0_wbio(t->ssl, t->out);
    if (t->server)
        f->SSL_set_accept_state(t->ssl);
    else
        f->SSL_set_connect_state(t->ssl);
    if (!t->ctx->psk)
        return t->server || !sni || expect_name(t, sni);
    (void)snprintf(t->name, sizeof(t->name), "%s", sni ? sni : "");
    t->psk =
        (struct mo_tls_psk_conn){.psk = t->ctx->psk, .f = f, .wanted = t->name};
    return f->SSL_set_ex_data(t->ssl, 0, &t->psk) == 1;
}

static struct tls *tls_new(struct mo_tls_ctx *c, struct mo_stream *under,
                           bool server, const char *sni, struct mo_err *e)
{
    struct tls *t = mo_new(struct tls);

    if (!t)
        return mo_null(mo_fail(e, MO_ENOMEM, "TLS stream"));
    t->ctx = c;
    c->refs++;
    t->server = server;
    if (!ssl_init(t, sni)) {
        (void)mo_ossl_fail(&c->f, e, "TLS stream for %s", sni ? sni : "peer");
        c->f.SSL_free(t->ssl);
        mo_tls_free(t->ctx);
        mo_free(t);
        return NULL;
    }
    mo_stream_init(&t->base, under->loop, &tls_ops);
    memcpy(t->base.peer, under->peer, sizeof(t->base.peer));
    (void)snprintf(t->name, sizeof(t->name), "%s", sni ? sni : under->peer);
    mo_buf_init(&t->early, NO_LIMIT);
    mo_timer_init(&t->handshake, on_handshake_late);
    mo_later_init(&t->later, on_later);
    t->under = under;
    return t;
}

int mo_tls_wrap(struct mo_tls_ctx *c, struct mo_stream *under, bool server,
                const char *sni, struct mo_stream **out, struct mo_err *e)
{
    struct tls *t = tls_new(c, under, server, sni, e);

    if (!t) {
        mo_stream_close(under, NULL);
        return e ? e->code : MO_ETLS;
    }
    mo_stream_limit(under, NO_LIMIT);
    mo_timer_start(under->loop, &t->handshake, c->handshake_ms);
    mo_stream_attach(under, &under_cb, t);
    if (!server)
        mo_loop_defer(under->loop, &t->later); /* a client speaks first */
    *out = &t->base;
    return 0;
}

int mo_tls_feed(struct mo_stream *s, struct mo_span first, struct mo_err *e)
{
    struct tls *t = mo_container_of(s, struct tls, base);

    if (first.n > t->in_most)
        t->in_most = first.n;
    if (t->ctx->f.BIO_write(t->in, first.p, (int)first.n) != (int)first.n)
        return mo_fail(e, MO_ENOMEM, "TLS read from %s", s->peer);
    mo_loop_defer(s->loop, &t->later);
    return 0;
}

void mo_tls_on_ready(struct mo_stream *s, void (*fn)(void *ctx), void *ctx)
{
    struct tls *t = mo_container_of(s, struct tls, base);

    t->ready = (struct mo_gone){fn, ctx};
}

struct mo_span mo_tls_protocol(const struct mo_stream *s)
{
    const struct tls *t = mo_container_of(s, struct tls, base);
    const unsigned char *p = NULL;
    unsigned n = 0;

    t->ctx->f.SSL_get0_alpn_selected(t->ssl, &p, &n);
    return mo_span((const char *)p, n);
}

bool mo_tls_is_h2(const struct mo_stream *s)
{
    return mo_span_is(mo_tls_protocol(s), "h2");
}

bool mo_tls_is_ready(const struct mo_stream *s)
{
    return mo_container_of(s, const struct tls, base)->established;
}

enum mo_tls_refusal mo_tls_refused(const struct mo_stream *s)
{
    return mo_container_of(s, const struct tls, base)->psk.refusal;
}
