/* pod.c - a box's pod, as one table; see pod.h. */
#include "kube/pod.h"

#include <stdio.h>

#define MIB            ((uint64_t)1024 * 1024)
#define MISMATCH_SHOWN 60
#define WORKSPACE      "workspace"
#define FILES_SIZE     (8 * MIB)
#define REQUEST_PART   8 /* a box may use 8 times what it reserves */

enum place { META, SPEC, POD_SEC, BOX, BOX_SEC, NET, NET_SEC };

enum compare {
    OURS, /* objects: all members of ours are there; lists: the same length */
    SOME, /* lists: all elements of ours are there */
};

struct row {
    enum place place;
    const char *key;
    enum compare how;
    bool fixed;
    const char *json; /* its value; NULL: write() makes it */
    void (*write)(struct mo_jw *w, const struct mo_pod *p);
};

/* --- writers ------------------------------------------------------------- */

static void w_pairs(struct mo_jw *w, const struct mo_pod_pair *v, size_t n)
{
    mo_jw_obj(w);
    for (size_t i = 0; i < n; i++)
        mo_jw_member_cstr(w, v[i].key, v[i].value);
    mo_jw_end(w);
}

static void w_name(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_cstr(w, p->name);
}

static void w_labels(struct mo_jw *w, const struct mo_pod *p)
{
    w_pairs(w, p->labels, p->nlabels);
}

static void w_annotations(struct mo_jw *w, const struct mo_pod *p)
{
    w_pairs(w, p->annotations, p->nannotations);
}

/* A pod does not outlive the policy that keeps it from the network. */
static void w_owner(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_arr(w);
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "apiVersion", "networking.k8s.io/v1");
    mo_jw_member_cstr(w, "kind", "NetworkPolicy");
    mo_jw_member_cstr(w, "name", MO_POD_POLICY);
    mo_jw_member_cstr(w, "uid", p->policy_uid);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void w_runtime(struct mo_jw *w, const struct mo_pod *p)
{
    if (p->runtime_class && *p->runtime_class)
        mo_jw_cstr(w, p->runtime_class);
    else
        mo_jw_null(w);
}

static void w_nodes(struct mo_jw *w, const struct mo_pod *p)
{
    if (p->node_selector && *p->node_selector)
        mo_jw_raw(w, mo_span_cstr(p->node_selector));
    else
        mo_jw_null(w);
}

static void w_pull_secret(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_arr(w);
    if (p->pull_secret && *p->pull_secret) {
        mo_jw_obj(w);
        mo_jw_member_cstr(w, "name", p->pull_secret);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void w_size(struct mo_jw *w, const char *key, uint64_t bytes)
{
    char text[32];

    if (bytes % MIB == 0)
        (void)snprintf(text, sizeof(text), "%lluMi",
                       (unsigned long long)(bytes / MIB));
    else
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
    mo_jw_member_cstr(w, key, text);
}

static void w_volume(struct mo_jw *w, const char *name, uint64_t size)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", name);
    mo_jw_member_obj(w, "emptyDir");
    mo_jw_member_cstr(w, "medium", "Memory");
    w_size(w, "sizeLimit", size);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void w_claim(struct mo_jw *w, const char *claim)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", WORKSPACE);
    mo_jw_member_obj(w, "persistentVolumeClaim");
    mo_jw_member_cstr(w, "claimName", claim);
    mo_jw_end(w);
    mo_jw_end(w);
}

/* In memory: they count against the memory limit, also where the cluster does
 * not enforce sizeLimit at once. A claim is the storage's. */
static void w_volumes(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_arr(w);
    if (p->claim)
        w_claim(w, p->claim);
    else
        w_volume(w, WORKSPACE, p->workspace);
    w_volume(w, "tmp", p->tmp);
    if (p->net_files)
        w_volume(w, "files", FILES_SIZE);
    mo_jw_end(w);
}

/* The group and the modes of files are set in a new volume only, so that those
 * that its program has set stay. */
static void w_group_policy(struct mo_jw *w, const struct mo_pod *p)
{
    if (p->claim)
        mo_jw_cstr(w, "OnRootMismatch");
    else
        mo_jw_null(w);
}

/* Ports below 1024 without a capability. A sysctl of the pod alone, and one
 * that Kubernetes calls safe since 1.22. */
static void w_sysctls(struct mo_jw *w, const struct mo_pod *p)
{
    if (p->net_image)
        mo_jw_raw(w, MO_SPAN("[{\"name\":\"net.ipv4.ip_unprivileged_port_"
                             "start\",\"value\":\"0\"}]"));
    else
        mo_jw_null(w);
}

static void w_mount(struct mo_jw *w, const char *name, const char *path,
                    bool read_only)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", name);
    mo_jw_member_cstr(w, "mountPath", path);
    if (read_only)
        mo_jw_member_bool(w, "readOnly", true);
    mo_jw_end(w);
}

static void w_mounts(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_arr(w);
    w_mount(w, WORKSPACE, MO_POD_WORKSPACE, false);
    w_mount(w, "tmp", "/tmp", false);
    w_mount(w, "tmp", "/dev/shm", true); /* runtimes make it writable, 64 MB */
    if (p->net_files)
        w_mount(w, "files", MO_POD_FILES, true);
    mo_jw_end(w);
}

static void w_net_mounts(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_arr(w);
    if (p->net_files)
        w_mount(w, "files", MO_POD_FILES, false);
    mo_jw_end(w);
}

static void w_net_image(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_cstr(w, p->net_image);
}

static void w_uid(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_u64(w, p->uid);
}

static void w_image(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_cstr(w, p->image);
}

static void w_pull(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_cstr(w, p->pull_policy && *p->pull_policy ? p->pull_policy
                                                    : "IfNotPresent");
}

/* "$(NAME)" would be replaced by a variable; "$$" stands for "$". */
static void w_literal(struct mo_jw *w, struct mo_span s)
{
    mo_autobuf struct mo_buf b = {.max = MO_POD_BODY_MAX};

    for (size_t i = 0; i < s.n; i++) {
        (void)mo_buf_putc(&b, s.p[i]);
        if (s.p[i] == '$')
            (void)mo_buf_putc(&b, '$');
    }
    mo_jw_buf(w, &b);
}

/* `command` replaces the image's entrypoint and its arguments. */
static void w_command(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_arr(w);
    for (const char *const *v = p->argv; v && *v; v++)
        w_literal(w, mo_span_cstr(*v));
    mo_jw_end(w);
}

static void w_workdir(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_cstr(w, p->workdir);
}

static void w_env(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_arr(w);
    for (const char *const *v = p->env; v && *v; v++) {
        struct mo_span rest = mo_span_cstr(*v), key = mo_span_cut(&rest, '=');

        mo_jw_obj(w);
        mo_jw_member(w, "name", key);
        mo_jw_key(w, "value");
        w_literal(w, rest);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void w_resources(struct mo_jw *w, const struct mo_pod *p)
{
    char cpu[24];

    mo_jw_obj(w);
    for (int i = 0; i < 2; i++) {
        unsigned part = i == 0 ? 1 : REQUEST_PART;

        mo_jw_member_obj(w, i == 0 ? "limits" : "requests");
        w_size(w, "memory", p->memory / part);
        (void)snprintf(cpu, sizeof(cpu), "%um",
                       (p->cpu_milli + part - 1) / part);
        mo_jw_member_cstr(w, "cpu", cpu);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void w_once(struct mo_jw *w, const struct mo_pod *p)
{
    mo_jw_bool(w, p->once);
}

/* --- the table ----------------------------------------------------------- */

static const struct row rows[] = {
    {META, "name", OURS, false, NULL, w_name},
    {META, "labels", OURS, false, NULL, w_labels},
    {META, "annotations", OURS, false, NULL, w_annotations},
    {META, "ownerReferences", OURS, false, NULL, w_owner},
    {SPEC, "restartPolicy", OURS, true, "\"Never\"", NULL},
    {SPEC, "automountServiceAccountToken", OURS, true, "false", NULL},
    {SPEC, "enableServiceLinks", OURS, true, "false", NULL},
    {SPEC, "terminationGracePeriodSeconds", OURS, true, "0", NULL},
    {SPEC, "hostname", OURS, true, "\"box\"", NULL},
    {SPEC, "dnsPolicy", OURS, true, "\"None\"", NULL},
    {SPEC, "dnsConfig", OURS, true, "{\"nameservers\":[\"127.0.0.1\"]}", NULL},
    {SPEC, "runtimeClassName", OURS, false, NULL, w_runtime},
    {SPEC, "nodeSelector", OURS, false, NULL, w_nodes},
    {SPEC, "imagePullSecrets", SOME, false, NULL, w_pull_secret},
    {SPEC, "volumes", OURS, false, NULL, w_volumes},
    {POD_SEC, "runAsNonRoot", OURS, true, "true", NULL},
    {POD_SEC, "runAsUser", OURS, false, NULL, w_uid},
    {POD_SEC, "runAsGroup", OURS, false, NULL, w_uid},
    {POD_SEC, "fsGroup", OURS, false, NULL, w_uid},
    {POD_SEC, "fsGroupChangePolicy", OURS, true, NULL, w_group_policy},
    {POD_SEC, "seccompProfile", OURS, true, "{\"type\":\"RuntimeDefault\"}",
     NULL},
    {POD_SEC, "sysctls", OURS, true, NULL, w_sysctls},
    {BOX, "name", OURS, true, "\"" MO_POD_CONTAINER "\"", NULL},
    {BOX, "image", OURS, false, NULL, w_image},
    {BOX, "imagePullPolicy", OURS, false, NULL, w_pull},
    {BOX, "command", OURS, false, NULL, w_command},
    {BOX, "workingDir", OURS, false, NULL, w_workdir},
    {BOX, "env", OURS, false, NULL, w_env},
    {BOX, "stdin", OURS, true, "true", NULL},
    {BOX, "stdinOnce", OURS, false, NULL, w_once},
    {BOX, "tty", OURS, true, "false", NULL},
    {BOX, "resources", OURS, false, NULL, w_resources},
    {BOX, "volumeMounts", OURS, true, NULL, w_mounts},
    {BOX_SEC, "allowPrivilegeEscalation", OURS, true, "false", NULL},
    {BOX_SEC, "privileged", OURS, true, "false", NULL},
    {BOX_SEC, "readOnlyRootFilesystem", OURS, true, "true", NULL},
    {BOX_SEC, "capabilities", OURS, true, "{\"drop\":[\"ALL\"]}", NULL},
    {NET, "name", OURS, true, "\"" MO_POD_NET "\"", NULL},
    {NET, "image", OURS, false, NULL, w_net_image},
    {NET, "imagePullPolicy", OURS, false, NULL, w_pull},
    {NET, "command", OURS, true, "[\"/mo-box\",\"--pause\"]", NULL},
    {NET, "resources", OURS, true,
     "{\"limits\":{\"memory\":\"96Mi\",\"cpu\":\"1\"},"
     "\"requests\":{\"memory\":\"12Mi\",\"cpu\":\"50m\"}}",
     NULL},
    {NET, "env", OURS, true, "null", NULL},
    {NET, "stdin", OURS, true, "false", NULL},
    {NET, "tty", OURS, true, "false", NULL},
    {NET, "volumeMounts", OURS, true, NULL, w_net_mounts},
    {NET_SEC, "allowPrivilegeEscalation", OURS, true, "false", NULL},
    {NET_SEC, "privileged", OURS, true, "false", NULL},
    {NET_SEC, "readOnlyRootFilesystem", OURS, true, "true", NULL},
    {NET_SEC, "capabilities", OURS, true, "{\"drop\":[\"ALL\"]}", NULL},
};

/* Members that must not be there; those of BOX and BOX_SEC in no container. A
 * container's own user or filter would replace the pod's. */
static const struct {
    enum place place;
    const char *key;
} absent[] = {
    {SPEC, "hostNetwork"},
    {SPEC, "hostPID"},
    {SPEC, "hostIPC"},
    {SPEC, "shareProcessNamespace"},
    {SPEC, "initContainers"},
    {SPEC, "ephemeralContainers"},
    {POD_SEC, "supplementalGroups"},
    {BOX, "args"},
    {BOX, "envFrom"},
    {BOX, "ports"},
    {BOX, "lifecycle"},
    {BOX, "volumeDevices"},
    {BOX_SEC, "runAsUser"},
    {BOX_SEC, "runAsGroup"},
    {BOX_SEC, "procMount"},
    {BOX_SEC, "seccompProfile"},
    {BOX_SEC, "runAsNonRoot"},
};

/* --- writing ------------------------------------------------------------- */

static void write_place(struct mo_jw *w, const struct mo_pod *p,
                        enum place place, bool fixed)
{
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct row *r = &rows[i];

        if (r->place != place || (fixed && !r->fixed))
            continue;
        mo_jw_key(w, r->key);
        if (r->json)
            mo_jw_raw(w, mo_span_cstr(r->json));
        else
            r->write(w, p);
    }
}

static int write_rows(const struct mo_pod *p, bool fixed, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "apiVersion", "v1");
    mo_jw_member_cstr(&w, "kind", "Pod");
    mo_jw_member_obj(&w, "metadata");
    write_place(&w, p, META, fixed);
    mo_jw_end(&w);
    mo_jw_member_obj(&w, "spec");
    write_place(&w, p, SPEC, fixed);
    mo_jw_member_obj(&w, "securityContext");
    write_place(&w, p, POD_SEC, fixed);
    mo_jw_end(&w);
    mo_jw_member_arr(&w, "containers");
    mo_jw_obj(&w);
    write_place(&w, p, BOX, fixed);
    mo_jw_member_obj(&w, "securityContext");
    write_place(&w, p, BOX_SEC, fixed);
    mo_jw_end(&w);
    mo_jw_end(&w);
    if (p->net_image) {
        mo_jw_obj(&w);
        write_place(&w, p, NET, fixed);
        mo_jw_member_obj(&w, "securityContext");
        write_place(&w, p, NET_SEC, fixed);
    }
    mo_jw_end_all(&w);
    return mo_buf_err(b);
}

int mo_pod_write(const struct mo_pod *p, struct mo_buf *b)
{
    return write_rows(p, false, b);
}

/* --- comparing values ---------------------------------------------------- */

static bool is_nothing(struct mo_json v)
{
    struct mo_json_iter it;
    struct mo_json key, val;
    bool on;
    uint64_t n;

    switch (mo_json_type(v)) {
    case MO_JSON_NONE:
    case MO_JSON_NULL:
        return true;
    case MO_JSON_BOOL:
        return mo_json_bool(v, &on) == 0 && !on;
    case MO_JSON_STRING:
        return v.n == 2;
    case MO_JSON_NUMBER:
        return mo_json_u64(v, &n) == 0 && n == 0;
    default:
        mo_json_iter(&it, v);
        return !mo_json_next(&it, &key, &val);
    }
}

/* "500m", "1", "512Mi", "2G" in thousandths. False: not a quantity. */
static bool read_quantity(struct mo_json v, uint64_t *out)
{
    static const struct {
        const char *unit;
        uint64_t by;
    } units[] = {{"m", 1},           {"", 1000},           {"k", 1000000},
                 {"M", 1000000000},  {"G", 1000000000000}, {"Ki", 1024000},
                 {"Mi", 1048576000}, {"Gi", 1073741824000}};
    char text[24];
    struct mo_span s;
    size_t n = 0;

    if (mo_json_str_copy(v, text, sizeof(text)) < 0)
        return false;
    s = mo_span_cstr(text);
    while (n < s.n && mo_is_digit(s.p[n]))
        n++;
    if (mo_span_u64(mo_span_head(s, n), out) < 0)
        return false;
    for (size_t i = 0; i < MO_COUNT(units); i++)
        if (mo_span_is(mo_span_skip(s, n), units[i].unit))
            return !__builtin_mul_overflow(*out, units[i].by, out);
    return false;
}

static bool texts_agree(struct mo_json ours, struct mo_json theirs)
{
    mo_autoarena struct mo_arena a = {.cap = MO_POD_BODY_MAX};
    uint64_t x, y;
    struct mo_span s;

    if (mo_json_str(ours, &a, &s) == 0 && mo_json_str_eq(theirs, s))
        return true;
    return read_quantity(ours, &x) && read_quantity(theirs, &y) && x == y;
}

static bool agrees(struct mo_json ours, struct mo_json theirs, unsigned depth);

static bool lists_agree(struct mo_json ours, struct mo_json theirs,
                        unsigned depth)
{
    struct mo_json_iter it;
    struct mo_json key, got;

    if (mo_json_len(ours) != mo_json_len(theirs))
        return false;
    mo_json_iter(&it, theirs);
    mo_json_each (at, ours)
        if (!mo_json_next(&it, &key, &got) || !agrees(at.val, got, depth + 1))
            return false;
    return true;
}

static bool objects_agree(struct mo_json ours, struct mo_json theirs,
                          unsigned depth)
{
    mo_autoarena struct mo_arena a = {.cap = MO_POD_BODY_MAX};

    mo_json_each (at, ours) {
        struct mo_span key;

        if (mo_json_str(at.key, &a, &key) < 0 ||
            !agrees(at.val, mo_json_find(theirs, key), depth + 1))
            return false;
    }
    return true;
}

static bool agrees(struct mo_json ours, struct mo_json theirs, unsigned depth)
{
    enum mo_json_type type = mo_json_type(ours);

    if (is_nothing(ours))
        return is_nothing(theirs);
    if (type != mo_json_type(theirs) || depth > 8)
        return false;
    switch (type) {
    case MO_JSON_ARRAY:
        return lists_agree(ours, theirs, depth);
    case MO_JSON_OBJECT:
        return objects_agree(ours, theirs, depth);
    case MO_JSON_STRING:
        return texts_agree(ours, theirs);
    default:
        return mo_span_eq(mo_json_text(ours), mo_json_text(theirs));
    }
}

static bool has_all(struct mo_json ours, struct mo_json theirs)
{
    mo_json_each (at, ours) {
        bool found = false;

        mo_json_each_while (it, theirs, !found)
            found = agrees(at.val, it.val, 0);
        if (!found)
            return false;
    }
    return true;
}

/* --- comparing pods ------------------------------------------------------ */

static struct mo_json place_of(struct mo_json pod, enum place place)
{
    struct mo_json spec = mo_json_get(pod, "spec");
    struct mo_json box = mo_json_at(mo_json_get(spec, "containers"),
                                    place == NET || place == NET_SEC);

    switch (place) {
    case META:
        return mo_json_get(pod, "metadata");
    case SPEC:
        return spec;
    case POD_SEC:
        return mo_json_get(spec, "securityContext");
    case BOX:
    case NET:
        return box;
    default:
        return mo_json_get(box, "securityContext");
    }
}

static int mismatch(struct mo_err *e, const char *key, struct mo_json got)
{
    int n = (int)(got.n < MISMATCH_SHOWN ? got.n : MISMATCH_SHOWN);

    return mo_fail(e, MO_EPOLICY, "the cluster changed %s of the pod to %.*s",
                   key, n ? n : 7, n ? got.p : "nothing");
}

static int compare_absent(struct mo_json pod, bool net, struct mo_err *e)
{
    for (size_t i = 0; i < MO_COUNT(absent); i++) {
        enum place place = absent[i].place;
        struct mo_json v;

        if (net && place == BOX)
            place = NET;
        else if (net && place == BOX_SEC)
            place = NET_SEC;
        v = mo_json_get(place_of(pod, place), absent[i].key);
        if (!is_nothing(v))
            return mismatch(e, absent[i].key, v);
    }
    if (!is_nothing(mo_json_get(
            mo_json_get(place_of(pod, net ? NET_SEC : BOX_SEC), "capabilities"),
            "add")))
        return mo_fail(e, MO_EPOLICY, "the cluster added capabilities");
    return 0;
}

/* Also refuses one more container, such as a proxy that admission adds. */
static int compare_containers(const struct mo_pod *p, struct mo_json pod,
                              struct mo_err *e)
{
    struct mo_json all = mo_json_get(mo_json_get(pod, "spec"), "containers");
    int rc;

    if (mo_json_len(all) != (p->net_image ? 2 : 1))
        return mismatch(e, "containers", all);
    rc = compare_absent(pod, false, e);
    return rc == 0 && p->net_image ? compare_absent(pod, true, e) : rc;
}

/* All are in memory, but a workspace that is exactly that claim. */
static bool volumes_ok(const struct mo_pod *p, struct mo_json pod)
{
    struct mo_json all = mo_json_get(mo_json_get(pod, "spec"), "volumes");

    mo_json_each (at, all) {
        struct mo_json claim = mo_json_get(at.val, "persistentVolumeClaim");
        bool is_workspace =
            mo_json_str_eq(mo_json_get(at.val, "name"), MO_SPAN(WORKSPACE));

        if (p->claim && is_workspace
                ? !mo_json_str_eq(mo_json_get(claim, "claimName"),
                                  mo_span_cstr(p->claim))
                : !mo_json_is(mo_json_get(at.val, "emptyDir"), MO_JSON_OBJECT))
            return false;
    }
    return mo_json_len(all) == (p->net_files ? 3 : 2);
}

static int compare(const struct mo_pod *p, bool fixed, struct mo_json pod,
                   struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_POD_BODY_MAX};
    struct mo_json_doc doc = {.root = pod};
    int rc = compare_containers(p, pod, e);

    if (rc < 0)
        return rc;
    rc = write_rows(p, fixed, &b);
    if (rc == 0)
        rc = mo_json_parse(mo_buf_view(&b), 0, &doc, NULL);
    if (rc < 0)
        return mo_fail(e, rc, "pod");
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct row *r = &rows[i];
        struct mo_json ours = mo_json_get(place_of(doc.root, r->place), r->key);
        struct mo_json got = mo_json_get(place_of(pod, r->place), r->key);

        if ((fixed && !r->fixed) || (r->place >= NET && !p->net_image))
            continue;
        if (r->how == SOME ? !has_all(ours, got) : !agrees(ours, got, 0))
            return mismatch(e, r->key, got);
    }
    if (!volumes_ok(p, pod))
        return mismatch(e, "volumes",
                        mo_json_get(place_of(pod, SPEC), "volumes"));
    return 0;
}

int mo_pod_compare(const struct mo_pod *p, struct mo_json pod, struct mo_err *e)
{
    return compare(p, false, pod, e);
}

int mo_pod_compare_fixed(struct mo_json pod, bool net, bool files,
                         const char *claim, struct mo_err *e)
{
    const struct mo_pod p = {
        .net_image = net ? "" : NULL, .net_files = files, .claim = claim};

    return compare(&p, true, pod, e);
}
