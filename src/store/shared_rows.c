#include "store/shared_rows.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"

#define ROOM        "store"
#define NEWS        "-news"
#define GONE        "{\"gone\":true,\"at\":" /* and the time */
#define NAME_MAX_   24
#define NEWS_BYTES  12
#define SOON_MS     100 /* changes that come together are one round */
#define BATCH       32
#define BATCH_BYTES (MO_STORE_BATCH_BYTES / 2)
#define PAGE        256

struct own_write {
    struct mo_list node;
    char id[MO_STORE_ID_MAX + 1];
    struct mo_buf doc;
};

struct kind {
    struct mo_shared_kind k;
    struct mo_map theirs; /* id -> struct mo_shared_row *, in a round */
};

struct mo_shared_rows {
    struct mo_loop *loop;
    struct mo_store *store;
    char prefix[NAME_MAX_], news[NAME_MAX_]; /* NAME: and NAME-news */
    struct kind kinds[MO_SHARED_KINDS_MAX];
    size_t nkinds;
    struct mo_list writes;          /* of struct own_write, in a round */
    struct mo_timer look;           /* the next look or round */
    char last[MO_STORE_ID_MAX + 1]; /* id of the last row that was read */
    char seen[MO_TOKEN_LEN(NEWS_BYTES) + 8]; /* of NEWS before the last round */
    char next[MO_TOKEN_LEN(NEWS_BYTES) + 8]; /* the same, of this round */
    unsigned ops;                            /* under way in the store */
    bool is_closed, is_read, is_dirty, is_busy, is_told;
};

/* --- life of a round ------------------------------------------------------ */

static void forget_round(struct mo_shared_rows *r)
{
    for (size_t i = 0; i < r->nkinds; i++) {
        mo_map_each (en, &r->kinds[i].theirs)
            mo_free(en->value);
        mo_map_clear(&r->kinds[i].theirs);
    }
    mo_list_drain (w, &r->writes, struct own_write, node) {
        mo_buf_fini(&w->doc);
        mo_free(w);
    }
}

static void free_rows(struct mo_shared_rows *r)
{
    forget_round(r);
    for (size_t i = 0; i < r->nkinds; i++)
        mo_map_fini(&r->kinds[i].theirs);
    mo_free(r);
}

/* True: it was closed meanwhile; after the last operation it is gone. */
static bool end_op(struct mo_shared_rows *r)
{
    bool is_closed = r->is_closed;

    if (--r->ops == 0 && is_closed)
        free_rows(r);
    return is_closed;
}

static void end_round(struct mo_shared_rows *r, const struct mo_err *why)
{
    forget_round(r);
    r->is_busy = false;
    if (why)
        r->is_dirty = true;
    if (why && !r->is_told)
        mo_log_err(mo_loop_log(r->loop), MO_WARN, ROOM, why,
                   "what other servers have (%s) is not known", r->prefix);
    r->is_told = why != NULL;
    mo_timer_start(r->loop, &r->look,
                   !why && r->is_dirty ? SOON_MS : MO_SHARED_ROWS_MS);
}

static int read_store(struct mo_shared_rows *r, const struct mo_read *q,
                      void (*done)(void *ctx, const struct mo_rows *rows,
                                   const struct mo_err *why))
{
    struct mo_err e;
    int rc = mo_store_read(r->store, q, done, r, &e);

    if (rc == 0)
        r->ops++;
    else
        end_round(r, &e);
    return rc;
}

/* --- writing ---------------------------------------------------------------
 */

static void put_news(struct mo_buf *doc)
{
    char text[MO_TOKEN_LEN(NEWS_BYTES) + 1];

    mo_random_token(text, NEWS_BYTES);
    (void)mo_buf_printf(doc, "\"%s\"", text);
}

static void write_some(struct mo_shared_rows *r);

static void on_written(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    struct mo_shared_rows *r = ctx;

    (void)w;
    if (end_op(r))
        return;
    if (why)
        end_round(r, why);
    else
        write_some(r);
}

/* Writes the next rows, each batch with news: a reader may see some of them. */
static void write_some(struct mo_shared_rows *r)
{
    struct mo_write v[BATCH + 1];
    struct own_write *w[BATCH];
    mo_autobuf struct mo_buf news = {.max = 64};
    struct mo_store_batch b = {.writes = v};
    size_t n = 0, bytes = 0;
    struct mo_err e;
    int rc;

    while (n < BATCH && !mo_list_empty(&r->writes) && bytes < BATCH_BYTES) {
        w[n] = mo_list_first(&r->writes, struct own_write, node);
        mo_list_del(&w[n]->node);
        v[n] = (struct mo_write){.kind = MO_WRITE_MARK,
                                 .id = mo_span_cstr(w[n]->id),
                                 .doc = mo_buf_view(&w[n]->doc)};
        bytes += v[n++].doc.n;
    }
    if (n == 0) {
        end_round(r, NULL);
        return;
    }
    put_news(&news);
    v[n] = (struct mo_write){.kind = MO_WRITE_MARK,
                             .id = mo_span_cstr(r->news),
                             .doc = mo_buf_view(&news)};
    b.n = n + 1;
    rc = mo_store_write(r->store, &b, on_written, r, &e);
    for (size_t i = 0; i < n; i++) {
        mo_buf_fini(&w[i]->doc);
        mo_free(w[i]);
    }
    if (rc == 0)
        r->ops++;
    else
        end_round(r, &e);
}

void mo_shared_rows_put(struct mo_shared_rows *r, const char *kind,
                        struct mo_span id, struct mo_span doc)
{
    struct own_write *w =
        doc.n <= MO_STORE_DOC_MAX ? mo_new(struct own_write) : NULL;
    int n = w ? snprintf(w->id, sizeof(w->id), "%s%s:%.*s", r->prefix, kind,
                         (int)id.n, id.p)
              : -1;

    if (w)
        mo_buf_init(&w->doc, MO_STORE_DOC_MAX);
    if (n < 0 || (size_t)n >= sizeof(w->id) || mo_buf_span(&w->doc, doc) < 0) {
        mo_log(mo_loop_log(r->loop), MO_WARN, ROOM,
               "a row of %s is too long for other servers", kind);
        if (w)
            mo_buf_fini(&w->doc);
        mo_free(w);
        return;
    }
    mo_list_push(&r->writes, &w->node);
}

/* --- reading ---------------------------------------------------------------
 */

static struct kind *kind_of(struct mo_shared_rows *r, struct mo_span *id)
{
    struct mo_span name;

    *id = mo_span_skip(*id, strlen(r->prefix));
    name = mo_span_cut(id, ':');
    for (size_t i = 0; i < r->nkinds; i++)
        if (mo_span_is(name, r->kinds[i].k.name))
            return &r->kinds[i];
    return NULL; /* of a newer version */
}

static int keep_row(struct mo_shared_rows *r, const struct mo_row *row)
{
    struct mo_span id = row->id;
    struct kind *k = kind_of(r, &id);
    struct mo_shared_row *x = NULL;
    void *old = NULL;
    int rc;

    if (!k || k->theirs.len >= MO_SHARED_ROWS_MAX)
        return 0;
    x = mo_zalloc(sizeof(*x) + row->doc.n);
    if (!x)
        return MO_ENOMEM;
    x->is_gone = mo_span_starts(row->doc, MO_SPAN(GONE));
    x->n = row->doc.n;
    memcpy(x->doc, row->doc.p, row->doc.n);
    rc = mo_map_put(&k->theirs, id, x, &old);
    mo_free(rc < 0 ? (void *)x : old);
    return rc;
}

static void merge_all(struct mo_shared_rows *r)
{
    r->is_dirty = false;
    for (size_t i = 0; i < r->nkinds; i++)
        r->kinds[i].k.merge(r->kinds[i].k.ctx, &r->kinds[i].theirs, r);
    r->is_read = true;
    memcpy(r->seen, r->next, sizeof(r->seen));
    write_some(r);
}

static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why);

static void read_page(struct mo_shared_rows *r)
{
    const struct mo_read q = {.kind = MO_READ_MARKS,
                              .text = mo_span_cstr(r->prefix),
                              .id = mo_span_cstr(r->last),
                              .limit = PAGE};

    (void)read_store(r, &q, on_rows);
}

static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_shared_rows *r = ctx;
    struct mo_err e;
    int rc = 0;

    if (end_op(r))
        return;
    for (size_t i = 0; !why && rc == 0 && i < rows->n; i++)
        rc = keep_row(r, &rows->v[i]);
    if (rc < 0)
        why = (mo_fail(&e, rc, "out of memory"), &e);
    if (why) {
        end_round(r, why);
        return;
    }
    if (rows->n == 0 || !rows->more) {
        merge_all(r);
        return;
    }
    (void)snprintf(r->last, sizeof(r->last), "%.*s",
                   (int)rows->v[rows->n - 1].id.n, rows->v[rows->n - 1].id.p);
    read_page(r);
}

/* News that come while the rows are read cause another round. */
static void on_news(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_shared_rows *r = ctx;
    struct mo_span now = {"", 0};

    if (end_op(r))
        return;
    if (why) {
        end_round(r, why);
        return;
    }
    if (rows->n)
        now = mo_span_head(rows->v[0].doc, sizeof(r->next) - 1);
    (void)snprintf(r->next, sizeof(r->next), "%.*s", (int)now.n, now.p);
    if (r->is_read && !r->is_dirty && strcmp(r->next, r->seen) == 0) {
        end_round(r, NULL);
        return;
    }
    r->last[0] = '\0';
    read_page(r);
}

static void on_look(struct mo_timer *t)
{
    struct mo_shared_rows *r = mo_container_of(t, struct mo_shared_rows, look);
    const struct mo_read q = {.kind = MO_READ_MARK,
                              .id = mo_span_cstr(r->news)};

    r->is_busy = true;
    (void)read_store(r, &q, on_news);
}

void mo_shared_rows_changed(struct mo_shared_rows *r)
{
    r->is_dirty = true;
    if (!r->is_busy)
        mo_timer_start(r->loop, &r->look, SOON_MS);
}

bool mo_shared_rows_are_read(const struct mo_shared_rows *r)
{
    return r->is_read;
}

/* --- one row -----------------------------------------------------------------
 */

struct one {
    struct mo_shared_rows *rows;
    mo_shared_done_fn *done;
    mo_shared_got_fn *got;
    void *ctx;
};

static void on_one_written(void *ctx, const struct mo_written *w,
                           const struct mo_err *why)
{
    struct one x = *(struct one *)ctx;
    struct mo_err closed;

    (void)w;
    mo_free(ctx);
    (void)mo_fail(&closed, MO_ECLOSED, "this server ends");
    x.done(x.ctx, end_op(x.rows) ? &closed : why);
}

static int put_id(const struct mo_shared_rows *r, const char *kind,
                  struct mo_span id, struct mo_buf *out)
{
    return mo_buf_printf(out, "%s%s:%.*s", r->prefix, kind, (int)id.n, id.p);
}

int mo_shared_rows_write(struct mo_shared_rows *r, const char *kind,
                         struct mo_span id, struct mo_span doc,
                         mo_shared_done_fn *done, void *ctx, struct mo_err *e)
{
    mo_autobuf struct mo_buf news = {.max = 64},
                             name = {.max = MO_STORE_ID_MAX};
    struct one *x = mo_new(struct one);
    struct mo_write v[2] = {
        {.kind = MO_WRITE_MARK, .doc = doc},
        {.kind = MO_WRITE_MARK, .id = mo_span_cstr(r->news)}};
    const struct mo_store_batch b = {.writes = v, .n = MO_COUNT(v)};
    int rc = x ? put_id(r, kind, id, &name) : MO_ENOMEM;

    put_news(&news);
    v[0].id = mo_buf_view(&name);
    v[1].doc = mo_buf_view(&news);
    if (rc < 0) {
        mo_free(x);
        return mo_fail(e, rc, "a shared row");
    }
    *x = (struct one){.rows = r, .done = done, .ctx = ctx};
    rc = mo_store_write(r->store, &b, on_one_written, x, e);
    if (rc == 0)
        r->ops++;
    else
        mo_free(x);
    return rc;
}

void mo_shared_rows_put_gone(struct mo_buf *out, uint64_t at_ms)
{
    (void)mo_buf_printf(out, GONE "%llu}", (unsigned long long)at_ms);
}

int mo_shared_rows_remove(struct mo_shared_rows *r, const char *kind,
                          struct mo_span id, mo_shared_done_fn *done, void *ctx,
                          struct mo_err *e)
{
    mo_autobuf struct mo_buf doc = {.max = 64};

    mo_shared_rows_put_gone(&doc, mo_wall_ms());
    return mo_shared_rows_write(r, kind, id, mo_buf_view(&doc), done, ctx, e);
}

static void on_one_read(void *ctx, const struct mo_rows *rows,
                        const struct mo_err *why)
{
    struct one x = *(struct one *)ctx;
    struct mo_err closed;
    struct mo_span doc = !why && rows->n ? rows->v[0].doc : mo_span(NULL, 0);

    mo_free(ctx);
    (void)mo_fail(&closed, MO_ECLOSED, "this server ends");
    x.got(x.ctx, doc, end_op(x.rows) ? &closed : why);
}

int mo_shared_rows_read(struct mo_shared_rows *r, const char *kind,
                        struct mo_span id, mo_shared_got_fn *got, void *ctx,
                        struct mo_err *e)
{
    mo_autobuf struct mo_buf name = {.max = MO_STORE_ID_MAX};
    struct one *x = mo_new(struct one);
    struct mo_read q = {.kind = MO_READ_MARK};
    int rc = x ? put_id(r, kind, id, &name) : MO_ENOMEM;

    q.id = mo_buf_view(&name);
    if (rc == 0) {
        *x = (struct one){.rows = r, .got = got, .ctx = ctx};
        rc = mo_store_read(r->store, &q, on_one_read, x, e);
    }
    if (rc == 0)
        r->ops++;
    else
        mo_free(x);
    return rc;
}

/* --- life -------------------------------------------------------------------
 */

int mo_shared_rows_open(struct mo_loop *l, struct mo_store *store,
                        const char *name, const struct mo_shared_kind *kinds,
                        size_t n, struct mo_shared_rows **out, struct mo_err *e)
{
    struct mo_shared_rows *r = mo_new(struct mo_shared_rows);

    MO_BUG_ON(n > MO_SHARED_KINDS_MAX);
    if (!r)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    r->loop = l;
    r->store = store;
    (void)snprintf(r->prefix, sizeof(r->prefix), "%s:", name);
    (void)snprintf(r->news, sizeof(r->news), "%s" NEWS, name);
    mo_list_init(&r->writes);
    for (; r->nkinds < n; r->nkinds++) {
        r->kinds[r->nkinds].k = kinds[r->nkinds];
        mo_map_init(&r->kinds[r->nkinds].theirs, MO_SHARED_ROWS_MAX);
    }
    mo_timer_init(&r->look, on_look);
    mo_timer_start(l, &r->look, 0);
    *out = r;
    return 0;
}

void mo_shared_rows_close(struct mo_shared_rows *r)
{
    if (!r)
        return;
    mo_timer_stop(r->loop, &r->look);
    r->is_closed = true;
    if (r->ops == 0)
        free_rows(r);
}
