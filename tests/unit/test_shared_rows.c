/* Rows that several servers have in common: two that differ come to the same
 * set, what is removed does not come back, and nothing is called too late. */
#include "store/shared_rows.h"

#include <stdio.h>

#include "store_kit.h"

#define ROWS_MAX 400

/* A server whose rows are "vN", N being their version: the largest counts. */
struct side {
    struct fix *f;
    struct mo_shared_rows *r;
    unsigned v[ROWS_MAX]; /* 0: it has none */
    unsigned merges;
    int code;
    bool done;
    char doc[64];
};

static unsigned version_of(const struct mo_shared_row *row)
{
    return row && !row->is_gone ? (unsigned)strtoul(row->doc + 2, NULL, 10) : 0;
}

static void merge(void *ctx, const struct mo_map *theirs,
                  struct mo_shared_rows *r)
{
    struct side *s = ctx;

    s->merges++;
    for (unsigned i = 0; i < ROWS_MAX; i++) {
        char id[16], doc[32];
        const struct mo_shared_row *row;

        (void)snprintf(id, sizeof(id), "r%u", i);
        row = mo_map_get(theirs, mo_span_cstr(id));
        if (row && row->is_gone)
            s->v[i] = 0;
        if (version_of(row) > s->v[i])
            s->v[i] = version_of(row);
        if (s->v[i] <= version_of(row))
            continue;
        (void)snprintf(doc, sizeof(doc), "\"v%u\"", s->v[i]);
        mo_shared_rows_put(r, "thing", mo_span_cstr(id), mo_span_cstr(doc));
    }
}

static void open_side(struct side *s, struct fix *f)
{
    const struct mo_shared_kind k = {"thing", merge, s};
    struct mo_err e = {0};

    s->f = f;
    if (mo_shared_rows_open(f->l, f->s, "test", &k, 1, &s->r, &e) < 0)
        fail_msg("%s", e.msg);
}

struct pair {
    struct side a, b;
};

static bool is_same(void *ctx)
{
    const struct pair *p = ctx;

    return p->a.merges && p->b.merges &&
           memcmp(p->a.v, p->b.v, sizeof(p->a.v)) == 0;
}

static void await_same(struct pair *p)
{
    assert_true(mo_loop_until(p->a.f->l, is_same, p, LONG));
}

static struct pair *open_pair(struct fix *f)
{
    struct pair *p = mo_new(struct pair);

    assert_non_null(p);
    for (unsigned i = 0; i < ROWS_MAX; i++) {
        p->a.v[i] = i % 3 ? i : 0;
        p->b.v[i] = i % 2 ? i + 1 : 0;
    }
    open_side(&p->a, f);
    open_side(&p->b, f);
    return p;
}

static void close_pair(struct pair *p)
{
    mo_shared_rows_close(p->a.r);
    mo_shared_rows_close(p->b.r);
    mo_free(p);
}

static void test_two_become_one(void **state)
{
    struct fix f;
    struct pair *p;

    fix_init(&f, *state);
    p = open_pair(&f);
    await_same(p);
    assert_true(mo_shared_rows_are_read(p->a.r));
    for (unsigned i = 0; i < ROWS_MAX; i++)
        assert_int_equal(p->a.v[i], i % 2 ? i + 1 : i % 3 ? i : 0);
    p->b.v[7] = 1000; /* a change here reaches the other */
    mo_shared_rows_changed(p->b.r);
    await_same(p);
    assert_int_equal(p->a.v[7], 1000);
    close_pair(p);
    fix_fini(&f);
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct side *s = ctx;

    s->done = true;
    s->code = why ? why->code : 0;
}

static void on_got(void *ctx, struct mo_span doc, const struct mo_err *why)
{
    struct side *s = ctx;

    (void)snprintf(s->doc, sizeof(s->doc), "%.*s", (int)doc.n,
                   doc.n ? doc.p : "");
    on_done(ctx, why);
}

static bool is_done(void *ctx)
{
    return ((struct side *)ctx)->done;
}

static void test_removed(void **state)
{
    struct fix f;
    struct pair *p;
    struct side late = {.v = {[5] = 5}};

    fix_init(&f, *state);
    p = open_pair(&f);
    await_same(p);
    assert_int_equal(mo_shared_rows_remove(p->a.r, "thing", MO_SPAN("r5"),
                                           on_done, &p->a, NULL),
                     0);
    assert_true(mo_loop_until(f.l, is_done, &p->a, LONG));
    assert_int_equal(p->a.code, 0);
    p->a.v[5] = 0;
    await_same(p);
    open_side(&late, &f); /* one that was away still has it */
    while (!mo_shared_rows_are_read(late.r))
        (void)mo_loop_until(f.l, is_done, &late, 10);
    assert_int_equal(late.v[5], 0);
    assert_int_equal(mo_shared_rows_read(late.r, "thing", MO_SPAN("r5"), on_got,
                                         &late, NULL),
                     0);
    assert_true(mo_loop_until(f.l, is_done, &late, LONG));
    assert_int_equal(strncmp(late.doc, "{\"gone\":true,\"at\":", 18), 0);
    mo_shared_rows_close(late.r);
    close_pair(p);
    fix_fini(&f);
}

/* Whatever is under way, a closed one merges nothing; who waits is told. */
static void test_closed(void **state)
{
    struct side s = {.v = {[1] = 1}};
    struct fix f;

    fix_init(&f, *state);
    for (unsigned turns = 0; turns < 20; turns++) {
        unsigned merges;

        s.done = false;
        open_side(&s, &f);
        for (unsigned i = 0; i < turns; i++)
            (void)mo_loop_until(f.l, is_done, &s, 1);
        assert_int_equal(mo_shared_rows_write(s.r, "thing", MO_SPAN("r9"),
                                              MO_SPAN("\"v9\""), on_done, &s,
                                              NULL),
                         0);
        merges = s.merges;
        mo_shared_rows_close(s.r);
        assert_true(mo_loop_until(f.l, is_done, &s, LONG));
        assert_int_equal(s.code, MO_ECLOSED);
        assert_int_equal(s.merges, merges);
    }
    fix_fini(&f);
}

static const struct backend sqlite = {"sqlite", false}, redis = {"redis", true};

#define ALL(fn)                                                                \
    {"sqlite/" #fn, fn, NULL, NULL, (void *)(uintptr_t)&sqlite},               \
    {                                                                          \
        "redis/" #fn, fn, NULL, NULL, (void *)(uintptr_t)&redis                \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_two_become_one),
        ALL(test_removed),
        ALL(test_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
