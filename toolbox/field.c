#include "toolbox/field.h"

#include "base/clock.h"

#define SHOWN 60 /* bytes of the peer's text in a message */

/* --- schema -------------------------------------------------------------- */

static const char *const type_names[] = {
    [TB_TEXT] = "string",  [TB_INT] = "integer",   [TB_SECONDS] = "number",
    [TB_BOOL] = "boolean", [TB_CHOICE] = "string", [TB_TEXTS] = "array",
    [TB_MAP] = "object",   [TB_ITEMS] = "array",
};

static void put_limits(struct mo_jw *w, const struct tb_field *f)
{
    if (f->min == 0 && f->max == 0)
        return;
    mo_jw_member_i64(w, "minimum", f->min);
    mo_jw_member_i64(w, "maximum", f->max);
}

static void put_choices(struct mo_jw *w, const struct tb_field *f)
{
    mo_jw_key(w, "enum");
    mo_jw_arr(w);
    for (size_t i = 0; f->choices[i]; i++)
        mo_jw_cstr(w, f->choices[i]);
    mo_jw_end(w);
}

static void put_strings(struct mo_jw *w, const char *key)
{
    mo_jw_key(w, key);
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "type", "string");
    mo_jw_end(w);
}

/* Results nest two deep (a list of objects with lists of lines). */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void put_field(struct mo_jw *w, const struct tb_field *f, bool closed)
{
    mo_jw_key(w, f->name);
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "type", type_names[f->type]);
    if (f->what)
        mo_jw_member_cstr(w, "description", f->what);
    put_limits(w, f);
    if (f->type == TB_CHOICE)
        put_choices(w, f);
    if (f->type == TB_TEXTS)
        put_strings(w, "items");
    if (f->type == TB_MAP)
        put_strings(w, "additionalProperties");
    if (f->type == TB_ITEMS) {
        mo_jw_key(w, "items");
        tb_fields_schema(w, f->items, closed);
    }
    mo_jw_end(w);
}

void tb_fields_schema(struct mo_jw *w, const struct tb_field *f, bool closed)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "type", "object");
    mo_jw_key(w, "properties");
    mo_jw_obj(w);
    for (const struct tb_field *i = f; i->name; i++)
        put_field(w, i, closed);
    mo_jw_end(w);
    mo_jw_key(w, "required");
    mo_jw_arr(w);
    for (const struct tb_field *i = f; i->name; i++) {
        if (i->required)
            mo_jw_cstr(w, i->name);
    }
    mo_jw_end(w);
    if (closed) {
        mo_jw_member_bool(w, "additionalProperties", false);
    }
    mo_jw_end(w);
}

/* --- reading ------------------------------------------------------------- */

static int fail_range(const struct tb_field *f, struct mo_err *e)
{
    return mo_fail(e, MO_EINVAL, "%s must lie between %lld and %lld", f->name,
                   (long long)f->min, (long long)f->max);
}

static int read_text(struct mo_json v, const struct tb_field *f,
                     struct mo_arena *a, void *to, struct mo_err *e)
{
    if (!mo_json_is(v, MO_JSON_STRING))
        return mo_fail(e, MO_EINVAL, "%s must be a string", f->name);
    if (mo_json_str(v, a, to) < 0)
        return mo_fail(e, MO_ENOMEM, "%s: out of memory", f->name);
    return 0;
}

static int read_int(struct mo_json v, const struct tb_field *f,
                    struct mo_arena *a, void *to, struct mo_err *e)
{
    int64_t n;

    (void)a;
    if (mo_json_i64(v, &n) < 0)
        return mo_fail(e, MO_EINVAL, "%s must be an integer", f->name);
    if (n < f->min || n > f->max)
        return fail_range(f, e);
    *(int64_t *)to = n;
    return 0;
}

/* "1", "0.25": digits, of which three after the point count. No floating point:
 * in the static program it would be larger than all the tools. */
static int read_seconds(struct mo_json v, const struct tb_field *f,
                        struct mo_arena *a, void *to, struct mo_err *e)
{
    struct mo_span rest = mo_json_text(v);
    struct mo_span whole = mo_span_cut(&rest, '.');
    uint64_t s, ms = 0, unit = 100;

    (void)a;
    if (!mo_json_is(v, MO_JSON_NUMBER) || mo_span_u64(whole, &s) < 0)
        return mo_fail(e, MO_EINVAL, "%s must be a plain number of seconds",
                       f->name);
    for (size_t i = 0; i < rest.n; i++, unit /= 10) {
        if (rest.p[i] < '0' || rest.p[i] > '9')
            return mo_fail(e, MO_EINVAL, "%s must be a plain number of seconds",
                           f->name);
        ms += (uint64_t)(rest.p[i] - '0') * unit;
    }
    if (s < (uint64_t)f->min || s + (ms > 0) > (uint64_t)f->max)
        return fail_range(f, e);
    *(uint64_t *)to = (s * 1000 + ms) * MO_MS;
    return 0;
}

static int read_bool(struct mo_json v, const struct tb_field *f,
                     struct mo_arena *a, void *to, struct mo_err *e)
{
    (void)a;
    if (mo_json_bool(v, to) < 0)
        return mo_fail(e, MO_EINVAL, "%s must be true or false", f->name);
    return 0;
}

static int read_choice(struct mo_json v, const struct tb_field *f,
                       struct mo_arena *a, void *to, struct mo_err *e)
{
    (void)a;
    for (unsigned i = 0; f->choices[i]; i++) {
        if (mo_json_str_eq(v, mo_span_cstr(f->choices[i]))) {
            *(unsigned *)to = i;
            return 0;
        }
    }
    return mo_fail(e, MO_EINVAL, "%s must be one of \"%s\", \"%s\"", f->name,
                   f->choices[0], f->choices[1] ? f->choices[1] : "");
}

static int read_strings(struct mo_json v, const struct tb_field *f,
                        struct mo_arena *a, void *to, struct mo_err *e)
{
    bool map = f->type == TB_MAP;
    struct mo_json_iter it;
    struct mo_json key, val;

    (void)a;
    if (!mo_json_is(v, map ? MO_JSON_OBJECT : MO_JSON_ARRAY))
        return mo_fail(e, MO_EINVAL, "%s must be an %s of strings", f->name,
                       map ? "object" : "array");
    mo_json_iter(&it, v);
    while (mo_json_next(&it, &key, &val)) {
        if (!mo_json_is(val, MO_JSON_STRING))
            return mo_fail(e, MO_EINVAL, "%s may hold strings only", f->name);
    }
    *(struct mo_json *)to = v;
    return 0;
}

typedef int reader(struct mo_json v, const struct tb_field *f,
                   struct mo_arena *a, void *to, struct mo_err *e);

static reader *const readers[] = {
    [TB_TEXT] = read_text,       [TB_INT] = read_int,
    [TB_SECONDS] = read_seconds, [TB_BOOL] = read_bool,
    [TB_CHOICE] = read_choice,   [TB_TEXTS] = read_strings,
    [TB_MAP] = read_strings,
};

static const struct tb_field *find_field(const struct tb_field *f,
                                         struct mo_json key)
{
    for (; f->name; f++) {
        if (mo_json_str_eq(key, mo_span_cstr(f->name)))
            return f;
    }
    return NULL;
}

/* List the known names for a model that invented one. */
static int fail_unknown(const struct tb_field *f, struct mo_json key,
                        struct mo_err *e)
{
    struct mo_span name = mo_span_head(mo_json_text(key), SHOWN);
    mo_autobuf struct mo_buf known = {.max = 256};

    for (; f->name; f++)
        mo_buf_printf(&known, " %s", f->name);
    return mo_fail(e, MO_EINVAL, "there is no argument %.*s; known are:%s",
                   (int)name.n, name.p, mo_buf_cstr(&known));
}

static int check_required(struct mo_json args, const struct tb_field *f,
                          struct mo_err *e)
{
    for (; f->name; f++) {
        if (f->required && !mo_json_get(args, f->name).p)
            return mo_fail(e, MO_EINVAL, "the argument %s is missing", f->name);
    }
    return 0;
}

int tb_fields_read(struct mo_json args, const struct tb_field *f,
                   struct mo_arena *a, void *out, struct mo_err *e)
{
    struct mo_json_iter it;
    struct mo_json key, val;

    mo_json_iter(&it, args);
    while (mo_json_next(&it, &key, &val)) {
        const struct tb_field *hit = find_field(f, key);
        int rc;

        if (!hit)
            return fail_unknown(f, key, e);
        if (!hit->required && mo_json_is(val, MO_JSON_NULL))
            continue; /* many clients write null for an absent value */
        rc = readers[hit->type](val, hit, a, (char *)out + hit->at, e);
        if (rc < 0)
            return rc;
    }
    return check_required(args, f, e);
}
