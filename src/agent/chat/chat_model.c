/* chat_model.c - which model a chat uses: chosen when it opens, changed later.
 *
 * The model is what a member wants, else what the session had, else the
 * configured one. A change keeps the conversation: a note is stored where the
 * new model begins, and llm.h says what it gets of the other's blocks. While a
 * turn runs, the change waits for its end. */
#include "agent/chat/chat_priv.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/entries.h"
#include "agent/chat/event.h"
#include "agent/chat/session_memory.h"

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

/* The provider "compatible" is configured as OpenAI's with another address, so
 * that is its name here. */
void mo_chat_put_model_id(const struct chat *c, struct mo_buf *b)
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
    mo_chat_put_model_id(c, &id);
    if (use_model(c, mo_buf_view(&id), &e) < 0)
        mo_chat_event_error(c, "no_model", mo_span_cstr(e.msg), 0);
}

/* --- changing ------------------------------------------------------------ */

static void switch_over(struct chat *c, struct mo_buf *note,
                        const struct mo_err *why)
{
    if (why)
        mo_chat_event_error(c, "state_unavailable", mo_span_cstr(why->msg), 0);
    else if (note)
        (void)mo_chat_append(c, mo_buf_view(note));
    if (note)
        mo_buf_fini(note);
    mo_free(note);
    if (c->state == CHAT_SAVING) {
        c->turn.cancel = false; /* there was no turn to stop */
        mo_chat_move(c, CHAT_IDLE);
        mo_session_memory_save(c);
        mo_chat_event_greet_all(c);
    } else if (c->state == CHAT_OPENING) {
        mo_session_memory_save(c);
        mo_chat_resume(c);
    }
    mo_chat_settle(c);
}

static void on_note_written(struct chat *c, void *arg, const struct mo_err *why)
{
    switch_over(c, arg, why);
}

/* Writes the note, after which switch_over() goes on. */
static void write_note(struct chat *c)
{
    struct mo_write w = {.kind = MO_WRITE_ENTRY, .at = mo_wall_ms()};
    struct mo_buf *note = mo_new(struct mo_buf);
    struct mo_err e;

    mo_fail(&e, MO_ENOMEM, "out of memory");
    if (note) {
        mo_buf_init(note, 2048);
        mo_entry_model(note, mo_buf_view(&c->model.id));
        w.doc = mo_buf_view(note);
        if (mo_buf_err(note) == 0 &&
            mo_chat_write(c, &w, 1, on_note_written, note, &e) == 0)
            return;
    }
    switch_over(c, note, &e);
}

/* The state says that a write is under way, so no turn begins meanwhile. */
void mo_chat_switch_due(struct chat *c)
{
    mo_autobuf struct mo_buf id = {.max = 256};
    struct mo_err e;

    if (c->state != CHAT_IDLE || c->next.len == 0)
        return;
    mo_buf_set(&c->key, mo_buf_view(&c->next_key));
    mo_buf_span(&id, mo_buf_view(&c->model.id));
    if (use_model(c, mo_buf_view(&c->next), &e) < 0) {
        mo_buf_reset(&c->next);
        mo_chat_event_error(c, "no_model", mo_span_cstr(e.msg), 0);
        return;
    }
    mo_buf_set(&c->wanted, mo_buf_view(&c->next));
    mo_buf_reset(&c->next);
    mo_chat_move(c, CHAT_SAVING);
    if (c->transcript.n > 0 &&
        !mo_span_eq(mo_buf_view(&id), mo_buf_view(&c->model.id)))
        write_note(c);
    else
        switch_over(c, NULL, NULL);
}

static bool has_model(const struct chat *c, struct mo_span model)
{
    struct mo_span next = mo_buf_view(&c->next);

    if (next.n > 0)
        return mo_span_eq(model, next);
    return mo_span_eq(model, mo_buf_view(&c->wanted)) ||
           mo_span_eq(model, mo_buf_view(&c->model.id));
}

void mo_chat_change_model(struct chat *c, struct mo_span model,
                          struct mo_span key)
{
    mo_autobuf struct mo_buf text = {.max = 512};

    if (model.n == 0 || has_model(c, model))
        return;
    if (c->state == CHAT_OPENING && !c->ready) {
        mo_buf_set(&c->wanted, model);
        mo_buf_set(&c->key, key);
        return;
    }
    mo_buf_set(&c->next, model);
    mo_buf_set(&c->next_key, key);
    if (c->state != CHAT_IDLE && c->state != CHAT_OPENING) {
        mo_buf_printf(&text, "The model will be %.*s when this turn is over.",
                      (int)model.n, model.p);
        mo_chat_event_message(c, NULL, mo_buf_cstr(&text));
    }
    mo_chat_settle(c);
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

bool mo_chat_note_switch(struct chat *c)
{
    if (!c->other_model || c->transcript.n == 0)
        return false;
    c->other_model = false;
    write_note(c);
    return true;
}

static void open_model(struct chat *c)
{
    struct mo_err e;

    if (pick_model(c, &c->other_model, &e) < 0)
        mo_chat_fail(c, &e);
    else
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
