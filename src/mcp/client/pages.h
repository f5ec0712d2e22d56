/* pages.h - a whole list, page after page.
 *
 * tools/list and its like come in pages of the server's choosing. This room
 * asks for one after the other and hands over one array with every item as
 * the bytes it was. A server that never ends is stopped: by the number of
 * pages, by the bytes, or because it gives out a cursor a second time.
 *
 * done fires exactly once, from the loop; the list is gone after it. */
#ifndef MO_MCP_CLIENT_PAGES_H
#define MO_MCP_CLIENT_PAGES_H

#include "mcp/client/conn.h"

#define MO_PAGES_MAX       200
#define MO_PAGES_BYTES_MAX ((size_t)16 * 1024 * 1024)

struct mo_pages;

struct mo_pages_opts {
    const char *method; /* "tools/list"; a constant */
    const char *key;    /* "tools"; a constant */
    unsigned max_pages; /* 0: MO_PAGES_MAX */
    size_t max_bytes;   /* 0: MO_PAGES_BYTES_MAX */
    uint64_t page_ms;   /* for each page; 0: the usual */
    /* items: an array, borrowed; or none, and r says why. */
    void (*done)(void *ctx, struct mo_json items, const struct mo_reply *r);
    void *ctx;
};

int mo_pages_start(struct mo_conn *c, const struct mo_pages_opts *o,
                   struct mo_pages **out, struct mo_err *e);
void mo_pages_cancel(struct mo_pages *p); /* done follows */

#endif
