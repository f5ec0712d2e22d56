/* yaml.c - the part of YAML that programs write, as JSON; see yaml.h.
 *
 * The input is read line by line. `at` is the next line without its indentation
 * and comment. An item of a sequence is read by cutting "- " off its line,
 * which then counts as a line of that much more indentation. */
#include "codec/yaml.h"

#include "codec/json/json.h"
#include "codec/text/utf8.h"
#include "codec/yaml_core.h"

#define SCALAR_MAX ((size_t)1024 * 1024)

struct reader {
    struct mo_span rest; /* lines after `at` */
    struct mo_span at;
    size_t indent; /* of `at` */
    unsigned line; /* number of `at`; 0: none yet */
    bool over;     /* there is no `at` */
    unsigned depth;
    bool core; /* numbers, folded blocks and flows of YAML, too */
    struct mo_jw w;
    struct mo_err *e;
};

static int fail_at(struct reader *r, const char *what)
{
    return mo_fail(r->e, MO_EINVAL, "line %u: %s", r->line, what);
}

/* Of yaml_core.h: what is wrong, or that memory ran out. */
static int fail_core(struct reader *r, int rc, const char *what)
{
    return rc == MO_EINVAL ? fail_at(r, what)
           : rc < 0        ? mo_fail(r->e, rc, "the text")
                           : 0;
}

/* --- lines --------------------------------------------------------------- */

static struct mo_span strip_right(struct mo_span s)
{
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' ||
                   s.p[s.n - 1] == '\r'))
        s.n--;
    return s;
}

/* A comment begins with "#" at the beginning or after a blank, outside of
 * quotes. Quotes count only where a scalar begins: after a blank or at the
 * beginning. */
static struct mo_span strip_comment(struct mo_span s)
{
    char quote = 0;

    for (size_t i = 0; i < s.n; i++) {
        bool edge = i == 0 || s.p[i - 1] == ' ' || s.p[i - 1] == '\t';

        if (quote == '"' && s.p[i] == '\\')
            i++;
        else if (quote == '\'' && s.p[i] == quote && i + 1 < s.n &&
                 s.p[i + 1] == quote)
            i++;
        else if (quote && s.p[i] == quote)
            quote = 0;
        else if (!quote && edge && (s.p[i] == '"' || s.p[i] == '\''))
            quote = s.p[i];
        else if (!quote && edge && s.p[i] == '#')
            return mo_span_head(s, i);
    }
    return s;
}

static struct mo_span next_raw(struct reader *r)
{
    r->line++;
    return strip_right(mo_span_cut(&r->rest, '\n'));
}

static size_t indent_of(struct mo_span s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] == ' ')
        n++;
    return n;
}

/* Goes to the next line that has something. */
static int next_line(struct reader *r)
{
    while (r->rest.p) {
        struct mo_span s = next_raw(r);

        r->indent = indent_of(s);
        s = mo_span_skip(s, r->indent);
        if (s.n && s.p[0] == '\t')
            return fail_at(r, "a tab as indentation");
        r->at = strip_right(strip_comment(s));
        if (r->at.n)
            return 0;
    }
    r->over = true;
    r->at = MO_SPAN("");
    r->indent = 0;
    return 0;
}

static bool is_item(struct mo_span s)
{
    return s.n && s.p[0] == '-' && (s.n == 1 || s.p[1] == ' ');
}

/* --- scalars ------------------------------------------------------------- */

/* In the text of a plain scalar these would be something else. */
static bool is_plain(struct mo_span s)
{
    return s.n && !strchr("&*!|>%@`\"'#,[]{}?", s.p[0]) && !is_item(s) &&
           !(s.p[0] == ':' && (s.n == 1 || s.p[1] == ' ')) &&
           mo_span_search(s, MO_SPAN(": ")) < 0 && s.p[s.n - 1] != ':';
}

static int write_plain(struct reader *r, struct mo_span s)
{
    static const char *const words[] = {"true", "false", "null"};

    if (r->core)
        return fail_core(r, mo_yaml_core_plain(&r->w, s),
                         "this number is not one of JSON");
    for (size_t i = 0; i < MO_COUNT(words); i++)
        if (mo_span_is(s, words[i])) {
            mo_jw_raw(&r->w, s);
            return 0;
        }
    if (mo_span_is(s, "~"))
        mo_jw_null(&r->w);
    else
        mo_jw_str(&r->w, s);
    return 0;
}

/* Lines that are deeper than `parent` belong to it, joined by blanks. */
static int read_plain(struct reader *r, struct mo_span first, size_t parent)
{
    mo_autobuf struct mo_buf b = {.max = SCALAR_MAX};
    bool more = false;
    int rc;

    if (!is_plain(first))
        return fail_at(r, "this form of YAML is not supported");
    (void)mo_buf_span(&b, first);
    rc = next_line(r);
    while (rc == 0 && !r->over && r->indent > parent) {
        if (!is_plain(r->at))
            return fail_at(r, "this line belongs to no value");
        (void)mo_buf_putc(&b, ' ');
        (void)mo_buf_span(&b, r->at);
        more = true;
        rc = next_line(r);
    }
    if (more)
        mo_jw_buf(&r->w, &b);
    else if (rc == 0)
        rc = write_plain(r, first);
    return rc;
}

static int read_single_quoted(struct reader *r, struct mo_span s)
{
    mo_autobuf struct mo_buf b = {.max = SCALAR_MAX};
    size_t i = 1;

    for (; i < s.n; i++) {
        bool quote = s.p[i] == '\'';

        if (quote && (i + 1 == s.n || s.p[i + 1] != '\''))
            break;
        i += quote;
        (void)mo_buf_putc(&b, s.p[i]);
    }
    if (i + 1 != s.n)
        return fail_at(r, "a quoted text must end on its line");
    mo_jw_buf(&r->w, &b);
    return next_line(r);
}

/* A double quoted text, or a value in JSON notation. */
static int read_json(struct reader *r, struct mo_span s)
{
    struct mo_json_doc doc;

    if (r->core && s.p[0] != '"') {
        int rc = fail_core(r, mo_yaml_core_flow(&r->w, s),
                           "must be a list or map that ends on its line");

        return rc < 0 ? rc : next_line(r);
    }
    if (mo_json_parse(s, MO_YAML_DEPTH, &doc, NULL) < 0)
        return fail_at(r, "must be JSON that ends on its line");
    mo_jw_raw(&r->w, s);
    return next_line(r);
}

/* A block scalar. "|" keeps one line break at its end, "|-" none. In the core
 * schema ">" joins lines by blanks, and "+" keeps all line breaks. */
struct block {
    struct mo_buf text;
    size_t empty; /* lines since the last one with text */
    bool folded, any;
    bool deeper; /* the last line was indented further */
};

static void add_line(struct block *k, struct mo_span s)
{
    bool deeper = s.p[0] == ' ' || s.p[0] == '\t';
    bool joined = k->folded && k->any && !deeper && !k->deeper;
    size_t breaks = k->empty + (k->any && !joined);

    if (joined && !breaks)
        (void)mo_buf_putc(&k->text, ' ');
    for (size_t i = 0; i < breaks; i++)
        (void)mo_buf_putc(&k->text, '\n');
    (void)mo_buf_span(&k->text, s);
    k->any = true;
    k->deeper = deeper;
    k->empty = 0;
}

static void read_block_lines(struct reader *r, struct block *k, size_t parent)
{
    size_t indent = 0;

    while (r->rest.p) {
        struct mo_span before = r->rest, s = mo_span_cut(&r->rest, '\n');
        size_t n = indent_of(s);

        r->line++;
        if (s.n && s.p[s.n - 1] == '\r')
            s.n--;
        if (!strip_right(s).n) {
            k->empty += r->rest.p != NULL; /* not after the last line's end */
            continue;
        }
        if (!indent)
            indent = n;
        if (n <= parent || n < indent) {
            r->rest = before;
            r->line--;
            break;
        }
        add_line(k, mo_span_skip(s, indent));
    }
}

static int read_block(struct reader *r, struct mo_span head, size_t parent)
{
    struct block k = {.text = {.max = SCALAR_MAX}, .folded = head.p[0] == '>'};
    char end = head.n > 1 ? head.p[1] : ' ';

    read_block_lines(r, &k, parent);
    for (size_t i = 0; end == '+' && i < k.empty; i++)
        (void)mo_buf_putc(&k.text, '\n');
    if (end != '-' && k.any)
        (void)mo_buf_putc(&k.text, '\n');
    mo_jw_buf(&r->w, &k.text);
    mo_buf_fini(&k.text);
    return next_line(r);
}

static bool is_block_head(const struct reader *r, struct mo_span s)
{
    static const char *const core[] = {"|+", ">", ">-", ">+"};

    if (mo_span_is(s, "|") || mo_span_is(s, "|-"))
        return true;
    for (size_t i = 0; r->core && i < MO_COUNT(core); i++)
        if (mo_span_is(s, core[i]))
            return true;
    return false;
}

/* A value that begins on its key's line. */
static int read_scalar(struct reader *r, struct mo_span s, size_t parent)
{
    if (s.p[0] == '"' || s.p[0] == '[' || s.p[0] == '{')
        return read_json(r, s);
    if (s.p[0] == '\'')
        return read_single_quoted(r, s);
    if (is_block_head(r, s))
        return read_block(r, s, parent);
    return read_plain(r, s, parent);
}

/* --- collections --------------------------------------------------------- */

static int read_node(struct reader *r);

/* A value that begins below its key or dash. */
static int read_below(struct reader *r, size_t parent, bool is_key)
{
    int rc = next_line(r);

    if (rc < 0)
        return rc;
    if (!r->over && (r->indent > parent ||
                     (is_key && r->indent == parent && is_item(r->at))))
        return read_node(r);
    mo_jw_null(&r->w);
    return 0;
}

/* "key: value", "key:"; *value is empty for the latter. */
static int cut_key(struct reader *r, struct mo_span *key, struct mo_span *value)
{
    struct mo_span s = r->at;
    ptrdiff_t at = mo_span_search(s, MO_SPAN(": "));
    bool bare = at < 0 && s.p[s.n - 1] == ':';

    if (bare)
        at = (ptrdiff_t)s.n - 1;
    if (at <= 0)
        return fail_at(r, "must be \"key: value\"");
    *key = strip_right(mo_span_head(s, (size_t)at));
    *value = bare ? MO_SPAN("") : mo_span_trim(mo_span_skip(s, (size_t)at + 2));
    return 0;
}

static int write_key(struct reader *r, struct mo_span key)
{
    struct mo_json_doc doc;

    if (key.n && key.p[0] == '"') {
        if (mo_json_parse(key, 1, &doc, NULL) < 0 ||
            !mo_json_is(doc.root, MO_JSON_STRING))
            return fail_at(r, "the key is not valid");
        mo_jw_key_raw(&r->w, doc.root);
        return 0;
    }
    if (!is_plain(key))
        return fail_at(r, "the key is not valid");
    mo_jw_key_span(&r->w, key);
    return 0;
}

static int read_map(struct reader *r)
{
    size_t indent = r->indent;
    struct mo_span key = MO_SPAN(""), value = MO_SPAN("");
    int rc = 0;

    mo_jw_obj(&r->w);
    while (rc == 0 && !r->over && r->indent == indent && !is_item(r->at)) {
        rc = cut_key(r, &key, &value);
        if (rc == 0)
            rc = write_key(r, key);
        if (rc == 0)
            rc = value.n ? read_scalar(r, value, indent)
                         : read_below(r, indent, true);
    }
    if (rc == 0 && !r->over && r->indent > indent)
        return fail_at(r, "the indentation does not fit");
    if (rc == 0)
        mo_jw_end(&r->w);
    return rc;
}

static bool is_map_line(struct mo_span s)
{
    return s.p[0] != '[' && s.p[0] != '{' &&
           (s.p[s.n - 1] == ':' || mo_span_search(s, MO_SPAN(": ")) > 0) &&
           (s.p[0] != '"' && s.p[0] != '\'');
}

static int read_item(struct reader *r, size_t indent)
{
    struct mo_span s = mo_span_skip(r->at, 1);
    size_t blank = indent_of(s);

    s = mo_span_skip(s, blank);
    if (!s.n)
        return read_below(r, indent, false);
    if (!is_item(s) && !is_map_line(s))
        return read_scalar(r, s, indent);
    r->at = s;
    r->indent = indent + 1 + blank;
    return read_node(r);
}

static int read_seq(struct reader *r)
{
    size_t indent = r->indent;
    int rc = 0;

    mo_jw_arr(&r->w);
    while (rc == 0 && !r->over && r->indent == indent && is_item(r->at))
        rc = read_item(r, indent);
    if (rc == 0 && !r->over && r->indent > indent)
        return fail_at(r, "the indentation does not fit");
    if (rc == 0)
        mo_jw_end(&r->w);
    return rc;
}

static int read_node(struct reader *r)
{
    int rc;

    if (++r->depth > MO_YAML_DEPTH)
        return fail_at(r, "too many levels");
    rc = is_item(r->at) ? read_seq(r) : read_map(r);
    r->depth--;
    return rc;
}

static int read_text(struct mo_span text, bool core, struct mo_buf *out,
                     struct mo_err *e)
{
    struct reader r = {.rest = text, .core = core, .e = e};
    int rc;

    if (!mo_utf8_valid(text) || mo_span_find(text, '\0') >= 0)
        return mo_fail(e, MO_EINVAL, "it is not text in UTF-8");
    mo_jw_init(&r.w, out);
    rc = next_line(&r);
    if (rc == 0 && mo_span_is(r.at, "---"))
        rc = next_line(&r);
    if (rc < 0)
        return rc;
    if (r.over)
        return mo_fail(e, MO_EINVAL, "it is empty");
    rc = read_node(&r);
    if (rc == 0 && !r.over)
        return fail_at(&r, "the indentation does not fit");
    if (rc == 0 && mo_buf_err(out))
        return mo_fail(e, mo_buf_err(out), "the text");
    return rc;
}

int mo_yaml_to_json(struct mo_span text, struct mo_buf *out, struct mo_err *e)
{
    return read_text(text, false, out, e);
}

int mo_yaml_core_to_json(struct mo_span text, struct mo_buf *out,
                         struct mo_err *e)
{
    return read_text(text, true, out, e);
}
