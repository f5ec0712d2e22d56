/* link_lines.c - one JSON-RPC message a line, over any byte stream.
 *
 * Reading pauses for two reasons, each with its own bit: the budget for
 * unrequested messages is used up (the timer resumes), or too many of our
 * answers wait to be sent (on_drain resumes; on_stall closes). Our own requests
 * never pause reading: a server that writes a long answer before it reads the
 * next request would deadlock with us. While paused, bytes that were read but
 * not parsed stay in `rest`: at most one read, because the stream is paused
 * too.
 *
 * The first message is written at once. Messages that follow before the loop
 * polls its sockets again go out in one write, so requests of many callers cost
 * one wake-up of the server.
 *
 * Invariants:
 *  1. rest is empty unless held.
 *  2. Nothing is delivered once the link is closing or failing.
 *  3. owed counts requests whose answers may still come; further answers are
 *     charged to the budget like any other unrequested message, and so are
 *     lines that are not JSON.
 *  4. out is empty unless flush is scheduled, and then the stream's own queue
 *     is empty: the bytes in out can always be written, or the stream is
 *     broken. */
#include "codec/frame.h"
#include "mcp/link/budget.h"
#include "mcp/link/overlong.h"

#define LAST_WORDS_MS 500 /* for the queue to drain at close */
#define GATHER_MAX    ((size_t)32 * 1024)

enum { HELD_RATE = 1u, HELD_QUEUE = 2u };

struct lines {
    struct mo_link k;
    struct mo_loop *loop;
    struct mo_stream *s;
    struct mo_frame f;
    struct mo_buf rest;
    struct mo_buf out; /* messages gathered until flush */
    struct mo_later flush;
    struct mo_timer breath, stall;
    uint64_t owed;
    size_t answers; /* bytes of answers since the queue was empty */
    struct mo_budget budget;
    struct mo_overlong overlong; /* set: the frame skips a line */
    unsigned held, noise;
    bool spoke; /* it has sent a message */
    bool leave; /* see mo_link_lines_leave() */
};

static void fail_link(struct lines *ln, const struct mo_err *why)
{
    if (mo_link_fail(&ln->k, why))
        mo_stream_close(ln->s, why);
}

/* --- what comes in ------------------------------------------------------- */

static void on_flood(struct lines *ln)
{
    if (!mo_budget_pause(&ln->budget)) {
        fail_link(ln, MO_BUDGET_FLOOD);
        return;
    }
    ln->held |= HELD_RATE;
    mo_timer_start(ln->loop, &ln->breath, MO_LINK_BREATH_MS);
}

static void charge_budget(struct lines *ln, bool answer)
{
    if (answer && ln->owed) {
        ln->owed--;
        mo_budget_earn(&ln->budget);
        return;
    }
    mo_budget_take(&ln->budget, mo_loop_now(ln->loop));
    if (mo_budget_spent(&ln->budget))
        on_flood(ln);
}

static void on_noise(struct lines *ln, struct mo_span line)
{
    if (ln->k.cb->on_noise)
        ln->k.cb->on_noise(ln->k.ctx, line);
    if (ln->spoke)
        charge_budget(ln, false);
    else if (++ln->noise >= MO_LINK_NOISE_MAX)
        fail_link(ln, mo_error(MO_EPROTO,
                               "the first %u lines on its standard output are "
                               "not JSON: it is no MCP server",
                               ln->noise));
}

static void on_line(struct lines *ln, struct mo_span line)
{
    struct mo_rpc m;

    if (line.n == 0)
        return;
    if (mo_rpc_parse(line, &m, NULL) < 0) {
        on_noise(ln, line);
        return;
    }
    ln->spoke = true;
    charge_budget(ln, m.kind == MO_RPC_RESULT || m.kind == MO_RPC_ERROR);
    if (!mo_link_dead(&ln->k))
        ln->k.cb->on_message(ln->k.ctx, &m, 0);
}

/* An answer that was too long has ended: fail its call. */
static void on_overlong(struct lines *ln, uint64_t id)
{
    charge_budget(ln, true);
    if (!mo_link_dead(&ln->k))
        ln->k.cb->on_failed(ln->k.ctx, id, 0, mo_span(NULL, 0),
                            MO_OVERLONG_ERROR(ln->f.max));
}

/* Skip a line that is too long. Returns 0, or MO_ETOOBIG when the link must end
 * (see overlong.h). */
static int skip_line(struct lines *ln, struct mo_span *in)
{
    struct mo_span piece;
    uint64_t id;
    int ended;

    if (!ln->overlong.on)
        mo_overlong_start(&ln->overlong);
    ended = mo_frame_skip(&ln->f, in, &piece);
    if (!mo_overlong_feed(&ln->overlong, piece, ln->f.max))
        return MO_ETOOBIG;
    if (!ended)
        return 0;
    if (!mo_overlong_end(&ln->overlong, &id))
        return MO_ETOOBIG;
    on_overlong(ln, id);
    return 0;
}

/* Handle one line, or the part of it that has arrived. */
static int read_line(struct lines *ln, struct mo_span *in)
{
    struct mo_span line;
    int rc;

    if (ln->overlong.on)
        return skip_line(ln, in);
    rc = mo_frame_next(&ln->f, in, &line);
    if (rc > 0)
        on_line(ln, line);
    return rc == MO_ETOOBIG ? skip_line(ln, in) : rc;
}

/* Handle lines until there are none, reading is paused, or the link ends. */
static void handle_lines(struct lines *ln, struct mo_span *in)
{
    int rc = 0;

    while (in->n && !ln->held && !mo_link_dead(&ln->k)) {
        rc = read_line(ln, in);
        if (rc < 0)
            break;
        if (ln->answers > MO_LINK_QUEUE_HIGH && !mo_link_dead(&ln->k)) {
            ln->held |= HELD_QUEUE;
            mo_timer_start(ln->loop, &ln->stall, MO_LINK_STALL_MS);
        }
    }
    if (rc == MO_ETOOBIG)
        fail_link(ln, mo_error(rc, "line too long: over %zu bytes", ln->f.max));
    else if (rc < 0)
        fail_link(ln, mo_error(rc, "no memory for a line"));
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct lines *ln = ctx;
    struct mo_span in = mo_span(p, n);

    handle_lines(ln, &in);
    if (!ln->held || mo_link_dead(&ln->k))
        return;
    mo_stream_pause(ln->s);
    if (in.n && mo_buf_span(&ln->rest, in) < 0) {
        fail_link(
            ln, mo_error(mo_buf_err(&ln->rest), "no memory to pause reading"));
    }
}

static void resume_reading(struct lines *ln, unsigned what)
{
    struct mo_span in = mo_buf_view(&ln->rest);

    if (!(ln->held & what))
        return;
    ln->held &= ~what;
    handle_lines(ln, &in);
    if (mo_link_dead(&ln->k))
        return;
    if (ln->held) {
        mo_buf_drop(&ln->rest, ln->rest.len - in.n);
        return;
    }
    mo_buf_fini(&ln->rest);
    mo_stream_resume(ln->s);
}

static void on_breath(struct mo_timer *t)
{
    struct lines *ln = mo_container_of(t, struct lines, breath);

    mo_budget_fill(&ln->budget, mo_loop_now(ln->loop));
    resume_reading(ln, HELD_RATE);
}

static void on_drain(void *ctx)
{
    struct lines *ln = ctx;

    ln->answers = 0;
    mo_timer_stop(ln->loop, &ln->stall);
    resume_reading(ln, HELD_QUEUE);
}

static void on_stall(struct mo_timer *t)
{
    struct lines *ln = mo_container_of(t, struct lines, stall);

    fail_link(ln, mo_error(MO_EPROTO,
                           "sends requests and does not read the answers"));
}

static void on_eof(void *ctx)
{
    struct lines *ln = ctx;

    fail_link(ln, mo_error(MO_ECLOSED, "the peer closed the stream%s",
                           ln->overlong.on || mo_frame_waiting(&ln->f)
                               ? " in the middle of a line"
                               : ""));
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct lines *ln = ctx;

    mo_timer_stop(ln->loop, &ln->breath);
    mo_timer_stop(ln->loop, &ln->stall);
    mo_later_cancel(&ln->flush);
    mo_frame_fini(&ln->f);
    mo_buf_fini(&ln->rest);
    mo_buf_fini(&ln->out);
    if (!ln->k.why.code && why)
        ln->k.why = *why;
    mo_link_gone(&ln->k);
}

static const struct mo_stream_cb stream_cb = {
    .on_read = on_read,
    .on_eof = on_eof,
    .on_drain = on_drain,
    .on_close = on_close,
};

/* --- the link's side ----------------------------------------------------- */

static int flush_gathered(struct lines *ln)
{
    int rc = ln->out.len ? mo_stream_write(ln->s, mo_buf_view(&ln->out)) : 0;

    mo_buf_reset(&ln->out);
    if (rc == 0 || rc == MO_ECLOSED)
        return rc;
    fail_link(ln, mo_error(rc, "cannot send the gathered requests"));
    return MO_ECLOSED;
}

static void on_flush(struct mo_later *d)
{
    (void)flush_gathered(mo_container_of(d, struct lines, flush));
}

static bool may_gather(const struct lines *ln, size_t n)
{
    return !mo_list_empty(&ln->flush.node) && ln->out.len + n < GATHER_MAX &&
           !mo_stream_queued(ln->s);
}

static int put_line(struct lines *ln, struct mo_span text)
{
    struct mo_span v[] = {text, MO_SPAN("\n")};
    size_t had = ln->out.len;
    int rc;

    if (may_gather(ln, text.n + 1)) {
        (void)mo_buf_span(&ln->out, text);
        rc = mo_buf_putc(&ln->out, '\n');
        if (rc < 0) { /* the gathered messages stay */
            ln->out.err = 0;
            ln->out.len = had;
        }
        return rc;
    }
    rc = flush_gathered(ln);
    if (rc == 0)
        rc = mo_stream_writev(ln->s, v, 2);
    if (rc == 0)
        mo_loop_soon(ln->loop, &ln->flush);
    return rc;
}

static int lines_send(struct mo_link *k, const struct mo_link_msg *m)
{
    struct lines *ln = mo_container_of(k, struct lines, k);
    int rc = k->failing ? MO_ECLOSED : put_line(ln, m->text);

    if (rc == 0 && m->id)
        ln->owed++;
    if (rc == 0 && !m->method && mo_stream_queued(ln->s))
        ln->answers += m->text.n;
    return rc;
}

static void lines_start(struct mo_link *k)
{
    struct lines *ln = mo_container_of(k, struct lines, k);

    mo_budget_init(&ln->budget, mo_loop_now(ln->loop));
    mo_stream_attach(ln->s, &stream_cb, ln);
}

static void lines_close(struct mo_link *k)
{
    struct lines *ln = mo_container_of(k, struct lines, k);

    if (k->failing)
        return;
    mo_timer_stop(ln->loop, &ln->breath);
    mo_timer_stop(ln->loop, &ln->stall);
    mo_later_cancel(&ln->flush);
    (void)flush_gathered(ln);
    if (ln->leave)
        mo_stream_leave(ln->s, LAST_WORDS_MS);
    else
        mo_stream_finish(ln->s, LAST_WORDS_MS);
}

static const struct mo_link_ops lines_ops = {
    .send = lines_send,
    .start = lines_start,
    .close = lines_close,
};

int mo_link_lines(struct mo_loop *l, struct mo_stream *s, size_t line_max,
                  struct mo_link **out, struct mo_err *e)
{
    struct lines *ln = mo_new(struct lines);

    if (!ln) {
        mo_stream_close(s, NULL);
        return mo_fail(e, MO_ENOMEM, "link");
    }
    ln->k.ops = &lines_ops;
    ln->loop = l;
    ln->s = s;
    mo_frame_init(&ln->f, line_max ? line_max : MO_LINK_LINE_MAX);
    mo_buf_init(&ln->rest, MO_LINK_LINE_MAX);
    mo_buf_init(&ln->out, GATHER_MAX);
    mo_later_init(&ln->flush, on_flush);
    mo_timer_init(&ln->breath, on_breath);
    mo_timer_init(&ln->stall, on_stall);
    *out = &ln->k;
    return 0;
}

void mo_link_lines_leave(struct mo_link *k)
{
    MO_BUG_ON(k->ops != &lines_ops);
    mo_container_of(k, struct lines, k)->leave = true;
}
