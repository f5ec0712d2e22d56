#include "people/login_rows.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/rand.h"
#include "codec/text/base64.h"
#include "secrets/key.h"

#define ROOM      "people"
#define ROW       "login:"
#define OF        "login-of:"
#define OUT       ":out"
#define ENDED     "logins-ended"
#define OWNER_HEX 32 /* digits of the name's digest */
#define DOC_MAX   ((size_t)1024 * 1024)
#define ID_MAX    MO_STORE_ID_MAX
#define WRITES    4

struct mo_login_rows {
    struct mo_loop *loop;
    struct mo_store *store;
    struct mo_secrets *key;
    struct mo_timer sweep;
    char last[ID_MAX + 1]; /* id of the last row of the sweep's page */
    char ended[40];        /* of the row ENDED; "": not read yet */
    unsigned ops;          /* under way in the store */
    bool is_closed, is_looking;
};

static uint64_t now_s(void)
{
    return mo_wall_coarse_ms() / 1000;
}

static void free_rows(struct mo_login_rows *r)
{
    mo_secrets_close(r->key);
    mo_free(r);
}

/* True: it was the last operation of closed rows, which are gone now. */
static bool end_op(struct mo_login_rows *r)
{
    r->ops--;
    if (!r->is_closed || r->ops)
        return false;
    free_rows(r);
    return true;
}

static void owner_of(const char *name, char out[OWNER_HEX + 1])
{
    char all[MO_SHA256_HEX + 1];

    mo_sha256_hex(mo_span_cstr(name), all);
    memcpy(out, all, OWNER_HEX);
    out[OWNER_HEX] = '\0';
}

/* --- writing ------------------------------------------------------------- */

struct change {
    struct mo_login_rows *rows;
    mo_login_put_fn *done;
    void *ctx;
    char digest[MO_SHA256_HEX + 1];
};

static void on_written(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    struct change c = *(struct change *)ctx;

    (void)w;
    mo_free(ctx);
    if (why)
        mo_log_err(mo_loop_log(c.rows->loop), MO_WARN, ROOM, why,
                   "a login is not in the store");
    if (c.done && !c.rows->is_closed)
        c.done(c.ctx, c.digest, why);
    (void)end_op(c.rows);
}

static int write_marks(struct mo_login_rows *r, const struct mo_write *v,
                       size_t n, const struct change *after, struct mo_err *e)
{
    const struct mo_store_batch b = {.writes = v, .n = n};
    struct change *c = mo_new(struct change);
    int rc;

    if (!c)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (after)
        *c = *after;
    c->rows = r;
    rc = mo_store_write(r->store, &b, on_written, c, e);
    if (rc < 0)
        mo_free(c);
    else
        r->ops++;
    return rc;
}

static struct mo_write mark(const char *id, struct mo_span doc)
{
    return (struct mo_write){
        .kind = MO_WRITE_MARK, .id = mo_span_cstr(id), .doc = doc};
}

struct ids {
    char row[ID_MAX + 1], out[ID_MAX + 1], of[ID_MAX + 1];
};

static void make_ids(struct ids *i, const char *digest, const char *name)
{
    char owner[OWNER_HEX + 1];

    owner_of(name, owner);
    (void)snprintf(i->row, sizeof(i->row), ROW "%s", digest);
    (void)snprintf(i->out, sizeof(i->out), ROW "%s" OUT, digest);
    (void)snprintf(i->of, sizeof(i->of), OF "%s:%s", owner, digest);
}

static void put_began(struct mo_buf *b, uint64_t began_s)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_u64(&w, "began", began_s);
    mo_jw_end(&w);
}

static void put_plain(const struct mo_login_row *row, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "name", row->name);
    mo_jw_member_cstr(&w, "host", row->host);
    mo_jw_member_cstr(&w, "provider", row->provider);
    mo_jw_member_cstr(&w, "subject", row->subject);
    mo_jw_member_cstr(&w, "claims", row->claims);
    if (row->refresh)
        mo_jw_member_cstr(&w, "refresh", row->refresh);
    mo_jw_member_u64(&w, "began", row->began_s);
    mo_jw_member_u64(&w, "beganMs", row->began_ms);
    mo_jw_member_u64(&w, "ends", row->ends_s);
    mo_jw_end(&w);
}

static int put_doc(const struct mo_login_rows *r, const char *digest,
                   const struct mo_login_row *row, struct mo_buf *doc)
{
    mo_autowipe struct mo_buf plain = {.max = DOC_MAX};
    mo_autobuf struct mo_buf sealed = {.max = DOC_MAX}, text = {.max = DOC_MAX};
    char owner[OWNER_HEX + 1];
    struct mo_jw w = mo_jw_object(doc);
    int rc;

    owner_of(row->name, owner);
    put_plain(row, &plain);
    rc = mo_buf_err(&plain);
    if (rc == 0)
        rc = mo_secrets_seal(r->key, mo_span_cstr(digest), mo_buf_view(&plain),
                             &sealed);
    if (rc == 0)
        rc = mo_base64_put(&text, mo_buf_view(&sealed));
    mo_jw_member_cstr(&w, "owner", owner);
    mo_jw_member_u64(&w, "began", row->began_s);
    mo_jw_member_cstr(&w, "seal", mo_buf_cstr(&text));
    mo_jw_end(&w);
    return rc < 0 ? rc : mo_buf_err(doc);
}

int mo_login_rows_put(struct mo_login_rows *r, const char *digest,
                      const struct mo_login_row *row, mo_login_put_fn *done,
                      void *ctx, struct mo_err *e)
{
    mo_autobuf struct mo_buf doc = {.max = DOC_MAX}, began = {.max = 256};
    struct change after = {.done = done, .ctx = ctx};
    struct mo_write v[2];
    struct ids ids;
    int rc = put_doc(r, digest, row, &doc);

    if (rc < 0)
        return mo_fail(e, rc, "the login is too long");
    make_ids(&ids, digest, row->name);
    put_began(&began, row->began_s);
    (void)snprintf(after.digest, sizeof(after.digest), "%s", digest);
    v[0] = mark(ids.row, mo_buf_view(&doc));
    v[1] = mark(ids.of, mo_buf_view(&began));
    return write_marks(r, v, MO_COUNT(v), &after, e);
}

void mo_login_rows_end(struct mo_login_rows *r, const char *digest,
                       const char *name)
{
    mo_autobuf struct mo_buf began = {.max = 256}, ended = {.max = 256};
    struct mo_jw w = mo_jw_object(&ended);
    char text[MO_TOKEN_LEN(12) + 1];
    struct mo_write v[WRITES];
    struct ids ids;
    struct mo_err e;

    mo_random_token(text, 12);
    mo_jw_member_cstr(&w, "last", text);
    mo_jw_end(&w);
    make_ids(&ids, digest, name);
    put_began(&began, now_s());
    v[0] = mark(ids.out, mo_buf_view(&began));
    v[1] = mark(ids.row, mo_span(NULL, 0));
    v[2] = mark(ids.of, mo_span(NULL, 0));
    v[3] = mark(ENDED, mo_buf_view(&ended));
    if (write_marks(r, v, MO_COUNT(v), NULL, &e) < 0)
        mo_log_err(mo_loop_log(r->loop), MO_WARN, ROOM, &e,
                   "the end of a login is not in the store");
}

/* --- reading ------------------------------------------------------------- */

struct asked {
    struct mo_login_rows *rows;
    mo_login_got_fn *got;
    void *ctx;
    char digest[MO_SHA256_HEX + 1];
    char name[MO_PERSON_MAX]; /* of mo_login_rows_end_person() */
    struct mo_buf doc;
};

static int take_text(struct mo_arena *a, struct mo_json root, const char *key,
                     const char **out)
{
    struct mo_json v = mo_json_get(root, key);
    struct mo_span s;

    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str(v, a, &s) < 0)
        return MO_EPROTO;
    *out = mo_arena_strndup(a, s.p, s.n);
    return *out ? 0 : MO_ENOMEM;
}

static int parse_plain(struct mo_arena *a, struct mo_span text,
                       struct mo_login_row *out)
{
    struct mo_json_doc d;
    int rc = mo_json_parse(text, 0, &d, NULL);

    if (rc == 0)
        rc = take_text(a, d.root, "name", &out->name);
    if (rc == 0)
        rc = take_text(a, d.root, "host", &out->host);
    if (rc == 0)
        rc = take_text(a, d.root, "provider", &out->provider);
    if (rc == 0)
        rc = take_text(a, d.root, "subject", &out->subject);
    if (rc == 0)
        rc = take_text(a, d.root, "claims", &out->claims);
    if (rc == 0)
        rc = mo_json_u64(mo_json_get(d.root, "began"), &out->began_s);
    if (rc == 0)
        rc = mo_json_u64(mo_json_get(d.root, "ends"), &out->ends_s);
    if (rc == 0)
        (void)take_text(a, d.root, "refresh", &out->refresh);
    if (rc == 0 &&
        mo_json_u64(mo_json_get(d.root, "beganMs"), &out->began_ms) < 0)
        out->began_ms = out->began_s * 1000; /* of an older version */
    return rc;
}

/* Opens the seal of a row. */
static int open_doc(const struct mo_login_rows *r, const char *digest,
                    struct mo_span doc, struct mo_arena *a,
                    struct mo_login_row *out, struct mo_err *e)
{
    mo_autowipe struct mo_buf plain = {.max = DOC_MAX};
    mo_autobuf struct mo_buf text = {.max = DOC_MAX}, sealed = {.max = DOC_MAX};
    struct mo_json_doc d;
    int rc = mo_json_parse(doc, 0, &d, e);

    if (rc == 0)
        rc = mo_json_str_buf(mo_json_get(d.root, "seal"), &text);
    if (rc == 0)
        rc = mo_base64_decode(mo_buf_view(&text), &sealed);
    if (rc < 0)
        return mo_fail(e, MO_EPROTO, "a login in the store is malformed");
    rc = mo_secrets_unseal(r->key, mo_span_cstr(digest), mo_buf_view(&sealed),
                           &plain, e);
    if (rc == 0 && parse_plain(a, mo_buf_view(&plain), out) < 0)
        rc = mo_fail(e, MO_EPROTO, "a login in the store is malformed");
    return rc;
}

static void free_asked(struct asked *q)
{
    mo_buf_fini(&q->doc);
    mo_free(q);
}

/* The row is in q->doc; empty: there is none, or it has ended. */
static void answer(struct asked *q, const struct mo_err *why)
{
    mo_autoarena struct mo_arena a = {.cap = DOC_MAX};
    struct mo_login_rows *r = q->rows;
    struct mo_login_row row = {.name = NULL};
    bool is_there = !why && q->doc.len > 0;
    struct mo_err e;

    if (is_there &&
        open_doc(r, q->digest, mo_buf_view(&q->doc), &a, &row, &e) < 0) {
        mo_log_err(mo_loop_log(r->loop), MO_WARN, ROOM, &e,
                   "a login in the store is not used");
        is_there = false;
    }
    if (!r->is_closed)
        q->got(q->ctx, q->digest, is_there ? &row : NULL, why);
    free_asked(q);
    (void)end_op(r);
}

static void on_out(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct asked *q = ctx;

    if (!why && rows->n)
        mo_buf_reset(&q->doc);
    answer(q, why);
}

static int read_mark(struct asked *q, const char *behind,
                     void (*done)(void *ctx, const struct mo_rows *rows,
                                  const struct mo_err *why),
                     struct mo_err *e)
{
    char id[ID_MAX + 1];
    struct mo_read r = {.kind = MO_READ_MARK};

    (void)snprintf(id, sizeof(id), ROW "%s%s", q->digest, behind);
    r.id = mo_span_cstr(id);
    return mo_store_read(q->rows->store, &r, done, q, e);
}

/* The row first: it has ended in between if OUT is there afterwards. */
static void on_row(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct asked *q = ctx;
    struct mo_err e;

    if (why || rows->n == 0 || q->rows->is_closed) {
        answer(q, why);
        return;
    }
    if (mo_buf_set(&q->doc, rows->v[0].doc) < 0)
        answer(q, mo_error(MO_ENOMEM, "out of memory"));
    else if (read_mark(q, OUT, on_out, &e) < 0)
        answer(q, &e);
}

static int read_marks(struct mo_login_rows *r, struct mo_span prefix,
                      struct mo_span after,
                      void (*done)(void *ctx, const struct mo_rows *rows,
                                   const struct mo_err *why),
                      void *ctx, struct mo_err *e)
{
    const struct mo_read q = {.kind = MO_READ_MARKS,
                              .text = prefix,
                              .id = after,
                              .limit = MO_STORE_ROWS_MAX};
    int rc = mo_store_read(r->store, &q, done, ctx, e);

    if (rc == 0)
        r->ops++;
    return rc;
}

static struct asked *new_asked(struct mo_login_rows *r, const char *digest,
                               mo_login_got_fn *got, void *ctx)
{
    struct asked *q = mo_new(struct asked);

    if (q) {
        *q = (struct asked){.rows = r, .got = got, .ctx = ctx};
        (void)snprintf(q->digest, sizeof(q->digest), "%s", digest);
        mo_buf_init(&q->doc, DOC_MAX);
    }
    return q;
}

int mo_login_rows_get(struct mo_login_rows *r, const char *digest,
                      mo_login_got_fn *got, void *ctx, struct mo_err *e)
{
    struct asked *q = new_asked(r, digest, got, ctx);
    int rc;

    if (!q)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    rc = read_mark(q, "", on_row, e);
    if (rc < 0)
        free_asked(q);
    else
        r->ops++;
    return rc;
}

/* --- all of a person ----------------------------------------------------- */

static void on_of(void *ctx, const struct mo_rows *rows,
                  const struct mo_err *why)
{
    struct asked *q = ctx;
    struct mo_login_rows *r = q->rows;

    for (size_t i = 0; !why && !r->is_closed && i < rows->n; i++) {
        struct mo_span id = rows->v[i].id;
        char digest[MO_SHA256_HEX + 1];

        if (id.n < MO_SHA256_HEX)
            continue;
        memcpy(digest, id.p + id.n - MO_SHA256_HEX, MO_SHA256_HEX);
        digest[MO_SHA256_HEX] = '\0';
        mo_login_rows_end(r, digest, q->name);
    }
    if (why)
        mo_log_err(mo_loop_log(r->loop), MO_WARN, ROOM, why,
                   "logins of a person cannot be ended");
    mo_free(q);
    (void)end_op(r);
}

void mo_login_rows_end_person(struct mo_login_rows *r, const char *name)
{
    struct asked *q = new_asked(r, "", NULL, NULL);
    char owner[OWNER_HEX + 1], prefix[ID_MAX + 1];
    struct mo_err e;

    if (!q)
        return;
    owner_of(name, owner);
    (void)snprintf(q->name, sizeof(q->name), "%s", name);
    (void)snprintf(prefix, sizeof(prefix), OF "%s:", owner);
    if (read_marks(r, mo_span_cstr(prefix), mo_span(NULL, 0), on_of, q, &e) ==
        0)
        return;
    mo_log_err(mo_loop_log(r->loop), MO_WARN, ROOM, &e,
               "logins of a person cannot be ended");
    mo_free(q);
}

/* --- has a login ended elsewhere? ---------------------------------------- */

struct looking {
    struct mo_login_rows *rows;
    void (*changed)(void *ctx);
    void *ctx;
};

static void on_looked(void *ctx, const struct mo_rows *rows,
                      const struct mo_err *why)
{
    struct looking q = *(struct looking *)ctx;
    struct mo_login_rows *r = q.rows;
    char now[sizeof(r->ended)] = "none";
    struct mo_json_doc d;

    mo_free(ctx);
    r->is_looking = false;
    if (!why && rows->n && mo_json_parse(rows->v[0].doc, 0, &d, NULL) == 0)
        (void)mo_json_str_copy(mo_json_get(d.root, "last"), now, sizeof(now));
    if (!why && !r->is_closed && strcmp(now, r->ended) != 0) {
        memcpy(r->ended, now, sizeof(now));
        q.changed(q.ctx);
    }
    (void)end_op(r);
}

void mo_login_rows_look(struct mo_login_rows *r, void (*changed)(void *ctx),
                        void *ctx)
{
    const struct mo_read read = {.kind = MO_READ_MARK, .id = MO_SPAN(ENDED)};
    struct looking *q = r->is_looking ? NULL : mo_new(struct looking);

    if (!q)
        return;
    *q = (struct looking){r, changed, ctx};
    if (mo_store_read(r->store, &read, on_looked, q, NULL) < 0) {
        mo_free(q);
        return;
    }
    r->is_looking = true;
    r->ops++;
}

/* --- old rows ------------------------------------------------------------ */

static void sweep_page(struct mo_login_rows *r);

static void drop_old(struct mo_login_rows *r, const struct mo_row *row)
{
    struct mo_json_doc d;
    struct mo_write v;
    uint64_t began = 0;
    char id[ID_MAX + 1];

    if (mo_json_parse(row->doc, 0, &d, NULL) == 0)
        (void)mo_json_u64(mo_json_get(d.root, "began"), &began);
    if (began + MO_LOGIN_S > now_s() || mo_span_is(row->id, ENDED))
        return;
    (void)snprintf(id, sizeof(id), "%.*s", (int)row->id.n, row->id.p);
    v = mark(id, mo_span(NULL, 0));
    (void)write_marks(r, &v, 1, NULL, NULL);
}

static void on_swept(void *ctx, const struct mo_rows *rows,
                     const struct mo_err *why)
{
    struct mo_login_rows *r = ctx;
    const struct mo_row *last;

    if (end_op(r) || r->is_closed)
        return;
    for (size_t i = 0; !why && i < rows->n; i++)
        drop_old(r, &rows->v[i]);
    if (why || rows->n == 0 || !rows->more) {
        mo_timer_start(r->loop, &r->sweep, MO_LOGIN_SWEEP_MS);
        return;
    }
    last = &rows->v[rows->n - 1];
    (void)snprintf(r->last, sizeof(r->last), "%.*s", (int)last->id.n,
                   last->id.p);
    sweep_page(r);
}

static void sweep_page(struct mo_login_rows *r)
{
    /* All ids begin with "login". */
    if (read_marks(r, MO_SPAN("login"), mo_span_cstr(r->last), on_swept, r,
                   NULL) < 0)
        mo_timer_start(r->loop, &r->sweep, MO_LOGIN_SWEEP_MS);
}

static void on_sweep(struct mo_timer *t)
{
    struct mo_login_rows *r = mo_container_of(t, struct mo_login_rows, sweep);

    r->last[0] = '\0';
    sweep_page(r);
}

/* --- begin and end ------------------------------------------------------- */

struct mo_store *mo_login_rows_store(const struct mo_login_rows *r)
{
    return r->store;
}

int mo_login_rows_open(struct mo_loop *l, struct mo_store *store,
                       const struct mo_config *c, struct mo_login_rows **out,
                       struct mo_err *e)
{
    struct mo_login_rows *r = mo_new(struct mo_login_rows);
    int rc;

    if (!r)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    rc = mo_secrets_for(c, true, &r->key, e);
    if (rc < 0) {
        mo_free(r);
        return rc;
    }
    r->loop = l;
    r->store = store;
    mo_timer_init(&r->sweep, on_sweep);
    mo_timer_start(l, &r->sweep, 0);
    *out = r;
    return 0;
}

void mo_login_rows_close(struct mo_login_rows *r)
{
    if (!r)
        return;
    mo_timer_stop(r->loop, &r->sweep);
    r->is_closed = true;
    if (r->ops == 0)
        free_rows(r);
}
