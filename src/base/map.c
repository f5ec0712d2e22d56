#include "base/map.h"

#include <endian.h>

#include "base/mem.h"
#include "base/rand.h"

#define CAP_MIN ((size_t)8)

static uint64_t rotl(uint64_t x, int b)
{
    return (x << b) | (x >> (64 - b));
}

/* Inlined to keep the four words in registers; a call would write and read them
 * once per round. */
static inline __attribute__((always_inline)) void sipround(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

static inline __attribute__((always_inline)) void mix(uint64_t v[4], uint64_t m)
{
    v[3] ^= m;
    sipround(v);
    sipround(v);
    v[0] ^= m;
}

static uint64_t load_le(const unsigned char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

/* Load the last n < 8 of `all` bytes. */
static uint64_t load_tail(const unsigned char *p, size_t n, size_t all)
{
    uint64_t v = 0;

    if (n == 0)
        return 0;
    if (all >= sizeof(v)) /* read earlier bytes too and shift them out */
        return load_le(p + n - sizeof(v)) >> (8 * (sizeof(v) - n));
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint64_t mo_siphash(uint64_t k0, uint64_t k1, struct mo_span s)
{
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                     k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
    const unsigned char *p = (const unsigned char *)s.p;
    size_t left = s.n;

    for (; left >= 8; left -= 8, p += 8)
        mix(v, load_le(p));
    mix(v, load_tail(p, left, s.n) | (uint64_t)s.n << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sipround(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void mo_map_init(struct mo_map *m, size_t max)
{
    *m = (struct mo_map){.max = max};
}

void mo_map_init_lent(struct mo_map *m, size_t max)
{
    *m = (struct mo_map){.max = max, .lent = true};
}

/* Called on the first insertion, because many maps stay empty. */
static void draw_keys(struct mo_map *m)
{
    uint64_t k[2];

    mo_random(k, sizeof(k));
    m->k0 = k[0];
    m->k1 = k[1];
}

static uint64_t hash_to_put(struct mo_map *m, struct mo_span key)
{
    if (!m->cap)
        draw_keys(m);
    return mo_siphash(m->k0, m->k1, key);
}

static void drop_key(const struct mo_map *m, struct mo_map_entry *en)
{
    if (!m->lent)
        mo_free(en->copy);
    en->key = NULL;
}

void mo_map_clear(struct mo_map *m)
{
    mo_map_each (en, m) {
        drop_key(m, en);
    }
    m->len = 0;
}

void mo_map_fini(struct mo_map *m)
{
    if (!m->lent)
        mo_map_clear(m);
    m->len = 0;
    mo_free(m->slots);
    m->slots = NULL;
    m->cap = 0;
}

/* The slot that holds key, or the free slot where it belongs. cap > 0. */
static struct mo_map_entry *probe_slot(const struct mo_map *m, uint64_t hash,
                                       struct mo_span key)
{
    size_t mask = m->cap - 1;
    size_t i = hash & mask;

    while (m->slots[i].key) {
        struct mo_map_entry *en = &m->slots[i];

        if (en->hash == hash && mo_span_eq(mo_map_key(en), key))
            return en;
        i = (i + 1) & mask;
    }
    return &m->slots[i];
}

static int resize_map(struct mo_map *m, size_t cap)
{
    struct mo_map wider = *m;

    /* memset, not zalloc: reading fresh pages first costs a second page
     * fault */
    wider.slots = mo_alloc(cap * sizeof(*wider.slots));
    if (!wider.slots)
        return MO_ENOMEM;
    memset(wider.slots, 0, cap * sizeof(*wider.slots));
    wider.cap = cap;
    mo_map_each (en, m) {
        *probe_slot(&wider, en->hash, mo_map_key(en)) = *en;
    }
    mo_free(m->slots);
    *m = wider;
    return 0;
}

static int grow_map(struct mo_map *m)
{
    return resize_map(m, m->cap ? m->cap * 2 : CAP_MIN);
}

int mo_map_reserve(struct mo_map *m, size_t n)
{
    size_t cap = m->cap ? m->cap : CAP_MIN;

    while (cap / 4 * 3 < n && cap < SIZE_MAX / 4)
        cap *= 2;
    if (n == 0 || cap == m->cap)
        return 0;
    if (!m->cap)
        draw_keys(m);
    return resize_map(m, cap);
}

void *mo_map_get(const struct mo_map *m, struct mo_span key)
{
    const struct mo_map_entry *en;

    if (!m->cap)
        return NULL;
    en = probe_slot(m, mo_siphash(m->k0, m->k1, key), key);
    return en->key ? en->value : NULL;
}

/* Insert a key that is known to be absent. */
static int insert_new(struct mo_map *m, uint64_t hash, struct mo_span key,
                      void *value)
{
    struct mo_map_entry fresh = {
        .hash = hash, .key = key.p, .key_len = key.n, .value = value};

    if (m->len >= m->max)
        return MO_EBUSY;
    if (!m->lent)
        fresh.copy = mo_strndup(key.p, key.n);
    if (!fresh.key)
        return MO_ENOMEM;
    if (m->len + 1 > m->cap / 4 * 3 && grow_map(m) < 0) {
        drop_key(m, &fresh);
        return MO_ENOMEM;
    }
    *probe_slot(m, hash, key) = fresh;
    m->len++;
    return 0;
}

int mo_map_put(struct mo_map *m, struct mo_span key, void *value, void **old)
{
    uint64_t hash = hash_to_put(m, key);
    struct mo_map_entry *en = m->cap ? probe_slot(m, hash, key) : NULL;

    MO_BUG_ON(!value);
    if (old)
        *old = NULL;
    if (!en || !en->key)
        return insert_new(m, hash, key, value);
    if (old)
        *old = en->value;
    en->value = value;
    return 0;
}

int mo_map_add(struct mo_map *m, struct mo_span key, void *value)
{
    uint64_t hash = hash_to_put(m, key);

    MO_BUG_ON(!value);
    if (m->cap && probe_slot(m, hash, key)->key)
        return MO_EEXISTS;
    return insert_new(m, hash, key, value);
}

/* Close the hole at i: move back entries after it that would no longer be found
 * from their home slot. */
static void close_hole(struct mo_map *m, size_t i)
{
    size_t mask = m->cap - 1;

    for (size_t j = (i + 1) & mask; m->slots[j].key; j = (j + 1) & mask) {
        size_t home = m->slots[j].hash & mask;

        if (((j - home) & mask) < ((j - i) & mask))
            continue;
        m->slots[i] = m->slots[j];
        i = j;
    }
    m->slots[i].key = NULL;
}

void *mo_map_del(struct mo_map *m, struct mo_span key)
{
    struct mo_map_entry *en;
    void *value;

    if (!m->cap)
        return NULL;
    en = probe_slot(m, mo_siphash(m->k0, m->k1, key), key);
    if (!en->key)
        return NULL;
    value = en->value;
    drop_key(m, en);
    close_hole(m, (size_t)(en - m->slots));
    m->len--;
    return value;
}
