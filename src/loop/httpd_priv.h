/* httpd_priv.h - what httpd.c (connections) and httpreq.c (answers) share.
 *
 * Invariants
 *  1. At most one request of a connection is live: from begin() to end().
 *  2. Input is parsed only by work(); it is entered from the loop (a read, a
 *     drain, a deferred kick) and never from inside a handler's call.
 *  3. Bytes not yet parsed are in c->in, or, inside work(), in *c->cur.
 *  4. c->s is NULL only after an upgrade; then the connection only waits for
 *     its last deferred step to free itself.
 *  5. One timer per connection. Per request only c->since is stored; the
 *     timer looks at it when it fires and re-arms itself for what is left. */
#ifndef MO_LOOP_HTTPD_PRIV_H
#define MO_LOOP_HTTPD_PRIV_H

#include "loop/httpd.h"
#include "loop/priv.h"

#define HEADERS_MAX ((size_t)16 * 1024) /* headers of one answer */

enum phase {
    IDLE,    /* between requests, no byte seen */
    HEAD,    /* some of a head seen */
    HANDLED, /* the handler has it; its body is not asked for, or done */
    BODY,    /* collecting the body for the handler */
    CLOSING, /* no more requests; the stream is finishing */
};

struct conn {
    struct mo_req rq;
    struct mo_httpd *h;
    struct mo_stream *s;
    struct mo_http1 *parser;
    struct mo_list node;
    struct mo_timer timer;
    struct mo_later kick;
    uint64_t since;      /* ns, when the present wait began */
    uint64_t body_since; /* ns, when the body was asked for */
    uint64_t begun;      /* ns, when the handler got it */
    size_t queued_seen;  /* at the last look of the send timer */
    struct mo_buf in, headers, body;
    struct mo_span *cur;
    void (*body_done)(struct mo_req *rq, struct mo_span body);
    void (*drain)(struct mo_req *rq);
    size_t body_max;
    unsigned requests;
    int status; /* of the answer, 0 before it */
    enum phase phase;
    bool working;   /* inside work() */
    bool whole;     /* the request has arrived completely */
    bool live;      /* a request is with the handler */
    bool cached;    /* its answer says how long it may be kept */
    bool started;   /* its answer's head is out */
    bool answered;  /* its answer is complete */
    bool streaming; /* chunked (or until close) answer under way */
    bool chunked;
    bool keep; /* the connection may be used again */
    bool eof;
};

struct mo_httpd {
    struct mo_loop *loop;
    struct mo_httpd_opts o;
    struct mo_listener *listeners[4];
    size_t nlisteners;
    struct mo_list conns;
    struct mo_httpd_stats stats;
    struct mo_buf scratch; /* the head of the answer being sent */
    /* How its first lines begin is kept for the next answer: most are of one
     * kind and of the same second. */
    struct {
        size_t len;     /* in scratch; 0 = nothing to keep */
        uint64_t until; /* ns, when the Date is over */
        int status;
        char ctype[64];
    } lead;
    bool paused, closing;
    struct mo_timer grace;
    struct mo_later ended;
    void (*gone)(void *ctx);
    void *gone_ctx;
};

static inline struct conn *conn_of(const struct mo_req *rq)
{
    return mo_container_of(rq, struct conn, rq);
}

/* httpd.c: what is being waited for has changed, or something came. */
void mo_conn_touch(struct conn *c);
/* httpd.c: look at the connection again, soon. */
void mo_conn_kick(struct conn *c);
/* httpreq.c: an answer of the server's own: a bad head, a late or too big
 * body. */
void mo_conn_refuse(struct conn *c, int status, const char *code,
                    const char *detail);

#endif
