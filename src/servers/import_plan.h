/* import_plan.h - what taking over another program's servers would do to ours,
 * and doing it.
 *
 * One place for the command and for the page: both show the same plan. A
 * server of ours is never written over unless `replace` says so, nor is a
 * secret of that name with another value.
 *
 * Ownership: everything in a plan is in its own arena; keys are wiped by
 * mo_plan_fini(). */
#ifndef MO_SERVERS_IMPORT_PLAN_H
#define MO_SERVERS_IMPORT_PLAN_H

#include "config/file_edit.h"
#include "servers/import.h"

enum mo_plan_action {
    MO_PLAN_ADD,
    MO_PLAN_SAME,
    MO_PLAN_DIFFERS, /* ours is kept */
    MO_PLAN_REPLACE,
    MO_PLAN_CANNOT,
};

struct mo_plan {
    bool store, replace; /* set by the caller: keys into the secret store;
                          * servers and secrets of ours may be replaced */
    struct mo_arena a;
    struct mo_import im;
    enum mo_plan_action *todo; /* for each of im */
    size_t writes, keys, asks; /* servers; keys that are there; that are not */
};

/* theirs: the file of the other program; ours: the configuration as it is.
 * On failure nothing is to be freed. */
int mo_plan_make(struct mo_plan *p, struct mo_span theirs, struct mo_span ours,
                 const char *home, struct mo_err *e);
void mo_plan_fini(struct mo_plan *p);

const char *mo_plan_word(enum mo_plan_action a);
/* Is anything of this one to be written? */
bool mo_plan_writes(const struct mo_plan *p, size_t i);

/* {"file","format","written","servers":[{"name","was","action","why",
 * "leftOut","secrets":[{"name","known"}]}]}; file may be NULL. */
void mo_plan_json(const struct mo_plan *p, const char *file, bool written,
                  struct mo_buf *b);

/* Keys into the store of cfg, servers into r, which is not saved. */
int mo_plan_write(const struct mo_plan *p, const struct mo_config *cfg,
                  struct mo_file_edit *r, struct mo_err *e);

#endif
