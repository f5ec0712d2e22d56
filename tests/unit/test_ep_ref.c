/* Names of tasks and waiting calls: every process of the store can read them,
 * nobody else can read or make one, and each is for one person and one use. */
#include "mcp/server/ep_ref.h"
#include "mo_test.h"

#define NAME_MAX_ ((size_t)4096)

static void home_init(struct mo_ep_home *h, const char *secret,
                      const char *instance)
{
    *h = (struct mo_ep_home){.instance = ""};
    (void)snprintf(h->instance, sizeof(h->instance), "%s", instance);
    mo_seal_share(&h->seal, mo_span_cstr(secret), "session id");
}

static struct mo_ep_ref ref(const char *kind, const char *view,
                            const char *caller)
{
    return (struct mo_ep_ref){kind, view, mo_span_cstr(caller)};
}

static int open_as(const struct mo_ep_home *h, struct mo_ep_ref r,
                   struct mo_span text, const char *want)
{
    mo_autobuf struct mo_buf plain = {.max = NAME_MAX_};
    const char *instance = NULL;
    struct mo_span own = {NULL, 0};
    int rc = mo_ep_ref_open(h, &r, text, &plain, &instance, &own);

    if (rc == 0) {
        assert_string_equal(instance, "iAbc-_123");
        assert_true(mo_span_is(own, want));
    }
    return rc;
}

static void test_round_trip(void **state)
{
    static const char *const own[] = {"", "t1",
                                      "0123456789abcdef.a b/\xc3\xbc"};
    const struct mo_ep_ref r = ref("task", "v", "corp:ann");
    struct mo_ep_home a, b;

    (void)state;
    home_init(&a, "a secret of both", "iAbc-_123");
    home_init(&b, "a secret of both", "iOther");
    for (size_t i = 0; i < MO_COUNT(own); i++) {
        mo_autobuf struct mo_buf one = {.max = NAME_MAX_};
        mo_autobuf struct mo_buf two = {.max = NAME_MAX_};
        mo_autobuf struct mo_buf other = {.max = NAME_MAX_};

        assert_int_equal(mo_ep_ref_put(&a, &r, mo_span_cstr(own[i]), &one), 0);
        assert_int_equal(open_as(&b, r, mo_buf_view(&one), own[i]), 0);
        assert_int_equal(mo_ep_ref_put(&a, &r, mo_span_cstr(own[i]), &two), 0);
        assert_true(mo_span_eq(mo_buf_view(&one), mo_buf_view(&two)));
        assert_int_equal(mo_ep_ref_put(&b, &r, mo_span_cstr(own[i]), &other),
                         0);
        assert_false(mo_span_eq(mo_buf_view(&one), mo_buf_view(&other)));
    }
}

static void test_bound(void **state)
{
    static const struct {
        const char *kind, *view, *caller, *secret;
    } rows[] = {
        {"state", "v", "ann", "both"}, {"task", "w", "ann", "both"},
        {"task", NULL, "ann", "both"}, {"task", "v", "bob", "both"},
        {"task", "v", "", "both"},     {"task", "v", "ann", "other"},
        {"task", "", "v", "both"},
    };
    mo_autobuf struct mo_buf text = {.max = NAME_MAX_};
    const struct mo_ep_ref r = ref("task", "v", "ann");
    struct mo_ep_home h;

    (void)state;
    home_init(&h, "both", "iAbc-_123");
    assert_int_equal(mo_ep_ref_put(&h, &r, MO_SPAN("own"), &text), 0);
    assert_int_equal(open_as(&h, r, mo_buf_view(&text), "own"), 0);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_ep_home at;

        home_init(&at, rows[i].secret, "iAbc-_123");
        assert_int_equal(
            open_as(&at, ref(rows[i].kind, rows[i].view, rows[i].caller),
                    mo_buf_view(&text), "own"),
            MO_EPROTO);
    }
    for (size_t i = 0; i < text.len; i++) {
        char was = text.p[i];

        text.p[i] = was == 'A' ? 'B' : 'A';
        assert_int_equal(open_as(&h, r, mo_buf_view(&text), "own"), MO_EPROTO);
        text.p[i] = was;
        assert_int_equal(open_as(&h, r, mo_span(text.p, i), "own"), MO_EPROTO);
    }
}

/* A seal of another form with the same keys, as a later version may make it. */
static void test_form(void **state)
{
    static const struct {
        const char *plain;
        size_t n;
    } rows[] = {{"2\0iAbc-_123\0own", 15}, {"1", 1}, {"1\0iAbc", 6}, {"", 0}};
    const struct mo_ep_ref r = ref("task", NULL, "ann");
    struct mo_ep_home h;

    (void)state;
    home_init(&h, "both", "iAbc-_123");
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf text = {.max = NAME_MAX_};

        assert_int_equal(mo_seal_put_same(&h.seal, mo_span("task\0\0ann", 9),
                                          mo_span(rows[i].plain, rows[i].n),
                                          &text),
                         0);
        assert_int_equal(open_as(&h, r, mo_buf_view(&text), "own"), MO_EPROTO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
