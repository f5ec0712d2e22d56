/* kube_end.c - the end of a kubernetes box: its cause, and removing what is
 * left.
 *
 * Three things report an end: the attach, the watch of pods, and our own stop.
 * For the first two the pod's state decides. */
#include <stdio.h>

#include "box/kube_priv.h"

#define LINGER_MS   5000 /* an attach may end before the cluster knows why */
#define DRAIN_MS    2000 /* ... or after it does: output is still to come */
#define TRY_MS      200
#define SIGNAL_BASE 128
#define SIGNAL_KILL 9

/* --- the end ------------------------------------------------------------- */

void mo_kbox_down(struct kb_box *b)
{
    mo_kbox_move(b, KB_DONE);
    mo_kbox_drop_streams(b);
    mo_timer_stop(mo_kb_of_box(b)->bs.loop, &b->timer);
    mo_later_cancel(&b->later);
    mo_list_del(&b->wait.node);
    mo_kbox_net_end(b);
}

/* Its pod is gone. */
static void finish_box(struct kb_box *b)
{
    if (!mo_kbox_files_drop(b))
        mo_kbox_down(b);
}

void mo_kbox_net_gone(struct kb_box *b)
{
    mo_arena_fini(&b->arena);
    b->end.why = b->why.code ? &b->why : NULL;
    mo_box_down(&b->b, &b->end);
}

static void end_with(struct kb_box *b, enum mo_box_cause cause, int code,
                     int signal)
{
    if (b->has_end)
        return;
    b->has_end = true;
    b->end =
        (struct mo_box_end){.cause = cause, .code = code, .signal = signal};
}

void mo_kbox_engine_gone(struct kb_box *b, const struct mo_err *why)
{
    b->has_end = false;
    end_with(b, MO_BOX_ENGINE_GONE, -1, 0);
    b->why = *why;
    mo_kbox_down(b);
}

int mo_kb_put_delete(struct mo_buf *b, const char *uid)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "apiVersion", "v1");
    mo_jw_member_cstr(&w, "kind", "DeleteOptions");
    mo_jw_member_u64(&w, "gracePeriodSeconds", 0);
    if (*uid) {
        mo_jw_member_obj(&w, "preconditions");
        mo_jw_member_cstr(&w, "uid", uid);
        mo_jw_end(&w);
    }
    mo_jw_end_all(&w);
    return mo_buf_err(b);
}

/* 404 and another pod of that name (409): it is gone. */
static void on_removed(void *ctx, const struct mo_kube_reply *r,
                       const struct mo_err *why)
{
    struct kb_box *b = ctx;

    (void)r;
    b->call = NULL;
    if (why && why->code != MO_ENOTFOUND && why->code != MO_EEXISTS)
        mo_kbox_engine_gone(b, why);
    else
        finish_box(b);
}

static void start_remove(struct kb_box *b)
{
    mo_autobuf struct mo_buf body = {.max = KB_BODY_MAX};
    struct mo_err e;

    mo_kbox_move(b, KB_REMOVING);
    if (mo_kb_put_delete(&body, b->uid) < 0)
        mo_kbox_engine_gone(b, mo_error(MO_ENOMEM, "box"));
    else if (mo_kbox_ask(b, "DELETE", b->name, mo_buf_view(&body), on_removed,
                         &e) < 0)
        mo_kbox_engine_gone(b, &e);
}

void mo_kbox_wind_up(struct kb_box *b)
{
    mo_kbox_drop_streams(b);
    if (b->made)
        start_remove(b);
    else
        finish_box(b);
}

void mo_kbox_give_up(struct kb_box *b, const struct mo_err *why)
{
    if (b->stopping) {
        end_with(b, MO_BOX_STOPPED, -1, 0);
    } else {
        end_with(b, MO_BOX_REFUSED, -1, 0);
        b->why = *why;
    }
    if (b->call)
        mo_kube_cancel(b->call); /* its end continues */
    else
        mo_kbox_wind_up(b);
}

/* --- what ended? --------------------------------------------------------- */

static void set_cause(struct kb_box *b)
{
    const struct mo_pod_state *s = &b->state;
    int sig = s->code > SIGNAL_BASE && s->code < SIGNAL_BASE + 65
                  ? s->code - SIGNAL_BASE
                  : 0;

    if (s->phase != MO_POD_ENDED) {
        mo_kb_of_box(b)->policy_ok =
            false; /* it may have taken its pods along */
        end_with(b, MO_BOX_KILLED, -1, SIGNAL_KILL);
        (void)mo_fail(&b->why, MO_ENOTFOUND,
                      "its pod was deleted from outside: by hand, or because "
                      "node %s was drained or lost",
                      s->node);
    } else if (s->evicted) {
        end_with(b, MO_BOX_KILLED, -1, SIGNAL_KILL);
        (void)mo_fail(&b->why, MO_EUNAVAIL,
                      "its pod was ended by the cluster: %s", s->why);
    } else if (s->never_ran) {
        end_with(b, MO_BOX_REFUSED, -1, 0);
        (void)mo_fail(&b->why, MO_EINVAL, "its program cannot be started: %s",
                      s->why);
    } else if (s->oom) {
        end_with(b, MO_BOX_OOM, -1, SIGNAL_KILL);
    } else if (sig) {
        end_with(b, MO_BOX_KILLED, -1, sig);
    } else {
        end_with(b, MO_BOX_EXITED, s->code, 0);
    }
}

void mo_kbox_ended(struct kb_box *b)
{
    set_cause(b);
    start_remove(b);
}

static void on_drain_over(struct mo_timer *t)
{
    struct kb_box *b = mo_container_of(t, struct kb_box, timer);

    if (b->step == KB_UP)
        mo_kbox_ended(b);
}

/* Its output may still be on its way. */
static void drain_box(struct kb_box *b)
{
    if (b->eof || !b->io.split)
        mo_kbox_ended(b);
    else if (!mo_timer_on(&b->timer))
        mo_kbox_retry(b, on_drain_over, DRAIN_MS);
}

static void judge_end(struct kb_box *b);

static void on_try_judge(struct mo_timer *t)
{
    struct kb_box *b = mo_container_of(t, struct kb_box, timer);

    if (b->step == KB_UP)
        judge_end(b);
}

/* It runs, as far as the cluster knows. If its attach has ended it is about to
 * end, or its node has lost it. */
static void handle_running(struct kb_box *b)
{
    const struct mo_pod_state *s = &b->state;

    if (b->step != KB_UP)
        mo_kbox_move(b, KB_UP);
    if (s->lost) {
        mo_kbox_engine_gone(
            b, mo_error(MO_EUNAVAIL, "node %s does not answer", s->node));
    } else if (b->eof && b->broken) {
        end_with(b, MO_BOX_EXITED, -1, 0);
        (void)mo_fail(&b->why, MO_ECLOSED, "its output cannot be decoded");
        start_remove(b);
    } else if (b->eof && ++b->tries * TRY_MS >= LINGER_MS) {
        mo_kbox_engine_gone(
            b,
            mo_error(MO_EUNAVAIL,
                     "the connection to its pod on node %s was lost", s->node));
    } else if (b->eof) {
        mo_kbox_retry(b, on_try_judge, TRY_MS);
    }
}

/* The watch may have told of a newer state than s. */
static void handle_judged(struct kb_box *b, const struct mo_pod_state *s)
{
    if (!b->seen)
        b->state = *s;
    if (b->state.phase == MO_POD_ENDED) {
        mo_kbox_move(b, KB_UP);
        drain_box(b);
    } else if (b->state.deleting) {
        mo_kbox_ended(b);
    } else {
        handle_running(b);
    }
}

static void on_judged(void *ctx, const struct mo_kube_reply *r,
                      const struct mo_err *why)
{
    struct kb_box *b = ctx;
    struct mo_pod_state s;
    int rc = why ? why->code : mo_pod_read(r->json, &s, NULL);

    if (rc == 0 && mo_kbox_is_other(b, &s))
        rc = MO_ENOTFOUND;
    b->call = NULL;
    if (b->letting_go) {
        end_with(b, MO_BOX_LET_GO, -1, 0);
        mo_kbox_down(b);
    } else if (b->stopping) {
        end_with(b, MO_BOX_STOPPED, -1, 0);
        start_remove(b);
    } else if (rc == MO_ENOTFOUND) {
        set_cause(b); /* as it was told last */
        finish_box(b);
    } else if (rc < 0) {
        mo_kbox_engine_gone(
            b,
            why ? why : mo_error(MO_EPROTO, "the cluster's account of a pod"));
    } else {
        handle_judged(b, &s);
    }
}

static void judge_end(struct kb_box *b)
{
    struct mo_err e;

    b->doubt = b->seen = false;
    mo_kbox_move(b, KB_JUDGING);
    if (mo_kbox_ask(b, "GET", b->name, mo_span(NULL, 0), on_judged, &e) < 0)
        mo_kbox_engine_gone(b, &e);
}

/* A pod that the watch has told of needs no further question. */
static void handle_news(struct kb_box *b)
{
    const struct mo_pod_state *s = &b->state;
    bool seen = b->seen;

    b->seen = false;
    if (s->phase == MO_POD_ENDED)
        drain_box(b);
    else if (seen && s->deleting)
        mo_kbox_ended(b);
    else if (seen && s->lost)
        handle_running(b);
    else if (b->doubt || b->eof)
        judge_end(b);
}

/* Runs once from the loop, however many changes came. */
void mo_kbox_later(struct mo_later *l)
{
    struct kb_box *b = mo_container_of(l, struct kb_box, later);

    if (b->letting_go && b->step == KB_UP) {
        end_with(b, MO_BOX_LET_GO, -1, 0);
        mo_kbox_down(b);
    } else if (b->step == KB_UP && b->stopping) {
        end_with(b, MO_BOX_STOPPED, -1, 0);
        start_remove(b);
    } else if (b->step == KB_UP) {
        handle_news(b);
    } else if (b->step == KB_PENDING) {
        mo_kbox_pending(b);
    } else if (b->held && !b->stopping) {
        mo_kbox_held(b);
    } else if (b->stopping && !b->call && b->step < KB_REMOVING) {
        mo_kbox_give_up(b, mo_error(MO_ECANCELED, "stopped"));
    }
}

void mo_kbox_cut(void *ctx, enum mo_split_end how, const struct mo_err *why)
{
    struct kb_box *b = ctx;

    b->io.split = NULL;
    if (how == MO_SPLIT_CLOSED)
        return; /* the owner closed the streams: the box lives on */
    b->eof = true;
    b->broken = how == MO_SPLIT_BROKEN && why && why->code == MO_EPROTO;
    mo_kbox_news(b);
}
