/* inside.h - the gateway for those who are in the same program.
 *
 * They are its clients like others (mcp/server/link_inside.h): their calls
 * cross as everybody's do. Here is what they need beside that, since they judge
 * their calls by themselves: lists that are read now, tools by the names people
 * know them by, and what `execute` would run before it runs.
 *
 * A call from inside names one of our own tools (gateway/router/meta_tools.h,
 * read_result) with MO_GW_OURS before its name, so that no server's tool can
 * stand in its way.
 *
 * Ownership: a struct mo_gw_read is the caller's and must stay where it is
 * until done() or mo_gateway_unread(). */
#ifndef MO_GATEWAY_INSIDE_H
#define MO_GATEWAY_INSIDE_H

#include "gateway/catalog/catalog.h"
#include "gateway/gateway.h"

#define MO_GW_OURS "router/" /* its name when it is called from inside */

struct mo_gw_read { /* zeroed but for what is said to be set */
    /* Set before: */
    const char *server; /* read its lists anew; NULL: those nobody knows */
    bool again;         /* server NULL: also the tools of those that run */
    uint64_t peer;      /* for whom a server of a session is started */
    struct mo_span caps;
    uint64_t ms; /* not longer than that */
    void (*done)(struct mo_gw_read *r);
    /* Ours: */
    bool late; /* done: they have not come in time */
    struct mo_list node;
    struct mo_gateway *g;
    struct mo_timer timer;
    struct mo_later later;
};

/* done() once, from the loop: the lists are there, or cannot be read, or the
 * time is over (late); mo_catalog_failed() and mo_catalog_known() say which.
 * From now on endpoints are told when tools change. */
void mo_gateway_read(struct mo_gateway *g, struct mo_gw_read *r);
void mo_gateway_unread(struct mo_gw_read *r); /* no done() any more */

/* Its number; mo_gateway_count(): there is none of that name. */
size_t mo_gateway_server(const struct mo_gateway *g, struct mo_span name);
/* The connection of one of its children that is open, or NULL. */
struct mo_conn *mo_gateway_conn(const struct mo_gateway *g, size_t i);
/* By its server's name and the one it has there; NULL: there is none.
 * Borrowed until the catalogue changes. */
const struct mo_cat_item *mo_gateway_tool(const struct mo_gateway *g,
                                          struct mo_span server,
                                          struct mo_span tool);
/* The i-th that stands in for a tool while its server is down: which server,
 * and its name there. Borrowed until the configuration changes; nobody says
 * that they are there. false: there are no more. */
bool mo_gateway_stand_in(const struct mo_gateway *g, struct mo_span server,
                         struct mo_span tool, unsigned i, struct mo_span *to,
                         struct mo_span *own);
/* Are there more tools than are shown where few are wanted (MO_GW_AUTO)? */
bool mo_gateway_is_large(const struct mo_gateway *g);
/* {"tools":[...]}: the four if wanted, read_result where results are cut. */
int mo_gateway_ours(const struct mo_gateway *g, bool four, struct mo_buf *out);

struct mo_gw_choice {
    struct mo_span server, tool; /* in the arena */
    struct mo_json params;       /* of the arguments, or none */
    float sure;                  /* 1: it was named */
};

/* What a call of execute with these arguments would run: 0. Else it would run
 * nothing, and says why when it is called. */
int mo_gateway_choose(struct mo_gateway *g, uint64_t peer,
                      struct mo_json arguments, struct mo_arena *a,
                      struct mo_gw_choice *out);

#endif
