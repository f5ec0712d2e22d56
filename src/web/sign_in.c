#include "web/sign_in.h"

#include "codec/http/url.h"
#include "web/page.h"

#define FORM_MAX ((size_t)2048)

static void redirect(struct mo_req *rq, const char *where)
{
    mo_req_header(rq, "Location", mo_span_cstr(where));
    mo_req_reply(rq, 303, NULL, mo_span(NULL, 0));
}

/* Sign in with the token of a query or form. */
static bool sign_in(const struct mo_gate *g, struct mo_req *rq,
                    struct mo_span query)
{
    mo_autowipe struct mo_buf token = {.max = MO_GATE_TOKEN_MAX};
    mo_autobuf struct mo_buf cookie = {.max = FORM_MAX};

    if (mo_query_get(query, "token", &token) < 0 ||
        mo_gate_cookie(g, rq, mo_buf_view(&token), &cookie) < 0)
        return false;
    mo_req_header(rq, "Set-Cookie", mo_buf_view(&cookie));
    redirect(rq, "/");
    return true;
}

/* A page of another site made the browser come here. Browsers do not send
 * Sec-Fetch-Site to other machines without TLS, but a Referer, unless the page
 * forbids it. */
static bool comes_from_elsewhere(const struct mo_req *rq)
{
    struct mo_span from = mo_http_get(rq->head, "Referer");
    struct mo_host host;
    struct mo_url page;

    if (mo_gate_is_foreign(rq))
        return true;
    return from.p && (mo_url_parse(from, &page, NULL) < 0 ||
                      mo_host_parse(mo_http_get(rq->head, "Host"),
                                    mo_req_is_tls(rq) ? 443 : 80, &host) < 0 ||
                      !mo_origin_is_host(&page, &host, mo_req_is_tls(rq)));
}

bool mo_sign_in_by_link(const struct mo_gate *g, struct mo_req *rq)
{
    enum mo_http_method m = rq->head->method;

    return mo_gate_has_tokens(g) && mo_span_is(rq->path, "/") && rq->query.n &&
           (m == MO_HTTP_GET || m == MO_HTTP_HEAD) &&
           !comes_from_elsewhere(rq) && !mo_gate_check_page(g, rq).status &&
           sign_in(g, rq, rq->query);
}

/* A wrong token counts like one in a header: see mo_site_strike(). */
static void on_form(struct mo_req *rq, struct mo_span body)
{
    struct mo_site *s = rq->data;
    const struct mo_gate *g = mo_site_gate_now(s);
    struct mo_refusal no = mo_gate_check_page(g, rq);

    if (!no.status && comes_from_elsewhere(rq))
        no = (struct mo_refusal){403, "origin_refused",
                                 "another site cannot sign you in here"};
    if (!no.status && !mo_gate_has_tokens(g))
        redirect(rq, "/");
    else if (!no.status && sign_in(g, rq, body))
        return;
    else if (!no.status && mo_site_strike(s, rq, &no))
        redirect(rq, "/sign-in.html#wrong");
    else
        mo_req_problem(rq, no.status, no.code, no.detail);
}

void mo_sign_in_page(struct mo_req *rq)
{
    const struct mo_asset *a = mo_page_asset("/sign-in.html");

    if (a)
        mo_req_reply(rq, 401, a->type, a->plain);
    else
        mo_req_problem(rq, 401, "token_required",
                       "`mcp-orchestrator open` prints a link that signs in");
}

void mo_sign_in_routes(struct mo_site *s)
{
    const struct mo_route form = {MO_HTTP_POST,    "/sign-in",
                                  MO_ROUTE_OPEN,   .ctx = s,
                                  .body = on_form, .max = FORM_MAX};

    (void)mo_site_route(s, &form);
}
