/* eiod.h - Engine.IO 4 sessions over polling, websocket, and the upgrade
 * between them.
 *
 * A session ("engine") is a message pipe to one client that survives a change
 * of transport. This server answers the HTTP requests below one path, keeps the
 * heartbeat and passes text messages on; it knows nothing of Socket.IO. Binary
 * messages are refused, because nothing here uses them.
 *
 * Lifetimes: on_open hands out a session, on_close ends it, exactly once and
 * never from inside mo_eng_close() or mo_eng_send(). After on_close the pointer
 * is invalid.
 *
 * Limits: sessions (503), bytes in one payload or frame (413, close 1009),
 * bytes queued for a client (the session is closed: "client too slow"). A
 * client whose own messages fill the queue is not read from meanwhile.
 * Malformed input closes the session. */
#ifndef MO_WEB_EIOD_H
#define MO_WEB_EIOD_H

#include "loop/httpd.h"

struct mo_eiod;

struct mo_eng {
    void *data;           /* for the owner */
    struct mo_span query; /* of the handshake, still percent-encoded */
    char sid[64];
    char peer[64];
    char who[MO_REQ_CALLER_MAX];    /* who opened it; nobody else may use it */
    char caller[MO_REQ_CALLER_MAX]; /* as in struct mo_req, as is role */
    int role;
    const char *door;             /* as of struct mo_req */
    char grant[MO_REQ_GRANT_MAX]; /* the same; only with it is it used */
};

struct mo_eiod_opts {
    unsigned ping_interval_ms;   /* default 25 s */
    unsigned ping_timeout_ms;    /* default 20 s */
    unsigned upgrade_timeout_ms; /* default 10 s */
    unsigned sessions;           /* default 10000 */
    size_t max_payload;          /* default 1,000,000, as in engine.io */
    size_t max_queue;            /* default 4 MiB */
    /* For several processes behind one address: the ids of our sessions begin
     * with `mark`, unless it is 0, and end with "." and home(), unless that is
     * NULL; at most 32 bytes. A request for a session that is not here is given
     * to elsewhere(), which answers it if it returns true. NULL: there is one
     * process. */
    char mark;
    const char *(*home)(void *ctx);
    bool (*elsewhere)(void *ctx, struct mo_req *rq, struct mo_span sid);
    void *elsewhere_ctx;
    void (*on_open)(void *ctx, struct mo_eng *g);
    void (*on_message)(void *ctx, struct mo_eng *g, struct mo_span text);
    void (*on_close)(void *ctx, struct mo_eng *g, const char *reason);
    void *ctx;
};

struct mo_eiod *mo_eiod_new(struct mo_loop *l, const struct mo_eiod_opts *o,
                            struct mo_err *e);

/* Answer a request; the caller has matched its path. */
void mo_eiod_handle(struct mo_eiod *d, struct mo_req *rq);

/* Close codes as sent to a websocket client. */
enum {
    MO_ENG_NORMAL = 1000,
    MO_ENG_AWAY = 1001,
    MO_ENG_PROTOCOL = 1002,
    MO_ENG_POLICY = 1008,
    MO_ENG_OURS = 1011,
};

/* 0, MO_ECLOSED, or MO_EBUSY (the session is being closed then). */
int mo_eng_send(struct mo_eng *g, struct mo_span text);
/* reason: a literal, at most 123 bytes. After MO_ENG_NORMAL a polling client
 * can still fetch what was sent before. */
void mo_eng_close(struct mo_eng *g, uint16_t code, const char *reason);

/* Close the sessions that this person opened through that door with that
 * personal token; NULL: any. who: as of mo_httpd_abort(). */
void mo_eiod_drop(struct mo_eiod *d, const char *who, const char *door,
                  const char *grant);
/* Close every session; gone fires once, later, when all memory is freed. */
void mo_eiod_close(struct mo_eiod *d, void (*gone)(void *ctx), void *ctx);

struct mo_eiod_stats {
    unsigned sessions, websockets;
    uint64_t opened, messages_in, messages_out, refused;
};
struct mo_eiod_stats mo_eiod_stats(const struct mo_eiod *d);

#endif
