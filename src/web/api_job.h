/* api_job.h - a request that is answered later, possibly after its client is
 * gone.
 *
 * A job owes one answer. It is freed when it has been answered and the request
 * is gone, in either order. */
#ifndef MO_WEB_API_JOB_H
#define MO_WEB_API_JOB_H

#include "codec/json/json.h"
#include "web/api.h"

#define MO_API_ANSWER_MAX ((size_t)32 * 1024 * 1024)
#define MO_API_ARG_MAX    ((size_t)128 * 1024)

struct mo_api_job;

/* Reading page by page, see api_pages.h. */
struct mo_api_pages_cb {
    bool (*mine)(struct mo_api_job *j, const struct mo_row *row);
    void (*each)(struct mo_api_job *j, const struct mo_row *row);
    void (*end)(struct mo_api_job *j, bool more);
};

struct mo_api_pages {
    struct mo_read r; /* the present page */
    size_t want, got;
    size_t same; /* first rows of the page that were seen already */
    const struct mo_api_pages_cb *cb;
};

struct mo_api_job {
    struct mo_api *api;
    struct mo_req *rq; /* NULL: the client has gone */
    bool answered;
    char id[MO_SESSION_ID_MAX + 1]; /* of the session it is about */
    char caller[MO_REQ_CALLER_MAX]; /* the request's */
    bool markdown, is_search;
    int status;        /* of mo_api_reply(); 200 */
    struct mo_buf arg; /* what the handler needs later */
    void (*next)(struct mo_api_job *j);
    uint64_t began; /* mo_now_ns() */
    struct mo_api_pages pages;
    struct mo_buf text; /* of pages.r */
    struct mo_jw w;     /* writes `out` */
    struct mo_buf out;
};

/* NULL: the request has been answered already (no memory, not ready). */
struct mo_api_job *mo_api_job(struct mo_api *api, struct mo_req *rq);
void mo_api_reply(struct mo_api_job *j,
                  const char *ctype); /* j->status, j->out */
void mo_api_problem(struct mo_api_job *j, int status, const char *code,
                    const char *detail);
/* The status that fits the error. */
void mo_api_error(struct mo_api_job *j, const struct mo_err *why);

#endif
