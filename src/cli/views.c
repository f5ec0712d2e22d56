/* views list, views show - prints the views of the gateway, and what a client
 * of one would see.
 *
 * Reads the configuration and the cached catalogues of its servers. Starts no
 * server unless --refresh is given. */
#include "cli/runtime_wait.h"
#include "codec/text/utf8.h"
#include "codec/text/visible.h"
#include "gateway/catalog/catalog.h"
#include "servers/gateway_setup.h"
#include "servers/view_show.h"

#define REFRESH_MS 60000 /* timeout for all servers together */
#define TEXT_MAX   70    /* bytes of a description */

struct showing {
    struct mo_cmd_runtime m;
    struct mo_gateway_setup *setup;
    struct mo_gateway *g;
};

static void end_showing(struct showing *s)
{
    if (s->setup) {
        mo_gateway_setup_close(s->setup, mo_cmd_runtime_done, &s->m);
        mo_cmd_runtime_wait(&s->m);
    }
    if (s->m.loop)
        mo_loop_run(s->m.loop); /* finish closing */
    mo_cmd_runtime_close(&s->m);
}

static bool has_all(void *ctx)
{
    return !mo_gateway_busy(((struct showing *)ctx)->g);
}

static int open_gateway(struct mo_cli *c, struct showing *s)
{
    struct mo_err e = {0};
    int rc = mo_cmd_runtime_load(c, &s->m);

    if (rc)
        return rc;
    s->m.log.level = MO_ERROR;
    if (mo_gateway_setup_open(s->m.loop, s->m.cfg.now, NULL, NULL, &s->setup,
                              &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    s->g = mo_gateway_setup_gateway(s->setup);
    if (mo_cli_has(c, "refresh")) {
        mo_gateway_refresh(s->g);
        (void)mo_loop_until(s->m.loop, has_all, s, REFRESH_MS);
    }
    return 0;
}

/* --- list ----------------------------------------------------------------- */

static void put_line(struct mo_buf *b, const struct mo_config_view *c,
                     const struct mo_catalog *cat)
{
    struct mo_span text =
        c->description ? mo_span_cstr(c->description) : MO_SPAN("");

    text = mo_span_cut(&text, '\n');
    (void)mo_buf_printf(b, "%-20s %4zu tools%s  ", c->name,
                        mo_catalog_count(cat, MO_CAT_TOOLS),
                        c->read_only ? ", read-only" : "");
    mo_visible_name(b, mo_span_head(text, mo_utf8_cut(text, TEXT_MAX)));
    while (b->len && b->p[b->len - 1] == ' ')
        b->len--;
    (void)mo_buf_putc(b, '\n');
}

int mo_run_views_list(struct mo_cli *c)
{
    MO_CLEANUP(end_showing) struct showing s = {.g = NULL};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    bool json = mo_cli_has(c, "json");
    const struct mo_config_views *all;
    struct mo_jw w;
    int rc = open_gateway(c, &s);

    if (rc)
        return rc;
    all = &s.m.cfg.now->views;
    mo_jw_init(&w, &b);
    if (json)
        mo_jw_arr(&w);
    for (size_t i = 0; i < all->n; i++) {
        const struct mo_gw_view *v = mo_view_table_find(
            mo_gateway_setup_views(s.setup), mo_span_cstr(all->v[i].name));

        if (json) {
            mo_jw_obj(&w);
            mo_view_put_settings(&w, &all->v[i]);
            mo_view_put_counts(&w, v);
            mo_jw_end(&w);
        } else {
            put_line(&b, &all->v[i], mo_gateway_view_catalog(v));
        }
    }
    if (json)
        mo_jw_end(&w);
    else if (!all->n)
        (void)mo_buf_puts(&b, "no views are configured (docs/views.md)\n");
    return mo_cmd_print(c, &b);
}

/* --- show ----------------------------------------------------------------- */

static void put_servers(struct mo_buf *b, const struct mo_gateway *g,
                        const struct mo_catalog *cat)
{
    for (unsigned i = 0; i < mo_gateway_count(g); i++)
        if (mo_catalog_shows(cat, i) && !mo_catalog_known(cat, i))
            (void)mo_buf_printf(b, "  %s was never read; --refresh reads it\n",
                                mo_catalog_about(cat, i).name);
}

static void put_items(struct mo_buf *b, const struct mo_catalog *cat,
                      enum mo_cat_kind kind, const char *what)
{
    size_t n = mo_catalog_count(cat, kind);

    if (n)
        (void)mo_buf_printf(b, "%s:\n", what);
    for (size_t i = 0; i < n; i++) {
        const struct mo_cat_item *it = mo_catalog_at(cat, kind, i);

        (void)mo_buf_puts(b, "  ");
        mo_visible_name(b, it->name);
        (void)mo_buf_printf(b, "  (%s)\n",
                            mo_catalog_about(cat, it->server).name);
    }
}

static void put_people(struct mo_buf *b, const struct showing *s,
                       const struct mo_gw_view *v)
{
    const struct mo_catalog *cat = mo_gateway_view_catalog(v);

    if (mo_gateway_view_searches(v))
        (void)mo_buf_puts(b, "A client sees find_tool, execute, "
                             "list_capabilities and explain_tool, for:\n");
    put_servers(b, s->g, cat);
    put_items(b, cat, MO_CAT_TOOLS, "tools");
    put_items(b, cat, MO_CAT_RESOURCES, "resources");
    put_items(b, cat, MO_CAT_TEMPLATES, "templates");
    put_items(b, cat, MO_CAT_PROMPTS, "prompts");
    put_items(b, cat, MO_CAT_SKILLS, "skills");
    if (!b->len)
        (void)mo_buf_puts(b, "A client sees nothing.\n");
}

int mo_run_views_show(struct mo_cli *c)
{
    MO_CLEANUP(end_showing) struct showing s = {.g = NULL};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    const struct mo_gw_view *v;
    int rc = open_gateway(c, &s);

    if (rc)
        return rc;
    v = mo_view_table_find(mo_gateway_setup_views(s.setup),
                           mo_span_cstr(c->args[0]));
    if (!v)
        return mo_cli_error(c, MO_EXIT_USAGE,
                            "there is no view '%.64s'; `views list` lists them",
                            c->args[0]);
    if (mo_cli_has(c, "json")) {
        struct mo_jw w = mo_jw_object(&b);

        mo_view_put_settings(
            &w, mo_view_config(s.m.cfg.now, mo_span_cstr(c->args[0])));
        mo_view_put_seen(&w, s.g, v);
        mo_jw_end(&w);
    } else {
        put_people(&b, &s, v);
    }
    return mo_cmd_print(c, &b);
}
