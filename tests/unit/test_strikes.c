/* Clients that guess tokens must wait; others need not, and no row expires
 * early. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "web/strikes.h"

#include "base/clock.h"
#include "mo_test.h"

#define SECOND (1000 * (uint64_t)MO_MS)

static void test_rows(void **state)
{
    static const struct {
        const char *name, *peer;
        unsigned times;   /* before */
        uint64_t seconds; /* after the first */
        unsigned wait;
    } rows[] = {
        {"the first", "1.2.3.4:1", 0, 0, 0},
        {"the last free one", "1.2.3.4:1", MO_STRIKES_FREE - 1, 0, 0},
        {"one too many", "1.2.3.4:1", MO_STRIKES_FREE, 0, 61},
        {"still, a little later", "1.2.3.4:1", MO_STRIKES_FREE, 30, 31},
        {"almost over", "1.2.3.4:1", MO_STRIKES_FREE, 59, 2},
        {"over", "1.2.3.4:1", MO_STRIKES_FREE, 60, 0},
        {"another port is the same peer", "1.2.3.4:77", MO_STRIKES_FREE, 0, 61},
        {"another address is not", "1.2.3.5:1", MO_STRIKES_FREE, 0, 0},
        {"a longer address is not", "1.2.3.41:1", MO_STRIKES_FREE, 0, 0},
        {"no port", "1.2.3.4", MO_STRIKES_FREE, 0, 61},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_strikes s = {0};
        uint64_t t0 = 5 * SECOND;

        for (unsigned k = 0; k < rows[i].times; k++)
            check_row(rows[i].name, mo_strikes_add(&s, "1.2.3.4:1", t0) == 0);
        check_row(rows[i].name, mo_strikes_add(&s, rows[i].peer,
                                               t0 + rows[i].seconds * SECOND) ==
                                    rows[i].wait);
    }
}

static void test_ipv6(void **state)
{
    struct mo_strikes s = {0};

    (void)state;
    for (unsigned k = 0; k < MO_STRIKES_FREE; k++)
        assert_int_equal(mo_strikes_add(&s, "[::1]:80", SECOND), 0);
    assert_int_equal(mo_strikes_add(&s, "[::1]:81", SECOND), 61);
    assert_int_equal(mo_strikes_add(&s, "[::2]:80", SECOND), 0);
}

/* A new address replaces only the oldest row; a long name is truncated. */
static void test_room(void **state)
{
    struct mo_strikes s = {0};
    char peer[300];

    (void)state;
    for (unsigned k = 0; k < MO_STRIKES_FREE; k++)
        (void)mo_strikes_add(&s, "9.9.9.9:1", 100 * SECOND);
    for (unsigned k = 0; k < MO_STRIKES_PEERS - 1; k++) {
        (void)snprintf(peer, sizeof(peer), "10.0.0.%u:1", k);
        (void)mo_strikes_add(&s, peer, (101 + k / 8) * SECOND);
    }
    assert_int_equal(mo_strikes_add(&s, "9.9.9.9:1", 110 * SECOND), 51);
    (void)mo_strikes_add(&s, "10.9.9.9:1", 111 * SECOND); /* full: the oldest */
    assert_int_equal(mo_strikes_add(&s, "9.9.9.9:1", 112 * SECOND), 0);
    memset(peer, 'x', sizeof(peer) - 1);
    peer[sizeof(peer) - 1] = '\0';
    for (unsigned k = 0; k < MO_STRIKES_FREE; k++)
        assert_int_equal(mo_strikes_add(&s, peer, 200 * SECOND), 0);
    assert_true(mo_strikes_add(&s, peer, 200 * SECOND) > 0);
}

/* Strikes of another process count, also if it has died in between. */
static void test_shared(void **state)
{
    struct mo_strikes_shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct mo_err e;
    pid_t pid;

    (void)state;
    skip_if_emulated("locks of dead processes stay");
    assert_true(s != MAP_FAILED);
    assert_int_equal(mo_strikes_shared_init(s, &e), 0);
    pid = fork();
    if (pid == 0) {
        for (unsigned k = 0; k < MO_STRIKES_FREE; k++)
            (void)mo_strikes_shared_add(s, "9.9.9.9:1", SECOND);
        (void)mo_lock_take(&s->lock);
        memset(s->s.v[1].peer, 'x', MO_STRIKES_NAME); /* and no end */
        (void)raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(mo_strikes_shared_add(s, "9.9.9.9:2", SECOND), 61);
    assert_int_equal(s->s.v[1].peer[MO_STRIKES_NAME - 1], 0);
    assert_int_equal(mo_strikes_shared_add(s, "8.8.8.8:2", SECOND), 0);
    (void)munmap(s, sizeof(*s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
