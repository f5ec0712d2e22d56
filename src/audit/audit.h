/* audit.h - who called what, who allowed it, and what came of it.
 *
 * One row is told here and kept twice: in the store (for looking things up,
 * until its time is over) and in the chained file (audit_file.h: for proving
 * that nothing was changed). Rows that others write into the store's audit log
 * (conversations, tools that are tried) come into the file as well: the store
 * tells us of each.
 *
 * Arguments stand there as a digest and a length, whole only if the operator
 * wants that (`audit.arguments`); results never. What is registered as a secret
 * (base/log.h) is blanked.
 *
 * Rows go out in groups, behind the call they are about. Only a person's yes
 * is waited for: mo_audit_sure().
 *
 * Without a store (yet) the last BACKLOG rows wait for one. */
#ifndef MO_AUDIT_AUDIT_H
#define MO_AUDIT_AUDIT_H

#include "audit/audit_file.h"
#include "audit/gateway_call.h"
#include "config/config.h"
#include "store/store.h"

struct mo_audit;

int mo_audit_open(struct mo_loop *l, const struct mo_config *cfg,
                  struct mo_audit **out, struct mo_err *e);
void mo_audit_close(struct mo_audit *a, void (*gone)(void *ctx), void *ctx);
void mo_audit_config(struct mo_audit *a, const struct mo_config *cfg);
/* Where rows go as well from now on; NULL: nowhere, before it is closed. */
void mo_audit_store(struct mo_audit *a, struct mo_store *s);

/* A call of the gateway: agreed to by a person and about to run, or over. args:
 * in the form that was shown, or empty. who: of a person's decision, or NULL.
 */
enum mo_audit_step { MO_AUDIT_AGREED, MO_AUDIT_DONE };
void mo_audit_call(struct mo_audit *a, enum mo_audit_step step,
                   const struct mo_gw_case *k, struct mo_span args,
                   const char *who);
void mo_audit_routing(struct mo_audit *a, const struct mo_gw_routing *r);
/* Anything else: members of the row's object, JSON. */
void mo_audit_note(struct mo_audit *a, struct mo_span members);

/* done() once, later: everything so far is on the disk. */
int mo_audit_sure(struct mo_audit *a,
                  void (*done)(void *ctx, const struct mo_err *why), void *ctx,
                  struct mo_err *e);
struct mo_audit_file_stats mo_audit_stats(const struct mo_audit *a);

/* Is the file what was written? The report as JSON; done() once, later. One at
 * a time: MO_EBUSY. */
int mo_audit_verify(struct mo_audit *a,
                    void (*done)(void *arg, struct mo_span json,
                                 const struct mo_err *why),
                    void *arg, struct mo_err *e);

#endif
