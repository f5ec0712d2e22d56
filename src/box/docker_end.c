/* docker_end.c - the end of a docker box: its cause, and removing what is
 * left.
 *
 * Three things report an end: the attach, the engine's events, and our own
 * stop. For the first two, inspect decides. */
#include <stdio.h>

#include "box/docker_priv.h"

#define LINGER_MS   2000 /* an attach may end before the engine knows why */
#define MEMORY_MS   500  /* ... or before it reports that memory ran out */
#define TRY_MS      50
#define SIGNAL_BASE 128
#define SIGNAL_KILL 9

/* --- the end ------------------------------------------------------------- */

static void close_streams(struct dk_box *b)
{
    if (!b->streams_ours)
        return;
    b->streams_ours = false;
    mo_stream_close(b->io.io, NULL);
    mo_stream_close(b->io.err, NULL);
}

/* The container is gone or left alone: its network is next. */
static void report_down(struct dk_box *b)
{
    mo_docker_move(b, DK_DONE);
    if (b->io.split)
        mo_split_forget(mo_take_ptr(&b->io.split));
    close_streams(b);
    mo_docker_net_end(b, b->end.cause == MO_BOX_LET_GO ||
                             b->end.cause == MO_BOX_ENGINE_GONE);
}

/* The last step of a box. */
void mo_docker_net_gone(struct dk_box *b)
{
    struct dk *d = mo_docker_of_box(b);

    mo_timer_stop(d->bs.loop, &b->timer);
    mo_later_cancel(&b->later);
    mo_list_del(&b->wait.node);
    if (b->slot >= 0)
        d->slots[b->slot] = false;
    mo_image_free(b->image);
    mo_arena_fini(&b->arena);
    b->end.why = b->why.code ? &b->why : NULL;
    mo_box_down(&b->b, &b->end);
}

static void end_with(struct dk_box *b, enum mo_box_cause cause, int code,
                     int signal)
{
    if (b->has_end)
        return;
    b->has_end = true;
    b->end =
        (struct mo_box_end){.cause = cause, .code = code, .signal = signal};
}

/* The engine cannot be asked: the next sweep finds what is left. */
static void engine_gone(struct dk_box *b, const struct mo_err *why)
{
    b->has_end = false;
    end_with(b, MO_BOX_ENGINE_GONE, -1, 0);
    b->why = *why;
    report_down(b);
}

static void on_removed(void *ctx, const struct mo_err *why)
{
    struct dk_box *b = ctx;

    if (why)
        engine_gone(b, why);
    else
        report_down(b);
}

static void start_remove(struct dk_box *b)
{
    struct mo_err e;

    mo_docker_move(b, DK_REMOVING);
    if (mo_docker_remove_one(b->b.bs, b->id, on_removed, b, &e) < 0)
        engine_gone(b, &e);
}

static void find_now(struct dk_box *b);

static void on_try_find(struct mo_timer *t)
{
    find_now(mo_container_of(t, struct dk_box, timer));
}

/* create was sent and never answered: look the container up by name; it may
 * appear a little later. */
static void on_found(void *ctx, const struct mo_engine_reply *r,
                     const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct mo_json labels =
        mo_json_get(mo_json_get(r->json, "Config"), "Labels");
    struct mo_span mine = mo_span_cstr(mo_docker_of_box(b)->instance);

    b->call = NULL;
    if (why && why->code != MO_ENOTFOUND) {
        engine_gone(b, why);
        return;
    }
    if (why && ++b->tries * TRY_MS < LINGER_MS) {
        mo_docker_retry(b, on_try_find, TRY_MS);
        return;
    }
    if (why || !mo_json_str_eq(mo_json_get(labels, "mo.instance"), mine)) {
        report_down(b);
        return;
    }
    (void)snprintf(b->id, sizeof(b->id), "%s", b->name);
    start_remove(b);
}

static void find_now(struct dk_box *b)
{
    struct mo_err e;

    if (mo_docker_ask(b, "GET", b->name, "/json", on_found, &e) < 0)
        engine_gone(b, &e);
}

void mo_docker_wind_up(struct dk_box *b)
{
    close_streams(b);
    if (!b->made) {
        report_down(b);
    } else if (b->id[0]) {
        start_remove(b);
    } else {
        mo_docker_move(b, DK_FINDING);
        b->tries = 0;
        find_now(b);
    }
}

void mo_docker_give_up(struct dk_box *b, const struct mo_err *why)
{
    if (b->stopping) {
        end_with(b, MO_BOX_STOPPED, -1, 0);
    } else {
        end_with(b, MO_BOX_REFUSED, -1, 0);
        b->why = *why;
    }
    if (b->attaching)
        mo_engine_cancel(b->attaching); /* on_attached() goes on */
    else
        mo_docker_wind_up(b);
}

/* --- what ended? --------------------------------------------------------- */

static void judge_end(struct dk_box *b);

static int signal_of(uint64_t code)
{
    return code > SIGNAL_BASE && code < SIGNAL_BASE + 65
               ? (int)code - SIGNAL_BASE
               : 0;
}

static uint64_t exit_code(struct mo_json state)
{
    uint64_t code = 0;

    (void)mo_json_u64(mo_json_get(state, "ExitCode"), &code);
    return code;
}

/* Engines report it if any process was killed for memory; the box's own end
 * counts. If the engine learns of it after the end, there is only the event. */
static bool is_out_of_memory(const struct dk_box *b, struct mo_json state)
{
    return b->oom || mo_json_flag(state, "OOMKilled");
}

static void set_cause(struct dk_box *b, struct mo_json state)
{
    uint64_t code = exit_code(state);
    int sig = signal_of(code);

    if (sig == SIGNAL_KILL && is_out_of_memory(b, state))
        end_with(b, MO_BOX_OOM, -1, sig);
    else if (sig)
        end_with(b, MO_BOX_KILLED, -1, sig);
    else
        end_with(b, MO_BOX_EXITED, (int)code, 0);
    start_remove(b);
}

static void on_try_judge(struct mo_timer *t)
{
    struct dk_box *b = mo_container_of(t, struct dk_box, timer);

    if (b->step == DK_UP)
        judge_end(b);
}

/* It runs, but its attach has ended: it is about to end, or it has closed its
 * output and is of no use, or another client has attached. */
static void handle_running(struct dk_box *b)
{
    struct dk *d = mo_docker_of_box(b);

    if (!b->eof) {
        mo_docker_move(b, DK_UP);
        return;
    }
    if (!d->watch || !mo_watch_is_up(d->watch)) {
        engine_gone(
            b, mo_error(MO_EUNAVAIL,
                        "the connection to the engine was lost for a moment"));
        return;
    }
    if (b->broken || b->tries++ * TRY_MS >= LINGER_MS) {
        end_with(b, MO_BOX_EXITED, -1, 0);
        (void)mo_fail(&b->why, MO_ECLOSED,
                      b->broken ? "its output cannot be decoded"
                                : "its program closed its output");
        start_remove(b);
        return;
    }
    mo_docker_move(b, DK_UP);
    mo_docker_retry(b, on_try_judge, TRY_MS);
}

/* Killed by an unknown sender: an engine learns of the end and of used-up
 * memory separately, and of the latter sometimes later. */
static bool may_be_memory(struct dk_box *b, struct mo_json state)
{
    return signal_of(exit_code(state)) == SIGNAL_KILL &&
           !is_out_of_memory(b, state) && b->looks++ * TRY_MS < MEMORY_MS;
}

static void on_judged(void *ctx, const struct mo_engine_reply *r,
                      const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct mo_json state = mo_json_get(r->json, "State");

    b->call = NULL;
    if (b->letting_go) {
        end_with(b, MO_BOX_LET_GO, -1, 0);
        report_down(b);
    } else if (b->stopping) {
        end_with(b, MO_BOX_STOPPED, -1, 0);
        start_remove(b);
    } else if (why && why->code == MO_ENOTFOUND) {
        end_with(b, MO_BOX_KILLED, -1, SIGNAL_KILL);
        (void)mo_fail(&b->why, MO_ENOTFOUND,
                      "the container was removed from outside");
        report_down(b);
    } else if (why) {
        engine_gone(b, why);
    } else if (mo_json_flag(state, "Running")) {
        handle_running(b);
    } else if (may_be_memory(b, state)) {
        mo_docker_move(b, DK_UP);
        mo_docker_retry(b, on_try_judge, TRY_MS);
    } else {
        set_cause(b, state);
    }
}

static void judge_end(struct dk_box *b)
{
    struct mo_err e;

    mo_docker_move(b, DK_JUDGING);
    if (mo_docker_ask(b, "GET", b->id, "/json", on_judged, &e) < 0)
        engine_gone(b, &e);
}

/* Runs once from the loop, however many events came. */
void mo_docker_box_later(struct mo_later *l)
{
    struct dk_box *b = mo_container_of(l, struct dk_box, later);

    if (b->letting_go && b->step == DK_UP) {
        end_with(b, MO_BOX_LET_GO, -1, 0);
        report_down(b);
    } else if (b->step == DK_UP && b->stopping) {
        end_with(b, MO_BOX_STOPPED, -1, 0);
        start_remove(b);
    } else if (b->step == DK_UP) {
        judge_end(b);
    } else if (b->stopping && (b->step == DK_WAITING || b->net.waiting)) {
        mo_docker_net_cancel(b);
        mo_docker_give_up(b, mo_error(MO_ECANCELED, "stopped"));
    }
}

void mo_docker_box_news(struct dk_box *b)
{
    if (b->step == DK_UP)
        mo_loop_defer(mo_docker_of_box(b)->bs.loop, &b->later);
}

void mo_docker_box_cut(void *ctx, enum mo_split_end how,
                       const struct mo_err *why)
{
    struct dk_box *b = ctx;

    b->io.split = NULL;
    if (how == MO_SPLIT_CLOSED)
        return; /* the owner closed the streams: the box lives on */
    b->eof = true;
    b->broken = how == MO_SPLIT_BROKEN && why && why->code == MO_EPROTO;
    mo_docker_box_news(b);
}
