/* conn_priv.h - what the rooms of the client share: conn (the link's owner),
 * conn_open (handshakes), conn_codec (envelopes), call (what we asked), ask
 * (what we are asked), task (what we were promised). Nobody else includes
 * it. */
#ifndef MO_MCP_CLIENT_CONN_PRIV_H
#define MO_MCP_CLIENT_CONN_PRIV_H

#include "base/pool.h"
#include "mcp/client/conn.h"

#define CALL_BUCKETS 256 /* numbers count up: they spread by themselves */
#define GIVEN_UP_MAX 64  /* numbers we remember to call an answer late */

/* What we have told the server that we can do. */
enum {
    CAN_SAMPLING = 1u,
    CAN_ROOTS = 2u,
    CAN_FORM = 4u,
    CAN_URL = 8u,
    CAN_TASKS = 16u, /* the modern extension */
};

enum conn_state {
    C_NEW,
    C_DIALING,
    C_PROBING, /* server/discover is out */
    C_INIT,    /* initialize is out */
    C_REDIAL,  /* the probe cost the link; waiting for its end */
    C_OPEN,
    C_CLOSING,
};

struct mo_conn {
    struct mo_loop *loop;
    struct mo_link *link;
    struct mo_conn_opts o; /* texts in a */
    struct mo_arena a;
    enum conn_state state;
    enum mo_mcp_version speak; /* what the next request is to be in */
    bool modern;               /* the era of the next request */
    bool go_legacy;            /* after the next dial: initialize */
    bool may_redial;           /* a link lost now is the probe's fault */
    bool retried;              /* the one retry after -32022 */
    bool dialing;              /* dial was called and has not answered */
    unsigned can;              /* CAN_* */

    struct mo_list calls[CALL_BUCKETS];
    struct mo_list parked; /* calls without a number in flight */
    size_t ncalls;
    struct mo_pool spare; /* calls that have ended */
    uint64_t last_id;
    uint64_t given_up[GIVEN_UP_MAX];
    size_t ngiven;

    struct mo_list tasks; /* that are waited for */

    struct mo_list asks; /* of a legacy server */
    size_t nasks;

    struct mo_buf out;     /* the message being written */
    struct mo_buf compact; /* params without newlines */
    struct mo_buf opened;  /* the text info points into */
    struct mo_conn_info info;
    struct mo_conn_stats stats;
    struct mo_later later; /* the beginning, or an end without a link */
    struct mo_err why;
};

struct mo_call {
    struct mo_list node; /* in a bucket, or parked */
    struct mo_conn *c;
    uint64_t id;     /* in flight; 0: parked */
    uint64_t number; /* the first id: how others name the call */
    struct mo_call_opts o;
    char *method;
    struct mo_timer idle, hard;
    struct mo_later later; /* ends it with why */
    struct mo_err why;
    bool internal; /* a handshake's: not cancelled, not counted as ours */
    bool ended;    /* done is on its way */
    bool held;     /* no timeouts now */
    bool told;     /* progress was reported: last_progress counts */
    double last_progress;
    /* input_required */
    bool may_ask;         /* method and era allow it */
    struct mo_buf params; /* to send again */
    struct mo_buf input;  /* members of inputResponses, written so far */
    struct mo_buf state;  /* requestState, raw */
    struct mo_arena keep; /* headers, for a retry */
    struct mo_list asks;
    unsigned open_asks, rounds;
};

struct ask {
    struct mo_ask pub;
    struct mo_list node;
    struct mo_conn *c;    /* NULL: nobody waits any more */
    struct mo_call *call; /* of an inputRequest; else NULL */
    bool handed;          /* the owner has it */
    struct mo_buf text;   /* the key or id, then the params */
    size_t key_len;
};

/* conn.c */
void mo_conn_move(struct mo_conn *c, enum conn_state to);
void mo_conn_fail(struct mo_conn *c, const struct mo_err *why);
int mo_conn_write(struct mo_conn *c, struct mo_link_msg *m);

/* conn_open.c */
void mo_conn_start(struct mo_conn *c);
bool mo_conn_lost_in_probe(struct mo_conn *c); /* true: it is dialled again */

/* conn_codec.c */
unsigned mo_conn_codec_can(struct mo_json capabilities);
int mo_conn_codec_request(struct mo_conn *c, const struct mo_call *k,
                          struct mo_span params);
int mo_conn_codec_initialize(struct mo_conn *c, struct mo_buf *b,
                             enum mo_mcp_version v);
int mo_conn_codec_keep_opened(struct mo_conn *c, struct mo_json result,
                              bool modern);
/* What the head of an HTTP request says, which is what its _meta says. */
void mo_conn_codec_trace(const struct mo_conn *c, const struct mo_call *k,
                         struct mo_span params, struct mo_trace *out);
struct mo_span mo_conn_codec_one_line(struct mo_conn *c, struct mo_span text);

/* call.c */
struct mo_call *mo_conn_call_start(struct mo_conn *c, const char *method,
                                   struct mo_span params,
                                   const struct mo_call_opts *o, bool internal,
                                   struct mo_err *e);
struct mo_call *mo_conn_call_find(struct mo_conn *c, uint64_t id);
struct mo_call *mo_conn_call_only(struct mo_conn *c);
void mo_conn_call_answer(struct mo_conn *c, const struct mo_rpc *m);
void mo_conn_call_failed(struct mo_conn *c, uint64_t id, int status,
                         struct mo_span body, const struct mo_err *why);
void mo_conn_call_progress(struct mo_conn *c, struct mo_json params);
void mo_conn_call_end_later(struct mo_call *k, const struct mo_err *why);
void mo_conn_call_end_all(struct mo_conn *c, const struct mo_err *why);
void mo_conn_call_drop_internal(struct mo_conn *c);
void mo_conn_call_again(struct mo_call *k); /* all inputs are there */

/* ask.c */
void mo_conn_ask_request(struct mo_conn *c, const struct mo_rpc *m,
                         uint64_t stream_of);
void mo_conn_ask_cancelled(struct mo_conn *c, struct mo_json id);
int mo_conn_ask_inputs(struct mo_call *k, struct mo_json result,
                       struct mo_err *e);
void mo_conn_ask_hand_up(struct mo_call *k);
void mo_conn_ask_orphan(struct mo_list *asks);

/* task.c */
void mo_conn_task_end_all(struct mo_conn *c, const struct mo_err *why);
void mo_conn_task_news(struct mo_conn *c, struct mo_json id);

#endif
