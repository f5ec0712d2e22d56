/* Personal tokens: the text and the document of one, and the table of all of
 * them over both stores. Two tables on one store are two processes. */
#include "people/grants.h"

#include <stdio.h>

#include "store_kit.h"

#define S(x)   MO_SPAN(x)
#define DAY_MS ((uint64_t)24 * 3600 * 1000)

static void parse(struct mo_json_doc *d, const char *text)
{
    assert_int_equal(mo_json_parse(mo_span_cstr(text), 0, d, NULL), 0);
}

static struct mo_grant sample(const char *owner, char text[MO_GRANT_TEXT + 1])
{
    struct mo_grant g = {.role = MO_ROLE_USER, .nviews = 1};

    (void)snprintf(g.owner, sizeof(g.owner), "%s", owner);
    (void)snprintf(g.name, sizeof(g.name), "laptop");
    (void)snprintf(g.views[0], sizeof(g.views[0]), "docs");
    mo_grant_make(&g, text);
    g.expires = mo_wall_ms() + DAY_MS;
    return g;
}

/* --- one ----------------------------------------------------------------- */

static void test_text(void **state)
{
    char text[MO_GRANT_TEXT + 1], other[MO_GRANT_TEXT + 1];
    struct mo_grant g = sample("alice", text), h = sample("alice", other);

    (void)state;
    assert_int_equal(strlen(text), MO_GRANT_TEXT);
    assert_true(mo_grant_looks_like(mo_span_cstr(text)));
    assert_true(mo_span_is(mo_grant_id_of(mo_span_cstr(text)), g.id));
    assert_true(mo_grant_is(&g, mo_span_cstr(text)));
    assert_false(mo_grant_is(&h, mo_span_cstr(text)));
    assert_string_not_equal(g.id, h.id);
    for (size_t i = 0; i < MO_GRANT_TEXT; i++) { /* each character counts */
        char was = text[i];

        text[i] = was == 'A' ? 'B' : 'A';
        assert_false(mo_grant_is(&g, mo_span_cstr(text)));
        text[i] = was;
    }
    for (size_t n = 0; n < MO_GRANT_TEXT; n++)
        assert_false(mo_grant_looks_like(mo_span(text, n)));
    text[4 + MO_GRANT_ID] = '-';
    assert_false(mo_grant_looks_like(mo_span_cstr(text)));
    text[4 + MO_GRANT_ID] = '_';
    text[10] = ' ';
    assert_false(mo_grant_looks_like(mo_span_cstr(text)));
}

static void test_document(void **state)
{
    char text[MO_GRANT_TEXT + 1];
    struct mo_grant g = sample("corp:al%20ice", text), back;
    mo_autobuf struct mo_buf doc = {.max = 4096};

    (void)state;
    mo_grant_put(&g, &doc);
    assert_null(strstr(mo_buf_cstr(&doc), text + 5 + MO_GRANT_ID));
    assert_int_equal(
        mo_grant_parse(mo_span_cstr(g.id), mo_buf_view(&doc), &back, NULL), 0);
    assert_memory_equal(&g, &back, sizeof(g));
}

static const char *const damaged[] = {
    "",
    "[]",
    "{}",
    /* without an owner it would be the operator's */
    "{\"name\":\"x\",\"role\":\"user\",\"created\":1,\"expires\":2,"
    "\"sha256\":\"HASH\"}",
    "{\"owner\":\"a\",\"name\":\"x\",\"role\":\"user\",\"created\":1,"
    "\"expires\":2,\"sha256\":\"00\"}",
    "{\"owner\":\"a\",\"name\":\"x\",\"role\":\"user\",\"created\":1,"
    "\"expires\":2}",
    "{\"owner\":\"a\",\"name\":\"x\",\"role\":\"user\",\"created\":1,"
    "\"sha256\":\"HASH\"}",
    "{\"owner\":\"a\",\"name\":\"x\",\"role\":1,\"created\":1,\"expires\":2,"
    "\"sha256\":\"HASH\"}",
};

static void test_damaged(void **state)
{
    char id[] = "0123456789abcdefghijkl";
    struct mo_grant g;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(damaged); i++)
        if (mo_grant_parse(mo_span_cstr(id), mo_span_cstr(damaged[i]), &g,
                           NULL) != MO_EPROTO)
            fail_msg("%s was accepted", damaged[i]);
}

static void test_names(void **state)
{
    static const struct {
        const char *json;
        int rc;
    } names[] =
        {
            {"\"laptop\"", 0},          {"\"Bücher ✓\"", 0},
            {"\"\"", MO_EINVAL},        {"\" x\"", MO_EINVAL},
            {"7", MO_EINVAL},           {"\"a\\nb\"", MO_EINVAL},
            {"\"\\u0000\"", MO_EINVAL},
        },
      views[] = {
          {"[]", 0},
          {"[\"docs\",\"a.b-c_d\"]", 0},
          {"\"docs\"", MO_EINVAL},
          {"[\"\"]", MO_EINVAL},
          {"[\"a/b\"]", MO_EINVAL},
          {"[7]", MO_EINVAL},
          {"[1,2,3,4,5,6,7,8,9]", MO_EINVAL},
      };
    struct mo_grant g = {.nviews = 0};
    struct mo_json_doc d;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(names); i++) {
        parse(&d, names[i].json);
        assert_int_equal(mo_grant_set_name(&g, d.root, NULL), names[i].rc);
    }
    for (size_t i = 0; i < MO_COUNT(views); i++) {
        parse(&d, views[i].json);
        assert_int_equal(mo_grant_set_views(&g, d.root, NULL), views[i].rc);
    }
}

/* --- all ----------------------------------------------------------------- */

struct table {
    struct fix *f;
    struct mo_grants *g;
    struct mo_provider_wait wait;
    bool done;
    int code;
    unsigned ended;
    char last[MO_GRANT_ID + 1]; /* that ended */
};

static bool is_done(void *ctx)
{
    return ((struct table *)ctx)->done;
}

static bool has_ended(void *ctx)
{
    return ((struct table *)ctx)->ended > 0;
}

static void on_wait(struct mo_provider_wait *w, const struct mo_err *why)
{
    struct table *t = mo_container_of(w, struct table, wait);

    t->done = true;
    t->code = why ? why->code : 0;
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct table *t = ctx;

    t->done = true;
    t->code = why ? why->code : 0;
}

static void on_ended(void *ctx, const char *id)
{
    struct table *t = ctx;

    t->ended++;
    (void)snprintf(t->last, sizeof(t->last), "%s", id);
}

static int finish(struct table *t, int rc)
{
    if (rc < 0)
        return rc;
    assert_true(mo_loop_until(t->f->l, is_done, t, LONG));
    t->done = false;
    return t->code;
}

static int reread(struct table *t)
{
    t->wait.done = on_wait;
    mo_grants_read(t->g, &t->wait);
    return finish(t, 0);
}

static void table_open(struct table *t, struct fix *f)
{
    const struct mo_grants_opts o = {
        .loop = f->l, .store = f->s, .ended = on_ended, .ctx = t};

    *t = (struct table){.f = f};
    assert_int_equal(mo_grants_open(&o, &t->g, NULL), 0);
    assert_int_equal(reread(t), 0);
}

static int add(struct table *t, const struct mo_grant *g)
{
    return finish(t,
                  mo_grants_add(t->g, g, MO_ROLE_APPROVER, on_done, t, NULL));
}

static int take_back(struct table *t, const char *id)
{
    return finish(t,
                  mo_grants_revoke(t->g, mo_span_cstr(id), on_done, t, NULL));
}

static int check(struct table *t, const char *text)
{
    const struct mo_grant *g = NULL;
    int rc = mo_grants_check(t->g, mo_span_cstr(text), &g, NULL);

    assert_true(rc < 0 || g);
    return rc;
}

static void test_life(void **state)
{
    char text[MO_GRANT_TEXT + 1], wrong[MO_GRANT_TEXT + 1];
    struct mo_grant g = sample("alice", text);
    struct table t;
    struct fix f;

    fix_init(&f, *state);
    table_open(&t, &f);
    assert_int_equal(check(&t, text), MO_EPOLICY);
    assert_int_equal(add(&t, &g), 0);
    assert_int_equal(check(&t, text), 0);
    memcpy(wrong, text, sizeof(wrong));
    wrong[MO_GRANT_TEXT - 1] ^= 1;
    assert_int_equal(check(&t, wrong), MO_EPOLICY);
    assert_int_equal(check(&t, "mop_x"), MO_EPOLICY);
    assert_int_equal(take_back(&t, "no-such-id"), MO_ENOTFOUND);
    assert_int_equal(t.ended, 0);
    assert_int_equal(reread(&t), 0);
    assert_int_equal(check(&t, text), 0);
    /* at once, also while the store works on it */
    assert_int_equal(
        mo_grants_revoke(t.g, mo_span_cstr(g.id), on_done, &t, NULL), 0);
    assert_int_equal(check(&t, text), MO_EPOLICY);
    assert_int_equal(t.ended, 1);
    assert_string_equal(t.last, g.id);
    assert_int_equal(finish(&t, 0), 0);
    assert_int_equal(take_back(&t, g.id), MO_ENOTFOUND);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(reread(&t), 0);
        assert_int_equal(check(&t, text), MO_EPOLICY);
    }
    assert_null(mo_grants_find(t.g, mo_span_cstr(g.id)));
    assert_int_equal(t.ended, 1);
    assert_int_equal(GET(&f, .kind = MO_READ_MARKS, .text = S("grant")), 0);
    assert_int_equal(f.n, 0);
    mo_grants_close(t.g);
    fix_fini(&f);
}

/* Nobody tells that a person's account was closed. */
static void test_not_seen(void **state)
{
    static const struct {
        uint64_t ago;
        enum mo_role role;
    } rows[] = {
        {0, MO_ROLE_APPROVER},
        {MO_GRANTS_SEEN_MS - 60000, MO_ROLE_APPROVER},
        {MO_GRANTS_SEEN_MS + 60000, MO_ROLE_NONE},
    };
    struct fix f;

    fix_init(&f, *state);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        char id[16 + MO_SHA256_HEX] = "grant-owner:", doc[128];
        struct mo_write row = {.kind = MO_WRITE_MARK};
        struct table t;

        (void)snprintf(doc, sizeof(doc),
                       "{\"owner\":\"corp:ann\",\"role\":\"approver\","
                       "\"seen\":%llu}",
                       (unsigned long long)(mo_wall_ms() - rows[i].ago));
        mo_sha256_hex(S("corp:ann"), id + strlen(id));
        row.id = mo_span_cstr(id);
        row.doc = mo_span_cstr(doc);
        assert_int_equal(PUT(&f, "", row), 0);
        table_open(&t, &f);
        assert_int_equal(mo_grants_seen(t.g, "corp:ann"), rows[i].role);
        mo_grants_saw(t.g, "corp:ann", MO_ROLE_USER);
        assert_int_equal(mo_grants_seen(t.g, "corp:ann"), MO_ROLE_USER);
        mo_grants_close(t.g);
    }
    fix_fini(&f);
}

/* A reading that began before a change does not undo it. */
static void test_overlap(void **state)
{
    char text[MO_GRANT_TEXT + 1], text2[MO_GRANT_TEXT + 1];
    struct mo_grant g = sample("alice", text), h = sample("alice", text2);
    struct fix f;
    struct table t, reading = {.f = &f, .wait = {.done = on_wait}};

    fix_init(&f, *state);
    table_open(&t, &f);
    assert_int_equal(add(&t, &g), 0);
    mo_grants_read(t.g, &reading.wait);
    assert_int_equal(take_back(&t, g.id), 0);
    assert_int_equal(add(&t, &h), 0);
    assert_int_equal(finish(&reading, 0), 0);
    assert_int_equal(check(&t, text2), 0);
    assert_int_equal(reread(&t), 0);
    assert_int_equal(check(&t, text), MO_EPOLICY);
    assert_int_equal(check(&t, text2), 0);
    mo_grants_close(t.g);
    fix_fini(&f);
}

static void test_two_processes(void **state)
{
    char text[MO_GRANT_TEXT + 1], late[MO_GRANT_TEXT + 1];
    struct mo_grant g = sample("corp:alice", text), h = sample("bob", late);
    struct table a, b;
    struct fix f;

    fix_init(&f, *state);
    table_open(&a, &f);
    table_open(&b, &f);
    assert_int_equal(add(&a, &g), 0);
    assert_int_equal(check(&b, text), MO_EPOLICY); /* it has read just now */
    assert_int_equal(reread(&b), 0);
    assert_int_equal(check(&b, text), 0);
    assert_int_equal(mo_grants_seen(b.g, "corp:alice"), MO_ROLE_APPROVER);
    assert_int_equal(mo_grants_seen(b.g, "bob"), MO_ROLE_NONE);
    assert_int_equal(take_back(&a, g.id), 0);
    /* b has not heard of it, and writes the last use when it ends */
    assert_int_equal(check(&b, text), 0);
    mo_grants_saw(b.g, "corp:alice", MO_ROLE_VIEWER);
    mo_grants_saw(b.g, "somebody", MO_ROLE_VIEWER);
    mo_grants_close(a.g);
    mo_grants_close(b.g);
    fix_close(&f);
    fix_open(&f);
    table_open(&a, &f);
    table_open(&b, &f);
    assert_int_equal(check(&b, text), MO_EPOLICY);
    assert_int_equal(mo_grants_seen(b.g, "corp:alice"), MO_ROLE_VIEWER);
    assert_int_equal(mo_grants_seen(b.g, "somebody"), MO_ROLE_NONE);
    /* a revocation elsewhere ends what is open here */
    assert_int_equal(add(&a, &h), 0);
    assert_int_equal(reread(&b), 0);
    assert_int_equal(check(&b, late), 0);
    assert_int_equal(take_back(&a, h.id), 0);
    assert_int_equal(reread(&b), 0);
    assert_int_equal(check(&b, late), MO_EPOLICY);
    assert_int_equal(b.ended, 1);
    assert_string_equal(b.last, h.id);
    mo_grants_close(a.g);
    mo_grants_close(b.g);
    fix_fini(&f);
}

static void test_expiry(void **state)
{
    char text[MO_GRANT_TEXT + 1], old[MO_GRANT_TEXT + 1];
    struct mo_grant g = sample("alice", text), h = sample("alice", old);
    struct table t;
    struct fix f;

    fix_init(&f, *state);
    table_open(&t, &f);
    g.expires = mo_wall_ms() + 300;
    h.expires = mo_wall_ms() - MO_GRANTS_KEPT_MS - 1;
    assert_int_equal(add(&t, &g), 0);
    assert_true(mo_loop_until(f.l, has_ended, &t, LONG));
    assert_string_equal(t.last, g.id);
    assert_int_equal(check(&t, text), MO_EPOLICY);
    assert_non_null(mo_grants_find(t.g, mo_span_cstr(g.id))); /* still shown */
    assert_int_equal(add(&t, &h), 0);
    assert_int_equal(check(&t, old), MO_EPOLICY);
    mo_grants_close(t.g);
    fix_fini(&f);
}

static void count_one(void *ctx, const struct mo_grant *one)
{
    *(uint64_t *)ctx += one->used ? 1 : 0;
}

static void test_last_use(void **state)
{
    char text[MO_GRANT_TEXT + 1];
    struct mo_grant g = sample("alice", text);
    uint64_t before, used = 0;
    struct table t;
    struct fix f;

    fix_init(&f, *state);
    table_open(&t, &f);
    assert_int_equal(add(&t, &g), 0);
    mo_grants_each(t.g, count_one, &used);
    assert_int_equal(used, 0);
    assert_int_equal(check(&t, text), 0);
    before = mo_grants_find(t.g, mo_span_cstr(g.id))->used;
    assert_true(before > 0);
    mo_grants_close(t.g);
    fix_close(&f);
    fix_open(&f);
    table_open(&t, &f);
    assert_int_equal(mo_grants_find(t.g, mo_span_cstr(g.id))->used, before);
    mo_grants_close(t.g);
    fix_fini(&f);
}

static void test_limits(void **state)
{
    char text[MO_GRANT_TEXT + 1];
    struct table t;
    struct fix f;

    fix_init(&f, *state);
    table_open(&t, &f);
    for (unsigned i = 0; i < MO_GRANTS_PERSON; i++) {
        struct mo_grant g = sample("alice", text);

        assert_int_equal(add(&t, &g), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct mo_grant g = sample(i ? "bob" : "alice", text);

        assert_int_equal(add(&t, &g), i ? 0 : MO_EBUSY);
    }
    mo_grants_close(t.g);
    fix_fini(&f);
}

/* A damaged row is ignored, the others count. */
static void test_damaged_rows(void **state)
{
    const struct mo_write bad[] = {
        {.kind = MO_WRITE_MARK,
         .id = S("grant:0123456789abcdefghijkl"),
         .doc = S("{\"owner\":\"\"}")},
        {.kind = MO_WRITE_MARK, .id = S("grant:short"), .doc = S("{}")},
        {.kind = MO_WRITE_MARK, .id = S("grant-owner:1"), .doc = S("[]")},
        {.kind = MO_WRITE_MARK, .id = S("grant:x:used"), .doc = S("{}")},
        {.kind = MO_WRITE_MARK, .id = S("granted"), .doc = S("{}")},
    };
    char text[MO_GRANT_TEXT + 1];
    struct mo_grant g = sample("alice", text);
    struct table t;
    struct fix f;

    fix_init(&f, *state);
    assert_int_equal(put(&f, "", 0, bad, MO_COUNT(bad)), 0);
    table_open(&t, &f);
    assert_int_equal(add(&t, &g), 0);
    assert_int_equal(reread(&t), 0);
    assert_int_equal(check(&t, text), 0);
    assert_null(mo_grants_find(t.g, S("0123456789abcdefghijkl")));
    mo_grants_close(t.g);
    fix_fini(&f);
}

/* --- the owner's role now ------------------------------------------------ */

static void test_role_now(void **state)
{
    static const char *users[] = {"corp:*", "lab:bob"},
                      *approvers[] = {"corp/leads"},
                      *ops[] = {"corp:al ice", "alice"};
    struct mo_config_provider providers[] = {{.name = "corp"}, {.name = "lab"}};
    struct mo_config c = {
        .people = {.providers = {.v = providers, .n = 2},
                   .roles = {.user = {.v = users, .n = 2},
                             .approver = {.v = approvers, .n = 1},
                             .op = {.v = ops, .n = 2}}}};
    static const struct {
        const char *person;
        enum mo_role seen, now;
    } rows[] = {
        {"corp:al%20ice", MO_ROLE_OPERATOR, MO_ROLE_OPERATOR},
        {"corp:al%20ice", MO_ROLE_USER, MO_ROLE_USER},
        {"corp:bob", MO_ROLE_OPERATOR, MO_ROLE_APPROVER}, /* not named now */
        {"corp:bob", MO_ROLE_APPROVER, MO_ROLE_APPROVER}, /* by a group */
        {"corp:bob", MO_ROLE_VIEWER, MO_ROLE_VIEWER},
        {"lab:bob", MO_ROLE_APPROVER, MO_ROLE_USER},
        {"lab:eve", MO_ROLE_OPERATOR, MO_ROLE_NONE},
        {"gone:alice", MO_ROLE_OPERATOR, MO_ROLE_NONE},
        {"corp:bob", MO_ROLE_NONE, MO_ROLE_NONE},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (mo_person_role_now(&c, rows[i].person, rows[i].seen) != rows[i].now)
            fail_msg("row %zu: %s", i, rows[i].person);
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
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_role_now),
        ALL(test_life),
        ALL(test_not_seen),
        ALL(test_overlap),
        ALL(test_two_processes),
        ALL(test_expiry),
        ALL(test_last_use),
        ALL(test_limits),
        ALL(test_damaged_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
