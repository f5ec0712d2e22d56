#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/nearest.h"
#include "cli/help_text.h"
#include "codec/text/visible.h"

#define HELP_MAX ((size_t)64 * 1024)

/* The group part of "config check", or an empty span for "serve". */
static struct mo_span group_of(const struct mo_cmd *cmd)
{
    struct mo_span rest = mo_span_cstr(cmd->name);
    struct mo_span head = mo_span_cut(&rest, ' ');

    return rest.p ? head : mo_span(NULL, 0);
}

const struct mo_cmd *mo_cli_find(const struct mo_cli_table *t,
                                 struct mo_span name)
{
    for (size_t i = 0; i < t->ncmds; i++) {
        if (mo_span_is(name, t->cmds[i]->name))
            return t->cmds[i];
    }
    return NULL;
}

bool mo_cli_is_group(const struct mo_cli_table *t, struct mo_span word)
{
    for (size_t i = 0; i < t->ncmds; i++) {
        if (word.n && mo_span_eq(group_of(t->cmds[i]), word))
            return true;
    }
    return false;
}

static const struct mo_cmd *find_in_group(const struct mo_cli_table *t,
                                          const char *group, const char *word)
{
    for (size_t i = 0; i < t->ncmds; i++) {
        struct mo_span g = group_of(t->cmds[i]);

        if (mo_span_is(g, group) &&
            strcmp(t->cmds[i]->name + g.n + 1, word) == 0)
            return t->cmds[i];
    }
    return NULL;
}

const char *mo_cli_nearest(const struct mo_cli_table *t, struct mo_span word)
{
    struct mo_nearest near;

    mo_nearest_init(&near, word);
    for (size_t i = 0; i < t->ncmds; i++) {
        if (t->cmds[i]->flags & MO_CLI_HIDDEN)
            continue;
        mo_nearest_offer(&near, t->cmds[i]->name);
    }
    return near.best;
}

/* --- options ------------------------------------------------------------- */

static const struct mo_opt *find_opt_in(const struct mo_opt *opts, size_t n,
                                        struct mo_span name, char letter)
{
    for (size_t i = 0; i < n; i++) {
        if (letter ? opts[i].letter == letter : mo_span_is(name, opts[i].name))
            return &opts[i];
    }
    return NULL;
}

static const struct mo_opt *find_opt(const struct mo_cli *c,
                                     struct mo_span name, char letter)
{
    const struct mo_cli_table *t = c->table;
    const struct mo_opt *o = NULL;

    if (c->cmd)
        o = find_opt_in(c->cmd->opts, c->cmd->nopts, name, letter);
    return o ? o : find_opt_in(t->globals, t->nglobals, name, letter);
}

static void offer_opts(struct mo_nearest *near, const struct mo_opt *opts,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(opts[i].flags & MO_CLI_HIDDEN))
            mo_nearest_offer(near, opts[i].name);
    }
}

/* Finds a command that has this option: the option may stand too early. */
static const struct mo_cmd *owner_of(const struct mo_cli_table *t,
                                     struct mo_span name)
{
    for (size_t i = 0; i < t->ncmds; i++) {
        if (find_opt_in(t->cmds[i]->opts, t->cmds[i]->nopts, name, 0))
            return t->cmds[i];
    }
    return NULL;
}

static int unknown_opt(const struct mo_cli *c, struct mo_span name,
                       struct mo_err *e)
{
    const struct mo_cmd *owner = c->cmd ? NULL : owner_of(c->table, name);
    struct mo_nearest near;

    if (owner)
        return mo_fail(e, MO_EINVAL,
                       "option '--%.*s' belongs after its command: %s --%.*s",
                       (int)name.n, name.p, owner->name, (int)name.n, name.p);
    mo_nearest_init(&near, name);
    if (c->cmd)
        offer_opts(&near, c->cmd->opts, c->cmd->nopts);
    offer_opts(&near, c->table->globals, c->table->nglobals);
    if (near.best)
        return mo_fail(e, MO_EINVAL,
                       "unknown option '--%.40s'; did you mean '--%s'?", name.p,
                       near.best);
    return mo_fail(e, MO_EINVAL, "unknown option '--%.40s'", name.p);
}

static int store_opt(struct mo_cli *c, const struct mo_opt *o,
                     const char *value, struct mo_err *e)
{
    if (c->ngot == MO_CLI_OPTS_MAX)
        return mo_fail(e, MO_EINVAL, "more than %d options", MO_CLI_OPTS_MAX);
    c->got[c->ngot].opt = o;
    c->got[c->ngot].value = value;
    c->ngot++;
    return 0;
}

/* Parses "--name", "--name=value" or "-x"; *i advances if the value is the next
 * word. A value that starts with "--" needs the '=' form, because usually the
 * value was forgotten. */
static int take_opt(struct mo_cli *c, int argc, char *const *argv, int *i,
                    struct mo_err *e)
{
    const char *word = argv[*i];
    bool longer = word[1] == '-';
    struct mo_span rest = mo_span_cstr(word + (longer ? 2 : 1));
    struct mo_span name = mo_span_cut(&rest, longer ? '=' : '\0');
    const struct mo_opt *o;

    if (!longer && name.n != 1)
        return mo_fail(e, MO_EINVAL, "unknown option '%.40s'", word);
    o = find_opt(c, name, longer ? 0 : name.p[0]);
    if (!o && longer)
        return unknown_opt(c, name, e);
    if (!o)
        return mo_fail(e, MO_EINVAL, "unknown option '%s'", word);
    if (!o->arg && rest.p)
        return mo_fail(e, MO_EINVAL, "option '--%s' takes no value", o->name);
    if (!o->arg || rest.p)
        return store_opt(c, o, rest.p ? rest.p : "", e);
    if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0)
        return mo_fail(e, MO_EINVAL, "option '--%s' needs a value: --%s %s",
                       o->name, o->name, o->arg);
    return store_opt(c, o, argv[++*i], e);
}

/* --- words --------------------------------------------------------------- */

static int unknown_cmd(const struct mo_cli *c, const char *word,
                       struct mo_err *e)
{
    char full[80];
    const char *best;

    (void)snprintf(full, sizeof(full), "%s%s%.40s", c->group ? c->group : "",
                   c->group ? " " : "", word);
    best = mo_cli_nearest(c->table, mo_span_cstr(full));
    if (best)
        return mo_fail(e, MO_EINVAL, "unknown command '%s'; did you mean '%s'?",
                       full, best);
    return mo_fail(e, MO_EINVAL, "unknown command '%s'", full);
}

static int take_word(struct mo_cli *c, const char *word, struct mo_err *e)
{
    if (c->cmd) {
        if (c->nargs == MO_CLI_ARGS_MAX || c->nargs >= c->cmd->max_args)
            return mo_fail(e, MO_EINVAL, "'%s' has no use for '%.60s'",
                           c->cmd->name, word);
        c->args[c->nargs++] = word;
        return 0;
    }
    c->cmd = c->group ? find_in_group(c->table, c->group, word)
                      : mo_cli_find(c->table, mo_span_cstr(word));
    if (c->cmd)
        return 0;
    if (c->group || !mo_cli_is_group(c->table, mo_span_cstr(word)))
        return unknown_cmd(c, word, e);
    c->group = word;
    return 0;
}

/* With --help, missing arguments are not an error. */
static int check_missing_args(const struct mo_cli *c, struct mo_err *e)
{
    if (mo_cli_has(c, "help") || !c->cmd)
        return 0;
    if (c->nargs < c->cmd->min_args)
        return mo_fail(e, MO_EINVAL, "'%s' needs %s", c->cmd->name,
                       c->cmd->args);
    return 0;
}

int mo_cli_parse(struct mo_cli *c, const struct mo_cli_table *t, int argc,
                 char *const *argv, struct mo_err *e)
{
    bool only_words = false;

    *c = (struct mo_cli){.table = t,
                         .dashes = SIZE_MAX,
                         .out = STDOUT_FILENO,
                         .err = STDERR_FILENO};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        bool opt = !only_words && word[0] == '-' && word[1];
        int rc;

        if (opt && strcmp(word, "--") == 0) {
            only_words = true;
            c->dashes = c->nargs;
            continue;
        }
        rc = opt ? take_opt(c, argc, argv, &i, e) : take_word(c, word, e);
        if (rc < 0)
            return rc;
    }
    return check_missing_args(c, e);
}

const char *mo_cli_get(const struct mo_cli *c, const char *name)
{
    for (size_t i = c->ngot; i > 0; i--) {
        if (strcmp(c->got[i - 1].opt->name, name) == 0)
            return c->got[i - 1].value;
    }
    return NULL;
}

/* --- running ------------------------------------------------------------- */

int mo_cli_error(const struct mo_cli *c, int code, const char *fmt, ...)
{
    mo_autobuf struct mo_buf shown = {.max = 4096};
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mo_visible_text(&shown, mo_span_cstr(text)); /* servers' words are in it */
    (void)dprintf(c->err, MO_PROGRAM ": %s\n", mo_buf_cstr(&shown));
    return code;
}

struct mo_span mo_cli_join(const struct mo_cli *c, struct mo_buf *b)
{
    for (size_t i = 0; i < c->nargs; i++)
        (void)mo_buf_printf(b, "%s%s", i ? " " : "", c->args[i]);
    return mo_buf_view(b);
}

int mo_cli_print(const struct mo_cli *c, const struct mo_buf *b)
{
    mo_autobuf struct mo_buf shown = {.max = SIZE_MAX / 2};
    struct mo_err e = {0};

    if (!mo_buf_err(b) && isatty(c->out))
        mo_visible_text(&shown, mo_buf_view(b));
    if (mo_buf_err(b) || mo_buf_err(&shown))
        return mo_cli_error(
            c, MO_EXIT_FAIL, "cannot build the text: %s",
            mo_err_name(mo_buf_err(b) ? mo_buf_err(b) : mo_buf_err(&shown)));
    if (mo_file_write_all(c->out, mo_buf_view(shown.len ? &shown : b), &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    return MO_EXIT_OK;
}

static int usage_error(const struct mo_cli *c, const struct mo_err *e)
{
    const char *about = c->cmd ? c->cmd->name : c->group;

    (void)mo_cli_error(c, 0, "%s", e->msg);
    (void)dprintf(c->err, "Try '" MO_PROGRAM "%s%s --help'.\n",
                  about ? " " : "", about ? about : "");
    return MO_EXIT_USAGE;
}

/* Prints the overview if no command was given; an error on stderr unless it was
 * requested. */
static int run_overview(struct mo_cli *c)
{
    mo_autobuf struct mo_buf b = {.max = HELP_MAX};
    int rc;

    mo_help_overview(c->table, c->group, &b);
    if (mo_cli_has(c, "help"))
        return mo_cli_print(c, &b);
    c->out = c->err;
    rc = mo_cli_print(c, &b);
    return rc ? rc : MO_EXIT_USAGE;
}

int mo_cli_main(int argc, char *const *argv, char *const *envp)
{
    const struct mo_cmd *version;
    mo_autobuf struct mo_buf b = {.max = HELP_MAX};
    struct mo_err e = {0};
    struct mo_cli c;

    if (mo_cli_parse(&c, &mo_commands, argc, argv, &e) < 0)
        return usage_error(&c, &e);
    c.environ = envp;
    version = mo_cli_find(c.table, MO_SPAN("version"));
    if (mo_cli_has(&c, "version") && version)
        return version->run(&c);
    if (!c.cmd)
        return run_overview(&c);
    if (!mo_cli_has(&c, "help"))
        return c.cmd->run(&c);
    mo_help_command(c.table, c.cmd, &b);
    return mo_cli_print(&c, &b);
}
