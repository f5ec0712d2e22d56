/* httpd_priv.h - shared by httpd.c (connections) and httpd_answer.c (answers).
 *
 * Invariants
 *  1. At most one request of a connection is live: from begin_request() to
 *     end_request().
 *  2. Input is parsed only by work_conn(). It is called from the loop (a
 *     read, a drain, a deferred kick), never from inside a handler's call.
 *  3. Unparsed bytes are in c->in, or, inside work_conn(), in *c->cur.
 *  4. c->s is NULL only after an upgrade; the connection then only waits for
 *     its last deferred call to free itself.
 *  5. One timer per connection. Only c->since is stored per request; the
 *     timer reads it when it fires and restarts itself for the rest. */
#ifndef MO_LOOP_HTTPD_PRIV_H
#define MO_LOOP_HTTPD_PRIV_H

#include "loop/httpd.h"
#include "loop/priv.h"

#define HEADERS_MAX ((size_t)16 * 1024) /* headers of one answer */

enum phase {
    IDLE,    /* between requests, no byte received */
    HEAD,    /* part of a head received */
    HANDLED, /* with the handler; body not requested, or complete */
    BODY,    /* collecting the body for the handler */
    CLOSING, /* no more requests; the stream is closing */
};

struct conn {
    struct mo_req rq;
    struct mo_httpd *h;
    struct mo_stream *s;
    struct mo_http1 *parser;
    struct mo_list node;
    struct mo_timer timer;
    struct mo_later kick;
    uint64_t since;       /* ns, start of the current wait */
    uint64_t body_since;  /* ns, when the body was requested */
    uint64_t body_paused; /* ns, when it was paused; 0: it is not */
    uint64_t begun;       /* ns, when the handler was called */
    size_t queued_seen;   /* at the last check of the send timer */
    struct mo_buf in, headers, body;
    struct mo_span *cur;
    void (*body_done)(struct mo_req *rq, struct mo_span body);
    void (*body_part)(struct mo_req *rq, struct mo_span part, bool last);
    void (*drain)(struct mo_req *rq);
    size_t body_max;
    uint64_t parts_max, parts; /* bytes of the body, in parts */
    uint64_t left;             /* of a sized answer, not written yet */
    struct mo_span rest;       /* of a long answer; borrowed */
    unsigned requests;
    int status; /* of the answer; 0 before it */
    enum phase phase;
    bool crowded;   /* its peer has too many: it only gets an answer */
    bool inner;     /* of another process of this program; not counted */
    bool working;   /* inside work_conn() */
    bool whole;     /* the whole request has been received */
    bool live;      /* a request is with the handler */
    bool cached;    /* the answer has a Cache-Control header */
    bool started;   /* the answer's head has been sent */
    bool answered;  /* the answer is complete */
    bool streaming; /* chunked (or until close) answer in progress */
    bool chunked;
    bool sized;      /* streaming, with a Content-Length */
    bool own_policy; /* the answer has a Content-Security-Policy */
    bool keep;       /* the connection may be used again */
    bool eof;
};

struct mo_httpd {
    struct mo_loop *loop;
    struct mo_httpd_opts o;
    struct mo_listener *listeners[4];
    size_t nlisteners;
    struct mo_listener *inner; /* never paused; or NULL */
    unsigned ninner;           /* its connections */
    struct mo_list conns;
    struct mo_peers *peers; /* of streams, also of upgraded ones */
    unsigned crowded;       /* open connections that only get an answer */
    struct mo_httpd_stats stats;
    struct mo_buf scratch; /* the head of the answer being sent */
    /* The first header lines are kept for the next answer: most answers have
     * the same type and are sent within the same second. */
    struct {
        size_t len;     /* in scratch; 0: nothing kept */
        uint64_t until; /* ns, when the Date line expires */
        int status;
        char ctype[64];
    } lead;
    bool paused, closing;
    /* A connection that has come while all processes together had as many as
     * they may: it is served when one of them ends, which nobody tells us. */
    struct mo_stream *waiting;
    struct mo_timer look;
    struct mo_timer grace;
    struct mo_later ended;
    struct mo_gone gone;
};

static inline struct conn *conn_of(const struct mo_req *rq)
{
    return mo_container_of(rq, struct conn, rq);
}

/* httpd.c: restart the wait, after it changed or a byte arrived. */
void mo_httpd_conn_touch(struct conn *c);
/* httpd.c: run the connection again, deferred. */
void mo_httpd_conn_kick(struct conn *c);
/* httpd_answer.c: the server's own answer to a bad head or a late or too big
 * body. */
void mo_httpd_conn_refuse(struct conn *c, int status, const char *code,
                          const char *detail);
/* httpd_answer.c: refuse a connection, because its peer has too many. A few are
 * told why. */
void mo_httpd_conn_crowd(struct conn *c);

#endif
