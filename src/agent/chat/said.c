/* said.c - see said.h. */
#include "agent/chat/said.h"

#include "agent/chat/entries.h"

bool mo_chat_message_id_ok(struct mo_span id)
{
    return id.n == MO_MESSAGE_ID && mo_span_only(id, MO_ALNUM "_-");
}

/* The message is not stored yet: its new sender gets the acknowledgement. */
static void replace_ack(struct message *m, struct ack *ack)
{
    mo_chat_ack(&m->ack, "closed", "the message was sent again");
    m->ack = *ack;
}

void mo_chat_ack_stored(struct ack *ack, struct mo_span id, unsigned queued)
{
    mo_autobuf struct mo_buf extra = {.max = 256};

    if (queued > 0)
        mo_buf_printf(&extra, "\"queued\":%u,", queued);
    mo_buf_printf(&extra, "\"messageId\":\"%.*s\"", (int)id.n, id.p);
    mo_chat_ack_ok(ack, mo_buf_view(&extra));
}

static bool is_queued(struct chat *c, struct mo_span id, struct ack *ack)
{
    unsigned at = 0;

    mo_list_each_entry (m, &c->queue, struct message, node) {
        at++;
        if (!mo_span_is(id, m->id))
            continue;
        if (m->stored)
            mo_chat_ack_stored(ack, id, at);
        else
            replace_ack(m, ack);
        return true;
    }
    return false;
}

static bool is_entry(const struct chat *c, struct mo_span id)
{
    const struct entry *en = mo_chat_entry_before(c, NULL);

    for (; en; en = mo_chat_entry_before(c, en))
        if (en->role == MO_ENTRY_USER &&
            mo_json_str_eq(mo_json_get(en->doc, "id"), id))
            return true;
    return false;
}

bool mo_chat_was_said(struct chat *c, struct mo_span id, struct ack *ack)
{
    struct message *now = c->turn.saying;

    if (now && mo_span_is(id, now->id)) {
        if (now->stored)
            mo_chat_ack_stored(ack, id, 0);
        else
            replace_ack(now, ack);
        return true;
    }
    if (is_queued(c, id, ack))
        return true;
    if (!is_entry(c, id))
        return false;
    mo_chat_ack_stored(ack, id, 0);
    return true;
}
