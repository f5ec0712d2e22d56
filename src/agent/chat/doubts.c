/* doubts.c - see doubts.h. */
#include "agent/chat/doubts.h"

#include "agent/chat/said.h"
#include "agent/chat/turn.h"

struct doubt {
    struct mo_list node;
    char id[ID_MAX];
    char by[MO_PERSON_MAX];
    uint64_t since; /* ns */
    uint64_t after; /* seq of the last entry that was stored before it */
    bool begins;    /* asked for as a user entry; else as a queued one */
    bool found;     /* it is stored, its sender does not know */
    size_t n;
    char text[];
};

static void forget(struct chat *c, struct doubt *d)
{
    mo_list_del(&d->node);
    mo_free(d);
    c->ndoubts--;
}

static void forget_old(struct chat *c)
{
    uint64_t now = mo_now_ns();

    mo_list_each_entry_safe (d, &c->doubts, struct doubt, node) {
        if (now - d->since > DOUBT_MS * UINT64_C(1000000) && d != c->settling)
            forget(c, d);
    }
}

static struct doubt *find_words(struct chat *c, const char *by,
                                struct mo_span text)
{
    forget_old(c);
    mo_list_each_entry (d, &c->doubts, struct doubt, node) {
        if (strcmp(d->by, by) == 0 && mo_span_eq(mo_span(d->text, d->n), text))
            return d;
    }
    return NULL;
}

static struct doubt *find_message(struct chat *c, const struct message *m)
{
    return find_words(c, m->by, mo_span(m->text, m->n));
}

void mo_doubts_over(struct chat *c, const struct message *m)
{
    mo_list_each_entry_safe (d, &c->doubts, struct doubt, node) {
        if (strcmp(d->id, m->id) == 0)
            forget(c, d);
    }
}

static struct doubt *doubt_new(struct chat *c, struct mo_span text)
{
    struct doubt *d = mo_zalloc(sizeof(*d) + text.n);

    if (d == NULL)
        return NULL;
    if (c->ndoubts == DOUBTS_MAX)
        forget(c, mo_list_first(&c->doubts, struct doubt, node));
    if (text.n > 0)
        memcpy(d->text, text.p, text.n);
    d->n = text.n;
    d->since = mo_now_ns();
    d->after = c->transcript.seq;
    mo_list_push(&c->doubts, &d->node);
    c->ndoubts++;
    return d;
}

void mo_doubts_add(struct chat *c, const struct message *m, bool begins)
{
    struct doubt *d = NULL;

    mo_doubts_over(c, m);
    d = doubt_new(c, mo_span(m->text, m->n));
    if (d == NULL)
        return;
    memcpy(d->id, m->id, sizeof(d->id));
    memcpy(d->by, m->by, sizeof(d->by));
    d->begins = begins;
}

bool mo_doubts_know(struct chat *c, struct message *m)
{
    const struct doubt *d = find_message(c, m);

    if (d == NULL || d->found)
        return false;
    memcpy(m->id, d->id, sizeof(m->id));
    return true;
}

bool mo_doubts_was_said(struct chat *c, const char *by, struct mo_span text,
                        struct ack *ack)
{
    struct doubt *d = find_words(c, by, text);

    if (d == NULL || !d->found)
        return false;
    mo_chat_ack_stored(ack, mo_span_cstr(d->id), 0);
    forget(c, d);
    return true;
}

void mo_doubts_drop(struct chat *c)
{
    c->settling = NULL;
    mo_list_drain (d, &c->doubts, struct doubt, node)
        mo_free(d);
    c->ndoubts = 0;
}

/* --- asking the store ---------------------------------------------------- */

static const struct mo_row *find_row(const struct mo_rows *rows, const char *id)
{
    struct mo_json_doc d;

    for (size_t i = 0; i < rows->n; i++)
        if (mo_json_parse(rows->v[i].doc, 0, &d, NULL) == 0 &&
            mo_entry_role(d.root) == MO_ENTRY_USER &&
            mo_json_str_eq(mo_json_get(d.root, "id"), mo_span_cstr(id)))
            return &rows->v[i];
    return NULL;
}

/* Messages that came while the store was asked, with the same words. */
static void acknowledge_waiting(struct chat *c, struct doubt *d)
{
    bool is_known = false;

    mo_list_each_entry_safe (m, &c->queue, struct message, node) {
        if (m->stored || strcmp(m->by, d->by) != 0 ||
            !mo_span_eq(mo_span(m->text, m->n), mo_span(d->text, d->n)))
            continue;
        mo_chat_ack_stored(&m->ack, mo_span_cstr(d->id), 0);
        mo_list_del(&m->node);
        c->nqueue--;
        mo_free(m);
        is_known = true;
    }
    if (is_known) /* the same words are another message from now on */
        forget(c, d);
}

/* at: when it was stored, wall ms. */
static struct doubt *doubt_found(struct chat *c, uint64_t at,
                                 struct mo_span text)
{
    struct doubt *d = at + DOUBT_MS < mo_wall_ms() ? NULL : doubt_new(c, text);

    if (d)
        d->found = true;
    return d;
}

void mo_doubts_resumed(struct chat *c, const struct entry *en)
{
    mo_autobuf struct mo_buf text = {.max = MO_CHAT_TEXT_MAX};
    struct doubt *d = NULL;

    if (mo_entry_text(en->doc, &text) == 0)
        d = doubt_found(c, en->at, mo_buf_view(&text));
    if (d == NULL)
        return;
    (void)mo_json_str_copy(mo_json_get(en->doc, "id"), d->id, sizeof(d->id));
    (void)mo_json_str_copy(mo_json_get(en->doc, "by"), d->by, sizeof(d->by));
    acknowledge_waiting(c, d);
}

void mo_doubts_restored(struct chat *c, const struct message *m)
{
    struct doubt *d = doubt_found(c, m->at, mo_span(m->text, m->n));

    if (d == NULL)
        return;
    memcpy(d->id, m->id, sizeof(d->id));
    memcpy(d->by, m->by, sizeof(d->by));
    acknowledge_waiting(c, d);
}

/* It is stored: its turn begins, as after a restart. */
static void adopt(struct chat *c, struct doubt *d, const struct mo_row *row)
{
    c->transcript.seq = row->seq;
    if (mo_chat_append(c, row->doc) < 0) {
        mo_chat_fail(c, mo_error(MO_ENOMEM, "out of memory"));
        return;
    }
    d->found = true;
    if (c->repick)
        mo_chat_repick(c);
    c->turn.usage = (struct mo_llm_usage){0};
    memcpy(c->turn.asker, d->by, sizeof(c->turn.asker));
    acknowledge_waiting(c, d);
    mo_turn_begin(c);
    if (c->turn.cancel)
        mo_turn_stopped(c);
    else
        mo_turn_ask(c);
}

/* Nothing of these was written. */
static void refuse_waiting(struct chat *c, const struct mo_err *why)
{
    mo_list_each_entry_safe (m, &c->queue, struct message, node) {
        if (m->stored || m->writing)
            continue;
        mo_list_del(&m->node);
        c->nqueue--;
        mo_chat_ack(&m->ack, "state_unavailable", why->msg);
        mo_free(m);
    }
    c->stalled = c->nqueue > 0;
}

static void rest(struct chat *c)
{
    c->turn.cancel = false;
    mo_chat_move(c, CHAT_IDLE);
}

static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct chat *c = ctx;
    struct doubt *d = mo_take_ptr(&c->settling);
    const struct mo_row *row = why ? NULL : find_row(rows, d ? d->id : "");

    c->writes--;
    if (c->state == CHAT_ENDING || d == NULL) {
        mo_chat_settle(c);
        return;
    }
    if (row) {
        adopt(c, d, row);
    } else {
        rest(c);
        if (why)
            refuse_waiting(c, why);
        else
            forget(c, d);
    }
    mo_chat_settle(c);
}

static bool ask(struct chat *c, struct doubt *d)
{
    struct mo_read r = {.kind = MO_READ_HISTORY,
                        .session = mo_span_cstr(c->id),
                        .after = d->after};
    struct mo_err e;

    c->settling = d;
    mo_chat_move(c, CHAT_SAVING);
    if (mo_store_read(c->agent->o.store, &r, on_rows, c, &e) == 0) {
        c->writes++;
        return true;
    }
    c->settling = NULL;
    rest(c);
    refuse_waiting(c, &e);
    return true;
}

bool mo_doubts_settle(struct chat *c, const struct message *m)
{
    const struct doubt *same = m->stored ? NULL : find_message(c, m);

    mo_list_each_entry (d, &c->doubts, struct doubt, node) {
        if (d->begins && !d->found && d != same)
            return ask(c, d);
    }
    return false;
}
