#include "web/api_everywhere.h"

#include <stdio.h>

#include "peer/others.h"
#include "web/api_job.h"

#define URL_MAX   1024
#define FACTS_MAX ((size_t)16 * 1024)
#define LIST_MAX  ((size_t)64 * 1024 * 1024)

struct round { /* one request to all others */
    struct mo_api *api;
    struct mo_api_job *job;
    bool is_list;
    const char *method;
    unsigned waiting;
    unsigned silent; /* of them gave no answer */
    char url[URL_MAX];
    struct mo_buf facts, body;
    struct mo_buf items;   /* elements of the list, with commas */
    struct mo_buf changed; /* the same, of changed tools */
    const char *none;      /* no process has it */
    int absent;            /* status of a process that does not have it */
    int status;            /* of the process that has the call; 0: none yet */
    struct mo_buf answer;
};

bool mo_api_asks_others(const struct mo_api *api, const struct mo_req *rq)
{
    return api->relay && !rq->from;
}

static void round_free(struct round *r)
{
    mo_buf_fini(&r->facts);
    mo_buf_fini(&r->body);
    mo_buf_fini(&r->items);
    mo_buf_fini(&r->changed);
    mo_buf_fini(&r->answer);
    mo_free(r);
}

static void add_item(struct mo_buf *to, struct mo_json item)
{
    if (to->len)
        (void)mo_buf_putc(to, ',');
    (void)mo_buf_span(to, mo_json_text(item));
}

static bool is_same(struct mo_json a, struct mo_json b, const char *key)
{
    return mo_span_eq(mo_json_text(mo_json_get(a, key)),
                      mo_json_text(mo_json_get(b, key)));
}

/* Several processes may have noticed the change. */
static bool has_changed(struct round *r, struct mo_json tool)
{
    mo_autobuf struct mo_buf all = {.max = LIST_MAX};
    struct mo_json_doc d;

    (void)mo_buf_putc(&all, '[');
    (void)mo_buf_span(&all, mo_buf_view(&r->changed));
    (void)mo_buf_putc(&all, ']');
    if (mo_json_parse(mo_buf_view(&all), 0, &d, NULL) < 0)
        return false;
    mo_json_each (at, d.root)
        if (is_same(at.val, tool, "server") && is_same(at.val, tool, "tool"))
            return true;
    return false;
}

static void add_items(struct round *r, struct mo_span json)
{
    struct mo_json_doc d;

    if (mo_json_parse(json, 0, &d, NULL) < 0)
        return;
    mo_json_each (at, mo_json_get(d.root, "approvals"))
        add_item(&r->items, at.val);
    mo_json_each (at, mo_json_get(d.root, "changed"))
        if (!has_changed(r, at.val))
            add_item(&r->changed, at.val);
}

static void reply_list(struct round *r)
{
    struct mo_buf *out = &r->job->out;

    (void)mo_buf_puts(out, "{\"approvals\":[");
    (void)mo_buf_span(out, mo_buf_view(&r->items));
    (void)mo_buf_puts(out, "],\"changed\":[");
    (void)mo_buf_span(out, mo_buf_view(&r->changed));
    (void)mo_buf_puts(out, "]}");
    if (!out->err)
        out->err = r->items.err ? r->items.err : r->changed.err;
    mo_api_reply(r->job, "application/json");
}

static void reply_decision(struct round *r)
{
    if (r->status) {
        r->job->status = r->status;
        (void)mo_buf_span(&r->job->out, mo_buf_view(&r->answer));
        mo_api_reply(r->job, r->status < 300 ? "application/json"
                                             : "application/problem+json");
    } else if (r->silent) {
        mo_api_problem(r->job, 503, "unavailable",
                       "another server did not answer, and it may be there; "
                       "try again");
    } else {
        mo_api_problem(r->job, 404, "not_found", r->none);
    }
}

static void end_round(struct round *r)
{
    if (r->is_list)
        reply_list(r);
    else
        reply_decision(r);
    round_free(r);
}

static void on_answer(void *ctx, int status, struct mo_span body)
{
    struct round *r = ctx;

    if (status == 0)
        r->silent++;
    else if (r->is_list && status == 200)
        add_items(r, body);
    else if (!r->is_list && status != r->absent &&
             (!r->status || status < 300)) {
        r->status = status;
        mo_buf_reset(&r->answer);
        (void)mo_buf_span(&r->answer, body);
    }
    if (--r->waiting == 0)
        end_round(r);
}

static void on_others(void *ctx, const struct mo_other *v, size_t n,
                      const struct mo_err *why)
{
    struct round *r = ctx;
    struct mo_relay_ask q = {
        .method = r->is_list ? "GET" : r->method,
        .url = r->url,
        .facts = mo_buf_view(&r->facts),
        .body = r->is_list ? mo_span(NULL, 0) : mo_buf_view(&r->body),
    };
    struct mo_err e;

    r->silent += why != NULL;
    r->waiting = 1;
    for (size_t i = 0; !why && i < n; i++) {
        q.path = v[i].path;
        if (mo_relay_ask(r->api->relay, &q, on_answer, r, &e) == 0)
            r->waiting++;
        else
            r->silent++;
    }
    if (--r->waiting == 0)
        end_round(r);
}

static struct round *round_new(struct mo_api *api, struct mo_req *rq)
{
    struct round *r = mo_new(struct round);
    struct mo_span target = rq->head->target;

    if (!r)
        return NULL;
    r->api = api;
    r->method = mo_http_method_name(rq->head->method);
    mo_buf_init(&r->facts, FACTS_MAX);
    mo_buf_init(&r->body, LIST_MAX);
    mo_buf_init(&r->items, LIST_MAX);
    mo_buf_init(&r->changed, LIST_MAX);
    mo_buf_init(&r->answer, LIST_MAX);
    if (target.n >= sizeof(r->url) ||
        mo_relay_facts(api->relay, rq, &r->facts) < 0) {
        round_free(r);
        return NULL;
    }
    (void)snprintf(r->url, sizeof(r->url), "%.*s", (int)target.n, target.p);
    return r;
}

static void start_round(struct round *r, struct mo_req *rq)
{
    struct mo_err e;

    r->job = mo_api_job_new(r->api, rq);
    if (!r->job)
        round_free(r);
    else if (mo_others_list(r->api->peers, on_others, r, &e) < 0)
        on_others(r, NULL, 0, &e);
}

void mo_api_list_everywhere(struct mo_api *api, struct mo_req *rq,
                            struct mo_span here)
{
    struct round *r = round_new(api, rq);

    if (!r) {
        mo_req_reply(rq, 200, "application/json", here);
        return;
    }
    r->is_list = true;
    add_items(r, here);
    start_round(r, rq);
}

static void ask_everywhere(struct mo_api *api, struct mo_req *rq,
                           struct mo_span body, const char *none, int absent)
{
    struct round *r = round_new(api, rq);

    if (!r) {
        mo_req_problem(rq, 404, "not_found", none);
        return;
    }
    r->none = none;
    r->absent = absent;
    (void)mo_buf_span(&r->body, body);
    start_round(r, rq);
}

void mo_api_decide_everywhere(struct mo_api *api, struct mo_req *rq,
                              struct mo_span body, const char *none)
{
    ask_everywhere(api, rq, body, none, 404);
}

void mo_api_ask_holder(struct mo_api *api, struct mo_req *rq,
                       struct mo_span body, const char *none)
{
    ask_everywhere(api, rq, body, none, MO_API_NOT_OPEN);
}
