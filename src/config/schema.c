/* schema.c - the JSON Schema and docs/configuration.md; see doc.h. */
#include <stdio.h>

#include "codec/json/json.h"
#include "config/doc.h"
#include "config/keys.h"

/* data/configuration.json: the meaning of each key, by its path.
 * data/configuration.md: the head of docs/configuration.md. */
extern const char mo_helper_config_texts[], mo_helper_config_texts_end[];
extern const char mo_helper_config_head[], mo_helper_config_head_end[];

static struct mo_json read_texts(void)
{
    struct mo_json_doc doc = {.bad_at = 0};

    (void)mo_json_parse(
        mo_span(mo_helper_config_texts,
                (size_t)(mo_helper_config_texts_end - mo_helper_config_texts)),
        0, &doc, NULL);
    return doc.root;
}

/* The prefix of the keys below k: "rules[].", "mcpServers.NAME.", "llm." */
static void prefix_below(char out[MO_KEY_PATH_MAX], const char *path,
                         const struct mo_key *k)
{
    int n = snprintf(out, MO_KEY_PATH_MAX, "%s%s", path,
                     k->type == MO_KEY_ARRAY  ? "[]."
                     : k->type == MO_KEY_DICT ? ".NAME."
                                              : ".");

    MO_BUG_ON(n < 0 || (size_t)n >= MO_KEY_PATH_MAX);
}

/* --- all keys ------------------------------------------------------------ */

struct walk {
    void (*fn)(void *ctx, const struct mo_config_entry *x);
    void *ctx;
    struct mo_json texts;
};

/* Keys of nested tables have a longer prefix. */
static void walk_keys(const struct walk *w, const char *prefix,
                      const struct mo_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct mo_key *k = &keys->v[i];
        char path[MO_KEY_PATH_MAX], below[MO_KEY_PATH_MAX];

        (void)snprintf(path, sizeof(path), "%s%s", prefix, k->name);
        prefix_below(below, path, k);
        if (k->type != MO_KEY_SECTION)
            w->fn(w->ctx, &(struct mo_config_entry){
                              path, mo_json_get(w->texts, path), k, false});
        if (k->sub && !mo_key_only(k))
            walk_keys(w, below, k->sub);
    }
}

void mo_config_entries(void (*fn)(void *ctx, const struct mo_config_entry *x),
                       void *ctx)
{
    const struct walk w = {fn, ctx, read_texts()};

    for (size_t i = 0; i < mo_config_keys.n; i++) {
        const struct mo_key *k = &mo_config_keys.v[i];
        char below[MO_KEY_PATH_MAX];

        prefix_below(below, k->name, k);
        fn(ctx, &(struct mo_config_entry){
                    k->name, mo_json_get(w.texts, k->name), k, true});
        walk_keys(&w, below, k->sub);
    }
}

/* --- JSON Schema --------------------------------------------------------- */

struct schema {
    struct mo_jw w;
    struct mo_json texts;
};

static void schema_object(struct schema *s, const struct mo_keys *keys,
                          const char *prefix);

static void schema_words(struct mo_jw *w, const struct mo_key *k)
{
    mo_jw_member_arr(w, "enum");
    for (size_t i = 0; i < k->nwords; i++)
        mo_jw_cstr(w, k->words[i].word);
    mo_jw_end(w);
}

/* {"type":"string"}, the elements of lists and maps. */
static void schema_texts(struct mo_jw *w, const char *key)
{
    mo_jw_member_obj(w, key);
    mo_jw_member_cstr(w, "type", "string");
    mo_jw_end(w);
}

static void schema_type(struct schema *s, const struct mo_key *k,
                        const char *prefix)
{
    static const struct {
        const char *type, *sub; /* sub: the member that describes elements */
    } rows[] = {
        [MO_KEY_BOOL] = {"boolean", NULL},
        [MO_KEY_INT] = {"integer", NULL},
        [MO_KEY_NUM] = {"number", NULL},
        [MO_KEY_MONEY] = {"number", NULL},
        [MO_KEY_STR] = {"string", NULL},
        [MO_KEY_WORD] = {"string", NULL},
        [MO_KEY_LIST] = {"array", "items"},
        [MO_KEY_MAP] = {"object", "additionalProperties"},
        [MO_KEY_DICT] = {"object", "additionalProperties"},
        [MO_KEY_ARRAY] = {"array", "items"},
    };
    struct mo_jw *w = &s->w;

    mo_jw_member_cstr(w, "type", rows[k->type].type);
    if (k->type >= MO_KEY_INT && k->type <= MO_KEY_MONEY) {
        mo_jw_member_f64(w, "minimum", k->min);
        mo_jw_member_f64(w, "maximum", k->max);
    }
    if (k->type == MO_KEY_WORD)
        schema_words(w, k);
    if (k->type == MO_KEY_LIST || k->type == MO_KEY_MAP)
        schema_texts(w, rows[k->type].sub);
    if (k->sub) {
        mo_jw_member_obj(w, rows[k->type].sub);
        if (mo_key_only(k))
            schema_type(s, mo_key_only(k), prefix);
        else
            schema_object(s, k->sub, prefix);
        mo_jw_end(w);
    }
    if (k->max_items) {
        bool list = k->type == MO_KEY_LIST || k->type == MO_KEY_ARRAY;

        mo_jw_member_u64(w, list ? "maxItems" : "maxProperties", k->max_items);
    }
}

static void schema_default(struct mo_jw *w, const struct mo_key *k)
{
    bool text = k->type == MO_KEY_STR || k->type == MO_KEY_WORD;

    if (!k->def)
        return;
    mo_jw_key(w, "default");
    if (text)
        mo_jw_cstr(w, k->def);
    else
        mo_jw_raw(w, mo_span_cstr(k->def)); /* numbers, true, false */
}

/* "none", or an object. */
static void schema_none_or(struct schema *s, const struct mo_keys *keys,
                           const char *prefix)
{
    mo_jw_member_arr(&s->w, "anyOf");
    mo_jw_obj(&s->w);
    mo_jw_member_cstr(&s->w, "const", "none");
    mo_jw_end(&s->w);
    mo_jw_obj(&s->w);
    schema_object(s, keys, prefix);
    mo_jw_end(&s->w);
    mo_jw_end(&s->w);
}

static void schema_key(struct schema *s, const struct mo_key *k,
                       const char *prefix)
{
    char path[MO_KEY_PATH_MAX], below[MO_KEY_PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s%s", prefix, k->name);
    prefix_below(below, path, k);
    mo_jw_member_obj(&s->w, k->name);
    mo_jw_member_raw(&s->w, "description",
                     mo_json_text(mo_json_get(s->texts, path)));
    if (k->flags & MO_KEY_NONE)
        schema_none_or(s, k->sub, below);
    else if (k->type == MO_KEY_SECTION)
        schema_object(s, k->sub, below);
    else
        schema_type(s, k, below);
    schema_default(&s->w, k);
    mo_jw_end(&s->w);
}

/* Writes the members of an object that the caller has opened. */
static void schema_object(struct schema *s, const struct mo_keys *keys,
                          const char *prefix)
{
    mo_jw_member_cstr(&s->w, "type", "object");
    mo_jw_member_bool(&s->w, "additionalProperties", false);
    mo_jw_member_obj(&s->w, "properties");
    if (keys == &mo_config_keys)
        schema_texts(&s->w, "$schema");
    for (size_t i = 0; i < keys->n; i++)
        schema_key(s, &keys->v[i], prefix);
    mo_jw_end(&s->w);
}

void mo_config_schema(struct mo_buf *b)
{
    struct schema s = {mo_jw_object(b), read_texts()};

    mo_jw_member_cstr(&s.w, "$schema",
                      "http://json-schema.org/draft-07/schema#");
    mo_jw_member_cstr(&s.w, "title", "MCP Orchestrator configuration");
    schema_object(&s, &mo_config_keys, "");
    mo_jw_end(&s.w);
}

/* --- Markdown ------------------------------------------------------------ */

void mo_config_put_type(struct mo_buf *b, const struct mo_key *k)
{
    static const char *const words[] = {
        [MO_KEY_BOOL] = "true or false",   [MO_KEY_STR] = "text",
        [MO_KEY_LIST] = "list of texts",   [MO_KEY_MAP] = "texts by name",
        [MO_KEY_DICT] = "objects by name", [MO_KEY_ARRAY] = "list of objects",
        [MO_KEY_INT] = "whole number",     [MO_KEY_NUM] = "number",
        [MO_KEY_MONEY] = "amount",
    };

    if (k->type >= MO_KEY_INT && k->type <= MO_KEY_MONEY) {
        mo_buf_printf(b, "%s, %.15g to %.15g", words[k->type], k->min, k->max);
    } else if (k->type != MO_KEY_WORD) {
        mo_buf_puts(b, words[k->type]);
    } else {
        for (size_t i = 0; i < k->nwords; i++)
            mo_buf_printf(b, "%s`%s`", i ? ", " : "", k->words[i].word);
    }
}

static void docs_env(struct mo_buf *b, const char *names)
{
    struct mo_span rest = mo_span_cstr(names);

    for (bool first = true; rest.p; first = false) {
        struct mo_span s = mo_span_cut(&rest, ',');

        mo_buf_printf(b, "%s`%.*s`", first ? "" : ", ", (int)s.n, s.p);
    }
}

static void docs_section(struct mo_buf *b, const struct mo_config_entry *x)
{
    mo_buf_printf(b, "\n## %s\n\n", x->path);
    (void)mo_json_str_buf(x->text, b);
    mo_buf_puts(b, ".\n\n| key | type | default | environment | meaning |\n"
                   "|---|---|---|---|---|\n");
}

static void docs_row(void *ctx, const struct mo_config_entry *x)
{
    const struct mo_key *k = x->key;
    struct mo_buf *b = ctx;

    if (x->is_section) {
        docs_section(b, x);
        return;
    }
    mo_buf_printf(b, "| `%s` | ", x->path);
    mo_config_put_type(b, k);
    mo_buf_puts(b, " | ");
    if (k->def)
        mo_buf_printf(b, "`%s`", k->def);
    mo_buf_puts(b, " | ");
    if (k->env)
        docs_env(b, k->env);
    mo_buf_puts(b, " | ");
    (void)mo_json_str_buf(x->text, b);
    mo_buf_printf(
        b, "%s%s. |\n", k->flags & MO_KEY_REF ? ". May hold references" : "",
        k->flags & MO_KEY_RESTART ? ". A change needs a restart" : "");
}

void mo_config_docs(struct mo_buf *b)
{
    mo_buf_put(b, mo_helper_config_head,
               (size_t)(mo_helper_config_head_end - mo_helper_config_head));
    mo_config_entries(docs_row, b);
}
