/* What a container is promised: the body word by word, and every field of the
 * engine's account altered, one at a time. */
#include "mo_test.h"

#include "engine/ctr.h"

static const char *const argv[] = {"/toolbox", NULL};
static const char *const env[] = {"PATH=/bin", "HOME=/workspace", NULL};
static const char *const volumes[] = {"/data", NULL};
static const struct mo_ctr_label labels[] = {{"mo.store", "s"},
                                             {"mo.session", "a\"b"}};

static struct mo_ctr sample(enum mo_ctr_flavour flavour)
{
    return (struct mo_ctr){
        .flavour = flavour,
        .image = "sha256:0123456789012345678901234567890123456789012345678901"
                 "234567890123",
        .uid = 20001,
        .gid = 20001,
        .workdir = "/workspace",
        .argv = argv,
        .env = env,
        .seccomp = flavour == MO_CTR_DOCKER ? "{\"a\":1}" : "/p.json",
        .labels = labels,
        .nlabels = MO_COUNT(labels),
        .memory = 268435456,
        .workspace = 67108864,
        .tmp = 16777216,
        .file_size = 1000,
        .cpu_milli = 500,
        .pids = 64,
        .open_files = 256,
        .workspace_inodes = 16,
        .tmp_inodes = 4,
    };
}

#define CONFIG_HEAD                                                            \
    "{\"Image\":\"sha256:01234567890123456789012345678901234567890123456789"   \
    "01234567890123\",\"User\":\"20001:20001\",\"WorkingDir\":"                \
    "\"/workspace\",\"Entrypoint\":[\"/toolbox\"],\"Cmd\":[],\"Env\":"         \
    "[\"PATH=/bin\",\"HOME=/workspace\"],\"NetworkDisabled\":true,\"Tty\":"    \
    "false,\"OpenStdin\":true,\"StdinOnce\":false,\"AttachStdin\":true,"       \
    "\"AttachStdout\":true,\"AttachStderr\":true,\"Healthcheck\":{\"Test\":["  \
    "\"NONE\"]},\"StopSignal\":\"SIGKILL\",\"StopTimeout\":1,\"Labels\":{"     \
    "\"mo.store\":\"s\",\"mo.session\":\"a\\\"b\"},\"HostConfig\":{"           \
    "\"NetworkMode\":\"none\",\"Dns\":[\"127.0.0.1\"],\"PublishAllPorts\":"    \
    "false,\"Memory\":268435456,\"MemorySwap\":268435456,"
#define HOST_MIDDLE                                                            \
    "\"NanoCpus\":500000000,\"CpuShares\":256,\"PidsLimit\":64,"               \
    "\"OomScoreAdj\":800,\"Privileged\":false,\"CapDrop\":[\"ALL\"],"
#define HOST_MODES                                                             \
    "\"ReadonlyRootfs\":true,\"IpcMode\":\"none\",\"PidMode\":\"\","           \
    "\"UTSMode\":\"\",\"CgroupnsMode\":\"private\","
#define ULIMITS                                                                \
    "{\"Name\":\"nofile\",\"Soft\":256,\"Hard\":256},{\"Name\":\"core\","      \
    "\"Soft\":0,\"Hard\":0},{\"Name\":\"fsize\",\"Soft\":1000,\"Hard\":1000}," \
    "{\"Name\":\"memlock\",\"Soft\":0,\"Hard\":0},{\"Name\":\"msgqueue\","     \
    "\"Soft\":0,\"Hard\":0}"
#define HOST_TAIL                                                              \
    "\"MaskedPaths\":[\"/proc/acpi\",\"/proc/asound\",\"/proc/interrupts\","   \
    "\"/proc/kallsyms\",\"/proc/kcore\",\"/proc/keys\","                       \
    "\"/proc/latency_stats\",\"/proc/sched_debug\",\"/proc/scsi\","            \
    "\"/proc/timer_list\",\"/proc/timer_stats\","                              \
    "\"/sys/devices/virtual/powercap\",\"/sys/firmware\"],\"ReadonlyPaths\":[" \
    "\"/proc/bus\",\"/proc/fs\",\"/proc/irq\",\"/proc/sys\","                  \
    "\"/proc/sysrq-trigger\"],\"LogConfig\":{\"Type\":\"none\"},"              \
    "\"RestartPolicy\":{\"Name\":\"no\"},\"AutoRemove\":false,\"Mounts\":[]}}"

static const char docker_body[] = CONFIG_HEAD
    "\"MemorySwappiness\":0," HOST_MIDDLE
    "\"SecurityOpt\":[\"no-new-privileges:true\",\"seccomp={\\\"a\\\":1}\"]"
    "," HOST_MODES "\"Init\":true,\"Tmpfs\":{\"/tmp\":\"rw,noexec,nosuid,nodev,"
    "size=16777216,nr_inodes=4,uid=20001,gid=20001,mode=0700\",\"/workspace\":"
    "\"rw,exec,nosuid,nodev,size=67108864,nr_inodes=16,uid=20001,gid=20001,"
    "mode=0700\"},\"Ulimits\":[" ULIMITS "]," HOST_TAIL;

static const char podman_body[] = CONFIG_HEAD HOST_MIDDLE
    "\"SecurityOpt\":[\"no-new-privileges\",\"seccomp=/p.json\"]," HOST_MODES
    "\"Tmpfs\":{\"/run\":\"rw,noexec,nosuid,nodev,size=16777216,mode=1777\","
    "\"/var/tmp\":\"rw,noexec,nosuid,nodev,size=16777216,mode=1777\","
    "\"/tmp\":\"rw,noexec,nosuid,nodev,size=16777216,mode=1777\","
    "\"/workspace\":\"rw,exec,nosuid,nodev,size=67108864,mode=1777\"},"
    "\"Ulimits\":[" ULIMITS ",{\"Name\":\"nproc\",\"Soft\":4096,\"Hard\":4096}"
    "]," HOST_TAIL;

static void the_body_is_this(void **state)
{
    static const struct {
        const char *name, *want;
        enum mo_ctr_flavour flavour;
    } rows[] = {{"docker", docker_body, MO_CTR_DOCKER},
                {"podman", podman_body, MO_CTR_PODMAN}};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_ctr c = sample(rows[i].flavour);
        struct mo_buf b;

        mo_buf_init(&b, MO_CTR_BODY_MAX);
        check_row(rows[i].name, mo_ctr_write(&c, &b) == 0);
        assert_string_equal(mo_buf_cstr(&b), rows[i].want);
        mo_buf_fini(&b);
    }
}

static void volumes_are_covered(void **state)
{
    struct mo_ctr c = sample(MO_CTR_DOCKER);
    struct mo_buf b;

    (void)state;
    c.volumes = volumes;
    mo_buf_init(&b, MO_CTR_BODY_MAX);
    assert_int_equal(mo_ctr_write(&c, &b), 0);
    assert_non_null(strstr(
        mo_buf_cstr(&b), "\"/data\":\"rw,noexec,nosuid,nodev,size=16777216,"));
    mo_buf_fini(&b);
}

/* --- the engine's account ---------------------------------------------------
 *
 * Made of the body itself: Config, HostConfig and a little around them, with
 * one member (of either) written as something else, or left out. */

struct change {
    const char *place; /* "Config", "HostConfig", "" (around them) */
    const char *key;
    const char *value; /* NULL: left out */
};

static void put_member(struct mo_jw *w, const char *place, struct mo_json key,
                       struct mo_json v, const struct change *c)
{
    bool hit = strcmp(c->place, place) == 0 &&
               mo_json_str_eq(key, mo_span_cstr(c->key));

    if (hit && !c->value)
        return;
    mo_jw_key_span(w, mo_span(key.p + 1, key.n - 2));
    mo_jw_raw(w, hit ? mo_span_cstr(c->value) : mo_json_text(v));
}

static void put_place(struct mo_jw *w, const char *place, struct mo_json from,
                      const struct change *c)
{
    struct mo_json_iter it;
    struct mo_json key, v;
    bool found = false;

    mo_jw_key(w, place);
    mo_jw_obj(w);
    mo_json_iter(&it, from);
    while (mo_json_next(&it, &key, &v)) {
        if (mo_json_str_eq(key, MO_SPAN("HostConfig")))
            continue;
        put_member(w, place, key, v, c);
        found = found || mo_json_str_eq(key, mo_span_cstr(c->key));
    }
    if (!found && c->value && strcmp(c->place, place) == 0) {
        mo_jw_key(w, c->key);
        mo_jw_raw(w, mo_span_cstr(c->value));
    }
    mo_jw_end(w);
}

static void put_around(struct mo_jw *w, const char *key, const char *value,
                       const struct change *c)
{
    if (strcmp(c->place, "") == 0 && strcmp(c->key, key) == 0)
        value = c->value;
    if (!value)
        return;
    mo_jw_key(w, key);
    mo_jw_raw(w, mo_span_cstr(value));
}

static void put_inspect(struct mo_buf *b, struct mo_json body,
                        const struct change *c)
{
    struct mo_json image = mo_json_get(body, "Image");
    char id[128];
    struct mo_jw w;

    (void)snprintf(id, sizeof(id), "%.*s", (int)image.n, image.p);
    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    put_around(&w, "Image", id, c);
    put_around(&w, "State", "{\"Running\":false}", c);
    put_around(&w, "Mounts", "[]", c);
    put_place(&w, "Config", body, c);
    put_place(&w, "HostConfig", mo_json_get(body, "HostConfig"), c);
    mo_jw_end(&w);
}

static int compare_as(const struct mo_ctr *c, const struct change *change,
                      bool fixed, struct mo_err *e)
{
    struct mo_buf body, inspect;
    struct mo_json_doc doc;
    int rc;

    mo_buf_init(&body, MO_CTR_BODY_MAX);
    mo_buf_init(&inspect, MO_CTR_BODY_MAX);
    assert_int_equal(mo_ctr_write(c, &body), 0);
    assert_int_equal(mo_json_parse(mo_buf_view(&body), 0, &doc, NULL), 0);
    put_inspect(&inspect, doc.root, change);
    if (mo_json_parse(mo_buf_view(&inspect), 0, &doc, e) < 0)
        fail_msg("%s: %s", e->msg, mo_buf_cstr(&inspect));
    rc = fixed ? mo_ctr_compare_fixed(c, doc.root, e)
               : mo_ctr_compare(c, doc.root, e);
    mo_buf_fini(&body);
    mo_buf_fini(&inspect);
    return rc;
}

static int compare(enum mo_ctr_flavour flavour, const struct change *change,
                   bool fixed, struct mo_err *e)
{
    struct mo_ctr c = sample(flavour);

    return compare_as(&c, change, fixed, e);
}

static const struct change none = {"", "", NULL};

static void what_was_asked_agrees(void **state)
{
    struct mo_err e;

    (void)state;
    assert_int_equal(compare(MO_CTR_DOCKER, &none, false, &e), 0);
    assert_int_equal(compare(MO_CTR_DOCKER, &none, true, &e), 0);
    assert_int_equal(compare(MO_CTR_PODMAN, &none, false, &e), 0);
    assert_int_equal(compare(MO_CTR_PODMAN, &none, true, &e), 0);
}

/* Another value of the same kind. */
static const char *other(struct mo_json v)
{
    bool yes = false;

    switch (mo_json_type(v)) {
    case MO_JSON_BOOL:
        (void)mo_json_bool(v, &yes);
        return yes ? "false" : "true";
    case MO_JSON_NUMBER:
        return "123456";
    case MO_JSON_STRING:
        return "\"other\"";
    case MO_JSON_ARRAY:
        return "[\"other\"]";
    default:
        return "{\"other\":\"x\"}";
    }
}

static bool means_nothing(struct mo_json v)
{
    return mo_span_is(mo_json_text(v), "[]") ||
           mo_span_is(mo_json_text(v), "false") ||
           mo_span_is(mo_json_text(v), "\"\"") ||
           mo_span_is(mo_json_text(v), "0");
}

static unsigned altered(const struct mo_ctr *of, const char *place,
                        struct mo_json from)
{
    struct mo_json_iter it;
    struct mo_json key, v;
    struct mo_err e;
    char name[64];
    unsigned n = 0;

    mo_json_iter(&it, from);
    while (mo_json_next(&it, &key, &v)) {
        struct change c = {place, name, other(v)};

        (void)snprintf(name, sizeof(name), "%.*s", (int)key.n - 2, key.p + 1);
        if (strcmp(name, "HostConfig") == 0)
            continue;
        check_row(name, compare_as(of, &c, false, &e) == MO_EPOLICY);
        check_row(name, strstr(e.msg, name) != NULL);
        c.value = NULL;
        check_row(name, compare_as(of, &c, false, &e) ==
                            (means_nothing(v) ? 0 : MO_EPOLICY));
        c.value = "null";
        check_row(name, compare_as(of, &c, false, &e) ==
                            (means_nothing(v) ? 0 : MO_EPOLICY));
        n++;
    }
    return n;
}

static void alter_all(const struct mo_ctr *c, unsigned of_host)
{
    struct mo_json_doc doc;
    struct mo_buf body;

    mo_buf_init(&body, MO_CTR_BODY_MAX);
    assert_int_equal(mo_ctr_write(c, &body), 0);
    assert_int_equal(mo_json_parse(mo_buf_view(&body), 0, &doc, NULL), 0);
    assert_int_equal(altered(c, "Config", doc.root), 17);
    assert_int_equal(
        altered(c, "HostConfig", mo_json_get(doc.root, "HostConfig")), of_host);
    mo_buf_fini(&body);
}

static void every_field_counts(void **state)
{
    struct mo_ctr c = sample(MO_CTR_DOCKER);

    (void)state;
    alter_all(&c, 27);
}

/* A box with a network, and the container that makes it. */
static void networks(void **state)
{
    static const struct {
        const char *name;
        struct change c;
        int rc;
    } rows[] = {
        {"none", {"", "", NULL}, 0},
        {"its share",
         {"", "Mounts",
          "[{\"Type\":\"bind\",\"Source\":\"/d\",\"Destination\":\"/net\"}]"},
         0},
        {"another directory",
         {"", "Mounts",
          "[{\"Type\":\"bind\",\"Source\":\"/e\",\"Destination\":\"/net\"}]"},
         MO_EPOLICY},
        {"at another place",
         {"", "Mounts",
          "[{\"Type\":\"bind\",\"Source\":\"/d\",\"Destination\":\"/x\"}]"},
         MO_EPOLICY},
        {"a capability more",
         {"HostConfig", "CapAdd",
          "[\"NET_ADMIN\",\"NET_BIND_SERVICE\",\"SYS_ADMIN\"]"},
         MO_EPOLICY},
        {"the host's network",
         {"HostConfig", "NetworkMode", "\"host\""},
         MO_EPOLICY},
    };
    struct mo_ctr net = sample(MO_CTR_DOCKER), box = net;
    struct mo_err e;

    (void)state;
    box.network = "0123";
    alter_all(&box, 27);
    net.share = "/d";
    net.ipv6 = true;
    net.seccomp = NULL;
    net.uid = 0;
    alter_all(&net, 29);
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].name,
                  compare_as(&net, &rows[i].c, false, &e) == rows[i].rc);
    /* a box may have none of it */
    check_row("share", compare_as(&box, &rows[1].c, true, &e) == MO_EPOLICY);
    check_row("capability",
              compare_as(&box, &rows[4].c, true, &e) == MO_EPOLICY);
}

static void finer_lies(void **state)
{
    static const struct {
        const char *name;
        struct change c;
        bool fixed_too;
    } rows[] = {
        {"another image", {"", "Image", "\"sha256:00\""}, false},
        {"it runs already", {"", "State", "{\"Running\":true}"}, false},
        {"a volume", {"", "Mounts", "[{\"Type\":\"volume\"}]"}, true},
        {"a bind mount",
         {"", "Mounts", "[{\"Type\":\"tmpfs\"},{\"Type\":\"bind\"}]"},
         true},
        {"one label changed",
         {"Config", "Labels", "{\"mo.store\":\"s\",\"mo.session\":\"x\"}"},
         false},
        {"an environment of more",
         {"Config", "Env", "[\"PATH=/bin\",\"HOME=/workspace\",\"X=1\"]"},
         false},
        {"a health check",
         {"Config", "Healthcheck", "{\"Test\":[\"CMD\",\"x\"]}"},
         true},
        {"nothing is masked", {"HostConfig", "MaskedPaths", "[]"}, true},
        {"one path is not masked",
         {"HostConfig", "MaskedPaths", "[\"/proc/acpi\"]"},
         true},
        {"another seccomp",
         {"HostConfig", "SecurityOpt",
          "[\"no-new-privileges:true\",\"seccomp=unconfined\"]"},
         true},
        {"seccomp only",
         {"HostConfig", "SecurityOpt", "[\"seccomp={\\\"a\\\":1}\"]"},
         true},
        {"not all is dropped", {"HostConfig", "CapDrop", "[\"KILL\"]"}, true},
        {"more swap", {"HostConfig", "MemorySwap", "536870912"}, false},
        {"no swap limit", {"HostConfig", "MemorySwap", "-1"}, false},
        {"removed by itself", {"HostConfig", "AutoRemove", "true"}, true},
        {"another tmpfs", {"HostConfig", "Tmpfs", "{\"/tmp\":\"rw\"}"}, false},
        {"a core", {"HostConfig", "Ulimits", "[]"}, false},
    };
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        check_row(rows[i].name,
                  compare(MO_CTR_DOCKER, &rows[i].c, false, &e) == MO_EPOLICY);
        check_row(rows[i].name, compare(MO_CTR_DOCKER, &rows[i].c, true, &e) ==
                                    (rows[i].fixed_too ? MO_EPOLICY : 0));
    }
}

#define DOCS                                                                   \
    "{\"Type\":\"bind\",\"Source\":\"/a b\",\"Destination\":\"/docs\",\"RW\":"
#define WORK                                                                   \
    "{\"Type\":\"bind\",\"Source\":\"/w\",\"Destination\":\"/"                 \
    "workspace\",\"RW\":"

static void folders_of_the_host(void **state)
{
    static const struct mo_ctr_bind binds[] = {{"/a b", "/docs", false},
                                               {"/w", "/workspace", true}};
    static const struct {
        const char *name, *place, *value;
        int rc;
    } rows[] = {
        {"as asked", "", "[" DOCS "false}," WORK "true}]", 0},
        {"writable", "", "[" DOCS "true}," WORK "true}]", MO_EPOLICY},
        {"another source", "",
         "[{\"Type\":\"bind\",\"Source\":\"/\",\"Destination\":\"/docs\","
         "\"RW\":false}]",
         MO_EPOLICY},
        {"a volume", "",
         "[{\"Type\":\"volume\",\"Source\":\"/a b\",\"Destination\":\"/docs\","
         "\"RW\":false}]",
         MO_EPOLICY},
        {"not taken", "HostConfig", "[]", MO_EPOLICY},
    };
    struct mo_ctr c = sample(MO_CTR_DOCKER);
    struct mo_err e;
    struct mo_buf b;

    (void)state;
    c.binds = binds;
    c.nbinds = MO_COUNT(binds);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct change change = {rows[i].place, "Mounts", rows[i].value};

        check_row(rows[i].name,
                  compare_as(&c, &change, false, &e) == rows[i].rc);
        check_row(rows[i].name,
                  compare_as(&c, &change, true, &e) == rows[i].rc);
    }
    c.flavour = MO_CTR_PODMAN; /* it describes them in another field */
    for (int i = 0; i < 2; i++) {
        struct change change = {"HostConfig", "Binds", "[\"/a b:/docs\"]"};

        c.nbinds = i ? 0 : MO_COUNT(binds);
        check_row("podman's",
                  compare_as(&c, &change, true, &e) == (i ? MO_EPOLICY : 0));
    }
    c = sample(MO_CTR_DOCKER);
    c.binds = binds;
    c.nbinds = MO_COUNT(binds);
    mo_buf_init(&b, MO_CTR_BODY_MAX);
    assert_int_equal(mo_ctr_write(&c, &b), 0);
    assert_non_null(strstr(
        mo_buf_cstr(&b),
        "\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/a "
        "b\",\"Target\":\"/docs\","
        "\"ReadOnly\":true,\"BindOptions\":{\"Propagation\":\"rprivate\","
        "\"NonRecursive\":true}},"));
    assert_null(strstr(mo_buf_cstr(&b), "\"/workspace\":\"rw"));
    mo_buf_fini(&b);
}

static void what_must_not_be_there(void **state)
{
    static const struct {
        const char *key, *value;
    } rows[] = {
        {"Binds", "[\"/:/host\"]"},
        {"CapAdd", "[\"SYS_ADMIN\"]"},
        {"CgroupParent", "\"/x\""},
        {"ContainerIDFile", "\"/x\""},
        {"Devices", "[{\"PathOnHost\":\"/dev/sda\"}]"},
        {"DeviceRequests", "[{}]"},
        {"DeviceCgroupRules", "[\"a *:* rwm\"]"},
        {"DnsOptions", "[\"x\"]"},
        {"DnsSearch", "[\"x\"]"},
        {"ExtraHosts", "[\"a:1.2.3.4\"]"},
        {"GroupAdd", "[\"0\"]"},
        {"Links", "[\"a\"]"},
        {"Mounts", "[{\"Type\":\"bind\"}]"},
        {"OomKillDisable", "true"},
        {"PortBindings", "{\"80/tcp\":[]}"},
        {"StorageOpt", "{\"size\":\"1\"}"},
        {"Sysctls", "{\"a\":\"1\"}"},
        {"UsernsMode", "\"host\""},
        {"VolumesFrom", "[\"a\"]"},
    };
    static const char *const nothing[] = {"null", "[]", "{}", "\"\"", "false"};
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct change c = {"HostConfig", rows[i].key, rows[i].value};

        for (int p = 0; p < 2; p++) {
            enum mo_ctr_flavour f = p ? MO_CTR_PODMAN : MO_CTR_DOCKER;

            c.value = rows[i].value;
            check_row(c.key, compare(f, &c, false, &e) == MO_EPOLICY);
            check_row(c.key, compare(f, &c, true, &e) == MO_EPOLICY);
            for (size_t j = 0; j < MO_COUNT(nothing); j++) {
                c.value = nothing[j];
                check_row(c.key, compare(f, &c, false, &e) == 0);
            }
        }
    }
}

static void no_account_at_all(void **state)
{
    static const char *const texts[] = {"null", "[]", "{}",
                                        "{\"Config\":{},\"HostConfig\":[]}",
                                        "{\"Config\":1,\"HostConfig\":{}}"};
    struct mo_ctr c = sample(MO_CTR_DOCKER);
    struct mo_json_doc doc;
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(texts); i++) {
        assert_int_equal(mo_json_parse(mo_span_cstr(texts[i]), 0, &doc, NULL),
                         0);
        check_row(texts[i], mo_ctr_compare(&c, doc.root, &e) < 0);
        check_row(texts[i], mo_ctr_compare_fixed(&c, doc.root, &e) < 0);
    }
}

static void torture_body(void *ctx)
{
    struct mo_ctr c = sample(MO_CTR_DOCKER);
    struct mo_json_doc doc;
    struct mo_buf b;

    (void)ctx;
    mo_buf_init(&b, MO_CTR_BODY_MAX);
    if (mo_ctr_write(&c, &b) == 0)
        assert_string_equal(mo_buf_cstr(&b), docker_body);
    assert_int_equal(
        mo_json_parse(MO_SPAN("{\"Config\":{},\"HostConfig\":{},\"Image\":"
                              "\"sha256:0123456789012345678901234567890123456"
                              "789012345678901234567890123\"}"),
                      0, &doc, NULL),
        0);
    assert_true(mo_ctr_compare(&c, doc.root, NULL) < 0);
    mo_buf_fini(&b);
}

static void memory_may_fail(void **state)
{
    (void)state;
    torture(torture_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_body_is_this),
        cmocka_unit_test(volumes_are_covered),
        cmocka_unit_test(what_was_asked_agrees),
        cmocka_unit_test(every_field_counts),
        cmocka_unit_test(networks),
        cmocka_unit_test(finer_lies),
        cmocka_unit_test(what_must_not_be_there),
        cmocka_unit_test(folders_of_the_host),
        cmocka_unit_test(no_account_at_all),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
