/* What a pod is promised, every field of the cluster's account altered, one at
 * a time, and the states of pods. */
#include "mo_test.h"

#include "kube/pod.h"

static const char *const argv[] = {"/toolbox", "$HOME", NULL};
static const char *const env[] = {"HOME=/workspace", "V=a$(B)", "E=", NULL};
static const struct mo_pod_pair labels[] = {{"mo.role", "box"}};
static const struct mo_pod_pair notes[] = {{"mo.session", "a\"b"}};

static const struct mo_pod sample = {
    .name = "mo-box-1",
    .image = "i:1",
    .argv = argv,
    .env = env,
    .workdir = "/workspace",
    .uid = 100001,
    .labels = labels,
    .annotations = notes,
    .nlabels = 1,
    .nannotations = 1,
    .policy_uid = "u-1",
    .runtime_class = "gvisor",
    .node_selector = "{\"disk\":\"ssd\"}",
    .pull_secret = "s",
    .memory = (uint64_t)1 << 30,
    .workspace = 1000000,
    .tmp = 65536,
    .cpu_milli = 1000,
};

static struct mo_json parse(struct mo_buf *b)
{
    struct mo_json_doc doc;

    assert_int_equal(mo_json_parse(mo_buf_view(b), 0, &doc, NULL), 0);
    return doc.root;
}

static void write_sample(struct mo_buf *b)
{
    mo_buf_init(b, MO_POD_BODY_MAX);
    assert_int_equal(mo_pod_write(&sample, b), 0);
}

static void what_was_asked_agrees(void **state)
{
    struct mo_buf b;
    struct mo_err e = {0};

    (void)state;
    write_sample(&b);
    assert_non_null(strstr(mo_buf_cstr(&b), "\"value\":\"a$$(B)\""));
    assert_non_null(strstr(mo_buf_cstr(&b), "[\"/toolbox\",\"$$HOME\"]"));
    if (mo_pod_compare(&sample, parse(&b), &e) < 0 ||
        mo_pod_compare_fixed(parse(&b), false, false, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    mo_buf_fini(&b);
}

/* --- with a network ------------------------------------------------------- */

static void a_network_is_compared(void **state)
{
    static const struct {
        const char *from, *to, *key;
    } rows[] = {
        {"[\"/mo-box\",\"--pause\"]", "[\"/bin/sh\"]", "command"},
        {"\"name\":\"net\"", "\"name\":\"net\",\"lifecycle\":{\"a\":1}",
         "lifecycle"},
        {"\"name\":\"net\"", "\"name\":\"other\"", "name"},
        {"_port_start\",\"value\":\"0\"}",
         "_port_start\",\"value\":\"0\"},{\"name\":\"kernel.x\"}", "sysctls"},
        {"\"96Mi\"", "\"9600Mi\"", "resources"},
        {"\"readOnly\":true}]", "\"readOnly\":false}]", "volumeMounts"},
        {"{\"name\":\"net\"", "{\"name\":\"x\"},{\"name\":\"net\"",
         "containers"},
    };
    struct mo_pod with = sample;
    mo_autobuf struct mo_buf b = {.max = MO_POD_BODY_MAX};
    struct mo_err e = {0};

    (void)state;
    with.net_image = "ours:1";
    with.net_files = true;
    assert_int_equal(mo_pod_write(&with, &b), 0);
    if (mo_pod_compare(&with, parse(&b), &e) < 0 ||
        mo_pod_compare_fixed(parse(&b), true, true, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(mo_pod_compare(&sample, parse(&b), &e), MO_EPOLICY);
    assert_int_equal(mo_pod_compare_fixed(parse(&b), false, false, NULL, &e),
                     MO_EPOLICY);
    assert_int_equal(mo_pod_compare_fixed(parse(&b), true, false, NULL, &e),
                     MO_EPOLICY);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf other = {.max = MO_POD_BODY_MAX};
        const char *at = strstr(mo_buf_cstr(&b), rows[i].from);

        if (!at)
            fail_msg("%s is not in it", rows[i].from);
        (void)mo_buf_put(&other, b.p, (size_t)(at - b.p));
        (void)mo_buf_puts(&other, rows[i].to);
        (void)mo_buf_puts(&other, at + strlen(rows[i].from));
        if (mo_pod_compare(&with, parse(&other), &e) != MO_EPOLICY ||
            mo_pod_compare_fixed(parse(&other), true, true, NULL, &e) !=
                MO_EPOLICY ||
            !strstr(e.msg, rows[i].key))
            fail_msg("%zu %s: %s", i, rows[i].key, e.msg);
    }
}

/* --- with a claim ----------------------------------------------------------
 */

static void a_claim_is_compared(void **state)
{
    static const struct {
        const char *from, *to, *key;
    } rows[] = {
        {"\"claimName\":\"c-1\"", "\"claimName\":\"c-2\"", "volumes"},
        {"\"persistentVolumeClaim\":{\"claimName\":\"c-1\"}", "\"emptyDir\":{}",
         "volumes"},
        {"\"persistentVolumeClaim\":{\"claimName\":\"c-1\"}",
         "\"hostPath\":{\"path\":\"/\"}", "volumes"},
        {"{\"name\":\"tmp\",\"emptyDir\":{\"medium\":\"Memory\"",
         "{\"name\":\"tmp\",\"persistentVolumeClaim\":{\"claimName\":"
         "\"c-1\"",
         "volumes"},
        {"\"OnRootMismatch\"", "\"Always\"", "fsGroupChangePolicy"},
    };
    struct mo_pod with = sample;
    mo_autobuf struct mo_buf b = {.max = MO_POD_BODY_MAX};
    struct mo_err e = {0};

    (void)state;
    with.claim = "c-1";
    assert_int_equal(mo_pod_write(&with, &b), 0);
    if (mo_pod_compare(&with, parse(&b), &e) < 0 ||
        mo_pod_compare_fixed(parse(&b), false, false, "c-1", &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(mo_pod_compare(&sample, parse(&b), &e), MO_EPOLICY);
    assert_int_equal(mo_pod_compare_fixed(parse(&b), false, false, NULL, &e),
                     MO_EPOLICY);
    assert_int_equal(mo_pod_compare_fixed(parse(&b), false, false, "c-2", &e),
                     MO_EPOLICY);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf other = {.max = MO_POD_BODY_MAX};
        const char *at = strstr(mo_buf_cstr(&b), rows[i].from);

        if (!at)
            fail_msg("%s is not in it", rows[i].from);
        (void)mo_buf_put(&other, b.p, (size_t)(at - b.p));
        (void)mo_buf_puts(&other, rows[i].to);
        (void)mo_buf_puts(&other, at + strlen(rows[i].from));
        if (mo_pod_compare(&with, parse(&other), &e) != MO_EPOLICY ||
            mo_pod_compare_fixed(parse(&other), false, false, "c-1", &e) !=
                MO_EPOLICY ||
            !strstr(e.msg, rows[i].key))
            fail_msg("%zu %s: %s", i, rows[i].key, e.msg);
    }
}

/* The body with one text replaced. */
static void replace(struct mo_buf *out, const char *from, const char *to)
{
    struct mo_buf b;
    const char *at;

    write_sample(&b);
    at = strstr(mo_buf_cstr(&b), from);
    if (!at)
        fail_msg("%s is not in it", from);
    mo_buf_init(out, MO_POD_BODY_MAX);
    (void)mo_buf_put(out, b.p, (size_t)(at - b.p));
    (void)mo_buf_puts(out, to);
    (void)mo_buf_puts(out, at + strlen(from));
    mo_buf_fini(&b);
}

static void changes_are_found(void **state)
{
    /* fixed: also without the request */
    static const struct {
        const char *from, *to, *key;
        bool fixed;
    } rows[] = {
        {"\"restartPolicy\":\"Never\"", "\"restartPolicy\":\"Always\"",
         "restartPolicy", true},
        {"\"automountServiceAccountToken\":false",
         "\"automountServiceAccountToken\":true",
         "automountServiceAccountToken", true},
        {"\"enableServiceLinks\":false", "\"enableServiceLinks\":true",
         "enableServiceLinks", true},
        {"\"dnsPolicy\":\"None\"", "\"dnsPolicy\":\"ClusterFirst\"",
         "dnsPolicy", true},
        {"[\"127.0.0.1\"]", "[\"10.96.0.10\"]", "dnsConfig", true},
        {"\"runAsNonRoot\":true", "\"runAsNonRoot\":false", "runAsNonRoot",
         true},
        {"\"runAsUser\":100001", "\"runAsUser\":0", "runAsUser", false},
        {"RuntimeDefault", "Unconfined", "seccompProfile", true},
        {"\"privileged\":false", "\"privileged\":true", "privileged", true},
        {"\"allowPrivilegeEscalation\":false",
         "\"allowPrivilegeEscalation\":true", "allowPrivilegeEscalation", true},
        {"\"readOnlyRootFilesystem\":true", "\"readOnlyRootFilesystem\":false",
         "readOnlyRootFilesystem", true},
        {"{\"drop\":[\"ALL\"]}", "{\"drop\":[]}", "capabilities", true},
        {"{\"drop\":[\"ALL\"]}", "{\"drop\":[\"ALL\"],\"add\":[\"KILL\"]}",
         "capabilities", true},
        {"\"hostname\":\"box\"", "\"hostname\":\"box\",\"hostNetwork\":true",
         "hostNetwork", true},
        {"\"hostname\":\"box\"", "\"hostname\":\"box\",\"hostPID\":true",
         "hostPID", true},
        {"\"hostname\":\"box\"",
         "\"hostname\":\"box\",\"initContainers\":[{\"name\":\"x\"}]",
         "initContainers", true},
        {"\"containers\":[", "\"containers\":[{\"name\":\"proxy\"},",
         "containers", true},
        {"\"privileged\":false",
         "\"privileged\":false,\"runAsUser\":0,"
         "\"seccompProfile\":{\"type\":\"x\"}",
         "", true},
        {"\"emptyDir\":{\"medium\":\"Memory\",\"sizeLimit\":\"1000000\"}",
         "\"hostPath\":{\"path\":\"/\"}", "volumes", true},
        {"\"mountPath\":\"/tmp\"", "\"mountPath\":\"/etc\"", "volumeMounts",
         true},
        {"\"image\":\"i:1\"", "\"image\":\"i:2\"", "image", false},
        {"[\"/toolbox\",\"$$HOME\"]", "[\"/toolbox\"]", "command", false},
        {"\"memory\":\"1024Mi\"", "\"memory\":\"2Gi\"", "resources", false},
        {"\"value\":\"\"", "\"value\":\"x\"", "env", false},
        {"\"gvisor\"", "null", "runtimeClassName", false},
        {"\"disk\":\"ssd\"", "\"disk\":\"hdd\"", "nodeSelector", false},
        {"\"mo.role\":\"box\"", "\"mo.role\":\"x\"", "labels", false},
        {"\"u-1\"", "\"u-2\"", "ownerReferences", false},
        {"\"stdinOnce\":false", "\"stdinOnce\":true", "stdinOnce", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;
        struct mo_err e = {0};

        replace(&b, rows[i].from, rows[i].to);
        if (mo_pod_compare(&sample, parse(&b), &e) != MO_EPOLICY ||
            !strstr(e.msg, rows[i].key))
            fail_msg("%zu %s: %s", i, rows[i].key, e.msg);
        if ((mo_pod_compare_fixed(parse(&b), false, false, NULL, NULL) < 0) !=
            rows[i].fixed)
            fail_msg("%zu %s: fixed", i, rows[i].key);
        mo_buf_fini(&b);
    }
}

/* What a cluster may add or write in another way. */
static void defaults_agree(void **state)
{
    static const char *const rows[][2] = {
        {"\"memory\":\"1024Mi\"", "\"memory\":\"1Gi\""},
        {"\"cpu\":\"1000m\"", "\"cpu\":\"1\""},
        {"\"sizeLimit\":\"1000000\"", "\"sizeLimit\":\"1M\""},
        {"\"hostname\":\"box\"", "\"hostname\":\"box\",\"priority\":0,"
                                 "\"tolerations\":[{\"key\":\"x\"}]"},
        {"\"name\":\"box\"", "\"name\":\"box\",\"terminationMessagePath\":"
                             "\"/dev/x\""},
        {",\"value\":\"\"", ""},
        {"[{\"name\":\"s\"}]", "[{\"name\":\"t\"},{\"name\":\"s\"}]"},
        {"\"tty\":false,", ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;
        struct mo_err e = {0};

        replace(&b, rows[i][0], rows[i][1]);
        if (mo_pod_compare(&sample, parse(&b), &e) < 0)
            fail_msg("%zu: %s", i, e.msg);
        mo_buf_fini(&b);
    }
}

static void the_policy(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"spec\":{\"podSelector\":{},\"policyTypes\":[\"Ingress\"]}}",
        "{\"spec\":{\"podSelector\":{\"matchLabels\":{\"mo.role\":\"box\"}},"
        "\"policyTypes\":[\"Ingress\",\"Egress\"],\"egress\":[{}]}}",
        "{\"spec\":{\"podSelector\":{\"matchLabels\":{\"mo.role\":\"box\"}},"
        "\"policyTypes\":[\"Ingress\"]}}",
        "{\"spec\":{\"podSelector\":{\"matchLabels\":{\"mo.role\":\"box\","
        "\"a\":\"b\"}},\"policyTypes\":[\"Ingress\",\"Egress\"]}}",
    };
    mo_autobuf struct mo_buf b = {.max = 4096};

    (void)state;
    assert_int_equal(mo_pod_policy_write(&b), 0);
    assert_int_equal(mo_pod_policy_compare(parse(&b), NULL), 0);
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        (void)mo_buf_set(&b, mo_span_cstr(bad[i]));
        assert_int_equal(mo_pod_policy_compare(parse(&b), NULL), MO_EPOLICY);
    }
}

#define POD(status)                                                            \
    "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"},\"spec\":{\"nodeName\":"     \
    "\"n1\"},\"status\":" status "}"
#define STATE(phase, state)                                                    \
    POD("{\"phase\":\"" phase                                                  \
        "\",\"containerStatuses\":[{\"name\":\"box\",\"state\":" state "}]}")

static void states_are_read(void **state)
{
    static const struct {
        const char *text;
        struct mo_pod_state want;
    } rows[] = {
        {POD("{\"phase\":\"Pending\"}"), {.code = -1}},
        {POD("{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled"
             "\",\"status\":\"False\",\"reason\":\"Unschedulable\","
             "\"message\":\"0/2 nodes\"}]}"),
         {.code = -1, .why = "Unschedulable: 0/2 nodes"}},
        {STATE("Pending", "{\"waiting\":{\"reason\":\"ContainerCreating\"}}"),
         {.code = -1, .why = "ContainerCreating"}},
        {STATE("Pending", "{\"waiting\":{\"reason\":\"ErrImagePull\"}}"),
         {.code = -1, .why = "ErrImagePull"}},
        {STATE("Pending", "{\"waiting\":{\"reason\":\"ErrImageNeverPull\","
                          "\"message\":\"m\"}}"),
         {.code = -1, .hopeless = true, .why = "ErrImageNeverPull: m"}},
        {STATE("Running", "{\"running\":{}}"),
         {.phase = MO_POD_RUNNING, .code = -1}},
        {POD("{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
             "\"status\":\"False\"}],\"containerStatuses\":[{\"name\":\"box\","
             "\"state\":{"
             "\"running\":{}}}]}"),
         {.phase = MO_POD_RUNNING, .lost = true, .code = -1}},
        {STATE("Failed", "{\"terminated\":{\"exitCode\":7,\"reason\":"
                         "\"Error\"}}"),
         {.phase = MO_POD_ENDED, .code = 7}},
        {STATE("Succeeded", "{\"terminated\":{\"exitCode\":0}}"),
         {.phase = MO_POD_ENDED, .code = 0}},
        {STATE("Failed", "{\"terminated\":{\"exitCode\":137,\"reason\":"
                         "\"OOMKilled\"}}"),
         {.phase = MO_POD_ENDED, .oom = true, .code = 137}},
        {STATE("Failed", "{\"terminated\":{\"exitCode\":128,\"reason\":"
                         "\"StartError\",\"message\":\"no such file\"}}"),
         {.phase = MO_POD_ENDED,
          .never_ran = true,
          .code = 128,
          .why = "StartError: no such file"}},
        {POD("{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"The "
             "node was low on resource: memory.\"}"),
         {.phase = MO_POD_ENDED,
          .evicted = true,
          .code = -1,
          .why = "Evicted: The node was low on resource: memory."}},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 4096};
        const struct mo_pod_state *w = &rows[i].want;
        struct mo_pod_state s;

        (void)mo_buf_puts(&b, rows[i].text);
        assert_int_equal(mo_pod_read(parse(&b), &s, NULL), 0);
        assert_string_equal(s.name, "p");
        assert_string_equal(s.node, "n1");
        if (s.phase != w->phase || s.hopeless != w->hopeless ||
            s.lost != w->lost || s.evicted != w->evicted || s.oom != w->oom ||
            s.never_ran != w->never_ran || s.code != w->code ||
            strcmp(s.why, w->why) != 0)
            fail_msg("%zu: %d %s", i, s.code, s.why);
    }
}

static void no_pod_at_all(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 99};
    struct mo_pod_state s;

    (void)state;
    (void)mo_buf_puts(&b, "{\"metadata\":{\"name\":\"p\"}}");
    assert_int_equal(mo_pod_read(parse(&b), &s, NULL), MO_EPROTO);
    assert_int_equal(mo_pod_compare_fixed(parse(&b), false, false, NULL, NULL),
                     MO_EPOLICY);
}

static void torture_body(void *ctx)
{
    mo_autobuf struct mo_buf b = {.max = MO_POD_BODY_MAX};
    struct mo_json_doc doc;

    (void)ctx;
    if (mo_pod_write(&sample, &b) == 0 &&
        mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) == 0) {
        (void)mo_pod_compare(&sample, doc.root, NULL);
        (void)mo_pod_compare_fixed(doc.root, false, false, NULL, NULL);
    }
}

static void memory_may_fail(void **state)
{
    (void)state;
    torture(torture_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_asked_agrees),
        cmocka_unit_test(changes_are_found),
        cmocka_unit_test(a_network_is_compared),
        cmocka_unit_test(a_claim_is_compared),
        cmocka_unit_test(defaults_agree),
        cmocka_unit_test(the_policy),
        cmocka_unit_test(states_are_read),
        cmocka_unit_test(no_pod_at_all),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
