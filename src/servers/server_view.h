/* server_view.h - members that every list of servers shows.
 *
 * Never shown: the environment and the headers of a server. */
#ifndef MO_SERVERS_SERVER_VIEW_H
#define MO_SERVERS_SERVER_VIEW_H

#include "codec/json/json.h"
#include "servers/gateway_setup.h"

struct mo_upstream_status;

/* "stdio", "http", "sse" or "box". */
const char *mo_server_view_transport(const struct mo_config_mcp *c);
/* Writes "kind", "target" and, if there is one, "description". */
void mo_server_view_config(struct mo_jw *w, const struct mo_config_mcp *c);
/* The word for a state of the gateway (enum mo_upstream_state). */
const char *mo_server_view_state(int state);
/* Writes "state", and "error", "lastCheck", "retryMs" and "stderr" if there are
 * any. */
void mo_server_view_status(struct mo_jw *w, const char *state,
                           const struct mo_upstream_status *s,
                           const struct mo_gateway_setup *gateway,
                           const char *server);
/* Writes "version", "calls" and "info" of an open connection; info: shown if
 * there is none. Either may be none. */
void mo_server_view_open(struct mo_jw *w, struct mo_conn *conn,
                         struct mo_json info);

#endif
