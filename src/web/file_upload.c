/* file_upload.c - a file of a conversation is written, by a temporary file. See
 * api_files.c. */
#include <stdio.h>

#include "codec/text/base64.h"
#include "web/file_transfer.h"

static void push_upload(struct transfer *t);

static void on_aborted(void *ctx, struct mo_json result,
                       const struct mo_box_files_no *no)
{
    (void)result;
    (void)no;
    mo_transfer_free(ctx);
}

static void ask_temp(struct transfer *t, const char *method,
                     mo_box_files_fn *done)
{
    struct mo_jw w = mo_transfer_args(t);

    mo_transfer_put_path(t, &w);
    mo_jw_member_cstr(&w, "temp", t->temp);
    mo_jw_end(&w);
    mo_transfer_ask(t, method, done);
}

void mo_transfer_abandon(struct transfer *t)
{
    if (t->asking)
        return; /* when that has ended */
    if (t->temp[0])
        ask_temp(t, "abort", on_aborted);
    else
        mo_transfer_free(t);
}

static void on_committed(void *ctx, struct mo_json result,
                         const struct mo_box_files_no *no)
{
    mo_autobuf struct mo_buf b = {.max = 2 * TRANSFER_PATH_MAX};
    struct transfer *t = ctx;
    bool created = false;
    struct mo_jw w;

    t->asking = false;
    t->temp[0] = '\0';
    if (!t->rq) {
        mo_transfer_abandon(t);
        return;
    }
    if (no) {
        mo_transfer_refuse(t, no);
        return;
    }
    (void)mo_json_bool(mo_json_get(result, "created"), &created);
    w = mo_jw_object(&b);
    mo_transfer_put_path(t, &w);
    mo_jw_member_u64(&w, "size", t->at);
    mo_jw_member_bool(&w, "created", created);
    mo_jw_end(&w);
    if (mo_buf_err(&b))
        mo_req_problem(t->rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(t->rq, created ? 201 : 200, "application/json",
                     mo_buf_view(&b));
}

static void on_written(void *ctx, struct mo_json result,
                       const struct mo_box_files_no *no)
{
    struct transfer *t = ctx;
    mo_autobuf struct mo_buf temp = {.max = sizeof(t->temp) - 1};

    t->asking = false;
    if (no) {
        t->temp[0] = '\0'; /* the box has removed it */
    } else if (mo_json_str_buf(mo_json_get(result, "temp"), &temp) == 0) {
        (void)snprintf(t->temp, sizeof(t->temp), "%s", mo_buf_cstr(&temp));
        t->at += t->size;
    }
    if (!t->rq) {
        mo_transfer_abandon(t);
        return;
    }
    if (no) {
        mo_transfer_refuse(t, no);
        return;
    }
    mo_buf_drop(&t->part, (size_t)t->size);
    if (!t->last && t->part.len < TRANSFER_PART)
        mo_req_body_pause(t->rq, false);
    push_upload(t);
}

/* t->size: bytes of the part on its way. */
static void write_part(struct transfer *t)
{
    struct mo_span bytes = mo_span_head(mo_buf_view(&t->part), TRANSFER_PART);
    struct mo_jw w = mo_transfer_args(t);
    mo_autobuf struct mo_buf text = {.max = TRANSFER_ARGS_MAX};

    mo_transfer_put_path(t, &w);
    if (t->temp[0])
        mo_jw_member_cstr(&w, "temp", t->temp);
    mo_jw_member_u64(&w, "offset", t->at);
    (void)mo_base64_put(&text, bytes);
    mo_jw_key(&w, "content");
    mo_jw_str(&w, mo_buf_view(&text));
    mo_jw_end(&w);
    t->size = bytes.n;
    mo_transfer_ask(t, "write", on_written);
}

static void push_upload(struct transfer *t)
{
    if (t->asking)
        return;
    if (t->part.len >= TRANSFER_PART ||
        (t->last && (t->part.len || !t->temp[0])))
        write_part(t);
    else if (t->last)
        ask_temp(t, "commit", on_committed);
}

static void on_part(struct mo_req *rq, struct mo_span part, bool last)
{
    struct transfer *t = rq->data;

    t->last = last;
    if (mo_buf_span(&t->part, part) < 0) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return;
    }
    if (!last && t->part.len >= TRANSFER_PART)
        mo_req_body_pause(rq, true);
    push_upload(t);
}

void mo_transfer_upload(struct transfer *t)
{
    mo_req_body_parts(t->rq, TRANSFER_UPLOAD_MAX, on_part);
}
