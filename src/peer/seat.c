/* seat.c - one member of a conversation, here or in another process.
 *
 *   HERE -> LOOKING -> DIALING -> THERE
 *     ^        |          |         |
 *     +----- PAUSED <-----+---------+
 *
 * A seat always tries to join here first: that takes the lease if it is free,
 * and breaks that of a dead process. From the second round on it waits
 * ROUND_MS for the lease, and so is woken by its release.
 *
 * A reader opens nothing. It waits here, as a follower of the chat that is not
 * open, and keeps its member while it looks for a holder; then it follows the
 * chat there. Where it waits it looks every LOOK_MS whether the session is open
 * at another process.
 *
 * Every callback may find the seat OVER: then it only counts. */
#include <stdio.h>

#include "peer/priv.h"

#define DIAL_MS        3000
#define LEAVE_MS       2000 /* for commands that were sent before */
#define PAUSE_MS       20
#define ROUND_MS       1000
#define PING_MS        (MO_PEER_SILENCE_MS / 4)
#define LOOK_MS        2000 /* a reader looks for a session that opens */
#define JOIN_MAX       ((size_t)16 * 1024)
#define EVENT_NAME_MAX 64 /* of an event */
#define FAREWELL_MAX   4096

static void read_join(const struct mo_seat *s, struct mo_join *j)
{
    MO_BUG_ON(mo_wire_join(mo_span_skip(mo_buf_view(&s->join), MO_PEER_HEAD), j,
                           NULL) < 0);
}

static void seat_settle(struct mo_seat *s)
{
    struct mo_peers *p = s->p;

    if (s->state != SEAT_OVER || s->pending || s->stream || s->ncommands)
        return;
    mo_later_cancel(&s->later);
    mo_timer_stop(p->loop, &s->timer);
    mo_list_del(&s->node);
    mo_buf_wipe(&s->join); /* has a key */
    mo_buf_fini(&s->farewell);
    mo_free(s);
    p->nseats--;
    mo_peers_settle(p);
}

static void on_later(struct mo_later *d)
{
    struct mo_seat *s = mo_container_of(d, struct mo_seat, later);

    if (s->state == SEAT_OVER) {
        mo_seat_refuse_all(s);
        seat_settle(s);
    } else if (s->ready) {
        s->open = true;
        mo_seat_flush(s);
    }
}

static void seat_over(struct mo_seat *s)
{
    s->state = SEAT_OVER;
    s->ready = s->open = false;
    mo_timer_stop(s->p->loop, &s->timer);
    mo_loop_defer(s->p->loop, &s->later);
}

/* Over TCP a close with unread input would lose commands that were sent. */
static void leave_stream(struct mo_seat *s)
{
    if (s->stream_far)
        mo_stream_finish(s->stream, LEAVE_MS);
    else
        mo_stream_leave(s->stream, LEAVE_MS);
}

static void close_seat(struct mo_seat *s, const char *reason,
                       const struct mo_err *why)
{
    const struct mo_member_cb *cb = s->cb;

    seat_over(s);
    if (s->member) /* of a reader who looks for a holder */
        mo_chat_leave(mo_take_ptr(&s->member));
    mo_seat_detach(s);
    if (s->stream)
        leave_stream(s);
    if (s->farewell.len > 0)
        cb->on_event(s->ctx, "session:closed", mo_buf_view(&s->farewell));
    cb->on_closed(s->ctx, reason, why);
}

/* --- looking for a place -------------------------------------------------- */

static void try_here(struct mo_seat *s);
static void look_for_holder(struct mo_seat *s);
static void check_holder(struct mo_seat *s);

static void pause_seat(struct mo_seat *s, uint64_t ms)
{
    s->state = SEAT_PAUSED;
    mo_timer_start(s->p->loop, &s->timer, ms);
}

/* Of a reader: the chat is not open anywhere, or cannot be reached. */
static void stay_here(struct mo_seat *s)
{
    s->state = SEAT_HERE;
    mo_timer_start(s->p->loop, &s->timer, LOOK_MS);
}

/* There is a holder, and no way to it. */
static void wait_for_holder(struct mo_seat *s, const struct mo_err *why)
{
    struct mo_join j;
    struct mo_err e;

    if (s->member) {
        stay_here(s);
        return;
    }
    s->rounds++;
    if (mo_now_ns() - s->since < MO_SEAT_SEARCH_MS * UINT64_C(1000000)) {
        pause_seat(s, PAUSE_MS);
        return;
    }
    read_join(s, &j);
    (void)mo_fail(&e, MO_EBUSY,
                  "session %.*s is in use by %s%s, which cannot be reached: "
                  "%s",
                  (int)j.session.n, j.session.p,
                  s->holder[0] ? "instance " : "another instance", s->holder,
                  why->msg);
    close_seat(s, "failed", &e);
}

/* The place is gone, or was never one. */
static void move_seat(struct mo_seat *s, const struct mo_err *why)
{
    bool was_there = s->ready;

    s->ready = s->open = false;
    mo_buf_reset(&s->farewell);
    if (!was_there && !s->reads) {
        wait_for_holder(s, why);
        return;
    }
    if (was_there)
        s->rounds = 0;
    s->since = mo_now_ns();
    pause_seat(s, 1);
}

/* --- events --------------------------------------------------------------- */

/* A reader's session is not open at the present place. */
static void wait_for_session(struct mo_seat *s)
{
    s->ready = s->open = false;
    mo_seat_refuse_unsent(s);
    if (s->state == SEAT_HERE)
        mo_timer_start(s->p->loop, &s->timer, s->rounds ? LOOK_MS : 1);
    else
        s->rounds = 0;
}

static void seat_event(struct mo_seat *s, const char *name, struct mo_span args)
{
    if (strcmp(name, "session:closed") == 0) {
        (void)mo_buf_set(&s->farewell, args); /* it may only move */
        return;
    }
    if (!s->ready && strcmp(name, "system:ready") == 0) {
        s->ready = s->was_ready = true;
        s->since = 0;
        s->rounds = 0;
        mo_loop_defer(s->p->loop, &s->later);
    }
    if (strcmp(name, "session:shared") == 0)
        wait_for_session(s);
    s->cb->on_event(s->ctx, name, args);
}

/* --- there ---------------------------------------------------------------- */

void mo_seat_lose(struct mo_seat *s, const struct mo_err *why)
{
    s->open = false;
    mo_stream_close(s->stream, why);
}

static void take_event(struct mo_seat *s, struct mo_span data)
{
    struct mo_span name;
    char text[EVENT_NAME_MAX];

    if (!mo_peer_field(&data, &name, NULL) || name.n >= sizeof(text)) {
        mo_seat_lose(s, mo_error(MO_EPROTO, "an event that is not valid"));
        return;
    }
    (void)snprintf(text, sizeof(text), "%.*s", (int)name.n, name.p);
    seat_event(s, text, data);
}

static void take_frame(struct mo_seat *s, const struct mo_peer_frame *f)
{
    char code[MO_WIRE_CODE_MAX];
    struct mo_ack a;
    uint32_t no;

    switch (f->type) {
    case MO_PEER_EVENT:
        take_event(s, f->data);
        return;
    case MO_PEER_ACK:
        if (mo_wire_ack(f->data, &no, &a, code) && mo_seat_acked(s, no, &a))
            return;
        break;
    case MO_PEER_CLOSED:
        if (!mo_wire_closed(f->data, &s->out, &s->out_why))
            break;
        mo_stream_close(s->stream, NULL);
        return;
    case MO_PEER_PONG:
        return;
    default:
        break;
    }
    mo_seat_lose(s, mo_error(MO_EPROTO, "a frame that is not valid"));
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct mo_seat *s = ctx;
    struct mo_span in = mo_span(p, n);
    struct mo_peer_frame f;
    int rc = 1;

    s->heard = mo_now_ns();
    s->stream_ready = true;
    while (rc == 1 && s->state == SEAT_THERE && !s->out) {
        rc = mo_peer_frames_next(&s->in, &in, &f);
        if (rc == 1)
            take_frame(s, &f);
    }
    if (rc < 0)
        mo_seat_lose(s, mo_error(rc, "a frame that is not valid"));
}

static bool is_any(const char *s, const char *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(s, v[i]) == 0)
            return true;
    return false;
}

/* The holder has closed it, or is lost. */
static void leave_holder(struct mo_seat *s, const struct mo_err *why)
{
    static const char *const moves[] = {"shutdown", "taken over", "elsewhere",
                                        MO_WIRE_REASON};
    const struct mo_err lost = why ? *why : *mo_error(MO_ECLOSED, "it is lost");

    if (s->out && !is_any(s->out, moves, MO_COUNT(moves))) {
        close_seat(s, s->out, s->out_why.code ? &s->out_why : NULL);
        return;
    }
    mo_log_about(mo_loop_log(s->p->loop), MO_INFO, "peer",
                 &(struct mo_log_facts){.err = why},
                 "instance %s: %s; joining again", s->holder,
                 s->out ? s->out : "connection lost");
    mo_seat_unsend(s);
    move_seat(s, s->out && s->out_why.code ? &s->out_why : &lost);
}

static void on_stream_closed(void *ctx, const struct mo_err *why)
{
    struct mo_seat *s = ctx;

    if (s->stream_far && !s->stream_ready && why)
        mo_cluster_failed(s->p->cluster, s->holder, why);
    s->stream = NULL;
    mo_peer_frames_fini(&s->in);
    mo_timer_stop(s->p->loop, &s->timer);
    if (s->state == SEAT_OVER)
        seat_settle(s);
    else
        leave_holder(s, why);
}

/* The member's groups, as this process knows them now. */
static void put_groups(const struct mo_seat *s, const struct mo_join *j,
                       struct mo_buf *out)
{
    if (s->p->people && *s->p->people && *j->person.name)
        mo_people_groups(*s->p->people, j->person.name, out);
}

static void send_ping(struct mo_seat *s)
{
    mo_autobuf struct mo_buf b = {.max = JOIN_MAX};
    mo_autobuf struct mo_buf groups = {.max = MO_WIRE_GROUPS_MAX};
    struct mo_join j;

    read_join(s, &j);
    put_groups(s, &j, &groups);
    mo_wire_put_ping(&b, mo_buf_cstr(&groups));
    if (mo_buf_err(&b) == 0)
        (void)mo_stream_write(s->stream, mo_buf_view(&b));
    mo_timer_start(s->p->loop, &s->timer,
                   s->reads && !s->ready ? LOOK_MS : PING_MS);
}

static void on_timer(struct mo_timer *t)
{
    struct mo_seat *s = mo_container_of(t, struct mo_seat, timer);

    if (s->state == SEAT_PAUSED) {
        try_here(s);
    } else if (s->state == SEAT_HERE) {
        if (!s->ready && s->pending == 0)
            look_for_holder(s);
        else if (!s->ready)
            stay_here(s);
    } else if (mo_now_ns() - s->heard <
               MO_PEER_SILENCE_MS * UINT64_C(1000000)) {
        send_ping(s);
        if (s->reads && !s->ready)
            check_holder(s);
    } else {
        mo_seat_lose(s, mo_error(MO_ETIMEOUT, "it has not answered for %d s",
                                 MO_PEER_SILENCE_MS / 1000));
    }
}

/* The JOIN of a seat that was ready once names no model: the session has one,
 * and another member may have changed it. */
static int send_join(struct mo_seat *s)
{
    mo_autowipe struct mo_buf b = {.max = JOIN_MAX + MO_WIRE_GROUPS_MAX};
    mo_autobuf struct mo_buf groups = {.max = MO_WIRE_GROUPS_MAX};
    struct mo_join j;

    read_join(s, &j);
    put_groups(s, &j, &groups);
    j.person.groups = mo_buf_cstr(&groups);
    if (s->was_ready)
        j.model = mo_span(NULL, 0);
    mo_wire_put_join(&b, &j, s->address.version);
    return mo_buf_err(&b) ? mo_buf_err(&b)
                          : mo_stream_write(s->stream, mo_buf_view(&b));
}

static void on_dialed(void *ctx, struct mo_stream *st,
                      const struct mo_err *why);

static void dial(struct mo_seat *s)
{
    const struct peer_address *a = &s->address;
    char addr[sizeof(a->far) + 8];
    struct mo_err e;

    if (a->is_far)
        (void)snprintf(addr, sizeof(addr), "%s", a->far);
    else
        (void)snprintf(addr, sizeof(addr), "unix:%s", a->path);
    s->state = SEAT_DIALING;
    if (mo_dial(s->p->loop, addr, a->is_far ? MO_CLUSTER_DIAL_MS : DIAL_MS,
                on_dialed, s, &s->dial, &e) < 0)
        wait_for_holder(s, &e);
    else
        s->pending++;
}

static void on_broken(void *ctx, const struct mo_err *why)
{
    struct mo_seat *s = ctx;

    s->pending--;
    if (s->state == SEAT_OVER)
        seat_settle(s);
    else if (why)
        wait_for_holder(s, why);
    else
        try_here(s);
}

/* True: the holder has died, and its lease is being broken. session.c does
 * that for processes with the same directory. */
static bool break_lease(struct mo_seat *s)
{
    struct mo_span dir = mo_span_cstr(s->address.path);
    struct mo_join j;
    struct mo_err e;

    if (!s->address.is_near)
        return false;
    while (dir.n > 0 && dir.p[dir.n - 1] != '/')
        dir.n--;
    if (!mo_instance_dead_in(dir, mo_span_cstr(s->holder)))
        return false;
    read_join(s, &j);
    if (mo_lease_break(s->p->store, j.session, mo_span_cstr(s->holder),
                       s->fence, on_broken, s, &e) < 0)
        return false;
    s->pending++;
    return true;
}

/* The seat is connected to the holder, or, on another machine, to what is about
 * to prove that it is. */
static void go_there(struct mo_seat *s, struct mo_stream *st)
{
    static const struct mo_stream_cb cb = {.on_read = on_read,
                                           .on_close = on_stream_closed};

    if (s->member) {
        mo_chat_leave(mo_take_ptr(&s->member));
        s->rounds = 1; /* until it is told something there */
    }
    s->state = SEAT_THERE;
    s->stream = st;
    s->stream_far = s->address.is_far;
    s->stream_ready = false;
    s->out = NULL;
    s->heard = mo_now_ns();
    mo_peer_frames_init(&s->in, MO_WIRE_EVENT_MAX);
    mo_stream_limit(st, MO_SEAT_BYTES + JOIN_MAX);
    mo_stream_attach(st, &cb, s);
    if (send_join(s) < 0)
        mo_stream_close(st, NULL);
    else
        mo_timer_start(s->p->loop, &s->timer, PING_MS);
}

/* Nobody is to be told anything before this. */
static int trust_stream(struct mo_seat *s, struct mo_stream **st,
                        struct mo_err *e)
{
    if (s->address.is_far)
        return mo_cluster_wrap(s->p->cluster, *st, s->holder, st, e);
    if (mo_stream_is_own_user(*st))
        return 0;
    mo_stream_close(*st, NULL);
    return mo_fail(e, MO_EPOLICY, "its socket is another user's");
}

static void on_dialed(void *ctx, struct mo_stream *st, const struct mo_err *why)
{
    struct mo_seat *s = ctx;
    struct mo_err e;

    s->pending--;
    s->dial = NULL;
    if (s->state != SEAT_DIALING || (s->member && s->ready)) {
        if (st)
            mo_stream_close(st, NULL);
        if (s->state == SEAT_OVER)
            seat_settle(s);
        else if (s->state == SEAT_DIALING)
            wait_for_holder(s, mo_error(MO_EBUSY, "it is open here"));
        return;
    }
    if (!st && s->address.is_far)
        mo_cluster_failed(s->p->cluster, s->holder, why);
    if (!st) {
        if (s->member || !break_lease(s))
            wait_for_holder(s, why);
        return;
    }
    if (trust_stream(s, &st, &e) < 0)
        wait_for_holder(s, &e);
    else
        go_there(s, st);
}

/* --- which process has it ------------------------------------------------- */

/* An operation has ended. False: the seat is not in that state any more. */
static bool goes_on(struct mo_seat *s, enum seat_state in)
{
    s->pending--;
    if (s->state == SEAT_OVER)
        seat_settle(s); /* may free it */
    else
        return s->state == in;
    return false;
}

static void on_address(void *ctx, const struct mo_rows *rows,
                       const struct mo_err *why)
{
    struct mo_seat *s = ctx;
    struct mo_err e;

    if (!goes_on(s, SEAT_LOOKING))
        return;
    if (why)
        wait_for_holder(s, why);
    else if (rows->n == 0)
        wait_for_holder(s, mo_error(MO_ENOTFOUND, "it has no address"));
    else if (mo_peer_address_read(s->p, rows->v[0].doc, &s->address, &e) < 0)
        wait_for_holder(s, &e);
    else if (!s->address.is_near && !s->address.is_far)
        wait_for_holder(s, mo_error(MO_EUNAVAIL, "it is on another machine"));
    else if (s->address.version == 0)
        wait_for_holder(s,
                        mo_peer_no_version(s->p, s->holder, &s->address, &e));
    else
        dial(s);
}

static void read_address(struct mo_seat *s)
{
    char id[sizeof(PEER_MARK) + MO_INSTANCE_MAX];
    struct mo_read r = {.kind = MO_READ_MARK};
    struct mo_err e;

    (void)snprintf(id, sizeof(id), PEER_MARK "%s", s->holder);
    r.id = mo_span_cstr(id);
    if (mo_store_read(s->p->store, &r, on_address, s, &e) < 0)
        wait_for_holder(s, &e);
    else
        s->pending++;
}

static void on_holder(void *ctx, struct mo_span owner, uint64_t fence,
                      const struct mo_err *why)
{
    struct mo_seat *s = ctx;

    if (!goes_on(s, SEAT_LOOKING))
        return;
    if (why) {
        wait_for_holder(s, why);
        return;
    }
    if (owner.n == 0 || mo_span_is(owner, s->p->instance)) {
        wait_for_holder(s, mo_error(MO_EBUSY, "it has just let it go"));
        return;
    }
    (void)snprintf(s->holder, sizeof(s->holder), "%.*s", (int)owner.n, owner.p);
    s->fence = fence;
    read_address(s);
}

static void look_for_holder(struct mo_seat *s)
{
    struct mo_join j;
    struct mo_err e;

    read_join(s, &j);
    s->state = SEAT_LOOKING;
    if (mo_lease_holder(s->p->store, j.session, on_holder, s, &e) < 0)
        wait_for_holder(s, &e);
    else
        s->pending++;
}

/* A reader waits at a process for the session. It may be open elsewhere. */
static void on_holder_now(void *ctx, struct mo_span owner, uint64_t fence,
                          const struct mo_err *why)
{
    struct mo_seat *s = ctx;

    (void)fence;
    if (goes_on(s, SEAT_THERE) && !s->ready && !why && owner.n &&
        !mo_span_is(owner, s->holder))
        mo_seat_lose(s, mo_error(MO_EBUSY, "another process has the session"));
}

static void check_holder(struct mo_seat *s)
{
    struct mo_join j;
    struct mo_err e;

    read_join(s, &j);
    if (mo_lease_holder(s->p->store, j.session, on_holder_now, s, &e) == 0)
        s->pending++;
}

/* --- here ----------------------------------------------------------------- */

static void on_member_event(void *ctx, const char *name, struct mo_span args)
{
    seat_event(ctx, name, args);
}

static void on_member_closed(void *ctx, const char *reason,
                             const struct mo_err *why)
{
    struct mo_seat *s = ctx;

    s->member = NULL;
    if (s->p->stopped)
        close_seat(s, reason, why);
    else if (strcmp(reason, "elsewhere") == 0)
        look_for_holder(s);
    else if (strcmp(reason, "taken over") == 0)
        move_seat(s, why ? why : mo_error(MO_EBUSY, "it took it over"));
    else
        close_seat(s, reason, why);
}

static int join_here(struct mo_seat *s, struct mo_err *e)
{
    static const struct mo_member_cb cb = {on_member_event, on_member_closed};
    struct mo_join j;
    int rc = 0;

    if (s->p->stopped)
        return mo_fail(e, MO_ECLOSED, "the program is shutting down");
    read_join(s, &j);
    j.may_move = true;
    j.move_ms = s->rounds ? ROUND_MS : 0;
    if (s->was_ready)
        j.model = mo_span(NULL, 0);
    rc = mo_peer_join_here(s->p, &j, &cb, s, &s->member, e);
    if (rc == 0)
        s->state = SEAT_HERE;
    if (rc != MO_EEXISTS)
        return rc;
    pause_seat(s, PAUSE_MS);
    return 0;
}

static void try_here(struct mo_seat *s)
{
    struct mo_err e;

    if (join_here(s, &e) < 0)
        close_seat(s, "failed", &e);
}

int mo_seat_join(struct mo_peers *p, const struct mo_join *j,
                 const struct mo_member_cb *cb, void *ctx, struct mo_seat **out,
                 struct mo_err *e)
{
    struct mo_seat *s = mo_new(struct mo_seat);
    int rc = 0;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    s->p = p;
    s->cb = cb;
    s->ctx = ctx;
    s->reads = j->reads;
    s->since = mo_now_ns();
    mo_buf_init(&s->join, JOIN_MAX);
    mo_buf_init(&s->farewell, FAREWELL_MAX);
    mo_list_init(&s->commands);
    mo_timer_init(&s->timer, on_timer);
    mo_later_init(&s->later, on_later);
    mo_wire_put_join(&s->join, j, MO_WIRE_MAX);
    rc = mo_buf_err(&s->join);
    if (rc < 0)
        (void)mo_fail(e, rc, "the session cannot be joined");
    else
        rc = join_here(s, e);
    if (rc < 0) {
        mo_buf_wipe(&s->join);
        mo_free(s);
        return rc;
    }
    mo_list_push(&p->seats, &s->node);
    p->nseats++;
    *out = s;
    return 0;
}

bool mo_seat_reads(const struct mo_seat *s)
{
    return s->reads;
}

bool mo_seat_may_decide(const struct mo_seat *s)
{
    return s->member ? mo_member_may_decide(s->member) : !s->reads || s->ready;
}

void mo_seats_stop(struct mo_peers *p)
{
    mo_list_each_entry (s, &p->seats, struct mo_seat, node) {
        if (s->state != SEAT_HERE && s->state != SEAT_OVER)
            close_seat(s, "shutdown", NULL);
    }
}

void mo_seat_leave(struct mo_seat *s)
{
    if (s->member)
        mo_chat_leave(mo_take_ptr(&s->member));
    mo_seat_detach(s);
    if (s->stream)
        leave_stream(s);
    if (s->dial)
        mo_dial_cancel(s->dial);
    seat_over(s);
}
