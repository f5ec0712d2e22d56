/* api_rules.h - the approval rules: list, add, remove, and try.
 *
 *   GET    /api/rules      {"rules":[{id, server, tool, action, args?, at,
 *                          who}], "operator":[...], "default"}
 *   POST   /api/rules      {server, tool, action, args?}: add a rule of the
 *                          person, by exact names
 *   POST   /api/rules/try  {server, tool, args?, annotations?, draft?}: which
 *                          rule would decide, and why not the others
 *   DELETE /api/rules/ID   remove it: the call needs approval again
 *
 * The owner of the rules is behind ctx; NULL: not ready yet (503). */
#ifndef MO_WEB_API_RULES_H
#define MO_WEB_API_RULES_H

#include "web/site.h"

struct mo_api_rules {
    int (*list)(void *ctx, struct mo_buf *out);
    /* MO_ENOTFOUND: there is none of that id. */
    int (*remove)(void *ctx, struct mo_span id, struct mo_err *e);
    /* body: whatever was sent. MO_EINVAL and MO_EPROTO: it makes no sense. */
    int (*add)(void *ctx, struct mo_span body, const char *who,
               struct mo_buf *out, struct mo_err *e);
    int (*try)(void *ctx, struct mo_span body, struct mo_buf *out,
               struct mo_err *e);
    void *ctx;
};

/* rules is borrowed as long as the site lives. */
int mo_api_rules_routes(struct mo_site *s, struct mo_api_rules *rules);

#endif
