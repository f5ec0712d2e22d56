/* llm_demo.c - the built-in demo in place of a model: does what simple
 * sentences ask for with the given tools, one step per reply.
 *
 * It behaves like a model: calls are approved and run by others, it reads their
 * results, then takes the next step. It has no state of its own; its position
 * is read from the conversation. */
#include "agent/llm/llm_priv.h"
#include "codec/text/utf8.h"

#define SHOWN_MAX ((size_t)1500) /* bytes of a result that are shown */

#define WHO                                                                    \
    "I am the built-in demo, not a language model: I understand a few plain "  \
    "sentences and use your tools for them."
#define KEY                                                                    \
    "For a real model set ANTHROPIC_API_KEY, GEMINI_API_KEY or "               \
    "OPENAI_API_KEY, or start Ollama, and choose it in the list of models."
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

int mo_llm_demo_plan(const struct mo_llm_ask *q, struct mo_llm_plan *p,
                     struct mo_err *e)
{
    struct mo_llm_step v[MO_LLM_STEPS_MAX];
    struct mo_llm_pair last = {{NULL, 0}, {NULL, 0}};
    size_t since = mo_llm_last_user(q), n, done;
    mo_autobuf struct mo_buf text = {.max = MO_LLM_REQUEST_MAX};

    mo_llm_entry_text(q->entries[since], &text);
    mo_buf_pass_err(&p->text, &text);
    n = mo_llm_demo_steps(mo_buf_view(&text), v);
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
