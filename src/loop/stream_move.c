/* stream_move.c - bytes from one socket to another without copying them.
 *
 * splice() needs a pipe between two sockets. One pipe of the loop serves all of
 * them: it is empty whenever a call returns, because bytes that the second
 * socket does not take at once are read into the queue of its stream. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "loop/priv.h"

#define PIPE_SIZE (1024 * 1024)
#define STEP_MAX  ((size_t)256 * 1024) /* at a time, also of a queue */

static bool open_pipe(struct mo_loop *l)
{
    if (l->pipe[0] >= 0)
        return true;
    if (pipe2(l->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return false;
    /* refused: it is smaller and takes fewer bytes at a time */
    (void)fcntl(l->pipe[1], F_SETPIPE_SZ, PIPE_SIZE);
    return true;
}

void mo_loop_drop_pipe(struct mo_loop *l)
{
    mo_close_fd(&l->pipe[0]);
    mo_close_fd(&l->pipe[1]);
}

/* At least one byte, 0 at the end of input, or -1. */
static ssize_t splice_some(int from, int to, size_t n)
{
    ssize_t rc;

    do {
        rc = splice(from, NULL, to, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    } while (rc < 0 && errno == EINTR);
    return rc;
}

/* Empties the pipe, which has n bytes, into the queue of `to`. */
static void queue_pipe(struct mo_loop *l, size_t n, struct mo_stream *to)
{
    while (n) {
        size_t want = n < MO_LOOP_READ_BUF ? n : MO_LOOP_READ_BUF;
        ssize_t got = read(l->pipe[0], l->read_buf, want);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 ||
            mo_stream_write(to, mo_span(l->read_buf, (size_t)got)) < 0) {
            struct mo_err e;

            (void)mo_fail(&e, MO_EIO, "bytes in transit are lost");
            mo_stream_close(to, &e);
            mo_loop_drop_pipe(l);
            return;
        }
        n -= (size_t)got;
    }
}

/* Moves n bytes from the pipe to `to`. */
static void empty_pipe(struct mo_loop *l, size_t n, struct uvs *to, int fd)
{
    while (n) {
        ssize_t done = splice_some(l->pipe[0], fd, n);

        if (done < 0 && errno != EAGAIN) {
            mo_uvs_fail(to, uv_translate_sys_error(errno), "write to");
            mo_loop_drop_pipe(l);
            return;
        }
        if (done <= 0)
            break;
        n -= (size_t)done;
    }
    queue_pipe(l, n, &to->s);
}

static bool is_free(const struct uvs *u)
{
    return u->r_writes && !u->s.closing && !u->s.finishing && !u->shut &&
           !u->writing && u->out.len == 0;
}

size_t mo_uvs_move(struct mo_stream *a, struct mo_stream *b, size_t max)
{
    struct uvs *from = mo_container_of(a, struct uvs, s);
    struct uvs *to = mo_container_of(b, struct uvs, s);
    struct mo_loop *l = a->loop;
    uv_os_fd_t in, out;
    ssize_t n;

    from->raw = false; /* unless some bytes are moved */
    if (!is_free(to) || !open_pipe(l) ||
        uv_fileno((uv_handle_t *)&from->r, &in) < 0 ||
        uv_fileno((uv_handle_t *)&to->r, &out) < 0)
        return 0;
    n = splice_some(in, l->pipe[1], max < STEP_MAX ? max : STEP_MAX);
    if (n < 0 && errno != EAGAIN)
        mo_uvs_fail(from, uv_translate_sys_error(errno), "read from");
    if (n <= 0)
        return 0;
    from->raw = true;
    empty_pipe(l, (size_t)n, to, out);
    return (size_t)n;
}
