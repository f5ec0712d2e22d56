/* map.h - a hash map that is safe for keys chosen by an attacker.
 *
 * SipHash-2-4 with a random key per map: nobody outside can provoke collisions.
 * Open addressing with linear probing and backward-shift deletion (no
 * tombstones), at most 3/4 full. The number of entries is limited at init.
 *
 * The map owns a copy of every key, except after mo_map_init_lent(). Values are
 * the caller's pointers.
 *
 * A put or delete may move entries: do neither while iterating. */
#ifndef MO_BASE_MAP_H
#define MO_BASE_MAP_H

#include "base/str.h"

struct mo_map_entry {
    uint64_t hash;
    union {
        const char *key; /* NULL = free slot */
        char *copy;      /* the same, if the map owns it */
    };
    size_t key_len;
    void *value;
};

struct mo_map {
    struct mo_map_entry *slots;
    size_t cap; /* 0 or a power of two */
    size_t len, max;
    uint64_t k0, k1;
    bool lent;
};

void mo_map_init(struct mo_map *m, size_t max);
/* Keys are not copied: the caller keeps each one alive while it is in the
 * map. */
void mo_map_init_lent(struct mo_map *m, size_t max);
/* Make room for n entries in one step. MO_ENOMEM. */
int mo_map_reserve(struct mo_map *m, size_t n);
void mo_map_fini(struct mo_map *m);
void mo_map_clear(struct mo_map *m);

void *mo_map_get(const struct mo_map *m, struct mo_span key); /* or NULL */

/* Insert or replace. *old (may be NULL) gets the value it replaced.
 * MO_EBUSY at max, MO_ENOMEM; the map is unchanged then. value != NULL. */
int mo_map_put(struct mo_map *m, struct mo_span key, void *value, void **old);

/* Insert only. MO_EEXISTS if the key exists; the map is unchanged then. */
int mo_map_add(struct mo_map *m, struct mo_span key, void *value);

/* The removed value, or NULL. */
void *mo_map_del(struct mo_map *m, struct mo_span key);

static inline struct mo_span mo_map_key(const struct mo_map_entry *en)
{
    return mo_span(en->key, en->key_len);
}

/* One past the last slot. A map that never held an entry has no slots. */
static inline struct mo_map_entry *mo_map_end(const struct mo_map *m)
{
    return m->slots ? m->slots + m->cap : NULL;
}

#define mo_map_each(en, m)                                                     \
    for (struct mo_map_entry *en = (m)->slots, *en##_end = mo_map_end(m);      \
         en < en##_end; en++)                                                  \
        if (!en->key) {                                                        \
        } else

uint64_t mo_siphash(uint64_t k0, uint64_t k1, struct mo_span s);

#endif
