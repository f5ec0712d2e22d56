/* audit.h - the audit log: who called which tool, who allowed it, and the
 * outcome.
 *
 * Every row is written twice: to the store (for queries, until it expires) and
 * to the chained file (audit_file.h, to prove that no row was changed). Rows
 * that others write to the store's audit log (conversations, tools tried on the
 * page) are copied to the file too; the store reports each of them.
 *
 * A row has the digest and the length of the arguments, and the arguments
 * themselves only if `audit.arguments` is set. It never has results. Secrets
 * registered with the log (base/log.h) are blanked.
 *
 * Rows are written in groups, after the call they are about. Only a person's
 * approval is waited for: mo_audit_sure().
 *
 * Limit: without a store the first BACKLOG rows wait for one; later rows are in
 * the file only. */
#ifndef MO_AUDIT_AUDIT_H
#define MO_AUDIT_AUDIT_H

#include "audit/audit_file.h"
#include "audit/audit_row.h"
#include "config/config.h"

struct mo_audit;

int mo_audit_open(struct mo_loop *l, const struct mo_config *cfg,
                  struct mo_audit **out, struct mo_err *e);
void mo_audit_close(struct mo_audit *a, void (*gone)(void *ctx), void *ctx);
void mo_audit_config(struct mo_audit *a, const struct mo_config *cfg);
/* Sets the store that gets the rows. Call it with NULL before the store is
 * closed. */
void mo_audit_store(struct mo_audit *a, struct mo_store *s);

/* A call of the gateway that a person approved and that is about to run, or
 * that is over. args: as they were shown, or empty. who: the person who
 * decided, or NULL. */
void mo_audit_call(struct mo_audit *a, enum mo_audit_step step,
                   const struct mo_gw_case *k, struct mo_span args,
                   const char *who);
void mo_audit_routing(struct mo_audit *a, const struct mo_gw_routing *r);
void mo_audit_lookup(struct mo_audit *a, const struct mo_audit_lookup *l);
void mo_audit_note(struct mo_audit *a, const struct mo_audit_row *r);

/* Calls done() once, later, when all rows so far are synced to disk, or with
 * the error. */
int mo_audit_sure(struct mo_audit *a, mo_done_fn *done, void *ctx,
                  struct mo_err *e);
struct mo_audit_file_stats mo_audit_stats(const struct mo_audit *a);

/* Verifies the files on a worker thread and calls done() once, later, with the
 * report as JSON. MO_EBUSY: a verification is running. */
int mo_audit_verify(struct mo_audit *a,
                    void (*done)(void *arg, struct mo_span json,
                                 const struct mo_err *why),
                    void *arg, struct mo_err *e);

#endif
