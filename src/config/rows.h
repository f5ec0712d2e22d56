/* rows.h - macros for rows of the key tables. Included by keys*.c only. */
#ifndef MO_CONFIG_ROWS_H
#define MO_CONFIG_ROWS_H

#include "config/keys.h"

/* offsetof, and a compile error unless the member has the type CT. */
#define AT(T, m, CT)                                                           \
    (offsetof(struct T, m) + 0 * sizeof(_Generic(&((struct T *)0)->m, CT *     \
                                                 : (char)0)))

#define BOOL(T, m) .type = MO_KEY_BOOL, .off = AT(T, m, bool)
#define INT(T, m, lo, hi)                                                      \
    .type = MO_KEY_INT, .off = AT(T, m, int64_t), .min = (lo), .max = (hi)
#define NUM(T, m, lo, hi)                                                      \
    .type = MO_KEY_NUM, .off = AT(T, m, double), .min = (lo), .max = (hi)
#define STR(T, m) .type = MO_KEY_STR, .off = AT(T, m, const char *)
#define WORD(T, m, w)                                                          \
    .type = MO_KEY_WORD, .off = AT(T, m, int), .words = (w),                   \
    .nwords = MO_COUNT(w)
#define LIST(T, m)                                                             \
    .type = MO_KEY_LIST, .off = AT(T, m, struct mo_config_list),               \
    .max_items = MO_KEY_ITEMS_MAX
#define MAP(T, m)                                                              \
    .type = MO_KEY_MAP, .off = AT(T, m, struct mo_config_map),                 \
    .max_items = MO_KEY_ITEMS_MAX
#define SECTION(T, m, ST, s)                                                   \
    .type = MO_KEY_SECTION, .off = AT(T, m, struct ST), .sub = &(s)
#define DICT(T, m, ST, s, most)                                                \
    .type = MO_KEY_DICT, .off = AT(T, m, struct ST), .sub = &(s),              \
    .max_items = (most)
#define ARRAY(T, m, ST, s, most)                                               \
    .type = MO_KEY_ARRAY, .off = AT(T, m, struct ST), .sub = &(s),             \
    .max_items = (most)
#define DAY_MS 86400000.0

#define KEYS(rows, T)                                                          \
    {                                                                          \
        .v = (rows), .n = MO_COUNT(rows), .size = sizeof(T)                    \
    }

static inline const char *check_not_empty(const char *s)
{
    return *s ? NULL : "must not be empty";
}

extern const struct mo_key_word mo_config_exposures[3]; /* keys_gateway.c */
extern const struct mo_keys mo_config_gateway_keys;     /* keys_gateway.c */
extern const struct mo_keys mo_config_oauth_keys;       /* keys_oauth.c */
extern const struct mo_keys mo_config_tools_keys;       /* keys_tools.c */
extern const struct mo_keys mo_config_secrets_keys;     /* keys_secrets.c */
extern const struct mo_keys mo_config_server_keys;      /* keys_server.c */
extern const struct mo_keys mo_config_audit_keys;       /* keys_gateway.c */

#endif
