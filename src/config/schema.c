/* schema.c - the JSON Schema and docs/configuration.md; see doc.h. */
#include <stdio.h>

#include "codec/json/json.h"
#include "config/doc.h"
#include "config/keys.h"

/* --- JSON Schema --------------------------------------------------------- */

static void schema_object(struct mo_jw *w, const struct mo_keys *keys);

static void schema_words(struct mo_jw *w, const struct mo_key *k)
{
    mo_jw_member_arr(w, "enum");
    for (size_t i = 0; i < k->nwords; i++)
        mo_jw_cstr(w, k->words[i].word);
    mo_jw_end(w);
}

static void schema_range(struct mo_jw *w, const struct mo_key *k)
{
    mo_jw_member_f64(w, "minimum", k->min);
    mo_jw_member_f64(w, "maximum", k->max);
}

/* {"type":"string"}, the elements of lists and maps. */
static void schema_texts(struct mo_jw *w, const char *key)
{
    mo_jw_member_obj(w, key);
    mo_jw_member_cstr(w, "type", "string");
    mo_jw_end(w);
}

static void schema_sub(struct mo_jw *w, const char *key, const struct mo_key *k)
{
    mo_jw_member_obj(w, key);
    schema_object(w, k->sub);
    mo_jw_end(w);
}

static void schema_type(struct mo_jw *w, const struct mo_key *k)
{
    static const char *const types[] = {
        [MO_KEY_BOOL] = "boolean", [MO_KEY_INT] = "integer",
        [MO_KEY_NUM] = "number",   [MO_KEY_STR] = "string",
        [MO_KEY_WORD] = "string",  [MO_KEY_LIST] = "array",
        [MO_KEY_MAP] = "object",   [MO_KEY_DICT] = "object",
        [MO_KEY_ARRAY] = "array",
    };

    mo_jw_member_cstr(w, "type", types[k->type]);
    if (k->type == MO_KEY_INT || k->type == MO_KEY_NUM)
        schema_range(w, k);
    if (k->type == MO_KEY_WORD)
        schema_words(w, k);
    if (k->type == MO_KEY_LIST)
        schema_texts(w, "items");
    if (k->type == MO_KEY_MAP)
        schema_texts(w, "additionalProperties");
    if (k->type == MO_KEY_ARRAY)
        schema_sub(w, "items", k);
    if (k->type == MO_KEY_DICT)
        schema_sub(w, "additionalProperties", k);
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

static void schema_key(struct mo_jw *w, const struct mo_key *k)
{
    mo_jw_member_obj(w, k->name);
    mo_jw_member_cstr(w, "description", k->doc);
    if (k->type == MO_KEY_SECTION)
        schema_object(w, k->sub);
    else
        schema_type(w, k);
    schema_default(w, k);
    mo_jw_end(w);
}

/* Writes the members of an object that the caller has opened. */
static void schema_object(struct mo_jw *w, const struct mo_keys *keys)
{
    mo_jw_member_cstr(w, "type", "object");
    mo_jw_member_bool(w, "additionalProperties", false);
    mo_jw_member_obj(w, "properties");
    if (keys == &mo_config_keys)
        schema_texts(w, "$schema");
    for (size_t i = 0; i < keys->n; i++)
        schema_key(w, &keys->v[i]);
    mo_jw_end(w);
}

void mo_config_schema(struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "$schema", "http://json-schema.org/draft-07/schema#");
    mo_jw_member_cstr(&w, "title", "MCP Orchestrator configuration");
    schema_object(&w, &mo_config_keys);
    mo_jw_end(&w);
}

/* --- Markdown ------------------------------------------------------------ */

static void docs_type(struct mo_buf *b, const struct mo_key *k)
{
    static const char *const words[] = {
        [MO_KEY_BOOL] = "true or false",   [MO_KEY_STR] = "text",
        [MO_KEY_LIST] = "list of texts",   [MO_KEY_MAP] = "texts by name",
        [MO_KEY_DICT] = "objects by name", [MO_KEY_ARRAY] = "list of objects",
        [MO_KEY_INT] = "whole number",     [MO_KEY_NUM] = "number",
    };

    if (k->type == MO_KEY_INT || k->type == MO_KEY_NUM) {
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

static void docs_row(struct mo_buf *b, const char *prefix,
                     const struct mo_key *k)
{
    mo_buf_printf(b, "| `%s%s` | ", prefix, k->name);
    docs_type(b, k);
    mo_buf_puts(b, " | ");
    if (k->def)
        mo_buf_printf(b, "`%s`", k->def);
    mo_buf_puts(b, " | ");
    if (k->env)
        docs_env(b, k->env);
    mo_buf_printf(b, " | %s%s%s. |\n", k->doc,
                  k->flags & MO_KEY_REF ? ". May hold references" : "",
                  k->flags & MO_KEY_RESTART ? ". A change needs a restart"
                                            : "");
}

/* Writes the rows of keys, those of nested tables with a longer prefix. */
static void docs_rows(struct mo_buf *b, const char *prefix,
                      const struct mo_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct mo_key *k = &keys->v[i];
        char longer[MO_KEY_PATH_MAX];

        (void)snprintf(longer, sizeof(longer), "%s%s%s", prefix, k->name,
                       k->type == MO_KEY_ARRAY  ? "[]."
                       : k->type == MO_KEY_DICT ? ".NAME."
                                                : ".");
        if (k->type != MO_KEY_SECTION)
            docs_row(b, prefix, k);
        if (k->sub)
            docs_rows(b, longer, k->sub);
    }
}

static const char docs_head[] =
    "# Configuration\n"
    "\n"
    "<!-- Generated by `mcp-orchestrator config docs` from the tables in\n"
    "src/config/keys.c; edit them there. -->\n"
    "\n"
    "All settings are optional. They come from these sources, highest\n"
    "priority first:\n"
    "\n"
    "1. options of the command line\n"
    "2. the environment (an empty variable counts as unset)\n"
    "3. `.env` in the working directory\n"
    "4. the configuration file, JSON: `--config FILE`, else\n"
    "   `$MCP_ORCHESTRATOR_CONFIG`, else `./mcp-orchestrator.json`, else\n"
    "   `$XDG_CONFIG_HOME/mcp-orchestrator/config.json`\n"
    "5. the defaults below\n"
    "\n"
    "`config check` prints every mistake with its line and column, `config\n"
    "show` prints every effective value and its source, `config schema`\n"
    "prints a JSON Schema for editors (`\"$schema\"` in the file may point\n"
    "to it). A running server reloads a changed file by itself and on SIGHUP.\n"
    "If the file has a mistake, the log reports it and the old configuration\n"
    "stays in effect. Changed rules apply to conversations at once, changed\n"
    "model settings from the next turn on. The log names every key that\n"
    "changed, and which of them need a restart.\n"
    "\n"
    "## References\n"
    "\n"
    "In keys that may hold references, `${env:NAME}` is replaced by a "
    "variable\n"
    "(of the environment or `.env`), `${file:PATH}` by the content of a file\n"
    "and `${secret:NAME}` by an entry of the secret store; `$${` is a literal\n"
    "`${`. References are resolved when the value is used and never written\n"
    "back.\n"
    "\n"
    "## .env\n"
    "\n"
    "Lines of the form `NAME=VALUE`, with an optional `export ` before the\n"
    "name; `#` starts a comment. `'...'` is taken literally, `\"...\"` "
    "supports\n"
    "the escapes `\\n \\r \\t \\\" \\\\ \\$`. Values are not expanded, and "
    "the\n"
    "variables are not passed to child processes.\n";

void mo_config_docs(struct mo_buf *b)
{
    mo_buf_puts(b, docs_head);
    for (size_t i = 0; i < mo_config_keys.n; i++) {
        const struct mo_key *k = &mo_config_keys.v[i];
        char prefix[MO_KEY_PATH_MAX];

        (void)snprintf(prefix, sizeof(prefix), "%s.%s", k->name,
                       k->type == MO_KEY_DICT ? "NAME." : "");
        mo_buf_printf(b,
                      "\n## %s\n\n%s.\n\n"
                      "| key | type | default | environment | meaning |\n"
                      "|---|---|---|---|---|\n",
                      k->name, k->doc);
        docs_rows(b, prefix, k->sub);
    }
}
