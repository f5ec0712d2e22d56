/* entries.c - the entries of the current conversation in memory. The store
 * holds all of them; memory holds what members and models are sent. */
#include "agent/chat/entries.h"

#include "agent/chat/chat_priv.h"
#include "agent/chat/event.h"

#define SHOWN_MAX (4 * CHAT_HISTORY_MAX) /* also inside one turn */

/* An image costs a model as much as so many bytes of text, at most. */
#define IMAGE_COST ((size_t)8 * 1024)

/* Bytes that images take, and how many more than they cost. */
static size_t count_images(struct mo_json list, size_t *over)
{
    size_t n = 0;

    mo_json_each (at, list) {
        if (!mo_entry_is_image(at.val))
            continue;
        n += at.val.n;
        *over += at.val.n > IMAGE_COST ? at.val.n - IMAGE_COST : 0;
    }
    return n;
}

/* Bytes sent to a model. A provider's raw block is sent in place of the parsed
 * one. */
static void count_costs(struct entry *en)
{
    struct mo_json blocks = mo_json_get(en->doc, "blocks");
    struct mo_json results = mo_json_get(en->doc, "results");
    size_t over = 0;

    en->cost = results.n;
    en->media = count_images(blocks, &over);
    mo_json_each (at, blocks) {
        struct mo_json raw = mo_json_get(at.val, "raw");

        en->cost += raw.p ? raw.n : at.val.n;
    }
    mo_json_each (r, results) {
        en->media += count_images(mo_json_get(r.val, "content"), &over);
        over += mo_json_get(r.val, "app").n; /* for the page only */
    }
    en->cost -= over;
}

struct entry *mo_chat_entries_read(struct mo_span doc)
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
    count_costs(en);
    en->role = mo_entry_role(en->doc);
    return en;
}

static void note_summary(struct chat *c, struct entry *en)
{
    if (en->role == MO_ENTRY_SUMMARY &&
        mo_json_u64(mo_json_get(en->doc, "until"), &c->transcript.until) == 0)
        c->transcript.summary = en;
}

void mo_chat_entries_find_summary(struct chat *c)
{
    c->transcript.summary = NULL;
    c->transcript.until = 0;
    mo_list_each_entry (en, &c->transcript.list, struct entry, node)
        note_summary(c, en);
}

/* Adds an entry. Drops the oldest above CHAT_HISTORY_MAX, except entries that a
 * model is still sent; context_window.c keeps those few. */
void mo_chat_entries_add(struct chat *c, struct entry *en)
{
    mo_usage_read(&c->transcript.spent, mo_json_get(en->doc, "usage"));
    en->id = ++c->transcript.last_id;
    mo_list_push(&c->transcript.list, &en->node);
    note_summary(c, en);
    en = mo_list_first(&c->transcript.list, struct entry, node);
    if (++c->transcript.n <= CHAT_HISTORY_MAX ||
        (en->seq > c->transcript.until && c->transcript.n <= SHOWN_MAX))
        return;
    if (c->transcript.summary == en)
        c->transcript.summary = NULL;
    mo_list_del(&en->node);
    mo_free(en);
    c->transcript.n--;
}

int mo_chat_append(struct chat *c, struct mo_span doc)
{
    struct entry *en = mo_chat_entries_read(doc);

    if (en == NULL)
        return MO_ENOMEM;
    mo_chat_entries_add(c, en);
    mo_chat_entries_kept(c, en);
    return 0;
}

void mo_chat_entries_kept(struct chat *c, struct entry *en)
{
    en->seq = c->transcript.seq;
    en->at = mo_wall_ms();
    mo_branches_add(&c->transcript.branches, en->seq, false, 0);
    mo_chat_event_entry(c, en);
    mo_chat_event_branches(c);
}

void mo_chat_entries_lost(struct chat *c, struct entry *en)
{
    mo_list_del(&en->node);
    mo_free(en);
    c->transcript.n--;
}

struct entry *mo_chat_entry_before(const struct chat *c, const struct entry *en)
{
    const struct mo_list *all = &c->transcript.list;

    return mo_list_entry((en ? &en->node : all)->prev, all, struct entry, node);
}

struct entry *mo_chat_entry_after(const struct chat *c, const struct entry *en)
{
    const struct mo_list *all = &c->transcript.list;

    return mo_list_entry((en ? &en->node : all)->next, all, struct entry, node);
}

struct entry *mo_chat_last(struct chat *c)
{
    struct entry *en = mo_chat_entry_before(c, NULL);

    while (en && (en->role == MO_ENTRY_SUMMARY || mo_entry_is_model(en->doc)))
        en = mo_chat_entry_before(c, en);
    return en;
}

void mo_chat_forget_entries(struct chat *c)
{
    mo_list_each_entry_safe (en, &c->transcript.list, struct entry, node) {
        if (en != c->transcript.unkept)
            mo_chat_entries_lost(c, en);
    }
    c->transcript.summary = NULL;
    c->transcript.until = 0;
    mo_branches_reset(&c->transcript.branches, 0);
}
