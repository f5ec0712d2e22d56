/* row.c - a session's document in the store.
 *
 * {"v":1,"box":"...","driver":"native","owner":"...",
 *  "created":1700000000000,"data":{...}}
 *
 * No "owner": the session has none. "asleep":true: the janitor has taken its
 * box.
 *
 * Unknown members are skipped, so that newer programs may add some. The time
 * of activity is a column of its own. */
#include <stdio.h>

#include "codec/json/json.h"
#include "session/priv.h"

#define ROW_VERSION 1

void mo_session_row_init(struct session_row *r)
{
    *r = (struct session_row){.box = ""};
    mo_buf_init(&r->data, MO_SESSION_DATA_MAX);
}

void mo_session_row_fini(struct session_row *r)
{
    mo_buf_fini(&r->data);
}

static void read_text(struct mo_json v, char *out, size_t size)
{
    struct mo_buf b;

    out[0] = '\0';
    mo_buf_init(&b, size - 1);
    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &b) == 0)
        (void)snprintf(out, size, "%s", mo_buf_cstr(&b));
    mo_buf_fini(&b);
}

int mo_session_row_read(struct session_row *r, struct mo_span doc,
                        struct mo_err *e)
{
    struct mo_json_doc d;
    struct mo_json data;
    int rc = mo_json_parse(doc, 0, &d, e);

    if (rc < 0)
        return mo_wrap(e, "the session's row");
    read_text(mo_json_get(d.root, "box"), r->box, sizeof(r->box));
    read_text(mo_json_get(d.root, "driver"), r->driver, sizeof(r->driver));
    read_text(mo_json_get(d.root, "owner"), r->owner, sizeof(r->owner));
    (void)mo_json_u64(mo_json_get(d.root, "created"), &r->created);
    r->asleep = false;
    (void)mo_json_bool(mo_json_get(d.root, "asleep"), &r->asleep);
    data = mo_json_get(d.root, "data");
    mo_buf_reset(&r->data);
    rc = data.p ? mo_buf_span(&r->data, mo_json_text(data)) : 0;
    return rc < 0 ? mo_fail(e, rc, "the session's row") : 0;
}

int mo_session_row(struct mo_span doc, struct mo_session_row *out,
                   struct mo_err *e)
{
    struct session_row r;
    int rc;

    mo_session_row_init(&r);
    rc = mo_session_row_read(&r, doc, e);
    *out = (struct mo_session_row){.created = r.created, .asleep = r.asleep};
    memcpy(out->box, r.box, sizeof(out->box));
    memcpy(out->driver, r.driver, sizeof(out->driver));
    memcpy(out->owner, r.owner, sizeof(out->owner));
    mo_session_row_fini(&r);
    return rc;
}

int mo_session_row_write(const struct session_row *r, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_u64(&w, "v", ROW_VERSION);
    mo_jw_member_cstr(&w, "box", r->box);
    mo_jw_member_cstr(&w, "driver", r->driver);
    if (r->owner[0])
        mo_jw_member_cstr(&w, "owner", r->owner);
    if (r->asleep)
        mo_jw_member_bool(&w, "asleep", true);
    mo_jw_member_u64(&w, "created", r->created);
    mo_jw_member_raw(&w, "data", mo_buf_view(&r->data));
    mo_jw_end(&w);
    return mo_buf_err(b);
}

/* A new session forgets what was stored under the same id before. */
int mo_session_keep_row(struct session *s,
                        void (*done)(void *ctx, const struct mo_written *w,
                                     const struct mo_err *why),
                        void *ctx, struct mo_err *e)
{
    struct mo_write w[] = {
        {.kind = MO_WRITE_FORGET},
        {.kind = MO_WRITE_SESSION, .at = s->active},
    };
    bool clean = !s->has_row && s->row.owner[0];
    struct mo_store_batch batch = {.session = mo_span_cstr(s->id),
                                   .fence = s->fence,
                                   .writes = clean ? w : w + 1,
                                   .n = clean ? 2 : 1};
    struct mo_buf doc;
    int rc;

    mo_buf_init(&doc, ROW_DOC_MAX);
    rc = mo_session_row_write(&s->row, &doc);
    if (rc < 0) {
        (void)mo_fail(e, rc, "the session's row");
    } else {
        w[1].doc = mo_buf_view(&doc);
        rc = mo_store_write(s->ss->o.store, &batch, done, ctx, e);
    }
    mo_buf_fini(&doc);
    if (rc < 0)
        return rc;
    s->pending++;
    s->dirty = false;
    return 0;
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
    struct mo_store_batch batch = {.session = mo_span_cstr(s->id),
                                   .fence = s->fence,
                                   .writes = &w,
                                   .n = 1};

    mo_timer_stop(s->ss->loop, &s->flush);
    if (!s->dirty || !s->held || !s->has_row)
        return;
    if (mo_store_write(s->ss->o.store, &batch, on_flushed, s, NULL) < 0)
        return; /* the next touch tries again */
    s->dirty = false;
    s->pending++;
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
