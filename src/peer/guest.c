/* guest.c - members of other processes at the chats of this one.
 *
 * A guest is one connection. Its first frame is JOIN; its commands are those of
 * a member. It lives until its stream is closed and every command is answered.
 * CLOSED follows the last answer, so that the other side knows that none is
 * missing. */
#include <stdio.h>
#include <unistd.h>

#include "peer/priv.h"

#define JOIN_MS   10000 /* for the first frame */
#define FINISH_MS 2000  /* for the last bytes */

struct guest {
    struct mo_list node;
    struct mo_peers *p;
    struct mo_stream *s; /* NULL: closed */
    struct mo_peer_frames in;
    struct mo_timer late;
    struct mo_member *member; /* NULL: not joined, or out again */
    bool joined, over;        /* over: nothing is read or sent any more */
    unsigned owed;            /* answers on their way */
    const char *out;          /* why it is out, or NULL */
    struct mo_err why;        /* code 0: none */
};

struct owed {
    struct guest *g;
    uint32_t no;
};

static void guest_settle(struct guest *g)
{
    struct mo_peers *p = g->p;

    if (g->s || g->owed > 0)
        return;
    mo_timer_stop(p->loop, &g->late);
    mo_peer_frames_fini(&g->in);
    mo_list_del(&g->node);
    mo_free(g);
    p->nguests--;
    mo_peers_settle(p);
}

/* Its seat joins again. */
static void drop_guest(struct guest *g, const struct mo_err *why)
{
    mo_log_about(
        mo_loop_log(g->p->loop), MO_WARN, "peer",
        &(struct mo_log_facts){.from = mo_stream_peer(g->s), .err = why},
        "connection of another process closed");
    g->over = true;
    mo_stream_close(g->s, why);
}

static void guest_write(struct guest *g, const struct mo_span *v, size_t n)
{
    if (g->s && !g->over && mo_stream_writev(g->s, v, n) < 0)
        drop_guest(g, mo_error(MO_EBUSY, "it reads too slowly"));
}

static void guest_send(struct guest *g, const struct mo_buf *b)
{
    struct mo_span frame = mo_buf_view(b);

    if (mo_buf_err(b) == 0)
        guest_write(g, &frame, 1);
    else if (g->s && !g->over)
        drop_guest(g, mo_error(MO_ENOMEM, "out of memory"));
}

static void tell_closed(struct guest *g)
{
    mo_autobuf struct mo_buf b = {.max = MO_WIRE_COMMAND_MAX};

    if (!g->out || g->owed > 0 || g->over || !g->s)
        return;
    mo_wire_put_closed(&b, g->out, g->why.code ? &g->why : NULL);
    guest_send(g, &b);
    if (g->over)
        return;
    g->over = true;
    mo_stream_finish(g->s, FINISH_MS);
}

/* --- from the chat -------------------------------------------------------- */

static void on_event(void *ctx, const char *name, struct mo_span args)
{
    mo_autobuf struct mo_buf head = {.max = 256};
    struct mo_span v[2];

    mo_peer_put_event(&head, mo_span_cstr(name), args.n);
    v[0] = mo_buf_view(&head);
    v[1] = args;
    guest_write(ctx, v, 2);
}

static void guest_out(struct guest *g, const char *reason,
                      const struct mo_err *why)
{
    g->out = reason;
    if (why)
        g->why = *why;
    tell_closed(g);
}

static void on_closed(void *ctx, const char *reason, const struct mo_err *why)
{
    struct guest *g = ctx;

    g->member = NULL;
    guest_out(g, reason, why);
}

static void on_ack(void *ctx, const struct mo_ack *a)
{
    struct owed *o = ctx;
    struct guest *g = o->g;
    mo_autobuf struct mo_buf b = {.max = MO_WIRE_COMMAND_MAX};
    struct mo_ack told = *a;

    if (g->out && !a->ok && strcmp(a->code, "closed") == 0)
        told.code = MO_WIRE_ENDED;
    mo_wire_put_ack(&b, o->no, &told);
    mo_free(o);
    g->owed--;
    guest_send(g, &b);
    tell_closed(g);
    guest_settle(g);
}

/* --- from the peer -------------------------------------------------------- */

static void do_join(struct guest *g, struct mo_span data)
{
    static const struct mo_member_cb cb = {on_event, on_closed};
    struct mo_join j;
    struct mo_err e;
    int rc = 0;

    if (g->joined) {
        drop_guest(g, mo_error(MO_EPROTO, "a second join"));
        return;
    }
    rc = mo_wire_join(data, &j, &e);
    if (rc == MO_EPROTO) {
        drop_guest(g, &e);
        return;
    }
    g->joined = true;
    mo_timer_stop(g->p->loop, &g->late);
    if (rc < 0) {
        guest_out(g, MO_WIRE_REASON, &e);
        return;
    }
    j.may_move = true; /* if the lease is not here: it looks again */
    rc = g->p->stopped ? mo_fail(&e, MO_EEXISTS, "the program is ending")
                       : mo_peer_join_here(g->p, &j, &cb, g, &g->member, &e);
    if (rc < 0)
        guest_out(g, rc == MO_EEXISTS ? "elsewhere" : "failed", &e);
    else
        mo_member_groups(g->member, mo_span_cstr(j.person.groups));
}

static void do_command(struct guest *g, struct mo_span data)
{
    static const struct mo_ack late = {.code = "closed",
                                       .message = {"the session ended", 17}};
    struct owed *o = NULL;
    uint32_t no;

    if (!g->joined || !mo_wire_number(data, &no) ||
        g->owed >= 2 * MO_SEAT_COMMANDS) {
        drop_guest(g, mo_error(MO_EPROTO, "a command that is not valid"));
        return;
    }
    o = mo_new(struct owed);
    if (!o) {
        drop_guest(g, mo_error(MO_ENOMEM, "out of memory"));
        return;
    }
    *o = (struct owed){g, no};
    g->owed++;
    if (!g->member) {
        on_ack(o, &late);
    } else if (mo_wire_run(g->member, data, on_ack, o) < 0) {
        mo_free(o);
        g->owed--;
        drop_guest(g, mo_error(MO_EPROTO, "a command that is not valid"));
    }
}

static void do_ping(struct guest *g, struct mo_span data)
{
    mo_autobuf struct mo_buf b = {.max = 64};
    const char *groups = NULL;

    if (!mo_wire_ping(data, &groups)) {
        drop_guest(g, mo_error(MO_EPROTO, "a ping that is not valid"));
        return;
    }
    if (g->member)
        mo_member_groups(g->member, mo_span_cstr(groups));
    mo_peer_end(&b, mo_peer_begin(&b, MO_PEER_PONG));
    guest_send(g, &b);
}

static void take_frame(struct guest *g, const struct mo_peer_frame *f)
{
    if (f->type == MO_PEER_JOIN)
        do_join(g, f->data);
    else if (f->type == MO_PEER_COMMAND)
        do_command(g, f->data);
    else if (f->type == MO_PEER_PING)
        do_ping(g, f->data);
    else
        drop_guest(g, mo_error(MO_EPROTO, "a frame that only we send"));
}

/* A guest stays while it is read: its stream is closed later. */
static void on_read(void *ctx, char *p, size_t n)
{
    struct guest *g = ctx;
    struct mo_span in = mo_span(p, n);
    struct mo_peer_frame f;
    int rc = 1;

    while (rc == 1 && !g->over) {
        rc = mo_peer_frames_next(&g->in, &in, &f);
        if (rc == 1)
            take_frame(g, &f);
    }
    if (rc < 0)
        drop_guest(g, mo_error(rc, "a frame that is not valid"));
}

static void on_stream_closed(void *ctx, const struct mo_err *why)
{
    struct guest *g = ctx;

    (void)why;
    g->s = NULL;
    if (g->member)
        mo_chat_leave(mo_take_ptr(&g->member));
    guest_settle(g);
}

static void on_late(struct mo_timer *t)
{
    struct guest *g = mo_container_of(t, struct guest, late);

    if (g->s)
        mo_stream_close(g->s, mo_error(MO_ETIMEOUT, "no join"));
}

/* --- coming --------------------------------------------------------------- */

/* Also where the directory was opened to others by mistake. */
static bool is_trusted(const struct mo_peers *p, const struct mo_stream *s)
{
    if (mo_stream_is_own_user(s))
        return true;
    mo_log_about(mo_loop_log(p->loop), MO_WARN, "peer",
                 &(struct mo_log_facts){.from = mo_stream_peer(s)},
                 "refused at the peer socket: another user");
    return false;
}

static void let_in(struct mo_peers *p, struct mo_stream *s)
{
    static const struct mo_stream_cb cb = {.on_read = on_read,
                                           .on_close = on_stream_closed};
    bool full = p->stopped || p->nguests >= MO_PEER_GUESTS;
    struct guest *g = full ? NULL : mo_new(struct guest);

    if (!g) {
        mo_stream_close(s, NULL);
        return;
    }
    g->p = p;
    g->s = s;
    mo_peer_frames_init(&g->in, MO_WIRE_COMMAND_MAX);
    mo_timer_init(&g->late, on_late);
    mo_timer_start(p->loop, &g->late, JOIN_MS);
    mo_list_push(&p->guests, &g->node);
    p->nguests++;
    mo_stream_limit(s, MO_PEER_QUEUE_MAX);
    mo_stream_attach(s, &cb, g);
}

static void on_accept(void *ctx, struct mo_stream *s)
{
    if (is_trusted(ctx, s))
        let_in(ctx, s);
    else
        mo_stream_close(s, NULL);
}

void mo_peer_guest_far(void *ctx, struct mo_stream *s)
{
    let_in(ctx, s);
}

int mo_peer_guests_open(struct mo_peers *p, struct mo_err *e)
{
    char addr[PEER_PATH_MAX + 8];
    const struct mo_listen_opts o = {.addr = addr};

    (void)snprintf(addr, sizeof(addr), "unix:%s", p->path);
    return mo_listen(p->loop, &o, on_accept, p, &p->listener, e);
}

void mo_peer_guests_stop(struct mo_peers *p)
{
    if (p->listener)
        mo_listener_close(mo_take_ptr(&p->listener));
    if (p->path[0])
        (void)unlink(p->path);
    mo_list_each_entry (g, &p->guests, struct guest, node) {
        if (g->s && !g->joined)
            mo_stream_close(g->s, NULL);
    }
}
