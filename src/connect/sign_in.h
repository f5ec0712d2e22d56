/* sign_in.h - the tokens of one remote server, as a command or the gateway
 * needs them.
 *
 * Joins mcp/oauth/oauth.h with what a command has: the configuration's client,
 * the token file in the state directory, and a person at the terminal who is
 * told an address to open. Requests that are refused for want of a token fail
 * at once; whoever made them calls mo_sign_in_wait() and, if that says so,
 * makes them again. So no request's timeout runs while a person looks for a
 * password, and none is sent twice that was taken.
 *
 * Without a person (ask false) tokens are used and refreshed all the same;
 * when that is not enough the state is MO_SIGN_IN_NEEDED.
 *
 * Ownership: loop, client and configuration are borrowed. Links that use
 * mo_sign_in_auth() must be gone before mo_sign_in_close(). */
#ifndef MO_CONNECT_SIGN_IN_H
#define MO_CONNECT_SIGN_IN_H

#include "config/config.h"
#include "mcp/oauth/oauth.h"

#define MO_SIGN_IN_FILE "tokens.json" /* in store.dir */

struct mo_sign_in;

enum mo_sign_in_state {
    MO_SIGN_IN_NONE,   /* there is no token; so far none was wanted */
    MO_SIGN_IN_READY,  /* there is one */
    MO_SIGN_IN_NEEDED, /* one is wanted, and a person must sign in for it */
};

struct mo_sign_in_opts {
    struct mo_loop *loop;
    struct mo_httpc *http;
    const struct mo_config *cfg;
    const struct mo_config_mcp *server; /* or NULL: nothing is configured */
    const char *url;
    bool ask; /* there is a person */
    int err;  /* where the address is printed */
};

/* Does that server's configuration leave room for signing in? */
bool mo_sign_in_wanted(const struct mo_config_mcp *s);

int mo_sign_in_new(const struct mo_sign_in_opts *o, struct mo_sign_in **out,
                   struct mo_err *e);
void mo_sign_in_close(struct mo_sign_in *s); /* NULL is fine; runs the loop */
/* The same for who is run by the loop: gone(ctx) once, later. */
void mo_sign_in_end(struct mo_sign_in *s, void (*gone)(void *ctx), void *ctx);

struct mo_auth *mo_sign_in_auth(struct mo_sign_in *s);
enum mo_sign_in_state mo_sign_in_state(const struct mo_sign_in *s);
/* What is in use now (borrowed until the loop runs), or NULL. */
const struct mo_token *mo_sign_in_token(const struct mo_sign_in *s);

/* A request has failed. 0: there is a token now, make it again. Else it stays
 * failed: MO_ENOTFOUND and *e as it was if that had nothing to do with a
 * sign-in, or e says what went wrong with it. Runs the loop. */
int mo_sign_in_wait(struct mo_sign_in *s, struct mo_err *e);

#endif
