/* router_explain.h - which words of a request occur in a tool, and where.
 *
 * Shown to people who want to know why a tool was found. Words are compared
 * as the index compares them (route/words.h): folded, stemmed, without
 * common words. The vector score has no words to show.
 *
 * Ownership: the request is borrowed. Limits: EXPLAIN_WORDS_MAX words of it,
 * EXPLAIN_TERMS_MAX terms of each; further ones are not shown. */
#ifndef MO_GATEWAY_ROUTER_ROUTER_EXPLAIN_H
#define MO_GATEWAY_ROUTER_ROUTER_EXPLAIN_H

#include "gateway/catalog/catalog.h"

#define EXPLAIN_WORDS_MAX 32
#define EXPLAIN_TERMS_MAX 8

struct router_explain;

struct router_explain *
mo_router_explain_new(struct mo_span request);         /* NULL: out of memory */
void mo_router_explain_free(struct router_explain *y); /* may be NULL */

/* Writes the member "shared":[{"word":"logo","in":["tool","description"]}].
 * item NULL: only the server's texts. */
void mo_router_explain_put(struct router_explain *y,
                           const struct mo_cat_item *item,
                           const struct mo_cat_about *server, struct mo_jw *w);

#endif
