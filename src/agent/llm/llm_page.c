/* llm_page.c - parses one page of a provider's list of models. Pure.
 *
 * Only models that can hold a conversation are reported. OpenAI lists
 * everything under one type, so names decide; Google lists methods; OpenRouter
 * lists whether a model accepts tools; of other compatible servers, names tell
 * embedding models and the like. */
#include "agent/llm/llm_priv.h"

static struct mo_span read_str(struct mo_json v, struct mo_arena *a)
{
    struct mo_span s;

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str(v, a, &s) == 0)
        return s;
    return (struct mo_span){"", 0};
}

static bool list_has(struct mo_json list, const char *word)
{
    mo_json_each (at, list) {
        if (mo_json_str_eq(at.val, mo_span_cstr(word)))
            return true;
    }
    return false;
}

static bool has_word(struct mo_span id, const char *const *words)
{
    for (; *words; words++) {
        if (mo_span_search(id, mo_span_cstr(*words)) >= 0)
            return true;
    }
    return false;
}

/* --- one model each ------------------------------------------------------ */

struct row {
    struct mo_llm_model m;
    double rank; /* higher first; equal ranks keep their order */
};

static bool read_claude_model(struct mo_json v, struct mo_arena *a,
                              struct row *r)
{
    r->m.name = read_str(mo_json_get(v, "display_name"), a);
    mo_llm_count(mo_json_get(v, "max_input_tokens"), &r->m.context);
    mo_llm_count(mo_json_get(v, "max_tokens"), &r->m.output);
    return !mo_json_str_eq(mo_json_get(v, "lifecycle"), MO_SPAN("retired"));
}

/* "gemini-3.8-flash": 3.8 */
static double model_version(struct mo_span id)
{
    struct mo_json num;
    double d = 0;
    size_t i = 0, n = 0;

    while (i < id.n && !mo_is_digit(id.p[i]))
        i++;
    while (i + n < id.n &&
           (mo_is_digit(id.p[i + n]) || (id.p[i + n] == '.' && n)))
        n++;
    num = (struct mo_json){id.p + i, n};
    return n && n < 8 && mo_json_f64(num, &d) == 0 ? d : 0;
}

static bool read_gemini_model(struct mo_json v, struct mo_arena *a,
                              struct row *r)
{
    static const char *const other[] = {"embedding", "-image", "-tts",
                                        "-live",     "imagen", NULL};
    struct mo_span name = read_str(mo_json_get(v, "name"), a);

    if (mo_span_starts(name, MO_SPAN("models/")))
        name = mo_span_skip(name, 7);
    r->m.id = name;
    r->m.name = read_str(mo_json_get(v, "displayName"), a);
    mo_llm_count(mo_json_get(v, "inputTokenLimit"), &r->m.context);
    mo_llm_count(mo_json_get(v, "outputTokenLimit"), &r->m.output);
    r->rank = model_version(name);
    return list_has(mo_json_get(v, "supportedGenerationMethods"),
                    "generateContent") &&
           !has_word(name, other);
}

/* "gpt-6.1-sol": "GPT-6.1 Sol" */
static struct mo_span display_name(struct mo_span id, struct mo_arena *a)
{
    char *p = mo_arena_strndup(a, id.p, id.n);
    bool first = true;

    if (!p || !mo_span_starts(id, MO_SPAN("gpt-")))
        return id;
    memcpy(p, "GPT", 3);
    for (size_t i = 4; i < id.n; i++) {
        if (p[i] == '-') {
            p[i] = ' ';
            first = false;
        } else if (!first && p[i - 1] == ' ' && p[i] >= 'a' && p[i] <= 'z') {
            p[i] = (char)(p[i] - 'a' + 'A');
        }
    }
    return mo_span(p, id.n);
}

static bool read_openai_model(struct mo_json v, struct mo_arena *a,
                              struct row *r)
{
    static const char *const other[] = {
        "audio",     "realtime", "image",   "tts",    "transcribe",
        "embedding", "instruct", "-search", "codex-", "moderation",
        "research",  "live",     NULL};
    struct mo_span id = r->m.id;
    bool chat =
        mo_span_starts(id, MO_SPAN("gpt-")) ||
        mo_span_starts(id, MO_SPAN("chatgpt-")) ||
        (id.n > 1 && id.p[0] == 'o' && id.p[1] >= '1' && id.p[1] <= '9');

    (void)mo_json_f64(mo_json_get(v, "created"), &r->rank);
    r->m.name = display_name(id, a);
    return chat && !has_word(id, other);
}

/* True unless the name is of an embedding, speech or image model, which local
 * servers list too. */
static bool is_for_chat(struct mo_span id, struct mo_arena *a)
{
    static const char *const other[] = {"embed",
                                        "bge-",
                                        "minilm",
                                        "rerank",
                                        "whisper",
                                        "transcribe",
                                        "-tts",
                                        "tts-",
                                        "moderation",
                                        "dall-e",
                                        "stable-diffusion",
                                        NULL};
    char *p = mo_arena_strndup(a, id.p, id.n);

    for (size_t i = 0; p && i < id.n; i++)
        p[i] = mo_lower(p[i]);
    return p && !has_word(mo_span(p, id.n), other);
}

/* OpenRouter lists kinds of input; llama.cpp and others list abilities. */
static enum mo_llm_sight read_sight(struct mo_json v)
{
    struct mo_json kinds =
        mo_json_get(mo_json_get(v, "architecture"), "input_modalities");
    struct mo_json can = mo_json_get(v, "capabilities");

    if (mo_json_is(kinds, MO_JSON_ARRAY))
        return list_has(kinds, "image") ? MO_LLM_SEES : MO_LLM_BLIND;
    if (mo_json_is(can, MO_JSON_ARRAY) &&
        (list_has(can, "vision") || list_has(can, "multimodal")))
        return MO_LLM_SEES;
    return MO_LLM_SIGHT_UNKNOWN;
}

static bool read_compatible_model(struct mo_json v, struct mo_arena *a,
                                  struct row *r)
{
    static const char *const windows[] = {"context_length", "max_model_len",
                                          "context_window", NULL};
    struct mo_json takes = mo_json_get(v, "supported_parameters");

    r->m.name = read_str(mo_json_get(v, "name"), a);
    for (size_t i = 0; windows[i]; i++)
        mo_llm_count(mo_json_get(v, windows[i]), &r->m.context);
    mo_llm_count(mo_json_get(mo_json_get(v, "meta"), "n_ctx_train"),
                 &r->m.context);
    r->m.sight = read_sight(v);
    return is_for_chat(r->m.id, a) &&
           (!mo_json_is(takes, MO_JSON_ARRAY) || list_has(takes, "tools"));
}

/* --- images -------------------------------------------------------------- */

bool mo_llm_sees(enum mo_llm_kind k, struct mo_span model)
{
    static const char *const blind[] = {"gpt-3.5", "o1-mini", "o3-mini", NULL};
    static const char *const seeing[] = {
        "vision",  "-vl",       "vl-",
        "llava",   "bakllava",  "pixtral",
        "gemma3",  "gemma-3",   "gemma4",
        "gemma-4", "llama4",    "llama-4",
        "minicpm", "moondream", "internvl",
        "molmo",   "qwen3.5",   "mistral-small3",
        "gpt-4o",  "gpt-5",     "gpt-6",
        "claude",  "gemini",    NULL};
    char low[256];
    size_t n = model.n < sizeof(low) ? model.n : sizeof(low);

    for (size_t i = 0; i < n; i++)
        low[i] = mo_lower(model.p[i]);
    switch (k) {
    case MO_LLM_CLAUDE:
    case MO_LLM_GEMINI:
        return true;
    case MO_LLM_OPENAI:
        return !has_word(mo_span(low, n), blind);
    case MO_LLM_COMPATIBLE:
        return has_word(mo_span(low, n), seeing);
    default:
        return false;
    }
}

/* --- a page -------------------------------------------------------------- */

static const struct {
    const char *list;
    bool (*read)(struct mo_json v, struct mo_arena *a, struct row *r);
} pages[] = {
    [MO_LLM_CLAUDE] = {"data", read_claude_model},
    [MO_LLM_GEMINI] = {"models", read_gemini_model},
    [MO_LLM_OPENAI] = {"data", read_openai_model},
    [MO_LLM_COMPATIBLE] = {"data", read_compatible_model},
};

static struct mo_span next_token(enum mo_llm_kind k, struct mo_json root,
                                 struct mo_arena *a)
{
    if (k == MO_LLM_GEMINI)
        return read_str(mo_json_get(root, "nextPageToken"), a);
    return k == MO_LLM_CLAUDE && mo_json_flag(root, "has_more")
               ? read_str(mo_json_get(root, "last_id"), a)
               : (struct mo_span){NULL, 0};
}

int mo_llm_page(enum mo_llm_kind k, struct mo_span doc, struct mo_arena *a,
                mo_llm_each *each, void *ctx, struct mo_span *next,
                struct mo_err *e)
{
    struct mo_json list;
    struct mo_json_doc d;

    if (mo_json_parse(doc, 0, &d, e) < 0)
        return mo_wrap(e, "list of models");
    list = mo_json_get(d.root, pages[k].list);
    if (!mo_json_is(list, MO_JSON_ARRAY))
        return mo_fail(e, MO_EPROTO, "the answer is not a list of models");
    mo_json_each (at, list) {
        struct row r = {.m = {.id = read_str(mo_json_get(at.val, "id"), a)}};

        if (!pages[k].read(at.val, a, &r) || r.m.id.n == 0)
            continue;
        if (r.m.name.n == 0)
            r.m.name = r.m.id;
        if (each(ctx, &r.m, r.rank, e) < 0)
            return e->code;
    }
    *next = next_token(k, d.root, a);
    return 0;
}
