/* How a cluster is reached: kubeconfigs as kubectl and others write them, what
 * is refused, a pod's service account, and what plugins answer. */
#include "mo_test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
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

/* --- running plugins ----------------------------------------------------- */

#define PLUGIN_API "client.authentication.k8s.io/v1"
#define LONG       30000 /* ms; a deadline for hangs, not for speed */

struct plugin {
    struct mo_loop *l;
    struct mo_kube_access a;
    struct mo_kube_token *t;
    struct mo_kube_token_wait wait;
    struct mo_err why;
    int times; /* that the waiter was called */
};

static void on_token(struct mo_kube_token_wait *w, const struct mo_err *why)
{
    struct plugin *p = mo_container_of(w, struct plugin, wait);

    p->why = why ? *why : (struct mo_err){.code = 0};
    p->times++;
}

static bool is_told(void *ctx)
{
    return ((struct plugin *)ctx)->times > 0;
}

static bool plugin_open(struct plugin *p, const char *const *argv,
                        const char *const *env, struct mo_log *log)
{
    struct mo_err e;

    *p = (struct plugin){.a = {.exec = argv, .exec_env = env}};
    p->a.exec_api = PLUGIN_API;
    p->wait.go = on_token;
    mo_list_init(&p->wait.node);
    p->l = mo_loop_new(log, &e);
    p->t = p->l ? mo_kube_token_new(p->l, &p->a, &e) : NULL;
    return p->t != NULL;
}

static void plugin_init(struct plugin *p, const char *const *argv,
                        const char *const *env, struct mo_log *log)
{
    if (!plugin_open(p, argv, env, log))
        fail_msg("no memory");
}

static void plugin_fini(struct plugin *p)
{
    if (p->t)
        mo_kube_token_free(p->t);
    if (p->l)
        mo_loop_free(p->l);
}

static int ask(struct plugin *p, struct mo_span *token, struct mo_err *e)
{
    return mo_kube_token_get(p->t, token, &p->wait, e);
}

/* Runs the plugin; false: it failed. */
static bool run(struct plugin *p)
{
    struct mo_span token;
    struct mo_err e;

    p->times = 0;
    assert_int_equal(ask(p, &token, &e), MO_EBUSY);
    assert_true(mo_loop_until(p->l, is_told, p, LONG));
    assert_int_equal(p->times, 1);
    return !p->why.code;
}

static void a_plugin_that_is_missing(void **state)
{
    static const char *const argv[] = {"/nowhere/plugin", NULL};
    struct mo_span token;
    struct plugin p;
    int fd;

    (void)state;
    plugin_init(&p, argv, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        struct mo_err e;

        assert_int_equal(ask(&p, &token, &e), MO_ENOTFOUND);
        assert_non_null(strstr(e.msg, "plugin /nowhere/plugin"));
    }
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* the next number */
    plugin_fini(&p);
    assert_int_equal(close(fd), 0);
}

/* In a process of its own: a user without the right to a process. */
static int ask_without_processes(void)
{
    static const char *const argv[] = {"true", NULL};
    const struct rlimit none = {0, 0};
    struct mo_span token;
    struct plugin p;
    struct mo_err e;
    int rc;

    plugin_init(&p, argv, NULL, NULL);
    if (setrlimit(RLIMIT_NPROC, &none) < 0 ||
        (getuid() == 0 && setresuid(65534, 65534, 65534) < 0))
        return 2;
    rc = ask(&p, &token, &e);
    plugin_fini(&p);
    return rc == MO_EUNAVAIL && e.code == MO_EUNAVAIL ? 0 : 1;
}

static void no_process_for_a_plugin(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(ask_without_processes());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define OURS 200

/* Our environment, with MO_V0 to MO_V<n-1> and MO_TWIN. */
static char **fill_ours(size_t n)
{
    char **v = mo_zalloc((n + 3) * sizeof(*v));

    assert_non_null(v);
    for (size_t i = 0; i < n; i++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "MO_V%zu=x", i);
        v[i] = mo_strndup(text, strlen(text));
        assert_non_null(v[i]);
    }
    v[n] = mo_strndup("MO_TWIN=ours", 12);
    v[n + 1] = mo_strndup("KUBERNETES_EXEC_INFO=ours", 25);
    return v;
}

static void free_ours(char **v)
{
    for (size_t i = 0; v[i]; i++)
        mo_free(v[i]);
    mo_free(v);
}

/* As the kernel has it: a shell makes one of two with the same name. */
static void the_environment_of_a_plugin(void **state)
{
    static const char script[] =
        "seen=$(tr '\\0' '\\n' </proc/$$/environ)\n"
        "mine=$(echo \"$seen\" | grep -c '^MO_V[0-9]*=x$')\n"
        "twin=$(echo \"$seen\" | grep '^MO_TWIN' | tr '\\n' ,)\n"
        "info=$(echo \"$seen\" | grep '^KUBERNETES_EXEC_INFO' |"
        " grep -c 'ExecCredential.*v1\"')\n"
        "all=$(echo \"$seen\" | grep -c '^KUBERNETES_EXEC_INFO')\n"
        "echo '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"'"
        "$mine,$twin$info,$all'\"}}'\n";
    static const char *const argv[] = {"sh", "-c", script, NULL};
    static const char *const env[] = {
        "MO_TWIN=first", "KUBERNETES_EXEC_INFO=theirs", "MO_TWIN=theirs", NULL};
    char **before = environ, **ours = fill_ours(OURS);
    struct mo_span token;
    struct plugin p;
    struct mo_err e;

    (void)state;
    environ = ours;
    plugin_init(&p, argv, env, NULL);
    if (!run(&p))
        fail_msg("%s", p.why.msg);
    assert_int_equal(ask(&p, &token, &e), 0);
    if (!mo_span_is(token, "200,MO_TWIN=theirs,1,1"))
        fail_msg("%.*s", (int)token.n, token.p);
    plugin_fini(&p);
    environ = before;
    free_ours(ours);
}

static void an_environment_that_is_too_large(void **state)
{
    static const char *const argv[] = {"true", NULL};
    char **before = environ, **ours = fill_ours(5000);
    struct mo_span token;
    struct plugin p;
    struct mo_err e;

    (void)state;
    environ = ours;
    plugin_init(&p, argv, NULL, NULL);
    assert_int_equal(ask(&p, &token, &e), MO_ETOOBIG);
    assert_non_null(strstr(e.msg, "4096 variables"));
    plugin_fini(&p);
    environ = before;
    free_ours(ours);
}

/* A plugin that has just answered has nothing better. */
static void a_token_that_has_ended_is_used(void **state)
{
    static const char *const argv[] = {
        "echo",
        CRED "\"token\":\"t\",\"expirationTimestamp\":"
             "\"2001-09-09T01:46:40Z\"}}",
        NULL};
    struct mo_span token;
    struct plugin p;
    struct mo_err e;

    (void)state;
    plugin_init(&p, argv, NULL, NULL);
    assert_true(run(&p));
    assert_int_equal(ask(&p, &token, &e), 0);
    assert_true(mo_span_is(token, "t"));
    assert_true(mo_kube_token_drop(p.t)); /* the cluster has refused it */
    assert_true(run(&p));
    assert_int_equal(ask(&p, &token, &e), 0);
    plugin_fini(&p);
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

static void a_token_that_is_not_valid(void **state)
{
    static const char *const argv[] = {"echo", CRED "\"token\":\"a b\"}}",
                                       NULL};
    struct plugin p;

    (void)state;
    plugin_init(&p, argv, NULL, NULL);
    for (int i = 0; i < 2; i++) { /* each time the plugin is asked */
        assert_false(run(&p));
        assert_non_null(strstr(p.why.msg, "its token is not valid"));
    }
    plugin_fini(&p);
}

static void a_token_file_that_is_not_valid(void **state)
{
    char path[] = "/tmp/mo-token-XXXXXX";
    int fd = mkstemp(path);
    struct mo_span token;
    struct plugin p;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a b\n", 4), 4);
    (void)close(fd);
    plugin_init(&p, NULL, NULL, NULL);
    p.a.token_file = path;
    for (int i = 0; i < 2; i++) {
        struct mo_err e;

        assert_int_equal(ask(&p, &token, &e), MO_EINVAL);
        assert_non_null(strstr(e.msg, "is not valid"));
    }
    plugin_fini(&p);
    (void)unlink(path);
}

/* Tokens of service accounts are renewed each hour, for months. */
static void renewed_tokens_leave_room_for_secrets(void **state)
{
    char dir[] = "/tmp/mo-token-XXXXXX", path[64], text[32] = "";
    struct mo_span token;
    struct plugin p;
    struct mo_log log;
    struct mo_err e;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/token", dir);
    mo_log_init(&log, -1);
    plugin_init(&p, NULL, NULL, &log);
    p.a.token_file = path;
    for (int i = 0; i < MO_LOG_SECRETS_MAX + 10; i++) {
        (void)snprintf(text, sizeof(text), "token-%d", i);
        assert_int_equal(mo_file_replace(path, mo_span_cstr(text), &e), 0);
        assert_int_equal(ask(&p, &token, &e), 0);
        assert_true(mo_span_is(token, text));
    }
    assert_int_equal(mo_loop_secret(p.l, MO_SPAN("another-secret")), 0);
    (void)mo_fail(&e, MO_EIO, "token-264 %s another-secret", text);
    mo_loop_blank(p.l, &e);
    assert_string_equal(e.msg, "[secret] [secret] [secret]");
    plugin_fini(&p);
    mo_log_fini(&log);
    (void)unlink(path);
    (void)rmdir(dir);
}

static void torture_plugin(void *ctx)
{
    static const char *const argv[] = {"echo", CRED "\"token\":\"secret-1\"}}",
                                       NULL};
    static const char *const env[] = {"A=b", NULL};
    struct mo_span token;
    struct plugin p;
    struct mo_err e;

    (void)ctx;
    if (plugin_open(&p, argv, env, NULL) && ask(&p, &token, &e) == MO_EBUSY)
        assert_true(mo_loop_until(p.l, is_told, &p, LONG));
    plugin_fini(&p);
}

static void memory_may_fail(void **state)
{
    (void)state;
    torture(torture_body, NULL);
    torture(torture_plugin, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(a_plugin),
        cmocka_unit_test(in_a_pod),
        cmocka_unit_test(what_plugins_say),
        cmocka_unit_test(unknown_times_are_short),
        cmocka_unit_test(a_plugin_that_is_missing),
        cmocka_unit_test(no_process_for_a_plugin),
        cmocka_unit_test(the_environment_of_a_plugin),
        cmocka_unit_test(an_environment_that_is_too_large),
        cmocka_unit_test(a_token_that_has_ended_is_used),
        cmocka_unit_test(a_token_that_is_not_valid),
        cmocka_unit_test(a_token_file_that_is_not_valid),
        cmocka_unit_test(renewed_tokens_leave_room_for_secrets),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
