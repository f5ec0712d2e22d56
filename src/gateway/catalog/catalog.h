/* catalog.h - what all servers offer, under names that a client can use.
 *
 * For each server four lists (tools, resources, templates, prompts), kept as
 * the bytes they came as. Merged in a stable order (servers as configured,
 * items as listed), every item under an exposed name (name.h). An item is
 * given out as its own bytes with only its name or URI replaced.
 *
 * Each server's lists are one file below the cache directory, with the
 * server's digest and a date: read when the server is added, so that lists are
 * there before any child runs; written when they change (beside, then
 * renamed). A file that is damaged or of another digest is no file. The file
 * of a server goes when the server does; those of servers that were never here
 * stay: other configurations may use the directory.
 *
 * Pages: a cursor names the last item before it, so that it stays good when
 * lists change. One that we never gave out is MO_EINVAL.
 *
 * An item must be an object with a string for its name (or URI); what else it
 * has is its own affair. If that key stands there twice the last one counts,
 * and a new name replaces all. Raw newlines between its tokens are taken out,
 * as they would end a line of stdio.
 *
 * Two servers with the same name (or URI): both are prefixed, so that the
 * order does not matter (MO_GW_PREFIX_COLLISION). Who is never prefixed keeps
 * its name; the second of those is hidden. Names that are kept go before
 * names that are made.
 *
 * A tool may be hidden, called or described otherwise
 * (gateway/upstream/server_overrides.h). It is then as if its server had it so,
 * but for its own name, by which it is called there. On disk is what the server
 * said.
 *
 * A server that is off offers nothing. What is on disk of it, and what is
 * hidden of others, is there for who asks why it is not offered.
 *
 * Reads are cheap (a tools/list is one copy); changes rebuild what is merged.
 * Limits: MO_CAT_ITEMS_MAX items and MO_CAT_BYTES_MAX bytes of one server, all
 * lists together; what is beyond is left out, and mo_catalog_why() says so.
 * Running out of memory leaves everything as it was.
 *
 * Not known here: connections, calls, who may see what. */
#ifndef MO_GATEWAY_CATALOG_CATALOG_H
#define MO_GATEWAY_CATALOG_CATALOG_H

#include "codec/json/json.h"
#include "gateway/gateway.h"

#define MO_CAT_ITEMS_MAX    10000
#define MO_CAT_BYTES_MAX    ((size_t)16 * 1024 * 1024)
#define MO_CAT_NAME_MAX     4096 /* bytes of a name or URI */
#define MO_CAT_PAGE         1000 /* items of a page, unless told otherwise */
/* A page ends before the item with which it would be longer than that. */
#define MO_CAT_PAGE_BYTES   ((size_t)4 * 1024 * 1024)
#define MO_CAT_META_MISSING "mcp-orchestrator/unavailable"

enum mo_cat_kind {
    MO_CAT_TOOLS,
    MO_CAT_RESOURCES,
    MO_CAT_TEMPLATES,
    MO_CAT_PROMPTS,
    MO_CAT_KINDS,
};

struct mo_cat_item {
    struct mo_span name;      /* exposed: a name, a URI or a URI template */
    struct mo_span own;       /* as its server has it */
    struct mo_span given;     /* or as it is to be called instead */
    struct mo_json item;      /* as its server gave it, or described anew */
    struct mo_json execution; /* that member of it, or none */
    unsigned server;          /* as in mo_gateway_up() */
    bool has_output_schema;   /* it has an outputSchema */
};

struct mo_catalog;

struct mo_catalog *mo_catalog_new(enum mo_gw_prefix prefix, const char *cache,
                                  struct mo_err *e);
void mo_catalog_free(struct mo_catalog *c);

/* The servers there are from now on. Lists of those that stay (same name and
 * digest) are kept; of others they are read from the cache. */
int mo_catalog_servers(struct mo_catalog *c, const struct mo_gw_server *v,
                       size_t n, struct mo_err *e);
/* What is on disk of a server that is no more. */
void mo_catalog_forget(const char *cache, const char *server);
/* A list as it was just read (an array); none: the server has no such list.
 * *changed: what clients see is not what they saw. 0 or MO_ENOMEM. */
int mo_catalog_put(struct mo_catalog *c, unsigned server, enum mo_cat_kind kind,
                   struct mo_json items, bool *changed);
/* All four lists of a server are in: keep them on disk. Its capabilities and
 * serverInfo (object texts or none) go with them. */
void mo_catalog_done(struct mo_catalog *c, unsigned server,
                     struct mo_json capabilities, struct mo_json info);
/* It cannot be asked now; NULL: it can. Old lists stay. */
void mo_catalog_fail(struct mo_catalog *c, unsigned server, const char *why);

/* Its lists are there, from the cache or by mo_catalog_done(). */
bool mo_catalog_known(const struct mo_catalog *c, unsigned server);
/* Why something of it is missing; NULL: nothing is. */
const char *mo_catalog_why(const struct mo_catalog *c, unsigned server);
/* Why it could not be asked for them the last time; NULL: it could. */
const char *mo_catalog_failed(const struct mo_catalog *c, unsigned server);
/* Why its lists could not be kept on disk; NULL: they could. */
const char *mo_catalog_unsaved(const struct mo_catalog *c, unsigned server);
/* What was given to mo_catalog_done(), also from the cache; or none. */
struct mo_json mo_catalog_info(const struct mo_catalog *c, unsigned server);
struct mo_json mo_catalog_capabilities(const struct mo_catalog *c,
                                       unsigned server);

/* By exposed name; borrowed until the catalogue changes; NULL: none. A
 * resource that is not listed is found by its template. */
const struct mo_cat_item *mo_catalog_find(const struct mo_catalog *c,
                                          enum mo_cat_kind kind,
                                          struct mo_span name);
/* Whose URI that may be: listed, by template, by its prefix, or since all
 * lists are known and only one server has resources; *own is the server's own
 * URI. MO_ENOTFOUND: nobody can say. */
int mo_catalog_resource(const struct mo_catalog *c, struct mo_span uri,
                        unsigned *server, struct mo_span *own);
/* How a server's own URI is exposed (for resources/updated): what the client
 * would ask for. MO_ENOTFOUND: by no URI, another server's hides it. */
int mo_catalog_expose(const struct mo_catalog *c, unsigned server,
                      struct mo_span own, struct mo_buf *out);

/* Of all servers, also those that are off. */
struct mo_cat_about {
    const char *name, *description, *keywords; /* NULL: none */
    bool off;
};

size_t mo_catalog_server_count(const struct mo_catalog *c);
struct mo_cat_about mo_catalog_about(const struct mo_catalog *c,
                                     unsigned server);
/* Tools that are not offered: hidden, or of servers that are off; NULL: no
 * more. They have no exposed name. */
const struct mo_cat_item *mo_catalog_unoffered_tool(const struct mo_catalog *c,
                                                    size_t i);

size_t mo_catalog_count(const struct mo_catalog *c, enum mo_cat_kind kind);
const struct mo_cat_item *mo_catalog_at(const struct mo_catalog *c,
                                        enum mo_cat_kind kind, size_t i);
/* One page as a result object: {"tools":[...],"nextCursor":"..."} with what is
 * missing in _meta ("mcp-orchestrator/unavailable": {server: why}). No or an
 * empty cursor: from the start. limit 0: MO_CAT_PAGE. */
int mo_catalog_page(const struct mo_catalog *c, enum mo_cat_kind kind,
                    struct mo_span cursor, size_t limit, struct mo_buf *out);

#endif
