/* sign_in.h - OAuth tokens of one remote server, for a command or the gateway.
 *
 * Connects mcp/oauth/oauth.h with the configured client, the token file in the
 * state directory, and a person at the terminal who is shown an address to
 * open. A request that lacks a token fails at once. Its caller then calls
 * mo_sign_in_wait() and repeats the request if that returns 0. So no request
 * times out while a person signs in, and a request that the server accepted is
 * never sent twice.
 *
 * Without a person (ask false) tokens are still used and refreshed. If that is
 * not enough, the state becomes MO_SIGN_IN_NEEDED.
 *
 * With a person the tokens are that person's own, in a sealed file
 * (account_file.h). A person with a browser signs in through the page
 * (accounts.h), which gets the address and passes the answer on.
 *
 * Ownership: loop and client are borrowed, the configuration is referenced.
 * Links that use mo_sign_in_auth() must be gone before mo_sign_in_end(). */
#ifndef MO_CONNECT_SIGN_IN_H
#define MO_CONNECT_SIGN_IN_H

#include "config/config.h"
#include "connect/account_file.h"
#include "mcp/oauth/oauth.h"

#define MO_SIGN_IN_FILE "tokens.json" /* in store.dir */

enum mo_sign_in_state {
    MO_SIGN_IN_NONE,   /* no token; none was needed so far */
    MO_SIGN_IN_READY,  /* a token is available */
    MO_SIGN_IN_NEEDED, /* a token is needed and a person must sign in */
};

struct mo_sign_in;

struct mo_sign_in_opts {
    struct mo_loop *loop;
    struct mo_httpc *http;
    const struct mo_config *cfg;
    const struct mo_config_mcp *server;
    const char *url;
    bool ask;           /* a person can be asked */
    int err;            /* descriptor for messages to the person */
    const char *person; /* NULL: the tokens are everybody's */
    /* With a person: */
    const struct mo_secrets *vault;           /* seals the file */
    struct mo_shared_accounts *const *shared; /* as of struct mo_account_file */
    const char *page; /* redirect URI of the page; NULL: as without a person */
    /* With a page: the address to open, or (url NULL) the end of a sign-in or
     * refresh. why NULL: with a token. */
    void (*told)(void *ctx, const char *url, const struct mo_err *why);
    void *ctx;
};

struct mo_sign_in {
    struct mo_list node;      /* for the owner */
    struct mo_sign_in_opts o; /* with a copy of its texts */
    /* private */
    struct mo_arena a;
    struct mo_tokens *tokens, *clients;
    struct mo_account_file file, client_file; /* with a person */
    struct mo_oauth *oauth;
    bool warned;
    uint64_t ms;
    bool asked;    /* a person was asked and there is no token yet */
    bool answered; /* the flow ended and mo_sign_in_wait() has not seen it */
    bool ended;    /* a flow ended since the last wait */
    struct mo_err why;   /* its result; code 0: a token */
    struct mo_gone gone; /* mo_sign_in_end() */
};

/* True if the configuration of the server allows a sign-in. */
bool mo_sign_in_wanted(const struct mo_config_mcp *s);

int mo_sign_in_new(const struct mo_sign_in_opts *o, struct mo_sign_in **out,
                   struct mo_err *e);
/* Calls gone(ctx) once, later. */
void mo_sign_in_end(struct mo_sign_in *s, void (*gone)(void *ctx), void *ctx);

struct mo_oauth *mo_sign_in_oauth(const struct mo_sign_in *s);
struct mo_auth *mo_sign_in_auth(struct mo_sign_in *s);
enum mo_sign_in_state mo_sign_in_state(const struct mo_sign_in *s);
/* The token in use (borrowed until the loop runs), or NULL. */
const struct mo_token *mo_sign_in_token(const struct mo_sign_in *s);

/* Call this after a request failed. 0: a token is available, repeat the
 * request. MO_ENOTFOUND: the failure is not about a sign-in, *e is unchanged.
 * Other codes: the sign-in failed, *e says why. Runs the loop. */
int mo_sign_in_wait(struct mo_sign_in *s, struct mo_err *e);

#endif
