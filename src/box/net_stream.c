#include "box/net_stream.h"

#include "base/file.h"
#include "box/box_trust.h"
#include "codec/ca_files.h"
#include "codec/dns.h"
#include "codec/net_frame.h"
#include "loop/channels.h"

#define FILE_MAX ((size_t)4 * 1024 * 1024)
#define SAID_MAX 200

struct mo_net_stream {
    struct mo_box_net *net; /* NULL: closed */
    const struct mo_net_stream_cb *cb;
    void *ctx;
    struct mo_channels *channels;
    struct mo_stream *err;
    unsigned unfilled;   /* files that were not confirmed yet */
    struct mo_err ended; /* code 0: not */
    char said[SAID_MAX]; /* on stderr: why it failed */
    size_t nsaid;
};

static void maybe_free(struct mo_net_stream *x)
{
    if (!x->net && !x->err)
        mo_free(x);
}

void mo_net_stream_close(struct mo_net_stream *x)
{
    if (!x)
        return;
    x->net = NULL;
    mo_channels_forget(mo_take_ptr(&x->channels));
    if (x->err)
        mo_stream_close(x->err, NULL);
    maybe_free(x);
}

static void end_stream(struct mo_net_stream *x, const struct mo_err *why)
{
    const struct mo_net_stream_cb *cb = x->cb;
    void *ctx = x->ctx;
    struct mo_err e = *why;

    if (x->nsaid)
        (void)mo_fail(&e, MO_EPOLICY, "%s", x->said);
    mo_net_stream_close(x);
    cb->on_end(ctx, &e);
}

/* --- what the program says ----------------------------------------------- */

static void on_err_read(void *ctx, char *p, size_t n)
{
    struct mo_net_stream *x = ctx;

    for (size_t i = 0; i < n && x->nsaid < sizeof(x->said) - 1; i++)
        x->said[x->nsaid++] = p[i] >= ' ' && p[i] < 0x7f ? p[i] : ' ';
}

/* The last words may come after the end of the frames. */
static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct mo_net_stream *x = ctx;

    (void)why;
    x->err = NULL;
    if (x->net && x->ended.code)
        end_stream(x, &x->ended);
    else
        maybe_free(x);
}

static void on_ready(void *ctx, bool v6)
{
    struct mo_net_stream *x = ctx;

    x->cb->on_ready(x->ctx, v6);
}

static void on_open(void *ctx, struct mo_stream *s, const struct mo_ip *ip,
                    unsigned port)
{
    const struct mo_net_stream *x = ctx;

    if (x->net->relay)
        mo_egress_accept(x->net->relay, s, ip, port);
    else
        mo_stream_close(s, NULL);
}

static void on_query(void *ctx, uint32_t id, struct mo_span query)
{
    const struct mo_net_stream *x = ctx;
    mo_autobuf struct mo_buf out = {.max = MO_DNS_ANSWER_MAX};

    if (x->net->relay && mo_egress_query(x->net->relay, query, &out))
        mo_channels_answer(x->channels, id, mo_buf_view(&out));
}

static void on_file(void *ctx, uint32_t id, bool ok)
{
    struct mo_net_stream *x = ctx;

    (void)id;
    if (!ok)
        end_stream(x, mo_error(MO_EUNAVAIL, "certificates: the network "
                                            "container cannot write them"));
    else if (x->unfilled > 0 && --x->unfilled == 0)
        x->cb->on_filled(x->ctx);
}

static void on_end(void *ctx, const struct mo_err *why)
{
    struct mo_net_stream *x = ctx;

    x->channels = NULL;
    x->ended = *why;
    if (!x->err || why->code == MO_EPROTO)
        end_stream(x, &x->ended);
}

/* --- opening ------------------------------------------------------------- */

int mo_net_stream_open(struct mo_box_net *net, struct mo_stream *s,
                       enum mo_split_wire wire, struct mo_span early,
                       const struct mo_net_stream_cb *cb, void *ctx,
                       struct mo_net_stream **out, struct mo_err *e)
{
    static const struct mo_stream_cb err_cb = {.on_read = on_err_read,
                                               .on_close = on_err_close};
    static const struct mo_channels_cb channels_cb = {
        .on_ready = on_ready,
        .on_open = on_open,
        .on_query = on_query,
        .on_file = on_file,
        .on_end = on_end,
    };
    struct mo_net_stream *x = mo_new(struct mo_net_stream);
    struct mo_split_io io;
    int rc;

    if (!x) {
        mo_stream_close(s, NULL);
        return mo_fail(e, MO_ENOMEM, "network");
    }
    *x = (struct mo_net_stream){.net = net, .cb = cb, .ctx = ctx};
    rc = mo_split(s, wire, early, NULL, NULL, &io, e);
    if (rc == 0) {
        x->err = io.err;
        mo_stream_attach(io.err, &err_cb, x);
        rc = mo_channels_open(net->bs->loop, io.io, &channels_cb, x,
                              &x->channels, e);
    }
    if (rc < 0)
        mo_net_stream_close(x);
    else
        *out = x;
    return rc;
}

/* --- certificates -------------------------------------------------------- */

static int send_one(struct mo_net_stream *x, const char *dir, const char *name,
                    uint32_t id, struct mo_err *e)
{
    mo_autobuf struct mo_buf path = {.max = MO_BOX_TRUST_MAX};
    mo_autobuf struct mo_buf file = {.max = FILE_MAX};
    int rc = mo_buf_printf(&path, "%s/%s", dir, name);

    if (rc < 0)
        return mo_fail(e, rc, "certificates");
    rc = mo_file_read(mo_buf_cstr(&path), FILE_MAX, &file, NULL, e);
    if (rc < 0)
        return mo_wrap(e, "certificates");
    x->unfilled++;
    mo_channels_send_file(x->channels, id, mo_buf_view(&file));
    return 0;
}

int mo_net_stream_send_files(struct mo_net_stream *x, bool java,
                             struct mo_err *e)
{
    char dir[MO_BOX_TRUST_MAX];
    int rc = mo_box_trust_write(x->net->bs, x->net->policy, java, dir, e);

    if (rc == 0)
        rc = send_one(x, dir, MO_CA_BUNDLE, MO_NET_FILE_BUNDLE, e);
    if (rc == 0 && java)
        rc = send_one(x, dir, MO_CA_JAVA, MO_NET_FILE_JAVA, e);
    return rc;
}
