#include "mcp/app.h"

#include "mcp/era.h"

#define SCHEME     "ui://"
#define DOMAIN_MAX 255

/* --- tools --------------------------------------------------------------- */

static bool is_uri(struct mo_json v)
{
    return mo_json_is(v, MO_JSON_STRING) &&
           mo_span_starts(mo_json_text(v), MO_SPAN("\"" SCHEME));
}

struct mo_json mo_app_uri(struct mo_json tool)
{
    struct mo_json meta = mo_json_get(tool, "_meta");
    struct mo_json uri = mo_json_get(mo_json_get(meta, "ui"), "resourceUri");
    struct mo_json old = mo_json_get(meta, "ui/resourceUri");

    if (is_uri(uri))
        return uri;
    return is_uri(old) ? old : (struct mo_json){NULL, 0};
}

/* Without a list of strings everybody may. */
static bool is_visible_to(struct mo_json meta, struct mo_span who)
{
    struct mo_json list = mo_json_get(mo_json_get(meta, "ui"), "visibility");

    if (!mo_json_is(list, MO_JSON_ARRAY))
        return true;
    mo_json_each (at, list)
        if (mo_json_str_eq(at.val, who))
            return true;
    return false;
}

bool mo_app_meta_is_only(struct mo_json meta)
{
    return !is_visible_to(meta, MO_SPAN("model"));
}

bool mo_app_is_only(struct mo_json tool)
{
    return mo_app_meta_is_only(mo_json_get(tool, "_meta"));
}

bool mo_app_may_call(struct mo_json tool)
{
    return is_visible_to(mo_json_get(tool, "_meta"), MO_SPAN("app"));
}

bool mo_app_can_show(struct mo_json capabilities)
{
    struct mo_json all = mo_json_get(capabilities, "extensions");

    return mo_json_is(mo_json_get(all, MO_MCP_EXT_APPS), MO_JSON_OBJECT);
}

/* --- domains ------------------------------------------------------------- */

struct domain {
    struct mo_span scheme; /* empty: none was given */
    struct mo_span host;   /* without "*." */
    struct mo_span port;   /* empty: none was given */
    bool below;            /* "*." was before the host */
};

static bool is_host(struct mo_span s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-";

    return s.n > 0 && s.n <= DOMAIN_MAX && s.p[0] != '.' &&
           s.p[s.n - 1] != '.' && mo_span_only(s, letters);
}

static bool take_scheme(struct mo_span *s, struct mo_span *scheme)
{
    static const char *const known[] = {"https", "http", "wss", "ws"};

    for (size_t i = 0; i < MO_COUNT(known); i++) {
        struct mo_span rest = *s;

        if (!mo_span_strip(&rest, mo_span_cstr(known[i])) ||
            !mo_span_strip(&rest, MO_SPAN("://")))
            continue;
        *scheme = mo_span_cstr(known[i]);
        *s = rest;
        return true;
    }
    return false;
}

/* False: it is no domain. Nothing else than letters, digits, dots, hyphens, one
 * port and one "*." is taken, so that it cannot end its place in a header. */
static bool read_domain(struct mo_span s, struct domain *d)
{
    struct mo_span rest;

    *d = (struct domain){{NULL, 0}, {NULL, 0}, {NULL, 0}, false};
    (void)take_scheme(&s, &d->scheme);
    d->below = mo_span_strip(&s, MO_SPAN("*."));
    rest = s;
    d->host = mo_span_cut(&rest, ':');
    d->port = rest.p ? rest : mo_span(NULL, 0);
    if (d->host.n < s.n && (d->port.n == 0 || d->port.n > 5 ||
                            !mo_span_only(d->port, "0123456789")))
        return false;
    return is_host(d->host);
}

static bool ends_with_label(struct mo_span host, struct mo_span tail)
{
    return host.n > tail.n && host.p[host.n - tail.n - 1] == '.' &&
           mo_span_ieq(mo_span_skip(host, host.n - tail.n), tail);
}

static bool is_secure(struct mo_span scheme)
{
    return mo_span_is(scheme, "https") || mo_span_is(scheme, "wss");
}

static bool includes(const struct domain *granted, const struct domain *d)
{
    if (granted->scheme.n ? !mo_span_eq(granted->scheme, d->scheme)
                          : !is_secure(d->scheme))
        return false;
    if (!mo_span_eq(granted->port, d->port))
        return false;
    if (granted->below)
        return ends_with_label(d->host, granted->host) ||
               (d->below && mo_span_ieq(d->host, granted->host));
    return !d->below && mo_span_ieq(d->host, granted->host);
}

bool mo_app_is_domain(const char *granted)
{
    struct domain d;

    return strcmp(granted, "*") == 0 || read_domain(mo_span_cstr(granted), &d);
}

bool mo_app_is_granted(struct mo_span domain, const char *granted)
{
    struct domain d, g;

    if (!read_domain(domain, &d) || d.scheme.n == 0)
        return false;
    if (strcmp(granted, "*") == 0)
        return true;
    return read_domain(mo_span_cstr(granted), &g) && includes(&g, &d);
}

/* --- the policy ---------------------------------------------------------- */

struct policy {
    const char *const *granted;
    size_t ngranted;
    struct mo_json csp;
    struct mo_buf *out;
    struct mo_jw *refused; /* or NULL */
};

static bool may_reach(const struct policy *p, struct mo_span domain)
{
    for (size_t i = 0; i < p->ngranted; i++)
        if (mo_app_is_granted(domain, p->granted[i]))
            return true;
    return false;
}

/* Appends the granted domains of a list; once: the refused ones are noted. */
static void put_domains(struct policy *p, const char *list, bool once)
{
    struct mo_json v = mo_json_get(p->csp, list);
    size_t n = 0;

    if (!mo_json_is(v, MO_JSON_ARRAY))
        return;
    mo_json_each (at, v) {
        mo_autobuf struct mo_buf b = {.max = DOMAIN_MAX * 2};
        bool ok = mo_json_is(at.val, MO_JSON_STRING) &&
                  mo_json_str_buf(at.val, &b) == 0 &&
                  n++ < MO_APP_DOMAINS_MAX && may_reach(p, mo_buf_view(&b));

        if (ok) {
            mo_buf_putc(p->out, ' ');
            mo_buf_span(p->out, mo_buf_view(&b));
        } else if (once && p->refused && mo_json_is(at.val, MO_JSON_STRING)) {
            mo_jw_raw(p->refused, mo_json_text(at.val));
        }
    }
}

struct directive {
    const char *name, *own; /* own: sources that every app has */
    const char *list;       /* member of the metadata with further ones */
};

static void put_directive(struct policy *p, const struct directive *d,
                          bool once)
{
    size_t at = 0;

    mo_buf_puts(p->out, d->name);
    mo_buf_puts(p->out, d->own);
    at = p->out->len;
    put_domains(p, d->list, once);
    if (!*d->own && p->out->len == at)
        mo_buf_puts(p->out, " 'none'");
    mo_buf_puts(p->out, "; ");
}

void mo_app_policy(struct mo_json csp, const char *const *v, size_t n,
                   struct mo_buf *out, struct mo_jw *refused)
{
    static const struct directive rows[] = {
        {"script-src",
         " 'unsafe-inline' 'unsafe-eval' blob: data:", "resourceDomains"},
        {"style-src", " 'unsafe-inline' blob: data:", "resourceDomains"},
        {"img-src", " data: blob:", "resourceDomains"},
        {"font-src", " data: blob:", "resourceDomains"},
        {"media-src", " data: blob:", "resourceDomains"},
        {"worker-src", " blob: data:", "resourceDomains"},
        {"connect-src", " data: blob:", "connectDomains"},
        {"frame-src", "", "frameDomains"},
        {"base-uri", "", "baseUriDomains"},
    };
    struct policy p = {v, n, csp, out, refused};
    const char *before = "";

    mo_buf_puts(out, "sandbox allow-scripts allow-forms; default-src 'none'; ");
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        put_directive(&p, &rows[i], strcmp(rows[i].list, before) != 0);
        before = rows[i].list;
    }
    mo_buf_puts(out, "form-action 'none'; object-src 'none'; webrtc 'block'");
}
