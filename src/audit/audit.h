/* audit.h - the audit log: who called which tool, who allowed it, and the
 * outcome.
 *
 * Every row is written twice: to the store (for queries, until it expires) and
 * to the chained file (audit_file.h, to prove that no row was changed). Rows
 * that others write to the store's audit log (conversations, tools tried on the
 * page) are copied to the file too; the store reports each of them. The store
 * also remembers the last row of the file.
 *
 * A row has the digest and the length of the arguments, and the arguments
 * themselves only if `audit.arguments` is set. It never has results. Secrets
 * registered with the log (base/log.h) are blanked.
 *
 * The record comes first:
 *   - a call that a rule allowed leaves after mo_audit_begin(): its row is with
 *     the kernel (audit_journal.h);
 *   - what a person decided, a server that is added, changed, removed or
 *     tested: after mo_audit_sure(), mo_audit_first() or mo_audit_first_now(),
 *     when the row is synced to disk.
 * If that fails, the action does not happen. Other rows are written in groups,
 * after the call they are about.
 *
 * Limit: without a store the first BACKLOG rows wait for one; later rows are in
 * the file only. */
#ifndef MO_AUDIT_AUDIT_H
#define MO_AUDIT_AUDIT_H

#include "audit/audit_file.h"
#include "audit/audit_journal.h"
#include "audit/audit_row.h"
#include "config/config.h"

struct mo_audit;

int mo_audit_open(struct mo_loop *l, const struct mo_config *cfg,
                  struct mo_audit **out, struct mo_err *e);
void mo_audit_close(struct mo_audit *a, void (*gone)(void *ctx), void *ctx);
void mo_audit_config(struct mo_audit *a, const struct mo_config *cfg);
/* True if rows have arguments. a: NULL means false. */
bool mo_audit_has_arguments(const struct mo_audit *a);
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
/* A connection of a box has ended or was refused. a: NULL does nothing. */
void mo_audit_connection(struct mo_audit *a, const char *server,
                         const char *session, const struct mo_egress_row *r);
/* A box with folders of the host is about to start. a: NULL does nothing. */
void mo_audit_mounts(struct mo_audit *a, const struct mo_audit_mounts *m);
void mo_audit_note(struct mo_audit *a, const struct mo_audit_row *r);
/* Somebody was refused: subject (default: "access"), reason, via, peer, who,
 * host, origin and path of the row count. Few of many attempts are written
 * (audit_attempts.h). a: NULL does nothing. */
void mo_audit_attempt(struct mo_audit *a, const struct mo_audit_row *r);

/* A call leaves now. 0: its row is with the kernel. *out belongs to the log
 * until mo_audit_end(). */
int mo_audit_begin(struct mo_audit *a, const struct mo_gw_case *k,
                   const char *who, struct mo_audit_open **out,
                   struct mo_err *e);
int mo_audit_begin_row(struct mo_audit *a, struct mo_span session,
                       const struct mo_audit_row *r, struct mo_audit_open **out,
                       struct mo_err *e);
/* The row with its outcome was just added. o: NULL does nothing. */
void mo_audit_end(struct mo_audit *a, struct mo_audit_open *o);

/* Writes a row and calls done() once, later, when it is synced to disk, in the
 * file and in the store if there is one, or with the error. */
int mo_audit_first(struct mo_audit *a, const struct mo_audit_row *r,
                   mo_done_fn *done, void *ctx, struct mo_err *e);
/* The same for a command without a loop: blocks, and writes to the file
 * only. */
int mo_audit_first_now(const struct mo_config *cfg,
                       const struct mo_audit_row *r, struct mo_err *e);
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
