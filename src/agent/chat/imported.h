/* imported.h - reads an exported conversation (web/api_export.h) back.
 *
 * Pure. The text comes from a stranger. Only members that an export has are
 * accepted, and none twice; everything else is refused with an error that names
 * the entry. So the file has no blocks for a provider (`raw`), no rules, no
 * approvals and no waiting message. Calls and their results are text of the
 * past: each call needs its result, and nothing runs.
 *
 * Entries get new numbers (seq); marks of branches and summaries follow them.
 * A conversation that ends in the middle of a turn gets the missing results and
 * a note, so that opening it asks no model. The name of a person stays only
 * with messages of the importer: others did not say it here.
 *
 * Ownership: the text must outlive the struct. Limits: MO_IMPORTED_MAX bytes,
 * MO_IMPORTED_ENTRIES entries, MO_STORE_DOC_MAX bytes of one. */
#ifndef MO_AGENT_CHAT_IMPORTED_H
#define MO_AGENT_CHAT_IMPORTED_H

#include "agent/chat/about.h"
#include "agent/chat/branch.h"

#define MO_EXPORT_FORMAT    "mcp-orchestrator/conversation"
#define MO_EXPORT_VERSION   1
#define MO_IMPORTED_MAX     ((size_t)32 * 1024 * 1024)
#define MO_IMPORTED_ENTRIES BRANCH_NODES
#define MO_IMPORTED_MODEL   256 /* bytes of the model's id, with the NUL */

struct mo_imported_entry {
    struct mo_json doc;
    uint64_t seq, at; /* in the file */
    size_t before;    /* number of the entry before it on its branch, from 1 */
    enum mo_entry_role role;
    bool has_calls; /* without results so far */
};

struct mo_imported {
    char title[MO_TITLE_MAX + 1], model[MO_IMPORTED_MODEL];
    struct mo_imported_entry *v;
    size_t n, cap;
    size_t tip;        /* the last entry of the current branch, from 1; or 0 */
    uint64_t said;     /* wall ms of the person's last message; or 0 */
    unsigned nclosing; /* entries that end the last turn */
    bool has_open;     /* the first of them has the results of open calls */
};

/* MO_EINVAL: it is no such file; e says why. */
int mo_imported_read(struct mo_span text, struct mo_imported *out,
                     struct mo_err *e);
void mo_imported_fini(struct mo_imported *im);
/* Entries to store: those of the file and the closing ones. */
size_t mo_imported_count(const struct mo_imported *im);
/* Writes the document of the i-th, from 0; who: the importer, or empty. */
void mo_imported_put(const struct mo_imported *im, size_t i, struct mo_span who,
                     struct mo_buf *doc);
uint64_t mo_imported_at(const struct mo_imported *im, size_t i, uint64_t now);

#endif
