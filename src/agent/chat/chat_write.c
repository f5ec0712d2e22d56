/* chat_write.c - writes of a chat to the store and to the log.
 *
 * Every audit row of a conversation gets its owner's name. Without an owner
 * (the server knows no users by name) rows are stored unchanged. */
#include "agent/chat/chat_write.h"

#include <stdio.h>

#include "agent/chat/calls.h"
#include "agent/chat/chat_priv.h"

/* --- the owner's name ---------------------------------------------------- */

static int mark_owner(const struct chat *c, const struct mo_write *v, size_t n,
                      struct mo_write *out, struct mo_buf *docs)
{
    size_t end[MO_STORE_BATCH_MAX + 1] = {0};

    for (size_t i = 0; i < n; i++) {
        if (v[i].kind == MO_WRITE_AUDIT)
            mo_audit_row_put_owner(docs, c->owner, v[i].doc);
        end[i + 1] = docs->len;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = v[i];
        if (v[i].kind == MO_WRITE_AUDIT) /* docs does not move any more */
            out[i].doc = mo_span(docs->p + end[i], end[i + 1] - end[i]);
    }
    return mo_buf_err(docs);
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

/* Arguments are stored by their digest, unless audit.arguments keeps them. */
void mo_chat_audit(struct chat *c, const struct mo_audit_row *row)
{
    mo_autobuf struct mo_buf whole = {.max = MO_STORE_DOC_MAX};
    mo_autobuf struct mo_buf doc = {.max = MO_STORE_DOC_MAX};
    struct mo_write w;
    struct mo_err e;

    mo_audit_row_put(row->args.n > 0 ? &whole : &doc, row);
    if (row->args.n > 0)
        (void)mo_audit_row_for_file(&doc, mo_buf_view(&whole),
                                    mo_audit_has_arguments(c->agent->o.audit));
    w = mo_audit_row_write(mo_buf_view(&doc));
    if (mo_buf_err(&doc) == 0 && doc.len > 0)
        (void)mo_chat_write(c, &w, 1, on_audited, NULL, &e);
}

/* --- the log ------------------------------------------------------------- */

void mo_chat_log(const struct chat *c, enum mo_level lv, uint64_t ns,
                 const struct mo_err *why, const char *what)
{
    struct mo_log_trace mark;
    const struct mo_log_facts about = {.session = c->id,
                                       .turn = c->turn.id,
                                       .who = c->owner,
                                       .ns = ns,
                                       .err = why,
                                       .trace =
                                           mo_trace_mark(c->turn.span, &mark)};

    mo_log_about(mo_loop_log(c->agent->loop), lv, "agent", &about, "%s", what);
}

void mo_chat_log_call(const struct call *k, enum mo_level lv, uint64_t ns,
                      const char *what)
{
    const struct chat *c = k->chat;
    struct mo_log_trace mark;
    const struct mo_log_facts about = {
        .session = c->id,
        .turn = c->turn.id,
        .call = mo_span_cstr(k->key),
        .server = k->tool ? k->tool->def.server : mo_span(NULL, 0),
        .tool = k->tool ? k->tool->def.name : mo_buf_view(&k->name),
        .who = k->who[0] ? k->who : c->owner,
        .ns = ns,
        .trace = mo_trace_mark(k->span ? k->span : c->turn.span, &mark),
    };

    mo_log_about(mo_loop_log(c->agent->loop), lv, "agent", &about, "%s", what);
}

static bool decided_by_person(const struct call *k)
{
    return k->by && strcmp(k->by, "person") == 0;
}

void mo_chat_log_decision(const struct call *k)
{
    char what[64];

    snprintf(what, sizeof(what), "call %s%s%s",
             k->state == MO_CALL_PENDING ? "waits for a person"
             : k->state == MO_CALL_RUNNING && decided_by_person(k) ? "approved"
             : k->state == MO_CALL_RUNNING                         ? "allowed"
             : decided_by_person(k)                                ? "rejected"
                                                                   : "refused",
             k->by ? " by " : "", k->by ? k->by : "");
    mo_chat_log_call(k, MO_INFO, 0, what);
}

void mo_chat_log_outcome(const struct call *k)
{
    mo_chat_log_call(k, MO_INFO, mo_now_ns() - k->began,
                     k->state == MO_CALL_UNKNOWN ? "call ended, outcome unknown"
                     : k->is_error               ? "call ended with an error"
                                                 : "call ended");
}
