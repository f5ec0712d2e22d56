/* cgroup.c - limits in cgroup v1 and v2. */
#include "launcher/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/mem.h"
#include "launcher/hier.h"
#include "launcher/kernel_file.h"

#define PARENT     "mo-box"
#define PERIOD_US  100000 /* of the CPU quota */
#define WAIT_MS    2000   /* for a group to become empty */
#define VALUE_MAX  64
#define STAT_MAX   4096
#define ROOT_TRIES 20 /* groups to try, from our own upwards */

static const char *const controllers[MO_CG_KINDS] = {
    [MO_CG_PIDS] = "pids",
    [MO_CG_MEMORY] = "memory",
    [MO_CG_CPU] = "cpu",
    [MO_CG_FREEZER] = "freezer",
};

static bool is_mandatory(int kind)
{
    return kind <= MO_CG_CPU;
}

/* --- groups -------------------------------------------------------------- */

static void cg_init(struct mo_cg *g, const char *id,
                    const struct mo_owner *owner)
{
    *g = (struct mo_cg){0};
    snprintf(g->name, sizeof(g->name), "%s", id);
    snprintf(g->parent_name, sizeof(g->parent_name), PARENT);
    if (owner->is_other)
        snprintf(g->parent_name, sizeof(g->parent_name), PARENT "-%u",
                 (unsigned)owner->uid);
    for (int i = 0; i < MO_CG_KINDS; i++)
        g->parent[i] = g->dir[i] = -1;
}

static int make_dir(int at, const char *name)
{
    if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
        return -1;
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The v2 controllers that the box needs and v1 does not have. */
static void wanted_of_v2(const struct mo_cg *g, char out[VALUE_MAX])
{
    size_t n = 0;

    out[0] = '\0';
    for (int i = 0; i < MO_CG_FREEZER; i++)
        if (g->on_v2[i])
            n += (size_t)snprintf(out + n, VALUE_MAX - n, "%s+%s", n ? " " : "",
                                  controllers[i]);
}

static bool usable_v2(const char *name, int at, const char *wanted, int *parent)
{
    mo_autofd int dir = -1;

    if (wanted[0] &&
        mo_kernel_file_write(at, "cgroup.subtree_control", wanted) < 0)
        return false;
    dir = make_dir(at, name);
    if (dir < 0)
        return false;
    if (wanted[0] &&
        mo_kernel_file_write(dir, "cgroup.subtree_control", wanted) < 0)
        return false;
    *parent = mo_take_fd(&dir);
    return true;
}

/* Root owns the whole tree. Others use what was delegated to them: the first
 * group from our own upwards in which a group can be created. */
static int open_v2_parent(struct mo_cg *g, const struct mo_hier *h,
                          struct mo_err *e)
{
    char wanted[VALUE_MAX];
    mo_autofd int at =
        mo_hier_open(h, MO_HIER_V2, geteuid() == 0 ? MO_HIER_TOP : MO_HIER_OWN);

    wanted_of_v2(g, wanted);
    for (int i = 0; at >= 0 && i < ROOT_TRIES; i++) {
        int up;

        if (usable_v2(g->parent_name, at, wanted, &g->parent[MO_CG_V2]))
            return 0;
        if (mo_hier_is_top(h, at))
            break;
        up = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        mo_close_fd(&at);
        at = up;
    }
    if (!wanted[0])
        return 0; /* v1 has all the limits; v2 is optional */
    return mo_fail_sys(
        e,
        "no cgroup delegated to this user has the controllers \"%s\"; "
        "start under systemd with Delegate=yes, or as root",
        wanted);
}

static int open_v1_parent(struct mo_cg *g, const struct mo_hier *h, int kind,
                          struct mo_err *e)
{
    mo_autofd int at = mo_hier_open(h, controllers[kind], MO_HIER_OWN);

    g->parent[kind] = at < 0 ? -1 : make_dir(at, g->parent_name);
    if (g->parent[kind] >= 0)
        return 0;
    if (!is_mandatory(kind))
        return 0;
    return mo_fail_sys(e,
                       "cgroup %s: cannot create a group; limits need root, or "
                       "cgroup v2 with a delegated group",
                       controllers[kind]);
}

/* Find the hierarchy of each controller and the parent of our groups. */
static int find_parents(struct mo_cg *g, struct mo_err *e)
{
    struct mo_hier *h;
    int rc = mo_hier_read(&h, e);

    for (int i = 0; rc == 0 && i <= MO_CG_FREEZER; i++) {
        bool v1 = mo_hier_has(h, controllers[i]);

        g->on_v2[i] = is_mandatory(i) && !v1;
        if (v1 && (is_mandatory(i) || !mo_hier_has(h, MO_HIER_V2)))
            rc = open_v1_parent(g, h, i, e);
    }
    if (rc == 0 && mo_hier_has(h, MO_HIER_V2))
        rc = open_v2_parent(g, h, e);
    else if (rc == 0 && (g->on_v2[0] || g->on_v2[1] || g->on_v2[2]))
        rc = mo_fail(e, MO_EUNAVAIL,
                     "this machine mounts no cgroup hierarchy with the "
                     "controllers pids, memory and cpu");
    mo_hier_free(h);
    return rc;
}

/* A directory of cgroups has one link more for each group in it. */
static bool has_room(const struct mo_cg *g)
{
    struct stat st;

    for (int i = 0; i < MO_CG_KINDS; i++)
        if (g->parent[i] >= 0 && fstat(g->parent[i], &st) == 0 &&
            st.st_nlink >= MO_OWNER_BOXES + 2)
            return false;
    return true;
}

static int make_groups(struct mo_cg *g, struct mo_err *e)
{
    for (int i = 0; i < MO_CG_KINDS; i++) {
        if (g->parent[i] < 0)
            continue;
        if (mkdirat(g->parent[i], g->name, 0755) < 0)
            return mo_fail_sys(e, "cgroup %s", g->name);
        g->dir[i] =
            openat(g->parent[i], g->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (g->dir[i] < 0)
            return mo_fail_sys(e, "cgroup %s", g->name);
    }
    return 0;
}

/* --- limits -------------------------------------------------------------- */

static int limit_dir(const struct mo_cg *g, int kind)
{
    return g->on_v2[kind] ? g->dir[MO_CG_V2] : g->dir[kind];
}

/* Write, read back and compare: a limit that was not applied is no limit. */
static int set_value(int dir, const char *file, const char *value,
                     struct mo_err *e)
{
    char got[VALUE_MAX];

    if (mo_kernel_file_write(dir, file, value) < 0)
        return mo_fail_sys(e, "cgroup: %s = %s", file, value);
    if (mo_kernel_file_read(dir, file, got, sizeof(got)) < 0)
        return mo_fail_sys(e, "cgroup: %s", file);
    got[strcspn(got, "\n")] = '\0';
    if (strcmp(got, value) != 0)
        return mo_fail(e, MO_EUNAVAIL, "cgroup: %s is %s, not %s", file, got,
                       value);
    return 0;
}

static int set_number(int dir, const char *file, uint64_t value,
                      struct mo_err *e)
{
    char text[VALUE_MAX];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return set_value(dir, file, text, e);
}

static bool machine_swaps(void)
{
    struct sysinfo si;

    return sysinfo(&si) != 0 || si.totalswap > 0;
}

static int set_memory(struct mo_cg *g, uint64_t bytes, struct mo_err *e)
{
    int dir = limit_dir(g, MO_CG_MEMORY), rc;

    bytes -= bytes % (uint64_t)sysconf(_SC_PAGESIZE);
    if (g->on_v2[MO_CG_MEMORY]) {
        rc = set_number(dir, "memory.max", bytes, e);
        if (rc == 0 && machine_swaps())
            rc = set_number(dir, "memory.swap.max", 0, e);
        return rc;
    }
    rc = set_number(dir, "memory.limit_in_bytes", bytes, e);
    if (rc == 0 && machine_swaps())
        rc = set_number(dir, "memory.memsw.limit_in_bytes", bytes, e);
    return rc;
}

static int set_cpu(struct mo_cg *g, uint64_t milli, struct mo_err *e)
{
    int dir = limit_dir(g, MO_CG_CPU), rc;
    uint64_t quota = milli * PERIOD_US / 1000;
    char text[VALUE_MAX];

    if (g->on_v2[MO_CG_CPU]) {
        snprintf(text, sizeof(text), "%llu %d", (unsigned long long)quota,
                 PERIOD_US);
        return set_value(dir, "cpu.max", text, e);
    }
    rc = set_number(dir, "cpu.cfs_period_us", PERIOD_US, e);
    return rc ? rc : set_number(dir, "cpu.cfs_quota_us", quota, e);
}

static void close_groups(struct mo_cg *g)
{
    for (int i = 0; i < MO_CG_KINDS; i++) {
        mo_close_fd(&g->dir[i]);
        mo_close_fd(&g->parent[i]);
    }
}

int mo_cg_open(struct mo_cg *g, const struct mo_boxreq *r,
               const struct mo_owner *owner, struct mo_err *e)
{
    int rc;

    cg_init(g, r->id, owner);
    rc = find_parents(g, e);
    if (rc == 0 && owner->is_other && !has_room(g))
        rc = mo_fail(e, MO_EBUSY, "this user has %d boxes", MO_OWNER_BOXES);
    if (rc == 0)
        rc = make_groups(g, e);
    if (rc == 0)
        rc = set_number(limit_dir(g, MO_CG_PIDS), "pids.max", r->pids, e);
    if (rc == 0)
        rc = set_memory(g, r->memory, e);
    if (rc == 0)
        rc = set_cpu(g, r->cpu_milli, e);
    if (rc < 0) {
        mo_cg_remove(g, NULL);
        close_groups(g);
    }
    return rc;
}

int mo_cg_join(const struct mo_cg *g, struct mo_err *e)
{
    for (int i = 0; i < MO_CG_V2; i++)
        if (g->dir[i] >= 0 && mo_kernel_file_write(g->dir[i], "tasks", "0") < 0)
            return mo_fail_sys(e, "cgroup %s: entering", controllers[i]);
    return 0;
}

int mo_cg_clone_fd(const struct mo_cg *g)
{
    return g->dir[MO_CG_V2];
}

/* --- control ------------------------------------------------------------- */

/* True if `file` has this line. */
static bool has_line(int dir, const char *file, const char *line)
{
    char text[STAT_MAX];

    return mo_kernel_file_read(dir, file, text, sizeof(text)) >= 0 &&
           strstr(text, line) != NULL;
}

static bool is_frozen(const struct mo_cg *g, bool frozen)
{
    if (g->dir[MO_CG_V2] >= 0)
        return has_line(g->dir[MO_CG_V2], "cgroup.events",
                        frozen ? "frozen 1\n" : "frozen 0\n");
    return has_line(g->dir[MO_CG_FREEZER], "freezer.state",
                    frozen ? "FROZEN\n" : "THAWED\n");
}

static int write_freeze(const struct mo_cg *g, bool frozen)
{
    if (g->dir[MO_CG_V2] >= 0)
        return mo_kernel_file_write(g->dir[MO_CG_V2], "cgroup.freeze",
                                    frozen ? "1" : "0");
    return mo_kernel_file_write(g->dir[MO_CG_FREEZER], "freezer.state",
                                frozen ? "FROZEN" : "THAWED");
}

int mo_cg_freeze(struct mo_cg *g, bool frozen, struct mo_err *e)
{
    if (g->dir[MO_CG_V2] < 0 && g->dir[MO_CG_FREEZER] < 0)
        return mo_fail(e, MO_EUNAVAIL, "no cgroup that can freeze");
    if (write_freeze(g, frozen) < 0)
        return mo_fail_sys(e, "cgroup: freeze");
    for (int i = 0; i < WAIT_MS && !is_frozen(g, frozen); i++)
        mo_sleep_ms(1);
    return is_frozen(g, frozen) ? 0 : mo_fail(e, MO_ETIMEOUT, "cgroup: freeze");
}

static void kill_listed(int dir)
{
    char text[STAT_MAX];
    struct mo_span rest, line;
    uint64_t pid;

    if (mo_kernel_file_read(dir, "cgroup.procs", text, sizeof(text)) < 0)
        return;
    rest = mo_span_cstr(text);
    /* not the last line: a truncated pid is another process */
    for (line = mo_span_cut(&rest, '\n'); rest.p;
         line = mo_span_cut(&rest, '\n'))
        if (mo_span_u64(line, &pid) == 0 && pid > 1)
            kill((pid_t)pid, SIGKILL);
}

void mo_cg_kill(struct mo_cg *g)
{
    if (g->dir[MO_CG_V2] >= 0 &&
        mo_kernel_file_write(g->dir[MO_CG_V2], "cgroup.kill", "1") == 0)
        return;
    for (int i = 0; i < MO_CG_KINDS; i++)
        if (g->dir[i] >= 0)
            kill_listed(g->dir[i]);
    if (g->dir[MO_CG_FREEZER] >= 0) /* frozen processes die when thawed */
        mo_kernel_file_write(g->dir[MO_CG_FREEZER], "freezer.state", "THAWED");
}

static uint64_t number_of(int dir, const char *file, const char *key)
{
    char text[STAT_MAX];
    uint64_t v = 0;

    if (dir >= 0 && mo_kernel_file_read(dir, file, text, sizeof(text)) >= 0)
        v = mo_kernel_file_key(mo_span_cstr(text), key);
    return v;
}

void mo_cg_stats(const struct mo_cg *g, struct mo_boxstats *out)
{
    int mem = limit_dir(g, MO_CG_MEMORY), cpu = g->dir[MO_CG_V2];
    bool v2 = g->on_v2[MO_CG_MEMORY];

    *out = (struct mo_boxstats){
        .memory =
            number_of(mem, v2 ? "memory.current" : "memory.usage_in_bytes", ""),
        .memory_peak = number_of(
            mem, v2 ? "memory.peak" : "memory.max_usage_in_bytes", ""),
        .oom_kills = number_of(mem, v2 ? "memory.events" : "memory.oom_control",
                               "oom_kill"),
        .pids = number_of(limit_dir(g, MO_CG_PIDS), "pids.current", ""),
    };
    /* every v2 group has it, with or without the cpu controller */
    if (cpu >= 0)
        out->cpu_us = number_of(cpu, "cpu.stat", "usage_usec");
    else
        out->cpu_us =
            number_of(limit_dir(g, MO_CG_CPU), "cpuacct.usage", "") / 1000;
}

/* --- remove -------------------------------------------------------------- */

static int remove_one(int parent, const char *name)
{
    for (int i = 0; i < WAIT_MS; i++) {
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY)
            return -1;
        mo_sleep_ms(1);
    }
    return -1;
}

int mo_cg_remove(struct mo_cg *g, struct mo_err *e)
{
    int rc = 0;

    for (int i = 0; i < MO_CG_KINDS; i++) {
        if (g->dir[i] < 0)
            continue;
        mo_close_fd(&g->dir[i]);
        if (remove_one(g->parent[i], g->name) < 0)
            rc = mo_fail_sys(e, "cgroup %s: cannot remove it", g->name);
    }
    return rc;
}

int mo_cg_sweep(const char *id, const struct mo_owner *owner, struct mo_err *e)
{
    struct mo_cg g;
    int rc;

    cg_init(&g, id, owner);
    rc = find_parents(&g, e);
    for (int i = 0; rc == 0 && i < MO_CG_KINDS; i++)
        if (g.parent[i] >= 0)
            g.dir[i] =
                openat(g.parent[i], id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0) {
        mo_cg_kill(&g);
        rc = mo_cg_remove(&g, e);
    }
    close_groups(&g);
    return rc;
}
