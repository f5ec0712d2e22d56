/* test_store.c - the promises of store.h, kept by every backend alike.
 *
 * Each test runs on an SQLite file and on a redis-server of its own. What
 * needs several processes is in test_store_procs.c, what belongs to one
 * backend only in test_sqlite.c and test_redis.c. */
#include <unistd.h>

#include "store_kit.h"

static const struct backend sqlite_backend = {"sqlite", false};
static const struct backend redis_backend = {"redis", true};

#define S(x) MO_SPAN(x)

static const struct mo_write session_w = {
    .kind = MO_WRITE_SESSION, .doc = {"{\"s\":1}", 7}, .at = 1000};

static struct mo_write entry(const char *doc)
{
    return (struct mo_write){.kind = MO_WRITE_ENTRY, .doc = mo_span_cstr(doc)};
}

static struct mo_write call_new(const char *id, enum mo_call_state to)
{
    return (struct mo_write){.kind = MO_WRITE_CALL,
                             .id = mo_span_cstr(id),
                             .doc = S("{}"),
                             .to = to};
}

static struct mo_write call_move(const char *id, unsigned from,
                                 enum mo_call_state to, const char *doc)
{
    return (struct mo_write){.kind = MO_WRITE_MOVE,
                             .id = mo_span_cstr(id),
                             .from = from,
                             .doc = mo_span_cstr(doc),
                             .to = to};
}

static struct mo_write simple(enum mo_write_kind kind, uint64_t at)
{
    return (struct mo_write){.kind = kind, .at = at};
}

/* --- sessions ------------------------------------------------------------ */

static void test_session(void **state)
{
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSION, .session = S("a")), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(PUT(&f, "a", session_w), 0);
    assert_int_equal(f.w.conversation, 1);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSION, .session = S("a")), 0);
    assert_int_equal(f.n, 1);
    assert_true(row_is(&f, 0, "{\"s\":1}"));
    assert_true(mo_span_is(f.rows[0].session, "a"));
    assert_int_equal(f.rows[0].at, 1000);

    /* activity moves forwards only, and says nothing about the document */
    assert_int_equal(PUT(&f, "a", simple(MO_WRITE_TOUCH, 3000)), 0);
    assert_int_equal(PUT(&f, "a", simple(MO_WRITE_TOUCH, 2000)), 0);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSION, .session = S("a")), 0);
    assert_int_equal(f.rows[0].at, 3000);
    assert_true(row_is(&f, 0, "{\"s\":1}"));

    assert_int_equal(PUT(&f, "b", simple(MO_WRITE_TOUCH, 2000)), MO_ENOTFOUND);
    assert_int_equal(PUT(&f, "b", entry("x")), MO_ENOTFOUND);
    assert_int_equal(PUT(&f, "b", call_new("c", 0)), MO_ENOTFOUND);
    assert_int_equal(PUT(&f, "b", simple(MO_WRITE_FRESH, 0)), MO_ENOTFOUND);
    assert_int_equal(PUT(&f, "b", simple(MO_WRITE_CLOSE, 0)), 0);
    fix_fini(&f);
}

/* All sessions page by page; each must come exactly once. */
static void read_in_pages(struct fix *f, unsigned limit, unsigned all)
{
    struct mo_read r = {.kind = MO_READ_SESSIONS, .limit = limit};
    char last[MO_STORE_ID_MAX + 1] = "";
    unsigned seen = 0;

    do {
        r.id = mo_span_cstr(last);
        assert_int_equal(get(f, r), 0);
        assert_true(f->n > 0 && f->n <= limit);
        for (size_t i = 0; i < f->n; i++) {
            unsigned bit = 1u << strtoul(f->rows[i].session.p + 1, NULL, 10);

            assert_false(seen & bit);
            seen |= bit;
        }
        r.after = f->rows[f->n - 1].at;
        (void)snprintf(last, sizeof(last), "%.*s",
                       (int)f->rows[f->n - 1].session.n,
                       f->rows[f->n - 1].session.p);
    } while (f->more);
    assert_int_equal(seen, all);
}

static void test_sessions(void **state)
{
    enum { N = 24 };
    struct fix f;
    char id[16];
    uint64_t at = 0;

    fix_init(&f, *state);
    for (int i = 0; i < N; i++) {
        struct mo_write w = session_w;

        w.at = (uint64_t)(1000 + 10 * ((i * 7) % N) / 4); /* some are equal */
        (void)snprintf(id, sizeof(id), "s%d", i);
        assert_int_equal(PUT(&f, id, w), 0);
    }
    assert_int_equal(GET(&f, .kind = MO_READ_SESSIONS), 0);
    assert_int_equal(f.n, N);
    assert_false(f.more);
    for (size_t i = 0; i < N; i++) {
        assert_true(f.rows[i].at >= at);
        at = f.rows[i].at;
    }
    assert_int_equal(GET(&f, .kind = MO_READ_SESSIONS, .before = 1010), 0);
    assert_int_equal(f.n, 4);
    assert_int_equal(
        GET(&f, .kind = MO_READ_SESSIONS, .newest = true, .limit = 3), 0);
    assert_int_equal(f.n, 3);
    assert_true(f.more);
    assert_int_equal(f.rows[2].at, at);
    assert_true(f.rows[0].at <= f.rows[1].at && f.rows[0].at >= at - 10);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSIONS, .newest = true), 0);
    assert_int_equal(f.n, N);
    assert_false(f.more);
    assert_int_equal(f.rows[0].at, 1000);
    for (unsigned limit = 1; limit <= 9; limit += 4)
        read_in_pages(&f, limit, (1u << N) - 1);
    /* closed ones are passed over, and the pages go on behind them */
    for (int i = 0; i < N; i += 2) {
        (void)snprintf(id, sizeof(id), "s%d", i);
        assert_int_equal(PUT(&f, id, simple(MO_WRITE_CLOSE, 0)), 0);
    }
    read_in_pages(&f, 5, 0xaaaaaa);
    fix_fini(&f);
}

/* The newest rows of many sessions, whoever wrote them. */
static void test_audits(void **state)
{
    enum { N = 40 };
    struct fix f;
    char id[16];

    fix_init(&f, *state);
    for (int i = 0; i < 3 * N; i++) {
        struct mo_write w = {
            .kind = MO_WRITE_AUDIT, .doc = S("{}"), .at = (uint64_t)(1000 + i)};

        (void)snprintf(id, sizeof(id), "s%d", (i * 7) % N);
        assert_int_equal(PUT(&f, id, w), 0);
    }
    assert_int_equal(GET(&f, .kind = MO_READ_AUDIT, .limit = 50), 0);
    assert_int_equal(f.n, 50);
    assert_true(f.more);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(f.rows[i].at, 1000 + 3 * N - 1 - i);
    assert_int_equal(GET(&f, .kind = MO_READ_AUDIT, .limit = 1000), 0);
    assert_int_equal(f.n, 3 * N);
    assert_false(f.more);
    fix_fini(&f);
}

#define BARE "{\"tool\":\"t\",\"argsDigest\":\"d\",\"ms\":12}"

/* What is forgotten is in no audit row either, except as a digest. */
static void test_forget_strips(void **state)
{
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(
        PUT(&f, "a", session_w,
            {.kind = MO_WRITE_AUDIT,
             .doc = S("{\"tool\":\"t\",\"args\":{\"x\":[\"needle\"]},"
                      "\"argsDigest\":\"d\",\"ms\":12,"
                      "\"content\":[\"needle\"]}"),
             .at = 7},
            {.kind = MO_WRITE_AUDIT, .doc = S(BARE), .at = 8}),
        0);
    assert_int_equal(PUT(&f, "b", session_w,
                         {.kind = MO_WRITE_AUDIT,
                          .doc = S("{\"args\":{\"y\":\"theirs\"}}"),
                          .at = 9}),
                     0);
    assert_int_equal(PUT(&f, "a", simple(MO_WRITE_FORGET, 0)), 0);
    assert_int_equal(
        GET(&f, .kind = MO_READ_AUDIT, .text = S("needle"), .limit = 9), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(
        GET(&f, .kind = MO_READ_AUDIT, .session = S("a"), .limit = 9), 0);
    assert_int_equal(f.n, 2);
    assert_int_equal(f.rows[1].at, 7);
    assert_true(row_is(&f, 0, BARE));
    assert_int_equal(
        GET(&f, .kind = MO_READ_AUDIT, .text = S("theirs"), .limit = 9), 0);
    assert_int_equal(f.n, 1);
    fix_fini(&f);
}

static void test_marks(void **state)
{
    struct mo_write w = {
        .kind = MO_WRITE_MARK, .id = S("m:1"), .doc = S("one")};
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(GET(&f, .kind = MO_READ_MARK, .id = S("m:1")), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(PUT(&f, "", w), 0);
    w.doc = S("two");
    assert_int_equal(PUT(&f, "", w), 0);
    w.id = S("m:2");
    w.doc = S("other");
    assert_int_equal(PUT(&f, "", w), 0);
    fix_close(&f);
    fix_open(&f);
    assert_int_equal(GET(&f, .kind = MO_READ_MARK, .id = S("m:1")), 0);
    assert_int_equal(f.n, 1);
    assert_true(row_is(&f, 0, "two"));
    w.id = S("not an id");
    assert_int_equal(PUT(&f, "", w), MO_EINVAL);
    fix_fini(&f);
}

static void put_marks(struct fix *f, const char *const *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct mo_write w = {.kind = MO_WRITE_MARK,
                                   .id = mo_span_cstr(ids[i]),
                                   .doc = mo_span_cstr(ids[i])};

        assert_int_equal(PUT(f, "", w), 0);
    }
}

/* Listed by the beginning of their ids, page after page; removed by an empty
 * document. */
static void test_mark_lists(void **state)
{
    static const char *const ids[] = {"k:b", "k:a:x", "k:a", "k",
                                      "k-1", "l:a",   "k:c", "K:a"};
    const struct mo_write gone = {.kind = MO_WRITE_MARK, .id = S("k:a")};
    struct fix f;

    fix_init(&f, *state);
    put_marks(&f, ids, MO_COUNT(ids));
    assert_int_equal(
        GET(&f, .kind = MO_READ_MARKS, .text = S("k:"), .limit = 3), 0);
    assert_int_equal(f.n, 3);
    assert_true(f.more);
    assert_true(row_is(&f, 0, "k:a") && row_is(&f, 1, "k:a:x") &&
                row_is(&f, 2, "k:b"));
    assert_true(mo_span_is(f.rows[2].id, "k:b"));
    assert_int_equal(GET(&f, .kind = MO_READ_MARKS, .text = S("k:"),
                         .id = S("k:b"), .limit = 3),
                     0);
    assert_int_equal(f.n, 1);
    assert_false(f.more);
    assert_true(row_is(&f, 0, "k:c"));
    assert_int_equal(PUT(&f, "", gone), 0);
    assert_int_equal(PUT(&f, "", gone), 0); /* no error if there is none */
    assert_int_equal(GET(&f, .kind = MO_READ_MARK, .id = S("k:a")), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(GET(&f, .kind = MO_READ_MARKS, .text = S("k:")), 0);
    assert_int_equal(f.n, 3);
    assert_int_equal(GET(&f, .kind = MO_READ_MARKS, .text = S("none")), 0);
    assert_int_equal(f.n, 0);
    fix_fini(&f);
}

/* Shares are beside the row: the session's own writes keep them, they survive
 * the program, and go with the row. */
static void test_shares(void **state)
{
    struct mo_write w = {.kind = MO_WRITE_SHARE, .doc = S("[1]")};
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", w), MO_ENOTFOUND);
    assert_int_equal(PUT(&f, "a", session_w, w), 0);
    assert_int_equal(PUT(&f, "b", session_w), 0);
    assert_int_equal(PUT(&f, "a", session_w), 0);
    fix_close(&f);
    fix_open(&f);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSION, .session = S("a")), 0);
    assert_true(mo_span_is(f.rows[0].shares, "[1]"));
    assert_int_equal(GET(&f, .kind = MO_READ_SESSION, .session = S("b")), 0);
    assert_int_equal(f.rows[0].shares.n, 0);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSIONS), 0);
    assert_int_equal(f.n, 2);
    assert_int_equal(f.rows[0].shares.n + f.rows[1].shares.n, 3);
    assert_int_equal(PUT(&f, "a", simple(MO_WRITE_CLOSE, 0)), 0);
    assert_int_equal(PUT(&f, "a", session_w), 0);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSION, .session = S("a")), 0);
    assert_int_equal(f.rows[0].shares.n, 0);
    fix_fini(&f);
}

static void test_close_and_forget(void **state)
{
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(
        PUT(&f, "a", session_w, entry("1"), call_new("c1", MO_CALL_PENDING)),
        0);
    assert_int_equal(PUT(&f, "a", simple(MO_WRITE_CLOSE, 0)), 0);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSION, .session = S("a")), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSIONS), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 1);
    assert_int_equal(GET(&f, .kind = MO_READ_CALLS, .session = S("a")), 0);
    assert_int_equal(f.n, 1);
    assert_int_equal(PUT(&f, "a", entry("2")), MO_ENOTFOUND);
    /* a call may still end after its session did */
    assert_int_equal(PUT(&f, "a",
                         call_move("c1", MO_CALL_BIT(MO_CALL_PENDING),
                                   MO_CALL_REJECTED, "")),
                     0);

    /* the same id again goes on where it was */
    assert_int_equal(PUT(&f, "a", session_w, entry("2")), 0);
    assert_int_equal(f.w.conversation, 1);
    assert_int_equal(f.w.seq, 2);

    assert_int_equal(PUT(&f, "a", simple(MO_WRITE_FORGET, 0)), 0);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(GET(&f, .kind = MO_READ_CALLS, .session = S("a")), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSIONS), 0);
    assert_int_equal(f.n, 0);
    fix_fini(&f);
}

/* --- conversations ------------------------------------------------------- */

static void test_history(void **state)
{
    struct fix f;
    char doc[16];

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w), 0);
    for (int i = 1; i <= 9; i++) {
        (void)snprintf(doc, sizeof(doc), "e%d", i);
        assert_int_equal(PUT(&f, "a", entry(doc)), 0);
        assert_int_equal(f.w.seq, i);
    }
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 9);
    assert_true(row_is(&f, 0, "e1") && row_is(&f, 8, "e9"));
    assert_int_equal(f.rows[8].seq, 9);
    assert_int_equal(f.rows[8].conversation, 1);
    assert_true(f.rows[8].at > 1600000000000); /* 0 was made now */

    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a"),
                         .after = 4, .limit = 3),
                     0);
    assert_int_equal(f.n, 3);
    assert_true(row_is(&f, 0, "e5") && row_is(&f, 2, "e7"));
    assert_true(f.more);

    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a"),
                         .newest = true, .limit = 3),
                     0);
    assert_int_equal(f.n, 3);
    assert_true(row_is(&f, 0, "e7") && row_is(&f, 2, "e9"));
    assert_true(f.more);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a"),
                         .newest = true, .after = 7),
                     0);
    assert_int_equal(f.n, 2);
    assert_true(row_is(&f, 0, "e8"));
    assert_false(f.more);
    fix_fini(&f);
}

/* Who does not know whether it was written asks again, and it stands once. */
static void test_again(void **state)
{
    struct mo_write one = entry("one"), two = entry("two");
    struct fix f;

    one.again = two.again = true;
    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", one), MO_ENOTFOUND);
    assert_int_equal(PUT(&f, "a", session_w), 0);
    assert_int_equal(PUT(&f, "a", one), 0); /* it was not */
    assert_int_equal(f.w.seq, 1);
    assert_int_equal(PUT(&f, "a", one, simple(MO_WRITE_TOUCH, 5000)), 0);
    assert_int_equal(f.w.seq, 1);
    assert_int_equal(f.w.conversation, 1);
    assert_int_equal(PUT(&f, "a", two), 0);
    assert_int_equal(f.w.seq, 2);
    assert_int_equal(PUT(&f, "a", one), 0); /* another one came between */
    assert_int_equal(f.w.seq, 1);
    assert_int_equal(PUT(&f, "a", entry("one")), 0); /* said twice */
    assert_int_equal(f.w.seq, 3);
    assert_int_equal(PUT(&f, "a", one), 0); /* the newest of them */
    assert_int_equal(f.w.seq, 3);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 3);
    assert_true(row_is(&f, 1, "two") && row_is(&f, 2, "one"));
    for (unsigned i = 0; i < MO_STORE_AGAIN; i++)
        assert_int_equal(PUT(&f, "a", entry("more")), 0);
    assert_int_equal(PUT(&f, "a", one), 0); /* too far back to be looked at */
    assert_int_equal(f.w.seq, 4 + MO_STORE_AGAIN);

    /* another conversation does not know it */
    assert_int_equal(PUT(&f, "a", simple(MO_WRITE_FRESH, 0)), 0);
    assert_int_equal(PUT(&f, "a", one), 0);
    assert_int_equal(f.w.seq, 1);
    assert_int_equal(f.w.conversation, 2);

    /* found also behind and before the mark of the index */
    assert_int_equal(GET(&f, .kind = MO_READ_SEARCH, .text = S("nothing")), 0);
    assert_int_equal(PUT(&f, "a", one), 0);
    assert_int_equal(f.w.seq, 1);
    fix_fini(&f);
}

static void test_fresh(void **state)
{
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w, entry("old")), 0);
    assert_int_equal(PUT(&f, "a", simple(MO_WRITE_FRESH, 0), entry("new")), 0);
    assert_int_equal(f.w.conversation, 2);
    assert_int_equal(f.w.seq, 1);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 1);
    assert_true(row_is(&f, 0, "new"));
    assert_int_equal(
        GET(&f, .kind = MO_READ_HISTORY, .session = S("a"), .conversation = 1),
        0);
    assert_int_equal(f.n, 1);
    assert_true(row_is(&f, 0, "old"));
    assert_int_equal(PUT(&f, "a", simple(MO_WRITE_FRESH, 0)), 0);
    assert_int_equal(f.w.conversation, 3);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 0);
    fix_fini(&f);
}

/* Bytes are bytes: quotes, UTF-8, newlines, a document of the largest size. */
static void test_bytes(void **state)
{
    static const char odd[] = "{\"t\":\"\xc3\xa9 '\\\" \r\n $5 %s \x01\"}";
    struct fix f;
    char *big = mo_alloc(MO_STORE_DOC_MAX + 1);
    struct mo_write w = {.kind = MO_WRITE_ENTRY};

    assert_non_null(big);
    memset(big, 'x', MO_STORE_DOC_MAX + 1);
    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w, entry(odd)), 0);
    w.doc = mo_span(big, MO_STORE_DOC_MAX);
    assert_int_equal(PUT(&f, "a", w), 0);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 2);
    assert_true(row_is(&f, 0, odd));
    assert_int_equal(f.rows[1].doc.n, MO_STORE_DOC_MAX);
    assert_memory_equal(f.rows[1].doc.p, big, MO_STORE_DOC_MAX);
    w.doc.n++;
    assert_int_equal(PUT(&f, "a", w), MO_ETOOBIG);

    /* an answer is cut by bytes too, but never to nothing */
    w.doc.n--;
    for (int i = 0; i < 8; i++)
        assert_int_equal(PUT(&f, "a", w), 0);
    assert_int_equal(
        GET(&f, .kind = MO_READ_HISTORY, .session = S("a"), .after = 1), 0);
    assert_true(f.n >= 1 && f.n < 9);
    assert_true(f.more);
    fix_fini(&f);
    mo_free(big);
}

/* --- calls --------------------------------------------------------------- */

static void test_calls(void **state)
{
    const unsigned pending = MO_CALL_BIT(MO_CALL_PENDING);
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w, call_new("c1", MO_CALL_PENDING),
                         call_new("c2", MO_CALL_APPROVED)),
                     0);
    assert_int_equal(PUT(&f, "a", call_new("c1", MO_CALL_PENDING)), MO_EEXISTS);
    assert_int_equal(
        PUT(&f, "a", call_move("c1", pending, MO_CALL_RUNNING, "{\"r\":1}")),
        0);
    assert_int_equal(
        PUT(&f, "a", call_move("c1", pending, MO_CALL_RUNNING, "")),
        MO_EPOLICY);
    assert_int_equal(
        PUT(&f, "a", call_move("c9", pending, MO_CALL_RUNNING, "")),
        MO_ENOTFOUND);
    assert_int_equal(
        GET(&f, .kind = MO_READ_CALL, .session = S("a"), .id = S("c1")), 0);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.rows[0].state, MO_CALL_RUNNING);
    assert_true(row_is(&f, 0, "{\"r\":1}"));
    assert_true(mo_span_is(f.rows[0].id, "c1"));

    /* an empty document leaves the old one */
    assert_int_equal(
        PUT(&f, "a",
            call_move("c1", MO_CALL_BIT(MO_CALL_RUNNING), MO_CALL_DONE, "")),
        0);
    assert_int_equal(GET(&f, .kind = MO_READ_CALLS, .session = S("a")), 0);
    assert_int_equal(f.n, 2);
    assert_true(row_is(&f, 0, "{\"r\":1}"));
    assert_int_equal(f.rows[0].state, MO_CALL_DONE);
    assert_true(mo_span_is(f.rows[1].id, "c2"));
    assert_int_equal(GET(&f, .kind = MO_READ_CALLS, .session = S("a"),
                         .from = MO_CALL_BIT(MO_CALL_APPROVED)),
                     0);
    assert_int_equal(f.n, 1);
    assert_true(mo_span_is(f.rows[0].id, "c2"));
    assert_int_equal(
        GET(&f, .kind = MO_READ_CALLS, .session = S("a"), .limit = 1), 0);
    assert_true(f.n == 1 && f.more);
    assert_int_equal(GET(&f, .kind = MO_READ_CALLS, .session = S("a"),
                         .limit = 1, .after = f.rows[0].seq),
                     0);
    assert_true(f.n == 1 && !f.more);
    assert_true(mo_span_is(f.rows[0].id, "c2"));

    /* ids are the session's own */
    assert_int_equal(PUT(&f, "b", session_w, call_new("c1", MO_CALL_PENDING)),
                     0);
    fix_fini(&f);
}

/* --- batches ------------------------------------------------------------- */

/* Whatever is refused, and wherever it stands, nothing of the batch stays. */
static void test_all_or_nothing(void **state)
{
    static const struct {
        const char *name;
        struct mo_write w;
        int code;
    } rows[] = {
        {"a known call",
         {.kind = MO_WRITE_CALL, .id = {"c", 1}, .doc = {"{}", 2}},
         MO_EEXISTS},
        {"a call that has gone on",
         {.kind = MO_WRITE_MOVE, .id = {"c", 1}, .from = 1u << MO_CALL_DONE},
         MO_EPOLICY},
        {"no such call",
         {.kind = MO_WRITE_MOVE, .id = {"d", 1}, .from = ~0u},
         MO_ENOTFOUND},
    };
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w, call_new("c", MO_CALL_PENDING)),
                     0);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        for (size_t at = 0; at < 5; at++) {
            struct mo_write w[5] = {
                simple(MO_WRITE_TOUCH, 9000),
                entry("x"),
                call_new("new", MO_CALL_PENDING),
                simple(MO_WRITE_FRESH, 0),
                {.kind = MO_WRITE_AUDIT, .doc = S("audit")},
            };

            w[at] = rows[i].w;
            check_row(rows[i].name, put(&f, "a", 0, w, 5) == rows[i].code);
            check_row(rows[i].name, f.w.failed == at);
        }
    }
    assert_int_equal(GET(&f, .kind = MO_READ_SESSION, .session = S("a")), 0);
    assert_int_equal(f.rows[0].at, 1000);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(GET(&f, .kind = MO_READ_CALLS, .session = S("a")), 0);
    assert_int_equal(f.n, 1);
    assert_int_equal(GET(&f, .kind = MO_READ_AUDIT), 0);
    assert_int_equal(f.n, 0);
    assert_int_equal(PUT(&f, "a", entry("x")), 0);
    assert_int_equal(f.w.conversation, 1);
    assert_int_equal(f.w.seq, 1);
    fix_fini(&f);
}

/* Later writes of a batch see the earlier ones. */
static void test_in_order(void **state)
{
    const unsigned pending = MO_CALL_BIT(MO_CALL_PENDING);
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w, call_new("c", MO_CALL_PENDING),
                         call_move("c", pending, MO_CALL_APPROVED, "1"),
                         call_move("c", pending, MO_CALL_APPROVED, "2")),
                     MO_EPOLICY);
    assert_int_equal(f.w.failed, 3);
    assert_int_equal(PUT(&f, "a", session_w, call_new("c", MO_CALL_PENDING),
                         call_new("c", MO_CALL_PENDING)),
                     MO_EEXISTS);
    assert_int_equal(
        PUT(&f, "a", session_w, simple(MO_WRITE_CLOSE, 0), entry("x")),
        MO_ENOTFOUND);
    assert_int_equal(PUT(&f, "a", session_w, entry("1"),
                         simple(MO_WRITE_FRESH, 0), entry("2"), entry("3"),
                         simple(MO_WRITE_FORGET, 0), session_w, entry("4")),
                     0);
    assert_int_equal(f.w.conversation, 1);
    assert_int_equal(f.w.seq, 1);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 1);
    assert_true(row_is(&f, 0, "4"));
    fix_fini(&f);
}

struct many {
    unsigned done, failed;
    uint64_t seq;
    bool ordered;
};

static void on_many(void *ctx, const struct mo_written *w,
                    const struct mo_err *why)
{
    struct many *m = ctx;

    m->done++;
    m->failed += why != NULL;
    m->ordered = m->ordered && w->seq == m->seq + 1;
    m->seq = w->seq;
}

struct waits {
    struct many *m;
    unsigned n;
};

static bool all_done(void *ctx)
{
    struct waits *w = ctx;

    return w->m->done == w->n;
}

static void ask_entries(struct fix *f, const char *session, unsigned n,
                        struct many *m)
{
    struct mo_write w = entry("e");
    struct mo_store_batch b = {mo_span_cstr(session), 0, &w, 1};
    struct mo_err e;

    *m = (struct many){.ordered = true};
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(mo_store_write(f->s, &b, on_many, m, &e), 0);
    assert_int_equal(m->done, 0);
}

static void test_order_and_bound(void **state)
{
    struct mo_write w = entry("e");
    struct mo_store_batch b = {S("a"), 0, &w, 1};
    struct waits waits;
    struct mo_err e;
    struct many m;
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w), 0);
    ask_entries(&f, "a", MO_STORE_OPS_MAX, &m);
    assert_int_equal(mo_store_write(f.s, &b, on_many, &m, &e), MO_EBUSY);
    waits = (struct waits){&m, MO_STORE_OPS_MAX};
    assert_true(mo_loop_until(f.l, all_done, &waits, LONG));
    assert_int_equal(m.failed, 0);
    assert_true(m.ordered);
    assert_int_equal(mo_store_health(f.s).queued, 0);
    assert_int_equal(PUT(&f, "a", w), 0);
    assert_int_equal(f.w.seq, MO_STORE_OPS_MAX + 1);
    fix_fini(&f);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *name;
        const char *session;
        struct mo_write w;
        uint64_t fence;
        int code;
    } rows[] = {
        {"no session", "", {.kind = MO_WRITE_TOUCH}, 0, MO_EINVAL},
        {"a blank in it", "a b", {.kind = MO_WRITE_TOUCH}, 0, MO_EINVAL},
        {"a brace in it", "a{b}", {.kind = MO_WRITE_TOUCH}, 0, MO_EINVAL},
        {"no such kind", "a", {.kind = 99}, 0, MO_EINVAL},
        {"a call without id", "a", {.kind = MO_WRITE_CALL}, 0, MO_EINVAL},
        {"no such state",
         "a",
         {.kind = MO_WRITE_CALL, .id = {"c", 1}, .to = 99},
         0,
         MO_EINVAL},
        {"from nowhere",
         "a",
         {.kind = MO_WRITE_MOVE, .id = {"c", 1}},
         0,
         MO_EINVAL},
        {"a time beyond bounds",
         "a",
         {.kind = MO_WRITE_SESSION, .at = UINT64_MAX},
         0,
         MO_EINVAL},
        {"a fence for nobody", "", {.kind = MO_WRITE_AUDIT}, 7, MO_EINVAL},
    };
    struct mo_write w[MO_STORE_BATCH_MAX + 1];
    char id[MO_STORE_ID_MAX + 2];
    struct fix f;

    fix_init(&f, *state);
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].name, put(&f, rows[i].session, rows[i].fence,
                                    &rows[i].w, 1) == rows[i].code);
    for (size_t i = 0; i < MO_COUNT(w); i++)
        w[i] = session_w;
    assert_int_equal(put(&f, "a", 0, w, MO_COUNT(w)), MO_ETOOBIG);
    assert_int_equal(put(&f, "a", 0, w, 0), MO_EINVAL);
    assert_int_equal(put(&f, "a", 0, w, MO_STORE_BATCH_MAX), 0);
    memset(id, 'x', sizeof(id));
    id[sizeof(id) - 1] = '\0';
    assert_int_equal(PUT(&f, id, session_w), MO_EINVAL);
    id[MO_STORE_ID_MAX] = '\0';
    assert_int_equal(PUT(&f, id, session_w), 0);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSION), MO_EINVAL);
    assert_int_equal(GET(&f, .kind = MO_READ_CALL, .session = S("a")),
                     MO_EINVAL);
    assert_int_equal(GET(&f, .kind = MO_READ_SEARCH), MO_EINVAL);
    assert_int_equal(GET(&f, .kind = 99), MO_EINVAL);
    fix_fini(&f);
}

/* --- audit --------------------------------------------------------------- */

static struct mo_write audit(const char *doc, uint64_t at)
{
    return (struct mo_write){
        .kind = MO_WRITE_AUDIT, .doc = mo_span_cstr(doc), .at = at};
}

static void test_audit(void **state)
{
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w, audit("who asked", 100)), 0);
    assert_int_equal(PUT(&f, "b", audit("who answered", 300)), 0);
    assert_int_equal(PUT(&f, "", audit("nobody's", 200)), 0);
    assert_int_equal(PUT(&f, "a", audit("same time", 300)), 0);
    assert_int_equal(GET(&f, .kind = MO_READ_AUDIT), 0);
    assert_int_equal(f.n, 4);
    assert_int_equal(f.rows[0].at, 300);
    assert_int_equal(f.rows[1].at, 300);
    assert_true(row_is(&f, 2, "nobody's") && row_is(&f, 3, "who asked"));
    assert_int_equal(f.rows[2].session.n, 0);

    assert_int_equal(GET(&f, .kind = MO_READ_AUDIT, .session = S("a")), 0);
    assert_int_equal(f.n, 2);
    assert_true(row_is(&f, 0, "same time"));
    assert_int_equal(GET(&f, .kind = MO_READ_AUDIT, .text = S("who")), 0);
    assert_int_equal(f.n, 2);
    assert_true(row_is(&f, 0, "who answered"));
    assert_int_equal(
        GET(&f, .kind = MO_READ_AUDIT, .after = 100, .before = 300), 0);
    assert_int_equal(f.n, 1);
    assert_int_equal(GET(&f, .kind = MO_READ_AUDIT, .limit = 3), 0);
    assert_int_equal(f.n, 3);
    assert_true(f.more);
    assert_true(row_is(&f, 2, "nobody's"));
    /* the log stays when the session is forgotten */
    assert_int_equal(PUT(&f, "a", simple(MO_WRITE_FORGET, 0)), 0);
    assert_int_equal(GET(&f, .kind = MO_READ_AUDIT), 0);
    assert_int_equal(f.n, 4);
    fix_fini(&f);
}

/* --- search -------------------------------------------------------------- */

/* "NAME|TEXT" */
static struct mo_write said(const char *doc)
{
    struct mo_span text = mo_span_cstr(doc);

    (void)mo_span_cut(&text, '|');
    return (struct mo_write){
        .kind = MO_WRITE_ENTRY, .doc = mo_span_cstr(doc), .text = text};
}

static size_t hits(struct fix *f, const char *session, const char *text)
{
    int rc = GET(f, .kind = MO_READ_SEARCH, .session = mo_span_cstr(session),
                 .text = mo_span_cstr(text));

    assert_int_equal(rc, 0);
    return f->n;
}

static size_t hits_among(struct fix *f, const char *among, const char *text)
{
    int rc = GET(f, .kind = MO_READ_SEARCH, .among = mo_span_cstr(among),
                 .text = mo_span_cstr(text));

    assert_int_equal(rc, 0);
    return f->n;
}

static void test_search(void **state)
{
    static const struct {
        const char *session, *text;
        size_t n;
    } rows[] = {
        {"", "quick", 2},
        {"", "QUICK fox", 1},
        {"", "fox quick", 1},
        {"a", "quick", 1},
        {"", "nothing", 0},
        {"", "cafe", 1},
        {"", "caf\xc3\xa9", 1},
        {"", "\"", 0},
        {"", "a OR b", 0},
        {"", "text:quick", 0},
        {"", "NEAR(quick fox)", 0},
        {"", "\" OR \"", 0},
        {"", "  \t quick ", 2},
        {"", "qui", 0},
        {"", "quick-brown", 1},
        {"", "brown-quick", 0},
        {"", "quick \" fox", 1},
        {"", "quick quick quick", 2},
        {"", "STRASSE", 0},
        {"",
         "stra\xc3\x9f"
         "e",
         1},
        {"", "\xd0\xa1\xd0\x9b\xd0\x9e\xd0\x92\xd0\x9e", 1}, /* upper case */
        {"", "192.168.0.1", 1},
        {"", "168.192", 0},
        {"nobody", "quick", 0},
    };
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w, said("1|The quick brown fox"),
                         said("2|caf\xc3\xa9 at noon"), said("3")),
                     0);
    assert_int_equal(PUT(&f, "b", session_w, said("4|quick, quick!")), 0);
    assert_int_equal(PUT(&f, "c", session_w,
                         said("5|Stra\xc3\x9f"
                              "e, \xd1\x81\xd0\xbb\xd0\xbe\xd0\xb2\xd0\xbe; "
                              "ping 192.168.0.1\n")),
                     0);
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].text,
                  hits(&f, rows[i].session, rows[i].text) == rows[i].n);
    assert_int_equal(hits(&f, "", "quick"), 2);
    /* says it twice in fewer words */
    assert_true(row_is(&f, 0, "4|quick, quick!"));
    assert_true(mo_span_is(f.rows[0].session, "b"));
    assert_int_equal(f.rows[0].seq, 1);
    assert_int_equal(f.rows[0].conversation, 1);
    assert_true(f.rows[0].at > 1000);
    assert_int_equal(PUT(&f, "b", simple(MO_WRITE_FORGET, 0)), 0);
    assert_int_equal(hits(&f, "", "quick"), 1);
    /* the same id again: nothing of its former life */
    assert_int_equal(PUT(&f, "b", session_w, said("6|slow")), 0);
    assert_int_equal(hits(&f, "b", "quick"), 0);
    assert_int_equal(hits(&f, "b", "slow"), 1);
    fix_fini(&f);
}

/* Rows of sessions that were not named do not come, nor count as pages. */
static void test_search_among(void **state)
{
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w, said("1|tea")), 0);
    assert_int_equal(PUT(&f, "ab", session_w, said("2|tea")), 0);
    assert_int_equal(PUT(&f, "b", session_w, said("3|tea")), 0);
    assert_int_equal(hits_among(&f, "", "tea"), 3);
    assert_int_equal(hits_among(&f, "a\n", "tea"), 1);
    assert_true(row_is(&f, 0, "1|tea"));
    assert_int_equal(hits_among(&f, "b\na\n", "tea"), 2);
    assert_int_equal(hits_among(&f, "x\n", "tea"), 0);
    assert_int_equal(GET(&f, .kind = MO_READ_SEARCH, .text = S("tea"),
                         .among = S("a\nab\n"), .limit = 1),
                     0);
    assert_true(f.n == 1 && f.more);
    assert_int_equal(GET(&f, .kind = MO_READ_SEARCH, .text = S("tea"),
                         .among = S("a\nab\n"), .limit = 1, .after = 1),
                     0);
    assert_true(f.n == 1 && !f.more);
    assert_int_equal(
        GET(&f, .kind = MO_READ_SEARCH, .text = S("tea"), .among = S("a\"]\n")),
        MO_EINVAL);
    assert_int_equal(
        GET(&f, .kind = MO_READ_SEARCH, .text = S("tea"), .among = S("a")),
        MO_EINVAL);
    fix_fini(&f);
}

/* Old conversations and closed sessions are found; pages do not overlap. */
static void test_search_long(void **state)
{
    enum { N = 90 };
    struct mo_read r = {
        .kind = MO_READ_SEARCH, .text = S("common"), .limit = 20};
    bool seen[2 * N + 1] = {false};
    struct fix f;
    char doc[64];
    size_t n = 0;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "long", session_w), 0);
    for (int i = 0; i < 2 * N; i++) {
        (void)snprintf(doc, sizeof(doc), "%d|common and single%d", i, i);
        assert_int_equal(PUT(&f, "long", said(doc)), 0);
        if (i == N)
            assert_int_equal(PUT(&f, "long", simple(MO_WRITE_FRESH, 0)), 0);
        if (i == 7) /* in the middle of the index */
            assert_int_equal(hits(&f, "", "single7"), 1);
    }
    assert_int_equal(PUT(&f, "long", simple(MO_WRITE_CLOSE, 0)), 0);
    do {
        assert_int_equal(get(&f, r), 0);
        for (size_t i = 0; i < f.n; i++) {
            unsigned long k = strtoul(f.rows[i].doc.p, NULL, 10);

            assert_true(k < 2 * N && !seen[k]);
            seen[k] = true;
        }
        n += f.n;
        r.after += f.n;
    } while (f.more);
    assert_int_equal(n, 2 * N);
    assert_int_equal(hits(&f, "", "single17 common"), 1);
    assert_int_equal(f.rows[0].conversation, 1);
    assert_int_equal(f.rows[0].seq, 18);
    fix_fini(&f);
}

/* --- what is past its time ----------------------------------------------- */

static void wait_empty(struct fix *f, struct mo_read r)
{
    uint64_t until = mo_now_ns() + LONG * MO_MS;

    do {
        assert_int_equal(get(f, r), 0);
        (void)usleep(20000);
    } while (f->n && mo_now_ns() < until);
    assert_int_equal(f->n, 0);
}

/* A conversation ends after its last entry; the living session's goes on
 * with the next number. Of a closed session everything goes. */
static void test_ttl(void **state)
{
    struct fix f;

    fix_prepare(&f, *state);
    f.o.history_ttl_ms = 1500;
    fix_open(&f);
    assert_int_equal(PUT(&f, "lives", session_w, entry("1"), entry("2")), 0);
    assert_int_equal(PUT(&f, "gone", session_w, entry("1"),
                         call_new("c", MO_CALL_PENDING),
                         simple(MO_WRITE_CLOSE, 0)),
                     0);
    wait_empty(&f,
               (struct mo_read){.kind = MO_READ_HISTORY, .session = S("gone")});
    wait_empty(&f,
               (struct mo_read){.kind = MO_READ_CALLS, .session = S("gone")});
    wait_empty(
        &f, (struct mo_read){.kind = MO_READ_HISTORY, .session = S("lives")});
    assert_int_equal(PUT(&f, "lives", entry("3")), 0);
    assert_int_equal(f.w.conversation, 1);
    assert_int_equal(f.w.seq, 3);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("lives")),
                     0);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.rows[0].seq, 3);
    fix_fini(&f);
}

/* --- closing ------------------------------------------------------------- */

static void test_reopen(void **state)
{
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w, entry("1")), 0);
    fix_close(&f);
    fix_open(&f);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 1);
    assert_true(mo_store_health(f.s).up);
    fix_fini(&f);
}

/* What was asked for before the end is done; after it nothing is. */
static void test_close_under_way(void **state)
{
    struct mo_write w = entry("e");
    struct mo_store_batch b = {S("a"), 0, &w, 1};
    struct mo_read r = {.kind = MO_READ_SESSIONS};
    struct held holder, waiter;
    struct mo_err e;
    struct many m;
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "a", session_w), 0);
    assert_int_equal(take_wait(&f, &holder, "x", "me", 0), 0);
    take(&f, &waiter, "x", "you", LONG);
    ask_entries(&f, "a", 100, &m);
    mo_store_close(f.s, kit_gone, &f);
    assert_int_equal(mo_store_write(f.s, &b, on_many, &m, &e), MO_ECLOSED);
    assert_int_equal(mo_store_read(f.s, &r, kit_rows, &f, &e), MO_ECLOSED);
    assert_true(mo_loop_until(f.l, kit_is_gone, &f, LONG));
    assert_int_equal(m.done, 100);
    assert_int_equal(m.failed, 0);
    assert_int_equal(holder.lost, 1);
    assert_int_equal(holder.code, MO_ECLOSED);
    assert_int_equal(waiter.answered, 1);
    assert_int_equal(waiter.code, MO_ECANCELED);
    mo_loop_free(f.l);
    fix_open(&f);
    assert_int_equal(
        GET(&f, .kind = MO_READ_HISTORY, .session = S("a"), .limit = 1000), 0);
    assert_int_equal(f.n, 100);
    assert_int_equal(who(&f, "x"), 0); /* given back */
    assert_string_equal(f.owner, "");
    fix_fini(&f);
}

/* --- leases -------------------------------------------------------------- */

static void test_lease(void **state)
{
    struct held a, b;
    struct fix f;
    uint64_t fence;

    fix_init(&f, *state);
    assert_int_equal(who(&f, "x"), 0);
    assert_string_equal(f.owner, "");
    assert_int_equal(take_wait(&f, &a, "x", "me", 0), 0);
    fence = a.fence;
    assert_true(fence > 0);
    assert_int_equal(who(&f, "x"), 0);
    assert_string_equal(f.owner, "me");
    assert_int_equal(f.fence, fence);

    assert_int_equal(take_wait(&f, &b, "x", "you", 0), MO_ETIMEOUT);
    assert_non_null(strstr(b.msg, "me"));
    assert_int_equal(take_wait(&f, &b, "x", "you", 50), MO_ETIMEOUT);
    assert_non_null(strstr(b.msg, "me"));
    assert_int_equal(take_wait(&f, &b, "y", "you", 0), 0); /* another name */
    mo_lease_drop(b.lease);

    take(&f, &b, "x", "you", LONG);
    mo_lease_drop(b.lease);
    assert_true(mo_loop_until(f.l, kit_answered, &b, LONG));
    assert_int_equal(b.code, MO_ECANCELED);

    mo_lease_drop(a.lease);
    assert_int_equal(take_wait(&f, &b, "x", "you", LONG), 0);
    assert_true(b.fence > fence);
    assert_int_equal(a.lost, 0);
    mo_lease_drop(b.lease);
    fix_fini(&f);
}

/* First come, first served; who leaves the line is passed over. */
static void test_lease_line(void **state)
{
    enum { LINE = 8, LEAVES = 5 };
    struct held h[LINE];
    uint64_t fence = 0;
    struct fix f;

    fix_init(&f, *state);
    for (int i = 0; i < LINE; i++)
        take(&f, &h[i], "x", "me", LONG);
    mo_lease_drop(h[LEAVES].lease);
    assert_true(mo_loop_until(f.l, kit_answered, &h[LEAVES], LONG));
    assert_int_equal(h[LEAVES].code, MO_ECANCELED);
    for (int i = 0; i < LINE; i++) {
        if (i == LEAVES)
            continue;
        assert_true(mo_loop_until(f.l, kit_answered, &h[i], LONG));
        assert_int_equal(h[i].code, 0);
        for (int j = i + 1; j < LINE; j++)
            assert_true(j == LEAVES || h[j].answered == 0);
        assert_true(h[i].fence > fence);
        fence = h[i].fence;
        mo_lease_drop(h[i].lease);
    }
    fix_fini(&f);
}

static void test_fence(void **state)
{
    struct mo_write w = entry("x");
    struct held a;
    struct fix f;
    uint64_t old;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "s", session_w), 0);
    assert_int_equal(put(&f, "s", 12345, &w, 1), MO_EPOLICY);
    assert_int_equal(take_wait(&f, &a, "s", "me", 0), 0);
    old = a.fence;
    assert_int_equal(put(&f, "s", old, &w, 1), 0);
    assert_int_equal(put(&f, "s", old - 1, &w, 1), MO_EPOLICY);
    assert_int_equal(put(&f, "s", old + 1, &w, 1), MO_EPOLICY);
    mo_lease_drop(a.lease);
    assert_int_equal(put(&f, "s", old, &w, 1), MO_EPOLICY);
    assert_int_equal(take_wait(&f, &a, "s", "you", LONG), 0);
    assert_int_equal(put(&f, "s", old, &w, 1), MO_EPOLICY);
    assert_int_equal(put(&f, "s", a.fence, &w, 1), 0);
    assert_int_equal(f.w.seq, 2);
    mo_lease_drop(a.lease);
    fix_fini(&f);
}

static void kit_broken(void *ctx, const struct mo_err *why)
{
    ((struct held *)ctx)->code = why ? why->code : 0;
    ((struct held *)ctx)->answered++;
}

static int break_it(struct fix *f, const char *owner, uint64_t fence)
{
    struct held h = {.f = f};
    struct mo_err e;

    assert_int_equal(mo_lease_break(f->s, S("s"), mo_span_cstr(owner), fence,
                                    kit_broken, &h, &e),
                     0);
    assert_int_equal(h.answered, 0);
    assert_true(mo_loop_until(f->l, kit_answered, &h, LONG));
    return h.code;
}

/* Only the very lease that was meant. */
static void test_break(void **state)
{
    struct mo_write w = entry("x");
    struct held a;
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(PUT(&f, "s", session_w), 0);
    assert_int_equal(break_it(&f, "me", 1), 0);
    assert_int_equal(take_wait(&f, &a, "s", "me", 0), 0);
    assert_int_equal(break_it(&f, "me", a.fence - 1), 0);
    assert_int_equal(break_it(&f, "you", a.fence), 0);
    assert_int_equal(put(&f, "s", a.fence, &w, 1), 0);
    assert_int_equal(break_it(&f, "me", a.fence), 0);
    assert_int_equal(who(&f, "s"), 0);
    assert_string_equal(f.owner, "");
    assert_int_equal(put(&f, "s", a.fence, &w, 1), MO_EPOLICY);
    mo_lease_drop(a.lease);
    fix_fini(&f);
}

/* It is renewed by itself, many terms long. */
static void test_renewal(void **state)
{
    struct held a, b;
    struct fix f;

    fix_prepare(&f, *state);
    f.o.lease_ttl_ms = 3000;
    fix_open(&f);
    assert_int_equal(take_wait(&f, &a, "x", "me", 0), 0);
    assert_int_equal(take_wait(&f, &b, "x", "you", 6500), MO_ETIMEOUT);
    assert_int_equal(a.lost, 0);
    assert_int_equal(who(&f, "x"), 0);
    assert_int_equal(f.fence, a.fence);
    mo_lease_drop(a.lease);
    fix_fini(&f);
}

/* --- allocations --------------------------------------------------------- */

struct tortured {
    struct fix f;
    unsigned asked, told;
};

static void told_w(void *ctx, const struct mo_written *w,
                   const struct mo_err *why)
{
    (void)w;
    (void)why;
    ((struct tortured *)ctx)->told++;
}

static void told_r(void *ctx, const struct mo_rows *r, const struct mo_err *why)
{
    (void)r;
    (void)why;
    ((struct tortured *)ctx)->told++;
}

static void told_held(void *ctx, struct mo_lease *l, uint64_t fence,
                      const struct mo_err *why)
{
    (void)fence;
    ((struct tortured *)ctx)->told++;
    if (!why)
        mo_lease_drop(l);
}

static void told_lost(void *ctx, const struct mo_err *why)
{
    (void)ctx;
    (void)why;
}

static bool all_told(void *ctx)
{
    const struct tortured *t = ctx;

    return t->asked == t->told;
}

/* Every request that was accepted is answered, once. */
static void suffer(void *ctx)
{
    static const struct mo_lease_cb cb = {told_held, told_lost};
    struct tortured *t = ctx;
    struct mo_write w[] = {session_w, entry("x"), audit("y", 1)};
    struct mo_store_batch b = {S("a"), 0, w, MO_COUNT(w)};
    struct mo_read r = {.kind = MO_READ_HISTORY, .session = S("a")};
    struct mo_lease *lease;
    struct mo_err e;

    t->asked = t->told = 0;
    t->asked += mo_store_write(t->f.s, &b, told_w, t, &e) == 0;
    t->asked += mo_store_read(t->f.s, &r, told_r, t, &e) == 0;
    t->asked +=
        mo_lease_take(t->f.s, S("n"), S("o"), 0, &cb, t, &lease, &e) == 0;
    t->asked +=
        mo_lease_take(t->f.s, S("m"), S("o"), LONG, &cb, t, &lease, &e) == 0;
    t->asked +=
        mo_lease_take(t->f.s, S("m"), S("o"), LONG, &cb, t, &lease, &e) == 0;
    assert_true(mo_loop_until(t->f.l, all_told, t, LONG));
}

/* As torture(), but a server that was lost for lack of memory must be dialled
 * again, which takes its time: not every place gets all later ones too. */
static void torture_some(struct tortured *t, uint64_t every)
{
    uint64_t n;

    mo_mem_fail_at(0, false);
    suffer(t);
    n = mo_mem_count();
    for (uint64_t i = 1; i <= n; i++) {
        mo_mem_fail_at(i, false);
        suffer(t);
        if (i % every)
            continue;
        mo_mem_fail_at(i, true);
        suffer(t);
    }
    mo_mem_fail_at(0, false);
}

static void test_torture(void **state)
{
    struct tortured t;

    fix_prepare(&t.f, *state);
    t.f.o.lease_ttl_ms = 2000;
    t.f.o.deadline_ms = 100; /* nothing connects while memory is gone */
    fix_open(&t.f);
    while (PUT(&t.f, "a", session_w) == MO_EUNAVAIL)
        continue;
    torture_some(&t, t.f.b->redis ? 8 : 1);
    while (PUT(&t.f, "a", entry("after")) == MO_EUNAVAIL)
        continue;
    assert_int_equal(t.f.code, 0);
    fix_fini(&t.f);
}

#define ON(backend, fn)                                                        \
    {                                                                          \
#        backend "/" #        fn, fn, NULL, NULL,                              \
            (void *)(uintptr_t)&backend##_backend                              \
    }
#define ALL(fn) ON(sqlite, fn), ON(redis, fn)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ALL(test_session),
        ALL(test_sessions),
        ALL(test_close_and_forget),
        ALL(test_forget_strips),
        ALL(test_marks),
        ALL(test_mark_lists),
        ALL(test_shares),
        ALL(test_history),
        ALL(test_again),
        ALL(test_fresh),
        ALL(test_bytes),
        ALL(test_calls),
        ALL(test_all_or_nothing),
        ALL(test_in_order),
        ALL(test_order_and_bound),
        ALL(test_refusals),
        ALL(test_audit),
        ALL(test_audits),
        ALL(test_search),
        ALL(test_search_among),
        ALL(test_search_long),
        ALL(test_ttl),
        ALL(test_reopen),
        ALL(test_close_under_way),
        ALL(test_lease),
        ALL(test_lease_line),
        ALL(test_fence),
        ALL(test_break),
        ALL(test_renewal),
        ALL(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
