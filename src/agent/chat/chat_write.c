/* chat_write.c - writes of a chat to the store.
 *
 * Every audit row of a conversation gets its owner's name. Without an owner
 * (the server knows no users by name) rows are stored unchanged. */
#include "agent/chat/chat_write.h"

#include "agent/chat/chat_priv.h"

/* --- the owner's name ---------------------------------------------------- */

/* {"a":1} becomes {"owner":"...","a":1}. */
static void put_owner(struct mo_buf *b, const char *owner, struct mo_span doc)
{
    mo_buf_puts(b, "{\"owner\":");
    mo_json_quote(b, mo_span_cstr(owner));
    if (doc.n > 2)
        mo_buf_putc(b, ',');
    mo_buf_span(b, mo_span_skip(doc, 1));
}

static bool is_audit_row(const struct mo_write *w)
{
    return w->kind == MO_WRITE_AUDIT && w->doc.n >= 2 && w->doc.p[0] == '{';
}

static int mark_owner(const struct chat *c, const struct mo_write *v, size_t n,
                      struct mo_write *out, struct mo_buf *docs)
{
    struct mo_span name = mo_span_cstr(c->owner);
    size_t at = 0;

    for (size_t i = 0; i < n; i++)
        if (is_audit_row(&v[i]))
            put_owner(docs, c->owner, v[i].doc);
    if (mo_buf_err(docs))
        return mo_buf_err(docs);
    for (size_t i = 0; i < n; i++) {
        size_t len = name.n + sizeof("{\"owner\":\"\"") - 1;

        out[i] = v[i];
        if (!is_audit_row(&v[i]))
            continue;
        len += v[i].doc.n - 1 + (v[i].doc.n > 2);
        out[i].doc = mo_span(docs->p + at, len);
        at += len;
    }
    return 0;
}

/* --- batches ------------------------------------------------------------- */

struct write {
    struct chat *chat;
    chat_written *done;
    void *arg;
};

static void on_batch_written(void *ctx, const struct mo_written *w,
                             const struct mo_err *why)
{
    struct write *job = ctx;
    struct chat *c = job->chat;

    c->writes--;
    if (why == NULL && w->seq > 0)
        c->transcript.seq = w->seq;
    job->done(c, job->arg, why);
    mo_free(job);
    mo_chat_settle(c);
}

static int write_batch(struct chat *c, const struct mo_write *v, size_t n,
                       chat_written *done, void *arg, struct mo_err *e)
{
    struct mo_store_batch b = {
        .session = mo_span_cstr(c->id),
        .fence = c->info.fence,
        .writes = v,
        .n = n,
    };
    struct write *job = mo_new(struct write);
    int rc = 0;

    if (job == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *job = (struct write){c, done, arg};
    rc = mo_store_write(c->agent->o.store, &b, on_batch_written, job, e);
    if (rc < 0) {
        mo_free(job);
        return rc;
    }
    c->writes++;
    if (c->hold) /* the session limits how often it stores this */
        mo_session_touch(c->hold);
    return 0;
}

int mo_chat_write(struct chat *c, const struct mo_write *v, size_t n,
                  chat_written *done, void *arg, struct mo_err *e)
{
    struct mo_write marked[MO_STORE_BATCH_MAX];
    mo_autobuf struct mo_buf docs = {.max = MO_STORE_BATCH_BYTES};
    int rc = 0;

    if (!c->owner[0] || n > MO_COUNT(marked))
        return write_batch(c, v, n, done, arg, e);
    rc = mark_owner(c, v, n, marked, &docs);
    return rc < 0 ? mo_fail(e, rc, "audit row")
                  : write_batch(c, marked, n, done, arg, e);
}

static void on_audited(struct chat *c, void *arg, const struct mo_err *why)
{
    (void)c;
    (void)arg;
    (void)why; /* the audited action goes on either way */
}

void mo_chat_audit(struct chat *c, const struct mo_buf *doc)
{
    struct mo_write w = {
        .kind = MO_WRITE_AUDIT, .at = mo_wall_ms(), .doc = mo_buf_view(doc)};
    struct mo_err e;

    if (mo_buf_err(doc) == 0)
        (void)mo_chat_write(c, &w, 1, on_audited, NULL, &e);
}
