/* dotenv.h - the .env file: NAME=VALUE lines, parsed, never exported.
 *
 * A line is blank, a comment (#), or NAME=VALUE with an optional "export "
 * in front. Values:
 *   plain    up to the end of the line or " #", blanks trimmed
 *   'raw'    taken as it stands
 *   "text"   with \n \r \t \" \\ \$; any other escape is an error
 * LF and CRLF both end a line. Of two lines with one name the last counts,
 * as in a shell. Nothing is expanded and nothing is put into the process's
 * environment: children must not inherit keys that they were not given.
 *
 * Ownership: names and values live in the arena. Pure: no I/O here. */
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

/* On MO_EINVAL / MO_ETOOBIG *line says where (1-based). */
int mo_dotenv_parse(struct mo_arena *a, struct mo_span text,
                    struct mo_dotenv *out, unsigned *line, struct mo_err *e);

/* NULL when it is not there. */
const struct mo_dotenv_var *mo_dotenv_find(const struct mo_dotenv *env,
                                           const char *name);

/* Does a name look like it holds a secret (..._KEY, ..._TOKEN, ...)? */
bool mo_dotenv_secret_name(const char *name);

#endif
