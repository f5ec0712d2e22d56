/* stream.h - a byte stream: TCP, unix socket, pipe, or TLS over one of them.
 *
 * Contract (every kind keeps it):
 *  1. Callbacks never fire from inside a call on the same stream.
 *  2. on_read gets bytes that are borrowed and writable until it returns.
 *     It may close or pause the stream; after mo_stream_close() on_read,
 *     on_eof and on_drain no longer fire.
 *  3. on_close fires exactly once, last, for every stream that was handed
 *     out; the stream is freed after it. `why` is NULL for a close that was
 *     requested without a reason.
 *  4. A failed read or write closes the stream (on_close gets the reason).
 *  5. Bytes are sent in the order written. Bytes that the kernel does not take
 *     at once are queued up to max_queue; a write beyond that fails with
 *     MO_EBUSY and takes nothing. A producer that is faster than the peer
 *     pauses its own source when mo_stream_queued() passes a limit it chose,
 *     and resumes in on_drain (queue empty again).
 *  6. EOF ends reading only; the owner decides whether to close. */
#ifndef MO_LOOP_STREAM_H
#define MO_LOOP_STREAM_H

#include "base/str.h"
#include "loop/loop.h"

#define MO_STREAM_QUEUE_MAX ((size_t)4 * 1024 * 1024)

struct mo_stream;

struct mo_stream_cb {
    void (*on_read)(void *ctx, char *p, size_t n);
    void (*on_eof)(void *ctx);   /* NULL: close on EOF */
    void (*on_drain)(void *ctx); /* may be NULL */
    void (*on_close)(void *ctx, const struct mo_err *why);
    void (*on_ready)(void *ctx); /* of a raw stream only */
};

/* Set the owner and start reading. Until then the stream is paused. */
void mo_stream_attach(struct mo_stream *s, const struct mo_stream_cb *cb,
                      void *ctx);
void mo_stream_pause(struct mo_stream *s);
void mo_stream_resume(struct mo_stream *s);

int mo_stream_write(struct mo_stream *s, struct mo_span data);
/* Write several parts, in one system call where possible; all or nothing. */
int mo_stream_writev(struct mo_stream *s, const struct mo_span *v, size_t n);
size_t mo_stream_queued(const struct mo_stream *s);
void mo_stream_limit(struct mo_stream *s, size_t max_queue);

/* For long transfers between two sockets. A raw stream calls on_ready, in place
 * of on_read, while there is something to read. False: it is no socket of its
 * own, but TLS or a pipe. */
bool mo_stream_raw(struct mo_stream *s);
/* In on_ready: moves at most max bytes to the other stream without copying.
 * Bytes that it does not take at once are queued there. Returns how many were
 * moved. 0: they could not be, or the input has ended; the stream is not raw
 * any more, so on_read or on_eof follows. */
size_t mo_stream_move(struct mo_stream *from, struct mo_stream *to, size_t max);

/* Half-close once the queue is sent. */
void mo_stream_shutdown(struct mo_stream *s);
/* Close now; queued bytes are lost. why may be NULL. */
void mo_stream_close(struct mo_stream *s, const struct mo_err *why);
/* Send the queue, wait for the peer to close, then close; at most `ms`, then
 * close anyway. */
void mo_stream_finish(struct mo_stream *s, uint64_t ms);
/* The same for a peer that lives on and keeps its end open: the close does
 * not wait for the peer's. Over TCP the peer may lose bytes that it has not
 * read yet. */
void mo_stream_leave(struct mo_stream *s, uint64_t ms);

/* "127.0.0.1:53211", "unix uid 1000", "pipe"; for logs and rate limits. */
const char *mo_stream_peer(const struct mo_stream *s);
bool mo_stream_is_tls(const struct mo_stream *s);
/* The peer is a process of this user or of root, at a unix socket. */
bool mo_stream_is_own_user(const struct mo_stream *s);

/* Of a TCP connection to another machine, before it is wrapped: if that stops
 * answering without a word (power, network), the stream is closed about `ms`
 * later, whether or not anything is sent. Nothing on other streams. */
void mo_stream_notice_loss(struct mo_stream *s, unsigned ms);
/* Of a TCP connection, before it is wrapped: closing it resets it, so bytes
 * that the peer has not received by then never arrive. Without that the kernel
 * goes on sending them for minutes. Nothing on other streams. */
void mo_stream_drop_unsent(struct mo_stream *s);
/* The same for a socket of any owner. fd may be -1: nothing happens. */
void mo_socket_drop_unsent(int fd);

/* Wrap a connected fd (socket or pipe end); the stream owns it from then on,
 * also on failure. rfd is for reading, wfd for writing: equal if one descriptor
 * does both, -1 if that direction does not exist. */
int mo_stream_from_fds(struct mo_loop *l, int rfd, int wfd,
                       struct mo_stream **out, struct mo_err *e);

#endif
