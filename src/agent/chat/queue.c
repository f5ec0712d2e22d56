/* queue.c - messages that wait while a turn is under way.
 *
 * A message that has to wait is stored at once, as an entry with the role
 * "queued", and acknowledged. When its turn comes it is stored as the user
 * entry with the same id (agent/chat/write_ahead.c). After a restart the
 * messages that still wait are the queued entries without a user entry of the
 * same id.
 *
 * A queued entry is not part of the conversation: no model and no page is
 * shown it. */
#include "agent/chat/queue.h"

#include "agent/chat/chat_write.h"
#include "agent/chat/entries.h"
#include "agent/chat/event.h"
#include "agent/chat/write_ahead.h"

void mo_chat_queue_push(struct chat *c, struct message *m)
{
    mo_list_push(&c->queue, &m->node);
    c->nqueue++;
    c->stalled = false;
}

struct message *mo_chat_queue_take(struct chat *c)
{
    struct message *m = mo_list_first(&c->queue, struct message, node);

    if (m == NULL || m->writing || c->stalled)
        return NULL;
    mo_list_del(&m->node);
    c->nqueue--;
    return m;
}

void mo_chat_queue_return(struct chat *c, struct message *m)
{
    m->again = true;
    mo_list_push(c->queue.next, &m->node);
    c->nqueue++;
    c->stalled = true;
}

void mo_chat_queue_drop(struct chat *c)
{
    mo_list_drain (m, &c->queue, struct message, node) {
        mo_chat_ack(&m->ack, "closed",
                    "the session ended before this was read");
        mo_free(m);
    }
    c->nqueue = 0;
}

/* --- storing ------------------------------------------------------------- */

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

static void refuse(struct chat *c, struct message *m, const struct mo_err *why)
{
    mo_list_del(&m->node);
    c->nqueue--;
    mo_chat_ack(&m->ack, "state_unavailable", why->msg);
    if (why->code == MO_EUNAVAIL)
        mo_turn_unsure(c, m);
    else
        mo_free(m);
}

static void on_stored(struct chat *c, void *arg, const struct mo_err *why)
{
    struct message *m = arg;
    mo_autobuf struct mo_buf extra = {.max = 256};

    m->writing = false;
    if (why) {
        refuse(c, m, why);
        return;
    }
    m->stored = true;
    mo_turn_unsure(c, NULL);
    mo_buf_printf(&extra, "\"queued\":%u,\"messageId\":\"%s\"",
                  position_of(c, m), m->id);
    mo_chat_ack_ok(&m->ack, mo_buf_view(&extra));
}

static void store(struct chat *c, struct message *m)
{
    struct mo_write w = {.kind = MO_WRITE_ENTRY, .at = mo_wall_ms()};
    mo_autobuf struct mo_buf doc = {.max = MO_ENTRY_MAX};
    struct mo_err e;
    int rc = 0;

    (void)mo_turn_is_again(c, m);
    mo_entry_message(&doc, "queued", mo_span_cstr(m->id),
                     mo_span(m->text, m->n));
    w.doc = mo_buf_view(&doc);
    rc = mo_buf_err(&doc) ? mo_fail(&e, mo_buf_err(&doc), "a queued message")
                          : mo_chat_write(c, &w, 1, on_stored, m, &e);
    m->writing = rc == 0;
    if (rc < 0)
        refuse(c, m, &e);
}

void mo_chat_queue_store(struct chat *c)
{
    if (c->state == CHAT_IDLE)
        return; /* the first is taken now, the others come here then */
    mo_list_each_entry_safe (m, &c->queue, struct message, node) {
        if (!m->stored && !m->writing)
            store(c, m);
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
        m->stored = true;
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

static void forget(struct chat *c, const struct entry *en)
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
    forget(c, en); /* it was stored twice, or is taken */
    if (en->role == MO_ENTRY_USER)
        return false;
    m = read_message(en);
    if (m)
        put_back(c, m);
    return true;
}
