/* keys_secrets.c - the keys of `secrets`, and where references stand. */
#include <stdio.h>

#include "config/rows.h"

/* The kinds of places that secrets/key.c can read a key from. */
static const char *check_place(const char *where)
{
    static const char *const kinds[] = {"file:", "env:", "keyring:"};
    struct mo_span s = mo_span_cstr(where);

    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        struct mo_span kind = mo_span_cstr(kinds[i]);

        if (mo_span_starts(s, kind) && s.n > kind.n)
            return NULL;
    }
    return "must be file:PATH, env:NAME or keyring:NAME";
}

static const struct mo_key rows[] = {
    {.name = "key",
     STR(mo_config_secrets, key),
     .check = check_place,
     .doc = "Where the key of the secret store is: `file:PATH`, `env:NAME` or "
            "`keyring:NAME` (a user key of the kernel's keyring); without it "
            "the variable `MCP_ORCHESTRATOR_SECRET_KEY`, else `secrets.key` "
            "in `store.dir`, which is made at the first secret"},
};
const struct mo_keys mo_config_secrets_keys =
    KEYS(rows, struct mo_config_secrets);

/* --- every text that may hold a reference -------------------------------- */

struct tour {
    mo_config_text_fn *fn;
    void *ctx;
};

static void tour_struct(const struct tour *t, const struct mo_keys *keys,
                        const char *base, const char *path);

static void tour_items(const struct tour *t, const struct mo_key *k,
                       const char *field, const char *path)
{
    struct mo_key_items items = mo_key_items(field);

    for (size_t i = 0; i < items.n; i++) {
        const char *item = items.v + i * k->sub->size;
        char longer[MO_KEY_PATH_MAX], index[24];

        (void)snprintf(index, sizeof(index), "%zu", i + 1);
        mo_key_join(longer, path,
                    k->type == MO_KEY_DICT
                        ? *(const char *const *)(const void *)item
                        : index);
        tour_struct(t, k->sub, item, longer);
    }
}

static void tour_texts(const struct tour *t, const struct mo_key *k,
                       const char *field, const char *path)
{
    const struct mo_config_map *map = (const void *)field;
    const char *text;

    if (k->type == MO_KEY_STR) {
        text = *(const char *const *)(const void *)field;
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

static void tour_struct(const struct tour *t, const struct mo_keys *keys,
                        const char *base, const char *path)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct mo_key *k = &keys->v[i];
        const char *field = base + k->off;
        char longer[MO_KEY_PATH_MAX];

        mo_key_join(longer, path, k->name);
        if (k->type == MO_KEY_SECTION)
            tour_struct(t, k->sub, field, longer);
        else if (k->type == MO_KEY_DICT || k->type == MO_KEY_ARRAY)
            tour_items(t, k, field, longer);
        else if (k->flags & MO_KEY_REF)
            tour_texts(t, k, field, longer);
    }
}

void mo_config_texts(const struct mo_config *c, mo_config_text_fn *fn,
                     void *ctx)
{
    struct tour t = {fn, ctx};

    tour_struct(&t, &mo_config_keys, (const char *)c, "");
}
