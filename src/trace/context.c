#include "trace/context.h"

static const struct {
    const char *name;
    size_t most; /* bytes */
} keys[MO_TRACE_KEYS] = {
    [MO_TRACE_PARENT] = {"traceparent", MO_TRACE_PARENT_MAX},
    [MO_TRACE_STATE] = {"tracestate", MO_TRACE_STATE_MAX},
    [MO_TRACE_BAGGAGE] = {"baggage", MO_TRACE_BAGGAGE_MAX},
};

/* Bytes of joined header values. */
static const struct mo_span wrong = {"\n", 1};

const char *mo_trace_name(enum mo_trace_key k)
{
    return keys[k].name;
}

/* --- forms --------------------------------------------------------------- */

static bool is_hex(struct mo_span s)
{
    return mo_span_only(s, "0123456789abcdef");
}

/* version-traceid-parentid-flags; newer versions may append more. */
static bool is_parent(struct mo_span v)
{
    struct mo_span version = mo_span_head(v, 2);
    struct mo_span trace = mo_span_head(mo_span_skip(v, 3), 32);
    struct mo_span parent = mo_span_head(mo_span_skip(v, 36), 16);
    struct mo_span flags = mo_span_head(mo_span_skip(v, 53), 2);
    struct mo_span more = mo_span_skip(v, MO_TRACE_PARENT_LEN);

    if (!v.p || v.n < MO_TRACE_PARENT_LEN || v.n > MO_TRACE_PARENT_MAX)
        return false;
    if (v.p[2] != '-' || v.p[35] != '-' || v.p[52] != '-')
        return false;
    if (!is_hex(version) || !is_hex(trace) || !is_hex(parent) || !is_hex(flags))
        return false;
    if (mo_span_is(version, "ff") || mo_span_only(trace, "0") ||
        mo_span_only(parent, "0"))
        return false;
    if (!more.n)
        return true;
    if (mo_span_is(version, "00") || more.p[0] != '-')
        return false;
    return mo_span_only(more, "0123456789abcdefghijklmnopqrstuvwxyz-");
}

static void read_hex(struct mo_span s, uint8_t *out)
{
    for (size_t i = 0; i + 1 < s.n; i += 2)
        out[i / 2] = (uint8_t)((unsigned)mo_hex_digit(s.p[i]) << 4 |
                               (unsigned)mo_hex_digit(s.p[i + 1]));
}

bool mo_trace_parse(struct mo_span value, struct mo_trace_ids *out)
{
    uint8_t flags = 0;

    if (!is_parent(value))
        return false;
    read_hex(mo_span_head(mo_span_skip(value, 3), 32), out->trace);
    read_hex(mo_span_head(mo_span_skip(value, 36), 16), out->span);
    read_hex(mo_span_head(mo_span_skip(value, 53), 2), &flags);
    out->sampled = flags & 1;
    return true;
}

void mo_trace_format(const struct mo_trace_ids *ids,
                     char out[MO_TRACE_PARENT_LEN + 1])
{
    memcpy(out, "00-", 3);
    mo_hex(ids->trace, sizeof(ids->trace), out + 3);
    out[35] = '-';
    mo_hex(ids->span, sizeof(ids->span), out + 36);
    out[52] = '-';
    memcpy(out + 53, ids->sampled ? "01" : "00", 3);
}

/* True for printable ASCII except the given characters. */
static bool is_printable(struct mo_span s, const char *but)
{
    for (; *but; but++) {
        if (mo_span_find(s, *but) >= 0)
            return false;
    }
    return mo_span_between(s, ' ', '~');
}

/* True for key=value of a tracestate; members may be empty. */
static bool is_state(struct mo_span one)
{
    static const char start[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyz0123456789_-*/@";
    struct mo_span key = mo_span_cut(&one, '=');

    if (!one.p)
        return !key.n;
    return key.n && key.n <= 256 && one.n && one.n <= 256 &&
           mo_span_only(mo_span_head(key, 1), start) &&
           mo_span_only(key, rest) && is_printable(one, ",=");
}

/* True for key=value of baggage, or (a property of it) a key alone. */
static bool is_pair(struct mo_span pair, bool may_be_bare)
{
    bool bare = mo_span_find(pair, '=') < 0;
    struct mo_span key = mo_span_trim(mo_span_cut(&pair, '='));

    if (!mo_http_is_token(key))
        return false;
    return bare ? may_be_bare : is_printable(mo_span_trim(pair), " \",;\\");
}

static bool is_baggage(struct mo_span one)
{
    if (!is_pair(mo_span_cut(&one, ';'), false))
        return false;
    while (one.p) {
        if (!is_pair(mo_span_cut(&one, ';'), true))
            return false;
    }
    return true;
}

static bool is_list(struct mo_span v, bool (*is_one)(struct mo_span one))
{
    size_t n = 0;

    while (v.p) {
        if (++n > MO_TRACE_MEMBERS ||
            !is_one(mo_span_trim(mo_span_cut(&v, ','))))
            return false;
    }
    return n > 0;
}

bool mo_trace_is(enum mo_trace_key k, struct mo_span value)
{
    if (!value.n || value.n > keys[k].most)
        return false;
    if (k == MO_TRACE_PARENT)
        return is_parent(value);
    return is_list(value, k == MO_TRACE_STATE ? is_state : is_baggage);
}

bool mo_trace_any(const struct mo_trace *t)
{
    return t->v[MO_TRACE_PARENT].n || t->v[MO_TRACE_BAGGAGE].n;
}

static void drop_invalid(struct mo_trace *t)
{
    for (size_t k = 0; k < MO_TRACE_KEYS; k++) {
        if (!mo_trace_is((enum mo_trace_key)k, t->v[k]))
            t->v[k] = mo_span(NULL, 0);
    }
    if (!t->v[MO_TRACE_PARENT].n)
        t->v[MO_TRACE_STATE] = mo_span(NULL, 0);
}

/* --- where they are ------------------------------------------------------ */

static bool is_key(struct mo_span name, enum mo_trace_key *k)
{
    for (size_t i = 0; i < MO_TRACE_KEYS; i++) {
        *k = (enum mo_trace_key)i;
        if (mo_span_ieq(name, mo_span_cstr(keys[i].name)))
            return true;
    }
    return false;
}

/* Join the values of repeated headers as one list. Two traceparents become
 * invalid by the comma, so both are ignored. */
static int join_values(struct mo_arena *a, struct mo_span *to,
                       struct mo_span more)
{
    size_t n = to->n + more.n + 1;
    char *p;

    if (!to->n)
        return mo_arena_span(a, more, to);
    if (n > MO_TRACE_BAGGAGE_MAX) {
        *to = wrong;
        return 0;
    }
    p = mo_arena_alloc(a, n);
    if (!p)
        return MO_ENOMEM;
    memcpy(p, to->p, to->n);
    p[to->n] = ',';
    memcpy(p + to->n + 1, more.p, more.n);
    *to = mo_span(p, n);
    return 0;
}

int mo_trace_head(const struct mo_http_head *h, struct mo_arena *a,
                  struct mo_trace *t)
{
    enum mo_trace_key k;
    int rc = 0;

    for (size_t i = 0; i < h->nheaders && rc == 0; i++) {
        struct mo_span v = mo_span_trim(h->headers[i].value);

        if (v.n && is_key(h->headers[i].name, &k))
            rc = join_values(a, &t->v[k], v.n > keys[k].most ? wrong : v);
    }
    drop_invalid(t);
    return rc;
}

/* The bytes of a JSON string if it has no escapes. No valid value needs one,
 * except for two characters in a tracestate. */
static struct mo_span unescaped_text(struct mo_json v)
{
    struct mo_span s = mo_json_text(v);

    if (!mo_json_is(v, MO_JSON_STRING) || mo_span_find(s, '\\') >= 0)
        return mo_span(NULL, 0);
    return mo_span(s.p + 1, s.n - 2);
}

void mo_trace_meta(struct mo_json meta, struct mo_trace *t)
{
    struct mo_json v[MO_TRACE_KEYS];

    for (size_t k = 0; k < MO_TRACE_KEYS; k++)
        v[k] = mo_json_get(meta, keys[k].name);
    if (v[MO_TRACE_PARENT].p || v[MO_TRACE_STATE].p) {
        t->v[MO_TRACE_PARENT] = unescaped_text(v[MO_TRACE_PARENT]);
        t->v[MO_TRACE_STATE] = unescaped_text(v[MO_TRACE_STATE]);
    }
    if (v[MO_TRACE_BAGGAGE].p)
        t->v[MO_TRACE_BAGGAGE] = unescaped_text(v[MO_TRACE_BAGGAGE]);
    drop_invalid(t);
}
