/* inside.h - functions of the gateway for callers in the same program.
 *
 * Conversations and the page are clients of the gateway like others
 * (mcp/server/link_inside.h). They judge their calls themselves, so they also
 * need: lists that are read now, tools by the server's own names, and the tool
 * that `execute` would run (gateway/router/router.h).
 *
 * Such a caller puts MO_GW_OURS before the name of one of the gateway's own
 * tools (gateway/router/meta_tools.h, read_result), so that no server's tool
 * can have the same name.
 *
 * Ownership: a struct mo_gw_read is the caller's and must stay where it is
 * until done() or mo_gateway_unread(). */
#ifndef MO_GATEWAY_INSIDE_H
#define MO_GATEWAY_INSIDE_H

#include "gateway/catalog/catalog.h"
#include "gateway/gateway.h"

struct mo_gw_read { /* zero all members that are not set */
    /* Set before: */
    const char *server;    /* read its lists again; NULL: the unknown ones */
    bool again;            /* server NULL: also the tools of running servers */
    uint64_t peer;         /* the client a per-session server is started for */
    struct mo_span person; /* whose credentials are used; borrowed */
    struct mo_span caps;
    uint64_t ms; /* timeout */
    void (*done)(struct mo_gw_read *r);
    /* Ours: */
    bool late; /* in done(): the timeout expired */
    struct mo_list node;
    struct mo_gateway *g;
    struct mo_timer timer;
    struct mo_later later;
};

/* Calls done() once, from the loop, when the lists are read, cannot be read, or
 * the timeout expired (late); mo_catalog_failed() and mo_catalog_known() tell
 * them apart. From now on endpoints are notified of changed tools. */
void mo_gateway_read(struct mo_gateway *g, struct mo_gw_read *r);
void mo_gateway_unread(struct mo_gw_read *r); /* no done() any more */

/* The index of the server of that name; mo_gateway_count() if there is none. */
size_t mo_gateway_server(const struct mo_gateway *g, struct mo_span name);
/* The connection of an open child of server i, or NULL. */
struct mo_conn *mo_gateway_conn(const struct mo_gateway *g, size_t i);
/* A tool by its server and its name there, or NULL. Borrowed until the
 * catalogue changes. */
const struct mo_cat_item *mo_gateway_tool(const struct mo_gateway *g,
                                          struct mo_span server,
                                          struct mo_span tool);
/* The i-th fallback of a tool: its server and its name there, as configured;
 * they need not exist. Borrowed until the configuration changes. False: there
 * are no more. */
bool mo_gateway_stand_in(const struct mo_gateway *g, struct mo_span server,
                         struct mo_span tool, unsigned i, struct mo_span *to,
                         struct mo_span *own);
/* The router's vectors, for an index of the caller's own (route/route.h);
 * NULL: words only. Borrowed from the gateway. */
const struct mo_vectors *mo_gateway_vectors(struct mo_gateway *g);
/* Writes {"tools":[...]}: the meta tools if `four`, and read_result if results
 * are cut. */
int mo_gateway_ours(const struct mo_gateway *g, bool four, struct mo_buf *out);

#endif
