/* oauth_ask.h - one request to an authorization server, and its answer.
 *
 * Every request follows the same rules: mo_oauth_url_ok() accepted the address,
 * its name resolves to no private address unless the MCP server itself has one,
 * redirects are not followed, and time and size are limited. Answers may hold
 * tokens: they are wiped.
 *
 * Ownership: embedded in its owner, one request at a time. done fires once for
 * each, from the loop; mo_oauth_ask_cancel() makes it fire, too. */
#ifndef MO_MCP_OAUTH_OAUTH_ASK_H
#define MO_MCP_OAUTH_OAUTH_ASK_H

#include "loop/httpc.h"
#include "mcp/oauth/dpop.h"
#include "mcp/oauth/oauth_meta.h"

#define MO_OAUTH_ASK_MS 30000u

struct mo_oauth_ask {
    struct mo_httpc *http;
    const char *server;   /* the MCP server that needs the token */
    bool local;           /* the MCP server is at a private address */
    struct mo_dpop *dpop; /* its key proves the next POST; or NULL */
    void (*done)(struct mo_oauth_ask *q, const struct mo_err *why);
    /* the answer */
    int status;
    struct mo_buf body;
    /* private */
    struct mo_httpc_x *x;
};

/* The owner sets the first five members. The server's nonce goes to dpop. */
void mo_oauth_ask_init(struct mo_oauth_ask *q);
void mo_oauth_ask_fini(struct mo_oauth_ask *q); /* no request may be running */

/* A POST of `type`, or a GET if that is NULL. basic: Authorization, or empty.
 */
int mo_oauth_ask(struct mo_oauth_ask *q, const char *url, const char *type,
                 struct mo_span body, struct mo_span basic, struct mo_err *e);
/* A GET with this Authorization. */
int mo_oauth_ask_with(struct mo_oauth_ask *q, const char *url,
                      struct mo_span authorization, struct mo_err *e);
/* False: no request is running. */
bool mo_oauth_ask_cancel(struct mo_oauth_ask *q);

#endif
