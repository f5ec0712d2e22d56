/* rconn.h - one connection to one Redis server, which reconnects by itself.
 * Private to store/.
 *
 * Commands go out in the order they are given and their replies come back in
 * the same. A command that was sent when the connection broke ends with
 * MO_EUNAVAIL: its outcome is unknown. A command that was not sent yet waits
 * for the next connection, or until it is taken back.
 *
 * Delay between attempts: 50 ms, then twice as long each time up to 5 s, each
 * multiplied by a random factor from 0.5 to 1.5, so that many clients do not
 * come back in step.
 *
 * A server that owes replies and sends nothing for `stall_ms` counts as dead:
 * the connection is closed. */
#ifndef MO_STORE_RCONN_H
#define MO_STORE_RCONN_H

#include "codec/resp.h"
#include "loop/loop.h"
#include "loop/tls.h"
#include "store/redis_lua.h"
#include "store/redis_url.h"

struct mo_sentinel;

#define MO_RCONN_DIAL_MS   5000
#define MO_RCONN_WAIT_MIN  50
#define MO_RCONN_WAIT_MAX  5000
#define MO_RCONN_QUEUE_MAX ((size_t)64 * 1024 * 1024)
#define MO_RCONN_SHA_LEN   40

struct mo_rcmd {
    struct mo_list node;
    struct mo_rconn *conn; /* where it waits or was sent; NULL: nowhere */
    int script;            /* enum mo_lua, or -1: a plain command */
    size_t nargs;          /* of body */
    struct mo_buf body;    /* the arguments, without the script's name */
    bool sent;
    bool asking;          /* ASKING goes before it */
    bool whole;           /* send the script's text, not its digest */
    struct mo_rconn *via; /* the connection that sent it, and which one */
    uint64_t born;        /* of its lives */
    /* reply, or NULL and why (the connection broke). Once for each send. */
    void (*on_reply)(struct mo_rcmd *c, const struct mo_resp *r,
                     const struct mo_err *why);
};

struct mo_rconn_cb {
    void (*on_up)(void *ctx, struct mo_rconn *c);
    /* May be NULL. */
    void (*on_down)(void *ctx, struct mo_rconn *c, const struct mo_err *why);
    /* Not NULL: a listening connection. It subscribes to `channel` and gets
     * only messages. */
    void (*on_message)(void *ctx, struct mo_span text);
    const char *channel;
};

struct mo_rconn {
    const struct mo_rconf *conf;
    const struct mo_rconn_cb *cb;
    void *ctx;
    struct mo_rtarget at;
    bool is_seeded;
    unsigned seed;           /* the next one */
    struct mo_sentinel *ask; /* NULL: none is asked */
    uint64_t born;           /* counts successful connects */
    bool lacks_copies;       /* too few replicas had the last write */
    uint64_t probed_ns;      /* when one waited nevertheless */
    uint64_t left_ns;        /* when it was closed because it is cut off */
    enum {
        MO_RCONN_DOWN,
        MO_RCONN_DIALLING,
        MO_RCONN_GREETING,
        MO_RCONN_UP
    } state;
    struct mo_dial *dial;
    struct mo_stream *stream;
    struct mo_resp_in in;
    struct mo_buf out;
    struct mo_list waiting, sent;
    unsigned greetings; /* replies of the greeting still to come */
    unsigned loaded;    /* scripts */
    char sha[MO_LUA_N][MO_RCONN_SHA_LEN + 1];
    uint64_t wait_ms;
    struct mo_timer retry, stall, ping;
    struct mo_later flush;
    struct mo_err why;
    bool closing;
    struct mo_gone gone;
};

/* Dials at once. at: NULL for a seeded one. NULL: no memory. */
struct mo_rconn *mo_rconn_new(const struct mo_rconf *conf,
                              const struct mo_rtarget *at,
                              const struct mo_rconn_cb *cb, void *ctx);
/* True: it is not connected, nothing waits for it, and it may get another
 * address. */
bool mo_rconn_is_idle(const struct mo_rconn *c);
void mo_rconn_point(struct mo_rconn *c, const struct mo_rtarget *at);
void mo_rconn_send(struct mo_rconn *c, struct mo_rcmd *cmd);
/* Takes back a command that waits: true. One that was sent stays: false. */
bool mo_rconn_take_back(struct mo_rcmd *cmd);
/* Closes the connection and dials again. */
void mo_rconn_reset(struct mo_rconn *c, const struct mo_err *why);
/* No command may be queued on it. gone(ctx), once, later; c is freed. */
void mo_rconn_close(struct mo_rconn *c, void (*gone)(void *ctx), void *ctx);

#endif
