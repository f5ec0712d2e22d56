/* llm.h - one interface for all language models: a conversation goes in, a
 * stream of text and one reply come out.
 *
 * A conversation is a list of entries, each a JSON document (below). A provider
 * turns them into its own request and its stream back into an entry. Each block
 * of a reply is stored twice: parsed (for members and for other providers) and
 * as the provider's own block, byte for byte (`raw`). The raw block goes back
 * to the same provider, so signatures and unknown blocks and members survive.
 * Another provider, or another model if the provider binds opaque parts to one,
 * gets only the parsed form. Claude binds thinking to everything before it:
 * `base` identifies the instructions, the tools and the first entry of the
 * request, and thinking is sent back only if `base` is unchanged.
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
 *   1. on_done is called exactly once, last, never from inside a call.
 *      Cancelling calls it too (MO_ECANCELED).
 *   2. A stream without its end mark is an error. Its text was shown as deltas
 *      but is no reply: partial replies are not kept.
 *   3. Retries happen here, only before the first byte of a stream, as the
 *      provider's headers say, and are reported by on_wait. (Gemini only: one
 *      more try if its only output was that its own call was malformed.)
 *   4. Keys never appear in an error, a log line or a stored entry.
 *
 * Limits: MO_LLM_REQUEST_MAX bytes per request, MO_LLM_REPLY_MAX bytes and
 * MO_LLM_CALLS_MAX calls per reply, MO_LLM_TRIES tries. */
#ifndef MO_AGENT_LLM_LLM_H
#define MO_AGENT_LLM_LLM_H

#include "base/str.h"
#include "codec/json/json.h"
#include "config/choices.h"
#include "loop/httpc.h"
#include "trace/trace.h"

#define MO_LLM_REQUEST_MAX ((size_t)32 * 1024 * 1024)
#define MO_LLM_REPLY_MAX   ((size_t)8 * 1024 * 1024)
#define MO_LLM_CALLS_MAX   64
#define MO_LLM_TRIES       3
#define MO_LLM_KEY_MAX     32 /* our key of a call, with the NUL */
#define MO_LLM_NAME_MAX    64 /* tool name; all providers accept this length */

struct mo_llm;   /* one provider: base URL and key */
struct mo_llm_x; /* one request; freed after on_done */

/* Maps a name to a provider, ignoring case: "gemini" and "google", "claude" and
 * "anthropic", "openai" and "chatgpt", "demo"; "compatible" and the names of
 * such servers: "ollama", "llama.cpp", "vllm", "lmstudio", "openrouter". -1:
 * unknown. */
int mo_llm_kind(struct mo_span name);
const char *mo_llm_kind_name(enum mo_llm_kind k);

struct mo_llm_opts {
    enum mo_llm_kind kind;
    const char *base_url; /* NULL: the provider's default */
    struct mo_span key;   /* copied, wiped when freed; may be empty */
    unsigned max_output;  /* tokens; 0: the provider's limit, or 16384 if it
                             requires a number (Claude) */
    unsigned idle_ms;     /* timeout without data; 0: five minutes */
    unsigned total_ms;    /* timeout of one request; 0: an hour */
    /* COMPATIBLE: set when the server refused max_tokens and took
     * max_completion_tokens; read with every request. Borrowed as long as the
     * mo_llm lives, and may be shared by all that are of one server. NULL: this
     * mo_llm remembers it for itself. */
    bool *new_limit;
};

/* hc is borrowed until mo_llm_free(). A base URL must not contain a user, a key
 * or a query (MO_EINVAL), because it is stored with every entry. */
struct mo_llm *mo_llm_new(struct mo_loop *l, struct mo_httpc *hc,
                          const struct mo_llm_opts *o, struct mo_err *e);
/* No request or list may be active. Closing hc ends lists of models too. */
void mo_llm_free(struct mo_llm *m);

enum mo_llm_kind mo_llm_kind_of(const struct mo_llm *m);

struct mo_llm_tool {
    struct mo_span name; /* [A-Za-z0-9_-], at most MO_LLM_NAME_MAX */
    struct mo_span description;
    struct mo_span schema; /* JSON Schema, an object */
    /* Digest of the whole definition, or empty. Equal digests mean equal
     * bytes. */
    struct mo_span digest;
};

struct mo_llm_request {
    const char *model;
    struct mo_span system;
    const struct mo_llm_tool *tools;
    size_t ntools;
    const struct mo_span *entries; /* as above, oldest first */
    size_t nentries;
    /* A number per entry that is unique among all requests to this mo_llm, used
     * to recognise entries; NULL: entries are compared by their bytes. */
    const uint64_t *ids;
    unsigned max_output; /* tokens; 0: that of the mo_llm */
    bool quiet;          /* tools are sent unchanged but must not be used */
    bool blind;          /* the model takes no images: they are described */
    const struct mo_trace_span *parent; /* of the request's span; or NULL */
    struct mo_span conversation;        /* its id, for the span; or empty */
};

enum mo_llm_stop {
    MO_LLM_END,
    MO_LLM_CALLS,
    MO_LLM_LENGTH,
    MO_LLM_REFUSED,
    MO_LLM_PAUSED, /* the provider asks for the same request again */
    MO_LLM_OTHER,
};

struct mo_llm_call {
    struct mo_span key, name, args; /* args: text of a JSON object */
    /* Empty, or the invalid text the model wrote as arguments; args is {} then.
     * Such a call must not run: the model is told the error. */
    struct mo_span bad;
};

struct mo_llm_usage {
    uint64_t input; /* total, cached or not */
    uint64_t output, cache_read, cache_write;
};

void mo_llm_usage_add(struct mo_llm_usage *sum, const struct mo_llm_usage *u);
/* Writes the members of a "usage" object, as in entries. */
void mo_llm_usage_put(struct mo_jw *w, const struct mo_llm_usage *u);

struct mo_llm_reply {
    struct mo_span entry; /* the assistant entry */
    struct mo_span text;  /* all text blocks */
    enum mo_llm_stop stop;
    /* Complete calls only. Any stop but END may come with calls. */
    const struct mo_llm_call *calls;
    size_t ncalls;
    struct mo_llm_usage usage; /* of all requests for this reply */
};

/* Why a request failed. */
struct mo_llm_failure {
    struct mo_err err; /* message for a person: what happened, what to do */
    const char *code;  /* "auth", "rate_limit", "overloaded", */
                       /* "too_long", "bad_request", "network", */
                       /* "protocol", "canceled", "quota", "no_model"; */
                       /* of a list also "address": wrong base URL */
    unsigned retry_after_ms; /* 0: unknown */
};

struct mo_llm_cb {
    void (*on_text)(void *ctx, struct mo_span delta);
    void (*on_thinking)(void *ctx, struct mo_span delta); /* or NULL */
    /* Try number `attempt` failed; the next starts in ms. May be NULL. */
    void (*on_wait)(void *ctx, unsigned attempt, unsigned ms,
                    const struct mo_llm_failure *f);
    /* Exactly one of r and f is NULL; both are borrowed. */
    void (*on_done)(void *ctx, const struct mo_llm_reply *r,
                    const struct mo_llm_failure *f);
};

const char *mo_llm_stop_name(enum mo_llm_stop s); /* as in entries */
/* Appends the text blocks of an entry, without thinking. */
void mo_llm_entry_text(struct mo_json entry, struct mo_buf *out);

/* Starts a request. All arguments are copied. */
int mo_llm_start(struct mo_llm *m, const struct mo_llm_request *r,
                 const struct mo_llm_cb *cb, void *ctx, struct mo_llm_x **out,
                 struct mo_err *e);
void mo_llm_cancel(struct mo_llm_x *x);

/* --- lists of models ----------------------------------------------------- */

enum mo_llm_sight { MO_LLM_SIGHT_UNKNOWN, MO_LLM_SEES, MO_LLM_BLIND };

struct mo_llm_model {
    struct mo_span id, name;  /* name: display name */
    uint64_t context, output; /* tokens; 0: unknown */
    enum mo_llm_sight sight;  /* as the list says */
};

/* Does a model of that name take images? Compatible servers do not say; those
 * that do are known by their names. Pure. */
bool mo_llm_sees(enum mo_llm_kind k, struct mo_span model);

typedef void mo_llm_models_fn(void *ctx, const struct mo_llm_model *v, size_t n,
                              const struct mo_llm_failure *f);
/* Reads the provider's list of models: all pages, newest or best first, only
 * models that can hold a conversation. Makes no billed call. ms: timeout of the
 * whole list. done() is called once, later; its arguments are borrowed. */
int mo_llm_models(struct mo_llm *m, unsigned ms, mo_llm_models_fn *done,
                  void *ctx, struct mo_err *e);

/* The default model; NULL for MO_LLM_COMPATIBLE, which uses the first of its
 * list. */
const char *mo_llm_default_model(enum mo_llm_kind k);

/* A model server on this machine, on its usual port. */
struct mo_llm_local {
    const char *name;     /* "Ollama" */
    const char *base_url; /* for MO_LLM_COMPATIBLE */
    size_t models;        /* number of models found */
};

#define MO_LLM_LOCAL_MAX 8

typedef void mo_llm_locals_fn(void *ctx, const struct mo_llm_local *v,
                              size_t n);

/* Is it the name of Ollama, llama.cpp, LM Studio or vLLM? In any case. */
bool mo_llm_is_local(struct mo_span name);

/* Probes all servers at once. v NULL: Ollama, llama.cpp, LM Studio and vLLM on
 * their ports of 127.0.0.1. Servers that do not answer with a list of models
 * within ms are left out. done() is called once, later, with the others, in
 * order. */
int mo_llm_find_local(struct mo_loop *l, struct mo_httpc *hc,
                      const struct mo_llm_local *v, size_t n, unsigned ms,
                      mo_llm_locals_fn *done, void *ctx, struct mo_err *e);

#endif
