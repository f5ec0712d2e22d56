/* eiod_priv.h - shared by the three files of the Engine.IO server.
 *
 *   eiod.c      requests, and the server as a whole
 *   eiod_eng.c  a session: its packets, heartbeat, upgrade and end
 *   eiod_ws.c   one websocket connection
 *
 * Invariants
 *  1. A session has one transport: websocket if g->ws, else polling. During
 *     an upgrade g->probe is a second websocket that carries no messages.
 *  2. g->out holds packets in the polling encoding; it is empty on websocket.
 *  3. Only mo_eiod_engine_close() sets `closed`. The owner is told one loop
 *     iteration later. A polling client that has not fetched its last packets
 *     gets some time to do so, by a GET or by the upgrade it is about to
 *     finish; until then the session is only a mailbox.
 *  4. let_go() removes every link from requests and websockets to the session,
 *     so that nothing can reach it when it is freed.
 *  5. A wsc (websocket connection) frees itself in its stream's on_close.
 *  6. A client that fills the queue is not read from: a websocket whose queue
 *     is over MO_EIOD_HIGH is paused until it is empty, and a POST is answered
 *     only after the client has fetched the replies to it. */
#ifndef MO_WEB_EIOD_PRIV_H
#define MO_WEB_EIOD_PRIV_H

#include "base/map.h"
#include "codec/http/eio.h"
#include "codec/http/ws.h"
#include "web/eiod.h"

#define MO_EIOD_HIGH(d) ((d)->o.max_queue / 4)

struct wsc;

struct engine {
    struct mo_eng pub;
    struct mo_eiod *d;
    struct mo_list node;
    struct wsc *ws, *probe;
    struct mo_req *poll; /* a GET waiting for packets */
    struct mo_req *post; /* a POST whose body is arriving or has been read */
    struct mo_buf out;
    struct mo_timer beat;    /* next ping, deadline of the pong; mailbox time */
    struct mo_timer upgrade; /* deadline of a probe; then repeats */
    uint64_t upgrade_by;     /* ns */
    struct mo_later later;
    const char *reason;
    bool awaiting_pong, probed;
    bool taken;  /* the body of g->post was read; the answer is due */
    bool opened; /* on_open was called */
    bool closed; /* on_close is due or was called */
    bool mailbox;
};

/* One websocket connection. g is NULL once it has no session. */
struct wsc {
    struct mo_eiod *d;
    struct engine *g;
    struct mo_stream *s;
    struct mo_ws ws;
    struct mo_buf out;     /* frames of this loop iteration */
    struct mo_later flush; /* sends them together */
    bool ending;
};

struct mo_eiod {
    struct mo_loop *loop;
    struct mo_eiod_opts o;
    struct mo_map sessions;
    struct mo_list engines; /* engine.node */
    struct mo_eiod_stats stats;
    unsigned wscs; /* not freed yet */
    bool closing;
    struct mo_later ended;
    struct mo_gone gone;
};

/* --- eiod.c -------------------------------------------------------------- */

/* Finish closing if the last session or connection is gone. */
void mo_eiod_maybe_ended(struct mo_eiod *d);

/* --- eiod_eng.c ---------------------------------------------------------- */

/* NULL: too many, or no memory. Once it has a transport, mo_eiod_engine_open()
 * tells client and owner. */
struct engine *mo_eiod_engine_new(struct mo_eiod *d, struct mo_req *rq);
void mo_eiod_engine_open(struct engine *g);
void mo_eiod_engine_packet(struct engine *g, const struct mo_eio *p);
/* A packet from the websocket that is to become the transport. */
void mo_eiod_engine_probe(struct wsc *w, const struct mo_eio *p);
void mo_eiod_engine_close(struct engine *g, uint16_t code, const char *reason);
/* A GET came for the last packets. */
void mo_eiod_engine_empty_mailbox(struct engine *g);
/* The last packets were fetched, or never will be. */
void mo_eiod_engine_end_mailbox(struct engine *g);
/* Answer the waiting GET with the packets queued. */
void mo_eiod_engine_flush(struct engine *g);
/* The body of the POST was read: answer it, unless much is queued. */
void mo_eiod_engine_answer_post(struct engine *g);
void mo_eiod_engine_release_post(struct engine *g);

/* --- eiod_ws.c ----------------------------------------------------------- */

/* Answer 101 and take the stream; NULL on failure (the request has been
 * answered then). *early: bytes received with the head, to pass to
 * mo_wsc_read() when the session has its connection. */
struct wsc *mo_wsc_accept(struct mo_eiod *d, struct mo_req *rq,
                          struct mo_span *early);
void mo_wsc_read(void *wsc, char *p, size_t n);
int mo_wsc_send(struct wsc *w, enum mo_ws_op op, const struct mo_span *v,
                size_t n);
/* The session no longer wants this connection. NULL is fine. */
void mo_wsc_drop(struct wsc *w, uint16_t code, const char *why);

#endif
