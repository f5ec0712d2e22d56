#include "mo_test.h"

#include "codec/boxreq.h"

#define MB    ((uint64_t)1 << 20)
#define MOUNT "1 2 /a b:/b:ro"

static struct mo_boxmsg sample(enum mo_boxmsg_type t)
{
    struct mo_boxmsg m = {.type = t};

    switch (t) {
    case MO_BOXMSG_START:
    case MO_BOXMSG_RESTART:
        m.fds = 1;
        m.u.req = (struct mo_boxreq){
            .id = "abc-1",
            .dir = "/run/x",
            .session = "s\xc3\xa9",
            .instance = "i",
            .store = "st",
            .policy = "0123",
            .expires = 1800000000,
            .linger_ms = 30000,
            .memory = 256 * MB,
            .cpu_milli = 500,
            .pids = 64,
            .workspace = 64 * MB,
            .workspace_inodes = 1000,
            .tmp = 16 * MB,
            .tmp_inodes = 100,
            .file_size = MB,
            .open_files = 256,
            .root = "",
            .by_fd = 1,
            .views = {"/opt/x"},
            .argv = {"toolbox", "--x", ""},
            .env = {"A=1", "B="},
            .ports = "80,443",
            .mounts = {MOUNT, "1 3 /c:/d:rw"},
            .ca = "/state/authority/x",
            .files = "b012",
        };
        break;
    case MO_BOXMSG_DESC:
        m.fds = 3;
        m.u.desc = (struct mo_boxdesc){.id = "abc-1",
                                       .session = "s",
                                       .instance = "",
                                       .store = "st",
                                       .policy = "p",
                                       .expires = 7,
                                       .started = 6,
                                       .state = MO_BOX_IS_FROZEN,
                                       .pid = 4321,
                                       .uid = 20001,
                                       .starts = 2,
                                       .landlock = 7,
                                       .attached = 1};
        break;
    case MO_BOXMSG_REFUSED:
        m.u.refused = (struct mo_boxrefused){-MO_EUNAVAIL, 13, "no cgroup"};
        break;
    case MO_BOXMSG_ENDED:
        m.u.end = (struct mo_boxend){MO_BOXEND_OOM, 0, 9, 1};
        break;
    case MO_BOXMSG_LABEL:
        m.u.label = (struct mo_boxlabel){"s2", "i2", 99, 1000};
        break;
    case MO_BOXMSG_STATS_ARE:
        m.u.stats = (struct mo_boxstats){1, 2, 3, 4, UINT64_MAX};
        break;
    case MO_BOXMSG_WHO:
        m.u.who = (struct mo_boxwho){"198.18.0.1", "198.18.0.1", 40000, 443};
        break;
    case MO_BOXMSG_PROGRAM:
        m.u.program = (struct mo_boxprogram){"/bin/a\nb\x1b[31m"};
        break;
    default:
        break;
    }
    return m;
}

static const enum mo_boxmsg_type types[] = {
    MO_BOXMSG_START,    MO_BOXMSG_RESTART,   MO_BOXMSG_ATTACH,
    MO_BOXMSG_DESCRIBE, MO_BOXMSG_KILL,      MO_BOXMSG_FREEZE,
    MO_BOXMSG_THAW,     MO_BOXMSG_LABEL,     MO_BOXMSG_CLOSE_IN,
    MO_BOXMSG_STATS,    MO_BOXMSG_DESC,      MO_BOXMSG_REFUSED,
    MO_BOXMSG_ENDED,    MO_BOXMSG_STATS_ARE, MO_BOXMSG_TAKEN,
    MO_BOXMSG_WHO,      MO_BOXMSG_PROGRAM};

static void put_sample(struct mo_buf *b, enum mo_boxmsg_type t)
{
    struct mo_boxmsg m = sample(t);

    mo_buf_init(b, MO_BOXMSG_HEAD + MO_BOXMSG_MAX);
    assert_int_equal(mo_boxmsg_put(b, &m, NULL), 0);
}

/* Text by text and number by number: what was put comes out, so putting it
 * again gives the same bytes. */
static void test_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(types); i++) {
        struct mo_buf a, b;
        struct mo_boxmsg out;
        struct mo_span in;

        put_sample(&a, types[i]);
        in = mo_buf_view(&a);
        assert_int_equal(mo_boxmsg_next(&in, &out, NULL), 1);
        assert_int_equal(in.n, 0);
        assert_int_equal(out.type, types[i]);
        mo_buf_init(&b, MO_BOXMSG_HEAD + MO_BOXMSG_MAX);
        assert_int_equal(mo_boxmsg_put(&b, &out, NULL), 0);
        assert_true(mo_span_eq(mo_buf_view(&a), mo_buf_view(&b)));
        mo_buf_fini(&a);
        mo_buf_fini(&b);
    }
}

static void test_values(void **state)
{
    struct mo_buf b;
    struct mo_boxmsg m;
    struct mo_span in;

    (void)state;
    put_sample(&b, MO_BOXMSG_START);
    in = mo_buf_view(&b);
    assert_int_equal(mo_boxmsg_next(&in, &m, NULL), 1);
    assert_int_equal(m.fds, 1);
    assert_string_equal(m.u.req.id, "abc-1");
    assert_string_equal(m.u.req.session, "s\xc3\xa9");
    assert_string_equal(m.u.req.root, "");
    assert_int_equal(m.u.req.memory, 256 * MB);
    assert_int_equal(m.u.req.open_files, 256);
    assert_string_equal(m.u.req.argv[1], "--x");
    assert_string_equal(m.u.req.argv[2], "");
    assert_null(m.u.req.argv[3]);
    assert_string_equal(m.u.req.env[1], "B=");
    assert_null(m.u.req.env[2]);
    assert_string_equal(m.u.req.views[0], "/opt/x");
    mo_buf_fini(&b);
}

/* A frame that is cut anywhere is not complete, and never an error. */
static void test_cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(types); i++) {
        struct mo_buf b;
        struct mo_boxmsg out;

        put_sample(&b, types[i]);
        for (size_t cut = 0; cut < b.len; cut++) {
            struct mo_span in = mo_span(b.p, cut);
            size_t len;

            assert_int_equal(mo_boxmsg_next(&in, &out, NULL), 0);
            assert_int_equal(in.n, cut);
            assert_int_equal(mo_boxmsg_len(in, &len, NULL), 0);
            assert_int_equal(len, cut < MO_BOXMSG_HEAD ? 0 : b.len);
        }
        mo_buf_fini(&b);
    }
}

static void test_two_frames(void **state)
{
    struct mo_boxmsg m = sample(MO_BOXMSG_STATS), end = sample(MO_BOXMSG_ENDED);
    struct mo_span in;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    assert_int_equal(mo_boxmsg_put(&b, &m, NULL), 0);
    assert_int_equal(mo_boxmsg_put(&b, &end, NULL), 0);
    in = mo_buf_view(&b);
    assert_int_equal(mo_boxmsg_next(&in, &m, NULL), 1);
    assert_int_equal(m.type, MO_BOXMSG_STATS);
    assert_int_equal(mo_boxmsg_next(&in, &m, NULL), 1);
    assert_int_equal(m.u.end.cause, MO_BOXEND_OOM);
    assert_int_equal(mo_boxmsg_next(&in, &m, NULL), 0);
    mo_buf_fini(&b);
}

static void expect_refused(const char *row, const char *p, size_t n)
{
    struct mo_span in = mo_span(p, n);
    struct mo_boxmsg out;

    check_row(row, mo_boxmsg_next(&in, &out, NULL) == MO_EPROTO);
}

/* Offsets are those of sample(START): head 8, id at 8, dir at 16. */
static void test_lies(void **state)
{
    static const struct {
        const char *name;
        size_t at;
        char byte;
    } rows[] = {
        {"no such type", 4, 0},         {"another type", 4, 50},
        {"a type beyond", 4, 127},      {"another version", 5, 2},
        {"too many descriptors", 6, 2}, {"far too many", 7, 1},
        {"longer than any", 2, 2},      {"an empty id", 8, 0},
        {"a longer id", 8, 6},          {"an id over its limit", 9, 1},
        {"NUL in the id", 11, 0},       {"no NUL after it", 15, 'x'},
    };
    struct mo_buf b;

    (void)state;
    put_sample(&b, MO_BOXMSG_START);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        char keep = b.p[rows[i].at];

        b.p[rows[i].at] = rows[i].byte;
        expect_refused(rows[i].name, b.p, b.len);
        b.p[rows[i].at] = keep;
    }
    mo_buf_putc(&b, 0);
    b.p[0]++;
    expect_refused("a byte too many", b.p, b.len);
    b.p[0] = (char)(b.p[0] - 2);
    expect_refused("a byte too few", b.p, b.len - 2);
    mo_buf_fini(&b);
}

static int mo_try_tool_put(const struct mo_boxmsg *m)
{
    struct mo_buf b;
    int rc;

    mo_buf_init(&b, MO_BOXMSG_HEAD + MO_BOXMSG_MAX);
    rc = mo_boxmsg_put(&b, m, NULL);
    mo_buf_fini(&b);
    return rc;
}

static void test_bounds(void **state)
{
    static char longtext[MO_BOXREQ_WORD_MAX + 2];
    struct mo_boxmsg m;

    (void)state;
    memset(longtext, 'x', sizeof(longtext) - 1);
    m = sample(MO_BOXMSG_START);
    m.u.req.memory = 1000;
    assert_int_equal(mo_try_tool_put(&m), MO_EINVAL);
    m = sample(MO_BOXMSG_START);
    m.u.req.pids = 1;
    assert_int_equal(mo_try_tool_put(&m), MO_EINVAL);
    m = sample(MO_BOXMSG_START);
    m.u.req.argv[0] = NULL;
    assert_int_equal(mo_try_tool_put(&m), MO_EINVAL);
    m = sample(MO_BOXMSG_START);
    m.u.req.argv[1] = longtext;
    assert_int_equal(mo_try_tool_put(&m), MO_EINVAL);
    m = sample(MO_BOXMSG_START);
    for (size_t i = 0; i < MO_BOXREQ_WORDS; i++)
        m.u.req.env[i] = longtext + 1; /* each is allowed, all are not */
    assert_int_equal(mo_try_tool_put(&m), MO_ETOOBIG);
    m = sample(MO_BOXMSG_START);
    m.u.req.session = longtext;
    assert_int_equal(mo_try_tool_put(&m), MO_EINVAL);
}

static void test_ids(void **state)
{
    static const struct {
        const char *id;
        bool ok;
    } rows[] = {
        {"a", true},
        {"0-1-z", true},
        {"", false},
        {"-a", false},
        {"A", false},
        {"a/b", false},
        {"..", false},
        {"a.b", false},
        {"a b", false},
        {"123456789012345678901234567890123456789012345678", true},
        {"1234567890123456789012345678901234567890123456789", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].id, mo_boxreq_id_ok(rows[i].id) == rows[i].ok);
}

static void put_all(void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < MO_COUNT(types); i++) {
        struct mo_boxmsg m = sample(types[i]);
        int rc = mo_try_tool_put(&m);

        assert_true(rc == 0 || rc == MO_ENOMEM);
    }
}

static void test_torture(void **state)
{
    (void)state;
    torture(put_all, NULL);
}

/* A keeper of an earlier version takes a RESTART: it has no ports, no
 * certificates and no mounts. */
static void test_ports(void **state)
{
    struct mo_buf start, restart;
    struct mo_boxmsg m;
    struct mo_span in;

    (void)state;
    put_sample(&start, MO_BOXMSG_START);
    put_sample(&restart, MO_BOXMSG_RESTART);
    assert_int_equal(start.len - restart.len,
                     2 + sizeof("80,443") + 2 + sizeof("/state/authority/x") +
                         2 + 2 + sizeof(MOUNT) + 2 + sizeof("1 3 /c:/d:rw") +
                         2 + sizeof("b012"));
    in = mo_buf_view(&start);
    assert_int_equal(mo_boxmsg_next(&in, &m, NULL), 1);
    assert_string_equal(m.u.req.ports, "80,443");
    assert_string_equal(m.u.req.ca, "/state/authority/x");
    assert_string_equal(m.u.req.mounts[0], MOUNT);
    assert_string_equal(m.u.req.files, "b012");
    assert_null(m.u.req.mounts[2]);
    mo_buf_fini(&start);
    mo_buf_fini(&restart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports),      cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_values),     cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_two_frames), cmocka_unit_test(test_lies),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_ids),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
