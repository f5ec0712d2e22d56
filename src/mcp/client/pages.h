/* pages.h - read a whole list, page after page.
 *
 * tools/list and similar methods answer in pages of the server's choosing. This
 * code requests one after the other and returns one array with the bytes of
 * every item unchanged. An endless list fails: by the number of pages, by its
 * bytes, or because a cursor repeats.
 *
 * done fires exactly once, from the loop; the list is freed after it. */
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
    uint64_t page_ms;   /* for each page; 0: default */
    /* items: an array, borrowed; or none, and r has the error. */
    void (*done)(void *ctx, struct mo_json items, const struct mo_reply *r);
    void *ctx;
};

int mo_pages_start(struct mo_conn *c, const struct mo_pages_opts *o,
                   struct mo_pages **out, struct mo_err *e);
void mo_pages_cancel(struct mo_pages *p); /* done follows */

#endif
