/* mcp_home_priv.h - shared by mcp_home.c (requests) and mcp_home_key.c (the key
 * and old documents). */
#ifndef MO_WEB_MCP_HOME_PRIV_H
#define MO_WEB_MCP_HOME_PRIV_H

#include "base/rand.h"
#include "peer/others.h"
#include "web/mcp_home.h"

#define MCP_MARK      "mcp:"
#define MCP_KEY_BYTES 32
#define MCP_LEASE_MS  5000
#define MCP_KNOWN_MAX 16
#define MCP_DOC_MAX   256

struct known { /* where an instance listens */
    char instance[MO_INSTANCE_MAX];
    char path[sizeof(((struct mo_other *)NULL)->path)];
};

struct mo_mcp_home {
    struct mo_mcp_home_opts o;
    struct mo_lease *lease; /* of the key */
    bool taking;            /* that lease is waited for */
    char key[MO_TOKEN_LEN(MCP_KEY_BYTES) + 1];
    struct known known[MCP_KNOWN_MAX]; /* round and round */
    unsigned next_known;
    struct mo_timer timer; /* the key again, or the next sweep */
    char swept[MO_STORE_ID_MAX + 1];
    struct mo_list searches;
    unsigned pending; /* operations that call back, and searches */
    bool again;       /* inside mo_ep_http_again() */
    bool closing;
    struct mo_gone gone;
    struct mo_later later;
};

typedef void mo_mcp_home_written(void *ctx, const struct mo_written *w,
                                 const struct mo_err *why);

/* Write or remove a document. */
int mo_mcp_home_write(struct mo_mcp_home *h, struct mo_span id,
                      struct mo_span doc, mo_mcp_home_written *done, void *ctx,
                      struct mo_err *e);
void mo_mcp_home_op_ended(struct mo_mcp_home *h); /* counted in h->pending */

/* --- mcp_home_key.c ------------------------------------------------------- */

/* Reads or makes the key, again until there is one; then sweeps. */
void mo_mcp_home_take_key(struct mo_mcp_home *h);
void mo_mcp_home_on_timer(struct mo_timer *t);

#endif
