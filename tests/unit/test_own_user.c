/* Which user runs a command of root, and in which state directory. */
#include "mo_test.h"

#include "app/own_user.h"
#include "config/state_dir.h"

/* --- the state directory -------------------------------------------------- */

#define HOME_DIR  "/root/.local/state/mcp-orchestrator"
#define ALICE_DIR "/home/alice/.local/state/mcp-orchestrator"

static const struct {
    const char *name;
    bool is_root, makes;
    const char *xdg, *home;
    bool has_home, has_system;
    const char *dir;
} places[] = {
    {"a user", false, true, NULL, "/home/alice", false, true, ALICE_DIR},
    {"a user with XDG", false, true, "/x", "/home/alice", false, true,
     "/x/mcp-orchestrator"},
    {"a user without HOME", false, true, NULL, NULL, false, true, "."},
    {"root's first serve", true, true, NULL, "/root", false, false,
     MO_STATE_DIR_STATE},
    {"a slash more", true, true, NULL, "/root/", false, false,
     MO_STATE_DIR_STATE},
    {"root without HOME", true, true, NULL, NULL, false, false,
     MO_STATE_DIR_STATE},
    {"root's other commands do not make it", true, false, NULL, "/root", false,
     false, HOME_DIR},
    {"but find it", true, false, NULL, "/root", false, true,
     MO_STATE_DIR_STATE},
    {"root's state from earlier", true, true, NULL, "/root", true, true,
     HOME_DIR},
    {"root with XDG", true, true, "/x", "/root", false, true,
     "/x/mcp-orchestrator"},
    {"root in another home", true, true, NULL, "/home/alice", false, true,
     ALICE_DIR},
    {"a name that starts the same", true, true, NULL, "/root2", false, false,
     "/root2/.local/state/mcp-orchestrator"},
};

static void every_command_finds_the_same_directory(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(places); i++) {
        const struct mo_state_dir_facts f = {
            .is_root = places[i].is_root,
            .makes_system_dir = places[i].makes,
            .xdg = places[i].xdg,
            .home = places[i].home,
            .roots_home = "/root",
            .has_home_state = places[i].has_home,
            .has_system_state = places[i].has_system,
        };
        char dir[PATH_MAX];

        mo_state_dir_choose(&f, dir);
        if (strcmp(dir, places[i].dir) != 0)
            fail_msg("%s: %s, not %s", places[i].name, dir, places[i].dir);
    }
}

/* --- the user ------------------------------------------------------------- */

#define NOBODY 65534

static const struct {
    const char *name;
    bool exists;
    uid_t owner;
    bool is_system, is_asked;
    uid_t asked;
    int rc;
    uid_t uid;
    const char *says; /* NULL: nothing */
} users[] = {
    {"root's directory", true, 0, false, false, 0, 0, 0, NULL},
    {"root's, as asked for", true, 0, false, true, 0, 0, 0, NULL},
    {"root's, for another", true, 0, false, true, 1000, MO_EPOLICY, 0,
     "chown -R 1000: /d"},
    {"root's system directory", true, 0, true, false, 0, 0, 0, NULL},
    {"a user's", true, 1000, false, false, 0, 0, 1000, NULL},
    {"a user's, as asked for", true, 1000, false, true, 1000, 0, 1000, NULL},
    {"a user's, for another", true, 1000, false, true, 1001, MO_EPOLICY, 0,
     "belongs to user 1000, not to 1001"},
    {"a user's, for root", true, 1000, false, true, 0, MO_EPOLICY, 0,
     "belongs to user 1000, not to 0"},
    {"nobody's, if somebody wants it", true, NOBODY, false, false, 0, 0, NOBODY,
     NULL},
    {"a box's", true, 20000, false, false, 0, MO_EPOLICY, 0, "those of boxes"},
    {"the last box's", true, 24095, false, false, 0, MO_EPOLICY, 0,
     "those of boxes"},
    {"behind the boxes", true, 24096, false, false, 0, 0, 24096, NULL},
    {"none yet", false, 0, false, false, 0, 0, 0, NULL},
    {"none yet, asked for", false, 0, false, true, 1000, 0, 1000, NULL},
    {"none yet, asked for a box's", false, 0, false, true, 20001, MO_EPOLICY, 0,
     "those of boxes"},
    {"none yet, asked for root", false, 0, false, true, 0, 0, 0, NULL},
    {"the first start of all", false, 0, true, false, 0, 0, MO_OWN_USER_ID,
     NULL},
    {"the first start, as root", false, 0, true, true, 0, 0, 0, NULL},
    {"the first start, asked for", false, 0, true, true, 1000, 0, 1000, NULL},
};

static void the_owner_of_the_directory_runs_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(users); i++) {
        const struct mo_own_user_facts f = {
            .dir = "/d",
            .exists = users[i].exists,
            .owner = users[i].owner,
            .is_system_dir = users[i].is_system,
            .is_asked = users[i].is_asked,
            .asked = users[i].asked,
            .own = MO_OWN_USER_ID,
        };
        struct mo_err e = {0};
        uid_t uid = 4711;
        int rc = mo_own_user_decide(&f, &uid, &e);

        if (rc != users[i].rc || (rc == 0 && uid != users[i].uid))
            fail_msg("%s: %d, user %u", users[i].name, rc, (unsigned)uid);
        if (users[i].says && !strstr(e.msg, users[i].says))
            fail_msg("%s: %s", users[i].name, e.msg);
    }
}

#define PASSWD                                                                 \
    "root:x:0:0:root:/root:/bin/sh\n"                                          \
    "broken\n"                                                                 \
    "odd:x:-1:5::/:/bin/sh\n"                                                  \
    "mo:x:990:991:,,,:/var/lib/mo:/usr/sbin/nologin\n"                         \
    "7:x:12:12::/seven:/bin/sh"

static const struct {
    const char *text;
    int rc;
    uid_t uid;
    gid_t gid;
    const char *home;
} named[] = {
    {"root", 0, 0, 0, "/root"},
    {"mo", 0, 990, 991, "/var/lib/mo"},
    {"990", 0, 990, 991, "/var/lib/mo"},
    {"12", 0, 12, 12, "/seven"},
    {"7", 0, 7, 7, ""}, /* a number is never a name */
    {"1234", 0, 1234, 1234, ""},
    {"m", MO_ENOTFOUND, 0, 0, NULL},
    {"odd", MO_ENOTFOUND, 0, 0, NULL},
    {"broken", MO_ENOTFOUND, 0, 0, NULL},
    {"4294967295", MO_EINVAL, 0, 0, NULL}, /* (uid_t)-1: no change */
    {"4294967296", MO_EINVAL, 0, 0, NULL}, /* would become 0 */
    {"-1", MO_ENOTFOUND, 0, 0, NULL},
    {"", MO_ENOTFOUND, 0, 0, NULL},
};

static void a_user_is_a_name_or_a_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(named); i++) {
        struct mo_passwd got = {.uid = 4711};
        struct mo_err e;
        int rc = mo_own_user_read(MO_SPAN(PASSWD), named[i].text, &got, &e);

        if (rc != named[i].rc)
            fail_msg("'%s': %d", named[i].text, rc);
        if (rc < 0)
            continue;
        assert_int_equal(got.uid, named[i].uid);
        assert_int_equal(got.gid, named[i].gid);
        assert_string_equal(got.home, named[i].home);
    }
}

/* The number of our own user is beside those of boxes, and no system's. */
static void the_own_user_is_no_box(void **state)
{
    struct mo_own_user_facts f = {
        .dir = "/d", .exists = true, .owner = MO_OWN_USER_ID};
    struct mo_passwd row;
    struct mo_err e;
    uid_t uid;

    (void)state;
    assert_int_equal(mo_own_user_decide(&f, &uid, &e), 0);
    f.owner = MO_OWN_USER_ID + 1;
    assert_int_equal(mo_own_user_decide(&f, &uid, &e), MO_EPOLICY);
    assert_false(mo_passwd_find(mo_span(NULL, 0), MO_OWN_USER_NAME, 0, &row));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_finds_the_same_directory),
        cmocka_unit_test(the_owner_of_the_directory_runs_it),
        cmocka_unit_test(a_user_is_a_name_or_a_number),
        cmocka_unit_test(the_own_user_is_no_box),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
