/* secrets.h - the store behind ${secret:NAME}: one encrypted file.
 *
 * All of it is read and written at once: it is small, and so whoever reads it
 * sees the old or the new one whole. The file, numbers little-endian:
 *
 *   "MOSECRET"  version u32 = 1  entries u32  id of the key, 8 bytes
 *   entries, by name: length u8, name, set at u64 (ms), value's length u32,
 *                     nonce 24, value sealed by XChaCha20-Poly1305 (+ 16)
 *   MAC of all that, 32 (keyed BLAKE2b)
 *
 * Name and date are bound to their value as associated data: an entry that
 * was moved under another name does not open. The MAC also knows entries that
 * are missing or come from an older file. One key is given; those for values,
 * for the MAC and the id are derived from it, so the id tells "another key"
 * from "damaged" and says nothing else. What this cannot know is that the
 * whole file was put back to an older one.
 *
 * Names stand in the clear: the configuration has them too.
 *
 * Ownership: the file's bytes (sealed) and the keys; the keys are in a page of
 * their own that is not swapped or dumped where the kernel lets us, and are
 * wiped. A value is written once, into the caller's buffer, who wipes it.
 * Limits: MO_SECRET_MAX bytes a value, MO_SECRETS_MAX of them (MO_ETOOBIG).
 * Writers wait for each other MO_SECRETS_LOCK_MS (MO_EBUSY).
 * Where the key comes from: key.h. */
#ifndef MO_SECRETS_SECRETS_H
#define MO_SECRETS_SECRETS_H

#include "base/str.h"

#define MO_SECRETS_FILE     "secrets.bin" /* in store.dir */
#define MO_SECRETS_KEY      32
#define MO_SECRETS_MAX      1000
#define MO_SECRET_MAX       ((size_t)64 * 1024)
#define MO_SECRET_NAME_MAX  ((size_t)128)
#define MO_SECRETS_LOCK_MS  5000
#define MO_SECRETS_FILE_MAX (MO_SECRETS_MAX * (MO_SECRET_MAX + 256) + 64)

struct mo_secrets;

struct mo_secret_info {
    struct mo_span name; /* borrowed until the next put or drop */
    uint64_t set_ms;     /* mo_wall_ms() */
};

/* No file yet is an empty store. MO_EPOLICY: others may read it, or it was
 * made with another key; MO_EPROTO: foreign, damaged or of a newer version.
 * The key is copied. */
int mo_secrets_open(const char *path, const unsigned char key[MO_SECRETS_KEY],
                    struct mo_secrets **out, struct mo_err *e);
void mo_secrets_close(struct mo_secrets *s); /* NULL is fine */

/* NULL has none. In the order of their names. */
size_t mo_secrets_count(const struct mo_secrets *s);
struct mo_secret_info mo_secrets_at(const struct mo_secrets *s, size_t i);
bool mo_secrets_has(const struct mo_secrets *s, struct mo_span name);

/* Append the value. MO_ENOTFOUND says how to set it. */
int mo_secrets_get(const struct mo_secrets *s, struct mo_span name,
                   struct mo_buf *out, struct mo_err *e);

/* Set or replace, remove; on the file as it is by then, never by halves. */
int mo_secrets_put(struct mo_secrets *s, struct mo_span name,
                   struct mo_span value, struct mo_err *e);
int mo_secrets_drop(struct mo_secrets *s, struct mo_span name,
                    struct mo_err *e);

/* Letters, digits, '_', '-' and '.', as in ${secret:NAME}. */
bool mo_secret_name_ok(struct mo_span name);
/* What is wrong with a value, or NULL: it must fit into a variable. */
const char *mo_secret_value_wrong(struct mo_span value);

#endif
