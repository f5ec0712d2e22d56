/* era_cache.h - which era each MCP server was found to speak, kept between
 * runs.
 *
 * A command that opens a server probes it first (mcp/client/conn.h); the
 * verdict and its date are kept in one small file of the state directory, so
 * that the next run need not probe a legacy server again. It is a cache: a file
 * that is missing, broken or not writable only costs the probe. Whoever finds a
 * verdict wrong forgets it. How long one is believed is conn.h's business.
 *
 * Servers are named by a digest of what was started or connected to: command
 * lines and addresses may hold secrets, and the file shows none of them.
 *
 * Limits: MO_ERA_CACHE_MAX servers (the oldest goes). */
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

/* kind, then words that end with NULL; cwd may be NULL. */
void mo_era_cache_key(const char *kind, const char *const *words,
                      const char *cwd, struct mo_era_cache_key *out);

/* MO_ERA_UNKNOWN when there is none. */
struct mo_conn_verdict mo_era_cache_get(const char *dir,
                                        const struct mo_era_cache_key *key);
/* Keep or (MO_ERA_UNKNOWN) forget. */
void mo_era_cache_put(const char *dir, const struct mo_era_cache_key *key,
                      struct mo_conn_verdict v);

#endif
