/* net_stream.h - the network of a box whose sockets are elsewhere.
 *
 * A program beside the box accepts its connections and carries them over its
 * stdin and stdout (launcher/container_stream.h), which an engine or a cluster
 * passes on to one connection of ours. A connection of the box goes to the
 * relay of its mo_box_net, which decides about it; while there is none, it is
 * closed. The certificates of `inject` go the other way, as files.
 *
 * A stream is not trusted: a frame that is not valid ends it (MO_EPROTO). */
#ifndef MO_BOX_NET_STREAM_H
#define MO_BOX_NET_STREAM_H

#include "box/box_net.h"
#include "loop/split.h"

struct mo_net_stream;

struct mo_net_stream_cb {
    void (*on_ready)(void *ctx, bool v6); /* once: the other end answers */
    void (*on_filled)(void *ctx);         /* its files are written */
    /* Once, last, unless it was closed. If the program said why on stderr, that
     * is the reason, with MO_EPOLICY. */
    void (*on_end)(void *ctx, const struct mo_err *why);
};

/* Takes s (paused), also on failure. net is borrowed. */
int mo_net_stream_open(struct mo_box_net *net, struct mo_stream *s,
                       enum mo_split_wire wire, struct mo_span early,
                       const struct mo_net_stream_cb *cb, void *ctx,
                       struct mo_net_stream **out, struct mo_err *e);
/* Sends the certificates of the policy, before a relay has it. on_filled() or
 * on_end() follows. java: with the keystore, too. */
int mo_net_stream_send_files(struct mo_net_stream *x, bool java,
                             struct mo_err *e);
/* No callback follows. NULL is fine. */
void mo_net_stream_close(struct mo_net_stream *x);

#endif
