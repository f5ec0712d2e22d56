/* How a cluster is reached: kubeconfigs as kubectl and others write them, what
 * is refused, a pod's service account, and what plugins answer. */
#include "mo_test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "kube/access.h"
#include "kube/token.h"

#define HEAD   "apiVersion: v1\nkind: Config\npreferences: {}\n"
#define CURR   "current-context: one\n"
#define CTX    "contexts:\n- context:\n    cluster: c\n    user: u\n  name: one\n"
#define SERVER "clusters:\n- cluster:\n    server: https://10.0.0.1:6443\n"
#define NAMED  "  name: c\n"
#define TOKEN  "users:\n- name: u\n  user:\n    token: abc\n"

/* why NULL: accepted. */
static const struct {
    const char *name, *text, *why;
} rows[] = {
    {"a token", HEAD CURR CTX SERVER NAMED TOKEN, NULL},
    {"JSON",
     "{\"current-context\":\"one\",\"contexts\":[{\"name\":\"one\",\"context\":"
     "{\"cluster\":\"c\",\"user\":\"u\"}}],\"clusters\":[{\"name\":\"c\","
     "\"cluster\":{\"server\":\"https://h\"}}],\"users\":[{\"name\":\"u\","
     "\"user\":{\"token\":\"abc\"}}]}",
     NULL},
    {"an authority in the text",
     HEAD CURR CTX SERVER "    certificate-authority-data: Q0E=\n" NAMED TOKEN,
     NULL},
    {"verified after all",
     HEAD CURR CTX SERVER "    insecure-skip-tls-verify: false\n" NAMED TOKEN,
     NULL},
    {"no context", HEAD CTX SERVER NAMED TOKEN, "no current-context"},
    {"another context", HEAD "current-context: two\n" CTX SERVER NAMED TOKEN,
     "no context 'two'"},
    {"no cluster", HEAD CURR CTX TOKEN, "no cluster 'c'"},
    {"no user", HEAD CURR CTX SERVER NAMED, "no user 'u'"},
    {"no server", HEAD CURR CTX "clusters:\n- cluster: {}\n  name: c\n" TOKEN,
     "no 'server'"},
    {"not https",
     HEAD CURR CTX
     "clusters:\n- cluster:\n    server: http://h\n  name: c\n" TOKEN,
     "must be https://"},
    {"a path",
     HEAD CURR CTX
     "clusters:\n- cluster:\n    server: https://h/k8s/c\n  name: c\n" TOKEN,
     "a path is not supported"},
    {"unverified",
     HEAD CURR CTX SERVER "    insecure-skip-tls-verify: true\n" NAMED TOKEN,
     "insecure-skip-tls-verify"},
    {"a proxy", HEAD CURR CTX SERVER "    proxy-url: http://p\n" NAMED TOKEN,
     "proxy-url"},
    {"a bad authority",
     HEAD CURR CTX SERVER "    certificate-authority-data: '*'\n" NAMED TOKEN,
     "not base64"},
    {"no way to sign in",
     HEAD CURR CTX SERVER NAMED "users:\n- name: u\n  user: {}\n",
     "no certificate, token or exec plugin"},
    {"a password",
     HEAD CURR CTX SERVER NAMED "users:\n- name: u\n  user:\n    username: x\n",
     "no passwords"},
    {"an auth-provider",
     HEAD CURR CTX SERVER NAMED
     "users:\n- name: u\n  user:\n    auth-provider:\n      name: gcp\n",
     "use an exec plugin"},
    {"impersonation", HEAD CURR CTX SERVER NAMED TOKEN "    as: root\n",
     "impersonation"},
    {"half a certificate",
     HEAD CURR CTX SERVER NAMED
     "users:\n- name: u\n  user:\n    client-certificate-data: Q0E=\n",
     "needs its key"},
    {"a plugin of an old version",
     HEAD CURR CTX SERVER NAMED
     "users:\n- name: u\n  user:\n    exec:\n      command: x\n"
     "      apiVersion: client.authentication.k8s.io/v1alpha1\n",
     "unknown apiVersion"},
    {"a list as a text",
     HEAD CURR CTX SERVER NAMED "users:\n- name: u\n  user:\n    token: []\n",
     "'token' is not a text"},
    {"no YAML", "a: &b c\n", "line 1"},
    {"no JSON", "{\"a\":", ""},
};

static void rows_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_kube_access a;
        struct mo_err e = {0};
        int rc = mo_kube_access_read(mo_span_cstr(rows[i].text), "/d/config",
                                     NULL, &a, &e);

        if ((rc == 0) != (rows[i].why == NULL) ||
            (rows[i].why && (!strstr(e.msg, rows[i].why) ||
                             !strstr(e.msg, "kubeconfig /d/config: "))))
            fail_msg("%s: %d %s", rows[i].name, rc, e.msg);
        mo_kube_access_fini(&a);
    }
}

/* As written for a cloud: a plugin, a folded hint, a namespace, two contexts.
 */
static const char cloud[] =
    "apiVersion: v1\nclusters:\n- cluster:\n"
    "    certificate-authority: pki/ca.crt\n    server: https://h.example\n"
    "    tls-server-name: kubernetes\n  name: c\ncontexts:\n"
    "- context:\n    cluster: c\n    user: none\n  name: other\n"
    "- context:\n    cluster: c\n    namespace: boxes\n    user: u\n"
    "  name: mine\ncurrent-context: other\nkind: Config\npreferences: {}\n"
    "users:\n- name: u\n  user:\n    exec:\n"
    "      apiVersion: client.authentication.k8s.io/v1beta1\n      args:\n"
    "      - eks\n      - get-token\n      command: aws\n      env:\n"
    "      - name: AWS_PROFILE\n        value: dev\n"
    "      installHint: Install the plugin for use with kubectl by following\n"
    "        https://example.com/install\n"
    "      interactiveMode: IfAvailable\n      provideClusterInfo: false\n";

static void a_plugin(void **state)
{
    struct mo_kube_access a;
    struct mo_err e = {0};

    (void)state;
    if (mo_kube_access_read(mo_span_cstr(cloud), "/d/config", "mine", &a, &e) <
        0)
        fail_msg("%s", e.msg);
    assert_string_equal(a.server, "https://h.example");
    assert_string_equal(a.server_name, "kubernetes");
    assert_string_equal(a.ca_file, "/d/pki/ca.crt");
    assert_string_equal(a.ns, "boxes");
    assert_string_equal(a.what, "context mine of /d/config");
    assert_string_equal(a.exec[0], "aws");
    assert_string_equal(a.exec[1], "eks");
    assert_string_equal(a.exec[2], "get-token");
    assert_null(a.exec[3]);
    assert_string_equal(a.exec_env[0], "AWS_PROFILE=dev");
    assert_null(a.exec_env[1]);
    mo_kube_access_fini(&a);
}

static void in_a_pod(void **state)
{
    char dir[] = "/tmp/mo-access-XXXXXX", path[64];
    struct mo_kube_access a;
    struct mo_err e;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_true(mo_kube_access_inside("10.0.0.1", "443", dir, &a, &e) < 0);
    (void)snprintf(path, sizeof(path), "%s/namespace", dir);
    f = fopen(path, "we");
    assert_non_null(f);
    (void)fputs("boxes", f);
    (void)fclose(f);
    assert_int_equal(mo_kube_access_inside("10.0.0.1", "443", dir, &a, &e), 0);
    assert_string_equal(a.server, "https://10.0.0.1:443");
    assert_string_equal(a.ns, "boxes");
    assert_non_null(strstr(a.token_file, "/token"));
    mo_kube_access_fini(&a);
    assert_int_equal(mo_kube_access_inside("fd00::1", "443", dir, &a, &e), 0);
    assert_string_equal(a.server, "https://[fd00::1]:443");
    mo_kube_access_fini(&a);
    (void)unlink(path);
    (void)rmdir(dir);
}

static void what_plugins_say(void **state)
{
#define CRED "{\"kind\":\"ExecCredential\",\"status\":{"
    static const struct {
        const char *text, *token, *why;
        uint64_t expires;
    } said[] = {
        {CRED "\"token\":\"t\"}}", "t", NULL, 0},
        {CRED "\"token\":\"t\",\"expirationTimestamp\":"
              "\"2001-09-09T01:46:40Z\"}}",
         "t", NULL, 1000000000},
        {CRED "\"token\":\"\"}}", NULL, "no token", 0},
        {CRED "\"clientCertificateData\":\"x\"}}", NULL, "certificate", 0},
        {CRED "\"token\":\"a b\"}}", NULL, "not valid", 0},
        {"{\"kind\":\"Other\"}", NULL, "no ExecCredential", 0},
        {"sign in first", NULL, "no ExecCredential", 0},
        {"", NULL, "no ExecCredential", 0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(said); i++) {
        mo_autobuf struct mo_buf b = {.max = 99};
        struct mo_err e = {0};
        uint64_t expires = 0;
        int rc =
            mo_kube_token_read(mo_span_cstr(said[i].text), &b, &expires, &e);

        if (said[i].token) {
            assert_int_equal(rc, 0);
            assert_string_equal(mo_buf_cstr(&b), said[i].token);
            assert_int_equal(expires, said[i].expires);
        } else if (rc == 0 || !strstr(e.msg, said[i].why)) {
            fail_msg("%zu: %d %s", i, rc, e.msg);
        }
    }
}

static void unknown_times_are_short(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 99};
    uint64_t expires = 0, now = mo_wall_ms() / 1000;

    (void)state;
    assert_int_equal(
        mo_kube_token_read(MO_SPAN(CRED "\"token\":\"t\",\"expirationTimestamp"
                                        "\":\"soon\"}}"),
                           &b, &expires, NULL),
        0);
    assert_true(expires >= now && expires <= now + 301);
}

static void torture_body(void *ctx)
{
    struct mo_kube_access a;

    (void)ctx;
    if (mo_kube_access_read(mo_span_cstr(cloud), "/d/config", "mine", &a,
                            NULL) == 0) {
        assert_string_equal(a.exec[2], "get-token");
        mo_kube_access_fini(&a);
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
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(a_plugin),
        cmocka_unit_test(in_a_pod),
        cmocka_unit_test(what_plugins_say),
        cmocka_unit_test(unknown_times_are_short),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
