/* test_budget.c - amounts, prices, calls of the last minute, and the counters
 * of both stores. */
#include "base/file.h"
#include "budget/budget.h"
#include "budget/local.h"
#include "budget/spend.h"
#include "codec/money.h"
#include "store_kit.h"

static const struct backend sqlite_backend = {"sqlite", false};
static const struct backend redis_backend = {"redis", true};

#define S(x) MO_SPAN(x)

/* --- amounts ------------------------------------------------------------- */

static void test_money(void **state)
{
    static const struct {
        const char *text;
        int64_t v; /* -1: refused */
        const char *back;
    } rows[] = {
        {"0", 0, "0"},
        {"5", 5000000, "5"},
        {"0.075", 75000, "0.075"},
        {"12.50", 12500000, "12.5"},
        {"0.000001", 1, "0.000001"},
        {"1000000000", MO_MONEY_MAX, "1000000000"},
        {"1000000000.000001", -1, NULL},
        {"1000000001", -1, NULL},
        {"99999999999999999999999999", -1, NULL},
        {"0.0000001", -1, NULL},
        {"-1", -1, NULL},
        {"1e3", -1, NULL},
        {"", -1, NULL},
        {".5", -1, NULL},
        {"5.", -1, NULL},
        {"1.2.3", -1, NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 64};
        int64_t v = -1;
        int rc = mo_money_read(mo_span_cstr(rows[i].text), &v);

        check_row(rows[i].text, (rc < 0) == (rows[i].v < 0));
        if (rc < 0)
            continue;
        check_row(rows[i].text, v == rows[i].v);
        mo_money_put(&b, v);
        check_row(rows[i].text, mo_span_is(mo_buf_view(&b), rows[i].back));
    }
}

/* --- prices -------------------------------------------------------------- */

static struct mo_config_price own_prices[] = {
    {.name = "mine-*", .input = 2000000, .output = 4000000},
    {.name = "mine-big", .input = 10000000, .output = 20000000},
    {.name = "gpt-4o", .input = 1, .output = 1},
};
static const struct mo_config priced = {
    .prices = {own_prices, MO_COUNT(own_prices)}};

static void test_price_of(void **state)
{
    struct mo_config_price p;

    (void)state;
    assert_true(mo_price_find(&priced, S("mine-big"), &p));
    assert_int_equal(p.input, 10000000);
    assert_true(mo_price_find(&priced, S("mine-bigger"), &p));
    assert_int_equal(p.input, 2000000);
    assert_true(mo_price_find(&priced, S("gpt-4o"), &p));
    assert_int_equal(p.input, 1);
    assert_true(mo_price_find(&priced, S("gpt-4o-mini"), &p)); /* built in */
    assert_int_equal(p.input, 150000);
    assert_int_equal(p.cache_read, 75000);
    assert_true(mo_price_find(&priced, S("demo"), &p));
    assert_int_equal(p.output, 0);
    assert_false(mo_price_find(&priced, S("gpt"), &p));
    assert_false(mo_price_find(&priced, S(""), &p));
    assert_false(mo_price_find(&priced, S("other"), &p));
}

static void test_cost(void **state)
{
    static const struct mo_config_price p = {
        .input = 3000000, .output = 15000000, .cache_read = 300000};
    static const struct {
        const char *name;
        struct mo_usage u;
        uint64_t tokens;
        int64_t cost;
    } rows[] = {
        {"nothing", {0, 0, 0, 0}, 0, 0},
        {"rounded up", {0, 0, 0, 0}, 0, 0},
        {"plain", {1000, 100, 0, 0}, 1100, 4500},
        {"cached", {1000, 0, 1000, 0}, 1000, 300},
        {"written", {1000, 0, 0, 1000}, 1000, 3000},
        {"more cached than there is", {10, 0, 1000, 1000}, 10, 3},
        {"a lie",
         {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
         MO_USAGE_MAX,
         15000000LL * 1000 + 300000LL * 1000},
        {"2^63", {(uint64_t)1 << 63, 0, 0, 0}, MO_USAGE_MAX, 3000000LL * 1000},
    };
    static const struct mo_config_price tiny = {.input = 1, .output = 1};
    static const struct mo_usage one = {.input = 1};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        check_row(rows[i].name, mo_usage_tokens(&rows[i].u) == rows[i].tokens);
        check_row(rows[i].name, mo_price_cost(&p, &rows[i].u) == rows[i].cost);
    }
    assert_int_equal(mo_price_cost(&tiny, &one), 1);
}

/* --- calls of the last minute -------------------------------------------- */

/* However the calls come, no 60 seconds have more than the limit. */
static void test_window(void **state)
{
    uint64_t v[4000], now = 1000 * MO_S, wait;
    struct mo_local l;
    size_t n = 0;

    (void)state;
    mo_local_init(&l);
    for (int i = 0; i < 4000; i++) {
        now += (uint64_t)(i * 7919 % 400) * MO_MS;
        if (!mo_local_has_room(&l, S("a"), 20, now, &wait)) {
            assert_in_range(wait, 1, 61000);
            continue;
        }
        mo_local_count(&l, S("a"), now);
        v[n++] = now;
    }
    assert_true(n > 100);
    for (size_t i = 20; i < n; i++)
        assert_true(v[i] - v[i - 20] >= 60 * MO_S);
    assert_true(mo_local_has_room(&l, S("b"), 1, now, &wait));
    mo_local_fini(&l);
}

/* The time to wait is enough. */
static void test_window_wait(void **state)
{
    uint64_t now = 5 * MO_S + 900 * MO_MS, wait = 0;
    struct mo_local l;

    (void)state;
    mo_local_init(&l);
    for (int i = 0; i < 3; i++) {
        assert_true(mo_local_has_room(&l, S("a"), 3, now, &wait));
        mo_local_count(&l, S("a"), now);
        now += 10 * MO_S;
    }
    assert_false(mo_local_has_room(&l, S("a"), 3, now, &wait));
    assert_true(mo_local_has_room(&l, S("a"), 3, now + wait * MO_MS, &wait));
    mo_local_fini(&l);
}

static void test_window_names(void **state)
{
    uint64_t now = 1000 * MO_S, wait;
    struct mo_local l;

    (void)state;
    mo_local_init(&l);
    for (int i = 0; i < MO_LOCAL_NAMES + 100; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "n%d", i);
        mo_local_count(&l, mo_span_cstr(name), now);
    }
    assert_int_equal(l.windows.len, MO_LOCAL_NAMES);
    assert_int_equal(l.others.sum, 100);
    now += 100 * MO_S; /* they are forgotten */
    mo_local_count(&l, S("new"), now);
    assert_int_equal(l.windows.len, 1);
    assert_true(mo_local_has_room(&l, S("newer"), 1, now, &wait));
    mo_local_fini(&l);
}

/* --- counters ------------------------------------------------------------ */

struct counted {
    struct mo_counted c;
    int code;
    bool done;
};

static void on_counted(void *ctx, const struct mo_counted *c,
                       const struct mo_err *why)
{
    struct counted *k = ctx;

    k->c = *c;
    k->code = why ? why->code : 0;
    k->done = true;
}

static bool is_counted(void *ctx)
{
    return ((struct counted *)ctx)->done;
}

static struct counted count(struct fix *f, const struct mo_counter *v, size_t n)
{
    struct counted k = {.done = false};
    struct mo_err e;

    k.code = mo_store_count(f->s, v, n, on_counted, &k, &e);
    if (k.code == 0)
        assert_true(mo_loop_until(f->l, is_counted, &k, LONG));
    return k;
}

#define COUNT(f, ...)                                                          \
    count((f), (const struct mo_counter[]){__VA_ARGS__},                       \
          sizeof((const struct mo_counter[]){__VA_ARGS__}) /                   \
              sizeof(struct mo_counter))
#define DAY(n, l, a)                                                           \
    {                                                                          \
        .kind = MO_COUNTER_DAY, .name = S(n), .limit = (l), .add = (a)         \
    }

static uint64_t sum_of(struct fix *f, uint64_t day, const char *name)
{
    assert_int_equal(
        GET(f, .kind = MO_READ_DAY, .after = day, .text = mo_span_cstr(name)),
        0);
    return f->n ? f->rows[0].seq : UINT64_MAX;
}

static void test_day(void **state)
{
    struct counted k;
    uint64_t day;
    struct fix f;

    fix_init(&f, *state);
    k = COUNT(&f, DAY("a\ttokens", 100, 60), DAY("a\tmoney", 0, 7));
    assert_int_equal(k.code, 0);
    assert_false(k.c.refused);
    day = k.c.day;
    assert_int_equal(day, mo_wall_ms() / 86400000);
    /* all or nothing */
    k = COUNT(&f, DAY("a\tmoney", 0, 5), DAY("a\ttokens", 100, 41));
    assert_true(k.c.refused);
    assert_int_equal(k.c.which, 1);
    assert_in_range(k.c.wait_ms, 1, 86400000);
    assert_int_equal(sum_of(&f, day, "a\tmoney"), 7);
    /* exactly the rest */
    assert_false(COUNT(&f, DAY("a\ttokens", 100, 40)).c.refused);
    assert_true(COUNT(&f, DAY("a\ttokens", 100, 1)).c.refused);
    /* corrections, also of another day; never below 0 */
    assert_false(COUNT(&f, DAY("a\ttokens", 0, -500)).c.refused);
    assert_int_equal(sum_of(&f, day, "a\ttokens"), 0);
    k = COUNT(&f, {.kind = MO_COUNTER_DAY,
                   .name = S("a\ttokens"),
                   .add = 3,
                   .day = day - 1});
    assert_false(k.c.refused);
    assert_int_equal(sum_of(&f, day - 1, "a\ttokens"), 3);
    assert_int_equal(sum_of(&f, day, "a\ttokens"), 0);
    fix_fini(&f);
}

static void test_day_bounds(void **state)
{
    const int64_t most = MO_COUNTER_SUM_MAX;
    char name[MO_COUNTER_NAME_MAX + 1];
    struct fix f;

    fix_init(&f, *state);
    assert_false(COUNT(&f, DAY("b", 0, most)).c.refused);
    assert_false(COUNT(&f, DAY("b", 0, most)).c.refused);
    assert_int_equal(sum_of(&f, mo_wall_ms() / 86400000, "b"), most);
    assert_true(COUNT(&f, DAY("b", (uint64_t)most, 1)).c.refused);
    assert_int_equal(COUNT(&f, DAY("b", 0, most + 1)).code, MO_EINVAL);
    assert_int_equal(COUNT(&f, DAY("b", (uint64_t)most + 1, 1)).code,
                     MO_EINVAL);
    assert_int_equal(COUNT(&f, DAY("", 0, 1)).code, MO_EINVAL);
    memset(name, 'x', sizeof(name));
    assert_int_equal(COUNT(&f, {.kind = MO_COUNTER_DAY,
                                .name = mo_span(name, sizeof(name)),
                                .add = 1})
                         .code,
                     MO_EINVAL);
    assert_int_equal(count(&f, NULL, 0).code, MO_EINVAL);
    fix_fini(&f);
}

/* Survives the process, and pages by name. */
static void test_day_kept(void **state)
{
    struct fix f;
    uint64_t day = mo_wall_ms() / 86400000;

    fix_init(&f, *state);
    for (int i = 0; i < 5; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "p%d\ttokens", i);
        assert_false(COUNT(&f, {.kind = MO_COUNTER_DAY,
                                .name = mo_span_cstr(name),
                                .add = i + 1})
                         .c.refused);
    }
    fix_close(&f);
    fix_open(&f);
    assert_int_equal(GET(&f, .kind = MO_READ_DAY, .after = day, .limit = 3), 0);
    assert_int_equal(f.n, 3);
    assert_true(f.more);
    assert_true(mo_span_is(f.rows[2].id, "p2\ttokens"));
    assert_int_equal(f.rows[2].seq, 3);
    assert_int_equal(GET(&f, .kind = MO_READ_DAY, .after = day, .limit = 3,
                         .id = S("p2\ttokens")),
                     0);
    assert_int_equal(f.n, 2);
    assert_false(f.more);
    assert_int_equal(f.rows[1].seq, 5);
    assert_int_equal(GET(&f, .kind = MO_READ_DAY, .after = day + 1), 0);
    assert_int_equal(f.n, 0);
    fix_fini(&f);
}

#define RATE(n, l)                                                             \
    {                                                                          \
        .kind = MO_COUNTER_RATE, .name = S(n), .limit = (l), .add = 1          \
    }
#define HELD(n, l, who, a)                                                     \
    {                                                                          \
        .kind = MO_COUNTER_HELD, .name = S(n), .holder = S(who), .limit = (l), \
        .add = (a)                                                             \
    }

static void test_shared(void **state)
{
    struct counted k;
    struct fix f;

    fix_init(&f, *state);
    if (!f.b->redis) {
        assert_int_equal(COUNT(&f, RATE("r", 1)).code, MO_EINVAL);
        assert_int_equal(COUNT(&f, HELD("h", 1, "x", 1)).code, MO_EINVAL);
        fix_fini(&f);
        return;
    }
    assert_false(COUNT(&f, RATE("r", 2)).c.refused);
    assert_false(COUNT(&f, RATE("r", 2)).c.refused);
    k = COUNT(&f, RATE("q", 5), RATE("r", 2));
    assert_true(k.c.refused);
    assert_int_equal(k.c.which, 1);
    assert_in_range(k.c.wait_ms, 1, 61000);
    for (int i = 0; i < 5; i++) /* the refused one did not count */
        assert_false(COUNT(&f, RATE("q", 5)).c.refused);
    assert_true(COUNT(&f, RATE("q", 5)).c.refused);
    assert_false(COUNT(&f, HELD("h", 2, "x", 1)).c.refused);
    assert_false(COUNT(&f, HELD("h", 2, "y", 1)).c.refused);
    assert_true(COUNT(&f, HELD("h", 2, "z", 1)).c.refused);
    assert_false(COUNT(&f, HELD("h", 2, "x", 1)).c.refused); /* renewed */
    assert_false(COUNT(&f, HELD("h", 0, "x", -1)).c.refused);
    assert_false(COUNT(&f, HELD("h", 2, "z", 1)).c.refused);
    fix_fini(&f);
}

/* --- budgets ------------------------------------------------------------- */

static const char config[] =
    "{\"server\":{\"tokens\":{\"bob\":\"bob-0123456789abcdef\"}},"
    "\"budgets\":{\"people\":{\"bob\":{\"callsPerMinute\":2,\"turns\":1,"
    "\"boxes\":1,\"tokensPerDay\":1000,\"moneyPerDay\":0.005},"
    "\"operator\":{\"callsPerMinute\":1}}},"
    "\"prices\":{\"mine-*\":{\"input\":2,\"output\":4},"
    "\"mine-big\":{\"input\":10,\"output\":20}}}";
static struct mo_config_holder holder;

static void read_config(const struct fix *f)
{
    struct mo_config_input in = {.dir = f->dir};
    struct mo_config_report rep;
    char path[128];
    struct mo_err e;

    (void)snprintf(path, sizeof(path), "%s/budget.json", f->dir);
    in.file = path;
    assert_int_equal(
        mo_file_save(path, mo_span(config, sizeof(config) - 1), 0600, &e), 0);
    if (mo_config_open(&holder, &in, &rep, &e) < 0)
        fail_msg("%s: %s", e.msg, rep.kept ? rep.v[0].text : "");
}

struct asked {
    struct mo_budget_ask ask;
    struct mo_budget_no no;
    bool done, yes;
};

static void on_asked(struct mo_budget_ask *a, const struct mo_budget_no *no)
{
    struct asked *k = mo_container_of(a, struct asked, ask);

    k->done = true;
    k->yes = no == NULL;
    if (no)
        k->no = *no;
}

static bool is_asked(void *ctx)
{
    return ((struct asked *)ctx)->done;
}

static bool finish(struct fix *f, struct asked *k, enum mo_budget_answer a)
{
    if (a == MO_BUDGET_LATER) {
        assert_false(k->done);
        assert_true(mo_loop_until(f->l, is_asked, k, LONG));
        return k->yes;
    }
    return a == MO_BUDGET_YES;
}

static const struct mo_budget_who bob = {.person = {"bob", 3}};

static bool call(struct fix *f, struct mo_budget *b, const char *who,
                 struct asked *k)
{
    const struct mo_budget_who person = {.person = mo_span_cstr(who)};
    const struct mo_budget_call c = {.who = &person, .server = S("s")};

    *k = (struct asked){.ask = {.done = on_asked}};
    return finish(f, k, mo_budget_call(b, &c, &k->ask, &k->no));
}

static bool request(struct fix *f, struct mo_budget *b, const char *turn,
                    const char *model, uint64_t tokens,
                    struct mo_budget_share *share, struct asked *k)
{
    const struct mo_budget_request r = {.who = &bob,
                                        .turn = mo_span_cstr(turn),
                                        .model = mo_span_cstr(model),
                                        .most = {.input = tokens}};

    *k = (struct asked){.ask = {.done = on_asked}};
    return finish(f, k, mo_budget_request(b, &r, share, &k->ask, &k->no));
}

static struct mo_budget *open_budget(struct fix *f)
{
    struct mo_budget *b = NULL;
    struct mo_err e;

    read_config(f);
    assert_int_equal(mo_budget_new(f->l, holder.now, NULL, &b, &e), 0);
    mo_config_close(&holder); /* it has a reference */
    mo_budget_store(b, f->s);
    return b;
}

static bool is_idle(void *ctx)
{
    struct fix *f = ctx;

    return mo_store_health(f->s).queued == 0;
}

static void settle_all(struct fix *f)
{
    assert_true(mo_loop_until(f->l, is_idle, f, LONG));
}

static void test_calls(void **state)
{
    struct mo_budget *b;
    struct asked k;
    struct fix f;

    fix_init(&f, *state);
    b = open_budget(&f);
    assert_true(call(&f, b, "bob", &k));
    assert_true(call(&f, b, "bob", &k));
    assert_false(call(&f, b, "bob", &k));
    assert_non_null(strstr(k.no.text, "2 calls a minute for bob"));
    assert_int_equal(k.no.kind, MO_BUDGET_CALLS);
    assert_in_range(k.no.wait_ms, 1, 61000);
    assert_true(call(&f, b, "", &k)); /* the operator */
    assert_false(call(&f, b, "", &k));
    for (int i = 0; i < 5; i++)
        assert_true(call(&f, b, "ann", &k));
    assert_int_equal(mo_budget_stats(b).refused[MO_BUDGET_CALLS], 2);
    mo_budget_close(b);
    fix_fini(&f);
}

static void test_request(void **state)
{
    struct mo_budget_share one, two;
    struct mo_usage used = {.input = 400, .output = 100};
    uint64_t day = mo_wall_ms() / 86400000;
    struct mo_budget *b;
    struct asked k;
    struct fix f;

    fix_init(&f, *state);
    b = open_budget(&f);
    assert_true(request(&f, b, "t1", "mine-x", 900, &one, &k));
    assert_true(one.is_open);
    assert_false(request(&f, b, "t2", "mine-x", 50, &two, &k));
    assert_int_equal(k.no.kind, MO_BUDGET_TURNS);
    /* without a turn: its tokens count, and no place is taken */
    assert_true(request(&f, b, "", "mine-x", 50, &two, &k));
    mo_budget_settle(b, &bob, S("mine-x"), &two, NULL);
    settle_all(&f);
    assert_false(request(&f, b, "t1", "mine-x", 200, &two, &k));
    assert_int_equal(k.no.kind, MO_BUDGET_TOKENS);
    assert_in_range(k.no.wait_ms, 1, 86400000);
    mo_budget_settle(b, &bob, S("mine-x"), &one, &used);
    settle_all(&f);
    assert_int_equal(sum_of(&f, day, "person:bob\ttokens"), 500);
    assert_int_equal(sum_of(&f, day, "person:bob\tmoney"), 1200);
    mo_budget_release(b, MO_BUDGET_TURNS, &bob, S("t1"));
    settle_all(&f);
    /* no price: refused, because bob's money is limited */
    assert_false(request(&f, b, "t2", "other", 10, &two, &k));
    assert_true(k.no.is_unknown);
    assert_non_null(strstr(k.no.text, "no price"));
    /* 5000 - 1200 = 3800 are left: 380 tokens of the dear model */
    assert_false(request(&f, b, "t2", "mine-big", 381, &two, &k));
    assert_int_equal(k.no.kind, MO_BUDGET_MONEY);
    assert_true(request(&f, b, "t2", "mine-big", 380, &two, &k));
    mo_budget_settle(b, &bob, S("mine-big"), &two, NULL); /* was not used */
    settle_all(&f);
    assert_int_equal(sum_of(&f, day, "person:bob\tmoney"), 1200);
    /* a lie uses up the day, and nothing overflows */
    assert_true(request(&f, b, "t2", "mine-x", 10, &one, &k));
    used = (struct mo_usage){.input = UINT64_MAX, .output = UINT64_MAX};
    mo_budget_settle(b, &bob, S("mine-x"), &one, &used);
    settle_all(&f);
    assert_int_equal(sum_of(&f, day, "person:bob\ttokens"), 500 + MO_USAGE_MAX);
    assert_false(request(&f, b, "t2", "mine-x", 1, &one, &k));
    mo_budget_close(b);
    fix_fini(&f);
}

/* A crash leaves the share counted; a cancelled question gives it back. */
static void test_lost(void **state)
{
    uint64_t day = mo_wall_ms() / 86400000;
    struct mo_budget_share s;
    struct mo_budget *b;
    struct asked k;
    struct fix f;

    fix_init(&f, *state);
    b = open_budget(&f);
    assert_true(request(&f, b, "t1", "mine-x", 700, &s, &k));
    mo_budget_close(b); /* as if it had died: nothing is settled */
    fix_close(&f);
    fix_open(&f);
    b = open_budget(&f);
    assert_int_equal(sum_of(&f, day, "person:bob\ttokens"), 700);
    assert_false(request(&f, b, "t1", "mine-x", 700, &s, &k));
    k = (struct asked){.ask = {.done = on_asked}};
    {
        const struct mo_budget_request r = {.who = &bob,
                                            .turn = S("t1"),
                                            .model = S("mine-x"),
                                            .most = {.input = 200}};

        assert_int_equal(mo_budget_request(b, &r, &s, &k.ask, &k.no),
                         MO_BUDGET_LATER);
        mo_budget_cancel(&k.ask);
    }
    settle_all(&f);
    settle_all(&f);
    assert_int_equal(sum_of(&f, day, "person:bob\ttokens"), 700);
    assert_false(k.done);
    mo_budget_close(b);
    fix_fini(&f);
}

static struct {
    char text[4096];
    bool done;
} spent;

static void on_spend(void *ctx, struct mo_span json, const struct mo_err *why)
{
    (void)ctx;
    (void)snprintf(spent.text, sizeof(spent.text), "%.*s",
                   why ? (int)strlen(why->msg) : (int)json.n,
                   why ? why->msg : json.p);
    spent.done = true;
}

static bool is_spent(void *ctx)
{
    (void)ctx;
    return spent.done;
}

static const char *spend_of(struct fix *f, struct mo_budget *b, const char *who)
{
    struct mo_err e;

    spent.done = false;
    assert_int_equal(mo_spend_read(b, who, 0, on_spend, NULL, &e), 0);
    assert_true(mo_loop_until(f->l, is_spent, NULL, LONG));
    return spent.text;
}

static void test_spend(void **state)
{
    const struct mo_budget_who ann = {.person = S("ann"), .token = S("t7")};
    const struct mo_budget_who op = {.person = S("")};
    const struct mo_usage u = {.input = 1000, .output = 10};
    struct mo_budget_share none = {.is_open = false};
    struct mo_budget *b;
    const char *text;
    struct fix f;

    fix_init(&f, *state);
    b = open_budget(&f);
    assert_non_null(strstr(spend_of(&f, b, "bob"), "\"name\":\"bob\","
                                                   "\"tokens\":0,\"money\":"
                                                   "\"0\""));
    mo_budget_settle(b, &ann, S("mine-x"), &none, &u);
    mo_budget_settle(b, &ann, S("what"), &none, &u);
    mo_budget_settle(b, &op, S("what"), &none, &u);
    settle_all(&f);
    text = spend_of(&f, b, NULL);
    assert_non_null(strstr(text, "\"name\":\"ann\",\"tokens\":2020,"
                                 "\"money\":\"0.00204\","
                                 "\"unpricedTokens\":1010"));
    assert_non_null(strstr(text, "\"name\":\"operator\",\"tokens\":1010,"
                                 "\"money\":null"));
    assert_non_null(strstr(text, "\"id\":\"t7\",\"tokens\":2020"));
    text = spend_of(&f, b, "ann");
    assert_non_null(strstr(text, "\"ann\""));
    assert_null(strstr(text, "operator"));
    assert_null(strstr(text, "t7"));
    mo_budget_close(b);
    fix_fini(&f);
}

/* --- without memory ------------------------------------------------------ */

static void suffer(void *ctx)
{
    struct fix *f = ctx;
    struct mo_budget_share s = {.is_open = false};
    const struct mo_usage u = {.input = 1};
    struct mo_budget *b = NULL;
    struct asked k;
    struct mo_err e;

    if (mo_budget_new(f->l, holder.now, NULL, &b, &e) < 0)
        return;
    mo_budget_store(b, f->s);
    (void)call(f, b, "bob", &k);
    if (request(f, b, "t1", "mine-x", 1, &s, &k))
        mo_budget_settle(b, &bob, S("mine-x"), &s, &u);
    mo_budget_release(b, MO_BUDGET_TURNS, &bob, S("t1"));
    if (mo_spend_read(b, "bob", 0, on_spend, NULL, &e) == 0) {
        spent.done = false;
        assert_true(mo_loop_until(f->l, is_spent, NULL, LONG));
    }
    (void)mo_budget_reload(b, holder.now, &e);
    mo_budget_close(b);
}

static void test_torture(void **state)
{
    struct fix f;

    fix_prepare(&f, *state);
    f.o.deadline_ms = 200;
    fix_open(&f);
    read_config(&f);
    torture(suffer, &f);
    mo_config_close(&holder);
    fix_fini(&f);
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
        cmocka_unit_test(test_money),
        cmocka_unit_test(test_price_of),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_window_wait),
        cmocka_unit_test(test_window_names),
        ALL(test_day),
        ALL(test_day_bounds),
        ALL(test_day_kept),
        ALL(test_shared),
        ALL(test_calls),
        ALL(test_request),
        ALL(test_lost),
        ALL(test_spend),
        ON(sqlite, test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
