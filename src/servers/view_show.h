/* view_show.h - what a client of a view sees, as JSON for people: `views`, GET
 * /api/views and the page. Starts no server: of a server that was never read
 * nothing is known. */
#ifndef MO_SERVERS_VIEW_SHOW_H
#define MO_SERVERS_VIEW_SHOW_H

#include "codec/json/json.h"
#include "config/config.h"
#include "gateway/gateway.h"

/* Writes members: the settings, with the number of rules. */
void mo_view_put_settings(struct mo_jw *w, const struct mo_config_view *c);
/* Writes members: "shows", which is "all" or "search" (the four meta tools),
 * and "counts" of tools, resources, templates and prompts. v may be NULL: it is
 * not there (yet). */
void mo_view_put_counts(struct mo_jw *w, const struct mo_gw_view *v);
/* Writes members: counts, and the servers, tools, resources, templates and
 * prompts themselves. */
void mo_view_put_seen(struct mo_jw *w, const struct mo_gateway *g,
                      const struct mo_gw_view *v);

#endif
