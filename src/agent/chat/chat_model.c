/* chat_model.c - which model a chat uses: chosen when it opens, changed later.
 *
 * The model is what a member wants, else what the session had, else the
 * configured one. */
#include "agent/chat/chat_priv.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/entries.h"
#include "agent/chat/event.h"
#include "agent/chat/session_memory.h"

/* A new model starts a new conversation; the session and its box stay. */
static void on_switched(struct chat *c, void *arg, const struct mo_err *why)
{
    (void)arg;
    if (why) {
        mo_chat_event_error(c, "state_unavailable", mo_span_cstr(why->msg), 0);
        return;
    }
    mo_chat_forget_entries(c);
    mo_session_memory_save(c);
    mo_chat_event_greet_all(c);
    mo_chat_event_message(c, NULL,
                          "The model was changed. A new conversation starts.");
}

/* On failure the model stays as it is. */
static int use_model(struct chat *c, struct mo_span wanted, struct mo_err *e)
{
    MO_CLEANUP(mo_model_fini) struct mo_model other = {.id = {.max = 256}};
    struct mo_model was = c->model;
    int rc = mo_models_pick(c->agent->o.models, wanted, mo_buf_view(&c->key),
                            &other, e);

    if (rc == 0) {
        c->model = other;
        other = was;
    }
    return rc;
}

static int write_fresh(struct chat *c, chat_written *done, struct mo_err *e)
{
    struct mo_write w = {.kind = MO_WRITE_FRESH, .at = mo_wall_ms()};

    return mo_chat_write(c, &w, 1, done, NULL, e);
}

static void switch_model(struct chat *c)
{
    struct mo_err e;

    if (use_model(c, mo_buf_view(&c->wanted), &e) < 0) {
        mo_chat_event_error(c, "no_model", mo_span_cstr(e.msg), 0);
        return;
    }
    if (c->transcript.n > 0 && write_fresh(c, on_switched, &e) < 0)
        mo_chat_event_error(c, "state_unavailable", mo_span_cstr(e.msg), 0);
}

/* The id of the present model with its provider's name, because another one
 * may be the default by now. The provider "compatible" is configured as
 * OpenAI's with another address, so that is its name here. */
static void put_model_id(const struct chat *c, struct mo_buf *b)
{
    const char *by = c->model.provider;

    if (strcmp(by, mo_llm_kind_name(MO_LLM_COMPATIBLE)) == 0)
        by = mo_llm_kind_name(MO_LLM_OPENAI);
    if (c->wanted.len > 0)
        mo_buf_span(b, mo_buf_view(&c->wanted));
    else if (c->model.own > 0)
        mo_buf_span(b, mo_buf_view(&c->model.id));
    else
        mo_buf_printf(b, "%s:%.*s", by, (int)c->model.id.len, c->model.id.p);
}

void mo_chat_repick(struct chat *c)
{
    mo_autobuf struct mo_buf id = {.max = 1024};
    struct mo_err e;

    c->repick = false;
    put_model_id(c, &id);
    if (use_model(c, mo_buf_view(&id), &e) < 0)
        mo_chat_event_error(c, "no_model", mo_span_cstr(e.msg), 0);
}

void mo_chat_change_model(struct chat *c, const struct mo_join *j)
{
    if (j->model.n == 0 || mo_span_eq(j->model, mo_buf_view(&c->wanted)) ||
        mo_span_eq(j->model, mo_buf_view(&c->model.id)))
        return;
    if (c->state != CHAT_OPENING && c->state != CHAT_IDLE) {
        mo_chat_event_message(
            c, NULL,
            "The model was not changed: a turn is running. Stop it first.");
        return;
    }
    mo_buf_set(&c->wanted, j->model);
    mo_buf_set(&c->key, j->key);
    if (c->state == CHAT_IDLE)
        switch_model(c);
}

/* --- opening ------------------------------------------------------------- */

/* The data that the session keeps for the conversation; none if it cannot be
 * parsed. */
static struct mo_json kept_of(const struct chat *c)
{
    struct mo_json_doc kept = {.bad_at = 0};

    if (c->info.data.n > 0)
        (void)mo_json_parse(c->info.data, 0, &kept, NULL);
    return kept.root;
}

static struct mo_span model_it_had(const struct chat *c, struct mo_arena *a)
{
    struct mo_span had = {NULL, 0};

    (void)mo_json_str(mo_json_get(kept_of(c), "model"), a, &had);
    return had;
}

/* The model is what the member wants, else what the session had. */
static int pick_model(struct chat *c, bool *another, struct mo_err *e)
{
    struct mo_span wanted = mo_buf_view(&c->wanted), had;
    mo_autoarena struct mo_arena a = {.cap = 65536};
    int rc = 0;

    mo_session_memory_read(c, kept_of(c));
    had = model_it_had(c, &a);
    if (wanted.n == 0)
        wanted = had;
    rc = use_model(c, wanted, e);
    *another = had.n > 0 && !mo_span_eq(had, mo_buf_view(&c->model.id));
    return rc;
}

/* The model changed since the session was last open: the conversation starts
 * anew. */
static void on_fresh_written(struct chat *c, void *arg,
                             const struct mo_err *why)
{
    (void)arg;
    if (c->state != CHAT_OPENING)
        return;
    if (why) {
        mo_chat_fail(c, why);
        return;
    }
    mo_session_memory_save(c);
    mo_chat_move(c, CHAT_IDLE);
    mo_chat_greet_new(c);
}

static void open_model(struct chat *c)
{
    bool another = false;
    struct mo_err e;

    if (pick_model(c, &another, &e) < 0 ||
        (another && write_fresh(c, on_fresh_written, &e) < 0))
        mo_chat_fail(c, &e);
    else if (!another)
        mo_chat_read_history(c);
}

static void on_prepared(void *arg)
{
    struct chat *c = arg;

    c->writes--;
    if (c->state == CHAT_OPENING)
        open_model(c);
    mo_chat_settle(c);
}

void mo_chat_open_model(struct chat *c)
{
    struct mo_span wanted = mo_buf_view(&c->wanted);
    mo_autoarena struct mo_arena a = {.cap = 65536};
    struct mo_err e;
    int rc = 0;

    if (wanted.n == 0)
        wanted = model_it_had(c, &a);
    rc = mo_models_prepare(c->agent->o.models, wanted, on_prepared, c, &e);
    if (rc == 0)
        c->writes++;
    else if (rc < 0)
        mo_chat_fail(c, &e);
    else
        open_model(c);
}
