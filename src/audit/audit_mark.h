/* audit_mark.h - the last row of the log's file as the store remembers it.
 *
 * The store may be on another machine, and is another file in any case: a log
 * that was cut, brought back or removed as a whole contradicts it. Only the
 * last row is remembered, about 50 ms after it was written. */
#ifndef MO_AUDIT_AUDIT_MARK_H
#define MO_AUDIT_AUDIT_MARK_H

#include "audit/audit_file.h"
#include "store/store.h"

#define MO_AUDIT_MARK_ID 64

struct mo_audit_mark {
    char id[MO_AUDIT_MARK_ID]; /* of the mark, for host and directory */
    struct mo_store *store;
    struct mo_audit_witness last; /* as the store has it */
    bool is_read;
    struct mark_job *job; /* an operation under way */
    void (*ready)(void *ctx);
    void *ctx;
};

void mo_audit_mark_init(struct mo_audit_mark *m, const char *dir);
/* Reads the mark; then ready(ctx) is called once, later, unless the store fails
 * or is detached. */
void mo_audit_mark_attach(struct mo_audit_mark *m, struct mo_store *s,
                          void (*ready)(void *ctx), void *ctx);
void mo_audit_mark_detach(struct mo_audit_mark *m);
/* Remembers a newer row. Nothing is written before the mark was read: it may be
 * ahead of a file that was cut. */
void mo_audit_mark_put(struct mo_audit_mark *m,
                       const struct mo_audit_witness *last);

/* For a reader of the store. False: it is no mark. */
void mo_audit_mark_id(const char *dir, char out[MO_AUDIT_MARK_ID]);
bool mo_audit_mark_read(struct mo_span doc, struct mo_audit_witness *out);

#endif
