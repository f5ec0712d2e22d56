/* branching.c - reads the current branch, and the commands that change it: edit
 * an earlier message, answer again, go on, show another branch.
 *
 * They are for a conversation at rest: while a turn runs or messages wait they
 * are refused ("busy"). The state says that a write is under way, so that no
 * turn begins meanwhile. */
#include "agent/chat/branching.h"

#include "agent/chat/branch.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/entries.h"
#include "agent/chat/event.h"
#include "agent/chat/session_memory.h"
#include "agent/chat/turn.h"

#define SWITCH_MARGIN 50 /* entries that may follow before it is read again */

/* --- reading ------------------------------------------------------------- */

/* Sorts one row of the store: into the queue, the branches and `read`. */
static void take_row(struct chat *c, const struct mo_row *row,
                     struct mo_list *read)
{
    struct entry *en = mo_chat_entries_read(row->doc);
    uint64_t to = 0;

    if (en == NULL)
        return;
    en->seq = c->transcript.seq = row->seq;
    en->at = row->at;
    if (en->role == MO_ENTRY_BRANCH &&
        mo_json_u64(mo_json_get(en->doc, "to"), &to) == 0)
        mo_branches_add(&c->transcript.branches, 0, true, to);
    if (en->role == MO_ENTRY_USER)
        c->said_at = en->at > c->said_at ? en->at : c->said_at;
    if (en->role == MO_ENTRY_BRANCH ||
        (c->state == CHAT_OPENING && mo_chat_queue_restore(c, en)) ||
        en->role == MO_ENTRY_QUEUED) {
        mo_free(en);
        return;
    }
    mo_branches_add(&c->transcript.branches, en->seq, false, 0);
    mo_list_push(read, &en->node);
}

void mo_chat_take_rows(struct chat *c, const struct mo_rows *rows)
{
    struct branches *b = &c->transcript.branches;
    struct mo_list read;

    mo_list_init(&read);
    mo_branches_reset(b, rows->n > 0 ? rows->v[0].seq - 1 : 0);
    for (size_t i = 0; i < rows->n; i++)
        take_row(c, &rows->v[i], &read);
    mo_branches_walk(b, b->tip);
    mo_list_drain (en, &read, struct entry, node) {
        const struct branch_node *node = mo_branches_find(b, en->seq);

        if (node ? node->is_on : b->marks == 0) {
            mo_chat_entries_add(c, en);
            continue;
        }
        mo_usage_read(&c->transcript.spent, mo_json_get(en->doc, "usage"));
        mo_free(en);
    }
}

/* --- at rest ------------------------------------------------------------- */

static bool is_at_rest(const struct chat *c, struct ack *ack)
{
    if (c->state == CHAT_IDLE && c->nqueue == 0 && c->sleep == NULL &&
        !c->is_leaving)
        return true;
    mo_chat_ack(ack, "busy", "a turn is running; stop it first");
    return false;
}

/* The message of that seq; 0: the last. */
static struct entry *find_message(const struct chat *c, uint64_t seq)
{
    struct entry *en = mo_chat_entry_before(c, NULL);

    while (en && (en->role != MO_ENTRY_USER || (seq > 0 && en->seq != seq)))
        en = mo_chat_entry_before(c, en);
    return en;
}

static void refuse_unknown(struct ack *ack)
{
    mo_chat_ack(ack, "not_found",
                "there is no such message in this conversation");
}

/* --- edit ---------------------------------------------------------------- */

void mo_chat_edit(struct mo_member *m, const struct mo_wish *w, struct ack *ack)
{
    struct chat *c = m->chat;
    const struct entry *en = NULL;
    const struct branch_node *node = NULL;
    struct message *msg = NULL;

    if (!is_at_rest(c, ack))
        return;
    en = w->seq > 0 ? find_message(c, w->seq) : NULL;
    if (en)
        node = mo_branches_find(&c->transcript.branches, en->seq);
    if (node == NULL) {
        refuse_unknown(ack);
        return;
    }
    msg = mo_chat_message_new(m, w->text, ack);
    if (msg == NULL)
        return;
    msg->is_edit = true;
    msg->to = node->parent;
    mo_chat_queue_push(c, msg);
    mo_chat_settle(c);
}

/* --- answer again, go on ------------------------------------------------- */

static void ack_turn(struct chat *c, struct ack *ack)
{
    mo_autobuf struct mo_buf extra = {.max = 64};

    mo_buf_printf(&extra, "\"turnId\":\"%s\"", c->turn.id);
    mo_chat_ack_ok(ack, mo_buf_view(&extra));
}

static void begin_turn(struct chat *c, struct ack *ack)
{
    if (c->repick)
        mo_chat_repick(c);
    c->turn.usage = (struct mo_llm_usage){0};
    mo_chat_recall_asker(c);
    mo_turn_begin(c);
    ack_turn(c, ack);
    mo_chat_event_history(c);
    if (c->turn.cancel)
        mo_turn_stopped(c);
    else
        mo_turn_ask(c);
}

struct marking { /* a mark that is being written */
    struct ack ack;
    uint64_t to;
    bool reads; /* the branch is read from the store then */
};

static void rest_again(struct chat *c)
{
    c->turn.cancel = false; /* there was no turn to stop */
    mo_chat_move(c, CHAT_IDLE);
}

static void read_again(struct chat *c, struct ack *ack)
{
    mo_chat_forget_entries(c);
    c->transcript.spent = (struct mo_llm_usage){0};
    c->rereading = *ack;
    mo_chat_read_history(c);
}

static void on_marked(struct chat *c, void *arg, const struct mo_err *why)
{
    struct marking k = *(struct marking *)arg;

    mo_free(arg);
    if (c->state == CHAT_ENDING) {
        mo_chat_ack(&k.ack, "closed", "the session has ended");
    } else if (why) {
        mo_chat_ack(&k.ack, "state_unavailable", why->msg);
        rest_again(c);
    } else if (k.reads) {
        read_again(c, &k.ack);
    } else {
        mo_branch_cut(c, k.to);
        begin_turn(c, &k.ack);
    }
    mo_chat_settle(c);
}

static void write_mark(struct chat *c, const struct marking *what)
{
    struct mo_write w = {.kind = MO_WRITE_ENTRY, .at = mo_wall_ms()};
    mo_autobuf struct mo_buf doc = {.max = 256};
    struct marking *k = mo_new(struct marking);
    struct mo_err e;

    mo_fail(&e, MO_ENOMEM, "out of memory");
    mo_branch_mark(&doc, what->to);
    w.doc = mo_buf_view(&doc);
    if (k && mo_buf_err(&doc) == 0) {
        *k = *what;
        mo_chat_move(c, CHAT_SAVING);
        if (mo_chat_write(c, &w, 1, on_marked, k, &e) == 0)
            return;
        rest_again(c);
    }
    mo_free(k);
    k = NULL;
    mo_chat_ack(&(struct ack){what->ack.fn, what->ack.ctx}, "state_unavailable",
                e.msg);
}

void mo_chat_regenerate(struct mo_member *m, const struct mo_wish *w,
                        struct ack *ack)
{
    struct chat *c = m->chat;
    const struct entry *en = NULL;

    if (!is_at_rest(c, ack))
        return;
    en = find_message(c, w->seq);
    if (en == NULL) {
        refuse_unknown(ack);
        return;
    }
    mo_chat_take_payer(c, m);
    write_mark(c, &(struct marking){.ack = *ack, .to = en->seq});
}

/* A turn that ended without an answer is asked again; after an answer the model
 * is asked to go on. */
void mo_chat_continue(struct mo_member *m, const struct mo_wish *w,
                      struct ack *ack)
{
    struct chat *c = m->chat;
    const struct entry *en = mo_chat_entry_before(c, NULL);
    struct message *msg = NULL;

    (void)w;
    if (!is_at_rest(c, ack))
        return;
    while (en && !mo_entry_for_model(en->role))
        en = mo_chat_entry_before(c, en);
    if (en == NULL) {
        mo_chat_ack(ack, "bad_request", "there is nothing to continue");
        return;
    }
    if (en->role != MO_ENTRY_ASSISTANT) {
        mo_chat_take_payer(c, m);
        mo_chat_move(c, CHAT_SAVING);
        begin_turn(c, ack);
        return;
    }
    msg = mo_chat_message_new(m, MO_SPAN("Continue exactly where you stopped."),
                              ack);
    if (msg == NULL)
        return;
    msg->is_auto = true;
    mo_chat_queue_push(c, msg);
    mo_chat_settle(c);
}

/* --- another branch ------------------------------------------------------ */

void mo_chat_switch_branch(struct mo_member *m, const struct mo_wish *w,
                           struct ack *ack)
{
    struct chat *c = m->chat;
    struct branches *b = &c->transcript.branches;
    uint64_t to = 0;

    if (!is_at_rest(c, ack))
        return;
    if (mo_branches_find(b, w->seq) == NULL) {
        refuse_unknown(ack);
        return;
    }
    to = mo_branches_newest(b, w->seq);
    if (to + CHAT_HISTORY_MAX < c->transcript.seq + SWITCH_MARGIN) {
        mo_chat_ack(ack, "too_old", "that branch is too far back");
        return;
    }
    write_mark(c, &(struct marking){.ack = *ack, .to = to, .reads = true});
}

void mo_chat_reread(struct chat *c)
{
    struct ack ack = c->rereading;

    c->rereading = (struct ack){NULL, NULL};
    rest_again(c);
    mo_chat_event_history(c);
    mo_chat_ack_ok(&ack, (struct mo_span){NULL, 0});
}
