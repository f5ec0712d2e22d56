/* redis_search.c - full-text search in Redis.
 *
 * Each session is asked for the entries that have all words (redis_lua_find.h):
 * those that the caller names, or all of them, last used first. The entries
 * are ranked here, as FTS5 does (BM25), and the best are read.
 *
 * The index knows words, not their order. What needs more is checked in the
 * text of the entries that were read: words of several parts ("a-b", which
 * means a and then b), and words that are longer than those of the index.
 *
 * A session whose index is behind is indexed first (redis_index.c).
 *
 * Bounds: SESSIONS_MAX sessions, HITS_MAX entries to rank (SESSION_HITS of a
 * session, the newest), CHECK_MAX entries whose text is checked; over them the
 * answer is the best of those, and `more` is set. */
#include <math.h>
#include <stdlib.h>

#include "store/fts.h"
#include "store/redis_priv.h"

#define TERMS        32 /* words asked for; further ones are checked */
#define TOKENS       (MO_STORE_ID_MAX * 8) /* of the text of a search */
#define PAGE         64                    /* sessions asked at a time */
#define PAGE_ENTRIES 16
#define SESSIONS_MAX 20000
#define SESSION_HITS 2000
#define HITS_MAX     20000
#define CHECK_MAX    2000
#define CHECK_MEM    ((size_t)16 * 1024 * 1024)

struct hit {
    struct hit *next;
    struct mo_span session;
    uint64_t number, seq, words;
    double rank;
    uint32_t times[];
};

struct phrase {
    struct mo_span *v;
    size_t n;
};

struct mo_search {
    /* the question */
    struct mo_span terms[TERMS];
    size_t nterms;
    struct mo_span *tokens; /* TOKENS */
    size_t ntokens;
    struct phrase *phrases; /* TOKENS */
    size_t nphrases;
    bool check, failed;
    /* the sessions */
    struct mo_span among; /* the rest of them */
    bool is_closed;       /* of the index of closed ones */
    size_t sessions;
    /* the answer */
    uint64_t docs, words, with[TERMS];
    struct hit *hits, **ranked;
    size_t nhits, at; /* of ranked: the next to read */
    uint64_t skip;    /* rows of the pages before */
    struct mo_row found[PAGE_ENTRIES];
    size_t nfound, read;
    bool cut; /* a bound was reached */
};

/* --- the question -------------------------------------------------------- */

static void add_term(struct mo_search *s, struct mo_span token)
{
    struct mo_span term = mo_span_head(token, MO_REDIS_WORD_MAX);

    s->check |= term.n < token.n;
    for (size_t i = 0; i < s->nterms; i++)
        if (mo_span_eq(s->terms[i], term))
            return;
    if (s->nterms < TERMS)
        s->terms[s->nterms++] = term;
    else
        s->check = true;
}

static bool add_token(void *ctx, struct mo_span word)
{
    struct mo_rop *o = ctx;
    struct mo_search *s = o->search;
    struct mo_span *to = &s->tokens[s->ntokens];

    if (s->ntokens == TOKENS)
        return false;
    s->failed |= !mo_rop_keep(o, word, to);
    s->ntokens++;
    add_term(s, *to);
    return !s->failed;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';
}

/* As in SQLite: the parts of a word follow each other in the text. */
static void add_phrase(struct mo_rop *o, struct mo_fts *words,
                       struct mo_span word)
{
    struct mo_search *s = o->search;
    struct phrase p = {.v = &s->tokens[s->ntokens]};

    if (mo_fts_each(words, word, add_token, o) < 0)
        s->failed = true;
    p.n = s->ntokens - (size_t)(p.v - s->tokens);
    s->check |= p.n > 1;
    if (p.n)
        s->phrases[s->nphrases++] = p;
}

static bool parse_question(struct mo_rop *o)
{
    struct mo_search *s = o->search;
    struct mo_span text = o->op->read.text;
    struct mo_fts *words = mo_redis_words(o);
    size_t from = 0;

    if (!words)
        return false;
    for (size_t i = 0; i <= text.n; i++) {
        if (i < text.n && !is_blank(text.p[i]))
            continue;
        if (i > from)
            add_phrase(o, words, mo_span(text.p + from, i - from));
        from = i + 1;
    }
    return !s->failed || mo_rop_fail(o, MO_ENOMEM, "store: search");
}

static bool make_search(struct mo_rop *o)
{
    struct mo_arena *a = &o->op->mem;
    struct mo_search *s = mo_arena_new(a, struct mo_search);

    o->search = s;
    if (s) {
        s->tokens = mo_arena_zalloc(a, TOKENS * sizeof(*s->tokens));
        s->phrases = mo_arena_zalloc(a, TOKENS * sizeof(*s->phrases));
        s->among = o->op->read.among;
        s->skip = o->op->read.after;
    }
    return (s && s->tokens && s->phrases) ||
           mo_rop_fail(o, MO_ENOMEM, "store: search");
}

/* --- a session ----------------------------------------------------------- */

static void ask_session(struct mo_rop *o, size_t i, bool lax);

static bool next_number(struct mo_span *line, uint64_t *out)
{
    return mo_span_u64(mo_span_cut(line, ' '), out) == 0;
}

/* "NUMBER SEQ WORDS TIMES TIMES..." */
static bool add_hit(struct mo_rop *o, struct mo_span line)
{
    struct mo_search *s = o->search;
    struct hit *h = mo_arena_zalloc(
        &o->op->mem, sizeof(*h) + s->nterms * sizeof(h->times[0]));

    if (!h)
        return mo_rop_fail(o, MO_ENOMEM, "store: search");
    h->session = o->ids[o->tag];
    if (!next_number(&line, &h->number) || !next_number(&line, &h->seq) ||
        !next_number(&line, &h->words))
        return false;
    for (size_t i = 0; i < s->nterms; i++) {
        uint64_t n = 0;

        if (!next_number(&line, &n))
            return false;
        h->times[i] = (uint32_t)n;
    }
    h->next = s->hits;
    s->hits = h;
    s->nhits++;
    return true;
}

/* {behind, entries, words, {entries with the word...}, {hit...}} */
static bool on_session(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_search *s = o->search;
    uint64_t behind = 0, docs = 0, words = 0, with = 0;

    if (r->kind != MO_RESP_ARRAY || r->n != 5 ||
        !mo_resp_u64(&r->v[0], &behind) || !mo_resp_u64(&r->v[1], &docs) ||
        !mo_resp_u64(&r->v[2], &words))
        return false;
    if (behind) {
        mo_redis_index_session(o, o->tag);
        return true;
    }
    if (r->v[3].n != s->nterms)
        return false;
    s->docs += docs;
    s->words += words;
    for (size_t i = 0; i < s->nterms; i++) {
        if (!mo_resp_u64(&r->v[3].v[i], &with))
            return false;
        s->with[i] += with;
    }
    s->cut |= r->v[4].n == SESSION_HITS;
    for (size_t i = 0; i < r->v[4].n; i++)
        if (!add_hit(o, r->v[4].v[i].text))
            return false;
    return true;
}

static void ask_session(struct mo_rop *o, size_t i, bool lax)
{
    const struct mo_search *s = o->search;
    struct mo_rcall *k = mo_rcall_new(o, MO_LUA_FIND, o->ids[i], on_session, i);

    mo_rcall_put(k, "skiiii", "1", "mcp:conversation:", o->ids[i],
                 (uint64_t)MO_REDIS_CONVS, (uint64_t)SESSION_HITS,
                 (uint64_t)lax, (uint64_t)MO_REDIS_PART);
    for (size_t t = 0; t < s->nterms; t++)
        mo_rcall_put(k, "it", (uint64_t)mo_redis_bucket(s->terms[t]),
                     s->terms[t]);
    mo_rcall_go(k);
}

/* All that was acknowledged before the search is indexed; later entries need
 * not be. */
static void ask_again(struct mo_rop *o, size_t i)
{
    ask_session(o, i, true);
}

/* --- all sessions -------------------------------------------------------- */

static void rank_hits(struct mo_rop *o);
static void ask_sessions(struct mo_rop *o);

static void take_sessions(struct mo_rop *o)
{
    struct mo_search *s = o->search;
    bool full = s->nhits >= HITS_MAX || s->sessions >= SESSIONS_MAX;

    if (o->last_page && !o->op->read.session.n && !o->op->read.among.n &&
        !s->is_closed) {
        s->is_closed = true;
        o->next = 0;
        o->last_page = false;
    }
    s->cut |= full && !o->last_page;
    if (o->last_page || full)
        rank_hits(o);
    else
        ask_sessions(o);
}

static void ask_page(struct mo_rop *o)
{
    o->search->sessions += o->nids;
    for (size_t i = 0; i < o->nids; i++)
        ask_session(o, i, false);
}

static bool on_page(struct mo_rop *o, const struct mo_resp *r)
{
    if (!mo_redis_page(o, r))
        return false;
    ask_page(o);
    return true;
}

/* The next ones of `among`. */
static void cut_page(struct mo_rop *o)
{
    struct mo_span *rest = &o->search->among;

    o->nids = 0;
    o->ids = mo_arena_alloc(&o->op->mem, PAGE * sizeof(*o->ids));
    if (!o->ids) {
        (void)mo_rop_fail(o, MO_ENOMEM, "store: search");
        return;
    }
    while (rest->n && o->nids < PAGE)
        o->ids[o->nids++] = mo_span_cut(rest, '\n');
    o->last_page = !rest->n;
    ask_page(o);
}

static void ask_sessions(struct mo_rop *o)
{
    const struct mo_read *q = &o->op->read;

    o->step = take_sessions;
    if (q->session.n) {
        o->ids = &o->op->read.session;
        o->nids = 1;
        o->last_page = true;
        ask_page(o);
    } else if (q->among.n) {
        cut_page(o);
    } else {
        mo_redis_ask_page(o, "ZREVRANGEBYSCORE",
                          o->search->is_closed ? MO_REDIS_CLOSED
                                               : MO_REDIS_INDEX,
                          "+inf", "-inf", on_page);
    }
}

/* --- ranking ------------------------------------------------------------- */

/* BM25 with the constants of FTS5. A word that most entries have counts
 * nearly nothing. */
static double rank_of(const struct mo_search *s, const struct hit *h)
{
    const double k1 = 1.2, b = 0.75;
    double mean = s->docs ? (double)s->words / (double)s->docs : 1;
    double rank = 0;

    for (size_t i = 0; i < s->nterms; i++) {
        double with = (double)s->with[i], f = h->times[i];
        double idf = log(((double)s->docs - with + 0.5) / (with + 0.5));

        if (!(idf > 0))
            idf = 1e-6;
        rank += idf * f * (k1 + 1) /
                (f + k1 * (1 - b + b * (double)h->words / mean));
    }
    return rank;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Of equal ones the older entry of a session is first. */
static int compare_hits(const void *pa, const void *pb)
{
    const struct hit *a = *(struct hit *const *)pa;
    const struct hit *b = *(struct hit *const *)pb;
    size_t n = a->session.n < b->session.n ? a->session.n : b->session.n;
    int c = memcmp(a->session.p, b->session.p, n);

    if (a->rank < b->rank || a->rank > b->rank)
        return a->rank > b->rank ? -1 : 1;
    if (c == 0)
        c = compare_u64(a->session.n, b->session.n);
    if (c == 0)
        c = compare_u64(a->number, b->number);
    return c ? c : compare_u64(a->seq, b->seq);
}

/* --- the entries --------------------------------------------------------- */

static void read_entries(struct mo_rop *o);

/* A session may have been asked twice: it was closed and opened again, or it
 * was used meanwhile. */
static bool is_double(const struct mo_search *s, size_t i)
{
    return i && compare_hits(&s->ranked[i - 1], &s->ranked[i]) == 0;
}

/* Doubles leave before rows are counted. */
static void drop_doubles(struct mo_search *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->nhits; i++)
        if (!is_double(s, i))
            s->ranked[n++] = s->ranked[i];
    s->nhits = n;
}

static void rank_hits(struct mo_rop *o)
{
    struct mo_search *s = o->search;
    size_t n = 0;

    s->ranked =
        mo_arena_alloc(&o->op->mem, (s->nhits + 1) * sizeof(struct hit *));
    if (!s->ranked) {
        (void)mo_rop_fail(o, MO_ENOMEM, "store: search");
        return;
    }
    for (struct hit *h = s->hits; h; h = h->next) {
        h->rank = rank_of(s, h);
        s->ranked[n++] = h;
    }
    qsort(s->ranked, n, sizeof(struct hit *), compare_hits);
    drop_doubles(s);
    if (!s->check) { /* rows of the pages before need not be read */
        s->at = s->skip < s->nhits ? (size_t)s->skip : s->nhits;
        s->skip = 0;
    }
    read_entries(o);
}

/* {number, seq of the first, more, {"AT\nDOC"}} */
static bool on_entry(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_row *row = &o->search->found[o->tag];
    struct mo_span doc;
    uint64_t seq = 0;

    if (r->kind != MO_RESP_ARRAY || r->n != 4 || !mo_resp_u64(&r->v[1], &seq))
        return false;
    if (r->v[3].n == 0 || seq != row->seq)
        return true; /* it has expired */
    doc = r->v[3].v[0].text;
    return mo_span_u64(mo_span_cut(&doc, '\n'), &row->at) == 0 &&
           mo_rop_keep(o, doc, &row->doc);
}

struct check {
    struct mo_arena mem;
    struct mo_span *v;
    size_t n, max;
    bool failed;
};

static bool keep_word(void *ctx, struct mo_span word)
{
    struct check *c = ctx;

    if (c->n == c->max || mo_arena_span(&c->mem, word, &c->v[c->n]) < 0) {
        c->failed = true;
        return false;
    }
    c->n++;
    return true;
}

static bool has_phrase(const struct check *c, const struct phrase *p)
{
    for (size_t i = 0; i + p->n <= c->n; i++) {
        size_t k = 0;

        while (k < p->n && mo_span_eq(c->v[i + k], p->v[k]))
            k++;
        if (k == p->n)
            return true;
    }
    return false;
}

static bool has_all(struct mo_rop *o, struct mo_span doc)
{
    const struct mo_search *s = o->search;
    mo_autobuf struct mo_buf room = {.max = 4 * MO_STORE_DOC_MAX};
    struct mo_span text = mo_redis_text(o->r, doc, &room);
    struct check c = {.max = text.n / 2 + 1};
    bool yes = true;

    mo_arena_init(&c.mem, CHECK_MEM);
    c.v = mo_arena_alloc(&c.mem, c.max * sizeof(*c.v));
    if (!c.v || mo_fts_each(o->r->index.words, text, keep_word, &c) < 0)
        c.failed = true;
    for (size_t i = 0; i < s->nphrases && yes && !c.failed; i++)
        yes = has_phrase(&c, &s->phrases[i]);
    mo_arena_fini(&c.mem);
    if (c.failed)
        (void)mo_rop_fail(o, MO_ENOMEM, "store: search");
    return yes && !c.failed;
}

static void take_entry(struct mo_rop *o, const struct mo_row *row)
{
    struct mo_search *s = o->search;

    if (!row->doc.p || (s->check && !has_all(o, row->doc)))
        return;
    if (s->skip) {
        s->skip--;
        return;
    }
    if (o->nrows > o->op->read.limit)
        return;
    o->rows[o->nrows++] = *row;
    o->bytes += row->doc.n + 256;
}

static void take_entries(struct mo_rop *o)
{
    struct mo_search *s = o->search;
    bool full;

    for (size_t i = 0; i < s->nfound; i++)
        take_entry(o, &s->found[i]);
    full = o->nrows > o->op->read.limit || o->bytes > MO_STORE_ANSWER_MAX ||
           (s->check && s->read >= CHECK_MAX);
    if (s->at < s->nhits && !full) {
        read_entries(o);
        return;
    }
    o->step = NULL;
    mo_redis_give_rows(o);
    o->op->rows.more |= s->cut || s->at < s->nhits;
}

static void read_entries(struct mo_rop *o)
{
    struct mo_search *s = o->search;

    o->step = take_entries;
    for (s->nfound = 0; s->nfound < PAGE_ENTRIES && s->at < s->nhits; s->at++) {
        const struct hit *h = s->ranked[s->at];

        s->found[s->nfound] = (struct mo_row){.session = h->session,
                                              .id = MO_SPAN(""),
                                              .conversation = h->number,
                                              .seq = h->seq};
        mo_rcall(o, MO_LUA_HISTORY, h->session, on_entry, s->nfound, "skiiiii",
                 "1", "mcp:conversation:", h->session, h->number, h->seq - 1,
                 (uint64_t)1, (uint64_t)0, (uint64_t)MO_STORE_ANSWER_MAX);
        s->nfound++;
        s->read++;
    }
}

void mo_redis_search(struct mo_rop *o)
{
    if (!o->r->index.text_of) {
        (void)mo_rop_fail(o, MO_EUNAVAIL, "store: nothing is indexed");
        return;
    }
    if (!make_search(o) || !parse_question(o))
        return;
    if (!o->search->nterms) {
        mo_redis_give_rows(o);
        return;
    }
    o->page = PAGE;
    o->indexed = ask_again;
    ask_sessions(o);
}
