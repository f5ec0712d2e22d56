/* era_cache.h - remembers which protocol era each MCP server speaks.
 *
 * A command that opens a server probes its era first (mcp/client/conn.h). The
 * result and its date are stored in one small file in the state directory, so
 * that the next run need not probe a legacy server again. This is a cache: if
 * the file is missing, broken or not writable, servers are probed again. A
 * caller that finds an entry wrong removes it. conn.h decides how long an entry
 * is valid.
 *
 * Servers are identified by a digest of their command or address, because
 * command lines and addresses may contain secrets.
 *
 * Limit: MO_ERA_CACHE_MAX servers; a new one replaces the oldest. */
#ifndef MO_CONNECT_ERA_CACHE_H
#define MO_CONNECT_ERA_CACHE_H

#include "mcp/client/conn.h"

#define MO_ERA_CACHE_FILE     "eras.json"
#define MO_ERA_CACHE_MAX      256
#define MO_ERA_CACHE_FILE_MAX ((size_t)64 * 1024)
#define MO_ERA_CACHE_KEY_LEN  64 /* hex digits */

struct mo_era_cache_key {
    char text[MO_ERA_CACHE_KEY_LEN + 1];
};

/* Digest of kind, of the words (NULL-terminated) and of cwd, which may be
 * NULL. */
void mo_era_cache_key(const char *kind, const char *const *words,
                      const char *cwd, struct mo_era_cache_key *out);

/* MO_ERA_UNKNOWN if there is no entry. */
struct mo_conn_verdict mo_era_cache_get(const char *dir,
                                        const struct mo_era_cache_key *key);
/* Stores the entry, or removes it if v is MO_ERA_UNKNOWN. */
void mo_era_cache_put(const char *dir, const struct mo_era_cache_key *key,
                      struct mo_conn_verdict v);

#endif
