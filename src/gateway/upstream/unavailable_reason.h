/* unavailable_reason.h - why a tool that fits cannot be used just now.
 *
 * The same words for people (gateway/router/router_query.c) and for models
 * (gateway/router/meta_tools.c): its server fails again and again, a person
 * must sign in there, or it is not what people saw first. What is configured
 * away is not looked at here: models do not see it at all. */
#ifndef MO_GATEWAY_UPSTREAM_UNAVAILABLE_REASON_H
#define MO_GATEWAY_UPSTREAM_UNAVAILABLE_REASON_H

#include "gateway/gw_priv.h"

#define UNAVAILABLE_WHY_MAX 400

#define UNAVAILABLE_CHANGED "quarantined"

struct unavailable_reason {
    const char *code; /* NULL: it can be used */
    char why[UNAVAILABLE_WHY_MAX];
};

void mo_unavailable_set(struct unavailable_reason *v, const char *code,
                        const char *what, const char *rest);
/* What its server is like just now. */
void mo_unavailable_server(const struct mo_gateway *g, unsigned server,
                           struct unavailable_reason *v);
/* What people saw of it first is not what it is now, says the judge
 * (gateway/call/case.h), or whoever else knows. */
void mo_unavailable_changed(const char *server, struct mo_span own,
                            struct unavailable_reason *v);
/* Both; what is the tool's own comes first. */
void mo_unavailable_tool(const struct mo_gateway *g,
                         const struct mo_cat_item *it,
                         struct unavailable_reason *v);
/* "reason" and "why", members of the object that is being written. */
void mo_unavailable_put(const struct unavailable_reason *v, struct mo_jw *w);

#endif
