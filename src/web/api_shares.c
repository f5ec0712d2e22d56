/*
 * api_shares.c - with whom a conversation is shared (people/share.h); see
 * api.h.
 *
 * A change is three steps: the audit row is on disk, the store has the new
 * document, readers who lost the conversation are closed. Changes of one
 * session run one after the other, so none is lost.
 */
#include "agent/chat/chat.h"
#include "people/share.h"
#include "web/api_job.h"

#define BODY_MAX ((size_t)4096)

static const char *name_of(const struct mo_api_job *j)
{
    return j->rq->who[0] ? j->rq->who : "operator";
}

static void put_shares(struct mo_api_job *j, struct mo_span doc)
{
    struct mo_jw w = mo_jw_object(&j->out);

    mo_jw_member_raw(&w, "shares", doc.n ? doc : MO_SPAN("[]"));
    mo_jw_end(&w);
}

/* --- one change after the other ------------------------------------------ */

static void read_shares(struct mo_api_job *j);

static void finish_change(struct mo_api_job *j)
{
    mo_list_del(&j->node);
    mo_list_init(&j->node);
    mo_list_each_entry (next, &j->api->sharing, struct mo_api_job, node)
        if (strcmp(next->id, j->id) == 0) {
            read_shares(next);
            return;
        }
}

static void fail_change(struct mo_api_job *j, const struct mo_err *why)
{
    finish_change(j);
    mo_api_error(j, why);
}

static void queue_change(struct mo_api_job *j)
{
    bool first = true;

    mo_list_each_entry (other, &j->api->sharing, struct mo_api_job, node)
        first &= strcmp(other->id, j->id) != 0;
    mo_list_push(&j->api->sharing, &j->node);
    if (first)
        read_shares(j);
}

/* --- the change ---------------------------------------------------------- */

static void on_stored(void *ctx, const struct mo_written *w,
                      const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    (void)w;
    if (why) {
        fail_change(j, why);
        return;
    }
    if (j->api->agent)
        mo_agent_shared(j->api->agent, mo_span_cstr(j->id),
                        mo_buf_cstr(&j->owner), mo_buf_view(&j->text));
    put_shares(j, mo_buf_view(&j->text));
    finish_change(j);
    mo_api_reply(j, "application/json");
}

static void on_audited(void *ctx, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    const struct mo_write w = {.kind = MO_WRITE_SHARE,
                               .doc = mo_buf_view(&j->text)};
    const struct mo_store_batch b = {
        .session = mo_span_cstr(j->id), .writes = &w, .n = 1};
    struct mo_err e;

    if (why)
        fail_change(j, why);
    else if (mo_store_write(j->api->store, &b, on_stored, j, &e) < 0)
        fail_change(j, &e);
}

/* The row of the audit log; then the change. */
static void audit_change(struct mo_api_job *j)
{
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("share"),
        .name = mo_buf_view(&j->arg),
        .action =
            j->share ? mo_share_name((enum mo_share)j->share) : "withdrawn",
        .session = mo_span_cstr(j->id),
        .decided_by = name_of(j),
        .via = j->rq->door,
    };
    struct mo_err e;

    if (mo_audit_first(mo_approvals_audit(j->api->approvals), &row, on_audited,
                       j, &e) < 0)
        fail_change(j, &e);
}

static int make_change(struct mo_api_job *j, struct mo_span doc,
                       struct mo_err *e)
{
    const struct mo_share_change c = {
        .with = mo_buf_view(&j->arg),
        .may = (enum mo_share)j->share,
        .by = name_of(j),
        .at = mo_wall_ms(),
    };

    mo_buf_reset(&j->text);
    if (j->arg.len == 0) /* all are withdrawn */
        return mo_buf_puts(&j->text, "[]");
    return mo_shares_change(doc, &c, &j->text, e);
}

static void on_row(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_session_row row = {.created = 0};
    struct mo_err e;

    if (why) {
        fail_change(j, why);
        return;
    }
    if (j->rq == NULL) {
        mo_fail(&e, MO_ETIMEOUT, "nobody waits for it");
    } else if (rows->n == 0 || mo_session_row(rows->v[0].doc, &row, NULL) < 0) {
        mo_fail(&e, MO_ENOTFOUND, "there is no such session");
    } else if (make_change(j, rows->v[0].shares, &e) == 0) {
        mo_buf_reset(&j->owner);
        (void)mo_buf_puts(&j->owner, row.owner);
        audit_change(j);
        return;
    }
    fail_change(j, &e);
}

static void read_shares(struct mo_api_job *j)
{
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};
    struct mo_err e;

    if (mo_store_read(j->api->store, &r, on_row, j, &e) < 0)
        fail_change(j, &e);
}

/* --- requests ------------------------------------------------------------ */

static void on_listed(void *ctx, const struct mo_rows *rows,
                      const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why) {
        mo_api_error(j, why);
    } else if (rows->n == 0) {
        mo_api_problem(j, 404, "not_found", "there is no such session");
    } else {
        put_shares(j, rows->v[0].shares);
        mo_api_reply(j, "application/json");
    }
}

static void list_shares(struct mo_api_job *j)
{
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};
    struct mo_err e;

    if (mo_store_read(j->api->store, &r, on_listed, j, &e) < 0)
        mo_api_error(j, &e);
}

enum { LIST, WITHDRAW_ALL };

/* True: another worker makes the changes of this session, one after the other,
 * and answers. */
static bool is_elsewhere(struct mo_api *api, struct mo_req *rq,
                         struct mo_span body)
{
    return api->elsewhere && !mo_req_is_inner(rq) &&
           api->elsewhere(api->elsewhere_ctx, rq, mo_req_segment(rq, 2), body);
}

static void on_request(void *ctx, struct mo_req *rq)
{
    int what = rq->arg;
    struct mo_api_job *j = NULL;

    if (what != LIST && is_elsewhere(ctx, rq, mo_span(NULL, 0)))
        return;
    j = mo_api_session_job(ctx, rq);
    if (j)
        mo_api_if_mine(j, what == LIST ? list_shares : queue_change);
}

static void put_share(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_job *j = NULL;
    struct mo_json_doc doc;
    struct mo_err e;

    if (is_elsewhere(rq->data, rq, body))
        return;
    j = mo_api_session_job(rq->data, rq);
    if (j == NULL)
        return;
    if (mo_json_parse(body, 0, &doc, NULL) == 0)
        j->share = mo_share_named(mo_json_get(doc.root, "may"));
    else
        j->share = -1;
    if (j->share < 0 ||
        mo_json_str_buf(mo_json_get(doc.root, "with"), &j->arg) < 0)
        mo_api_problem(j, 400, "bad_request",
                       "the body is {with: string, may: \"read\", \"approve\" "
                       "or \"none\"}");
    else if (mo_identity_check(mo_buf_view(&j->arg), &e) < 0)
        mo_api_error(j, &e);
    else
        mo_api_if_mine(j, queue_change);
}

int mo_api_shares_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/sessions/{id}/shares", 0, on_request, .arg = LIST},
        {MO_HTTP_PUT, "/api/sessions/{id}/shares", 0, .body = put_share,
         .max = BODY_MAX},
        {MO_HTTP_DELETE, "/api/sessions/{id}/shares", 0, on_request,
         .arg = WITHDRAW_ALL},
    };

    mo_list_init(&api->sharing);
    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
