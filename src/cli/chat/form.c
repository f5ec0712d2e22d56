/* form.c - asks a server's question in the terminal, field by field.
 *
 * The question is the first card (show.c). Walks its fields and collects the
 * typed values. If the answer does not match the form, all fields are asked
 * again with the error. Without a terminal the answer is "cancel". */
#include "cli/chat/chat_priv.h"
#include "cli/chat/terminal.h"

static struct mo_json schema_of(struct cli_chat *t)
{
    return mo_json_get(mo_chat_cmd_first(t)->doc, "schema");
}

static void respond(struct cli_chat *t, enum mo_answer_action action)
{
    struct mo_answer an = {.action = action};
    mo_autoarena struct mo_arena a = {.cap = 4096};

    t->mode = WAIT;
    (void)mo_json_str(mo_json_get(mo_chat_cmd_first(t)->doc, "requestId"), &a,
                      &an.request);
    if (action == MO_ANSWER_ACCEPT && schema_of(t).p) {
        mo_buf_putc(&t->form, '}');
        an.content = mo_buf_view(&t->form);
    }
    if (t->member)
        mo_chat_answer(t->member, &an, mo_chat_cmd_decided, t);
}

static void next_field(struct cli_chat *t)
{
    if (mo_json_next(&t->fields, &t->field_key, &t->field))
        mo_chat_cmd_prompt(t);
    else
        respond(t, MO_ANSWER_ACCEPT);
}

/* A request for the model: shown like a card, answered by yes or no. */
static void begin_sample(struct cli_chat *t)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (t->tty) {
        mo_term_sample(&b, mo_chat_cmd_first(t)->doc, t->tty);
        mo_chat_cmd_put(t, &b);
    }
    if (t->yes) {
        respond(t, MO_ANSWER_ACCEPT);
    } else if (!t->tty) {
        mo_chat_cmd_say(t, "a server asks for an answer of the model and there "
                           "is no terminal to approve it");
        respond(t, MO_ANSWER_DECLINE);
    } else {
        t->mode = SAMPLE;
        mo_chat_cmd_prompt(t);
    }
}

void mo_chat_cmd_form_begin(struct cli_chat *t)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (mo_json_get(mo_chat_cmd_first(t)->doc, "messages").p) {
        begin_sample(t);
        return;
    }
    if (!t->tty) {
        t->code = MO_EXIT_SIGN_IN;
        mo_chat_cmd_say(
            t,
            "a server asks a question and there is no terminal to answer it");
        respond(t, MO_ANSWER_CANCEL);
        return;
    }
    mo_term_question(&b, mo_chat_cmd_first(t)->doc, t->tty);
    mo_chat_cmd_put(t, &b);
    if (schema_of(t).p == NULL) {
        t->mode = PAGE;
        mo_chat_cmd_prompt(t);
        return;
    }
    t->mode = FORM;
    mo_buf_reset(&t->form);
    mo_buf_putc(&t->form, '{');
    mo_json_iter(&t->fields, mo_json_get(schema_of(t), "properties"));
    next_field(t);
}

void mo_chat_cmd_form_prompt(struct cli_chat *t, struct mo_buf *b)
{
    mo_term_field(b, t->field_key, t->field,
                  mo_term_needed(schema_of(t), t->field_key), t->tty);
}

static void take_value(struct cli_chat *t, struct mo_span line)
{
    size_t before = t->form.len;
    struct mo_err e;

    if (before > 1)
        mo_buf_putc(&t->form, ',');
    mo_buf_span(&t->form, mo_json_text(t->field_key));
    mo_buf_putc(&t->form, ':');
    if (mo_term_value(&t->form, t->field, line, &e) == 0 &&
        mo_buf_err(&t->form) == 0) {
        next_field(t);
        return;
    }
    mo_chat_cmd_say(t, "%s", mo_buf_err(&t->form) ? "that is too long" : e.msg);
    t->form.err = 0;
    t->form.len = before;
    mo_chat_cmd_prompt(t);
}

void mo_chat_cmd_form_line(struct cli_chat *t, struct mo_span line)
{
    bool usual = mo_json_get(t->field, "default").p;

    if (mo_span_is(line, "/decline")) {
        respond(t, MO_ANSWER_DECLINE);
    } else if (mo_span_is(line, "/cancel")) {
        respond(t, MO_ANSWER_CANCEL);
    } else if (line.n > 0) {
        take_value(t, line);
    } else if (!usual && mo_term_needed(schema_of(t), t->field_key)) {
        mo_chat_cmd_say(t, "this one is needed");
        mo_chat_cmd_prompt(t);
    } else {
        next_field(t);
    }
}

void mo_chat_cmd_page_line(struct cli_chat *t, struct mo_span line)
{
    switch (line.n > 0 ? line.p[0] : ' ') {
    case 'y':
        respond(t, MO_ANSWER_ACCEPT);
        return;
    case 'n':
        respond(t, MO_ANSWER_DECLINE);
        return;
    default:
        mo_chat_cmd_prompt(t);
    }
}
