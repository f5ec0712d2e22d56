/* definition.c - rules for the members of a definition.
 *
 * An object is checked by a table with a rule for each of its members: a
 * member that is not good is removed, or mended by a function of its own, or a
 * reason to leave the object out. */
#include "mcp/definition.h"

#include <stdio.h>

#include "codec/json/jschema.h"
#include "mcp/edit.h"
#include "mcp/skill.h"

#define MEMBERS_MAX 8 /* of a table, as mo_edit() takes */
#define NAME_SHOWN  64

enum fix { FIX_NONE, FIX_REMOVE, FIX_REPLACE, FIX_REFUSE };

struct fault { /* the first thing that is wrong with an object */
    const char *member;
    const char *why; /* NULL: "MEMBER is not valid" */
};

struct rule {
    const char *name;
    /* One of these. good: of a member that may be absent and is removed if it
     * is not good. mend: v may be none; FIX_REPLACE: the new text is in to. */
    bool (*good)(struct mo_json v);
    enum fix (*mend)(struct mo_json v, struct mo_buf *to, const char **why);
};

/* --- mending an object --------------------------------------------------- */

struct mending {
    struct mo_json val[MEMBERS_MAX];
    struct mo_buf to[MEMBERS_MAX];
    struct mo_edit edits[MEMBERS_MAX];
    size_t nedits;
};

/* The last of a repeated key counts, as in JSON.parse. */
static void find_members(struct mending *m, const struct rule *rules,
                         struct mo_json obj)
{
    mo_json_each (it, obj) {
        for (size_t i = 0; rules[i].name; i++) {
            if (mo_json_str_eq(it.key, mo_span_cstr(rules[i].name)))
                m->val[i] = it.val;
        }
    }
}

static enum fix look_at(const struct rule *r, struct mo_json v,
                        struct mo_buf *to, const char **why)
{
    if (r->mend)
        return r->mend(v, to, why);
    return !v.p || r->good(v) ? FIX_NONE : FIX_REMOVE;
}

static enum fix collect_edits(struct mending *m, const struct rule *rules,
                              struct fault *f)
{
    for (size_t i = 0; rules[i].name; i++) {
        const char *why = NULL;
        enum fix fix = look_at(&rules[i], m->val[i], &m->to[i], &why);

        if (fix == FIX_NONE)
            continue;
        if (!f->member || fix == FIX_REFUSE)
            *f = (struct fault){rules[i].name, why};
        if (fix == FIX_REFUSE)
            return FIX_REFUSE;
        m->edits[m->nedits++] = (struct mo_edit){
            rules[i].name,
            fix == FIX_REPLACE ? mo_buf_view(&m->to[i]) : mo_span(NULL, 0)};
    }
    return m->nedits ? FIX_REPLACE : FIX_NONE;
}

/* FIX_REPLACE: the mended object is in out. */
static enum fix mend_object(const struct rule *rules, struct mo_json obj,
                            struct mo_buf *out, struct fault *f)
{
    struct mending m = {.nedits = 0};
    enum fix fix = FIX_NONE;

    if (!mo_json_is(obj, MO_JSON_OBJECT))
        return FIX_REFUSE;
    for (size_t i = 0; i < MEMBERS_MAX; i++)
        mo_buf_init(&m.to[i], 2 * obj.n + 64);
    find_members(&m, rules, obj);
    fix = collect_edits(&m, rules, f);
    if (fix == FIX_REPLACE && mo_edit(out, obj, m.edits, m.nedits) < 0)
        fix = FIX_REFUSE;
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        mo_buf_pass_err(out, &m.to[i]);
        mo_buf_fini(&m.to[i]);
    }
    return fix;
}

/* --- simple members ------------------------------------------------------ */

static bool is_string(struct mo_json v)
{
    return mo_json_is(v, MO_JSON_STRING);
}

static bool is_boolean(struct mo_json v)
{
    return mo_json_is(v, MO_JSON_BOOL);
}

static bool is_number(struct mo_json v)
{
    return mo_json_is(v, MO_JSON_NUMBER);
}

static bool is_object(struct mo_json v)
{
    return mo_json_is(v, MO_JSON_OBJECT);
}

static bool is_array_of(struct mo_json v, bool (*good)(struct mo_json v))
{
    if (!mo_json_is(v, MO_JSON_ARRAY))
        return false;
    mo_json_each (m, v) {
        if (!good(m.val))
            return false;
    }
    return true;
}

static bool are_strings(struct mo_json v)
{
    return is_array_of(v, is_string);
}

static enum fix need_string(struct mo_json v, struct mo_buf *to,
                            const char **why)
{
    (void)to;
    (void)why;
    return is_string(v) ? FIX_NONE : FIX_REFUSE;
}

/* --- icons and annotations ----------------------------------------------- */

static bool is_theme(struct mo_json v)
{
    return mo_json_str_eq(v, MO_SPAN("light")) ||
           mo_json_str_eq(v, MO_SPAN("dark"));
}

static const struct rule icon_rules[] = {
    {"src", NULL, need_string},   {"mimeType", is_string, NULL},
    {"sizes", are_strings, NULL}, {"theme", is_theme, NULL},
    {NULL, NULL, NULL},
};

static bool is_icon(struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = 2 * v.n + 64};
    struct fault f = {NULL, NULL};

    return mend_object(icon_rules, v, &b, &f) == FIX_NONE;
}

static bool are_icons(struct mo_json v)
{
    return is_array_of(v, is_icon);
}

static bool is_role(struct mo_json v)
{
    return mo_json_str_eq(v, MO_SPAN("user")) ||
           mo_json_str_eq(v, MO_SPAN("assistant"));
}

static bool are_roles(struct mo_json v)
{
    return is_array_of(v, is_role);
}

static bool is_priority(struct mo_json v)
{
    double n = -1;

    return mo_json_f64(v, &n) == 0 && n >= 0 && n <= 1;
}

/* RFC 3339 with a capital T, as in ISO 8601. */
static bool is_date(struct mo_json v)
{
    char text[40];

    return mo_json_str_copy(v, text, sizeof(text)) == 0 &&
           mo_jformat(MO_SPAN("date-time"), mo_span_cstr(text)) == 1 &&
           text[10] == 'T' && !strchr(text, 'z');
}

static const struct rule annotation_rules[] = {
    {"audience", are_roles, NULL},
    {"priority", is_priority, NULL},
    {"lastModified", is_date, NULL},
    {NULL, NULL, NULL},
};

static const struct rule hint_rules[] = {
    {"title", is_string, NULL},
    {"readOnlyHint", is_boolean, NULL},
    {"destructiveHint", is_boolean, NULL},
    {"idempotentHint", is_boolean, NULL},
    {"openWorldHint", is_boolean, NULL},
    {NULL, NULL, NULL},
};

static enum fix mend_inside(const struct rule *rules, struct mo_json v,
                            struct mo_buf *to)
{
    struct fault f = {NULL, NULL};

    if (!v.p)
        return FIX_NONE;
    return is_object(v) ? mend_object(rules, v, to, &f) : FIX_REMOVE;
}

static enum fix mend_annotations(struct mo_json v, struct mo_buf *to,
                                 const char **why)
{
    (void)why;
    return mend_inside(annotation_rules, v, to);
}

static enum fix mend_hints(struct mo_json v, struct mo_buf *to,
                           const char **why)
{
    (void)why;
    return mend_inside(hint_rules, v, to);
}

/* --- schemas ------------------------------------------------------------- */

static enum fix replace_by(struct mo_buf *to, const char *text)
{
    return mo_buf_puts(to, text) == 0 ? FIX_REPLACE : FIX_REFUSE;
}

static enum fix mend_type(struct mo_json v, struct mo_buf *to, const char **why)
{
    bool may_be_object = false;

    *why = "its inputSchema has no type";
    if (!v.p)
        return replace_by(to, "\"object\"");
    if (mo_json_str_eq(v, MO_SPAN("object")))
        return FIX_NONE;
    mo_json_each_while (m, v, mo_json_is(v, MO_JSON_ARRAY))
        may_be_object |= mo_json_str_eq(m.val, MO_SPAN("object"));
    *why = "its inputSchema is not of type object";
    return may_be_object ? replace_by(to, "\"object\"") : FIX_REFUSE;
}

/* Clients expect an object for each property. true and false are schemas, too;
 * anything else is replaced by the schema that accepts every value. */
static void put_property(struct mo_buf *to, struct mo_json v)
{
    if (is_object(v))
        mo_buf_span(to, mo_json_text(v));
    else
        mo_buf_puts(to, mo_span_is(mo_json_text(v), "false") ? "{\"not\":{}}"
                                                             : "{}");
}

static enum fix mend_properties(struct mo_json v, struct mo_buf *to,
                                const char **why)
{
    bool good = true;

    (void)why;
    if (v.p && !is_object(v))
        return FIX_REMOVE;
    mo_json_each (m, v)
        good = good && is_object(m.val);
    if (good)
        return FIX_NONE;
    mo_buf_putc(to, '{');
    mo_json_each (m, v) {
        if (to->len > 1)
            mo_buf_putc(to, ',');
        mo_buf_span(to, mo_json_text(m.key));
        mo_buf_putc(to, ':');
        put_property(to, m.val);
    }
    return mo_buf_putc(to, '}') == 0 ? FIX_REPLACE : FIX_REFUSE;
}

static const struct rule schema_rules[] = {
    {"type", NULL, mend_type},
    {"properties", NULL, mend_properties},
    {"required", are_strings, NULL},
    {NULL, NULL, NULL},
};

static enum fix mend_input(struct mo_json v, struct mo_buf *to,
                           const char **why)
{
    struct fault f = {NULL, NULL};
    enum fix fix = FIX_REFUSE;

    *why = "it has no inputSchema";
    if (!v.p || mo_json_is(v, MO_JSON_NULL) ||
        mo_span_is(mo_json_text(v), "true"))
        return replace_by(to, "{\"type\":\"object\"}");
    *why = "its inputSchema is not an object";
    if (!is_object(v))
        return FIX_REFUSE;
    fix = mend_object(schema_rules, v, to, &f);
    *why = f.why;
    return fix;
}

/* Since 2026-07-28 a result may have any type; older clients get such a schema
 * wrapped (server/ep_down.c). Only a schema of objects is mended. */
static enum fix mend_output(struct mo_json v, struct mo_buf *to,
                            const char **why)
{
    struct mo_json type = mo_json_get(v, "type");
    struct fault f = {NULL, NULL};
    enum fix fix = FIX_NONE;

    (void)why;
    if (!v.p)
        return FIX_NONE;
    if (mo_json_str_eq(type, MO_SPAN("object")) ||
        (!type.p && is_object(mo_json_get(v, "properties"))))
        fix = mend_object(schema_rules, v, to, &f);
    if (fix == FIX_REPLACE)
        v = (struct mo_json){to->p, to->len};
    return fix == FIX_REFUSE || !mo_definition_schema_compiles(v) ? FIX_REMOVE
                                                                  : fix;
}

static bool is_execution(struct mo_json v)
{
    static const char *const words[] = {"required", "optional", "forbidden",
                                        NULL};
    struct mo_json support = mo_json_get(v, "taskSupport");

    return is_object(v) && (!support.p || mo_json_str_in(support, words));
}

/* --- prompts ------------------------------------------------------------- */

static const struct rule argument_rules[] = {
    {"name", NULL, need_string},
    {"description", is_string, NULL},
    {"required", is_boolean, NULL},
    {NULL, NULL, NULL},
};

/* Appends a mended argument; one without a name is dropped. True: unchanged. */
static bool put_argument(struct mo_buf *to, struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = 2 * v.n + 64};
    struct fault f = {NULL, NULL};
    enum fix fix = mend_object(argument_rules, v, &b, &f);

    mo_buf_pass_err(to, &b);
    if (fix == FIX_REFUSE)
        return false;
    if (to->len > 1)
        mo_buf_putc(to, ',');
    mo_buf_span(to, fix == FIX_NONE ? mo_json_text(v) : mo_buf_view(&b));
    return fix == FIX_NONE;
}

static enum fix mend_arguments(struct mo_json v, struct mo_buf *to,
                               const char **why)
{
    bool good = true;

    (void)why;
    if (!v.p)
        return FIX_NONE;
    if (!mo_json_is(v, MO_JSON_ARRAY))
        return FIX_REMOVE;
    mo_buf_putc(to, '[');
    mo_json_each (m, v)
        good = put_argument(to, m.val) && good;
    if (mo_buf_putc(to, ']') < 0)
        return FIX_REFUSE;
    return good ? FIX_NONE : FIX_REPLACE;
}

/* --- the kinds ----------------------------------------------------------- */

static const struct rule tool_rules[] = {
    {"title", is_string, NULL},
    {"description", is_string, NULL},
    {"icons", are_icons, NULL},
    {"_meta", is_object, NULL},
    {"inputSchema", NULL, mend_input},
    {"outputSchema", NULL, mend_output},
    {"annotations", NULL, mend_hints},
    {"execution", is_execution, NULL},
    {NULL, NULL, NULL},
};

static const struct rule resource_rules[] = {
    {"title", is_string, NULL},
    {"description", is_string, NULL},
    {"icons", are_icons, NULL},
    {"_meta", is_object, NULL},
    {"mimeType", is_string, NULL},
    {"size", is_number, NULL},
    {"annotations", NULL, mend_annotations},
    {NULL, NULL, NULL},
};

static const struct rule prompt_rules[] = {
    {"title", is_string, NULL},          {"description", is_string, NULL},
    {"icons", are_icons, NULL},          {"_meta", is_object, NULL},
    {"arguments", NULL, mend_arguments}, {NULL, NULL, NULL},
};

static const struct {
    const struct rule *rules;
    const char *id, *what;
} kinds[MO_DEFINITION_KINDS] = {
    [MO_DEFINITION_TOOL] = {tool_rules, "name", "tool"},
    [MO_DEFINITION_RESOURCE] = {resource_rules, "uri", "resource"},
    [MO_DEFINITION_TEMPLATE] = {resource_rules, "uriTemplate", "template"},
    [MO_DEFINITION_PROMPT] = {prompt_rules, "name", "prompt"},
    [MO_DEFINITION_SKILL] = {NULL, "uri", "skill"},
};

/* A skill is what its digests say: nothing of it can be mended. */
static enum fix check_skill(struct mo_json item, struct fault *f)
{
    f->why = mo_skill_check(item);
    return f->why ? FIX_REFUSE : FIX_NONE;
}

/* A resource needs a name beside its URI. */
static enum fix mend_item(enum mo_definition_kind kind, struct mo_json item,
                          struct mo_buf *out, struct fault *f)
{
    struct mo_json id = mo_json_get(item, kinds[kind].id);
    const struct mo_edit name = {"name", mo_json_text(id)};
    mo_autobuf struct mo_buf named = {.max = 2 * item.n + 64};
    enum fix fix = FIX_NONE;

    if (!is_string(id))
        return FIX_NONE; /* the catalogue leaves it out */
    if (kind == MO_DEFINITION_SKILL)
        return check_skill(item, f);
    if (is_string(mo_json_get(item, "name")))
        return mend_object(kinds[kind].rules, item, out, f);
    *f = (struct fault){"name", "it has no name"};
    (void)mo_edit(&named, item, &name, 1);
    mo_buf_pass_err(out, &named);
    if (mo_buf_err(&named))
        return FIX_REFUSE;
    item = (struct mo_json){named.p, named.len};
    fix = mend_object(kinds[kind].rules, item, out, f);
    if (fix == FIX_NONE && mo_buf_span(out, mo_json_text(item)) == 0)
        fix = FIX_REPLACE;
    return fix;
}

/* --- notes --------------------------------------------------------------- */

static void add_note(char text[MO_DEFINITION_TEXT_MAX],
                     enum mo_definition_kind kind, struct mo_json item,
                     const struct fault *f)
{
    mo_autobuf struct mo_buf name = {.max = MO_DEFINITION_TEXT_MAX};
    size_t at = strlen(text), room = MO_DEFINITION_TEXT_MAX - at;
    int n = 0;

    (void)mo_json_str_buf(mo_json_get(item, kinds[kind].id), &name);
    n = snprintf(text + at, room, "%s%s %.*s (%s%s)", at ? ", " : "",
                 kinds[kind].what, NAME_SHOWN, mo_buf_cstr(&name),
                 f->why      ? f->why
                 : f->member ? f->member
                             : "",
                 f->why ? "" : " is not valid");
    if (n > 0 && (size_t)n >= room)
        text[at] = '\0'; /* counted, not named */
}

void mo_definition_note_left_out(struct mo_definition_notes *notes,
                                 enum mo_definition_kind kind,
                                 struct mo_json item, const char *why)
{
    notes->nleft_out++;
    add_note(notes->left_out, kind, item, &(struct fault){NULL, why});
}

/* --- a list -------------------------------------------------------------- */

/* Appends the items before the first wrong one. */
static void put_before(struct mo_buf *b, struct mo_json items,
                       struct mo_json until)
{
    mo_json_each (m, items) {
        if (m.val.p == until.p)
            return;
        if (b->len > 1)
            mo_buf_putc(b, ',');
        mo_buf_span(b, mo_json_text(m.val));
    }
}

static void put_mended(struct mo_buf *b, struct mo_span text)
{
    if (b->len > 1)
        mo_buf_putc(b, ',');
    mo_buf_span(b, text);
}

struct mo_json mo_definition_mend(enum mo_definition_kind kind,
                                  struct mo_json items, struct mo_buf *b,
                                  struct mo_definition_notes *notes)
{
    bool changed = false;
    mo_autobuf struct mo_buf one = {.max = 2 * items.n + 64};

    mo_json_each (m, items) {
        struct fault f = {NULL, NULL};
        enum fix fix = FIX_NONE;

        mo_buf_reset(&one);
        fix = mend_item(kind, m.val, &one, &f);
        if (mo_buf_err(&one) == MO_ETOOBIG) { /* repeated members were mended */
            fix = FIX_REFUSE;
            f = (struct fault){NULL, "it repeats members"};
        } else if (mo_buf_err(&one)) {
            return (struct mo_json){NULL, 0};
        }
        if (fix != FIX_NONE && !changed) {
            changed = true;
            mo_buf_putc(b, '[');
            put_before(b, items, m.val);
        }
        if (fix == FIX_REPLACE) {
            notes->nmended++;
            add_note(notes->mended, kind, m.val, &f);
        } else if (fix != FIX_NONE) {
            notes->nleft_out++;
            add_note(notes->left_out, kind, m.val, &f);
            continue;
        }
        if (changed)
            put_mended(b, fix == FIX_NONE ? mo_json_text(m.val)
                                          : mo_buf_view(&one));
    }
    if (!changed)
        return items;
    if (mo_buf_putc(b, ']') < 0)
        return (struct mo_json){NULL, 0};
    return (struct mo_json){b->p, b->len};
}
