#include "web/api_everywhere.h"

#include "peer/others.h"
#include "web/api_job.h"

#define URL_MAX   ((size_t)32 * 1024)
#define FACTS_MAX ((size_t)16 * 1024)
#define LIST_MAX  ((size_t)64 * 1024 * 1024)

struct round { /* one request to all others */
    struct mo_api *api;
    struct mo_api_job *job; /* NULL: answered */
    bool is_list;
    const char *method;
    struct mo_api_question about;
    unsigned waiting;
    unsigned silent; /* of them gave no answer */
    struct mo_buf url, facts, body;
    struct mo_buf items;   /* elements of the list, with commas */
    struct mo_buf changed; /* the same, of changed tools */
    int status;            /* of the process that has it; 0: none yet */
    struct mo_buf answer;
};

bool mo_api_asks_others(const struct mo_api *api, const struct mo_req *rq)
{
    return api->relay && !rq->from;
}

static void round_free(struct round *r)
{
    mo_buf_fini(&r->url);
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

static void reply_list(struct round *r, struct mo_api_job *j)
{
    struct mo_buf *out = &j->out;

    (void)mo_buf_puts(out, "{\"approvals\":[");
    (void)mo_buf_span(out, mo_buf_view(&r->items));
    (void)mo_buf_puts(out, "],\"changed\":[");
    (void)mo_buf_span(out, mo_buf_view(&r->changed));
    (void)mo_buf_puts(out, "]}");
    if (!out->err)
        out->err = r->items.err ? r->items.err : r->changed.err;
    mo_api_reply(j, "application/json");
}

static void reply_answer(struct round *r, struct mo_api_job *j)
{
    if (r->status) {
        j->status = r->status;
        (void)mo_buf_span(&j->out, mo_buf_view(&r->answer));
        mo_api_reply(j, r->status < 300 ? r->about.ctype
                                        : "application/problem+json");
    } else if (r->silent) {
        mo_api_problem(j, 503, "unavailable",
                       "another server did not answer, and it may be there; "
                       "try again");
    } else {
        mo_api_problem(j, r->about.status, r->about.code, r->about.none);
    }
}

static void reply(struct round *r)
{
    struct mo_api_job *j = mo_take_ptr(&r->job);

    if (j && r->is_list)
        reply_list(r, j);
    else if (j)
        reply_answer(r, j);
}

/* One process less is waited for. */
static void end_one(struct round *r)
{
    r->waiting--;
    if (r->waiting == 0 || (r->status && r->about.is_only))
        reply(r);
    if (r->waiting == 0)
        round_free(r);
}

static void on_answer(void *ctx, int status, struct mo_span body)
{
    struct round *r = ctx;

    if (status == 0)
        r->silent++;
    else if (r->is_list && status == 200)
        add_items(r, body);
    else if (!r->is_list && status != r->about.absent &&
             (!r->status || status < 300)) {
        r->status = status;
        mo_buf_reset(&r->answer);
        (void)mo_buf_span(&r->answer, body);
    }
    end_one(r);
}

static void on_others(void *ctx, const struct mo_other *v, size_t n,
                      const struct mo_err *why)
{
    struct round *r = ctx;
    struct mo_relay_ask q = {
        .method = r->is_list ? "GET" : r->method,
        .url = mo_buf_cstr(&r->url),
        .facts = mo_buf_view(&r->facts),
        .body = r->is_list ? mo_span(NULL, 0) : mo_buf_view(&r->body),
        .ms = r->about.ms,
    };
    struct mo_err e;

    r->silent += why != NULL;
    r->waiting = 1;
    for (size_t i = 0; !why && i < n; i++) {
        q.path = v[i].path;
        if (r->api->relay && /* the server ends otherwise */
            mo_relay_ask(r->api->relay, &q, on_answer, r, &e) == 0)
            r->waiting++;
        else
            r->silent++;
    }
    end_one(r);
}

static struct round *round_new(struct mo_api *api, struct mo_req *rq)
{
    struct round *r = mo_new(struct round);

    if (!r)
        return NULL;
    r->api = api;
    r->method = mo_http_method_name(rq->head->method);
    mo_buf_init(&r->url, URL_MAX);
    mo_buf_init(&r->facts, FACTS_MAX);
    mo_buf_init(&r->body, LIST_MAX);
    mo_buf_init(&r->items, LIST_MAX);
    mo_buf_init(&r->changed, LIST_MAX);
    mo_buf_init(&r->answer, LIST_MAX);
    if (mo_buf_span(&r->url, rq->head->target) < 0 ||
        mo_relay_facts(api->relay, rq, &r->facts) < 0) {
        round_free(r);
        return NULL;
    }
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

void mo_api_ask_everywhere(struct mo_api *api, struct mo_req *rq,
                           struct mo_span body,
                           const struct mo_api_question *about)
{
    struct round *r = round_new(api, rq);

    if (!r) {
        mo_req_problem(rq, about->status, about->code, about->none);
        return;
    }
    r->about = *about;
    (void)mo_buf_span(&r->body, body);
    start_round(r, rq);
}

void mo_api_decide_everywhere(struct mo_api *api, struct mo_req *rq,
                              struct mo_span body, const char *none)
{
    const struct mo_api_question q = {.absent = 404,
                                      .ctype = "application/json",
                                      .status = 404,
                                      .code = "not_found",
                                      .none = none};

    mo_api_ask_everywhere(api, rq, body, &q);
}

void mo_api_ask_holder(struct mo_api *api, struct mo_req *rq,
                       struct mo_span body, const char *none)
{
    const struct mo_api_question q = {.absent = MO_API_NOT_OPEN,
                                      .is_only = true,
                                      .ctype = "application/json",
                                      .status = 404,
                                      .code = "not_found",
                                      .none = none};

    mo_api_ask_everywhere(api, rq, body, &q);
}
