/* docgen.c - man page and shell completions from the command table. */
#include <stdio.h>

#include "cli/help_text.h"

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
    for (size_t i = 0; i < mo_help_nexits; i++)
        mo_buf_printf(b, ".TP\n%d\n%s.\n", mo_help_exits[i].code,
                      mo_help_exits[i].says);
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

/* The first words without repetition: a group has several rows. */
static void first_words(const struct mo_cli_table *t, struct mo_buf *b)
{
    struct mo_span last = mo_span(NULL, 0);

    for (size_t i = 0; i < t->ncmds; i++) {
        struct mo_span rest = mo_span_cstr(t->cmds[i]->name);
        struct mo_span head = mo_span_cut(&rest, ' ');

        if ((t->cmds[i]->flags & MO_CLI_HIDDEN) || mo_span_eq(head, last))
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
        struct mo_span rest = mo_span_cstr(t->cmds[i]->name);
        struct mo_span head = mo_span_cut(&rest, ' ');

        if ((t->cmds[i]->flags & MO_CLI_HIDDEN) || !rest.p)
            continue;
        if (!mo_span_eq(head, group))
            continue;
        mo_buf_putc(b, ' ');
        mo_buf_span(b, rest);
    }
}

static void bash_groups(const struct mo_cli_table *t, struct mo_buf *b)
{
    struct mo_span last = mo_span(NULL, 0);

    for (size_t i = 0; i < t->ncmds; i++) {
        struct mo_span rest = mo_span_cstr(t->cmds[i]->name);
        struct mo_span head = mo_span_cut(&rest, ' ');

        if (!rest.p || mo_span_eq(head, last))
            continue;
        mo_buf_puts(b, "    '");
        mo_buf_span(b, head);
        mo_buf_puts(b, "') words=\"");
        second_words(t, head, b);
        mo_buf_puts(b, "\" ;;\n");
        last = head;
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
    struct mo_span rest = mo_span_cstr(cmd->name);
    struct mo_span head = mo_span_cut(&rest, ' ');
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
    struct mo_span last = mo_span(NULL, 0);

    for (size_t i = 0; i < t->ncmds; i++) {
        struct mo_span rest = mo_span_cstr(t->cmds[i]->name);
        struct mo_span head = mo_span_cut(&rest, ' ');

        if (!rest.p || mo_span_eq(head, last))
            continue;
        mo_buf_printf(b,
                      "complete -c " MO_PROGRAM
                      " -f -n __fish_use_subcommand -a %.*s\n",
                      (int)head.n, head.p);
        last = head;
    }
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
