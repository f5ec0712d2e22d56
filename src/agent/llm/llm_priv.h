/* llm_priv.h - what the provider rooms share.
 *
 * A wire is one provider's dialect and pure: entries in, the request's body
 * out (put); events of its stream in, blocks out (event, finish). It opens no
 * connection and keeps no clock, so a test or a fuzzer drives it with plain
 * bytes. llm_x.c carries what wires say to and fro.
 *
 * Reading a stream: a wire opens blocks in struct mo_llm_in and lets them
 * grow. Text is kept as it stood in the provider's JSON (escaped, without
 * the quotes), so a character that two deltas share survives. When the stream
 * has said its end, mo_llm_in_reply() turns the blocks into the entry.
 *
 * Limits: MO_LLM_REPLY_MAX bytes and BLOCKS_MAX blocks a reply. */
#ifndef MO_AGENT_LLM_LLM_PRIV_H
#define MO_AGENT_LLM_LLM_PRIV_H

#include "agent/llm/llm.h"
#include "codec/http/sse.h"
#include "codec/json/json.h"

#define MO_LLM_BLOCKS_MAX 2048
/* Of a provider's JSON: what wraps it in an entry, and the entry in a store,
 * must still be JSON to us. */
#define MO_LLM_DEPTH_MAX  200
#define MO_LLM_HOPS_MAX   32 /* Gemini's CONTINUATION, one after another */
#define MO_LLM_BASE_MAX   33 /* of a name for a request's beginning; hex */

/* --- a request, read ----------------------------------------------------- */

/* A place in a body where it can be taken up: nothing before it changes while
 * the conversation only grows. */
struct mo_llm_knot {
    size_t entry;     /* the first that is not before it */
    size_t len;       /* bytes before it; 0: there is none */
    struct mo_jw w;   /* the writer there, but for its buffer */
    const char *role; /* Claude: of the message that is open, or NULL */
};

struct mo_llm_ask {
    enum mo_llm_kind kind;
    const char *url;     /* where the model lives, as entries have it */
    unsigned max_output; /* tokens, 0: as the provider likes */
    bool new_limit;      /* as max_completion_tokens */
    const struct mo_llm_request *r;
    struct mo_json *entries;
    bool *own;   /* this very model wrote it: its raw blocks go back */
    bool *bound; /* and what stood before it then still does */
    size_t n;
    char base[MO_LLM_BASE_MAX]; /* Claude: what every request begins with */
    /* Where the body, which has that much already, goes on. Entries before it
     * are not read and must not be looked at. */
    struct mo_llm_knot from;
    struct mo_llm_knot *knot; /* put() ties the next one; or NULL */
};

/* A call and what became of it; result none: nobody ever said. */
struct mo_llm_pair {
    struct mo_json call, result;
};

/* Handles live in a, the texts stay the caller's. */
int mo_llm_ask_init(struct mo_llm_ask *q, struct mo_arena *a, struct mo_err *e);
bool mo_llm_is_role(struct mo_json entry, const char *role);
bool mo_llm_is_type(struct mo_json block, const char *type);
/* Of assistant entry i, in order; at most MO_LLM_CALLS_MAX. */
size_t mo_llm_pairs(const struct mo_llm_ask *q, size_t i,
                    struct mo_llm_pair v[MO_LLM_CALLS_MAX]);
/* The id a call goes by on the wire: the provider's own, or our key. */
struct mo_json mo_llm_wire_id(const struct mo_llm_ask *q, size_t i,
                              struct mo_json call);
/* Models invent names of tools; only a usable one may go to another. */
bool mo_llm_good_name(struct mo_json name);
void mo_llm_put_name(struct mo_jw *w, struct mo_json call);
/* The newest entry a person wrote, or 0. */
size_t mo_llm_last_user(const struct mo_llm_ask *q);

/* After put(): 0, or what its failure means. */
int mo_llm_ask_end(const struct mo_buf *body, struct mo_err *e);

/* One MCP content block as every provider needs it. */
struct mo_llm_piece {
    enum mo_llm_piece_kind { MO_PIECE_TEXT, MO_PIECE_IMAGE, MO_PIECE_PDF } kind;
    struct mo_json text;       /* a string as it came, or none: see note */
    struct mo_json mime, data; /* of an image or document: both strings */
    char note[160];            /* text of ours, instead */
};

/* false: nothing to send (blank text, an unknown kind without text). */
bool mo_llm_piece(struct mo_json block, struct mo_llm_piece *p);
void mo_llm_piece_text(struct mo_jw *w, const struct mo_llm_piece *p);
void mo_llm_data_url(struct mo_jw *w, const struct mo_llm_piece *p);
bool mo_llm_failed(const struct mo_llm_pair *p); /* isError, or unanswered */
bool mo_llm_blank(struct mo_json str);           /* nothing but blanks */
/* All text of a result in one string; what is no text is named in it. */
void mo_llm_result_text(struct mo_jw *w, const struct mo_llm_pair *p);
/* What an unanswered call is answered with. */
#define MO_LLM_UNKNOWN                                                         \
    "This call was interrupted. Whether it took effect is unknown."

/* --- the beginning of the last request ----------------------------------- */

struct mo_llm_memo {
    uint64_t key[2];
    uint64_t head, entries; /* sums of what the last body was made of */
    size_t n;               /* of so many entries */
    struct mo_llm_knot knot;
    struct mo_buf text; /* the body before the knot */
    char base[MO_LLM_BASE_MAX];
    struct mo_llm_knot next; /* of the request that is being written */
    uint64_t next_head;
};

void mo_llm_memo_init(struct mo_llm_memo *m);
void mo_llm_memo_fini(struct mo_llm_memo *m);
/* Before mo_llm_ask_init(): what is known of the body goes into it, q->from,
 * q->base and q->knot are set. */
void mo_llm_memo_find(struct mo_llm_memo *m, struct mo_llm_ask *q,
                      struct mo_buf *body);
/* After put(), when that went well. */
void mo_llm_memo_keep(struct mo_llm_memo *m, const struct mo_llm_ask *q,
                      const struct mo_buf *body);
/* For wires: before entry nothing will change. */
void mo_llm_knot(const struct mo_llm_ask *q, size_t entry,
                 const struct mo_jw *w, const char *role);
/* A writer into body; true: it stands at q->from, else at its beginning. */
bool mo_llm_go_on(const struct mo_llm_ask *q, struct mo_buf *body,
                  struct mo_jw *w);
/* The first of the entries in which a person last spoke. */
size_t mo_llm_last_said(const struct mo_llm_ask *q);

/* --- a stream being read ------------------------------------------------- */

enum mo_llm_block_kind { MO_LB_TEXT, MO_LB_THINKING, MO_LB_CALL, MO_LB_OTHER };

struct mo_llm_block {
    enum mo_llm_block_kind kind;
    int64_t index;       /* the provider's number for it, -1: none */
    bool closed;         /* nothing more will come */
    bool drop;           /* unfinished: not part of the reply */
    bool plain;          /* of a kind that may grow by its neighbour */
    struct mo_buf body;  /* escaped text; of a call: its arguments */
    struct mo_buf start; /* the provider's block as it came, JSON */
    struct mo_buf more;  /* signature, citations, ...: the wire's own */
    struct mo_buf id, name;
    struct mo_buf args; /* of a call: the object's text, once whole */
    struct mo_buf bad;  /* of a call: what came instead of an object */
};

struct mo_llm_in {
    const struct mo_llm_wire *wire;
    const char *label;          /* who speaks, for people */
    const struct mo_llm_cb *cb; /* deltas go there; NULL: nobody listens */
    void *ctx;
    struct mo_span secret; /* never shown */
    bool compatible;       /* Chat of somebody else: <think> is thinking */
    struct mo_llm_block **v;
    size_t n, cap, ncalls, held;
    enum mo_llm_stop stop;
    char stop_raw[64];
    struct mo_llm_usage usage;  /* input: all of it, cached or not */
    struct mo_llm_usage before; /* of earlier hops */
    struct mo_buf usage_raw;
    bool ended;            /* the end was said: a reply */
    bool whole;            /* and nothing may follow it */
    struct mo_buf token;   /* Gemini: where to go on */
    bool token_new, again; /* nothing came since; it wants to go on */
    bool refused;
    bool redo; /* Gemini: it stumbled over its own call; worth one more */
    struct mo_buf hold;         /* Chat: a tag that is not whole yet */
    unsigned think;             /* Chat: where in <think> we are */
    struct mo_llm_failure fail; /* code set: the stream brought an error */
    /* The reply, built by mo_llm_in_reply(). */
    struct mo_buf entry, text;
    struct mo_llm_call calls[MO_LLM_CALLS_MAX];
    char keys[MO_LLM_CALLS_MAX][MO_LLM_KEY_MAX];
    char key[MO_LLM_KEY_MAX - 8]; /* keys of calls begin so */
};

struct mo_llm_wire {
    /* The body, and where it goes (appended to the base URL). */
    int (*put)(const struct mo_llm_ask *q, struct mo_buf *body,
               struct mo_err *e);
    int (*put_path)(const struct mo_llm_ask *q, struct mo_buf *path);
    /* One event. Failing ends the stream; in->fail says more, if it can. */
    int (*event)(struct mo_llm_in *in, const struct mo_sse_event *ev,
                 struct mo_err *e);
    /* Once the end was said: close what is open, settle the stop. */
    int (*finish)(struct mo_llm_in *in, struct mo_err *e);
    /* The block as it goes back, or nothing written. */
    void (*put_raw)(const struct mo_llm_in *in, const struct mo_llm_block *b,
                    struct mo_buf *out);
};

/* The two halves of a wire may stand in two files. */
#define MO_LLM_IN(wire)                                                        \
    int mo_llm_##wire##_event(struct mo_llm_in *in,                            \
                              const struct mo_sse_event *ev,                   \
                              struct mo_err *e);                               \
    int mo_llm_##wire##_finish(struct mo_llm_in *in, struct mo_err *e);        \
    void mo_llm_##wire##_raw(const struct mo_llm_in *in,                       \
                             const struct mo_llm_block *b, struct mo_buf *out)

MO_LLM_IN(claude);
MO_LLM_IN(gemini);
MO_LLM_IN(chat);
MO_LLM_IN(responses);

extern const struct mo_llm_wire mo_llm_claude, mo_llm_gemini, mo_llm_chat,
    mo_llm_responses;

/* A body that ends with max_tokens gets it as max_completion_tokens. false: it
 * has none, or there was no memory. */
bool mo_llm_chat_new_limit(struct mo_buf *body, unsigned max_output);

/* The name a call came by, as we know the tool. */
struct mo_span mo_llm_gemini_name(struct mo_span name);

/* NULL for the demo. */
const struct mo_llm_wire *mo_llm_wire(enum mo_llm_kind k, const char *model);

void mo_llm_in_init(struct mo_llm_in *in, const struct mo_llm_wire *w,
                    enum mo_llm_kind k, const struct mo_llm_cb *cb, void *ctx);
void mo_llm_in_fini(struct mo_llm_in *in);

struct mo_llm_by {
    const char *provider, *model, *url;
    const char *base; /* or NULL */
};

/* After the last event: is it a reply? Builds entry, text and calls. */
int mo_llm_in_reply(struct mo_llm_in *in, const struct mo_llm_by *by,
                    struct mo_llm_reply *r, struct mo_err *e);

/* NULL: no room; *e says so. */
struct mo_llm_block *mo_llm_open(struct mo_llm_in *in,
                                 enum mo_llm_block_kind kind, int64_t index,
                                 struct mo_err *e);
struct mo_llm_block *mo_llm_find(const struct mo_llm_in *in, int64_t index);
struct mo_llm_block *mo_llm_last(const struct mo_llm_in *in);
/* Into a block's buffer, counted; v: a JSON string (others: nothing). */
int mo_llm_add(struct mo_llm_in *in, struct mo_buf *b, struct mo_span s,
               struct mo_err *e);
int mo_llm_add_str(struct mo_llm_in *in, struct mo_buf *b, struct mo_json v,
                   struct mo_err *e);
/* The same and show it. */
int mo_llm_grow(struct mo_llm_in *in, struct mo_llm_block *b, struct mo_json v,
                struct mo_err *e);
int mo_llm_grow_text(struct mo_llm_in *in, struct mo_llm_block *b,
                     struct mo_span s, struct mo_err *e);
void mo_llm_show(struct mo_llm_in *in, enum mo_llm_block_kind kind,
                 struct mo_json v);
/* Name and id unescaped; MO_EPROTO without a name. */
int mo_llm_name(struct mo_llm_in *in, struct mo_llm_block *b,
                struct mo_json name, struct mo_json id, struct mo_err *e);
/* The body is all of the arguments: an object, {} or bad. */
int mo_llm_check_args(struct mo_json v); /* MO_EPROTO: bad */
int mo_llm_close_args(struct mo_llm_in *in, struct mo_llm_block *b,
                      struct mo_err *e);
/* raw: `start` without the members named, then body as `key`. */
void mo_llm_put_but(struct mo_jw *w, struct mo_json obj,
                    const char *const *names);
void mo_llm_stop_raw(struct mo_llm_in *in, struct mo_json v);
/* v's number, or what it was. */
void mo_llm_count(struct mo_json v, uint64_t *out);
/* An error document inside the stream: in->fail and *e. */
int mo_llm_event_error(struct mo_llm_in *in, struct mo_json v,
                       struct mo_err *e);
/* What b holds as a value; its error becomes the writer's. */
void mo_llm_put_json(struct mo_jw *w, const struct mo_buf *b);
/* body's text as a literal. */
void mo_llm_put_literal(struct mo_jw *w, const char *key,
                        const struct mo_buf *body);
int mo_llm_event_json(const struct mo_llm_in *in, const struct mo_sse_event *ev,
                      struct mo_json *out, struct mo_err *e);

/* --- what went wrong ----------------------------------------------------- */

/* What an answer that is no stream told about trying again. */
struct mo_llm_hint {
    int status;       /* 0: an error inside a stream */
    int should;       /* x-should-retry: 1, 0, or -1 not said */
    int64_t after_ms; /* -1: not said */
};

void mo_llm_hint_head(struct mo_llm_hint *h, const struct mo_http_head *head,
                      uint64_t wall_ms);
struct mo_llm_verdict {
    struct mo_llm_failure f;
    bool again;       /* worth another try */
    bool loading;     /* a local server is still reading its model */
    int64_t after_ms; /* as headers or document said; -1: not */
};
/* body: the error's document, whatever it is; key: never shown. */
void mo_llm_judge(const char *label, const struct mo_llm_hint *h,
                  struct mo_span body, struct mo_span key,
                  struct mo_llm_verdict *v);
/* The wait after try number n (from 1), or 0: longer than we would. */
unsigned mo_llm_wait_ms(int64_t after_ms, unsigned n, uint32_t rnd);

/* --- one provider -------------------------------------------------------- */

struct mo_llm {
    struct mo_loop *loop;
    struct mo_httpc *hc;
    enum mo_llm_kind kind;
    char *url; /* without a slash at its end */
    struct mo_buf key;
    unsigned max_output, idle_ms;
    bool *new_limit, own_new_limit; /* see mo_llm_opts */
    unsigned active;                /* replies and lists under way */
    struct mo_llm_memo memo;
};

const char *mo_llm_label(enum mo_llm_kind k);

#define MO_LLM_HEADERS_MAX 4

/* What every request to it carries; auth holds the key in its clear. */
struct mo_llm_headers {
    struct mo_http_header v[MO_LLM_HEADERS_MAX];
    size_t n;
    struct mo_buf auth;
};

int mo_llm_headers(const struct mo_llm *m, struct mo_llm_headers *h,
                   struct mo_err *e);
void mo_llm_headers_fini(struct mo_llm_headers *h);
/* A failed connection, in the words of a failure. */
void mo_llm_network(const char *label, const struct mo_err *why,
                    struct mo_llm_failure *f);

/* --- small documents, whole ---------------------------------------------- */

struct mo_llm_get {
    struct mo_httpc_x *x; /* NULL: not under way */
    struct mo_buf body;
    struct mo_llm_hint hint;
    /* Once, later; the body and the hint are filled. */
    void (*done)(struct mo_llm_get *g, const struct mo_err *why);
};

void mo_llm_get_init(struct mo_llm_get *g,
                     void (*done)(struct mo_llm_get *g,
                                  const struct mo_err *why));
void mo_llm_get_fini(struct mo_llm_get *g);
int mo_llm_get_start(struct mo_llm_get *g, struct mo_httpc *hc, const char *url,
                     const struct mo_llm_headers *h, unsigned ms,
                     struct mo_err *e);
/* The models of one page; what cannot chat is passed over. */
typedef int mo_llm_each(void *ctx, const struct mo_llm_model *m, double rank,
                        struct mo_err *e);
int mo_llm_page(enum mo_llm_kind k, struct mo_span doc, struct mo_arena *a,
                mo_llm_each *each, void *ctx, struct mo_span *next,
                struct mo_err *e);

/* --- the demo ------------------------------------------------------------ */

/* One thing the demo was asked to do, found in plain words. */
struct mo_llm_step {
    enum mo_llm_do {
        MO_DO_LIST,
        MO_DO_READ,
        MO_DO_WRITE,
        MO_DO_EDIT,
        MO_DO_SEARCH,
        MO_DO_RUN,
        MO_DO_NOTHING, /* not understood */
    } what;
    struct mo_span said; /* the words */
    struct mo_span path, text, more;
};

#define MO_LLM_STEPS_MAX 16

/* Spans point into text. Steps nobody understood are among them. */
size_t mo_llm_demo_steps(struct mo_span text,
                         struct mo_llm_step v[MO_LLM_STEPS_MAX]);

struct mo_llm_plan {
    struct mo_buf text;
    struct mo_buf tool, args; /* one call; tool empty: none */
};

/* What the demo says and does next; pure. */
int mo_llm_demo_plan(const struct mo_llm_ask *q, struct mo_llm_plan *p,
                     struct mo_err *e);
void mo_llm_plan_fini(struct mo_llm_plan *p);

extern const struct mo_llm_wire mo_llm_demo;

/* --- schemas ------------------------------------------------------------- */

/* A JSON Schema in the form Gemini takes. What is left out is told in the
 * description of its place, and as "path: word" lines in dropped (or NULL). */
int mo_llm_gschema(struct mo_json schema, struct mo_buf *out,
                   struct mo_buf *dropped);

#endif
