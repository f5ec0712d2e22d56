/* overlong.h - a message that is longer than its link accepts.
 *
 * A link that many callers share must not end because one answer is too long.
 * The link passes over the bytes of such a message without keeping them and
 * gives them to this room, which finds out whose answer it was. Only that call
 * fails. The link ends all the same when nobody can be told what was lost: the
 * message is no answer (a request or notification of the server), it is
 * malformed, it has no usable id, or it is more than MO_LINK_SKIP_TIMES times
 * too long. */
#ifndef MO_MCP_LINK_OVERLONG_H
#define MO_MCP_LINK_OVERLONG_H

#include "codec/rpc_scan.h"
#include "mcp/link/link.h"

struct mo_overlong {
    struct mo_rpc_scan scan;
    size_t n; /* bytes so far */
    bool on;  /* such a message is being read */
};

static inline void mo_overlong_start(struct mo_overlong *o)
{
    mo_rpc_scan_init(&o->scan);
    o->n = 0;
    o->on = true;
}

/* The next piece. false: the link must end. */
static inline bool mo_overlong_feed(struct mo_overlong *o, struct mo_span piece,
                                    size_t max)
{
    o->n += piece.n;
    return o->n / MO_LINK_SKIP_TIMES <= max &&
           mo_rpc_scan_feed(&o->scan, piece);
}

/* The message has ended: whose answer it was. false: the link must end. */
static inline bool mo_overlong_end(struct mo_overlong *o, uint64_t *id)
{
    struct mo_json v;
    enum mo_rpc_kind kind = mo_rpc_scan_end(&o->scan, &v);

    o->on = false;
    return (kind == MO_RPC_RESULT || kind == MO_RPC_ERROR) &&
           mo_json_u64(v, id) == 0;
}

/* What the call hears. */
static inline int mo_overlong_fail(struct mo_err *e, size_t max)
{
    return mo_fail(e, MO_ETOOBIG,
                   "the answer is longer than %zu bytes, the most that one "
                   "message may have",
                   max);
}

#endif
