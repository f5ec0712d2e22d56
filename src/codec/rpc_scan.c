#include "codec/rpc_scan.h"

#include "codec/text/vec.h"

enum state {
    START,      /* before the top-level '{' */
    VALUE,      /* a value must follow */
    FIRST_KEY,  /* after '{': a key or '}' */
    FIRST_ITEM, /* after '[': a value or ']' */
    KEY,        /* after ',' in an object */
    COLON,
    STRING,
    ESCAPE, /* in a string, after a backslash */
    SCALAR, /* in a number, true, false or null */
    AFTER,  /* after a value: ',' or the end of its container */
    DONE,   /* after the top-level '}' */
    BROKEN,
};

enum member {
    M_JSONRPC = 1,
    M_ID = 2,
    M_METHOD = 4,
    M_PARAMS = 8,
    M_RESULT = 16,
    M_ERROR = 32,
};

static const struct {
    struct mo_span name;
    enum member member;
} names[] = {
    {{"jsonrpc", 7}, M_JSONRPC}, {{"id", 2}, M_ID},
    {{"method", 6}, M_METHOD},   {{"params", 6}, M_PARAMS},
    {{"result", 6}, M_RESULT},   {{"error", 5}, M_ERROR},
};

void mo_rpc_scan_init(struct mo_rpc_scan *s)
{
    *s = (struct mo_rpc_scan){.state = START};
}

/* --- the top-level envelope ---------------------------------------------- */

/* ntext grows past the array when the text does not fit. */
static void keep_text(struct mo_rpc_scan *s, char c)
{
    if (s->depth != 1)
        return;
    if (s->ntext < MO_RPC_SCAN_TEXT)
        s->text[s->ntext] = c;
    if (s->ntext <= MO_RPC_SCAN_TEXT)
        s->ntext++;
}

/* The kept text as a JSON value; none if it did not fit or is malformed. */
static struct mo_json kept_value(const struct mo_rpc_scan *s)
{
    struct mo_json_doc doc = {0};
    struct mo_json none = {NULL, 0};

    if (s->ntext > MO_RPC_SCAN_TEXT ||
        mo_json_parse(mo_span(s->text, s->ntext), 1, &doc, NULL) < 0)
        return none;
    return doc.root;
}

/* A key that does not fit is none of ours, however it is written. */
static enum state end_key(struct mo_rpc_scan *s)
{
    struct mo_json key;

    s->member = 0;
    if (s->depth != 1 || s->ntext > MO_RPC_SCAN_TEXT)
        return COLON;
    key = kept_value(s);
    if (!key.p)
        return BROKEN;
    for (size_t i = 0; i < MO_COUNT(names); i++) {
        if (mo_json_str_eq(key, names[i].name))
            s->member = (unsigned char)names[i].member;
    }
    if (s->seen & s->member)
        return BROKEN; /* given twice: two readers could disagree */
    s->seen |= s->member;
    return COLON;
}

static enum state keep_id(struct mo_rpc_scan *s)
{
    struct mo_json v = kept_value(s);

    if (mo_json_is(v, MO_JSON_NULL))
        return AFTER;
    if (!mo_json_is(v, MO_JSON_STRING) && !mo_json_is(v, MO_JSON_NUMBER))
        return BROKEN;
    memcpy(s->id, s->text, s->ntext);
    s->nid = s->ntext;
    return AFTER;
}

static enum state end_scalar(struct mo_rpc_scan *s)
{
    if (s->depth != 1)
        return AFTER;
    if (s->member == M_ID)
        return keep_id(s);
    if (s->member == M_JSONRPC)
        s->version_ok = mo_json_str_eq(kept_value(s), MO_SPAN("2.0"));
    return AFTER;
}

enum mo_rpc_kind mo_rpc_scan_end(const struct mo_rpc_scan *s,
                                 struct mo_json *id)
{
    unsigned seen = s->seen & ~(unsigned)(M_JSONRPC | M_ID);
    bool has_id = s->nid != 0;

    *id = (struct mo_json){has_id ? s->id : NULL, s->nid};
    if (s->state == DONE && s->version_ok) {
        if ((seen & ~(unsigned)M_PARAMS) == M_METHOD && has_id)
            return MO_RPC_REQUEST;
        if ((seen & ~(unsigned)M_PARAMS) == M_METHOD && !(s->seen & M_ID))
            return MO_RPC_NOTIFICATION;
        if (seen == M_RESULT && has_id)
            return MO_RPC_RESULT;
        if (seen == M_ERROR)
            return MO_RPC_ERROR;
    }
    *id = (struct mo_json){NULL, 0};
    return MO_RPC_INVALID;
}

/* --- structure ----------------------------------------------------------- */

static bool in_object(const struct mo_rpc_scan *s)
{
    unsigned level = s->depth - 1;

    return s->obj[level / 64] >> level % 64 & 1;
}

static enum state open_level(struct mo_rpc_scan *s, bool object)
{
    uint64_t bit = (uint64_t)1 << s->depth % 64;

    if (s->depth == MO_JSON_DEPTH_MAX)
        return BROKEN;
    if (object)
        s->obj[s->depth / 64] |= bit;
    else
        s->obj[s->depth / 64] &= ~bit;
    s->depth++;
    return object ? FIRST_KEY : FIRST_ITEM;
}

static enum state close_level(struct mo_rpc_scan *s, bool object)
{
    if (in_object(s) != object)
        return BROKEN;
    s->depth--;
    return s->depth ? AFTER : DONE;
}

static enum state open_string(struct mo_rpc_scan *s, bool key)
{
    s->key = key;
    s->ntext = 0;
    keep_text(s, '"');
    return STRING;
}

static bool is_scalar(char c)
{
    return mo_is_digit(c) || mo_is_alpha(c) || c == '-' || c == '+' || c == '.';
}

/* Whether a value that begins with c has a type its member may have. */
static bool fits_member(const struct mo_rpc_scan *s, char c)
{
    if (s->depth != 1)
        return true;
    switch (s->member) {
    case M_JSONRPC:
    case M_METHOD:
        return c == '"';
    case M_ID:
        return c != '{' && c != '[';
    case M_PARAMS:
        return c == '{' || c == '[';
    case M_ERROR:
        return c == '{';
    default:
        return true;
    }
}

static enum state open_value(struct mo_rpc_scan *s, char c)
{
    if (!fits_member(s, c))
        return BROKEN;
    if (c == '{' || c == '[')
        return open_level(s, c == '{');
    if (c == '"')
        return open_string(s, false);
    if (!is_scalar(c))
        return BROKEN;
    s->ntext = 0;
    keep_text(s, c);
    return SCALAR;
}

static enum state after_value(struct mo_rpc_scan *s, char c)
{
    if (c == ',')
        return in_object(s) ? KEY : VALUE;
    if (c == '}' || c == ']')
        return close_level(s, c == '}');
    return BROKEN;
}

/* One byte outside of strings and scalars that is no blank. */
static enum state next_state(struct mo_rpc_scan *s, char c)
{
    switch ((enum state)s->state) {
    case START:
        return c == '{' ? open_level(s, true) : BROKEN;
    case FIRST_KEY:
        if (c == '}')
            return close_level(s, true);
        return c == '"' ? open_string(s, true) : BROKEN;
    case KEY:
        return c == '"' ? open_string(s, true) : BROKEN;
    case COLON:
        return c == ':' ? VALUE : BROKEN;
    case FIRST_ITEM:
        return c == ']' ? close_level(s, false) : open_value(s, c);
    case VALUE:
        return open_value(s, c);
    case AFTER:
        return after_value(s, c);
    case STRING:
    case ESCAPE:
    case SCALAR:
    case DONE:
    case BROKEN:
        break;
    }
    return BROKEN;
}

/* --- bytes --------------------------------------------------------------- */

/* Bytes up to the next quote or backslash. */
static size_t plain_length(const char *p, const char *end)
{
    const char *from = p;

    for (; end - p >= MO_VEC_WIDTH; p += MO_VEC_WIDTH) {
        mo_vec v = mo_vec_load(p);
        uint64_t hits =
            mo_vec_mask(mo_vec_or(mo_vec_eq(v, '"'), mo_vec_eq(v, '\\')));

        if (hits)
            return (size_t)(p - from) + mo_vec_first(hits);
    }
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return (size_t)(p - from);
}

static const char *read_string(struct mo_rpc_scan *s, const char *p,
                               const char *end)
{
    size_t n = s->state == ESCAPE ? 0 : plain_length(p, end);

    for (size_t i = 0; i < n && s->ntext <= MO_RPC_SCAN_TEXT; i++) {
        if (s->depth != 1)
            break;
        keep_text(s, p[i]);
    }
    p += n;
    if (p == end)
        return p;
    keep_text(s, *p);
    if (s->state == ESCAPE)
        s->state = STRING;
    else if (*p == '\\')
        s->state = ESCAPE;
    else
        s->state = (unsigned char)(s->key ? end_key(s) : end_scalar(s));
    return p + 1;
}

static const char *read_scalar(struct mo_rpc_scan *s, const char *p,
                               const char *end)
{
    for (; p < end && is_scalar(*p); p++)
        keep_text(s, *p);
    if (p < end)
        s->state = (unsigned char)end_scalar(s);
    return p;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void read_blank(struct mo_rpc_scan *s)
{
    if (s->state == START && ++s->ntext > MO_RPC_SCAN_TEXT)
        s->state = BROKEN;
}

bool mo_rpc_scan_feed(struct mo_rpc_scan *s, struct mo_span piece)
{
    const char *p = piece.n ? piece.p : "", *end = p + piece.n;

    while (p < end && s->state != BROKEN) {
        if (s->state == STRING || s->state == ESCAPE) {
            p = read_string(s, p, end);
        } else if (s->state == SCALAR) {
            p = read_scalar(s, p, end);
        } else {
            if (is_blank(*p))
                read_blank(s);
            else
                s->state = (unsigned char)next_state(s, *p);
            p++;
        }
    }
    return s->state != BROKEN;
}
