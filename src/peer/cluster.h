/* cluster.h - the port at which servers of one store on other machines reach
 * this one.
 *
 *   accept -> TLS with the shared key (loop/tls.h) -> what the client wants:
 *
 *     "mo-peer/1"   members of conversations here    (guest.c)
 *     "http/1.1"    requests that were passed on      (web/relay.h)
 *
 * Trust: who has the key is one of the servers, and is believed whom it speaks
 * for, as a process of the same user is on one machine (peer.h). Until it has
 * proved the key it gets nothing, and nothing of its bytes is read but the
 * handshake. We prove it as well, so an address in the store that leads to
 * somebody else gets no data. The handshake names the instance that is wanted:
 * an address that belongs to another server of the store by now is refused.
 *
 * Limits: MO_CLUSTER_SHAKING handshakes at once, MO_CLUSTER_SHAKING_EACH from
 * one address, MO_CLUSTER_SHAKE_MS for each; more are closed unread. A machine
 * that vanishes is noticed after MO_CLUSTER_LOSS_MS.
 *
 * Ownership: open it before the peers and free it after them and the relay. */
#ifndef MO_PEER_CLUSTER_H
#define MO_PEER_CLUSTER_H

#include "loop/net.h"
#include "loop/tls.h"

#define MO_CLUSTER_SHAKING      128
#define MO_CLUSTER_SHAKING_EACH 32
#define MO_CLUSTER_SHAKE_MS     3000
#define MO_CLUSTER_DIAL_MS      2000
#define MO_CLUSTER_LOSS_MS      6000
#define MO_CLUSTER_ADDRESS_MAX  280 /* HOST:PORT, with the NUL */

struct mo_cluster;

enum mo_cluster_stream { MO_CLUSTER_PEER, MO_CLUSTER_HTTP, MO_CLUSTER_STREAMS };

struct mo_cluster_opts {
    const char *listen;  /* HOST:PORT */
    const char *address; /* HOST or HOST:PORT for others; NULL: listen's */
    struct mo_span key;  /* MO_TLS_PSK_KEY_MIN bytes or more; not kept */
    unsigned offset;     /* is added to both ports, unless they are 0 */
};

/* Binds the port, and accepts nobody before mo_cluster_name(). */
int mo_cluster_open(struct mo_loop *l, const struct mo_cluster_opts *o,
                    struct mo_cluster **out, struct mo_err *e);
/* The name of this process; others ask for it. */
void mo_cluster_name(struct mo_cluster *c, const char *instance);
/* Receiver of connections of that kind, paused; NULL: they are closed. */
void mo_cluster_take(struct mo_cluster *c, enum mo_cluster_stream kind,
                     void (*take)(void *ctx, struct mo_stream *s), void *ctx);
const char *mo_cluster_address(const struct mo_cluster *c);
void mo_cluster_stop(struct mo_cluster *c); /* accepts no more */
void mo_cluster_free(struct mo_cluster *c); /* NULL is fine */

/* --- to others ------------------------------------------------------------ */

/* For a client of that kind; borrowed. */
struct mo_tls_ctx *mo_cluster_tls(struct mo_cluster *c,
                                  enum mo_cluster_stream kind);
/* Wraps a stream that was dialled, and takes it; bytes wait in it until the
 * other end has proved to be that instance. */
int mo_cluster_wrap(struct mo_cluster *c, struct mo_stream *s,
                    const char *instance, struct mo_stream **out,
                    struct mo_err *e);
/* A connection to that instance has failed before it was ready: counts it, and
 * logs it if it is about the key. */
void mo_cluster_failed(struct mo_cluster *c, const char *instance,
                       const struct mo_err *why);

enum mo_cluster_count {
    MO_CLUSTER_ACCEPTED,
    MO_CLUSTER_BAD_KEY,
    MO_CLUSTER_BAD_NAME,  /* it wanted another instance */
    MO_CLUSTER_BAD_OTHER, /* no TLS, too slow, gone */
    MO_CLUSTER_CROWDED,   /* too many handshakes */
    MO_CLUSTER_FAILED,    /* ours to others */
    MO_CLUSTER_COUNTS,
};
uint64_t mo_cluster_count(const struct mo_cluster *c, enum mo_cluster_count n);

#endif
