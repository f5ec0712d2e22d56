/* ctr.c - a container's policy, as one table; see ctr.h. */
#include "engine/ctr.h"

#include <stdio.h>

#include "codec/json/jvalue.h"

#define TMPFS_MAX      160
#define PODMAN_NPROC   4096 /* its default exceeds what we may set */
#define MISMATCH_SHOWN 60
#define STEPS_MAX      ((uint64_t)1 << 20)

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
    MOVED,  /* sent, but podman describes it in another field */
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
    const char *json; /* its value; NULL: write() makes it */
    void (*write)(struct mo_jw *w, const struct mo_ctr *c);
};

/* --- writers ------------------------------------------------------------- */

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

static void w_image(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_cstr(w, c->image);
}

static void w_user(struct mo_jw *w, const struct mo_ctr *c)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%u:%u", c->uid, c->gid);
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

static void w_labels(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_obj(w);
    for (size_t i = 0; i < c->nlabels; i++)
        mo_jw_member_cstr(w, c->labels[i].key, c->labels[i].value);
    mo_jw_end(w);
}

static void w_memory(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_u64(w, c->memory);
}

static void w_cpus(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_u64(w, (uint64_t)c->cpu_milli * 1000000);
}

static void w_pids(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_u64(w, c->pids);
}

static void w_security(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_CTR_BODY_MAX};

    mo_jw_arr(w);
    mo_jw_cstr(w, c->flavour == MO_CTR_PODMAN ? "no-new-privileges"
                                              : "no-new-privileges:true");
    if (c->seccomp) {
        (void)mo_buf_puts(&b, "seccomp=");
        (void)mo_buf_puts(&b, c->seccomp);
        mo_jw_buf(w, &b);
    }
    mo_jw_end(w);
}

/* A disabled network is not joined, and has no resolv.conf to share. */
static void w_disabled(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_bool(w, !c->share && !c->network);
}

static void w_network(struct mo_jw *w, const struct mo_ctr *c)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "%s%s", c->network ? "container:" : "",
                   c->network ? c->network : "none");
    mo_jw_cstr(w, text);
}

/* Engines refuse it for a container with another's network. */
static void w_dns(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_arr(w);
    if (!c->network)
        mo_jw_cstr(w, "127.0.0.1");
    mo_jw_end(w);
}

/* A volume in memory, which is gone with the container. */
static void w_files(struct mo_jw *w)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "Type", "volume");
    mo_jw_member_cstr(w, "Target", MO_CTR_FILES);
    mo_jw_member_obj(w, "VolumeOptions");
    mo_jw_member_bool(w, "NoCopy", true);
    mo_jw_member_obj(w, "DriverConfig");
    mo_jw_member_cstr(w, "Name", "local");
    mo_jw_member_obj(w, "Options");
    mo_jw_member_cstr(w, "type", "tmpfs");
    mo_jw_member_cstr(w, "device", "tmpfs");
    mo_jw_member_cstr(w, "o",
                      "size=8m,nr_inodes=16,mode=0777,noexec,nosuid,nodev");
    mo_jw_end(w);
    mo_jw_end(w);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void w_share(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_arr(w);
    if (*c->share) {
        mo_jw_obj(w);
        mo_jw_member_cstr(w, "Type", "bind");
        mo_jw_member_cstr(w, "Source", c->share);
        mo_jw_member_cstr(w, "Target", MO_CTR_SHARE);
        mo_jw_end(w);
    }
    if (c->files)
        w_files(w);
    mo_jw_end(w);
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
                     x, (unsigned long long)size, inodes, c->uid, c->gid);
    MO_BUG_ON(n < 0 || (size_t)n >= sizeof(opts));
    mo_jw_member_cstr(w, path, opts);
}

static bool is_bound(const struct mo_ctr *c, const char *target)
{
    for (size_t i = 0; i < c->nbinds; i++)
        if (strcmp(c->binds[i].target, target) == 0)
            return true;
    return false;
}

/* Not recursive: other mounts below a folder stay out. */
static void w_binds(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_arr(w);
    for (size_t i = 0; i < c->nbinds; i++) {
        const struct mo_ctr_bind *b = &c->binds[i];

        mo_jw_obj(w);
        mo_jw_member_cstr(w, "Type", b->volume ? "volume" : "bind");
        mo_jw_member_cstr(w, "Source", b->source);
        mo_jw_member_cstr(w, "Target", b->target);
        if (!b->rw) /* engines omit false */
            mo_jw_member_bool(w, "ReadOnly", true);
        mo_jw_member_obj(w, b->volume ? "VolumeOptions" : "BindOptions");
        if (!b->volume)
            mo_jw_member_cstr(w, "Propagation", "rprivate");
        /* A writable volume gets owner and mode of the place. */
        if (!b->volume || !b->rw)
            mo_jw_member_bool(w, b->volume ? "NoCopy" : "NonRecursive", true);
        mo_jw_end(w);
        mo_jw_end(w);
    }
    mo_jw_end(w);
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
    if (!is_bound(c, MO_CTR_WORKSPACE))
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

/* Docker turns IPv6 off where it gives no address. */
static void w_sysctls(struct mo_jw *w, const struct mo_ctr *c)
{
    mo_jw_obj(w);
    if (c->ipv6) {
        mo_jw_member_cstr(w, "net.ipv6.conf.all.disable_ipv6", "0");
        mo_jw_member_cstr(w, "net.ipv6.conf.lo.disable_ipv6", "0");
    }
    mo_jw_end(w);
}

/* --- the table -------------------------------------------------------------
 *
 * AutoRemove is false, and StdinOnce unless asked for, because a box outlives
 * this process: another one attaches to it again. The sweep removes boxes
 * without an owner. Without Dns the box would learn the host's name servers.
 * OomScoreAdj: when the host runs out of memory, boxes are killed first. The
 * program's output goes to us, not to a log file on the host (LogConfig). */

#define FIXED true

/* Sent in full: an empty list would unmask everything. */
static const char masked[] =
    "[\"/proc/acpi\",\"/proc/asound\",\"/proc/interrupts\","
    "\"/proc/kallsyms\",\"/proc/kcore\",\"/proc/keys\","
    "\"/proc/latency_stats\",\"/proc/sched_debug\",\"/proc/scsi\","
    "\"/proc/timer_list\",\"/proc/timer_stats\","
    "\"/sys/devices/virtual/powercap\",\"/sys/firmware\"]";
static const char readonly[] =
    "[\"/proc/bus\",\"/proc/fs\",\"/proc/irq\",\"/proc/sys\","
    "\"/proc/sysrq-trigger\"]";

static const struct row rows[] = {
    {CONFIG, "Image", SAME, false, SILENT, NULL, w_image},
    {CONFIG, "User", SAME, false, ALIKE, NULL, w_user},
    {CONFIG, "WorkingDir", SAME, false, ALIKE, NULL, w_workdir},
    {CONFIG, "Entrypoint", SAME, false, ALIKE, NULL, w_argv},
    {CONFIG, "Cmd", SAME, FIXED, ALIKE, "[]", NULL},
    {CONFIG, "Env", SET, false, MORE, NULL, w_env},
    {CONFIG, "NetworkDisabled", SAME, FIXED, SILENT, NULL, w_disabled},
    {CONFIG, "Tty", SAME, FIXED, ALIKE, "false", NULL},
    {CONFIG, "OpenStdin", SAME, FIXED, ALIKE, "true", NULL},
    {CONFIG, "StdinOnce", SAME, false, ALIKE, NULL, w_once},
    {CONFIG, "AttachStdin", SAME, FIXED, SILENT, "true", NULL},
    {CONFIG, "AttachStdout", SAME, FIXED, SILENT, "true", NULL},
    {CONFIG, "AttachStderr", SAME, FIXED, SILENT, "true", NULL},
    {CONFIG, "Healthcheck", OURS, FIXED, ALIKE, "{\"Test\":[\"NONE\"]}", NULL},
    {CONFIG, "StopSignal", SAME, FIXED, SILENT, "\"SIGKILL\"", NULL},
    {CONFIG, "StopTimeout", SAME, FIXED, ALIKE, "1", NULL},
    {CONFIG, "Labels", OURS, false, ALIKE, NULL, w_labels},
    {HOST, "NetworkMode", SAME, FIXED, ALIKE, NULL, w_network},
    {HOST, "Dns", SAME, FIXED, ALIKE, NULL, w_dns},
    {HOST, "PublishAllPorts", SAME, FIXED, ALIKE, "false", NULL},
    {HOST, "Memory", SAME, false, ALIKE, NULL, w_memory},
    {HOST, "MemorySwap", SAME, false, ALIKE, NULL, w_memory},
    {HOST, "MemorySwappiness", SAME, FIXED, UNSENT, "0", NULL},
    {HOST, "NanoCpus", SAME, false, ALIKE, NULL, w_cpus},
    {HOST, "CpuShares", SAME, FIXED, ALIKE, "256", NULL},
    {HOST, "PidsLimit", SAME, false, ALIKE, NULL, w_pids},
    {HOST, "OomScoreAdj", SAME, FIXED, ALIKE, "800", NULL},
    {HOST, "Privileged", SAME, FIXED, ALIKE, "false", NULL},
    {HOST, "CapDrop", SAME, FIXED, SILENT, "[\"ALL\"]", NULL},
    {HOST, "SecurityOpt", SET, FIXED, ALIKE, NULL, w_security},
    {HOST, "ReadonlyRootfs", SAME, FIXED, ALIKE, "true", NULL},
    {HOST, "IpcMode", SAME, FIXED, SILENT, "\"none\"", NULL},
    {HOST, "PidMode", SAME, FIXED, SILENT, "\"\"", NULL},
    {HOST, "UTSMode", SAME, FIXED, SILENT, "\"\"", NULL},
    {HOST, "CgroupnsMode", SAME, FIXED, SILENT, "\"private\"", NULL},
    {HOST, "Init", SAME, FIXED, UNSENT, "true", NULL},
    {HOST, "Tmpfs", SAME, false, LONGER, NULL, w_tmpfs},
    {HOST, "Ulimits", SET, false, SILENT, NULL, w_ulimits},
    {HOST, "MaskedPaths", SAME, FIXED, SILENT, masked, NULL},
    {HOST, "ReadonlyPaths", SAME, FIXED, SILENT, readonly, NULL},
    {HOST, "LogConfig", OURS, FIXED, ALIKE, "{\"Type\":\"none\"}", NULL},
    {HOST, "RestartPolicy", OURS, FIXED, ALIKE, "{\"Name\":\"no\"}", NULL},
    {HOST, "AutoRemove", SAME, FIXED, ALIKE, "false", NULL},
};

/* Of a box only. */
static const struct row box_rows[] = {
    {HOST, "Mounts", SAME, FIXED, MOVED, NULL, w_binds},
};

/* Of a network container only. */
static const struct row net_rows[] = {
    {HOST, "CapAdd", SET, false, SILENT, "[\"NET_ADMIN\",\"NET_BIND_SERVICE\"]",
     NULL},
    {HOST, "Mounts", SAME, false, SILENT, NULL, w_share},
    {HOST, "Sysctls", SAME, false, SILENT, NULL, w_sysctls},
};

/* Never requested: must be empty, zero or missing. */
static const char *const absent[] = {
    "Binds",          "CapAdd",         "CgroupParent",      "ContainerIDFile",
    "Devices",        "DeviceRequests", "DeviceCgroupRules", "DnsOptions",
    "DnsSearch",      "ExtraHosts",     "GroupAdd",          "Links",
    "OomKillDisable", "PortBindings",   "StorageOpt",        "Sysctls",
    "UsernsMode",     "VolumesFrom",
};

/* The i-th row for this container, or NULL. */
static const struct row *row_at(const struct mo_ctr *c, size_t i)
{
    if (i < MO_COUNT(rows))
        return &rows[i];
    i -= MO_COUNT(rows);
    if (c->share)
        return i < MO_COUNT(net_rows) ? &net_rows[i] : NULL;
    return i < MO_COUNT(box_rows) ? &box_rows[i] : NULL;
}

static void write_place(struct mo_jw *w, const struct mo_ctr *c,
                        enum place place, bool fixed_only)
{
    for (size_t i = 0; row_at(c, i); i++) {
        const struct row *r = row_at(c, i);

        if (r->place != place || (fixed_only && !r->fixed) ||
            (r->podman == UNSENT && c->flavour == MO_CTR_PODMAN))
            continue;
        mo_jw_key(w, r->key);
        if (r->json)
            mo_jw_raw(w, mo_span_cstr(r->json));
        else
            r->write(w, c);
    }
}

static int write_rows(const struct mo_ctr *c, struct mo_buf *b, bool fixed_only)
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
    return write_rows(c, b, false);
}

/* --- when two values agree -------------------------------------------------
 *
 * Engines return values in forms of their own: an empty value may be null, "",
 * [], {}, 0, false or missing; lists may be reordered; podman adds to some. */

static bool is_nothing(struct mo_json v)
{
    bool yes = false;
    uint64_t n = 1;

    switch (mo_json_type(v)) {
    case MO_JSON_NONE:
    case MO_JSON_NULL:
        return true;
    case MO_JSON_BOOL:
        return mo_json_bool(v, &yes) == 0 && !yes;
    case MO_JSON_NUMBER:
        return mo_json_u64(v, &n) == 0 && n == 0;
    case MO_JSON_STRING:
        return mo_json_str_eq(v, MO_SPAN(""));
    default:
        return mo_json_len(v) == 0;
    }
}

/* Equal, or both empty. */
static bool agrees(struct mo_json a, struct mo_json b)
{
    uint64_t steps = STEPS_MAX;

    if (is_nothing(a) && is_nothing(b))
        return true;
    if (!a.p || !b.p)
        return false;
    return mo_jvalue_equal(a, b, &steps) == 1;
}

static bool has_element(struct mo_json array, struct mo_json want)
{
    mo_json_each (at, array)
        if (agrees(at.val, want))
            return true;
    return false;
}

/* Arrays: the same elements in any order; more: theirs may have extra ones. */
static bool set_agrees(struct mo_json ours, struct mo_json theirs, bool more)
{
    if (!more && mo_json_len(ours) != mo_json_len(theirs))
        return false;
    mo_json_each (at, ours)
        if (!has_element(theirs, at.val))
            return false;
    return true;
}

/* True for "rw,size=1" and "rw,size=1,rprivate" (neither has escapes). */
static bool begins_with(struct mo_json with, struct mo_json text)
{
    return mo_json_is(text, MO_JSON_STRING) && with.n >= 2 &&
           mo_span_starts(mo_json_text(text), mo_span(with.p, with.n - 1));
}

/* Objects: all members of ours are in theirs and equal; longer: their texts
 * may continue after ours. */
static bool ours_agrees(struct mo_json ours, struct mo_json theirs, bool longer)
{
    if (!mo_json_is(theirs, MO_JSON_OBJECT))
        return false;
    mo_json_each (at, ours) {
        struct mo_json got = mo_jvalue_find(theirs, at.key);

        if (longer ? !begins_with(at.val, got) : !agrees(at.val, got))
            return false;
    }
    return true;
}

/* --- comparing ----------------------------------------------------------- */

static bool row_agrees(const struct mo_ctr *c, const struct row *r,
                       struct mo_json ours, struct mo_json theirs)
{
    bool podman = c->flavour == MO_CTR_PODMAN;

    if (podman && (r->podman == SILENT || r->podman == UNSENT))
        return true;
    if (podman && r->podman == MOVED && is_nothing(theirs))
        return true;
    if (podman && r->podman == LONGER)
        return ours_agrees(ours, theirs, true);
    if (r->how == SET)
        return set_agrees(ours, theirs, podman && r->podman == MORE);
    return r->how == OURS ? ours_agrees(ours, theirs, false)
                          : agrees(ours, theirs);
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

    for (size_t i = 0; row_at(c, i); i++) {
        const struct row *r = row_at(c, i);
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

/* The name of a volume that the engine made for the container. */
static bool is_our_files(const struct mo_ctr *c, struct mo_json mount)
{
    return c->share && c->files &&
           mo_json_str_eq(mo_json_get(mount, "Destination"),
                          MO_SPAN(MO_CTR_FILES));
}

static bool is_our_bind(const struct mo_ctr *c, struct mo_json mount,
                        bool volume)
{
    bool rw = mo_json_flag(mount, "RW");

    for (size_t i = 0; i < c->nbinds; i++)
        if (c->binds[i].rw == rw && c->binds[i].volume == volume &&
            mo_json_str_eq(mo_json_get(mount, volume ? "Name" : "Source"),
                           mo_span_cstr(c->binds[i].source)) &&
            mo_json_str_eq(mo_json_get(mount, "Destination"),
                           mo_span_cstr(c->binds[i].target)))
            return true;
    if (volume)
        return is_our_files(c, mount);
    return c->share && *c->share &&
           mo_json_str_eq(mo_json_get(mount, "Source"),
                          mo_span_cstr(c->share)) &&
           mo_json_str_eq(mo_json_get(mount, "Destination"),
                          MO_SPAN(MO_CTR_SHARE));
}

/* Only tmpfs and what was asked for may be mounted: a volume of an image would
 * be the host's disk. */
static bool has_only_our_mounts(const struct mo_ctr *c, struct mo_json mounts)
{
    mo_json_each (at, mounts) {
        struct mo_json type = mo_json_get(at.val, "Type");

        if (!mo_json_str_eq(type, MO_SPAN("tmpfs")) &&
            !(mo_json_str_eq(type, MO_SPAN("bind")) &&
              is_our_bind(c, at.val, false)) &&
            !(mo_json_str_eq(type, MO_SPAN("volume")) &&
              is_our_bind(c, at.val, true)))
            return false;
    }
    return true;
}

/* A row of a network container says what it must be. podman describes mounts as
 * Binds; they are in Mounts, too. */
static bool must_be_absent(const struct mo_ctr *c, const char *key)
{
    if (((c->share && *c->share) || c->nbinds) && c->flavour == MO_CTR_PODMAN &&
        strcmp(key, "Binds") == 0)
        return false;
    for (size_t i = 0; i < MO_COUNT(net_rows); i++)
        if (strcmp(net_rows[i].key, key) == 0)
            return !c->share;
    return true;
}

static int compare_absent(const struct mo_ctr *c, struct mo_json inspect,
                          struct mo_err *e)
{
    struct mo_json host = mo_json_get(inspect, "HostConfig");
    struct mo_json mounts = mo_json_get(inspect, "Mounts");

    if (!mo_json_is(host, MO_JSON_OBJECT) ||
        !mo_json_is(mo_json_get(inspect, "Config"), MO_JSON_OBJECT))
        return mo_fail(e, MO_EPROTO, "the engine's account of the container");
    for (size_t i = 0; i < MO_COUNT(absent); i++) {
        struct mo_json v = mo_json_get(host, absent[i]);

        if (!is_nothing(v) && must_be_absent(c, absent[i]))
            return mismatch(e, absent[i], v);
    }
    if (!has_only_our_mounts(c, mounts))
        return mismatch(e, "Mounts", mounts);
    return 0;
}

static int compare_all(const struct mo_ctr *c, struct mo_json inspect,
                       bool fixed_only, struct mo_err *e)
{
    struct mo_json_doc doc = {.has_nl = false};
    mo_autobuf struct mo_buf b = {.max = MO_CTR_BODY_MAX};
    int rc = compare_absent(c, inspect, e);

    if (rc < 0)
        return rc;
    rc = write_rows(c, &b, fixed_only);
    if (rc == 0)
        rc = mo_json_parse(mo_buf_view(&b), 0, &doc, NULL);
    return rc < 0 ? mo_fail(e, rc, "container")
                  : compare_rows(c, doc.root, inspect, fixed_only, e);
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
    if (!is_nothing(running))
        return mismatch(e, "State", running);
    return compare_all(c, inspect, false, e);
}

int mo_ctr_read_volume(struct mo_json inspect, char out[MO_CTR_VOLUME],
                       struct mo_err *e)
{
    mo_json_each (at, mo_json_get(inspect, "Mounts"))
        if (mo_json_str_eq(mo_json_get(at.val, "Destination"),
                           MO_SPAN(MO_CTR_FILES)) &&
            mo_json_str_eq(mo_json_get(at.val, "Type"), MO_SPAN("volume")) &&
            mo_json_str_copy(mo_json_get(at.val, "Name"), out, MO_CTR_VOLUME) ==
                0 &&
            *out)
            return 0;
    return mo_fail(e, MO_EPROTO, "the engine made no volume");
}

int mo_ctr_compare_fixed(const struct mo_ctr *c, struct mo_json inspect,
                         struct mo_err *e)
{
    return compare_all(c, inspect, true, e);
}
