/* catalog_priv.h - the parts of the catalogue, for its own files only.
 *
 * list: what one server listed of one kind; never changes once made.
 * shelf: the four lists of a server and what goes with them on disk.
 * view: one kind of all servers, merged and named; borrows from the lists.
 *
 * A change makes a new list and a new view beside the old ones and swaps them
 * when both are there: running out of memory leaves everything as it was. */
#ifndef MO_GATEWAY_CATALOG_CATALOG_PRIV_H
#define MO_GATEWAY_CATALOG_CATALOG_PRIV_H

#include "base/clock.h"
#include "base/map.h"
#include "gateway/catalog/catalog.h"
#include "gateway/catalog/name.h"
#include "gateway/upstream/server_overrides.h"

#define CAT_FILE_MAX  ((size_t)32 * 1024 * 1024)
#define CAT_VIEW_MAX  ((size_t)2 * 1024 * 1024 * 1024)
#define CAT_EXTRA_MAX ((size_t)256 * 1024) /* capabilities, serverInfo */
#define CAT_WHY_MAX   512

struct cat_kind_info {
    const char *list; /* the result's member */
    const char *id;   /* the member that is replaced */
    const char *what; /* for people */
    bool uri;
};

extern const struct cat_kind_info mo_catalog_kinds[MO_CAT_KINDS];

/* --- list ---------------------------------------------------------------- */

struct cat_item {
    struct mo_json text;
    struct mo_span own;
    struct mo_json id;        /* where its name stands in the text */
    struct mo_json execution; /* that member of it */
    bool id_repeated;         /* and there are more of that key */
    bool has_output_schema;   /* it has an outputSchema */
};

struct cat_list {
    struct mo_buf text; /* an array of all items, without newlines */
    struct mo_arena arena;
    struct cat_item *v;
    size_t n, cap;
    size_t unnamed, over_limit; /* left out: no object or name; over a limit */
};

/* room: how many items and bytes may still come. NULL: no memory. */
struct cat_list *mo_catalog_list_new(enum mo_cat_kind kind,
                                     struct mo_json items, size_t room_items,
                                     size_t room_bytes);
void mo_catalog_list_free(struct cat_list *l);

/* --- shelf --------------------------------------------------------------- */

struct server_lists {
    struct cat_list *list[MO_CAT_KINDS]; /* NULL: it has none */
    struct mo_buf caps, info;            /* empty: not known */
    char date[MO_ISO8601_MAX];           /* when it was written; or "" */
    bool known;                          /* all lists are in */
    bool dirty;                          /* not what is on disk */
};

struct server_lists *mo_catalog_lists_new(void);
void mo_catalog_lists_free(struct server_lists *s);
/* A new list of that kind, within what the others leave. */
struct cat_list *mo_catalog_lists_parse(const struct server_lists *s,
                                        enum mo_cat_kind kind,
                                        struct mo_json items);

/* --- cache --------------------------------------------------------------- */

/* What a file says, if it is of that server: else MO_EPROTO. */
int mo_catalog_cache_parse(struct mo_span text, const char *name,
                           const char *digest, struct server_lists *out);
/* MO_ENOMEM, or 0: there may be nothing in it (known says). */
int mo_catalog_cache_read(const char *dir, const char *name, const char *digest,
                          struct server_lists *out);
int mo_catalog_cache_write(const char *dir, const char *name,
                           const char *digest, struct server_lists *s,
                           struct mo_err *e);

/* --- view ---------------------------------------------------------------- */

struct cat_server {
    char *name, *prefix;
    char label[MO_GW_LABEL_MAX];
    char digest[65];
    bool never_prefix; /* its names are never prefixed */
    bool borrowed;     /* the shelf is still another's */
    struct server_lists *lists;
    struct server_overrides *overrides;
    char *description, *keywords; /* NULL: none */
    bool off;
    char fail[240];    /* why it cannot be asked; or "" */
    char unsaved[240]; /* why its lists are not on disk; or "" */
    char why[CAT_WHY_MAX];
};

struct cat_entry {
    struct mo_cat_item pub;
    const struct cat_item *item;
    const char *describe;    /* said of it instead; or NULL */
    struct mo_span piece[3]; /* together: as it is given out */
    size_t end;              /* bytes up to here, a comma behind each */
    bool never_prefix,
        never_prefix_before; /* not to be prefixed; nor one before it */
    bool shared;             /* another server has that name too */
    bool prefixed, hidden;
    bool off; /* hidden, because somebody wants it so */
};

struct cat_omitted { /* of a server */
    size_t duplicates, hidden;
};

struct cat_view {
    struct mo_arena arena;
    struct mo_map names;   /* exposed -> struct cat_entry */
    struct cat_entry **at; /* in order */
    size_t n;
    struct cat_entry **off; /* of tools: those that are not offered */
    size_t noff;
    struct cat_omitted *omitted; /* by server */
};

struct mo_catalog {
    enum mo_gw_prefix prefix;
    char *cache;
    struct cat_server *v;
    size_t n;
    struct cat_view *view[MO_CAT_KINDS];
};

/* NULL: no memory. */
struct cat_view *mo_catalog_view_new(enum mo_cat_kind kind,
                                     enum mo_gw_prefix prefix,
                                     const struct cat_server *v, size_t n);
void mo_catalog_view_free(struct cat_view *w);
bool mo_catalog_view_same(const struct cat_view *a, const struct cat_view *b);
/* The first template that a URI fits. */
const struct cat_entry *mo_catalog_view_match(const struct cat_view *w,
                                              struct mo_span uri);

/* What is missing of a server's lists of that kind (or MO_CAT_KINDS: all),
 * in words; "" when nothing is. */
void mo_catalog_describe_missing(const struct mo_catalog *c, size_t server,
                                 enum mo_cat_kind kind, char out[CAT_WHY_MAX]);

#endif
