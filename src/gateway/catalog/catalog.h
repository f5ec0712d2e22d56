/* catalog.h - the merged lists of all servers, under names clients can use.
 *
 * For each server it keeps five lists (tools, resources, templates, prompts,
 * skills) as the bytes that were received. They are merged in a stable order:
 * servers as configured, items as listed. Every item has an exposed name
 * (name.h). An item is given out as its original bytes with only its name or
 * URI replaced.
 *
 * The lists of each server are cached in one file below the cache directory,
 * with the server's digest and a date. The file is read when the server is
 * added, so that lists are known before any child runs, and replaced when they
 * change. A damaged file, or one of another digest, is ignored. The file of a
 * server is deleted with the server; files of other servers stay, since other
 * configurations may use the directory.
 *
 * Pages: a cursor names the last item before it and stays valid when lists
 * change. A cursor that was never given out is MO_EINVAL.
 *
 * An item must be an object with a string as its name (or URI). Its other
 * members are not checked here (mcp/definition.h mends them before). If the key
 * occurs twice the last one counts, and a new name replaces all of them. Raw
 * newlines between its tokens are removed, since they would end a line of
 * stdio.
 *
 * If two servers have the same name (or URI), both are prefixed, so that the
 * order does not matter (MO_GW_PREFIX_COLLISION). All URIs are one space: those
 * of resources, of all files of a skill, and those that a tool links to (MCP
 * Apps). A prefixed URI is prefixed everywhere: in lists, in the files of a
 * skill, in the tool that links to it. A server that is never
 * prefixed keeps its names; the second of two such servers is hidden.
 * Unprefixed names are assigned before prefixed ones. A tool (or prompt) whose
 * own name is the prefixed name of another server's tool is prefixed, too, and
 * that name is not given out.
 *
 * A tool may be hidden, renamed or described anew (server_overrides.h). The
 * result is the same as if its server listed it so, except that calls use the
 * server's own name. The cache holds the server's original lists.
 *
 * A disabled server offers nothing. Its cached tools, and hidden tools of
 * other servers, are kept to explain why they are not offered.
 *
 * Reads are cheap (a tools/list is one copy); a change rebuilds the merged
 * lists. Limits: MO_CAT_ITEMS_MAX items and MO_CAT_BYTES_MAX bytes of one
 * server, all lists together. Items beyond are left out and mo_catalog_why()
 * says so. When memory runs out, everything stays as it was.
 *
 * The catalogue knows no connections, calls or permissions. */
#ifndef MO_GATEWAY_CATALOG_CATALOG_H
#define MO_GATEWAY_CATALOG_CATALOG_H

#include "codec/json/json.h"
#include "gateway/catalog/name.h"
#include "gateway/upstream/server_overrides.h"
#include "mcp/definition.h"

#define MO_CAT_ITEMS_MAX    10000
#define MO_CAT_BYTES_MAX    ((size_t)16 * 1024 * 1024)
#define MO_CAT_NAME_MAX     4096 /* bytes of a name or URI */
#define MO_CAT_PAGE         1000 /* items of a page, by default */
/* A page ends before the item that would make it longer than this. */
#define MO_CAT_PAGE_BYTES   ((size_t)4 * 1024 * 1024)
#define MO_CAT_META_MISSING "mcp-orchestrator/unavailable"

enum mo_cat_kind {
    MO_CAT_TOOLS,
    MO_CAT_RESOURCES,
    MO_CAT_TEMPLATES,
    MO_CAT_PROMPTS,
    MO_CAT_SKILLS,
    MO_CAT_KINDS,
};

struct mo_cat_kind_info {
    const char *list;   /* member of the result object */
    const char *id;     /* member that holds the name or URI */
    const char *what;   /* shown to people */
    const char *method; /* that lists it */
    const char *cap;    /* capability of a server that has it */
    const char *ext;    /* and its extension; NULL: none is needed */
    bool uri;
};

extern const struct mo_cat_kind_info mo_catalog_kinds[MO_CAT_KINDS];

struct mo_cat_item {
    struct mo_span name;      /* exposed: a name, a URI or a URI template */
    struct mo_span own;       /* the server's own name or URI */
    struct mo_span given;     /* the configured new name, or own */
    struct mo_json item;      /* as listed, with the configured description */
    struct mo_json execution; /* its member "execution", or none */
    unsigned server;          /* as in mo_gateway_up() */
    bool has_output_schema;
    bool app_only; /* a tool for apps, not for models (mcp/app.h) */
};

struct mo_catalog;

/* --- parts ---------------------------------------------------------------
 *
 * A part is a catalogue of the items that a filter takes, with the numbers of
 * the servers in the whole. Everything else is absent, also when items get
 * their exposed names: a part shows nothing about what it leaves out. It
 * follows the whole, which must outlive it; the functions that change a
 * catalogue must not be called with a part. */

struct mo_filter;

/* Takes f over, also on failure. NULL: out of memory. */
struct mo_catalog *mo_catalog_part_new(const struct mo_catalog *of,
                                       struct mo_filter *f);
/* Uses another filter from now on; takes it over. */
void mo_catalog_part_filter(struct mo_catalog *part, struct mo_filter *f);
const struct mo_filter *
mo_catalog_part_filter_now(const struct mo_catalog *part);
/* The part as the whole is now. Call it before every use after the whole may
 * have changed. Without memory the part is empty, until the next call. */
const struct mo_catalog *mo_catalog_part_now(struct mo_catalog *part);
/* A checksum of one list of the part, which differs if the list does. */
uint64_t mo_catalog_part_sum(struct mo_catalog *part, enum mo_cat_kind kind);

/* False: the server does not belong to the part. Always true for the whole. */
bool mo_catalog_shows(const struct mo_catalog *c, unsigned server);
/* True if a tool belongs to the part whose server has not listed it yet. */
bool mo_catalog_may_have(const struct mo_catalog *c, unsigned server,
                         struct mo_span own);

/* cache: directory, or NULL. */
struct mo_catalog *mo_catalog_new(enum mo_gw_prefix prefix, const char *cache,
                                  struct mo_err *e);
void mo_catalog_free(struct mo_catalog *c);

/* Replaces the servers. Lists of servers with the same name and digest are
 * kept; the lists of others are read from the cache. */
int mo_catalog_servers(struct mo_catalog *c, const struct mo_gw_server *v,
                       size_t n, struct mo_err *e);
/* Calls fn with the name of each cached tool of a server, borrowed, for people
 * who look for one; the file may be old or of another configuration. Reads only
 * that file. */
void mo_catalog_cached_tools(const char *cache, const char *server,
                             void (*fn)(void *ctx, struct mo_span name),
                             void *ctx);
/* Deletes the cached lists of a server. */
void mo_catalog_forget(const char *cache, const char *server);
/* Stores a list just read (an array); none: the server has no such list.
 * *changed: a bit (1 << kind) for each merged list that has changed. 0 or
 * MO_ENOMEM. */
int mo_catalog_put(struct mo_catalog *c, unsigned server, enum mo_cat_kind kind,
                   struct mo_json items, unsigned *changed);
/* Notes what was done to the list that is stored next, so that strict clients
 * accept it: kept with the list, in the cache too. */
void mo_catalog_note(struct mo_catalog *c, unsigned server,
                     enum mo_cat_kind kind,
                     const struct mo_definition_notes *notes);
/* All lists of a server were stored: writes them to the cache with its
 * capabilities and serverInfo (objects or none), unless one cannot be read. If
 * that fails, the next call tries again. True: the file is new. */
bool mo_catalog_done(struct mo_catalog *c, unsigned server,
                     struct mo_json capabilities, struct mo_json info);
/* Another process has written the file of the server: its lists replace those
 * that are here. changed: the merged lists of each kind have changed. 0 also
 * without a usable file, or MO_ENOMEM. */
int mo_catalog_reread(struct mo_catalog *c, unsigned server,
                      bool changed[MO_CAT_KINDS]);
/* Notes why the server's lists cannot be read; NULL: they can. Old lists
 * stay. */
void mo_catalog_fail(struct mo_catalog *c, unsigned server, const char *why);

/* The server did not answer in time, in this run or (was_late) also in an
 * earlier one: kept in the cache until its lists are known. */
void mo_catalog_note_late(struct mo_catalog *c, unsigned server);
bool mo_catalog_was_late(const struct mo_catalog *c, unsigned server);

/* Notes why one list cannot be read, while others can; a list that is stored
 * clears it. */
void mo_catalog_fail_list(struct mo_catalog *c, unsigned server,
                          enum mo_cat_kind kind, const char *why);

/* True if its lists are known, from the cache or by mo_catalog_done(). */
bool mo_catalog_known(const struct mo_catalog *c, unsigned server);
/* Why some of its items are missing; NULL: none are. */
const char *mo_catalog_why(const struct mo_catalog *c, unsigned server);
/* Appends which of its definitions were mended, as one line; nothing if all
 * are offered as the server gave them. */
void mo_catalog_put_mended(const struct mo_catalog *c, unsigned server,
                           struct mo_buf *out);
/* Why its lists could not be read the last time; NULL: they could. */
const char *mo_catalog_failed(const struct mo_catalog *c, unsigned server);
/* The last serverInfo given to mo_catalog_done(), also from the cache; or
 * none. */
struct mo_json mo_catalog_info(const struct mo_catalog *c, unsigned server);

/* True if the server speaks an extension, or is not known yet. flag: and has
 * this set in it; NULL: nothing more. */
bool mo_catalog_extension(const struct mo_catalog *c, unsigned server,
                          const char *id, const char *flag);

/* Finds an item by exposed name; NULL: none. An unlisted resource is found by
 * its template. Borrowed until the catalogue changes. */
const struct mo_cat_item *mo_catalog_find(const struct mo_catalog *c,
                                          enum mo_cat_kind kind,
                                          struct mo_span name);
/* Finds a tool by its server and the server's own name for it; NULL: none. */
const struct mo_cat_item *mo_catalog_tool(const struct mo_catalog *c,
                                          unsigned server, struct mo_span own);
/* Finds the server of an exposed URI: listed, a file of a skill, linked by a
 * tool, by template, by prefix, or because all lists are known and only one
 * server has resources. *own: the
 * server's own URI. MO_ENOTFOUND: not known. */
int mo_catalog_resource(const struct mo_catalog *c, struct mo_span uri,
                        unsigned *server, struct mo_span *own);
/* Appends the exposed form of a server's own URI (for resources/updated, and
 * URIs in results).
 * MO_ENOTFOUND: it has none, another server's URI hides it. */
int mo_catalog_expose(const struct mo_catalog *c, unsigned server,
                      struct mo_span own, struct mo_buf *out);

/* The same for a URI in a result, which need not be a resource of the server.
 * MO_ENOTFOUND: it stays as it is, since the server has it under its own URI
 * and no other server has it. */
int mo_catalog_link(const struct mo_catalog *c, unsigned server,
                    struct mo_span own, struct mo_buf *out);

/* Appends the listing of a directory of a skill, {"resources":[...]}, from the
 * files that the skill's entry names: for servers that cannot list directories.
 * MO_ENOTFOUND: no such directory. uri is the exposed one. */
int mo_catalog_skill_directory(const struct mo_catalog *c, struct mo_span uri,
                               struct mo_buf *out);

/* All servers, also disabled ones. */
struct mo_cat_about {
    const char *name, *description, *keywords; /* NULL: none */
    const char *categories;                    /* and tags, one a line */
    bool off;
};

size_t mo_catalog_server_count(const struct mo_catalog *c);
struct mo_cat_about mo_catalog_about(const struct mo_catalog *c,
                                     unsigned server);
/* Its overrides; borrowed until the servers are replaced. */
const struct server_overrides *mo_catalog_overrides(const struct mo_catalog *c,
                                                    unsigned server);
/* The i-th tool that is not offered: hidden, or of a disabled server. It has
 * no exposed name. NULL: no more. */
const struct mo_cat_item *mo_catalog_unoffered_tool(const struct mo_catalog *c,
                                                    size_t i);

size_t mo_catalog_count(const struct mo_catalog *c, enum mo_cat_kind kind);
const struct mo_cat_item *mo_catalog_at(const struct mo_catalog *c,
                                        enum mo_cat_kind kind, size_t i);
/* Appends one page as a result object: {"tools":[...],"nextCursor":"..."},
 * with missing servers in _meta ("mcp-orchestrator/unavailable": {server:
 * why}). An empty cursor starts at the beginning. limit 0: MO_CAT_PAGE. */
int mo_catalog_page(const struct mo_catalog *c, enum mo_cat_kind kind,
                    struct mo_span cursor, size_t limit, struct mo_buf *out);
/* The same without tools that are for apps only: a page may be shorter. */
int mo_catalog_page_for_model(const struct mo_catalog *c, enum mo_cat_kind kind,
                              struct mo_span cursor, size_t limit,
                              struct mo_buf *out);

#endif
