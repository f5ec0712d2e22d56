#include "audit/audit_mark.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/json/json.h"

/* The store may answer after the log is gone. */
struct mark_job {
    struct mo_audit_mark *mark; /* NULL: detached */
};

void mo_audit_mark_id(const char *dir, char out[MO_AUDIT_MARK_ID])
{
    char host[65] = "", hex[MO_SHA256_HEX + 1];
    mo_autobuf struct mo_buf b = {.max = PATH_MAX + sizeof(host) + 1};

    if (gethostname(host, sizeof(host) - 1) < 0)
        host[0] = '\0';
    (void)mo_buf_printf(&b, "%s\n%s", host, dir);
    mo_sha256_hex(mo_buf_view(&b), hex);
    (void)snprintf(out, MO_AUDIT_MARK_ID, "audit:%.32s", hex);
}

bool mo_audit_mark_read(struct mo_span doc, struct mo_audit_witness *out)
{
    struct mo_json_doc d;

    *out = (struct mo_audit_witness){.by = "the store"};
    if (mo_json_parse(doc, 0, &d, NULL) == 0 &&
        mo_json_u64(mo_json_get(d.root, "seq"), &out->seq) == 0 &&
        mo_json_str_copy(mo_json_get(d.root, "mac"), out->hash,
                         sizeof(out->hash)) == 0 &&
        strlen(out->hash) == MO_CHAIN_HEX)
        return true;
    out->seq = 0;
    return false;
}

void mo_audit_mark_init(struct mo_audit_mark *m, const char *dir)
{
    *m = (struct mo_audit_mark){.last.by = "the store"};
    mo_audit_mark_id(dir, m->id);
}

static struct mark_job *job_new(struct mo_audit_mark *m)
{
    struct mark_job *j = m->job ? NULL : mo_new(struct mark_job);

    if (j)
        j->mark = m;
    m->job = j ? j : m->job;
    return j;
}

/* Returns the mark, or NULL if it was detached. */
static struct mo_audit_mark *job_free(struct mark_job *j)
{
    struct mo_audit_mark *m = j->mark;

    if (m)
        m->job = NULL;
    mo_free(j);
    return m;
}

static void on_read(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_audit_mark *m = job_free(ctx);

    if (!m || why)
        return;
    m->is_read = true;
    if (rows->n)
        (void)mo_audit_mark_read(rows->v[0].doc, &m->last);
    m->ready(m->ctx);
}

void mo_audit_mark_attach(struct mo_audit_mark *m, struct mo_store *s,
                          void (*ready)(void *ctx), void *ctx)
{
    const struct mo_read r = {.kind = MO_READ_MARK, .id = mo_span_cstr(m->id)};
    struct mark_job *j = job_new(m);
    struct mo_err e;

    m->store = s;
    m->ready = ready;
    m->ctx = ctx;
    m->is_read = false;
    if (j && mo_store_read(s, &r, on_read, j, &e) < 0)
        (void)job_free(j);
}

void mo_audit_mark_detach(struct mo_audit_mark *m)
{
    if (m->job)
        m->job->mark = NULL;
    m->job = NULL;
    m->store = NULL;
    m->is_read = false;
}

static void on_put(void *ctx, const struct mo_written *w,
                   const struct mo_err *why)
{
    (void)w;
    (void)why; /* tried again with the next row */
    (void)job_free(ctx);
}

void mo_audit_mark_put(struct mo_audit_mark *m,
                       const struct mo_audit_witness *last)
{
    struct mo_write w = {.kind = MO_WRITE_MARK, .id = mo_span_cstr(m->id)};
    const struct mo_store_batch b = {.writes = &w, .n = 1};
    char doc[MO_CHAIN_HEX + 64];
    struct mark_job *j;
    struct mo_err e;

    if (!m->store || !m->is_read || last->seq <= m->last.seq)
        return;
    j = job_new(m);
    (void)snprintf(doc, sizeof(doc), "{\"seq\":%llu,\"mac\":\"%s\"}",
                   (unsigned long long)last->seq, last->hash);
    w.doc = mo_span_cstr(doc);
    if (j && mo_store_write(m->store, &b, on_put, j, &e) == 0) {
        m->last.seq = last->seq;
        memcpy(m->last.hash, last->hash, sizeof(m->last.hash));
    } else if (j) {
        (void)job_free(j);
    }
}
