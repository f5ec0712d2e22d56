/* dotenv.c - parses .env files; see dotenv.h. */
#include "config/dotenv.h"

static bool is_valid_name(struct mo_span s)
{
    return s.n > 0 && !mo_is_digit(s.p[0]) && mo_span_only(s, MO_ALNUM "_");
}

/* True if the text may follow a closing quote. */
static bool is_only_comment(struct mo_span s)
{
    s = mo_span_trim(s);
    return s.n == 0 || s.p[0] == '#';
}

/* A plain value ends at a '#' after a blank. */
static struct mo_span trim_plain(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        bool apart = i == 0 || s.p[i - 1] == ' ' || s.p[i - 1] == '\t';

        if (s.p[i] == '#' && apart)
            return mo_span_trim(mo_span_head(s, i));
    }
    return mo_span_trim(s);
}

static int parse_raw(struct mo_arena *a, struct mo_span s, const char **out,
                     struct mo_err *e)
{
    ptrdiff_t end = mo_span_find(mo_span_skip(s, 1), '\'');

    if (end < 0)
        return mo_fail(e, MO_EINVAL, "the ' quote is not closed");
    if (!is_only_comment(mo_span_skip(s, (size_t)end + 2)))
        return mo_fail(e, MO_EINVAL, "text after the closing quote");
    *out = mo_arena_strndup(a, s.p + 1, (size_t)end);
    return *out ? 0 : mo_fail(e, MO_ENOMEM, "out of memory");
}

static char unescape(char c)
{
    static const char from[] = "nrt\"\\$", to[] = "\n\r\t\"\\$";
    const char *at = c ? strchr(from, c) : NULL;

    return at ? to[at - from] : '\0';
}

/* Reads one character of a "text" value; returns the bytes used, or 0 for an
 * unknown escape. */
static size_t read_char(struct mo_span s, char *out)
{
    if (s.p[0] != '\\') {
        *out = s.p[0];
        return 1;
    }
    *out = s.n > 1 ? unescape(s.p[1]) : '\0';
    return *out ? 2 : 0;
}

static int parse_quoted(struct mo_arena *a, struct mo_span s, const char **out,
                        struct mo_err *e)
{
    char *p = mo_arena_strndup(a, s.p, s.n); /* unescaping only shortens */
    size_t n = 0;

    if (!p)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    s = mo_span_skip(s, 1);
    while (s.n && s.p[0] != '"') {
        size_t used = read_char(s, &p[n++]);

        if (used == 0)
            return mo_fail(e, MO_EINVAL,
                           "unknown escape in \"...\" (known: \\n \\r \\t "
                           "\\\" \\\\ \\$); use '...' for raw text");
        s = mo_span_skip(s, used);
    }
    if (s.n == 0)
        return mo_fail(e, MO_EINVAL, "the \" quote is not closed");
    if (!is_only_comment(mo_span_skip(s, 1)))
        return mo_fail(e, MO_EINVAL, "text after the closing quote");
    p[n] = '\0';
    *out = p;
    return 0;
}

static int parse_value(struct mo_arena *a, struct mo_span s, const char **out,
                       struct mo_err *e)
{
    s = mo_span_trim(s);
    if (s.n && s.p[0] == '\'')
        return parse_raw(a, s, out, e);
    if (s.n && s.p[0] == '"')
        return parse_quoted(a, s, out, e);
    s = trim_plain(s);
    *out = mo_arena_strndup(a, s.p, s.n);
    return *out ? 0 : mo_fail(e, MO_ENOMEM, "out of memory");
}

static struct mo_span skip_export(struct mo_span s)
{
    if (!mo_span_starts(s, MO_SPAN("export ")) &&
        !mo_span_starts(s, MO_SPAN("export\t")))
        return s;
    return mo_span_trim(mo_span_skip(s, sizeof("export")));
}

static int parse_line(struct mo_arena *a, struct mo_span s,
                      struct mo_dotenv_var *var, struct mo_err *e)
{
    struct mo_span name;

    s = skip_export(s);
    name = mo_span_trim(mo_span_cut(&s, '='));
    if (!s.p)
        return mo_fail(e, MO_EINVAL, "expected NAME=VALUE");
    if (!is_valid_name(name))
        return mo_fail(e, MO_EINVAL,
                       "a name has letters, digits and '_' only and does not "
                       "start with a digit");
    var->name = mo_arena_strndup(a, name.p, name.n);
    if (!var->name)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    return parse_value(a, s, &var->value, e);
}

static int put_variable(struct mo_dotenv *env, const struct mo_dotenv_var *var,
                        struct mo_err *e)
{
    for (size_t i = 0; i < env->n; i++) {
        if (strcmp(env->v[i].name, var->name) == 0) {
            env->v[i] = *var;
            return 0;
        }
    }
    if (env->n == MO_DOTENV_VARS_MAX)
        return mo_fail(e, MO_ETOOBIG, "more than %d names", MO_DOTENV_VARS_MAX);
    env->v[env->n++] = *var;
    return 0;
}

static int add_line(struct mo_arena *a, struct mo_span s, unsigned line,
                    struct mo_dotenv *env, struct mo_err *e)
{
    struct mo_dotenv_var var = {.line = line};
    int rc;

    if (s.n && s.p[s.n - 1] == '\r')
        s.n--;
    s = mo_span_trim(s);
    if (s.n == 0 || s.p[0] == '#')
        return 0;
    if (mo_span_find(s, '\0') >= 0)
        return mo_fail(e, MO_EINVAL, "a NUL byte");
    rc = parse_line(a, s, &var, e);
    if (rc < 0)
        return rc;
    MO_BUG_ON(!var.name || !var.value);
    return put_variable(env, &var, e);
}

int mo_dotenv_parse(struct mo_arena *a, struct mo_span text,
                    struct mo_dotenv *out, unsigned *line, struct mo_err *e)
{
    *out = (struct mo_dotenv){.n = 0};
    *line = 0;
    if (text.n > MO_DOTENV_FILE_MAX)
        return mo_fail(e, MO_ETOOBIG, "larger than %zu KiB",
                       MO_DOTENV_FILE_MAX / 1024);
    out->v = mo_arena_alloc(a, sizeof(*out->v) * MO_DOTENV_VARS_MAX);
    if (!out->v)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    while (text.p) {
        int rc = add_line(a, mo_span_cut(&text, '\n'), ++*line, out, e);

        if (rc < 0)
            return rc;
    }
    return 0;
}

const struct mo_dotenv_var *mo_dotenv_find(const struct mo_dotenv *env,
                                           const char *name)
{
    for (size_t i = 0; i < env->n; i++) {
        if (strcmp(env->v[i].name, name) == 0)
            return &env->v[i];
    }
    return NULL;
}

bool mo_dotenv_secret_name(const char *name)
{
    static const char *const ends[] = {"KEY", "TOKEN", "SECRET", "PASSWORD",
                                       "PASSWD"};
    struct mo_span s = mo_span_cstr(name);

    for (size_t i = 0; i < MO_COUNT(ends); i++) {
        struct mo_span end = mo_span_cstr(ends[i]);

        if (s.n >= end.n && mo_span_ieq(mo_span_skip(s, s.n - end.n), end))
            return true;
    }
    return false;
}
