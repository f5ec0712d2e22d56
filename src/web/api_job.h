/* api_job.h - a request that is answered later, possibly after its client is
 * gone.
 *
 * A job owes one answer. It is freed when it has been answered and the request
 * is gone, in either order. */
#ifndef MO_WEB_API_JOB_H
#define MO_WEB_API_JOB_H

#include "budget/budget.h"
#include "codec/json/json.h"
#include "people/share.h"
#include "web/api.h"

#define MO_API_ANSWER_MAX ((size_t)32 * 1024 * 1024)
#define MO_API_ARG_MAX    ((size_t)128 * 1024)

struct mo_api_export; /* api_export.c */
struct mo_api_import; /* api_import.c */
struct mo_api_link;   /* api_links.c */
struct mo_api_job;

/* Reading page by page, see mo_api_pages(). */
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
    struct mo_list node;            /* in api->sharing */
    int share;                      /* enum mo_share of the change */
    int mode;                       /* enum mo_chat_mode of the change */
    struct mo_buf owner;            /* of the session or connection */
    bool is_one;                    /* the answer is one session */
    bool is_search, shared;         /* shared: readers may ask, too */
    bool approves;                  /* of them: approvers only */
    struct mo_api_export *export;   /* or NULL */
    struct mo_api_import *import;   /* or NULL */
    struct mo_api_link *link;       /* or NULL */
    int status;                     /* of mo_api_reply(); 200 */
    struct mo_buf arg;              /* what the handler needs later */
    void (*next)(struct mo_api_job *j);
    void (*found)(struct mo_api_job *j, const struct mo_rows *rows); /* api.c */
    uint64_t began; /* mo_now_ns() */
    struct mo_api_pages pages;
    struct mo_buf text; /* of pages.r */
    struct mo_jw w;     /* writes `out` */
    struct mo_budget_ask budget;
    struct mo_buf out;
};

/* NULL: the request has been answered already (no memory, not ready). */
struct mo_api_job *mo_api_job(struct mo_api *api, struct mo_req *rq);
/* The same where no store is needed. */
struct mo_api_job *mo_api_job_new(struct mo_api *api, struct mo_req *rq);
/* A job about the session of the path; NULL: answered. */
struct mo_api_job *mo_api_session_job(struct mo_api *api, struct mo_req *rq);
void mo_api_reply(struct mo_api_job *j,
                  const char *ctype); /* j->status, j->out */
void mo_api_problem(struct mo_api_job *j, int status, const char *code,
                    const char *detail);
/* Frees the job: its caller answers the request. NULL: the client has gone. */
struct mo_req *mo_api_take(struct mo_api_job *j);
/* Answers 429 with the time to wait. */
void mo_api_over_budget(struct mo_api_job *j, const struct mo_budget_no *no);
/* Replies with {"ok":true}, or with the error. */
void mo_api_done(void *job, const struct mo_err *why);
/* Replies with that JSON, or with the error. */
void mo_api_json(void *job, struct mo_span json, const struct mo_err *why);

/* --- errors and simple answers ------------------------------------------- */

/* Which status an error has. The last row has code 0, for all others. */
struct mo_api_status {
    int code, status;
    const char *name;
};

const struct mo_api_status *mo_api_status(const struct mo_api_status *rows,
                                          int code);
void mo_api_error(struct mo_api_job *j, const struct mo_err *why);
/* Answers with json, or with why by these rows; an error without a row as
 * mo_api_error() does. */
void mo_api_answer(struct mo_api_job *j, struct mo_span json,
                   const struct mo_err *why, const struct mo_api_status *rows);
void mo_api_refuse(struct mo_req *rq, const struct mo_api_status *rows,
                   const struct mo_err *why);
/* False: the part is not there, and the request has been answered (503). */
bool mo_api_has(struct mo_req *rq, const void *part, const char *why_not);
void mo_api_send(struct mo_req *rq, const struct mo_buf *json); /* or 503 */
void mo_api_send_ok(struct mo_req *rq); /* {"ok":true} */
/* Does the query say key=word? */
bool mo_api_says(const struct mo_req *rq, const char *key, const char *word);
/* A text of a body; empty if it is not there. MO_EINVAL: it is no text. */
int mo_api_text(struct mo_json body, const char *key, struct mo_arena *a,
                struct mo_span *out);

/* Who sends the request; borrowed from it. */
struct mo_identity mo_api_identity(const struct mo_api *api,
                                   const struct mo_req *rq);

/* --- the caller's ---------------------------------------------------------
 *
 * Where persons are configured (gate.h), each sees only their own sessions and
 * what was done in them. The operator sees all, and so does everybody where no
 * persons are configured. */

/* True if the document of the row names the caller as owner. */
bool mo_api_row_is_mine(struct mo_api_job *j, const struct mo_row *row);

typedef void mo_api_next(struct mo_api_job *j);
/* Goes on if the session j is about is the caller's, else answers 404. */
void mo_api_if_mine(struct mo_api_job *j, mo_api_next *next);
/* The same, also if the session is shared with the person. */
void mo_api_if_shared(struct mo_api_job *j, mo_api_next *next);
/* The same, if it is shared with them for approving. */
void mo_api_if_approver(struct mo_api_job *j, mo_api_next *next);
/* What the person may do with the session of the row, beside its owner. */
enum mo_share mo_api_row_share(const struct mo_api_job *j,
                               const struct mo_row *row);
/* Goes on when it is known which sessions are the caller's, of the last used
 * ones; then mo_api_among() tells. */
void mo_api_find_mine(struct mo_api_job *j, mo_api_next *next);
bool mo_api_among(struct mo_api_job *j, const struct mo_row *row);

/* Reads rows of the store, the caller's only, page by page.
 *
 * The store does not know owners. So its rows are read page after page until
 * there are as many of the caller's as were asked for, or none follow: a page
 * of other people's rows is not the end. Where there are no persons, one page
 * is read.
 *
 * Kinds: MO_READ_AUDIT, MO_READ_SEARCH, and MO_READ_SESSIONS with `newest`.
 * Rows come newest or best first. Limit: an answer of half of
 * MO_API_ANSWER_MAX ends the reading; so does a client that has gone.
 *
 * Calls each() for every row for which mine() is true, r->limit of them at
 * most, then end(); `more`: others follow. On failure the job is answered
 * instead. r->text is copied; the other texts must last. */
void mo_api_pages(struct mo_api_job *j, const struct mo_read *r,
                  const struct mo_api_pages_cb *cb);

#endif
