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

/* The next row, with room for it. */
static struct mo_row *next_row(struct mo_rop *o)
{
    return o->nrows <= o->op->read.limit ? &o->rows[o->nrows] : NULL;
}

bool mo_redis_add_row(struct mo_rop *o, struct mo_row row)
{
    struct mo_row *to = next_row(o);

    if (!to || !mo_rop_keep(o, row.session, &row.session) ||
        !mo_rop_keep(o, row.id, &row.id) ||
        !mo_rop_keep(o, row.doc, &row.doc) ||
        !mo_rop_keep(o, row.shares, &row.shares))
        return false;
    *to = row;
    o->nrows++;
    o->bytes += row.doc.n + 256;
    return true;
}

void mo_redis_give_rows(struct mo_rop *o)
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

static bool on_session(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_row row = {.session = o->op->read.session};

    if (r->kind != MO_RESP_ARRAY || r->n != 3)
        return false;
    if (r->v[0].kind == MO_RESP_BULK && mo_resp_u64(&r->v[1], &row.at)) {
        row.doc = r->v[0].text;
        if (r->v[2].kind == MO_RESP_BULK)
            row.shares = r->v[2].text;
        (void)mo_redis_add_row(o, row);
    }
    mo_redis_give_rows(o);
    return true;
}

static void ask_session(struct mo_rop *o, struct mo_span id, mo_rgot *got,
                        size_t tag)
{
    mo_rcall(o, -1, id, got, tag, "sksss", "HMGET", "mcp:session:", id, "doc",
             "at", "shares");
}

/* {number, seq of the first, more, {"AT\nDOC"...}} */
static bool on_history(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_row row = {.session = o->op->read.session};
    uint64_t more = 0;

    if (r->kind != MO_RESP_ARRAY || r->n != 4 ||
        !mo_resp_u64(&r->v[0], &row.conversation) ||
        !mo_resp_u64(&r->v[1], &row.seq) || !mo_resp_u64(&r->v[2], &more))
        return false;
    for (size_t i = 0; i < r->v[3].n; i++) {
        row.doc = r->v[3].v[i].text;
        if (!cut_u64(&row.doc, '\n', &row.at))
            return false;
        if (!mo_redis_add_row(o, row))
            return true;
        row.seq++;
    }
    mo_redis_give_rows(o);
    o->op->rows.more = more;
    return true;
}

/* "STATE SEQ AT\nDOC" */
static bool add_call(struct mo_rop *o, struct mo_span id, struct mo_span value)
{
    struct mo_row row = {.session = o->op->read.session, .id = id};
    uint64_t state = 0;

    if (!cut_u64(&value, ' ', &state) || !cut_u64(&value, ' ', &row.seq) ||
        !cut_u64(&value, '\n', &row.at) || state > MO_CALL_UNKNOWN)
        return false;
    row.state = (enum mo_call_state)state;
    row.doc = value;
    (void)mo_redis_add_row(o, row);
    return true;
}

static bool on_calls(struct mo_rop *o, const struct mo_resp *r)
{
    uint64_t more = 0;

    if (r->kind != MO_RESP_ARRAY || r->n != 2 || !mo_resp_u64(&r->v[0], &more))
        return false;
    for (size_t i = 0; i + 1 < r->v[1].n; i += 2) {
        if (!add_call(o, r->v[1].v[i].text, r->v[1].v[i + 1].text))
            return false;
    }
    mo_redis_give_rows(o);
    o->op->rows.more = more;
    return true;
}

static bool on_call(struct mo_rop *o, const struct mo_resp *r)
{
    if (r->kind == MO_RESP_BULK && !add_call(o, o->op->read.id, r->text))
        return false;
    mo_redis_give_rows(o);
    return true;
}

static bool on_mark(struct mo_rop *o, const struct mo_resp *r)
{
    const struct mo_row row = {.id = o->op->read.id, .doc = r->text};

    if (r->kind == MO_RESP_BULK)
        (void)mo_redis_add_row(o, row);
    mo_redis_give_rows(o);
    return true;
}

/* {more, {id, doc, id, doc...}} */
static bool on_marks(struct mo_rop *o, const struct mo_resp *r)
{
    uint64_t more = 0;

    if (r->kind != MO_RESP_ARRAY || r->n != 2 || !mo_resp_u64(&r->v[0], &more))
        return false;
    for (size_t i = 0; i + 1 < r->v[1].n; i += 2) {
        const struct mo_row row = {.id = r->v[1].v[i].text,
                                   .doc = r->v[1].v[i + 1].text};

        (void)mo_redis_add_row(o, row);
    }
    mo_redis_give_rows(o);
    o->op->rows.more = more;
    return true;
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

static bool on_found(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_row *row = &found_rows(o)[o->tag];

    if (r->kind == MO_RESP_ARRAY && r->n == 3 && r->v[0].kind == MO_RESP_BULK) {
        (void)mo_rop_keep(o, r->v[0].text, &row->doc);
        if (r->v[2].kind == MO_RESP_BULK)
            (void)mo_rop_keep(o, r->v[2].text, &row->shares);
    }
    o->bytes += row->doc.n + 256;
    return true;
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
    mo_redis_give_rows(o);
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

static bool on_sessions(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_row *rows;

    if (!mo_redis_page(o, r))
        return false;
    rows = mo_arena_zalloc(&o->op->mem, (o->nids + 1) * sizeof(*rows));
    if (!rows)
        return mo_rop_fail(o, MO_ENOMEM, "store: answer");
    o->op->back = rows;
    for (size_t i = 0; i < o->nids; i++) {
        if (seen_before(o, i))
            continue;
        rows[i] = (struct mo_row){.session = o->ids[i],
                                  .id = MO_SPAN(""),
                                  .at = (uint64_t)o->scores[i]};
        ask_session(o, o->ids[i], on_found, i);
    }
    return true;
}

struct bound {
    char text[32];
};

/* A score as ZRANGEBYSCORE takes it; v 0: `none`. */
static struct bound bound_of(bool open, uint64_t v, const char *none)
{
    struct bound b;

    if (v)
        (void)snprintf(b.text, sizeof(b.text), "%s%llu", open ? "(" : "",
                       (unsigned long long)v);
    else
        (void)snprintf(b.text, sizeof(b.text), "%s", none);
    return b;
}

static void ask_sessions(struct mo_rop *o)
{
    const struct mo_read *q = &o->op->read;
    struct bound low = bound_of(!q->id.n, q->after, "-inf");
    struct bound high = bound_of(true, q->before, "+inf");

    if (q->newest)
        mo_redis_ask_page(o, "ZREVRANGEBYSCORE", MO_REDIS_INDEX, high.text,
                          low.text, on_sessions);
    else
        mo_redis_ask_page(o, "ZRANGEBYSCORE", MO_REDIS_INDEX, low.text,
                          high.text, on_sessions);
    o->step = take_sessions;
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
    if (!mo_rop_keep(o, row.doc, &row.doc))
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
static bool on_audit(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_row row = {.session = o->ids[o->tag], .id = MO_SPAN("")};
    size_t bytes = 0;

    for (size_t i = 0; i + 1 < r->n; i += 2) {
        row.doc = r->v[i + 1].text;
        bytes += row.doc.n;
        if (!mo_resp_u64(&r->v[i], &row.at) ||
            !cut_u64(&row.doc, '\n', &row.seq))
            return false;
        if (!insert_row(o, row))
            break;
    }
    if (bytes > AUDIT_BYTES && row.at > o->floor)
        o->floor = row.at;
    return true;
}

static void take_audits(struct mo_rop *o)
{
    size_t n = 0;

    if (!o->last_page) {
        ask_audits(o);
        return;
    }
    while (n < o->nrows && o->rows[n].at >= o->floor)
        n++;
    o->op->rows.more = n < o->nrows;
    o->nrows = n;
    o->step = NULL;
    mo_redis_give_rows(o);
}

static void ask_audit(struct mo_rop *o, size_t i)
{
    const struct mo_read *q = &o->op->read;
    struct bound low = bound_of(true, q->after, "-inf");
    struct bound high = bound_of(true, q->before, "+inf");

    mo_rcall(o, MO_LUA_AUDIT, o->ids[i], on_audit, i, "sksstii", "1",
             "mcp:audit:", o->ids[i], low.text, high.text, q->text,
             (uint64_t)q->limit, (uint64_t)AUDIT_BYTES);
}

/* Sessions are in the order of their newest row: once that is too old for the
 * answer, all later sessions are. */
static bool on_audits(struct mo_rop *o, const struct mo_resp *r)
{
    if (!mo_redis_page(o, r))
        return false;
    if (o->nids && o->nrows > o->op->read.limit &&
        o->scores[0] < (double)o->rows[o->nrows - 1].at) {
        o->last_page = true;
        return true;
    }
    for (size_t i = 0; i < o->nids; i++)
        ask_audit(o, i);
    return true;
}

static void ask_audits(struct mo_rop *o)
{
    struct bound low = bound_of(true, o->op->read.after, "-inf");

    mo_redis_ask_page(o, "ZREVRANGEBYSCORE", MO_REDIS_AUDITS, "+inf", low.text,
                      on_audits);
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

/* {more, {name, sum, name, sum...}} */
static bool on_day(struct mo_rop *o, const struct mo_resp *r)
{
    uint64_t more = 0;

    if (r->kind != MO_RESP_ARRAY || r->n != 2 || !mo_resp_u64(&r->v[0], &more))
        return false;
    for (size_t i = 0; i + 1 < r->v[1].n; i += 2) {
        struct mo_row row = {.id = r->v[1].v[i].text};

        if (!mo_resp_u64(&r->v[1].v[i + 1], &row.seq) ||
            !mo_redis_add_row(o, row))
            return false;
    }
    mo_redis_give_rows(o);
    o->op->rows.more = more;
    return true;
}

void mo_redis_read(struct mo_rop *o)
{
    const struct mo_read *q = &o->op->read;
    size_t room = (size_t)q->limit + 1;

    o->rows = mo_arena_zalloc(&o->op->mem, room * sizeof(*o->rows));
    if (!o->rows) {
        (void)mo_rop_fail(o, MO_ENOMEM, "store: answer");
        return;
    }
    switch (q->kind) {
    case MO_READ_SESSION:
        ask_session(o, q->session, on_session, 0);
        break;
    case MO_READ_SESSIONS:
        o->page = PAGE_FIRST;
        ask_sessions(o);
        break;
    case MO_READ_HISTORY:
        mo_rcall(o, MO_LUA_HISTORY, q->session, on_history, 0, "skiiiii", "1",
                 "mcp:conversation:", q->session, q->conversation, q->after,
                 (uint64_t)q->limit, (uint64_t)q->newest,
                 (uint64_t)MO_STORE_ANSWER_MAX);
        break;
    case MO_READ_CALLS:
        mo_rcall(o, MO_LUA_CALLS, q->session, on_calls, 0, "skiiii", "1",
                 "mcp:call:", q->session, (uint64_t)(q->from ? q->from : ~0u),
                 q->after, (uint64_t)q->limit, (uint64_t)MO_STORE_ANSWER_MAX);
        break;
    case MO_READ_CALL:
        mo_rcall(o, -1, q->session, on_call, 0, "skt", "HGET",
                 "mcp:call:", q->session, q->id);
        break;
    case MO_READ_SEARCH:
        mo_redis_search(o);
        break;
    case MO_READ_AUDIT:
        read_audit(o);
        break;
    case MO_READ_DAY:
        mo_redis_read_day(o, on_day);
        break;
    case MO_READ_MARK:
        mo_rcall(o, -1, MO_SPAN(MO_REDIS_MARKS), on_mark, 0, "sst", "HGET",
                 MO_REDIS_MARKS, q->id);
        break;
    case MO_READ_MARKS:
        mo_rcall(o, MO_LUA_MARKS, MO_SPAN(MO_REDIS_MARKS), on_marks, 0,
                 "ssttii", "1", MO_REDIS_MARKS, q->text, q->id,
                 (uint64_t)q->limit, (uint64_t)MO_STORE_ANSWER_MAX);
        break;
    }
}
