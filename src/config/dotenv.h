/* dotenv.h - the .env file: NAME=VALUE lines, parsed, never exported.
 *
 * A line is blank, a comment (#), or NAME=VALUE with an optional "export "
 * in front. Values:
 *   plain    up to the end of the line or " #", blanks trimmed
 *   'raw'    taken literally
 *   "text"   with \n \r \t \" \\ \$; any other escape is an error
 * LF and CRLF end a line. If a name occurs twice, the last line wins, as in a
 * shell. Values are not expanded and not added to the environment of the
 * process: child processes must not inherit them.
 *
 * Ownership: names and values live in the arena. Pure: no I/O. */
#ifndef MO_CONFIG_DOTENV_H
#define MO_CONFIG_DOTENV_H

#include "base/mem.h"
#include "base/str.h"

#define MO_DOTENV_FILE_MAX ((size_t)64 * 1024)
#define MO_DOTENV_VARS_MAX 256

struct mo_dotenv_var {
    const char *name, *value;
    unsigned line;
};

struct mo_dotenv {
    struct mo_dotenv_var *v;
    size_t n;
};

/* On MO_EINVAL and MO_ETOOBIG, *line is the line of the error (from 1). */
int mo_dotenv_parse(struct mo_arena *a, struct mo_span text,
                    struct mo_dotenv *out, unsigned *line, struct mo_err *e);

/* NULL if there is no such variable. */
const struct mo_dotenv_var *mo_dotenv_find(const struct mo_dotenv *env,
                                           const char *name);

/* True if the name suggests a secret (..._KEY, ..._TOKEN, ...). */
bool mo_dotenv_secret_name(const char *name);

#endif
