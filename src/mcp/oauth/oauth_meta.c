#include "mcp/oauth/oauth_meta.h"

#include "codec/http/url.h"
#include "codec/json/json.h"
#include "mcp/oauth/dpop.h"

#define SCOPE_MAX MO_OAUTH_TEXT_MAX

/* --- challenge ----------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void skip_blanks(struct mo_span *s)
{
    while (s->n && is_blank(s->p[0]))
        *s = mo_span_skip(*s, 1);
}

static struct mo_span take_token(struct mo_span *s)
{
    size_t n = 0;

    while (n < s->n && !is_blank(s->p[n]) && !memchr(",=\"", s->p[n], 3))
        n++;
    *s = mo_span_skip(*s, n);
    return mo_span(s->p - n, n);
}

/* Read a quoted string; *s begins with the opening quote. */
static int take_quoted(struct mo_span *s, struct mo_buf *b)
{
    size_t i = 1;

    while (i < s->n && s->p[i] != '"') {
        if (s->p[i] == '\\')
            i++;
        if (i < s->n)
            mo_buf_putc(b, s->p[i++]);
    }
    if (i >= s->n)
        return MO_EPROTO;
    *s = mo_span_skip(*s, i + 1);
    return mo_buf_err(b);
}

/* Read the value after '='; bare values end at a blank or comma. */
static int take_value(struct mo_span *s, struct mo_buf *b)
{
    size_t n = 0;

    skip_blanks(s);
    if (s->n && s->p[0] == '"')
        return take_quoted(s, b);
    while (n < s->n && !is_blank(s->p[n]) && s->p[n] != ',')
        n++;
    mo_buf_put(b, s->p, n);
    *s = mo_span_skip(*s, n);
    return mo_buf_err(b);
}

/* Keep the first parameter of a name; ignore values that are not plain text. */
static int keep_param(struct mo_arena *a, struct mo_oauth_challenge *c,
                      struct mo_span name, struct mo_span value)
{
    const struct {
        const char *name;
        const char **to;
    } known[] = {
        {"error", &c->error},
        {"scope", &c->scope},
        {"resource_metadata", &c->resource_metadata},
    };

    if (mo_span_ieq(name, MO_SPAN("error")) &&
        mo_span_is(value, "use_dpop_nonce"))
        c->nonce = true;
    for (size_t i = 0; i < MO_COUNT(known); i++) {
        if (mo_span_ieq(name, mo_span_cstr(known[i].name)) && !*known[i].to &&
            mo_span_between(value, ' ', '~'))
            return mo_oauth_keep(a, value, known[i].to);
    }
    return 0;
}

static int take_param(struct mo_arena *a, struct mo_span *s, bool ours,
                      struct mo_span name, struct mo_oauth_challenge *out)
{
    mo_autobuf struct mo_buf b = {.max = MO_OAUTH_TEXT_MAX};
    int rc = take_value(s, &b);

    if (rc == 0 && ours)
        rc = keep_param(a, out, name, mo_buf_view(&b));
    return rc;
}

int mo_oauth_challenge(struct mo_arena *a, struct mo_span header,
                       struct mo_oauth_challenge *out)
{
    struct mo_span s = header, word;
    bool ours = false, bearer = false, dpop;
    int rc = 0;

    *out = (struct mo_oauth_challenge){.bearer = false};
    while (rc == 0) {
        while (s.n && (is_blank(s.p[0]) || s.p[0] == ','))
            s = mo_span_skip(s, 1);
        if (s.n == 0)
            return 0;
        word = take_token(&s);
        skip_blanks(&s);
        if (word.n == 0)
            return MO_EPROTO;
        if (s.n && s.p[0] == '=') {
            s = mo_span_skip(s, 1);
            rc = take_param(a, &s, ours, word, out);
            continue;
        }
        dpop = !out->dpop && mo_span_ieq(word, MO_SPAN("DPoP"));
        ours = dpop || (!bearer && mo_span_ieq(word, MO_SPAN("Bearer")));
        bearer = bearer || (ours && !dpop);
        out->dpop = out->dpop || dpop;
        out->bearer = out->bearer || ours;
    }
    return rc;
}

/* --- documents ----------------------------------------------------------- */

/* Read a string member; NULL when there is none. */
static int get_text(struct mo_arena *a, struct mo_json obj, const char *key,
                    const char **out, struct mo_err *e)
{
    struct mo_json v = mo_json_get(obj, key);
    struct mo_span s;

    *out = NULL;
    if (!v.p || mo_json_is(v, MO_JSON_NULL))
        return 0;
    if (!mo_json_is(v, MO_JSON_STRING) || v.n > MO_OAUTH_TEXT_MAX)
        return mo_fail(e, MO_EPROTO, "%s is not a usable string", key);
    if (mo_json_str(v, a, &s) < 0 || mo_oauth_keep(a, s, out) < 0)
        return mo_fail(e, MO_ENOMEM, "%s", key);
    if (!mo_span_between(s, ' ', '~'))
        return mo_fail(e, MO_EPROTO, "%s has invalid characters", key);
    return 0;
}

static int get_url(struct mo_arena *a, struct mo_json obj, const char *key,
                   const char *server, const char **out, struct mo_err *e)
{
    int rc = get_text(a, obj, key, out, e);

    if (rc < 0 || !*out)
        return rc;
    rc = mo_oauth_url_ok(*out, server, e);
    if (rc < 0)
        (void)mo_wrap(e, "%s", key);
    return rc;
}

/* Read an array of scopes as one text; NULL when there is none. */
static int get_scopes(struct mo_arena *a, struct mo_json obj, const char **out,
                      struct mo_err *e)
{
    struct mo_json list = mo_json_get(obj, "scopes_supported");
    mo_autobuf struct mo_buf b = {.max = SCOPE_MAX};

    *out = NULL;
    if (!mo_json_is(list, MO_JSON_ARRAY) || mo_json_len(list) == 0)
        return 0;
    mo_json_each (m, list) {
        if (!mo_json_is(m.val, MO_JSON_STRING))
            continue;
        if (b.len)
            mo_buf_putc(&b, ' ');
        (void)mo_json_str_buf(m.val, &b);
    }
    if (!mo_span_between(mo_buf_view(&b), ' ', '~'))
        return mo_fail(e, MO_EPROTO, "scopes_supported");
    if (mo_oauth_keep_buf(a, &b, out) < 0)
        return mo_fail(e, MO_ETOOBIG, "scopes_supported");
    return 0;
}

static int get_object(struct mo_span json, struct mo_json_doc *doc,
                      struct mo_err *e)
{
    if (json.n > MO_OAUTH_DOC_MAX)
        return mo_fail(e, MO_ETOOBIG, "metadata");
    if (mo_json_parse(json, 0, doc, NULL) < 0)
        return mo_fail(e, MO_EPROTO, "the metadata is not JSON");
    if (!mo_json_is(doc->root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EPROTO, "the metadata is not an object");
    return 0;
}

/* True if resource has the origin of server and its path or a parent of it. */
static bool is_resource_of(const char *resource, const char *server)
{
    struct mo_url r, s;
    struct mo_span path;

    if (mo_url_parse(mo_span_cstr(resource), &r, NULL) < 0 ||
        mo_url_parse(mo_span_cstr(server), &s, NULL) < 0)
        return false;
    if (!mo_origin_eq(&r, &s) || r.userinfo.p || r.fragment.p)
        return false;
    if (r.query.p && !mo_span_eq(r.query, s.query))
        return false;
    path = mo_oauth_bare_path(&r);
    if (!mo_span_starts(s.path, path))
        return false;
    return s.path.n == path.n || s.path.p[path.n] == '/';
}

static int get_issuers(struct mo_arena *a, struct mo_json root,
                       struct mo_oauth_resource *out, struct mo_err *e)
{
    struct mo_json list = mo_json_get(root, "authorization_servers");
    struct mo_span s;

    mo_json_each_while (m, list,
                        mo_json_is(list, MO_JSON_ARRAY) &&
                            out->nservers < MO_OAUTH_SERVERS_MAX) {
        if (!mo_json_is(m.val, MO_JSON_STRING) || m.val.n > MO_OAUTH_TEXT_MAX)
            continue;
        if (mo_json_str(m.val, a, &s) < 0 ||
            mo_oauth_keep(a, s, &out->servers[out->nservers]) < 0)
            return mo_fail(e, MO_ENOMEM, "metadata");
        if (mo_span_between(s, ' ', '~'))
            out->nservers++;
    }
    if (out->nservers == 0)
        return mo_fail(e, MO_EPROTO, "no authorization server is named");
    return 0;
}

static bool has_text(struct mo_json list, const char *text)
{
    mo_json_each_while (m, list, mo_json_is(list, MO_JSON_ARRAY)) {
        if (mo_json_str_eq(m.val, mo_span_cstr(text)))
            return true;
    }
    return false;
}

static bool accepts_proofs(struct mo_json root)
{
    return has_text(mo_json_get(root, "dpop_signing_alg_values_supported"),
                    MO_DPOP_ALG);
}

int mo_oauth_resource_parse(struct mo_arena *a, struct mo_span json,
                            const char *server, struct mo_oauth_resource *out,
                            struct mo_err *e)
{
    struct mo_json_doc doc = {.bad_at = 0};
    int rc = get_object(json, &doc, e);

    *out = (struct mo_oauth_resource){.nservers = 0};
    if (rc == 0)
        rc = get_text(a, doc.root, "resource", &out->resource, e);
    if (rc == 0 && !out->resource)
        rc = mo_fail(e, MO_EPROTO, "the metadata has no resource");
    if (rc == 0 && !is_resource_of(out->resource, server))
        rc = mo_fail(e, MO_EPOLICY, "the metadata is for another resource");
    if (rc == 0)
        rc = get_issuers(a, doc.root, out, e);
    if (rc == 0)
        rc = get_scopes(a, doc.root, &out->scope, e);
    if (rc == 0)
        out->dpop = accepts_proofs(doc.root) ||
                    mo_json_flag(doc.root, "dpop_bound_access_tokens_required");
    return rc;
}

static const struct {
    const char *name;
    unsigned method;
} methods[] = {
    {"client_secret_basic", MO_OAUTH_BASIC},
    {"client_secret_post", MO_OAUTH_POST},
    {"none", MO_OAUTH_NONE},
    {"private_key_jwt", MO_OAUTH_KEY},
};

unsigned mo_oauth_auth_method(struct mo_span name)
{
    for (size_t i = 0; i < MO_COUNT(methods); i++) {
        if (mo_span_is(name, methods[i].name))
            return methods[i].method;
    }
    return 0;
}

const char *mo_oauth_auth_name(unsigned method)
{
    for (size_t i = 0; i < MO_COUNT(methods); i++) {
        if (methods[i].method == method)
            return methods[i].name;
    }
    return NULL;
}

/* Absent: secrets go into the header, and a client without one sends none. */
static unsigned get_methods(struct mo_json root)
{
    struct mo_json list =
        mo_json_get(root, "token_endpoint_auth_methods_supported");
    unsigned got = 0;

    if (!mo_json_is(list, MO_JSON_ARRAY))
        return MO_OAUTH_BASIC | MO_OAUTH_NONE;
    for (size_t i = 0; i < MO_COUNT(methods); i++)
        got |= has_text(list, methods[i].name) ? methods[i].method : 0;
    return got;
}

static int get_endpoints(struct mo_arena *a, struct mo_json root,
                         const char *server, struct mo_oauth_server *out,
                         struct mo_err *e)
{
    const struct {
        const char *key, **to;
    } urls[] = {
        {"authorization_endpoint", &out->authorize},
        {"token_endpoint", &out->token},
        {"registration_endpoint", &out->registration},
        {"jwks_uri", &out->keys},
        {"introspection_endpoint", &out->introspection},
        {"revocation_endpoint", &out->revocation},
        {"device_authorization_endpoint", &out->device},
        {"end_session_endpoint", &out->end_session},
        {"userinfo_endpoint", &out->userinfo},
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < MO_COUNT(urls); i++)
        rc = get_url(a, root, urls[i].key, server, urls[i].to, e);
    if (rc == 0 && !out->token)
        rc = mo_fail(e, MO_EPROTO, "the metadata has no endpoints");
    return rc;
}

int mo_oauth_server_check(const struct mo_oauth_server *s, struct mo_err *e)
{
    if (!s->authorize)
        return mo_fail(e, MO_EPROTO, "the metadata has no endpoints");
    if (!s->pkce)
        return mo_fail(e, MO_EPOLICY, "the issuer does not offer PKCE (S256)");
    if (!(s->auth & ~(unsigned)MO_OAUTH_KEY))
        return mo_fail(e, MO_EPROTO,
                       "the issuer offers no supported client authentication");
    return 0;
}

int mo_oauth_server_parse(struct mo_arena *a, struct mo_span json,
                          const char *issuer, const char *server,
                          struct mo_oauth_server *out, struct mo_err *e)
{
    int rc = mo_oauth_server_parse_any(a, json, issuer, server, out, e);

    return rc < 0 ? rc : mo_oauth_server_check(out, e);
}

int mo_oauth_server_parse_any(struct mo_arena *a, struct mo_span json,
                              const char *issuer, const char *server,
                              struct mo_oauth_server *out, struct mo_err *e)
{
    struct mo_json_doc doc = {.bad_at = 0};
    int rc = get_object(json, &doc, e);

    *out = (struct mo_oauth_server){.auth = 0};
    if (rc == 0)
        rc = get_text(a, doc.root, "issuer", &out->issuer, e);
    if (rc == 0 && (!out->issuer || strcmp(out->issuer, issuer) != 0))
        rc = mo_fail(e, MO_EPOLICY, "the metadata is from another issuer");
    if (rc == 0)
        rc = get_endpoints(a, doc.root, server, out, e);
    if (rc == 0)
        rc = get_scopes(a, doc.root, &out->scope, e);
    if (rc < 0)
        return rc;
    out->pkce = has_text(
        mo_json_get(doc.root, "code_challenge_methods_supported"), "S256");
    out->dpop = accepts_proofs(doc.root);
    out->auth = get_methods(doc.root);
    out->iss = mo_json_flag(doc.root,
                            "authorization_response_iss_parameter_supported");
    out->cimd = mo_json_flag(doc.root, "client_id_metadata_document_supported");
    return 0;
}

int mo_oauth_server_default(struct mo_arena *a, const char *server,
                            struct mo_oauth_server *out)
{
    int rc = mo_oauth_at_origin(a, server, "", &out->issuer);

    if (rc == 0)
        rc = mo_oauth_at_origin(a, server, "/authorize", &out->authorize);
    if (rc == 0)
        rc = mo_oauth_at_origin(a, server, "/token", &out->token);
    if (rc == 0)
        rc = mo_oauth_at_origin(a, server, "/register", &out->registration);
    out->scope = NULL;
    out->auth = MO_OAUTH_BASIC | MO_OAUTH_POST | MO_OAUTH_NONE;
    out->iss = out->cimd = out->dpop = false;
    out->pkce = true;
    return rc;
}

/* --- scopes -------------------------------------------------------------- */

/* Cut the next scope from a list; empty at the end. */
static struct mo_span next_scope(struct mo_span *list)
{
    struct mo_span one = {NULL, 0};

    while (list->p && one.n == 0)
        one = mo_span_cut(list, ' ');
    return one;
}

bool mo_oauth_scope_has(const char *list, struct mo_span one)
{
    struct mo_span rest = mo_span_cstr(list), s;

    for (s = next_scope(&rest); s.n; s = next_scope(&rest)) {
        if (mo_span_eq(s, one))
            return true;
    }
    return false;
}

bool mo_oauth_scope_covers(const char *list, const char *part)
{
    struct mo_span rest = mo_span_cstr(part), s;

    for (s = next_scope(&rest); s.n; s = next_scope(&rest)) {
        if (!mo_oauth_scope_has(list, s))
            return false;
    }
    return true;
}

static void put_new_scopes(struct mo_buf *b, const char *list)
{
    struct mo_span rest = mo_span_cstr(list), s;

    for (s = next_scope(&rest); s.n; s = next_scope(&rest)) {
        if (mo_oauth_scope_has(mo_buf_cstr(b), s))
            continue;
        if (b->len)
            mo_buf_putc(b, ' ');
        mo_buf_span(b, s);
    }
}

int mo_oauth_scope_union(struct mo_arena *a, const char *x, const char *y,
                         const char **out)
{
    mo_autobuf struct mo_buf b = {.max = SCOPE_MAX};

    *out = NULL;
    put_new_scopes(&b, x);
    put_new_scopes(&b, y);
    if (b.len == 0 && !mo_buf_err(&b))
        return 0;
    return mo_oauth_keep_buf(a, &b, out);
}
