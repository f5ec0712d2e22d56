#include "web/sign_in.h"

#include "codec/http/url.h"
#include "web/oidc.h"
#include "web/page.h"

#define FORM_MAX ((size_t)2048)
#define PAGE_MAX ((size_t)64 * 1024)

static void redirect(struct mo_req *rq, const char *where)
{
    mo_req_header(rq, "Location", mo_span_cstr(where));
    mo_req_reply(rq, 303, NULL, mo_span(NULL, 0));
}

void mo_sign_in_note(struct mo_site *s, const struct mo_req *rq,
                     const char *outcome, const char *door)
{
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("access"),
        .outcome = outcome,
        .via = door,
        .who = mo_span_cstr(rq->who),
        .peer = mo_span_cstr(mo_req_peer(rq)),
    };

    if (mo_site_audit_now(s))
        mo_audit_note(mo_site_audit_now(s), &row);
}

/* Sign in with the token of a query or form. */
static bool sign_in(struct mo_site *s, struct mo_req *rq, struct mo_span query,
                    const char *door)
{
    mo_autowipe struct mo_buf token = {.max = MO_GATE_TOKEN_MAX};
    mo_autobuf struct mo_buf cookie = {.max = FORM_MAX};

    if (mo_query_get(query, "token", &token) < 0 ||
        mo_gate_cookie(mo_site_gate_now(s), rq, mo_buf_view(&token), &cookie) <
            0) {
        mo_site_note_refused(s, rq, "token_required", door);
        return false;
    }
    mo_sign_in_note(s, rq, "signed in", door);
    mo_req_header(rq, "Set-Cookie", mo_buf_view(&cookie));
    redirect(rq, "/");
    return true;
}

/* A page of another site made the browser come here. Browsers do not send
 * Sec-Fetch-Site to other machines without TLS, but a Referer, unless the page
 * forbids it. */
static bool comes_from_elsewhere(const struct mo_gate *g,
                                 const struct mo_req *rq)
{
    return mo_gate_is_foreign(rq) || !mo_gate_referer_ok(g, rq);
}

static bool is_link(const struct mo_gate *g, const struct mo_req *rq)
{
    enum mo_http_method m = rq->head->method;
    mo_autowipe struct mo_buf token = {.max = MO_GATE_TOKEN_MAX};

    return mo_gate_has_tokens(g) && mo_span_is(rq->path, "/") && rq->query.n &&
           (m == MO_HTTP_GET || m == MO_HTTP_HEAD) &&
           mo_query_get(rq->query, "token", &token) != MO_ENOTFOUND;
}

bool mo_sign_in_by_link(struct mo_site *s, struct mo_req *rq)
{
    const struct mo_gate *g = mo_site_gate_now(s);

    if (!is_link(g, rq))
        return false;
    if (comes_from_elsewhere(g, rq)) {
        mo_site_note_refused(s, rq, "origin_refused", "link");
        return false;
    }
    return !mo_gate_check_page(g, rq).status &&
           sign_in(s, rq, rq->query, "link");
}

static void refuse_form(struct mo_site *s, struct mo_req *rq,
                        struct mo_refusal no)
{
    mo_site_note_refused(s, rq, no.code, "form");
    mo_req_problem(rq, no.status, no.code, no.detail);
}

/* A wrong token counts like one in a header: see mo_site_strike(). */
static void on_form(struct mo_req *rq, struct mo_span body)
{
    struct mo_site *s = rq->data;
    const struct mo_gate *g = mo_site_gate_now(s);
    struct mo_refusal no = mo_gate_check_page(g, rq);

    if (!no.status && comes_from_elsewhere(g, rq))
        no = (struct mo_refusal){403, "origin_refused",
                                 "another site cannot sign you in here"};
    if (!no.status && !mo_gate_has_tokens(g))
        redirect(rq, "/");
    else if (no.status)
        refuse_form(s, rq, no);
    else if (sign_in(s, rq, body, "form"))
        return;
    else if (mo_site_strike(s, rq, &no))
        redirect(rq, "/sign-in.html#wrong");
    else
        mo_req_problem(rq, no.status, no.code, no.detail);
}

/* The cookie of another browser stays valid: it is a digest, and not kept. */
static void on_sign_out(void *ctx, struct mo_req *rq)
{
    mo_autobuf struct mo_buf cookie = {.max = FORM_MAX};

    if (mo_gate_no_cookie(rq, &cookie) == 0)
        mo_req_header(rq, "Set-Cookie", mo_buf_view(&cookie));
    mo_gate_log_out(mo_site_gate_now(ctx), rq);
    mo_sign_in_note(ctx, rq, "signed out", rq->door);
    redirect(rq, "/"); /* shows how to sign in */
}

void mo_sign_in_page(struct mo_site *s, struct mo_req *rq, int status)
{
    static const char mark[] = "<!-- providers -->";
    const struct mo_people *people = mo_site_gate_now(s)->people;
    const struct mo_asset *a = mo_page_asset("/sign-in.html");
    ptrdiff_t at = a ? mo_span_search(a->plain, mo_span_cstr(mark)) : -1;
    mo_autobuf struct mo_buf b = {.max = PAGE_MAX};

    if (!a) {
        mo_req_problem(rq, 401, "token_required",
                       "`mcp-orchestrator open` prints a link that signs in");
        return;
    }
    if (at < 0 || !people) {
        mo_req_reply(rq, status, a->type, a->plain);
        return;
    }
    (void)mo_buf_span(&b, mo_span_head(a->plain, (size_t)at));
    mo_oidc_put_links(people, &b);
    (void)mo_buf_span(&b, mo_span_skip(a->plain, (size_t)at));
    mo_req_reply(rq, status, a->type, mo_buf_view(&b));
}

static void on_page(void *ctx, struct mo_req *rq)
{
    mo_sign_in_page(ctx, rq, 200);
}

void mo_sign_in_routes(struct mo_site *s)
{
    const struct mo_route form = {MO_HTTP_POST, "/sign-in", .ctx = s,
                                  .body = on_form, .max = FORM_MAX};
    const struct mo_route out = {MO_HTTP_POST, "/sign-out", 0, on_sign_out, s};

    const struct mo_route page = {MO_HTTP_GET, "/sign-in.html", MO_ROUTE_OPEN,
                                  on_page, s};

    (void)mo_site_route(s, &page);
    (void)mo_site_route(s, &form);
    (void)mo_site_route(s, &out);
}
