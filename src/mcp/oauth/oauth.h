/* oauth.h - the tokens of one remote server: had, kept fresh, asked for.
 *
 * A link asks here for its Authorization header and hands its refusals over
 * (auth.h). One flow at a time works for all who wait: a refresh when there
 * is something to refresh, else a sign-in (oauth_flow.h). A token that will
 * expire is refreshed ahead of time. Of several processes that share a token
 * file one refreshes; the others wait for what it gets.
 *
 *   NONE      no token, nothing under way
 *   WORKING   a flow is under way
 *   SIGN_IN   a person must open mo_oauth_url(); the flow waits for it
 *   BARRED    a person would have to sign in, and nobody can be asked (mute)
 *   READY     there is a token
 *
 * A 403 that names missing scopes (step-up) asks for all scopes so far and
 * the new ones; when nothing new is named, or MO_OAUTH_STEP_UPS is reached,
 * the refusal stands.
 *
 * Who waits while a person is asked: with `wait` requests stay until the
 * sign-in ends, else they fail at once (MO_EPOLICY) and the sign-in goes on
 * in the background.
 *
 * Ownership: opts are copied; the store is borrowed. Tickets of links must
 * not outlive mo_oauth_close(). */
#ifndef MO_MCP_OAUTH_OAUTH_H
#define MO_MCP_OAUTH_OAUTH_H

#include "loop/httpc.h"
#include "mcp/oauth/auth.h"
#include "mcp/oauth/tokens.h"

#define MO_OAUTH_STEP_UPS 3 /* in a row, each within STEP_MS of the last */
#define MO_OAUTH_STEP_MS  60000
#define MO_OAUTH_AHEAD_MS 60000 /* refreshed so long before it expires */
#define MO_OAUTH_AGAIN_MS 30000 /* refused so soon after: refresh is no use */
#define MO_OAUTH_TURN_MS  50    /* how often we look whether it is our turn */

struct mo_oauth;

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
    const char *server;                    /* its URL */
    const char *client_name;               /* NULL: the program's */
    const char *client_id, *client_secret; /* registered by hand, or NULL */
    const char *client_url; /* https URL of our metadata document, or NULL */
    const char *scope;      /* asked for in any case, or NULL */
    /* Where browsers come back to, if not to a door of our own; then
     * mo_oauth_redirected() is to be called. */
    const char *redirect;
    /* The door of our own: its address, with or without a port, or NULL:
     * MO_BACK_URI. Without one, the port of the last time is tried first,
     * since that is what we are registered with. */
    const char *back;
    bool wait;
    bool mute; /* nobody can sign in: who would need it is refused at once */
    uint64_t sign_in_ms; /* 0: MO_FLOW_SIGN_IN_MS */
    /* A person must open that; may be NULL. The address is http(s) only and
     * must not go through a shell. */
    void (*on_sign_in)(void *ctx, const char *url);
    /* No flow is under way any more; why: it brought no token. May be NULL,
     * and does not fire for a flow that mo_oauth_close() ends. */
    void (*on_end)(void *ctx, const struct mo_err *why);
    void *ctx;
};

int mo_oauth_new(const struct mo_oauth_opts *o, struct mo_oauth **out,
                 struct mo_err *e);
/* Who waits is told MO_ECANCELED; gone (may be NULL) fires once, later. */
void mo_oauth_close(struct mo_oauth *o, void (*gone)(void *ctx), void *ctx);

struct mo_auth *mo_oauth_auth(struct mo_oauth *o); /* for a link */
enum mo_oauth_state mo_oauth_state(const struct mo_oauth *o);
const char *mo_oauth_url(const struct mo_oauth *o); /* SIGN_IN; else NULL */

/* The address or only the query a browser came back with. MO_EINVAL: not
 * an answer to the present sign-in, which goes on. */
int mo_oauth_redirected(struct mo_oauth *o, struct mo_span url,
                        struct mo_err *e);

#endif
