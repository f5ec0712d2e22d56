/* view_table.h - the configured views of the gateway and their endpoints.
 *
 * Follows `views` of the configuration: a new view gets an endpoint, a changed
 * one keeps it, a removed one is ended. The owner of the gateway adds the
 * transports by mo_view_doors.
 *
 * Ownership: gateway and loop are borrowed. Close all transports before
 * mo_view_table_close(), and that before the gateway. */
#ifndef MO_SERVERS_VIEW_TABLE_H
#define MO_SERVERS_VIEW_TABLE_H

#include "config/config.h"
#include "gateway/gateway.h"

/* The transports of views. */
struct mo_view_doors {
    /* A view can be used from now on. NULL: it has no transport. */
    void *(*open)(void *ctx, const char *view, struct mo_endpoint *ep);
    /* It was removed: ends all sessions. False: they end later, and the
     * endpoint stays until the table is closed. */
    bool (*close)(void *ctx, void *door);
    void *ctx;
    bool by_people; /* close and open it if other people may use it */
};

struct mo_view_table {
    struct mo_loop *loop;
    struct mo_gateway *gateway;
    struct mo_list views; /* of struct table_view */
    struct mo_view_doors doors;
    uint64_t ask_ms; /* limits.ask_ms of the endpoints */
};

void mo_view_table_init(struct mo_view_table *t, struct mo_loop *l);
/* Opens the transports of all views. NULL: no transports from now on; the owner
 * has closed them. */
void mo_view_table_doors(struct mo_view_table *t,
                         const struct mo_view_doors *doors);
/* On failure the views that could not be made are missing. */
int mo_view_table_reload(struct mo_view_table *t, const struct mo_config *cfg,
                         struct mo_err *e);
void mo_view_table_close(struct mo_view_table *t);
/* NULL: there is no such view. */
struct mo_gw_view *mo_view_table_find(const struct mo_view_table *t,
                                      struct mo_span name);

/* The settings of a view; NULL: none. */
const struct mo_config_view *mo_view_config(const struct mo_config *cfg,
                                            struct mo_span name);
/* True if a person may use the view over HTTP. caller: the name of a person, or
 * "" for the operator; role: an enum mo_role. */
bool mo_view_is_for(const struct mo_config_view *v, const char *caller,
                    int role);

#endif
