/* Rows of one person among those of many others: every one of them is found,
 * once, in order, however many pages of the store lie between. */
#include "web/api_job.h"

#include "store_kit.h"

static const struct backend sqlite_backend = {"sqlite", false};
static const struct backend redis_backend = {"redis", true};

#define ROWS 2600 /* more than two pages */

struct pages {
    struct fix f;
    struct mo_api api;
    struct mo_req rq;
    struct mo_api_job j;
    uint64_t seen[ROWS]; /* numbers of the rows, as they came */
    size_t n;
    bool ended, more;
};

static struct pages *pages_of(struct mo_api_job *j)
{
    return mo_container_of(j, struct pages, j);
}

static void each(struct mo_api_job *j, const struct mo_row *row)
{
    struct pages *p = pages_of(j);
    struct mo_json_doc doc;

    assert_int_equal(mo_json_parse(row->doc, 0, &doc, NULL), 0);
    assert_true(p->n < ROWS);
    assert_int_equal(mo_json_u64(mo_json_get(doc.root, "no"), &p->seen[p->n++]),
                     0);
}

static void end(struct mo_api_job *j, bool more)
{
    struct pages *p = pages_of(j);

    assert_false(p->ended);
    p->ended = true;
    p->more = more;
}

static const struct mo_api_pages_cb cb = {mo_api_row_is_mine, each, end};

static bool has_ended(void *ctx)
{
    return ((struct pages *)ctx)->ended;
}

static void ask(struct pages *p, const char *who, const struct mo_read *r)
{
    p->n = 0;
    p->ended = false;
    p->j = (struct mo_api_job){.api = &p->api, .rq = &p->rq};
    (void)snprintf(p->j.caller, sizeof(p->j.caller), "%s", who);
    mo_buf_init(&p->j.text, MO_API_ARG_MAX);
    mo_buf_init(&p->j.out, MO_API_ANSWER_MAX);
    mo_api_pages(&p->j, r, &cb);
    assert_false(p->ended); /* never from inside the call */
    assert_true(mo_loop_until(p->f.l, has_ended, p, LONG));
    mo_buf_fini(&p->j.text);
    mo_buf_fini(&p->j.out);
}

/* One row in `one_of` is alice's; times repeat `same` times. */
static void fill(struct pages *p, unsigned one_of, unsigned same)
{
    static char docs[MO_STORE_BATCH_MAX][64];
    struct mo_write w[MO_STORE_BATCH_MAX];
    size_t n = 0;

    for (unsigned i = 0; i < ROWS; i++) {
        (void)snprintf(docs[n], sizeof(docs[n]), "{\"owner\":\"%s\",\"no\":%u}",
                       i % one_of ? "bob" : "alice", i);
        w[n] = (struct mo_write){.kind = MO_WRITE_AUDIT,
                                 .doc = mo_span_cstr(docs[n]),
                                 .at = 1000 + i / same};
        if (++n < MO_COUNT(w) && i + 1 < ROWS)
            continue;
        assert_int_equal(put(&p->f, "", 0, w, n), 0);
        n = 0;
    }
}

static void check(struct pages *p, const char *who, unsigned one_of,
                  unsigned limit)
{
    const struct mo_read r = {.kind = MO_READ_AUDIT, .limit = limit};
    unsigned all = (ROWS + one_of - 1) / one_of;

    ask(p, who, &r);
    assert_int_equal(p->n, limit < all ? limit : all);
    assert_int_equal(p->more, limit < all);
    for (size_t i = 0; i < p->n; i++)
        assert_int_equal(p->seen[i], (all - 1 - i) * one_of);
}

static void test_audit(void **state)
{
    static const struct {
        unsigned one_of, same;
    } rows[] = {{ROWS, 1}, {ROWS, 7}, {1300, 3}, {400, 7}, {2, 900}};

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct pages *p = mo_new(struct pages);

        assert_non_null(p);
        fix_init(&p->f, *state);
        p->api.store = p->f.s;
        fill(p, rows[i].one_of, rows[i].same);
        check(p, "alice", rows[i].one_of, 1);
        check(p, "alice", rows[i].one_of, 2);
        check(p, "alice", rows[i].one_of, 1000);
        check(p, "", 1, 5); /* no persons: one page */
        fix_fini(&p->f);
        mo_free(p);
    }
}

static void test_sessions(void **state)
{
    const struct mo_read r = {
        .kind = MO_READ_SESSIONS, .limit = 1000, .newest = true};
    struct pages *p = mo_new(struct pages);

    assert_non_null(p);
    fix_init(&p->f, *state);
    p->api.store = p->f.s;
    for (unsigned i = 0; i < 1100; i++) {
        char id[16], doc[64];
        struct mo_write w = {.kind = MO_WRITE_SESSION, .at = 1000 + i / 3};

        (void)snprintf(id, sizeof(id), "s%04u", i);
        (void)snprintf(doc, sizeof(doc), "{\"owner\":\"%s\",\"no\":%u}",
                       i < 5 ? "alice" : "bob", i);
        w.doc = mo_span_cstr(doc);
        assert_int_equal(put(&p->f, id, 0, &w, 1), 0);
    }
    ask(p, "alice", &r);
    assert_int_equal(p->n, 5);
    assert_false(p->more);
    for (size_t i = 0; i < p->n; i++)
        assert_int_equal(p->seen[i], 4 - i);
    fix_fini(&p->f);
    mo_free(p);
}

#define ON(backend, fn)                                                        \
    {                                                                          \
        .name = #fn " (" #backend ")", .test_func = (fn),                      \
        .initial_state = (void *)(uintptr_t)&backend##_backend                 \
    }
#define ALL(fn) ON(sqlite, fn), ON(redis, fn)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ALL(test_audit),
        ALL(test_sessions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
