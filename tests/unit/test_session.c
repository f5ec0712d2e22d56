/* test_session.c - sessions in a world of their own: who gets a box, who keeps
 * it, who loses it. */
#include "session_kit.h"

#include <unistd.h>

#include "session/control.h"

/* --- the plain way ------------------------------------------------------- */

static void test_first(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    assert_int_equal(hold(&w, &u, "s1"), 0);
    assert_null(mo_session_info(u.h));
    assert_int_equal(u.ready, 0);
    assert_true(mo_loop_until(w.l, is_settled, &u, LONG));
    assert_int_equal(u.ready, 1);
    assert_false(u.resumed);
    assert_int_equal(u.workspace, MO_WORKSPACE_FRESH);
    assert_non_null(mo_session_info(u.h));
    assert_int_equal(files(&w, &u), 1);
    assert_non_null(strstr(row_of(&w.store, "s1", false)->doc, u.box));
    release(&w, &u);
    assert_int_equal(running(&w), 1);
    assert_null(held_of(&w.store, "s1"));
    world_close(&w);
}

/* Another process, or we after a restart: the same box, the same files. */
static void test_adopted(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    assert_int_equal(files(&w, &u), 1);
    world_close_sessions(&w);
    assert_int_equal(u.closed, 1);
    assert_string_equal(u.reason, "shutdown");
    assert_int_equal(world_sessions(&w, LONG), 0);
    hold_ready(&w, &u, "s1");
    assert_true(u.resumed);
    assert_int_equal(u.workspace, MO_WORKSPACE_KEPT);
    assert_int_equal(files(&w, &u), 2);
    assert_int_equal(w.started, 1);
    assert_int_equal(record_of(&w, u.box)->newlines, 1);
    world_close(&w);
}

static void test_stampede(void **state)
{
    struct world w;
    struct user u[64];

    (void)state;
    world_open(&w);
    for (size_t i = 0; i < MO_COUNT(u); i++)
        assert_int_equal(hold(&w, &u[i], "s1"), 0);
    for (size_t i = 0; i < MO_COUNT(u); i++) {
        assert_true(mo_loop_until(w.l, is_settled, &u[i], LONG));
        assert_int_equal(u[i].ready, 1);
        assert_ptr_equal(u[i].conn, u[0].conn);
    }
    assert_int_equal(w.started, 1);
    for (size_t i = 0; i + 1 < MO_COUNT(u); i++)
        mo_session_release(u[i].h);
    assert_int_equal(files(&w, &u[63]), 1);
    release(&w, &u[63]);
    world_close(&w);
}

static void test_many(void **state)
{
    struct world w;
    struct user u[20];
    char id[16];

    (void)state;
    world_open(&w);
    for (size_t i = 0; i < MO_COUNT(u); i++) {
        (void)snprintf(id, sizeof(id), "s%zu", i);
        assert_int_equal(hold(&w, &u[i], id), 0);
    }
    for (size_t i = 0; i < MO_COUNT(u); i++) {
        assert_true(mo_loop_until(w.l, is_settled, &u[i], LONG));
        for (size_t k = 0; k <= i; k++)
            assert_int_equal(files(&w, &u[i]), (int64_t)k + 1);
    }
    assert_int_equal(w.started, MO_COUNT(u));
    world_close(&w);
}

/* Whatever the moment, a release leaves no lease, and no box that no row
 * names (the older system leaked both). */
static void test_release_anywhen(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    for (int k = 0; k < 24; k++) {
        world_open(&w);
        if (k % 2) { /* half of them: on the way to adopting */
            hold_ready(&w, &u, "s1");
            release(&w, &u);
        }
        assert_int_equal(hold(&w, &u, "s1"), 0);
        turns(&w, k / 2);
        release(&w, &u);
        assert_null(held_of(&w.store, "s1"));
        assert_int_equal(running(&w), row_of(&w.store, "s1", false) ? 1 : 0);
        assert_true(k % 2 == 0 || running(&w) == 1);
        hold_ready(&w, &u, "s1");
        world_close(&w);
    }
}

/* --- whose it is --------------------------------------------------------- */

static int hold_as(struct world *w, struct user *u, const char *who)
{
    struct mo_err e;

    memset(u, 0, sizeof(*u));
    return mo_session_hold(w->ss, MO_SPAN("s1"), mo_span_cstr(who), &user_cb, u,
                           &u->h, &e);
}

static void settles(struct world *w, struct user *u, bool in)
{
    assert_true(mo_loop_until(w->l, is_settled, u, LONG));
    assert_int_equal(u->ready, in);
    if (in)
        return;
    assert_int_equal(u->why.code, MO_ENOTFOUND);
    assert_null(strstr(u->why.msg, "alice"));
}

static void test_owner(void **state)
{
    char name[MO_SESSION_OWNER_MAX + 1] = "";
    struct user alice, bob, third;
    struct world w;

    (void)state;
    world_open(&w);
    /* both at once, nobody has it: the first one does */
    assert_int_equal(hold_as(&w, &alice, "alice"), 0);
    assert_int_equal(hold_as(&w, &bob, "bob"), 0);
    settles(&w, &bob, false);
    settles(&w, &alice, true);
    /* while it is open */
    assert_int_equal(hold_as(&w, &bob, "bob"), MO_ENOTFOUND);
    assert_int_equal(hold_as(&w, &bob, "alice2"), MO_ENOTFOUND);
    assert_int_equal(hold_as(&w, &third, ""), 0);
    settles(&w, &third, true);
    mo_session_release(third.h);
    release(&w, &alice);
    /* left alone: the row says whose it is, and its box stays */
    assert_int_equal(hold_as(&w, &bob, "bob"), 0);
    settles(&w, &bob, false);
    assert_int_equal(running(&w), 1);
    /* who comes in between is served */
    assert_int_equal(hold_as(&w, &bob, "bob"), 0);
    assert_int_equal(hold_as(&w, &alice, "alice"), 0);
    settles(&w, &bob, false);
    settles(&w, &alice, true);
    assert_true(alice.resumed);
    release(&w, &alice);
    memset(name, 'x', sizeof(name) - 1);
    assert_int_equal(hold_as(&w, &bob, name), MO_EINVAL);
    world_close(&w);
}

/* A hold that comes while the last one is being let go waits for its turn. */
static void test_again_while_ending(void **state)
{
    struct world w;
    struct user u, v;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    mo_session_release(u.h);
    hold_ready(&w, &v, "s1");
    assert_int_equal(v.workspace, MO_WORKSPACE_KEPT);
    assert_int_equal(w.started, 1);
    world_close(&w);
}

/* A page is reloaded: its session is ready again before ten others have been
 * opened one after the other. */
static void test_reopened(void **state)
{
    struct user u, cold[10];
    struct world w;
    char id[16];

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    assert_int_equal(files(&w, &u), 1);
    mo_session_release(u.h);
    assert_int_equal(hold(&w, &u, "s1"), 0);
    for (size_t i = 0; i < MO_COUNT(cold); i++) {
        (void)snprintf(id, sizeof(id), "cold%zu", i);
        hold_ready(&w, &cold[i], id);
    }
    assert_int_equal(u.ready, 1);
    assert_int_equal(files(&w, &u), 2);
    world_close(&w);
}

static void test_bad_ids(void **state)
{
    static const char *const rows[] = {"", "a b", "../x", "a:b", "\xc3\xa9"};
    char big[MO_SESSION_ID_MAX + 2];
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i], hold(&w, &u, rows[i]) == MO_EINVAL);
    memset(big, 'a', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    assert_int_equal(hold(&w, &u, big), MO_EINVAL);
    big[sizeof(big) - 2] = '\0';
    hold_ready(&w, &u, big);
    world_close(&w);
}

/* --- a box that ends ----------------------------------------------------- */

static void on_used(void *ctx, const struct mo_session_info *info,
                    const struct mo_err *why)
{
    struct user *u = ctx;

    u->used++;
    if (info)
        user_take(u, info);
    if (why)
        u->used_why = *why;
}

static bool is_used(void *ctx)
{
    return ((struct user *)ctx)->used > 0;
}

static bool is_lost(void *ctx)
{
    return ((struct user *)ctx)->lost > 0;
}

static void use(struct world *w, struct user *u)
{
    struct mo_err e;

    u->used = 0;
    mo_err_clear(&u->used_why);
    assert_int_equal(mo_session_use(u->h, on_used, u, &e), 0);
    assert_int_equal(u->used, 0);
    assert_true(mo_loop_until(w->l, is_used, u, LONG));
}

/* C9: the call fails once, with the cause; the next use has a fresh box. */
static void test_oom(void **state)
{
    struct answer a, b;
    struct world w;
    struct user u, v;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    hold_ready(&w, &v, "s1");
    use(&w, &u);
    assert_int_equal(u.used_why.code, 0);
    assert_true(call(&u, &b, "test/hang"));
    assert_true(call(&u, &a, "test/oom"));
    assert_true(mo_loop_until(w.l, is_lost, &u, LONG));
    assert_true(mo_loop_until(w.l, is_lost, &v, LONG));
    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 1);
    assert_non_null(strstr(a.err.msg, "oom"));
    assert_non_null(strstr(b.err.msg, "oom"));
    assert_int_equal(u.cause, MO_BOX_OOM);
    assert_null(mo_session_info(u.h)->conn);
    use(&w, &u);
    assert_int_equal(u.used_why.code, 0);
    assert_int_equal(u.workspace, MO_WORKSPACE_LOST);
    assert_int_equal(files(&w, &u), 1);
    turns(&w, 5);
    assert_int_equal(u.lost, 1);
    assert_int_equal(u.again, 1);
    assert_int_equal(v.again, 1);
    assert_int_equal(v.lost, 1);
    assert_non_null(strstr(row_of(&w.store, "s1", false)->doc, u.box));
    world_close(&w);
}

static void test_revived(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    assert_int_equal(files(&w, &u), 1);
    die(record_of(&w, u.box), MO_BOX_KILLED, true);
    assert_true(mo_loop_until(w.l, is_lost, &u, LONG));
    assert_int_equal(u.cause, MO_BOX_KILLED);
    use(&w, &u);
    assert_int_equal(u.workspace, MO_WORKSPACE_KEPT);
    assert_int_equal(files(&w, &u), 2);
    assert_int_equal(w.revived, 1);
    world_close(&w);
}

/* Its output ends, it lives: it is not much use, and is ended. */
static void test_shuts_up(void **state)
{
    struct answer a;
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    assert_true(call(&u, &a, "test/shut"));
    assert_true(mo_loop_until(w.l, is_lost, &u, LONG));
    assert_int_equal(a.n, 1);
    assert_non_null(strstr(a.err.msg, "closed its output"));
    assert_int_equal(running(&w), 0);
    use(&w, &u);
    assert_int_equal(files(&w, &u), 1);
    world_close(&w);
}

/* The engine went away and came back; the box lived on without it. */
static void test_engine_returns(void **state)
{
    struct record *r;
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    assert_int_equal(files(&w, &u), 1);
    r = record_of(&w, u.box);
    mo_stream_close(r->inner, NULL);
    go_down(r->by, MO_BOX_ENGINE_GONE);
    r->by->rec = NULL;
    r->by = NULL;
    assert_true(mo_loop_until(w.l, is_lost, &u, LONG));
    use(&w, &u);
    assert_int_equal(u.workspace, MO_WORKSPACE_KEPT);
    assert_int_equal(files(&w, &u), 2);
    assert_int_equal(w.started, 1);
    world_close(&w);
}

static void test_no_box_again(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    die(record_of(&w, u.box), MO_BOX_EXITED, false);
    assert_true(mo_loop_until(w.l, is_lost, &u, LONG));
    w.refuse_start = true;
    use(&w, &u);
    assert_int_equal(u.used_why.code, MO_EPOLICY);
    assert_int_equal(u.closed, 0);
    w.refuse_start = false;
    use(&w, &u);
    assert_int_equal(u.used_why.code, 0);
    world_close(&w);
}

/* What the row names: dead, kept, refusing to talk. */
static void test_adoption_table(void **state)
{
    static const struct {
        const char *name;
        bool dead, kept, refuse;
        enum mo_workspace workspace;
        unsigned started;
    } rows[] = {
        {"lives", false, false, false, MO_WORKSPACE_KEPT, 1},
        {"died", true, false, false, MO_WORKSPACE_LOST, 2},
        {"died, files kept", true, true, false, MO_WORKSPACE_KEPT, 2},
        {"does not open twice", false, false, true, MO_WORKSPACE_LOST, 2},
    };
    struct world w;
    struct user u;
    char box[16];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        world_open(&w);
        hold_ready(&w, &u, "s1");
        put(box, sizeof(box), mo_span_cstr(u.box));
        release(&w, &u);
        if (rows[i].dead)
            die(record_of(&w, box), MO_BOX_KILLED, rows[i].kept);
        assert_int_equal(hold(&w, &u, "s1"), 0);
        w.refuse_init = rows[i].refuse;
        while (rows[i].refuse && w.stopped == 0)
            turns(&w, 1);
        w.refuse_init = false;
        assert_true(mo_loop_until(w.l, is_settled, &u, LONG));
        check_row(rows[i].name, u.ready == 1);
        check_row(rows[i].name, u.resumed);
        check_row(rows[i].name, u.workspace == rows[i].workspace);
        check_row(rows[i].name, w.started == rows[i].started);
        check_row(rows[i].name, running(&w) == 1);
        world_close(&w);
    }
}

/* Files that only another machine has. */
static void test_elsewhere(void **state)
{
    static const struct {
        const char *name, *first, *second;
        bool dies;
        enum mo_workspace workspace;
        bool elsewhere;
    } rows[] = {
        {"another machine", "a:/x", "b:/x", true, MO_WORKSPACE_LOST, true},
        {"another directory", "a:/x", "a:/y", true, MO_WORKSPACE_LOST, true},
        {"the same", "a:/x", "a:/x", true, MO_WORKSPACE_LOST, false},
        {"any machine", "", "", true, MO_WORKSPACE_LOST, false},
        {"it was any machine", "", "b:/x", true, MO_WORKSPACE_LOST, false},
        {"renamed, it lives", "a:/x", "b:/x", false, MO_WORKSPACE_KEPT, false},
    };
    struct world w;
    struct user u;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        world_open(&w);
        put(w.bs.place, sizeof(w.bs.place), mo_span_cstr(rows[i].first));
        hold_ready(&w, &u, "s1");
        check_row(rows[i].name, !u.elsewhere);
        release(&w, &u);
        if (rows[i].dies)
            die(record_of(&w, u.box), MO_BOX_KILLED, false);
        put(w.bs.place, sizeof(w.bs.place), mo_span_cstr(rows[i].second));
        hold_ready(&w, &u, "s1");
        check_row(rows[i].name, u.workspace == rows[i].workspace);
        check_row(rows[i].name, u.elsewhere == rows[i].elsewhere);
        release(&w, &u);
        hold_ready(&w, &u, "s1");
        check_row(rows[i].name, u.workspace == MO_WORKSPACE_KEPT);
        check_row(rows[i].name, !u.elsewhere);
        world_close(&w);
    }
}

static void test_never_starts(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    w.refuse_start = true;
    assert_int_equal(hold(&w, &u, "s1"), 0);
    assert_int_equal(u.closed, 0);
    assert_true(mo_loop_until(w.l, is_user_closed, &u, LONG));
    assert_string_equal(u.reason, "failed");
    assert_int_equal(u.why.code, MO_EPOLICY);
    assert_null(row_of(&w.store, "s1", false));
    w.refuse_start = false;
    w.refuse_init = true;
    assert_int_equal(hold(&w, &u, "s1"), 0);
    assert_true(mo_loop_until(w.l, is_user_closed, &u, LONG));
    assert_non_null(strstr(u.why.msg, "once is enough"));
    assert_true(mo_loop_until(w.l, none_open, &w, LONG));
    assert_int_equal(running(&w), 0);
    world_close(&w);
}

static void test_notified(void **state)
{
    struct answer a;
    struct world w;
    struct user u, v;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    hold_ready(&w, &v, "s1");
    assert_true(call(&u, &a, "test/notify"));
    assert_int_equal(files(&w, &u), 1);
    assert_int_equal(u.notified, 1);
    assert_int_equal(v.notified, 1);
    world_close(&w);
}

/* --- the store ----------------------------------------------------------- */

static void test_store_away(void **state)
{
    static const struct {
        const char *name;
        enum op_kind kind;
    } rows[] = {{"reading", OP_READ}, {"naming", OP_WRITE}};
    struct world w;
    struct user u;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        world_open(&w);
        w.store.fail[rows[i].kind] = true;
        assert_int_equal(hold(&w, &u, "s1"), 0);
        assert_true(mo_loop_until(w.l, is_user_closed, &u, LONG));
        check_row(rows[i].name, u.ready == 0);
        check_row(rows[i].name, u.why.code == MO_EUNAVAIL);
        assert_true(mo_loop_until(w.l, none_open, &w, LONG));
        check_row(rows[i].name, running(&w) == 0);
        check_row(rows[i].name, !held_of(&w.store, "s1"));
        world_close(&w);
    }
}

static void on_kept(void *ctx, const struct mo_err *why)
{
    assert_null(why);
    ++*(unsigned *)ctx;
}

static bool is_kept(void *ctx)
{
    return *(unsigned *)ctx > 0;
}

static void test_keep(void **state)
{
    static char big[MO_SESSION_DATA_MAX + 1];
    struct mo_span much = {big, sizeof(big)};
    unsigned kept = 0;
    struct mo_err e;
    struct world w;
    struct user u;

    (void)state;
    memset(big, '1', sizeof(big));
    world_open(&w);
    hold_ready(&w, &u, "s1");
    assert_int_equal(mo_session_keep(u.h, much, on_kept, &kept, &e),
                     MO_ETOOBIG);
    assert_int_equal(mo_session_keep(u.h, MO_SPAN("{"), on_kept, &kept, &e),
                     MO_EPROTO);
    assert_int_equal(
        mo_session_keep(u.h, MO_SPAN("{\"m\":1}"), on_kept, &kept, &e), 0);
    assert_int_equal(kept, 0);
    assert_true(mo_loop_until(w.l, is_kept, &kept, LONG));
    assert_int_equal(
        mo_session_keep(u.h, MO_SPAN("{\"m\":2}"), on_kept, &kept, &e), 0);
    release(&w, &u);
    assert_int_equal(kept, 1);
    hold_ready(&w, &u, "s1");
    assert_string_equal(u.data, "{\"m\":2}");
    world_close(&w);
}

/* --- leases -------------------------------------------------------------- */

static void test_waits_for_lease(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    (void)hold_lease(&w.store, "s1", "other", NULL);
    assert_int_equal(hold(&w, &u, "s1"), 0);
    turns(&w, 20);
    assert_false(is_settled(&u));
    free_lease(&w.store, "s1");
    assert_true(mo_loop_until(w.l, is_settled, &u, LONG));
    assert_int_equal(u.ready, 1);
    world_close(&w);
}

static void test_lease_never_free(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_init(&w);
    assert_int_equal(world_sessions(&w, 20), 0);
    (void)hold_lease(&w.store, "s1", "other", NULL);
    assert_int_equal(hold(&w, &u, "s1"), 0);
    assert_true(mo_loop_until(w.l, is_settled, &u, LONG));
    assert_string_equal(u.reason, "failed");
    assert_non_null(strstr(u.why.msg, "other"));
    world_close(&w);
}

/* A hold that can go there is told at once, or after its own time. */
static void test_hold_moves(void **state)
{
    struct world w;
    struct user u, stays;

    (void)state;
    world_open(&w);
    (void)hold_lease(&w.store, "s1", "other", NULL);
    for (uint64_t wait = 0; wait <= 20; wait += 20) {
        assert_int_equal(hold(&w, &u, "s1"), 0);
        mo_session_may_move(u.h, wait);
        assert_true(mo_loop_until(w.l, is_settled, &u, LONG));
        assert_string_equal(u.reason, "elsewhere");
        assert_non_null(strstr(u.why.msg, "other"));
    }
    /* with one that cannot, it waits */
    assert_int_equal(hold(&w, &u, "s1"), 0);
    mo_session_may_move(u.h, 0);
    assert_int_equal(hold(&w, &stays, "s1"), 0);
    turns(&w, 20);
    assert_false(is_settled(&u) || is_settled(&stays));
    free_lease(&w.store, "s1");
    assert_true(mo_loop_until(w.l, is_settled, &u, LONG));
    assert_int_equal(u.ready, 1);
    world_close(&w);
}

/* Who may move and finds the lease free, or of a dead process, stays. */
static void test_hold_that_may_move_stays(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    w.dead = "gone";
    (void)hold_lease(&w.store, "s1", "gone", NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hold(&w, &u, "s1"), 0);
        mo_session_may_move(u.h, 0);
        assert_true(mo_loop_until(w.l, is_settled, &u, LONG));
        assert_int_equal(u.ready, 1);
        release(&w, &u);
    }
    world_close(&w);
}

/* Who died holding it is not waited for. */
static void test_lease_of_the_dead(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    w.dead = "gone";
    (void)hold_lease(&w.store, "s1", "gone", NULL);
    hold_ready(&w, &u, "s1");
    world_close(&w);
}

static void test_lease_lost(void **state)
{
    struct answer a;
    struct world w;
    struct user u;
    unsigned writes;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    assert_true(call(&u, &a, "test/hang"));
    writes = w.store.writes;
    steal_lease(&w.store, "s1");
    assert_true(mo_loop_until(w.l, is_user_closed, &u, LONG));
    assert_string_equal(u.reason, "taken over");
    assert_true(mo_loop_until(w.l, none_open, &w, LONG));
    assert_int_equal(a.n, 1);
    assert_int_equal(running(&w), 1);
    assert_int_equal(w.let_go, 1);
    assert_int_equal(w.store.writes, writes);
    world_close(&w);
}

/* --- the janitor --------------------------------------------------------- */

#define MINUTE ((uint64_t)60000)

static void check_asleep(struct world *w, const char *id, bool asleep)
{
    const struct row *r = row_of(&w->store, id, false);
    struct mo_session_row row;

    assert_non_null(r);
    assert_int_equal(mo_session_row(mo_span_cstr(r->doc), &row, NULL), 0);
    assert_int_equal(row.asleep, asleep);
    assert_int_equal(row.box[0] == '\0', asleep);
    assert_true(row.created > 0);
}

/* Another idle time and another number, while sessions are open. */
static void test_change(void **state)
{
    const struct mo_sessions_opts o = {.idle_ms = 5 * MINUTE, .max = 1};
    struct mo_hold *second = NULL;
    struct world w;
    struct user u;
    struct mo_err e;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    w.now += 4 * MINUTE;
    sweep(&w);
    assert_int_equal(u.idle, 0);
    mo_sessions_change(w.ss, &o);
    sweep(&w);
    assert_int_equal(u.idle, 1);
    assert_int_equal(mo_session_hold(w.ss, MO_SPAN("s2"), mo_span(NULL, 0),
                                     NULL, NULL, &second, &e),
                     MO_EBUSY);
    w.now += MINUTE;
    sweep(&w);
    assert_true(mo_loop_until(w.l, is_user_closed, &u, LONG));
    assert_string_equal(u.reason, "idle");
    world_close(&w);
}

static void test_idle(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    say_something(&w.store, "s1", true);
    w.now += 13 * MINUTE;
    sweep(&w);
    assert_int_equal(u.idle, 0);
    w.now += MINUTE;
    sweep(&w);
    assert_int_equal(u.idle, 1);
    assert_int_equal(u.seconds, 60);
    sweep(&w);
    assert_int_equal(u.idle, 1);
    assert_int_equal(u.closed, 0);
    w.now += MINUTE;
    sweep(&w);
    assert_true(mo_loop_until(w.l, is_user_closed, &u, LONG));
    assert_string_equal(u.reason, "idle");
    assert_true(mo_loop_until(w.l, none_open, &w, LONG));
    assert_int_equal(running(&w), 0);
    check_asleep(&w, "s1", true);
    assert_true(has_history(&w.store, "s1"));
    hold_ready(&w, &u, "s1");
    assert_true(u.resumed);
    assert_int_equal(u.workspace, MO_WORKSPACE_LOST);
    assert_int_equal(running(&w), 1);
    check_asleep(&w, "s1", false);
    world_close(&w);
}

/* A machine that slept over the time: warned first all the same. */
static void test_warned_before(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    w.now += 600 * MINUTE;
    sweep(&w);
    assert_int_equal(u.idle, 1);
    assert_int_equal(u.closed, 0);
    w.now += MINUTE / 2;
    sweep(&w);
    assert_int_equal(u.closed, 0);
    mo_session_touch(u.h);
    w.now += MINUTE;
    sweep(&w);
    assert_int_equal(u.closed, 0);
    assert_int_equal(u.idle, 1);
    world_close(&w);
}

static void test_active_and_running(void **state)
{
    struct world w;
    struct user active, running_;

    (void)state;
    world_open(&w);
    hold_ready(&w, &active, "s1");
    hold_ready(&w, &running_, "s2");
    mo_session_busy(running_.h, true);
    for (int i = 0; i < 60; i++) {
        w.now += MINUTE;
        if (i % 10 == 0)
            mo_session_touch(active.h);
        sweep(&w);
    }
    assert_int_equal(active.closed + running_.closed, 0);
    assert_int_equal(active.idle + running_.idle, 0);
    mo_session_busy(running_.h, false);
    for (int i = 0; i < 16; i++) {
        w.now += MINUTE;
        sweep(&w);
    }
    assert_true(mo_loop_until(w.l, is_user_closed, &running_, LONG));
    world_close(&w);
}

/* Sessions nobody holds here: by the store's rows, under their lease. */
static void test_idle_rows(void **state)
{
    struct world w;
    struct user u;
    char id[16];

    (void)state;
    world_open(&w);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(id, sizeof(id), "s%d", i);
        hold_ready(&w, &u, id);
        release(&w, &u);
    }
    (void)hold_lease(&w.store, "s0", "other", NULL);
    w.now += 10 * MINUTE;
    hold_ready(&w, &u, "s2");
    release(&w, &u);
    w.now += 6 * MINUTE;
    sweep(&w);
    assert_non_null(row_of(&w.store, "s0", false));
    check_asleep(&w, "s1", true);
    assert_non_null(row_of(&w.store, "s2", false));
    assert_int_equal(running(&w), 2);
    assert_int_equal(mo_sessions_stats(w.ss).reaped, 1);
    world_close(&w);
}

/* A warm box that a session took: its label does not say so. */
static struct record *take_warm(struct world *w, struct user *u, const char *id)
{
    struct record *r;

    hold_ready(w, u, id);
    release(w, u);
    r = record_of(w, u->box);
    assert_non_null(r);
    r->session[0] = '\0';
    (void)snprintf(r->instance, sizeof(r->instance), "dead");
    return r;
}

/* part: rows in a part of the driver's list. */
static void check_orphans(size_t part, unsigned parts)
{
    static const struct {
        const char *name, *session, *instance;
        bool stays;
    } rows[] = {
        {"dead, no row", "x1", "dead", false},
        {"dead by its lease", "x2", "expired", false},
        {"alive, no row yet", "x3", "alive", true},
        {"ours, unknown", "x4", "me", false},
        {"warm, dead", "", "dead", false},
        {"warm, alive", "", "alive", true},
        {"warm, ours", "", "me", true},
        {"row names another", "s1", "dead", false},
    };
    struct record *r[MO_COUNT(rows)], *first, *last;
    struct world w;
    struct user u;

    world_open(&w);
    w.part = part;
    w.dead = "dead";
    (void)hold_lease(&w.store, "instance:alive", "alive", NULL);
    first = take_warm(&w, &u, "s1");
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        r[i] = record_new(&w, rows[i].session, rows[i].instance);
    last = take_warm(&w, &u, "s2");
    w.parts = 0;
    sweep(&w);
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].name, r[i]->used == rows[i].stays);
    assert_true(first->used);
    assert_true(last->used);
    assert_int_equal(mo_sessions_stats(w.ss).swept, 5);
    assert_int_equal(w.parts, parts);
    world_close(&w);
}

static void test_orphans(void **state)
{
    (void)state;
    check_orphans(0, 1);
}

/* However short the parts are, one sweep judges every box. */
static void test_orphans_in_parts(void **state)
{
    (void)state;
    check_orphans(1, 11); /* ten, and the empty rest */
    check_orphans(3, 4);
    check_orphans(10, 2);
}

/* The first sweep comes by itself; nothing is removed that cannot be judged. */
static void test_sweep_without_store(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    w.dead = "dead";
    (void)record_new(&w, "x1", "dead");
    (void)record_new(&w, "x2", "expired");
    w.store.fail[OP_READ] = w.store.fail[OP_WHO] = true;
    assert_int_equal(world_sessions(&w, LONG), 0);
    sweep(&w);
    assert_int_equal(running(&w), 2);
    w.store.fail[OP_READ] = w.store.fail[OP_WHO] = false;
    sweep(&w);
    assert_int_equal(running(&w), 0);
    world_close(&w);
}

/* --- ending from outside ------------------------------------------------- */

struct ended {
    unsigned n;
    struct mo_err why;
};

static void on_ended(void *ctx, const struct mo_err *why)
{
    struct ended *x = ctx;

    x->n++;
    if (why)
        x->why = *why;
}

static bool is_ended(void *ctx)
{
    return ((struct ended *)ctx)->n > 0;
}

static int end(struct world *w, const char *id, bool forget)
{
    struct ended x = {0};
    struct mo_err e;

    assert_int_equal(
        mo_session_end(w->ss, mo_span_cstr(id), forget, on_ended, &x, &e), 0);
    assert_int_equal(x.n, 0);
    assert_true(mo_loop_until(w->l, is_ended, &x, LONG));
    return x.why.code;
}

static void test_end(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    assert_int_equal(end(&w, "nobody", false), MO_ENOTFOUND);
    hold_ready(&w, &u, "s1");
    say_something(&w.store, "s1", true);
    assert_int_equal(end(&w, "s1", false), 0);
    assert_int_equal(u.closed, 1);
    assert_string_equal(u.reason, "killed");
    assert_int_equal(running(&w), 0);
    assert_true(has_history(&w.store, "s1"));
    hold_ready(&w, &u, "s2");
    release(&w, &u);
    assert_int_equal(end(&w, "s2", false), 0);
    assert_int_equal(running(&w), 0);
    assert_null(row_of(&w.store, "s2", false));
    (void)hold_lease(&w.store, "s3", "other", NULL);
    assert_int_equal(end(&w, "s3", false), MO_EBUSY);
    assert_int_equal(end(&w, "s1", true), 0);
    assert_false(has_history(&w.store, "s1"));
    world_close(&w);
}

/* It sleeps through rounds and starts, until its history goes; or until
 * somebody ends it. */
static void test_asleep(void **state)
{
    struct world w;
    struct user u;
    uint64_t began;

    (void)state;
    world_open(&w);
    began = w.now;
    for (int i = 0; i < 2; i++) {
        hold_ready(&w, &u, i ? "s2" : "s1");
        say_something(&w.store, i ? "s2" : "s1", true);
        release(&w, &u);
    }
    w.now += 16 * MINUTE;
    sweep(&w);
    check_asleep(&w, "s1", true);
    check_asleep(&w, "s2", true);
    assert_int_equal(mo_sessions_stats(w.ss).reaped, 2);
    for (int i = 0; i < 3; i++) {
        unsigned writes = w.store.writes;

        w.now += 60 * MINUTE;
        sweep(&w);
        assert_int_equal(w.store.writes, writes);
    }
    assert_int_equal(mo_sessions_stats(w.ss).reaped, 2);
    assert_int_equal(end(&w, "s2", false), 0);
    assert_null(row_of(&w.store, "s2", false));
    assert_true(has_history(&w.store, "s2"));
    w.now = began + 86400000 - 1;
    sweep(&w);
    check_asleep(&w, "s1", true);
    w.now++;
    sweep(&w);
    assert_null(row_of(&w.store, "s1", false));
    assert_int_equal(mo_sessions_stats(w.ss).expired, 1);
    assert_int_equal(running(&w), 0);
    world_close(&w);
}

/* Killed at every moment of its opening. */
static void test_end_anywhen(void **state)
{
    struct world w;
    struct user u;

    (void)state;
    for (int k = 0; k < 12; k++) {
        world_open(&w);
        assert_int_equal(hold(&w, &u, "s1"), 0);
        turns(&w, k);
        (void)end(&w, "s1", false);
        if (u.closed)
            assert_string_equal(u.reason, "killed");
        else
            assert_true(mo_loop_until(w.l, is_settled, &u, LONG));
        if (u.h)
            release(&w, &u);
        assert_int_equal(running(&w), row_of(&w.store, "s1", false) ? 1 : 0);
        world_close(&w);
    }
}

/* --- this run, and others ------------------------------------------------ */

static void make_dir(char out[64])
{
    (void)snprintf(out, 64, "/tmp/mo-test-XXXXXX");
    assert_non_null(mkdtemp(out));
}

static void remove_dir(const char *dir, const char *file)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    (void)unlink(path);
    assert_int_equal(rmdir(dir), 0); /* nothing else was left */
}

struct lives {
    struct world *w;
    const char *dir;
    bool gone;
};

static void on_instance_gone(void *ctx)
{
    ((struct lives *)ctx)->gone = true;
}

static bool is_instance_gone(void *ctx)
{
    return ((struct lives *)ctx)->gone;
}

static void close_instance(struct lives *v, struct mo_instance *in)
{
    v->gone = false;
    mo_instance_close(in, on_instance_gone, v);
    assert_false(v->gone);
    assert_true(mo_loop_until(v->w->l, is_instance_gone, v, LONG));
}

static void live(void *ctx)
{
    struct lives *v = ctx;
    struct mo_instance *in = NULL;
    struct mo_err e;

    if (mo_instance_open(v->w->l, &v->w->store, v->dir, &in, &e) < 0)
        return;
    turns(v->w, 3);
    close_instance(v, in);
}

static void test_instance(void **state)
{
    struct mo_instance *a = NULL, *b = NULL;
    char dir[64], name[128];
    struct lives v = {.dir = dir};
    struct mo_err e;
    struct world w;
    FILE *f;

    (void)state;
    world_init(&w);
    make_dir(dir);
    v.w = &w;
    assert_int_equal(mo_instance_open(w.l, &w.store, dir, &a, &e), 0);
    assert_int_equal(mo_instance_open(w.l, &w.store, dir, &b, &e), 0);
    turns(&w, 3);
    assert_string_not_equal(mo_instance_name(a), mo_instance_name(b));
    (void)snprintf(name, sizeof(name), "instance:%s", mo_instance_name(b));
    assert_non_null(held_of(&w.store, name));
    assert_false(mo_instance_dead(a, mo_span_cstr(mo_instance_name(b))));
    assert_false(mo_instance_dead(a, MO_SPAN("nobody")));
    assert_false(mo_instance_dead(a, MO_SPAN("../x")));
    (void)snprintf(name, sizeof(name), "%s/gone.lock", dir);
    f = fopen(name, "w");
    assert_non_null(f);
    (void)fclose(f);
    assert_true(mo_instance_dead(a, MO_SPAN("gone")));
    close_instance(&v, a);
    close_instance(&v, b);
    torture(live, &v);
    remove_dir(dir, "gone.lock");
    world_fini(&w);
}

/* Another process asks us to end a session that we hold. */
static void test_control(void **state)
{
    static const struct {
        const char *session;
        int code;
    } rows[] = {{"s1", 0}, {"nobody", MO_ENOTFOUND}, {"no id", MO_EINVAL}};
    struct mo_control *c = NULL;
    struct lives v = {.gone = false};
    char dir[64], path[108];
    struct mo_err e;
    struct world w;
    struct user u;

    (void)state;
    world_open(&w);
    make_dir(dir);
    hold_ready(&w, &u, "s1");
    assert_int_equal(mo_control_path(path, sizeof(path), dir, "i", &e), 0);
    assert_int_equal(mo_control_open(w.l, w.ss, path, &c, &e), 0);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct ended x = {0};

        assert_int_equal(mo_control_end(w.l, path,
                                        mo_span_cstr(rows[i].session), false,
                                        on_ended, &x, &e),
                         0);
        assert_true(mo_loop_until(w.l, is_ended, &x, LONG));
        check_row(rows[i].session, x.why.code == rows[i].code);
    }
    assert_string_equal(u.reason, "killed");
    assert_int_equal(running(&w), 0);
    mo_control_close(c, on_instance_gone, &v);
    assert_true(mo_loop_until(w.l, is_instance_gone, &v, LONG));
    remove_dir(dir, "none");
    world_close(&w);
}

/* --- too little memory --------------------------------------------------- */

/* Whatever fails: everybody is told, nothing is left but what a row names. */
static void life(void *ctx)
{
    struct world *w = ctx;
    struct answer a = {0};
    struct user u;
    struct mo_err e;
    int rc;

    w->store.ops = 0;
    w->ss = NULL;
    w->now += 1;
    rc = world_sessions(w, LONG);
    if (rc < 0)
        return;
    rc = hold(w, &u, "s1");
    if (rc == 0)
        assert_true(mo_loop_until(w->l, is_settled, &u, LONG));
    if (rc == 0 && u.ready && call(&u, &a, "test/files"))
        assert_true(mo_loop_until(w->l, has_answer, &a, LONG));
    if (rc == 0 && u.ready && !u.lost && !u.closed &&
        mo_session_use(u.h, on_used, &u, &e) == 0)
        (void)mo_loop_until(w->l, is_used, &u, LONG);
    if (rc == 0 && !u.closed)
        mo_session_release(u.h);
    world_close_sessions(w);
}

static void test_torture(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    torture(life, &w);
    assert_int_equal(world_sessions(&w, LONG), 0);
    sweep(&w);
    assert_true(running(&w) <= 1);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_adopted),
        cmocka_unit_test(test_stampede),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_release_anywhen),
        cmocka_unit_test(test_owner),
        cmocka_unit_test(test_again_while_ending),
        cmocka_unit_test(test_reopened),
        cmocka_unit_test(test_bad_ids),
        cmocka_unit_test(test_oom),
        cmocka_unit_test(test_revived),
        cmocka_unit_test(test_shuts_up),
        cmocka_unit_test(test_engine_returns),
        cmocka_unit_test(test_no_box_again),
        cmocka_unit_test(test_adoption_table),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_never_starts),
        cmocka_unit_test(test_notified),
        cmocka_unit_test(test_store_away),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_waits_for_lease),
        cmocka_unit_test(test_lease_never_free),
        cmocka_unit_test(test_hold_moves),
        cmocka_unit_test(test_hold_that_may_move_stays),
        cmocka_unit_test(test_lease_of_the_dead),
        cmocka_unit_test(test_lease_lost),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_asleep),
        cmocka_unit_test(test_warned_before),
        cmocka_unit_test(test_active_and_running),
        cmocka_unit_test(test_idle_rows),
        cmocka_unit_test(test_orphans),
        cmocka_unit_test(test_orphans_in_parts),
        cmocka_unit_test(test_sweep_without_store),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_end_anywhen),
        cmocka_unit_test(test_instance),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
