/* connection_log.h - which hosts each box has talked to, summed up in memory.
 *
 * One line for each host (or address), port and outcome, of the box of a
 * session or of a server. For people who look at a running program; the audit
 * log has every connection.
 *
 * Limits: MO_CONNECTION_LOG_OWNERS sessions and servers,
 * MO_CONNECTION_LOG_LINES lines of each; those that were quiet for longest are
 * dropped. */
#ifndef MO_POLICY_CONNECTION_LOG_H
#define MO_POLICY_CONNECTION_LOG_H

#include "base/map.h"
#include "codec/json/json.h"
#include "egress/relay.h"

#define MO_CONNECTION_LOG_OWNERS 512
#define MO_CONNECTION_LOG_LINES  64

struct mo_connection_log {
    struct mo_map map;     /* key -> struct owner */
    struct mo_list owners; /* quiet for longest first */
};

void mo_connection_log_init(struct mo_connection_log *l);
void mo_connection_log_fini(struct mo_connection_log *l);

/* server or session is NULL. */
void mo_connection_log_add(struct mo_connection_log *l, const char *server,
                           const char *session, const struct mo_egress_row *r);
/* {"connections":[{host, address, port, allowed, rule?, reason, count, sent,
 * received, first, last}],"more"}; the newest first. more: connections that are
 * in no line. */
void mo_connection_log_put(const struct mo_connection_log *l,
                           const char *server, const char *session,
                           struct mo_jw *w);
void mo_connection_log_forget(struct mo_connection_log *l, const char *session);

#endif
