/* command.c - the commands of a seat: kept until they are answered.
 *
 * A command is a COMMAND frame. It is sent to the holder as it is, or run by
 * the same code here. */
#include "base/rand.h"
#include "peer/priv.h"

struct command {
    struct mo_list node;
    struct mo_seat *seat; /* NULL: it has gone; the answer is passed on */
    enum mo_wire_kind kind;
    uint32_t no;
    bool sent;  /* to the present place */
    bool here;  /* a chat of this process answers it */
    bool again; /* also to an earlier one */
    mo_ack_fn *done;
    void *ctx;
    size_t n;
    char frame[];
};

static void detach(struct command *c)
{
    struct mo_seat *s = c->seat;

    if (!s)
        return;
    mo_list_del(&c->node);
    s->ncommands--;
    s->bytes -= c->n;
    c->seat = NULL;
}

static void answer(struct command *c, const struct mo_ack *a)
{
    mo_ack_fn *done = c->done;
    void *ctx = c->ctx;

    detach(c);
    mo_free(c);
    done(ctx, a);
}

static void refuse(struct command *c, const char *code, struct mo_span text)
{
    answer(c, &(struct mo_ack){.code = code, .message = text});
}

static void answer_unknown(struct command *c)
{
    refuse(c, "unknown",
           MO_SPAN("The server that ran this conversation ended before it "
                   "answered. Whether this had an effect is unknown: look at "
                   "the conversation before you repeat it."));
}

/* --- answers -------------------------------------------------------------- */

/* Repeated, these have one effect: a message has an id, a card is decided
 * once, and a turn that was stopped stays stopped. */
static bool can_repeat(const struct command *c)
{
    if (c->seat && c->seat->reads) /* there may be no next place */
        return false;
    return c->kind == MO_WIRE_SAY || c->kind == MO_WIRE_DECIDE ||
           c->kind == MO_WIRE_CANCEL;
}

static void unsend(struct command *c)
{
    c->sent = false;
    c->again = true;
    mo_wire_set_again(c->frame);
}

/* A decision that was sent before may be the reason why it is refused now. One
 * that could not be stored says that itself, and may be sent again. */
static void take_answer(struct command *c, const struct mo_ack *a)
{
    if (!a->ok && c->again && c->kind == MO_WIRE_DECIDE &&
        strcmp(a->code, "state_unavailable") != 0)
        answer_unknown(c);
    else
        answer(c, a);
}

/* The chat has ended without the command, and the seat is moving. */
static void on_ack_here(void *ctx, const struct mo_ack *a)
{
    struct command *c = ctx;

    c->here = false;
    if (c->seat && !c->seat->open && can_repeat(c) && !a->ok &&
        strcmp(a->code, "closed") == 0)
        unsend(c);
    else
        take_answer(c, a);
}

bool mo_seat_acked(struct mo_seat *s, uint32_t no, const struct mo_ack *a)
{
    static const struct mo_ack closed = {.code = "closed",
                                         .message = {"the session ended", 17}};
    bool ended = !a->ok && strcmp(a->code, MO_WIRE_ENDED) == 0;

    mo_list_each_entry_safe (c, &s->commands, struct command, node) {
        if (c->no != no || !c->sent)
            continue;
        if (!ended)
            take_answer(c, a);
        else if (!can_repeat(c)) /* else CLOSED says what becomes of it */
            answer(c, &closed);
        return true;
    }
    return false;
}

/* --- sending -------------------------------------------------------------- */

static void send_command(struct mo_seat *s, struct command *c)
{
    struct mo_span frame = mo_span(c->frame, c->n);

    if (c->kind == MO_WIRE_WISH && s->state != SEAT_HERE &&
        s->address.version < 2) {
        refuse(c, "old_server",
               MO_SPAN("the server that has this conversation is of an older "
                       "version"));
        return;
    }
    c->sent = true;
    c->here = s->state == SEAT_HERE;
    if (c->here)
        MO_BUG_ON(mo_wire_run(s->member, mo_span_skip(frame, MO_PEER_HEAD),
                              on_ack_here, c) < 0);
    else if (mo_stream_write(s->stream, frame) < 0)
        mo_seat_lose(s, mo_error(MO_EBUSY, "it reads too slowly"));
}

static struct command *first_unsent(struct mo_seat *s)
{
    mo_list_each_entry (c, &s->commands, struct command, node)
        if (!c->sent)
            return c;
    return NULL;
}

void mo_seat_flush(struct mo_seat *s)
{
    struct command *c = s->open ? first_unsent(s) : NULL;

    while (c) {
        send_command(s, c);
        c = s->open ? first_unsent(s) : NULL;
    }
}

void mo_seat_unsend(struct mo_seat *s)
{
    mo_list_each_entry_safe (c, &s->commands, struct command, node) {
        if (!c->sent || c->here)
            continue;
        if (can_repeat(c))
            unsend(c);
        else
            answer_unknown(c);
    }
}

void mo_seat_detach(struct mo_seat *s)
{
    mo_list_each_entry_safe (c, &s->commands, struct command, node) {
        if (c->here)
            detach(c);
    }
}

void mo_seat_refuse_all(struct mo_seat *s)
{
    mo_list_each_entry_safe (c, &s->commands, struct command, node)
        refuse(c, "closed", MO_SPAN("the session ended before this was read"));
}

void mo_seat_refuse_unsent(struct mo_seat *s)
{
    mo_list_each_entry_safe (c, &s->commands, struct command, node)
        if (!c->sent)
            refuse(c, "closed", MO_SPAN("the session is not open any more"));
}

/* --- new ones ------------------------------------------------------------- */

struct new_command {
    struct mo_buf b;
    enum mo_wire_kind kind;
    mo_ack_fn *done;
    void *ctx;
};

static void submit(struct mo_seat *s, struct new_command *k)
{
    struct command *c = NULL;
    struct mo_ack no = {.code = "busy",
                        .message = MO_SPAN("too many requests wait for an "
                                           "answer; wait for one")};

    if (s->state == SEAT_OVER)
        no = (struct mo_ack){.code = "closed",
                             .message = MO_SPAN("the session is not open")};
    else if (mo_buf_err(&k->b) == MO_ETOOBIG)
        no = (struct mo_ack){.code = "bad_request",
                             .message = MO_SPAN("the request is too long")};
    else if (mo_buf_err(&k->b) == 0 && s->ncommands < MO_SEAT_COMMANDS &&
             s->bytes + k->b.len <= MO_SEAT_BYTES)
        c = mo_alloc(sizeof(*c) + k->b.len);
    if (c) {
        *c = (struct command){.seat = s,
                              .kind = k->kind,
                              .no = s->last_no,
                              .done = k->done,
                              .ctx = k->ctx,
                              .n = k->b.len};
        memcpy(c->frame, k->b.p, k->b.len);
        mo_list_push(&s->commands, &c->node);
        s->ncommands++;
        s->bytes += c->n;
    }
    mo_buf_fini(&k->b);
    if (c)
        mo_seat_flush(s);
    else
        k->done(k->ctx, &no);
}

#define NEW_COMMAND(of_kind)                                                   \
    {                                                                          \
        .b = {.max = MO_WIRE_COMMAND_MAX}, .kind = (of_kind), .done = done,    \
        .ctx = ctx                                                             \
    }

void mo_seat_say(struct mo_seat *s, struct mo_span text, mo_ack_fn *done,
                 void *ctx)
{
    struct new_command k = NEW_COMMAND(MO_WIRE_SAY);
    char id[MO_MESSAGE_ID + 1];

    mo_random_token(id, MO_MESSAGE_BYTES);
    mo_wire_put_say(&k.b, ++s->last_no, mo_span_cstr(id), text);
    submit(s, &k);
}

void mo_seat_decide(struct mo_seat *s, const struct mo_decision *d,
                    mo_ack_fn *done, void *ctx)
{
    struct new_command k = NEW_COMMAND(MO_WIRE_DECIDE);

    mo_wire_put_decide(&k.b, ++s->last_no, d);
    submit(s, &k);
}

void mo_seat_answer(struct mo_seat *s, const struct mo_answer *a,
                    mo_ack_fn *done, void *ctx)
{
    struct new_command k = NEW_COMMAND(MO_WIRE_ANSWER);

    mo_wire_put_answer(&k.b, ++s->last_no, a);
    submit(s, &k);
}

void mo_seat_accept(struct mo_seat *s, struct mo_span tool,
                    struct mo_span digest, mo_ack_fn *done, void *ctx)
{
    struct new_command k = NEW_COMMAND(MO_WIRE_ACCEPT);

    mo_wire_put_accept(&k.b, ++s->last_no, tool, digest);
    submit(s, &k);
}

static void submit_plain(struct mo_seat *s, enum mo_wire_kind kind,
                         mo_ack_fn *done, void *ctx)
{
    struct new_command k = NEW_COMMAND(kind);

    mo_wire_put_plain(&k.b, ++s->last_no, kind);
    submit(s, &k);
}

void mo_seat_cancel(struct mo_seat *s, mo_ack_fn *done, void *ctx)
{
    submit_plain(s, MO_WIRE_CANCEL, done, ctx);
}

void mo_seat_reset(struct mo_seat *s, mo_ack_fn *done, void *ctx)
{
    submit_plain(s, MO_WIRE_RESET, done, ctx);
}

void mo_seat_end(struct mo_seat *s, mo_ack_fn *done, void *ctx)
{
    submit_plain(s, MO_WIRE_END, done, ctx);
}

void mo_seat_wish(struct mo_seat *s, const struct mo_wish *w, mo_ack_fn *done,
                  void *ctx)
{
    struct new_command k = NEW_COMMAND(MO_WIRE_WISH);

    mo_wire_put_wish(&k.b, ++s->last_no, w);
    submit(s, &k);
}
