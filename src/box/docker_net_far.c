/* docker_net_far.c - the network of a docker box whose engine is elsewhere.
 *
 * Sockets cannot be handed over from another machine. The network container
 * accepts the connections itself and carries them over its stdin and stdout
 * (launcher/container_stream.h, net_stream.h), which the engine passes on to
 * its attach connection. What happens to a connection is decided here, as for
 * any box. Certificates for `inject` go the other way: into a volume in memory
 * that the network container writes and the box sees read-only
 * (docker_trust.c).
 *
 * If the stream ends while the box runs, its connections end, and the container
 * is attached to again, a few times. Without success the box has no network
 * any more; that is logged. A frame that is not valid ends it at once. */
#include "box/docker_priv.h"

/* The stream, from the request to attach until its parts are gone. */
struct dk_far {
    struct dk_box *b;
    struct mo_engine_call *attaching;
    struct mo_net_stream *stream;
};

static void let_go(struct dk_far *f)
{
    f->b->net.stream = NULL;
    mo_net_stream_close(f->stream);
    mo_free(f);
}

/* --- the stream ---------------------------------------------------------- */

static void on_ready(void *ctx, bool v6)
{
    struct dk_far *f = ctx;
    struct dk_net *x = &f->b->net;

    x->v6 = v6;
    x->tries = 0;
    mo_docker_net_greeted(f->b, NULL);
}

static void on_filled(void *ctx)
{
    struct dk_far *f = ctx;

    f->b->net.filled = true;
    mo_docker_net_greeted(f->b, NULL);
}

static void on_end(void *ctx, const struct mo_err *why)
{
    struct dk_far *f = ctx;
    struct dk_box *b = f->b;
    struct mo_err e = *why;

    if (why->code == MO_EPOLICY)
        (void)mo_fail(&e, MO_EUNAVAIL, "network container: %s", why->msg);
    f->stream = NULL;
    let_go(f);
    mo_docker_net_greeted(b, &e);
}

static const struct mo_net_stream_cb stream_cb = {on_ready, on_filled, on_end};

int mo_docker_far_send_files(struct dk_box *b, struct mo_err *e)
{
    return mo_net_stream_send_files(b->net.stream->stream,
                                    mo_docker_trust_java(b), e);
}

/* --- attaching ----------------------------------------------------------- */

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
        rc = mo_net_stream_open(&b->net.net, s, MO_SPLIT_DOCKER, early,
                                &stream_cb, f, &f->stream, &e);
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
