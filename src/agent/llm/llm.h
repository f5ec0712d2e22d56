/* llm.h - a language model, whoever serves it: a conversation in, a stream of
 * text and one reply out.
 *
 * A conversation is a list of entries, each a JSON document of ours (below).
 * A provider turns them into its own request and its own stream back into an
 * entry. What the model gave is kept twice: as what it means (for us, for the
 * page, for another provider) and as the provider's own block, byte for byte
 * (`raw`), which is what goes back to the same provider: signatures, unknown
 * blocks and members survive. Another provider, or another model where the
 * provider binds its opaque parts to one, gets the meaning only. Claude binds
 * thinking to everything that stood before it: `base` names the instructions,
 * the tools and the first entry it was asked with, and thinking goes back
 * only where they are the same; then so is all that follows them.
 *
 *   {"role":"user","blocks":[{"type":"text","text":"..."}]}
 *   {"role":"assistant",
 *    "by":{"provider":"claude","model":"...","url":"...","base":"..."},
 *    "blocks":[{"type":"thinking","text":"...","raw":{...}},
 *              {"type":"text","text":"...","raw":{...}},
 *              {"type":"call","key":"<ours>","id":"<theirs or absent>",
 *               "name":"...","args":{...},"bad":"<or absent>","raw":{...}},
 *              {"type":"other","raw":{...}}],
 *    "stop":"end|calls|length|refused|paused|other","stopRaw":"...",
 *    "usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"raw":{...}}}
 *   {"role":"tool","results":[{"key":"<ours>","id":"...","name":"...",
 *    "isError":false,"state":"done|rejected|unknown",
 *    "content":[ MCP content blocks ]}]}
 * Results stored by older versions have no state.
 *
 * Contract
 *  1. on_done fires exactly once, last, never from inside a call; cancelling
 *     fires it too (MO_ECANCELED).
 *  2. A stream that ends without its end mark is an error. What it brought
 *     before was shown as deltas but is no reply: nothing half is kept.
 *  3. Retries happen in here, only before the first byte of a stream, as the
 *     provider's headers say, and are told by on_wait. (Gemini alone: once
 *     more when all it brought was that its own call was malformed.)
 *  4. Keys never appear in an error, a log line or a stored entry.
 *
 * Limits: the request MO_LLM_REQUEST_MAX, the reply MO_LLM_REPLY_MAX, calls
 * of one reply MO_LLM_CALLS_MAX, MO_LLM_TRIES tries. */
#ifndef MO_AGENT_LLM_LLM_H
#define MO_AGENT_LLM_LLM_H

#include "base/str.h"
#include "config/choices.h"
#include "loop/httpc.h"

#define MO_LLM_REQUEST_MAX ((size_t)32 * 1024 * 1024)
#define MO_LLM_REPLY_MAX   ((size_t)8 * 1024 * 1024)
#define MO_LLM_CALLS_MAX   64
#define MO_LLM_TRIES       3
#define MO_LLM_KEY_MAX     32 /* of a call, ours, NUL included */
#define MO_LLM_NAME_MAX    64 /* of a tool, as every provider takes it */

struct mo_llm;   /* one provider at one address with one key */
struct mo_llm_x; /* one reply under way; gone after on_done */

/* "gemini" and "google", "claude" and "anthropic", "openai" and "chatgpt",
 * "demo"; "compatible" and the names of such: "ollama", "llama.cpp", "vllm",
 * "lmstudio", "openrouter". In any case; -1: unknown. */
int mo_llm_kind(struct mo_span name);
const char *mo_llm_kind_name(enum mo_llm_kind k);

struct mo_llm_opts {
    enum mo_llm_kind kind;
    const char *base_url; /* NULL: the provider's own */
    struct mo_span key;   /* copied, wiped at the end; may be empty */
    unsigned max_output;  /* tokens; 0: the provider's own limit, or 16384
                           * where it insists on a number (Claude) */
    unsigned idle_ms;     /* silent for so long is gone; 0: five minutes */
    /* COMPATIBLE: set when the server refused max_tokens and took
     * max_completion_tokens; read with every request. Borrowed as long as the
     * mo_llm lives, and may be shared by all that are of one server. NULL: this
     * mo_llm remembers it for itself. */
    bool *new_limit;
};

/* hc is borrowed until mo_llm_free(). A base URL holds no user, no key and no
 * query (MO_EINVAL): it is stored with every entry. */
struct mo_llm *mo_llm_new(struct mo_loop *l, struct mo_httpc *hc,
                          const struct mo_llm_opts *o, struct mo_err *e);
/* Nothing of it is under way. Closing hc ends lists of models too. */
void mo_llm_free(struct mo_llm *m);

struct mo_llm_tool {
    struct mo_span name; /* [A-Za-z0-9_-], at most MO_LLM_NAME_MAX */
    struct mo_span description;
    struct mo_span schema; /* JSON Schema, an object */
    /* Of all of it: the same digest, the same bytes. Or empty. */
    struct mo_span digest;
};

struct mo_llm_request {
    const char *model;
    struct mo_span system;
    const struct mo_llm_tool *tools;
    size_t ntools;
    const struct mo_span *entries; /* documents as above, oldest first */
    size_t nentries;
    /* Of each entry a number that never was another's in requests to this
     * mo_llm, so that it is known again; or NULL: by its bytes. */
    const uint64_t *ids;
    bool quiet; /* tools are there, as they were, but not to be used now */
};

enum mo_llm_stop {
    MO_LLM_END,
    MO_LLM_CALLS,
    MO_LLM_LENGTH,
    MO_LLM_REFUSED,
    MO_LLM_PAUSED, /* the provider wants to be asked again as it is */
    MO_LLM_OTHER,
};

struct mo_llm_call {
    struct mo_span key, name, args; /* args: an object's text */
    /* Empty, or what the model wrote where an object belongs; args is {}
     * then. Not to be run: the model is told what was wrong. */
    struct mo_span bad;
};

struct mo_llm_usage {
    uint64_t input; /* all of it, read from a cache or not */
    uint64_t output, cache_read, cache_write;
};

struct mo_llm_reply {
    struct mo_span entry; /* the whole assistant document */
    struct mo_span text;  /* all of its text blocks */
    enum mo_llm_stop stop;
    /* Whole calls only, and there may be some with any stop but END. */
    const struct mo_llm_call *calls;
    size_t ncalls;
    struct mo_llm_usage usage; /* of all requests it took */
};

/* Why there is no reply, for a person and for deciding what next. */
struct mo_llm_failure {
    struct mo_err err;       /* says what to do, in plain words */
    const char *code;        /* "auth", "rate_limit", "overloaded", */
                             /* "too_long", "bad_request", "network", */
                             /* "protocol", "canceled", "quota", "no_model" */
    unsigned retry_after_ms; /* 0: unknown */
};

struct mo_llm_cb {
    void (*on_text)(void *ctx, struct mo_span delta);
    void (*on_thinking)(void *ctx, struct mo_span delta); /* or NULL */
    /* Try `attempt` failed and the next comes in ms; or NULL. */
    void (*on_wait)(void *ctx, unsigned attempt, unsigned ms,
                    const struct mo_llm_failure *f);
    /* One of both is NULL; borrowed. */
    void (*on_done)(void *ctx, const struct mo_llm_reply *r,
                    const struct mo_llm_failure *f);
};

/* Everything is copied before it returns. */
int mo_llm_start(struct mo_llm *m, const struct mo_llm_request *r,
                 const struct mo_llm_cb *cb, void *ctx, struct mo_llm_x **out,
                 struct mo_err *e);
void mo_llm_cancel(struct mo_llm_x *x);

/* What of a tool's schema the provider would not understand, one word a line;
 * it is told to the model in the description instead. Empty: all well. */
int mo_llm_tool_dropped(enum mo_llm_kind k, const struct mo_llm_tool *t,
                        struct mo_buf *out);

/* --- what there is ------------------------------------------------------- */

struct mo_llm_model {
    struct mo_span id, name;  /* name: for people */
    uint64_t context, output; /* tokens; 0: unknown */
};

/* From the provider's own list, all pages, newest or best first, only what
 * can hold a conversation; no call that is billed. A deadline of ms over all
 * of it. done() once, later; what it gets is borrowed. */
int mo_llm_models(struct mo_llm *m, unsigned ms,
                  void (*done)(void *ctx, const struct mo_llm_model *v,
                               size_t n, const struct mo_llm_failure *f),
                  void *ctx, struct mo_err *e);

/* The model used when none is named; NULL for MO_LLM_COMPATIBLE: the first of
 * its list. */
const char *mo_llm_default_model(enum mo_llm_kind k);

/* A model server on this machine, on the port such servers usually have. */
struct mo_llm_local {
    const char *name;     /* "Ollama" */
    const char *base_url; /* for MO_LLM_COMPATIBLE */
    size_t models;        /* how many it has, when it was found */
};

#define MO_LLM_LOCAL_MAX 8

/* Is it the name of Ollama, llama.cpp, LM Studio or vLLM? In any case. */
bool mo_llm_is_local(struct mo_span name);

/* Ask all of them at once; NULL for v: Ollama, llama.cpp, LM Studio and vLLM
 * on their ports of 127.0.0.1. Who has not answered with a list of models
 * after ms is not there. done() once, later, with those that are, in order. */
int mo_llm_find_local(struct mo_loop *l, struct mo_httpc *hc,
                      const struct mo_llm_local *v, size_t n, unsigned ms,
                      void (*done)(void *ctx, const struct mo_llm_local *v,
                                   size_t n),
                      void *ctx, struct mo_err *e);

#endif
