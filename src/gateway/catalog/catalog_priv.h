/* catalog_priv.h - the parts of the catalogue, for its own files only.
 *
 * cat_list: one list of one server; never changes once made.
 * server_lists: the lists of a server and what is cached with them.
 * cat_claims: URIs that servers use without listing them as resources.
 * cat_view: one kind of all servers, merged and named; borrows from the lists.
 *
 * A change makes a new list and a new view beside the old ones and swaps
 * them when both exist: when memory runs out everything stays as it was. */
#ifndef MO_GATEWAY_CATALOG_CATALOG_PRIV_H
#define MO_GATEWAY_CATALOG_CATALOG_PRIV_H

#include "base/clock.h"
#include "base/map.h"
#include "gateway/catalog/catalog.h"
#include "gateway/catalog/filter.h"
#include "gateway/catalog/name.h"
#include "gateway/upstream/server_overrides.h"

#define CAT_FILE_MAX  ((size_t)32 * 1024 * 1024)
#define CAT_VIEW_MAX  ((size_t)2 * 1024 * 1024 * 1024)
#define CAT_EXTRA_MAX ((size_t)256 * 1024) /* capabilities, serverInfo */
#define CAT_WHY_MAX   1024

/* --- list ---------------------------------------------------------------- */

struct cat_item {
    struct mo_json text;
    struct mo_span own;
    struct mo_json id;        /* value of the name in the text */
    struct mo_json execution; /* its member "execution" */
    /* URIs of a tool's app: _meta.ui.resourceUri, and the older
     * _meta["ui/resourceUri"]. */
    struct mo_json link[2];
    bool id_repeated; /* that key occurs more than once */
    bool has_output_schema;
    bool app_only; /* see mcp/app.h */
};

struct cat_list {
    struct mo_buf text; /* JSON array of all items, without newlines */
    struct mo_arena arena;
    struct cat_item *v;
    size_t n, cap;
    size_t unnamed,
        over_limit; /* left out: not an object or no name; over a limit */
    bool has_links; /* at least one tool links to an app */
};

void mo_catalog_list_free(struct cat_list *l);

/* --- server_lists -------------------------------------------------------- */

struct list_faults {
    struct mo_definition_notes notes;
    char unread[200]; /* why the list cannot be read; or "" */
};

struct server_lists {
    struct cat_list *list[MO_CAT_KINDS];      /* NULL: the server has none */
    struct list_faults *faults[MO_CAT_KINDS]; /* NULL: none, as most have */
    struct mo_buf caps, info;                 /* empty: not known */
    char date[MO_ISO8601_MAX];                /* time of writing; or "" */
    bool known;                               /* all lists were read */
    bool late;                                /* they were not, in time */
    bool dirty;                               /* differs from the cache file */
};

struct server_lists *mo_catalog_lists_new(void);
void mo_catalog_lists_free(struct server_lists *s);
/* Never NULL. */
const struct list_faults *mo_catalog_lists_faults(const struct server_lists *s,
                                                  size_t kind);
/* To be changed. NULL: out of memory. */
struct list_faults *mo_catalog_lists_own_faults(struct server_lists *s,
                                                size_t kind);
/* Makes a list, within the limits that the other lists leave. NULL: out of
 * memory. */
struct cat_list *mo_catalog_lists_parse(const struct server_lists *s,
                                        enum mo_cat_kind kind,
                                        struct mo_json items);

/* --- cache --------------------------------------------------------------- */

/* Parses a cache file. MO_EPROTO: damaged, or of another server or digest. */
int mo_catalog_cache_parse(struct mo_span text, const char *name,
                           const char *digest, struct server_lists *out);
/* MO_ENOMEM, or 0 also without a usable file (see out->known). */
int mo_catalog_cache_read(const char *dir, const char *name, const char *digest,
                          struct server_lists *out);
int mo_catalog_cache_write(const char *dir, const char *name,
                           const char *digest, struct server_lists *s);

/* --- servers ------------------------------------------------------------- */

struct cat_server {
    struct mo_arena a; /* owns its texts */
    const char *name, *prefix;
    char label[MO_GW_LABEL_MAX];
    char digest[65];
    bool never_prefix;
    bool borrowed; /* the lists still belong to the old server */
    struct server_lists *lists;
    struct server_overrides *overrides;
    const char *description, *keywords, *categories; /* NULL: none */
    bool off;
    char fail[240]; /* why its lists cannot be read; or "" */
    char why[CAT_WHY_MAX];
};

/* --- claims -------------------------------------------------------------- */

/* A URI that a server uses: an app of a tool, or the directory of a skill. */
struct cat_claim {
    unsigned server;
    bool many;    /* another server uses it, too */
    bool is_root; /* of a skill: everything below it is claimed */
};

struct cat_claims {
    struct mo_arena arena;
    struct mo_map map; /* URI -> struct cat_claim; empty as a rule */
};

struct mo_catalog;

/* The claims of all servers of a catalogue. NULL: out of memory. */
struct cat_claims *mo_catalog_claims_new(const struct mo_catalog *c);
void mo_catalog_claims_free(struct cat_claims *cl);
/* The claim of a URI, or of a directory above it; NULL: none. */
struct cat_claim *mo_catalog_claim(const struct cat_claims *cl,
                                   struct mo_span uri);
/* True if another server claims the URI of this one, too. */
bool mo_catalog_is_claimed(const struct cat_claims *cl, unsigned server,
                           struct mo_span uri);

/* --- view ---------------------------------------------------------------- */

struct cat_entry {
    struct mo_cat_item pub;
    const struct cat_item *item;
    struct mo_span link;     /* new URI of the tool's app; or empty */
    const char *describe;    /* configured description; or NULL */
    struct mo_span piece[3]; /* concatenated: the item as given out */
    size_t end; /* bytes up to here, with a comma after each item */
    bool never_prefix, never_prefix_before; /* never prefixed; nor an earlier
                                               one of that name */
    bool shared; /* another server has the same name, or makes it */
    bool taken;  /* another server has the prefixed name as its own */
    bool prefixed, hidden;
    bool off; /* hidden by configuration */
};

struct cat_omitted { /* items of one server that were left out */
    size_t duplicates, hidden;
};

struct cat_view {
    struct mo_arena arena;
    struct mo_map names;   /* exposed name -> struct cat_entry */
    struct cat_entry **at; /* in order */
    size_t n;
    struct cat_entry **off; /* tools that are not offered */
    size_t noff;
    struct cat_omitted *omitted; /* by server */
};

struct mo_catalog {
    enum mo_gw_prefix prefix;
    char *cache;
    struct cat_server *v;
    size_t n;
    struct cat_claims *claims;
    struct cat_view *view[MO_CAT_KINDS];
    uint64_t version; /* changes with v and with each view */
    /* Of a part (catalog_part.c): */
    const struct mo_catalog *of; /* the whole, which owns v; NULL: no part */
    struct mo_filter *filter;
    bool *shown; /* by server: it belongs to the part */
    uint64_t sums[MO_CAT_KINDS];
};

/* False: the server does not belong to this part of the catalogue. */
static inline bool is_shown(const struct mo_catalog *c, size_t server)
{
    return c->of == NULL || c->shown[server];
}

/* The merged list of one kind. c has its servers, claims and the views that
 * come before this one in mo_catalog_build(). NULL: out of memory. */
struct cat_view *mo_catalog_view_new(const struct mo_catalog *c,
                                     enum mo_cat_kind kind);
/* Makes the claims and all views of c from its servers; what was there is not
 * freed. MO_ENOMEM: c has none. */
int mo_catalog_build(struct mo_catalog *c);
void mo_catalog_unbuild(struct mo_catalog *c);
/* Reads an item again from another text of the same names. */
int mo_catalog_item_parse(struct mo_json text, const char *id,
                          struct cat_item *out);
/* True if an item of that server belongs to the part. */
bool mo_catalog_part_takes(const struct mo_catalog *part, size_t server,
                           enum mo_cat_kind kind, const struct cat_item *it);
void mo_catalog_view_free(struct cat_view *w);
bool mo_catalog_view_same(const struct cat_view *a, const struct cat_view *b);
/* The first template that matches a URI; NULL: none. */
const struct cat_entry *mo_catalog_view_match(const struct cat_view *w,
                                              struct mo_span uri);

/* Describes what is missing of a server's list of that kind (MO_CAT_KINDS:
 * of all); "" if nothing is. */
void mo_catalog_describe_missing(const struct mo_catalog *c, size_t server,
                                 enum mo_cat_kind kind, char out[CAT_WHY_MAX]);

#endif
