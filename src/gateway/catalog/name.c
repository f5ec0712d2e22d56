/* name.c - exposed names of tools and prompts, prefixed URIs, and matching URIs
 * against templates.
 *
 * A template is compiled into steps. All ways to match it are followed at the
 * same time, one byte of the URI after the other, so the time is bounded by the
 * product of both lengths for any template. */
#include "gateway/catalog/name.h"

#include "codec/sha256.h"

#define HASH_LEN 6

/* The first digits of the SHA-256 of a, NUL, b. */
static void put_hash(struct mo_span a, struct mo_span b, char out[HASH_LEN + 1])
{
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;

    mo_sha256_init(&h);
    mo_sha256_put(&h, a.p, a.n);
    mo_sha256_put(&h, "", 1);
    mo_sha256_put(&h, b.p, b.n);
    mo_sha256_end(&h, sum);
    mo_hex(sum, HASH_LEN / 2, out);
}

static const bool plain[256] = {
    ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true,
    ['_'] = true,         ['-'] = true,
};

/* Appends s with every other character replaced by '_'. Returns the length
 * without the limit of size. */
static size_t put_plain(char *out, size_t size, size_t at, struct mo_span s,
                        bool *changed)
{
    for (size_t i = 0; i < s.n; i++, at++) {
        bool ok = plain[(unsigned char)s.p[i]];

        *changed |= !ok;
        if (at < size - 1)
            out[at] = ok ? s.p[i] : '_';
    }
    return at;
}

void mo_gw_name_in(struct mo_span prefix, struct mo_span name, bool prefixed,
                   bool taken, char *out, size_t size)
{
    bool changed = name.n == 0;
    size_t n = 0;

    MO_BUG_ON(size < HASH_LEN + 2);
    if (prefixed) {
        n = put_plain(out, size, n, prefix, &changed);
        n = put_plain(out, size, n, MO_SPAN("_"), &changed);
    }
    n = put_plain(out, size, n, name, &changed);
    if (n < size && !changed && !taken) {
        out[n] = '\0';
        return;
    }
    if (n > size - 2 - HASH_LEN)
        n = size - 2 - HASH_LEN;
    out[n] = '_';
    put_hash(prefix, name, out + n + 1);
}

void mo_gw_name(struct mo_span prefix, struct mo_span name, bool prefixed,
                bool taken, char out[MO_GW_NAME_MAX])
{
    mo_gw_name_in(prefix, name, prefixed, taken, out, MO_GW_NAME_MAX);
}

/* --- URIs ---------------------------------------------------------------- */

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Characters of a scheme, without the '+' that ends a label. */
static bool is_scheme(char c)
{
    return is_lower(c) || mo_is_digit(c) || c == '-' || c == '.';
}

#define LABEL_KEEP ((size_t)(MO_GW_LABEL_MAX - 2 - HASH_LEN))

void mo_gw_label(struct mo_span server, char out[MO_GW_LABEL_MAX])
{
    bool odd = server.n == 0 || server.n > LABEL_KEEP;
    size_t n = 0;

    if (server.n == 0 || !mo_is_alpha(server.p[0])) {
        odd = true;
        out[n++] = 's'; /* a scheme starts with a letter */
    }
    for (size_t i = 0; i < server.n && n < LABEL_KEEP; i++) {
        char c = mo_lower(server.p[i]);

        odd |= c != server.p[i] || !is_scheme(c);
        out[n++] = is_scheme(c) ? c : '-';
    }
    out[n] = '\0';
    if (!odd)
        return;
    out[n++] = '-';
    put_hash(server, MO_SPAN(""), out + n);
}

/* The scheme of apps (MCP Apps): clients take no other one for an app. */
#define APP_SCHEME "ui://"

int mo_gw_uri(const char *label, struct mo_span uri, struct mo_buf *out)
{
    bool app = mo_span_starts(uri, MO_SPAN(APP_SCHEME));

    mo_buf_puts(out, app ? APP_SCHEME : "");
    mo_buf_puts(out, label);
    mo_buf_puts(out, app ? "/+" : "+");
    return mo_buf_span(out, uri);
}

/* exposed: without the scheme, LABEL/+URI. */
static bool split_app(struct mo_span exposed, struct mo_span *server,
                      struct mo_span *uri)
{
    *server = mo_span_cut(&exposed, '/');
    *uri = exposed;
    return mo_span_strip(uri, MO_SPAN("+")) &&
           mo_span_starts(*uri, MO_SPAN(APP_SCHEME));
}

static bool is_label(struct mo_span s)
{
    if (s.n == 0 || s.n >= MO_GW_LABEL_MAX || !is_lower(s.p[0]))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_scheme(s.p[i]))
            return false;
    return true;
}

bool mo_gw_uri_split(struct mo_span exposed, struct mo_span *server,
                     struct mo_span *uri)
{
    ptrdiff_t plus = mo_span_find(exposed, '+');

    if (mo_span_strip(&exposed, MO_SPAN(APP_SCHEME)))
        return split_app(exposed, server, uri) && is_label(*server);
    if (plus <= 0)
        return false;
    *server = mo_span_head(exposed, (size_t)plus);
    *uri = mo_span_skip(exposed, (size_t)plus + 1);
    return is_label(*server);
}

/* --- templates ----------------------------------------------------------- */

struct step {
    bool is_byte;  /* matches the byte c; else any byte but '/' */
    bool slashes;  /* also '/' */
    bool repeat;   /* any number of times */
    bool optional; /* with the next step, or neither */
    char c;
};

/* Never more steps than bytes: "{}" are two, "{.}" are three. */
#define STEPS_MAX MO_GW_TEMPLATE_MAX

struct steps {
    struct step v[STEPS_MAX];
    size_t n;
};

static void add_step(struct steps *s, struct step x)
{
    s->v[s->n++] = x;
}

static void add_expression(struct steps *s, struct mo_span in)
{
    char op = in.n ? in.p[0] : '\0';
    bool many = mo_span_find(in, ',') >= 0 || mo_span_find(in, '*') >= 0;
    bool slashes = op == '+' || (op == '/' && many);

    if (op && strchr("#?&;", op)) {
        add_step(s, (struct step){.is_byte = true, .c = op, .optional = true});
        add_step(s, (struct step){.slashes = op != ';', .repeat = true});
        return;
    }
    if (op == '.' || op == '/')
        add_step(s, (struct step){.is_byte = true, .c = op});
    add_step(s, (struct step){.slashes = slashes});
    add_step(s, (struct step){.slashes = slashes, .repeat = true});
}

/* A '{' that is never closed matches itself. */
static void compile_template(struct steps *s, struct mo_span t)
{
    s->n = 0;
    while (t.n) {
        ptrdiff_t end = t.p[0] == '{' ? mo_span_find(t, '}') : -1;

        if (end < 0) {
            add_step(s, (struct step){.is_byte = true, .c = t.p[0]});
            t = mo_span_skip(t, 1);
        } else {
            add_expression(s, mo_span(t.p + 1, (size_t)end - 1));
            t = mo_span_skip(t, (size_t)end + 1);
        }
    }
}

/* Activates step i and all steps reachable without a byte. */
static void activate_step(const struct steps *s, bool *on, size_t i)
{
    while (i <= s->n && !on[i]) {
        on[i] = true;
        if (i == s->n || (!s->v[i].repeat && !s->v[i].optional))
            return;
        i += s->v[i].optional ? 2 : 1;
    }
}

static void advance_step(const struct steps *s, bool *next, size_t i, char c)
{
    const struct step *x = &s->v[i];

    if (x->is_byte ? c == x->c : c != '/' || x->slashes)
        activate_step(s, next, x->repeat ? i : i + 1);
}

static bool match_steps(const struct steps *s, struct mo_span uri)
{
    bool on[2][STEPS_MAX + 1] = {{false}};
    bool *now = on[0], *next = on[1];

    activate_step(s, now, 0);
    for (size_t at = 0; at < uri.n; at++) {
        bool *was = now;

        memset(next, 0, s->n + 1);
        for (size_t i = 0; i < s->n; i++)
            if (now[i])
                advance_step(s, next, i, uri.p[at]);
        now = next;
        next = was;
    }
    return now[s->n];
}

bool mo_gw_template_match(struct mo_span template, struct mo_span uri)
{
    ptrdiff_t brace = mo_span_find(template, '{');
    size_t fixed = brace < 0 ? template.n : (size_t)brace;
    struct steps s;

    /* Most templates fail here. */
    if (!mo_span_starts(uri, mo_span_head(template, fixed)) ||
        template.n > MO_GW_TEMPLATE_MAX || uri.n > MO_GW_URI_MAX)
        return false;
    compile_template(&s, mo_span_skip(template, fixed));
    return match_steps(&s, mo_span_skip(uri, fixed));
}
