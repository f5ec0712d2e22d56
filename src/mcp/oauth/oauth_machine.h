/* oauth_machine.h - tokens without a person in a browser.
 *
 *   MO_MACHINE_CLIENT      client credentials (RFC 6749 4.4): as the client
 *   MO_MACHINE_WORKLOAD    a JWT that proves who this workload is (RFC
 * 7523 2.1) MO_MACHINE_ENTERPRISE  the ID token of a person: the enterprise's
 * identity provider exchanges it (RFC 8693) for a grant that the server's
 * issuer accepts (ID-JAG, RFC 7523)
 *
 * The client proves itself by its secret, or by a JWT that it signs with its
 * private key (private_key_jwt, RFC 7523 2.2), which is valid for a minute at
 * one issuer. Assertions are read from their file for each token: others renew
 * that file. Nothing is tried again after a refusal, and no other grant. */
#ifndef MO_MCP_OAUTH_OAUTH_MACHINE_H
#define MO_MCP_OAUTH_OAUTH_MACHINE_H

#include "base/mem.h"
#include "base/str.h"

#define MO_MACHINE_TEXT_MAX ((size_t)16 * 1024) /* of an assertion */

enum mo_machine_grant {
    MO_MACHINE_NONE, /* a person signs in */
    MO_MACHINE_CLIENT,
    MO_MACHINE_WORKLOAD,
    MO_MACHINE_ENTERPRISE,
};

struct mo_oauth_machine { /* texts or NULL */
    enum mo_machine_grant grant;
    const char *private_key;    /* PEM */
    const char *assertion;      /* the workload's JWT or the ID token, */
    const char *assertion_file; /* or where it is */
    const char *idp_token;      /* token endpoint of the identity provider */
    const char *idp_client, *idp_secret;
};

struct mo_oauth_client;
struct mo_oauth_try;

/* Reads the assertion. MO_ENOTFOUND: there is none. */
int mo_machine_assertion(const struct mo_oauth_machine *m, struct mo_buf *out,
                         struct mo_err *e);
/* Appends client_assertion and its type to a form: signed now, for this
 * issuer. */
int mo_machine_put_key_proof(struct mo_buf *b, const char *private_key,
                             const char *client, const char *issuer,
                             struct mo_err *e);

/* Forms for token endpoints; the client's part is not in them. */
int mo_machine_client_body(struct mo_buf *b, const struct mo_oauth_try *t);
int mo_machine_bearer_body(struct mo_buf *b, const struct mo_oauth_try *t,
                           const char *assertion);
int mo_machine_exchange_body(struct mo_buf *b, const struct mo_oauth_machine *m,
                             const struct mo_oauth_try *t, const char *issuer,
                             const char *id_token);
/* The grant in the identity provider's answer. */
int mo_machine_exchange_parse(struct mo_arena *a, struct mo_span json,
                              const char **grant, struct mo_err *e);

#endif
