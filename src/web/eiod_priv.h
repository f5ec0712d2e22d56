/* eiod_priv.h - what the three files of the Engine.IO server share.
 *
 *   eiod.c      requests, and the server as a whole
 *   eiod_eng.c  a session: its packets, heartbeat, upgrade and end
 *   eiod_ws.c   one websocket connection
 *
 * Invariants
 *  1. A session has one transport: websocket if g->ws, else polling. During
 *     an upgrade g->probe is a second websocket that carries no messages.
 *  2. g->out holds packets in the polling encoding; it is empty on websocket.
 *  3. mo_eiod_engine_close() is the only way to `closed`. The owner is told one
 *     turn later. A polling client that has not fetched its last packets gets
 *     a while to do so, by a GET or by the upgrade it is about to finish;
 *     until then the session is only a mailbox.
 *  4. let_go() cuts every link from requests and websockets to the session,
 *     so that nothing can reach it when it is freed.
 *  5. A wsc (websocket connection) frees itself in its stream's on_close.
 *  6. Who makes us queue stops being read: a websocket whose queue is over
 *     MO_EIOD_HIGH is paused until it is empty, the answer to a POST waits
 *     until the client has fetched what it made us say. */
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
    struct mo_req *poll; /* a GET that waits for packets */
    struct mo_req *post; /* a POST whose body is arriving, or was taken */
    struct mo_buf out;
    struct mo_timer beat;    /* next ping, the pong's deadline; lingering */
    struct mo_timer upgrade; /* of a probe; again and again after it */
    uint64_t upgrade_by;     /* ns */
    struct mo_later later;
    const char *reason;
    bool awaiting_pong, probed;
    bool taken;  /* the body of g->post; only its answer is missing */
    bool opened; /* the owner knows of it */
    bool closed; /* the owner hears of it, or has */
    bool mailbox;
};

/* One websocket connection. g is NULL once nobody cares for it. */
struct wsc {
    struct mo_eiod *d;
    struct engine *g;
    struct mo_stream *s;
    struct mo_ws ws;
    struct mo_buf out;     /* frames of this turn of the loop */
    struct mo_later flush; /* they go out together */
    bool ending;
};

struct mo_eiod {
    struct mo_loop *loop;
    struct mo_eiod_opts o;
    struct mo_map sessions;
    struct mo_list engines; /* engine.node */
    struct mo_eiod_stats stats;
    unsigned wscs; /* memory still held */
    bool closing;
    struct mo_later ended;
    void (*gone)(void *ctx);
    void *gone_ctx;
};

/* --- eiod.c -------------------------------------------------------------- */

/* The last session or connection may have gone. */
void mo_eiod_maybe_ended(struct mo_eiod *d);

/* --- eiod_eng.c ---------------------------------------------------------- */

/* NULL: too many, or no memory. mo_eiod_engine_open() tells client and owner
 * once it has a transport. */
struct engine *mo_eiod_engine_new(struct mo_eiod *d, struct mo_req *rq);
void mo_eiod_engine_open(struct engine *g);
void mo_eiod_engine_packet(struct engine *g, const struct mo_eio *p);
/* A packet from the websocket that asks to become the transport. */
void mo_eiod_engine_probe(struct wsc *w, const struct mo_eio *p);
void mo_eiod_engine_close(struct engine *g, uint16_t code, const char *reason);
/* The last packets were fetched, or will not be. */
void mo_eiod_engine_end_mailbox(struct engine *g);
/* Answer the waiting GET with what there is. */
void mo_eiod_engine_flush(struct engine *g);
/* The body of the POST was taken; say so unless there is much to fetch. */
void mo_eiod_engine_answer_post(struct engine *g);
void mo_eiod_engine_release_post(struct engine *g);

/* --- eiod_ws.c ----------------------------------------------------------- */

/* Answer 101 and own the stream from here on; NULL when that failed (the
 * request has been answered then). *early: bytes that came with the head,
 * for mo_wsc_read() when the session has its connection. */
struct wsc *mo_wsc_accept(struct mo_eiod *d, struct mo_req *rq,
                          struct mo_span *early);
void mo_wsc_read(void *wsc, char *p, size_t n);
int mo_wsc_send(struct wsc *w, enum mo_ws_op op, const struct mo_span *v,
                size_t n);
/* The session no longer wants this connection (or has none: NULL). */
void mo_wsc_drop(struct wsc *w, uint16_t code, const char *why);

#endif
