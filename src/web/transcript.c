/* transcript.c - see transcript.h. */
#include "web/transcript.h"

#include "agent/chat/entry.h"

#define TEXT_MAX ((size_t)16 * 1024 * 1024)

static const char html_head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
    "'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'\">\n"
    "<meta name=\"robots\" content=\"noindex, nofollow\">\n"
    "<meta name=\"referrer\" content=\"no-referrer\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n"
    ":root{color-scheme:light dark}\n"
    "body{font:16px/1.55 system-ui,sans-serif;max-width:46rem;margin:2rem "
    "auto;padding:0 1rem}\n"
    "h2{font-size:.85rem;margin:1.6rem 0 .3rem;opacity:.7}\n"
    "pre,.text{white-space:pre-wrap;overflow-wrap:anywhere;margin:0}\n"
    "pre{font:13px/1.45 ui-monospace,monospace;background:#8881;padding:.6rem;"
    "border-radius:6px}\n"
    "img{max-width:100%}\n.note{opacity:.7;text-align:center}\n"
    "</style>\n<title>";

/* --- text ---------------------------------------------------------------- */

struct out {
    struct mo_buf *b;
    bool html;
};

static void put_escaped(struct mo_buf *b, struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        switch (s.p[i]) {
        case '&':
            mo_buf_puts(b, "&amp;");
            break;
        case '<':
            mo_buf_puts(b, "&lt;");
            break;
        case '>':
            mo_buf_puts(b, "&gt;");
            break;
        case '"':
            mo_buf_puts(b, "&quot;");
            break;
        case '\'':
            mo_buf_puts(b, "&#39;");
            break;
        default:
            mo_buf_putc(b, s.p[i]);
        }
    }
}

/* One line of Markdown: what would begin an element is escaped. */
static void put_line(const struct out *o, struct mo_span s)
{
    if (o->html) {
        put_escaped(o->b, s);
        return;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (strchr("\\`*_[]<>#|!", s.p[i]) && s.p[i])
            mo_buf_putc(o->b, '\\');
        mo_buf_putc(o->b, (unsigned char)s.p[i] < ' ' ? ' ' : s.p[i]);
    }
}

/* More backticks than the text has in a row. */
static void put_fence(struct mo_buf *b, struct mo_span s)
{
    size_t run = 0, most = 2;

    for (size_t i = 0; i < s.n; i++) {
        run = s.p[i] == '`' ? run + 1 : 0;
        most = run > most ? run : most;
    }
    for (size_t i = 0; i <= most; i++)
        mo_buf_putc(b, '`');
}

static void put_code(const struct out *o, struct mo_span s)
{
    if (o->html) {
        mo_buf_puts(o->b, "<pre>");
        put_escaped(o->b, s);
        mo_buf_puts(o->b, "</pre>\n");
        return;
    }
    put_fence(o->b, s);
    mo_buf_putc(o->b, '\n');
    mo_buf_span(o->b, s);
    if (s.n == 0 || s.p[s.n - 1] != '\n')
        mo_buf_putc(o->b, '\n');
    put_fence(o->b, s);
    mo_buf_puts(o->b, "\n\n");
}

/* A message or an answer: Markdown as it was written. */
static void put_text(const struct out *o, struct mo_span s)
{
    if (o->html) {
        mo_buf_puts(o->b, "<div class=\"text\">");
        put_escaped(o->b, s);
        mo_buf_puts(o->b, "</div>\n");
        return;
    }
    mo_buf_span(o->b, s);
    mo_buf_puts(o->b, "\n\n");
}

static void put_head(const struct out *o, const char *what, struct mo_span name)
{
    mo_buf_puts(o->b, o->html ? "<h2>" : "## ");
    mo_buf_puts(o->b, what);
    put_line(o, name);
    mo_buf_puts(o->b, o->html ? "</h2>\n" : "\n\n");
}

static void put_note(const struct out *o, struct mo_span text)
{
    mo_buf_puts(o->b, o->html ? "<p class=\"note\">" : "> ");
    put_line(o, text);
    mo_buf_puts(o->b, o->html ? "</p>\n" : "\n\n");
}

/* Runs f with the text of a JSON string. */
static void with_text(const struct out *o, struct mo_json v,
                      void (*f)(const struct out *o, struct mo_span s))
{
    mo_autobuf struct mo_buf text = {.max = TEXT_MAX};

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &text) == 0)
        f(o, mo_buf_view(&text));
    mo_buf_pass_err(o->b, &text);
}

/* --- content of tools ---------------------------------------------------- */

static bool is_picture(struct mo_span mime, struct mo_span data)
{
    static const char *const known[] = {"image/png", "image/jpeg", "image/gif",
                                        "image/webp"};

    for (size_t i = 0; i < MO_COUNT(known); i++)
        if (mo_span_is(mime, known[i]))
            return data.n > 0 && mo_span_only(data, MO_ALNUM "+/=");
    return false;
}

static void put_picture(const struct out *o, struct mo_json block)
{
    mo_autobuf struct mo_buf mime = {.max = 128}, data = {.max = TEXT_MAX};

    (void)mo_json_str_buf(mo_json_get(block, "mimeType"), &mime);
    (void)mo_json_str_buf(mo_json_get(block, "data"), &data);
    if (mo_buf_err(&mime) || mo_buf_err(&data) ||
        !is_picture(mo_buf_view(&mime), mo_buf_view(&data))) {
        put_note(o, MO_SPAN("(content that cannot be shown here)"));
        return;
    }
    mo_buf_printf(o->b,
                  o->html ? "<img alt=\"\" src=\"data:%s;base64,"
                          : "![picture](data:%s;base64,",
                  mo_buf_cstr(&mime));
    mo_buf_span(o->b, mo_buf_view(&data));
    mo_buf_puts(o->b, o->html ? "\">\n" : ")\n\n");
}

static bool is_web(struct mo_span uri)
{
    return (mo_span_starts(uri, MO_SPAN("https://")) ||
            mo_span_starts(uri, MO_SPAN("http://"))) &&
           mo_span_find(uri, ' ') < 0 && mo_span_find(uri, ')') < 0 &&
           mo_span_find(uri, '<') < 0 && mo_span_find(uri, '\n') < 0;
}

/* A link to a resource, or the address of one that is no page. */
static void put_link(const struct out *o, struct mo_json block)
{
    mo_autobuf struct mo_buf uri = {.max = 8192}, name = {.max = 8192};
    struct mo_span u;

    (void)mo_json_str_buf(mo_json_get(block, "uri"), &uri);
    (void)mo_json_str_buf(mo_json_get(block, "title"), &name);
    if (name.len == 0)
        (void)mo_json_str_buf(mo_json_get(block, "name"), &name);
    if (mo_buf_err(&uri) || mo_buf_err(&name))
        return;
    u = mo_buf_view(&uri);
    if (!is_web(u)) {
        mo_buf_puts(o->b, o->html ? "<p>" : "");
        put_line(o, mo_buf_view(&name));
        mo_buf_puts(o->b, name.len ? ": " : "");
        put_line(o, u);
    } else if (o->html) {
        mo_buf_puts(o->b, "<p><a rel=\"noreferrer nofollow\" href=\"");
        put_escaped(o->b, u);
        mo_buf_puts(o->b, "\">");
        put_line(o, name.len ? mo_buf_view(&name) : u);
        mo_buf_puts(o->b, "</a>");
    } else {
        mo_buf_putc(o->b, '[');
        put_line(o, name.len ? mo_buf_view(&name) : u);
        mo_buf_puts(o->b, "](");
        mo_buf_span(o->b, u);
        mo_buf_putc(o->b, ')');
    }
    mo_buf_puts(o->b, o->html ? "</p>\n" : "\n\n");
}

static void put_content(const struct out *o, struct mo_json block)
{
    struct mo_json type = mo_json_get(block, "type");
    struct mo_json inside = mo_json_get(block, "resource");

    if (mo_json_str_eq(type, MO_SPAN("text"))) {
        with_text(o, mo_json_get(block, "text"), put_code);
    } else if (mo_json_str_eq(type, MO_SPAN("image"))) {
        put_picture(o, block);
    } else if (mo_json_str_eq(type, MO_SPAN("resource_link"))) {
        put_link(o, block);
    } else if (mo_json_str_eq(type, MO_SPAN("resource"))) {
        put_link(o, inside);
        with_text(o, mo_json_get(inside, "text"), put_code);
    } else {
        put_note(o, MO_SPAN("(content that cannot be shown here)"));
    }
}

/* --- entries ------------------------------------------------------------- */

static void put_results(const struct out *o, struct mo_json entry)
{
    mo_json_each (at, mo_json_get(entry, "results")) {
        mo_autobuf struct mo_buf name = {.max = 1024};

        (void)mo_json_str_buf(mo_json_get(at.val, "name"), &name);
        put_head(o, mo_json_flag(at.val, "isError") ? "Failed: " : "Result of ",
                 mo_buf_view(&name));
        mo_json_each (c, mo_json_get(at.val, "content"))
            put_content(o, c.val);
    }
}

static void put_blocks(const struct out *o, struct mo_json entry)
{
    mo_json_each (at, mo_json_get(entry, "blocks")) {
        struct mo_json type = mo_json_get(at.val, "type");
        mo_autobuf struct mo_buf name = {.max = 1024};

        if (mo_json_str_eq(type, MO_SPAN("text"))) {
            with_text(o, mo_json_get(at.val, "text"), put_text);
        } else if (mo_json_str_eq(type, MO_SPAN("image"))) {
            put_picture(o, at.val);
        } else if (mo_json_str_eq(type, MO_SPAN("call"))) {
            (void)mo_json_str_buf(mo_json_get(at.val, "name"), &name);
            put_head(o, "Call of ", mo_buf_view(&name));
            put_code(o, mo_json_text(mo_json_get(at.val, "args")));
        }
    }
}

void mo_transcript_entry(struct mo_buf *b, enum mo_transcript_form form,
                         struct mo_json entry)
{
    const struct out o = {b, form == MO_TRANSCRIPT_HTML};

    switch (mo_entry_role(entry)) {
    case MO_ENTRY_USER:
        if (mo_json_flag(entry, "auto")) {
            put_note(&o, MO_SPAN("Continued"));
            break;
        }
        put_head(&o, "You", MO_SPAN(""));
        put_blocks(&o, entry);
        break;
    case MO_ENTRY_ASSISTANT:
        put_head(&o, "Assistant", MO_SPAN(""));
        if (!mo_json_flag(entry, "placeholder"))
            put_blocks(&o, entry);
        break;
    case MO_ENTRY_TOOL:
        put_results(&o, entry);
        break;
    case MO_ENTRY_NOTE:
        with_text(&o, mo_json_get(entry, "text"), put_note);
        break;
    case MO_ENTRY_SUMMARY:
        put_head(&o, "Summary of what came before", MO_SPAN(""));
        put_blocks(&o, entry);
        break;
    default:
        break;
    }
}

void mo_transcript_begin(struct mo_buf *b, enum mo_transcript_form form,
                         struct mo_span title)
{
    const struct out o = {b, form == MO_TRANSCRIPT_HTML};

    mo_buf_puts(b, o.html ? html_head : "# ");
    put_line(&o, title);
    mo_buf_puts(b, o.html ? "</title></head><body><main>\n<h1>" : "\n\n");
    if (!o.html)
        return;
    put_line(&o, title);
    mo_buf_puts(b, "</h1>\n");
}

void mo_transcript_end(struct mo_buf *b, enum mo_transcript_form form)
{
    if (form == MO_TRANSCRIPT_HTML)
        mo_buf_puts(b, "</main></body></html>\n");
}
