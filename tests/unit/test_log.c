/* The log: one line whatever a peer sends, and no secret in it. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/log.h"
#include "mo_test.h"

/* A log that writes into a pipe, and the pipe's read end. */
struct rig {
    struct mo_log log;
    int rd, wr;
    char line[8 * MO_LOG_LINE_MAX];
    bool done; /* for a thread that logs */
};

static void rig_open(struct rig *r, bool json)
{
    int p[2];

    assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    r->rd = p[0];
    r->wr = p[1];
    mo_log_init(&r->log, r->wr);
    assert_true(r->log.json); /* a pipe is not a terminal */
    r->log.json = json;
}

static void rig_close(struct rig *r)
{
    mo_log_fini(&r->log);
    mo_close_fd(&r->rd);
    mo_close_fd(&r->wr);
}

/* Everything written since the last call, "" for nothing. */
static const char *said(struct rig *r)
{
    ssize_t n = read(r->rd, r->line, sizeof(r->line) - 1);

    r->line[n > 0 ? n : 0] = '\0';
    return r->line;
}

/* The text after the head of a JSON line, checked to be one line. */
static const char *said_msg(struct rig *r)
{
    const char *line = said(r);
    const char *msg = strstr(line, "\"msg\":\"");
    size_t n = strlen(line);

    assert_non_null(msg);
    assert_true(n <= MO_LOG_LINE_MAX);
    assert_string_equal(line + n - 3, "\"}\n");
    assert_ptr_equal(strchr(line, '\n'), line + n - 1);
    return msg + 7;
}

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static void json_lines_name_everything(void **s)
{
    struct mo_err e = {MO_EIO, 2, "open x: No such file"};
    struct rig r;

    (void)s;
    rig_open(&r, true);
    mo_log(&r.log, MO_WARN, "httpd", "port %d", 3000);
    assert_true(starts(said(&r), "{\"ts\":\"2"));
    assert_non_null(strstr(r.line, "Z\",\"level\":\"warn\",\"room\":\"httpd\","
                                   "\"msg\":\"port 3000\"}\n"));
    mo_log_err(&r.log, MO_ERROR, "app", &e, "start");
    assert_non_null(
        strstr(said(&r), "\"level\":\"error\",\"room\":\"app\",\"code\":\"io\","
                         "\"errno\":2,\"msg\":\"start: open x: No such file\""
                         "}\n"));
    rig_close(&r);
}

static void human_lines_are_short(void **s)
{
    struct rig r;

    (void)s;
    rig_open(&r, false);
    mo_log(&r.log, MO_INFO, "app", "hello \"you\"");
    assert_string_equal(said(&r) + 8, " info  app      hello \"you\"\n");
    r.log.colour = true;
    mo_log(&r.log, MO_ERROR, "app", "x");
    assert_true(starts(said(&r), "\x1b[31m"));
    assert_non_null(strstr(r.line, " x\x1b[0m\n"));
    rig_close(&r);
}

static void levels_decide(void **s)
{
    static const struct {
        const char *spec;
        int rc;
        const char *on; /* which of e w i d pass, for room httpd then app */
    } rows[] = {
        {"info", 0, "ewi.ewi."},
        {"error", 0, "e...e..."},
        {"debug", 0, "ewidewid"},
        {"warn,httpd=debug", 0, "ewidew.."},
        {"httpd=debug , app=error", 0, "ewide..."},
        {"httpd=debug,httpd=error", 0, "e...ewi."},
        {"", MO_EINVAL, "ewi.ewi."},
        {"loud", MO_EINVAL, "ewi.ewi."},
        {"error,", MO_EINVAL, "ewi.ewi."},
        {"error,=info", MO_EINVAL, "ewi.ewi."},
        {"error,httpd=", MO_EINVAL, "ewi.ewi."},
        {"error,a_room_name_too_long=info", MO_EINVAL, "ewi.ewi."},
    };
    struct mo_err e;

    (void)s;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_log l;
        char got[9] = "";

        mo_log_init(&l, -1);
        check_row(rows[i].spec, mo_log_levels(&l, mo_span_cstr(rows[i].spec),
                                              &e) == rows[i].rc);
        for (int k = 0; k < 8; k++)
            got[k] =
                mo_log_on(&l, (enum mo_level)(k % 4), k < 4 ? "httpd" : "app")
                    ? "ewid"[k % 4]
                    : '.';
        check_row(rows[i].spec, strcmp(got, rows[i].on) == 0);
        mo_log_fini(&l);
    }
    assert_false(mo_log_on(NULL, MO_ERROR, "app"));
    mo_log(NULL, MO_ERROR, "app", "nobody hears");
}

static void too_many_rooms_are_refused(void **s)
{
    struct mo_buf b;
    struct mo_log l;
    struct mo_err e;

    (void)s;
    mo_log_init(&l, -1);
    mo_buf_init(&b, 1000);
    for (int i = 0; i < MO_LOG_ROOMS_MAX; i++)
        mo_buf_printf(&b, "r%d=warn,", i);
    mo_buf_puts(&b, "debug");
    assert_int_equal(mo_log_levels(&l, mo_buf_view(&b), &e), 0);
    assert_int_equal(l.nrooms, MO_LOG_ROOMS_MAX);
    mo_buf_puts(&b, ",more=info");
    assert_int_equal(mo_log_levels(&l, mo_buf_view(&b), &e), MO_EINVAL);
    mo_buf_fini(&b);
    mo_log_fini(&l);
}

/* Peer text in a message, and how it is escaped. */
static void peer_text_is_escaped(void **s)
{
    static const struct {
        const char *in, *json, *human;
    } rows[] = {
        {"a\nb\r\t", "a\\u000ab\\u000d\\u0009", "a\\u000ab\\u000d\\u0009"},
        {"\x1b[2J", "\\u001b[2J", "\\u001b[2J"},
        {"\x7f", "\\u007f", "\\u007f"},
        {"say \"hi\\\"", "say \\\"hi\\\\\\\"", "say \"hi\\\""},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xc2\x9b", "\\u009b", "\\u009b"},     /* CSI in one character */
        {"\xe2\x80\xae", "\\u202e", "\\u202e"}, /* right to left */
        {"\xe2\x80\xa8", "\\u2028", "\\u2028"}, /* line separator */
        {"\xff", "\\ufffd", "\\ufffd"},         /* not UTF-8 */
        {"\xc3", "\\ufffd", "\\ufffd"},         /* truncated */
        {"\xc0\x80", "\\ufffd\\ufffd", "\\ufffd\\ufffd"}, /* overlong */
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd", "\\ufffd\\ufffd\\ufffd"},
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd",
         "\\ufffd\\ufffd\\ufffd\\ufffd"},
    };
    struct rig r;

    (void)s;
    rig_open(&r, true);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        size_t n = strlen(rows[i].json);

        r.log.json = true;
        mo_log(&r.log, MO_INFO, "app", "%s", rows[i].in);
        check_row(rows[i].json, strncmp(said_msg(&r), rows[i].json, n) == 0);
        r.log.json = false;
        mo_log(&r.log, MO_INFO, "app", "%s", rows[i].in);
        n = strlen(rows[i].human);
        check_row(rows[i].human,
                  strncmp(said(&r) + 8 + 16, rows[i].human, n) == 0);
    }
    rig_close(&r);
}

/* Every length around the limits: the line stays one valid line, ends in the
 * cut mark, and no escape is split. */
static void long_lines_are_cut_cleanly(void **s)
{
    static const char *const units[] = {"x", "\n", "\"", "\xc3\xbc"};
    static const char *const shown[] = {"x", "\\u000a", "\\\"", "\xc3\xbc"};
    struct rig r;

    (void)s;
    rig_open(&r, true);
    for (size_t u = 0; u < MO_COUNT(units); u++) {
        for (int n = 600; n < 2200; n += 1) {
            struct mo_buf b;
            const char *m;

            mo_buf_init(&b, 10000);
            for (int i = 0; i < n; i++)
                mo_buf_puts(&b, units[u]);
            mo_log(&r.log, MO_INFO, "app", "%s", mo_buf_cstr(&b));
            mo_buf_fini(&b);
            m = said_msg(&r);
            while (starts(m, shown[u]))
                m += strlen(shown[u]);
            if (starts(m, "\\ufffd")) /* a character truncated by the format */
                m += 6;
            assert_true(!strcmp(m, "\"}\n") || !strcmp(m, "[cut]\"}\n"));
        }
    }
    rig_close(&r);
}

static void secrets_are_hidden(void **s)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"key sk-secret-1 used", "key [secret] used"},
        {"sk-secret-1", "[secret]"},
        {"sk-secret-1sk-secret-1", "[secret]"},
        {"sk-secret-12", "[secret]"}, /* one is a prefix of another */
        {"sk-secret-1234", "[secret]34"},
        {"abcdefghij", "[secret]"},   /* two that overlap */
        {"sk-secret-", "sk-secret-"}, /* only part of one */
        {"a\"quote\"d", "[secret]"},
        {"tiny", "tiny"},
        {"aaaaaaaaa", "[secret]"}, /* overlaps itself */
        {"nul-secret", "[secret]"},
    };
    static const struct mo_span secrets[] = {
        {"sk-secret-1", 11}, {"sk-secret-12", 12},  {"abcdefg", 7},
        {"efghij", 6},       {"a\"quote\"d", 9},    {"tiny", 4},
        {"aaaaaa", 6},       {"nul-secret\0x", 12}, {"\0\0\0\0\0\0\0\0", 8},
        {NULL, 0},
    };
    struct rig r;

    (void)s;
    rig_open(&r, true);
    for (size_t i = 0; i < MO_COUNT(secrets); i++)
        assert_int_equal(mo_log_secret(&r.log, secrets[i]), 0);
    assert_int_equal(mo_log_secret(&r.log, secrets[0]), 0);
    assert_int_equal(r.log.nsecrets, 7); /* no short or double ones */
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        char want[64];

        (void)snprintf(want, sizeof(want), "%s\"}\n", rows[i].out);
        mo_log(&r.log, MO_INFO, "app", "%s", rows[i].in);
        check_row(rows[i].in, strcmp(said_msg(&r), want) == 0);
    }
    rig_close(&r);
}

#define SECRET "Zk7#mQ9!vT"

/* Also the shortest secret, between others that share parts with it. */
static void a_secret_is_hidden_at_every_offset(void **s)
{
    const struct mo_log_facts none = {0};
    struct rig r;

    (void)s;
    rig_open(&r, true);
    assert_int_equal(mo_log_secret(&r.log, MO_SPAN("qwerty")), 0);
    assert_int_equal(mo_log_secret(&r.log, MO_SPAN("wertyu-longer")), 0);
    for (size_t before = 0; before < 16; before++) {
        for (size_t after = 0; after < 4; after++) {
            char text[32] = "";
            char want[40] = "";

            (void)snprintf(text, sizeof(text), "%.*sqwerty%.*s", (int)before,
                           "................", (int)after, "....");
            (void)snprintf(want, sizeof(want), "%.*s[secret]%.*s\"",
                           (int)before, "................", (int)after, "....");
            mo_log_text(&r.log, MO_INFO, "test", &none, mo_span_cstr(text));
            assert_true(starts(said_msg(&r), want));
        }
    }
    rig_close(&r);
}

/* No byte of the secret but its first, which may occur elsewhere. */
static void expect_no_part(const char *line)
{
    assert_null(strpbrk(line, "#!"));
    assert_null(strstr(line, "Zk"));
    assert_null(strstr(line, "vT"));
}

/* The secret at every offset around the place where a message, or an error's
 * text, is cut: no part of it may appear. */
static void a_cut_secret_does_not_leak(void **s)
{
    char pad[MO_LOG_LINE_MAX];
    struct rig r;

    (void)s;
    memset(pad, '.', sizeof(pad));
    rig_open(&r, true);
    assert_int_equal(mo_log_secret(&r.log, MO_SPAN(SECRET)), 0);
    for (int n = MO_LOG_LINE_MAX / 2 - 40; n < MO_LOG_LINE_MAX / 2 + 5; n++) {
        mo_log(&r.log, MO_INFO, "app", "%.*s%s", n, pad, SECRET);
        expect_no_part(said_msg(&r));
    }
    for (int n = 200; n < 245; n++) {
        struct mo_err e;

        mo_fail(&e, MO_EIO, "%.*s%s", n, pad, SECRET);
        mo_log_err(&r.log, MO_INFO, "app", &e, "x");
        expect_no_part(said_msg(&r));
        mo_wrap(&e, "outer");
        mo_log_err(&r.log, MO_INFO, "app", &e, "x");
        expect_no_part(said_msg(&r));
        mo_log_err(&r.log, MO_INFO, "app", &e, "%.*s",
                   MO_LOG_LINE_MAX / 2 - 100, pad);
        expect_no_part(said_msg(&r));
    }
    rig_close(&r);
}

static void the_table_of_secrets_is_bounded(void **s)
{
    struct mo_log l;
    char name[32];

    (void)s;
    mo_log_init(&l, -1);
    for (int i = 0; i < MO_LOG_SECRETS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "secret-%d", i);
        assert_int_equal(mo_log_secret(&l, mo_span_cstr(name)), 0);
    }
    assert_int_equal(mo_log_secret(&l, MO_SPAN("one more")), MO_EBUSY);
    mo_log_fini(&l);
    mo_mem_fail_at(1, false);
    assert_int_equal(mo_log_secret(&l, MO_SPAN("one more")), MO_ENOMEM);
    mo_mem_fail_at(0, false);
    assert_int_equal(l.nsecrets, 0);
}

/* The text after a renewal, as it is shown now. */
static const char *shown(struct rig *r, const char *prefix, int i)
{
    mo_log(&r->log, MO_INFO, "app", "%s%d.", prefix, i);
    return said_msg(r);
}

static int renew(struct rig *r, struct mo_log_renewed *own, const char *prefix,
                 int i)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%s%d.", prefix, i);
    return mo_log_secret_renew(&r->log, own, mo_span_cstr(text));
}

static void a_renewed_secret_keeps_its_places(void **s)
{
    struct mo_log_renewed a = {.n = 0}, b = {.n = 0};
    struct rig r;

    (void)s;
    rig_open(&r, true);
    assert_int_equal(mo_log_secret(&r.log, MO_SPAN("before")), 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(renew(&r, &a, "token-", i), 0);
        assert_int_equal(renew(&r, &b, "other-", i / 300), 0);
        assert_true(starts(shown(&r, "token-", i), "[secret]\""));
        assert_true(starts(shown(&r, "other-", i / 300), "[secret]\""));
        assert_true(i < 7 || starts(shown(&r, "token-", i - 7), "[secret]\""));
        assert_true(i < 8 || starts(shown(&r, "token-", i - 8), "token-"));
    }
    assert_int_equal(r.log.nsecrets, 1 + MO_LOG_RENEWED_MAX + 4);
    assert_int_equal(r.log.nretired, 0);
    assert_int_equal(mo_log_secret(&r.log, MO_SPAN("another")), 0);
    mo_log(&r.log, MO_INFO, "app", "before another");
    assert_true(starts(said_msg(&r), "[secret] [secret]\""));
    assert_int_equal(mo_log_secret_renew(&r.log, &a, MO_SPAN("short")), 0);
    rig_close(&r);
}

/* One that comes back is the newest; one that is also given for ever stays. */
static void a_renewed_secret_may_be_known(void **s)
{
    struct mo_log_renewed a = {.n = 0};
    struct rig r;

    (void)s;
    rig_open(&r, true);
    for (int i = 0; i < MO_LOG_RENEWED_MAX; i++)
        assert_int_equal(renew(&r, &a, "token-", i), 0);
    assert_int_equal(renew(&r, &a, "token-", 0), 0);
    assert_int_equal(mo_log_secret(&r.log, MO_SPAN("token-2.")), 0);
    assert_int_equal(renew(&r, &a, "token-", 100), 0);
    assert_int_equal(renew(&r, &a, "token-", 101), 0);
    assert_true(starts(shown(&r, "token-", 0), "[secret]\""));
    assert_true(starts(shown(&r, "token-", 1), "token-1."));
    assert_true(starts(shown(&r, "token-", 2), "[secret]\""));
    assert_int_equal(r.log.nsecrets, MO_LOG_RENEWED_MAX + 1);
    rig_close(&r);
}

static void a_renewed_secret_at_the_limits(void **s)
{
    struct mo_log_renewed a = {.n = 0}, b = {.n = 0};
    struct rig r;

    (void)s;
    rig_open(&r, true);
    assert_int_equal(renew(&r, &a, "token-", 0), 0);
    while (mo_log_secret(&r.log, MO_SPAN("some-secret")) == 0 &&
           r.log.nsecrets < MO_LOG_SECRETS_MAX) {
        char text[32];

        (void)snprintf(text, sizeof(text), "secret-%zu", r.log.nsecrets);
        assert_int_equal(mo_log_secret(&r.log, mo_span_cstr(text)), 0);
    }
    assert_int_equal(renew(&r, &b, "other-", 1), MO_EBUSY);
    assert_int_equal(renew(&r, &a, "token-", 1), 0); /* its own place */
    assert_true(starts(shown(&r, "token-", 1), "[secret]\""));
    mo_mem_fail_at(1, false);
    assert_int_equal(renew(&r, &a, "token-", 2), MO_ENOMEM);
    mo_mem_fail_at(0, false);
    assert_true(starts(shown(&r, "token-", 1), "[secret]\""));
    r.log.readers = 1; /* as if a worker stood still */
    for (int i = 2; i < 2 + MO_LOG_RETIRED_MAX; i++)
        assert_int_equal(renew(&r, &a, "token-", i), 0);
    assert_int_equal(renew(&r, &a, "token-", 99), MO_EBUSY);
    r.log.readers = 0;
    assert_int_equal(renew(&r, &a, "token-", 99), 0);
    assert_int_equal(r.log.nretired, 0);
    r.log.readers = 1;
    assert_int_equal(renew(&r, &a, "token-", 100), 0); /* freed by the end */
    rig_close(&r);
}

static void *log_always(void *ctx)
{
    struct rig *r = ctx;

    while (!__atomic_load_n(&r->done, __ATOMIC_ACQUIRE))
        mo_log(&r->log, MO_INFO, "app", "before token-");
    return NULL;
}

/* A sanitizer sees a text that is freed too early. */
static void a_worker_logs_during_a_renewal(void **s)
{
    struct mo_log_renewed a = {.n = 0};
    pthread_t thread;
    struct rig r;

    (void)s;
    rig_open(&r, true);
    r.done = false;
    assert_int_equal(mo_log_secret(&r.log, MO_SPAN("before")), 0);
    assert_int_equal(pthread_create(&thread, NULL, log_always, &r), 0);
    for (int i = 0; i < 5000; i++) {
        int rc = renew(&r, &a, "token-", i);

        assert_true(rc == 0 || rc == MO_EBUSY);
        (void)said(&r);
    }
    __atomic_store_n(&r.done, true, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(r.log.readers, 0);
    rig_close(&r);
}

static const struct mo_log_facts everything = {
    .request = 7,
    .session = "s-1",
    .turn = "t-1",
    .call = {"c-1", 3},
    .server = {"files", 5},
    .tool = {"read file", 9},
    .who = "ann",
    .from = "127.0.0.1:5",
    .status = 200,
    .ns = 1234567,
};

static void facts_are_fields(void **s)
{
    struct rig r;

    (void)s;
    rig_open(&r, true);
    mo_log_about(&r.log, MO_INFO, "test", &everything, "it %s", "ran");
    assert_non_null(
        strstr(said(&r), "\"room\":\"test\",\"request\":7,\"session\":\"s-1\","
                         "\"turn\":\"t-1\",\"call\":\"c-1\",\"server\":"
                         "\"files\",\"tool\":\"read file\",\"who\":\"ann\","
                         "\"from\":\"127.0.0.1:5\",\"status\":200,\"ms\":1.234,"
                         "\"msg\":\"it ran\"}\n"));
    r.log.json = false;
    mo_log_about(&r.log, MO_INFO, "test", &everything, "it ran");
    assert_non_null(strstr(
        said(&r), " it ran request=7 session=s-1 turn=t-1 call=c-1 "
                  "server=files tool=\"read file\" who=ann from=127.0.0.1:5 "
                  "status=200 ms=1.234\n"));
    rig_close(&r);
}

/* A peer chooses the names of its tools. */
static void a_fact_cannot_forge_another(void **s)
{
    const struct mo_log_facts f = {.tool = MO_SPAN("x\",\"who\":\"root\n{"),
                                   .who = "my-secret-name"};
    const char *line;
    struct rig r;

    (void)s;
    rig_open(&r, true);
    assert_int_equal(mo_log_secret(&r.log, MO_SPAN("secret-name")), 0);
    mo_log_about(&r.log, MO_INFO, "test", &f, "it");
    line = said(&r);
    assert_non_null(
        strstr(line, "\"tool\":\"x\\\",\\\"who\\\":\\\"root\\u000a{\""));
    assert_non_null(strstr(line, "\"who\":\"my-[secret]\""));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    rig_close(&r);
}

static void a_line_with_long_facts_stays_whole(void **s)
{
    char much[2000];
    struct mo_log_facts f = {.who = much, .from = much, .session = much};
    const char *line;
    struct rig r;

    (void)s;
    memset(much, '\1', sizeof(much) - 1); /* six bytes each, escaped */
    much[sizeof(much) - 1] = '\0';
    f.tool = f.server = f.call = mo_span_cstr(much);
    rig_open(&r, true);
    mo_log_about(&r.log, MO_INFO, "test", &f, "the message");
    line = said(&r);
    assert_true(strlen(line) <= MO_LOG_LINE_MAX);
    assert_non_null(strstr(line, "\"msg\":\"the message\"}\n"));
    rig_close(&r);
}

static void collected_lines_keep_their_order(void **s)
{
    struct rig r;

    (void)s;
    rig_open(&r, true);
    mo_log_collect(&r.log);
    assert_false(mo_log_has_collected(&r.log));
    mo_log(&r.log, MO_INFO, "test", "first");
    assert_string_equal(said(&r), "");
    assert_true(mo_log_has_collected(&r.log));
    mo_log(&r.log, MO_WARN, "test", "second");
    assert_true(strstr(said(&r), "first") < strstr(r.line, "second"));
    assert_false(mo_log_has_collected(&r.log));
    mo_log(&r.log, MO_INFO, "test", "third");
    mo_log_flush(&r.log);
    assert_non_null(strstr(said(&r), "third"));
    for (int i = 0; i < 1000; i++) { /* more than is collected */
        mo_log(&r.log, MO_INFO, "test", "line %d", i);
        if (said(&r)[0])
            assert_ptr_equal(strstr(r.line, "{\"ts\""), r.line);
    }
    mo_log(&r.log, MO_INFO, "test", "last");
    mo_log_fini(&r.log);
    assert_non_null(strstr(said(&r), "last"));
    rig_close(&r);
}

static void a_closed_log_is_harmless(void **s)
{
    struct mo_log l;

    (void)s;
    mo_log_init(&l, -1);
    mo_log(&l, MO_ERROR, "app", "into the void");
    mo_log_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_lines_name_everything),
        cmocka_unit_test(human_lines_are_short),
        cmocka_unit_test(levels_decide),
        cmocka_unit_test(too_many_rooms_are_refused),
        cmocka_unit_test(peer_text_is_escaped),
        cmocka_unit_test(long_lines_are_cut_cleanly),
        cmocka_unit_test(secrets_are_hidden),
        cmocka_unit_test(a_secret_is_hidden_at_every_offset),
        cmocka_unit_test(a_cut_secret_does_not_leak),
        cmocka_unit_test(the_table_of_secrets_is_bounded),
        cmocka_unit_test(a_renewed_secret_keeps_its_places),
        cmocka_unit_test(a_renewed_secret_may_be_known),
        cmocka_unit_test(a_renewed_secret_at_the_limits),
        cmocka_unit_test(a_worker_logs_during_a_renewal),
        cmocka_unit_test(facts_are_fields),
        cmocka_unit_test(a_fact_cannot_forge_another),
        cmocka_unit_test(a_line_with_long_facts_stays_whole),
        cmocka_unit_test(collected_lines_keep_their_order),
        cmocka_unit_test(a_closed_log_is_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
