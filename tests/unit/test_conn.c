#include "conn_kit.h"

#include "mcp/client/conn_priv.h"
#include "mcp/client/pages.h"

#define INIT(version)                                                          \
    {                                                                          \
        "initialize",                                                          \
            "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":" \
            "\"" version "\",\"capabilities\":{\"tools\":{}},\"serverInfo\":"  \
            "{\"name\":\"s\",\"version\":\"1\"},\"instructions\":\"be\"}}"     \
    }
#define REPLY(method, body)                                                    \
    {                                                                          \
        method, "{\"jsonrpc\":\"2.0\",\"id\":$id," body "}"                    \
    }
#define DISCOVER                                                               \
    REPLY("server/discover",                                                   \
          "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":"     \
          "[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},\"_meta\":{"       \
          "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"m\"}}}")
#define END                                                                    \
    {                                                                          \
        NULL, NULL                                                             \
    }

#define ALL_CAPS                                                               \
    "{\"sampling\":{},\"roots\":{},\"elicitation\":{\"form\":{},\"url\":{}}}"

static const struct rule legacy[] = {
    INIT("2025-11-25"),
    REPLY("echo", "\"result\":{\"ok\":true}"),
    REPLY("bad", "\"error\":{\"code\":-32602,\"message\":\"no\"}"),
    {"hang", NULL},
    {"die", "CLOSE"},
    END,
};

static const struct mo_conn_opts plain = {.mode = MO_CONN_LEGACY};

/* --- handshakes ---------------------------------------------------------- */

static void test_revisions(void **state)
{
    static const struct {
        const char *name;
        struct rule rules[2];
        enum mo_mcp_version pin, want; /* MO_MCP_UNKNOWN: refused */
    } rows[] = {
        {"2024-10-07", {INIT("2024-10-07"), END}, 0, MO_MCP_2024_10_07},
        {"2024-11-05", {INIT("2024-11-05"), END}, 0, MO_MCP_2024_11_05},
        {"2025-03-26", {INIT("2025-03-26"), END}, 0, MO_MCP_2025_03_26},
        {"2025-06-18", {INIT("2025-06-18"), END}, 0, MO_MCP_2025_06_18},
        {"2025-11-25", {INIT("2025-11-25"), END}, 0, MO_MCP_2025_11_25},
        {"unheard of", {INIT("1999-01-01"), END}, 0, 0},
        {"no date", {INIT("latest"), END}, 0, 0},
        {"modern is never negotiated", {INIT("2026-07-28"), END}, 0, 0},
        {"pin met",
         {INIT("2024-11-05"), END},
         MO_MCP_2024_11_05,
         MO_MCP_2024_11_05},
        {"pin not met", {INIT("2025-06-18"), END}, MO_MCP_2024_11_05, 0},
        {"error",
         {REPLY("initialize", "\"error\":{\"code\":1,\"message\":\"x\"}"), END},
         0,
         0},
        {"no version", {REPLY("initialize", "\"result\":{}"), END}, 0, 0},
        {"goes away", {{"initialize", "CLOSE"}, END}, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_conn_opts o = {.mode = MO_CONN_LEGACY, .pin = rows[i].pin};
        struct fix f;

        fix_init(&f, rows[i].rules);
        assert_int_equal(fix_try_open(&f, o), 0);
        check_row(rows[i].name, f.opened == (rows[i].want != 0));
        check_row(rows[i].name, f.dials == 1);
        if (f.opened) {
            check_row(rows[i].name, mo_conn_info(f.c)->version == rows[i].want);
            fix_settle(&f);
            check_row(rows[i].name,
                      peer_saw(&f.peers[0], "notifications/initialized"));
            check_row(rows[i].name, mo_conn_can(f.c, "tools"));
            check_row(rows[i].name, !mo_conn_can(f.c, "prompts"));
        } else {
            check_row(rows[i].name, f.closed == 1 && f.why.code != 0);
            check_row(rows[i].name,
                      !peer_saw(&f.peers[0], "notifications/initialized"));
        }
        check_row(rows[i].name, !peer_saw(&f.peers[0], "server/discover"));
        fix_fini(&f);
    }
}

#define PROBE_ERROR(code, data)                                                \
    REPLY("server/discover",                                                   \
          "\"error\":{\"code\":" code ",\"message\":\"x\"" data "}")

/* The table of outcomes on a byte stream. */
static void test_probe(void **state)
{
    static const struct {
        const char *name;
        struct rule first[3], second[2];
        enum mo_conn_mode mode;
        int dials;
        int era; /* 0: refused, 1: legacy, 2: modern */
    } rows[] = {
        {"modern", {DISCOVER, END}, {END}, MO_CONN_AUTO, 1, 2},
        {"modern, wanted", {DISCOVER, END}, {END}, MO_CONN_MODERN, 1, 2},
        {"-32601",
         {PROBE_ERROR("-32601", ""), INIT("2025-11-25"), END},
         {END},
         MO_CONN_AUTO,
         1,
         1},
        {"-32000 of an old SDK",
         {PROBE_ERROR("-32000", ""), INIT("2025-06-18"), END},
         {END},
         MO_CONN_AUTO,
         1,
         1},
        {"only legacy versions",
         {PROBE_ERROR("-32022", ",\"data\":{\"supported\":[\"2025-11-25\"]}"),
          INIT("2025-11-25"), END},
         {END},
         MO_CONN_AUTO,
         1,
         1},
        {"only other modern versions",
         {PROBE_ERROR("-32022", ",\"data\":{\"supported\":[\"2027-01-01\"]}"),
          INIT("2025-11-25"), END},
         {END},
         MO_CONN_AUTO,
         1,
         0},
        {"-32022 for ever",
         {PROBE_ERROR("-32022", ",\"data\":{\"supported\":[\"2026-07-28\"]}"),
          INIT("2025-11-25"), END},
         {END},
         MO_CONN_AUTO,
         1,
         0},
        {"discovers no common version",
         {REPLY("server/discover",
                "\"result\":{\"supportedVersions\":[\"2027-01-01\"]}"),
          INIT("2025-11-25"), END},
         {END},
         MO_CONN_AUTO,
         1,
         1},
        {"not a DiscoverResult",
         {REPLY("server/discover", "\"result\":{}"), INIT("2025-11-25"), END},
         {END},
         MO_CONN_AUTO,
         1,
         1},
        {"exits on the probe",
         {{"server/discover", "CLOSE"}, END},
         {INIT("2025-11-25"), END},
         MO_CONN_AUTO,
         2,
         1},
        {"silent on the probe",
         {{"server/discover", NULL}, END},
         {INIT("2025-11-25"), END},
         MO_CONN_AUTO,
         2,
         1},
        {"answers the probe, then exits on initialize",
         {PROBE_ERROR("-32601", ""), {"initialize", "CLOSE"}, END},
         {INIT("2025-11-25"), END},
         MO_CONN_AUTO,
         2,
         1},
        {"exits both times",
         {{"server/discover", "CLOSE"}, END},
         {{"initialize", "CLOSE"}, END},
         MO_CONN_AUTO,
         2,
         0},
        {"modern only: no way back",
         {PROBE_ERROR("-32601", ""), INIT("2025-11-25"), END},
         {END},
         MO_CONN_MODERN,
         1,
         0},
        {"modern only: silence is an error",
         {{"server/discover", NULL}, END},
         {INIT("2025-11-25"), END},
         MO_CONN_MODERN,
         1,
         0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_conn_opts o = {
            .mode = rows[i].mode, .probe_ms = 30, .open_ms = 5000};
        struct fix f;

        if (rows[i].mode == MO_CONN_MODERN && rows[i].era == 0)
            o.open_ms = 30;
        fix_init(&f, rows[i].first);
        f.rules[1] = rows[i].second;
        assert_int_equal(fix_try_open(&f, o), 0);
        check_row(rows[i].name, f.dials == rows[i].dials);
        check_row(rows[i].name, f.opened == (rows[i].era != 0));
        if (f.opened) {
            const struct mo_conn_info *in = mo_conn_info(f.c);

            check_row(rows[i].name, in->modern == (rows[i].era == 2));
            check_row(rows[i].name, in->server.p != NULL);
            check_row(rows[i].name, rows[i].mode != MO_CONN_AUTO ||
                                        ((int)in->verdict.era == rows[i].era &&
                                         in->verdict.at_ms > 0));
        }
        fix_fini(&f);
    }
}

/* A fresh verdict saves the probe, an old one does not. */
static void test_verdict(void **state)
{
    static const struct rule rules[] = {PROBE_ERROR("-32601", ""),
                                        INIT("2025-11-25"), END};
    const struct {
        const char *name;
        uint64_t age;
        bool probes;
    } rows[] = {
        {"fresh", 1000, false},
        {"stale", MO_CONN_VERDICT_MS + 1000, true},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_conn_opts o = {
            .mode = MO_CONN_AUTO,
            .known = {MO_ERA_LEGACY, mo_wall_ms() - rows[i].age},
        };
        struct fix f;

        fix_init(&f, rules);
        fix_open(&f, o);
        check_row(rows[i].name,
                  peer_saw(&f.peers[0], "server/discover") == rows[i].probes);
        fix_fini(&f);
    }
}

static bool is_probed(void *ctx)
{
    struct fix *f = ctx;

    return f->dials == 1 && peer_saw(&f->peers[0], "server/discover");
}

/* Whoever closes it while the probe is under way gets that, and nothing is
 * tried again for the reason he gave. */
static void test_close_in_probe(void **state)
{
    static const struct rule silent[] = {{"server/discover", NULL}, END};
    static const int codes[] = {0, MO_ETIMEOUT, MO_ECANCELED};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(codes); i++) {
        struct mo_conn_opts o = {
            .mode = MO_CONN_AUTO, .dial = fix_dial, .cb = &fix_cb};
        struct mo_err e = {.code = codes[i]};
        struct fix f;

        fix_init(&f, silent);
        f.rules[1] = legacy;
        o.ctx = &f;
        assert_int_equal(mo_conn_open(f.l, &o, &f.c, &e), 0);
        assert_true(mo_loop_until(f.l, is_probed, &f, LONG));
        mo_conn_close(f.c, codes[i] ? &e : NULL);
        assert_true(mo_loop_until(f.l, is_closed, &f, LONG));
        assert_int_equal(f.closed, 1);
        assert_int_equal(f.opened, 0);
        assert_int_equal(f.dials, 1);
        fix_fini(&f);
    }
}

static void test_no_server(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f, legacy);
    f.no_dial = true;
    assert_int_equal(fix_try_open(&f, plain), 0);
    assert_int_equal(f.closed, 1);
    assert_int_equal(f.why.code, MO_EUNAVAIL);
    fix_fini(&f);
}

/* --- calls --------------------------------------------------------------- */

static void test_call(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f, legacy);
    fix_open(&f, plain);
    assert_non_null(fix_call(&f, "echo", "{\"a\": [1,\n 2]}"));
    assert_int_equal(f.dones, 0); /* never from inside */
    assert_true(mo_loop_until(f.l, is_done, &f, LONG));
    assert_true(mo_span_is(mo_buf_view(&f.result), "{\"ok\":true}"));
    assert_true(peer_saw(&f.peers[0], "\"params\":{\"a\":[1,2]}}"));
    f.dones = 0;
    assert_non_null(fix_call(&f, "bad", ""));
    assert_true(mo_loop_until(f.l, is_done, &f, LONG));
    assert_int_equal(f.code, -32602);
    assert_int_equal(f.err.code, 0);
    fix_fini(&f);
    assert_int_equal(f.dones, 1);
}

/* What the caller has in _meta stays, but for what is ours to say. */
static void test_meta(void **state)
{
    static const struct rule modern[] = {DISCOVER, END};
    static const struct {
        const char *name;
        bool modern, progress;
        const char *params, *want;
    } rows[] = {
        {"legacy, nothing", false, false, "", "\"method\":\"m\"}\n"},
        {"legacy, as it is", false, false, "{\"x\": 1}",
         "\"params\":{\"x\": 1}}\n"},
        {"legacy, a stranger's token goes", false, false,
         "{\"_meta\":{\"progressToken\":9,\"t\":1},\"x\":1}",
         "\"params\":{\"x\":1,\"_meta\":{\"t\":1}}}\n"},
        {"legacy, our token", false, true, "{\"x\":1}",
         "\"params\":{\"x\":1,\"_meta\":{\"progressToken\":2}}}\n"},
        {"legacy, escaped key of a stranger", false, true,
         "{\"_meta\":{\"progress\\u0054oken\":9}}",
         "\"params\":{\"_meta\":{\"progressToken\":2}}}\n"},
        {"modern", true, false, "{\"x\":1.0}",
         "\"params\":{\"x\":1.0,\"_meta\":{"
         "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
         "\"io.modelcontextprotocol/clientCapabilities\":{},"
         "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"me\","
         "\"version\":\"7\"}}}}\n"},
        {"modern, no forged envelope", true, true,
         "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"1\","
         "\"k\":2}}",
         "\"params\":{\"_meta\":{\"k\":2,"
         "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
         "\"io.modelcontextprotocol/clientCapabilities\":{},"
         "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"me\","
         "\"version\":\"7\"},\"progressToken\":2}}}\n"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_conn_opts o = {
            .mode = rows[i].modern ? MO_CONN_MODERN : MO_CONN_LEGACY,
            .name = "me",
            .version = "7",
        };
        struct mo_call_opts co = {.done = fix_done};
        struct fix f;
        struct mo_err e;

        co.on_progress = rows[i].progress ? fix_progress : NULL;
        co.ctx = &f;
        fix_init(&f, rows[i].modern ? modern : legacy);
        fix_open(&f, o);
        assert_non_null(
            mo_conn_request(f.c, "m", mo_span_cstr(rows[i].params), &co, &e));
        fix_settle(&f);
        if (!peer_saw(&f.peers[0], rows[i].want))
            fail_msg("row '%s': %.*s", rows[i].name, (int)f.peers[0].log.len,
                     f.peers[0].log.p);
        fix_fini(&f);
    }
}

/* Two live signs: idle starts again, hard does not. */
static void test_progress(void **state)
{
    struct mo_call_opts o = {.done = fix_done, .on_progress = fix_progress};
    uint64_t idle, hard;
    struct mo_call *k;
    struct mo_err e;
    struct fix f;

    (void)state;
    fix_init(&f, legacy);
    fix_open(&f, plain);
    o.ctx = &f;
    k = mo_conn_request(f.c, "hang", mo_span(NULL, 0), &o, &e);
    assert_non_null(k);
    idle = k->idle.at;
    hard = k->hard.at;
    fix_settle(&f);
#define PROGRESS(token, at)                                                    \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"  \
    "\"progressToken\":" token ",\"progress\":" at "}}"
    peer_say(&f.peers[0], MO_SPAN(PROGRESS("$id", "0.5")));
    fix_settle(&f);
    assert_int_equal(f.progressed, 1);
    assert_true(k->idle.at > idle);
    assert_true(k->hard.at == hard);
    idle = k->idle.at;
    peer_say(&f.peers[0], MO_SPAN(PROGRESS("$id", "0.5")));   /* same */
    peer_say(&f.peers[0], MO_SPAN(PROGRESS("$id", "0.25")));  /* back */
    peer_say(&f.peers[0], MO_SPAN(PROGRESS("\"$id\"", "9"))); /* a string */
    peer_say(&f.peers[0], MO_SPAN(PROGRESS("77", "9")));      /* nobody's */
    fix_settle(&f);
    assert_int_equal(f.progressed, 1);
    assert_int_equal(mo_conn_stats(f.c)->stray_progress, 4);
    assert_true(k->idle.at == idle);
    peer_say(&f.peers[0], MO_SPAN(PROGRESS("$id", "1e1")));
    fix_settle(&f);
    assert_int_equal(f.progressed, 2);
    fix_fini(&f);
    assert_int_equal(f.dones, 1);
}

/* C7: both timeouts; the server is told; what comes late is dropped. */
static void test_timeout(void **state)
{
    static const struct {
        const char *name;
        uint64_t idle, hard;
    } rows[] = {
        {"idle", 5, MO_CALL_FOREVER},
        {"hard", MO_CALL_FOREVER, 5},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_call_opts o = {
            .idle_ms = rows[i].idle, .hard_ms = rows[i].hard, .done = fix_done};
        struct mo_err e;
        struct fix f;

        fix_init(&f, legacy);
        fix_open(&f, plain);
        o.ctx = &f;
        assert_non_null(mo_conn_request(f.c, "hang", mo_span(NULL, 0), &o, &e));
        assert_true(mo_loop_until(f.l, is_done, &f, LONG));
        check_row(rows[i].name, f.err.code == MO_ETIMEOUT);
        fix_settle(&f);
        check_row(rows[i].name,
                  peer_saw(&f.peers[0], "\"notifications/cancelled\","
                                        "\"params\":{\"requestId\":2,"
                                        "\"reason\":\"timeout\"}"));
        peer_say(&f.peers[0],
                 MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}"));
        fix_settle(&f);
        check_row(rows[i].name, f.dones == 1);
        check_row(rows[i].name, mo_conn_stats(f.c)->late == 1);
        /* the connection still works, under another number */
        f.dones = 0;
        assert_non_null(fix_call(&f, "echo", ""));
        assert_true(mo_loop_until(f.l, is_done, &f, LONG));
        check_row(rows[i].name, peer_saw(&f.peers[0], "\"id\":3,"));
        fix_fini(&f);
    }
}

static void test_cancel(void **state)
{
    struct mo_call *k;
    struct fix f;

    (void)state;
    fix_init(&f, legacy);
    fix_open(&f, plain);
    k = fix_call(&f, "echo", "");
    mo_call_cancel(k, "no \"more\"");
    mo_call_cancel(k, "twice is once");
    assert_int_equal(f.dones, 0);
    assert_true(mo_loop_until(f.l, is_done, &f, LONG));
    assert_int_equal(f.err.code, MO_ECANCELED);
    fix_settle(&f); /* the echo's answer came after the cancel */
    assert_int_equal(f.dones, 1);
    assert_int_equal(mo_conn_stats(f.c)->late, 1);
    assert_true(peer_saw(&f.peers[0], "\"reason\":\"no \\\"more\\\"\""));
    assert_false(peer_saw(&f.peers[0], "twice"));
    fix_fini(&f);
}

/* C6: only a number with exactly our digits is our id. The request is 2. */
static void test_id_games(void **state)
{
    static const struct {
        const char *name, *lines;
        int dones;
        unsigned late, duplicate, unknown;
    } rows[] = {
        {"good", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}", 1, 0, 0, 0},
        {"string", "{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"result\":{}}", 0, 0, 0,
         1},
        {"float", "{\"jsonrpc\":\"2.0\",\"id\":2.0,\"result\":{}}", 0, 0, 0, 1},
        {"exponent", "{\"jsonrpc\":\"2.0\",\"id\":2e0,\"result\":{}}", 0, 0, 0,
         1},
        {"null",
         "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,"
         "\"message\":\"x\"}}",
         0, 0, 0, 1},
        {"none",
         "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"x\"}}", 0, 0,
         0, 1},
        {"negative", "{\"jsonrpc\":\"2.0\",\"id\":-2,\"result\":{}}", 0, 0, 0,
         1},
        {"2 + 2^64",
         "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551618,\"result\":{}}", 0,
         0, 0, 1},
        {"never sent", "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}", 0, 0, 0,
         1},
        {"of initialize", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 0, 0,
         1, 0},
        {"twice",
         "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"n\":1}}\n"
         "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"n\":2}}",
         1, 0, 1, 0},
        {"bucket twin", "{\"jsonrpc\":\"2.0\",\"id\":258,\"result\":{}}", 0, 0,
         0, 1},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct mo_conn_stats *s;
        struct fix f;

        fix_init(&f, legacy);
        fix_open(&f, plain);
        assert_non_null(fix_call(&f, "hang", ""));
        fix_settle(&f);
        peer_say(&f.peers[0], mo_span_cstr(rows[i].lines));
        fix_settle(&f);
        s = mo_conn_stats(f.c);
        check_row(rows[i].name, f.dones == rows[i].dones);
        check_row(rows[i].name, s->late == rows[i].late);
        check_row(rows[i].name, s->duplicate == rows[i].duplicate);
        check_row(rows[i].name, s->unknown == rows[i].unknown);
        if (f.dones)
            check_row(rows[i].name,
                      !mo_span_is(mo_buf_view(&f.result), "{\"n\":2}"));
        fix_fini(&f);
        check_row(rows[i].name, f.dones == 1); /* at the latest now */
    }
}

/* C9: the server goes in the middle of two calls. */
static void test_death(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f, legacy);
    fix_open(&f, plain);
    assert_non_null(fix_call(&f, "hang", ""));
    assert_non_null(fix_call(&f, "die", ""));
    assert_true(mo_loop_until(f.l, is_closed, &f, LONG));
    assert_int_equal(f.dones, 2);
    assert_int_equal(f.err.code, MO_ECLOSED);
    assert_int_equal(f.why.code, MO_ECLOSED);
    assert_int_equal(f.closed, 1);
    fix_fini(&f);
}

static void test_limits(void **state)
{
    struct mo_err e;
    struct mo_call_opts o = {.done = fix_done};
    struct fix f;

    (void)state;
    fix_init(&f, legacy);
    fix_open(&f, plain);
    o.ctx = &f;
    for (int i = 0; i < MO_CONN_CALLS_MAX; i++)
        assert_non_null(fix_call(&f, "hang", ""));
    assert_null(mo_conn_request(f.c, "hang", mo_span(NULL, 0), &o, &e));
    assert_int_equal(e.code, MO_EBUSY);
    mo_conn_close(f.c, NULL);
    assert_null(mo_conn_request(f.c, "hang", mo_span(NULL, 0), &o, &e));
    assert_int_equal(e.code, MO_ECLOSED);
    assert_true(mo_loop_until(f.l, is_closed, &f, LONG));
    assert_int_equal(f.dones, MO_CONN_CALLS_MAX);
    assert_int_equal(f.err.code, MO_ECANCELED);
    fix_fini(&f);
}

static void test_batch(void **state)
{
    static const struct rule old[] = {INIT("2025-03-26"), {"hang", NULL}, END};
    static const char batch[] =
        "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"},"
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]";
    const struct {
        const char *name;
        const struct rule *rules;
        int dones;
    } rows[] = {{"2025-03-26", old, 1}, {"2025-11-25", legacy, 0}};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct fix f;

        fix_init(&f, rows[i].rules);
        fix_open(&f, plain);
        assert_non_null(fix_call(&f, "hang", ""));
        fix_settle(&f);
        peer_say(&f.peers[0], mo_span_cstr(batch));
        fix_settle(&f);
        check_row(rows[i].name, f.dones == rows[i].dones);
        check_row(rows[i].name, f.notified == rows[i].dones);
        check_row(rows[i].name,
                  (int)mo_conn_stats(f.c)->invalid == 1 - rows[i].dones);
        fix_fini(&f);
    }
}

/* --- what the server asks ------------------------------------------------ */

#define URL(u) "{\"mode\":\"url\",\"message\":\"?\",\"url\":\"" u "\"}"

/* While a call is out, the server asks; rows say what it is told. */
static void test_asks(void **state)
{
    static const struct {
        const char *name, *caps, *method, *params;
        int up;           /* handed up? */
        const char *want; /* in what the server gets */
    } rows[] = {
        {"ping", "{}", "ping", "{}", 0, "\"id\":\"a\",\"result\":{}}"},
        {"sampling", ALL_CAPS, "sampling/createMessage", "{\"m\":1}", 1,
         "\"id\":\"a\",\"result\":{\"y\":1}}"},
        {"roots", ALL_CAPS, "roots/list", "{}", 1,
         "\"id\":\"a\",\"result\":{\"y\":1}}"},
        {"form", ALL_CAPS, "elicitation/create", "{\"message\":\"?\"}", 1,
         "\"id\":\"a\",\"result\":{\"y\":1}}"},
        {"url", ALL_CAPS, "elicitation/create", URL("https://a.example/?b=c"),
         1, "\"id\":\"a\",\"result\":{\"y\":1}}"},
        {"url, on this machine", ALL_CAPS, "elicitation/create",
         URL("http://localhost:3000/x"), 1, "\"result\":{\"y\":1}}"},
        {"url without one", ALL_CAPS, "elicitation/create",
         "{\"mode\":\"url\"}", 0, "-32602"},
        {"url of a file", ALL_CAPS, "elicitation/create",
         URL("file:///etc/passwd"), 0, "-32602"},
        {"url that runs", ALL_CAPS, "elicitation/create",
         URL("javascript:alert(1)"), 0, "-32602"},
        {"url in disguise", ALL_CAPS, "elicitation/create",
         URL("https://bank.example@a.example/"), 0, "-32602"},
        {"url with a control", ALL_CAPS, "elicitation/create",
         URL("https://a.example/\\n"), 0, "-32602"},
        {"url, not offered", "{\"elicitation\":{\"form\":{}}}",
         "elicitation/create", URL("https://a.example/"), 0, "-32602"},
        {"no elicitation at all", "{\"roots\":{}}", "elicitation/create",
         URL("https://a.example/"), 0, "-32601"},
        {"not offered", "{}", "sampling/createMessage", "{}", 0, "-32601"},
        {"unknown method", ALL_CAPS, "launch/missiles", "{}", 0, "-32601"},
        {"empty elicitation is form only", "{\"elicitation\":{}}",
         "elicitation/create", "{\"mode\":\"url\"}", 0, "-32602"},
        {"url only", "{\"elicitation\":{\"url\":{}}}", "elicitation/create",
         "{}", 0, "-32602"},
        {"no such mode", ALL_CAPS, "elicitation/create", "{\"mode\":\"brain\"}",
         0, "-32602"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_conn_opts o = {.capabilities = mo_span_cstr(rows[i].caps)};
        struct mo_call *k;
        char line[256];
        struct fix f;

        fix_init(&f, legacy);
        fix_open(&f, o);
        k = fix_call(&f, "hang", "");
        (void)snprintf(line, sizeof(line),
                       "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"%s\","
                       "\"params\":%s}",
                       rows[i].method, rows[i].params);
        peer_say(&f.peers[0], mo_span_cstr(line));
        fix_settle(&f);
        check_row(rows[i].name, (int)f.nasks == rows[i].up);
        if (f.nasks) {
            struct mo_ask *a = f.asks[0];

            check_row(rows[i].name, a->call == mo_call_number(k));
            check_row(rows[i].name,
                      mo_span_is(mo_json_text(a->params), rows[i].params));
            check_row(rows[i].name,
                      strcmp(mo_ask_method(a->kind), rows[i].method) == 0);
            mo_ask_answer(a, MO_SPAN("{\"y\":\n1}"));
        }
        fix_settle(&f);
        check_row(rows[i].name, peer_saw(&f.peers[0], rows[i].want));
        fix_fini(&f);
    }
}

/* A revision that has no url mode: offering it changes nothing. */
static void test_ask_url_too_old(void **state)
{
    static const struct rule old[] = {INIT("2025-06-18"), END};
    struct mo_conn_opts o = {.capabilities = MO_SPAN(ALL_CAPS)};
    struct fix f;

    (void)state;
    fix_init(&f, old);
    fix_open(&f, o);
    peer_say(&f.peers[0], MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":"
                                  "\"elicitation/create\",\"params\":" URL(
                                      "https://a.example/") "}"));
    fix_settle(&f);
    assert_int_equal(f.nasks, 0);
    assert_true(peer_saw(&f.peers[0], "-32602"));
    fix_fini(&f);
}

static const struct mo_conn_opts able = {
    .capabilities = {ALL_CAPS, sizeof(ALL_CAPS) - 1}};

#define ROOTS(id)                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"roots/list\"}"

static void test_ask_cancelled(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f, legacy);
    fix_open(&f, able);
    peer_say(&f.peers[0], MO_SPAN(ROOTS("5") "\n" ROOTS("\"5\"")));
    fix_settle(&f);
    assert_int_equal(f.nasks, 2);
    peer_say(&f.peers[0], MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":"
                                  "\"notifications/cancelled\",\"params\":"
                                  "{\"requestId\":\"5\"}}"));
    fix_settle(&f);
    assert_int_equal(f.gone, 1);
    mo_ask_answer(f.asks[1], MO_SPAN("{\"never\":1}"));
    mo_ask_refuse(f.asks[0], -1, "not today");
    fix_settle(&f);
    assert_false(peer_saw(&f.peers[0], "never"));
    assert_true(peer_saw(&f.peers[0], "\"id\":5,\"error\":{\"code\":-1,"));
    fix_fini(&f);
}

/* Too many at once are refused; those handed up outlive the connection. */
static void test_ask_flood(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f, legacy);
    fix_open(&f, able);
    for (int i = 0; i < MO_CONN_ASKS_MAX + 3; i++)
        peer_say(&f.peers[0], MO_SPAN(ROOTS("1")));
    fix_settle(&f);
    assert_int_equal(f.nasks, MO_CONN_ASKS_MAX);
    assert_int_equal(mo_conn_stats(f.c)->refused, 3);
    mo_conn_close(f.c, NULL);
    assert_true(mo_loop_until(f.l, is_closed, &f, LONG));
    assert_int_equal(f.gone, MO_CONN_ASKS_MAX);
    for (size_t i = 0; i < f.nasks; i++)
        mo_ask_answer(f.asks[i], MO_SPAN("{}"));
    fix_fini(&f);
}

/* --- input_required ------------------------------------------------------ */

#define NEEDS(requests, state)                                                 \
    "\"result\":{\"resultType\":\"input_required\"" requests state "}"

static void answer_all(struct fix *f, struct mo_ask *a)
{
    f->nasks++;
    mo_ask_answer(a, a->kind == MO_ASK_ROOTS ? MO_SPAN("{\"roots\":[]}")
                                             : MO_SPAN("{\"action\":1}"));
}

static const struct rule asking[] = {
    DISCOVER,
    REPLY("tools/call",
          NEEDS(",\"inputRequests\":{\"k\\u0031\":{\"method\":"
                "\"elicitation/create\",\"params\":{\"message\":\"?\"}},"
                "\"r\":{\"method\":\"roots/list\"}}",
                ",\"requestState\":\"\\u0041 b\"")),
    END,
};

static const struct rule complete[] = {
    REPLY("tools/call", "\"result\":{\"resultType\":\"complete\",\"v\":1}"),
    END,
};

static struct mo_conn_opts modern_able(void)
{
    struct mo_conn_opts o = able;

    o.mode = MO_CONN_MODERN;
    return o;
}

static void test_input(void **state)
{
    struct mo_call *k;
    struct fix f;

    (void)state;
    fix_init(&f, asking);
    fix_open(&f, modern_able());
    k = fix_call(&f, "tools/call", "{\"name\":\"t\",\"n\":1.50}");
    fix_settle(&f);
    assert_int_equal(f.nasks, 2);
    assert_int_equal(f.asks[0]->kind, MO_ASK_ELICIT);
    assert_int_equal(f.asks[1]->kind, MO_ASK_ROOTS);
    assert_int_equal(f.asks[0]->call, mo_call_number(k));
    f.peers[0].rules = complete;
    mo_ask_answer(f.asks[1], MO_SPAN("{\"roots\":[]}"));
    fix_settle(&f);
    assert_int_equal(f.dones, 0);
    mo_ask_answer(f.asks[0], MO_SPAN("{\"action\":\"decline\"}"));
    assert_true(mo_loop_until(f.l, is_done, &f, LONG));
    assert_true(peer_saw(&f.peers[0],
                         "\"id\":3,\"method\":\"tools/call\",\"params\":{"
                         "\"name\":\"t\",\"n\":1.50,\"_meta\":"));
    assert_true(peer_saw(&f.peers[0],
                         "\"inputResponses\":{\"r\":{\"roots\":[]},"
                         "\"k\\u0031\":{\"action\":\"decline\"}},"
                         "\"requestState\":\"\\u0041 b\"}}\n"));
    assert_true(mo_span_is(mo_buf_view(&f.result),
                           "{\"resultType\":\"complete\",\"v\":1}"));
    fix_fini(&f);
    assert_int_equal(f.dones, 1);
}

/* Rows: what the one tools/call is answered with; what the caller hears. */
static void test_input_rows(void **state)
{
    static const struct {
        const char *name;
        struct rule rules[3];
        const char *method;
        int err;     /* of the call; 0: result */
        size_t asks; /* handed up */
    } rows[] = {
        {"for ever",
         {DISCOVER,
          REPLY("tools/call", NEEDS(",\"inputRequests\":{\"r\":{\"method\":"
                                    "\"roots/list\"}}",
                                    "")),
          END},
         "tools/call",
         MO_EPROTO,
         MO_CONN_ROUNDS_MAX},
        {"state only, for ever",
         {DISCOVER, REPLY("tools/call", NEEDS(",\"requestState\":\"s\"", "")),
          END},
         "tools/call",
         MO_EPROTO,
         0},
        {"nothing asked",
         {DISCOVER, REPLY("tools/call", NEEDS("", "")), END},
         "tools/call",
         MO_EPROTO,
         0},
        {"not offered",
         {DISCOVER,
          REPLY("tools/call", NEEDS(",\"inputRequests\":{\"r\":{\"method\":"
                                    "\"roots/list\"},\"x\":{\"method\":"
                                    "\"ping\"}}",
                                    "")),
          END},
         "tools/call",
         MO_EPROTO,
         0},
        {"a page that is none",
         {DISCOVER,
          REPLY("tools/call", NEEDS(",\"inputRequests\":{\"r\":{\"method\":"
                                    "\"elicitation/create\",\"params\":" URL(
                                        "data:text/html,x") "}}",
                                    "")),
          END},
         "tools/call",
         MO_EPROTO,
         0},
        {"an array",
         {DISCOVER,
          REPLY("tools/call",
                NEEDS(",\"inputRequests\":[{\"method\":\"roots/list\"}]", "")),
          END},
         "tools/call",
         MO_EPROTO,
         0},
        {"where it is not allowed",
         {DISCOVER,
          REPLY("tools/list", NEEDS(",\"inputRequests\":{\"r\":{\"method\":"
                                    "\"roots/list\"}}",
                                    "")),
          END},
         "tools/list",
         MO_EPROTO,
         0},
        {"unknown resultType",
         {DISCOVER,
          REPLY("tools/call", "\"result\":{\"resultType\":\"maybe\"}"), END},
         "tools/call",
         MO_EPROTO,
         0},
        {"a task nobody asked for",
         {DISCOVER, REPLY("tools/call", "\"result\":{\"resultType\":\"task\"}"),
          END},
         "tools/call",
         MO_EPROTO,
         0},
        {"no resultType: complete",
         {DISCOVER, REPLY("tools/call", "\"result\":{}"), END},
         "tools/call",
         0,
         0},
        {"result no object",
         {DISCOVER, REPLY("tools/call", "\"result\":[]"), END},
         "tools/call",
         MO_EPROTO,
         0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct fix f;

        fix_init(&f, rows[i].rules);
        f.on_ask = answer_all;
        fix_open(&f, modern_able());
        assert_non_null(fix_call(&f, rows[i].method, "{}"));
        assert_true(mo_loop_until(f.l, is_done, &f, LONG));
        if (f.err.code != rows[i].err || f.nasks != rows[i].asks)
            fail_msg("row '%s': %d '%s', %zu asks", rows[i].name, f.err.code,
                     f.err.msg, f.nasks);
        fix_fini(&f);
        check_row(rows[i].name, f.dones == 1);
    }
}

static void test_input_refused(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f, asking);
    fix_open(&f, modern_able());
    assert_non_null(fix_call(&f, "tools/call", "{}"));
    fix_settle(&f);
    mo_ask_refuse(f.asks[0], -1, "no");
    assert_int_equal(f.dones, 0);
    assert_true(mo_loop_until(f.l, is_done, &f, LONG));
    assert_int_equal(f.err.code, MO_EPOLICY);
    assert_int_equal(f.gone, 1); /* the other one */
    mo_ask_answer(f.asks[1], MO_SPAN("{}"));
    fix_fini(&f);
}

static void test_input_cancelled(void **state)
{
    struct mo_call *k;
    struct fix f;

    (void)state;
    fix_init(&f, asking);
    fix_open(&f, modern_able());
    k = fix_call(&f, "tools/call", "{}");
    fix_settle(&f);
    assert_int_equal(f.nasks, 2);
    mo_call_cancel(k, NULL);
    assert_true(mo_loop_until(f.l, is_done, &f, LONG));
    assert_int_equal(f.err.code, MO_ECANCELED);
    assert_int_equal(f.gone, 2);
    mo_ask_answer(f.asks[0], MO_SPAN("{}"));
    mo_ask_answer(f.asks[1], MO_SPAN("{}"));
    fix_settle(&f);
    /* nothing was in flight: nothing to cancel at the server */
    assert_false(peer_saw(&f.peers[0], "notifications/cancelled"));
    assert_false(peer_saw(&f.peers[0], "inputResponses"));
    fix_fini(&f);
}

static void close_in_ask(struct fix *f, struct mo_ask *a)
{
    f->asks[f->nasks++] = a;
    mo_conn_close(f->c, NULL);
}

/* The owner pulls the plug inside the callback. */
static void test_close_in_ask(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f, asking);
    f.on_ask = close_in_ask;
    fix_open(&f, modern_able());
    assert_non_null(fix_call(&f, "tools/call", "{}"));
    assert_true(mo_loop_until(f.l, is_closed, &f, LONG));
    assert_int_equal(f.dones, 1);
    for (size_t i = 0; i < f.nasks; i++)
        mo_ask_answer(f.asks[i], MO_SPAN("{}"));
    fix_fini(&f);
}

/* --- pages --------------------------------------------------------------- */

static void pages_done(void *ctx, struct mo_json items,
                       const struct mo_reply *r)
{
    struct fix *f = ctx;

    f->dones++;
    mo_err_clear(&f->err);
    if (r->err)
        f->err = *r->err;
    f->code = r->code;
    mo_buf_reset(&f->result);
    mo_buf_span(&f->result, mo_json_text(items));
}

/* Pages by cursor: the script answers with what follows it. */
static void test_pages(void **state)
{
    static const struct {
        const char *name;
        const char *page[4];
        unsigned max_pages;
        size_t max_bytes;
        int err;
        const char *want;
    } rows[] = {
        {"one", {"{\"tools\":[{\"a\":1.0}]}"}, 0, 0, 0, "[{\"a\":1.0}]"},
        {"none", {"{\"tools\":[]}"}, 0, 0, 0, "[]"},
        {"three",
         {"{\"tools\":[1],\"nextCursor\":\"x\"}",
          "{\"tools\":[],\"nextCursor\":\"y\"}", "{\"tools\":[2,3]}"},
         0,
         0,
         0,
         "[1,2,3]"},
        {"same cursor twice",
         {"{\"tools\":[1],\"nextCursor\":\"x\"}",
          "{\"tools\":[1],\"nextCursor\":\"x\"}"},
         0,
         0,
         MO_EPROTO,
         ""},
        {"too many pages",
         {"{\"tools\":[1],\"nextCursor\":\"x\"}",
          "{\"tools\":[1],\"nextCursor\":\"y\"}"},
         2,
         0,
         MO_EPROTO,
         ""},
        {"too many bytes",
         {"{\"tools\":[\"0123456789\"]}"},
         0,
         8,
         MO_ETOOBIG,
         ""},
        {"no list", {"{}"}, 0, 0, MO_EPROTO, ""},
        {"cursor is a number",
         {"{\"tools\":[],\"nextCursor\":1}"},
         0,
         0,
         MO_EPROTO,
         ""},
        {"null cursor ends",
         {"{\"tools\":[],\"nextCursor\":null}"},
         0,
         0,
         0,
         "[]"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_pages_opts o = {
            .method = "tools/list",
            .key = "tools",
            .max_pages = rows[i].max_pages,
            .max_bytes = rows[i].max_bytes,
            .done = pages_done,
        };
        struct rule rules[] = {{"tools/list", NULL}, END};
        struct mo_pages *p;
        char text[256];
        struct mo_err e;
        struct fix f;

        fix_init(&f, legacy);
        fix_open(&f, plain);
        f.peers[0].rules = rules;
        o.ctx = &f;
        assert_int_equal(mo_pages_start(f.c, &o, &p, &e), 0);
        for (size_t n = 0; n < 4 && rows[i].page[n]; n++) {
            fix_settle(&f);
            (void)snprintf(text, sizeof(text),
                           "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":%s}",
                           rows[i].page[n]);
            peer_say(&f.peers[0], mo_span_cstr(text));
        }
        assert_true(mo_loop_until(f.l, is_done, &f, LONG));
        check_row(rows[i].name, f.err.code == rows[i].err);
        check_row(rows[i].name,
                  mo_span_is(mo_buf_view(&f.result), rows[i].want));
        fix_fini(&f);
        check_row(rows[i].name, f.dones == 1);
    }
}

/* --- memory -------------------------------------------------------------- */

static bool call_is_over(void *ctx)
{
    struct fix *f = ctx;

    return f->dones || f->closed;
}

/* Open, ask, be asked, end; whatever fails, all callbacks keep their word. */
static void life(void *ctx)
{
    struct mo_pages_opts po = {
        .method = "tools/list", .key = "tools", .done = pages_done};
    struct mo_conn_opts o = modern_able();
    struct mo_call *k = NULL;
    struct mo_pages *p = NULL;
    struct mo_err e;
    struct fix f;

    memset(&f, 0, sizeof(f));
    mo_buf_init(&f.result, 8 << 20);
    f.rules[0] = ctx;
    f.l = mo_loop_new(NULL, &e);
    if (!f.l)
        return;
    f.on_ask = answer_all;
    o.mode = MO_CONN_AUTO;
    o.probe_ms = 50;
    o.open_ms = 50;
    f.rules[1] = legacy;
    po.ctx = &f;
    if (fix_try_open(&f, o) == 0 && f.opened && f.c) {
        struct mo_call_opts co = {
            .idle_ms = 50, .hard_ms = 50, .done = fix_done, .ctx = &f};

        k = mo_conn_request(f.c, "tools/call", MO_SPAN("{\"a\":\n1}"), &co, &e);
        if (k)
            assert_true(mo_loop_until(f.l, call_is_over, &f, LONG));
        po.page_ms = 50;
        f.dones = 0;
        if (f.c && mo_pages_start(f.c, &po, &p, &e) == 0)
            assert_true(mo_loop_until(f.l, call_is_over, &f, LONG));
    }
    fix_fini(&f);
    assert_int_equal(f.closed, f.closed ? 1 : 0);
}

static void test_no_memory(void **state)
{
    static const struct rule rules[] = {
        DISCOVER,
        REPLY("tools/call", NEEDS(",\"inputRequests\":{\"r\":{\"method\":"
                                  "\"roots/list\"}}",
                                  ",\"requestState\":\"s\"")),
        REPLY("tools/list", "\"result\":{\"tools\":[1]}"),
        END,
    };

    (void)state;
    torture(life, (void *)(uintptr_t)rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_revisions),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_close_in_probe),
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_no_server),
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_meta),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_id_games),
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_asks),
        cmocka_unit_test(test_ask_url_too_old),
        cmocka_unit_test(test_ask_cancelled),
        cmocka_unit_test(test_ask_flood),
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_input_rows),
        cmocka_unit_test(test_input_refused),
        cmocka_unit_test(test_input_cancelled),
        cmocka_unit_test(test_close_in_ask),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
