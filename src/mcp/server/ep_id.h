/* ep_id.h - ids of legacy sessions that every process of one store can read.
 *
 * An id is sealed (seal.h) with a key that these processes share. It says which
 * of them has the session, and what is needed to begin it again if that one is
 * gone: the caller, the view, the revision, and what the client told about
 * itself. Nobody without the key can read or make one.
 *
 * The first 24 bytes of a seal are a random nonce and a constant, so the first
 * 32 characters of an id are unique.
 *
 * Limit: MO_EP_ID_MAX characters. Of a client that tells more about itself only
 * name and version are kept, or nothing: such a session is found by the other
 * processes, but ends with its own. */
#ifndef MO_MCP_SERVER_EP_ID_H
#define MO_MCP_SERVER_EP_ID_H

#include "mcp/era.h"
#include "mcp/server/seal.h"

#define MO_EP_CALLER_MAX   128
#define MO_EP_INSTANCE_MAX 24 /* as MO_INSTANCE_MAX */
#define MO_EP_ID_MAX       ((size_t)2048)

struct mo_ep_home {
    struct mo_seal seal;
    char instance[MO_EP_INSTANCE_MAX]; /* "": ids are random, of this process */
};

/* False: the key is not known yet. */
static inline bool mo_ep_home_has_key(const struct mo_ep_home *h)
{
    return h->instance[0] != '\0';
}

struct mo_ep_id {
    const char *instance; /* that has it; of mo_ep_id_open() only */
    const char *view;     /* "" or NULL: none */
    const char *caller;
    enum mo_mcp_version version;
    uint64_t began;              /* wall ms */
    bool whole;                  /* caps and client are those of the client */
    struct mo_span caps, client; /* JSON objects, or empty */
};

/* Append the id of a session of this process. */
int mo_ep_id_put(const struct mo_ep_home *h, const struct mo_ep_id *id,
                 struct mo_buf *out);
/* True if the text has the form of one. */
bool mo_ep_id_is(struct mo_span text);
/* *out points into plain. MO_EPROTO: it is none of ours. */
int mo_ep_id_open(const struct mo_ep_home *h, struct mo_span text,
                  struct mo_buf *plain, struct mo_ep_id *out);

#endif
