/* siod.h - Socket.IO 5 sockets on the namespace "/".
 *
 * A socket is a client that has sent CONNECT over an Engine.IO session. The
 * owner accepts or refuses it, gets its events, and sends events to it. Clients
 * may ask for acks; this server asks for none.
 *
 * Lifetimes: a socket accepted by on_connect lives until on_disconnect, which
 * fires exactly once and never from inside a call here.
 *
 * Arguments are JSON text: incoming arguments are validated and passed as a
 * handle to the whole array (element 0 is the name); outgoing "args" are the
 * elements after the name, joined by commas.
 *
 * Limits: refused CONNECTs (the session is closed), plus those of eiod.h. A
 * packet that violates the protocol closes the session; other namespaces are
 * refused with CONNECT_ERROR; a binary event closes the session. */
#ifndef MO_WEB_SIOD_H
#define MO_WEB_SIOD_H

#include "codec/http/sio.h"
#include "web/eiod.h"

#define MO_SIO_ACK_NONE     (-1)
#define MO_SIO_CONNECT_MS   45000
#define MO_SIO_REFUSALS_MAX 64 /* refused CONNECTs per session */

struct mo_siod;

struct mo_sock {
    void *data;         /* for the owner */
    char id[28];        /* public id of the socket, unguessable */
    struct mo_eng *eng; /* query and peer of the handshake */
};

struct mo_siod_opts {
    struct mo_eiod_opts eio; /* siod sets its callbacks and ctx */
    /* auth: the object sent with CONNECT, or none. To refuse, fill *e (its
     * message goes to the client) and return false. */
    bool (*on_connect)(void *ctx, struct mo_sock *k, struct mo_json auth,
                       struct mo_err *e);
    /* The client has been told; events may be sent to it from now on. */
    void (*on_ready)(void *ctx, struct mo_sock *k);
    /* args: the whole array. ack: MO_SIO_ACK_NONE or the id for
     * mo_sock_ack(). */
    void (*on_event)(void *ctx, struct mo_sock *k, struct mo_json name,
                     struct mo_json args, int64_t ack);
    void (*on_disconnect)(void *ctx, struct mo_sock *k, const char *reason);
    void *ctx;
};

struct mo_siod *mo_siod_new(struct mo_loop *l, const struct mo_siod_opts *o,
                            struct mo_err *e);
void mo_siod_handle(struct mo_siod *d, struct mo_req *rq);
/* As mo_eiod_drop(). */
void mo_siod_drop(struct mo_siod *d, const char *who, const char *door,
                  const char *grant);
void mo_siod_close(struct mo_siod *d, void (*gone)(void *ctx), void *ctx);

int mo_sock_emit(struct mo_sock *k, const char *name, struct mo_span args);
int mo_sock_ack(struct mo_sock *k, int64_t ack, struct mo_span args);

/* Socket.IO's disconnect; `close` also closes the Engine.IO session. */
void mo_sock_disconnect(struct mo_sock *k, bool close);

struct mo_siod_stats {
    struct mo_eiod_stats eio;
    unsigned sockets;
    uint64_t events_in, events_out;
};
struct mo_siod_stats mo_siod_stats(const struct mo_siod *d);

#endif
