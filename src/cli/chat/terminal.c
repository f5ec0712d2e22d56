#include "cli/chat/terminal.h"

#include "codec/text/visible.h"
#include "policy/rule.h"

#define TEXT_MAX ((size_t)8 * 1024 * 1024)

void mo_term_text(struct mo_buf *b, struct mo_span s, bool tty)
{
    if (tty)
        mo_visible_text(b, s);
    else
        mo_buf_span(b, s);
}

void mo_term_json(struct mo_buf *b, struct mo_json v, bool tty)
{
    mo_autobuf struct mo_buf text = {.max = TEXT_MAX};

    if (!mo_json_is(v, MO_JSON_STRING))
        mo_term_text(b, mo_json_text(v), tty);
    else if (mo_json_str_buf(v, &text) == 0)
        mo_term_text(b, mo_buf_view(&text), tty);
}

/* --- lines ---------------------------------------------------------------- */

/* Writes every line with a prefix; *room counts down to "more". */
static void put_lines(struct mo_buf *b, struct mo_span text, const char *mark,
                      bool tty, size_t *room)
{
    size_t more = 0;

    if (text.n > 0 && text.p[text.n - 1] == '\n')
        text.n--;
    while (text.p) {
        struct mo_span line = mo_span_cut(&text, '\n');

        if (*room == 0) {
            more++;
            continue;
        }
        --*room;
        mo_buf_puts(b, mark);
        mo_term_text(b, line, tty);
        mo_buf_putc(b, '\n');
    }
    if (more > 0)
        mo_buf_printf(b, "  ... %zu more lines\n", more);
}

static void put_string_lines(struct mo_buf *b, struct mo_json v,
                             const char *mark, bool tty, size_t *room)
{
    mo_autobuf struct mo_buf text = {.max = TEXT_MAX};

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &text) == 0)
        put_lines(b, mo_buf_view(&text), mark, tty, room);
}

/* --- card ----------------------------------------------------------------- */

/* Members shown as a diff, and the prefix of their lines. */
static const char *mark_of(struct mo_json key, struct mo_json val)
{
    static const struct {
        const char *name, *mark;
    } marks[] = {
        {"old_string", "  - "}, {"new_string", "  + "}, {"content", "  + "}};

    if (!mo_json_is(val, MO_JSON_STRING))
        return NULL;
    for (size_t i = 0; i < MO_COUNT(marks); i++)
        if (mo_json_str_eq(key, mo_span_cstr(marks[i].name)))
            return marks[i].mark;
    return NULL;
}

static void put_arg(struct mo_buf *b, struct mo_json key, struct mo_json val,
                    bool tty, size_t *room)
{
    const char *mark = mark_of(key, val);

    mo_buf_puts(b, "  ");
    mo_term_json(b, key, tty);
    mo_buf_puts(b, mark ? ":\n" : ": ");
    if (mark) {
        put_string_lines(b, val, mark, tty, room);
        return;
    }
    mo_term_text(b, mo_json_text(val), tty);
    mo_buf_putc(b, '\n');
}

/* Names the server that replaces a failed one. */
static void put_stand_in(struct mo_buf *b, struct mo_json route, bool tty)
{
    struct mo_json from = mo_json_get(route, "insteadOf");

    if (!from.p)
        return;
    mo_buf_puts(b, "  stands in for ");
    mo_term_json(b, from, tty);
    mo_buf_puts(b, ", which is down: ");
    mo_term_json(b, mo_json_get(route, "why"), tty);
    mo_buf_puts(b, "\n");
}

static void put_connection(struct mo_buf *b, struct mo_json card, bool tty)
{
    struct mo_json args = mo_json_get(card, "args");
    struct mo_json request = mo_json_get(card, "request");
    struct mo_json program = mo_json_get(card, "program");

    mo_buf_puts(b, "a program in the box wants to connect to ");
    mo_term_json(b, mo_json_get(args, "host"), tty);
    mo_buf_puts(b, " port ");
    mo_buf_span(b, mo_json_text(mo_json_get(args, "port")));
    mo_buf_putc(b, '\n');
    if (request.p) {
        mo_buf_puts(b, "  ");
        mo_term_json(b, request, tty);
        mo_buf_putc(b, '\n');
    }
    if (program.p) {
        mo_buf_puts(b, "  program, as the box says: ");
        mo_term_json(b, program, tty);
        mo_buf_putc(b, '\n');
    }
}

void mo_term_card(struct mo_buf *b, struct mo_json card, bool tty, bool all)
{
    size_t room = all ? SIZE_MAX : MO_TERM_LINES;

    mo_buf_puts(b, "\n");
    if (mo_json_str_eq(mo_json_get(card, "name"), MO_SPAN(MO_RULE_CONNECT))) {
        put_connection(b, card, tty);
        return;
    }
    mo_term_json(b, mo_json_get(card, "server"), tty);
    mo_buf_puts(b, " wants to run ");
    mo_term_json(b, mo_json_get(card, "name"), tty);
    mo_buf_puts(b, " (");
    mo_buf_span(b, mo_json_text(mo_json_get(card, "queuePosition")));
    mo_buf_puts(b, " of ");
    mo_buf_span(b, mo_json_text(mo_json_get(card, "totalInQueue")));
    mo_buf_puts(b, ")\n");
    put_stand_in(b, mo_json_get(card, "route"), tty);
    mo_json_each (it, mo_json_get(card, "args"))
        put_arg(b, it.key, it.val, tty, &room);
}

/* --- outputs and messages ------------------------------------------------ */

static void put_content(struct mo_buf *b, struct mo_json content, bool tty)
{
    size_t room = MO_TERM_LINES;

    mo_json_each (it, content) {
        struct mo_json text = mo_json_get(it.val, "text");

        if (mo_json_is(text, MO_JSON_STRING)) {
            put_string_lines(b, text, "  | ", tty, &room);
            continue;
        }
        mo_buf_puts(b, "  | [");
        mo_term_json(b, mo_json_get(it.val, "type"), tty);
        mo_buf_puts(b, "]\n");
    }
}

void mo_term_output(struct mo_buf *b, struct mo_json args, bool tty)
{
    struct mo_json about = mo_json_at(args, 1);
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf text = {.max = TEXT_MAX};
    bool failed = false;

    (void)mo_json_bool(mo_json_get(about, "isError"), &failed);
    mo_buf_puts(b, "  ");
    mo_term_json(b, mo_json_get(about, "name"), tty);
    mo_buf_puts(b, failed ? " failed, " : " done, ");
    mo_buf_span(b, mo_json_text(mo_json_get(about, "durationMs")));
    mo_buf_puts(b, " ms\n");
    if (mo_json_str_buf(mo_json_at(args, 0), &text) == 0 &&
        mo_json_parse(mo_buf_view(&text), 0, &doc, NULL) == 0)
        put_content(b, doc.root, tty);
}

void mo_term_message(struct mo_buf *b, struct mo_json m, bool tty)
{
    mo_term_json(b, mo_json_get(m, "role"), tty);
    mo_buf_puts(b, ":\n");
    mo_json_each (it, mo_json_get(m, "blocks")) {
        bool call =
            mo_json_str_eq(mo_json_get(it.val, "type"), MO_SPAN("call"));

        mo_buf_puts(b, call ? "  calls " : "  ");
        mo_term_json(b, mo_json_get(it.val, call ? "name" : "text"), tty);
        mo_buf_putc(b, '\n');
    }
    mo_json_each (it, mo_json_get(m, "results"))
        put_content(b, mo_json_get(it.val, "content"), tty);
    mo_term_json(b, mo_json_get(m, "text"), tty);
}
