/* docker_net_far.c - the network of a docker box whose engine is elsewhere.
 *
 * Sockets cannot be handed over from another machine. The network container
 * accepts the connections itself and carries them over its stdin and stdout
 * (launcher/container_stream.h, loop/channels.h), which the engine passes on to
 * its attach connection. What happens to a connection is decided here, as for
 * any box. Certificates for `inject` go the other way: into a volume in memory
 * that the network container writes and the box sees read-only
 * (docker_trust.c).
 *
 * If the stream ends while the box runs, its connections end, and the container
 * is attached to again, a few times. Without success the box has no network
 * any more; that is logged. A frame that is not valid ends it at once. */
#include <stdio.h>

#include "base/file.h"
#include "box/box_trust.h"
#include "box/docker_priv.h"
#include "codec/ca_files.h"
#include "codec/dns.h"
#include "codec/net_frame.h"

#define FILE_MAX ((size_t)4 * 1024 * 1024)

/* The stream, from the request to attach until its parts are gone. */
struct dk_far {
    struct dk_box *b; /* NULL: it has let go */
    struct mo_engine_call *attaching;
    struct mo_channels *channels;
    struct mo_stream *err;
    char said[160]; /* on stderr: why it failed */
    size_t nsaid;
};

static void far_maybe_free(struct dk_far *f)
{
    if (!f->b && !f->attaching && !f->err)
        mo_free(f);
}

static void let_go(struct dk_far *f)
{
    f->b->net.stream = NULL;
    f->b = NULL;
    mo_channels_forget(mo_take_ptr(&f->channels));
    if (f->err)
        mo_stream_close(f->err, NULL);
    far_maybe_free(f);
}

/* --- what the container says --------------------------------------------- */

static void on_err_read(void *ctx, char *p, size_t n)
{
    struct dk_far *f = ctx;

    for (size_t i = 0; i < n && f->nsaid < sizeof(f->said) - 1; i++)
        f->said[f->nsaid++] = p[i] >= ' ' && p[i] < 0x7f ? p[i] : ' ';
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct dk_far *f = ctx;

    (void)why;
    f->err = NULL;
    far_maybe_free(f);
}

static void on_ready(void *ctx, bool v6)
{
    struct dk_far *f = ctx;
    struct dk_net *x = &f->b->net;

    x->v6 = v6;
    x->tries = 0;
    mo_docker_net_greeted(f->b, NULL);
}

static void on_open(void *ctx, struct mo_stream *s, const struct mo_ip *ip,
                    unsigned port)
{
    const struct dk_far *f = ctx;
    struct mo_egress *relay = f->b->net.net.relay;

    if (relay)
        mo_egress_accept(relay, s, ip, port);
    else
        mo_stream_close(s, NULL);
}

static void on_query(void *ctx, uint32_t id, struct mo_span query)
{
    const struct dk_far *f = ctx;
    struct mo_egress *relay = f->b->net.net.relay;
    mo_autobuf struct mo_buf out = {.max = MO_DNS_ANSWER_MAX};

    if (relay && mo_egress_query(relay, query, &out))
        mo_channels_answer(f->channels, id, mo_buf_view(&out));
}

/* --- certificates -------------------------------------------------------- */

static void let_go_and_tell(struct dk_far *f, const struct mo_err *why)
{
    struct dk_box *b = f->b;

    let_go(f);
    mo_docker_net_greeted(b, why);
}

static void on_file(void *ctx, uint32_t id, bool ok)
{
    struct dk_far *f = ctx;
    struct dk_net *x = &f->b->net;

    (void)id;
    if (!ok) {
        let_go_and_tell(f,
                        mo_error(MO_EUNAVAIL, "certificates: the network "
                                              "container cannot write them"));
        return;
    }
    if (x->unfilled == 0 || --x->unfilled > 0)
        return;
    x->filled = true;
    mo_docker_net_greeted(f->b, NULL);
}

static int send_one(struct dk_box *b, const char *dir, const char *name,
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
    b->net.unfilled++;
    mo_channels_send_file(b->net.stream->channels, id, mo_buf_view(&file));
    return 0;
}

int mo_docker_far_send_files(struct dk_box *b, struct mo_err *e)
{
    char dir[MO_BOX_TRUST_MAX];
    bool java = false;
    int rc = mo_docker_trust_write(b, dir, &java, e);

    if (rc == 0)
        rc = send_one(b, dir, MO_CA_BUNDLE, MO_NET_FILE_BUNDLE, e);
    if (rc == 0 && java)
        rc = send_one(b, dir, MO_CA_JAVA, MO_NET_FILE_JAVA, e);
    return rc;
}

/* --- the stream ---------------------------------------------------------- */

static void on_end(void *ctx, const struct mo_err *why)
{
    struct dk_far *f = ctx;
    struct mo_err e = *why;

    f->channels = NULL;
    if (f->nsaid)
        (void)mo_fail(&e, MO_EUNAVAIL, "network container: %s", f->said);
    let_go_and_tell(f, &e);
}

static const struct mo_channels_cb channels_cb = {
    .on_ready = on_ready,
    .on_open = on_open,
    .on_query = on_query,
    .on_file = on_file,
    .on_end = on_end,
};

/* --- attaching ----------------------------------------------------------- */

static int take_stream(struct dk_far *f, struct mo_stream *s,
                       struct mo_span early, struct mo_err *e)
{
    static const struct mo_stream_cb err_cb = {.on_read = on_err_read,
                                               .on_close = on_err_close};
    struct mo_split_io io;
    int rc = mo_split(s, MO_SPLIT_DOCKER, early, NULL, NULL, &io, e);

    if (rc < 0)
        return rc;
    f->err = io.err;
    mo_stream_attach(io.err, &err_cb, f);
    return mo_channels_open(f->b->b.bs->loop, io.io, &channels_cb, f,
                            &f->channels, e);
}

static void on_attached(void *ctx, struct mo_stream *s, struct mo_span early,
                        const struct mo_err *why)
{
    struct dk_far *f = ctx;
    struct dk_box *b = f->b;
    struct mo_err e;
    int rc = why ? why->code : 0;

    f->attaching = NULL;
    if (why)
        e = *why;
    if (b->net.ending) {
        if (s)
            mo_stream_close(s, NULL);
        let_go(f);
        mo_docker_net_end(b, b->net.keep);
        return;
    }
    if (rc == 0)
        rc = take_stream(f, s, early, &e);
    if (rc < 0)
        let_go(f);
    mo_docker_net_attached(b, rc < 0 ? &e : NULL);
}

int mo_docker_far_open(struct dk_box *b, struct mo_err *e)
{
    struct dk_far *f = mo_new(struct dk_far);
    int rc;

    if (!f)
        return mo_fail(e, MO_ENOMEM, "network");
    f->b = b;
    rc = mo_engine_attach(mo_docker_of_box(b)->en, b->net.id, on_attached, f,
                          &f->attaching, e);
    if (rc < 0)
        mo_free(f);
    else
        b->net.stream = f;
    return rc;
}

bool mo_docker_far_close(struct dk_box *b)
{
    struct dk_far *f = b->net.stream;

    if (!f)
        return true;
    if (f->attaching) {
        b->net.ending = true;
        mo_engine_cancel(f->attaching);
        return false;
    }
    let_go(f);
    return true;
}
