/* show.c - output of `chat`, and the answers to questions. */
#include "cli/chat/chat_priv.h"

#include "base/file.h"
#include "cli/chat/terminal.h"

/* --- output --------------------------------------------------------------- */

/* Output is held while an editor owns the screen. */
static void out(struct cli_chat *t, int fd, struct mo_span text)
{
    struct mo_err e;

    if (t->edit.fore)
        mo_buf_span(&t->edit.held, text);
    else
        (void)mo_file_write_all(fd, text, &e);
}

void mo_chat_cmd_release(struct cli_chat *t)
{
    struct mo_err e;

    (void)mo_file_write_all(t->m.c->out, mo_buf_view(&t->edit.held), &e);
    mo_buf_reset(&t->edit.held);
}

void mo_chat_cmd_put(struct cli_chat *t, const struct mo_buf *b)
{
    if (b->len > 0 && mo_buf_err(b) == 0) {
        out(t, t->m.c->out, mo_buf_view(b));
        t->midline = b->p[b->len - 1] != '\n';
    }
}

/* Prints a message; without a terminal on stderr, so that stdout is the
 * answer. */
void mo_chat_cmd_say(struct cli_chat *t, const char *fmt, ...)
{
    mo_autobuf struct mo_buf b = {.max = CHAT_LINE_MAX};
    mo_autobuf struct mo_buf safe = {.max = CHAT_LINE_MAX};
    va_list ap;

    if (t->json)
        return;
    va_start(ap, fmt);
    mo_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    if (t->midline && t->tty)
        mo_buf_putc(&safe, '\n');
    mo_term_text(&safe, mo_buf_view(&b), true);
    mo_buf_putc(&safe, '\n');
    t->midline = t->midline && !t->tty;
    out(t, t->tty ? t->m.c->out : t->m.c->err, mo_buf_view(&safe));
}

void mo_chat_cmd_prompt(struct cli_chat *t)
{
    static const char *const prompts[] = {
        [SAY] = "> ",
        [CARD] =
            "Run it? [y]es [n]o [a]lways here [A]lways [e]dit [v]iew all: ",
        [REASON] = "Why not (may be empty)? ",
        [EDIT] = "Arguments as one line of JSON (empty: back): ",
        [PAGE] = "Have you done that? [y]es [n]o: ",
        [SAMPLE] = "Approve? [y]es [n]o: ",
        [FORM] = "",
        [WAIT] = "",
    };
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (!t->tty || t->json || t->leaving || (t->mode == SAY && t->turns > 0))
        return;
    if (t->midline)
        mo_buf_putc(&b, '\n');
    mo_buf_puts(&b, prompts[t->mode]);
    if (t->mode == FORM)
        mo_chat_cmd_form_prompt(t, &b);
    mo_chat_cmd_put(t, &b);
    t->midline = false; /* the person ends the line */
}

/* --- leaving ------------------------------------------------------------- */

static void on_ended(void *ctx, const struct mo_ack *a)
{
    struct cli_chat *t = ctx;

    (void)a;
    t->m.done = true;
}

void mo_chat_cmd_leave(struct cli_chat *t)
{
    if (t->leaving)
        return;
    t->leaving = true;
    if (t->member && t->ours) {
        mo_chat_end(t->member, on_ended, t);
        return;
    }
    if (t->member)
        mo_chat_leave(mo_take_ptr(&t->member));
    t->m.done = true;
}

void mo_chat_cmd_turn_over(struct cli_chat *t, int code)
{
    t->stopping = false;
    if (t->turns > 0)
        t->turns--;
    if (code != MO_EXIT_OK && t->code == MO_EXIT_OK && !t->tty)
        t->code = code;
    if (!t->tty && t->turns == 0)
        mo_chat_cmd_leave(t);
    if (t->turns == 0 && t->ahead.len > 0)
        mo_loop_defer(t->m.loop, &t->next);
    else
        mo_chat_cmd_prompt(t);
}

/* --- cards --------------------------------------------------------------- */

struct card *mo_chat_cmd_first(struct cli_chat *t)
{
    return mo_list_first(&t->cards, struct card, node);
}

void mo_chat_cmd_drop(struct card *k)
{
    mo_list_del(&k->node);
    mo_free(k);
}

void mo_chat_cmd_decided(void *ctx, const struct mo_ack *a)
{
    struct cli_chat *t = ctx;
    struct card *k = mo_chat_cmd_first(t);

    t->mode = SAY;
    if (!a->ok)
        mo_chat_cmd_say(t, "%.*s", (int)a->message.n, a->message.p);
    if (k && (a->ok || strcmp(a->code, "bad_request") != 0))
        mo_chat_cmd_drop(k);
    mo_chat_cmd_next(t);
}

void mo_chat_cmd_decide(struct cli_chat *t, bool approved,
                        enum mo_remember remember, struct mo_span reason,
                        struct mo_span args)
{
    struct card *k = mo_chat_cmd_first(t);
    struct mo_decision d = {.approved = approved,
                            .remember = remember,
                            .reason = reason,
                            .args = args};
    mo_autoarena struct mo_arena a = {.cap = 65536};
    struct mo_span digest = {NULL, 0};

    t->mode = WAIT;
    (void)mo_json_str(mo_json_get(k->doc, "callId"), &a, &d.call);
    (void)mo_json_str(mo_json_get(k->doc, "digest"), &a, &digest);
    d.digest = &digest;
    if (t->member)
        mo_chat_decide(t->member, &d, mo_chat_cmd_decided, t);
}

void mo_chat_cmd_show_card(struct cli_chat *t, bool all)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (!t->json)
        mo_term_card(&b, mo_chat_cmd_first(t)->doc, t->tty, all);
    if (t->tty)
        mo_chat_cmd_put(t, &b);
}

void mo_chat_cmd_next(struct cli_chat *t)
{
    static const char nobody[] =
        "there is no terminal to ask a person at (chat --yes allows all)";

    if (t->mode != SAY || mo_chat_cmd_first(t) == NULL) {
        mo_chat_cmd_prompt(t);
        return;
    }
    if (mo_chat_cmd_first(t)->form) {
        mo_chat_cmd_form_begin(t);
        return;
    }
    mo_chat_cmd_show_card(t, false);
    if (t->yes) {
        mo_chat_cmd_decide(t, true, MO_REMEMBER_NO, mo_span(NULL, 0),
                           mo_span(NULL, 0));
    } else if (!t->tty) {
        t->code = MO_EXIT_SIGN_IN;
        mo_chat_cmd_decide(t, false, MO_REMEMBER_NO,
                           mo_span(nobody, sizeof(nobody) - 1),
                           mo_span(NULL, 0));
    } else {
        t->mode = CARD;
        mo_chat_cmd_prompt(t);
    }
}

/* --- events -------------------------------------------------------------- */

typedef void event_fn(struct cli_chat *t, struct mo_json args);

static void put_span(struct cli_chat *t, struct mo_span text)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (t->json)
        return;
    mo_term_text(&b, text, t->tty);
    mo_chat_cmd_put(t, &b);
}

static void put_json_text(struct cli_chat *t, struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &b) == 0)
        put_span(t, mo_buf_view(&b));
}

static void say_json(struct cli_chat *t, const char *before, struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (mo_json_is(v, MO_JSON_STRING))
        (void)mo_json_str_buf(v, &b);
    mo_chat_cmd_say(t, "%s%.*s", before, (int)b.len, b.len ? b.p : "");
}

/* Says if calls run without asking. */
static void say_mode(struct cli_chat *t, struct mo_json approvals)
{
    struct mo_json mode = mo_json_get(approvals, "mode");

    if (t->tty && mode.p && !mo_json_str_eq(mode, MO_SPAN("ask")))
        say_json(t, "some calls run without asking: mode ", mode);
}

static void on_approvals(struct cli_chat *t, struct mo_json args)
{
    say_mode(t, mo_json_at(args, 0));
}

static void on_ready(struct cli_chat *t, struct mo_json args)
{
    say_mode(t, mo_json_get(mo_json_at(args, 0), "approvals"));
    if (t->tty && !t->history) {
        say_json(t, "model ", mo_json_get(mo_json_at(args, 0), "model"));
        mo_chat_cmd_say(t, "session %s; /help says what else there is",
                        t->session);
    }
}

static void on_history(struct cli_chat *t, struct mo_json args)
{
    struct mo_json about = mo_json_at(args, 0);
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    mo_json_each_while (it, mo_json_get(about, "messages"), t->history)
        mo_term_message(&b, it.val, t->tty);
    mo_chat_cmd_put(t, &b);
    t->history = false;
    if (t->turns == 0 && mo_json_is(mo_json_get(about, "turn"), MO_JSON_OBJECT))
        t->turns = 1; /* a turn that began earlier is still running */
    mo_chat_cmd_prompt(t);
}

static void on_delta(struct cli_chat *t, struct mo_json args)
{
    t->streamed = true;
    put_json_text(t, mo_json_get(mo_json_at(args, 0), "text"));
}

static void on_response(struct cli_chat *t, struct mo_json args)
{
    struct mo_json stop = mo_json_get(mo_json_at(args, 1), "stopReason");

    if (!t->streamed)
        put_json_text(t, mo_json_at(args, 0));
    if (t->midline)
        put_span(t, MO_SPAN("\n"));
    t->streamed = false;
    if (mo_json_str_eq(stop, MO_SPAN("canceled")))
        mo_chat_cmd_say(t, "(stopped)");
    mo_chat_cmd_turn_over(t, mo_json_str_eq(stop, MO_SPAN("canceled"))
                                 ? MO_EXIT_FAIL
                                 : MO_EXIT_OK);
}

static void on_error(struct cli_chat *t, struct mo_json args)
{
    say_json(t, "error: ", mo_json_at(args, 0));
    t->streamed = false;
    mo_chat_cmd_turn_over(t, MO_EXIT_FAIL);
}

static void on_message(struct cli_chat *t, struct mo_json args)
{
    say_json(t, "* ", mo_json_at(args, 0));
}

static void keep_card(struct cli_chat *t, struct mo_json doc, bool form)
{
    struct card *k = mo_alloc(sizeof(*k) + doc.n);

    if (k == NULL)
        return;
    k->form = form;
    memcpy(k->text, doc.p, doc.n);
    k->doc = (struct mo_json){k->text, doc.n};
    mo_list_push(&t->cards, &k->node);
    if (t->mode == SAY)
        mo_chat_cmd_next(t);
}

static void on_card(struct cli_chat *t, struct mo_json args)
{
    keep_card(t, mo_json_at(args, 0), false);
}

static void on_question(struct cli_chat *t, struct mo_json args)
{
    keep_card(t, mo_json_at(args, 0), true);
}

/* Asked twice: about the request, and about the answer. */
static void on_sampling(struct cli_chat *t, struct mo_json args)
{
    struct mo_json about = mo_json_at(args, 0);

    if (!mo_json_str_eq(mo_json_get(about, "state"), MO_SPAN("running")))
        keep_card(t, about, true);
}

/* The call was decided elsewhere or timed out: removes its question. */
static void drop_question(struct cli_chat *t, struct mo_json about,
                          const char *name)
{
    struct mo_json id = mo_json_get(about, name);

    mo_list_each_entry_safe (k, &t->cards, struct card, node) {
        bool asked =
            k == mo_chat_cmd_first(t) && t->mode != SAY && t->mode != WAIT;

        if (k->form != (strcmp(name, "requestId") == 0) ||
            !mo_span_eq(mo_json_text(mo_json_get(k->doc, name)),
                        mo_json_text(id)))
            continue;
        mo_chat_cmd_say(t, "(that question is over)");
        mo_chat_cmd_drop(k);
        if (asked) {
            t->mode = SAY;
            mo_chat_cmd_next(t);
        }
    }
}

static void on_resolved(struct cli_chat *t, struct mo_json args)
{
    struct mo_json about = mo_json_at(args, 0);

    if (!mo_json_str_eq(mo_json_get(about, "by"), MO_SPAN("person")))
        drop_question(t, about, "callId");
}

static void on_answered(struct cli_chat *t, struct mo_json args)
{
    drop_question(t, mo_json_at(args, 0), "requestId");
}

/* Without a terminal, text before and after a call is on separate lines. */
static void on_output(struct cli_chat *t, struct mo_json args)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (t->midline)
        put_span(t, MO_SPAN("\n"));
    if (!t->tty)
        return;
    mo_term_output(&b, args, t->tty);
    mo_chat_cmd_put(t, &b);
}

static void on_progress(struct cli_chat *t, struct mo_json args)
{
    struct mo_json text = mo_json_get(mo_json_at(args, 0), "message");

    if (t->tty && mo_json_is(text, MO_JSON_STRING))
        say_json(t, "  . ", text);
}

static const struct {
    const char *name;
    event_fn *on;
} events[] = {
    {"system:ready", on_ready},
    {"session:history", on_history},
    {"session:approvals", on_approvals},
    {"agent:delta", on_delta},
    {"agent:response", on_response},
    {"agent:error", on_error},
    {"system:message", on_message},
    {"history:compacted", on_message},
    {"tool:approval_required", on_card},
    {"tool:resolved", on_resolved},
    {"network:approval_required", on_card},
    {"network:resolved", on_resolved},
    {"tool:output", on_output},
    {"tool:progress", on_progress},
    {"elicitation:required", on_question},
    {"sampling:required", on_sampling},
    {"elicitation:resolved", on_answered},
};

/* Events that affect the flow are also handled with --json. */
static void dispatch(struct cli_chat *t, const char *name, struct mo_json args)
{
    for (size_t i = 0; i < MO_COUNT(events); i++)
        if (strcmp(events[i].name, name) == 0)
            events[i].on(t, args);
}

static void put_event(struct cli_chat *t, const char *name,
                      struct mo_span array)
{
    mo_autobuf struct mo_buf b = {.max = MO_CHAT_EVENT_MAX + 256};

    mo_buf_printf(&b, "{\"event\":\"%s\",\"args\":", name);
    mo_buf_span(&b, array);
    mo_buf_puts(&b, "}\n");
    mo_chat_cmd_put(t, &b);
}

static void on_event(void *ctx, const char *name, struct mo_span args)
{
    struct cli_chat *t = ctx;
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf b = {.max = MO_CHAT_EVENT_MAX + 2};

    mo_buf_putc(&b, '[');
    mo_buf_span(&b, args);
    mo_buf_putc(&b, ']');
    if (mo_buf_err(&b) == 0 &&
        mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) == 0) {
        if (t->json)
            put_event(t, name, mo_buf_view(&b));
        dispatch(t, name, doc.root);
    }
}

static void on_closed(void *ctx, const char *reason, const struct mo_err *why)
{
    struct cli_chat *t = ctx;

    t->member = NULL;
    if (t->leaving)
        return; /* on_ended() follows */
    if (why)
        (void)mo_cli_error(t->m.c, MO_EXIT_UNAVAIL, "%s", why->msg);
    else
        mo_chat_cmd_say(t, "the session ended: %s", reason);
    t->code = MO_EXIT_UNAVAIL;
    t->leaving = t->m.done = true;
}

static const struct mo_member_cb member_cb = {on_event, on_closed};

int mo_chat_cmd_join(struct cli_chat *t, const char *model, struct mo_err *e)
{
    struct mo_join j = {.session = mo_span_cstr(t->session),
                        .model = mo_span_cstr(model ? model : ""),
                        .who = MO_SPAN("terminal"),
                        .door = "terminal",
                        .person = {.name = "", .role = MO_ROLE_OPERATOR}};

    return mo_chat_join(mo_agent_setup_agent(t->agent), &j, &member_cb, t,
                        &t->member, e);
}
