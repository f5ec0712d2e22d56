/* chat - the conversation in a terminal, or for a script.
 *
 * One member of one chat, in this process (agent/chat.h): a person's lines
 * and answers go in, events come out as text. Without a terminal all of
 * standard input is one message, and what needs a person is rejected unless
 * --yes was given. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "app/cli/house.h"
#include "app/converse.h"
#include "app/file.h"
#include "app/terminal.h"
#include "base/rand.h"
#include "codec/json.h"
#include "loop/stream.h"

#define ID_BYTES  12
#define LINE_MAX_ MO_CHAT_TEXT_MAX

enum mode { SAY, CARD, REASON, EDIT, WAIT };

struct card {
    struct mo_list node;
    struct mo_json doc;
    char text[];
};

struct chat {
    struct mo_cmd_house m;
    struct mo_converse *converse;
    struct mo_member *member;
    struct mo_stream *in;
    struct mo_buf line;   /* not ended yet */
    struct mo_list cards; /* the first is the one that is asked about */
    enum mode mode;
    bool tty, json, yes, ours; /* ours: the session ends with us */
    bool midline;              /* the last text had no line end */
    bool streamed;             /* text of this turn was shown as it came */
    bool history;              /* the next session:history is printed */
    bool leaving, stopping;
    unsigned turns; /* under way and in line */
    int code;       /* to end with */
    char session[MO_SESSION_ID_MAX + 1];
    const char *model;
};

/* --- out ------------------------------------------------------------------ */

static void put(struct chat *t, struct mo_buf *b)
{
    struct mo_err e;

    if (b->len > 0 && mo_buf_err(b) == 0) {
        (void)mo_file_write_all(t->m.c->out, mo_buf_view(b), &e);
        t->midline = b->p[b->len - 1] != '\n';
    }
    mo_buf_fini(b);
}

static void say(struct chat *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A line of ours; for scripts on stderr, so that stdout is the answer. */
static void say(struct chat *t, const char *fmt, ...)
{
    struct mo_buf b, safe;
    struct mo_err e;
    va_list ap;

    if (t->json)
        return;
    mo_buf_init(&b, LINE_MAX_);
    mo_buf_init(&safe, LINE_MAX_);
    va_start(ap, fmt);
    mo_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    if (t->midline)
        mo_buf_putc(&safe, '\n');
    mo_term_text(&safe, mo_buf_view(&b), true);
    mo_buf_putc(&safe, '\n');
    t->midline = false;
    (void)mo_file_write_all(t->tty ? t->m.c->out : t->m.c->err,
                            mo_buf_view(&safe), &e);
    mo_buf_fini(&b);
    mo_buf_fini(&safe);
}

static void prompt(struct chat *t)
{
    static const char *const prompts[] = {
        [SAY] = "> ",
        [CARD] = "Run it? [y]es [n]o [a]lways [e]dit [v]iew all: ",
        [REASON] = "Why not (may be empty)? ",
        [EDIT] = "Arguments as one line of JSON (empty: back): ",
        [WAIT] = "",
    };
    struct mo_buf b;

    if (!t->tty || t->json || t->leaving || (t->mode == SAY && t->turns > 0))
        return;
    mo_buf_init(&b, 256);
    if (t->midline)
        mo_buf_putc(&b, '\n');
    mo_buf_puts(&b, prompts[t->mode]);
    put(t, &b);
    t->midline = false; /* the person ends it */
}

/* --- leaving -------------------------------------------------------------- */

static void on_ended(void *ctx, const struct mo_ack *a)
{
    struct chat *t = ctx;

    (void)a;
    t->m.done = true;
}

static void leave(struct chat *t)
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

static void turn_over(struct chat *t, int code)
{
    t->stopping = false;
    if (t->turns > 0)
        t->turns--;
    if (code != MO_EXIT_OK && t->code == MO_EXIT_OK && !t->tty)
        t->code = code;
    if (!t->tty && t->turns == 0)
        leave(t);
    prompt(t);
}

/* --- cards ---------------------------------------------------------------- */

static struct card *first(struct chat *t)
{
    return mo_list_empty(&t->cards)
               ? NULL
               : mo_list_first(&t->cards, struct card, node);
}

static void show_next(struct chat *t);

static void drop(struct card *k)
{
    mo_list_del(&k->node);
    mo_free(k);
}

static void on_decided(void *ctx, const struct mo_ack *a)
{
    struct chat *t = ctx;
    struct card *k = first(t);

    t->mode = SAY;
    if (!a->ok)
        say(t, "%.*s", (int)a->message.n, a->message.p);
    if (k && (a->ok || strcmp(a->code, "bad_request") != 0))
        drop(k);
    show_next(t);
}

static void decide(struct chat *t, bool approved, enum mo_remember remember,
                   struct mo_span reason, struct mo_span args)
{
    struct card *k = first(t);
    struct mo_decision d = {.approved = approved,
                            .remember = remember,
                            .reason = reason,
                            .args = args};
    struct mo_arena a;

    t->mode = WAIT;
    mo_arena_init(&a, 65536);
    (void)mo_json_str(mo_json_get(k->doc, "callId"), &a, &d.call);
    (void)mo_json_str(mo_json_get(k->doc, "digest"), &a, &d.digest);
    if (t->member)
        mo_chat_decide(t->member, &d, on_decided, t);
    mo_arena_fini(&a);
}

static void show_card(struct chat *t, bool all)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    if (!t->json)
        mo_term_card(&b, first(t)->doc, t->tty, all);
    if (t->tty)
        put(t, &b);
    else
        mo_buf_fini(&b);
}

static void show_next(struct chat *t)
{
    static const char nobody[] =
        "there is no terminal to ask a person at (chat --yes allows all)";

    if (t->mode != SAY || first(t) == NULL) {
        prompt(t);
        return;
    }
    show_card(t, false);
    if (t->yes) {
        decide(t, true, MO_REMEMBER_NO, mo_span(NULL, 0), mo_span(NULL, 0));
    } else if (!t->tty) {
        t->code = MO_EXIT_SIGN_IN;
        decide(t, false, MO_REMEMBER_NO, mo_span(nobody, sizeof(nobody) - 1),
               mo_span(NULL, 0));
    } else {
        t->mode = CARD;
        prompt(t);
    }
}

/* --- events --------------------------------------------------------------- */

typedef void event_fn(struct chat *t, struct mo_json args);

static void put_span(struct chat *t, struct mo_span text)
{
    struct mo_buf b;

    if (t->json)
        return;
    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    mo_term_text(&b, text, t->tty);
    put(t, &b);
}

static void put_json_text(struct chat *t, struct mo_json v)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &b) == 0)
        put_span(t, mo_buf_view(&b));
    mo_buf_fini(&b);
}

static void say_json(struct chat *t, const char *before, struct mo_json v)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    if (mo_json_is(v, MO_JSON_STRING))
        (void)mo_json_str_buf(v, &b);
    say(t, "%s%.*s", before, (int)b.len, b.len ? b.p : "");
    mo_buf_fini(&b);
}

static void on_ready(struct chat *t, struct mo_json args)
{
    if (t->tty && !t->history) {
        say_json(t, "model ", mo_json_get(mo_json_at(args, 0), "model"));
        say(t, "session %s; /help says what else there is", t->session);
    }
}

static void on_history(struct chat *t, struct mo_json args)
{
    struct mo_json about = mo_json_at(args, 0);
    struct mo_json_iter it;
    struct mo_json key, val;
    struct mo_buf b;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    mo_json_iter(&it, mo_json_get(about, "messages"));
    while (t->history && mo_json_next(&it, &key, &val))
        mo_term_message(&b, val, t->tty);
    put(t, &b);
    t->history = false;
    if (t->turns == 0 && mo_json_is(mo_json_get(about, "turn"), MO_JSON_OBJECT))
        t->turns = 1; /* it goes on from an earlier time */
    prompt(t);
}

static void on_delta(struct chat *t, struct mo_json args)
{
    t->streamed = true;
    put_json_text(t, mo_json_get(mo_json_at(args, 0), "text"));
}

static void on_response(struct chat *t, struct mo_json args)
{
    struct mo_json stop = mo_json_get(mo_json_at(args, 1), "stopReason");

    if (!t->streamed)
        put_json_text(t, mo_json_at(args, 0));
    if (t->midline)
        put_span(t, MO_SPAN("\n"));
    t->streamed = false;
    if (mo_json_str_eq(stop, MO_SPAN("canceled")))
        say(t, "(stopped)");
    turn_over(t, mo_json_str_eq(stop, MO_SPAN("canceled")) ? MO_EXIT_FAIL
                                                           : MO_EXIT_OK);
}

static void on_error(struct chat *t, struct mo_json args)
{
    say_json(t, "error: ", mo_json_at(args, 0));
    t->streamed = false;
    turn_over(t, MO_EXIT_FAIL);
}

static void on_message(struct chat *t, struct mo_json args)
{
    say_json(t, "* ", mo_json_at(args, 0));
}

static void on_card(struct chat *t, struct mo_json args)
{
    struct mo_json doc = mo_json_at(args, 0);
    struct card *k = mo_alloc(sizeof(*k) + doc.n);

    if (k == NULL)
        return;
    memcpy(k->text, doc.p, doc.n);
    k->doc = (struct mo_json){k->text, doc.n};
    mo_list_push(&t->cards, &k->node);
    if (t->mode == SAY)
        show_next(t);
}

/* Decided elsewhere, or too late: the question goes away. */
static void on_resolved(struct chat *t, struct mo_json args)
{
    struct mo_json about = mo_json_at(args, 0),
                   id = mo_json_get(about, "callId");

    if (mo_json_str_eq(mo_json_get(about, "by"), MO_SPAN("person")))
        return;
    mo_list_each_safe (it, &t->cards) {
        struct card *k = mo_container_of(it, struct card, node);
        bool asked = k == first(t) && t->mode != SAY && t->mode != WAIT;

        if (!mo_span_eq(mo_json_text(mo_json_get(k->doc, "callId")),
                        mo_json_text(id)))
            continue;
        say(t, "(that question is over)");
        drop(k);
        if (asked) {
            t->mode = SAY;
            show_next(t);
        }
    }
}

static void on_output(struct chat *t, struct mo_json args)
{
    struct mo_buf b;

    if (!t->tty)
        return;
    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    if (t->midline)
        mo_buf_putc(&b, '\n');
    mo_term_output(&b, args, t->tty);
    put(t, &b);
}

static void on_progress(struct chat *t, struct mo_json args)
{
    struct mo_json text = mo_json_get(mo_json_at(args, 0), "message");

    if (t->tty && mo_json_is(text, MO_JSON_STRING))
        say_json(t, "  . ", text);
}

static const struct {
    const char *name;
    event_fn *on;
} events[] = {
    {"system:ready", on_ready},          {"session:history", on_history},
    {"agent:delta", on_delta},           {"agent:response", on_response},
    {"agent:error", on_error},           {"system:message", on_message},
    {"tool:approval_required", on_card}, {"tool:resolved", on_resolved},
    {"tool:output", on_output},          {"tool:progress", on_progress},
};

/* Those that decide how it goes on are heard with --json as well. */
static void dispatch(struct chat *t, const char *name, struct mo_json args)
{
    for (size_t i = 0; i < MO_COUNT(events); i++)
        if (strcmp(events[i].name, name) == 0)
            events[i].on(t, args);
}

static void put_event(struct chat *t, const char *name, struct mo_span array)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_CHAT_EVENT_MAX + 256);
    mo_buf_printf(&b, "{\"event\":\"%s\",\"args\":", name);
    mo_buf_span(&b, array);
    mo_buf_puts(&b, "}\n");
    put(t, &b);
}

static void on_event(void *ctx, const char *name, struct mo_span args)
{
    struct chat *t = ctx;
    struct mo_json_doc doc;
    struct mo_buf b;

    mo_buf_init(&b, MO_CHAT_EVENT_MAX + 2);
    mo_buf_putc(&b, '[');
    mo_buf_span(&b, args);
    mo_buf_putc(&b, ']');
    if (mo_buf_err(&b) == 0 &&
        mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) == 0) {
        if (t->json)
            put_event(t, name, mo_buf_view(&b));
        dispatch(t, name, doc.root);
    }
    mo_buf_fini(&b);
}

static void on_closed(void *ctx, const char *reason, const struct mo_err *why)
{
    struct chat *t = ctx;

    t->member = NULL;
    if (t->leaving)
        return; /* on_ended() follows */
    if (why)
        (void)mo_cli_error(t->m.c, MO_EXIT_UNAVAIL, "%s", why->msg);
    else
        say(t, "the session ended: %s", reason);
    t->code = MO_EXIT_UNAVAIL;
    t->leaving = t->m.done = true;
}

static const struct mo_member_cb member_cb = {on_event, on_closed};

static int join(struct chat *t, const char *model, struct mo_err *e)
{
    struct mo_join j = {.session = mo_span_cstr(t->session),
                        .model = mo_span_cstr(model ? model : ""),
                        .who = MO_SPAN("terminal")};

    return mo_chat_join(mo_converse_agent(t->converse), &j, &member_cb, t,
                        &t->member, e);
}

/* --- what a person types -------------------------------------------------- */

static void on_said(void *ctx, const struct mo_ack *a)
{
    struct chat *t = ctx;

    if (a->ok)
        return;
    say(t, "%.*s", (int)a->message.n, a->message.p);
    turn_over(t, MO_EXIT_FAIL);
}

static void on_plain_ack(void *ctx, const struct mo_ack *a)
{
    struct chat *t = ctx;

    if (!a->ok)
        say(t, "%.*s", (int)a->message.n, a->message.p);
    prompt(t);
}

static void send_text(struct chat *t, struct mo_span text)
{
    if (t->member == NULL)
        return;
    t->turns++;
    mo_chat_say(t->member, text, on_said, t);
}

/* The same chat as a new member: everything is told again. */
static void join_again(struct chat *t, const char *model)
{
    struct mo_err e;

    if (t->member)
        mo_chat_leave(mo_take_ptr(&t->member));
    if (join(t, model, &e) == 0)
        return;
    say(t, "%s", e.msg);
    t->code = MO_EXIT_UNAVAIL;
    leave(t);
}

static void do_model(struct chat *t, const char *name)
{
    if (name[0] == '\0')
        say(t, "/model NAME changes the model and starts fresh");
    else
        join_again(t, name);
    prompt(t);
}

static void do_history(struct chat *t, const char *rest)
{
    (void)rest;
    t->history = true;
    join_again(t, NULL);
}

static void do_reset(struct chat *t, const char *rest)
{
    (void)rest;
    if (t->member)
        mo_chat_reset(t->member, on_plain_ack, t);
}

static void do_quit(struct chat *t, const char *rest)
{
    (void)rest;
    leave(t);
}

static void do_help(struct chat *t, const char *rest)
{
    (void)rest;
    say(t, "/model NAME  another model; the conversation starts fresh\n"
           "/reset       a fresh conversation with the same model\n"
           "/history     what was said so far\n"
           "/quit        leave (also Ctrl-D)\n"
           "Ctrl-C stops the turn; a second one leaves.");
    prompt(t);
}

static const struct {
    const char *name;
    void (*run)(struct chat *t, const char *rest);
} commands[] = {
    {"/model", do_model}, {"/reset", do_reset}, {"/history", do_history},
    {"/help", do_help},   {"/quit", do_quit},
};

static void command(struct chat *t, struct mo_span line)
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
    say(t, "there is no %.*s; /help says what there is", (int)word.n, word.p);
    prompt(t);
}

static void line_said(struct chat *t, struct mo_span line)
{
    if (line.n == 0)
        prompt(t);
    else if (line.p[0] == '/')
        command(t, line);
    else
        send_text(t, line);
}

static void line_card(struct chat *t, struct mo_span line)
{
    static const struct mo_span none = {NULL, 0};
    struct mo_span rest = line, word = mo_span_cut(&rest, ' ');

    switch (word.n > 0 ? word.p[0] : ' ') {
    case 'y':
        decide(t, true, MO_REMEMBER_NO, none, none);
        return;
    case 'a':
        decide(t, true, MO_REMEMBER_SESSION, none, none);
        return;
    case 'n':
        if (rest.n > 0) {
            decide(t, false, MO_REMEMBER_NO, rest, none);
            return;
        }
        t->mode = REASON;
        break;
    case 'e':
        t->mode = EDIT;
        break;
    case 'v':
        show_card(t, true);
        break;
    default:
        break;
    }
    prompt(t);
}

static void line_reason(struct chat *t, struct mo_span line)
{
    decide(t, false, MO_REMEMBER_NO, line, mo_span(NULL, 0));
}

static void line_edit(struct chat *t, struct mo_span line)
{
    struct mo_json_doc doc;
    struct mo_err e;

    if (line.n > 0 && mo_json_parse(line, 0, &doc, &e) == 0) {
        decide(t, true, MO_REMEMBER_NO, mo_span(NULL, 0), line);
        return;
    }
    if (line.n > 0)
        say(t, "that is no JSON: %s", e.msg);
    t->mode = CARD;
    prompt(t);
}

static void on_line(struct chat *t, struct mo_span line)
{
    static void (*const modes[])(struct chat *, struct mo_span) = {
        [SAY] = line_said,  [CARD] = line_card, [REASON] = line_reason,
        [EDIT] = line_edit, [WAIT] = line_said,
    };

    if (!t->leaving)
        modes[t->mode](t, mo_span_trim(line));
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct chat *t = ctx;
    struct mo_span rest = mo_span(p, n);

    while (rest.n > 0) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t take = end ? (size_t)(end - rest.p) : rest.n;

        if (mo_buf_put(&t->line, rest.p, take) < 0) {
            say(t, "that line is too long");
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
    leave(ctx);
}

static void on_in_closed(void *ctx, const struct mo_err *why)
{
    struct chat *t = ctx;

    (void)why;
    t->in = NULL;
    leave(t);
}

static const struct mo_stream_cb in_cb = {
    .on_read = on_read, .on_eof = on_eof, .on_close = on_in_closed};

static void on_interrupt(void *ctx, int signo)
{
    struct chat *t = ctx;

    (void)signo;
    if (t->turns == 0 || t->stopping || t->member == NULL) {
        t->code = t->tty ? t->code : MO_EXIT_FAIL;
        leave(t);
        return;
    }
    t->stopping = true;
    say(t, "(stopping; once more leaves)");
    mo_chat_cancel(t->member, on_plain_ack, t);
}

/* --- the command ---------------------------------------------------------- */

/* A description of our own: ours may be shared with a shell. */
static int open_terminal(struct chat *t, struct mo_err *e)
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

/* Without the line ends around it. */
static struct mo_span message_of(const struct mo_buf *b)
{
    struct mo_span s = mo_buf_view(b);

    while (s.n > 0 && memchr(" \t\r\n", s.p[s.n - 1], 4))
        s.n--;
    while (s.n > 0 && memchr("\r\n", s.p[0], 2))
        s = mo_span_skip(s, 1);
    return s;
}

static int read_message(struct chat *t, struct mo_err *e)
{
    char part[4096];
    ssize_t n = 0;

    for (size_t i = 0; i < t->m.c->nargs; i++)
        mo_buf_printf(&t->line, "%s%s", i ? " " : "", t->m.c->args[i]);
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

static int begin(struct chat *t, struct mo_err *e)
{
    int rc =
        mo_converse_open(t->m.loop, t->m.h.now, t->m.house, &t->converse, e);

    if (rc == 0)
        rc = join(t, NULL, e);
    if (rc == 0 && t->tty)
        rc = open_terminal(t, e);
    if (rc == 0 && t->line.len > 0) {
        send_text(t, message_of(&t->line));
        mo_buf_reset(&t->line);
    }
    return rc;
}

static void on_gone(void *ctx)
{
    ((struct chat *)ctx)->m.done = true;
}

static void end(struct chat *t)
{
    while (first(t))
        drop(first(t));
    if (t->in)
        mo_stream_close(t->in, NULL);
    if (t->converse) {
        t->m.done = false;
        t->leaving = true;
        mo_converse_close(mo_take_ptr(&t->converse), on_gone, t);
        mo_cmd_house_wait(&t->m);
    }
    mo_buf_fini(&t->line);
}

static int talk(struct chat *t)
{
    struct mo_signal *sig = NULL;
    struct mo_err e = {0};

    sig = mo_signal_start(t->m.loop, SIGINT, on_interrupt, t, &e);
    if (sig == NULL || begin(t, &e) < 0)
        t->code = mo_cli_error(t->m.c, MO_EXIT_UNAVAIL, "%s", e.msg);
    else
        mo_cmd_house_wait(&t->m);
    end(t);
    if (sig)
        mo_signal_stop(sig);
    return t->code;
}

static void name_session(struct chat *t, const char *given)
{
    char token[MO_TOKEN_LEN(ID_BYTES) + 1];

    mo_random_token(token, ID_BYTES);
    t->ours = given == NULL;
    if (given)
        (void)snprintf(t->session, sizeof(t->session), "%s", given);
    else
        (void)snprintf(t->session, sizeof(t->session), "chat-%s", token);
}

static int run(struct mo_cli *c)
{
    struct chat t = {.json = mo_cli_has(c, "json"),
                     .yes = mo_cli_has(c, "yes")};
    struct mo_err e = {0};
    int rc;

    mo_list_init(&t.cards);
    mo_buf_init(&t.line, LINE_MAX_);
    t.tty = isatty(STDIN_FILENO) == 1 && isatty(c->out) == 1 && c->nargs == 0 &&
            !t.json;
    name_session(&t, mo_cli_get(c, "session"));
    t.m.c = c;
    if (!t.tty && read_message(&t, &e) < 0) {
        mo_buf_fini(&t.line);
        return mo_cli_error(c, MO_EXIT_USAGE, "%s", e.msg);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    rc = mo_cmd_house_open(c, &t.m, MO_HOUSE_COMMAND);
    if (rc == 0)
        rc = talk(&t);
    else
        mo_buf_fini(&t.line);
    mo_cmd_house_close(&t.m);
    return rc;
}

static const struct mo_opt opts[] = {
    {.name = "session",
     .letter = 's',
     .arg = "ID",
     .doc = "Go on with that session, and leave it open at the end"},
    {.name = "model",
     .arg = "NAME",
     .key = "llm.model",
     .doc = "Model to talk to"},
    {.name = "provider",
     .arg = "NAME",
     .key = "llm.provider",
     .words = "auto claude gemini openai demo",
     .doc = "Whose model answers"},
    {.name = "sandbox",
     .arg = "DRIVER",
     .key = "sandbox.driver",
     .words = "auto native docker none",
     .doc = "What keeps tools in their box"},
    {.name = "yes", .letter = 'y', .doc = "Run every tool without asking"},
    {.name = "json", .doc = "Print every event as a line of JSON"},
};

const struct mo_cmd mo_cmd_chat = {
    .name = "chat",
    .summary = "Talk to a model that has tools, in the terminal",
    .args = "[MESSAGE...]",
    .max_args = MO_CLI_ARGS_MAX - 2,
    .text = "In a terminal it asks before each tool: y runs it, n rejects it "
            "with a reason, a always runs that tool in this session, e edits "
            "its arguments. Ctrl-C stops the turn, a second one leaves. With a "
            "MESSAGE, or without a terminal, there is one turn, and standard "
            "input is the message; the answer is all of standard output. Ends "
            "with 1 if the turn failed or was stopped, 4 if there is no "
            "session or model, 5 if a tool was rejected because nobody could "
            "be asked.",
    .example = "chat --yes list the files",
    .example_says = "asks once, lets it use its tools, prints the answer",
    .opts = opts,
    .nopts = MO_COUNT(opts),
    .run = run,
};
