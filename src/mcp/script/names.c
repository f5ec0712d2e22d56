#include "mcp/script/names.h"

#include "codec/text/utf8.h"

static const char *const keywords[] = {
    "False",  "None",   "True",    "and",      "as",       "assert", "async",
    "await",  "break",  "class",   "continue", "def",      "del",    "elif",
    "else",   "except", "finally", "for",      "from",     "global", "if",
    "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
    "pass",   "raise",  "return",  "try",      "while",    "with",   "yield",
};

/* Members of tools.py and tools.mjs. `then` would make the object a promise,
 * `new` of an interface is its constructor. */
static const char *const members[] = {
    "aio",   "call",     "find",      "Denied",  "Failed", "Gone",
    "Limit", "Rejected", "ToolError", "Unknown", "new",    "then",
};

static bool is_among(struct mo_span word, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (mo_span_is(word, names[i]))
            return true;
    }
    return false;
}

bool mo_script_is_keyword(struct mo_span word)
{
    return is_among(word, keywords, MO_COUNT(keywords));
}

static bool is_word(char c)
{
    return mo_is_alpha(c) || mo_is_digit(c) || c == '_';
}

void mo_script_identifier(struct mo_span name, char out[MO_SCRIPT_ID_MAX])
{
    size_t n = 0;

    /* A name with '_' in front is private in the libraries. */
    if (name.n && !mo_is_alpha(name.p[0])) {
        memcpy(out, "tool_", 5);
        n = 5;
    }
    for (size_t i = 0; i < name.n && n < MO_SCRIPT_ID_MAX - 2; i++) {
        if (!mo_utf8_is_tail(name.p[i]))
            out[n++] = is_word(name.p[i]) ? name.p[i] : '_';
    }
    out[n] = '\0';
    if (n == MO_SCRIPT_ID_MAX - 2)
        out[0] = '\0';
    else if (mo_script_is_keyword(mo_span(out, n)) ||
             is_among(mo_span(out, n), members, MO_COUNT(members)))
        memcpy(out + n, "_", 2);
}

/* The length of the word at p, or 0. */
static size_t match_word(struct mo_span at, struct mo_span word, bool dots)
{
    if (at.n < word.n)
        return 0;
    for (size_t i = 0; i < word.n; i++) {
        if (at.p[i] != word.p[i] &&
            !(dots && word.p[i] == '_' && at.p[i] == '.'))
            return 0;
    }
    return at.n == word.n || !is_word(at.p[word.n]) ? word.n : 0;
}

static bool has_word(struct mo_span code, struct mo_span word, bool dots)
{
    for (size_t i = 0; word.n && i < code.n; i++) {
        if (code.p[i] == word.p[0] && (i == 0 || !is_word(code.p[i - 1])) &&
            match_word(mo_span_skip(code, i), word, dots))
            return true;
    }
    return false;
}

bool mo_script_mentions(struct mo_span code, struct mo_span name)
{
    char id[MO_SCRIPT_ID_MAX];

    mo_script_identifier(name, id);
    return has_word(code, name, false) ||
           has_word(code, mo_span_cstr(id), true);
}
