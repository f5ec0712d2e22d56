/* Tables that the workers of one server share: limits hold for all of them,
 * and a worker that dies leaves nothing behind. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "budget/shared.h"
#include "loop/crowd.h"
#include "mo_test.h"
#include "people/logins_ended.h"
#include "people/proof.h"
#include "people/proofs_shared.h"

#define NOW (1000 * MO_S)

static void *shared(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

static void wait_for(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void a_dead_holder_is_told(void **state)
{
    struct mo_lock *l = shared(sizeof(*l));
    struct mo_err e;
    pid_t pid;

    (void)state;
    skip_if_emulated("locks of dead processes stay");
    assert_int_equal(mo_lock_init(l, &e), 0);
    pid = fork();
    if (pid == 0) {
        (void)mo_lock_take(l);
        (void)raise(SIGKILL);
    }
    wait_for(pid);
    assert_false(mo_lock_take(l));
    mo_lock_drop(l);
    assert_true(mo_lock_take(l));
    mo_lock_drop(l);
    (void)munmap(l, sizeof(*l));
}

#define STEPS 20000

/* A sum that is read and written in two steps: without the lock some get lost.
 */
static void one_holder_at_a_time(void **state)
{
    struct both {
        struct mo_lock lock;
        atomic_uint began;
        volatile unsigned sum;
    } *b = shared(sizeof(*b));
    struct mo_err e;
    pid_t pid;

    (void)state;
    assert_int_equal(mo_lock_init(&b->lock, &e), 0);
    pid = fork();
    (void)atomic_fetch_add(&b->began, 1);
    while (atomic_load(&b->began) < 2)
        continue;
    for (unsigned i = 0; i < STEPS; i++) {
        unsigned was;

        (void)mo_lock_take(&b->lock);
        was = b->sum;
        for (volatile unsigned k = 0; k < 100; k++)
            continue;
        b->sum = was + 1;
        mo_lock_drop(&b->lock);
    }
    if (pid == 0)
        _exit(0);
    wait_for(pid);
    assert_int_equal(b->sum, 2 * STEPS);
    (void)munmap(b, sizeof(*b));
}

static void connections_of_all(void **state)
{
    struct mo_crowd *c = shared(sizeof(*c));
    const struct mo_crowd_place a = {c, 0, 2}, b = {c, 1, 2};
    struct mo_span ann = MO_SPAN("\1\2\3\4"), bob = MO_SPAN("\1\2\3\5");

    (void)state;
    mo_crowd_init(c);
    assert_true(mo_crowd_enter(&a, 2));
    assert_true(mo_crowd_enter(&b, 2));
    assert_false(mo_crowd_enter(&a, 2));
    assert_int_equal(mo_crowd_open(&b), 2);
    mo_crowd_leave(&b);
    assert_true(mo_crowd_enter(&a, 2));
    mo_crowd_peer(&b, ann, 1);
    mo_crowd_peer(&b, ann, 1);
    assert_int_equal(mo_crowd_others(&a, ann), 2);
    assert_int_equal(mo_crowd_others(&a, bob), 0);
    assert_int_equal(mo_crowd_others(&b, ann), 0);
    mo_crowd_peer(&b, ann, -1);
    assert_int_equal(mo_crowd_others(&a, ann), 1);
    mo_crowd_clear(c, 1);
    assert_int_equal(mo_crowd_others(&a, ann), 0);
    mo_crowd_clear(c, 0);
    assert_int_equal(mo_crowd_open(&a), 0);
    (void)munmap(c, sizeof(*c));
}

static int count(struct mo_budget_shared *s, unsigned owner, const char *name,
                 const char *holder, uint64_t limit, uint64_t now)
{
    const struct mo_shared_want w = {
        mo_span_cstr(name), holder ? mo_span_cstr(holder) : mo_span(NULL, 0),
        limit};
    uint64_t wait_ms = 0;
    size_t which = 0;

    return mo_budget_shared_count(s, owner, &w, 1, now, &which, &wait_ms);
}

static void calls_of_all(void **state)
{
    struct mo_budget_shared *s = shared(sizeof(*s));
    const struct mo_shared_want both[] = {{MO_SPAN("bob"), {NULL, 0}, 9},
                                          {MO_SPAN("ann"), {NULL, 0}, 2}};
    uint64_t wait_ms = 0;
    struct mo_err e;
    size_t which = 0;

    (void)state;
    assert_int_equal(mo_budget_shared_init(s, &e), 0);
    assert_int_equal(count(s, 1, "ann", NULL, 2, NOW), 0);
    assert_int_equal(count(s, 2, "ann", NULL, 2, NOW), 0);
    assert_int_equal(count(s, 1, "ann", NULL, 2, NOW + 60 * MO_S), MO_EBUSY);
    /* all or nothing: bob was not counted for it */
    assert_int_equal(
        mo_budget_shared_count(s, 1, both, 2, NOW, &which, &wait_ms), MO_EBUSY);
    assert_int_equal(which, 1);
    assert_true(wait_ms > 60000 && wait_ms <= 61001);
    assert_int_equal(count(s, 1, "bob", NULL, 1, NOW), 0);
    mo_budget_shared_clear(s, 1); /* calls stay counted */
    assert_int_equal(count(s, 1, "ann", NULL, 2, NOW + 60 * MO_S), MO_EBUSY);
    assert_int_equal(count(s, 1, "ann", NULL, 2, NOW + 61 * MO_S), 0);
    (void)munmap(s, sizeof(*s));
}

/* More names than the table has: those beyond share one count, and none is
 * without a limit. */
static void more_names_than_places(void **state)
{
    struct mo_budget_shared *s = shared(sizeof(*s));
    size_t refused = 0;
    struct mo_err e;
    char name[32];

    (void)state;
    assert_int_equal(mo_budget_shared_init(s, &e), 0);
    for (unsigned i = 0; i < 3 * MO_SHARED_NAMES; i++) {
        (void)snprintf(name, sizeof(name), "p%u", i);
        (void)count(s, 1, name, NULL, 1, NOW);
        refused += count(s, 1, name, NULL, 1, NOW) == MO_EBUSY;
    }
    assert_int_equal(refused, 3 * MO_SHARED_NAMES);
    assert_int_equal(count(s, 1, "new", NULL, 1, NOW + 100 * MO_S), 0);
    (void)munmap(s, sizeof(*s));
}

static void holders_of_all(void **state)
{
    struct mo_budget_shared *s = shared(sizeof(*s));
    char longer[MO_SHARED_HOLDER_MAX + 2];
    struct mo_err e;

    (void)state;
    assert_int_equal(mo_budget_shared_init(s, &e), 0);
    assert_int_equal(count(s, 1, "ann", "x", 2, NOW), 0);
    assert_int_equal(count(s, 2, "ann", "y", 2, NOW), 0);
    assert_int_equal(count(s, 2, "ann", "x", 2, NOW), 0); /* held on */
    assert_int_equal(count(s, 1, "ann", "z", 2, NOW), MO_EBUSY);
    mo_budget_shared_release_at(s, MO_SPAN("ann"), MO_SPAN("y"), NOW + 5);
    assert_int_equal(count(s, 1, "ann", "z", 2, NOW + 4), MO_EBUSY);
    assert_int_equal(count(s, 1, "ann", "z", 2, NOW + 5), 0);
    mo_budget_shared_clear(s, 2); /* it had taken over x */
    assert_int_equal(s->nholds, 1);
    mo_budget_shared_release(s, MO_SPAN("ann"), MO_SPAN("z"));
    mo_budget_shared_release(s, MO_SPAN("ann"), MO_SPAN("z"));
    assert_int_equal(s->nholds, 0);
    memset(longer, 'h', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    assert_int_equal(count(s, 1, "ann", longer, 2, NOW), MO_ENOMEM);
    (void)munmap(s, sizeof(*s));
}

static void never_one_too_many(void **state)
{
    struct mo_budget_shared *s = shared(sizeof(*s));
    atomic_uint *yes = shared(sizeof(*yes));
    pid_t pids[4];
    struct mo_err e;

    (void)state;
    assert_int_equal(mo_budget_shared_init(s, &e), 0);
    for (unsigned i = 0; i < MO_COUNT(pids); i++) {
        pids[i] = fork();
        if (pids[i])
            continue;
        for (unsigned k = 0; k < 2000; k++)
            if (count(s, i + 1, "ann", NULL, 1000, NOW) == 0)
                (void)atomic_fetch_add(yes, 1);
        _exit(0);
    }
    for (unsigned i = 0; i < MO_COUNT(pids); i++)
        wait_for(pids[i]);
    assert_int_equal(atomic_load(yes), 1000);
    (void)munmap(s, sizeof(*s));
    (void)munmap(yes, sizeof(*yes));
}

static void a_proof_is_good_once(void **state)
{
    struct mo_proofs_shared *s = shared(sizeof(*s));
    const uint64_t t = 5000, turn = 2 * (uint64_t)MO_PROOF_WINDOW_S;
    struct mo_err e;

    (void)state;
    assert_int_equal(mo_proofs_shared_init(s, &e), 0);
    assert_int_equal(mo_proofs_shared_add(s, MO_SPAN("a"), t), 0);
    assert_int_equal(mo_proofs_shared_add(s, MO_SPAN("a"), t), MO_EEXISTS);
    assert_int_equal(mo_proofs_shared_add(s, MO_SPAN("b"), t + 1), 0);
    assert_int_equal(mo_proofs_shared_add(s, MO_SPAN("a"), t + turn),
                     MO_EEXISTS);
    assert_int_equal(mo_proofs_shared_add(s, MO_SPAN("a"), t + 2 * turn), 0);
    assert_int_equal(mo_proofs_shared_add(s, MO_SPAN("a"), t + 2 * turn),
                     MO_EEXISTS);
    (void)munmap(s, sizeof(*s));
}

static void proofs_are_limited(void **state)
{
    struct mo_proofs_shared *s = shared(sizeof(*s));
    struct mo_err e;
    char id[16];

    (void)state;
    assert_int_equal(mo_proofs_shared_init(s, &e), 0);
    for (size_t i = 0; i <= MO_PROOFS_SHARED_MAX; i++) {
        (void)snprintf(id, sizeof(id), "%zu", i);
        assert_int_equal(mo_proofs_shared_add(s, mo_span_cstr(id), 5000),
                         i < MO_PROOFS_SHARED_MAX ? 0 : MO_EBUSY);
    }
    (void)munmap(s, sizeof(*s));
}

static void a_full_table_of_holders(void **state)
{
    struct mo_budget_shared *s = shared(sizeof(*s));
    struct mo_shared_want want = {.name = MO_SPAN("boxes"),
                                  .limit = 2 * MO_SHARED_HOLDS};
    char holder[24];
    uint64_t wait_ms;
    struct mo_err e;
    size_t which;

    (void)state;
    assert_int_equal(mo_budget_shared_init(s, &e), 0);
    for (unsigned i = 0; i <= MO_SHARED_HOLDS; i++) {
        (void)snprintf(holder, sizeof(holder), "b%u", i);
        want.holder = mo_span_cstr(holder);
        assert_int_equal(
            mo_budget_shared_count(s, 1, &want, 1, NOW, &which, &wait_ms),
            i < MO_SHARED_HOLDS ? 0 : MO_ENOMEM);
    }
    mo_budget_shared_clear(s, 1);
    assert_int_equal(
        mo_budget_shared_count(s, 1, &want, 1, NOW, &which, &wait_ms), 0);
    (void)munmap(s, sizeof(*s));
}

static void sign_outs_of_all(void **state)
{
    struct mo_logins_ended *t = shared(sizeof(*t));
    char digest[8];
    struct mo_err e;
    pid_t pid;

    (void)state;
    assert_int_equal(mo_logins_ended_init(t, &e), 0);
    pid = fork();
    if (pid == 0) {
        mo_logins_ended_add(t, "d1", "corp:ann", 5000);
        mo_logins_ended_add(t, "", "corp:bob", 5000);
        _exit(0);
    }
    wait_for(pid);
    assert_int_equal(atomic_load(&t->changes), 2);
    assert_true(mo_logins_ended_has(t, "d1", "corp:ann", 9000, 5001));
    assert_false(mo_logins_ended_has(t, "d2", "corp:ann", 1, 5001));
    assert_true(mo_logins_ended_has(t, "d3", "corp:bob", 5000, 5001));
    /* who signs in again is signed in */
    assert_false(mo_logins_ended_has(t, "d4", "corp:bob", 5001, 5001));
    assert_true(mo_logins_ended_has(t, "d1", "corp:ann", 1, 65000));
    assert_false(mo_logins_ended_has(t, "d1", "corp:ann", 1, 65001));
    for (unsigned i = 0; i < MO_LOGINS_ENDED; i++) {
        (void)snprintf(digest, sizeof(digest), "x%u", i);
        mo_logins_ended_add(t, digest, "corp:eve", 6000);
    }
    assert_false(mo_logins_ended_has(t, "d1", "corp:ann", 1, 6000));
    assert_true(mo_logins_ended_has(t, "x0", "corp:eve", 1, 6000));
    (void)munmap(t, sizeof(*t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_holder_is_told),
        cmocka_unit_test(one_holder_at_a_time),
        cmocka_unit_test(sign_outs_of_all),
        cmocka_unit_test(a_full_table_of_holders),
        cmocka_unit_test(connections_of_all),
        cmocka_unit_test(calls_of_all),
        cmocka_unit_test(more_names_than_places),
        cmocka_unit_test(holders_of_all),
        cmocka_unit_test(never_one_too_many),
        cmocka_unit_test(a_proof_is_good_once),
        cmocka_unit_test(proofs_are_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
