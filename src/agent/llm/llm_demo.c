/* llm_demo.c - the built-in demo in place of a model: does what simple
 * sentences ask for with the given tools, one step per reply.
 *
 * It behaves like a model: calls are approved and run by others, it reads their
 * results, then takes the next step. It has no state of its own; its position
 * is read from the conversation.
 *
 * Requests are split into steps ("list the files, then write hello to a.txt and
 * show it") by a table instead of a grammar: each verb lists how its objects
 * are usually written. Quoted text (", ', `) is one word. "it" is the file of
 * the previous step. */
#include "agent/llm/llm_priv.h"
#include "codec/text/utf8.h"

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

/* "writes hello to a.txt, b.txt and c.txt": one script for all files. */
static bool do_script(struct mo_llm_step *st, struct mo_span s)
{
    struct mo_span text, path;

    if (!eat_phrase(&s, "writes") || !split_any(s, into, &text, &path))
        return false;
    st->text = unquote(text);
    st->path = path;
    return true;
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
    {"run a script that", MO_DO_SCRIPT, do_script},
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

/* --- the reply ----------------------------------------------------------- */

#define SHOWN_MAX ((size_t)1500) /* bytes of a result that are shown */

#define WHO                                                                    \
    "I am the built-in demo, not a language model: I understand a few plain "  \
    "sentences and use your tools for them."
#define KEY                                                                    \
    "For a real model press Add a model in the page's settings, or set "       \
    "ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENAI_API_KEY, or start Ollama."
#define HELP                                                                   \
    "Try:\n- list the files\n- write hello to a.txt, then show it\n"           \
    "- search for hello\n- replace hello with goodbye in a.txt\n"              \
    "- run uname -a\n"

void mo_llm_plan_fini(struct mo_llm_plan *p)
{
    mo_buf_fini(&p->text);
    mo_buf_fini(&p->tool);
    mo_buf_fini(&p->args);
}

static const struct {
    const char *tool, *doing; /* doing: "… PATH" */
    const char *args[3];      /* argument names for path, text, more */
} ways[] = {
    [MO_DO_LIST] = {"list_files", "Listing the files", {"path", NULL, NULL}},
    [MO_DO_READ] = {"read_file", "Reading", {"path", NULL, NULL}},
    [MO_DO_WRITE] = {"write_file", "Writing", {"path", "content", NULL}},
    [MO_DO_EDIT] = {"edit_file",
                    "Changing",
                    {"path", "old_string", "new_string"}},
    [MO_DO_SEARCH] = {"search_files", "Searching", {"path", "pattern", NULL}},
    [MO_DO_SCRIPT] = {"run_script", "Running a script for", {NULL}},
    [MO_DO_RUN] = {"execute_command", "Running", {NULL, "command", NULL}},
};

/* Finds "list_files", or "box_list_files" if names have a server prefix. */
static const struct mo_llm_tool *find_tool(const struct mo_llm_request *r,
                                           const char *name)
{
    struct mo_span want = mo_span_cstr(name);

    for (size_t i = 0; i < r->ntools; i++) {
        struct mo_span t = r->tools[i].name;
        size_t at = t.n > want.n ? t.n - want.n : 0;

        if (mo_span_ends(t, want) &&
            (at == 0 || t.p[at - 1] == '_' || t.p[at - 1] == '-'))
            return &r->tools[i];
    }
    return NULL;
}

/* The next name of a list: "a.txt, b.txt and c.txt". */
static struct mo_span next_name(struct mo_span *list)
{
    struct mo_span a = *list, b = {NULL, 0};
    ptrdiff_t comma = mo_span_find(*list, ',');
    ptrdiff_t and = mo_span_search(*list, MO_SPAN(" and "));

    if (and >= 0 && (comma < 0 || and < comma)) {
        a = mo_span_head(*list, (size_t) and);
        b = mo_span_skip(*list, (size_t) and +5);
    } else if (comma >= 0) {
        a = mo_span_head(*list, (size_t)comma);
        b = mo_span_skip(*list, (size_t)comma + 1);
    }
    *list = trim_blanks(b);
    return unquote(a);
}

/* A JSON string is one of Python, too. */
static void put_script(struct mo_buf *b, const struct mo_llm_step *st)
{
    mo_autobuf struct mo_buf code = {.max = MO_LLM_REQUEST_MAX};
    struct mo_span list = st->path;
    struct mo_jw w = mo_jw_object(b);
    const char *comma = "";

    (void)mo_buf_puts(&code, "import tools\n\nfor path in [");
    while (list.n) {
        (void)mo_buf_puts(&code, comma);
        (void)mo_json_quote(&code, next_name(&list));
        comma = ", ";
    }
    (void)mo_buf_puts(&code, "]:\n    tools.write_file(path=path, content=");
    (void)mo_json_quote(&code, st->text);
    (void)mo_buf_puts(&code, ")\n    print(\"wrote\", path)\n");
    mo_jw_member_cstr(&w, "language", "python");
    mo_jw_member(&w, "code", mo_buf_view(&code));
    mo_jw_end(&w);
    mo_buf_pass_err(b, &code);
}

static void put_args(struct mo_buf *b, const struct mo_llm_step *st)
{
    const struct mo_span v[] = {st->path, st->text, st->more};
    struct mo_jw w = mo_jw_object(b);

    for (size_t i = 0; i < MO_COUNT(v); i++) {
        if (!ways[st->what].args[i] || (i == 0 && v[i].n == 0))
            continue;
        mo_jw_member(&w, ways[st->what].args[i], v[i]);
    }
    mo_jw_end(&w);
}

/* --- position in the conversation ---------------------------------------- */

/* Counts the steps since the last user message: one per reply with a call. */
static size_t steps_done(const struct mo_llm_ask *q, size_t since,
                         struct mo_llm_pair *last)
{
    struct mo_llm_pair v[MO_LLM_CALLS_MAX];
    size_t done = 0;

    for (size_t i = since; i < q->n; i++) {
        if (!mo_llm_is_role(q->entries[i], "assistant"))
            continue;
        if (mo_llm_pairs(q, i, v) == 0)
            continue;
        *last = v[0];
        done++;
    }
    return done;
}

static void put_result(struct mo_buf *out, const struct mo_llm_pair *p)
{
    mo_autobuf struct mo_buf text = {.max = MO_LLM_REQUEST_MAX};
    struct mo_span s;

    mo_llm_result_text(p, &text);
    s = mo_buf_view(&text);
    mo_buf_pass_err(out, &text);
    (void)mo_buf_puts(out, "```\n");
    (void)mo_buf_span(out, mo_span_head(s, mo_utf8_cut(s, SHOWN_MAX)));
    if (s.n > SHOWN_MAX)
        (void)mo_buf_puts(out, "\n[more was left out]");
    (void)mo_buf_puts(out, "\n```\n");
}

/* --- the next step ------------------------------------------------------- */

static void put_next(const struct mo_llm_ask *q, struct mo_llm_plan *p,
                     const struct mo_llm_step *st)
{
    const struct mo_llm_tool *t;
    struct mo_span what;

    if (st->what == MO_DO_NOTHING) {
        (void)mo_buf_puts(&p->text, "I do not understand \"");
        (void)mo_buf_span(&p->text, st->said);
        (void)mo_buf_puts(&p->text, "\". " HELP "\n" KEY);
        return;
    }
    t = find_tool(q->r, ways[st->what].tool);
    if (!t) {
        (void)mo_buf_printf(&p->text,
                            "There is no tool %s here, so I cannot "
                            "do that. " KEY,
                            ways[st->what].tool);
        return;
    }
    what =
        st->what == MO_DO_RUN || st->what == MO_DO_SEARCH ? st->text : st->path;
    (void)mo_buf_puts(&p->text, ways[st->what].doing);
    (void)mo_buf_puts(&p->text, what.n ? " " : "");
    (void)mo_buf_span(&p->text, what);
    (void)mo_buf_puts(&p->text, ".");
    (void)mo_buf_span(&p->tool, t->name);
    if (st->what == MO_DO_SCRIPT)
        put_script(&p->args, st);
    else
        put_args(&p->args, st);
}

static void put_failed(struct mo_llm_plan *p, const struct mo_llm_step *v,
                       size_t done, size_t n)
{
    (void)mo_buf_puts(&p->text, "That did not work, so I stop here.");
    if (done < n) {
        (void)mo_buf_puts(&p->text, " Not done: ");
        (void)mo_buf_span(&p->text, v[done].said);
        (void)mo_buf_puts(&p->text, ".");
    }
}

/* The page names attached files in the last lines of a message. */
static struct mo_span without_files(struct mo_span said)
{
    ptrdiff_t at = mo_span_search(said, MO_SPAN("\n\nAttached files:\n"));

    return at < 0 ? said : mo_span_head(said, (size_t)at);
}

int mo_llm_demo_plan(const struct mo_llm_ask *q, struct mo_llm_plan *p,
                     struct mo_err *e)
{
    struct mo_llm_step v[MO_LLM_STEPS_MAX];
    struct mo_llm_pair last = {{NULL, 0}, {NULL, 0}};
    size_t since = mo_llm_last_user(q), n, done;
    mo_autobuf struct mo_buf text = {.max = MO_LLM_REQUEST_MAX};

    mo_llm_entry_text(q->entries[since], &text);
    mo_buf_pass_err(&p->text, &text);
    n = mo_llm_demo_steps(without_files(mo_buf_view(&text)), v);
    done = steps_done(q, since, &last);
    if (done == 0)
        (void)mo_buf_puts(&p->text, since == 0 ? WHO " " : "");
    else
        put_result(&p->text, &last);
    if (done && mo_llm_failed(&last))
        put_failed(p, v, done, n);
    else if (done < n)
        put_next(q, p, &v[done]);
    else if (n == 0)
        (void)mo_buf_puts(&p->text, HELP "\n" KEY);
    else
        (void)mo_buf_puts(&p->text, "Done. " WHO " " KEY);
    if (mo_buf_err(&p->text) || mo_buf_err(&p->tool) || mo_buf_err(&p->args))
        return mo_fail(e, MO_ENOMEM, "demo");
    return 0;
}

const struct mo_llm_wire mo_llm_demo = {NULL};
