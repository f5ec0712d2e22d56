/* webhook: the message and its signature. */
#include "mo_test.h"

#include "policy/webhook.h"

static void test_sign(void **state)
{
    char mac[MO_WEBHOOK_MAC], other[MO_WEBHOOK_MAC];

    (void)state;
    /* printf 'v1:1763330000:{}' | openssl dgst -sha256 -hmac key */
    mo_webhook_sign(MO_SPAN("key"), 1763330000, MO_SPAN("{}"), mac);
    assert_string_equal(
        mac,
        "v1=b9a3f7407c2cea900f3ec8f8e81c6daf4da2335e2789af6bbf9950e093f1ec6c");
    mo_webhook_sign(MO_SPAN("key"), 1763330001, MO_SPAN("{}"), other);
    assert_string_not_equal(mac, other);
    mo_webhook_sign(MO_SPAN("key"), 176333000, MO_SPAN("0:{}"), other);
    assert_string_not_equal(mac, other);
}

static void body_of(struct mo_buf *b, const struct mo_webhook_event *ev,
                    const char *link, bool with, struct mo_json_doc *doc)
{
    mo_buf_reset(b);
    mo_webhook_body(b, ev, "id-1", link, with);
    assert_int_equal(mo_buf_err(b), 0);
    assert_int_equal(mo_json_parse(mo_buf_view(b), 0, doc, NULL), 0);
}

static void test_body(void **state)
{
    static const struct mo_panel none = {.need = 0};
    static const struct mo_said nobody = {.n = 0};
    struct mo_webhook_event ev = {.kind = "approval.waiting",
                                  .call = "c1",
                                  .server = MO_SPAN("a&b"),
                                  .tool = MO_SPAN("<!channel>\n"),
                                  .args = MO_SPAN("{\"x\":1}"),
                                  .asked_by = "",
                                  .panel = &none,
                                  .said = &nobody,
                                  .by = "",
                                  .who = ""};
    mo_autobuf struct mo_buf b = {.max = 65536}, big = {.max = 65536};
    struct mo_json_doc doc;

    (void)state;
    body_of(&b, &ev, "", false, &doc);
    assert_true(mo_json_str_eq(
        mo_json_get(doc.root, "text"),
        MO_SPAN("a&amp;b/&lt;!channel&gt;  waits for approval, asked by "
                "operator")));
    assert_null(mo_json_get(doc.root, "link").p);
    assert_null(mo_json_get(mo_json_get(doc.root, "call"), "args").p);
    assert_null(mo_json_get(doc.root, "decision").p);
    body_of(&b, &ev, "https://x/approvals?call=c1", true, &doc);
    assert_non_null(strstr(mo_buf_cstr(&b), "\"args\":{\"x\":1}"));
    assert_non_null(strstr(mo_buf_cstr(&b), ": https://x/approvals?call=c1"));
    ev.kind = "approval.decided";
    ev.by = "time";
    body_of(&b, &ev, "https://x", true, &doc);
    assert_true(mo_json_str_eq(
        mo_json_get(doc.root, "text"),
        MO_SPAN("a&amp;b/&lt;!channel&gt;  was rejected by time")));
    assert_null(mo_json_get(mo_json_get(doc.root, "decision"), "who").p);
    (void)mo_buf_putc(&big, '"');
    while (big.len < MO_WEBHOOK_ARGS)
        (void)mo_buf_putc(&big, 'x');
    (void)mo_buf_putc(&big, '"');
    ev.args = mo_buf_view(&big);
    body_of(&b, &ev, "", true, &doc);
    assert_null(mo_json_get(mo_json_get(doc.root, "call"), "args").p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sign),
        cmocka_unit_test(test_body),
    };

    return cmocka_run_group_tests_name("webhook", tests, NULL, NULL);
}
