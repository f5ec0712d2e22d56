/* unavailable_reason.h - why a tool that fits cannot be used just now.
 *
 * The same words for people (gateway/router/router_query.c) and for models
 * (gateway/router/meta_tools.c): its server fails again and again, a person
 * must sign in there, or it is not what people saw first. What is configured
 * away is not looked at here: models do not see it at all. */
#ifndef MO_GATEWAY_UPSTREAM_UNAVAILABLE_REASON_H
#define MO_GATEWAY_UPSTREAM_UNAVAILABLE_REASON_H

#include "gateway/gw_priv.h"

#define WHYNOT_MAX 400

#define WHYNOT_CHANGED "quarantined"

struct whynot {
    const char *code; /* NULL: it can be used */
    char why[WHYNOT_MAX];
};

void whynot_say(struct whynot *v, const char *code, const char *what,
                const char *rest);
/* What its server is like just now. */
void whynot_server(const struct mo_gateway *g, unsigned server,
                   struct whynot *v);
/* What people saw of it first is not what it is now, says the judge
 * (gateway/call/case.h), or whoever else knows. */
void whynot_changed(const char *server, struct mo_span own, struct whynot *v);
/* Both; what is the tool's own comes first. */
void whynot_tool(const struct mo_gateway *g, const struct mo_cat_item *it,
                 struct whynot *v);
/* "reason" and "why", members of the object that is being written. */
void whynot_put(const struct whynot *v, struct mo_jw *w);

#endif
