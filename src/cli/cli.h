/* cli.h - the command line: parser, command table, and helpers for commands.
 *
 * A command is one function in cli/ and one entry of data/commands.json with
 * its words, options, texts and example. The build makes mo_commands of that
 * file. The parser, --help, the manual pages and the shell completions
 * (help_text.h) all read the same row, so they always agree.
 *
 * Rules: options may stand anywhere after the words of the command, global
 * options also before. "--name value" and "--name=value" are equal. "--" ends
 * the options. The last of a repeated option counts. No option takes a secret,
 * because other users can read a command line.
 *
 * Ownership: everything points into argv and constant tables; nothing is
 * allocated. */
#ifndef MO_CLI_CLI_H
#define MO_CLI_CLI_H

#include "base/err.h"
#include "base/exit.h"
#include "base/mem.h"
#include "base/str.h"

#define MO_PROGRAM "mcp-orchestrator"

#define MO_CLI_OPTS_MAX 32
#define MO_CLI_ARGS_MAX 66 /* `box run` takes a whole command */

#define MO_CLI_HIDDEN 1u /* accepted, but not in help or completions */

struct mo_opt {
    const char *name;  /* without the dashes */
    const char *arg;   /* name of its value; NULL: a switch */
    const char *doc;   /* one sentence, no full stop */
    const char *key;   /* the configuration key it sets, or NULL */
    const char *words; /* values for completion: "a b", "@file", "@dir", or a
                          kind of names: "@server" (cli/complete.c) */
    unsigned flags;
    char letter; /* short form, or 0 */
};

struct mo_cli;

struct mo_cmd {
    const char *name;    /* one or two words: "config check" */
    const char *summary; /* one line, no full stop */
    const char *args;    /* synopsis of its arguments, or NULL */
    unsigned max_args, min_args;
    const char *words;   /* arguments for completion, as in mo_opt;
                            "@server-tool": a server, then a tool of it */
    const char *text;    /* a paragraph, or NULL */
    const char *example; /* a command line without the program name */
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

extern const struct mo_cli_table mo_commands; /* scripts/embed-commands */

struct mo_cli {
    const struct mo_cli_table *table;
    const struct mo_cmd *cmd; /* NULL: none was given */
    const char *group;        /* "config" if only the group was given */
    struct {
        const struct mo_opt *opt;
        const char *value; /* "" for a switch */
    } got[MO_CLI_OPTS_MAX];
    size_t ngot;
    const char *args[MO_CLI_ARGS_MAX];
    size_t nargs;
    size_t dashes; /* number of args before "--"; SIZE_MAX: no "--" */
    char *const *environ;
    int out, err; /* descriptors */
};

/* Parses argv without argv[0]. MO_EINVAL: the error is a message for the
 * person. */
int mo_cli_parse(struct mo_cli *c, const struct mo_cli_table *t, int argc,
                 char *const *argv, struct mo_err *e);

/* The last value of the option ("" for a switch), or NULL. */
const char *mo_cli_get(const struct mo_cli *c, const char *name);

static inline bool mo_cli_has(const struct mo_cli *c, const char *name)
{
    return mo_cli_get(c, name) != NULL;
}

/* "config check" or "config" + "check"; NULL when there is none. */
const struct mo_cmd *mo_cli_find(const struct mo_cli_table *t,
                                 struct mo_span name);
bool mo_cli_is_group(const struct mo_cli_table *t, struct mo_span word);
/* The command or group most similar to a mistyped word, or NULL. */
const char *mo_cli_nearest(const struct mo_cli_table *t, struct mo_span word);

/* Parses and runs the command; returns the exit code for main(). */
int mo_cli_main(int argc, char *const *argv, char *const *envp);

/* --- helpers for commands ------------------------------------------------- */

/* Appends the arguments with a blank between; returns the text. */
struct mo_span mo_cli_join(const struct mo_cli *c, struct mo_buf *b);
/* Writes the text to stdout. */
int mo_cli_print(const struct mo_cli *c, const struct mo_buf *b);
/* Prints "mcp-orchestrator: ..." on stderr and returns code. */
int mo_cli_error(const struct mo_cli *c, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
