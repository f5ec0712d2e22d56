/* priv.h - declarations private to loop/.
 *
 * Only files of src/loop may include uv.h (lint checks it). */
#ifndef MO_LOOP_PRIV_H
#define MO_LOOP_PRIV_H

#include <uv.h>

#include "loop/peers.h"
#include "loop/stream.h"

#define MO_LOOP_READ_BUF ((size_t)64 * 1024)
#define MO_LOOP_GATHER   ((size_t)2 * 1024)

struct mo_loop {
    uv_loop_t uv;
    struct mo_log *log;
    struct mo_timer log_flush;
    struct mo_tracer *tracer; /* or NULL */
    uv_timer_t tick;          /* the one libuv timer behind all timers */
    uv_idle_t spin;           /* active while calls are deferred */
    uv_prepare_t before;      /* before it waits; both run the soon list */
    uv_check_t after;
    struct mo_timer *heap;
    struct mo_list later, soon;
    struct mo_loop_stats stats;
    uint64_t requests; /* of all its HTTP servers: their numbers */
    bool until;        /* inside mo_loop_until(): do not wait after an event */
    char *read_buf; /* shared by all streams: consumed before the next read */
    char gather[MO_LOOP_GATHER]; /* joins the parts of one small write */
    int pipe[2];                 /* of stream_move.c; -1 until it is needed */
};

/* MO_EIO with libuv's text; sys is the matching errno. */
int mo_fail_uv(struct mo_err *e, int uverr, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Call cb while fd is readable. 0 or a libuv error. */
int mo_loop_watch(struct mo_loop *l, uv_poll_t *h, int fd, uv_poll_cb cb,
                  void *data);

/* A kind of stream. An op never calls the owner's callbacks: the kind reports
 * from the loop, through the mo_stream_on_*() functions below. */
struct mo_stream_ops {
    int (*writev)(struct mo_stream *s, const struct mo_span *v, size_t n);
    size_t (*queued)(const struct mo_stream *s);
    void (*reading)(struct mo_stream *s, bool on);
    void (*shutdown)(struct mo_stream *s);
    /* NULL: it cannot be raw. Both streams of a move are of this kind. */
    bool (*raw)(struct mo_stream *s);
    size_t (*move)(struct mo_stream *from, struct mo_stream *to, size_t max);
    /* Begin closing; mo_stream_gone() must follow once, later. */
    void (*close)(struct mo_stream *s);
    bool tls;
};

/* First member of every kind. */
struct mo_stream {
    const struct mo_stream_ops *ops;
    struct mo_loop *loop;
    const struct mo_stream_cb *cb;
    void *ctx;
    size_t max_queue;
    struct mo_timer finish; /* deadline of mo_stream_finish() */
    struct mo_err why;      /* reason of the close; code 0: none */
    bool reading, closing, finishing, leaving, eof;
    char peer[64];
    bool is_own_user; /* a unix socket of this user or root is at the end */
    struct mo_peer *counted; /* until it is gone, or NULL */
};

void mo_stream_init(struct mo_stream *s, struct mo_loop *l,
                    const struct mo_stream_ops *ops);
/* From a kind to the owner; a failure is mo_stream_close(). on_data returns
 * false if the owner closed or paused the stream meanwhile. */
bool mo_stream_on_data(struct mo_stream *s, char *p, size_t n);
void mo_stream_on_ready(struct mo_stream *s);
void mo_stream_on_eof(struct mo_stream *s);
void mo_stream_on_drained(struct mo_stream *s);
/* The kind's handles are closed: fires on_close. The kind frees itself right
 * after this returns. */
void mo_stream_gone(struct mo_stream *s);

/* --- the libuv kind, shared by stream.c and net.c ------------------------ */

enum uvs_kind { UVS_NONE, UVS_TCP, UVS_PIPE };

struct uvs {
    struct mo_stream s;
    union {
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } r;          /* reading, and writing too if w is NULL */
    uv_pipe_t *w; /* a separate pipe for writing */
    bool has_r, r_writes;
    bool writing, shut;
    bool raw;      /* see mo_stream_raw() */
    unsigned open; /* libuv handles not yet closed */
    struct mo_buf out, sending;
    uv_write_t req;
    uv_shutdown_t shut_req;
    struct mo_later later;
};

struct uvs *mo_uvs_new(struct mo_loop *l, enum uvs_kind kind);
void mo_uvs_name_tcp(struct uvs *u);
/* Closes the stream. what: "read from", "write to" */
void mo_uvs_fail(struct uvs *u, int uverr, const char *what);

/* --- stream_move.c ------------------------------------------------------- */

size_t mo_uvs_move(struct mo_stream *from, struct mo_stream *to, size_t max);
void mo_loop_drop_pipe(struct mo_loop *l);

#endif
