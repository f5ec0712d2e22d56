/* llm.c - the table of providers, and struct mo_llm. */
#include "agent/llm/llm.h"

#include "agent/llm/llm_priv.h"
#include "codec/http/url.h"

#define IDLE_MS        300000u
#define TOTAL_MS       3600000u
#define CLAUDE_VERSION "2026-10-21"
#define KEY_BYTES_MAX  ((size_t)4096)

static const struct {
    const char *name, *label;
    const char *url, *path; /* path: if the base URL has none */
    const char *model;
    const struct mo_llm_wire *wire;
} kinds[] = {
    [MO_LLM_DEMO] = {"demo", "The demo", "demo:", "", "demo", &mo_llm_demo},
    [MO_LLM_CLAUDE] = {"claude", "Claude", "https://api.anthropic.com", "",
                       "claude-sonnet-5-5", &mo_llm_claude},
    [MO_LLM_GEMINI] = {"gemini", "Gemini",
                       "https://generativelanguage.googleapis.com", "/v1beta",
                       "gemini-3.8-flash", &mo_llm_gemini},
    [MO_LLM_OPENAI] = {"openai", "OpenAI", "https://api.openai.com", "/v1",
                       "gpt-6.1-sol", &mo_llm_responses},
    [MO_LLM_COMPATIBLE] = {"compatible", "The model server",
                           "http://127.0.0.1:11434", "/v1", NULL, &mo_llm_chat},
};

static const struct {
    const char *name;
    enum mo_llm_kind kind;
} names[] = {
    {"demo", MO_LLM_DEMO},
    {"claude", MO_LLM_CLAUDE},
    {"anthropic", MO_LLM_CLAUDE},
    {"gemini", MO_LLM_GEMINI},
    {"google", MO_LLM_GEMINI},
    {"openai", MO_LLM_OPENAI},
    {"chatgpt", MO_LLM_OPENAI},
    {"compatible", MO_LLM_COMPATIBLE},
    {"ollama", MO_LLM_COMPATIBLE},
    {"llama.cpp", MO_LLM_COMPATIBLE},
    {"vllm", MO_LLM_COMPATIBLE},
    {"lmstudio", MO_LLM_COMPATIBLE},
    {"openrouter", MO_LLM_COMPATIBLE},
};

int mo_llm_kind(struct mo_span name)
{
    for (size_t i = 0; i < MO_COUNT(names); i++) {
        if (mo_span_ieq(name, mo_span_cstr(names[i].name)))
            return (int)names[i].kind;
    }
    return -1;
}

const char *mo_llm_kind_name(enum mo_llm_kind k)
{
    return kinds[k].name;
}

const char *mo_llm_label(enum mo_llm_kind k)
{
    return kinds[k].label;
}

const char *mo_llm_default_model(enum mo_llm_kind k)
{
    return kinds[k].model;
}

/* Older OpenAI models use Chat Completions; newer ones need Responses for
 * tools. */
const struct mo_llm_wire *mo_llm_wire(enum mo_llm_kind k, const char *model)
{
    static const char *const old[] = {"gpt-4", "gpt-3", "chatgpt-"};

    for (size_t i = 0; k == MO_LLM_OPENAI && i < MO_COUNT(old); i++) {
        if (mo_span_starts(mo_span_cstr(model), mo_span_cstr(old[i])))
            return &mo_llm_chat;
    }
    return kinds[k].wire;
}

int mo_llm_put_path(const struct mo_llm_wire *w, const char *model,
                    struct mo_buf *url)
{
    struct mo_span m = mo_span_cstr(model);

    (void)mo_buf_puts(url, w->path);
    if (w->after) {
        m = mo_span_starts(m, MO_SPAN("models/")) ? mo_span_skip(m, 7) : m;
        (void)mo_pct_encode(url, m);
        (void)mo_buf_puts(url, w->after);
    }
    return mo_buf_err(url);
}

/* --- one provider -------------------------------------------------------- */

/* Normalises the base URL. */
static int put_url(enum mo_llm_kind k, const char *given, struct mo_buf *out,
                   struct mo_err *e)
{
    struct mo_span s = mo_span_cstr(given ? given : kinds[k].url);
    struct mo_url u;

    if (k == MO_LLM_DEMO)
        return mo_buf_span(out, mo_span_cstr(kinds[k].url));
    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    if (k == MO_LLM_CLAUDE && mo_span_ends(s, MO_SPAN("/v1")))
        s.n -= 3; /* drop a trailing "/v1" */
    if (mo_url_parse(s, &u, e) < 0)
        return mo_wrap(e, "base URL of %s", kinds[k].label);
    if (u.userinfo.p || u.query.p || u.fragment.p)
        return mo_fail(e, MO_EINVAL,
                       "base URL of %s must not contain a user, query or "
                       "fragment; set the key separately",
                       kinds[k].label);
    (void)mo_buf_span(out, s);
    if (u.path.n == 0)
        (void)mo_buf_puts(out, kinds[k].path);
    return mo_buf_err(out);
}

struct mo_llm *mo_llm_new(struct mo_loop *l, struct mo_httpc *hc,
                          const struct mo_llm_opts *o, struct mo_err *e)
{
    struct mo_llm *m = mo_new(struct mo_llm);
    mo_autobuf struct mo_buf url = {.max = MO_URL_MAX};
    int rc;

    if (!m)
        return mo_null(mo_fail(e, MO_ENOMEM, "model"));
    m->loop = l;
    m->hc = hc;
    m->kind = o->kind;
    m->max_output = o->max_output;
    m->new_limit = o->new_limit ? o->new_limit : &m->own_new_limit;
    m->idle_ms = o->idle_ms ? o->idle_ms : IDLE_MS;
    m->total_ms = o->total_ms ? o->total_ms : TOTAL_MS;
    mo_llm_memo_init(&m->memo);
    mo_buf_init(&m->key, KEY_BYTES_MAX);
    rc = put_url(o->kind, o->base_url, &url, e);
    if (rc == 0 && mo_buf_span(&m->key, mo_span_trim(o->key)) < 0)
        rc = mo_fail(e, mo_buf_err(&m->key), "key");
    if (rc == 0) {
        m->url = mo_strndup(url.p, url.len);
        rc = m->url ? 0 : mo_fail(e, MO_ENOMEM, "model");
    }
    if (rc == 0)
        return m;
    mo_llm_free(m);
    return NULL;
}

enum mo_llm_kind mo_llm_kind_of(const struct mo_llm *m)
{
    return m->kind;
}

void mo_llm_free(struct mo_llm *m)
{
    if (!m)
        return;
    MO_BUG_ON(m->active);
    mo_buf_wipe(&m->key);
    mo_buf_fini(&m->memo.text);
    mo_free(m->url);
    mo_free(m);
}

/* --- headers ------------------------------------------------------------- */

static void add_header(struct mo_llm_headers *h, struct mo_span name,
                       struct mo_span value)
{
    MO_BUG_ON(h->n == MO_LLM_HEADERS_MAX);
    h->v[h->n++] = (struct mo_http_header){name, value};
}

int mo_llm_headers(const struct mo_llm *m, struct mo_llm_headers *h,
                   struct mo_err *e)
{
    bool google = m->kind == MO_LLM_GEMINI;

    h->n = 0;
    mo_buf_init(&h->auth, KEY_BYTES_MAX + 16);
    (void)mo_buf_puts(&h->auth, google ? "" : "Bearer ");
    if (mo_buf_span(&h->auth, mo_buf_view(&m->key)) < 0)
        return mo_fail(e, mo_buf_err(&h->auth), "key");
    add_header(h, MO_SPAN("content-type"), MO_SPAN("application/json"));
    if (m->key.len)
        add_header(
            h, google ? MO_SPAN("x-goog-api-key") : MO_SPAN("authorization"),
            mo_buf_view(&h->auth));
    if (m->kind == MO_LLM_CLAUDE)
        add_header(h, MO_SPAN("anthropic-version"), MO_SPAN(CLAUDE_VERSION));
    return 0;
}

void mo_llm_network(const char *label, const struct mo_err *why,
                    struct mo_llm_failure *f)
{
    static const struct {
        int code;
        const char *advice;
    } rows[] = {
        {MO_EUNAVAIL, "; check that it is running and that its URL is right"},
        {MO_ETIMEOUT, "; try again, or check the network"},
        {MO_ECLOSED, "; try again"},
    };
    const char *advice = "";

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (rows[i].code == why->code)
            advice = rows[i].advice;
    }
    *f = (struct mo_llm_failure){.code = "network"};
    (void)mo_fail(&f->err, why->code, "%s: %.160s%s", label, why->msg, advice);
    f->err.sys = why->sys;
}
