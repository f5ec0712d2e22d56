/* json_edit.c - splices values into JSON text; see json_edit.h. */
#include "config/json_edit.h"

struct member {
    struct mo_json key, val;
    struct mo_json before; /* value of the member before it, or none */
    struct mo_json after;  /* key of the next, or none */
};

/* The members of an object that a new member copies its layout from. */
struct layout {
    struct mo_json first, key, val; /* first key, last member */
    size_t n;
};

static struct layout layout_of(struct mo_json obj)
{
    struct layout s = {.n = 0};

    mo_json_each (it, obj) {
        if (s.n++ == 0)
            s.first = it.key;
        s.key = it.key;
        s.val = it.val;
    }
    return s;
}

static bool find_member(struct mo_json obj, const char *name,
                        struct member *out)
{
    struct mo_json last = {NULL, 0};
    bool found = false, next = false;

    mo_json_each (it, obj) {
        if (next)
            out->after = it.key;
        next = mo_json_str_eq(it.key, mo_span_cstr(name));
        if (next) {
            *out =
                (struct member){.key = it.key, .val = it.val, .before = last};
            found = true;
        }
        last = it.val;
    }
    return found;
}

static int parse_object(struct mo_span text, struct mo_json *root,
                        struct mo_err *e)
{
    struct mo_json_doc doc;
    int rc = mo_json_parse(text, 0, &doc, e);

    if (rc < 0)
        return rc;
    if (!mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "the text is not an object: { ... }");
    *root = doc.root;
    return 0;
}

/* --- style --------------------------------------------------------------- */

static struct mo_span between(const char *from, const char *to)
{
    return mo_span(from, (size_t)(to - from));
}

/* The blanks at the start of the line of p. */
static struct mo_span indent_at(struct mo_span text, const char *p)
{
    const char *start = p, *end;

    while (start > text.p && start[-1] != '\n')
        start--;
    for (end = start; end < p && (*end == ' ' || *end == '\t');)
        end++;
    return mo_span_head(between(start, end), MO_JSON_EDIT_INDENT);
}

static bool starts_line(struct mo_span text, const char *p)
{
    struct mo_span in = indent_at(text, p);

    return in.p + in.n == p && p > text.p;
}

/* The indentation of one level: that of the outermost object, else two
 * blanks. */
static struct mo_span indent_unit(struct mo_span text, struct mo_json root)
{
    struct layout s = layout_of(root);

    if (s.n && starts_line(text, s.first.p) && indent_at(text, s.first.p).n)
        return indent_at(text, s.first.p);
    return MO_SPAN("  ");
}

static struct mo_span find_newline(struct mo_span text)
{
    return mo_span_search(text, MO_SPAN("\r\n")) >= 0 ? MO_SPAN("\r\n")
                                                      : MO_SPAN("\n");
}

struct style {
    struct mo_span nl, unit;
    struct mo_span indent; /* of the member; unused on one line */
    bool lines;
};

/* Writes a value in the style. mo_json_pretty() has two blanks per level and
 * LF, which are replaced. */
static void put_value(struct mo_buf *b, struct mo_json v,
                      const struct style *st)
{
    mo_autobuf struct mo_buf pretty = {.max = b->max};
    struct mo_span rest;
    bool first = true;

    if (!st->lines) {
        mo_json_compact(v, b);
        return;
    }
    if (mo_json_pretty(v, &pretty) < 0)
        b->err = mo_buf_err(&pretty);
    rest = mo_buf_view(&pretty);
    while (rest.p) {
        struct mo_span line = mo_span_cut(&rest, '\n');

        if (!first) {
            mo_buf_span(b, st->nl);
            mo_buf_span(b, st->indent);
        }
        for (; mo_span_starts(line, MO_SPAN("  "));
             line = mo_span_skip(line, 2))
            mo_buf_span(b, st->unit);
        mo_buf_span(b, line);
        first = false;
    }
}

static void put_member(struct mo_buf *b, const char *name, struct mo_span colon,
                       struct mo_json v, const struct style *st)
{
    mo_json_quote(b, mo_span_cstr(name));
    mo_buf_span(b, colon);
    put_value(b, v, st);
}

/* --- setting ------------------------------------------------------------- */

/* Adds a member after the last one. */
static void append_member(struct mo_span text, struct mo_json obj,
                          const char *name, struct mo_json v, struct style *st,
                          struct mo_buf *b)
{
    struct layout s = layout_of(obj);
    struct mo_span colon = between(s.key.p + s.key.n, s.val.p);
    struct mo_span lead = between(obj.p + 1, s.first.p);

    st->lines = starts_line(text, s.key.p);
    st->indent = indent_at(text, s.key.p);
    mo_buf_span(b, between(text.p, s.val.p + s.val.n));
    mo_buf_putc(b, ',');
    if (st->lines) {
        mo_buf_span(b, st->nl);
        mo_buf_span(b, st->indent);
    } else {
        mo_buf_span(b, lead.n || colon.n == 1 ? lead : MO_SPAN(" "));
    }
    put_member(b, name, colon, v, st);
    mo_buf_span(b, between(s.val.p + s.val.n, text.p + text.n));
}

/* Adds the first member of {}. */
static void put_first_member(struct mo_span text, struct mo_json obj,
                             const char *name, struct mo_json v,
                             struct style st, struct mo_buf *b)
{
    struct mo_span outer = indent_at(text, obj.p);
    char indent[2 * MO_JSON_EDIT_INDENT];
    bool alone = obj.p + obj.n == mo_span_trim(text).p + mo_span_trim(text).n;

    /* an empty file has no style: use separate lines */
    st.lines = alone || mo_span_find(text, '\n') >= 0;
    memcpy(indent, outer.p, outer.n);
    memcpy(indent + outer.n, st.unit.p, st.unit.n);
    st.indent = mo_span(indent, outer.n + st.unit.n);
    mo_buf_span(b, between(text.p, obj.p + 1));
    if (st.lines) {
        mo_buf_span(b, st.nl);
        mo_buf_span(b, st.indent);
    }
    put_member(b, name, MO_SPAN(": "), v, &st);
    if (st.lines) {
        mo_buf_span(b, st.nl);
        mo_buf_span(b, outer);
    }
    mo_buf_span(b, between(obj.p + obj.n - 1, text.p + text.n));
}

static void replace_value(struct mo_span text, const struct member *m,
                          struct mo_json v, struct style *st, struct mo_buf *b)
{
    st->lines = starts_line(text, m->key.p);
    st->indent = indent_at(text, m->key.p);
    mo_buf_span(b, between(text.p, m->val.p));
    put_value(b, v, st);
    mo_buf_span(b, between(m->val.p + m->val.n, text.p + text.n));
}

/* Writes {"b":{"c":value}} for the keys of a path that do not exist yet. */
static int wrap_value(const char *const *path, struct mo_span value,
                      struct mo_buf *b)
{
    size_t n = 0;

    for (; path[n]; n++) {
        mo_buf_putc(b, '{');
        mo_json_quote(b, mo_span_cstr(path[n]));
        mo_buf_putc(b, ':');
    }
    mo_buf_span(b, value);
    while (n-- > 0)
        mo_buf_putc(b, '}');
    return mo_buf_err(b);
}

static int insert_member(struct mo_span text, struct mo_json obj,
                         const char *const *path, struct mo_span value,
                         struct style *st, struct mo_buf *out, struct mo_err *e)
{
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf b = {.max = out->max};
    int rc = wrap_value(path + 1, value, &b);

    if (rc < 0)
        (void)mo_fail(e, rc, "out of memory");
    else
        rc = mo_json_parse(mo_buf_view(&b), 0, &doc, e);
    if (rc == 0 && mo_json_len(obj))
        append_member(text, obj, path[0], doc.root, st, out);
    else if (rc == 0)
        put_first_member(text, obj, path[0], doc.root, *st, out);
    return rc;
}

/* Follows the path as far as it exists: the innermost object, and the
 * remaining keys (at least one). */
static int descend_path(struct mo_json root, const char *const *path,
                        struct mo_json *obj, const char *const **left,
                        struct mo_err *e)
{
    struct member m;

    *obj = root;
    for (*left = path; (*left)[1] && find_member(*obj, **left, &m); (*left)++) {
        if (!mo_json_is(m.val, MO_JSON_OBJECT))
            return mo_fail(e, MO_EINVAL, "'%s' is not an object: { ... }",
                           **left);
        *obj = m.val;
    }
    return 0;
}

int mo_json_edit_set(struct mo_span text, const char *const *path,
                     struct mo_span value, struct mo_buf *out, struct mo_err *e)
{
    struct style st = {.nl = find_newline(text)};
    const char *const *left = path;
    struct mo_json_doc doc;
    struct mo_json root = {NULL, 0}, obj = {NULL, 0};
    struct member m;
    int rc = parse_object(text, &root, e);

    if (rc == 0)
        rc = descend_path(root, path, &obj, &left, e);
    if (rc < 0)
        return rc;
    st.unit = indent_unit(text, root);
    if (left[1] || !find_member(obj, *left, &m)) {
        rc = insert_member(text, obj, left, value, &st, out, e);
    } else {
        rc = mo_json_parse(value, 0, &doc, e);
        if (rc == 0)
            replace_value(text, &m, doc.root, &st, out);
    }
    if (rc == 0 && mo_buf_err(out))
        rc = mo_fail(e, mo_buf_err(out), "the text is too long");
    return rc;
}

/* --- deleting ------------------------------------------------------------ */

int mo_json_edit_del(struct mo_span text, const char *const *path,
                     struct mo_buf *out, struct mo_err *e)
{
    const char *const *left = path;
    const char *from, *to;
    struct mo_json root = {NULL, 0}, obj = {NULL, 0};
    struct member m;
    int rc = parse_object(text, &root, e);

    if (rc == 0)
        rc = descend_path(root, path, &obj, &left, e);
    if (rc < 0)
        return rc;
    if (left[1] || !find_member(obj, *left, &m))
        return mo_fail(e, MO_ENOTFOUND, "there is no '%.80s'", *left);
    from = m.key.p;
    to = m.val.p + m.val.n;
    if (m.after.p) {
        to = m.after.p;
    } else if (m.before.p) {
        from = m.before.p + m.before.n;
    } else {
        from = obj.p + 1;
        to = obj.p + obj.n - 1;
    }
    mo_buf_span(out, between(text.p, from));
    mo_buf_span(out, between(to, text.p + text.n));
    return mo_buf_err(out) ? mo_fail(e, mo_buf_err(out), "the text is too long")
                           : 0;
}
