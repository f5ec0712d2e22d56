/* connections.h - connections of boxes that a person decides about.
 *
 * A box whose network has `ask` (egress/policy.h) asks about hosts that no
 * entry allows. Such a connection is judged by the rules as a call of the tool
 * MO_RULE_CONNECT with the arguments host and port, by the server `box` for a
 * session and by the server of that name for a server's box. If the rules ask,
 * it becomes a pending call among the others (approvals.h): the same list, the
 * same decisions, the same checks of who decides.
 *
 * An answer holds once (for the connections that wait), for the session (as
 * long as the box lives and this process runs), or always (a remembered rule
 * for this server, host and port). A no that is not remembered holds for NO_MS,
 * so that a program that tries again does not ask again.
 *
 * The decision is synced to the audit log before the connection goes on.
 *
 * Limits: PENDING_PER_BOX hosts of a box wait at a time, and a box asks at most
 * ASKS_AT_ONCE times and then every ASK_EVERY_MS; what exceeds them is
 * refused. */
#ifndef MO_POLICY_CONNECTIONS_H
#define MO_POLICY_CONNECTIONS_H

#include "egress/relay.h"
#include "policy/approvals.h"

#define MO_CONNECTIONS_BOX "box" /* the server's name for a session's box */

struct mo_connection_from {
    const char *server;  /* NULL: the box of a session */
    const char *session; /* NULL: the box of a server */
    const char *owner;   /* of the session; "": the operator */
    const char *box;     /* id */
};

/* As in struct mo_egress_asker. d NULL: every host is refused. */
enum mo_egress_say mo_connections_judge(struct mo_approvals *d,
                                        const struct mo_connection_from *from,
                                        const struct mo_egress_question *q);
void mo_connections_ask(struct mo_approvals *d,
                        const struct mo_connection_from *from,
                        struct mo_egress_ask *a,
                        const struct mo_egress_question *q);
void mo_connections_gone(struct mo_approvals *d, struct mo_egress_ask *a);
/* The box has ended: forgets its answers. */
void mo_connections_box_gone(struct mo_approvals *d, const char *box);

/* A connection has ended or was refused: audited, counted, summed up. d NULL:
 * nothing happens. */
void mo_connections_report(struct mo_approvals *d,
                           const struct mo_connection_from *from,
                           const struct mo_egress_row *r);
/* Which hosts a box has talked to (connection_log.h). */
void mo_connections_log(const struct mo_approvals *d,
                        const struct mo_connection_from *from, struct mo_jw *w);
void mo_connections_forget(struct mo_approvals *d, const char *session);

/* Called from the loop when a question of a session's box begins or ends. */
struct mo_connections_watch {
    void (*asked)(void *ctx, const char *session, struct mo_span json);
    void (*resolved)(void *ctx, const char *session, const char *id,
                     bool approved, const char *by);
    void *ctx;
};
void mo_connections_watch(struct mo_approvals *d,
                          const struct mo_connections_watch *w);
/* The pending ones of a session, as in mo_approvals_list(). */
void mo_connections_put(const struct mo_approvals *d, const char *session,
                        struct mo_jw *w);

#endif
