#include "mcp/script/stubs.h"

#include "codec/text/utf8.h"
#include "mcp/script/names.h"

#define STUB_MAX    ((size_t)16 * 1024)
#define DEPTH_MAX   8
#define PROPS_MAX   64
#define UNION_MAX   8
#define ENUM_MAX    64
#define LITERAL_MAX 200  /* bytes of JSON */
#define TEXT_MAX    2000 /* of a tool's description */
#define HINT_MAX    300  /* of an argument's */

/* One tool while it is written. */
struct stub {
    const struct mo_script_tool *tool;
    const char *id; /* for the names of types */
    enum mo_script_language language;
    struct mo_arena arena; /* unescaped texts */
    struct mo_buf types, text;
    unsigned made; /* names of types */
};

static bool is_python(const struct stub *s)
{
    return s->language == MO_SCRIPT_PYTHON;
}

/* python or other, as the language is. */
static void put(struct stub *s, struct mo_buf *b, const char *python,
                const char *other)
{
    mo_buf_puts(b, is_python(s) ? python : other);
}

/* --- texts of servers ---------------------------------------------------- */

/* Controls, line separators of Unicode, and marks that turn text around. */
static bool is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xfeff ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f);
}

/* The first character, cut off *s. Bytes that are none: U+FFFD. */
static uint32_t take_char(struct mo_span *s)
{
    uint32_t c = MO_UTF8_REPLACEMENT;
    int n = mo_utf8_get(*s, &c);

    *s = mo_span_skip(*s, n > 0 ? (size_t)n : 1);
    return n > 0 ? c : MO_UTF8_REPLACEMENT;
}

static void put_char(struct mo_buf *b, uint32_t c)
{
    char bytes[4];

    mo_buf_put(b, bytes, mo_utf8_put(bytes, c));
}

/* A string literal that both languages read. All that is_hidden() names lies
 * below U+10000. */
static void put_string(struct mo_buf *b, struct mo_span s)
{
    mo_buf_putc(b, '"');
    while (s.n) {
        uint32_t c = take_char(&s);

        if (is_hidden(c)) {
            mo_buf_printf(b, "\\u%04x", (unsigned)c);
            continue;
        }
        if (c == '"' || c == '\\')
            mo_buf_putc(b, '\\');
        put_char(b, c);
    }
    mo_buf_putc(b, '"');
}

/* A part of a comment: three quotes in a row would end that of Python, a star
 * and a slash that of TypeScript. */
static void put_comment(struct stub *s, struct mo_span text, size_t max,
                        const char *indent)
{
    bool cut = text.n > max, python = is_python(s);
    unsigned quotes = 0;
    uint32_t last = 0;

    text = mo_span_head(text, cut ? mo_utf8_cut(text, max) : text.n);
    while (text.n) {
        uint32_t c = take_char(&text);

        quotes = c == '"' ? quotes + 1 : 0;
        if (c == '\n') {
            mo_buf_puts(&s->text, indent);
        } else {
            if (python ? c == '\\' || quotes == 3 : c == '/' && last == '*')
                mo_buf_putc(&s->text, '\\');
            put_char(&s->text, is_hidden(c) ? ' ' : c);
        }
        quotes = quotes == 3 ? 0 : quotes;
        last = c;
    }
    if (cut)
        mo_buf_puts(&s->text, " ...");
}

/* --- types --------------------------------------------------------------- */

static void put_type(struct stub *s, struct mo_buf *b, struct mo_json schema,
                     unsigned depth);

static void put_any(struct stub *s, struct mo_buf *b)
{
    put(s, b, "Any", "unknown");
}

static bool is_literal(struct stub *s, struct mo_json v)
{
    int64_t n;

    if (v.n > LITERAL_MAX)
        return false;
    switch (mo_json_type(v)) {
    case MO_JSON_STRING:
    case MO_JSON_BOOL:
    case MO_JSON_NULL:
        return true;
    case MO_JSON_NUMBER:
        return !is_python(s) || mo_json_i64(v, &n) == 0;
    case MO_JSON_NONE:
    case MO_JSON_ARRAY:
    case MO_JSON_OBJECT:
        break;
    }
    return false;
}

static void put_literal(struct stub *s, struct mo_buf *b, struct mo_json v)
{
    struct mo_span text;
    bool on = false;

    if (mo_json_is(v, MO_JSON_NUMBER)) {
        mo_buf_span(b, mo_json_text(v));
    } else if (mo_json_bool(v, &on) == 0) {
        put(s, b, on ? "True" : "False", on ? "true" : "false");
    } else if (mo_json_is(v, MO_JSON_NULL)) {
        put(s, b, "None", "null");
    } else if (mo_json_str(v, &s->arena, &text) == 0) {
        put_string(b, text);
    } else {
        (void)mo_buf_fail(b, MO_ENOMEM);
    }
}

/* values: the members of an enum. */
static void put_enum(struct stub *s, struct mo_buf *b, struct mo_json values)
{
    size_t n = mo_json_len(values);
    bool first = true;

    mo_json_each (it, values) {
        if (!is_literal(s, it.val))
            n = 0;
    }
    if (n == 0 || n > ENUM_MAX || !mo_json_is(values, MO_JSON_ARRAY)) {
        put_any(s, b);
        return;
    }
    put(s, b, "Literal[", "");
    mo_json_each (it, values) {
        if (!first)
            put(s, b, ", ", " | ");
        first = false;
        put_literal(s, b, it.val);
    }
    put(s, b, "]", "");
}

static void put_const(struct stub *s, struct mo_buf *b, struct mo_json value)
{
    if (!is_literal(s, value)) {
        put_any(s, b);
        return;
    }
    put(s, b, "Literal[", "");
    put_literal(s, b, value);
    put(s, b, "]", "");
}

static bool is_required(struct mo_json schema, struct mo_span key)
{
    mo_json_each (it, mo_json_get(schema, "required")) {
        if (mo_json_str_eq(it.val, key))
            return true;
    }
    return false;
}

/* A member that another one of the same name does not replace. */
static bool is_last(struct mo_json object, struct mo_span key,
                    struct mo_json val)
{
    return mo_json_find(object, key).p == val.p;
}

static bool is_identifier(struct mo_span s)
{
    return s.n && !mo_is_digit(s.p[0]) && mo_span_only(s, MO_ALNUM "_");
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void put_members(struct stub *s, struct mo_buf *b, struct mo_json schema,
                        unsigned depth)
{
    struct mo_json props = mo_json_get(schema, "properties");

    mo_json_each (it, props) {
        struct mo_span key;
        bool needed;

        if (mo_json_str(it.key, &s->arena, &key) < 0) {
            (void)mo_buf_fail(b, MO_ENOMEM);
            return;
        }
        if (!is_last(props, key, it.val))
            continue;
        needed = is_required(schema, key);
        put(s, b, "    ", "");
        if (!is_python(s) && is_identifier(key))
            mo_buf_span(b, key);
        else
            put_string(b, key);
        put(s, b, ": ", needed ? ": " : "?: ");
        put_type(s, b, it.val, depth + 1);
        put(s, b, needed ? ",  # required\n" : ",\n", "; ");
    }
}

/* A type with members: Python names it, TypeScript writes it in place. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void put_struct(struct stub *s, struct mo_buf *b, struct mo_json schema,
                       unsigned depth)
{
    mo_autobuf struct mo_buf own = {.max = STUB_MAX};
    unsigned number = ++s->made;

    if (!is_python(s)) {
        mo_buf_puts(b, "{ ");
        put_members(s, b, schema, depth);
        mo_buf_putc(b, '}');
        return;
    }
    put_members(s, &own, schema, depth);
    mo_buf_pass_err(&s->types, &own);
    mo_buf_printf(&s->types, "%s_%u = TypedDict(\"%s_%u\", {\n", s->id, number,
                  s->id, number);
    mo_buf_span(&s->types, mo_buf_view(&own));
    mo_buf_puts(&s->types, "}, total=False)\n\n");
    mo_buf_printf(b, "%s_%u", s->id, number);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void put_object(struct stub *s, struct mo_buf *b, struct mo_json schema,
                       unsigned depth)
{
    struct mo_json props = mo_json_get(schema, "properties");
    size_t n = mo_json_is(props, MO_JSON_OBJECT) ? mo_json_len(props) : 0;

    if (n && n <= PROPS_MAX) {
        put_struct(s, b, schema, depth);
        return;
    }
    put(s, b, "dict[str, ", "Record<string, ");
    if (n)
        put_any(s, b);
    else
        put_type(s, b, mo_json_get(schema, "additionalProperties"), depth + 1);
    put(s, b, "]", ">");
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void put_named(struct stub *s, struct mo_buf *b, struct mo_json schema,
                      struct mo_json name, unsigned depth)
{
    static const struct {
        const char *name, *python, *other;
    } rows[] = {
        {"string", "str", "string"},   {"integer", "int", "number"},
        {"number", "float", "number"}, {"boolean", "bool", "boolean"},
        {"null", "None", "null"},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (mo_json_str_eq(name, mo_span_cstr(rows[i].name))) {
            put(s, b, rows[i].python, rows[i].other);
            return;
        }
    }
    if (mo_json_str_eq(name, MO_SPAN("object"))) {
        put_object(s, b, schema, depth);
    } else if (mo_json_str_eq(name, MO_SPAN("array"))) {
        put(s, b, "list[", "Array<");
        put_type(s, b, mo_json_get(schema, "items"), depth + 1);
        put(s, b, "]", ">");
    } else {
        put_any(s, b);
    }
}

/* list: schemas, or names of types of this schema. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void put_union(struct stub *s, struct mo_buf *b, struct mo_json schema,
                      struct mo_json list, unsigned depth)
{
    size_t n = mo_json_is(list, MO_JSON_ARRAY) ? mo_json_len(list) : 0;
    bool first = true;

    if (n == 0 || n > UNION_MAX) {
        put_any(s, b);
        return;
    }
    put(s, b, "Union[", "");
    mo_json_each (it, list) {
        if (!first)
            put(s, b, ", ", " | ");
        first = false;
        if (mo_json_is(it.val, MO_JSON_STRING))
            put_named(s, b, schema, it.val, depth + 1);
        else
            put_type(s, b, it.val, depth + 1);
    }
    put(s, b, "]", "");
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void put_plain(struct stub *s, struct mo_buf *b, struct mo_json schema,
                      unsigned depth)
{
    static const char *const unions[] = {"anyOf", "oneOf"};
    struct mo_json type = mo_json_get(schema, "type");
    struct mo_json values = mo_json_get(schema, "enum");
    struct mo_json value = mo_json_get(schema, "const");

    for (size_t i = 0; i < MO_COUNT(unions); i++) {
        struct mo_json list = mo_json_get(schema, unions[i]);

        if (list.p && !mo_json_is(type, MO_JSON_STRING)) {
            put_union(s, b, schema, list, depth);
            return;
        }
    }
    if (values.p)
        put_enum(s, b, values);
    else if (value.p)
        put_const(s, b, value);
    else if (mo_json_is(type, MO_JSON_ARRAY))
        put_union(s, b, schema, type, depth);
    else if (type.p)
        put_named(s, b, schema, type, depth);
    else if (mo_json_is(mo_json_get(schema, "properties"), MO_JSON_OBJECT))
        put_object(s, b, schema, depth);
    else
        put_any(s, b);
}

/* DEPTH_MAX bounds the recursion. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void put_type(struct stub *s, struct mo_buf *b, struct mo_json schema,
                     unsigned depth)
{
    bool nullable = mo_json_flag(schema, "nullable");

    if (depth > DEPTH_MAX || !mo_json_is(schema, MO_JSON_OBJECT) ||
        mo_buf_err(b)) {
        put_any(s, b);
        return;
    }
    put(s, b, nullable ? "Optional[" : "", "");
    put_plain(s, b, schema, depth);
    if (nullable)
        put(s, b, "]", " | null");
}

/* --- one tool ------------------------------------------------------------ */

static void put_result(struct stub *s)
{
    put(s, &s->text, ") -> ", "): Promise<");
    put_type(s, &s->text, s->tool->output, 0);
    put(s, &s->text, ":\n", ">;\n");
}

/* Description of the tool, then of its arguments. */
static void put_words(struct stub *s)
{
    const char *line = is_python(s) ? "\n    " : "\n   * ";
    struct mo_json props = mo_json_get(s->tool->input, "properties");
    bool first = true;

    put(s, &s->text, "    \"\"\"", "  /**\n   * ");
    put_comment(s, s->tool->description, TEXT_MAX, line);
    mo_json_each (it, props) {
        struct mo_span key, hint;
        struct mo_json what = mo_json_get(it.val, "description");

        if (!mo_json_is(what, MO_JSON_STRING) ||
            mo_json_str(it.key, &s->arena, &key) < 0 ||
            mo_json_str(what, &s->arena, &hint) < 0)
            continue;
        if (first)
            mo_buf_puts(&s->text, line);
        first = false;
        mo_buf_puts(&s->text, line);
        put_comment(s, key, HINT_MAX, " ");
        mo_buf_puts(&s->text, ": ");
        put_comment(s, hint, HINT_MAX, " ");
    }
    put(s, &s->text, "\n    \"\"\"\n\n\n", "\n   */\n");
}

/* True if every argument can be a parameter of Python. */
static bool has_parameters(struct stub *s)
{
    struct mo_json props = mo_json_get(s->tool->input, "properties");
    size_t n = 0;

    mo_json_each (it, props) {
        struct mo_span key;

        if (++n > PROPS_MAX || mo_json_str(it.key, &s->arena, &key) < 0 ||
            !is_identifier(key) || mo_script_is_keyword(key) ||
            mo_span_starts(key, MO_SPAN("__")))
            return false;
    }
    return n > 0;
}

static void put_parameters(struct stub *s)
{
    struct mo_json props = mo_json_get(s->tool->input, "properties");

    mo_buf_puts(&s->text, "*");
    mo_json_each (it, props) {
        struct mo_span key;

        if (mo_json_str(it.key, &s->arena, &key) < 0) {
            (void)mo_buf_fail(&s->text, MO_ENOMEM);
            return;
        }
        if (!is_last(props, key, it.val))
            continue;
        mo_buf_puts(&s->text, ", ");
        mo_buf_span(&s->text, key);
        mo_buf_puts(&s->text, ": ");
        put_type(s, &s->text, it.val, 1);
        if (!is_required(s->tool->input, key))
            mo_buf_puts(&s->text, " = ...");
    }
}

static void put_arguments(struct stub *s)
{
    struct mo_json input = s->tool->input;
    bool needed = mo_json_len(mo_json_get(input, "required")) > 0;

    put(s, &s->text, "arguments: ", needed ? "args: " : "args?: ");
    put_object(s, &s->text, input, 0);
    put(s, &s->text, needed ? "" : " = ...", "");
}

static void put_call(struct stub *s)
{
    put(s, &s->text, "@overload\ndef call(name: Literal[", "  call(name: ");
    put_string(&s->text, s->tool->name);
    put(s, &s->text, "], ", ", ");
    put_arguments(s);
    put(s, &s->text, ", raw: bool = False", ", options?: { raw?: boolean }");
    put_result(s);
}

static void put_function(struct stub *s, const char *id)
{
    put(s, &s->text, "def ", "  ");
    mo_buf_puts(&s->text, id);
    mo_buf_putc(&s->text, '(');
    if (is_python(s) && has_parameters(s)) {
        put_parameters(s);
    } else {
        put_arguments(s);
        put(s, &s->text, ", /", "");
    }
    put_result(s);
}

static int write_stub(struct stub *s, const char *id)
{
    if (!is_python(s))
        put_words(s);
    if (id[0])
        put_function(s, id);
    else
        put_call(s);
    if (is_python(s))
        put_words(s);
    return mo_buf_err(&s->text) ? mo_buf_err(&s->text) : mo_buf_err(&s->types);
}

void mo_stub_put(const struct mo_script_tool *t, const char *id,
                 enum mo_script_language l, struct mo_buf *types,
                 struct mo_buf *out)
{
    static const struct mo_json none = {NULL, 0};
    struct mo_script_tool plain = {
        .name = t->name, .input = none, .output = none};
    struct stub s = {.tool = t, .id = id[0] ? id : "call", .language = l};

    for (int i = 0; i < 2; i++) {
        int rc;

        mo_arena_init(&s.arena, 4 * STUB_MAX);
        mo_buf_init(&s.text, STUB_MAX);
        mo_buf_init(&s.types, STUB_MAX);
        rc = write_stub(&s, id);
        if (rc == 0) {
            if (types)
                mo_buf_span(types, mo_buf_view(&s.types));
            mo_buf_span(out, mo_buf_view(&s.text));
        }
        mo_buf_fini(&s.text);
        mo_buf_fini(&s.types);
        mo_arena_fini(&s.arena);
        if (rc == 0)
            return;
        s.tool = &plain; /* without types and words */
        s.made = 0;
    }
}

/* --- all of them --------------------------------------------------------- */

void mo_stubs_head(enum mo_script_language l, struct mo_buf *out)
{
    mo_buf_puts(out,
                l == MO_SCRIPT_PYTHON
                    ? "\"\"\"Tools that this script mentions: declarations "
                      "for readers. See tools.py.\"\"\"\n"
                      "from __future__ import annotations\n\n"
                      "from typing import (Any, Literal, Optional, "
                      "TypedDict, Union, overload)\n\n"
                    : "/** Tools that this script mentions. See "
                      "tools.mjs. */\n"
                      "export interface Tools {\n");
}

void mo_stubs_tail(enum mo_script_language l, struct mo_buf *out)
{
    if (l == MO_SCRIPT_PYTHON)
        return;
    mo_buf_puts(out,
                "  call(name: string, args?: object, options?: "
                "{ raw?: boolean }): Promise<unknown>;\n"
                "  find(words: string, limit?: number): Promise<Array<{ name: "
                "string; description?: string; confidence: number }>>;\n"
                "}\n\ndeclare const tools: Tools;\nexport default tools;\n");
}
