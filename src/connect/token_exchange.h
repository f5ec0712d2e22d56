/* token_exchange.h - tokens for a server, got for the access token of the
 * person who calls (RFC 8693; `credentials: exchange`).
 *
 * The person's own token is known from their last request with one
 * (mo_token_exchange_subject), and only in memory. It goes to the configured
 * token endpoint and nowhere else: the server gets the token that was issued in
 * exchange, which is kept until it expires. When the server refuses a request,
 * a new one is got, at most once in MO_TOKEN_EXCHANGE_PAUSE_MS.
 *
 * Limits: MO_TOKEN_EXCHANGE_MAX persons, and as many pairs of a person and a
 * server in use (MO_EBUSY). The texts are wiped. */
#ifndef MO_CONNECT_TOKEN_EXCHANGE_H
#define MO_CONNECT_TOKEN_EXCHANGE_H

#include "config/config.h"
#include "loop/httpc.h"
#include "mcp/oauth/auth.h"

#define MO_TOKEN_EXCHANGE_MAX      4096
#define MO_TOKEN_EXCHANGE_PAUSE_MS 5000

struct mo_token_exchange;

int mo_token_exchange_new(struct mo_loop *l, struct mo_token_exchange **out,
                          struct mo_err *e);
void mo_token_exchange_close(struct mo_token_exchange *t,
                             void (*gone)(void *ctx), void *ctx);

/* Remembers the token that the person sent, if it is a signed one. */
void mo_token_exchange_subject(struct mo_token_exchange *t, const char *person,
                               struct mo_span token);
/* The auth of a link; one mo_token_exchange_release() for each. cfg must live
 * as long; it is referenced. */
int mo_token_exchange_use(struct mo_token_exchange *t, struct mo_httpc *http,
                          const struct mo_config *cfg,
                          const struct mo_config_mcp *s, const char *url,
                          struct mo_span person, struct mo_auth **out,
                          struct mo_err *e);
void mo_token_exchange_release(struct mo_token_exchange *t, const char *server,
                               struct mo_span person);

#endif
