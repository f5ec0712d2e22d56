/* keys_secrets.c - the keys of `secrets`, and all texts with references. */
#include "config/rows.h"

/* The places that secrets/key.c can read a key from. */
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
     .doc = "Location of the key of the secret store: `file:PATH`, `env:NAME` "
            "or `keyring:NAME` (a user key of the kernel's keyring); default: "
            "the variable `MCP_ORCHESTRATOR_SECRET_KEY`, else `secrets.key` "
            "in `store.dir`, which is created with the first secret"},
};
const struct mo_keys mo_config_secrets_keys =
    KEYS(rows, struct mo_config_secrets);

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

    mo_keys_values(&mo_config_keys, c, "", visit_text, &t);
}
