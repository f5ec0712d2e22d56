/* man_text.c - manual pages from the command table and the configuration keys;
 * see help_text.h. Clean under `mandoc -T lint`, which wants short lines. */
#include <limits.h>
#include <stdio.h>

#include "base/file.h"
#include "cli/cmd.h"
#include "cli/help_text.h"
#include "config/doc.h"
#include "config/keys.h"

#define LINE      ((size_t)78)
#define PAGE_MAX  ((size_t)1024 * 1024)
#define CONF_PAGE "mcp-orchestrator.json"

/* --- roff ---------------------------------------------------------------- */

/* Characters with a meaning in roff; '-' would be a hyphen, which nobody can
 * search for or copy. */
static void put_char(struct mo_buf *b, char c)
{
    static const struct {
        char c;
        const char *roff;
    } rows[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                {'"', "\\(dq"}, {'~', "\\(ti"}, {'^', "\\(ha"}};

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (rows[i].c == c) {
            mo_buf_puts(b, rows[i].roff);
            return;
        }
    }
    mo_buf_putc(b, c);
}

/* A line that starts with '.' would be a command. */
static void put_text(struct mo_buf *b, const char *s)
{
    if (*s == '.')
        mo_buf_puts(b, "\\&");
    for (; *s; s++)
        put_char(b, *s);
}

static void put_word(struct mo_buf *b, struct mo_span word, bool *bold)
{
    for (size_t i = 0; i < word.n; i++) {
        if (word.p[i] == '`') {
            *bold = !*bold;
            mo_buf_puts(b, *bold ? "\\fB" : "\\fR");
        } else {
            put_char(b, word.p[i]);
        }
    }
}

/* Writes a paragraph in lines of at most LINE bytes, the first one after `col`
 * others; `x` becomes bold. */
static void put_prose_at(struct mo_buf *b, struct mo_span text, size_t col)
{
    mo_autobuf struct mo_buf word = {.max = MO_KEY_TEXT_MAX};
    bool bold = false;

    while (text.p) {
        struct mo_span plain = mo_span_cut(&text, ' ');

        mo_buf_reset(&word);
        put_word(&word, plain, &bold);
        if (col && col + 1 + word.len > LINE) {
            mo_buf_putc(b, '\n');
            col = 0;
        } else if (col) {
            mo_buf_putc(b, ' ');
            col++;
        }
        if (col == 0 && plain.n && plain.p[0] == '.')
            mo_buf_puts(b, "\\&");
        mo_buf_span(b, mo_buf_view(&word));
        col += word.len;
    }
    mo_buf_putc(b, '\n');
}

static void put_prose(struct mo_buf *b, struct mo_span text)
{
    put_prose_at(b, text, 0);
}

static void put_sentence(struct mo_buf *b, const char *text)
{
    mo_autobuf struct mo_buf full = {.max = MO_KEY_TEXT_MAX};

    mo_buf_printf(&full, "%s.", text);
    put_prose(b, mo_buf_view(&full));
}

/* "serve" as mcp-orchestrator-serve, "mcp add" as mcp-orchestrator-mcp-add. */
static void page_name(char out[PATH_MAX], const struct mo_cmd *cmd)
{
    int n = snprintf(out, PATH_MAX, MO_PROGRAM "-%s", cmd->name);

    MO_BUG_ON(n < 0 || n >= PATH_MAX);
    for (char *p = out; *p; p++)
        *p = *p == ' ' ? '-' : *p;
}

static void put_head(struct mo_buf *b, const char *page, int section,
                     const char *summary)
{
    mo_autobuf struct mo_buf plain = {.max = MO_KEY_TEXT_MAX};
    size_t begin;

    mo_buf_puts(b, ".\\\" Made by `mcp-orchestrator help --man-pages`.\n.TH ");
    for (const char *p = page; *p; p++)
        put_char(b, *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p);
    mo_buf_printf(b,
                  " %d " MO_RELEASE_DATE " \"" MO_PROGRAM " " MO_VERSION
                  "\" \"%s\"\n.SH NAME\n",
                  section, section == 1 ? "User Commands" : "File Formats");
    for (; *summary; summary++)
        if (*summary != '`') /* no fonts in the index of all pages */
            mo_buf_putc(&plain, *summary);
    begin = b->len;
    put_text(b, page);
    mo_buf_puts(b, " \\-");
    put_prose_at(b, mo_buf_view(&plain), b->len - begin);
}

/* --- parts of pages ------------------------------------------------------ */

static void put_opt(struct mo_buf *b, const struct mo_opt *o)
{
    mo_buf_puts(b, ".TP\n");
    if (o->letter)
        mo_buf_printf(b, "\\fB\\-%c\\fR, ", o->letter);
    mo_buf_puts(b, "\\fB\\-\\-");
    put_text(b, o->name);
    mo_buf_puts(b, "\\fR");
    if (o->arg) {
        mo_buf_puts(b, " \\fI");
        put_text(b, o->arg);
        mo_buf_puts(b, "\\fR");
    }
    mo_buf_putc(b, '\n');
    put_sentence(b, o->doc);
}

static void put_opts(struct mo_buf *b, const char *title,
                     const struct mo_opt *opts, size_t n)
{
    bool begun = false;

    for (size_t i = 0; i < n; i++) {
        if (opts[i].flags & MO_CLI_HIDDEN)
            continue;
        if (!begun)
            mo_buf_printf(b, ".SH %s\n", title);
        begun = true;
        put_opt(b, &opts[i]);
    }
}

static void put_exits(struct mo_buf *b)
{
    mo_buf_puts(b, ".SH EXIT STATUS\n");
    for (const struct mo_help_exit *x = mo_help_exits; x->says; x++) {
        mo_buf_printf(b, ".TP\n%d\n", x->code);
        put_sentence(b, x->says);
    }
}

static void put_ref(struct mo_buf *b, const char *page, int section,
                    const char *after)
{
    mo_buf_puts(b, ".BR ");
    put_text(b, page);
    mo_buf_printf(b, " (%d)%s\n", section, after);
}

/* --- pages --------------------------------------------------------------- */

static void put_command_list(const struct mo_cli_table *t, struct mo_buf *b)
{
    char page[PATH_MAX];

    mo_buf_puts(b, ".SH COMMANDS\nEach command has a page of its own.\n");
    for (size_t i = 0; i < t->ncmds; i++) {
        const struct mo_cmd *cmd = t->cmds[i];

        if (cmd->flags & MO_CLI_HIDDEN)
            continue;
        page_name(page, cmd);
        mo_buf_puts(b, ".TP\n");
        put_ref(b, page, 1, "");
        put_sentence(b, cmd->summary);
    }
}

void mo_man_program(const struct mo_cli_table *t, struct mo_buf *b)
{
    put_head(b, MO_PROGRAM, 1, "connect language models, people and MCP tools");
    mo_buf_puts(b, ".SH SYNOPSIS\n.B mcp\\-orchestrator\n.I command\n"
                   "[\\fIoptions\\fR] [\\fIarguments\\fR]\n.SH DESCRIPTION\n");
    put_prose(b, MO_SPAN("MCP Orchestrator puts all MCP servers of a person or "
                         "a team behind a single entry (`gateway`, or `/mcp` "
                         "of `serve`). It also serves a web page where a "
                         "language model works with those tools: it finds the "
                         "right tool, asks for approval and runs it in a "
                         "sandbox."));
    put_command_list(t, b);
    put_opts(b, "OPTIONS", t->globals, t->nglobals);
    put_exits(b);
    mo_buf_puts(b, ".SH FILES\n.TP\n\\fImcp\\-orchestrator.json\\fR, "
                   "\\fI$XDG_CONFIG_HOME/mcp\\-orchestrator/config.json\\fR\n"
                   "The configuration; the first file that exists is used.\n"
                   ".TP\n.I .env\nNAME=VALUE lines in the working directory;\n"
                   "the environment takes precedence.\n.SH SEE ALSO\n");
    put_ref(b, CONF_PAGE, 5, "");
}

static void put_synopsis(const struct mo_cmd *cmd, struct mo_buf *b)
{
    bool has_opts = false;

    for (size_t i = 0; i < cmd->nopts; i++)
        has_opts = has_opts || !(cmd->opts[i].flags & MO_CLI_HIDDEN);
    mo_buf_puts(b, ".SH SYNOPSIS\n.B mcp\\-orchestrator ");
    put_text(b, cmd->name);
    mo_buf_puts(b, has_opts ? "\n[\\fIoptions\\fR]\n" : "\n");
    if (cmd->args) {
        put_text(b, cmd->args);
        mo_buf_putc(b, '\n');
    }
}

void mo_man_command(const struct mo_cli_table *t, const struct mo_cmd *cmd,
                    struct mo_buf *b)
{
    char page[PATH_MAX];

    page_name(page, cmd);
    put_head(b, page, 1, cmd->summary);
    put_synopsis(cmd, b);
    mo_buf_puts(b, ".SH DESCRIPTION\n");
    put_sentence(b, cmd->summary);
    if (cmd->text) {
        mo_buf_puts(b, ".PP\n");
        put_prose(b, mo_span_cstr(cmd->text));
    }
    put_opts(b, "OPTIONS", cmd->opts, cmd->nopts);
    put_opts(b, "GLOBAL OPTIONS", t->globals, t->nglobals);
    put_exits(b);
    mo_buf_puts(b, ".SH EXAMPLES\n.TP\n.B mcp\\-orchestrator ");
    put_text(b, cmd->example);
    mo_buf_putc(b, '\n');
    put_sentence(b, cmd->example_says);
    mo_buf_puts(b, ".SH SEE ALSO\n");
    put_ref(b, MO_PROGRAM, 1, " ,");
    put_ref(b, CONF_PAGE, 5, "");
}

static void put_facts(struct mo_buf *b, const struct mo_key *k)
{
    mo_autobuf struct mo_buf facts = {.max = MO_KEY_TEXT_MAX};

    mo_buf_puts(&facts, "Type: ");
    mo_config_put_type(&facts, k);
    if (k->def)
        mo_buf_printf(&facts, ". Default: `%s`", k->def);
    if (k->env)
        mo_buf_printf(&facts, ". Environment: `%s`", k->env);
    mo_buf_printf(
        &facts, "%s%s.", k->flags & MO_KEY_REF ? ". May hold references" : "",
        k->flags & MO_KEY_RESTART ? ". A change needs a restart" : "");
    mo_buf_puts(b, ".br\n");
    put_prose(b, mo_buf_view(&facts));
}

static void put_key(void *ctx, const struct mo_config_entry *x)
{
    mo_autobuf struct mo_buf text = {.max = MO_KEY_TEXT_MAX};
    struct mo_buf *b = ctx;

    (void)mo_json_str_buf(x->text, &text);
    mo_buf_puts(b, x->is_section ? ".SS " : ".TP\n.B ");
    put_text(b, x->path);
    mo_buf_putc(b, '\n');
    put_sentence(b, mo_buf_cstr(&text));
    if (!x->is_section)
        put_facts(b, x->key);
}

void mo_man_config(struct mo_buf *b)
{
    put_head(b, CONF_PAGE, 5, "configuration of mcp-orchestrator");
    mo_buf_puts(b, ".SH DESCRIPTION\n");
    put_prose(b, MO_SPAN("The configuration is a JSON file. It is the file of "
                         "`--config`, else of `$MCP_ORCHESTRATOR_CONFIG`, else "
                         "`mcp-orchestrator.json` of the working directory, "
                         "else `$XDG_CONFIG_HOME/mcp-orchestrator/config.json`."
                         " Options of the command line, the environment and "
                         "`.env` of the working directory take precedence. All "
                         "keys are optional."));
    mo_buf_puts(b, ".PP\n");
    put_prose(b, MO_SPAN("Every file must belong to the user or to root, and "
                         "nobody else may write it. Files of the working "
                         "directory are used only after `mcp-orchestrator "
                         "config allow`. A reference `${secret:NAME}`, "
                         "`${env:NAME}` or `${file:PATH}` stands for a value "
                         "that is not in the file."));
    mo_buf_puts(b, ".SH KEYS\n");
    put_prose(b, MO_SPAN("NAME stands for any name, [] for the elements of a "
                         "list."));
    mo_config_entries(put_key, b);
    mo_buf_puts(b, ".SH SEE ALSO\n");
    put_ref(b, MO_PROGRAM, 1, " ,");
    put_ref(b, MO_PROGRAM "-config-check", 1, " ,");
    put_ref(b, MO_PROGRAM "-config-show", 1, "");
}

/* --- files --------------------------------------------------------------- */

static int write_page(const char *dir, const char *page, int section,
                      struct mo_buf *b, struct mo_err *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s.%d", dir, page, section);

    if (n < 0 || (size_t)n >= sizeof(path) || mo_buf_err(b))
        return mo_fail(e, MO_ETOOBIG, "%s: too long", page);
    n = mo_file_replace(path, mo_buf_view(b), e);
    mo_buf_reset(b);
    return n;
}

int mo_man_write(const struct mo_cli_table *t, const char *dir,
                 struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = PAGE_MAX};
    char page[PATH_MAX];
    int rc;

    mo_man_program(t, &b);
    rc = write_page(dir, MO_PROGRAM, 1, &b, e);
    for (size_t i = 0; i < t->ncmds && rc == 0; i++) {
        if (t->cmds[i]->flags & MO_CLI_HIDDEN)
            continue;
        mo_man_command(t, t->cmds[i], &b);
        page_name(page, t->cmds[i]);
        rc = write_page(dir, page, 1, &b, e);
    }
    if (rc < 0)
        return rc;
    mo_man_config(&b);
    return write_page(dir, CONF_PAGE, 5, &b, e);
}
