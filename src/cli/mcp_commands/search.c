/* mcp search - asks the registry for servers and prints them. */
#include "cli/mcp_commands/mcp.h"

#include "codec/text/utf8.h"
#include "codec/text/visible.h"
#include "install/registry.h"

#define LIMIT    20
#define TEXT_MAX 300 /* bytes of a description */

/* --- JSON ----------------------------------------------------------------- */

static void put_kind(void *ctx, struct mo_json kind)
{
    mo_jw_raw(ctx, mo_json_text(kind));
}

static void put_row(struct mo_jw *w, struct mo_json row)
{
    static const char *const keys[] = {"name", "title", "description",
                                       "version"};
    struct mo_json server = mo_json_get(row, "server");

    mo_jw_obj(w);
    for (size_t i = 0; i < MO_COUNT(keys); i++)
        mo_jw_copy(w, server, keys[i]);
    mo_jw_member_arr(w, "kinds");
    mo_registry_kinds(server, put_kind, w);
    mo_jw_end(w);
    mo_jw_member_raw(
        w, "repository",
        mo_json_text(mo_json_get(mo_json_get(server, "repository"), "url")));
    mo_jw_member_raw(w, "status", mo_json_text(mo_registry_status(row)));
    mo_jw_end(w);
}

static void put_json(struct mo_buf *b, struct mo_json rows, bool more)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_arr(&w, "servers");
    mo_json_each (it, rows)
        put_row(&w, it.val);
    mo_jw_end(&w);
    mo_jw_member_bool(&w, "more", more);
    mo_jw_end(&w);
}

/* --- text ----------------------------------------------------------------- */

struct kinds {
    struct mo_buf *b;
    bool any;
};

static void say_kind(void *ctx, struct mo_json kind)
{
    struct kinds *k = ctx;

    mo_buf_puts(k->b, k->any ? ", " : "");
    mo_cmd_put_name(k->b, kind);
    k->any = true;
}

/* The description as one line, shortened to fit. */
static void say_text(struct mo_buf *b, struct mo_json v)
{
    mo_autobuf struct mo_buf s = {.max = MO_REGISTRY_ANSWER_MAX};
    struct mo_span text;

    if (mo_json_is(v, MO_JSON_STRING))
        (void)mo_json_str_buf(v, &s);
    text = mo_buf_view(&s);
    if (!text.n)
        return;
    mo_buf_puts(b, "    ");
    mo_visible_name(b, mo_span_head(text, mo_utf8_cut(text, TEXT_MAX)));
    mo_buf_puts(b, text.n > TEXT_MAX ? "...\n" : "\n");
}

static void say_row(struct mo_buf *b, struct mo_json row)
{
    struct mo_json server = mo_json_get(row, "server");
    struct mo_json status = mo_registry_status(row);
    struct kinds k = {.b = b};

    mo_cmd_put_name(b, mo_json_get(server, "name"));
    mo_buf_putc(b, ' ');
    mo_cmd_put_name(b, mo_json_get(server, "version"));
    mo_buf_puts(b, " (");
    mo_registry_kinds(server, say_kind, &k);
    mo_buf_puts(b, k.any ? ")" : "nothing to install)");
    if (mo_json_str_eq(status, MO_SPAN("deprecated")))
        mo_buf_puts(b, " deprecated");
    mo_buf_putc(b, '\n');
    say_text(b, mo_json_get(server, "description"));
}

static void put_text(struct mo_buf *b, struct mo_json rows, bool more)
{
    if (mo_json_len(rows) == 0)
        mo_buf_puts(b, more ? "nothing was found among the first servers; use "
                              "other words\n"
                            : "nothing was found\n");
    mo_json_each (it, rows)
        say_row(b, it.val);
    if (more && mo_json_len(rows))
        mo_buf_puts(b, "there are more: --limit, or further words\n");
}

/* --- the command ---------------------------------------------------------- */

static int search(struct mo_cli *c, const struct mo_config *cfg,
                  struct mo_registry_search *s, struct mo_buf *rows)
{
    struct mo_err e = {0};

    if (mo_registry_find(cfg, s, rows, &e) < 0)
        return mo_cli_error(c, MO_EXIT_UNAVAIL,
                            "%s; servers that are installed still work", e.msg);
    return 0;
}

int mo_run_mcp_search(struct mo_cli *c)
{
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    mo_autobuf struct mo_buf rows = {.max = MO_REGISTRY_TEXT_MAX};
    mo_autobuf struct mo_buf b = {.max = MO_REGISTRY_TEXT_MAX};
    struct mo_span words[MO_CLI_ARGS_MAX];
    struct mo_registry_search s = {.words = words, .nwords = c->nargs};
    const char *limit = mo_cli_get(c, "limit");
    struct mo_json list;
    uint64_t n = LIMIT;
    int rc;

    if (limit && (mo_span_u64(mo_span_cstr(limit), &n) < 0 || n == 0 ||
                  n > MO_REGISTRY_ROWS_MAX))
        return mo_cli_error(c, MO_EXIT_USAGE, "--limit is a number up to %d",
                            MO_REGISTRY_ROWS_MAX);
    for (size_t i = 0; i < c->nargs; i++)
        words[i] = mo_span_cstr(c->args[i]);
    s.limit = (size_t)n;
    rc = mo_cmd_load(c, &cfg);
    if (rc == 0)
        rc = search(c, cfg.now, &s, &rows);
    if (rc)
        return rc;
    list = (struct mo_json){rows.p, rows.len};
    if (mo_cli_has(c, "json"))
        put_json(&b, list, s.more);
    else
        put_text(&b, list, s.more);
    return mo_cmd_print(c, &b);
}
