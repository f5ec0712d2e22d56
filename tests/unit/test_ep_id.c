/* Session ids: what comes back is what went in, and nobody else can make one.
 */
#include "mcp/server/ep_id.h"
#include "mo_test.h"

#define CAPS   "{\"elicitation\":{},\"roots\":{\"listChanged\":true}}"
#define CLIENT "{\"name\":\"n\",\"version\":\"1\"}"

static void home_init(struct mo_ep_home *h, const char *secret)
{
    *h = (struct mo_ep_home){.instance = "iAbc-_123"};
    mo_seal_share(&h->seal, mo_span_cstr(secret), "session id");
}

static void put(const struct mo_ep_home *h, const struct mo_ep_id *id,
                struct mo_buf *text)
{
    mo_buf_init(text, MO_EP_ID_MAX);
    assert_int_equal(mo_ep_id_put(h, id, text), 0);
    assert_true(mo_ep_id_is(mo_buf_view(text)));
}

static struct mo_ep_id typical(void)
{
    return (struct mo_ep_id){.view = "v",
                             .caller = "corp:ann",
                             .version = MO_MCP_2025_11_25,
                             .began = 1794886328959,
                             .caps = MO_SPAN(CAPS),
                             .client = MO_SPAN(CLIENT)};
}

static void test_round_trip(void **state)
{
    struct mo_ep_id id = typical(), got;
    struct mo_buf text, plain = {.max = MO_EP_ID_MAX};
    struct mo_ep_home a, b;

    (void)state;
    home_init(&a, "a secret of both");
    home_init(&b, "a secret of both");
    put(&a, &id, &text);
    assert_int_equal(mo_ep_id_open(&b, mo_buf_view(&text), &plain, &got), 0);
    assert_string_equal(got.instance, "iAbc-_123");
    assert_string_equal(got.view, "v");
    assert_string_equal(got.caller, "corp:ann");
    assert_int_equal(got.version, MO_MCP_2025_11_25);
    assert_true(got.began == id.began && got.whole);
    assert_true(mo_span_is(got.caps, CAPS));
    assert_true(mo_span_is(got.client, CLIENT));
    mo_buf_fini(&text);
    mo_buf_fini(&plain);
}

/* A client with icons keeps its name; one with too many capabilities cannot be
 * begun again, but is found. */
static void test_long(void **state)
{
    static char icons[3000], caps[3000];
    struct mo_ep_id id = typical(), got;
    struct mo_buf text, plain = {.max = MO_EP_ID_MAX};
    struct mo_ep_home h;

    (void)state;
    home_init(&h, "secret");
    (void)snprintf(icons, sizeof(icons),
                   "{\"name\":\"n\",\"version\":\"1\",\"icons\":[\"%02000d\"]}",
                   1);
    id.client = mo_span_cstr(icons);
    put(&h, &id, &text);
    assert_int_equal(mo_ep_id_open(&h, mo_buf_view(&text), &plain, &got), 0);
    assert_true(got.whole && mo_span_is(got.caps, CAPS));
    assert_true(mo_span_is(got.client, CLIENT));
    mo_buf_fini(&text);
    mo_buf_fini(&plain);
    (void)snprintf(caps, sizeof(caps), "{\"x\":\"%02000d\"}", 1);
    id.caps = mo_span_cstr(caps);
    put(&h, &id, &text);
    assert_int_equal(mo_ep_id_open(&h, mo_buf_view(&text), &plain, &got), 0);
    assert_true(!got.whole && got.caps.n == 0);
    assert_string_equal(got.caller, "corp:ann");
    mo_buf_fini(&text);
    mo_buf_fini(&plain);
}

static bool opens(const struct mo_ep_home *h, struct mo_span text)
{
    mo_autobuf struct mo_buf plain = {.max = MO_EP_ID_MAX};
    struct mo_ep_id got;

    return mo_ep_id_open(h, text, &plain, &got) == 0;
}

/* Another key, each character changed in turn, every prefix. */
static void test_forged(void **state)
{
    struct mo_ep_id id = typical();
    struct mo_ep_home h, other, none = {.instance = ""};
    struct mo_buf text;

    (void)state;
    home_init(&h, "secret");
    home_init(&other, "Secret");
    put(&h, &id, &text);
    assert_true(opens(&h, mo_buf_view(&text)));
    assert_false(opens(&other, mo_buf_view(&text)));
    assert_false(opens(&none, mo_buf_view(&text)));
    for (size_t i = 0; i < text.len; i++) {
        char was = text.p[i];

        text.p[i] = was == 'A' ? 'B' : 'A';
        assert_false(opens(&h, mo_buf_view(&text)));
        text.p[i] = was;
        assert_false(opens(&h, mo_span(text.p, i)));
    }
    mo_buf_fini(&text);
}

/* The first characters tell two ids apart (ep_sess.h). */
static void test_unique(void **state)
{
    struct mo_ep_id id = typical();
    struct mo_buf a, b;
    struct mo_ep_home h;

    (void)state;
    home_init(&h, "secret");
    put(&h, &id, &a);
    put(&h, &id, &b);
    assert_true(memcmp(a.p, b.p, 20) != 0);
    mo_buf_fini(&a);
    mo_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_unique),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
