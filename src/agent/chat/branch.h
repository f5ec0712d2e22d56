/* branch.h - the branches of a conversation.
 *
 * Entries are only ever appended. A mark says that the conversation goes on
 * behind an earlier entry:
 *
 *   {"role":"branch","to":SEQ}     0: before the first
 *
 * So the entry before any other is the one stored before it, unless a mark
 * stands between them. The current branch is read backwards: begin with the
 * last entry; at a mark, go on at the entry it names. Nothing is changed or
 * removed, and one append is what changes the branch, so a crash leaves the old
 * one or the new one.
 *
 * Queued entries belong to no branch. Seqs grow along every branch.
 *
 * Ownership: a chat has one struct branches, of the entries it has read. An
 * entry from before those counts as the beginning. Limit: BRANCH_NODES, then
 * the older half is forgotten. */
#ifndef MO_AGENT_CHAT_BRANCH_H
#define MO_AGENT_CHAT_BRANCH_H

#include "agent/chat/entry.h"
#include "store/store.h"

#define BRANCH_NODES 65536

struct branch_node {
    uint64_t seq, parent; /* parent 0: it is the first */
    bool is_on;           /* scratch */
};

struct branches {
    struct branch_node *v; /* by seq */
    size_t n, cap;
    uint64_t tip; /* seq of the last entry of the current branch; 0: none */
    unsigned marks;
};

void mo_branches_fini(struct branches *b);
void mo_branches_reset(struct branches *b, uint64_t tip);
/* The next entry of the store; mark: it is one, and names `to`. Without memory
 * the entry has no alternatives. */
void mo_branches_add(struct branches *b, uint64_t seq, bool mark, uint64_t to);
/* Sets is_on of the entries of the branch that ends there. */
void mo_branches_walk(struct branches *b, uint64_t tip);
struct branch_node *mo_branches_find(const struct branches *b, uint64_t seq);
/* The last entry that was stored behind this one or is it. */
uint64_t mo_branches_newest(struct branches *b, uint64_t seq);
/* Writes an array: {"seq":SEQ,"of":[SEQ,...]} for each entry of the current
 * branch that has alternatives. */
void mo_branches_put(struct branches *b, struct mo_jw *w);

void mo_branch_mark(struct mo_buf *b, uint64_t to); /* the document of a mark */

struct chat;
struct message;
struct mo_write;

/* Entries in memory that are behind that one go, and the tip is that one. */
void mo_branch_cut(struct chat *c, uint64_t to);

#endif
