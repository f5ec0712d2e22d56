/*
 * api_import.c - an exported conversation becomes a new one of the caller; see
 * api.h and agent/chat/imported.h.
 *
 * The file arrives in parts and is checked as a whole before anything is
 * stored. Then: the audit row is on disk, the row of the session and the
 * entries are written in batches. If a batch fails, the rest is forgotten.
 *
 * Limits: MO_IMPORTED_MAX bytes, IMPORTS_MAX at once.
 */
#include <stdio.h>

#include "agent/chat/imported.h"
#include "base/rand.h"
#include "web/api_job.h"

#define IMPORTS_MAX 4
#define ID_BYTES    18
#define BATCH       (MO_STORE_BATCH_MAX - 2) /* beside the session's row */
#define BATCH_BYTES (MO_STORE_BATCH_BYTES / 2)
#define DATA_MAX    ((size_t)4096)

struct mo_api_import {
    struct mo_api *api;
    struct mo_buf body;
    struct mo_imported what;
    size_t next; /* entry to write */
    uint64_t now;
};

void mo_api_import_free(struct mo_api_import *im)
{
    if (!im)
        return;
    im->api->nimports--;
    mo_imported_fini(&im->what);
    mo_buf_fini(&im->body);
    mo_free(im);
}

/* --- storing ---------------------------------------------------------------
 */

static void on_forgotten(void *ctx, const struct mo_written *w,
                         const struct mo_err *why)
{
    (void)ctx;
    (void)w;
    (void)why; /* then the store is gone, and the row with it or kept as is */
}

static void fail_import(struct mo_api_job *j, const struct mo_err *why)
{
    const struct mo_write w = {.kind = MO_WRITE_FORGET};
    const struct mo_store_batch b = {
        .session = mo_span_cstr(j->id), .writes = &w, .n = 1};
    struct mo_err e;

    (void)mo_store_write(j->api->store, &b, on_forgotten, NULL, &e);
    mo_api_error(j, why);
}

static void put_session(const struct mo_api_job *j, struct mo_buf *out)
{
    const struct mo_imported *im = &j->import->what;
    mo_autobuf struct mo_buf data = {.max = DATA_MAX};
    struct mo_session_row row = {.asleep = true, .created = j->import->now};
    struct mo_jw w = mo_jw_object(&data);

    mo_jw_member_opt(&w, "model", mo_span_cstr(im->model));
    mo_jw_member_opt(&w, "title", mo_span_cstr(im->title));
    if (im->said)
        mo_jw_member_u64(&w, "lastMessage",
                         im->said < row.created ? im->said : row.created);
    mo_jw_end(&w);
    (void)snprintf(row.owner, sizeof(row.owner), "%s", j->caller);
    (void)mo_session_row_put(&row, mo_buf_view(&data), out);
    mo_buf_pass_err(out, &data);
}

static void reply(struct mo_api_job *j)
{
    struct mo_jw w = mo_jw_object(&j->out);

    mo_jw_member(&w, "sessionId", mo_span_cstr(j->id));
    mo_jw_member_u64(&w, "entries", mo_imported_count(&j->import->what));
    mo_jw_end(&w);
    j->status = 201;
    mo_api_reply(j, "application/json");
}

static void write_batch(struct mo_api_job *j);

static void on_written(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    (void)w;
    if (why)
        fail_import(j, why);
    else if (j->import->next < mo_imported_count(&j->import->what))
        write_batch(j);
    else
        reply(j);
}

/* Writes documents and their words into `docs` until the batch is full. end[]:
 * where each document and its words end. */
static size_t fill(struct mo_api_job *j, struct mo_buf *docs,
                   size_t end[2 * BATCH])
{
    struct mo_api_import *im = j->import;
    size_t n = 0;

    while (n < BATCH && docs->len < BATCH_BYTES && !mo_buf_err(docs) &&
           im->next < mo_imported_count(&im->what)) {
        mo_autobuf struct mo_buf one = {.max = MO_STORE_DOC_MAX};

        mo_imported_put(&im->what, im->next++, mo_buf_view(&j->owner), &one);
        mo_buf_span(docs, mo_buf_view(&one));
        end[2 * n] = docs->len;
        mo_entry_search_text(mo_buf_view(&one), docs);
        end[2 * n + 1] = docs->len;
        mo_buf_pass_err(docs, &one);
        n++;
    }
    return n;
}

static void write_batch(struct mo_api_job *j)
{
    struct mo_api_import *im = j->import;
    size_t first = im->next, end[2 * BATCH], n = 0, at = 0;
    struct mo_write v[BATCH + 2];
    mo_autobuf struct mo_buf docs = {.max = 2 * MO_STORE_BATCH_BYTES},
                             row = {.max = 2 * DATA_MAX};
    struct mo_store_batch b = {.session = mo_span_cstr(j->id), .writes = v};
    struct mo_err e;

    if (first == 0) {
        /* A fresh conversation is as old as the import: it expires later. */
        put_session(j, &row);
        v[b.n++] = (struct mo_write){
            .kind = MO_WRITE_SESSION, .doc = mo_buf_view(&row), .at = im->now};
        v[b.n++] = (struct mo_write){.kind = MO_WRITE_FRESH, .at = im->now};
    }
    n = fill(j, &docs, end);
    for (size_t i = 0; i < n; i++) {
        v[b.n++] = (struct mo_write){
            .kind = MO_WRITE_ENTRY,
            .doc = mo_span(docs.p + at, end[2 * i] - at),
            .text = mo_span(docs.p + end[2 * i], end[2 * i + 1] - end[2 * i]),
            .at = mo_imported_at(&im->what, first + i, im->now)};
        at = end[2 * i + 1];
    }
    mo_buf_pass_err(&docs, &row);
    if (mo_buf_err(&docs))
        fail_import(j, mo_error(MO_ENOMEM, "out of memory"));
    else if (mo_store_write(j->api->store, &b, on_written, j, &e) < 0)
        fail_import(j, &e);
}

static void on_audited(void *ctx, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why)
        mo_api_error(j, why);
    else
        write_batch(j);
}

static void audit(struct mo_api_job *j)
{
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("conversation"),
        .name = mo_span_cstr(j->import->what.title),
        .action = "imported",
        .session = mo_span_cstr(j->id),
        .decided_by = j->rq->who[0] ? j->rq->who : "operator",
        .via = j->rq->door,
        .count = mo_imported_count(&j->import->what),
    };
    struct mo_err e;

    if (mo_audit_first(mo_approvals_audit(j->api->approvals), &row, on_audited,
                       j, &e) < 0)
        mo_api_error(j, &e);
}

/* --- the file --------------------------------------------------------------
 */

static void on_upload_gone(struct mo_req *rq)
{
    mo_api_import_free(rq->data);
}

static void take_file(struct mo_req *rq, struct mo_api_import *im)
{
    struct mo_api_job *j = mo_api_job(im->api, rq);
    struct mo_err e;

    if (!j)
        return; /* on_upload_gone() frees it */
    j->import = im;
    im->now = mo_wall_ms();
    mo_random_token(j->id, ID_BYTES);
    (void)mo_buf_puts(&j->owner, rq->who); /* keeps the importer */
    if (mo_imported_read(mo_buf_view(&im->body), &im->what, &e) == 0)
        audit(j);
    else if (e.code == MO_EINVAL)
        mo_api_problem(j, 400, "bad_import", e.msg);
    else
        mo_api_error(j, &e);
}

static void on_part(struct mo_req *rq, struct mo_span part, bool last)
{
    struct mo_api_import *im = rq->data;

    if (mo_buf_span(&im->body, part) < 0)
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else if (last)
        take_file(rq, im);
}

static void on_request(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_import *im = NULL;

    if (!mo_api_has(rq, api->store, mo_talk_why(api->talk)))
        return;
    if (api->nimports >= IMPORTS_MAX) {
        mo_req_problem(rq, 503, "busy",
                       "other conversations are being imported; try again");
        return;
    }
    im = mo_new(struct mo_api_import);
    if (!im) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return;
    }
    im->api = api;
    api->nimports++;
    mo_buf_init(&im->body, MO_IMPORTED_MAX);
    rq->data = im;
    rq->gone = on_upload_gone;
    mo_req_body_parts(rq, MO_IMPORTED_MAX, on_part);
}

int mo_api_import_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_POST, "/api/sessions", 0, on_request},
    };

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
