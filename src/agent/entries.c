/*
 * entries.c - the present conversation in memory, as far back as a page or a
 * model is shown it. The store has all of it.
 */
#include "agent/chat_priv.h"

struct entry *entries_read(struct mo_span doc)
{
    struct entry *en = mo_alloc(sizeof(*en) + doc.n + 1);
    struct mo_json_doc parsed;

    if (en == NULL)
        return NULL;
    memcpy(en->text, doc.p, doc.n);
    if (mo_json_parse(mo_span(en->text, doc.n), 0, &parsed, NULL) < 0) {
        mo_free(en);
        return NULL;
    }
    en->doc = parsed.root;
    en->seq = en->at = 0;
    return en;
}

/* The oldest go when there are too many: the store has them. */
void entries_add(struct chat *c, struct entry *en)
{
    mo_list_push(&c->entries, &en->node);
    if (++c->nentries <= CHAT_HISTORY_MAX)
        return;
    en = mo_list_first(&c->entries, struct entry, node);
    mo_list_del(&en->node);
    mo_free(en);
    c->nentries--;
}

int chat_append(struct chat *c, struct mo_span doc)
{
    struct entry *en = entries_read(doc);

    if (en == NULL)
        return MO_ENOMEM;
    en->seq = c->seq;
    en->at = mo_wall_ms();
    entries_add(c, en);
    event_entry(c, en);
    return 0;
}

void entries_kept(struct chat *c, struct entry *en)
{
    en->seq = c->seq;
    en->at = mo_wall_ms();
    event_entry(c, en);
}

void entries_lost(struct chat *c, struct entry *en)
{
    mo_list_del(&en->node);
    mo_free(en);
    c->nentries--;
}

struct entry *chat_last(struct chat *c)
{
    if (mo_list_empty(&c->entries))
        return NULL;
    return mo_container_of(c->entries.prev, struct entry, node);
}

void chat_forget_entries(struct chat *c)
{
    mo_list_each_safe (it, &c->entries) {
        struct entry *en = mo_container_of(it, struct entry, node);

        if (en != c->unkept)
            entries_lost(c, en);
    }
}
