/* redis_index.c - keeps the full-text index in Redis (redis_lua_find.h).
 *
 * A write is acknowledged without it. Entries are indexed afterwards: they are
 * read back, split into words here, and added by a script that does nothing if
 * the index has moved meanwhile. So any number of processes may index the same
 * conversation, and each may be killed at any time: an index that is behind is
 * seen by the next search, which brings it up to date before it answers.
 *
 * Three callers: a search; a timer, when nothing was written for IDLE_MS or
 * entries have waited for LATE_MS; and the walk, which looks at every session
 * once after the start, for entries that are older than the index or whose
 * process was killed. One process at a time walks, by a lease.
 *
 * Bounds: an entry's first MO_REDIS_TEXT_MAX bytes and TERMS_MAX different
 * words; words of MO_REDIS_WORD_MAX bytes (longer ones are cut); BUCKETS of
 * BUCKET_MAX bytes for MO_REDIS_PART entries, more is not added; the
 * newest MO_REDIS_CONVS conversations of a session. */
#include <stdio.h>

#include "base/rand.h"
#include "store/fts.h"
#include "store/redis_priv.h"

#define ROOM        "store"
#define BUCKETS     64
#define BUCKET_MAX  ((uint64_t)64 * 1024)
#define TERMS_MAX   4096
#define LENGTH_MAX  65535 /* words of an entry, for the ranking */
#define CHUNK_ROWS  32
#define CHUNK_BYTES ((uint64_t)64 * 1024) /* more only for a single entry */
#define CHUNK_MEM   ((size_t)32 * 1024 * 1024)
#define IDLE_MS     50
#define LATE_MS     5000
#define DIRTY_MAX   4096 /* sessions; the others wait for the next search */
#define PAGE        16   /* sessions at a time */
#define WALK_AFTER  3000 /* ms */
#define WALK_PAUSE  10
#define WALK_AGAIN  60000
/* Not the id of a session, whose lease has it as its name. */
#define WALK_LEASE  MO_SPAN("index:full-text")

/* --- words of some entries ----------------------------------------------- */

struct posting {
    struct posting *next;
    uint64_t seq;
    unsigned times;
};

struct term {
    struct term *next; /* of its bucket */
    struct mo_span word;
    struct posting *first, *last;
};

struct chunk {
    struct mo_arena mem;
    struct mo_map terms; /* word -> struct term */
    struct term *buckets[BUCKETS];
    struct mo_buf lengths, text;
    uint64_t seq; /* of the present entry */
    unsigned words, different;
    uint64_t docs, total;
    bool failed; /* no memory */
};

/* FNV-1a. The number is part of the stored format. */
unsigned mo_redis_bucket(struct mo_span word)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < word.n; i++)
        h = (h ^ (unsigned char)word.p[i]) * 16777619u;
    return h % BUCKETS;
}

static struct term *find_term(struct chunk *c, struct mo_span word)
{
    struct term *t = mo_map_get(&c->terms, word);
    unsigned bucket;

    if (t)
        return t;
    t = mo_arena_new(&c->mem, struct term);
    if (!t || mo_arena_span(&c->mem, word, &t->word) < 0 ||
        mo_map_add(&c->terms, t->word, t) < 0)
        return NULL;
    bucket = mo_redis_bucket(word);
    t->next = c->buckets[bucket];
    c->buckets[bucket] = t;
    return t;
}

static bool add_posting(struct chunk *c, struct term *t)
{
    struct posting *p = mo_arena_new(&c->mem, struct posting);

    if (!p)
        return false;
    p->seq = c->seq;
    p->times = 1;
    if (t->last)
        t->last->next = p;
    else
        t->first = p;
    t->last = p;
    c->different++;
    return true;
}

static bool add_word(void *ctx, struct mo_span word)
{
    struct chunk *c = ctx;
    struct term *t;

    word = mo_span_head(word, MO_REDIS_WORD_MAX);
    c->words++;
    for (size_t i = 0; i < word.n; i++)
        if ((unsigned char)word.p[i] <= ' ')
            return true; /* cannot be: it would break the format */
    t = find_term(c, word);
    if (t && t->last && t->last->seq == c->seq)
        t->last->times++;
    else if (t && c->different < TERMS_MAX)
        c->failed |= !add_posting(c, t);
    c->failed |= !t;
    return !c->failed;
}

struct mo_span mo_redis_text(const struct mo_redis *r, struct mo_span doc,
                             struct mo_buf *room)
{
    mo_buf_reset(room);
    r->index.text_of(doc, room);
    if (mo_buf_err(room))
        return MO_SPAN("");
    return mo_span_head(mo_buf_view(room), MO_REDIS_TEXT_MAX);
}

static void add_entry(struct chunk *c, struct mo_rop *o, struct mo_fts *words,
                      struct mo_span doc)
{
    struct mo_span text = mo_redis_text(o->r, doc, &c->text);

    c->failed |= mo_buf_err(&c->text) == MO_ENOMEM;
    c->words = 0;
    c->different = 0;
    if (mo_fts_each(words, text, add_word, c) < 0)
        c->failed = true;
    if (c->words > LENGTH_MAX)
        c->words = LENGTH_MAX;
    mo_buf_printf(&c->lengths, "%04x", c->words);
    c->docs += c->words > 0;
    c->total += c->words;
}

static void chunk_init(struct chunk *c)
{
    *c = (struct chunk){.seq = 0};
    mo_arena_init(&c->mem, CHUNK_MEM);
    mo_map_init_lent(&c->terms, (size_t)CHUNK_ROWS * TERMS_MAX);
    mo_buf_init(&c->lengths, (size_t)CHUNK_ROWS * 4 + 1);
    mo_buf_init(&c->text, 4 * MO_STORE_DOC_MAX);
}

static void chunk_fini(struct chunk *c)
{
    mo_map_fini(&c->terms);
    mo_arena_fini(&c->mem);
    mo_buf_fini(&c->lengths);
    mo_buf_fini(&c->text);
}

/* --- a session ----------------------------------------------------------- */

struct mo_fts *mo_redis_words(struct mo_rop *o)
{
    struct mo_rindex *x = &o->r->index;
    struct mo_err e = {0};

    if (!x->words && mo_fts_new(&x->words, &e) < 0)
        (void)mo_rop_fail(o, e.code, "%s", e.msg);
    return x->words;
}

static void put_bucket(struct mo_rcall *k, const struct chunk *c, unsigned i,
                       struct mo_buf *b)
{
    mo_buf_reset(b);
    for (const struct term *t = c->buckets[i]; t; t = t->next) {
        mo_buf_span(b, t->word);
        mo_buf_putc(b, '\t');
        for (const struct posting *p = t->first; p; p = p->next) {
            mo_buf_u64(b, p->seq);
            if (p->times > 1)
                mo_buf_printf(b, "x%u", p->times);
            mo_buf_putc(b, ' ');
        }
        mo_buf_putc(b, '\n');
    }
    if (b->len)
        mo_rcall_put(k, "it", (uint64_t)i, mo_buf_view(b));
}

static bool on_indexed(struct mo_rop *o, const struct mo_resp *r)
{
    mo_redis_index_session(o, o->tag);
    return r->kind == MO_RESP_NUMBER;
}

/* last: the last entry, as it is stored. */
static void add_to_index(struct mo_rop *o, const struct chunk *c,
                         uint64_t number, uint64_t from, struct mo_span last)
{
    struct mo_span id = o->ids[o->tag];
    ptrdiff_t at = mo_span_find(last, '\n');
    mo_autobuf struct mo_buf b = {.max = CHUNK_MEM};
    struct mo_rcall *k = mo_rcall_new(o, MO_LUA_INDEX, id, on_indexed, o->tag);

    mo_rcall_put(k, "skiiititiiii", "1", "mcp:conversation:", id, number, from,
                 c->seq, mo_span_head(last, (size_t)(at + 1)), (uint64_t)last.n,
                 mo_buf_view(&c->lengths), c->docs, c->total, BUCKET_MAX,
                 (uint64_t)MO_REDIS_PART);
    for (unsigned i = 0; i < BUCKETS; i++)
        put_bucket(k, c, i, &b);
    if (mo_buf_err(&b))
        (void)mo_rop_fail(o, MO_ENOMEM, "store: full-text index");
    mo_rcall_go(k);
}

/* Splits the entries "AT\nDOC" that follow `from`. */
static bool index_entries(struct mo_rop *o, struct mo_fts *words,
                          uint64_t number, uint64_t from,
                          const struct mo_resp *v, size_t n)
{
    struct chunk c;
    bool ok = true;

    chunk_init(&c);
    c.seq = from;
    for (size_t i = 0; i < n && ok && !c.failed; i++) {
        struct mo_span doc = v[i].text;

        (void)mo_span_cut(&doc, '\n');
        ok = doc.p != NULL;
        c.seq++;
        add_entry(&c, o, words, doc);
    }
    if (c.failed || mo_buf_err(&c.lengths))
        ok = mo_rop_fail(o, MO_ENOMEM, "store: full-text index");
    if (ok)
        add_to_index(o, &c, number, from, v[n - 1].text);
    chunk_fini(&c);
    return ok;
}

/* {number, n, {"AT\nDOC"...}} */
static bool on_behind(struct mo_rop *o, const struct mo_resp *r)
{
    uint64_t number = 0, from = 0;
    struct mo_fts *words;

    if (r->kind != MO_RESP_ARRAY || r->n != 3 ||
        !mo_resp_u64(&r->v[0], &number) || !mo_resp_u64(&r->v[1], &from))
        return false;
    if (number && r->v[2].n == 0)
        return false;
    if (o->op->answered)
        return true; /* too late */
    if (!number) {
        if (o->indexed)
            o->indexed(o, o->tag);
        return true;
    }
    words = mo_redis_words(o);
    return words && index_entries(o, words, number, from, r->v[2].v, r->v[2].n);
}

void mo_redis_index_session(struct mo_rop *o, size_t i)
{
    mo_rcall(o, MO_LUA_BEHIND, o->ids[i], on_behind, i, "skiiii", "1",
             "mcp:conversation:", o->ids[i], (uint64_t)MO_REDIS_CONVS,
             (uint64_t)CHUNK_ROWS, CHUNK_BYTES, (uint64_t)MO_REDIS_PART);
}

void mo_redis_index(struct mo_rop *o, struct mo_rids *ids)
{
    o->ids = ids->v;
    o->nids = ids->n;
    for (size_t i = 0; i < ids->n; i++)
        mo_redis_index_session(o, i);
}

/* --- some sessions, in the background ------------------------------------ */

/* An operation for up to PAGE sessions, which the caller adds. */
static struct mo_op *index_op(struct mo_redis *r, struct mo_rids **ids)
{
    size_t bytes = sizeof(**ids) + PAGE * sizeof((*ids)->v[0]);
    struct mo_op *op =
        mo_op_new(&r->s, MO_OP_INDEX, bytes + PAGE * MO_STORE_ID_MAX);

    *ids = op ? mo_arena_zalloc(&op->mem, bytes) : NULL;
    if (!op || *ids) {
        if (op)
            op->back = *ids;
        return op;
    }
    mo_op_free(op);
    return NULL;
}

static void add_id(struct mo_op *op, struct mo_rids *ids, struct mo_span id)
{
    if (mo_arena_span(&op->mem, id, &ids->v[ids->n]) == 0)
        ids->n++;
}

static void wait_idle(struct mo_redis *r)
{
    struct mo_rindex *x = &r->index;
    uint64_t now = mo_loop_now(r->s.loop);

    if (x->busy || r->s.closing)
        return;
    if (!x->since)
        x->since = now;
    if (!mo_timer_on(&x->soon) || now - x->since < LATE_MS * MO_MS)
        mo_timer_start(r->s.loop, &x->soon, IDLE_MS);
}

static void on_some_indexed(void *ctx, const struct mo_op *op)
{
    struct mo_redis *r = ctx;

    (void)op; /* after a failure the next search does it */
    r->index.busy = false;
    r->index.since = 0;
    if (r->index.dirty.len)
        wait_idle(r);
}

static void on_soon(struct mo_timer *t)
{
    struct mo_redis *r = mo_container_of(t, struct mo_redis, index.soon);
    struct mo_rids *ids = NULL;
    struct mo_op *op = r->s.closing ? NULL : index_op(r, &ids);

    if (!op)
        return;
    mo_map_each (en, &r->index.dirty) {
        if (ids->n < PAGE)
            add_id(op, ids, mo_map_key(en));
    }
    for (size_t i = 0; i < ids->n; i++)
        (void)mo_map_del(&r->index.dirty, ids->v[i]);
    r->index.busy = true;
    mo_op_submit(op, (struct mo_op_answer){.on_op = on_some_indexed, .ctx = r});
}

void mo_redis_index_later(struct mo_redis *r, const struct mo_store_batch *b)
{
    bool has_entry = false;

    for (size_t i = 0; i < b->n; i++)
        has_entry |= b->writes[i].kind == MO_WRITE_ENTRY;
    if (!r->index.text_of || !has_entry)
        return;
    (void)mo_map_put(&r->index.dirty, b->session, r, NULL);
    wait_idle(r);
}

/* --- the walk over all sessions ------------------------------------------ */

static void end_walk(struct mo_redis *r, bool again)
{
    struct mo_rindex *x = &r->index;

    if (x->lease)
        mo_lease_drop(mo_take_ptr(&x->lease));
    if (again && !r->s.closing)
        mo_timer_start(r->s.loop, &x->walk, WALK_AGAIN);
}

static void on_page_indexed(void *ctx, const struct mo_op *op)
{
    struct mo_redis *r = ctx;

    if (op->err.code)
        end_walk(r, true);
    else if (!r->s.closing)
        mo_timer_start(r->s.loop, &r->index.walk, WALK_PAUSE);
}

static void index_page(struct mo_redis *r, const struct mo_rows *rows)
{
    const struct mo_row *last = &rows->v[rows->n - 1];
    struct mo_rindex *x = &r->index;
    struct mo_rids *ids = NULL;
    struct mo_op *op = index_op(r, &ids);

    if (!op) {
        end_walk(r, true);
        return;
    }
    for (size_t i = 0; i < rows->n && i < PAGE; i++)
        add_id(op, ids, rows->v[i].session);
    memcpy(x->last, last->session.p, last->session.n);
    x->page.id = mo_span(x->last, last->session.n);
    x->page.after = last->at;
    mo_op_submit(op, (struct mo_op_answer){.on_op = on_page_indexed, .ctx = r});
}

static void on_page(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_redis *r = ctx;

    if (why || !r->index.lease)
        end_walk(r, why && r->index.lease);
    else if (rows->n && !r->s.closing)
        index_page(r, rows);
    else
        end_walk(r, false);
}

static void read_page(struct mo_redis *r)
{
    struct mo_err e;

    if (mo_store_read(&r->s, &r->index.page, on_page, r, &e) < 0)
        end_walk(r, true);
}

static void on_held(void *ctx, struct mo_lease *l, uint64_t fence,
                    const struct mo_err *why)
{
    struct mo_redis *r = ctx;

    (void)l;
    (void)fence;
    if (!why) {
        read_page(r);
        return;
    }
    r->index.lease = NULL;
    if (why->code == MO_EUNAVAIL)
        end_walk(r, true);
}

static void on_lost(void *ctx, const struct mo_err *why)
{
    struct mo_redis *r = ctx;

    (void)why;
    mo_timer_stop(r->s.loop, &r->index.walk);
    r->index.lease = NULL;
    end_walk(r, true);
}

static void on_walk(struct mo_timer *t)
{
    static const struct mo_lease_cb cb = {.on_held = on_held,
                                          .on_lost = on_lost};
    struct mo_redis *r = mo_container_of(t, struct mo_redis, index.walk);
    char owner[MO_TOKEN_LEN(12) + 1];
    struct mo_err e;

    if (r->index.lease) {
        read_page(r);
        return;
    }
    if (r->s.closing)
        return;
    mo_random_token(owner, 12);
    r->index.page = (struct mo_read){.kind = MO_READ_SESSIONS, .limit = PAGE};
    if (mo_lease_take(&r->s, WALK_LEASE, mo_span_cstr(owner), 0, &cb, r,
                      &r->index.lease, &e) < 0)
        end_walk(r, true);
}

/* --- birth and end -------------------------------------------------------- */

void mo_redis_index_init(struct mo_redis *r, const struct mo_store_opts *o)
{
    struct mo_rindex *x = &r->index;

    x->text_of = o->text_of;
    mo_map_init(&x->dirty, DIRTY_MAX);
    mo_timer_init(&x->soon, on_soon);
    mo_timer_init(&x->walk, on_walk);
    if (x->text_of)
        mo_timer_start(r->s.loop, &x->walk, WALK_AFTER);
}

void mo_redis_index_stop(struct mo_redis *r)
{
    struct mo_rindex *x = &r->index;

    mo_timer_stop(r->s.loop, &x->soon);
    mo_timer_stop(r->s.loop, &x->walk);
    mo_map_fini(&x->dirty);
    mo_fts_free(mo_take_ptr(&x->words));
}
