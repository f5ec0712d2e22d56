/* api_rules.h - what people said "always" to, to be looked at and taken back.
 *
 *   GET    /api/rules     {"rules":[{id, server, tool, action, args?, at,
 * who}]} DELETE /api/rules/ID  it is asked about again
 *
 * Who keeps them is not known here. ctx NULL: they are not there yet (503). */
#ifndef MO_WEB_API_RULES_H
#define MO_WEB_API_RULES_H

#include "web/site.h"

struct mo_api_rules {
    int (*list)(void *ctx, struct mo_buf *out);
    /* MO_ENOTFOUND: there is none of that id. */
    int (*remove)(void *ctx, struct mo_span id, struct mo_err *e);
    void *ctx;
};

/* rules is borrowed as long as the site lives. */
int mo_api_rules_routes(struct mo_site *s, struct mo_api_rules *rules);

#endif
