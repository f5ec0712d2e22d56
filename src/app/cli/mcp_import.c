/* mcp import - the servers of another program's configuration, taken over.
 *
 * First a plan, and no more unless --write is given. A server of ours is never
 * written over without --replace. */
#include <stdio.h>
#include <unistd.h>

#include "app/cli/mcp_edit.h"
#include "app/import.h"
#include "app/secret_key.h"
#include "app/terminal.h"

/* --- where they keep it -------------------------------------------------- */

/* "~/" is the home directory, "@/" the one for configurations; else here. */
static const struct {
    const char *word;
    const char *paths[3];
} clients[] = {
    {"claude-desktop", {"@/Claude/claude_desktop_config.json", NULL, NULL}},
    {"cursor", {".cursor/mcp.json", "~/.cursor/mcp.json", NULL}},
    {"vscode",
     {".vscode/mcp.json", "@/Code/User/mcp.json", "@/Code/User/settings.json"}},
    {"windsurf", {"~/.codeium/windsurf/mcp_config.json", NULL, NULL}},
};

static void full_path(const struct mo_config *cfg, const char *path,
                      char out[PATH_MAX])
{
    const char *home = mo_config_getenv(cfg, "HOME");
    const char *xdg = mo_config_getenv(cfg, "XDG_CONFIG_HOME");

    if (path[0] == '@' && xdg)
        (void)snprintf(out, PATH_MAX, "%s%s", xdg, path + 1);
    else if (path[0] == '@' || path[0] == '~')
        (void)snprintf(out, PATH_MAX, "%s%s%s", home ? home : "",
                       path[0] == '@' ? "/.config" : "", path + 1);
    else
        (void)snprintf(out, PATH_MAX, "%s", path);
}

static int no_file(const struct mo_cli *c, const struct mo_config *cfg,
                   size_t client)
{
    struct mo_buf b;
    int rc;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    for (size_t i = 0; i < MO_COUNT(clients[client].paths); i++) {
        char path[PATH_MAX];

        if (!clients[client].paths[i])
            break;
        full_path(cfg, clients[client].paths[i], path);
        mo_buf_printf(&b, "%s%s", i ? ", " : "", path);
    }
    rc = mo_cli_error(c, MO_EXIT_FAIL,
                      "there is no file of %s (%s); name it: mcp import FILE",
                      clients[client].word, mo_buf_cstr(&b));
    mo_buf_fini(&b);
    return rc;
}

/* 0 and the file, or an exit code. */
static int find_file(const struct mo_cli *c, const struct mo_config *cfg,
                     char out[PATH_MAX])
{
    const char *from = mo_cli_get(c, "from");

    if ((from != NULL) == (c->nargs > 0))
        return mo_cli_error(c, MO_EXIT_USAGE, "needs FILE or --from");
    if (!from) {
        (void)snprintf(out, PATH_MAX, "%s", c->args[0]);
        return 0;
    }
    for (size_t i = 0; i < MO_COUNT(clients); i++) {
        if (strcmp(from, clients[i].word) != 0)
            continue;
        for (size_t j = 0; j < 3 && clients[i].paths[j]; j++) {
            full_path(cfg, clients[i].paths[j], out);
            if (access(out, F_OK) == 0)
                return 0;
        }
        return no_file(c, cfg, i);
    }
    return mo_cli_error(c, MO_EXIT_USAGE,
                        "--from is claude-desktop, cursor, vscode or windsurf");
}

/* --- the plan ------------------------------------------------------------ */

enum action { ADD, SAME, DIFFERS, REPLACE, CANNOT };

static const char *const actions[] = {
    [ADD] = "add",         [SAME] = "same",     [DIFFERS] = "differs",
    [REPLACE] = "replace", [CANNOT] = "cannot",
};

struct plan {
    struct mo_cmd_edit m;
    struct mo_arena a;
    struct mo_import im;
    char path[PATH_MAX];
    enum action *todo;
    size_t writes, keys, asks;
};

static void decide(const struct mo_cli *c, struct plan *p)
{
    struct mo_json_doc doc = {.bad_at = 0};
    struct mo_json ours;

    (void)mo_json_parse(mo_buf_view(&p->m.file.text), 0, &doc, NULL);
    ours = mo_json_get(doc.root, "mcpServers");
    for (size_t i = 0; i < p->im.n; i++) {
        const struct mo_import_server *s = &p->im.v[i];
        struct mo_json mine = mo_json_get(ours, s->name);

        if (s->cannot[0])
            p->todo[i] = CANNOT;
        else if (!mine.p)
            p->todo[i] = ADD;
        else if (mo_import_same(mine, s->json))
            p->todo[i] = SAME;
        else
            p->todo[i] = mo_cli_has(c, "replace") ? REPLACE : DIFFERS;
        if (p->todo[i] != ADD && p->todo[i] != REPLACE)
            continue;
        p->writes++;
        for (struct mo_import_secret *x = s->secrets; x; x = x->next) {
            p->keys += x->value != NULL;
            p->asks += x->value == NULL;
        }
    }
}

static int read_file(struct mo_cli *c, struct plan *p)
{
    struct mo_import_opts o = {
        .home = mo_config_getenv(p->m.h.now, "HOME"),
        .store = mo_cli_has(c, "secrets"),
    };
    struct mo_err e = {0};
    struct mo_buf text;
    int rc;

    mo_buf_init(&text, MO_IMPORT_FILE_MAX);
    rc = mo_file_read(p->path, MO_IMPORT_FILE_MAX, &text, NULL, &e);
    if (rc == 0) {
        rc = mo_import_read(&p->a, mo_buf_view(&text), &o, &p->im, &e);
        if (rc < 0)
            (void)mo_wrap(&e, "%s", p->path);
    }
    if (text.p)
        explicit_bzero(text.p, text.cap);
    mo_buf_fini(&text);
    if (rc == 0) {
        p->todo = mo_arena_zalloc(&p->a, (p->im.n + 1) * sizeof(*p->todo));
        if (!p->todo)
            rc = mo_fail(&e, MO_ENOMEM, "out of memory");
    }
    return rc < 0 ? mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg) : 0;
}

/* --- shown --------------------------------------------------------------- */

static void show_row(struct plan *p, size_t i, struct mo_buf *b, bool tty)
{
    struct mo_import_server *s = &p->im.v[i];

    mo_buf_printf(b, "  %-8s %s", actions[p->todo[i]], s->name);
    if (s->was) {
        mo_buf_puts(b, " (there: ");
        mo_term_text(b, mo_span_cstr(s->was), tty);
        mo_buf_putc(b, ')');
    }
    if (p->todo[i] == CANNOT) {
        mo_buf_puts(b, ": ");
        mo_term_text(b, mo_span_cstr(s->cannot), tty);
    }
    if (p->todo[i] == DIFFERS)
        mo_buf_puts(b, ": ours is kept; --replace takes theirs");
    mo_buf_putc(b, '\n');
    if (s->left_out.len && p->todo[i] != CANNOT) {
        mo_buf_puts(b, "           left out: ");
        mo_term_text(b, mo_buf_view(&s->left_out), tty);
        mo_buf_putc(b, '\n');
    }
    if (s->key_in_args)
        mo_buf_puts(b, "           a key stands in its arguments, which other "
                       "users can read\n");
}

static void show_secrets(const struct mo_cli *c, struct plan *p,
                         struct mo_buf *b)
{
    bool store = mo_cli_has(c, "secrets");

    for (size_t i = 0; i < p->im.n; i++) {
        if (p->todo[i] != ADD && p->todo[i] != REPLACE)
            continue;
        for (struct mo_import_secret *x = p->im.v[i].secrets; x; x = x->next) {
            if (!x->value)
                mo_buf_printf(b,
                              "  ask      ${secret:%s}: " MO_PROGRAM
                              " secrets set %s\n",
                              x->name, x->name);
            else
                mo_buf_printf(b, "  key      %s: %s\n", x->name,
                              store ? "into the secret store"
                                    : "into the file, in the clear");
        }
    }
    if (p->keys && !store)
        mo_buf_puts(b, "--secrets puts the keys into the secret store "
                       "instead of the file\n");
}

static void show_text(const struct mo_cli *c, struct plan *p, bool written,
                      struct mo_buf *b)
{
    bool tty = isatty(c->out) == 1;

    mo_buf_printf(b, "%s (%s), %zu server%s:\n", p->path, p->im.format, p->im.n,
                  p->im.n == 1 ? "" : "s");
    for (size_t i = 0; i < p->im.n; i++)
        show_row(p, i, b, tty);
    show_secrets(c, p, b);
    if (written)
        mo_buf_printf(b, "written to %s\n", p->m.file.path);
    else if (p->writes)
        mo_buf_puts(b, "nothing is written yet; --write does it\n");
    else
        mo_buf_puts(b, "there is nothing to write\n");
}

static void json_secrets(struct mo_jw *w, const struct mo_import_server *s)
{
    mo_jw_arr(w);
    for (struct mo_import_secret *x = s->secrets; x; x = x->next) {
        mo_jw_obj(w);
        mo_jw_key(w, "name");
        mo_jw_cstr(w, x->name);
        mo_jw_key(w, "known");
        mo_jw_bool(w, x->value != NULL);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void show_json(struct plan *p, bool written, struct mo_buf *b)
{
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "file");
    mo_jw_cstr(&w, p->path);
    mo_jw_key(&w, "format");
    mo_jw_cstr(&w, p->im.format);
    mo_jw_key(&w, "written");
    mo_jw_bool(&w, written);
    mo_jw_key(&w, "servers");
    mo_jw_arr(&w);
    for (size_t i = 0; i < p->im.n; i++) {
        const struct mo_import_server *s = &p->im.v[i];

        mo_jw_obj(&w);
        mo_jw_key(&w, "name");
        mo_jw_cstr(&w, s->name);
        mo_jw_key(&w, "was");
        mo_jw_cstr(&w, s->was ? s->was : s->name);
        mo_jw_key(&w, "action");
        mo_jw_cstr(&w, actions[p->todo[i]]);
        mo_jw_key(&w, "why");
        mo_jw_cstr(&w, s->cannot[0] ? s->cannot : NULL);
        mo_jw_key(&w, "leftOut");
        mo_jw_str(&w, mo_buf_view(&s->left_out));
        mo_jw_key(&w, "secrets");
        json_secrets(&w, s);
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
    mo_jw_end(&w);
}

/* --- written ------------------------------------------------------------- */

/* The same key again is no news; another under its name is not lost. */
static int store_key(struct mo_cli *c, struct mo_secrets *store,
                     const struct mo_import_secret *x)
{
    struct mo_span name = mo_span_cstr(x->name), value = {x->value, x->n};
    struct mo_err e = {0};
    struct mo_buf b;
    bool same;

    mo_buf_init(&b, MO_SECRET_MAX + 64);
    same = mo_secrets_has(store, name) &&
           mo_secrets_get(store, name, &b, &e) == 0 &&
           mo_span_eq_ct(mo_buf_view(&b), value);
    if (b.p)
        explicit_bzero(b.p, b.cap);
    mo_buf_fini(&b);
    if (same)
        return 0;
    if (mo_secrets_has(store, name) && !mo_cli_has(c, "replace"))
        return mo_cli_error(c, MO_EXIT_FAIL,
                            "the secret '%s' is there with another value; "
                            "--replace writes over it",
                            x->name);
    if (mo_secrets_put(store, name, value, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    return 0;
}

/* Before the file: a reference without a value would be worse. */
static int store_keys(struct mo_cli *c, struct plan *p)
{
    struct mo_secrets *store;
    struct mo_err e = {0};
    int rc = 0;

    if (!mo_cli_has(c, "secrets") || p->keys == 0)
        return 0;
    if (mo_secrets_for(p->m.h.now, true, &store, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    for (size_t i = 0; rc == 0 && i < p->im.n; i++) {
        if (p->todo[i] != ADD && p->todo[i] != REPLACE)
            continue;
        for (struct mo_import_secret *x = p->im.v[i].secrets; rc == 0 && x;
             x = x->next)
            rc = x->value ? store_key(c, store, x) : 0;
    }
    mo_secrets_close(store);
    return rc;
}

static int write_servers(struct mo_cli *c, struct plan *p)
{
    struct mo_err e = {0};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < p->im.n; i++) {
        const struct mo_import_server *s = &p->im.v[i];
        const char *path[] = {"mcpServers", s->name, NULL};

        if (p->todo[i] == ADD || p->todo[i] == REPLACE)
            rc = mo_rewrite_set(&p->m.file, path, mo_json_text(s->json), &e);
    }
    if (rc < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    rc = store_keys(c, p);
    return rc ? rc : mo_cmd_edit_save(c, &p->m);
}

static int show(struct mo_cli *c, struct plan *p, bool written)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    if (!mo_cli_has(c, "json")) {
        show_text(c, p, written, &b);
        return mo_cli_print(c, &b);
    }
    show_json(p, written, &b);
    return mo_cmd_print_json(c, &b);
}

static int run_import(struct mo_cli *c)
{
    bool write = mo_cli_has(c, "write");
    struct plan p = {.writes = 0};
    int rc = mo_cmd_edit_open(c, &p.m);

    if (rc)
        return rc;
    mo_arena_init(&p.a, MO_IMPORT_ARENA_MAX);
    rc = find_file(c, p.m.h.now, p.path);
    if (rc == 0)
        rc = read_file(c, &p);
    if (rc == 0) {
        decide(c, &p);
        if (write && p.writes)
            rc = write_servers(c, &p);
    }
    if (rc == 0)
        rc = show(c, &p, write && p.writes);
    mo_import_wipe(&p.im);
    mo_arena_fini(&p.a);
    mo_cmd_edit_close(&p.m);
    return rc;
}

static const struct mo_opt opts[] = {
    {.name = "from",
     .arg = "CLIENT",
     .words = "claude-desktop cursor vscode windsurf",
     .doc = "Find the file of claude-desktop, cursor, vscode or windsurf"},
    {.name = "write", .doc = "Do it; without it only the plan is shown"},
    {.name = "replace",
     .doc = "Write over servers of ours that have the name and differ"},
    {.name = "secrets",
     .doc = "Put keys into the secret store, and ${secret:NAME} into the "
            "file"},
    MO_OPT_JSON,
};

const struct mo_cmd mo_cmd_mcp_import = {
    .name = "mcp import",
    .summary = "Take over the MCP servers of another client's file",
    .args = "[FILE]",
    .max_args = 1,
    .words = "@file",
    .text = "Understands the files of Claude Desktop, Claude Code, Cursor, "
            "VS Code and Windsurf, and registry.json. Shows for each server "
            "whether it would be added, is here already, differs, or cannot "
            "be taken over and why.",
    .example = "mcp import --from cursor --secrets --write",
    .example_says = "takes over Cursor's servers and keeps their keys safe",
    .opts = opts,
    .nopts = MO_COUNT(opts),
    .run = run_import,
};
