/* test_install_tree.c - directories of installed files. */
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "install/tree.h"
#include "mo_test.h"

#define NOBODY 65534

static char top[] = "/tmp/mo-tree-XXXXXX";

static const char *at(const char *name)
{
    static char path[4][PATH_MAX];
    static unsigned turn;
    char *p = path[turn++ % 4];

    (void)snprintf(p, PATH_MAX, "%s/%s", top, name);
    return p;
}

static void put(const char *name, const char *text)
{
    struct mo_err e;

    assert_int_equal(mo_file_replace(at(name), mo_span_cstr(text), &e), 0);
}

static void make(void)
{
    struct mo_err e;

    assert_int_equal(mo_file_mkdir(at("t/a/b"), &e), 0);
    put("t/a/b/file", "text");
    put("t/program", "#!");
    assert_int_equal(chmod(at("t/program"), 0755), 0);
    assert_int_equal(symlink("../program", at("t/a/link")), 0);
}

static int read_tree(struct mo_tree *t)
{
    struct mo_err e = {0};

    return mo_tree_read(at("t"), t, &e);
}

static void clean(void)
{
    struct mo_err e = {0};

    if (mo_tree_remove(at("t"), &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(access(at("t"), F_OK), -1);
}

static void test_digest(void **state)
{
    struct mo_tree a, b;
    struct mo_err e = {0};

    (void)state;
    make();
    assert_int_equal(read_tree(&a), 0);
    assert_int_equal(a.files, 5);
    assert_int_equal(a.bytes, 6);
    assert_int_equal(mo_tree_seal(at("t"), 0, &e), 0);
    assert_int_equal(read_tree(&b), 0);
    assert_string_equal(a.digest, b.digest);
    clean();
    make();
    put("t/a/b/file", "texT");
    assert_int_equal(read_tree(&b), 0);
    assert_string_not_equal(a.digest, b.digest);
    put("t/a/b/file", "text");
    assert_int_equal(read_tree(&b), 0);
    assert_string_equal(a.digest, b.digest);
    assert_int_equal(chmod(at("t/a/b/file"), 0755), 0);
    assert_int_equal(read_tree(&b), 0);
    assert_string_not_equal(a.digest, b.digest);
    assert_int_equal(chmod(at("t/a/b/file"), 0644), 0);
    assert_int_equal(rename(at("t/a/b"), at("t/a/c")), 0);
    assert_int_equal(read_tree(&b), 0);
    assert_string_not_equal(a.digest, b.digest);
    clean();
}

static void test_links(void **state)
{
    static const struct {
        const char *target;
        int rc;
    } rows[] = {
        {"b/file", 0},
        {"../program", 0},
        {"./../program", 0},
        {"..", 0},
        {"nowhere", 0},
        {"../..", MO_EPOLICY},
        {"../../x", MO_EPOLICY},
        {"/etc/passwd", MO_EPOLICY},
        {"b/../../..", MO_EPOLICY},
        {"b/..", MO_EPOLICY}, /* b may be a link itself */
        {".././../x", MO_EPOLICY},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_tree t;

        make();
        assert_int_equal(symlink(rows[i].target, at("t/a/x")), 0);
        if (read_tree(&t) != rows[i].rc)
            fail_msg("%s", rows[i].target);
        clean();
    }
}

static void test_files(void **state)
{
    struct mo_tree t;

    (void)state;
    make();
    assert_int_equal(chmod(at("t/program"), 04755), 0);
    assert_int_equal(read_tree(&t), MO_EPOLICY);
    assert_int_equal(chmod(at("t/program"), 02755), 0);
    assert_int_equal(read_tree(&t), MO_EPOLICY);
    assert_int_equal(chmod(at("t/program"), 0755), 0);
    assert_int_equal(mkfifo(at("t/pipe"), 0600), 0);
    assert_int_equal(read_tree(&t), MO_EPOLICY);
    clean();
}

static void test_depth(void **state)
{
    char path[PATH_MAX] = "t";
    struct mo_tree t;
    struct mo_err e;

    (void)state;
    for (unsigned i = 0; i < MO_TREE_DEPTH_MAX; i++)
        (void)snprintf(path + strlen(path), 4, "/d");
    assert_int_equal(mo_file_mkdir(at(path), &e), 0);
    assert_int_equal(read_tree(&t), MO_ETOOBIG);
    assert_int_equal(rmdir(at(path)), 0);
    assert_int_equal(read_tree(&t), 0);
    clean();
}

/* Links are removed, not followed. */
static void test_remove(void **state)
{
    struct mo_err e;

    (void)state;
    assert_int_equal(mo_tree_remove(at("none"), &e), 0);
    make();
    put("kept", "x");
    assert_int_equal(symlink("../kept", at("t/out")), 0);
    assert_int_equal(symlink("..", at("t/up")), 0);
    assert_int_equal(chmod(at("t/a"), 0555), 0);
    clean();
    assert_int_equal(access(at("kept"), F_OK), 0);
    assert_int_equal(unlink(at("kept")), 0);
}

/* The same without the rights of root, which ignores modes. */
static void test_as_nobody(void **state)
{
    int status = 0;
    pid_t pid;

    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(top, 0777), 0);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
            _exit(2);
        test_digest(state);
        test_links(state);
        test_remove(state);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Root takes the files of another user, and of nobody else. */
static void test_take(void **state)
{
    static const char *const names[] = {"t/a/b/file", "t/a/b",     "t/a/link",
                                        "t/a",        "t/program", "t"};
    struct mo_err e = {0};
    struct stat st;

    (void)state;
    if (geteuid() != 0)
        skip();
    make();
    for (size_t i = 0; i < MO_COUNT(names); i++)
        assert_int_equal(lchown(at(names[i]), NOBODY, NOBODY), 0);
    assert_int_equal(mo_tree_seal(at("t"), NOBODY, &e), 0);
    for (size_t i = 0; i < MO_COUNT(names); i++) {
        assert_int_equal(lstat(at(names[i]), &st), 0);
        assert_int_equal(st.st_uid + st.st_gid, 0);
    }
    clean();
    make(); /* "program" might be a hard link to a file of root */
    for (size_t i = 0; i < MO_COUNT(names); i++)
        assert_int_equal(lchown(at(names[i]), NOBODY, NOBODY), 0);
    assert_int_equal(lchown(at("t/program"), 0, 0), 0);
    assert_int_equal(chmod(at("t/program"), 0600), 0);
    assert_int_equal(mo_tree_seal(at("t"), NOBODY, &e), MO_EPOLICY);
    assert_int_equal(lstat(at("t/program"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    clean();
}

static int group_setup(void **state)
{
    (void)state;
    return mkdtemp(top) ? 0 : -1;
}

static int group_teardown(void **state)
{
    (void)state;
    return rmdir(top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digest), cmocka_unit_test(test_links),
        cmocka_unit_test(test_files),  cmocka_unit_test(test_depth),
        cmocka_unit_test(test_remove), cmocka_unit_test(test_as_nobody),
        cmocka_unit_test(test_take),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
