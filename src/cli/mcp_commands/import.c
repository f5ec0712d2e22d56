/* mcp import - imports the servers of another program's configuration.
 *
 * Prints a plan and changes nothing unless --write is given. Existing servers
 * are not overwritten without --replace. */
#include <stdio.h>
#include <unistd.h>

#include "cli/chat/terminal.h"
#include "cli/mcp_commands/edit.h"
#include "codec/text/visible.h"
#include "servers/import_plan.h"

/* --- files of other clients ----------------------------------------------- */

/* "~/" is the home directory, "@/" the configuration directory, else the
 * working directory. */
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
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    for (size_t i = 0; i < MO_COUNT(clients[client].paths); i++) {
        char path[PATH_MAX];

        if (!clients[client].paths[i])
            break;
        full_path(cfg, clients[client].paths[i], path);
        mo_buf_printf(&b, "%s%s", i ? ", " : "", path);
    }
    return mo_cli_error(
        c, MO_EXIT_FAIL,
        "no file of %s was found (%s); give its name: mcp import FILE",
        clients[client].word, mo_buf_cstr(&b));
}

/* Returns 0 and the path, or an exit code. */
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

/* --- the plan ------------------------------------------------------------- */

struct work {
    struct mo_cmd_edit m;
    struct mo_plan plan;
    char path[PATH_MAX];
};

static int read_file(struct mo_cli *c, struct work *k)
{
    struct mo_err e = {0};
    mo_autowipe struct mo_buf text = {.max = MO_IMPORT_FILE_MAX};
    int rc = mo_file_read(k->path, MO_IMPORT_FILE_MAX, &text, NULL, &e);

    if (rc == 0) {
        rc = mo_plan_make(&k->plan, mo_buf_view(&text),
                          mo_buf_view(&k->m.file.text),
                          mo_config_getenv(k->m.cfg.now, "HOME"), &e);
        if (rc < 0)
            (void)mo_wrap(&e, "%s", k->path);
    }
    return rc < 0 ? mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg) : 0;
}

/* --- showing the plan ----------------------------------------------------- */

static void show_row(const struct mo_plan *p, size_t i, struct mo_buf *b,
                     bool tty)
{
    const struct mo_import_server *s = &p->im.v[i];

    mo_buf_printf(b, "  %-8s ", mo_plan_word(p->todo[i]));
    mo_visible_name(b, mo_span_cstr(s->name));
    if (s->was) {
        mo_buf_puts(b, " (there: ");
        mo_term_text(b, mo_span_cstr(s->was), tty);
        mo_buf_putc(b, ')');
    }
    if (p->todo[i] == MO_PLAN_CANNOT) {
        mo_buf_puts(b, ": ");
        mo_term_text(b, mo_span_cstr(s->cannot), tty);
    }
    if (p->todo[i] == MO_PLAN_DIFFERS)
        mo_buf_puts(b,
                    ": the existing server is kept; --replace overwrites it");
    mo_buf_putc(b, '\n');
    if (s->left_out.len && p->todo[i] != MO_PLAN_CANNOT) {
        mo_buf_puts(b, "           left out: ");
        mo_term_text(b, mo_buf_view(&s->left_out), tty);
        mo_buf_putc(b, '\n');
    }
    if (s->key_in_args)
        mo_buf_puts(b, "           a key stands in its arguments, which other "
                       "users can read\n");
}

static void show_secrets(const struct mo_plan *p, struct mo_buf *b)
{
    for (size_t i = 0; i < p->im.n; i++) {
        if (!mo_plan_writes(p, i))
            continue;
        for (struct mo_import_secret *x = p->im.v[i].secrets; x; x = x->next) {
            if (!x->value)
                mo_buf_printf(b,
                              "  ask      ${secret:%s}: " MO_PROGRAM
                              " secrets set %s\n",
                              x->name, x->name);
            else
                mo_buf_printf(b, "  key      %s: %s\n", x->name,
                              p->store ? "into the secret store"
                                       : "into the file, in the clear");
        }
    }
    if (p->keys && !p->store)
        mo_buf_puts(b, "--secrets puts the keys into the secret store "
                       "instead of the file\n");
}

static void show_text(const struct mo_cli *c, struct work *k, bool written,
                      struct mo_buf *b)
{
    const struct mo_plan *p = &k->plan;
    bool tty = isatty(c->out) == 1;

    mo_buf_printf(b, "%s (%s), %zu server%s:\n", k->path, p->im.format, p->im.n,
                  p->im.n == 1 ? "" : "s");
    for (size_t i = 0; i < p->im.n; i++)
        show_row(p, i, b, tty);
    show_secrets(p, b);
    if (written)
        mo_buf_printf(b, "written to %s\n", k->m.file.path);
    else if (p->writes)
        mo_buf_puts(b, "nothing was written; use --write\n");
    else
        mo_buf_puts(b, "nothing to write\n");
}

static int show(struct mo_cli *c, struct work *k, bool written)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (mo_cli_has(c, "json"))
        mo_plan_json(&k->plan, k->path, written, &b);
    else
        show_text(c, k, written, &b);
    return mo_cmd_print(c, &b);
}

/* --- applying the plan ---------------------------------------------------- */

static int write_servers(struct mo_cli *c, struct work *k)
{
    struct mo_err e = {0};

    if (mo_plan_write(&k->plan, k->m.cfg.now, &k->m.file, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    return mo_cmd_edit_save(c, &k->m);
}

static void work_fini(struct work *k)
{
    mo_plan_fini(&k->plan);
    mo_cmd_edit_close(&k->m);
}

int mo_run_mcp_import(struct mo_cli *c)
{
    MO_CLEANUP(work_fini)
    struct work k = {.m = MO_CMD_EDIT,
                     .plan = {.store = mo_cli_has(c, "secrets"),
                              .replace = mo_cli_has(c, "replace")}};
    bool written = false;
    int rc = mo_cmd_edit_open(c, &k.m);

    if (rc == 0)
        rc = find_file(c, k.m.cfg.now, k.path);
    if (rc == 0)
        rc = read_file(c, &k);
    if (rc == 0 && mo_cli_has(c, "write") && k.plan.writes) {
        written = true;
        rc = write_servers(c, &k);
    }
    return rc ? rc : show(c, &k, written);
}
