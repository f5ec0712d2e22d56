/* redis_version.c - the version of what is stored in Redis, and whether this
 * program may use it (codec/state_version.h).
 *
 * Asked with the first operation after each connect: another version may have
 * changed the store while we were away. Operations that come before the answer
 * are kept, in order. If the answer is no, every operation fails with the
 * reason; it is asked again after AGAIN_MS, because the store may be put right.
 */
#include <stdio.h>

#include "base/clock.h"
#include "codec/state_version.h"
#include "store/redis_priv.h"

#define AGAIN_MS       5000
#define OP_BYTES       ((size_t)4096)
#define FORMAT_DEFAULT 1 /* without a record */

void mo_redis_version_init(struct mo_redis *r)
{
    mo_list_init(&r->version.held);
}

/* An operation that has not been sent: nothing was written. */
static void fail_op(struct mo_op *op, const struct mo_err *why)
{
    op->err = *why;
    mo_op_finish_later(op);
}

static void ask_version(struct mo_redis *r);

/* The operations that were kept go on, or fail. */
static void release_held(struct mo_redis *r, const struct mo_err *why)
{
    struct mo_list go;

    mo_list_init(&go);
    mo_list_splice(&go, &r->version.held);
    mo_list_drain (op, &go, struct mo_op, node) {
        if (why)
            fail_op(op, why);
        else
            r->s.ops->submit(&r->s, op);
    }
}

/* Without an answer those that came later still have time: they wait for the
 * next one. An error of Redis is one for all of them. */
static void on_asked(void *ctx, const struct mo_op *op)
{
    struct mo_redis *r = ctx;
    struct mo_rversion *v = &r->version;
    bool late = mo_now_ns() - v->asked >= r->s.deadline_ms * MO_MS;

    if (v->state == MO_RVERSION_GOOD || v->state == MO_RVERSION_BAD) {
        release_held(r, v->state == MO_RVERSION_BAD ? &v->why : NULL);
        return;
    }
    v->state = MO_RVERSION_UNKNOWN;
    if (op->err.code && !late)
        release_held(r, &op->err);
    else if (!mo_list_empty(&v->held))
        ask_version(r);
}

static void ask_version(struct mo_redis *r)
{
    struct mo_op *op = mo_op_new(&r->s, MO_OP_VERSION, OP_BYTES);

    if (!op) {
        release_held(r, mo_error(MO_ENOMEM, "store: redis"));
        return;
    }
    r->version.state = MO_RVERSION_ASKED;
    r->version.asked = mo_now_ns();
    mo_op_submit(op, (struct mo_op_answer){.on_op = on_asked, .ctx = r});
}

bool mo_redis_version_pass(struct mo_redis *r, struct mo_op *op)
{
    struct mo_rversion *v = &r->version;

    if (op->kind == MO_OP_VERSION ||
        (v->state == MO_RVERSION_GOOD && mo_list_empty(&v->held)))
        return true;
    if (v->state == MO_RVERSION_BAD &&
        mo_now_ns() - v->asked < AGAIN_MS * MO_MS) {
        fail_op(op, &v->why);
        return false;
    }
    mo_list_push(&v->held, &op->node);
    if (v->state == MO_RVERSION_UNKNOWN || v->state == MO_RVERSION_BAD)
        ask_version(r);
    return false;
}

bool mo_redis_version_drop(struct mo_redis *r, struct mo_op *op)
{
    mo_list_each_entry (it, &r->version.held, struct mo_op, node) {
        if (it != op)
            continue;
        mo_list_del(&op->node);
        mo_op_finish_later(op);
        return true;
    }
    return false;
}

void mo_redis_version_lost(struct mo_redis *r)
{
    if (r->version.state == MO_RVERSION_GOOD)
        r->version.state = MO_RVERSION_UNKNOWN;
}

/* --- asking ----------------------------------------------------------------
 */

static bool on_record(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_redis *me = o->r;
    struct mo_rversion *v = &me->version;
    struct mo_state_version found;
    int rc;

    if (r->kind != MO_RESP_BULK)
        return false;
    rc = mo_state_version_read(r->text, &found, &v->why);
    if (rc == 0)
        rc = mo_state_version_judge(&found, MO_REDIS_VERSION, "store in Redis",
                                    &v->why);
    else
        (void)mo_wrap(&v->why, "store in Redis");
    v->why.code = MO_EUNAVAIL; /* for callers it is as if it were away */
    v->state = rc == 0 ? MO_RVERSION_GOOD : MO_RVERSION_BAD;
    if (rc == 0)
        mo_store_up(&me->s);
    else
        mo_store_down(&me->s, &v->why);
    return true;
}

void mo_redis_version(struct mo_rop *o)
{
    mo_autobuf struct mo_buf record = {.max = MO_STATE_RECORD_MAX};

    mo_state_version_put(&record, MO_REDIS_VERSION, MO_REDIS_READS);
    mo_rcall(o, MO_LUA_VERSION, MO_SPAN(MO_REDIS_MARKS), on_record, 0, "ssiti",
             "1", MO_REDIS_MARKS, (uint64_t)MO_REDIS_VERSION,
             mo_buf_view(&record), (uint64_t)FORMAT_DEFAULT);
}
