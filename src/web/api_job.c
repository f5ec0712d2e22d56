/*
 * api_job.c - see api_job.h.
 */
#include "web/api_job.h"

#include "base/mem.h"

static void job_free(struct mo_api_job *j)
{
    mo_buf_fini(&j->out);
    mo_buf_fini(&j->arg);
    mo_buf_fini(&j->text);
    mo_free(j);
}

static void on_gone(struct mo_req *rq)
{
    struct mo_api_job *j = rq->data;

    j->rq = NULL;
    if (j->answered)
        job_free(j);
}

struct mo_api_job *mo_api_job(struct mo_api *api, struct mo_req *rq)
{
    struct mo_api_job *j = NULL;

    if (api->store == NULL) {
        mo_req_problem(rq, 503, "not_ready", api->why(api->why_ctx));
        return NULL;
    }
    j = mo_new(struct mo_api_job);
    if (j == NULL) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return NULL;
    }
    j->api = api;
    j->rq = rq;
    j->status = 200;
    memcpy(j->caller, rq->caller, sizeof(j->caller));
    mo_buf_init(&j->arg, MO_API_ARG_MAX);
    mo_buf_init(&j->text, MO_API_ARG_MAX);
    mo_buf_init(&j->out, MO_API_ANSWER_MAX);
    rq->data = j;
    rq->gone = on_gone;
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
        mo_req_reply(j->rq, j->status, ctype, mo_buf_view(&j->out));
}

void mo_api_problem(struct mo_api_job *j, int status, const char *code,
                    const char *detail)
{
    if (begin(j))
        mo_req_problem(j->rq, status, code, detail);
}

static const struct {
    int code, status;
    const char *name;
} statuses[] = {
    {MO_ENOTFOUND, 404, "not_found"}, {MO_EINVAL, 400, "bad_request"},
    {MO_EBUSY, 409, "busy"},          {MO_EUNAVAIL, 503, "state_unavailable"},
    {MO_ETIMEOUT, 504, "timeout"},    {MO_EPOLICY, 409, "conflict"},
};

void mo_api_error(struct mo_api_job *j, const struct mo_err *why)
{
    for (size_t i = 0; i < MO_COUNT(statuses); i++)
        if (statuses[i].code == why->code) {
            mo_api_problem(j, statuses[i].status, statuses[i].name, why->msg);
            return;
        }
    mo_api_problem(j, 500, "failed", why->msg);
}
