/* walk.c - iterates over the key table and the structs it describes. */
#include <stdio.h>

#include "config/keys.h"

const struct mo_key *mo_key_get(const struct mo_keys *keys, struct mo_span name)
{
    for (size_t i = 0; i < keys->n; i++) {
        if (mo_span_is(name, keys->v[i].name))
            return &keys->v[i];
    }
    return NULL;
}

const char *mo_key_word(const struct mo_key *k, int value)
{
    for (size_t i = 0; i < k->nwords; i++) {
        if (k->words[i].value == value && !k->words[i].alias)
            return k->words[i].word;
    }
    return "?";
}

const struct mo_key *mo_key_only(const struct mo_key *k)
{
    return k->sub && !*k->sub->v[0].name ? &k->sub->v[0] : NULL;
}

/* The type of the element pointer differs between rows, its representation
 * does not; memcpy respects the aliasing rules of C. */
struct mo_key_items mo_key_items(const void *field)
{
    struct mo_key_items items;

    memcpy(&items, field, sizeof(items));
    return items;
}

void mo_key_set_items(void *field, void *v, size_t n)
{
    struct mo_key_items items = {v, n};

    _Static_assert(
        sizeof(struct mo_key_items) == sizeof(struct mo_config_mcps) &&
            sizeof(struct mo_key_items) == sizeof(struct mo_config_tools) &&
            sizeof(struct mo_key_items) == sizeof(struct mo_config_injects) &&
            sizeof(struct mo_key_items) == sizeof(struct mo_config_views) &&
            sizeof(struct mo_key_items) == sizeof(struct mo_config_rules),
        "pointer and count");
    memcpy(field, &items, sizeof(items));
}

/* Appends a name to the path of this length; returns the new length. What
 * does not fit is cut off. */
static size_t append_name(char path[MO_KEY_PATH_MAX], size_t len,
                          const char *name)
{
    size_t n = strlen(name);

    if (n > 0 && len > 0 && len < MO_KEY_PATH_MAX - 1)
        path[len++] = '.';
    if (n > MO_KEY_PATH_MAX - 1 - len)
        n = MO_KEY_PATH_MAX - 1 - len;
    memcpy(path + len, name, n);
    path[len + n] = '\0';
    return len + n;
}

void mo_key_join(char out[MO_KEY_PATH_MAX], const char *path, const char *name)
{
    append_name(out, append_name(out, 0, path), name);
}

static void walk_section(const struct mo_keys *keys, char *base, char *path,
                         size_t len, mo_key_fn *fn, void *ctx)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct mo_key *k = &keys->v[i];
        size_t longer = append_name(path, len, k->name);

        if (k->type == MO_KEY_SECTION)
            walk_section(k->sub, base + k->off, path, longer, fn, ctx);
        else
            fn(ctx, path, k, base + k->off);
    }
}

void mo_keys_walk(const struct mo_keys *keys, void *base, mo_key_fn *fn,
                  void *ctx)
{
    char path[MO_KEY_PATH_MAX] = "";

    walk_section(keys, base, path, 0, fn, ctx);
}

/* A walk over all values. The path grows and shrinks in place. */
struct values {
    mo_key_value_fn *fn;
    void *ctx;
    char path[MO_KEY_PATH_MAX];
};

static void visit_values(struct values *v, const struct mo_keys *keys,
                         const void *base, size_t len);

static void visit_items(struct values *v, const struct mo_key *k,
                        const void *field, size_t len)
{
    struct mo_key_items items = mo_key_items(field);

    for (size_t i = 0; i < items.n; i++) {
        const char *item = items.v + i * k->sub->size;
        const char *name = *(const char *const *)(const void *)item;
        char index[24];

        if (k->type != MO_KEY_DICT) {
            (void)snprintf(index, sizeof(index), "%zu", i + 1);
            name = index;
        }
        visit_values(v, k->sub, item, append_name(v->path, len, name));
    }
}

static void visit_values(struct values *v, const struct mo_keys *keys,
                         const void *base, size_t len)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct mo_key *k = &keys->v[i];
        const char *field = (const char *)base + k->off;
        size_t longer = append_name(v->path, len, k->name);

        if (k->type == MO_KEY_SECTION)
            visit_values(v, k->sub, field, longer);
        else if (k->type == MO_KEY_DICT || k->type == MO_KEY_ARRAY)
            visit_items(v, k, field, longer);
        else
            v->fn(v->ctx, v->path, k, field);
    }
}

void mo_keys_values(const struct mo_keys *keys, const void *base,
                    mo_key_value_fn *fn, void *ctx)
{
    struct values v = {.fn = fn, .ctx = ctx};

    visit_values(&v, keys, base, 0);
}

const struct mo_key *mo_keys_path(const struct mo_keys *keys, const char *path,
                                  void *base, void **field)
{
    struct mo_span rest = mo_span_cstr(path);
    char *at = base;

    while (keys) {
        const struct mo_key *k = mo_key_get(keys, mo_span_cut(&rest, '.'));

        if (!k)
            return NULL;
        at += k->off;
        if (!rest.p) {
            *field = at;
            return k;
        }
        keys = k->type == MO_KEY_SECTION ? k->sub : NULL;
    }
    return NULL;
}

/* --- every text that may hold a reference -------------------------------- */

struct texts {
    mo_config_text_fn *fn;
    void *ctx;
};

static void visit_text(void *ctx, const char *path, const struct mo_key *k,
                       const void *field)
{
    const struct texts *t = ctx;
    const struct mo_config_map *map = field;
    const char *text;

    if (!(k->flags & MO_KEY_REF))
        return;
    if (k->type == MO_KEY_STR) {
        text = *(const char *const *)field;
        if (text)
            t->fn(t->ctx, path, text);
        return;
    }
    for (size_t i = 0; k->type == MO_KEY_MAP && i < map->n; i++) {
        char longer[MO_KEY_PATH_MAX];

        mo_key_join(longer, path, map->v[i].name);
        t->fn(t->ctx, longer, map->v[i].value);
    }
}

void mo_config_texts(const struct mo_config *c, mo_config_text_fn *fn,
                     void *ctx)
{
    struct texts t = {fn, ctx};

    mo_keys_values(&mo_config_keys, c, visit_text, &t);
}
