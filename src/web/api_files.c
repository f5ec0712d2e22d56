/*
 * api_files.c - the files of a conversation; see api.h.
 *
 * Bytes go between the client and the box (box_files.h) a part at a time: the
 * next part is asked for when the client has taken the last one, and the client
 * is not read while a part is on its way. So a transfer needs the memory of a
 * few parts, whatever the size of the file.
 *
 * Readers of a shared conversation list and download; its owner changes. The
 * row of the audit log is on disk before a file is written or removed.
 */
#include <stdio.h>

#include "audit/audit.h"
#include "codec/http/url.h"
#include "codec/text/utf8.h"
#include "web/file_transfer.h"

#define PAGE_MAX ((size_t)1024 * 1024) /* bytes of a list for an archive */

void mo_transfer_free(struct transfer *t)
{
    if (t->files)
        mo_box_files_free(t->files);
    mo_buf_fini(&t->path);
    mo_buf_fini(&t->args);
    mo_buf_fini(&t->part);
    mo_buf_fini(&t->page);
    mo_buf_fini(&t->name);
    mo_free(t);
}

/* --- requests to the box -------------------------------------------------- */

struct mo_jw mo_transfer_args(struct transfer *t)
{
    struct mo_jw w;

    mo_buf_reset(&t->args);
    w = mo_jw_object(&t->args);
    return w;
}

void mo_transfer_put_path(struct transfer *t, struct mo_jw *w)
{
    mo_jw_key(w, "path");
    mo_jw_str(w, mo_buf_view(&t->path));
}

void mo_transfer_ask(struct transfer *t, const char *method,
                     mo_box_files_fn *done)
{
    t->asking = true;
    mo_box_files_ask(t->files, method, mo_buf_view(&t->args), done, t);
}

void mo_transfer_refuse(struct transfer *t, const struct mo_box_files_no *no)
{
    if (t->rq)
        mo_req_problem(t->rq, no->status, no->code, no->text);
}

/* --- list ----------------------------------------------------------------- */

static void on_listed(void *ctx, struct mo_json result,
                      const struct mo_box_files_no *no)
{
    static const char *const members[] = {"path", "entries", "more", "clipped"};
    mo_autobuf struct mo_buf b = {.max = MO_API_ANSWER_MAX};
    struct transfer *t = ctx;
    struct mo_jw w;

    t->asking = false;
    if (no) {
        mo_transfer_refuse(t, no);
        return;
    }
    w = mo_jw_object(&b);
    for (size_t i = 0; i < MO_COUNT(members); i++)
        mo_jw_member_raw(&w, members[i],
                         mo_json_text(mo_json_get(result, members[i])));
    mo_jw_end(&w);
    mo_api_send(t->rq, &b);
}

static void put_number(const struct transfer *t, struct mo_jw *w,
                       const char *key, const char *name)
{
    mo_autobuf struct mo_buf b = {.max = 24};
    uint64_t n = 0;

    if (mo_query_get(t->rq->query, key, &b) == 0 &&
        mo_span_u64(mo_buf_view(&b), &n) == 0 && n)
        mo_jw_member_u64(w, name, n);
}

static void start_list(struct transfer *t)
{
    mo_autobuf struct mo_buf after = {.max = TRANSFER_PATH_MAX};
    struct mo_jw w = mo_transfer_args(t);

    mo_transfer_put_path(t, &w);
    if (mo_query_get(t->rq->query, "after", &after) == 0 && after.len) {
        mo_jw_key(&w, "after");
        mo_jw_str(&w, mo_buf_view(&after));
    }
    put_number(t, &w, "limit", "limit");
    put_number(t, &w, "changedMs", "changed_ms");
    mo_jw_member_bool(&w, "recursive", mo_api_says(t->rq, "recursive", "true"));
    mo_jw_end(&w);
    mo_transfer_ask(t, "list", on_listed);
}

/* --- remove --------------------------------------------------------------- */

static void ask_remove(struct transfer *t);

static void on_removed(void *ctx, struct mo_json result,
                       const struct mo_box_files_no *no)
{
    struct transfer *t = ctx;
    bool more = false;

    t->asking = false;
    (void)mo_json_bool(mo_json_get(result, "more"), &more);
    if (no)
        mo_transfer_refuse(t, no);
    else if (more)
        ask_remove(t);
    else
        mo_api_send_ok(t->rq);
}

static void ask_remove(struct transfer *t)
{
    struct mo_jw w = mo_transfer_args(t);

    mo_transfer_put_path(t, &w);
    mo_jw_end(&w);
    mo_transfer_ask(t, "remove", on_removed);
}

/* --- begin ---------------------------------------------------------------- */

static void start(struct transfer *t)
{
    switch (t->what) {
    case TRANSFER_LIST:
        start_list(t);
        break;
    case TRANSFER_DOWNLOAD:
        mo_transfer_download(t);
        break;
    case TRANSFER_ARCHIVE:
        mo_transfer_archive(t);
        break;
    case TRANSFER_UPLOAD:
        mo_transfer_upload(t);
        break;
    default:
        ask_remove(t);
    }
}

static void on_audited(void *ctx, const struct mo_err *why)
{
    struct transfer *t = ctx;

    t->auditing = false;
    if (!t->rq)
        mo_transfer_free(t);
    else if (why)
        mo_req_problem(t->rq, 503, "audit_failed", why->msg);
    else
        start(t);
}

/* The row that says who changes which file; it comes before the change. */
static void audit_change(struct transfer *t)
{
    int64_t length = t->rq->head->content_length;
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("file"),
        .name = mo_buf_view(&t->path),
        .action = t->what == TRANSFER_UPLOAD ? "uploaded" : "removed",
        .session = mo_span_cstr(t->id),
        .decided_by = t->rq->who[0] ? t->rq->who : "operator",
        .via = t->rq->door,
        .count =
            length > 0 && t->what == TRANSFER_UPLOAD ? (uint64_t)length : 0,
    };
    struct mo_err e;

    t->auditing = true;
    if (mo_audit_first(mo_approvals_audit(t->api->approvals), &row, on_audited,
                       t, &e) < 0) {
        t->auditing = false;
        mo_req_problem(t->rq, 503, "audit_failed", e.msg);
    }
}

static void on_gone(struct mo_req *rq)
{
    struct transfer *t = rq->data;

    t->rq = NULL;
    if (t->auditing)
        return; /* on_audited() frees it */
    if (t->what == TRANSFER_UPLOAD)
        mo_transfer_abandon(t);
    else
        mo_transfer_free(t);
}

static struct transfer *transfer_new(struct mo_api *api, struct mo_req *rq,
                                     const char *id, const char *owner)
{
    struct transfer *t = mo_new(struct transfer);

    if (!t)
        return NULL;
    t->api = api;
    t->rq = rq;
    t->what = (enum transfer_kind)rq->arg;
    t->view = mo_api_says(rq, "view", "true");
    (void)snprintf(t->id, sizeof(t->id), "%s", id);
    (void)snprintf(t->owner, sizeof(t->owner), "%s", owner);
    mo_buf_init(&t->path, TRANSFER_PATH_MAX);
    mo_buf_init(&t->args, TRANSFER_ARGS_MAX);
    mo_buf_init(&t->part, TRANSFER_PART_MAX);
    mo_buf_init(&t->page, PAGE_MAX);
    mo_buf_init(&t->name, 8 * TRANSFER_PATH_MAX);
    t->files = mo_box_files_new(api, rq, id, owner);
    if (t->files)
        return t;
    mo_transfer_free(t);
    return NULL;
}

/* The path of the query; a directory may be left out. */
static bool read_path(struct transfer *t)
{
    bool may_lack = t->what == TRANSFER_LIST || t->what == TRANSFER_ARCHIVE;
    int rc = mo_query_get(t->rq->query, "path", &t->path);

    if (rc == MO_ENOTFOUND || (rc == 0 && t->path.len == 0))
        rc = may_lack ? mo_buf_puts(&t->path, ".") : MO_EINVAL;
    return rc == 0 && !mo_buf_err(&t->path) &&
           mo_utf8_valid(mo_buf_view(&t->path));
}

/* visits: they are a reader of the session, not its owner. */
static void begin(struct mo_api *api, struct mo_req *rq, const char *id,
                  const char *owner, bool visits)
{
    struct transfer *t = transfer_new(api, rq, id, owner);

    if (!t) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return;
    }
    rq->data = t;
    rq->gone = on_gone;
    if (visits)
        mo_box_files_visit(t->files);
    if (!read_path(t))
        mo_req_problem(rq, 400, "bad_path",
                       "?path= names a file of the workspace, in UTF-8 and at "
                       "most 4096 bytes");
    else if (t->what == TRANSFER_UPLOAD && rq->head->content_length > 0 &&
             (uint64_t)rq->head->content_length > TRANSFER_UPLOAD_MAX)
        mo_req_problem(rq, 413, "file_too_big",
                       "a file may have at most 4 GiB");
    else if (t->what == TRANSFER_UPLOAD || t->what == TRANSFER_REMOVE)
        audit_change(t);
    else
        start(t);
}

static void on_row(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_session_row row = {.created = 0};
    struct mo_api *api = j->api;
    char id[MO_SESSION_ID_MAX + 1];
    bool visits = false;
    struct mo_req *rq;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    if (rows->n == 0 || mo_session_row(rows->v[0].doc, &row, NULL) < 0) {
        mo_api_problem(j, 404, "not_found", "there is no such session");
        return;
    }
    memcpy(id, j->id, sizeof(id));
    visits = !mo_api_row_is_mine(j, &rows->v[0]);
    rq = mo_api_take(j);
    if (rq)
        begin(api, rq, id, row.owner, visits);
}

/* The person may: whose session is it? */
static void read_row(struct mo_api_job *j)
{
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};
    struct mo_err e;

    if (mo_store_read(j->api->store, &r, on_row, j, &e) < 0)
        mo_api_error(j, &e);
}

static void on_request(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    bool is_change = rq->arg == TRANSFER_UPLOAD || rq->arg == TRANSFER_REMOVE;
    struct mo_api_job *j = NULL;

    if (!mo_api_has(rq, api->sessions, mo_talk_why(api->talk)))
        return;
    j = mo_api_session_job(api, rq);
    if (j && is_change)
        mo_api_if_mine(j, read_row);
    else if (j)
        mo_api_if_shared(j, read_row);
}

int mo_api_files_routes(struct mo_site *s, struct mo_api *api)
{
#define FILES "/api/sessions/{id}/files"
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, FILES, 0, on_request, .arg = TRANSFER_LIST},
        {MO_HTTP_GET, FILES "/content", 0, on_request,
         .arg = TRANSFER_DOWNLOAD},
        {MO_HTTP_GET, FILES "/archive", 0, on_request, .arg = TRANSFER_ARCHIVE},
        {MO_HTTP_PUT, FILES "/content", 0, on_request, .arg = TRANSFER_UPLOAD},
        {MO_HTTP_DELETE, FILES "/content", 0, on_request,
         .arg = TRANSFER_REMOVE},
    };
#undef FILES

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
