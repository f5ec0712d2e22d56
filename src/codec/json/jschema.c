#include "codec/json/jschema.h"

#include <stdio.h>

#include "codec/json/jschema_priv.h"

#define REF_MAX 1024 /* bytes of a $ref; longer ones do not resolve */

/* --- limits and notes ---------------------------------------------------- */

bool mo_jsv_spend(struct mo_jsv *c, size_t steps)
{
    if (c->rc == 0 && c->steps >= steps) {
        c->steps -= steps;
        return true;
    }
    c->steps = 0;
    c->rc = MO_ETOOBIG;
    if (!c->why)
        c->why = "takes too much work";
    return false;
}

bool mo_jsv_note(struct mo_jsv *c, unsigned note)
{
    c->out->notes |= note;
    return true;
}

/* --- reporting ----------------------------------------------------------- */

/* A fixed buffer filled from the left and cut at a character. */
struct line {
    char *p;
    size_t len, room;
    bool full;
};

static void put_span(struct line *l, struct mo_span s)
{
    size_t n = l->room - l->len;

    if (l->full)
        return;
    if (s.n > n) {
        s.n = mo_utf8_cut(s, n > 3 ? n - 3 : 0);
        l->full = true;
    }
    memcpy(l->p + l->len, s.p, s.n);
    l->len += s.n;
    if (l->full && l->room - l->len >= 3) {
        memcpy(l->p + l->len, "...", 3);
        l->len += 3;
    }
}

static bool is_name(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!mo_is_alpha(c) && !mo_is_digit(c) && c != '_' && c != '-' &&
            c != '$')
            return false;
    }
    return s.n > 0;
}

static void put_place(struct line *l, const struct mo_jsv_path *at)
{
    struct mo_span name = mo_span(at->key.p, at->key.n);
    char index[32];
    int n;

    if (!at->key.p) {
        n = snprintf(index, sizeof(index), "[%zu]", at->index);
        put_span(l, mo_span(index, (size_t)n));
        return;
    }
    if (is_name(mo_span(name.p + 1, name.n - 2))) {
        put_span(l, MO_SPAN("."));
        put_span(l, mo_span(name.p + 1, name.n - 2));
        return;
    }
    put_span(l, MO_SPAN("["));
    put_span(l, name);
    put_span(l, MO_SPAN("]"));
}

/* The chain is newest first and printed oldest first. It is no longer than the
 * walk is deep, so recursion is bounded. */
static void put_path(struct line *l, const struct mo_jsv_path *at)
{
    if (!at)
        return;
    put_path(l, at->up);
    put_place(l, at);
}

/* A part of the value's text may hold newlines between its tokens. */
static void one_line(char *p)
{
    for (; *p; p++) {
        if ((unsigned char)*p < ' ')
            *p = ' ';
    }
}

bool mo_jsv_say(struct mo_jsv *c, const struct mo_jsv_path *at, const char *fmt,
                ...)
{
    struct mo_jschema_result *r = c->out;
    struct mo_jschema_error *err;
    struct line path, text;
    char tmp[512]; /* more than any message can have */
    va_list ap;

    if (c->quiet || c->rc)
        return false;
    if (r->nerrors++ >= MO_JSCHEMA_ERRORS_MAX)
        return false;
    err = &r->errors[r->nerrors - 1];
    path = (struct line){err->path, 0, sizeof(err->path) - 1, false};
    put_span(&path, mo_span_cstr(c->o->name ? c->o->name : "value"));
    put_path(&path, at);
    err->path[path.len] = '\0';
    va_start(ap, fmt);
    vsnprintf(tmp, sizeof(tmp), fmt, ap);
    va_end(ap);
    text = (struct line){err->text, 0, sizeof(err->text) - 1, false};
    put_span(&text, mo_span_cstr(tmp));
    err->text[text.len] = '\0';
    one_line(err->text);
    one_line(err->path);
    return false;
}

int mo_jschema_put(struct mo_buf *b, const struct mo_jschema_result *r)
{
    size_t kept = r->nerrors;

    if (kept > MO_JSCHEMA_ERRORS_MAX)
        kept = MO_JSCHEMA_ERRORS_MAX;
    for (size_t i = 0; i < kept; i++)
        mo_buf_printf(b, "%s: %s\n", r->errors[i].path, r->errors[i].text);
    if (kept < r->nerrors)
        mo_buf_printf(b, "and %zu more\n", r->nerrors - kept);
    return mo_buf_err(b);
}

/* --- references ---------------------------------------------------------- */

bool mo_jsv_text(struct mo_json v, char *out, size_t room)
{
    struct mo_jchars c;
    uint32_t cp;
    size_t n = 0;

    mo_jchars(&c, v);
    while (mo_jchars_next(&c, &cp)) {
        if (cp == 0 || room - n < 5)
            return false;
        n += mo_utf8_put(out + n, cp);
    }
    out[n] = '\0';
    return true;
}

/* Decode one step of a JSON pointer in place: %XX, then ~1 and ~0. */
static bool decode_step(char *s)
{
    char *to = s;

    for (char *from = s; *from; to++) {
        if (*from != '%') {
            *to = *from++;
            continue;
        }
        if (mo_hex_digit(from[1]) < 0 || mo_hex_digit(from[2]) < 0)
            return false;
        *to = (char)(mo_hex_digit(from[1]) << 4 | mo_hex_digit(from[2]));
        from += 3;
        if (!*to)
            return false;
    }
    *to = '\0';
    to = s;
    for (char *from = s; *from; to++) {
        bool esc = from[0] == '~' && (from[1] == '0' || from[1] == '1');

        *to = esc ? (from[1] == '0' ? '~' : '/') : *from;
        from += esc ? 2 : 1;
    }
    *to = '\0';
    return true;
}

/* p: "/a/b", is written over. */
static struct mo_json follow(struct mo_jsv *c, struct mo_json v, char *p)
{
    const struct mo_json none = {NULL, 0};

    while (p && v.p) {
        char *step = p + 1, *slash = strchr(step, '/');
        uint64_t i;

        if (slash)
            *slash = '\0';
        if (!decode_step(step) || !mo_jsv_spend(c, 1 + v.n / 64))
            return none;
        if (mo_json_is(v, MO_JSON_OBJECT))
            v = mo_json_get(v, step);
        else if (mo_span_u64(mo_span_cstr(step), &i) == 0)
            v = mo_json_at(v, i);
        else
            v = none;
        p = slash;
    }
    return v;
}

/* Find the object that has this $anchor. Recursion is as deep as the schema's
 * text, which mo_json_parse() limits. */
static struct mo_json find_anchor(struct mo_jsv *c, struct mo_json v,
                                  const char *name)
{
    struct mo_json found = {NULL, 0};

    if (!mo_jsv_spend(c, 1 + v.n / 64))
        return found;
    if (mo_json_str_eq(mo_json_get(v, "$anchor"), mo_span_cstr(name + 1)) ||
        mo_json_str_eq(mo_json_get(v, "$id"), mo_span_cstr(name)))
        return v;
    mo_json_each_while (it, v, !found.p) {
        if (mo_json_is(it.val, MO_JSON_OBJECT) ||
            mo_json_is(it.val, MO_JSON_ARRAY))
            found = find_anchor(c, it.val, name);
    }
    return found;
}

struct mo_json mo_jsv_resolve(struct mo_jsv *c, struct mo_json ref)
{
    struct mo_json found = {NULL, 0}, id = mo_json_get(c->root, "$id");
    char text[REF_MAX], *hash;

    if (!mo_json_is(ref, MO_JSON_STRING) ||
        !mo_jsv_text(ref, text, sizeof(text))) {
        mo_jsv_note(c, MO_JSCHEMA_LOST_REF);
        return found;
    }
    hash = strchrnul(text, '#');
    if (hash != text &&
        !mo_json_str_eq(id, mo_span(text, (size_t)(hash - text)))) {
        mo_jsv_note(c, MO_JSCHEMA_REMOTE_REF);
        return found;
    }
    if (hash[0] == '\0' || hash[1] == '\0')
        return c->root;
    found = hash[1] == '/' ? follow(c, c->root, hash + 1)
                           : find_anchor(c, c->root, hash);
    if (!found.p)
        mo_jsv_note(c, MO_JSCHEMA_LOST_REF);
    return found;
}

/* --- the walk ------------------------------------------------------------ */

static void collect(struct mo_jsv_schema *s, struct mo_json schema)
{
    *s = (struct mo_jsv_schema){0};
    mo_json_each (it, schema) {
        for (size_t i = 0; i < K_COUNT; i++) {
            const char *name = mo_jsv_keywords[i].name;

            /* the second byte of the text is the first of the name, unless
             * it is written as an escape */
            if (it.key.p[1] != name[0] && it.key.p[1] != '\\')
                continue;
            if (mo_json_str_eq(it.key, mo_span_cstr(name)))
                s->kw[i] = it.val;
        }
    }
}

static bool check_all(struct mo_jsv *c, struct mo_json schema, struct mo_json v,
                      const struct mo_jsv_path *at)
{
    unsigned type = 1u << mo_json_type(v);
    struct mo_jsv_schema s;
    bool ok = true;

    collect(&s, schema);
    if (c->ref_alone && s.kw[K_REF].p)
        return mo_jsv_keywords[K_REF].check(c, &s, K_REF, v, at);
    for (size_t i = 0; i < K_COUNT && (ok || !c->quiet); i++) {
        const struct mo_jsv_keyword *kw = &mo_jsv_keywords[i];

        if (!s.kw[i].p || !kw->check || !(kw->types & type))
            continue;
        if (!kw->check(c, &s, (enum mo_jsk)i, v, at))
            ok = false;
        if (c->rc)
            return true;
    }
    return ok;
}

bool mo_jsv_walk(struct mo_jsv *c, struct mo_json schema, struct mo_json v,
                 const struct mo_jsv_path *at)
{
    bool yes, ok;

    if (mo_json_bool(schema, &yes) == 0)
        return yes || mo_jsv_say(c, at, "is not allowed here");
    if (!mo_json_is(schema, MO_JSON_OBJECT))
        return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    if (c->depth == MO_JSCHEMA_DEPTH_MAX) {
        c->rc = MO_ETOOBIG;
        c->why = "nests too deep";
    }
    if (!mo_jsv_spend(c, 1 + schema.n / 64))
        return true;
    c->depth++;
    ok = check_all(c, schema, v, at);
    c->depth--;
    return ok;
}

bool mo_jsv_holds(struct mo_jsv *c, struct mo_json schema, struct mo_json v,
                  const struct mo_jsv_path *at)
{
    bool ok;

    c->quiet++;
    ok = mo_jsv_walk(c, schema, v, at);
    c->quiet--;
    return ok;
}

/* "http://json-schema.org/draft-07/schema#" and older. */
static bool is_old(struct mo_json schema)
{
    struct mo_json dialect = mo_json_get(schema, "$schema");
    char text[128];

    return mo_json_is(dialect, MO_JSON_STRING) &&
           mo_jsv_text(dialect, text, sizeof(text)) &&
           strstr(text, "json-schema.org/draft-0");
}

int mo_jschema_check(struct mo_json schema, struct mo_json value,
                     const struct mo_jschema_opts *o,
                     struct mo_jschema_result *out, struct mo_err *e)
{
    static const struct mo_jschema_opts plain = {0};
    struct mo_jsv c = {.root = schema, .o = o ? o : &plain, .out = out};
    uint64_t budget = c.o->steps ? c.o->steps : MO_JSCHEMA_STEPS_MAX;

    *out = (struct mo_jschema_result){0};
    c.steps = budget;
    c.ref_alone = is_old(schema);
    out->valid = mo_jsv_walk(&c, schema, value, NULL);
    out->steps = budget - c.steps;
    if (!c.rc)
        return 0;
    out->valid = false;
    return mo_fail(e, c.rc, "the schema %s", c.why);
}
