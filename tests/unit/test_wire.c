/* Joins, commands and answers as frames: read as they were written, and refused
 * when a byte is missing or added. */
#include "peer/wire.h"

#include <stdio.h>

#include "base/mem.h"
#include "mo_test.h"

#define MAX ((size_t)64 * 1024)

static struct mo_span data_of(const struct mo_buf *b)
{
    assert_int_equal(mo_buf_err(b), 0);
    return mo_span_skip(mo_buf_view(b), MO_PEER_HEAD);
}

static void test_join(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    struct mo_join j = {.session = MO_SPAN("s1"),
                        .model = MO_SPAN("m"),
                        .key = MO_SPAN("k"),
                        .who = MO_SPAN("w"),
                        .owner = MO_SPAN("alice"),
                        .person = {.name = "corp:alice",
                                   .role = MO_ROLE_USER,
                                   .groups = "staff\nleads\n"},
                        .grant = MO_SPAN("g1"),
                        .reads = true,
                        .door = "page"};
    struct mo_join got;
    struct mo_span data;
    struct mo_err e;

    (void)state;
    mo_wire_put_join(&b, &j, MO_WIRE_MAX);
    data = data_of(&b);
    assert_int_equal(mo_wire_join(data, &got, &e), 0);
    assert_true(mo_span_is(got.session, "s1") && mo_span_is(got.model, "m"));
    assert_true(mo_span_is(got.key, "k") && mo_span_is(got.who, "w"));
    assert_true(mo_span_is(got.owner, "alice"));
    assert_string_equal(got.person.name, "corp:alice");
    assert_int_equal(got.person.role, MO_ROLE_USER);
    assert_string_equal(got.person.groups, "staff\nleads\n");
    assert_null(got.person.people);
    assert_true(mo_span_is(got.grant, "g1") && got.reads);
    assert_string_equal(got.door, "page");
    assert_false(got.may_move); /* the reader says so */
    for (size_t n = 0; n < data.n; n++)
        assert_int_equal(mo_wire_join(mo_span_head(data, n), &got, &e),
                         MO_EPROTO);
    mo_buf_putc(&b, 0);
    assert_int_equal(mo_wire_join(data_of(&b), &got, &e), MO_EPROTO);
    mo_buf_reset(&b);
    j.door = NULL;
    mo_wire_put_join(&b, &j, MO_WIRE_MAX);
    assert_int_equal(mo_wire_join(data_of(&b), &got, &e), 0);
    assert_null(got.door);
    mo_buf_reset(&b);
    j.door = "a door that is not known";
    mo_wire_put_join(&b, &j, MO_WIRE_MAX);
    assert_int_equal(mo_wire_join(data_of(&b), &got, &e), 0);
    assert_null(got.door);
    b.p[MO_PEER_HEAD + 4] = '0' + MO_WIRE_MAX + 1;
    assert_int_equal(mo_wire_join(data_of(&b), &got, &e), MO_EPOLICY);
}

static void test_versions(void **state)
{
    static const struct {
        uint64_t min, max;
        unsigned common;
    } rows[] = {
        {1, 1, 1}, {1, 9, 2}, {0, 1, 1}, {2, 3, 2},
        {3, 4, 0}, {0, 0, 0}, {3, 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        assert_int_equal(mo_wire_common(rows[i].min, rows[i].max),
                         rows[i].common);
}

/* What the chat would cut, or could not tell apart, is refused. */
static void test_person(void **state)
{
    char name[MO_PERSON_MAX + 2], grant[MO_CHAT_GRANT_MAX + 1];
    char groups[MO_WIRE_GROUPS_MAX + 1];
    const struct {
        const char *what;
        struct mo_join j;
        int rc;
    } rows[] = {
        {"nobody", {.reads = false}, 0},
        {"longest name", {.person = {.name = name + 2}}, 0},
        {"long name", {.person = {.name = name + 1}}, MO_EPROTO},
        {"highest role", {.person = {.role = MO_ROLE_OPERATOR}}, 0},
        {"unknown role", {.person = {.role = MO_ROLES}}, MO_EPROTO},
        {"most groups", {.person = {.groups = groups + 1}}, 0},
        {"too many groups", {.person = {.groups = groups}}, MO_EPROTO},
        {"longest grant", {.grant = {grant, MO_CHAT_GRANT_MAX - 1}}, 0},
        {"long grant", {.grant = {grant, MO_CHAT_GRANT_MAX}}, MO_EPROTO},
    };

    (void)state;
    memset(name, 'n', sizeof(name));
    memset(grant, 'g', sizeof(grant));
    memset(groups, 'x', sizeof(groups));
    name[sizeof(name) - 1] = groups[sizeof(groups) - 1] = '\0';
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = MAX};
        struct mo_join got;

        mo_wire_put_join(&b, &rows[i].j, MO_WIRE_MAX);
        check_row(rows[i].what,
                  mo_wire_join(data_of(&b), &got, NULL) == rows[i].rc);
    }
}

static void test_ping(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    const char *groups = NULL;
    struct mo_span data;

    (void)state;
    mo_wire_put_ping(&b, "staff\n");
    data = data_of(&b);
    assert_true(mo_wire_ping(data, &groups));
    assert_string_equal(groups, "staff\n");
    for (size_t n = 0; n < data.n; n++)
        assert_false(mo_wire_ping(mo_span_head(data, n), &groups));
    mo_buf_putc(&b, 0);
    assert_false(mo_wire_ping(data_of(&b), &groups));
}

static void test_ack(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    const struct mo_ack no = {.code = "busy",
                              .message = MO_SPAN("wait"),
                              .extra = MO_SPAN("\"a\":1")};
    char code[MO_WIRE_CODE_MAX], name[MO_WIRE_CODE_MAX + 1];
    struct mo_ack got, with = {.code = name};
    struct mo_span data;
    uint32_t number = 0;

    (void)state;
    mo_wire_put_ack(&b, 7, &no);
    data = data_of(&b);
    assert_true(mo_wire_ack(data, &number, &got, code));
    assert_int_equal(number, 7);
    assert_false(got.ok);
    assert_string_equal(got.code, "busy");
    assert_true(mo_span_is(got.message, "wait"));
    assert_true(mo_span_is(got.extra, "\"a\":1"));
    for (size_t n = 0; n < data.n; n++)
        assert_false(mo_wire_ack(mo_span_head(data, n), &number, &got, code));
    mo_buf_reset(&b);
    mo_wire_put_ack(&b, 8, &(struct mo_ack){.ok = true});
    assert_true(mo_wire_ack(data_of(&b), &number, &got, code));
    assert_true(got.ok);
    mo_buf_reset(&b);
    memset(name, 'x', sizeof(name));
    name[MO_WIRE_CODE_MAX] = '\0';
    mo_wire_put_ack(&b, 9, &with); /* a code that is too long */
    assert_false(mo_wire_ack(data_of(&b), &number, &got, code));
}

static void test_closed(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    const char *reason = NULL;
    struct mo_err why, e;
    struct mo_span data;

    (void)state;
    mo_fail(&e, MO_ENOTFOUND, "there is no such session");
    mo_wire_put_closed(&b, "failed", &e);
    data = data_of(&b);
    assert_true(mo_wire_closed(data, &reason, &why));
    assert_string_equal(reason, "failed");
    assert_int_equal(why.code, MO_ENOTFOUND);
    assert_string_equal(why.msg, "there is no such session");
    for (size_t n = 0; n < data.n; n++)
        assert_false(mo_wire_closed(mo_span_head(data, n), &reason, &why));
    mo_buf_reset(&b);
    mo_wire_put_closed(&b, "killed", NULL);
    assert_true(mo_wire_closed(data_of(&b), &reason, &why));
    assert_string_equal(reason, "killed");
    assert_int_equal(why.code, 0);
    mo_buf_reset(&b);
    mo_wire_put_closed(&b, "a reason of a later version", NULL);
    assert_true(mo_wire_closed(data_of(&b), &reason, &why));
    assert_string_equal(reason, "failed");
}

/* A command that is not whole never reaches the chat: there is none here. */
static void test_commands(void **state)
{
    const struct mo_span digest = MO_SPAN("d");
    const struct mo_decision d = {.call = MO_SPAN("c"),
                                  .approved = true,
                                  .digest = &digest,
                                  .remember = MO_REMEMBER_SESSION};
    const struct mo_answer a = {.request = MO_SPAN("r"),
                                .action = MO_ANSWER_DECLINE};
    const struct mo_wish wish = {
        .kind = MO_WISH_EDIT, .seq = 7, .text = MO_SPAN("m")};
    struct mo_buf b[MO_WIRE_KINDS];

    (void)state;
    for (uint32_t i = 0; i < MO_WIRE_KINDS; i++)
        mo_buf_init(&b[i], MAX);
    mo_wire_put_say(&b[0], 1, MO_SPAN("id"), MO_SPAN("text"));
    mo_wire_put_decide(&b[1], 2, &d);
    mo_wire_put_answer(&b[2], 3, &a);
    mo_wire_put_accept(&b[3], 4, MO_SPAN("t"), MO_SPAN("d"));
    mo_wire_put_plain(&b[4], 5, MO_WIRE_CANCEL);
    mo_wire_put_plain(&b[5], 6, MO_WIRE_RESET);
    mo_wire_put_plain(&b[6], 7, MO_WIRE_END);
    mo_wire_put_wish(&b[7], 8, &wish);
    for (uint32_t i = 0; i < MO_WIRE_KINDS; i++) {
        struct mo_span data = data_of(&b[i]);
        uint32_t no = 0;

        assert_true(mo_wire_number(data, &no));
        assert_int_equal(no, i + 1);
        for (size_t n = 0; n < data.n; n++)
            assert_int_equal(
                mo_wire_run(NULL, mo_span_head(data, n), NULL, NULL),
                MO_EPROTO);
        mo_buf_putc(&b[i], 0); /* one byte more */
        assert_int_equal(mo_wire_run(NULL, data_of(&b[i]), NULL, NULL),
                         MO_EPROTO);
        mo_buf_fini(&b[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join),     cmocka_unit_test(test_versions),
        cmocka_unit_test(test_person),   cmocka_unit_test(test_ping),
        cmocka_unit_test(test_ack),      cmocka_unit_test(test_closed),
        cmocka_unit_test(test_commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
