/* keys.h - the table of all configuration keys.
 *
 * The JSON reader, the check for unknown keys, the environment layer, the JSON
 * Schema, `config show` and docs/configuration.md are made from it. A new key
 * is one row in keys.c, one member in config.h and one text in
 * data/configuration.json. The macros of keys.c check at compile time that the
 * member has the C type of the key.
 *
 * Sections nest as in the file. A dictionary (mcpServers) has named elements,
 * an array (approvals.rules) unnamed ones. Both are a pointer and a count in
 * the parent struct; their elements have a table of their own. If this table is
 * one row without a name, an element is the value of this row (network.inject).
 */
#ifndef MO_CONFIG_KEYS_H
#define MO_CONFIG_KEYS_H

#include "config/config.h"

enum mo_key_type {
    MO_KEY_BOOL,    /* bool */
    MO_KEY_INT,     /* int64_t */
    MO_KEY_NUM,     /* double */
    MO_KEY_MONEY,   /* int64_t, millionths (codec/money.h) */
    MO_KEY_STR,     /* const char * */
    MO_KEY_WORD,    /* int, one of words */
    MO_KEY_LIST,    /* struct mo_config_list */
    MO_KEY_MAP,     /* struct mo_config_map */
    MO_KEY_SECTION, /* an embedded struct */
    MO_KEY_DICT,    /* pointer and count, named elements */
    MO_KEY_ARRAY,   /* pointer and count */
};

#define MO_KEY_SECRET  1u  /* masked when shown */
#define MO_KEY_REF     2u  /* may contain ${secret:..}, ${env:..}, ${file:..} */
#define MO_KEY_RESTART 4u  /* a change needs a restart */
#define MO_KEY_ALIAS   8u  /* another spelling of the row before it */
#define MO_KEY_URL     16u /* a password in it is masked when shown */
#define MO_KEY_TOOL    32u /* its elements have names of tools */
#define MO_KEY_NONE    64u /* SECTION: "none" stands for an empty one */
#define MO_KEY_HOST    128u /* its elements have names of hosts */
#define MO_KEY_FILLED  256u /* LIST: must not be empty */
#define MO_KEY_ANY     512u /* its elements have names of any kind */

#define MO_KEY_TEXT_MAX      ((size_t)32 * 1024) /* bytes of one text */
#define MO_KEY_ITEMS_MAX     ((size_t)256)       /* of one list or map */
#define MO_KEY_MCP_MAX       ((size_t)512)
#define MO_KEY_PROVIDERS_MAX ((size_t)16)
#define MO_KEY_RULES_MAX     ((size_t)1024)
#define MO_KEY_WEBHOOKS_MAX  ((size_t)8)
#define MO_KEY_PERSONS_MAX   5 /* who approve one call */
#define MO_KEY_VIEWS_MAX     ((size_t)64)
#define MO_KEY_BUDGETS_MAX   ((size_t)1024)
#define MO_KEY_PRICES_MAX    ((size_t)512)
#define MO_KEY_TOOLS_MAX     ((size_t)1024) /* of one server */
#define MO_KEY_TOOL_MAX      ((size_t)256)  /* bytes of a tool's name */
#define MO_KEY_RETRIES_MAX   5
#define MO_KEY_NAME_MAX      ((size_t)64)  /* of an MCP server */
#define MO_KEY_PATH_MAX      ((size_t)200) /* "mcpServers.x.env.Y" in messages */

struct mo_key_word {
    const char *word;
    int value;
    bool alias; /* accepted, but never shown */
};

struct mo_keys;

struct mo_key {
    const char *name;
    enum mo_key_type type;
    unsigned flags;
    size_t off;      /* of the member in its struct */
    const char *def; /* default as text, or NULL */
    double min, max; /* INT, NUM */
    const struct mo_key_word *words;
    size_t nwords;
    const char *env; /* "A,B": variables that set it, the first wins */
    /* Returns NULL or the error ("must be ..."). Not called for references. */
    const char *(*check)(const char *text);
    const char *wrong; /* error for a value that is not text; NULL: default */
    size_t max_items;
    const struct mo_keys *sub; /* SECTION, DICT, ARRAY */
};

struct mo_keys {
    const struct mo_key *v;
    size_t n;
    size_t size; /* bytes of the struct it describes */
};

extern const struct mo_keys mo_config_keys; /* the root */

const struct mo_key *mo_key_get(const struct mo_keys *keys,
                                struct mo_span name);
/* The word for a value (never an alias). */
const char *mo_key_word(const struct mo_key *k, int value);

/* Pointer and count of a DICT or ARRAY of any element type. */
struct mo_key_items {
    char *v;
    size_t n;
};
/* The row whose value an element of k is, or NULL. */
const struct mo_key *mo_key_only(const struct mo_key *k);
struct mo_key_items mo_key_items(const void *field);
void mo_key_set_items(void *field, void *v, size_t n);

/* Writes "path.name"; a path that is too long is cut. */
void mo_key_join(char out[MO_KEY_PATH_MAX], const char *path, const char *name);

/* Calls fn for every key outside dictionaries and arrays, in the order of the
 * table, including those in sections. path is valid during the call. */
typedef void mo_key_fn(void *ctx, const char *path, const struct mo_key *k,
                       void *field);
void mo_keys_walk(const struct mo_keys *keys, void *base, mo_key_fn *fn,
                  void *ctx);

/* Calls fn for every value of base, including those in sections, dictionaries
 * and arrays. Array elements count from 1. path is valid during the call. */
typedef void mo_key_value_fn(void *ctx, const char *path,
                             const struct mo_key *k, const void *field);
void mo_keys_values(const struct mo_keys *keys, const void *base,
                    mo_key_value_fn *fn, void *ctx);

/* The row of "server.port" and its member in base; NULL: no such key. */
const struct mo_key *mo_keys_path(const struct mo_keys *keys, const char *path,
                                  void *base, void **field);

#endif
