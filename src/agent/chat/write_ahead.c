/* write_ahead.c - stores user messages and tool results, and sends them to the
 * model while the write is under way.
 *
 * The store and the model work at the same time instead of one after the other.
 * Invariants that make this safe:
 *
 *   1. Only the request is early. Until the entry is stored, nothing of the
 *      answer is shown, stored or acted on: its text is collected in
 *      chat->turn.shown, its end in chat->turn.ahead.
 *   2. If the entry cannot be stored, the request is cancelled, its answer is
 *      dropped, and the turn ends as if the model had not been asked.
 *   3. Models keep no state for us. A crash in between leaves the same as
 *      without the early request: an entry that is stored or not, and no
 *      member that was told of it.
 *
 * A message that has to wait for the end of a turn is stored at once, as an
 * entry with the role "queued", and acknowledged. When its turn comes it is
 * stored as the user entry with the same id. After a restart the messages that
 * still wait are the queued entries without a user entry of the same id. No
 * model and no page is shown a queued entry.
 *
 * The images that a message names are read from the box first (images.h): its
 * entry has their bytes. Until then nothing of it is stored, as of a message
 * that has not come yet.
 *
 * The request is sent after the write instead if the store is known to be down,
 * if another write of the chat is under way (it may start a new conversation),
 * or if tools must be loaded or older turns summarised first. */

#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/doubts.h"
#include "agent/chat/entries.h"
#include "agent/chat/event.h"
#include "agent/chat/images.h"
#include "agent/chat/script_calls.h"
#include "agent/chat/session_memory.h"
#include "agent/chat/sure_write.h"
#include "agent/chat/turn.h"

#define COPY_MAX (4 * MO_LLM_REPLY_MAX)

/* --- asking early -------------------------------------------------------- */

static bool may_ask_early(const struct chat *c)
{
    return c->writes == 1 && !c->turn.cancel && !c->agent->closing &&
           !mo_turn_budget_is_limited(c) && !(c->stale && c->info.conn) &&
           c->turn.steps < c->agent->o.steps && !mo_context_window_is_over(c) &&
           mo_store_health(c->agent->o.store).up;
}

/* Runs after the store's thread has been woken, so both work at the same
 * time. */
void mo_write_ahead_ask(struct mo_later *d)
{
    struct chat *c = mo_container_of(d, struct chat, soon);
    struct mo_err e;

    if (c->state == CHAT_ENDING || c->transcript.unkept == NULL ||
        !may_ask_early(c))
        return;
    mo_buf_reset(&c->turn.shown);
    mo_buf_reset(&c->turn.thought);
    if (mo_turn_request(c, &e) < 0)
        return; /* retried after the write, which reports errors */
    mo_turn_step(c);
    mo_agent_point(c->agent, "ahead");
}

/* --- the answer waits ---------------------------------------------------- */

void mo_write_ahead_drop(struct chat *c)
{
    mo_arena_fini(&c->turn.ahead.mem);
    c->turn.ahead = (struct write_ahead){.there = false};
}

static struct mo_span copy_span(struct mo_arena *a, struct mo_span s, bool *ok)
{
    s = mo_span_dup(a, s);
    *ok &= s.p != NULL;
    return s;
}

static bool copy_reply(struct write_ahead *a, const struct mo_llm_reply *r)
{
    struct mo_llm_call *v =
        mo_arena_alloc(&a->mem, (r->ncalls + 1) * sizeof(*v));
    bool ok = v != NULL;

    a->reply = *r;
    a->reply.entry = copy_span(&a->mem, r->entry, &ok);
    a->reply.text = copy_span(&a->mem, r->text, &ok);
    a->reply.calls = v;
    for (size_t i = 0; ok && i < r->ncalls; i++)
        v[i] = (struct mo_llm_call){
            .key = copy_span(&a->mem, r->calls[i].key, &ok),
            .name = copy_span(&a->mem, r->calls[i].name, &ok),
            .args = copy_span(&a->mem, r->calls[i].args, &ok),
            .bad = copy_span(&a->mem, r->calls[i].bad, &ok),
        };
    return ok;
}

void mo_write_ahead_done(struct chat *c, const struct mo_llm_reply *r,
                         const struct mo_llm_failure *f)
{
    struct write_ahead *a = &c->turn.ahead;

    if (c->turn.unheard) { /* the entry was not stored */
        c->turn.unheard = false;
        mo_turn_end(c);
        return;
    }
    mo_agent_point(c->agent,
                   c->state == CHAT_SAVING ? "early" : "early-results");
    a->there = true;
    mo_arena_init(&a->mem, COPY_MAX);
    if (f) {
        a->fail = *f;
    } else if (!copy_reply(a, r)) {
        a->fail.code = "no_memory";
        mo_fail(&a->fail.err, MO_ENOMEM, "out of memory");
    }
}

/* --- the write ends ------------------------------------------------------ */

/* The entry is stored: use the early answer, or ask the model now. */
static void use_answer(struct chat *c)
{
    struct write_ahead a = c->turn.ahead;

    if (c->turn.asking == NULL && !a.there) {
        if (c->turn.cancel)
            mo_turn_stopped(c);
        else
            mo_turn_ask(c);
        return;
    }
    c->turn.ahead = (struct write_ahead){.there = false};
    mo_chat_move(c, CHAT_ASKING);
    mo_chat_event_thinking(c);
    if (c->turn.thought.len > 0)
        mo_chat_event_thought(c, mo_buf_view(&c->turn.thought));
    if (c->turn.shown.len > 0)
        mo_chat_event_delta(c, mo_buf_view(&c->turn.shown));
    if (!a.there)
        return;
    mo_turn_answer(c, a.fail.code ? NULL : &a.reply,
                   a.fail.code ? &a.fail : NULL);
    mo_arena_fini(&a.mem);
}

static void entry_stored(struct chat *c)
{
    mo_chat_entries_kept(c, mo_take_ptr(&c->transcript.unkept));
    if (c->state == CHAT_ENDING)
        mo_chat_settle(c);
    else
        use_answer(c);
}

static void entry_lost(struct chat *c)
{
    mo_chat_entries_lost(c, mo_take_ptr(&c->transcript.unkept));
    mo_write_ahead_drop(c);
    if (c->state == CHAT_ENDING) {
        mo_chat_settle(c);
    } else if (c->turn.asking) {
        c->turn.unheard = true; /* mo_write_ahead_done() ends the turn */
        mo_llm_cancel(c->turn.asking);
    } else {
        mo_turn_end(c);
    }
}

/* Adds the entry to memory and writes it with w->write() or, if the turn does
 * not end without it, surely. */
static int write_entry(struct chat *c, struct entry *en, struct sure_write *w,
                       bool surely, struct mo_err *e)
{
    int rc = 0;

    mo_chat_entries_add(c, en);
    c->transcript.unkept = en;
    w->doc = mo_json_text(en->doc);
    rc = surely ? mo_sure_write(c, w, e) : w->write(c, w->arg, w->done, e);
    if (rc < 0)
        mo_chat_entries_lost(c, mo_take_ptr(&c->transcript.unkept));
    else
        mo_loop_soon(c->agent->loop, &c->soon);
    return rc;
}

/* The entry as the last write of a batch. */
static struct mo_write write_unkept(const struct chat *c)
{
    return (struct mo_write){.kind = MO_WRITE_ENTRY,
                             .doc = mo_json_text(c->transcript.unkept->doc),
                             .at = mo_wall_ms()};
}

static struct entry *make_entry(const struct mo_buf *doc, struct mo_err *e)
{
    struct entry *en =
        mo_buf_err(doc) ? NULL : mo_chat_entries_read(mo_buf_view(doc));

    if (en == NULL)
        mo_fail(e, mo_buf_err(doc) ? mo_buf_err(doc) : MO_ENOMEM,
                "conversation entry");
    return en;
}

/* --- the queue ----------------------------------------------------------- */

void mo_chat_queue_push(struct chat *c, struct message *m)
{
    mo_list_push(&c->queue, &m->node);
    c->nqueue++;
    c->stalled = false;
}

/* Removes and returns the first message; NULL: none can be taken now. */
static struct message *queue_take(struct chat *c)
{
    struct message *m = mo_list_first(&c->queue, struct message, node);

    if (m == NULL || m->writing || c->stalled || mo_doubts_settle(c, m))
        return NULL;
    mo_list_del(&m->node);
    c->nqueue--;
    return m;
}

/* Puts a message back to the front because its user entry could not be stored.
 * It is taken again with the next message that is sent. */
static void queue_return(struct chat *c, struct message *m)
{
    m->again = true;
    mo_list_push(c->queue.next, &m->node);
    c->nqueue++;
    c->stalled = true;
}

void mo_chat_queue_drop(struct chat *c)
{
    struct message *now = mo_take_ptr(&c->turn.saying);

    if (now) /* its images were being read */
        mo_chat_ack(&now->ack, "closed",
                    "the session ended before this was read");
    mo_free(now);
    mo_list_drain (m, &c->queue, struct message, node) {
        mo_chat_ack(&m->ack, "closed",
                    "the session ended before this was read");
        mo_free(m);
    }
    c->nqueue = 0;
}

/* --- user messages ------------------------------------------------------- */

/* Memory has the new branch already, the store perhaps not: members join again
 * and get what is stored. */
static void lose_edit(struct chat *c, struct message *m,
                      const struct mo_err *why)
{
    mo_chat_ack(&m->ack, "state_unavailable", why->msg);
    mo_chat_fail(c, why);
}

static void on_message_written(struct chat *c, void *arg,
                               const struct mo_err *why)
{
    struct message *m = mo_take_ptr(&c->turn.saying);
    mo_autobuf struct mo_buf extra = {.max = 256};

    (void)arg;
    if (why && m->is_edit) {
        lose_edit(c, m, why);
        entry_lost(c);
    } else if (why && m->stored) {
        mo_chat_event_error(c, "state_unavailable", mo_span_cstr(why->msg), 0);
        queue_return(c, mo_take_ptr(&m));
        entry_lost(c);
    } else if (why) {
        mo_chat_ack(&m->ack, "state_unavailable", why->msg);
        if (why->code == MO_EUNAVAIL)
            mo_doubts_add(c, m, true);
        entry_lost(c);
    } else {
        if (!m->stored) /* else it was acknowledged, or is still in doubt */
            mo_doubts_over(c, m);
        mo_buf_printf(&extra, "\"turnId\":\"%s\",\"messageId\":\"%s\"",
                      c->turn.id, m->id);
        mo_chat_ack_ok(&m->ack, mo_buf_view(&extra));
        mo_session_memory_said(c, mo_span(m->text, m->n));
        entry_stored(c);
        if (m->is_edit)
            mo_chat_event_history(c);
    }
    mo_free(m);
}

/* An edited message is one batch with the mark of its branch. */
static int put_message(struct chat *c, void *arg, chat_written *done,
                       struct mo_err *e)
{
    const struct message *m = c->turn.saying;
    struct mo_write w[2] = {{.at = 0}};
    mo_autobuf struct mo_buf mark = {.max = 256};
    size_t n = 0;

    (void)arg;
    if (m->is_edit) {
        mo_branch_mark(&mark, m->to);
        w[n++] = (struct mo_write){.kind = MO_WRITE_ENTRY,
                                   .doc = mo_buf_view(&mark),
                                   .at = mo_wall_ms()};
    }
    w[n] = write_unkept(c);
    w[n].text = mo_span(m->text, m->n);
    w[n].again = m->again;
    return mo_buf_err(&mark) ? mo_fail(e, mark.err, "the mark of a branch")
                             : mo_chat_write(c, w, n + 1, done, NULL, e);
}

static int write_message(struct chat *c, struct message *m, struct mo_err *e)
{
    mo_autobuf struct mo_buf doc = {.max = MO_ENTRY_MAX};
    struct mo_span text = mo_span(m->text, m->n);
    struct sure_write w = {.write = put_message, .done = on_message_written};
    struct entry *en = NULL;

    if (!m->stored)
        m->again = !m->is_edit && mo_doubts_know(c, m);

    if (m->is_auto)
        mo_entry_auto(&doc, mo_span_cstr(m->id), mo_span_cstr(m->by), text);
    else
        mo_entry_said(&doc, mo_span_cstr(m->id), mo_span_cstr(m->by), text,
                      mo_chat_images_blocks(c));
    if (m->is_edit)
        mo_branch_cut(c, m->to);
    en = make_entry(&doc, e);
    return en ? write_entry(c, en, &w, m->stored, e) : e->code;
}

void mo_turn_next(struct chat *c)
{
    struct message *m = c->state == CHAT_IDLE ? queue_take(c) : NULL;

    if (m == NULL)
        return;
    if (c->repick)
        mo_chat_repick(c);
    c->turn.saying = m;
    c->turn.usage = (struct mo_llm_usage){0};
    memcpy(c->turn.asker, m->by, sizeof(c->turn.asker));
    mo_turn_begin(c);
    mo_chat_move(c, CHAT_SAVING);
    if (m->is_auto || !mo_chat_images_start(c, mo_span(m->text, m->n)))
        mo_turn_said(c);
}

void mo_turn_said(struct chat *c)
{
    struct message *m = c->turn.saying;
    struct mo_err e;
    int rc = write_message(c, m, &e);

    mo_chat_images_free(c);
    if (rc == 0)
        return;
    c->turn.saying = NULL;
    if (m->is_edit) {
        lose_edit(c, m, &e);
        mo_free(m);
    } else if (m->stored) {
        mo_chat_event_error(c, "state_unavailable", mo_span_cstr(e.msg), 0);
        queue_return(c, m);
    } else {
        mo_chat_ack(&m->ack, "state_unavailable", e.msg);
        mo_free(m);
    }
    mo_turn_end(c);
}

/* --- tool results -------------------------------------------------------- */

static void on_results_written(struct chat *c, void *arg,
                               const struct mo_err *why)
{
    struct call *last = arg; /* its outcome was in the same batch; or NULL */

    if (last)
        mo_chat_calls_outcome_written(last);
    if (why) {
        mo_chat_event_error(c, "state_unavailable", mo_span_cstr(why->msg), 0);
        entry_lost(c);
        return;
    }
    mo_chat_calls_strip(c, last);
    if (c->state != CHAT_ENDING)
        mo_chat_calls_drop(c);
    entry_stored(c);
}

/* The last outcome, its audit row and the results, in one batch. arg: the call
 * with that outcome, or NULL. */
static int put_results(struct chat *c, void *arg, chat_written *done,
                       struct mo_err *e)
{
    struct mo_write w[MO_OUTCOME_WRITES + 1] = {{.at = 0}};
    mo_autobuf struct mo_buf outcome = {.max = MO_STORE_DOC_MAX};
    mo_autobuf struct mo_buf words = {.max = MO_ENTRY_MAX};
    size_t n = arg ? mo_chat_calls_outcome(arg, w, &outcome) : 0;

    if (mo_buf_err(&outcome))
        return mo_fail(e, outcome.err, "results of the calls");
    mo_entry_words(&words, c->transcript.unkept->doc);
    w[n] = write_unkept(c);
    w[n].text = mo_buf_view(&words);
    return mo_chat_write(c, w, n + 1, done, NULL, e);
}

static int write_results(struct chat *c, const struct mo_buf *doc,
                         struct call *last, struct mo_err *e)
{
    struct sure_write w = {
        .write = put_results, .done = on_results_written, .arg = last};
    struct entry *en = make_entry(doc, e);

    return en ? write_entry(c, en, &w, true, e) : e->code;
}

/* Calls of scripts are beside the results: no model is sent them. */
static void put_scripts(const struct chat *c, struct mo_buf *doc)
{
    mo_autobuf struct mo_buf scripts = {.max = MO_ENTRY_MAX};
    struct mo_jw w = mo_jw_object(&scripts);

    mo_script_put_all(&w, c);
    mo_jw_end(&w);
    if (mo_buf_err(doc) || mo_buf_err(&scripts) || scripts.len <= 2 ||
        doc->len + scripts.len > MO_ENTRY_MAX)
        return;
    doc->p[doc->len - 1] = ','; /* in place of the brace */
    mo_buf_span(doc, mo_span_skip(mo_buf_view(&scripts), 1));
}

void mo_turn_results(struct chat *c, const struct mo_entry_result *v, size_t n,
                     struct call *last)
{
    mo_autobuf struct mo_buf doc = {.max = MO_ENTRY_MAX};
    struct mo_err e;
    int rc = 0;

    mo_chat_move(c, CHAT_RESULTS);
    mo_entry_tool(&doc, v, n);
    put_scripts(c, &doc);
    rc = write_results(c, &doc, last, &e);
    if (last)
        last->writing = rc == 0;
    if (rc == 0)
        return;
    if (last)
        mo_chat_calls_outcome_written(last);
    mo_chat_event_error(c, "state_unavailable", mo_span_cstr(e.msg), 0);
    c->turn.stuck = true;
    mo_chat_settle(c);
}

void mo_turn_stuck(struct chat *c)
{
    c->turn.stuck = false;
    if (c->state == CHAT_RESULTS)
        mo_turn_end(c);
}

/* --- storing waiting messages ------------------------------------------- */

static unsigned position_of(const struct chat *c, const struct message *m)
{
    unsigned n = 0;

    mo_list_each (it, &c->queue) {
        n++;
        if (it == &m->node)
            break;
    }
    return n;
}

static void refuse_message(struct chat *c, struct message *m,
                           const struct mo_err *why)
{
    mo_list_del(&m->node);
    c->nqueue--;
    mo_chat_ack(&m->ack, "state_unavailable", why->msg);
    if (why->code == MO_EUNAVAIL)
        mo_doubts_add(c, m, false);
    mo_free(m);
}

static void on_queued(struct chat *c, void *arg, const struct mo_err *why)
{
    struct message *m = arg;
    mo_autobuf struct mo_buf extra = {.max = 256};

    m->writing = false;
    if (why) {
        refuse_message(c, m, why);
        return;
    }
    m->stored = true;
    mo_doubts_over(c, m);
    mo_buf_printf(&extra, "\"queued\":%u,\"messageId\":\"%s\"",
                  position_of(c, m), m->id);
    mo_chat_ack_ok(&m->ack, mo_buf_view(&extra));
}

static void store_message(struct chat *c, struct message *m)
{
    struct mo_write w = {.kind = MO_WRITE_ENTRY, .at = mo_wall_ms()};
    mo_autobuf struct mo_buf doc = {.max = MO_ENTRY_MAX};
    struct mo_err e;
    int rc = 0;

    (void)mo_doubts_know(c, m);
    mo_entry_message(&doc, "queued", mo_span_cstr(m->id), mo_span_cstr(m->by),
                     mo_span(m->text, m->n));
    w.doc = mo_buf_view(&doc);
    rc = mo_buf_err(&doc) ? mo_fail(&e, mo_buf_err(&doc), "a queued message")
                          : mo_chat_write(c, &w, 1, on_queued, m, &e);
    m->writing = rc == 0;
    if (rc < 0)
        refuse_message(c, m, &e);
}

void mo_chat_queue_store(struct chat *c)
{
    if (c->state == CHAT_IDLE || c->settling)
        return; /* the first is taken soon, the others come here then */
    mo_list_each_entry_safe (m, &c->queue, struct message, node) {
        if (!m->stored && !m->writing)
            store_message(c, m);
    }
}

/* --- after a restart ----------------------------------------------------- */

static struct message *read_message(const struct entry *en)
{
    struct message *m = NULL;
    mo_autobuf struct mo_buf text = {.max = MO_CHAT_TEXT_MAX};
    mo_autobuf struct mo_buf id = {.max = ID_MAX - 1};

    if (mo_json_str_buf(mo_json_get(en->doc, "id"), &id) == 0 &&
        mo_entry_text(en->doc, &text) == 0)
        m = mo_zalloc(sizeof(*m) + text.len);
    if (m) {
        memcpy(m->id, id.p, id.len);
        (void)mo_json_str_copy(mo_json_get(en->doc, "by"), m->by,
                               sizeof(m->by));
        m->stored = true;
        m->at = en->at;
        m->n = text.len;
        memcpy(m->text, text.p, text.len);
    }
    return m;
}

/* Messages said since the start are newer: they stay behind it. */
static void put_back(struct chat *c, struct message *m)
{
    struct mo_list *behind = c->queue.next;

    while (behind != &c->queue &&
           mo_container_of(behind, struct message, node)->stored)
        behind = behind->next;
    mo_list_push(behind, &m->node);
    c->nqueue++;
}

static void forget_message(struct chat *c, const struct entry *en)
{
    struct mo_json id = mo_json_get(en->doc, "id");

    mo_list_each_entry_safe (m, &c->queue, struct message, node) {
        if (!m->stored || !mo_json_str_eq(id, mo_span_cstr(m->id)))
            continue;
        mo_list_del(&m->node);
        c->nqueue--;
        mo_free(m);
    }
}

bool mo_chat_queue_restore(struct chat *c, const struct entry *en)
{
    struct message *m = NULL;

    if (en->role != MO_ENTRY_USER && en->role != MO_ENTRY_QUEUED)
        return false;
    forget_message(c, en); /* it was stored twice, or is taken */
    if (en->role == MO_ENTRY_USER)
        return false;
    m = read_message(en);
    if (m)
        put_back(c, m);
    return true;
}

void mo_chat_queue_restored(struct chat *c)
{
    /* Messages said since the start are behind the stored ones. The call may
     * free them, never a stored one. */
    for (struct mo_list *at = c->queue.next; at != &c->queue; at = at->next) {
        const struct message *m = mo_container_of(at, struct message, node);

        if (!m->stored)
            break;
        mo_doubts_restored(c, m);
    }
}
