#include "mcp/client/mirror.h"

/* Peers wrote both texts. Each level of nesting and each lookup of an argument
 * costs a scan, so the number of both is limited. */
#define DEPTH_MAX   64
#define LOOKUPS_MAX 256

static const struct mo_json none = {NULL, 0};

/* The position of the walk in a schema. */
enum place {
    ROOT,        /* the tool's whole schema: not an argument */
    REACHED,     /* a schema reached by `properties` only */
    REACHED_MAP, /* the `properties` of such a schema */
    OTHER,       /* any other schema, or a list of schemas */
    OTHER_MAP,   /* any other map of names to schemas */
};

struct walk {
    struct mo_mirror *m;
    struct mo_span names[MO_LINK_HTTP_PARAMS];
    size_t n;
    unsigned depth, lookups;
    struct mo_err *e;
};

/* True if v may hold a mark. The key could be written with escapes. */
static bool may_mark(struct mo_json v)
{
    struct mo_span text = mo_json_text(v);

    return mo_span_search(text, MO_SPAN("mcp-header")) >= 0 ||
           mo_span_search(text, MO_SPAN("\\u")) >= 0;
}

/* --- values -------------------------------------------------------------- */

/* Write an integer in its plain form: 42, 42.0 and 4.2e1 are the same. */
static int put_integer(struct mo_mirror *m, struct mo_json v,
                       struct mo_span *out)
{
    static const double most = 9007199254740991.0; /* 2^53 - 1 */
    mo_autobuf struct mo_buf b = {.max = 32};
    double d;

    if (mo_json_f64(v, &d) < 0 || !(d >= -most && d <= most) ||
        d != (double)(int64_t)d)
        return 0;
    mo_buf_i64(&b, (int64_t)d);
    out->p = mo_buf_err(&b) ? NULL : mo_arena_strndup(&m->a, b.p, b.len);
    out->n = b.len;
    return out->p ? 0 : MO_ENOMEM;
}

/* out->p stays NULL when the argument gets no header. */
static int format_value(struct mo_mirror *m, struct mo_json v,
                        struct mo_span *out)
{
    switch (mo_json_type(v)) {
    case MO_JSON_STRING:
        return mo_json_str(v, &m->a, out);
    case MO_JSON_BOOL:
        *out = mo_json_text(v);
        return 0;
    case MO_JSON_NUMBER:
        return put_integer(m, v, out);
    default:
        return 0;
    }
}

/* --- marks --------------------------------------------------------------- */

static const char *find_mark_error(const struct walk *w, struct mo_json schema,
                                   enum place at, struct mo_span name)
{
    static const char *const plain[] = {"string", "integer", "boolean", NULL};

    if (at != REACHED)
        return "is not reached by properties alone";
    if (name.n > MO_MIRROR_NAME_MAX || !mo_http_is_token(name))
        return "is not a token";
    if (!mo_json_str_in(mo_json_get(schema, "type"), plain))
        return "marks neither a string, an integer nor a boolean";
    if (w->n == MO_COUNT(w->names))
        return "exceeds the number of headers";
    for (size_t i = 0; i < w->n; i++) {
        if (mo_span_ieq(w->names[i], name))
            return "is used twice";
    }
    return NULL;
}

static int add_mark(struct walk *w, struct mo_json schema, struct mo_json mark,
                    enum place at, struct mo_json arg)
{
    struct mo_span name = {NULL, 0}, value = {NULL, 0};
    const char *why;

    if (mo_json_is(mark, MO_JSON_STRING) &&
        mo_json_str(mark, &w->m->a, &name) < 0)
        return mo_fail(w->e, MO_ENOMEM, "x-mcp-header");
    why = find_mark_error(w, schema, at, name);
    if (why)
        return mo_fail(w->e, MO_EPROTO, "x-mcp-header \"%.*s\" %s",
                       (int)(name.n < 40 ? name.n : 40), name.p ? name.p : "",
                       why);
    w->names[w->n++] = name;
    if (format_value(w->m, arg, &value) < 0)
        return mo_fail(w->e, MO_ENOMEM, "x-mcp-header");
    if (value.p)
        w->m->v[w->m->n++] = (struct mo_link_param){name, value};
    return 0;
}

/* --- the walk ------------------------------------------------------------ */

static enum place child_place(struct mo_json key, enum place at)
{
    static const char *const maps[] = {
        "$defs", "definitions", "patternProperties", "dependentSchemas", NULL};

    if (mo_json_str_eq(key, MO_SPAN("properties")))
        return at == REACHED || at == ROOT ? REACHED_MAP : OTHER_MAP;
    return mo_json_str_in(key, maps) ? OTHER_MAP : OTHER;
}

static int find_argument(struct walk *w, struct mo_json args,
                         struct mo_json key, struct mo_json *out)
{
    struct mo_span name;

    *out = none;
    if (!mo_json_is(args, MO_JSON_OBJECT))
        return 0;
    if (++w->lookups > LOOKUPS_MAX)
        return mo_fail(w->e, MO_EPROTO, "x-mcp-header: too many lookups");
    if (mo_json_str(key, &w->m->a, &name) < 0)
        return mo_fail(w->e, MO_ENOMEM, "x-mcp-header");
    *out = mo_json_find(args, name);
    return 0;
}

static int walk_schema(struct walk *w, struct mo_json v, enum place at,
                       struct mo_json arg);

static int walk_member(struct walk *w, struct mo_json in, enum place at,
                       struct mo_json key, struct mo_json val,
                       struct mo_json arg)
{
    static const char *const data[] = {"default", "const", "enum", "examples",
                                       NULL};
    enum place to;

    if (!mo_json_str_eq(key, MO_SPAN("x-mcp-header")) && !may_mark(val))
        return 0;
    if (at == REACHED_MAP) {
        int rc = find_argument(w, arg, key, &arg);

        return rc < 0 ? rc : walk_schema(w, val, REACHED, arg);
    }
    if (!key.p || at == OTHER_MAP)
        return walk_schema(w, val, OTHER, none);
    if (mo_json_str_eq(key, MO_SPAN("x-mcp-header")))
        return add_mark(w, in, val, at, arg);
    if (mo_json_str_in(key, data))
        return 0;
    to = child_place(key, at);
    return walk_schema(w, val, to, to == REACHED_MAP ? arg : none);
}

static int walk_schema(struct walk *w, struct mo_json v, enum place at,
                       struct mo_json arg)
{
    int rc = 0;

    if (w->depth == DEPTH_MAX)
        return mo_span_search(mo_json_text(v), MO_SPAN("mcp-header")) < 0
                   ? 0
                   : mo_fail(w->e, MO_EPROTO, "x-mcp-header: too deep");
    w->depth++;
    mo_json_each_while (m, v, rc == 0)
        rc = walk_member(w, v, at, m.key, m.val, arg);
    w->depth--;
    return rc;
}

/* The first walk checks marks only: most schemas have none, and then no
 * argument is looked up. */
int mo_mirror_init(struct mo_mirror *m, struct mo_json schema,
                   struct mo_json args, struct mo_err *e)
{
    struct walk w = {.m = m, .e = e};
    int rc;

    m->n = 0;
    mo_arena_init(&m->a, MO_MIRROR_BYTES_MAX);
    if (!schema.p || !may_mark(schema))
        return 0;
    rc = walk_schema(&w, schema, ROOT, none);
    if (rc < 0 || w.n == 0 || !args.p)
        return rc;
    w.n = 0;
    return walk_schema(&w, schema, ROOT, args);
}

void mo_mirror_fini(struct mo_mirror *m)
{
    mo_arena_fini(&m->a);
}

bool mo_mirror_keep(struct mo_json tool)
{
    struct mo_mirror m;
    int rc = mo_mirror_init(&m, mo_json_get(tool, "inputSchema"), none, NULL);

    mo_mirror_fini(&m);
    return rc == 0;
}
