#include "mo_test.h"

#include "codec/mount.h"

#define HOME "/home/me"

static const struct {
    const char *in, *host, *box;
    bool rw;
} good[] = {
    {"~/docs", HOME "/docs", HOME "/docs", false},
    {"~/docs:ro", HOME "/docs", HOME "/docs", false},
    {"/srv/data:rw", "/srv/data", "/srv/data", true},
    {"~/docs:/docs:ro", HOME "/docs", "/docs", false},
    {"~/docs:/docs", HOME "/docs", "/docs", false},
    {"/srv/two words/:rw", "/srv/two words", "/srv/two words", true},
    {"/usr/share/dict:/dict", "/usr/share/dict", "/dict", false},
    {"~", HOME, HOME, false},
    {"~/:/me", HOME, "/me", false},
    {"/p:/workspace:rw", "/p", "/workspace", true},
    {"/p:/workspace/p", "/p", "/workspace/p", false},
    {"/tmp/x", "/tmp/x", "/tmp/x", false},
    {"/a/..b/...", "/a/..b/...", "/a/..b/...", false},
    {"/\xc3\xa9", "/\xc3\xa9", "/\xc3\xa9", false},
    {"/ro:rw", "/ro", "/ro", true},
};

static const struct {
    const char *in, *why;
} bad[] = {
    {"", "not an absolute path"},
    {"docs", "not an absolute path"},
    {"./docs", "not an absolute path"},
    {"../docs:ro", "not an absolute path"},
    {"~bob/docs", "only ~ and ~/"},
    {"/", "whole file system"},
    {"//", "whole file system"},
    {"/srv/../etc", "not a plain path"},
    {"/srv/./x", "not a plain path"},
    {"/srv//x", "not a plain path"},
    {"/srv/x/..", "not a plain path"},
    {"~/../x", "not a plain path"},
    {"/srv/a\nb", "not a plain path"},
    {"/srv/a\x7f", "not a plain path"},
    {"/srv:docs", "neither an absolute path"},
    {"/srv:docs:ro", "neither an absolute path"},
    {"/srv:", "neither an absolute path"},
    {"/srv::rw", "neither an absolute path"},
    {"/srv:~/x:ro", "neither an absolute path"},
    {"/srv:/x:wr", "HOST[:BOX][:ro|rw]"},
    {"/srv:/x:RO", "HOST[:BOX][:ro|rw]"},
    {"/srv:/x:", "HOST[:BOX][:ro|rw]"},
    {"/srv:/x:/y:ro", "HOST[:BOX][:ro|rw]"},
    {"/srv:ro:rw", "neither an absolute path"},
    {"/srv:/../x", "not a plain path"},
    {"/srv:/", "whole file system"},
    {"/srv:/proc", "its own /proc"},
    {"/srv:/proc/self", "its own /proc"},
    {"/srv:/etc/x", "its own /etc"},
    {"/srv:/dev/shm:rw", "its own /dev"},
    {"/usr/share/x", "its own /usr"},
    {"/lib64", "its own /lib64"},
    {"/srv:/tmp", "a box has its own"},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(good); i++) {
        char text[MO_MOUNT_TEXT_MAX];
        struct mo_mount m, again;

        check_row(good[i].in,
                  mo_mount_parse(mo_span_cstr(good[i].in), HOME, &m, NULL) ==
                          0 &&
                      strcmp(m.host, good[i].host) == 0 &&
                      strcmp(m.box, good[i].box) == 0 && m.rw == good[i].rw);
        mo_mount_put(&m, text);
        check_row(good[i].in,
                  mo_mount_parse(mo_span_cstr(text), NULL, &again, NULL) == 0 &&
                      strcmp(again.host, m.host) == 0 &&
                      strcmp(again.box, m.box) == 0 && again.rw == m.rw);
    }
}

static void test_bad(void **state)
{
    struct mo_mount m;
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        check_row(bad[i].in, mo_mount_parse(mo_span_cstr(bad[i].in), HOME, &m,
                                            &e) == MO_EINVAL);
        check_row(e.msg, strstr(e.msg, bad[i].why) != NULL);
    }
    assert_int_equal(mo_mount_parse(MO_SPAN("~/x"), NULL, &m, &e), MO_EINVAL);
    assert_non_null(strstr(e.msg, "HOME"));
    assert_int_equal(mo_mount_parse(MO_SPAN("/a\0b"), NULL, &m, &e), MO_EINVAL);
}

static void test_length(void **state)
{
    char path[MO_MOUNT_PATH_MAX + 2];
    struct mo_mount m;

    (void)state;
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    assert_int_equal(
        mo_mount_parse(mo_span(path, MO_MOUNT_PATH_MAX), NULL, &m, NULL), 0);
    assert_int_equal(strlen(m.box), MO_MOUNT_PATH_MAX);
    assert_int_equal(
        mo_mount_parse(mo_span(path, MO_MOUNT_PATH_MAX + 1), NULL, &m, NULL),
        MO_EINVAL);
}

static void test_is_in(void **state)
{
    (void)state;
    assert_true(mo_path_is_in("/a/b", "/a"));
    assert_true(mo_path_is_in("/a", "/a"));
    assert_true(mo_path_is_in("/a", "/"));
    assert_false(mo_path_is_in("/ab", "/a"));
    assert_false(mo_path_is_in("/a", "/a/b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_is_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
