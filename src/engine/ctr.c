/* ctr.c - a container's policy, as one table; see ctr.h. */
#include "engine/ctr.h"

#include <stdio.h>

#include "engine/agree.h"

#define TMPFS_MAX      160
#define PODMAN_NPROC   4096 /* its default exceeds what we may set */
#define MISMATCH_SHOWN 60

enum place { CONFIG, HOST };

enum compare {
    SAME, /* equal; all empty values are equal: "", [], null */
    SET,  /* arrays: the same elements in any order */
    OURS, /* objects: all of ours exist; the image may add others */
};

/* How podman differs for a field. */
enum podman {
    ALIKE,
    SILENT, /* sent, but podman describes it in another form */
    MORE,   /* an array: podman adds elements to ours */
    LONGER, /* an object: podman adds to our members' texts, and members */
    UNSENT, /* it refuses the field */
};

struct row {
    enum place place;
    const char *key;
    enum compare how;
    bool fixed;
    enum podman podman;
    void (*write)(struct mo_jw *w, const struct mo_ctr *c);
};

/* --- writers ------------------------------------------------------------- */

static void w_true(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_bool(w, true);
}

static void w_false(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_bool(w, false);
}

static void w_once(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_bool(w, c->once);
}

static void w_words(struct mo_jw *w, const char *const *v)
{
    mo_jw_arr(w);
    for (; v && *v; v++)
        mo_jw_cstr(w, *v);
    mo_jw_end(w);
}

static void w_none(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    w_words(w, NULL);
}

static void w_image(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_cstr(w, c->image);
}

static void w_user(struct mo_jw *w, const struct mo_ctr *c)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%u:%u", c->uid, c->uid);
    mo_jw_cstr(w, text);
}

static void w_workdir(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_cstr(w, c->workdir);
}

/* The whole command as Entrypoint: a Cmd of the image must not become its
 * arguments. */
static void w_argv(struct mo_jw *w, const struct mo_ctr *c)
{
    w_words(w, c->argv);
}

static void w_env(struct mo_jw *w, const struct mo_ctr *c)
{
    w_words(w, c->env);
}

static void w_healthcheck(struct mo_jw *w, const struct mo_ctr *c)
{
    static const char *const none[] = {"NONE", NULL};

    (void)c;
    mo_jw_obj(w);
    mo_jw_key(w, "Test");
    w_words(w, none);
    mo_jw_end(w);
}

static void w_sigkill(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_cstr(w, "SIGKILL");
}

static void w_one(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_u64(w, 1);
}

static void w_labels(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_obj(w);
    for (size_t i = 0; i < c->nlabels; i++)
        mo_jw_member_cstr(w, c->labels[i].key, c->labels[i].value);
    mo_jw_end(w);
}

static void w_none_word(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_cstr(w, "none");
}

static void w_empty(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_cstr(w, "");
}

static void w_private(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_cstr(w, "private");
}

/* Without this the box would learn the host's name servers. */
static void w_dns(struct mo_jw *w, const struct mo_ctr *c)
{
    static const char *const here[] = {"127.0.0.1", NULL};

    (void)c;
    w_words(w, here);
}

static void w_memory(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_u64(w, c->memory);
}

static void w_zero(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_u64(w, 0);
}

static void w_cpus(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_u64(w, (uint64_t)c->cpu_milli * 1000000);
}

static void w_shares(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_u64(w, 256);
}

static void w_pids(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_u64(w, c->pids);
}

/* When the host runs out of memory, boxes are killed first. */
static void w_oom_score(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_u64(w, 800);
}

static void w_all(struct mo_jw *w, const struct mo_ctr *c)
{
    static const char *const all[] = {"ALL", NULL};

    (void)c;
    w_words(w, all);
}

static void w_security(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_CTR_BODY_MAX};

    (void)mo_buf_puts(&b, "seccomp=");
    (void)mo_buf_puts(&b, c->seccomp);
    mo_jw_arr(w);
    mo_jw_cstr(w, c->flavour == MO_CTR_PODMAN ? "no-new-privileges"
                                              : "no-new-privileges:true");
    mo_jw_str(w, mo_buf_view(&b));
    mo_jw_end(w);
    if (mo_buf_err(&b) && !w->b->err)
        w->b->err = mo_buf_err(&b);
}

/* A writable path: a tmpfs of limited size, owned by the box's uid. podman
 * takes neither owner nor inodes; there the memory limit alone bounds them,
 * and the mode lets our uid in. */
static void w_tmpfs_row(struct mo_jw *w, const struct mo_ctr *c,
                        const char *path, bool exec, uint64_t size,
                        unsigned inodes)
{
    char opts[TMPFS_MAX];
    const char *x = exec ? "exec" : "noexec";
    int n;

    if (c->flavour == MO_CTR_PODMAN)
        n = snprintf(opts, sizeof(opts),
                     "rw,%s,nosuid,nodev,size=%llu,mode=1777", x,
                     (unsigned long long)size);
    else
        n = snprintf(opts, sizeof(opts),
                     "rw,%s,nosuid,nodev,size=%llu,nr_inodes=%u,uid=%u,gid=%u,"
                     "mode=0700",
                     x, (unsigned long long)size, inodes, c->uid, c->uid);
    MO_BUG_ON(n < 0 || (size_t)n >= sizeof(opts));
    mo_jw_member_cstr(w, path, opts);
}

/* podman mounts two more on a read-only root, of any size unless limited. */
static void w_tmpfs(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_obj(w);
    if (c->flavour == MO_CTR_PODMAN) {
        w_tmpfs_row(w, c, "/run", false, c->tmp, 0);
        w_tmpfs_row(w, c, "/var/tmp", false, c->tmp, 0);
    }
    w_tmpfs_row(w, c, "/tmp", false, c->tmp, c->tmp_inodes);
    w_tmpfs_row(w, c, MO_CTR_WORKSPACE, true, c->workspace,
                c->workspace_inodes);
    for (const char *const *v = c->volumes; v && *v; v++)
        w_tmpfs_row(w, c, *v, false, c->tmp, c->tmp_inodes);
    mo_jw_end(w);
}

static void w_ulimit(struct mo_jw *w, const char *name, uint64_t v)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "Name", name);
    mo_jw_member_u64(w, "Soft", v);
    mo_jw_member_u64(w, "Hard", v);
    mo_jw_end(w);
}

/* nproc counts a uid's processes on the whole host: pids is the limit. */
static void w_ulimits(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_arr(w);
    w_ulimit(w, "nofile", c->open_files);
    w_ulimit(w, "core", 0);
    w_ulimit(w, "fsize", c->file_size);
    w_ulimit(w, "memlock", 0);
    w_ulimit(w, "msgqueue", 0);
    if (c->flavour == MO_CTR_PODMAN)
        w_ulimit(w, "nproc", PODMAN_NPROC);
    mo_jw_end(w);
}

/* Sent in full: an empty list would unmask everything. */
static void w_masked(struct mo_jw *w, const struct mo_ctr *c)
{
    static const char *const paths[] = {
        "/proc/acpi",          "/proc/asound",
        "/proc/interrupts",    "/proc/kallsyms",
        "/proc/kcore",         "/proc/keys",
        "/proc/latency_stats", "/proc/sched_debug",
        "/proc/scsi",          "/proc/timer_list",
        "/proc/timer_stats",   "/sys/devices/virtual/powercap",
        "/sys/firmware",       NULL};

    (void)c;
    w_words(w, paths);
}

static void w_readonly(struct mo_jw *w, const struct mo_ctr *c)
{
    static const char *const paths[] = {"/proc/bus",           "/proc/fs",
                                        "/proc/irq",           "/proc/sys",
                                        "/proc/sysrq-trigger", NULL};

    (void)c;
    w_words(w, paths);
}

/* The program's output goes to us, not to a log file on the host. */
static void w_log(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "Type", "none");
    mo_jw_end(w);
}

static void w_restart(struct mo_jw *w, const struct mo_ctr *c)
{
    (void)c;
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "Name", "no");
    mo_jw_end(w);
}

/* --- the table -------------------------------------------------------------
 *
 * AutoRemove is false, and StdinOnce unless asked for, because a box outlives
 * this process: another one attaches to it again. The sweep removes boxes
 * without an owner. */

#define FIXED true

static const struct row rows[] = {
    {CONFIG, "Image", SAME, false, SILENT, w_image},
    {CONFIG, "User", SAME, false, ALIKE, w_user},
    {CONFIG, "WorkingDir", SAME, false, ALIKE, w_workdir},
    {CONFIG, "Entrypoint", SAME, false, ALIKE, w_argv},
    {CONFIG, "Cmd", SAME, FIXED, ALIKE, w_none},
    {CONFIG, "Env", SET, false, MORE, w_env},
    {CONFIG, "NetworkDisabled", SAME, FIXED, SILENT, w_true},
    {CONFIG, "Tty", SAME, FIXED, ALIKE, w_false},
    {CONFIG, "OpenStdin", SAME, FIXED, ALIKE, w_true},
    {CONFIG, "StdinOnce", SAME, false, ALIKE, w_once},
    {CONFIG, "AttachStdin", SAME, FIXED, SILENT, w_true},
    {CONFIG, "AttachStdout", SAME, FIXED, SILENT, w_true},
    {CONFIG, "AttachStderr", SAME, FIXED, SILENT, w_true},
    {CONFIG, "Healthcheck", OURS, FIXED, ALIKE, w_healthcheck},
    {CONFIG, "StopSignal", SAME, FIXED, SILENT, w_sigkill},
    {CONFIG, "StopTimeout", SAME, FIXED, ALIKE, w_one},
    {CONFIG, "Labels", OURS, false, ALIKE, w_labels},
    {HOST, "NetworkMode", SAME, FIXED, ALIKE, w_none_word},
    {HOST, "Dns", SAME, FIXED, ALIKE, w_dns},
    {HOST, "PublishAllPorts", SAME, FIXED, ALIKE, w_false},
    {HOST, "Memory", SAME, false, ALIKE, w_memory},
    {HOST, "MemorySwap", SAME, false, ALIKE, w_memory},
    {HOST, "MemorySwappiness", SAME, FIXED, UNSENT, w_zero},
    {HOST, "NanoCpus", SAME, false, ALIKE, w_cpus},
    {HOST, "CpuShares", SAME, FIXED, ALIKE, w_shares},
    {HOST, "PidsLimit", SAME, false, ALIKE, w_pids},
    {HOST, "OomScoreAdj", SAME, FIXED, ALIKE, w_oom_score},
    {HOST, "Privileged", SAME, FIXED, ALIKE, w_false},
    {HOST, "CapDrop", SAME, FIXED, SILENT, w_all},
    {HOST, "SecurityOpt", SET, FIXED, ALIKE, w_security},
    {HOST, "ReadonlyRootfs", SAME, FIXED, ALIKE, w_true},
    {HOST, "IpcMode", SAME, FIXED, SILENT, w_none_word},
    {HOST, "PidMode", SAME, FIXED, SILENT, w_empty},
    {HOST, "UTSMode", SAME, FIXED, SILENT, w_empty},
    {HOST, "CgroupnsMode", SAME, FIXED, SILENT, w_private},
    {HOST, "Init", SAME, FIXED, UNSENT, w_true},
    {HOST, "Tmpfs", SAME, false, LONGER, w_tmpfs},
    {HOST, "Ulimits", SET, false, SILENT, w_ulimits},
    {HOST, "MaskedPaths", SAME, FIXED, SILENT, w_masked},
    {HOST, "ReadonlyPaths", SAME, FIXED, SILENT, w_readonly},
    {HOST, "LogConfig", OURS, FIXED, ALIKE, w_log},
    {HOST, "RestartPolicy", OURS, FIXED, ALIKE, w_restart},
    {HOST, "AutoRemove", SAME, FIXED, ALIKE, w_false},
};

/* Never requested: must be empty, zero or missing. */
static const char *const absent[] = {
    "Binds",     "CapAdd",         "CgroupParent",      "ContainerIDFile",
    "Devices",   "DeviceRequests", "DeviceCgroupRules", "DnsOptions",
    "DnsSearch", "ExtraHosts",     "GroupAdd",          "Links",
    "Mounts",    "OomKillDisable", "PortBindings",      "StorageOpt",
    "Sysctls",   "UsernsMode",     "VolumesFrom",
};

static bool is_sent(const struct row *r, const struct mo_ctr *c)
{
    return c->flavour != MO_CTR_PODMAN || r->podman != UNSENT;
}

static void write_place(struct mo_jw *w, const struct mo_ctr *c,
                        enum place place, bool fixed_only)
{
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (rows[i].place != place || !is_sent(&rows[i], c) ||
            (fixed_only && !rows[i].fixed))
            continue;
        mo_jw_key(w, rows[i].key);
        rows[i].write(w, c);
    }
}

static int write_all(const struct mo_ctr *c, struct mo_buf *b, bool fixed_only)
{
    struct mo_jw w = mo_jw_object(b);

    write_place(&w, c, CONFIG, fixed_only);
    mo_jw_member_obj(&w, "HostConfig");
    write_place(&w, c, HOST, fixed_only);
    mo_jw_end(&w);
    mo_jw_end(&w);
    return mo_buf_err(b);
}

int mo_ctr_write(const struct mo_ctr *c, struct mo_buf *b)
{
    return write_all(c, b, false);
}

/* --- comparing ----------------------------------------------------------- */

static bool row_agrees(const struct mo_ctr *c, const struct row *r,
                       struct mo_json ours, struct mo_json theirs)
{
    bool podman = c->flavour == MO_CTR_PODMAN;

    if (podman && (r->podman == SILENT || r->podman == UNSENT))
        return true;
    if (podman && r->podman == LONGER)
        return mo_agree_ours(ours, theirs, true);
    if (r->how == SET)
        return mo_agree_set(ours, theirs, podman && r->podman == MORE);
    return r->how == OURS ? mo_agree_ours(ours, theirs, false)
                          : mo_agree_same(ours, theirs);
}

static int mismatch(struct mo_err *e, const char *key, struct mo_json got)
{
    int n = (int)(got.n < MISMATCH_SHOWN ? got.n : MISMATCH_SHOWN);

    return mo_fail(e, MO_EPOLICY, "the engine changed %s, it reports: %.*s",
                   key, n, n ? got.p : "");
}

static int compare_rows(const struct mo_ctr *c, struct mo_json body,
                        struct mo_json inspect, bool fixed_only,
                        struct mo_err *e)
{
    struct mo_json host = mo_json_get(body, "HostConfig");

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct row *r = &rows[i];
        bool config = r->place == CONFIG;
        struct mo_json ours = mo_json_get(config ? body : host, r->key);
        struct mo_json theirs = mo_json_get(
            mo_json_get(inspect, config ? "Config" : "HostConfig"), r->key);

        if (fixed_only && !r->fixed)
            continue;
        if (!row_agrees(c, r, ours, theirs))
            return mismatch(e, r->key, theirs);
    }
    return 0;
}

/* Only tmpfs may be mounted: a volume of an image would be the host's disk. */
static bool is_tmpfs_only(struct mo_json mounts)
{
    for (struct mo_json_walk at = mo_json_walk(mounts); mo_json_step(&at);)
        if (!mo_json_str_eq(mo_json_get(at.val, "Type"), MO_SPAN("tmpfs")))
            return false;
    return true;
}

static int compare_absent(struct mo_json inspect, struct mo_err *e)
{
    struct mo_json host = mo_json_get(inspect, "HostConfig");
    struct mo_json mounts = mo_json_get(inspect, "Mounts");

    if (!mo_json_is(host, MO_JSON_OBJECT) ||
        !mo_json_is(mo_json_get(inspect, "Config"), MO_JSON_OBJECT))
        return mo_fail(e, MO_EPROTO, "the engine's account of the container");
    for (size_t i = 0; i < MO_COUNT(absent); i++) {
        struct mo_json v = mo_json_get(host, absent[i]);

        if (!mo_agree_nothing(v))
            return mismatch(e, absent[i], v);
    }
    if (!is_tmpfs_only(mounts))
        return mismatch(e, "Mounts", mounts);
    return 0;
}

static int compare_all(const struct mo_ctr *c, struct mo_json inspect,
                       bool fixed_only, struct mo_err *e)
{
    struct mo_json_doc doc = {.has_nl = false};
    mo_autobuf struct mo_buf b = {.max = MO_CTR_BODY_MAX};
    int rc = compare_absent(inspect, e);

    if (rc < 0)
        return rc;
    rc = write_all(c, &b, fixed_only);
    if (rc == 0)
        rc = mo_json_parse(mo_buf_view(&b), 0, &doc, NULL);
    if (rc < 0)
        rc = mo_fail(e, rc, "container");
    else
        rc = compare_rows(c, doc.root, inspect, fixed_only, e);
    return rc;
}

int mo_ctr_compare(const struct mo_ctr *c, struct mo_json inspect,
                   struct mo_err *e)
{
    struct mo_json image = mo_json_get(inspect, "Image");
    struct mo_json running =
        mo_json_get(mo_json_get(inspect, "State"), "Running");
    struct mo_span id = mo_span_cstr(c->image);

    /* podman omits the kind of digest in the id */
    if (!mo_json_str_eq(image, id) &&
        !(c->flavour == MO_CTR_PODMAN && id.n > 7 &&
          mo_json_str_eq(image, mo_span_skip(id, 7))))
        return mismatch(e, "Image", image);
    if (!mo_agree_nothing(running))
        return mismatch(e, "State", running);
    return compare_all(c, inspect, false, e);
}

int mo_ctr_compare_fixed(const struct mo_ctr *c, struct mo_json inspect,
                         struct mo_err *e)
{
    return compare_all(c, inspect, true, e);
}
