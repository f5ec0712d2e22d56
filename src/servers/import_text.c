/* import_text.c - translates placeholders and detects keys in one text of an
 * import. */
#include <stdio.h>
#include <strings.h>

#include "config/dotenv.h"
#include "secrets/secrets.h"
#include "servers/import.h"

/* --- keys ---------------------------------------------------------------- */

/* Prefixes of well-known API keys. */
static const char *const prefixes[] = {
    "sk-",   "sk_",   "ghp_", "gho_",    "ghs_",    "github_pat_", "glpat-",
    "xoxb-", "xoxp-", "AKIA", "AIza",    "hf_",     "npm_",        "tvly-",
    "ya29.", "eyJ",   "ntn_", "Bearer ", "secret_", "Basic ",
};

bool mo_import_is_key(const char *name, struct mo_span value)
{
    if (value.n < 8 || mo_span_search(value, MO_SPAN("${")) >= 0)
        return false;
    if (mo_dotenv_secret_name(name) || strcasecmp(name, "authorization") == 0 ||
        strcasecmp(name, "cookie") == 0 || strcasecmp(name, "x-api-key") == 0)
        return true;
    for (size_t i = 0; i < MO_COUNT(prefixes); i++) {
        if (value.n >= 16 && mo_span_starts(value, mo_span_cstr(prefixes[i])))
            return true;
    }
    return false;
}

static bool is_path(struct mo_span s)
{
    return s.n && (s.p[0] == '/' || s.p[0] == '.' || s.p[0] == '~');
}

static bool is_named_key(struct mo_span name, struct mo_span value)
{
    char text[64];

    while (name.n && name.p[0] == '-')
        name = mo_span_skip(name, 1);
    (void)snprintf(text, sizeof(text), "%.*s", (int)mo_span_head(name, 60).n,
                   name.n ? name.p : "");
    return text[0] && !is_path(value) && mo_import_is_key(text, value);
}

bool mo_import_is_key_arg(struct mo_span before, struct mo_span arg)
{
    struct mo_span value = arg, named = arg;
    struct mo_span name = mo_span_cut(&value, '=');
    struct mo_span header = mo_span_cut(&named, ':');

    return mo_import_is_key("", arg) || is_named_key(name, value) ||
           is_named_key(header, mo_span_trim(named)) ||
           (before.n && before.p[0] == '-' && arg.n && arg.p[0] != '-' &&
            mo_span_find(before, '=') < 0 && is_named_key(before, arg));
}

/* --- placeholders -------------------------------------------------------- */

static int refuse_placeholder(struct mo_import_text *t, const char *what,
                              struct mo_span inside)
{
    (void)snprintf(t->s->cannot, sizeof(t->s->cannot), "'${%.*s}' %s",
                   (int)mo_span_head(inside, 60).n, inside.p, what);
    return MO_EINVAL;
}

static int put_ref(struct mo_import_text *t, const char *kind,
                   struct mo_span name, struct mo_span inside, struct mo_buf *b)
{
    if (!t->refs)
        return refuse_placeholder(
            t,
            "stands where other users could read its value; put it "
            "into env or headers",
            inside);
    if (!mo_secret_name_ok(name))
        return refuse_placeholder(t, "has a name that cannot be used here",
                                  inside);
    mo_buf_printf(b, "${%s:%.*s}", kind, (int)name.n, name.p);
    return 0;
}

/* An input of the editor: its value goes to the secret store. */
static int put_input(struct mo_import_text *t, struct mo_span id,
                     struct mo_span inside, struct mo_buf *b)
{
    struct mo_import_secret *need;
    int rc = put_ref(t, "secret", id, inside, b);

    if (rc < 0)
        return rc;
    need = mo_arena_new(t->a, struct mo_import_secret);
    if (!need)
        return MO_ENOMEM;
    need->name = mo_arena_strndup(t->a, id.p, id.n);
    need->next = t->s->secrets;
    t->s->secrets = need;
    return need->name ? 0 : MO_ENOMEM;
}

static bool is_variable(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!mo_is_alpha(s.p[i]) && s.p[i] != '_' &&
            (i == 0 || !mo_is_digit(s.p[i])))
            return false;
    }
    return s.n > 0;
}

/* Variables that only an editor can resolve. */
static bool is_editors(struct mo_span s)
{
    static const char *const words[] = {
        "workspaceFolder", "workspaceRoot", "file",         "relativeFile",
        "command:",        "config:",       "selectedText", "cwd"};

    for (size_t i = 0; i < MO_COUNT(words); i++) {
        if (mo_span_starts(s, mo_span_cstr(words[i])))
            return true;
    }
    return false;
}

static int put_placeholder(struct mo_import_text *t, struct mo_span in,
                           struct mo_buf *b)
{
    if (mo_span_starts(in, MO_SPAN("input:")))
        return put_input(t, mo_span_skip(in, 6), in, b);
    if (mo_span_starts(in, MO_SPAN("env:")))
        return put_ref(t, "env", mo_span_skip(in, 4), in, b);
    if (mo_span_is(in, "userHome") && t->o->home)
        return mo_buf_puts(b, t->o->home);
    if (mo_span_is(in, "pathSeparator") || mo_span_is(in, "/"))
        return mo_buf_putc(b, '/');
    if (is_editors(in))
        return refuse_placeholder(t, "means something only inside the editor",
                                  in);
    if (is_variable(in))
        return put_ref(t, "env", in, in, b);
    if (mo_span_search(in, MO_SPAN(":-")) > 0)
        return refuse_placeholder(t, "has a default, which has no form here",
                                  in);
    mo_buf_puts(b, t->refs ? "$${" : "${"); /* not a placeholder */
    mo_buf_span(b, in);
    return mo_buf_putc(b, '}');
}

int mo_import_text(struct mo_import_text *t, struct mo_span text,
                   struct mo_buf *b)
{
    while (text.n) {
        ptrdiff_t at = mo_span_search(text, MO_SPAN("${"));
        ptrdiff_t end =
            at < 0 ? -1 : mo_span_find(mo_span_skip(text, (size_t)at), '}');
        int rc;

        if (end < 0) {
            if (at >= 0 && t->refs) { /* "${" without "}" */
                mo_buf_put(b, text.p, (size_t)at);
                mo_buf_puts(b, "$${");
                text = mo_span_skip(text, (size_t)at + 2);
            }
            return mo_buf_span(b, text);
        }
        mo_buf_put(b, text.p, (size_t)at);
        text = mo_span_skip(text, (size_t)at);
        rc = put_placeholder(t, mo_span(text.p + 2, (size_t)end - 2), b);
        if (rc < 0)
            return rc;
        text = mo_span_skip(text, (size_t)end + 1);
    }
    return mo_buf_err(b);
}
