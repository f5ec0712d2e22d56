/* Metrics by OTLP: how they are written, in how many requests they leave, and
 * what a collector that takes or refuses them costs. */
#include <math.h>

#include "mo_peer.h"
#include "trace/metrics.h"
#include "trace/otlp_metrics.h"

#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#define NO  "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"

static const double bounds[] = {0.5, 1};
static const struct mo_prom_desc calls = {.name = "mo_calls_total",
                                          .help = "calls",
                                          .kind = MO_PROM_COUNTER,
                                          .labels = {"tool"}};
static const struct mo_prom_desc size = {
    .name = "mo_size_bytes", .help = "size", .kind = MO_PROM_GAUGE};
static const struct mo_prom_desc took = {.name = "mo_took_seconds",
                                         .help = "took",
                                         .kind = MO_PROM_HISTOGRAM,
                                         .buckets = bounds,
                                         .nbuckets = MO_COUNT(bounds)};

static struct mo_prom_series *
add(struct mo_prom *p, const struct mo_prom_desc *d, const char *label)
{
    struct mo_span v = mo_span_cstr(label);
    struct mo_prom_series *s = mo_prom_with(mo_prom_add(p, d, NULL), &v);

    assert_non_null(s);
    return s;
}

static struct mo_prom *registry(void)
{
    struct mo_prom *p = mo_prom_new();

    mo_prom_count(add(p, &calls, "a \"b\""), 3);
    mo_prom_count(add(p, &calls, "c"), 4);
    mo_prom_set(add(p, &size, ""), 1.5);
    for (int i = 0; i < 4; i++)
        mo_prom_observe(add(p, &took, ""), i == 3 ? 7 : 0.25);
    return p;
}

static unsigned write_json(struct mo_prom *p, size_t *from, unsigned most,
                           struct mo_buf *b)
{
    struct mo_buf none = {.max = 1};
    const struct mo_otlp_metrics x = {
        .encoding = MO_OTLP_JSON, .resource = &none, .began = 5, .now = 9};
    unsigned n = mo_otlp_metrics(&x, p, from, most, b);

    assert_int_equal(mo_buf_err(b), 0);
    return n;
}

static void has(struct mo_buf *b, const char *what)
{
    if (!strstr(mo_buf_cstr(b), what))
        fail_msg("%s is not in %s", what, mo_buf_cstr(b));
}

static void test_kinds(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 65536};
    struct mo_prom *p = registry();
    size_t from = 0;

    (void)state;
    assert_int_equal(write_json(p, &from, 100, &b), 4);
    assert_int_equal(from, 3);
    has(&b, "{\"name\":\"mo_calls_total\",\"description\":\"calls\",\"sum\":{"
            "\"dataPoints\":[{\"startTimeUnixNano\":\"5\",\"timeUnixNano\":"
            "\"9\",\"asInt\":\"3\",\"attributes\":[{\"key\":\"tool\","
            "\"value\":{\"stringValue\":\"a \\\"b\\\"\"}}]},");
    has(&b, "\"aggregationTemporality\":2,\"isMonotonic\":true}}");
    has(&b, "{\"name\":\"mo_size_bytes\",\"description\":\"size\",\"unit\":"
            "\"By\",\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"9\","
            "\"asDouble\":1.5,\"attributes\":[]}]}}");
    has(&b, "{\"name\":\"mo_took_seconds\",\"description\":\"took\",\"unit\":"
            "\"s\",\"histogram\":{\"dataPoints\":[{\"startTimeUnixNano\":\"5\""
            ",\"timeUnixNano\":\"9\",\"count\":\"4\",\"sum\":7.75,"
            "\"bucketCounts\":[\"3\",\"0\",\"1\"],\"explicitBounds\":[0.5,1],"
            "\"attributes\":[]}],\"aggregationTemporality\":2}}");
    mo_prom_free(p);
}

static unsigned write_part(struct mo_prom *p, size_t *from)
{
    mo_autobuf struct mo_buf b = {.max = 65536};

    return write_json(p, from, 1, &b);
}

/* A request ends at a metric. Metrics without a series are left out, and so is
 * a number that JSON cannot say. */
static void test_parts(void **state)
{
    static const unsigned want[] = {2, 1, 1};
    struct mo_prom *p = registry();
    struct mo_prom_series *gauge = add(p, &size, "");
    size_t from = 0;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(want); i++) {
        assert_int_equal(write_part(p, &from), want[i]);
        assert_int_equal(from, i + 1);
    }
    assert_null(mo_prom_at(p, from));
    mo_prom_set(gauge, INFINITY);
    from = 1;
    assert_int_equal(write_part(p, &from), 1);
    assert_int_equal(from, 3);
    mo_prom_free(p);
}

/* --- the exporter -------------------------------------------------------- */

struct rig {
    struct mo_loop *l;
    struct peer p;
    struct mo_prom *prom;
    struct mo_metrics *m;
    char url[PATH_LEN + 32];
};

static void rig_up(struct rig *r, const char *reply, unsigned interval_ms)
{
    struct mo_metrics_opts o = {
        .to = {.encoding = MO_OTLP_JSON, .service = "here", .instance = "i-1"},
        .interval_ms = interval_ms};
    struct mo_err e;

    *r = (struct rig){.p = {.reply = mo_span_cstr(reply)}};
    r->l = loop_new();
    r->prom = registry();
    peer_open(&r->p, r->l, "127.0.0.1:0");
    (void)snprintf(r->url, sizeof(r->url), "http://%s/base/", r->p.addr);
    o.to.loop = r->l;
    o.to.endpoint = r->url;
    assert_int_equal(mo_metrics_open(&o, &r->m, &e), 0);
}

static void rig_down(struct rig *r)
{
    bool gone = false;

    mo_metrics_stop(r->m);
    mo_prom_free(r->prom); /* the last values were taken */
    mo_metrics_close(r->m, set_flag, &gone);
    assert_false(gone);
    wait_for(r->l, flag_set, &gone);
}

static void rig_end(struct rig *r)
{
    peer_close(&r->p);
    mo_loop_run(r->l);
    mo_loop_free(r->l);
}

static bool is_taken(void *ctx)
{
    return mo_metrics_stats(((struct rig *)ctx)->m).sent > 0;
}

static bool is_dropped(void *ctx)
{
    return mo_metrics_stats(((struct rig *)ctx)->m).dropped >= 8;
}

static void test_interval(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, OK2, 10);
    mo_metrics_start(r.m, r.prom);
    wait_for(r.l, is_taken, &r);
    assert_int_equal(mo_metrics_stats(r.m).sent % 4, 0);
    has(&r.p.last, "POST /base/v1/metrics HTTP/1.1");
    has(&r.p.last, "{\"key\":\"service.instance.id\",\"value\":{"
                   "\"stringValue\":\"i-1\"}}");
    assert_int_equal(mo_metrics_stats(r.m).dropped, 0);
    rig_down(&r);
    rig_end(&r);
}

/* One request at the end has the last values. */
static void test_last(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, OK2, 3600 * 1000);
    mo_metrics_start(r.m, r.prom);
    mo_prom_count(add(r.prom, &calls, "late"), 77);
    rig_down(&r);
    assert_int_equal(r.p.requests, 1);
    has(&r.p.last, "\"asInt\":\"77\"");
    rig_end(&r);
}

static void test_never_started(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, OK2, 10);
    rig_down(&r);
    assert_int_equal(r.p.requests, 0);
    rig_end(&r);
}

/* Values that are refused are dropped; the next interval tries again. */
static void test_refused(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, NO, 10);
    mo_metrics_start(r.m, r.prom);
    wait_for(r.l, is_dropped, &r);
    assert_int_equal(mo_metrics_stats(r.m).sent, 0);
    assert_true(mo_metrics_stats(r.m).failed >= 2);
    rig_down(&r);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),         cmocka_unit_test(test_parts),
        cmocka_unit_test(test_interval),      cmocka_unit_test(test_last),
        cmocka_unit_test(test_never_started), cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
