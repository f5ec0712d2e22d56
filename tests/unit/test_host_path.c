#include "mo_test.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "box/host_path.h"

static char top[64];

static const char *in_top(const char *name)
{
    static char path[4][512];
    static unsigned at;
    char *out = path[at++ % 4];

    snprintf(out, sizeof(path[0]), "%s/%s", top, name);
    return out;
}

static int setup(void **state)
{
    static const char *const dirs[] = {
        "data",      "data/sub", "state",   "state/in",   "hold",
        "hold/.ssh", "me",       "me/docs", "me/.config", "me/.config/gh"};

    (void)state;
    snprintf(top, sizeof(top), "/tmp/mo-host-XXXXXX");
    assert_non_null(mkdtemp(top));
    for (size_t i = 0; i < MO_COUNT(dirs); i++)
        assert_int_equal(mkdir(in_top(dirs[i]), 0755), 0);
    assert_int_equal(close(creat(in_top("data/file"), 0644)), 0);
    assert_int_equal(mkfifo(in_top("data/fifo"), 0600), 0);
    assert_int_equal(symlink(in_top("data"), in_top("link")), 0);
    assert_int_equal(symlink("/nowhere", in_top("dangling")), 0);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int judge(const char *host, bool rw, struct mo_host_inode *at,
                 struct mo_err *e)
{
    const char *own[] = {in_top("state"), "/nowhere/at/all", NULL};
    const struct mo_host_guard guard = {in_top("me"), own};
    struct mo_mount m = {.rw = rw, .box = "/x"};

    snprintf(m.host, sizeof(m.host), "%s", host);
    return mo_host_path_judge(&m, &guard, at, e);
}

static void test_rows(void **state)
{
    static const struct {
        const char *path; /* below top, unless absolute */
        bool rw;
        const char *why; /* NULL: allowed */
    } rows[] = {
        {"data", false, NULL},
        {"data/sub", false, NULL},
        {"data/file", false, NULL},
        {"me/docs", false, NULL},
        {"me/.config", false, ".config/gh"},
        {"me/.config/gh", false, ".config/gh"},
        {"me/.config", true, "hidden files"},
        {"me", false, "whole home"},
        {"hold", false, ".ssh"},
        {"hold/.ssh", false, ".ssh"},
        {"hold/.ssh/none", false, "does not exist"},
        {"none", false, "does not exist"},
        {"data/file/x", false, "does not exist"},
        {"data/fifo", false, "special files"},
        {"link", false, "is a link; if you mean"},
        {"link/sub", false, "is a link; if you mean"},
        {"dangling", false, "is a link"},
        {"state", false, "file of this program"},
        {"state/in", false, "file of this program"},
        {"", false, "file of this program"}, /* contains it */
        {"/proc", false, "/proc"},
        {"/proc/self", true, "/proc"},
        {"/sys/kernel", false, "/sys"},
        {"/dev", false, "/dev"},
        {"/run", false, "/run"},
        {"/run/docker.sock", false, "/run"},
        {"/boot", false, "/boot"},
        {"/etc", false, "/etc/shadow"},
        {"/etc/shadow", false, "/etc/shadow"},
        {"/etc/ssl", false, "/etc/ssl/private"},
        {"/var", false, "/var/lib/docker"},
        {"/var/lib", false, "/var/lib/docker"},
        {"/var/lib/docker/overlay2", false, "/var/lib/docker"},
        {"/tmp", false, "too much"},
        {"/home", false, "too much"},
        {"/root", false, "too much"},
        {"/home/somebody", false, "whole home"},
        {"/usr/share", true, "never writes"},
        {"/etc/apt", true, "never writes"},
        {"/home/somebody/.bashrc", true, "hidden files"},
        {"/root/.profile", true, "hidden files"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const char *path = rows[i].path[0] == '/' ? rows[i].path
                           : rows[i].path[0]      ? in_top(rows[i].path)
                                                  : top;
        struct mo_err e = {.msg = ""};
        struct mo_host_inode at;
        int rc = judge(path, rows[i].rw, &at, &e);

        if (rows[i].why)
            check_row(e.msg, rc < 0 && strstr(e.msg, rows[i].why));
        else
            check_row(e.msg, rc == 0);
    }
}

static void test_inode(void **state)
{
    struct mo_host_inode at;
    struct stat st;

    (void)state;
    assert_int_equal(stat(in_top("data"), &st), 0);
    assert_int_equal(judge(in_top("data"), false, &at, NULL), 0);
    assert_true(at.dev == st.st_dev && at.ino == st.st_ino);
}

static void test_socket(void **state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct mo_host_inode at;
    struct mo_err e;

    (void)state;
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", in_top("sock"));
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(judge(a.sun_path, false, &at, &e), MO_EPOLICY);
    assert_non_null(strstr(e.msg, "sockets"));
    close(fd);
}

/* The folder of another user, with or without rights for us. */
static void test_rights(void **state)
{
    char data[80];
    struct mo_host_inode at;
    struct mo_err e;

    (void)state;
    if (geteuid() != 0)
        skip();
    snprintf(data, sizeof(data), "%s", in_top("data"));
    assert_int_equal(judge(data, true, &at, &e), MO_EPOLICY);
    assert_non_null(strstr(e.msg, "folder is root's"));
    assert_int_equal(chown(data, 1234, 1234), 0);
    assert_int_equal(judge(data, true, &at, &e), 0);
    assert_int_equal(seteuid(4321), 0);
    assert_int_equal(chmod(top, 0755), -1);
    assert_int_equal(judge(data, true, &at, &e), MO_EIO); /* top is 0700 */
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(top, 0755), 0);
    assert_int_equal(seteuid(4321), 0);
    assert_int_equal(judge(data, false, &at, &e), 0);
    assert_int_equal(judge(data, true, &at, &e), MO_EPOLICY);
    assert_non_null(strstr(e.msg, "may not read and write"));
    assert_int_equal(seteuid(0), 0);
}

static void test_workspace(void **state)
{
    char dir[80];
    struct mo_host_inode at;
    struct mo_err e;

    (void)state;
    snprintf(dir, sizeof(dir), "%s", in_top("state/work"));
    assert_int_equal(mo_host_path_workspace(dir, &at, &e), MO_ENOTFOUND);
    assert_int_equal(mkdir(dir, 0755), 0);
    assert_int_equal(mo_host_path_workspace(dir, &at, &e), MO_EPOLICY);
    assert_int_equal(chmod(dir, 0700), 0);
    assert_int_equal(mo_host_path_workspace(dir, &at, &e), 0);
    assert_int_equal(mo_host_path_workspace(in_top("link"), &at, &e),
                     MO_EPOLICY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_inode),
        cmocka_unit_test(test_socket),    cmocka_unit_test(test_rights),
        cmocka_unit_test(test_workspace),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
