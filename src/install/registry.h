/* registry.h - asks an MCP Registry for servers (API v0.1).
 *
 * The registry is a peer: its answers are limited in bytes, pages, rows and
 * time, validated as JSON, and rows that are no servers are left out. Redirects
 * are not followed. The calls block, with a loop of their own, so they run in a
 * command or on a worker thread.
 *
 * A row is what the registry returns for a version of a server:
 * {"server": {server.json}, "_meta": {...}}. */
#ifndef MO_INSTALL_REGISTRY_H
#define MO_INSTALL_REGISTRY_H

#include "codec/json/json.h"
#include "config/config.h"

#define MO_REGISTRY_ANSWER_MAX ((size_t)4 * 1024 * 1024) /* of one request */
#define MO_REGISTRY_PAGES_MAX  5   /* requests of one search */
#define MO_REGISTRY_PAGE       100 /* rows of a page */
#define MO_REGISTRY_ROWS_MAX   100 /* rows that a search returns */
#define MO_REGISTRY_TEXT_MAX   ((size_t)8 * 1024 * 1024) /* of these rows */
#define MO_REGISTRY_MS         30000 /* time of one request */

struct mo_registry_search {
    const struct mo_span *words; /* a row must have all of them */
    size_t nwords;
    size_t limit; /* rows, up to MO_REGISTRY_ROWS_MAX */
    /* results */
    size_t found;
    bool more; /* the registry has further rows that were not read */
};

/* Appends a JSON array of rows, the newest version of each server. Deleted ones
 * are left out. MO_EUNAVAIL: the registry does not answer; MO_EPROTO,
 * MO_ETOOBIG: it answers nonsense. */
int mo_registry_find(const struct mo_config *cfg, struct mo_registry_search *s,
                     struct mo_buf *out, struct mo_err *e);

/* Appends the row of one server. version: empty means the newest. MO_ENOTFOUND:
 * the registry has none; the other errors as above. */
int mo_registry_get(const struct mo_config *cfg, struct mo_span name,
                    struct mo_span version, struct mo_buf *out,
                    struct mo_err *e);

/* True for a row whose server has a name and a version. */
bool mo_registry_is_row(struct mo_json row);

/* "active", "deprecated", "deleted" or another word of the registry. */
struct mo_json mo_registry_status(struct mo_json row);

/* Calls fn for each kind of a server.json, once: "npm", "oci", ..., "remote".
 * A kind is a JSON string. */
void mo_registry_kinds(struct mo_json server,
                       void (*fn)(void *ctx, struct mo_json kind), void *ctx);

#endif
