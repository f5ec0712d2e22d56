/* wish.c - requests about the conversation itself: another model, the end of
 * its box. */
#include "agent/chat/branching.h"
#include "agent/chat/turn.h"

struct ack *mo_chat_keep_ack(mo_ack_fn *done, void *ctx)
{
    struct ack *ack = mo_new(struct ack), plain = {done, ctx};

    if (ack)
        *ack = plain;
    else
        mo_chat_ack(&plain, "busy", "out of memory");
    return ack;
}

/* --- another model ------------------------------------------------------- */

/* A model that cannot be had is refused here, not at the end of the turn. */
static int check_model(struct chat *c, struct mo_span model, struct mo_err *e)
{
    MO_CLEANUP(mo_model_fini) struct mo_model other = {.id = {.max = 256}};

    return mo_models_pick(c->agent->o.models, model, mo_buf_view(&c->key),
                          &other, e);
}

static void wish_model(struct mo_member *m, const struct mo_wish *w,
                       struct ack *ack)
{
    struct chat *c = m->chat;
    bool later = c->state != CHAT_IDLE;
    mo_autobuf struct mo_buf extra = {.max = 64};
    struct mo_err e;

    if (w->text.n == 0 || w->text.n > 250) {
        mo_chat_ack(ack, "bad_request", "{model} names a model");
        return;
    }
    if (check_model(c, w->text, &e) < 0) {
        mo_chat_ack(ack, "no_model", e.msg);
        return;
    }
    mo_chat_change_model(c, w->text, mo_buf_view(&c->key));
    mo_buf_printf(&extra, "\"when\":\"%s\"", later ? "turn" : "now");
    mo_chat_ack_ok(ack, mo_buf_view(&extra));
}

/* --- the end of the box -------------------------------------------------- */

static void on_asleep(void *ctx, const struct mo_err *why)
{
    struct ack *ack = ctx;

    if (why)
        mo_chat_ack(ack, "failed", why->msg);
    else
        mo_chat_ack_ok(ack, (struct mo_span){NULL, 0});
    mo_free(ack);
}

/* A turn is stopped first, so that its calls get an outcome. */
bool mo_chat_sleep_due(struct chat *c)
{
    struct ack *ack = c->sleep;
    struct mo_err e;

    if (ack == NULL)
        return c->is_leaving;
    if (c->state != CHAT_IDLE) {
        mo_turn_stop(c);
        return true;
    }
    if (c->writes > 0)
        return true;
    c->sleep = NULL;
    c->is_leaving = mo_session_sleep(c->agent->o.sessions, mo_span_cstr(c->id),
                                     on_asleep, ack, &e) == 0;
    if (!c->is_leaving)
        on_asleep(ack, &e);
    return c->is_leaving;
}

void mo_chat_sleep_drop(struct chat *c)
{
    struct ack *ack = mo_take_ptr(&c->sleep);

    if (ack)
        mo_chat_ack(ack, "closed", "the session has ended");
    mo_free(ack);
}

static void wish_sleep(struct mo_member *m, const struct mo_wish *w,
                       struct ack *ack)
{
    struct chat *c = m->chat;

    (void)w;
    if (c->sleep) {
        mo_chat_ack(ack, "busy", "the box is ending already");
        return;
    }
    c->sleep = mo_chat_keep_ack(ack->fn, ack->ctx);
    mo_chat_settle(c);
}

void mo_chat_wish(struct mo_member *m, const struct mo_wish *w, mo_ack_fn *done,
                  void *ctx)
{
    static void (*const grant[])(struct mo_member * m, const struct mo_wish *w,
                                 struct ack *ack) = {
        [MO_WISH_MODEL] = wish_model,
        [MO_WISH_SLEEP] = wish_sleep,
        [MO_WISH_EDIT] = mo_chat_edit,
        [MO_WISH_REGENERATE] = mo_chat_regenerate,
        [MO_WISH_CONTINUE] = mo_chat_continue,
        [MO_WISH_SWITCH] = mo_chat_switch_branch,
    };
    struct ack ack = {done, ctx};

    if (m->chat->hold)
        mo_session_touch(m->chat->hold);
    grant[w->kind](m, w, &ack);
}
