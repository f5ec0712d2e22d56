/* chat.c - opens and ends a chat.
 *
 * Opening is a chain of asynchronous steps: hold the session (box and
 * connection are ready) -> load its tools -> read its history -> resume an
 * interrupted turn -> send the members the initial events.
 *
 * Ending waits for everything that cannot be undone: store writes, a model
 * request that is being cancelled, running calls. Then it releases the hold. */
#include "agent/chat/branching.h"
#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/doubts.h"
#include "agent/chat/elicit.h"
#include "agent/chat/entries.h"
#include "agent/chat/event.h"
#include "agent/chat/images.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/readers.h"
#include "agent/chat/session_memory.h"
#include "agent/chat/skills.h"
#include "agent/chat/sure_write.h"
#include "agent/chat/titles.h"
#include "agent/chat/tools_off.h"
#include "agent/chat/turn.h"

#define TO(state) (1u << (state))

void mo_chat_move(struct chat *c, enum chat_state to)
{
    static const uint16_t legal[] = {
        [CHAT_OPENING] =
            TO(CHAT_IDLE) | TO(CHAT_ASKING) | TO(CHAT_CALLS) | TO(CHAT_ENDING),
        [CHAT_IDLE] = TO(CHAT_SAVING) | TO(CHAT_ENDING),
        [CHAT_SAVING] = TO(CHAT_ASKING) | TO(CHAT_IDLE) | TO(CHAT_ENDING),
        [CHAT_ASKING] = TO(CHAT_KEEPING) | TO(CHAT_IDLE) | TO(CHAT_ENDING),
        [CHAT_KEEPING] =
            TO(CHAT_CALLS) | TO(CHAT_IDLE) | TO(CHAT_ASKING) | TO(CHAT_ENDING),
        [CHAT_CALLS] = TO(CHAT_RESULTS) | TO(CHAT_ENDING),
        [CHAT_RESULTS] = TO(CHAT_ASKING) | TO(CHAT_IDLE) | TO(CHAT_ENDING),
        [CHAT_ENDING] = 0,
    };

    static const char *const names[] = {
        [CHAT_OPENING] = "opening", [CHAT_IDLE] = "idle",
        [CHAT_SAVING] = "saving",   [CHAT_ASKING] = "asking",
        [CHAT_KEEPING] = "keeping", [CHAT_CALLS] = "calls",
        [CHAT_RESULTS] = "results", [CHAT_ENDING] = "ending",
    };

    MO_BUG_ON(!(legal[c->state] & TO(to)));
    c->state = to;
    mo_agent_point(c->agent, names[to]);
}

/* --- answers to members -------------------------------------------------- */

static void send_ack(struct ack *a, const struct mo_ack *k)
{
    struct ack to = *a;

    *a = (struct ack){NULL, NULL};
    if (to.fn)
        to.fn(to.ctx, k);
}

void mo_chat_ack(struct ack *a, const char *code, const char *message)
{
    send_ack(a,
             &(struct mo_ack){.code = code, .message = mo_span_cstr(message)});
}

void mo_chat_ack_ok(struct ack *a, struct mo_span extra)
{
    send_ack(a, &(struct mo_ack){.ok = true, .extra = extra});
}

/* --- opening ------------------------------------------------------------- */

void mo_chat_greet_new(struct chat *c)
{
    mo_list_each_entry_safe (m, &c->members, struct mo_member, node) {
        if (!m->greeted)
            mo_chat_event_greet(m);
    }
}

void mo_chat_recall_asker(struct chat *c)
{
    const struct entry *en = mo_chat_last(c);

    while (en && en->role != MO_ENTRY_USER)
        en = mo_chat_entry_before(c, en);
    c->turn.asker[0] = '\0';
    if (en)
        (void)mo_json_str_copy(mo_json_get(en->doc, "by"), c->turn.asker,
                               sizeof(c->turn.asker));
}

/* The role of the last entry shows where the turn was interrupted. */
void mo_chat_resume(struct chat *c)
{
    struct entry *last = mo_chat_last(c);
    enum mo_entry_role role = last ? last->role : MO_ENTRY_OTHER;
    struct mo_entry_call k;
    struct mo_json_iter it;
    struct mo_err e;

    mo_chat_recall_asker(c);
    mo_chat_queue_restored(c);
    if (role == MO_ENTRY_USER)
        mo_doubts_resumed(c, last);
    if (role == MO_ENTRY_USER || role == MO_ENTRY_TOOL) {
        mo_turn_begin(c);
        mo_chat_greet_new(c);
        mo_turn_ask(c);
        return;
    }
    if (role == MO_ENTRY_ASSISTANT) {
        mo_entry_calls(&it, last->doc);
        if (mo_entry_next_call(&it, &k)) {
            mo_turn_begin(c);
            if (mo_chat_calls_recover(c, last->doc, &e) < 0)
                mo_chat_fail(c, &e);
            return;
        }
    }
    mo_chat_move(c, CHAT_IDLE);
    mo_chat_greet_new(c);
    mo_chat_settle(c);
}

void mo_chat_opened(struct chat *c)
{
    mo_chat_greet_new(c);
    mo_chat_settle(c); /* messages may wait */
}

static void on_history_read(void *ctx, const struct mo_rows *rows,
                            const struct mo_err *why)
{
    struct chat *c = ctx;
    bool is_dated = c->said_at > 0;

    c->writes--;
    if (why) {
        mo_chat_fail(c, why);
        return;
    }
    mo_chat_take_rows(c, rows);
    if (c->state == CHAT_SAVING) {
        mo_chat_reread(c);
        mo_chat_settle(c);
        return;
    }
    if (!is_dated && c->said_at > 0) /* an older version did not store it */
        mo_session_memory_save(c);
    if (c->state == CHAT_OPENING && !mo_chat_note_switch(c))
        mo_chat_resume(c);
    mo_chat_settle(c);
}

void mo_chat_read_history(struct chat *c)
{
    struct mo_read r = {
        .kind = MO_READ_HISTORY,
        .session = mo_span_cstr(c->id),
        .limit = CHAT_HISTORY_MAX,
        .newest = true,
    };
    struct mo_err e;

    if (mo_store_read(c->agent->o.store, &r, on_history_read, c, &e) < 0) {
        mo_chat_fail(c, &e);
        return;
    }
    c->writes++;
}

void mo_chat_tools(struct chat *c, const struct mo_err *why)
{
    c->writes--;
    if (why && c->state == CHAT_OPENING) {
        mo_chat_fail(c, why);
        return;
    }
    if (c->state != CHAT_OPENING) {
        if (c->skills)
            mo_chat_event_skills(c);
        mo_turn_tools(c);
        mo_chat_settle(c);
        return;
    }
    mo_chat_open_model(c);
}

/* --- session callbacks --------------------------------------------------- */

static void on_session_ready(void *ctx, struct mo_hold *h,
                             const struct mo_session_info *info)
{
    struct chat *c = ctx;

    if (c->agent->opened)
        c->agent->opened(c->agent->opened_ctx, mo_span_cstr(c->id));
    (void)h;
    c->info = *info;
    c->ready = true;
    snprintf(c->owner, sizeof(c->owner), "%s", info->owner);
    mo_readers_chat_ready(c);
    if (c->state == CHAT_OPENING)
        mo_load_tools_start(c);
}

static void on_box_changed(void *ctx, struct mo_hold *h,
                           const struct mo_box_end *end,
                           const struct mo_session_info *info)
{
    struct chat *c = ctx;
    char text[320];

    (void)h;
    if (info) {
        c->info = *info;
        mo_chat_event_message(
            c, NULL,
            info->workspace == MO_WORKSPACE_KEPT
                ? "A new box was started with the same files."
                : "A new, empty box was started; the files of the "
                  "old one are lost.");
        c->stale = true; /* running calls still point to the old list */
        return;
    }
    c->info.conn = NULL;
    snprintf(text, sizeof(text), "The box ended: %s%s%s",
             mo_box_cause_name(end->cause), end->why ? ", " : "",
             end->why ? end->why->msg : "");
    mo_chat_event_message(c, NULL, text);
}

static void on_session_idle(void *ctx, struct mo_hold *h, unsigned seconds)
{
    (void)h;
    mo_chat_event_idle(ctx, seconds);
}

static void end_members(struct chat *c, const char *reason,
                        const struct mo_err *why)
{
    while (!mo_list_empty(&c->members)) {
        struct mo_member *m =
            mo_list_first(&c->members, struct mo_member, node);
        const struct mo_member_cb *cb = m->cb;
        void *ctx = m->ctx;

        mo_list_del(&m->node);
        if (m->reads)
            c->agent->nreaders--;
        else
            c->nmembers--;
        mo_member_free(m);
        cb->on_closed(ctx, reason, why);
    }
}

static void on_session_closed(void *ctx, const char *reason,
                              const struct mo_err *why)
{
    struct chat *c = ctx;

    c->hold = NULL;
    c->ready = false;
    c->info.conn = NULL;
    mo_chat_finish(c, reason, why);
}

/* Attributes a log line to the only running call. With several running calls it
 * is sent without a call id. */
static void on_box_notify(void *ctx, struct mo_hold *h, const struct mo_rpc *m)
{
    struct chat *c = ctx;

    (void)h;
    if (mo_json_str_eq(m->method, MO_SPAN("notifications/message")))
        mo_chat_event_relay(c, mo_chat_calls_only(c), "tool:log", m->params);
}

const struct mo_hold_cb mo_chat_hold_cb = {
    .on_ready = on_session_ready,
    .on_box = on_box_changed,
    .on_idle = on_session_idle,
    .on_notify = on_box_notify,
    .on_ask = mo_chat_elicit_box,
    .on_closed = on_session_closed,
};

/* --- ending -------------------------------------------------------------- */

void mo_chat_finish(struct chat *c, const char *reason,
                    const struct mo_err *why)
{
    if (c->state == CHAT_ENDING)
        return;
    if (c->turn.asking)
        mo_llm_cancel(c->turn.asking);
    mo_titles_stop(c);
    mo_chat_images_stop(c);
    mo_chat_event_closed(c, reason);
    mo_chat_move(c, CHAT_ENDING);
    mo_load_tools_stop(c);
    mo_chat_calls_cancel(c);
    end_members(c, reason, why);
    mo_sure_write_stop(c);
    mo_chat_settle(c);
}

void mo_chat_fail(struct chat *c, const struct mo_err *why)
{
    mo_chat_log(c, MO_WARN, 0, why, "conversation failed");
    mo_chat_finish(c, "failed", why);
}

/* True if the chat can be freed: it has ended, or it is idle without members,
 * and nothing is outstanding. */
static bool can_be_freed(const struct chat *c)
{
    if (c->writes > 0 || c->turn.asking || mo_chat_calls_running(c))
        return false;
    if (c->state == CHAT_ENDING)
        return true;
    return c->nmembers == 0 && c->state == CHAT_IDLE &&
           (c->nqueue == 0 || c->stalled);
}

void mo_chat_free(struct chat *c)
{
    struct mo_agent *a = c->agent;

    mo_readers_chat_gone(c);
    mo_chat_sleep_drop(c);
    mo_titles_free(c);
    mo_later_cancel(&c->later);
    mo_later_cancel(&c->soon);
    mo_timer_stop(a->loop, &c->calls.expiry);
    mo_budget_cancel(&c->turn.budget);
    mo_turn_budget_end(c);
    if (c->hold)
        mo_session_release(c->hold);
    mo_chat_queue_drop(c);
    mo_chat_images_free(c);
    mo_chat_calls_drop(c);
    mo_trace_end(mo_take_ptr(&c->turn.span));
    mo_gateway_client_drop(c);
    c->transcript.unkept = NULL;
    mo_doubts_drop(c);
    mo_chat_forget_entries(c);
    mo_branches_fini(&c->transcript.branches);
    mo_chat_ack(&c->rereading, "closed", "the session has ended");
    mo_write_ahead_drop(c);
    mo_changed_tools_forget(c);
    mo_tools_free(c->tools);
    mo_model_fini(&c->model);
    mo_buf_fini(&c->next);
    mo_buf_fini(&c->next_key);
    mo_buf_fini(&c->wanted);
    mo_buf_fini(&c->key);
    mo_buf_fini(&c->title);
    mo_buf_fini(&c->labels);
    mo_buf_fini(&c->troubles);
    mo_buf_fini(&c->turn.shown);
    mo_buf_fini(&c->turn.thought);
    mo_tools_off_free(c);
    mo_skills_free(c);
    mo_arena_fini(&c->remembered.arena);
    mo_buf_fini(&c->mode.known);
    mo_buf_fini(&c->hints);
    mo_agent_forget(c);
    mo_free(c);
}

static void settle_later(struct mo_later *d)
{
    struct chat *c = mo_container_of(d, struct chat, later);

    if (c->turn.stuck)
        mo_turn_stuck(c);
    if (c->state != CHAT_OPENING && c->state != CHAT_ENDING) {
        mo_chat_greet_new(c);
        mo_chat_switch_due(c);
        if (!mo_chat_sleep_due(c))
            mo_turn_next(c);
        mo_chat_queue_store(c);
    }
    if (can_be_freed(c) ||
        (c->state == CHAT_OPENING && c->nmembers == 0 && c->writes == 0))
        mo_chat_free(c);
}

void mo_chat_settle(struct chat *c)
{
    mo_loop_defer(c->agent->loop, &c->later);
}

struct chat *mo_chat_new(struct mo_agent *a, const struct mo_join *j,
                         struct mo_err *e)
{
    struct chat *c = mo_new(struct chat);

    if (c)
        c->tools = mo_tools_new(a->loop);
    if (c == NULL || c->tools == NULL) {
        mo_free(c);
        return mo_null(mo_fail(e, MO_ENOMEM, "out of memory"));
    }
    c->agent = a;
    memcpy(c->id, j->session.p, j->session.n);
    if (j->owner.n > 0 && j->owner.n < sizeof(c->owner))
        memcpy(c->owner, j->owner.p, j->owner.n);
    mo_list_init(&c->members);
    mo_list_init(&c->transcript.list);
    mo_list_init(&c->queue);
    mo_list_init(&c->doubts);
    mo_list_init(&c->calls.list);
    mo_list_init(&c->calls.questions);
    mo_list_init(&c->calls.samples);
    mo_list_init(&c->blocked);
    mo_buf_init(&c->wanted, 256);
    mo_buf_init(&c->key, 4096);
    mo_buf_init(&c->next, 256);
    mo_buf_init(&c->next_key, 4096);
    mo_buf_init(&c->title, 512);
    mo_buf_init(&c->labels, MO_ABOUT_MAX);
    mo_buf_init(&c->troubles, (size_t)32 * 1024);
    mo_buf_init(&c->turn.shown, MO_LLM_REPLY_MAX);
    mo_buf_init(&c->turn.thought, MO_LLM_REPLY_MAX);
    mo_buf_span(&c->wanted, j->model);
    mo_buf_span(&c->key, j->key);
    mo_arena_init(&c->remembered.arena, REMEMBERED_BYTES);
    mo_buf_init(&c->mode.known, KNOWN_BYTES);
    mo_buf_init(&c->hints, (size_t)64 * 1024);
    mo_later_init(&c->later, settle_later);
    mo_later_init(&c->soon, mo_write_ahead_ask);
    mo_timer_init(&c->calls.expiry, mo_chat_calls_expire);
    mo_sure_write_init(c);
    return c;
}
