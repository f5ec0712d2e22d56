/* completion_text.c - completion scripts for shells; see help_text.h.
 *
 * Each shell gets one line per command: its words, its options, and what its
 * arguments may be. "@file" and "@dir" become the shell's own file search,
 * other kinds ask `complete` (cli/complete.c). Its answer is never evaluated:
 * bash would expand $(...) in the words of compgen. The program is that of
 * PATH, not the one on the line, which may lie in anybody's directory. */
#include <stdio.h>

#include "cli/help_text.h"

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

/* The kind of names ("server") that `complete` prints, or NULL. */
static const char *kind_of(const char *words)
{
    if (!words || words[0] != '@' || strcmp(words, "@file") == 0 ||
        strcmp(words, "@dir") == 0)
        return NULL;
    return words + 1;
}

static void put_names(struct mo_buf *b, const struct mo_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(opts[i].flags & MO_CLI_HIDDEN))
            mo_buf_printf(b, " --%s", opts[i].name);
    }
}

static void put_opt_takers(struct mo_buf *b, char before,
                           const struct mo_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!opts[i].arg || (opts[i].flags & MO_CLI_HIDDEN))
            continue;
        mo_buf_printf(b, "%c--%s", before, opts[i].name);
        if (opts[i].letter)
            mo_buf_printf(b, "%c-%c", before, opts[i].letter);
    }
}

/* The options that take a value: the next word is no argument. */
static void put_takers(const struct mo_cli_table *t, char before,
                       struct mo_buf *b)
{
    put_opt_takers(b, before, t->globals, t->nglobals);
    for (size_t i = 0; i < t->ncmds; i++)
        put_opt_takers(b, before, t->cmds[i]->opts, t->cmds[i]->nopts);
}

static void bash_values(struct mo_buf *b, const struct mo_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct mo_opt *o = &opts[i];

        if (!o->arg || (o->flags & MO_CLI_HIDDEN))
            continue;
        if (!o->words)
            mo_buf_printf(b, "    --%s) return ;;\n", o->name);
        else if (kind_of(o->words))
            mo_buf_printf(b,
                          "    --%s) _mcp_orchestrator_names %s; return ;;\n",
                          o->name, kind_of(o->words));
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

static void bash_command(const struct mo_cmd *cmd, struct mo_buf *b)
{
    const char *kind = kind_of(cmd->words), *n = cmd->name;

    mo_buf_printf(b, "    '%s'*) words=\"", n);
    if (cmd->words && cmd->words[0] != '@')
        mo_buf_puts(b, cmd->words);
    put_names(b, cmd->opts, cmd->nopts);
    mo_buf_puts(b, "\"");
    if (kind && strcmp(kind, "server-tool") == 0)
        mo_buf_printf(b,
                      "\n        case ${cmd#'%s'} in\n"
                      "        '') _mcp_orchestrator_names server ;;\n"
                      "        ' '*' '*) ;;\n"
                      "        *) _mcp_orchestrator_names tool "
                      "\"${cmd#'%s '}\" ;;\n        esac",
                      n, n);
    else if (kind)
        mo_buf_printf(
            b, "\n        [[ $cmd != '%s' ]] || _mcp_orchestrator_names %s", n,
            kind);
    mo_buf_puts(b, " ;;\n");
}

static const char bash_head[] =
    "# bash completion for " MO_PROGRAM "\n"
    "_mcp_orchestrator_names() {\n"
    "    local name\n"
    "    while IFS= read -r name; do\n"
    "        [[ $name != \"$cur\"* ]] || COMPREPLY+=(\"$name\")\n"
    "    done < <(command " MO_PROGRAM " complete \"$@\" \"${config[@]}\" "
    "2>/dev/null </dev/null)\n"
    "}\n"
    "_mcp_orchestrator() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    local prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local cmd='' w words='' before=''\n"
    "    local -a config=()\n"
    "    COMPREPLY=()\n"
    "    for w in \"${COMP_WORDS[@]:1:$((COMP_CWORD-1))}\"; do\n"
    "        case $before in\n"
    "        -c|--config) config=(--config \"$w\"); before='' ; continue ;;\n"
    "        -";

static void put_bash(const struct mo_cli_table *t, struct mo_buf *b)
{
    mo_buf_puts(b, bash_head);
    put_takers(t, '|', b);
    mo_buf_puts(b, ") before='' ; continue ;;\n        esac\n"
                   "        before=$w\n"
                   "        [[ $w == -* ]] || cmd=\"${cmd:+$cmd }$w\"\n"
                   "    done\n    case $prev in\n");
    bash_values(b, t->globals, t->nglobals);
    for (size_t i = 0; i < t->ncmds; i++)
        bash_values(b, t->cmds[i]->opts, t->cmds[i]->nopts);
    mo_buf_puts(b, "    esac\n    case $cmd in\n    '') words=\"");
    first_words(t, b);
    mo_buf_puts(b, "\" ;;\n");
    bash_groups(t, b);
    for (size_t i = 0; i < t->ncmds; i++)
        if (!is_hidden(t->cmds[i]))
            bash_command(t->cmds[i], b);
    mo_buf_puts(b, "    esac\n    words+=\"");
    put_names(b, t->globals, t->nglobals);
    mo_buf_puts(b,
                "\"\n    (( ${#COMPREPLY[@]} )) ||\n"
                "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                "}\ncomplete -o default -F _mcp_orchestrator " MO_PROGRAM "\n");
}

/* zsh loads the bash completion through bashcompinit, so there is only one
 * list. */
static void put_zsh(const struct mo_cli_table *t, struct mo_buf *b)
{
    mo_buf_puts(b, "#compdef " MO_PROGRAM "\n"
                   "autoload -U +X bashcompinit && bashcompinit\n");
    put_bash(t, b);
    /* Loaded by the first completion, it answers that one too. */
    mo_buf_puts(b, "[[ $funcstack[1] != _" MO_PROGRAM " ]] ||\n"
                   "    _bash_complete -o default -F _mcp_orchestrator\n");
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
        bool files = o->words && o->words[0] == '@' && !kind_of(o->words);

        if (o->flags & MO_CLI_HIDDEN)
            continue;
        mo_buf_printf(b, "complete -c " MO_PROGRAM "%s -l %s", when, o->name);
        if (o->letter)
            mo_buf_printf(b, " -s %c", o->letter);
        if (o->arg)
            mo_buf_puts(b, files ? " -r -F" : " -x");
        if (kind_of(o->words)) {
            mo_buf_printf(b, " -a '(command " MO_PROGRAM " complete %s)'",
                          kind_of(o->words));
        } else if (o->words && !files) {
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
    char when[128];
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
    (void)snprintf(when, sizeof(when),
                   " -n '__fish_seen_subcommand_from %.*s%s%s'", n, head.p,
                   rest.p ? "; and __fish_seen_subcommand_from " : "",
                   rest.p ? rest.p : "");
    fish_opts(b, when, cmd->opts, cmd->nopts);
    if (kind_of(cmd->words))
        mo_buf_printf(b,
                      "complete -c " MO_PROGRAM
                      "%s -f -a '(__mcp_orchestrator_names %d %s)'\n",
                      when, rest.p ? 3 : 2, kind_of(cmd->words));
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

/* __mcp_orchestrator_names WORDS KIND: for the first argument after that many
 * words, and a tool for the second. */
static const char fish_head[] =
    "# fish completion for " MO_PROGRAM "\n"
    "function __mcp_orchestrator_names\n"
    "    set -l words\n"
    "    set -l skip 0\n"
    "    for w in (commandline -opc)\n"
    "        if test $skip = 1\n"
    "            set skip 0\n"
    "        else if contains -- $w $__mcp_orchestrator_takers\n"
    "            set skip 1\n"
    "        else if not string match -q -- '-*' $w\n"
    "            set -a words $w\n"
    "        end\n"
    "    end\n"
    "    set -l more (math (count $words) - $argv[1])\n"
    "    if test $more -eq 0\n"
    "        command " MO_PROGRAM " complete (string replace -- -tool '' "
    "$argv[2])\n"
    "    else if test $more -eq 1 -a $argv[2] = server-tool\n"
    "        command " MO_PROGRAM " complete tool $words[-1]\n"
    "    end\n"
    "end\n";

static void put_fish(const struct mo_cli_table *t, struct mo_buf *b)
{
    mo_buf_puts(b, fish_head);
    mo_buf_puts(b, "set -g __mcp_orchestrator_takers");
    put_takers(t, ' ', b);
    mo_buf_putc(b, '\n');
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
