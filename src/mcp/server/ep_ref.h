/* ep_ref.h - names of things that one process of a store has: a task, or the
 * call that a requestState continues.
 *
 * A modern client has no session that would say where they are. So its name for
 * one contains the process: it is sealed (seal.h) with the key that the
 * processes share (ep_id.h), for one caller and one view. Nobody else can read,
 * use or make one.
 *
 * The same thing always has the same name: clients compare the ids of tasks. */
#ifndef MO_MCP_SERVER_EP_REF_H
#define MO_MCP_SERVER_EP_REF_H

#include "mcp/server/ep_id.h"

struct mo_ep_ref {
    const char *kind;      /* of the thing */
    const char *view;      /* NULL: none */
    struct mo_span caller; /* whose it is */
};

/* Append the name for `own`, which this process knows it by. */
int mo_ep_ref_put(const struct mo_ep_home *h, const struct mo_ep_ref *r,
                  struct mo_span own, struct mo_buf *out);
/* *instance and *own point into plain. MO_EPROTO: it is no name of ours, or not
 * for this use. */
int mo_ep_ref_open(const struct mo_ep_home *h, const struct mo_ep_ref *r,
                   struct mo_span text, struct mo_buf *plain,
                   const char **instance, struct mo_span *own);

#endif
