/* llm_priv.h - types and functions shared by the providers.
 *
 * A wire is one provider's protocol as pure functions: entries in, the request
 * body out (put); events of its stream in, blocks out (event, finish). It opens
 * no connection and has no clock, so a test or a fuzzer can drive it with plain
 * bytes. llm_x.c does the I/O.
 *
 * Reading a stream: a wire opens blocks in struct mo_llm_in and appends to
 * them. Text is kept as it was in the provider's JSON (escaped, without the
 * quotes), so a character split between two deltas survives. When the stream
 * has ended, mo_llm_in_reply() turns the blocks into the entry.
 *
 * Limits: MO_LLM_REPLY_MAX bytes and MO_LLM_BLOCKS_MAX blocks per reply. */
#ifndef MO_AGENT_LLM_LLM_PRIV_H
#define MO_AGENT_LLM_LLM_PRIV_H

#include "agent/llm/llm.h"
#include "codec/http/sse.h"
#include "codec/json/json.h"

#define MO_LLM_BLOCKS_MAX 2048
/* Nesting of a provider's JSON. Leaves room for the entry and the store
 * document around it. */
#define MO_LLM_DEPTH_MAX  200
#define MO_LLM_HOPS_MAX   32 /* consecutive CONTINUATION requests (Gemini) */
#define MO_LLM_BASE_MAX                                                        \
    33 /* hex digest of a request's beginning, with the NUL */

/* --- a request ----------------------------------------------------------- */

/* A position in a request body where writing can continue: nothing before it
 * changes while entries are only added. */
struct mo_llm_knot {
    size_t entry;     /* the first entry after it */
    size_t len;       /* bytes before it; 0: no position */
    struct mo_jw w;   /* writer state, without its buffer */
    const char *role; /* Claude: role of the open message, or NULL */
};

struct mo_llm_ask {
    enum mo_llm_kind kind;
    const char *url;     /* base URL, as stored in entries */
    unsigned max_output; /* tokens; 0: the provider's default */
    bool new_limit;      /* as max_completion_tokens */
    const struct mo_llm_request *r;
    struct mo_json *entries;
    bool *own;   /* written by this model: raw blocks are sent back */
    bool *bound; /* and the beginning of the request is unchanged */
    size_t n;
    char base[MO_LLM_BASE_MAX]; /* Claude: digest of the request's beginning */
    /* Where the body continues; it already holds from.len bytes. Entries before
     * it are not parsed and must not be used. */
    struct mo_llm_knot from;
    struct mo_llm_knot *knot; /* put() stores the next position here; or NULL */
};

/* A call and its result; no result: it was never answered. */
struct mo_llm_pair {
    struct mo_json call, result;
};

/* Parses and checks the request. Allocates from a; the texts stay the
 * caller's. */
int mo_llm_ask_init(struct mo_llm_ask *q, struct mo_arena *a, struct mo_err *e);
bool mo_llm_is_role(struct mo_json entry, const char *role);
bool mo_llm_is_type(struct mo_json block, const char *type);
/* The calls of assistant entry i with their results, in order; at most
 * MO_LLM_CALLS_MAX. */
size_t mo_llm_pairs(const struct mo_llm_ask *q, size_t i,
                    struct mo_llm_pair v[MO_LLM_CALLS_MAX]);
/* Writes the id sent for a call of entry i: the provider's own, or our key. */
void mo_llm_put_id(struct mo_jw *w, const char *key, const struct mo_llm_ask *q,
                   size_t i, struct mo_json call);
/* True if the name can be sent to any provider. Models may invent tool
 * names. */
bool mo_llm_good_name(struct mo_json name);
/* Writes the member "name". */
void mo_llm_put_name(struct mo_jw *w, struct mo_json call);
/* Index of the newest user entry, or 0. */
size_t mo_llm_last_user(const struct mo_llm_ask *q);

/* After put(): 0, or the error with a message for people. */
int mo_llm_ask_end(const struct mo_buf *body, struct mo_err *e);

/* One MCP content block, classified. */
struct mo_llm_piece {
    enum mo_llm_piece_kind { MO_PIECE_TEXT, MO_PIECE_IMAGE, MO_PIECE_PDF } kind;
    struct mo_json text;       /* a JSON string, or none: use note */
    struct mo_json mime, data; /* of an image or document; both strings */
    char note[160];            /* replacement text */
};

/* Returns false if there is nothing to send (blank text, an unknown kind
 * without text). */
bool mo_llm_piece(struct mo_json block, struct mo_llm_piece *p);

/* The pieces of a list of content blocks; those with nothing to send are left
 * out:
 *   for (struct mo_llm_pieces s = mo_llm_pieces(q, list);
 *        mo_llm_next_piece(&s);)
 * visits s.p. Images that the model of q does not take are described; those of
 * a message are left out, because its text names them. q NULL: it takes all. */
struct mo_llm_pieces {
    struct mo_json_each at;
    struct mo_llm_piece p;
    const struct mo_llm_ask *q;
};

static inline struct mo_llm_pieces mo_llm_pieces(const struct mo_llm_ask *q,
                                                 struct mo_json list)
{
    struct mo_llm_pieces s = {.q = q};

    mo_json_iter(&s.at.at, list);
    return s;
}

bool mo_llm_next_piece(struct mo_llm_pieces *s);
/* The pieces of an entry's blocks, and of the result of a call. */
struct mo_llm_pieces mo_llm_entry_pieces(const struct mo_llm_ask *q,
                                         struct mo_json entry);
struct mo_llm_pieces mo_llm_result_pieces(const struct mo_llm_ask *q,
                                          const struct mo_llm_pair *pair);
/* Write a member. */
void mo_llm_piece_text(struct mo_jw *w, const char *key,
                       const struct mo_llm_piece *p);
void mo_llm_data_url(struct mo_jw *w, const char *key,
                     const struct mo_llm_piece *p);
bool mo_llm_failed(const struct mo_llm_pair *p); /* isError, or no result */
bool mo_llm_blank(struct mo_json str);           /* only whitespace */
/* All text of a result as one string; other content is described. */
void mo_llm_result_text(const struct mo_llm_pair *p, struct mo_buf *out);
void mo_llm_put_result(struct mo_jw *w, const char *key,
                       const struct mo_llm_pair *p);
/* The result sent for a call without a result. */
#define MO_LLM_UNKNOWN                                                         \
    "This call was interrupted. Whether it took effect is unknown."

/* --- reuse of the last request's beginning (llm_memo.c) ------------------ */

struct mo_llm_memo {
    uint64_t key[2];
    uint64_t head, entries; /* hashes of the last request's content */
    size_t n;               /* number of entries hashed */
    struct mo_llm_knot knot;
    struct mo_buf text; /* the body up to the knot */
    char base[MO_LLM_BASE_MAX];
    struct mo_llm_knot next; /* of the current request */
    uint64_t next_head;
};

void mo_llm_memo_init(struct mo_llm_memo *m);
/* Call before mo_llm_ask_init(). Copies the reusable beginning into body and
 * sets q->from, q->base and q->knot. */
void mo_llm_memo_find(struct mo_llm_memo *m, struct mo_llm_ask *q,
                      struct mo_buf *body);
/* Call after a successful put(). */
void mo_llm_memo_keep(struct mo_llm_memo *m, const struct mo_llm_ask *q,
                      const struct mo_buf *body);
/* For wires: records that nothing before `entry` will change. */
void mo_llm_knot(const struct mo_llm_ask *q, size_t entry,
                 const struct mo_jw *w, const char *role);
/* Initialises a writer for body. Returns true if it continues at q->from, false
 * if it starts at the beginning. */
bool mo_llm_go_on(const struct mo_llm_ask *q, struct mo_buf *body,
                  struct mo_jw *w);
/* Index of the first entry of the newest run of user entries. */
size_t mo_llm_last_said(const struct mo_llm_ask *q);

/* --- a stream ------------------------------------------------------------ */

enum mo_llm_block_kind { MO_LB_TEXT, MO_LB_THINKING, MO_LB_CALL, MO_LB_OTHER };

struct mo_llm_block {
    enum mo_llm_block_kind kind;
    int64_t index;       /* the provider's index, -1: none */
    bool closed;         /* complete */
    bool drop;           /* unfinished: not part of the reply */
    bool plain;          /* may be joined with the next block */
    struct mo_buf body;  /* escaped text; of a call: its arguments */
    struct mo_buf start; /* the provider's block, unchanged JSON */
    struct mo_buf more;  /* signature, citations, ...: used by the wire */
    struct mo_buf id, name;
    struct mo_buf args; /* of a call: text of the object, once complete */
    struct mo_buf bad;  /* of a call: the invalid text in place of an object */
};

struct mo_llm_in {
    const struct mo_llm_wire *wire;
    const char *label;          /* provider name for messages */
    const struct mo_llm_cb *cb; /* gets the deltas; may be NULL */
    void *ctx;
    struct mo_span secret; /* never shown */
    bool compatible; /* Chat of a compatible server: <think> is thinking */
    struct mo_llm_block **v;
    size_t n, cap, ncalls, held;
    enum mo_llm_stop stop;
    char stop_raw[64];
    struct mo_llm_usage usage;  /* input: total, cached or not */
    struct mo_llm_usage before; /* of earlier requests of this reply */
    struct mo_buf usage_raw;
    bool ended;            /* the end mark came: it is a reply */
    bool whole;            /* and nothing may follow */
    struct mo_buf token;   /* Gemini: continuation token */
    bool token_new, again; /* no data since the token; continue with it */
    bool refused;
    bool redo;                  /* Gemini: malformed call; try once more */
    struct mo_buf hold;         /* Chat: an incomplete tag */
    unsigned think;             /* Chat: state of the <think> parser */
    struct mo_llm_failure fail; /* code set: the stream contained an error */
    /* Built by mo_llm_in_reply(). */
    struct mo_buf entry, text;
    struct mo_llm_call calls[MO_LLM_CALLS_MAX];
    char keys[MO_LLM_CALLS_MAX][MO_LLM_KEY_MAX];
    char key[MO_LLM_KEY_MAX - 8]; /* prefix of the calls' keys */
};

/* The demo has no request and no stream: all of its members are NULL. */
struct mo_llm_wire {
    /* Writes the body. */
    int (*put)(const struct mo_llm_ask *q, struct mo_buf *body,
               struct mo_err *e);
    /* Appended to the base URL. after: the model's name stands between. */
    const char *path, *after;
    /* Handles one event. An error ends the stream; in->fail may say more. */
    int (*event)(struct mo_llm_in *in, struct mo_json v, struct mo_err *e);
    /* After the end mark: closes open blocks, sets the stop. NULL: nothing is
     * left to do. */
    int (*finish)(struct mo_llm_in *in, struct mo_err *e);
    /* Writes the raw block, or nothing. */
    void (*put_raw)(const struct mo_llm_block *b, struct mo_buf *out);
};

/* Appends the path of a request for that model. */
int mo_llm_put_path(const struct mo_llm_wire *w, const char *model,
                    struct mo_buf *url);
/* Handles one event of a stream. */
int mo_llm_event(struct mo_llm_in *in, struct mo_span data, struct mo_err *e);

/* The stream half of mo_llm_chat, which is in its own file. */
int mo_llm_chat_event(struct mo_llm_in *in, struct mo_json v, struct mo_err *e);
int mo_llm_chat_finish(struct mo_llm_in *in, struct mo_err *e);
void mo_llm_chat_raw(const struct mo_llm_block *b, struct mo_buf *out);

extern const struct mo_llm_wire mo_llm_claude, mo_llm_gemini, mo_llm_chat,
    mo_llm_responses, mo_llm_demo;

/* A body that ends with max_tokens gets it as max_completion_tokens. false: it
 * has none, or there was no memory. */
bool mo_llm_chat_new_limit(struct mo_buf *body, unsigned max_output);

const struct mo_llm_wire *mo_llm_wire(enum mo_llm_kind k, const char *model);

void mo_llm_in_init(struct mo_llm_in *in, const struct mo_llm_wire *w,
                    enum mo_llm_kind k, const struct mo_llm_cb *cb, void *ctx);
void mo_llm_in_fini(struct mo_llm_in *in);

struct mo_llm_by {
    const char *provider, *model, *url;
    const char *base; /* or NULL */
};

/* After the last event: builds entry, text and calls. Fails if the reply is
 * incomplete. */
int mo_llm_in_reply(struct mo_llm_in *in, const struct mo_llm_by *by,
                    struct mo_llm_reply *r, struct mo_err *e);

/* Opens a block. Returns NULL and sets *e at the limit or without memory. */
struct mo_llm_block *mo_llm_open(struct mo_llm_in *in,
                                 enum mo_llm_block_kind kind, int64_t index,
                                 struct mo_err *e);
struct mo_llm_block *mo_llm_find(const struct mo_llm_in *in, int64_t index);
struct mo_llm_block *mo_llm_last(const struct mo_llm_in *in);
/* Append to a block's buffer, counted against the limit. v: a JSON string;
 * other values are ignored. */
int mo_llm_add(struct mo_llm_in *in, struct mo_buf *b, struct mo_span s,
               struct mo_err *e);
int mo_llm_add_str(struct mo_llm_in *in, struct mo_buf *b, struct mo_json v,
                   struct mo_err *e);
/* The same, and sends the delta. */
int mo_llm_grow(struct mo_llm_in *in, struct mo_llm_block *b, struct mo_json v,
                struct mo_err *e);
int mo_llm_grow_text(struct mo_llm_in *in, struct mo_llm_block *b,
                     struct mo_span s, struct mo_err *e);
void mo_llm_show(struct mo_llm_in *in, enum mo_llm_block_kind kind,
                 struct mo_json v);
/* Sets name and id, unescaped. MO_EPROTO: no name. */
int mo_llm_name(struct mo_llm_block *b, struct mo_json name, struct mo_json id,
                struct mo_err *e);
/* Parses the complete body as arguments: an object, {} or bad. */
int mo_llm_check_args(struct mo_json v); /* MO_EPROTO: bad */
int mo_llm_close_args(struct mo_llm_in *in, struct mo_llm_block *b,
                      struct mo_err *e);
/* The same for all calls of the reply. */
int mo_llm_close_calls(struct mo_llm_in *in, struct mo_err *e);
/* Appends the text of a body, unescaped. */
int mo_llm_body_text(const struct mo_buf *body, struct mo_buf *out);
/* Writes the members of obj, except those named. */
void mo_llm_put_but(struct mo_jw *w, struct mo_json obj,
                    const char *const *names);

/* A provider's word for the end of a reply. */
struct mo_llm_stop_word {
    const char *raw;
    enum mo_llm_stop stop;
};

/* Keeps the word and sets the stop; MO_LLM_OTHER: v is not among the words. */
void mo_llm_stop(struct mo_llm_in *in, struct mo_json v,
                 const struct mo_llm_stop_word *words, size_t n);
/* Sets *out to v if v is a number. */
void mo_llm_count(struct mo_json v, uint64_t *out);
/* Keeps the usage as it is; false: it is no object. */
bool mo_llm_usage_raw(struct mo_llm_in *in, struct mo_json usage);
/* Reads the usage as OpenAI writes it, with these names of its members. */
void mo_llm_usage(struct mo_llm_in *in, struct mo_json usage, const char *input,
                  const char *output, const char *details);

/* A type of event, and what handles it. Unknown types are ignored. */
struct mo_llm_event_type {
    const char *type;
    int (*on)(struct mo_llm_in *in, struct mo_json v, struct mo_err *e);
};

int mo_llm_dispatch(const struct mo_llm_event_type *types, size_t n,
                    struct mo_llm_in *in, struct mo_json v, struct mo_err *e);
/* Handles an error document in the stream: sets in->fail and *e. */
int mo_llm_event_error(struct mo_llm_in *in, struct mo_json v,
                       struct mo_err *e);
/* Writes b, a JSON value, as a member; the writer takes over b's error. */
void mo_llm_put_json(struct mo_jw *w, const char *key, const struct mo_buf *b);
/* Writes items, JSON values with commas, as a list. */
void mo_llm_put_items(struct mo_jw *w, const char *key,
                      const struct mo_buf *items);
/* Writes body, an escaped text, as a string member. */
void mo_llm_put_literal(struct mo_jw *w, const char *key,
                        const struct mo_buf *body);

/* --- errors -------------------------------------------------------------- */

/* Retry information of an answer that is not a stream. */
struct mo_llm_hint {
    int status;       /* 0: an error inside a stream */
    int should;       /* x-should-retry: 1 or 0; -1: not sent */
    int64_t after_ms; /* -1: not sent */
};

void mo_llm_hint_head(struct mo_llm_hint *h, const struct mo_http_head *head,
                      uint64_t wall_ms);
struct mo_llm_verdict {
    struct mo_llm_failure f;
    bool again;       /* may be retried */
    bool loading;     /* a local server is still loading its model */
    int64_t after_ms; /* from headers or document; -1: not sent */
};
/* body: the error document, in any format; key: removed from messages. */
void mo_llm_judge(const char *label, const struct mo_llm_hint *h,
                  struct mo_span body, struct mo_span key,
                  struct mo_llm_verdict *v);
/* Wait after try number n (from 1); 0: longer than AFTER_MAX_MS, do not
 * retry. */
unsigned mo_llm_wait_ms(int64_t after_ms, unsigned n, uint32_t rnd);

/* --- one provider -------------------------------------------------------- */

struct mo_llm {
    struct mo_loop *loop;
    struct mo_httpc *hc;
    enum mo_llm_kind kind;
    char *url; /* without a trailing slash */
    struct mo_buf key;
    unsigned max_output, idle_ms, total_ms;
    bool *new_limit, own_new_limit; /* see mo_llm_opts */
    unsigned active;                /* active requests and lists */
    struct mo_llm_memo memo;
};

const char *mo_llm_label(enum mo_llm_kind k);

#define MO_LLM_HEADERS_MAX 4 /* and one for the trace context */

/* Headers of every request; auth holds the key in clear text: wipe it. */
struct mo_llm_headers {
    struct mo_http_header v[MO_LLM_HEADERS_MAX + 1];
    size_t n;
    struct mo_buf auth;
};

int mo_llm_headers(const struct mo_llm *m, struct mo_llm_headers *h,
                   struct mo_err *e);
/* Turns a connection error into a failure. */
void mo_llm_network(const char *label, const struct mo_err *why,
                    struct mo_llm_failure *f);

/* --- a page of a list ---------------------------------------------------- */

/* Reports the models of one page that can chat. */
typedef int mo_llm_each(void *ctx, const struct mo_llm_model *m, double rank,
                        struct mo_err *e);
int mo_llm_page(enum mo_llm_kind k, struct mo_span doc, struct mo_arena *a,
                mo_llm_each *each, void *ctx, struct mo_span *next,
                struct mo_err *e);

/* --- the demo ------------------------------------------------------------ */

/* One step of a request to the demo. */
struct mo_llm_step {
    enum mo_llm_do {
        MO_DO_LIST,
        MO_DO_READ,
        MO_DO_WRITE,
        MO_DO_EDIT,
        MO_DO_SEARCH,
        MO_DO_RUN,
        MO_DO_SCRIPT,  /* path: a list of names */
        MO_DO_NOTHING, /* not understood */
    } what;
    struct mo_span said; /* the words */
    struct mo_span path, text, more;
};

#define MO_LLM_STEPS_MAX 16

/* Spans point into text. Steps that were not understood are included. */
size_t mo_llm_demo_steps(struct mo_span text,
                         struct mo_llm_step v[MO_LLM_STEPS_MAX]);

struct mo_llm_plan {
    struct mo_buf text;
    struct mo_buf tool, args; /* one call; tool empty: none */
};

/* Computes the demo's next reply; pure. */
int mo_llm_demo_plan(const struct mo_llm_ask *q, struct mo_llm_plan *p,
                     struct mo_err *e);
void mo_llm_plan_fini(struct mo_llm_plan *p);

/* --- schemas ------------------------------------------------------------- */

/* Translates a JSON Schema for Gemini. Keywords left out are added to the
 * description. */
int mo_llm_gschema(struct mo_json schema, struct mo_buf *out);

#endif
