#include "cli/help_text.h"

#include <stdio.h>

#define WIDTH      ((size_t)78)
#define OPT_COLUMN ((size_t)26)
#define CMD_COLUMN ((size_t)18)

/* Exit codes, documented where they are used. */
static const struct {
    int code;
    const char *says;
} exits[] = {
    {MO_EXIT_OK, "success"},
    {MO_EXIT_FAIL, "the operation failed"},
    {MO_EXIT_USAGE, "the command line is wrong"},
    {MO_EXIT_CONFIG, "the configuration is wrong"},
    {MO_EXIT_UNAVAIL, "a required service does not answer or is in use"},
    {MO_EXIT_SIGN_IN, "a person must sign in to the MCP server first"},
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

static bool is_hidden(const struct mo_cmd *cmd)
{
    return cmd->flags & MO_CLI_HIDDEN;
}

/* "mcp" and "add" of "mcp add"; *second has no text for a single word. */
static struct mo_span words_of(const struct mo_cmd *cmd, struct mo_span *second)
{
    *second = mo_span_cstr(cmd->name);
    return mo_span_cut(second, ' ');
}

static bool in_group(const struct mo_cmd *cmd, const char *group)
{
    struct mo_span second, head = words_of(cmd, &second);

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
    for (size_t i = 0; i < MO_COUNT(exits); i++)
        mo_buf_printf(b, "  %d  %s\n", exits[i].code, exits[i].says);
}

/* --- man page ------------------------------------------------------------ */

/* roff treats '\' and a leading '.' or ''' as commands, and '-' as a hyphen. */
static void put_roff(struct mo_buf *b, const char *s)
{
    for (bool start = true; *s; start = *s++ == '\n') {
        if (start && (*s == '.' || *s == '\''))
            mo_buf_puts(b, "\\&");
        if (*s == '\\')
            mo_buf_puts(b, "\\e");
        else if (*s == '-')
            mo_buf_puts(b, "\\-");
        else
            mo_buf_putc(b, *s);
    }
}

static void roff_line(struct mo_buf *b, const char *s)
{
    put_roff(b, s);
    mo_buf_putc(b, '\n');
}

static void man_opts(struct mo_buf *b, const struct mo_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct mo_opt *o = &opts[i];

        if (o->flags & MO_CLI_HIDDEN)
            continue;
        mo_buf_puts(b, ".TP\n");
        if (o->letter)
            mo_buf_printf(b, "\\fB\\-%c\\fR, ", o->letter);
        mo_buf_puts(b, "\\fB\\-\\-");
        put_roff(b, o->name);
        mo_buf_puts(b, "\\fR");
        if (o->arg)
            mo_buf_printf(b, " \\fI%s\\fR", o->arg);
        mo_buf_putc(b, '\n');
        put_roff(b, o->doc);
        mo_buf_puts(b, ".\n");
    }
}

static void man_command(struct mo_buf *b, const struct mo_cmd *cmd)
{
    mo_buf_puts(b, ".SS \"");
    put_roff(b, cmd->name);
    if (cmd->args) {
        mo_buf_putc(b, ' ');
        put_roff(b, cmd->args);
    }
    mo_buf_puts(b, "\"\n");
    put_roff(b, cmd->summary);
    mo_buf_puts(b, ".\n");
    if (cmd->text) {
        mo_buf_puts(b, ".PP\n");
        roff_line(b, cmd->text);
    }
    man_opts(b, cmd->opts, cmd->nopts);
    mo_buf_puts(b, ".PP\nExample:\n.RS\n.nf\n" MO_PROGRAM " ");
    roff_line(b, cmd->example);
    mo_buf_puts(b, ".fi\n.RE\n");
    roff_line(b, cmd->example_says);
}

void mo_help_man(const struct mo_cli_table *t, struct mo_buf *b)
{
    mo_buf_puts(b, ".TH MCP\\-ORCHESTRATOR 1 \"\" \"" MO_PROGRAM " " MO_VERSION
                   "\" \"User Commands\"\n.SH NAME\nmcp\\-orchestrator \\- "
                   "connects language models, people and MCP tools\n.SH "
                   "SYNOPSIS\n.B mcp\\-orchestrator\n\\fIcommand\\fR "
                   "[\\fIoptions\\fR] [\\fIarguments\\fR]\n.SH COMMANDS\n");
    for (size_t i = 0; i < t->ncmds; i++) {
        if (!(t->cmds[i]->flags & MO_CLI_HIDDEN))
            man_command(b, t->cmds[i]);
    }
    mo_buf_puts(b, ".SH \"GLOBAL OPTIONS\"\n");
    man_opts(b, t->globals, t->nglobals);
    mo_buf_puts(b, ".SH \"EXIT STATUS\"\n");
    for (size_t i = 0; i < MO_COUNT(exits); i++)
        mo_buf_printf(b, ".TP\n%d\n%s.\n", exits[i].code, exits[i].says);
    mo_buf_puts(b,
                ".SH FILES\n.TP\n\\fImcp\\-orchestrator.json\\fR, "
                "\\fI$XDG_CONFIG_HOME/mcp\\-orchestrator/config.json\\fR\nThe "
                "configuration; the first file that exists is "
                "used.\n.TP\n\\fI.env\\fR\nNAME=VALUE lines in the working "
                "directory; the environment takes precedence.\n");
}

/* --- completions ---------------------------------------------------------
 *
 * Each shell gets one line per command: its words, its options, and what its
 * arguments may be. "@file" and "@dir" become the shell's own file search. */

static void put_names(struct mo_buf *b, const struct mo_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(opts[i].flags & MO_CLI_HIDDEN))
            mo_buf_printf(b, " --%s", opts[i].name);
    }
}

static void bash_values(struct mo_buf *b, const struct mo_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct mo_opt *o = &opts[i];

        if (!o->arg || (o->flags & MO_CLI_HIDDEN))
            continue;
        if (!o->words)
            mo_buf_printf(b, "    --%s) return ;;\n", o->name);
        else if (o->words[0] == '@')
            mo_buf_printf(b,
                          "    --%s) COMPREPLY=($(compgen -%c -- \"$cur\")); "
                          "return ;;\n",
                          o->name, o->words[1]);
        else
            mo_buf_printf(b,
                          "    --%s) COMPREPLY=($(compgen -W '%s' -- "
                          "\"$cur\")); return ;;\n",
                          o->name, o->words);
    }
}

/* The next group from row *i on, once for all of its rows; or an empty span. */
static struct mo_span next_group(const struct mo_cli_table *t, size_t *i)
{
    struct mo_span last = {NULL, 0}, head = {NULL, 0}, second = {NULL, 0};

    if (*i > 0)
        last = words_of(t->cmds[*i - 1], &second);
    while (*i < t->ncmds) {
        head = words_of(t->cmds[(*i)++], &second);
        if (second.p && !mo_span_eq(head, last))
            return head;
    }
    return mo_span(NULL, 0);
}

/* The first words without repetition: a group has several rows. */
static void first_words(const struct mo_cli_table *t, struct mo_buf *b)
{
    struct mo_span last = mo_span(NULL, 0), second;

    for (size_t i = 0; i < t->ncmds; i++) {
        struct mo_span head = words_of(t->cmds[i], &second);

        if (is_hidden(t->cmds[i]) || mo_span_eq(head, last))
            continue;
        mo_buf_putc(b, ' ');
        mo_buf_span(b, head);
        last = head;
    }
}

static void second_words(const struct mo_cli_table *t, struct mo_span group,
                         struct mo_buf *b)
{
    for (size_t i = 0; i < t->ncmds; i++) {
        struct mo_span second, head = words_of(t->cmds[i], &second);

        if (is_hidden(t->cmds[i]) || !second.p || !mo_span_eq(head, group))
            continue;
        mo_buf_putc(b, ' ');
        mo_buf_span(b, second);
    }
}

static void bash_groups(const struct mo_cli_table *t, struct mo_buf *b)
{
    size_t i = 0;

    for (struct mo_span g = next_group(t, &i); g.n; g = next_group(t, &i)) {
        mo_buf_puts(b, "    '");
        mo_buf_span(b, g);
        mo_buf_puts(b, "') words=\"");
        second_words(t, g, b);
        mo_buf_puts(b, "\" ;;\n");
    }
}

static void put_bash(const struct mo_cli_table *t, struct mo_buf *b)
{
    mo_buf_puts(b, "# bash completion for " MO_PROGRAM "\n"
                   "_mcp_orchestrator() {\n"
                   "    local cur=${COMP_WORDS[COMP_CWORD]}\n"
                   "    local prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                   "    local cmd='' w words=''\n"
                   "    case $prev in\n");
    bash_values(b, t->globals, t->nglobals);
    for (size_t i = 0; i < t->ncmds; i++)
        bash_values(b, t->cmds[i]->opts, t->cmds[i]->nopts);
    mo_buf_puts(b, "    esac\n"
                   "    for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
                   "        [[ $w == -* ]] || cmd=\"${cmd:+$cmd }$w\"\n"
                   "    done\n    case $cmd in\n    '') words=\"");
    first_words(t, b);
    mo_buf_puts(b, "\" ;;\n");
    bash_groups(t, b);
    for (size_t i = 0; i < t->ncmds; i++) {
        const struct mo_cmd *cmd = t->cmds[i];

        if (cmd->flags & MO_CLI_HIDDEN)
            continue;
        mo_buf_printf(b, "    '%s'*) words=\"", cmd->name);
        if (cmd->words && cmd->words[0] != '@')
            mo_buf_puts(b, cmd->words);
        put_names(b, cmd->opts, cmd->nopts);
        mo_buf_puts(b, "\" ;;\n");
    }
    mo_buf_puts(b, "    esac\n    words+=\"");
    put_names(b, t->globals, t->nglobals);
    mo_buf_puts(b,
                "\"\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                "}\ncomplete -o default -F _mcp_orchestrator " MO_PROGRAM "\n");
}

/* zsh loads the bash completion through bashcompinit, so there is only one
 * list. */
static void put_zsh(const struct mo_cli_table *t, struct mo_buf *b)
{
    mo_buf_puts(b, "#compdef " MO_PROGRAM "\n"
                   "autoload -U +X bashcompinit && bashcompinit\n");
    put_bash(t, b);
}

/* fish has two escapes inside '...'. */
static void fish_quote(struct mo_buf *b, const char *s)
{
    mo_buf_putc(b, '\'');
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\')
            mo_buf_putc(b, '\\');
        mo_buf_putc(b, *s);
    }
    mo_buf_putc(b, '\'');
}

static void fish_opts(struct mo_buf *b, const char *when,
                      const struct mo_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct mo_opt *o = &opts[i];
        bool files = o->words && o->words[0] == '@';

        if (o->flags & MO_CLI_HIDDEN)
            continue;
        mo_buf_printf(b, "complete -c " MO_PROGRAM "%s -l %s", when, o->name);
        if (o->letter)
            mo_buf_printf(b, " -s %c", o->letter);
        if (o->arg)
            mo_buf_puts(b, files ? " -r -F" : " -x");
        if (o->words && !files) {
            mo_buf_puts(b, " -a ");
            fish_quote(b, o->words);
        }
        mo_buf_puts(b, " -d ");
        fish_quote(b, o->doc);
        mo_buf_putc(b, '\n');
    }
}

static void fish_command(const struct mo_cmd *cmd, struct mo_buf *b)
{
    struct mo_span rest, head = words_of(cmd, &rest);
    char when[96];
    int n = (int)head.n;

    mo_buf_puts(b, "complete -c " MO_PROGRAM " -f -n ");
    if (rest.p)
        mo_buf_printf(b, "'__fish_seen_subcommand_from %.*s' -a %s", n, head.p,
                      rest.p);
    else
        mo_buf_printf(b, "__fish_use_subcommand -a %s", cmd->name);
    mo_buf_puts(b, " -d ");
    fish_quote(b, cmd->summary);
    mo_buf_putc(b, '\n');
    (void)snprintf(when, sizeof(when), " -n '__fish_seen_subcommand_from %s'",
                   rest.p ? rest.p : cmd->name);
    fish_opts(b, when, cmd->opts, cmd->nopts);
    if (cmd->words && cmd->words[0] != '@')
        mo_buf_printf(b, "complete -c " MO_PROGRAM "%s -f -a '%s'\n", when,
                      cmd->words);
}

/* Offers the first word of a group once, before its second words. */
static void fish_groups(const struct mo_cli_table *t, struct mo_buf *b)
{
    size_t i = 0;

    for (struct mo_span g = next_group(t, &i); g.n; g = next_group(t, &i))
        mo_buf_printf(b,
                      "complete -c " MO_PROGRAM
                      " -f -n __fish_use_subcommand -a %.*s\n",
                      (int)g.n, g.p);
}

static void put_fish(const struct mo_cli_table *t, struct mo_buf *b)
{
    mo_buf_puts(b, "# fish completion for " MO_PROGRAM "\n");
    fish_opts(b, "", t->globals, t->nglobals);
    fish_groups(t, b);
    for (size_t i = 0; i < t->ncmds; i++) {
        if (!(t->cmds[i]->flags & MO_CLI_HIDDEN))
            fish_command(t->cmds[i], b);
    }
}

int mo_help_completion(const struct mo_cli_table *t, const char *shell,
                       struct mo_buf *b)
{
    static const struct {
        const char *shell;
        void (*write)(const struct mo_cli_table *t, struct mo_buf *b);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};

    for (size_t i = 0; i < MO_COUNT(shells); i++) {
        if (strcmp(shells[i].shell, shell) == 0) {
            shells[i].write(t, b);
            return mo_buf_err(b);
        }
    }
    return MO_ENOTFOUND;
}
