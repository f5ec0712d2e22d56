/* llm_demo_words.c - splits plain requests into steps: "list the files, then
 * write hello to a.txt and show it".
 *
 * A table instead of a grammar: each verb lists how its objects are usually
 * written. Quoted text (", ', `) is one word. "it" is the file of the previous
 * step. Pure; the spans point into the caller's text. */
#include "agent/llm/llm_priv.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct mo_span trim_blanks(struct mo_span s)
{
    while (s.n && is_blank(s.p[0]))
        s = mo_span_skip(s, 1);
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Removes a phrase from the start of s if it ends at a word boundary. */
static bool eat_phrase(struct mo_span *s, const char *phrase)
{
    struct mo_span p = mo_span_cstr(phrase);

    if (!mo_span_ieq(mo_span_head(*s, p.n), p) ||
        (s->n > p.n && !is_blank(s->p[p.n]) && s->p[p.n] != ','))
        return false;
    *s = trim_blanks(mo_span_skip(*s, p.n));
    if (s->n && s->p[0] == ',')
        *s = trim_blanks(mo_span_skip(*s, 1));
    return true;
}

static bool eat_any_phrase(struct mo_span *s, const char *const *phrases)
{
    bool any = false;

    for (size_t i = 0; phrases[i]; i++) {
        if (!eat_phrase(s, phrases[i]))
            continue;
        any = true;
        i = (size_t)-1; /* restart after it */
    }
    return any;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

/* Returns the index after the quoted word at i, or i. Quotes start a word, so
 * the one in "don't" does not count. */
static size_t skip_quoted(struct mo_span s, size_t i)
{
    ptrdiff_t at;

    if (!is_quote(s.p[i]) || (i && !is_blank(s.p[i - 1])))
        return i;
    at = mo_span_find(mo_span_skip(s, i + 1), s.p[i]);
    return at < 0 ? i : i + (size_t)at + 2;
}

static struct mo_span unquote(struct mo_span s)
{
    s = trim_blanks(s);
    if (s.n >= 2 && is_quote(s.p[0]) && s.p[s.n - 1] == s.p[0])
        return mo_span(s.p + 1, s.n - 2);
    return s;
}

/* Splits s at the last " word " outside quotes. */
static bool split_last(struct mo_span s, const char *word, struct mo_span *a,
                       struct mo_span *b)
{
    struct mo_span w = mo_span_cstr(word);
    bool found = false;
    size_t i = 0;

    while (i < s.n) {
        size_t past = skip_quoted(s, i);

        if (past > i) {
            i = past;
            continue;
        }
        if (mo_span_ieq(mo_span_head(mo_span_skip(s, i), w.n), w)) {
            *a = trim_blanks(mo_span_head(s, i));
            *b = trim_blanks(mo_span_skip(s, i + w.n));
            found = a->n && b->n;
        }
        i++;
    }
    return found;
}

static bool split_any(struct mo_span s, const char *const *words,
                      struct mo_span *a, struct mo_span *b)
{
    for (; *words; words++) {
        if (split_last(s, *words, a, b))
            return true;
    }
    return false;
}

/* --- the verbs ----------------------------------------------------------- */

static const char *const articles[] = {
    "me",          "the",        "a",    "an",    "my",   "all",
    "contents of", "content of", "file", "files", "text", NULL};
static const char *const into[] = {" into ", " to ", " in ", NULL};

static struct mo_span take_object(struct mo_span s)
{
    (void)eat_any_phrase(&s, articles);
    return unquote(s);
}

static bool do_list(struct mo_llm_step *st, struct mo_span s)
{
    static const char *const where[] = {"in", "of", "under", "here", NULL};
    static const char *const noise[] = {
        "me",        "the",    "all",     "files",    "every", "file",
        "directory", "folder", "content", "contents", NULL};

    (void)eat_any_phrase(&s, noise);
    (void)eat_any_phrase(&s, where);
    (void)eat_any_phrase(&s, noise);
    st->path = unquote(s);
    return mo_span_find(st->path, ' ') < 0;
}

static bool do_show(struct mo_llm_step *st, struct mo_span s)
{
    struct mo_span rest = s;

    if (eat_phrase(&rest, "me"))
        s = rest;
    (void)eat_phrase(&rest, "all");
    (void)eat_phrase(&rest, "the");
    (void)eat_phrase(&rest, "all");
    if (eat_phrase(&rest, "files")) {
        st->what = MO_DO_LIST;
        return do_list(st, rest);
    }
    st->path = take_object(s);
    return st->path.n && mo_span_find(st->path, ' ') < 0;
}

static bool do_write(struct mo_llm_step *st, struct mo_span s)
{
    struct mo_span text, path;

    if (!split_any(s, into, &text, &path))
        return false;
    st->text = unquote(text);
    st->path = take_object(path);
    return mo_span_find(st->path, ' ') < 0;
}

static bool do_create(struct mo_llm_step *st, struct mo_span s)
{
    static const char *const with[] = {" with the text ",
                                       " with the content ",
                                       " with content ",
                                       " containing ",
                                       " with ",
                                       " saying ",
                                       NULL};
    static const char *const noise[] = {"a",     "an",   "the",  "new",
                                        "empty", "file", "text", "called",
                                        "named", NULL};
    struct mo_span path = s, text = {"", 0};

    (void)split_any(s, with, &path, &text);
    (void)eat_any_phrase(&path, noise);
    st->path = unquote(path);
    st->text = unquote(text);
    return st->path.n && mo_span_find(st->path, ' ') < 0;
}

static bool do_run(struct mo_llm_step *st, struct mo_span s)
{
    static const char *const noise[] = {"the command", "command",
                                        "the shell "
                                        "command",
                                        NULL};

    (void)eat_any_phrase(&s, noise);
    st->text = unquote(s);
    return st->text.n > 0;
}

static bool do_search(struct mo_llm_step *st, struct mo_span s)
{
    static const char *const where[] = {" in ", " inside ", NULL};
    static const char *const noise[] = {
        "for", "the", "word", "text", "files for", "files with", NULL};
    struct mo_span text = s, path = {"", 0};

    (void)split_any(s, where, &text, &path);
    (void)eat_any_phrase(&text, noise);
    st->text = unquote(text);
    st->path = take_object(path);
    return st->text.n > 0;
}

static bool do_edit(struct mo_llm_step *st, struct mo_span s)
{
    static const char *const in[] = {" in ", NULL};
    static const char *const by[] = {" with ", " by ", " to ", NULL};
    struct mo_span words, path, old, new;

    if (!split_any(s, in, &words, &path) || !split_any(words, by, &old, &new))
        return false;
    st->text = unquote(old);
    st->more = unquote(new);
    st->path = take_object(path);
    return mo_span_find(st->path, ' ') < 0;
}

static const struct {
    const char *verb;
    enum mo_llm_do what;
    bool (*read)(struct mo_llm_step *st, struct mo_span rest);
} verbs[] = {
    {"list", MO_DO_LIST, do_list},
    {"ls", MO_DO_LIST, do_list},
    {"what files are", MO_DO_LIST, do_list},
    {"which files are", MO_DO_LIST, do_list},
    {"show", MO_DO_READ, do_show},
    {"read", MO_DO_READ, do_show},
    {"print", MO_DO_READ, do_show},
    {"display", MO_DO_READ, do_show},
    {"open", MO_DO_READ, do_show},
    {"cat", MO_DO_READ, do_show},
    {"write", MO_DO_WRITE, do_write},
    {"put", MO_DO_WRITE, do_write},
    {"save", MO_DO_WRITE, do_write},
    {"create", MO_DO_WRITE, do_create},
    {"make", MO_DO_WRITE, do_create},
    {"run", MO_DO_RUN, do_run},
    {"execute", MO_DO_RUN, do_run},
    {"$", MO_DO_RUN, do_run},
    {"search", MO_DO_SEARCH, do_search},
    {"find", MO_DO_SEARCH, do_search},
    {"grep", MO_DO_SEARCH, do_search},
    {"replace", MO_DO_EDIT, do_edit},
    {"change", MO_DO_EDIT, do_edit},
};

/* --- the steps ----------------------------------------------------------- */

static bool begins_verb(struct mo_span s)
{
    s = trim_blanks(s);
    for (size_t i = 0; i < MO_COUNT(verbs); i++) {
        struct mo_span rest = s;

        if (eat_phrase(&rest, verbs[i].verb))
            return true;
    }
    return false;
}

/* Length of the first of those words that stands at the beginning of s, or 0.
 * A verb must follow if before_verb. */
static size_t word_len(struct mo_span s, const char *const *words,
                       bool before_verb)
{
    for (; *words; words++) {
        size_t n = strlen(*words);

        if (mo_span_ieq(mo_span_head(s, n), mo_span_cstr(*words)) &&
            (!before_verb || begins_verb(mo_span_skip(s, n))))
            return n;
    }
    return 0;
}

/* Length of a separator of steps at the beginning of s, or 0. */
static size_t separator_len(struct mo_span s)
{
    static const char *const sure[] = {
        ", and then ", " and then ", ", then ", " then ", "; ", "\n", NULL};
    static const char *const maybe[] = {", and ", " and ", ", ", ". ", NULL};
    size_t n = word_len(s, sure, false);

    return n ? n : word_len(s, maybe, true);
}

static struct mo_span next_clause(struct mo_span *s)
{
    size_t i = 0, n = 0;
    struct mo_span out;

    while (i < s->n && n == 0) {
        size_t past = skip_quoted(*s, i);

        if (past > i) {
            i = past;
            continue;
        }
        n = separator_len(mo_span_skip(*s, i));
        i += n == 0;
    }
    out = mo_span_head(*s, i);
    *s = mo_span_skip(*s, i + n);
    return out;
}

static void read_step(struct mo_llm_step *st, struct mo_span clause)
{
    static const char *const polite[] = {
        "please",    "can you", "could you", "now",       "first",
        "then",      "and",     "finally",   "i want to", "let us",
        "would you", "hello",   "hi",        NULL};
    struct mo_span s = trim_blanks(clause);

    *st = (struct mo_llm_step){.what = MO_DO_NOTHING, .said = s};
    (void)eat_any_phrase(&s, polite);
    while (s.n &&
           (s.p[s.n - 1] == '.' || s.p[s.n - 1] == '!' || s.p[s.n - 1] == '?'))
        s.n--;
    for (size_t i = 0; i < MO_COUNT(verbs); i++) {
        struct mo_span rest = s;

        if (!eat_phrase(&rest, verbs[i].verb))
            continue;
        st->what = verbs[i].what;
        if (verbs[i].read(st, rest))
            return;
        *st = (struct mo_llm_step){.what = MO_DO_NOTHING, .said = st->said};
    }
}

static bool is_it(struct mo_span s)
{
    return mo_span_ieq(s, MO_SPAN("it")) || mo_span_ieq(s, MO_SPAN("that")) ||
           mo_span_ieq(s, MO_SPAN("this"));
}

size_t mo_llm_demo_steps(struct mo_span text,
                         struct mo_llm_step v[MO_LLM_STEPS_MAX])
{
    struct mo_span path = {NULL, 0};
    size_t n = 0;

    while (text.n && n < MO_LLM_STEPS_MAX) {
        struct mo_span clause = trim_blanks(next_clause(&text));

        if (clause.n == 0)
            continue;
        read_step(&v[n], clause);
        if (is_it(v[n].path))
            v[n].path = path;
        if (v[n].path.n)
            path = v[n].path;
        n++;
    }
    return n;
}
