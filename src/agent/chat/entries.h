/* entries.h - the entries of the current conversation in memory.
 *
 * The store holds all entries; memory holds what members and models are sent.
 * Ownership: an entry belongs to the chat from mo_chat_entries_add() on; before
 * that it is freed with mo_free().
 * Limit: CHAT_HISTORY_MAX entries, except those that a model is still sent. */
#ifndef MO_AGENT_CHAT_ENTRIES_H
#define MO_AGENT_CHAT_ENTRIES_H

#include "agent/chat/entry.h"
#include "base/list.h"

struct chat;

#define CHAT_HISTORY_MAX 1000

struct entry {
    struct mo_list node;
    uint64_t seq, at; /* seq 0: it is being written; at: wall ms */
    size_t cost;      /* estimated bytes sent to a model; of text */
    size_t media;     /* bytes of images */
    enum mo_entry_role role;
    uint64_t id; /* unique within the chat */
    struct mo_json doc;
    char text[];
};

/* Parses and copies a document. NULL: out of memory, or not JSON. */
struct entry *mo_chat_entries_read(struct mo_span doc);
void mo_chat_entries_add(struct chat *c, struct entry *en);
/* Adds a document that is already stored and sends it to the members. The
 * document is copied. */
int mo_chat_append(struct chat *c, struct mo_span doc);
/* The entry is stored: sets its seq and sends it to the members. */
void mo_chat_entries_kept(struct chat *c, struct entry *en);
void mo_chat_entries_lost(struct chat *c, struct entry *en); /* frees it */
/* The neighbour of en; en NULL: the newest, or the oldest. NULL: none. */
struct entry *mo_chat_entry_before(const struct chat *c,
                                   const struct entry *en);
struct entry *mo_chat_entry_after(const struct chat *c, const struct entry *en);
/* The newest entry that shows where the turn is: no summary, and no change of
 * the model; or NULL. */
struct entry *mo_chat_last(struct chat *c);
void mo_chat_entries_find_summary(struct chat *c); /* some are gone */
/* Frees all entries except one that is being written. */
void mo_chat_forget_entries(struct chat *c);

#endif
