/* cli.h - the command line: one table, and everything that reads it.
 *
 * A command is one file in cli/ and one row of mo_commands (cli/table.c):
 * its words, options, example and function. The parser below, --help, the
 * man page and the shell completions (help_text.h) all read that same row, so
 * none of them can be forgotten or lie.
 *
 * Rules: options may stand anywhere behind the command's words; global ones
 * also before. "--name value" and "--name=value" are the same; "--" ends
 * options; of a repeated option the last counts. There is no option that
 * takes a secret: other users can read a command line.
 *
 * Ownership: everything points into argv and into constant tables; nothing
 * is allocated. */
#ifndef MO_CLI_CLI_H
#define MO_CLI_CLI_H

#include "base/err.h"
#include "base/exit.h"
#include "base/mem.h"
#include "base/str.h"

#define MO_PROGRAM "mcp-orchestrator"

#define MO_CLI_OPTS_MAX 32
#define MO_CLI_ARGS_MAX 66 /* `box run` takes a whole command */

#define MO_CLI_HIDDEN 1u /* works, but is in no help text or completion */

struct mo_opt {
    const char *name;  /* without the dashes */
    const char *arg;   /* what its value is called; NULL: a switch */
    const char *doc;   /* one sentence, no full stop */
    const char *key;   /* the configuration key it sets, or NULL */
    const char *words; /* values for completion: "a b", "@file", "@dir" */
    unsigned flags;
    char letter; /* short form, or 0 */
};

struct mo_cli;

struct mo_cmd {
    const char *name;    /* one or two words: "config check" */
    const char *summary; /* one line, no full stop */
    const char *args;    /* how its arguments are written, or NULL */
    unsigned max_args, min_args;
    const char *words;   /* arguments for completion, as in mo_opt */
    const char *text;    /* a paragraph, or NULL */
    const char *example; /* a command line without the program's name */
    const char *example_says;
    const struct mo_opt *opts;
    size_t nopts;
    int (*run)(struct mo_cli *c); /* an enum mo_exit_code */
    unsigned flags;
};

struct mo_cli_table {
    const struct mo_cmd *const *cmds;
    size_t ncmds;
    const struct mo_opt *globals;
    size_t nglobals;
};

extern const struct mo_cli_table mo_commands; /* cli/table.c */

struct mo_cli {
    const struct mo_cli_table *table;
    const struct mo_cmd *cmd; /* NULL: none was given */
    const char *group;        /* "config" when only that was given */
    struct {
        const struct mo_opt *opt;
        const char *value; /* "" for a switch */
    } got[MO_CLI_OPTS_MAX];
    size_t ngot;
    const char *args[MO_CLI_ARGS_MAX];
    size_t nargs;
    size_t dashes; /* of them, before a "--"; SIZE_MAX: there was none */
    char *const *environ;
    int out, err; /* descriptors */
};

/* argv[0] is skipped. MO_EINVAL with a sentence for the person. */
int mo_cli_parse(struct mo_cli *c, const struct mo_cli_table *t, int argc,
                 char *const *argv, struct mo_err *e);

/* The option's last value ("" for a switch), or NULL. */
const char *mo_cli_get(const struct mo_cli *c, const char *name);

static inline bool mo_cli_has(const struct mo_cli *c, const char *name)
{
    return mo_cli_get(c, name) != NULL;
}

/* "config check" or "config" + "check"; NULL when there is none. */
const struct mo_cmd *mo_cli_find(const struct mo_cli_table *t,
                                 struct mo_span name);
bool mo_cli_is_group(const struct mo_cli_table *t, struct mo_span word);
/* The command or group nearest to a mistyped word, or NULL. */
const char *mo_cli_nearest(const struct mo_cli_table *t, struct mo_span word);

/* Parse and run; what main() returns. */
int mo_cli_main(int argc, char *const *argv, char *const *envp);

/* --- for the commands ---------------------------------------------------- */

/* Write a finished text to stdout and fini the buffer. */
int mo_cli_print(const struct mo_cli *c, struct mo_buf *b);
/* "mcp-orchestrator: ..." on stderr; returns code. */
int mo_cli_error(const struct mo_cli *c, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
