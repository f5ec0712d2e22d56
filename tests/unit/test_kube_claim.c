/* Claims: what is asked for, and why one has no volume, in plain words. */
#include "mo_test.h"

#include "kube/claim.h"

static const struct mo_pod_pair labels[] = {{"mo.role", "files"}};
static const struct mo_pod_pair notes[] = {{"mo.session", "a\"b"}};

static const struct mo_claim sample = {.name = "mo-files-1",
                                       .labels = labels,
                                       .nlabels = 1,
                                       .annotations = notes,
                                       .nannotations = 1,
                                       .storage_class = "fast",
                                       .size = ((uint64_t)8 << 20) + 1};

static void what_is_asked_for(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MO_CLAIM_BODY_MAX};
    struct mo_claim plain = sample;

    (void)state;
    assert_int_equal(mo_claim_write(&sample, &b), 0);
    assert_string_equal(
        mo_buf_cstr(&b),
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\","
        "\"metadata\":{\"name\":\"mo-files-1\","
        "\"labels\":{\"mo.role\":\"files\"},"
        "\"annotations\":{\"mo.session\":\"a\\\"b\"}},"
        "\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
        "\"storageClassName\":\"fast\","
        "\"resources\":{\"requests\":{\"storage\":\"9Mi\"}}}}");
    plain.storage_class = "";
    mo_buf_reset(&b);
    assert_int_equal(mo_claim_write(&plain, &b), 0);
    assert_null(strstr(mo_buf_cstr(&b), "storageClassName"));
}

#define EVENT(type, reason, time, message)                                     \
    "{\"type\":\"" type "\",\"reason\":\"" reason                              \
    "\",\"lastTimestamp\":\"" time "\",\"message\":\"" message "\"}"

#define UNBOUND                                                                \
    "Unschedulable: 0/2 nodes are available: 2 pod has unbound immediate "     \
    "PersistentVolumeClaims."

static const struct {
    const char *name, *events, *placing;
    bool hopeless;
    const char *why; /* a part of it */
} cases[] = {
    {"nothing is known", NULL, "", false, "no reason is known"},
    {"no right to read events", NULL, UNBOUND, false,
     "it has no volume yet (Unschedulable: 0/2"},
    {"no default class",
     EVENT("Normal", "FailedBinding", "2026-01-01T00:00:00Z",
           "no persistent volumes available for this claim and no storage "
           "class is set"),
     UNBOUND, true, "no default StorageClass"},
    {"no such class",
     EVENT("Warning", "ProvisioningFailed", "2026-01-01T00:00:00Z",
           "storageclass.storage.k8s.io \\\"x\\\" not found"),
     UNBOUND, true, "no such StorageClass, and no free volume that names it"},
    {"a class without a provisioner",
     EVENT("Warning", "ProvisioningFailed", "2026-01-01T00:00:00Z",
           "no volume plugin matched name: kubernetes.io/no-provisioner"),
     UNBOUND, true, "makes no volumes"},
    {"the provisioner's own words",
     EVENT("Warning", "ProvisioningFailed", "2026-01-01T00:00:00Z",
           "rpc error: out of disk"),
     UNBOUND, true, "rpc error: out of disk"},
    {"it is being made",
     EVENT("Normal", "ExternalProvisioning", "2026-01-01T00:00:00Z",
           "waiting for a volume to be created"),
     UNBOUND, false, "it has no volume yet"},
    {"the newest counts",
     EVENT("Warning", "FailedMount", "2026-01-01T00:00:09Z",
           "second") "," EVENT("Warning", "FailedMount", "2026-01-01T00:00:01Z",
                               "first"),
     "", false, "second"},
    {"its node is away", NULL,
     "Unschedulable: 0/2 nodes are available: 1 node(s) had volume node "
     "affinity conflict.",
     false, "its volume belongs to a node that cannot take the pod (Unsch"},
    {"no node has one", NULL,
     "0/2 nodes are available: 2 node(s) didn't find available persistent "
     "volumes to bind.",
     false, "no node has a free volume"},
};

static void causes_in_plain_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        mo_autobuf struct mo_buf b = {.max = 4096};
        struct mo_json_doc doc = {.root = {NULL, 0}};
        struct mo_claim_trouble t;

        if (cases[i].events) {
            assert_int_equal(
                mo_buf_printf(&b, "{\"items\":[%s]}", cases[i].events), 0);
            assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
        }
        mo_claim_explain(doc.root, cases[i].placing, &t);
        if (t.hopeless != cases[i].hopeless || !strstr(t.why, cases[i].why))
            fail_msg("%s: %d %s", cases[i].name, t.hopeless, t.why);
    }
}

static void other_reasons_are_not_the_claims(void **state)
{
    (void)state;
    assert_true(mo_claim_is_meant(UNBOUND));
    assert_false(mo_claim_is_meant("Unschedulable: 0/2 nodes are available: 2 "
                                   "Insufficient cpu."));
    assert_false(mo_claim_is_meant(""));
}

static void write_claim(void *ctx)
{
    mo_autobuf struct mo_buf b = {.max = MO_CLAIM_BODY_MAX};

    (void)ctx;
    (void)mo_claim_write(&sample, &b);
}

static void memory_may_end(void **state)
{
    (void)state;
    torture(write_claim, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for),
        cmocka_unit_test(causes_in_plain_words),
        cmocka_unit_test(other_reasons_are_not_the_claims),
        cmocka_unit_test(memory_may_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
