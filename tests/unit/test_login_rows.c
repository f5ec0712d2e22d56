/* Logins in the store: what another process finds, what an ended one leaves,
 * and what somebody without the key can do; and a sign-out while others wait
 * for the store. */
#include "people/login_rows.h"

#include <stdio.h>

#include "people/login.h"
#include "people/people.h"
#include "secrets/key.h"
#include "store_kit.h"

#define KEY_ONE MO_SECRET_KEY_ENV "=" ONES ONES ONES ONES
#define KEY_TWO MO_SECRET_KEY_ENV "=" TWOS TWOS TWOS TWOS
#define ONES    "1111111111111111"
#define TWOS    "2222222222222222"

struct table {
    struct fix *f;
    struct mo_login_rows *r;
    struct mo_config config;
    char key[128];
    char *environ[2];
    /* the last answer */
    bool done, is_there;
    unsigned changed;
    int code;
    char name[64], refresh[64], digest[MO_SHA256_HEX + 1];
    uint64_t ends;
};

static void table_open(struct table *t, struct fix *f, const char *key)
{
    struct mo_err e = {0};

    *t = (struct table){.f = f};
    (void)snprintf(t->key, sizeof(t->key), "%s", key);
    t->environ[0] = t->key;
    t->config = (struct mo_config){.environ = t->environ};
    t->config.store.dir = f->dir;
    if (mo_login_rows_open(f->l, f->s, &t->config, &t->r, &e) < 0)
        fail_msg("%s", e.msg);
}

static bool is_done(void *ctx)
{
    return ((struct table *)ctx)->done;
}

static void wait_for(struct table *t)
{
    assert_true(mo_loop_until(t->f->l, is_done, t, LONG));
}

static void on_put(void *ctx, const char *digest, const struct mo_err *why)
{
    struct table *t = ctx;

    t->done = true;
    t->code = why ? why->code : 0;
    (void)snprintf(t->digest, sizeof(t->digest), "%s", digest);
}

static void on_got(void *ctx, const char *digest,
                   const struct mo_login_row *row, const struct mo_err *why)
{
    struct table *t = ctx;

    on_put(ctx, digest, why);
    t->is_there = row != NULL;
    if (!row)
        return;
    (void)snprintf(t->name, sizeof(t->name), "%s", row->name);
    (void)snprintf(t->refresh, sizeof(t->refresh), "%s",
                   row->refresh ? row->refresh : "-");
    t->ends = row->ends_s;
    assert_string_equal(row->host, "localhost:1");
    assert_string_equal(row->provider, "corp");
    assert_string_equal(row->subject, "sub \"1\"");
    assert_string_equal(row->claims, "{\"a\":[1]}");
}

static void digest_of(unsigned n, char out[MO_SHA256_HEX + 1])
{
    char text[32];

    (void)snprintf(text, sizeof(text), "mol_%u", n);
    mo_sha256_hex(mo_span_cstr(text), out);
}

static void put_login(struct table *t, unsigned n, const char *name,
                      const char *refresh, uint64_t began)
{
    char digest[MO_SHA256_HEX + 1];
    const struct mo_login_row row = {
        .name = name,
        .host = "localhost:1",
        .provider = "corp",
        .subject = "sub \"1\"",
        .claims = "{\"a\":[1]}",
        .refresh = refresh,
        .began_s = began,
        .ends_s = began + 60 + n,
    };

    digest_of(n, digest);
    t->done = false;
    assert_int_equal(mo_login_rows_put(t->r, digest, &row, on_put, t, NULL), 0);
    wait_for(t);
    assert_int_equal(t->code, 0);
    assert_string_equal(t->digest, digest);
}

static bool is_there(struct table *t, unsigned n)
{
    char digest[MO_SHA256_HEX + 1];

    digest_of(n, digest);
    t->done = false;
    assert_int_equal(mo_login_rows_get(t->r, digest, on_got, t, NULL), 0);
    wait_for(t);
    assert_int_equal(t->code, 0);
    return t->is_there;
}

static void end_login(struct table *t, unsigned n, const char *name)
{
    char digest[MO_SHA256_HEX + 1];

    digest_of(n, digest);
    mo_login_rows_end(t->r, digest, name);
}

static void on_changed(void *ctx)
{
    struct table *t = ctx;

    t->changed++;
}

static bool has_changed(void *ctx)
{
    struct table *t = ctx;

    mo_login_rows_look(t->r, on_changed, t);
    return t->changed > 0;
}

static uint64_t now_s(void)
{
    return mo_wall_ms() / 1000;
}

/* --- tests --------------------------------------------------------------- */

static void test_two_processes(void **state)
{
    struct table a, b;
    struct fix f;

    fix_init(&f, *state);
    table_open(&a, &f, KEY_ONE);
    table_open(&b, &f, KEY_ONE);
    assert_false(is_there(&b, 1));
    put_login(&a, 1, "corp:ann", "r1", now_s());
    assert_true(is_there(&b, 1));
    assert_string_equal(b.name, "corp:ann");
    assert_string_equal(b.refresh, "r1");
    put_login(&b, 1, "corp:ann", NULL, now_s());
    assert_true(is_there(&a, 1));
    assert_string_equal(a.refresh, "-");
    assert_false(is_there(&a, 2));
    mo_login_rows_close(a.r);
    mo_login_rows_close(b.r);
    fix_fini(&f);
}

/* A renewal that is under way elsewhere does not bring an ended login back. */
static void test_end(void **state)
{
    struct table a, b;
    struct fix f;

    fix_init(&f, *state);
    table_open(&a, &f, KEY_ONE);
    table_open(&b, &f, KEY_ONE);
    for (unsigned i = 1; i <= 4; i++)
        put_login(&a, i, i == 4 ? "corp:bob" : "corp:ann", "r", now_s());
    assert_true(mo_loop_until(f.l, has_changed, &b, LONG)); /* the first time */
    b.changed = 0; /* a look that is under way may find what follows */
    end_login(&a, 1, "corp:ann");
    while (is_there(&a, 1)) /* a read may overtake a write */
        continue;
    put_login(&b, 1, "corp:ann", "r2", now_s());
    assert_false(is_there(&a, 1));
    assert_false(is_there(&b, 1));
    assert_true(mo_loop_until(f.l, has_changed, &b, LONG));
    mo_login_rows_end_person(a.r, "corp:ann");
    while (is_there(&b, 2) || is_there(&b, 3))
        continue;
    assert_true(is_there(&b, 4));
    mo_login_rows_close(a.r);
    mo_login_rows_close(b.r);
    fix_fini(&f);
}

/* Nor can a row be read with another key, or under another login's id. */
static void test_sealed(void **state)
{
    char one[MO_SHA256_HEX + 1], id[MO_STORE_ID_MAX + 1];
    struct table a, b;
    struct mo_write row = {.kind = MO_WRITE_MARK};
    struct fix f;

    fix_init(&f, *state);
    table_open(&a, &f, KEY_ONE);
    table_open(&b, &f, KEY_TWO);
    put_login(&a, 1, "corp:ann", "refresh-token", now_s());
    assert_false(is_there(&b, 1));
    assert_true(is_there(&a, 1));
    digest_of(1, one);
    (void)snprintf(id, sizeof(id), "login:%s", one);
    assert_int_equal(GET(&f, .kind = MO_READ_MARK, .id = mo_span_cstr(id)), 0);
    assert_int_equal(f.n, 1);
    assert_true(mo_span_search(f.rows[0].doc, MO_SPAN("refresh-token")) < 0);
    assert_true(mo_span_search(f.rows[0].doc, MO_SPAN("corp:ann")) < 0);
    digest_of(2, one);
    (void)snprintf(id, sizeof(id), "login:%s", one);
    row.id = mo_span_cstr(id);
    row.doc = f.rows[0].doc;
    assert_int_equal(PUT(&f, "", row), 0);
    assert_false(is_there(&a, 2));
    row.doc = MO_SPAN("{\"seal\":\"AAAA\"}");
    assert_int_equal(PUT(&f, "", row), 0);
    assert_false(is_there(&a, 2));
    row.doc = MO_SPAN("[]");
    assert_int_equal(PUT(&f, "", row), 0);
    assert_false(is_there(&a, 2));
    mo_login_rows_close(a.r);
    mo_login_rows_close(b.r);
    fix_fini(&f);
}

static bool is_swept(void *ctx)
{
    struct table *t = ctx;

    return !is_there(t, 1);
}

static void test_sweep(void **state)
{
    struct table a, b;
    struct fix f;

    fix_init(&f, *state);
    table_open(&a, &f, KEY_ONE);
    put_login(&a, 1, "corp:ann", "r", now_s() - MO_LOGIN_S - 1);
    put_login(&a, 2, "corp:ann", "r", now_s());
    end_login(&a, 3, "corp:ann");
    mo_login_rows_close(a.r);
    table_open(&b, &f, KEY_ONE); /* a sweep begins */
    assert_true(mo_loop_until(f.l, is_swept, &b, LONG));
    assert_true(is_there(&b, 2));
    do /* a read may overtake a write */
        assert_int_equal(
            GET(&f, .kind = MO_READ_MARKS, .text = MO_SPAN("login-of:")), 0);
    while (f.n != 1);
    do
        assert_int_equal(
            GET(&f, .kind = MO_READ_MARK, .id = MO_SPAN("logins-ended")), 0);
    while (f.n != 1);
    mo_login_rows_close(b.r);
    fix_fini(&f);
}

struct waiter { /* for the store; signs another login out when it is told */
    struct mo_provider_wait wait;
    struct mo_logins *logins;
    char other[MO_LOGIN_SECRET + 1];
    bool told;
};

static void on_saved(struct mo_provider_wait *w, const struct mo_err *why)
{
    struct waiter *x = mo_container_of(w, struct waiter, wait);
    char who[MO_PERSON_MAX];

    assert_null(why);
    x->told = true;
    mo_login_end(x->logins, mo_span_cstr(x->other), false, who);
}

static bool is_told(void *ctx)
{
    return ((struct waiter *)ctx)->told;
}

static void begin_login(struct mo_logins *l, const char *name,
                        char secret[MO_LOGIN_SECRET + 1])
{
    struct mo_exchanged got = {.subject = "s"};
    const struct mo_login_new n = {&got, "corp", MO_SPAN("localhost:1")};
    struct mo_json_doc doc;

    assert_int_equal(mo_json_parse(MO_SPAN("{}"), 0, &doc, NULL), 0);
    got.claims = doc.root;
    got.who.ends_s = now_s() + 3600;
    (void)snprintf(got.who.name, sizeof(got.who.name), "%s", name);
    assert_int_equal(mo_login_begin(l, &n, secret, NULL), 0);
}

/* A waiter that hears of the end of a login may end the next one of the list.
 */
static void test_sign_out_while_saving(void **state)
{
    char one[MO_LOGIN_SECRET + 1], last[MO_LOGIN_SECRET + 1];
    struct waiter x = {.wait = {.done = on_saved}};
    char who[MO_PERSON_MAX], key[] = KEY_ONE;
    char *environ_of[] = {key, NULL};
    struct mo_config_input in = {.no_files = true, .environ = environ_of};
    struct mo_config_report rep;
    struct mo_config_holder h;
    struct mo_people *people = NULL;
    struct mo_person person;
    struct fix f;

    fix_init(&f, *state);
    in.state_dir = f.dir;
    assert_int_equal(mo_config_open(&h, &in, &rep, NULL), 0);
    assert_int_equal(mo_people_new(f.l, h.now, &people, NULL), 0);
    x.logins = mo_people_logins(people);
    assert_int_equal(mo_logins_use(x.logins, f.s, NULL), 0);
    begin_login(x.logins, "corp:ann", one);
    assert_true(mo_login_wait_saved(x.logins, &x.wait));
    begin_login(x.logins, "corp:ann", x.other);
    begin_login(x.logins, "corp:ann", last);
    mo_login_end(x.logins, mo_span_cstr(last), true, who);
    assert_string_equal(who, "corp:ann");
    assert_true(mo_loop_until(f.l, is_told, &x, LONG));
    assert_int_equal(mo_login_check(x.logins, mo_span_cstr(x.other),
                                    MO_SPAN("localhost:1"), &person),
                     MO_EUNAVAIL); /* the store is asked */
    mo_people_close(people, NULL, NULL);
    mo_config_close(&h);
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
        ALL(test_two_processes),
        ALL(test_end),
        ALL(test_sealed),
        ALL(test_sweep),
        ALL(test_sign_out_while_saving),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
