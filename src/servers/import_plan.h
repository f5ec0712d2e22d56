/* import_plan.h - plans the import of another program's servers and applies the
 * plan.
 *
 * The command `mcp import` and the page use the same plan. An existing server
 * is not overwritten unless `replace` is set, nor is an existing secret with
 * another value.
 *
 * Ownership: everything in a plan is in its own arena; mo_plan_fini() wipes the
 * keys. */
#ifndef MO_SERVERS_IMPORT_PLAN_H
#define MO_SERVERS_IMPORT_PLAN_H

#include "config/file_edit.h"
#include "servers/import.h"

enum mo_plan_action {
    MO_PLAN_ADD,
    MO_PLAN_SAME,
    MO_PLAN_DIFFERS, /* our entry is kept */
    MO_PLAN_REPLACE,
    MO_PLAN_CANNOT,
};

struct mo_plan {
    /* Set by the caller. */
    bool store;   /* move keys to the secret store */
    bool replace; /* existing servers and secrets may be replaced */
    struct mo_arena a;
    struct mo_import im;
    enum mo_plan_action *todo; /* one per server of im */
    size_t writes;             /* servers to write */
    size_t keys;               /* keys with a value */
    size_t asks;               /* keys that the person must set */
};

/* theirs: text of the other file; ours: text of our configuration. On failure
 * nothing must be freed. */
int mo_plan_make(struct mo_plan *p, struct mo_span theirs, struct mo_span ours,
                 const char *home, struct mo_err *e);
void mo_plan_fini(struct mo_plan *p);

const char *mo_plan_word(enum mo_plan_action a);
/* True if server i will be written. */
bool mo_plan_writes(const struct mo_plan *p, size_t i);

/* Writes
 * {"file","format","written","servers":[{"name","was","action","why","leftOut","secrets":[{"name","known"}]}]};
 * file may be NULL. */
void mo_plan_json(const struct mo_plan *p, const char *file, bool written,
                  struct mo_buf *b);

/* Stores the keys in the secret store of cfg and edits r; the caller saves
 * r. */
int mo_plan_write(const struct mo_plan *p, const struct mo_config *cfg,
                  struct mo_file_edit *r, struct mo_err *e);

#endif
