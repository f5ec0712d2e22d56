/* conn_kit.h - a client on one end of a socket pair, a scripted server on the
 * other, one loop for both.
 *
 * A server (struct peer) is a table of rules: for a message with that method,
 * it sends these lines, with $id standing for the message's own id. Each dial
 * gets the next server of the fixture (struct fix), which also counts the
 * client's callbacks. fix_open() connects, fix_call() sends a request,
 * fix_settle() delivers all messages in transit. */
#ifndef MO_CONN_KIT_H
#define MO_CONN_KIT_H

#include "codec/frame.h"
#include "mcp/client/conn.h"
#include "mo_test.h"

#define LONG      20000 /* ms; a deadline for hanging, not for speed */
#define DIALS_MAX 3

struct rule {
    const char *method;
    const char *lines; /* NULL: silence; "CLOSE": goes away */
};

struct peer {
    struct mo_stream *s; /* NULL: gone */
    struct mo_frame f;
    struct mo_buf log; /* every line it got */
    const struct rule *rules;
    char id[64]; /* of the last request */
};

struct fix {
    struct mo_loop *l;
    struct mo_conn *c;
    struct peer peers[DIALS_MAX];
    const struct rule *rules[DIALS_MAX];
    int dials;
    bool no_dial;
    int opened, closed, dones, progressed, notified, gone, noise;
    struct mo_err why, err; /* of the connection, of the last call */
    int64_t code;
    struct mo_buf result; /* the last one, or the last error */
    struct mo_ask *asks[64];
    size_t nasks;
    /* what to do with an ask at once; NULL: keep it */
    void (*on_ask)(struct fix *f, struct mo_ask *a);
};

/* --- the server ---------------------------------------------------------- */

void peer_say(struct peer *p, struct mo_span text);
void peer_line(struct peer *p, struct mo_span line);
void peer_closed(void *ctx, const struct mo_err *why);
extern const struct mo_stream_cb peer_cb;
bool peer_saw(const struct peer *p, const char *text);

/* --- the client's owner -------------------------------------------------- */

int fix_dial(void *ctx, struct mo_conn *c, struct mo_err *e);
extern const struct mo_conn_cb fix_cb;
void fix_done(void *ctx, const struct mo_reply *r);
void fix_progress(void *ctx, struct mo_json params);

/* --- driving ------------------------------------------------------------- */

bool is_closed(void *ctx);
bool is_done(void *ctx);

/* Turns the loop 20 times, so that everything in transit arrives. */
void fix_settle(struct fix *f);

void fix_init(struct fix *f, const struct rule *first);
int fix_try_open(struct fix *f, struct mo_conn_opts o);
void fix_open(struct fix *f, struct mo_conn_opts o);
struct mo_call *fix_call(struct fix *f, const char *method, const char *params);
void fix_fini(struct fix *f);

#endif
