/* agent.c - the table of open chats; members join, leave and send commands;
 * lists of all conversations. */
#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/doubts.h"
#include "agent/chat/entries.h"
#include "agent/chat/event.h"
#include "agent/chat/network.h"
#include "agent/chat/readers.h"
#include "agent/chat/said.h"
#include "agent/chat/turn.h"

#define CLOSING_MS 20 /* between two looks at running calls */

static void free_agent(struct mo_later *d)
{
    struct mo_agent *a = mo_container_of(d, struct mo_agent, later);
    struct mo_gone gone = a->gone;

    mo_map_fini(&a->chats);
    mo_free(a);
    mo_gone_fire(gone);
}

static void take_settings(struct mo_agent *a, const struct mo_agent_opts *o)
{
    a->o.approval_ms = o->approval_ms ? o->approval_ms : 600 * 1000;
    a->o.steps = o->steps ? o->steps : MO_CHAT_STEPS_MAX;
    a->o.history_tokens = o->history_tokens ? o->history_tokens : 30000;
    a->o.instructions = o->instructions;
    a->o.model_titles = o->model_titles;
}

struct mo_agent *mo_agent_new(struct mo_loop *l, const struct mo_agent_opts *o,
                              struct mo_err *e)
{
    struct mo_agent *a = mo_new(struct mo_agent);

    if (a == NULL)
        return mo_null(mo_fail(e, MO_ENOMEM, "agent: out of memory"));
    a->loop = l;
    a->o = *o;
    take_settings(a, o);
    mo_map_init(&a->chats, MO_CHATS_MAX);
    mo_list_init(&a->app_calls);
    mo_readers_init(a);
    mo_later_init(&a->later, free_agent);
    mo_chat_network_watch(a);
    return a;
}

/* Finishes the conversations; `all`: also those with a running call. False:
 * some of those are left. */
static bool finish_chats(struct mo_agent *a, bool all)
{
    bool is_done = true;

    mo_map_each (en, &a->chats) {
        if (all || !mo_chat_calls_running(en->value))
            mo_chat_finish(en->value, "shutdown", NULL);
        else
            is_done = false;
    }
    return is_done;
}

static void on_closing(struct mo_timer *t)
{
    struct mo_agent *a = mo_container_of(t, struct mo_agent, ending);

    if (!finish_chats(a, mo_loop_now(a->loop) >= a->ends_at))
        mo_timer_start(a->loop, t, CLOSING_MS);
    mo_agent_check(a);
}

void mo_agent_close(struct mo_agent *a, uint64_t grace_ms,
                    void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(a->closing);
    a->closing = true;
    a->gone = (struct mo_gone){gone, ctx};
    a->ends_at = mo_loop_now(a->loop) + grace_ms * MO_MS;
    mo_timer_init(&a->ending, on_closing);
    mo_chat_network_unwatch(a);
    if (!finish_chats(a, grace_ms == 0))
        mo_timer_start(a->loop, &a->ending, CLOSING_MS);
    mo_readers_close_all(a);
    mo_agent_check(a);
}

void mo_agent_check(struct mo_agent *a)
{
    if (!a->closing || a->chats.len > 0 || a->ngateway_clients > 0 ||
        !mo_list_empty(&a->app_calls) || a->nlooks > 0)
        return;
    mo_timer_stop(a->loop, &a->ending);
    mo_loop_defer(a->loop, &a->later);
}

void mo_agent_forget(struct chat *c)
{
    struct mo_agent *a = c->agent;

    mo_map_del(&a->chats, mo_span_cstr(c->id));
    mo_agent_check(a);
}

void mo_agent_watch(struct mo_agent *a,
                    void (*on_point)(void *ctx, const char *name), void *ctx)
{
    a->on_point = on_point;
    a->point_ctx = ctx;
}

void mo_agent_stale(struct mo_agent *a)
{
    mo_map_each (en, &a->chats)
        ((struct chat *)en->value)->stale = true;
}

void mo_agent_reload(struct mo_agent *a, const struct mo_agent_opts *o)
{
    take_settings(a, o);
    mo_map_each (en, &a->chats) {
        struct chat *c = en->value;

        c->repick = true;
        mo_chat_calls_judge_again(c);
        if (c->ready && c->mode.set != MO_CHAT_ASK)
            mo_chat_event_approvals(c); /* it may have no effect now */
    }
}

void mo_agent_point(struct mo_agent *a, const char *name)
{
    if (a->on_point)
        a->on_point(a->point_ctx, name);
}

/* --- joining ------------------------------------------------------------- */

static struct chat *open_chat(struct mo_agent *a, const struct mo_join *j,
                              struct mo_err *e)
{
    struct chat *c = mo_chat_new(a, j, e);
    int rc = 0;

    if (c == NULL)
        return NULL;
    rc = mo_map_put(&a->chats, j->session, c, NULL);
    if (rc < 0)
        mo_fail(e, rc, "agent: more than %d conversations", MO_CHATS_MAX);
    else
        rc = mo_session_hold(a->o.sessions, j->session, j->owner,
                             &mo_chat_hold_cb, c, &c->hold, e);
    if (rc == 0 && j->may_move)
        mo_session_may_move(c->hold, j->move_ms);
    if (rc == 0)
        return c;
    mo_chat_free(c);
    return NULL;
}

/* The owner is known only once the session is open. */
static int check_owner(const struct chat *c, const struct mo_join *j,
                       struct mo_err *e)
{
    if (j->owner.n == 0 || mo_span_is(j->owner, c->owner))
        return 0;
    if (!c->ready)
        return mo_fail(e, MO_EEXISTS, "the session is being opened; try again");
    return mo_fail(e, MO_ENOTFOUND, "there is no such session");
}

int mo_chat_join(struct mo_agent *a, const struct mo_join *j,
                 const struct mo_member_cb *cb, void *ctx,
                 struct mo_member **out, struct mo_err *e)
{
    struct mo_member *m = NULL;
    struct chat *c = NULL;

    if (a->closing)
        return mo_fail(e, MO_ECLOSED, "the program is shutting down");
    if (!mo_session_id_ok(j->session))
        return mo_fail(e, MO_EINVAL,
                       "a session id is 1 to %d characters of A-Z a-z 0-9 _ -",
                       MO_SESSION_ID_MAX);
    c = mo_map_get(&a->chats, j->session);
    if (c && c->state == CHAT_ENDING)
        return mo_fail(e, MO_EEXISTS, "the session is ending; try again");
    if (c && c->nmembers >= MO_CHAT_MEMBERS)
        return mo_fail(e, MO_EBUSY, "the session has %d members already",
                       MO_CHAT_MEMBERS);
    if (c && check_owner(c, j, e) < 0)
        return e->code;
    m = mo_new(struct mo_member);
    if (m == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (c == NULL)
        c = open_chat(a, j, e);
    if (c == NULL) {
        mo_free(m);
        return e ? e->code : MO_EIO;
    }
    *m = (struct mo_member){.chat = c,
                            .cb = cb,
                            .ctx = ctx,
                            .door = j->door,
                            .role = j->person.role,
                            .people = j->person.people,
                            .is_operator = j->owner.n == 0};
    if (j->person.name)
        snprintf(m->name, sizeof(m->name), "%s", j->person.name);
    snprintf(m->grant, sizeof(m->grant), "%.*s", (int)j->grant.n,
             j->grant.n ? j->grant.p : "");
    snprintf(m->who, sizeof(m->who), "%.*s", (int)j->who.n, j->who.p);
    mo_list_push(&c->members, &m->node);
    c->nmembers++;
    mo_chat_change_model(c, j->model, j->key);
    mo_chat_settle(c);
    *out = m;
    return 0;
}

void mo_chat_leave(struct mo_member *m)
{
    struct chat *c = m->chat;

    mo_list_del(&m->node);
    if (m->reads)
        m->agent->nreaders--;
    else
        c->nmembers--;
    mo_member_free(m);
    if (c)
        mo_chat_settle(c);
}

void mo_member_groups(struct mo_member *m, struct mo_span lines)
{
    mo_free(m->groups);
    m->groups = lines.n ? mo_strndup(lines.p, lines.n) : NULL;
}

void mo_member_free(struct mo_member *m)
{
    mo_free(m->groups);
    mo_free(m);
}

/* --- messages ------------------------------------------------------------ */

void mo_chat_take_payer(struct chat *c, const struct mo_member *m)
{
    memcpy(c->person, m->name, sizeof(c->person));
    memcpy(c->grant, m->grant, sizeof(c->grant));
}

void mo_chat_say(struct mo_member *m, struct mo_span text, mo_ack_fn *done,
                 void *ctx)
{
    char id[ID_MAX];

    mo_random_token(id, ID_BYTES);
    mo_chat_say_as(m, &(struct mo_saying){.text = text, .id = mo_span_cstr(id)},
                   done, ctx);
}

/* Providers reject a blank message, and would reject every later request of the
 * conversation that contains it. */
static bool is_text_ok(struct mo_span text, struct ack *ack)
{
    if (!mo_span_only(text, " \t\r\n\v\f") && text.n <= MO_CHAT_TEXT_MAX)
        return true;
    mo_chat_ack(ack, "bad_request",
                text.n <= MO_CHAT_TEXT_MAX
                    ? "the message is empty"
                    : "the message is longer than 256 KiB");
    return false;
}

static struct message *new_message(struct mo_member *m,
                                   const struct mo_saying *s, struct ack *ack)
{
    struct message *msg = mo_zalloc(sizeof(*msg) + s->text.n);

    if (msg == NULL) {
        mo_chat_ack(ack, "busy", "out of memory");
        return NULL;
    }
    memcpy(msg->id, s->id.p, s->id.n);
    memcpy(msg->by, m->name, sizeof(msg->by));
    msg->ack = *ack;
    msg->n = s->text.n;
    memcpy(msg->text, s->text.p, s->text.n);
    if (m->chat->turn.id[0] == '\0')
        mo_chat_take_payer(m->chat, m);
    return msg;
}

struct message *mo_chat_message_new(struct mo_member *m, struct mo_span text,
                                    struct ack *ack)
{
    char id[ID_MAX];

    mo_random_token(id, ID_BYTES);
    return is_text_ok(text, ack)
               ? new_message(
                     m,
                     &(struct mo_saying){.text = text, .id = mo_span_cstr(id)},
                     ack)
               : NULL;
}

void mo_chat_say_as(struct mo_member *m, const struct mo_saying *s,
                    mo_ack_fn *done, void *ctx)
{
    struct chat *c = m->chat;
    struct ack ack = {done, ctx};
    struct message *msg = NULL;

    if (!is_text_ok(s->text, &ack))
        return;
    if (!mo_chat_message_id_ok(s->id)) {
        mo_chat_ack(&ack, "bad_request", "the message's id is not valid");
        return;
    }
    if ((s->again && mo_chat_was_said(c, s->id, &ack)) ||
        mo_doubts_was_said(c, m->name, s->text, &ack))
        return;
    if (c->nqueue >= MO_CHAT_QUEUE_MAX) {
        mo_chat_ack(&ack, "busy",
                    "16 messages are waiting already; wait for an answer");
        return;
    }
    msg = new_message(m, s, &ack);
    if (msg == NULL)
        return;
    mo_chat_queue_push(c, msg);
    if (c->hold)
        mo_session_touch(c->hold);
    if (c->state != CHAT_IDLE && m->greeted)
        mo_chat_event_queued(m, c->nqueue);
    mo_chat_settle(c);
}

void mo_chat_cancel(struct mo_member *m, mo_ack_fn *done, void *ctx)
{
    struct ack ack = {done, ctx};

    mo_turn_stop(m->chat);
    mo_chat_ack_ok(&ack, (struct mo_span){NULL, 0});
}

/* --- a fresh conversation, the end --------------------------------------- */

static void on_reset_written(struct chat *c, void *arg,
                             const struct mo_err *why)
{
    struct ack *ack = arg;

    if (why) {
        mo_chat_ack(ack, "state_unavailable", why->msg);
    } else {
        mo_chat_forget_entries(c);
        mo_chat_ack_ok(ack, (struct mo_span){NULL, 0});
        mo_chat_event_greet_all(c);
        mo_chat_event_message(c, NULL,
                              "Conversation history cleared. Starting fresh.");
    }
    mo_free(ack);
}

void mo_chat_reset(struct mo_member *m, mo_ack_fn *done, void *ctx)
{
    struct chat *c = m->chat;
    struct mo_write w = {.kind = MO_WRITE_FRESH, .at = mo_wall_ms()};
    struct ack *ack = mo_chat_keep_ack(done, ctx);
    struct mo_err e;

    if (ack == NULL)
        return;
    if (c->state != CHAT_IDLE)
        mo_chat_ack(ack, "busy", "a turn is running; stop it first");
    else if (mo_chat_write(c, &w, 1, on_reset_written, ack, &e) == 0)
        return;
    else
        mo_chat_ack(ack, "state_unavailable", e.msg);
    mo_free(ack);
}

static void on_session_ended(void *ctx, const struct mo_err *why)
{
    struct ack *ack = ctx;

    if (why)
        mo_chat_ack(ack, "failed", why->msg);
    else
        mo_chat_ack_ok(ack, (struct mo_span){NULL, 0});
    mo_free(ack);
}

void mo_chat_end(struct mo_member *m, mo_ack_fn *done, void *ctx)
{
    struct chat *c = m->chat;
    struct ack *ack = mo_chat_keep_ack(done, ctx);
    struct mo_err e;

    if (ack && mo_session_end(c->agent->o.sessions, mo_span_cstr(c->id), false,
                              on_session_ended, ack, &e) < 0)
        on_session_ended(ack, &e);
}

/* --- all open conversations ---------------------------------------------- */

const struct mo_tally *mo_agent_tally(const struct mo_agent *a)
{
    return &a->tally;
}

bool mo_agent_is_open(const struct mo_agent *a, struct mo_span session)
{
    return mo_map_get(&a->chats, session) != NULL;
}

void mo_agent_on_open(struct mo_agent *a,
                      void (*opened)(void *ctx, struct mo_span session),
                      void *ctx)
{
    a->opened = opened;
    a->opened_ctx = ctx;
}

void mo_agent_chats(const struct mo_agent *a, mo_chat_look_fn *each, void *ctx)
{
    mo_map_each (en, &a->chats) {
        const struct chat *c = en->value;
        const struct mo_chat_look look = {
            .session = c->id,
            .provider = c->model.provider ? c->model.provider : "",
            .model = mo_buf_view(&c->model.id),
            .title = mo_buf_view(&c->title),
            .spent = c->transcript.spent,
            .members = c->nmembers,
            .busy = c->state != CHAT_IDLE && c->state != CHAT_OPENING,
        };

        if (c->ready)
            each(ctx, &look);
    }
}

static void list_waiting_calls(const struct chat *c, mo_waiting_fn *each,
                               void *ctx)
{
    uint64_t term = c->agent->o.approval_ms;

    mo_list_each_entry (k, &c->calls.list, const struct call, node) {
        const struct mo_waiting w = {
            .session = c->id,
            .call = k->card,
            .title = mo_buf_view(&c->title),
            .server = k->tool ? k->tool->def.server : MO_SPAN(""),
            .tool = mo_buf_view(&k->name),
            .since = k->expires > term ? k->expires - term : 0,
            .expires = k->expires,
        };

        if (k->state == MO_CALL_PENDING && !k->writing)
            each(ctx, &w);
    }
}

void mo_agent_waiting(const struct mo_agent *a, mo_waiting_fn *each, void *ctx)
{
    mo_map_each (en, &a->chats)
        list_waiting_calls(en->value, each, ctx);
}
