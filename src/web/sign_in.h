/* sign_in.h - exchanges a token for a cookie, in a browser.
 *
 *   GET /?token=TOKEN     the link that `serve` and `open` print
 *   POST /sign-in         the form of the page below, token=TOKEN
 *   POST /sign-out        removes the cookie from the browser; a person of a
 *                         provider (oidc.h) is signed out everywhere
 *   /sign-in.html         what a person without a cookie sees (ui/public)
 *
 * Signing in answers with the cookie (gate.h) and a redirect, which removes the
 * token from the address bar. A page of another site cannot sign anyone in: its
 * person would then talk, unaware, as somebody else. All of it is written to
 * the audit log, without the token. */
#ifndef MO_WEB_SIGN_IN_H
#define MO_WEB_SIGN_IN_H

#include "web/site.h"

/* True if the request was such a link, and is answered. */
bool mo_sign_in_by_link(struct mo_site *s, struct mo_req *rq);
/* Answer with the page that says what to do. */
void mo_sign_in_page(struct mo_site *s, struct mo_req *rq, int status);
/* Write to the audit log that rq->who signed in or out. */
void mo_sign_in_note(struct mo_site *s, const struct mo_req *rq,
                     const char *outcome, const char *door);
void mo_sign_in_routes(struct mo_site *s);

#endif
