/* overlong.h - a message that is longer than its link accepts.
 *
 * One answer that is too long must not end a link that many callers share. The
 * link reads past such a message without keeping it and feeds the bytes to this
 * scanner, which finds the id of the answered call. Only that call fails. The
 * link must end if nobody can be told about the loss: the message is not an
 * answer (a request or notification of the server), it is malformed, it has no
 * usable id, or it is more than MO_LINK_SKIP_TIMES times too long. */
#ifndef MO_MCP_LINK_OVERLONG_H
#define MO_MCP_LINK_OVERLONG_H

#include "codec/rpc_scan.h"
#include "mcp/link/link.h"

struct mo_overlong {
    struct mo_rpc_scan scan;
    size_t n; /* bytes so far */
    bool on;  /* inside such a message */
};

static inline void mo_overlong_start(struct mo_overlong *o)
{
    mo_rpc_scan_init(&o->scan);
    o->n = 0;
    o->on = true;
}

/* Scan the next piece. False: the link must end. */
static inline bool mo_overlong_feed(struct mo_overlong *o, struct mo_span piece,
                                    size_t max)
{
    o->n += piece.n;
    return o->n / MO_LINK_SKIP_TIMES <= max &&
           mo_rpc_scan_feed(&o->scan, piece);
}

/* The message has ended: returns the id of its call. False: the link must end.
 */
static inline bool mo_overlong_end(struct mo_overlong *o, uint64_t *id)
{
    struct mo_json v;
    enum mo_rpc_kind kind = mo_rpc_scan_end(&o->scan, &v);

    o->on = false;
    return (kind == MO_RPC_RESULT || kind == MO_RPC_ERROR) &&
           mo_json_u64(v, id) == 0;
}

/* The error of the call. */
#define MO_OVERLONG_ERROR(max)                                                 \
    mo_error(MO_ETOOBIG,                                                       \
             "the answer is longer than %zu bytes, the most that one "         \
             "message may have",                                               \
             (max))

#endif
