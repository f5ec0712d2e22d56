/* llm_gschema.c - translates JSON Schema into the subset that Gemini supports.
 *
 * An unsupported keyword is moved into the description as text: the model can
 * still follow it, and arguments are checked against the full schema anyway.
 * Nothing becomes stricter.
 *
 * `const` becomes an enum with one value, `definitions` becomes `$defs`,
 * `allOf` with one schema becomes `anyOf` with one; next to a `$ref` only `$`
 * keywords stay. Members with unsupported names are moved likewise.
 *
 * Limits: DEPTH_MAX levels; deeper schemas accept anything. */
#include "agent/llm/llm_priv.h"
#include "codec/json/jvalue.h"

#define DEPTH_MAX 24
#define NOTE_MAX  ((size_t)2048) /* bytes of moved keywords in a description */
#define NAME_MAX_ 64

enum how { COPY, SCHEMA, SCHEMAS, MAP, DEFS, REF, TEXT, CONST, ALL };

static const struct {
    const char *word;
    enum how how;
} rows[] = {
    {"type", COPY},
    {"format", COPY},
    {"title", COPY},
    {"enum", COPY},
    {"minItems", COPY},
    {"maxItems", COPY},
    {"minimum", COPY},
    {"maximum", COPY},
    {"$id", COPY},
    {"$anchor", COPY},
    {"$ref", REF},
    {"$defs", DEFS},
    {"definitions", DEFS},
    {"description", TEXT},
    {"items", SCHEMA},
    {"additionalProperties", SCHEMA},
    {"prefixItems", SCHEMAS},
    {"anyOf", SCHEMAS},
    {"oneOf", SCHEMAS},
    {"allOf", ALL},
    {"properties", MAP},
    {"required", COPY},
    {"const", CONST},
};

struct walk {
    struct mo_jw w;
    unsigned depth;
};

static void put_schema(struct walk *x, struct mo_json s, bool root);

static int find_keyword(struct mo_json key)
{
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (mo_json_str_eq(key, mo_span_cstr(rows[i].word)))
            return (int)rows[i].how;
    }
    return -1;
}

static struct mo_span put_inside(struct mo_json str)
{
    return mo_span(str.p + 1, str.n - 2);
}

/* --- unsupported keywords ------------------------------------------------ */

static void drop_keyword(struct mo_buf *note, struct mo_json key,
                         struct mo_json val)
{
    if (mo_json_str_eq(key, MO_SPAN("$schema")) ||
        mo_json_str_eq(key, MO_SPAN("$comment")))
        return;
    if (note->len + key.n + val.n > NOTE_MAX)
        return;
    (void)mo_buf_puts(note, note->len ? "; " : "");
    (void)mo_buf_span(note, put_inside(key));
    (void)mo_buf_puts(note, ": ");
    (void)mo_json_compact(val, note);
}

static void put_description(struct walk *x, struct mo_json text,
                            const struct mo_buf *note)
{
    mo_autobuf struct mo_buf b = {.max = MO_LLM_REQUEST_MAX};

    if (!note->len && !mo_json_is(text, MO_JSON_STRING))
        return;
    if (mo_json_is(text, MO_JSON_STRING))
        (void)mo_json_str_buf(text, &b);
    if (note->len) {
        (void)mo_buf_puts(&b, b.len ? " (" : "(");
        (void)mo_buf_span(&b, mo_buf_view(note));
        (void)mo_buf_putc(&b, ')');
    }
    mo_jw_key(&x->w, "description");
    mo_jw_buf(&x->w, &b);
}

/* --- supported keywords -------------------------------------------------- */

static bool good_name(struct mo_json key)
{
    struct mo_span s = put_inside(key);

    return s.n > 0 && s.n <= NAME_MAX_ && (s.p[0] < '0' || s.p[0] > '9') &&
           mo_span_only(s, MO_ALNUM "_");
}

static void put_map(struct walk *x, struct mo_json map, struct mo_buf *note,
                    bool names)
{
    mo_jw_obj(&x->w);
    mo_json_each (at, map) {
        if (names ? !good_name(at.key)
                  : mo_span_find(put_inside(at.key), '\\') >= 0) {
            drop_keyword(note, at.key, at.val);
            continue;
        }
        mo_jw_key_raw(&x->w, at.key);
        put_schema(x, at.val, false);
    }
    mo_jw_end(&x->w);
}

static void put_list(struct walk *x, struct mo_json list)
{
    mo_jw_arr(&x->w);
    mo_json_each (at, list)
        put_schema(x, at.val, false);
    mo_jw_end(&x->w);
}

static void put_ref(struct walk *x, struct mo_json ref)
{
    static const struct mo_span old = {"#/definitions/", 14};
    struct mo_span s = put_inside(ref);
    mo_autobuf struct mo_buf b = {.max = ref.n + 16};

    if (mo_span_starts(s, old)) {
        (void)mo_buf_puts(&b, "#/$defs/");
        s = mo_span_skip(s, old.n);
    }
    (void)mo_buf_span(&b, s);
    mo_jw_str(&x->w, mo_buf_view(&b));
}

/* `required` must not list members that were left out. */
static void put_required(struct walk *x, struct mo_json list)
{
    mo_jw_arr(&x->w);
    mo_json_each (at, list) {
        if (mo_json_is(at.val, MO_JSON_STRING) && good_name(at.val))
            mo_jw_raw(&x->w, mo_json_text(at.val));
    }
    mo_jw_end(&x->w);
}

static bool fits_gemini(enum how how, struct mo_json v)
{
    static const enum mo_json_type want[] = {
        [SCHEMA] = MO_JSON_NONE, [SCHEMAS] = MO_JSON_ARRAY,
        [MAP] = MO_JSON_OBJECT,  [DEFS] = MO_JSON_OBJECT,
        [REF] = MO_JSON_STRING,  [TEXT] = MO_JSON_STRING,
        [CONST] = MO_JSON_NONE,  [ALL] = MO_JSON_ARRAY,
        [COPY] = MO_JSON_NONE,
    };

    if (how == ALL)
        return mo_json_is(v, MO_JSON_ARRAY) && mo_json_len(v) == 1;
    return want[how] == MO_JSON_NONE || mo_json_is(v, want[how]);
}

static void put_member(struct walk *x, struct mo_json k, struct mo_json v,
                       enum how how, struct mo_buf *note)
{
    static const char *const names[] = {
        [DEFS] = "$defs", [CONST] = "enum", [ALL] = "anyOf"};

    if (how == TEXT)
        return; /* written at the end, with the note */
    if (how == DEFS || how == CONST || how == ALL)
        mo_jw_key(&x->w, names[how]);
    else
        mo_jw_key_raw(&x->w, k);
    if (mo_json_str_eq(k, MO_SPAN("required"))) {
        put_required(x, v);
    } else if (how == COPY) {
        mo_jw_raw(&x->w, mo_json_text(v));
    } else if (how == CONST) {
        mo_jw_arr(&x->w);
        mo_jw_raw(&x->w, mo_json_text(v));
        mo_jw_end(&x->w);
    } else if (how == REF) {
        put_ref(x, v);
    } else if (how == SCHEMA && mo_json_is(v, MO_JSON_BOOL)) {
        mo_jw_raw(&x->w, mo_json_text(v));
    } else if (how == SCHEMA) {
        put_schema(x, v, false);
    } else if (how == MAP || how == DEFS) {
        put_map(x, v, note, how == MAP);
    } else {
        put_list(x, v);
    }
}

/* True if two keywords become the same one; only one is written. */
static bool is_duplicate(struct mo_json s, struct mo_json key)
{
    static const char *const pairs[][2] = {
        {"definitions", "$defs"}, {"const", "enum"}, {"allOf", "anyOf"}};

    for (size_t i = 0; i < MO_COUNT(pairs); i++) {
        if (mo_json_str_eq(key, mo_span_cstr(pairs[i][0])) &&
            mo_json_get(s, pairs[i][1]).p)
            return true;
    }
    return false;
}

/* The type of the root is already written. Of a duplicate keyword the last one
 * counts. */
static bool is_skipped(struct mo_json s, struct mo_json k, struct mo_json v,
                       bool root)
{
    return (root && mo_json_str_eq(k, MO_SPAN("type"))) ||
           mo_jvalue_find(s, k).p != v.p;
}

static void put_object(struct walk *x, struct mo_json s, bool root)
{
    bool ref = mo_json_is(mo_json_get(s, "$ref"), MO_JSON_STRING) && !root;
    struct mo_json text = {NULL, 0};
    mo_autobuf struct mo_buf note = {.max = 2 * NOTE_MAX + 4096};

    mo_json_each (at, s) {
        int how = find_keyword(at.key);

        if (how < 0 || !fits_gemini((enum how)how, at.val) ||
            is_duplicate(s, at.key) || (ref && put_inside(at.key).p[0] != '$'))
            drop_keyword(&note, at.key, at.val);
        else if (is_skipped(s, at.key, at.val, root))
            continue;
        else if (how == TEXT)
            text = at.val;
        else
            put_member(x, at.key, at.val, (enum how)how, &note);
    }
    if (!ref)
        put_description(x, text, &note);
    mo_buf_pass_err(x->w.b, &note);
}

/* true and false are schemas too; both are written as "anything". */
static void put_schema(struct walk *x, struct mo_json s, bool root)
{
    bool deep = x->depth >= DEPTH_MAX;

    x->depth++;
    mo_jw_obj(&x->w);
    if (root)
        mo_jw_member(&x->w, "type", MO_SPAN("object"));
    if (!deep && mo_json_is(s, MO_JSON_OBJECT))
        put_object(x, s, root);
    mo_jw_end(&x->w);
    x->depth--;
}

int mo_llm_gschema(struct mo_json schema, struct mo_buf *out)
{
    struct walk x = {.depth = 0};

    mo_jw_init(&x.w, out);
    put_schema(&x, schema, true);
    return mo_buf_err(out);
}
