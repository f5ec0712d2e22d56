/* unavailable_reason.h - why a tool cannot be used at the moment.
 *
 * The same texts for people (router_query.c) and for models (meta_tools.c):
 * its server keeps failing, a person must sign in, or its definition changed
 * and was not accepted. Tools that are hidden by configuration are not
 * covered: models never see them. */
#ifndef MO_GATEWAY_ROUTER_UNAVAILABLE_REASON_H
#define MO_GATEWAY_ROUTER_UNAVAILABLE_REASON_H

#include "gateway/state/state.h"

#define UNAVAILABLE_WHY_MAX 400

#define UNAVAILABLE_CHANGED "quarantined"

struct unavailable_reason {
    const char *code; /* NULL: it can be used */
    char why[UNAVAILABLE_WHY_MAX];
};

void mo_unavailable_set(struct unavailable_reason *v, const char *code,
                        const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets the reason from the state of its server, if there is one. */
void mo_unavailable_server(const struct mo_gateway *g, unsigned server,
                           struct unavailable_reason *v);
/* Sets the reason of a tool that differs from its pinned definition. */
void mo_unavailable_changed(const char *server, struct mo_span own,
                            struct unavailable_reason *v);
/* Sets the reason of a tool, or none: a changed definition, else its server. */
void mo_unavailable_tool(const struct mo_gateway *g,
                         const struct mo_cat_item *it,
                         struct unavailable_reason *v);
/* Writes the members "reason" and "why". */
void mo_unavailable_put(const struct unavailable_reason *v, struct mo_jw *w);

#endif
