#include "cli/help_text.h"

#define WIDTH      ((size_t)78)
#define OPT_COLUMN ((size_t)26)
#define CMD_COLUMN ((size_t)18)

const struct mo_help_exit mo_help_exits[] = {
    {MO_EXIT_OK, "success"},
    {MO_EXIT_FAIL, "the operation failed"},
    {MO_EXIT_USAGE, "the command line is wrong"},
    {MO_EXIT_CONFIG, "the configuration is wrong"},
    {MO_EXIT_UNAVAIL, "a required service does not answer or is in use"},
    {MO_EXIT_SIGN_IN, "a person must sign in to the MCP server first"},
    {0, NULL},
};

static void pad_to_column(struct mo_buf *b, size_t n)
{
    while (n--)
        mo_buf_putc(b, ' ');
}

/* Wraps text at WIDTH with indented lines; col: current column. */
static void wrap_text(struct mo_buf *b, const char *text, size_t indent,
                      size_t col)
{
    struct mo_span rest = mo_span_cstr(text);

    while (rest.p) {
        struct mo_span word = mo_span_cut(&rest, ' ');

        if (col > indent && col + 1 + word.n > WIDTH) {
            mo_buf_putc(b, '\n');
            pad_to_column(b, indent);
            col = indent;
        } else if (col > indent) {
            mo_buf_putc(b, ' ');
            col++;
        }
        mo_buf_span(b, word);
        col += word.n;
    }
    mo_buf_putc(b, '\n');
}

/* Writes a left column and wrapped text; a long left side gets its own line. */
static void put_entry(struct mo_buf *b, const char *left, const char *text,
                      size_t column)
{
    size_t n = strlen(left);

    mo_buf_puts(b, "  ");
    mo_buf_puts(b, left);
    if (n + 3 > column) {
        mo_buf_putc(b, '\n');
        n = 0;
        pad_to_column(b, 2);
    }
    pad_to_column(b, column - n - 2);
    wrap_text(b, text, column, column);
}

static void put_opt(struct mo_buf *b, const struct mo_opt *o)
{
    mo_autobuf struct mo_buf left = {.max = 80};

    if (o->flags & MO_CLI_HIDDEN)
        return;
    if (o->letter)
        mo_buf_printf(&left, "-%c, ", o->letter);
    mo_buf_printf(&left, "--%s", o->name);
    if (o->arg)
        mo_buf_printf(&left, " %s", o->arg);
    if (mo_buf_err(&left))
        b->err = mo_buf_err(&left);
    put_entry(b, mo_buf_cstr(&left), o->doc, OPT_COLUMN);
}

static size_t count_visible(const struct mo_opt *opts, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += !(opts[i].flags & MO_CLI_HIDDEN);
    return count;
}

static void put_opts(struct mo_buf *b, const char *title,
                     const struct mo_opt *opts, size_t n)
{
    if (count_visible(opts, n) == 0)
        return;
    mo_buf_printf(b, "\n%s:\n", title);
    for (size_t i = 0; i < n; i++)
        put_opt(b, &opts[i]);
}

static bool in_group(const struct mo_cmd *cmd, const char *group)
{
    struct mo_span second = mo_span_cstr(cmd->name);
    struct mo_span head = mo_span_cut(&second, ' ');

    return !group || (second.p && mo_span_is(head, group));
}

void mo_help_overview(const struct mo_cli_table *t, const char *group,
                      struct mo_buf *b)
{
    if (!group)
        mo_buf_puts(
            b, "Connects language models, people and MCP tools: finds the "
               "right tool, asks\nfor approval, runs it in a sandbox.\n\n");
    mo_buf_printf(b, "Usage: " MO_PROGRAM " %s [options]\n\nCommands:\n",
                  group ? group : "<command>");
    for (size_t i = 0; i < t->ncmds; i++) {
        const struct mo_cmd *cmd = t->cmds[i];

        if (!(cmd->flags & MO_CLI_HIDDEN) && in_group(cmd, group))
            put_entry(b, cmd->name, cmd->summary, CMD_COLUMN);
    }
    put_opts(b, "Options", t->globals, t->nglobals);
    mo_buf_puts(b, "\nExample:\n  " MO_PROGRAM " ");
    mo_buf_puts(b, group ? "" : "serve\n");
    for (size_t i = 0; group && i < t->ncmds; i++) {
        if (in_group(t->cmds[i], group)) {
            mo_buf_printf(b, "%s\n", t->cmds[i]->example);
            break;
        }
    }
    mo_buf_puts(b, "\nRun '" MO_PROGRAM " help <command>' for details.\n");
}

void mo_help_command(const struct mo_cli_table *t, const struct mo_cmd *cmd,
                     struct mo_buf *b)
{
    mo_buf_printf(b, "Usage: " MO_PROGRAM " %s%s%s%s\n\n", cmd->name,
                  count_visible(cmd->opts, cmd->nopts) ? " [options]" : "",
                  cmd->args ? " " : "", cmd->args ? cmd->args : "");
    wrap_text(b, cmd->summary, 0, 0);
    if (cmd->text) {
        mo_buf_putc(b, '\n');
        wrap_text(b, cmd->text, 0, 0);
    }
    put_opts(b, "Options", cmd->opts, cmd->nopts);
    put_opts(b, "Global options", t->globals, t->nglobals);
    mo_buf_printf(b, "\nExample:\n  " MO_PROGRAM " %s\n", cmd->example);
    mo_buf_puts(b, "      ");
    wrap_text(b, cmd->example_says, 6, 6);
    mo_buf_puts(b, "\nExit codes:\n");
    for (const struct mo_help_exit *x = mo_help_exits; x->says; x++)
        mo_buf_printf(b, "  %d  %s\n", x->code, x->says);
}
