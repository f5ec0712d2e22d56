/* edit.c - changes the document of a session that no process has open.
 *
 * The lease is taken, so nobody opens the session meanwhile; the row is read
 * and written, and the lease given back. No box is touched, and the time of the
 * last activity stays. */
#include "codec/json/json.h"
#include "session/priv.h"

#define WAIT_MS                                                                \
    3000 /* for the lease: somebody is just opening or leaving it              \
          */

struct edit {
    struct mo_sessions *ss;
    char id[MO_SESSION_ID_MAX + 1];
    struct mo_lease *lease;
    uint64_t fence;
    mo_session_edit_fn *change;
    mo_done_fn *done;
    void *ctx;
};

static void finish(struct edit *x, const struct mo_err *why)
{
    struct mo_sessions *ss = x->ss;
    struct edit told = *x;

    if (x->lease)
        mo_lease_drop(x->lease);
    mo_free(x);
    told.done(told.ctx, why);
    ss->nkills--;
    mo_sessions_settle(ss);
}

static void on_written(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    (void)w;
    finish(ctx, why);
}

/* The row with other data. */
static int put_row(struct edit *x, struct mo_span doc, struct mo_buf *out,
                   struct mo_err *e)
{
    mo_autobuf struct mo_buf data = {.max = MO_SESSION_DATA_MAX};
    struct mo_json_doc row;
    struct mo_jw w;
    int rc = mo_json_parse(doc, 0, &row, e);

    if (rc == 0)
        rc = x->change(x->ctx, mo_json_get(row.root, "data"), &data, e);
    if (rc < 0)
        return rc;
    w = mo_jw_object(out);
    mo_json_each (at, row.root) {
        if (mo_json_str_eq(at.key, MO_SPAN("data")))
            continue;
        mo_jw_key_raw(&w, at.key);
        mo_jw_raw(&w, mo_json_text(at.val));
    }
    mo_jw_member_raw(&w, "data", mo_buf_view(&data));
    mo_jw_end(&w);
    mo_buf_pass_err(out, &data);
    return mo_buf_err(out) ? mo_fail(e, mo_buf_err(out), "the session's row")
                           : 0;
}

static void on_row(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct edit *x = ctx;
    mo_autobuf struct mo_buf doc = {.max = ROW_DOC_MAX};
    struct mo_write w = {.kind = MO_WRITE_SESSION};
    struct mo_store_batch b = {.session = mo_span_cstr(x->id),
                               .fence = x->fence,
                               .writes = &w,
                               .n = 1};
    struct mo_err e;
    int rc = 0;

    if (why) {
        finish(x, why);
        return;
    }
    if (rows->n == 0)
        rc = mo_fail(&e, MO_ENOTFOUND, "there is no session %s", x->id);
    if (rc == 0)
        rc = put_row(x, rows->v[0].doc, &doc, &e);
    if (rc == 0) {
        w.doc = mo_buf_view(&doc);
        w.at = rows->v[0].at;
        rc = mo_store_write(x->ss->o.store, &b, on_written, x, &e);
    }
    if (rc < 0)
        finish(x, &e);
}

static void on_held(void *ctx, struct mo_lease *l, uint64_t fence,
                    const struct mo_err *why)
{
    struct edit *x = ctx;
    struct mo_read r = {.kind = MO_READ_SESSION,
                        .session = mo_span_cstr(x->id)};
    struct mo_err e;

    x->lease = why ? NULL : l;
    x->fence = fence;
    if (why && why->code == MO_ETIMEOUT)
        finish(x, mo_error(MO_EBUSY, "%s", why->msg));
    else if (why)
        finish(x, why);
    else if (mo_store_read(x->ss->o.store, &r, on_row, x, &e) < 0)
        finish(x, &e);
}

/* The write is refused then, and reports it. */
static void on_lost(void *ctx, const struct mo_err *why)
{
    struct edit *x = ctx;

    (void)why;
    x->lease = NULL;
}

int mo_session_edit(struct mo_sessions *ss, struct mo_span id,
                    mo_session_edit_fn *change, mo_done_fn *done, void *ctx,
                    struct mo_err *e)
{
    static const struct mo_lease_cb cb = {on_held, on_lost};
    struct edit *x = NULL;
    int rc = 0;

    if (!mo_session_id_ok(id) || ss->closing)
        return mo_fail(e, ss->closing ? MO_ECLOSED : MO_EINVAL,
                       "the session cannot be changed");
    x = mo_new(struct edit);
    if (x == NULL)
        return mo_fail(e, MO_ENOMEM, "session");
    *x = (struct edit){.ss = ss, .change = change, .done = done, .ctx = ctx};
    memcpy(x->id, id.p, id.n);
    rc = mo_lease_take(ss->o.store, id, mo_span_cstr(ss->o.instance), WAIT_MS,
                       &cb, x, &x->lease, e);
    if (rc < 0)
        mo_free(x);
    else
        ss->nkills++;
    return rc;
}
