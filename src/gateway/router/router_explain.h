/* router_explain.h - which words of a request a tool shares, and where they
 * stand.
 *
 * For people who wonder why a tool was found. Words are compared as the index
 * compares them (route/words.h): folded, stemmed, without those that every
 * request has. What a tool is about beyond its words is the vectors' affair
 * and has no words to show.
 *
 * Ownership: the request is borrowed. Limits: EXPLAIN_WORDS_MAX words of it, of
 * each EXPLAIN_TERMS_MAX terms; later ones are not shown. */
#ifndef MO_GATEWAY_ROUTER_ROUTER_EXPLAIN_H
#define MO_GATEWAY_ROUTER_ROUTER_EXPLAIN_H

#include "gateway/catalog/catalog.h"

#define EXPLAIN_WORDS_MAX 32
#define EXPLAIN_TERMS_MAX 8

struct router_explain;

struct router_explain *
mo_router_explain_new(struct mo_span request);         /* NULL: no memory */
void mo_router_explain_free(struct router_explain *y); /* NULL is fine */

/* "shared":[{"word":"logo","in":["tool","description"]}], a member of the
 * object that is being written. item NULL: of its server alone. */
void mo_router_explain_put(struct router_explain *y,
                           const struct mo_cat_item *item,
                           const struct mo_cat_about *server, struct mo_jw *w);

#endif
