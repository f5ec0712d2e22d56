/* secrets.h - the secret store: one encrypted file with the values of
 * ${secret:NAME}.
 *
 * The file is read and replaced as a whole, so a reader sees the old or the new
 * one. Its format, numbers little-endian:
 *
 *   "MOSECRET"  version u32 = 1  entries u32  id of the key, 8 bytes
 *   entries, by name: length u8, name, set at u64 (ms), value's length u32,
 *                     nonce 24, value sealed by XChaCha20-Poly1305 (+ 16)
 *   MAC of all that, 32 (keyed BLAKE2b)
 *
 * Name and date are associated data of their value: an entry that was moved
 * to another name does not open. The MAC detects entries that are missing or
 * come from an older file. The keys for values, MAC and id are derived from one
 * key; the id distinguishes "another key" from "damaged" and reveals nothing
 * else. Not detected: the whole file was replaced by an older one.
 *
 * Names are not encrypted: the configuration has them too.
 *
 * Ownership: the store owns the (sealed) bytes of the file and the keys. The
 * keys have a page of their own, which is not swapped or dumped if the kernel
 * permits that, and are wiped. A value is written once, to the caller's buffer;
 * the caller wipes it.
 * Limits: MO_SECRET_MAX bytes per value, MO_SECRETS_MAX values (MO_ETOOBIG). A
 * writer waits MO_SECRETS_LOCK_MS for another one (MO_EBUSY).
 * Source of the key: key.h. */
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

/* A missing file is an empty store. MO_EPOLICY: other users may read the file,
 * or it was written with another key; MO_EPROTO: not a file of secrets, damaged
 * or of a newer version. The key is copied. */
int mo_secrets_open(const char *path, const unsigned char key[MO_SECRETS_KEY],
                    struct mo_secrets **out, struct mo_err *e);
void mo_secrets_close(struct mo_secrets *s); /* NULL is fine */

/* Sorted by name. NULL is an empty store. */
size_t mo_secrets_count(const struct mo_secrets *s);
struct mo_secret_info mo_secrets_at(const struct mo_secrets *s, size_t i);
bool mo_secrets_has(const struct mo_secrets *s, struct mo_span name);

/* Appends the value. MO_ENOTFOUND: the message says how to set it. */
int mo_secrets_get(const struct mo_secrets *s, struct mo_span name,
                   struct mo_buf *out, struct mo_err *e);

/* Set or replace; remove. Both lock the file, read it again and replace it
 * atomically. */
int mo_secrets_put(struct mo_secrets *s, struct mo_span name,
                   struct mo_span value, struct mo_err *e);
int mo_secrets_drop(struct mo_secrets *s, struct mo_span name,
                    struct mo_err *e);

/* Seals and opens the bytes of another file with a key derived from the
 * store's: version, id of the key, nonce, bytes. bound: what the bytes belong
 * to; only the same text opens them. MO_EPOLICY: sealed with another key;
 * MO_EPROTO: damaged, or not sealed for that. */
int mo_secrets_seal(const struct mo_secrets *s, struct mo_span bound,
                    struct mo_span plain, struct mo_buf *out);
int mo_secrets_unseal(const struct mo_secrets *s, struct mo_span bound,
                      struct mo_span sealed, struct mo_buf *out,
                      struct mo_err *e);

/* Letters, digits, '_', '-' and '.', as in ${secret:NAME}. */
bool mo_secret_name_ok(struct mo_span name);
/* NULL, or why the value is invalid. It must fit into an environment
 * variable. */
const char *mo_secret_value_wrong(struct mo_span value);

#endif
