/* api_export.c - a whole conversation as a document; see api.h.
 *
 * Its entries are read twice, page by page: first to learn which of them are on
 * the current branch (agent/chat/branch.h), then to write them. So memory holds
 * the answer and a few bytes per entry, whatever the length. `json` has every
 * branch and can be imported again. */
#include "web/api_export.h"

#include <stdio.h>

#include "agent/chat/branch.h"
#include "agent/chat/entry.h"
#include "agent/chat/imported.h"

#define PAGE 200

struct mo_api_export {
    struct branches branches;
    enum export_form { MARKDOWN, HTML, JSON } form;
    uint64_t conversation, after;
    uint64_t up_to; /* a frozen page; 0: all */
    size_t n;       /* entries read */
    bool has_row, writes;
    struct mo_jw w;
};

void mo_api_export_free(struct mo_api_export *x)
{
    if (x)
        mo_branches_fini(&x->branches);
    mo_free(x);
}

static enum mo_transcript_form form_of(const struct mo_api_export *x)
{
    return x->form == HTML ? MO_TRANSCRIPT_HTML : MO_TRANSCRIPT_MARKDOWN;
}

/* --- writing ------------------------------------------------------------- */

static void begin_document(struct mo_api_job *j)
{
    struct mo_api_export *x = j->export;

    if (x->form != JSON) {
        mo_transcript_begin(&j->out, form_of(x),
                            j->text.len ? mo_buf_view(&j->text)
                                        : mo_span_cstr(j->id));
        return;
    }
    x->w = mo_jw_object(&j->out);
    mo_jw_member_cstr(&x->w, "format", MO_EXPORT_FORMAT);
    mo_jw_member_u64(&x->w, "version", MO_EXPORT_VERSION);
    mo_jw_member_opt(&x->w, "title", mo_buf_view(&j->text));
    mo_jw_member_opt(&x->w, "model", mo_buf_view(&j->arg));
    mo_jw_member_u64(&x->w, "exported", mo_wall_ms());
    mo_jw_member_arr(&x->w, "entries");
}

static void end_document(struct mo_api_job *j)
{
    static const struct {
        const char *type, *name;
    } forms[] = {
        [MARKDOWN] = {"text/markdown; charset=utf-8", "md"},
        [HTML] = {"text/html; charset=utf-8", "html"},
        [JSON] = {"application/json", "json"},
    };
    struct mo_api_export *x = j->export;
    char name[160];

    if (x->form == JSON)
        mo_jw_end_all(&x->w);
    else
        mo_transcript_end(&j->out, form_of(x));
    (void)snprintf(name, sizeof(name),
                   "attachment; filename=\"conversation-%.8s.%s\"", j->id,
                   forms[x->form].name);
    if (x->up_to)
        mo_api_export_headers(j);
    else if (j->rq)
        mo_req_header(j->rq, "Content-Disposition", mo_span_cstr(name));
    mo_api_reply(j, forms[x->form].type);
}

static void write_row(struct mo_api_job *j, const struct mo_row *row,
                      struct mo_json entry)
{
    struct mo_api_export *x = j->export;
    const struct branch_node *node = mo_branches_find(&x->branches, row->seq);
    mo_autobuf struct mo_buf one = {.max = MO_API_ANSWER_MAX};

    if (x->form == JSON) {
        mo_entry_public(&one, entry, row->seq, row->at);
        mo_jw_raw(&x->w, mo_buf_view(&one));
        mo_buf_pass_err(&j->out, &one);
    } else if (node ? node->is_on : x->branches.marks == 0) {
        mo_transcript_entry(&j->out, form_of(x), entry);
    }
}

/* --- reading ------------------------------------------------------------- */

static void read_page(struct mo_api_job *j);

static void take_row(struct mo_api_job *j, const struct mo_row *row)
{
    struct mo_api_export *x = j->export;
    enum mo_entry_role role;
    struct mo_json_doc doc;
    uint64_t to = 0;

    x->after = row->seq;
    if (x->up_to && row->seq > x->up_to)
        return;
    if (mo_json_parse(row->doc, 0, &doc, NULL) < 0)
        return;
    role = mo_entry_role(doc.root);
    if (role == MO_ENTRY_QUEUED)
        return;
    x->n++;
    if (x->writes)
        write_row(j, row, doc.root);
    else if (role != MO_ENTRY_BRANCH)
        mo_branches_add(&x->branches, row->seq, false, 0);
    else if (mo_json_u64(mo_json_get(doc.root, "to"), &to) == 0)
        mo_branches_add(&x->branches, 0, true, to);
}

static void on_page(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_api_export *x = j->export;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    for (size_t i = 0; i < rows->n; i++)
        take_row(j, &rows->v[i]);
    if (rows->n > 0)
        x->conversation = rows->v[0].conversation;
    if (j->rq == NULL) {
        mo_api_problem(j, 408, "gone", "nobody waits for it");
    } else if (rows->more && rows->n > 0 && mo_buf_err(&j->out) == 0 &&
               (!x->up_to || x->after < x->up_to)) {
        read_page(j);
    } else if (x->writes) {
        end_document(j);
    } else if (x->n == 0 && !x->has_row) {
        mo_api_problem(j, 404, "not_found", "there is no such session");
    } else {
        mo_branches_walk(&x->branches, x->branches.tip);
        x->writes = true;
        x->after = 0;
        begin_document(j);
        read_page(j);
    }
}

static void read_page(struct mo_api_job *j)
{
    const struct mo_read r = {.kind = MO_READ_HISTORY,
                              .session = mo_span_cstr(j->id),
                              .conversation = j->export->conversation,
                              .after = j->export->after,
                              .limit = PAGE};
    struct mo_err e;

    if (mo_store_read(j->api->store, &r, on_page, j, &e) < 0)
        mo_api_error(j, &e);
}

static void on_session(void *ctx, const struct mo_rows *rows,
                       const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_json_doc doc;
    struct mo_json data;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    j->export->has_row = rows->n > 0;
    if (rows->n > 0 && mo_json_parse(rows->v[0].doc, 0, &doc, NULL) == 0) {
        data = mo_json_get(doc.root, "data");
        (void)mo_json_str_buf(mo_json_get(data, "title"), &j->text);
        (void)mo_json_str_buf(mo_json_get(data, "model"), &j->arg);
    }
    read_page(j);
}

void mo_api_export_headers(struct mo_api_job *j)
{
    static const char policy[] =
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

    if (j->rq == NULL)
        return;
    mo_req_header(j->rq, "Content-Security-Policy", mo_span_cstr(policy));
    mo_req_header(j->rq, "X-Robots-Tag", MO_SPAN("noindex, nofollow"));
}

void mo_api_export_frozen(struct mo_api_job *j, uint64_t conversation,
                          uint64_t up_to, struct mo_span title)
{
    j->export = mo_new(struct mo_api_export);
    mo_buf_reset(&j->text);
    if (j->export == NULL || mo_buf_span(&j->text, title) < 0) {
        mo_api_problem(j, 503, "no_memory", "out of memory");
        return;
    }
    *j->export = (struct mo_api_export){.form = HTML,
                                        .conversation = conversation,
                                        .up_to = up_to,
                                        .has_row = true};
    read_page(j);
}

bool mo_api_export(struct mo_api_job *j, uint64_t conversation)
{
    static const char *const names[] = {
        [MARKDOWN] = "markdown", [HTML] = "html", [JSON] = "json"};
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};
    size_t form = 0;
    struct mo_err e;

    while (form < MO_COUNT(names) && !mo_api_says(j->rq, "format", names[form]))
        form++;
    if (form == MO_COUNT(names))
        return false;
    j->export = mo_new(struct mo_api_export);
    if (j->export == NULL) {
        mo_api_problem(j, 503, "no_memory", "out of memory");
        return true;
    }
    j->export->form = (enum export_form)form;
    j->export->conversation = conversation;
    if (mo_store_read(j->api->store, &r, on_session, j, &e) < 0)
        mo_api_error(j, &e);
    return true;
}
