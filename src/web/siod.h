/* siod.h - Socket.IO 5 sockets on the namespace "/".
 *
 * A socket is a client that has sent CONNECT over an Engine.IO session. The
 * owner is asked whether to take it, gets its events, and sends events to one
 * socket or to a room of them. Acks work both ways.
 *
 * Lifetimes: a socket that on_connect took lives until on_disconnect, which
 * fires exactly once and never from inside a call here.
 *
 * Arguments are JSON text on both sides: what comes in is validated and
 * handed out as a handle to the whole array (element 0 is the name); what
 * goes out is "args", the elements after the name, comma-joined.
 *
 * Limits: rooms a socket may be in, acks it may owe us, CONNECTs that were
 * refused (the session is closed), plus those of eiod.h. A packet that breaks
 * the protocol closes the session; other namespaces are refused with
 * CONNECT_ERROR; binary events are refused by closing. */
#ifndef MO_WEB_SIOD_H
#define MO_WEB_SIOD_H

#include "codec/http/sio.h"
#include "web/eiod.h"

#define MO_SIO_ROOMS_MAX    16 /* of one socket */
#define MO_SIO_ACKS_MAX     64 /* that one socket owes us */
#define MO_SIO_ACK_NONE     (-1)
#define MO_SIO_CONNECT_MS   45000
#define MO_SIO_ROOM_MAX     128 /* bytes of a room's name */
#define MO_SIO_REFUSALS_MAX 64  /* CONNECTs refused in one session */

struct mo_siod;

struct mo_sock {
    void *data;         /* the owner's */
    char id[28];        /* public name of the socket, unguessable */
    struct mo_eng *eng; /* query and peer of the handshake */
};

struct mo_siod_opts {
    struct mo_eiod_opts eio; /* its callbacks and ctx are set by siod */
    /* auth: the object sent with CONNECT, or none. To refuse, fill *e (its
     * message goes to the client) and return false. */
    bool (*on_connect)(void *ctx, struct mo_sock *k, struct mo_json auth,
                       struct mo_err *e);
    /* The client has been told: from here on it may be sent to. */
    void (*on_ready)(void *ctx, struct mo_sock *k);
    /* args: the whole array. ack: MO_SIO_ACK_NONE or what mo_sock_ack()
     * takes. */
    void (*on_event)(void *ctx, struct mo_sock *k, struct mo_json name,
                     struct mo_json args, int64_t ack);
    void (*on_disconnect)(void *ctx, struct mo_sock *k, const char *reason);
    void *ctx;
};

struct mo_siod *mo_siod_new(struct mo_loop *l, const struct mo_siod_opts *o,
                            struct mo_err *e);
void mo_siod_handle(struct mo_siod *d, struct mo_req *rq);
void mo_siod_close(struct mo_siod *d, void (*gone)(void *ctx), void *ctx);

int mo_sock_emit(struct mo_sock *k, const char *name, struct mo_span args);
int mo_sock_ack(struct mo_sock *k, int64_t ack, struct mo_span args);

/* Emit and wait for the client's ack. done fires once: the array of the
 * client's arguments, or none with MO_ETIMEOUT or MO_ECLOSED. */
int mo_sock_ask(struct mo_sock *k, const char *name, struct mo_span args,
                unsigned timeout_ms,
                void (*done)(void *ctx, struct mo_json args, int rc),
                void *ctx);

/* Socket.IO's own disconnect; `close` also ends the session below. */
void mo_sock_disconnect(struct mo_sock *k, bool close);

int mo_sock_join(struct mo_sock *k, struct mo_span room);
void mo_sock_leave(struct mo_sock *k, struct mo_span room);
/* To every socket in the room but `except` (may be NULL); how many. */
size_t mo_siod_emit(struct mo_siod *d, struct mo_span room, const char *name,
                    struct mo_span args, const struct mo_sock *except);
size_t mo_siod_room_size(const struct mo_siod *d, struct mo_span room);

struct mo_siod_stats {
    struct mo_eiod_stats eio;
    unsigned sockets, rooms;
    uint64_t events_in, events_out;
};
struct mo_siod_stats mo_siod_stats(const struct mo_siod *d);

#endif
