/*
 * api_job.c - see api_job.h.
 */
#include "web/api_export.h"

#include <stdio.h>

#include "base/mem.h"
#include "codec/http/url.h"

/* Sessions of one person that a search looks at: so many fit into j->arg. */
#define SESSIONS_MAX (unsigned)(MO_API_ARG_MAX / (MO_SESSION_ID_MAX + 1))

static void job_free(struct mo_api_job *j)
{
    mo_buf_fini(&j->out);
    mo_buf_fini(&j->arg);
    mo_buf_fini(&j->text);
    mo_buf_fini(&j->owner);
    mo_api_export_free(j->export);
    mo_api_import_free(j->import);
    mo_api_link_free(j->link);
    mo_free(j);
}

static void on_gone(struct mo_req *rq)
{
    struct mo_api_job *j = rq->data;

    j->rq = NULL;
    if (j->answered)
        job_free(j);
}

struct mo_api_job *mo_api_job_new(struct mo_api *api, struct mo_req *rq)
{
    struct mo_api_job *j = mo_new(struct mo_api_job);

    if (j == NULL) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return NULL;
    }
    j->api = api;
    j->rq = rq;
    j->status = 200;
    memcpy(j->caller, rq->caller, sizeof(j->caller));
    mo_buf_init(&j->arg, MO_API_ARG_MAX);
    mo_list_init(&j->node);
    mo_buf_init(&j->owner, MO_REQ_CALLER_MAX);
    mo_buf_init(&j->text, MO_API_ARG_MAX);
    mo_buf_init(&j->out, MO_API_ANSWER_MAX);
    rq->data = j;
    rq->gone = on_gone;
    return j;
}

struct mo_api_job *mo_api_job(struct mo_api *api, struct mo_req *rq)
{
    if (!mo_api_has(rq, api->store, mo_talk_why(api->talk)))
        return NULL;
    return mo_api_job_new(api, rq);
}

struct mo_api_job *mo_api_session_job(struct mo_api *api, struct mo_req *rq)
{
    struct mo_span id = mo_req_segment(rq, 2);
    struct mo_api_job *j = NULL;

    if (id.n > MO_SESSION_ID_MAX)
        mo_req_problem(rq, 404, "not_found", "there is nothing here");
    else
        j = mo_api_job(api, rq);
    if (j)
        memcpy(j->id, id.p, id.n);
    return j;
}

static bool begin(struct mo_api_job *j)
{
    MO_BUG_ON(j->answered);
    j->answered = true;
    if (j->rq)
        return true;
    job_free(j);
    return false;
}

void mo_api_reply(struct mo_api_job *j, const char *ctype)
{
    int bad = mo_buf_err(&j->out);

    if (!begin(j))
        return;
    if (bad)
        mo_req_problem(j->rq, 500, "too_big", "the answer is too big");
    else
        mo_req_reply_long(j->rq, j->status, ctype, mo_buf_view(&j->out));
}

void mo_api_problem(struct mo_api_job *j, int status, const char *code,
                    const char *detail)
{
    if (begin(j))
        mo_req_problem(j->rq, status, code, detail);
}

struct mo_req *mo_api_take(struct mo_api_job *j)
{
    struct mo_req *rq = j->rq;

    MO_BUG_ON(j->answered);
    if (rq) {
        rq->data = NULL;
        rq->gone = NULL;
    }
    job_free(j);
    return rq;
}

void mo_api_over_budget(struct mo_api_job *j, const struct mo_budget_no *no)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu",
                   (unsigned long long)((no->wait_ms + 999) / 1000));
    if (j->rq && no->wait_ms)
        mo_req_header(j->rq, "Retry-After", mo_span_cstr(text));
    mo_api_problem(j, no->is_unknown ? 503 : 429, "over_budget", no->text);
}

void mo_api_json(void *job, struct mo_span json, const struct mo_err *why)
{
    struct mo_api_job *j = job;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    mo_buf_span(&j->out, json);
    mo_api_reply(j, "application/json");
}

void mo_api_done(void *job, const struct mo_err *why)
{
    mo_api_json(job, MO_SPAN("{\"ok\":true}"), why);
}

/* --- errors and simple answers ------------------------------------------- */

const struct mo_api_status *mo_api_status(const struct mo_api_status *rows,
                                          int code)
{
    while (rows->code && rows->code != code)
        rows++;
    return rows;
}

void mo_api_error(struct mo_api_job *j, const struct mo_err *why)
{
    static const struct mo_api_status rows[] = {
        {MO_ENOTFOUND, 404, "not_found"},
        {MO_EINVAL, 400, "bad_request"},
        {MO_EBUSY, 409, "busy"},
        {MO_EUNAVAIL, 503, "state_unavailable"},
        {MO_ETIMEOUT, 504, "timeout"},
        {MO_EPOLICY, 409, "conflict"},
        {0, 500, "failed"},
    };
    const struct mo_api_status *s = mo_api_status(rows, why->code);

    mo_api_problem(j, s->status, s->name, why->msg);
}

void mo_api_answer(struct mo_api_job *j, struct mo_span json,
                   const struct mo_err *why, const struct mo_api_status *rows)
{
    const struct mo_api_status *s = why ? mo_api_status(rows, why->code) : NULL;

    if (!why)
        mo_api_json(j, json, NULL);
    else if (s->code)
        mo_api_problem(j, s->status, s->name, why->msg);
    else
        mo_api_error(j, why);
}

void mo_api_refuse(struct mo_req *rq, const struct mo_api_status *rows,
                   const struct mo_err *why)
{
    const struct mo_api_status *s = mo_api_status(rows, why->code);

    mo_req_problem(rq, s->status, s->name, why->msg);
}

bool mo_api_has(struct mo_req *rq, const void *part, const char *why_not)
{
    if (part == NULL)
        mo_req_problem(rq, 503, "not_ready", why_not);
    return part != NULL;
}

void mo_api_send(struct mo_req *rq, const struct mo_buf *json)
{
    if (mo_buf_err(json))
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(rq, 200, "application/json", mo_buf_view(json));
}

void mo_api_send_ok(struct mo_req *rq)
{
    mo_req_reply(rq, 200, "application/json", MO_SPAN("{\"ok\":true}"));
}

bool mo_api_says(const struct mo_req *rq, const char *key, const char *word)
{
    mo_autobuf struct mo_buf b = {.max = 64};

    return mo_query_get(rq->query, key, &b) == 0 &&
           mo_span_is(mo_buf_view(&b), word);
}

int mo_api_text(struct mo_json body, const char *key, struct mo_arena *a,
                struct mo_span *out)
{
    struct mo_json v = mo_json_get(body, key);

    *out = (struct mo_span){NULL, 0};
    if (!v.p)
        return 0;
    return mo_json_is(v, MO_JSON_STRING) ? mo_json_str(v, a, out) : MO_EINVAL;
}

struct mo_identity mo_api_identity(const struct mo_api *api,
                                   const struct mo_req *rq)
{
    const struct mo_gate *gate = api->talk ? api->talk->gate : NULL;

    return (struct mo_identity){.name = rq->who,
                                .role = (enum mo_role)rq->role,
                                .people = gate ? gate->people : NULL,
                                .groups = rq->groups};
}

/* --- page by page ---------------------------------------------------------
 *
 * To go on, rows are read before the time of the last row, including that
 * time: rows of the same time may follow, and those that were seen already are
 * skipped. A search is not paged: the store looks only at the caller's
 * sessions. */

static void on_page(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why);

static void read_page(struct mo_api_job *j)
{
    struct mo_err e;

    if (mo_store_read(j->api->store, &j->pages.r, on_page, j, &e) < 0)
        mo_api_error(j, &e);
}

/* The i-th row, newest or best first. */
static const struct mo_row *row_at(const struct mo_api_pages *p,
                                   const struct mo_rows *rows, size_t i)
{
    return &rows->v[p->r.newest ? rows->n - 1 - i : i];
}

/* False: there is nothing further that could be asked for. */
static bool go_on(struct mo_api_pages *p, const struct mo_rows *rows)
{
    uint64_t at = rows->n ? row_at(p, rows, rows->n - 1)->at : 0;
    size_t same = 0;

    if (rows->n == 0)
        return false;
    while (same < rows->n && row_at(p, rows, rows->n - 1 - same)->at == at)
        same++;
    if (same == rows->n && p->r.before == at + 1)
        same = 0; /* more rows of one time than a page has */
    p->r.before = same ? at + 1 : at;
    p->same = same;
    return p->r.before > 0;
}

/* True: there are enough of them. */
static bool take_rows(struct mo_api_job *j, const struct mo_rows *rows)
{
    struct mo_api_pages *p = &j->pages;

    for (size_t i = 0; i < rows->n; i++) {
        const struct mo_row *row = row_at(p, rows, i);

        if (i < p->same && row->at + 1 == p->r.before)
            continue; /* seen on the page before */
        if (!p->cb->mine(j, row))
            continue;
        if (p->got == p->want || j->out.len > MO_API_ANSWER_MAX / 2)
            return true;
        p->cb->each(j, row);
        p->got++;
    }
    return false;
}

/* True: the store gives rows of other people, too. */
static bool must_pick(const struct mo_api_job *j)
{
    return j->caller[0] && j->pages.r.among.n == 0;
}

static void on_page(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why)
        mo_api_error(j, why);
    else if (j->rq == NULL)
        mo_api_problem(j, 408, "gone", "nobody waits for it");
    else if (take_rows(j, rows))
        j->pages.cb->end(j, true);
    else if (!rows->more || !must_pick(j) || !go_on(&j->pages, rows))
        j->pages.cb->end(j, rows->more && !must_pick(j));
    else
        read_page(j);
}

void mo_api_pages(struct mo_api_job *j, const struct mo_read *r,
                  const struct mo_api_pages_cb *cb)
{
    struct mo_api_pages *p = &j->pages;

    *p = (struct mo_api_pages){.r = *r, .want = r->limit, .cb = cb};
    mo_buf_set(&j->text, r->text);
    p->r.text = mo_buf_view(&j->text);
    if (must_pick(j))
        p->r.limit = MO_STORE_ROWS_MAX;
    if (mo_buf_err(&j->text))
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        read_page(j);
}

/* --- the caller's -------------------------------------------------------- */

bool mo_api_row_is_mine(struct mo_api_job *j, const struct mo_row *row)
{
    struct mo_json_doc doc;

    if (!j->caller[0])
        return true;
    return mo_json_parse(row->doc, 0, &doc, NULL) == 0 &&
           mo_json_str_eq(mo_json_get(doc.root, "owner"),
                          mo_span_cstr(j->caller));
}

enum mo_share mo_api_row_share(const struct mo_api_job *j,
                               const struct mo_row *row)
{
    struct mo_identity who;

    if (j->rq == NULL)
        return MO_SHARE_NONE;
    who = mo_api_identity(j->api, j->rq);
    return mo_share_of(row->shares, &who);
}

static bool may_ask(struct mo_api_job *j, const struct mo_row *row)
{
    return mo_api_row_is_mine(j, row) ||
           (j->shared && mo_api_row_share(j, row) >=
                             (j->approves ? MO_SHARE_APPROVE : MO_SHARE_READ));
}

static void on_row(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why)
        mo_api_error(j, why);
    else if (rows->n == 0 || !may_ask(j, &rows->v[0]))
        mo_api_problem(j, 404, "not_found", "there is no such session");
    else if (j->rq == NULL)
        mo_api_problem(j, 408, "gone", "nobody waits for it");
    else
        j->next(j);
}

void mo_api_if_mine(struct mo_api_job *j, mo_api_next *next)
{
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};
    struct mo_err e;

    j->next = next;
    if (!j->caller[0])
        next(j);
    else if (mo_store_read(j->api->store, &r, on_row, j, &e) < 0)
        mo_api_error(j, &e);
}

void mo_api_if_shared(struct mo_api_job *j, mo_api_next *next)
{
    j->shared = true;
    mo_api_if_mine(j, next);
}

void mo_api_if_approver(struct mo_api_job *j, mo_api_next *next)
{
    j->approves = true;
    mo_api_if_shared(j, next);
}

/* Their ids, each with a line end: no id has one. */
static void add_session(struct mo_api_job *j, const struct mo_row *row)
{
    mo_buf_span(&j->arg, row->session);
    mo_buf_putc(&j->arg, '\n');
}

static void on_sessions(struct mo_api_job *j, bool more)
{
    (void)more; /* the last used ones */
    if (mo_buf_err(&j->arg))
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        j->next(j);
}

void mo_api_find_mine(struct mo_api_job *j, mo_api_next *next)
{
    static const struct mo_api_pages_cb cb = {mo_api_row_is_mine, add_session,
                                              on_sessions};
    const struct mo_read r = {
        .kind = MO_READ_SESSIONS, .limit = SESSIONS_MAX, .newest = true};

    j->next = next;
    if (j->caller[0])
        mo_api_pages(j, &r, &cb);
    else
        next(j);
}

bool mo_api_among(struct mo_api_job *j, const struct mo_row *row)
{
    struct mo_span rest = mo_buf_view(&j->arg);

    if (!j->caller[0])
        return true;
    while (rest.n > 0)
        if (mo_span_eq(mo_span_cut(&rest, '\n'), row->session))
            return true;
    return false;
}
