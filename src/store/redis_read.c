/* redis_read.c - reads from Redis.
 *
 * A read of one session is one call. A read of all sessions pages through the
 * index, asks each session for its rows, and sorts them here. */
#include <stdio.h>
#include <stdlib.h>

#include "store/redis_priv.h"

#define PAGE_FIRST  8 /* sessions asked at a time, until their size is known */
#define PAGE_NEXT   128
#define PAGE_LIGHT  ((size_t)1024 * 1024)
#define AUDIT_PAGE  16
#define AUDIT_BYTES (MO_STORE_ANSWER_MAX / AUDIT_PAGE)

/* --- rows ---------------------------------------------------------------- */

static bool keep_text(struct mo_rop *o, struct mo_span from, struct mo_span *to)
{
    char *p = mo_arena_strndup(&o->op->mem, from.p, from.n);

    *to = mo_span(p, from.n);
    if (!p)
        mo_rop_fail(o, MO_ENOMEM, "store: answer");
    return p != NULL;
}

/* The next row, with room for it. */
static struct mo_row *next_row(struct mo_rop *o)
{
    return o->nrows <= o->op->read.limit ? &o->rows[o->nrows] : NULL;
}

static bool add_row(struct mo_rop *o, struct mo_row row)
{
    struct mo_row *to = next_row(o);

    if (!to || !keep_text(o, row.session, &row.session) ||
        !keep_text(o, row.id, &row.id) || !keep_text(o, row.doc, &row.doc))
        return false;
    *to = row;
    o->nrows++;
    o->bytes += row.doc.n + 256;
    return true;
}

/* Makes o->rows the answer; a row over the limit sets `more`. */
static void give_rows(struct mo_rop *o)
{
    struct mo_rows *out = &o->op->rows;

    out->v = o->rows;
    out->n = o->nrows;
    if (out->n > o->op->read.limit) {
        out->n = o->op->read.limit;
        out->more = true;
    }
}

/* Cuts a number in front of `end`. */
static bool cut_u64(struct mo_span *s, char end, uint64_t *out)
{
    return mo_span_u64(mo_span_cut(s, end), out) == 0 && s->p;
}

/* --- of one session ------------------------------------------------------ */

static void on_session(struct mo_rop *o, struct mo_rcall *k,
                       const struct mo_resp *r)
{
    struct mo_row row = {.session = o->op->read.session};

    (void)k;
    if (r->kind != MO_RESP_ARRAY || r->n != 2) {
        mo_rop_odd(o);
        return;
    }
    if (r->v[0].kind == MO_RESP_BULK && mo_resp_u64(&r->v[1], &row.at)) {
        row.doc = r->v[0].text;
        (void)add_row(o, row);
    }
    give_rows(o);
}

static struct mo_rcall *ask_session(struct mo_rop *o, struct mo_span id)
{
    struct mo_rcall *k = mo_rcall_new(o, -1, id);

    mo_rcall_puts(k, "HMGET");
    mo_rcall_key(k, "mcp:session:", id);
    mo_rcall_puts(k, "doc");
    mo_rcall_puts(k, "at");
    return k;
}

static void read_session(struct mo_rop *o)
{
    struct mo_rcall *k = ask_session(o, o->op->read.session);

    if (k)
        k->got = on_session;
    mo_rcall_go(k);
}

/* {number, seq of the first, more, {"AT\nDOC"...}} */
static void on_history(struct mo_rop *o, struct mo_rcall *k,
                       const struct mo_resp *r)
{
    struct mo_row row = {.session = o->op->read.session};
    uint64_t more = 0;

    (void)k;
    if (r->kind != MO_RESP_ARRAY || r->n != 4 ||
        !mo_resp_u64(&r->v[0], &row.conversation) ||
        !mo_resp_u64(&r->v[1], &row.seq) || !mo_resp_u64(&r->v[2], &more)) {
        mo_rop_odd(o);
        return;
    }
    for (size_t i = 0; i < r->v[3].n; i++) {
        row.doc = r->v[3].v[i].text;
        if (!cut_u64(&row.doc, '\n', &row.at)) {
            mo_rop_odd(o);
            return;
        }
        if (!add_row(o, row))
            return;
        row.seq++;
    }
    give_rows(o);
    o->op->rows.more = more;
}

static void read_history(struct mo_rop *o)
{
    const struct mo_read *q = &o->op->read;
    struct mo_rcall *k = mo_rcall_new(o, MO_LUA_HISTORY, q->session);

    mo_rcall_u64(k, 1);
    mo_rcall_key(k, "mcp:conversation:", q->session);
    mo_rcall_u64(k, q->conversation);
    mo_rcall_u64(k, q->after);
    mo_rcall_u64(k, q->limit);
    mo_rcall_u64(k, q->newest);
    mo_rcall_u64(k, MO_STORE_ANSWER_MAX);
    if (k)
        k->got = on_history;
    mo_rcall_go(k);
}

/* "STATE SEQ AT\nDOC" */
static bool add_call(struct mo_rop *o, struct mo_span id, struct mo_span value)
{
    struct mo_row row = {.session = o->op->read.session, .id = id};
    uint64_t state = 0;

    if (!cut_u64(&value, ' ', &state) || !cut_u64(&value, ' ', &row.seq) ||
        !cut_u64(&value, '\n', &row.at) || state > MO_CALL_UNKNOWN) {
        mo_rop_odd(o);
        return false;
    }
    row.state = (enum mo_call_state)state;
    row.doc = value;
    return add_row(o, row);
}

static void on_calls(struct mo_rop *o, struct mo_rcall *k,
                     const struct mo_resp *r)
{
    uint64_t more = 0;

    (void)k;
    if (r->kind != MO_RESP_ARRAY || r->n != 2 ||
        !mo_resp_u64(&r->v[0], &more)) {
        mo_rop_odd(o);
        return;
    }
    for (size_t i = 0; i + 1 < r->v[1].n; i += 2) {
        if (!add_call(o, r->v[1].v[i].text, r->v[1].v[i + 1].text))
            return;
    }
    give_rows(o);
    o->op->rows.more = more;
}

static void read_calls(struct mo_rop *o)
{
    const struct mo_read *q = &o->op->read;
    struct mo_rcall *k = mo_rcall_new(o, MO_LUA_CALLS, q->session);

    mo_rcall_u64(k, 1);
    mo_rcall_key(k, "mcp:call:", q->session);
    mo_rcall_u64(k, q->from ? q->from : ~0u);
    mo_rcall_u64(k, q->after);
    mo_rcall_u64(k, q->limit);
    mo_rcall_u64(k, MO_STORE_ANSWER_MAX);
    if (k)
        k->got = on_calls;
    mo_rcall_go(k);
}

static void on_call(struct mo_rop *o, struct mo_rcall *k,
                    const struct mo_resp *r)
{
    (void)k;
    if (r->kind == MO_RESP_BULK)
        (void)add_call(o, o->op->read.id, r->text);
    give_rows(o);
}

static void read_call(struct mo_rop *o)
{
    struct mo_rcall *k = mo_rcall_new(o, -1, o->op->read.session);

    mo_rcall_puts(k, "HGET");
    mo_rcall_key(k, "mcp:call:", o->op->read.session);
    mo_rcall_put(k, o->op->read.id);
    if (k)
        k->got = on_call;
    mo_rcall_go(k);
}

static void read_search(struct mo_rop *o)
{
    mo_rop_fail(o, MO_EUNAVAIL,
                "store: Redis has no full-text search; use the SQLite store "
                "for it");
}

/* --- the index, page by page --------------------------------------------- */

void mo_redis_page(struct mo_rop *o, const struct mo_resp *r)
{
    size_t n = r->n / 2;

    o->nids = 0;
    if (r->kind != MO_RESP_ARRAY) {
        mo_rop_odd(o);
        return;
    }
    o->ids = mo_arena_alloc(&o->op->mem, (n + 1) * sizeof(*o->ids));
    o->scores = mo_arena_alloc(&o->op->mem, (n + 1) * sizeof(*o->scores));
    if (!o->ids || !o->scores) {
        mo_rop_fail(o, MO_ENOMEM, "store: answer");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct mo_span score;

        if (!keep_text(o, r->v[2 * i].text, &o->ids[i]) ||
            !keep_text(o, r->v[2 * i + 1].text, &score))
            return;
        o->scores[i] = strtod(score.p, NULL);
        o->nids++;
    }
}

static void put_bound(struct mo_rcall *k, bool open, uint64_t v,
                      const char *none)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%s%llu", open ? "(" : "",
                   (unsigned long long)v);
    mo_rcall_puts(k, v ? text : none);
}

static void put_page(struct mo_rop *o, struct mo_rcall *k)
{
    mo_rcall_puts(k, "WITHSCORES");
    mo_rcall_puts(k, "LIMIT");
    mo_rcall_u64(k, o->next);
    mo_rcall_u64(k, o->page);
}

/* --- all sessions ----------------------------------------------------------
 *
 * found[i] is the row of ids[i]; doc.p NULL: it has none (any more), or the
 * page before had it already. */

static void ask_sessions(struct mo_rop *o);

static struct mo_row *found_rows(struct mo_rop *o)
{
    return o->op->back;
}

static void on_found(struct mo_rop *o, struct mo_rcall *k,
                     const struct mo_resp *r)
{
    struct mo_row *row = &found_rows(o)[k->tag];

    if (r->kind == MO_RESP_ARRAY && r->n == 2 && r->v[0].kind == MO_RESP_BULK)
        (void)keep_text(o, r->v[0].text, &row->doc);
    o->bytes += row->doc.n + 256;
}

/* The time of activity is the index's score: pages are counted by it. */
static void take_sessions(struct mo_rop *o)
{
    for (size_t i = 0; i < o->nids; i++) {
        const struct mo_row *row = &found_rows(o)[i];
        struct mo_row *to = next_row(o);

        if (!row->doc.p || !to)
            continue;
        *to = *row;
        o->nrows++;
    }
    if (next_row(o) && !o->last_page && o->bytes < MO_STORE_ANSWER_MAX) {
        o->page = o->bytes < PAGE_LIGHT ? PAGE_NEXT : PAGE_FIRST;
        ask_sessions(o);
        return;
    }
    o->step = NULL;
    give_rows(o);
    o->op->rows.more |= next_row(o) && !o->last_page;
    if (o->op->read.newest)
        mo_rows_reverse(o->rows, o->op->rows.n);
}

/* Members of equal score are in byte order. */
static bool seen_before(const struct mo_rop *o, size_t i)
{
    const struct mo_read *q = &o->op->read;
    struct mo_span id = o->ids[i];
    size_t n = id.n < q->id.n ? id.n : q->id.n;
    int cmp = n ? memcmp(id.p, q->id.p, n) : 0;

    if (!q->id.n || o->scores[i] > (double)q->after)
        return false;
    return cmp < 0 || (cmp == 0 && id.n <= q->id.n);
}

static void on_sessions(struct mo_rop *o, struct mo_rcall *k,
                        const struct mo_resp *r)
{
    struct mo_row *rows;

    (void)k;
    mo_redis_page(o, r);
    o->last_page = o->nids < o->page;
    o->next += o->nids;
    rows = mo_arena_zalloc(&o->op->mem, (o->nids + 1) * sizeof(*rows));
    if (!rows) {
        mo_rop_fail(o, MO_ENOMEM, "store: answer");
        return;
    }
    o->op->back = rows;
    for (size_t i = 0; i < o->nids; i++) {
        struct mo_rcall *get;

        if (seen_before(o, i))
            continue;
        rows[i] = (struct mo_row){.session = o->ids[i],
                                  .id = MO_SPAN(""),
                                  .at = (uint64_t)o->scores[i]};
        get = ask_session(o, o->ids[i]);
        if (get) {
            get->tag = i;
            get->got = on_found;
        }
        mo_rcall_go(get);
    }
}

static void ask_sessions(struct mo_rop *o)
{
    const struct mo_read *q = &o->op->read;
    struct mo_rcall *k = mo_rcall_new(o, -1, MO_SPAN(MO_REDIS_INDEX));

    mo_rcall_puts(k, q->newest ? "ZREVRANGEBYSCORE" : "ZRANGEBYSCORE");
    mo_rcall_puts(k, MO_REDIS_INDEX);
    if (q->newest)
        put_bound(k, true, q->before, "+inf");
    put_bound(k, !q->id.n, q->after, "-inf");
    if (!q->newest)
        put_bound(k, true, q->before, "+inf");
    put_page(o, k);
    if (k)
        k->got = on_sessions;
    mo_rcall_go(k);
    o->step = take_sessions;
}

static void read_sessions(struct mo_rop *o)
{
    o->page = PAGE_FIRST;
    ask_sessions(o);
}

/* --- audit --------------------------------------------------------------- */

static void ask_audits(struct mo_rop *o);

static bool is_newer(const struct mo_row *a, const struct mo_row *b)
{
    return a->at != b->at ? a->at > b->at : a->seq > b->seq;
}

/* Inserts the row among the newest limit + 1; false: it is older than all. */
static bool insert_row(struct mo_rop *o, struct mo_row row)
{
    size_t room = (size_t)o->op->read.limit + 1;
    size_t i = o->nrows;

    if (i == room && !is_newer(&row, &o->rows[i - 1]))
        return false;
    if (!keep_text(o, row.doc, &row.doc))
        return false;
    if (i == room)
        i--;
    else
        o->nrows++;
    for (; i && is_newer(&row, &o->rows[i - 1]); i--)
        o->rows[i] = o->rows[i - 1];
    o->rows[i] = row;
    return true;
}

/* {at, "SEQ\nDOC", ...}. If a session had too many bytes, its reply was cut:
 * rows older than its last one are unknown, and left out. */
static void on_audit(struct mo_rop *o, struct mo_rcall *k,
                     const struct mo_resp *r)
{
    struct mo_row row = {.session = o->ids[k->tag], .id = MO_SPAN("")};
    size_t bytes = 0;

    for (size_t i = 0; i + 1 < r->n; i += 2) {
        row.doc = r->v[i + 1].text;
        bytes += row.doc.n;
        if (!mo_resp_u64(&r->v[i], &row.at) ||
            !cut_u64(&row.doc, '\n', &row.seq)) {
            mo_rop_odd(o);
            return;
        }
        if (!insert_row(o, row))
            break;
    }
    if (bytes > AUDIT_BYTES && row.at > o->floor)
        o->floor = row.at;
}

static void give_audits(struct mo_rop *o)
{
    size_t n = 0;

    while (n < o->nrows && o->rows[n].at >= o->floor)
        n++;
    o->op->rows.more = n < o->nrows;
    o->nrows = n;
    o->step = NULL;
    give_rows(o);
}

static void take_audits(struct mo_rop *o)
{
    if (o->last_page)
        give_audits(o);
    else
        ask_audits(o);
}

static void ask_audit(struct mo_rop *o, size_t i)
{
    const struct mo_read *q = &o->op->read;
    struct mo_rcall *k = mo_rcall_new(o, MO_LUA_AUDIT, o->ids[i]);

    mo_rcall_u64(k, 1);
    mo_rcall_key(k, "mcp:audit:", o->ids[i]);
    put_bound(k, true, q->after, "-inf");
    put_bound(k, true, q->before, "+inf");
    mo_rcall_put(k, q->text);
    mo_rcall_u64(k, q->limit);
    mo_rcall_u64(k, AUDIT_BYTES);
    if (k) {
        k->tag = i;
        k->got = on_audit;
    }
    mo_rcall_go(k);
}

/* Sessions are in the order of their newest row: once that is too old for the
 * answer, all later sessions are. */
static void on_audits(struct mo_rop *o, struct mo_rcall *k,
                      const struct mo_resp *r)
{
    (void)k;
    mo_redis_page(o, r);
    o->last_page = o->nids < o->page;
    o->next += o->nids;
    if (o->nids && o->nrows > o->op->read.limit &&
        o->scores[0] < (double)o->rows[o->nrows - 1].at) {
        o->last_page = true;
        return;
    }
    for (size_t i = 0; i < o->nids; i++)
        ask_audit(o, i);
}

static void ask_audits(struct mo_rop *o)
{
    struct mo_rcall *k = mo_rcall_new(o, -1, MO_SPAN(MO_REDIS_AUDITS));

    mo_rcall_puts(k, "ZREVRANGEBYSCORE");
    mo_rcall_puts(k, MO_REDIS_AUDITS);
    mo_rcall_puts(k, "+inf");
    put_bound(k, true, o->op->read.after, "-inf");
    put_page(o, k);
    if (k)
        k->got = on_audits;
    mo_rcall_go(k);
    o->step = take_audits;
}

static void read_audit(struct mo_rop *o)
{
    o->page = AUDIT_PAGE;
    if (!o->op->read.session.n) {
        ask_audits(o);
        return;
    }
    o->ids = &o->op->read.session;
    o->nids = 1;
    o->last_page = true;
    o->step = take_audits;
    ask_audit(o, 0);
}

void mo_redis_read(struct mo_rop *o)
{
    static void (*const how[])(struct mo_rop *) = {
        [MO_READ_SESSION] = read_session, [MO_READ_SESSIONS] = read_sessions,
        [MO_READ_HISTORY] = read_history, [MO_READ_CALLS] = read_calls,
        [MO_READ_CALL] = read_call,       [MO_READ_SEARCH] = read_search,
        [MO_READ_AUDIT] = read_audit,
    };
    size_t room = (size_t)o->op->read.limit + 1;

    o->rows = mo_arena_zalloc(&o->op->mem, room * sizeof(*o->rows));
    if (!o->rows)
        mo_rop_fail(o, MO_ENOMEM, "store: answer");
    else
        how[o->op->read.kind](o);
}
