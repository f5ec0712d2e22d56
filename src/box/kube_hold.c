/* kube_hold.c - the start of a program that waits for us (launcher/hold.h).
 *
 * A runtime accepts an attach before it passes output on, and what is said in
 * between is lost. So the waiting program is asked until it is heard: it
 * answers each letter on stdout and stderr. Both have answered the newest
 * letter: no answer is under way any more, and the program may begin. */
#include "box/kube_priv.h"

#define ASK_MS  100
#define ASK_MAX 100 /* letters, then the box is given up */

static void ask_program(struct kb_box *b);

static char letter(const struct kb_box *b)
{
    return (char)('a' + b->asked % 26);
}

static bool ends_with(const char *p, size_t n, char c)
{
    return n && p[n - 1] == c;
}

/* The owner's callbacks replace ours. */
static void start_program(struct kb_box *b)
{
    mo_timer_stop(mo_kb_of_box(b)->bs.loop, &b->timer);
    mo_stream_pause(b->io.io);
    mo_stream_pause(b->io.err);
    (void)mo_stream_write(b->io.io, MO_SPAN("\n"));
    mo_kbox_bring_up(b);
}

static void on_heard(void *ctx, char *p, size_t n, bool err)
{
    struct kb_box *b = ctx;

    if (b->has_end || b->step != KB_ATTACHING || !ends_with(p, n, letter(b)))
        return;
    b->heard[err] = true;
    if (b->heard[0] && b->heard[1])
        mo_loop_defer(mo_kb_of_box(b)->bs.loop, &b->later);
}

static void on_out(void *ctx, char *p, size_t n)
{
    on_heard(ctx, p, n, false);
}

static void on_err(void *ctx, char *p, size_t n)
{
    on_heard(ctx, p, n, true);
}

static void on_eof(void *ctx)
{
    (void)ctx; /* mo_kbox_cut() tells */
}

static void on_out_close(void *ctx, const struct mo_err *why)
{
    struct kb_box *b = ctx;

    (void)why;
    b->io.io = NULL;
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct kb_box *b = ctx;

    (void)why;
    b->io.err = NULL;
}

static void on_ask(struct mo_timer *t)
{
    struct kb_box *b = mo_container_of(t, struct kb_box, timer);

    if (b->held && b->step == KB_ATTACHING && !b->has_end)
        ask_program(b);
}

static void ask_program(struct kb_box *b)
{
    char c;

    if (b->asked++ >= ASK_MAX) {
        mo_kbox_give_up(
            b, mo_error(MO_ETIMEOUT, "mo-box in its image does not answer"));
        return;
    }
    c = letter(b);
    b->heard[0] = b->heard[1] = false;
    if (b->io.io)
        (void)mo_stream_write(b->io.io, mo_span(&c, 1));
    mo_kbox_retry(b, on_ask, ASK_MS);
}

/* From the loop: both have answered, or the attach has ended. */
void mo_kbox_held(struct kb_box *b)
{
    if (b->eof || !b->io.io || !b->io.err) {
        mo_timer_stop(mo_kb_of_box(b)->bs.loop, &b->timer);
        mo_kbox_drop_streams(b);
        b->eof = false;
        mo_kbox_attach_later(b, mo_error(MO_EUNAVAIL,
                                         "its node ended the attach before "
                                         "its program began"));
    } else if (b->heard[0] && b->heard[1]) {
        start_program(b);
    }
}

void mo_kbox_hold(struct kb_box *b)
{
    static const struct mo_stream_cb out = {
        .on_read = on_out, .on_eof = on_eof, .on_close = on_out_close};
    static const struct mo_stream_cb err = {
        .on_read = on_err, .on_eof = on_eof, .on_close = on_err_close};

    b->held = true;
    b->asked = 0;
    mo_stream_attach(b->io.io, &out, b);
    mo_stream_attach(b->io.err, &err, b);
    ask_program(b);
}

static void on_nothing(void *ctx, char *p, size_t n)
{
    (void)ctx;
    (void)p;
    (void)n;
}

static void on_dropped(void *ctx, const struct mo_err *why)
{
    (void)ctx;
    (void)why;
}

static void drop_stream(struct mo_stream *s)
{
    static const struct mo_stream_cb none = {.on_read = on_nothing,
                                             .on_close = on_dropped};

    if (!s)
        return;
    mo_stream_attach(s, &none, NULL); /* the box may be freed first */
    mo_stream_close(s, NULL);
}

void mo_kbox_drop_streams(struct kb_box *b)
{
    if (b->io.split)
        mo_split_forget(mo_take_ptr(&b->io.split));
    if (b->streams_ours) {
        drop_stream(b->io.io);
        drop_stream(b->io.err);
    }
    b->io.io = b->io.err = NULL;
    b->streams_ours = b->held = false;
}
