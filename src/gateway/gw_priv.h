/* gw_priv.h - functions that the files of this folder share: gateway.c (life,
 * servers, endpoints), views.c (views), front.c (requests of clients),
 * refresh.c (reads the servers' lists), watch.c (subscriptions, log levels,
 * notifications) and watch_others.c (subscriptions of other processes). */
#ifndef MO_GATEWAY_GW_PRIV_H
#define MO_GATEWAY_GW_PRIV_H

#include "gateway/gateway.h"
#include "gateway/state/state.h"

/* --- gateway.c ----------------------------------------------------------- */

/* Tells clients that have read a list since its last change. */
void mo_gw_changed(struct mo_gateway *g, enum mo_ep_what what);

/* --- views.c ------------------------------------------------------------- */

/* The catalogue has changed: search indexes are made again. */
void mo_gw_views_stale(struct mo_gateway *g);
/* Clients of the view read a list: they are told of its next change. */
void mo_gw_view_listed(struct mo_gw_view *v, enum mo_ep_what what);
/* Tells the clients of the view, if they have read the list. Listens of modern
 * clients are told in any case, soon: they may have read it in another process
 * of the store. sure: also if it looks the same. */
void mo_gw_view_changed(struct mo_gw_view *v, enum mo_ep_what what, bool sure);
void mo_gw_view_init(struct mo_gw_view *v); /* its timer */
/* For opts.watch: a client subscribes to a resource, or no longer does. */
void mo_gw_watch_uri(void *ctx, struct mo_span uri, bool on);
/* The catalogue or the view has changed: its clients' subscriptions follow. */
void mo_gw_watch_view(struct mo_gw_view *v);

/* --- front.c ------------------------------------------------------------- */

/* Ends the calls of a view that wait for lists. */
void mo_gw_front_end(const struct mo_gw_view *v, const char *why);

/* The notification of a changed list. */
enum mo_ep_what mo_gw_change_of(enum mo_cat_kind kind);
void mo_gw_front_handle(void *ctx, struct mo_ep_call *c);
/* Handles a call again whose server was removed before it was sent. */
void mo_gw_front_restart(struct mo_gateway *g, struct mo_ep_call *c);
struct mo_json mo_gw_front_schema(void *ctx, struct mo_span tool);
enum mo_ep_task_support mo_gw_front_task(void *ctx, struct mo_span tool);
/* A list was read, or could not be: continues the calls that waited. */
void mo_gw_front_settled(struct mo_gateway *g);
/* The table of servers was replaced: calls that waited look again, and wait for
 * the lists of a replaced server if they must. */
void mo_gw_front_reloaded(struct mo_gateway *g);

/* --- refresh.c ----------------------------------------------------------- */

#define LISTS_ALL ((1u << MO_CAT_KINDS) - 1)

/* Reads the lists of all servers of the view that have none. True: some are
 * pending. */
bool mo_catalog_refresh_wanted(const struct mo_gw_view *v, struct mo_span who,
                               struct mo_span person, struct mo_span caps);
bool mo_catalog_refresh_pending(const struct mo_gw_view *v);
/* Time in ms that a list request waits for pending lists; 0: all are known, or
 * late. So a server that hangs delays the first list only. */
uint64_t mo_catalog_refresh_wait(const struct mo_gw_view *v);
/* Notes the servers that are late, for the lists' _meta and for the next run.
 */
void mo_catalog_refresh_note_late(struct mo_gateway *g);
/* Appends the names of the servers that a list request waits for. */
void mo_catalog_refresh_put_awaited(const struct mo_gw_view *v,
                                    struct mo_buf *out);
void mo_catalog_refresh_child(struct gw_child *k, unsigned kinds);
void mo_catalog_refresh_list_changed(struct gw_child *k, enum mo_cat_kind kind);
void mo_catalog_refresh_stop(struct server_slot *s); /* it was removed */
/* Reads the lists of one server, also known ones. Of a server with credentials
 * of its users: over the connection of that person. */
void mo_catalog_refresh_slot(struct server_slot *s, struct mo_span who,
                             struct mo_span person, struct mo_span caps);
/* The lists to read when the child opens; bits. */
unsigned mo_catalog_refresh_due(const struct gw_child *k);
/* The slot is new: the file of its lists is read after this. */
void mo_catalog_refresh_begin(struct server_slot *s);
bool mo_catalog_refresh_reading(const struct server_slot *s);
/* Reads the tools of all servers that are running. */
void mo_catalog_refresh_running(struct mo_gateway *g);

/* --- inside.c ------------------------------------------------------------ */

/* A list was read, or could not be. */
void mo_gw_inside_settled(struct mo_gateway *g);

/* --- watch.c ------------------------------------------------------------- */

void mo_gw_watch_opened(struct gw_child *k);
void mo_gw_watch_lost(struct gw_child *k);
void mo_gw_watch_notify(struct gw_child *k, const struct mo_rpc *m,
                        uint64_t stream_of);
/* The catalogue changed: subscribes to resources whose server was unknown. */
void mo_gw_watch_resubscribe(struct mo_gateway *g);
void mo_gw_watch_stop(struct server_slot *s);
/* Subscribes to a resource by its URI in the whole gateway. */
void mo_gw_watch_whole(struct mo_gateway *g, struct mo_span uri, bool on);
void mo_gw_watch_level(void *ctx, enum mo_mcp_level lv);
void mo_gw_watch_fini(struct mo_gateway *g);
void mo_gw_watch_init(struct mo_gateway *g);
/* The same for clients of another process. */
void mo_gw_watch_other(struct mo_gateway *g, struct mo_span uri, bool on);
/* Many such changes: modern servers get one new listen, at the end. */
void mo_gw_watch_batch(struct mo_gateway *g, bool on);
/* A client subscribes to a task, or no longer does (opts.watch_task). */
void mo_gw_watch_task_wanted(void *ctx, const struct mo_ep_call *listen,
                             struct mo_span id, bool on);

/* --- watch_others.c ------------------------------------------------------ */

/* Tells the processes that watch it of an update. */
void mo_gw_tell_others(struct mo_gateway *g, struct mo_span uri);
void mo_gw_watch_others_fini(struct mo_gateway *g);

#endif
