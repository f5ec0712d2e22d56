/* oidc.h - signs a browser in with an OpenID Connect provider.
 *
 *   GET /sign-in/NAME            redirects to the provider
 *   GET /sign-in/NAME/callback   comes back from it: sets the login's cookie
 *
 * Authorization code with PKCE, state and nonce. What must be known when the
 * browser comes back is in a sealed cookie of this browser, valid for
 * MO_OIDC_TRY_S, so nobody can finish a sign-in that another browser began, and
 * a flood of beginnings costs no memory. Each provider has its own callback,
 * and `iss` is checked, so one provider cannot answer for another. */
#ifndef MO_WEB_OIDC_H
#define MO_WEB_OIDC_H

#include "web/site.h"

#define MO_OIDC_TRY_S 600u

/* Makes the key of that cookie. Before workers are forked: all have the same.
 */
void mo_oidc_prepare(void);
void mo_oidc_routes(struct mo_site *s);
/* Appends a link to each provider in which one can sign in, as HTML. */
void mo_oidc_put_links(const struct mo_people *people, struct mo_buf *html);

#endif
