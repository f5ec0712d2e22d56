/* row.c - a session's document in the store.
 *
 * {"v":1,"box":"...","driver":"native","owner":"...",
 *  "created":1700000000000,"data":{...}}
 *
 * "files": its kept workspace (box/box.h); "where": the machine that alone
 * reaches it and the box. No "owner": the session has none.
 * "asleep":true: the janitor has taken its box.
 *
 * Unknown members are skipped, so that newer programs may add some. The time
 * of activity is a column of its own. */
#include "codec/json/json.h"
#include "session/priv.h"

#define ROW_VERSION 1

static int parse_row(struct mo_span doc, struct mo_session_row *out,
                     struct mo_json *data, struct mo_err *e)
{
    struct mo_json_doc d;

    *out = (struct mo_session_row){.box = ""};
    if (mo_json_parse(doc, 0, &d, e) < 0)
        return mo_wrap(e, "the session's row");
    (void)mo_json_str_copy(mo_json_get(d.root, "box"), out->box,
                           sizeof(out->box));
    (void)mo_json_str_copy(mo_json_get(d.root, "driver"), out->driver,
                           sizeof(out->driver));
    (void)mo_json_str_copy(mo_json_get(d.root, "files"), out->files,
                           sizeof(out->files));
    (void)mo_json_str_copy(mo_json_get(d.root, "where"), out->where,
                           sizeof(out->where));
    (void)mo_json_str_copy(mo_json_get(d.root, "owner"), out->owner,
                           sizeof(out->owner));
    (void)mo_json_u64(mo_json_get(d.root, "created"), &out->created);
    out->asleep = mo_json_flag(d.root, "asleep");
    *data = mo_json_get(d.root, "data");
    return 0;
}

int mo_session_row(struct mo_span doc, struct mo_session_row *out,
                   struct mo_err *e)
{
    struct mo_json data;

    return parse_row(doc, out, &data, e);
}

int mo_session_row_read(struct session *s, struct mo_span doc, struct mo_err *e)
{
    struct mo_json data = {NULL, 0};
    int rc = parse_row(doc, &s->row, &data, e);

    if (rc < 0)
        return rc;
    rc = mo_buf_set(&s->data, mo_json_text(data));
    return rc < 0 ? mo_fail(e, rc, "the session's row") : 0;
}

int mo_session_row_put(const struct mo_session_row *r, struct mo_span data,
                       struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_u64(&w, "v", ROW_VERSION);
    mo_jw_member_cstr(&w, "box", r->box);
    mo_jw_member_cstr(&w, "driver", r->driver);
    mo_jw_member_opt(&w, "files", mo_span_cstr(r->files));
    mo_jw_member_opt(&w, "where", mo_span_cstr(r->where));
    mo_jw_member_opt(&w, "owner", mo_span_cstr(r->owner));
    if (r->asleep)
        mo_jw_member_bool(&w, "asleep", true);
    mo_jw_member_u64(&w, "created", r->created);
    mo_jw_member_raw(&w, "data", data);
    mo_jw_end(&w);
    return mo_buf_err(b);
}

int mo_session_write(struct session *s, const struct mo_write *w, size_t n,
                     session_written_fn *done, void *ctx, struct mo_err *e)
{
    struct mo_store_batch batch = {
        .session = mo_span_cstr(s->id), .fence = s->fence, .writes = w, .n = n};
    int rc = mo_store_write(s->ss->o.store, &batch, done, ctx, e);

    if (rc == 0)
        s->pending++;
    return rc;
}

/* A new session forgets what was stored under the same id before. */
int mo_session_keep_row(struct session *s, session_written_fn *done, void *ctx,
                        struct mo_err *e)
{
    mo_autobuf struct mo_buf doc = {.max = ROW_DOC_MAX};
    int rc = mo_session_row_put(&s->row, mo_buf_view(&s->data), &doc);
    struct mo_write w[] = {
        {.kind = MO_WRITE_FORGET},
        {.kind = MO_WRITE_SESSION, .at = s->active, .doc = mo_buf_view(&doc)},
    };
    bool clean = !s->has_row && s->row.owner[0];

    if (rc < 0)
        return mo_fail(e, rc, "the session's row");
    rc = mo_session_write(s, clean ? w : w + 1, clean ? 2 : 1, done, ctx, e);
    if (rc == 0)
        s->dirty = false;
    return rc;
}

/* --- activity ------------------------------------------------------------ */

static void on_flushed(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    struct session *s = ctx;

    (void)w;
    if (why)
        session_log(s, MO_WARN, 0, why, "activity could not be written");
    (void)mo_session_landed(s);
}

void mo_session_flush(struct session *s)
{
    struct mo_write w = {.kind = MO_WRITE_TOUCH, .at = s->active};

    mo_timer_stop(s->ss->loop, &s->flush);
    if (s->dirty && s->held && s->has_row) /* else the next touch tries again */
        s->dirty = mo_session_write(s, &w, 1, on_flushed, s, NULL) < 0;
}

void mo_session_flush_due(struct mo_timer *t)
{
    mo_session_flush(mo_container_of(t, struct session, flush));
}

void mo_session_touched(struct session *s)
{
    s->active = wall_now(s->ss);
    s->warned = 0;
    s->dirty = true;
    if (!mo_timer_on(&s->flush))
        mo_timer_start(s->ss->loop, &s->flush, TOUCH_MS);
}
