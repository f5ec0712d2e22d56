/* terminal_form.c - a server's question (elicitation) in a terminal; see
 * terminal.h. */
#include "cli/chat/terminal.h"

#define TEXT_MAX ((size_t)64 * 1024)

static bool is_type(struct mo_json field, const char *name)
{
    return mo_json_str_eq(mo_json_get(field, "type"), mo_span_cstr(name));
}

/* --- choices ------------------------------------------------------------- */

/* The choices, as values or as {const, title}; or none. */
static struct mo_json find_choices(struct mo_json field)
{
    static const char *const names[] = {"enum", "oneOf", "anyOf"};
    struct mo_json from =
        is_type(field, "array") ? mo_json_get(field, "items") : field;

    for (size_t i = 0; i < MO_COUNT(names); i++) {
        struct mo_json v = mo_json_get(from, names[i]);

        if (mo_json_is(v, MO_JSON_ARRAY))
            return v;
    }
    return (struct mo_json){NULL, 0};
}

static struct mo_json value_of(struct mo_json choice)
{
    return mo_json_is(choice, MO_JSON_OBJECT) ? mo_json_get(choice, "const")
                                              : choice;
}

static void put_choices(struct mo_buf *b, struct mo_json list, bool tty)
{
    unsigned n = 0;

    mo_json_each (it, list) {
        struct mo_json title = mo_json_get(it.val, "title");

        mo_buf_printf(b, "    %u  ", ++n);
        mo_term_json(b,
                     mo_json_is(it.val, MO_JSON_OBJECT) && title.p
                         ? title
                         : value_of(it.val),
                     tty);
        mo_buf_putc(b, '\n');
    }
}

static int pick_choice(struct mo_buf *b, struct mo_json list,
                       struct mo_span text, struct mo_err *e)
{
    uint64_t wanted = 0, n = 0;

    if (mo_span_u64(text, &wanted) < 0)
        wanted = 0;
    mo_json_each (it, list) {
        struct mo_json v = value_of(it.val);

        if (++n != wanted && !mo_json_str_eq(v, text) &&
            !mo_json_str_eq(mo_json_get(it.val, "title"), text))
            continue;
        return mo_buf_span(b, mo_json_text(v));
    }
    return mo_fail(e, MO_EINVAL, "choose by number, 1 to %u", (unsigned)n);
}

static int pick_choices(struct mo_buf *b, struct mo_json list,
                        struct mo_span text, struct mo_err *e)
{
    bool any = false;
    int rc = 0;

    mo_buf_putc(b, '[');
    while (rc == 0 && text.p) {
        struct mo_span one = mo_span_trim(mo_span_cut(&text, ','));

        if (one.n == 0)
            continue;
        if (any)
            mo_buf_putc(b, ',');
        any = true;
        rc = list.p ? pick_choice(b, list, one, e) : mo_json_quote(b, one);
    }
    mo_buf_putc(b, ']');
    return rc < 0 ? rc : mo_buf_err(b);
}

/* --- typed values --------------------------------------------------------- */

static int parse_number(struct mo_buf *b, struct mo_json field,
                        struct mo_span text, struct mo_err *e)
{
    bool whole = is_type(field, "integer");
    struct mo_json_doc doc;

    if (mo_json_parse(text, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_NUMBER) ||
        (whole && memchr(text.p, '.', text.n)))
        return mo_fail(e, MO_EINVAL, "this is not a %s",
                       whole ? "whole number" : "number");
    return mo_buf_span(b, mo_json_text(doc.root));
}

static int parse_bool(struct mo_buf *b, struct mo_span text, struct mo_err *e)
{
    static const struct {
        const char *word, *json;
    } words[] = {{"y", "true"},  {"yes", "true"}, {"true", "true"},
                 {"n", "false"}, {"no", "false"}, {"false", "false"}};

    for (size_t i = 0; i < MO_COUNT(words); i++)
        if (mo_span_ieq(text, mo_span_cstr(words[i].word)))
            return mo_buf_puts(b, words[i].json);
    return mo_fail(e, MO_EINVAL, "yes or no?");
}

int mo_term_value(struct mo_buf *b, struct mo_json field, struct mo_span text,
                  struct mo_err *e)
{
    struct mo_json list = find_choices(field);

    if (is_type(field, "boolean"))
        return parse_bool(b, text, e);
    if (is_type(field, "number") || is_type(field, "integer"))
        return parse_number(b, field, text, e);
    if (is_type(field, "array"))
        return pick_choices(b, list, text, e);
    if (list.p)
        return pick_choice(b, list, text, e);
    return mo_json_quote(b, text);
}

/* --- questions ------------------------------------------------------------ */

void mo_term_question(struct mo_buf *b, struct mo_json question, bool tty)
{
    struct mo_json url = mo_json_get(question, "url");

    mo_buf_putc(b, '\n');
    mo_term_json(b, mo_json_get(question, "server"), tty);
    mo_buf_puts(b, " asks: ");
    mo_term_json(b, mo_json_get(question, "message"), tty);
    mo_buf_putc(b, '\n');
    if (url.p) {
        mo_buf_puts(b, "  ");
        mo_term_json(b, url, tty);
        mo_buf_puts(b, "\n  (open this page yourself if you trust it)\n");
    } else {
        mo_buf_puts(b, "  (an empty line leaves a field out; /decline or "
                       "/cancel ends it)\n");
    }
}

static void put_content(struct mo_buf *b, struct mo_json content, bool tty)
{
    struct mo_json text = mo_json_get(content, "text");

    mo_term_json(b, text.p ? text : mo_json_get(content, "type"), tty);
    mo_buf_putc(b, '\n');
}

static void put_said(struct mo_buf *b, struct mo_json message, bool tty)
{
    struct mo_json content = mo_json_get(message, "content");

    mo_buf_puts(b, "  ");
    mo_term_json(b, mo_json_get(message, "role"), tty);
    mo_buf_puts(b, ": ");
    if (!mo_json_is(content, MO_JSON_ARRAY)) {
        put_content(b, content, tty);
        return;
    }
    mo_json_each (it, content)
        put_content(b, it.val, tty);
}

void mo_term_sample(struct mo_buf *b, struct mo_json sample, bool tty)
{
    struct mo_json system = mo_json_get(sample, "systemPrompt");

    mo_buf_putc(b, '\n');
    if (mo_json_str_eq(mo_json_get(sample, "state"), MO_SPAN("review"))) {
        mo_buf_puts(b, "The model answered ");
        mo_term_json(b, mo_json_get(sample, "server"), tty);
        mo_buf_puts(b, ", which gets this if you approve:\n  ");
        mo_term_json(b, mo_json_get(sample, "text"), tty);
        mo_buf_putc(b, '\n');
        return;
    }
    mo_term_json(b, mo_json_get(sample, "server"), tty);
    mo_buf_puts(b, " asks the model ");
    mo_term_json(b, mo_json_get(sample, "model"), tty);
    mo_buf_puts(b, ", at most ");
    mo_term_json(b, mo_json_get(sample, "maxTokens"), tty);
    mo_buf_puts(b, " tokens:\n");
    if (system.p) {
        mo_buf_puts(b, "  instructions: ");
        mo_term_json(b, system, tty);
        mo_buf_putc(b, '\n');
    }
    mo_json_each (it, mo_json_get(sample, "messages"))
        put_said(b, it.val, tty);
}

static const char *kind_of(struct mo_json field)
{
    if (is_type(field, "boolean"))
        return "yes or no";
    if (is_type(field, "integer"))
        return "whole number";
    if (is_type(field, "number"))
        return "number";
    if (is_type(field, "array"))
        return "any of these, with commas";
    return find_choices(field).p ? "one of these" : "text";
}

void mo_term_field(struct mo_buf *b, struct mo_json key, struct mo_json field,
                   bool needed, bool tty)
{
    struct mo_json about = mo_json_get(field, "description");
    struct mo_json title = mo_json_get(field, "title");
    struct mo_json usual = mo_json_get(field, "default");

    put_choices(b, find_choices(field), tty);
    mo_buf_puts(b, "  ");
    mo_term_json(b, title.p ? title : key, tty);
    if (about.p) {
        mo_buf_puts(b, ", ");
        mo_term_json(b, about, tty);
    }
    mo_buf_printf(b, " (%s", kind_of(field));
    if (usual.p) {
        mo_buf_puts(b, ", else ");
        mo_term_json(b, usual, tty);
    } else if (needed) {
        mo_buf_puts(b, ", needed");
    }
    mo_buf_puts(b, "): ");
}

bool mo_term_needed(struct mo_json schema, struct mo_json key)
{
    mo_autobuf struct mo_buf name = {.max = TEXT_MAX};
    bool found = false;

    (void)mo_json_str_buf(key, &name);
    mo_json_each_while (it, mo_json_get(schema, "required"), !found)
        found = mo_json_str_eq(it.val, mo_buf_view(&name));
    return found;
}
