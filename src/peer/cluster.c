#include "peer/cluster.h"

#include <stdio.h>

#include "base/list.h"
#include "base/mem.h"

#define PROTOCOL_PEER "mo-peer/1"
#define PROTOCOL_HTTP "http/1.1"
#define NOTICE_NS     UINT64_C(30000000000) /* between two log lines of a kind */

struct mo_cluster {
    struct mo_loop *loop;
    struct mo_listener *listener; /* NULL: stopped */
    struct mo_tls_ctx *server, *client[MO_CLUSTER_STREAMS];
    struct {
        void (*fn)(void *ctx, struct mo_stream *s);
        void *ctx;
    } take[MO_CLUSTER_STREAMS];
    struct mo_list shaking;
    unsigned nshaking;
    bool freed; /* when the last handshake has ended */
    uint64_t count[MO_CLUSTER_COUNTS];
    uint64_t told[MO_CLUSTER_COUNTS]; /* ns: when it was last logged */
    char address[MO_CLUSTER_ADDRESS_MAX];
};

/* A connection that has not proved the key yet. */
struct shake {
    struct mo_list node;
    struct mo_cluster *c;
    struct mo_stream *s;
    struct mo_later later; /* hands it over */
    char host[64];
};

static const char *const protocols[] = {
    [MO_CLUSTER_PEER] = PROTOCOL_PEER,
    [MO_CLUSTER_HTTP] = PROTOCOL_HTTP,
};

/* --- counting and logging ------------------------------------------------- */

uint64_t mo_cluster_count(const struct mo_cluster *c, enum mo_cluster_count n)
{
    return c->count[n];
}

/* Strangers must not fill the log. */
static bool may_tell(struct mo_cluster *c, enum mo_cluster_count n)
{
    uint64_t now = mo_now_ns();

    c->count[n]++;
    if (c->told[n] && now - c->told[n] < NOTICE_NS)
        return false;
    c->told[n] = now;
    return true;
}

static void tell_refused(struct mo_cluster *c, enum mo_cluster_count n,
                         const struct mo_stream *s, const struct mo_err *why)
{
    static const char *const advice[MO_CLUSTER_COUNTS] = {
        [MO_CLUSTER_BAD_KEY] =
            "cluster port: refused, the other end has another key; give all "
            "servers the same cluster.key and restart them",
        [MO_CLUSTER_BAD_NAME] =
            "cluster port: refused, it wanted another server; if this goes on, "
            "cluster.address of that server leads here",
        [MO_CLUSTER_BAD_OTHER] =
            "cluster port: refused, it is none of our servers; only they "
            "should reach this port",
        [MO_CLUSTER_CROWDED] =
            "cluster port: refused, too many connections that prove no key",
    };

    if (may_tell(c, n))
        mo_log_about(
            mo_loop_log(c->loop), MO_WARN, "cluster",
            &(struct mo_log_facts){.from = mo_stream_peer(s), .err = why}, "%s",
            advice[n]);
}

void mo_cluster_failed(struct mo_cluster *c, const char *instance,
                       const struct mo_err *why)
{
    if (may_tell(c, MO_CLUSTER_FAILED))
        mo_log_about(mo_loop_log(c->loop), MO_WARN, "cluster",
                     &(struct mo_log_facts){.err = why},
                     "instance %s cannot be reached; %s", instance,
                     why->code == MO_ETLS
                         ? "do all servers have the same cluster.key?"
                         : "does cluster.address of that server lead to it, "
                           "and may this one connect to its port?");
}

/* --- handshakes ----------------------------------------------------------- */

static void free_if_over(struct mo_cluster *c)
{
    if (!c->freed || c->nshaking)
        return;
    mo_tls_free(c->server);
    for (size_t i = 0; i < MO_CLUSTER_STREAMS; i++)
        mo_tls_free(c->client[i]);
    mo_free(c);
}

static void shake_free(struct shake *k)
{
    struct mo_cluster *c = k->c;

    mo_later_cancel(&k->later);
    mo_list_del(&k->node);
    mo_free(k);
    c->nshaking--;
    free_if_over(c);
}

static void on_early_close(void *ctx, const struct mo_err *why)
{
    static const enum mo_cluster_count counts[] = {
        [MO_TLS_REFUSED_OTHER] = MO_CLUSTER_BAD_OTHER,
        [MO_TLS_REFUSED_KEY] = MO_CLUSTER_BAD_KEY,
        [MO_TLS_REFUSED_NAME] = MO_CLUSTER_BAD_NAME,
    };
    struct shake *k = ctx;

    if (k->c->listener && !mo_tls_is_ready(k->s))
        tell_refused(k->c, counts[mo_tls_refused(k->s)], k->s, why);
    shake_free(k);
}

/* Never called: the stream is paused before it delivers anything. */
static void on_early_read(void *ctx, char *p, size_t n)
{
    struct shake *k = ctx;

    (void)p;
    (void)n;
    mo_stream_close(k->s, mo_error(MO_EPROTO, "bytes before their time"));
}

static void on_handover(struct mo_later *d)
{
    struct shake *k = mo_container_of(d, struct shake, later);
    struct mo_cluster *c = k->c;
    struct mo_stream *s = k->s;
    struct mo_span wants = mo_tls_protocol(s);

    c->count[MO_CLUSTER_ACCEPTED]++;
    for (size_t i = 0; i < MO_CLUSTER_STREAMS; i++) {
        if (!mo_span_is(wants, protocols[i]) || !c->take[i].fn || !c->listener)
            continue;
        mo_stream_attach(s, NULL, NULL);
        mo_stream_pause(s);
        shake_free(k);
        c->take[i].fn(c->take[i].ctx, s);
        return;
    }
    mo_stream_close(s, NULL);
}

/* The owner changes outside of the stream's own calls. */
static void on_proved(void *ctx)
{
    struct shake *k = ctx;

    mo_stream_pause(k->s);
    mo_loop_defer(k->c->loop, &k->later);
}

static void put_host(const struct mo_stream *s, char out[64])
{
    struct mo_span peer = mo_span_cstr(mo_stream_peer(s));

    while (peer.n > 0 && peer.p[peer.n - 1] != ':')
        peer.n--;
    (void)snprintf(out, 64, "%.*s", (int)peer.n, peer.p);
}

static unsigned count_from(const struct mo_cluster *c, const char *host)
{
    unsigned n = 0;

    mo_list_each_entry (k, &c->shaking, struct shake, node)
        n += strcmp(k->host, host) == 0;
    return n;
}

static void on_accept(void *ctx, struct mo_stream *plain)
{
    static const struct mo_stream_cb cb = {.on_read = on_early_read,
                                           .on_close = on_early_close};
    struct mo_cluster *c = ctx;
    struct shake *k = NULL;
    struct mo_err e;
    char host[64];

    put_host(plain, host);
    if (c->nshaking >= MO_CLUSTER_SHAKING ||
        count_from(c, host) >= MO_CLUSTER_SHAKING_EACH)
        tell_refused(c, MO_CLUSTER_CROWDED, plain, NULL);
    else
        k = mo_new(struct shake);
    if (!k) {
        mo_stream_close(plain, NULL);
        return;
    }
    mo_stream_notice_loss(plain, MO_CLUSTER_LOSS_MS);
    if (mo_tls_wrap(c->server, plain, true, NULL, &k->s, &e) < 0) {
        mo_free(k);
        return;
    }
    k->c = c;
    memcpy(k->host, host, sizeof(host));
    mo_later_init(&k->later, on_handover);
    mo_list_push(&c->shaking, &k->node);
    c->nshaking++;
    mo_tls_on_ready(k->s, on_proved, k);
    mo_stream_attach(k->s, &cb, k);
}

/* --- to others ------------------------------------------------------------ */

struct mo_tls_ctx *mo_cluster_tls(struct mo_cluster *c,
                                  enum mo_cluster_stream kind)
{
    return c->client[kind];
}

int mo_cluster_wrap(struct mo_cluster *c, struct mo_stream *s,
                    const char *instance, struct mo_stream **out,
                    struct mo_err *e)
{
    mo_stream_notice_loss(s, MO_CLUSTER_LOSS_MS);
    return mo_tls_wrap(c->client[MO_CLUSTER_PEER], s, false, instance, out, e);
}

/* --- life ----------------------------------------------------------------- */

static struct mo_tls_ctx *make_tls(struct mo_span key, const char *names,
                                   bool server, struct mo_err *e)
{
    const struct mo_tls_psk_opts o = {
        .server = server, .key = key, .protocols = names};
    struct mo_tls_ctx *c = mo_tls_psk_new(&o, e);

    if (c)
        mo_tls_handshake_ms(c, MO_CLUSTER_SHAKE_MS);
    return c;
}

static int make_contexts(struct mo_cluster *c, struct mo_span key,
                         struct mo_err *e)
{
    c->server = make_tls(key, PROTOCOL_PEER " " PROTOCOL_HTTP, true, e);
    if (!c->server)
        return e->code;
    for (size_t i = 0; i < MO_CLUSTER_STREAMS; i++) {
        c->client[i] = make_tls(key, protocols[i], false, e);
        if (!c->client[i])
            return e->code;
    }
    return 0;
}

/* HOST:PORT with the port moved by the offset; a HOST alone gets `port`. */
static int put_address(char out[MO_CLUSTER_ADDRESS_MAX], const char *text,
                       unsigned offset, unsigned port, struct mo_err *e)
{
    struct mo_span host = mo_span_cstr(text);
    const char *colon = strrchr(text, ':');
    bool v6 = colon && strchr(text, ':') != colon && text[0] != '[';
    uint64_t n = port;
    int len;

    if (colon && !v6 && colon[1] != '\0' && !strchr(colon, ']')) {
        if (mo_span_u64(mo_span_cstr(colon + 1), &n) < 0 || n > 65535)
            return mo_fail(e, MO_EINVAL, "'%s' is not HOST:PORT", text);
        host.n = (size_t)(colon - text);
        n = n ? n + offset : port;
    }
    len = snprintf(out, MO_CLUSTER_ADDRESS_MAX, v6 ? "[%.*s]:%u" : "%.*s:%u",
                   (int)host.n, host.p, (unsigned)n);
    if (host.n == 0 || n > 65535 || len < 0 || len >= MO_CLUSTER_ADDRESS_MAX)
        return mo_fail(e, MO_EINVAL, "'%s' is not HOST:PORT", text);
    return 0;
}

static int listen_at(struct mo_cluster *c, const struct mo_cluster_opts *o,
                     struct mo_err *e)
{
    char at[MO_CLUSTER_ADDRESS_MAX];
    const struct mo_listen_opts lo = {.addr = at};
    int rc = put_address(at, o->listen, o->offset, 0, e);

    if (rc == 0)
        rc = mo_listen(c->loop, &lo, on_accept, c, &c->listener, e);
    if (rc < 0)
        return mo_wrap(e, "cluster.listen");
    rc = put_address(c->address, o->address ? o->address : o->listen, o->offset,
                     mo_listener_port(c->listener), e);
    return rc < 0 ? mo_wrap(e, "cluster.address") : 0;
}

int mo_cluster_open(struct mo_loop *l, const struct mo_cluster_opts *o,
                    struct mo_cluster **out, struct mo_err *e)
{
    struct mo_cluster *c = mo_new(struct mo_cluster);
    int rc;

    if (!c)
        return mo_fail(e, MO_ENOMEM, "cluster");
    c->loop = l;
    mo_list_init(&c->shaking);
    rc = make_contexts(c, o->key, e);
    if (rc < 0)
        (void)mo_wrap(e, "cluster.key");
    else
        rc = listen_at(c, o, e);
    if (rc < 0) {
        mo_cluster_free(c);
        return rc;
    }
    *out = c;
    return 0;
}

void mo_cluster_name(struct mo_cluster *c, const char *instance)
{
    mo_tls_psk_name(c->server, instance);
}

void mo_cluster_take(struct mo_cluster *c, enum mo_cluster_stream kind,
                     void (*take)(void *ctx, struct mo_stream *s), void *ctx)
{
    c->take[kind].fn = take;
    c->take[kind].ctx = ctx;
}

const char *mo_cluster_address(const struct mo_cluster *c)
{
    return c->address;
}

void mo_cluster_stop(struct mo_cluster *c)
{
    if (c->listener)
        mo_listener_close(mo_take_ptr(&c->listener));
    mo_list_each_entry (k, &c->shaking, struct shake, node)
        mo_stream_close(k->s, NULL);
}

void mo_cluster_free(struct mo_cluster *c)
{
    if (!c)
        return;
    mo_cluster_stop(c);
    c->freed = true;
    free_if_over(c);
}
