/* oauth.h - the tokens of one remote server: get, refresh, sign in.
 *
 * A link gets its Authorization header here and reports refusals (auth.h). One
 * flow at a time serves all waiting requests: a refresh if there is a refresh
 * token, else a sign-in (oauth_flow.h). An expiring token is refreshed ahead of
 * time. If several processes share a token file one of them refreshes; the
 * others wait for the new token.
 *
 *   NONE      no token, no flow
 *   WORKING   a flow is running
 *   SIGN_IN   a person must open mo_oauth_url(); the flow waits for it
 *   BARRED    a sign-in is needed, and nobody can be asked (mute)
 *   READY     there is a token
 *
 * A 403 that names missing scopes (step-up) requests all scopes so far and the
 * new ones. If it names no new scope, or MO_OAUTH_STEP_UPS is reached, the
 * refusal stands.
 *
 * With `wait` requests stay open until the sign-in ends. Without it they fail
 * at once (MO_EPOLICY) and the sign-in continues in the background.
 *
 * Ownership: opts are copied; the store is borrowed. Tickets of links must not
 * outlive mo_oauth_close(). */
#ifndef MO_MCP_OAUTH_OAUTH_H
#define MO_MCP_OAUTH_OAUTH_H

#include "loop/httpc.h"
#include "mcp/oauth/auth.h"
#include "mcp/oauth/oauth_machine.h"
#include "mcp/oauth/tokens.h"

#define MO_OAUTH_STEP_UPS 3 /* in a row, at most STEP_MS apart */
#define MO_OAUTH_STEP_MS  60000
#define MO_OAUTH_AHEAD_MS 60000 /* refresh this long before expiry */
#define MO_OAUTH_AGAIN_MS 30000 /* refused this soon: do not refresh */
#define MO_OAUTH_TURN_MS  50    /* polls for another process's token */

struct mo_oauth;
struct mo_oauth_device; /* oauth_device.h */
struct mo_oauth_server; /* oauth_meta.h */

enum mo_oauth_state {
    MO_OAUTH_IS_NONE,
    MO_OAUTH_IS_WORKING,
    MO_OAUTH_IS_SIGN_IN,
    MO_OAUTH_IS_BARRED,
    MO_OAUTH_IS_READY,
};

struct mo_oauth_opts {
    struct mo_loop *loop;
    struct mo_httpc *http;
    struct mo_tokens *tokens;
    /* Where clients that we registered are kept, if not with the tokens: many
     * persons use one client. Borrowed, or NULL. */
    struct mo_tokens *clients;
    const char *server;                    /* URL of the server */
    const char *client_name;               /* NULL: the program's */
    const char *client_id, *client_secret; /* or NULL: not registered by hand */
    /* The only issuer to sign in at, or NULL: the one that the server names.
     * Without it client_secret is sent only to an issuer whose token endpoint
     * is on the server's own host, or that a token was got from before. */
    const char *issuer;
    const char *client_url; /* https URL of our metadata document, or NULL */
    const char *scope;      /* scopes always requested, or NULL */
    struct mo_oauth_machine machine; /* a token without a person, or zero */
    /* Redirect URI if the browser does not return to a listener of this
     * process; then call mo_oauth_redirected(). */
    const char *redirect;
    /* Redirect URI of our own listener, with or without a port; NULL:
     * MO_BACK_URI. Without a port the previous port is tried first, since the
     * client is registered with it. */
    const char *back;
    bool wait;
    bool mute; /* nobody can sign in: fail at once if a sign-in is needed */
    bool lazy; /* an unused token is not refreshed ahead of time */
    uint64_t sign_in_ms; /* 0: MO_FLOW_SIGN_IN_MS */
    /* A person must open this URL; may be NULL. It is http(s) only and must not
     * pass through a shell. */
    void (*on_sign_in)(void *ctx, const char *url);
    /* If set, and the issuer offers it, a person signs in on any device, by a
     * code (oauth_device.h; borrowed). May be NULL. */
    void (*on_device)(void *ctx, const struct mo_oauth_device *d,
                      const struct mo_oauth_server *issuer);
    /* The flow ended; why: it got no token. May be NULL, and does not fire for
     * a flow that mo_oauth_close() ends. */
    void (*on_end)(void *ctx, const struct mo_err *why);
    void *ctx;
};

int mo_oauth_new(const struct mo_oauth_opts *o, struct mo_oauth **out,
                 struct mo_err *e);
/* Waiting requests fail with MO_ECANCELED; gone (may be NULL) fires once,
 * later. */
void mo_oauth_close(struct mo_oauth *o, void (*gone)(void *ctx), void *ctx);

struct mo_auth *mo_oauth_auth(struct mo_oauth *o); /* for a link */
enum mo_oauth_state mo_oauth_state(const struct mo_oauth *o);
const char *mo_oauth_url(const struct mo_oauth *o); /* SIGN_IN; else NULL */

/* Begin a sign-in, although nobody can be asked (mute): on_sign_in or on_end
 * follows. It replaces one that waits for its person. The last refusal says
 * where. */
int mo_oauth_sign_in(struct mo_oauth *o, struct mo_err *e);
/* Use the token that is stored now, if it is another one, or none. */
void mo_oauth_sync(struct mo_oauth *o);

/* Pass the address, or only the query, that the browser returned with.
 * MO_EINVAL: not an answer to the current sign-in, which continues. */
int mo_oauth_redirected(struct mo_oauth *o, struct mo_span url,
                        struct mo_err *e);

#endif
