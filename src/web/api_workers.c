#include "web/api_workers.h"

#include <stdio.h>

#include "base/mem.h"

#define URL_MAX   1024
#define FACTS_MAX ((size_t)16 * 1024)

struct round { /* one request to all others */
    struct mo_api_job *job;
    const struct mo_merge_rule *rules;
    unsigned waiting;
    size_t n;
    struct mo_buf answers[MO_MERGE_MAX];
};

bool mo_api_is_merged(const struct mo_api_job *j)
{
    return j->rq && (j->rq->from || (j->api->worker && j->api->relay));
}

static void round_free(struct round *r)
{
    for (size_t i = 0; i < r->n; i++)
        mo_buf_fini(&r->answers[i]);
    mo_free(r);
}

static void end_round(struct round *r)
{
    struct mo_json docs[MO_MERGE_MAX];
    struct mo_json_doc d;
    struct mo_api_job *j = r->job;
    struct mo_jw w;
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        if (mo_json_parse(mo_buf_view(&r->answers[i]), 0, &d, NULL) == 0 &&
            mo_json_is(d.root, MO_JSON_OBJECT))
            docs[n++] = d.root;
    mo_jw_init(&w, &j->out);
    if (n > 0)
        mo_merge(&w, docs, n, r->rules);
    else
        j->out.err = MO_ENOMEM;
    round_free(r);
    mo_api_reply(j, "application/json");
}

static void add_answer(struct round *r, struct mo_span body)
{
    struct mo_buf *to = &r->answers[r->n];

    mo_buf_init(to, MO_API_ANSWER_MAX);
    if (mo_buf_span(to, body) < 0)
        mo_buf_fini(to);
    else
        r->n++;
}

static void on_answer(void *ctx, int status, struct mo_span body)
{
    struct round *r = ctx;

    if (status == 200 && r->n < MO_MERGE_MAX)
        add_answer(r, body);
    if (--r->waiting == 0)
        end_round(r);
}

static void ask_all(struct round *r, const struct mo_relay_ask *how)
{
    struct mo_api *api = r->job->api;
    char path[MO_API_WORKER_MAX];
    struct mo_relay_ask q = *how;
    struct mo_err e;

    q.path = path;
    r->waiting = 1;
    for (unsigned i = 0; api->worker(api->elsewhere_ctx, i, path); i++)
        if (path[0] && mo_relay_ask(api->relay, &q, on_answer, r, &e) == 0)
            r->waiting++;
    if (--r->waiting == 0)
        end_round(r);
}

void mo_api_of_all_workers(struct mo_api_job *j,
                           const struct mo_merge_rule *rules)
{
    char url[URL_MAX];
    mo_autobuf struct mo_buf facts = {.max = FACTS_MAX};
    struct mo_relay_ask q = {.method = "GET", .url = url};
    struct round *r = NULL;

    if (mo_api_is_merged(j) && !j->rq->from && !mo_buf_err(&j->out) &&
        j->rq->head->target.n < sizeof(url) &&
        mo_relay_facts(j->api->relay, j->rq, &facts) == 0)
        r = mo_new(struct round);
    if (!r) {
        mo_api_reply(j, "application/json");
        return;
    }
    (void)snprintf(url, sizeof(url), "%.*s", (int)j->rq->head->target.n,
                   j->rq->head->target.p);
    q.facts = mo_buf_view(&facts);
    r->job = j;
    r->rules = rules;
    add_answer(r, mo_buf_view(&j->out));
    mo_buf_reset(&j->out);
    ask_all(r, &q);
}
