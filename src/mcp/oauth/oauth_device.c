#include "mcp/oauth/oauth_device.h"

#include "codec/http/url.h"
#include "codec/json/json.h"

int mo_oauth_device_body(struct mo_buf *b, const struct mo_oauth_client *c,
                         const struct mo_oauth_try *t)
{
    mo_oauth_put_pair(b, 0, "client_id", c->id);
    mo_oauth_put_pair(b, '&', "scope", t->scope);
    mo_oauth_put_pair(b, '&', "resource", t->resource);
    if (c->method == MO_OAUTH_POST)
        mo_oauth_put_pair(b, '&', "client_secret", c->secret);
    return mo_buf_err(b);
}

int mo_oauth_device_poll_body(struct mo_buf *b, const struct mo_oauth_client *c,
                              const struct mo_oauth_try *t,
                              const struct mo_oauth_device *d)
{
    mo_oauth_put_pair(b, 0, "grant_type", MO_OAUTH_DEVICE_GRANT);
    mo_oauth_put_pair(b, '&', "device_code", d->device_code);
    mo_oauth_put_pair(b, '&', "resource", t->resource);
    mo_oauth_put_client(b, c);
    return mo_buf_err(b);
}

/* --- the answer ---------------------------------------------------------- */

/* A text without blanks and control characters; NULL: there is none. */
static const char *plain_text(struct mo_arena *a, struct mo_json root,
                              const char *key, size_t max, char from)
{
    struct mo_json v = mo_json_get(root, key);
    const char *text = NULL;
    struct mo_span s;

    if (mo_json_is(v, MO_JSON_STRING) && v.n <= 6 * max + 2 &&
        mo_json_str(v, a, &s) == 0 && s.n > 0 && s.n <= max &&
        mo_span_between(s, from, '~'))
        (void)mo_oauth_keep(a, s, &text);
    return text;
}

static const char *plain_url(struct mo_arena *a, struct mo_json root,
                             const char *key, const char *server)
{
    const char *url = plain_text(a, root, key, MO_DEVICE_URL_MAX, '!');

    return url && mo_oauth_url_ok(url, server, NULL) == 0 ? url : NULL;
}

/* Seconds as milliseconds; `usual` if there are none. */
static uint64_t get_ms(struct mo_json root, const char *key, uint64_t usual,
                       uint64_t max)
{
    double s;

    if (mo_json_f64(mo_json_get(root, key), &s) < 0 || !(s > 0))
        return usual;
    return s * 1000 < (double)max ? (uint64_t)(s * 1000) : max;
}

int mo_oauth_device_parse(struct mo_arena *a, struct mo_span json,
                          const char *server, struct mo_oauth_device *out,
                          struct mo_err *e)
{
    struct mo_json_doc doc = {.bad_at = 0};
    struct mo_json root;

    *out = (struct mo_oauth_device){.device_code = NULL};
    if (json.n > MO_OAUTH_DOC_MAX || mo_json_parse(json, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EPROTO, "the answer is not a JSON object");
    root = doc.root;
    out->device_code =
        plain_text(a, root, "device_code", MO_OAUTH_TEXT_MAX, '!');
    out->user_code = plain_text(a, root, "user_code", MO_DEVICE_CODE_MAX, ' ');
    out->url = plain_url(a, root, "verification_uri", server);
    out->url_with_code =
        plain_url(a, root, "verification_uri_complete", server);
    if (!out->device_code || !out->user_code)
        return mo_fail(e, MO_EPROTO, "the provider sent no usable code");
    if (!out->url)
        return mo_fail(e, MO_EPROTO,
                       "the provider sent no usable address to open");
    out->interval_ms =
        get_ms(root, "interval", MO_DEVICE_USUAL_MS, MO_DEVICE_MAX_MS);
    if (out->interval_ms < MO_DEVICE_MIN_MS)
        out->interval_ms = MO_DEVICE_MIN_MS;
    out->life_ms =
        get_ms(root, "expires_in", MO_DEVICE_LIFE_MS, MO_DEVICE_LIFE_MS);
    return 0;
}

enum mo_device_verdict mo_oauth_device_verdict(const char *error)
{
    if (strcmp(error, "authorization_pending") == 0)
        return MO_DEVICE_PENDING;
    if (strcmp(error, "slow_down") == 0)
        return MO_DEVICE_SLOW_DOWN;
    return MO_DEVICE_REFUSED;
}
