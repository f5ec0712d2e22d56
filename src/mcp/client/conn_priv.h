/* conn_priv.h - structs and functions shared by the client's files.
 *
 * conn.c owns the link, conn_open.c does handshakes, conn_codec.c writes
 * envelopes, call.c tracks our calls, ask.c the server's requests, task.c
 * tasks. No other file includes this header. */
#ifndef MO_MCP_CLIENT_CONN_PRIV_H
#define MO_MCP_CLIENT_CONN_PRIV_H

#include "base/pool.h"
#include "mcp/client/conn.h"

#define CALL_BUCKETS 256 /* ids are consecutive, so they spread evenly */
#define GIVEN_UP_MAX 64  /* ids remembered to count a late answer */

/* Capabilities declared to the server. */
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
    C_REDIAL,  /* the probe cost the link; waiting for its close */
    C_OPEN,
    C_CLOSING,
};

struct mo_conn {
    struct mo_loop *loop;
    struct mo_link *link;
    struct mo_conn_opts o; /* texts in a */
    struct mo_arena a;
    enum conn_state state;
    enum mo_mcp_version speak; /* version of the next request */
    bool modern;               /* the era of the next request */
    bool go_legacy;            /* send initialize after the next dial */
    bool may_redial;           /* a link lost now was lost to the probe */
    bool retried;              /* the one retry after -32022 */
    bool dialing;              /* dial was called, mo_conn_dialed() was not */
    bool installing;           /* the server did not run when last asked */
    uint64_t dialed_ms;        /* when the link was made */
    unsigned can;              /* CAN_* */

    struct mo_list calls[CALL_BUCKETS];
    struct mo_list parked; /* calls that have no id in flight */
    size_t ncalls;
    struct mo_pool spare; /* freed calls for reuse */
    uint64_t last_id;
    uint64_t given_up[GIVEN_UP_MAX];
    size_t ngiven;

    struct mo_list tasks; /* tasks being watched */

    struct mo_list asks; /* open requests of a legacy server */
    size_t nasks;

    struct mo_buf out;     /* the message being written */
    struct mo_buf compact; /* params without newlines */
    struct mo_buf opened;  /* the text info points into */
    struct mo_conn_info info;
    struct mo_conn_stats stats;
    struct mo_later
        later; /* starts the connection, or ends one without a link */
    struct mo_err why;
};

struct mo_call {
    struct mo_list node; /* in a bucket, or parked */
    struct mo_conn *c;
    uint64_t id;     /* in flight; 0: parked */
    uint64_t number; /* the first id: names the call to the owner */
    struct mo_call_opts o;
    char *method;
    struct mo_timer idle, hard;
    struct mo_later later; /* ends it with why */
    struct mo_err why;
    bool internal; /* part of a handshake: never cancelled by the owner */
    bool ended;    /* done is scheduled */
    bool held;     /* timeouts are suspended */
    bool told;     /* progress was reported: last_progress is valid */
    double last_progress;
    /* input_required */
    bool may_ask;         /* method and era allow input_required */
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
    struct mo_conn *c;    /* NULL: the server no longer waits */
    struct mo_call *call; /* the call of an inputRequest; else NULL */
    bool handed;          /* passed to the owner */
    struct mo_buf text;   /* the key or id, then the params */
    size_t key_len;
};

/* conn.c */
void mo_conn_move(struct mo_conn *c, enum conn_state to);
int mo_conn_write(struct mo_conn *c, struct mo_link_msg *m);

/* conn_open.c */
void mo_conn_start(struct mo_conn *c);
bool mo_conn_lost_in_probe(struct mo_conn *c); /* true: dialled again */
/* A request of the handshake timed out: the time to wait on, because the server
 * is still being installed, or was until now; 0: none. */
uint64_t mo_conn_more_time(struct mo_conn *c, uint64_t usual_ms);

/* conn_codec.c */
unsigned mo_conn_codec_can(struct mo_json capabilities);
int mo_conn_codec_request(struct mo_conn *c, const struct mo_call *k,
                          struct mo_span params);
int mo_conn_codec_initialize(struct mo_conn *c, struct mo_buf *b,
                             enum mo_mcp_version v);
int mo_conn_codec_keep_opened(struct mo_conn *c, struct mo_json result);
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
void mo_conn_call_script(struct mo_conn *c, struct mo_json params);
void mo_conn_call_end_later(struct mo_call *k, const struct mo_err *why);
void mo_conn_call_end_all(struct mo_conn *c, const struct mo_err *why);
void mo_conn_call_drop_internal(struct mo_conn *c);
void mo_conn_call_again(struct mo_call *k); /* send it again with all inputs */

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
