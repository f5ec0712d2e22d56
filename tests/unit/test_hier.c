#include "mo_test.h"

#include "launcher/hier.h"
#include "launcher/kernel_file.h"

#define HYBRID                                                                 \
    "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n"                                    \
    "33 25 0:30 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"      \
    "34 33 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 - cgroup cgroup "     \
    "rw,cpu,cpuacct\n"                                                         \
    "37 33 0:34 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"        \
    "41 33 0:38 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"            \
    "43 33 0:40 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
#define V2                                                                     \
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 "       \
    "cgroup2 rw,nsdelegate\n"
#define IN_DOCKER                                                              \
    "1 2 0:34 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup "           \
    "rw,memory\n"

static const struct {
    const char *name, *mounts, *groups, *controller;
    enum mo_hier_place where;
    const char *path; /* NULL: no such hierarchy */
} rows[] = {
    {"v1, top", HYBRID, "4:memory:/\n", "memory", MO_HIER_TOP,
     "/sys/fs/cgroup/memory"},
    {"v1, own", HYBRID, "8:pids:/x\n4:memory:/a/b\n0::/c\n", "memory",
     MO_HIER_OWN, "/sys/fs/cgroup/memory/a/b"},
    {"two controllers in one", HYBRID, "2:cpu,cpuacct:/z\n", "cpu", MO_HIER_OWN,
     "/sys/fs/cgroup/cpu,cpuacct/z"},
    {"the second of them", HYBRID, "2:cpu,cpuacct:/z\n", "cpuacct", MO_HIER_OWN,
     "/sys/fs/cgroup/cpu,cpuacct/z"},
    {"v2 beside v1", HYBRID, "4:memory:/a\n0::/c\n", MO_HIER_V2, MO_HIER_OWN,
     "/sys/fs/cgroup/unified/c"},
    {"not mounted", HYBRID, "0::/\n", "freezer", MO_HIER_TOP, NULL},
    {"half a name", HYBRID, "0::/\n", "mem", MO_HIER_TOP, NULL},
    {"v2 alone has no v1", V2, "0::/user.slice\n", "memory", MO_HIER_TOP, NULL},
    {"v2 alone", V2, "0::/user.slice/a.scope\n", MO_HIER_V2, MO_HIER_OWN,
     "/sys/fs/cgroup/user.slice/a.scope"},
    {"v2, top", V2, "0::/user.slice/a.scope\n", MO_HIER_V2, MO_HIER_TOP,
     "/sys/fs/cgroup"},
    {"a mount of a part of it", IN_DOCKER, "4:memory:/docker/abc/in\n",
     "memory", MO_HIER_OWN, "/sys/fs/cgroup/memory/in"},
    {"we are outside of what is mounted", IN_DOCKER, "4:memory:/other\n",
     "memory", MO_HIER_OWN, "/sys/fs/cgroup/memory"},
    {"above our namespace", V2, "0::/../../x\n", MO_HIER_V2, MO_HIER_OWN,
     "/sys/fs/cgroup"},
    {"nothing at all", "", "", MO_HIER_V2, MO_HIER_TOP, NULL},
    {"a line that is cut", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2", "",
     MO_HIER_V2, MO_HIER_TOP, NULL},
};

static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        char path[MO_HIER_PATH_MAX];
        struct mo_hier h;
        bool found;

        mo_hier_init(&h, rows[i].mounts, rows[i].groups);
        found = mo_hier_path(&h, rows[i].controller, rows[i].where, path);
        check_row(rows[i].name, found == (rows[i].path != NULL));
        check_row(rows[i].name, mo_hier_has(&h, rows[i].controller) == found);
        if (found)
            check_row(rows[i].name, strcmp(path, rows[i].path) == 0);
    }
}

static const struct {
    const char *name, *text, *key;
    uint64_t want;
} keys[] = {
    {"the only number", "4096\n", "", 4096},
    {"a line of many", "low 0\noom 3\noom_kill 2\n", "oom_kill", 2},
    {"not the beginning of another", "oom_kill 2\noom 3\n", "oom", 3},
    {"usage", "usage_usec 77\nuser_usec 1\n", "usage_usec", 77},
    {"not there", "low 0\n", "oom_kill", 0},
    {"no number", "max\n", "", 0},
    {"empty", "", "", 0},
};

static void test_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(keys); i++)
        check_row(keys[i].name,
                  mo_kernel_file_key(mo_span_cstr(keys[i].text), keys[i].key) ==
                      keys[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
