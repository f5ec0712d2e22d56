/* chat - a conversation in a terminal, or for a script.
 *
 * A member of one chat in this process (agent/chat/chat.h): lines and answers
 * of the person go in, events come out as text. Without a terminal all of
 * standard input is one message, and calls that need a person are rejected
 * unless --yes is given. */
#include "cli/chat/chat_priv.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/rand.h"
#include "policy/exact.h"

#define ID_BYTES 12

/* --- input of the person -------------------------------------------------- */

static void on_said(void *ctx, const struct mo_ack *a)
{
    struct cli_chat *t = ctx;

    if (a->ok)
        return;
    mo_chat_cmd_say(t, "%.*s", (int)a->message.n, a->message.p);
    mo_chat_cmd_turn_over(t, MO_EXIT_FAIL);
}

static void on_plain_ack(void *ctx, const struct mo_ack *a)
{
    struct cli_chat *t = ctx;

    if (!a->ok)
        mo_chat_cmd_say(t, "%.*s", (int)a->message.n, a->message.p);
    mo_chat_cmd_prompt(t);
}

static void send_text(struct cli_chat *t, struct mo_span text)
{
    if (t->member == NULL)
        return;
    t->turns++;
    mo_chat_say(t->member, text, on_said, t);
}

/* Joins the chat again as a new member, which gets all events again. */
static void join_again(struct cli_chat *t, const char *model)
{
    struct mo_err e;

    if (t->member)
        mo_chat_leave(mo_take_ptr(&t->member));
    if (mo_chat_cmd_join(t, model, &e) == 0)
        return;
    mo_chat_cmd_say(t, "%s", e.msg);
    t->code = MO_EXIT_UNAVAIL;
    mo_chat_cmd_leave(t);
}

static void do_model(struct cli_chat *t, const char *name)
{
    if (name[0] == '\0')
        mo_chat_cmd_say(t, "/model NAME changes the model and starts fresh");
    else
        join_again(t, name);
    mo_chat_cmd_prompt(t);
}

static void do_history(struct cli_chat *t, const char *rest)
{
    (void)rest;
    t->history = true;
    join_again(t, NULL);
}

static void do_reset(struct cli_chat *t, const char *rest)
{
    (void)rest;
    if (t->member)
        mo_chat_reset(t->member, on_plain_ack, t);
}

static void do_quit(struct cli_chat *t, const char *rest)
{
    (void)rest;
    mo_chat_cmd_leave(t);
}

static void do_help(struct cli_chat *t, const char *rest)
{
    (void)rest;
    mo_chat_cmd_say(
        t, "/model NAME  another model; the conversation starts fresh\n/reset  "
           "     a fresh conversation with the same model\n/history     the "
           "conversation so far\n/quit        leave (also Ctrl-D)\nCtrl-C "
           "stops the turn; a second one leaves.");
    mo_chat_cmd_prompt(t);
}

static const struct {
    const char *name;
    void (*run)(struct cli_chat *t, const char *rest);
} commands[] = {
    {"/model", do_model}, {"/reset", do_reset}, {"/history", do_history},
    {"/help", do_help},   {"/quit", do_quit},
};

static void run_command(struct cli_chat *t, struct mo_span line)
{
    struct mo_span rest = line, word = mo_span_cut(&rest, ' ');
    char text[256];

    (void)snprintf(text, sizeof(text), "%.*s", (int)rest.n,
                   rest.p ? rest.p : "");
    for (size_t i = 0; i < MO_COUNT(commands); i++)
        if (mo_span_is(word, commands[i].name)) {
            commands[i].run(t, text);
            return;
        }
    mo_chat_cmd_say(t, "unknown command %.*s; /help lists the commands",
                    (int)word.n, word.p);
    mo_chat_cmd_prompt(t);
}

/* A command must wait for the end of the turn, and so must lines after it.
 * /quit does not wait. */
static bool must_wait(const struct cli_chat *t, struct mo_span line)
{
    return t->turns > 0 && !mo_span_is(line, "/quit") &&
           (line.p[0] == '/' || t->ahead.len > 0);
}

static void line_said(struct cli_chat *t, struct mo_span line)
{
    if (line.n > 0 && must_wait(t, line)) {
        (void)mo_buf_span(&t->ahead, line);
        if (mo_buf_putc(&t->ahead, '\n') < 0) {
            mo_chat_cmd_say(t, "that is too much to wait for the turn's end");
            mo_buf_reset(&t->ahead);
        }
    } else if (line.n == 0) {
        mo_chat_cmd_prompt(t);
    } else if (line.p[0] == '/') {
        run_command(t, line);
    } else {
        send_text(t, line);
    }
}

static void line_card(struct cli_chat *t, struct mo_span line)
{
    static const struct mo_span none = {NULL, 0};
    struct mo_span rest = line, word = mo_span_cut(&rest, ' ');

    switch (word.n > 0 ? word.p[0] : ' ') {
    case 'y':
        mo_chat_cmd_decide(t, true, MO_REMEMBER_NO, none, none);
        return;
    case 'a':
        mo_chat_cmd_decide(t, true, MO_REMEMBER_SESSION, none, none);
        return;
    case 'A':
        mo_chat_cmd_decide(t, true, MO_REMEMBER_ALWAYS, none, none);
        return;
    case 'n':
        if (rest.n > 0) {
            mo_chat_cmd_decide(t, false, MO_REMEMBER_NO, rest, none);
            return;
        }
        t->mode = REASON;
        break;
    case 'e':
        if (mo_chat_cmd_edit(t))
            return;
        t->mode = EDIT;
        break;
    case 'v':
        mo_chat_cmd_show_card(t, true);
        break;
    default:
        break;
    }
    mo_chat_cmd_prompt(t);
}

static void line_reason(struct cli_chat *t, struct mo_span line)
{
    mo_chat_cmd_decide(t, false, MO_REMEMBER_NO, line, mo_span(NULL, 0));
}

static void line_edit(struct cli_chat *t, struct mo_span line)
{
    struct mo_json_doc doc;
    struct mo_err e;

    if (line.n > 0 && mo_json_parse(line, 0, &doc, &e) == 0) {
        mo_chat_cmd_decide(t, true, MO_REMEMBER_NO, mo_span(NULL, 0), line);
        return;
    }
    if (line.n > 0)
        mo_chat_cmd_say(t, "this is not JSON: %s", e.msg);
    t->mode = CARD;
    mo_chat_cmd_prompt(t);
}

static void on_line(struct cli_chat *t, struct mo_span line)
{
    static void (*const modes[])(struct cli_chat *, struct mo_span) = {
        [SAY] = line_said,
        [CARD] = line_card,
        [REASON] = line_reason,
        [EDIT] = line_edit,
        [WAIT] = line_said,
        [FORM] = mo_chat_cmd_form_line,
        [PAGE] = mo_chat_cmd_page_line,
        [SAMPLE] = mo_chat_cmd_page_line,
    };

    if (!t->leaving)
        modes[t->mode](t, mo_span_trim(line));
}

static void on_next(struct mo_later *d)
{
    struct cli_chat *t = mo_container_of(d, struct cli_chat, next);

    while (t->ahead.len > 0 && t->turns == 0 && !t->leaving) {
        struct mo_span rest = mo_buf_view(&t->ahead);
        struct mo_span first = mo_span_cut(&rest, '\n');

        on_line(t, first);
        mo_buf_drop(&t->ahead, first.n + 1);
    }
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct cli_chat *t = ctx;
    struct mo_span rest = mo_span(p, n);

    while (rest.n > 0) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t take = end ? (size_t)(end - rest.p) : rest.n;

        if (mo_buf_put(&t->line, rest.p, take) < 0) {
            mo_chat_cmd_say(t, "that line is too long");
            mo_buf_reset(&t->line);
        }
        if (end == NULL)
            return;
        on_line(t, mo_buf_view(&t->line));
        mo_buf_reset(&t->line);
        rest = mo_span_skip(rest, take + 1);
    }
}

static void on_eof(void *ctx)
{
    mo_chat_cmd_leave(ctx);
}

static void on_in_closed(void *ctx, const struct mo_err *why)
{
    struct cli_chat *t = ctx;

    (void)why;
    t->in = NULL;
    mo_chat_cmd_leave(t);
}

static const struct mo_stream_cb in_cb = {
    .on_read = on_read, .on_eof = on_eof, .on_close = on_in_closed};

static void on_interrupt(void *ctx, int signo)
{
    struct cli_chat *t = ctx;

    (void)signo;
    if (t->edit.fore)
        return; /* the editor handles it */
    if (t->turns == 0 || t->stopping || t->member == NULL) {
        t->code = t->tty ? t->code : MO_EXIT_FAIL;
        mo_chat_cmd_leave(t);
        return;
    }
    t->stopping = true;
    mo_chat_cmd_say(t, "(stopping; once more leaves)");
    mo_chat_cancel(t->member, on_plain_ack, t);
}

/* --- command -------------------------------------------------------------- */

/* Opens the terminal again: our file description may be shared with a shell. */
static int open_terminal(struct cli_chat *t, struct mo_err *e)
{
    int fd = open("/proc/self/fd/0", O_RDONLY | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return mo_fail_sys(e, "standard input");
    if (mo_stream_from_fds(t->m.loop, fd, -1, &t->in, e) < 0)
        return e->code;
    mo_stream_attach(t->in, &in_cb, t);
    return 0;
}

/* Trims newlines at both ends. */
static struct mo_span message_of(const struct mo_buf *b)
{
    struct mo_span s = mo_buf_view(b);

    while (s.n > 0 && memchr(" \t\r\n", s.p[s.n - 1], 4))
        s.n--;
    while (s.n > 0 && memchr("\r\n", s.p[0], 2))
        s = mo_span_skip(s, 1);
    return s;
}

static int read_message(struct cli_chat *t, struct mo_err *e)
{
    char part[4096];
    ssize_t n = 0;

    (void)mo_cli_join(t->m.c, &t->line);
    while (t->line.len == 0 || t->m.c->nargs == 0) {
        n = read(STDIN_FILENO, part, sizeof(part));
        if (n <= 0)
            break;
        mo_buf_put(&t->line, part, (size_t)n);
    }
    if (n < 0)
        return mo_fail_sys(e, "standard input");
    if (mo_buf_err(&t->line))
        return mo_fail(e, MO_ETOOBIG, "the message is longer than 256 KiB");
    if (message_of(&t->line).n == 0)
        return mo_fail(e, MO_EINVAL, "there is no message on standard input");
    return 0;
}

static int begin_chat(struct cli_chat *t, struct mo_err *e)
{
    int rc = mo_agent_setup_open(t->m.loop, t->m.cfg.now, t->m.runtime, NULL,
                                 NULL, &t->agent, e);

    if (rc == 0)
        rc = mo_chat_cmd_join(t, NULL, e);
    if (rc == 0 && t->tty)
        rc = open_terminal(t, e);
    if (rc == 0 && t->line.len > 0) {
        send_text(t, message_of(&t->line));
        mo_buf_reset(&t->line);
    }
    return rc;
}

static void end_chat(struct cli_chat *t)
{
    mo_later_cancel(&t->next);
    mo_chat_cmd_edit_end(t);
    while (mo_chat_cmd_first(t))
        mo_chat_cmd_drop(mo_chat_cmd_first(t));
    if (t->in)
        mo_stream_close(t->in, NULL);
    if (t->agent) {
        t->m.done = false;
        t->leaving = true;
        mo_agent_setup_close(mo_take_ptr(&t->agent), 0, mo_cmd_runtime_done,
                             &t->m);
        mo_cmd_runtime_wait(&t->m);
    }
    mo_buf_fini(&t->line);
    mo_buf_fini(&t->ahead);
    mo_buf_fini(&t->form);
}

static int run_conversation(struct cli_chat *t)
{
    struct mo_signal *sig = NULL;
    struct mo_err e = {0};

    sig = mo_signal_start(t->m.loop, SIGINT, on_interrupt, t, &e);
    if (sig == NULL || begin_chat(t, &e) < 0)
        t->code = mo_cli_error(t->m.c, MO_EXIT_UNAVAIL, "%s", e.msg);
    else
        mo_cmd_runtime_wait(&t->m);
    end_chat(t);
    if (sig)
        mo_signal_stop(sig);
    return t->code;
}

static void name_session(struct cli_chat *t, const char *given)
{
    char token[MO_TOKEN_LEN(ID_BYTES) + 1];

    mo_random_token(token, ID_BYTES);
    t->ours = given == NULL;
    if (given)
        (void)snprintf(t->session, sizeof(t->session), "%s", given);
    else
        (void)snprintf(t->session, sizeof(t->session), "chat-%s", token);
}

int mo_run_chat(struct mo_cli *c)
{
    struct cli_chat t = {.json = mo_cli_has(c, "json"),
                         .yes = mo_cli_has(c, "yes")};
    struct mo_err e = {0};
    int rc;

    mo_list_init(&t.cards);
    mo_buf_init(&t.line, CHAT_LINE_MAX);
    mo_buf_init(&t.ahead, CHAT_LINE_MAX);
    mo_buf_init(&t.form, CHAT_LINE_MAX);
    mo_buf_init(&t.edit.text, MO_EXACT_MAX);
    mo_buf_init(&t.edit.held, MO_CMD_TEXT_MAX);
    mo_later_init(&t.next, on_next);
    t.tty = isatty(STDIN_FILENO) == 1 && isatty(c->out) == 1 && c->nargs == 0 &&
            !t.json;
    name_session(&t, mo_cli_get(c, "session"));
    t.m.c = c;
    if (!t.tty && read_message(&t, &e) < 0) {
        mo_buf_fini(&t.line);
        return mo_cli_error(c, MO_EXIT_USAGE, "%s", e.msg);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    rc = mo_cmd_runtime_open(c, &t.m, MO_RUNTIME_COMMAND);
    if (rc == 0)
        rc = run_conversation(&t);
    else
        mo_buf_fini(&t.line);
    mo_cmd_runtime_close(&t.m);
    return rc;
}
