#include "trace/target.h"

#include "base/build.h"
#include "base/rand.h"

#define SCOPE        "mcp-orchestrator"
#define RESOURCE_MAX ((size_t)8 * 1024)

/* --- the resource -------------------------------------------------------- */

static void put_pair(struct mo_buf *b, struct mo_span key, struct mo_span value)
{
    (void)mo_buf_span(b, key);
    (void)mo_buf_putc(b, '\0');
    (void)mo_buf_span(b, value);
    (void)mo_buf_putc(b, '\0');
}

/* Attributes that the program sets itself. */
static bool is_ours(struct mo_span key)
{
    return mo_span_is(key, "service.name") ||
           mo_span_is(key, "service.version") ||
           mo_span_is(key, "service.instance.id");
}

/* Pairs without a key or value, and a second one of a key, are left out. */
static void put_given(struct mo_buf *b, const char *attributes)
{
    struct mo_span rest = mo_span_cstr(attributes ? attributes : "");

    while (rest.p) {
        struct mo_span value = mo_span_cut(&rest, ',');
        struct mo_span key = mo_span_trim(mo_span_cut(&value, '='));
        struct mo_span seen = mo_buf_view(b);
        bool again = is_ours(key);

        value = mo_span_trim(value);
        while (seen.n && !again) {
            again = mo_span_eq(mo_span_cut(&seen, '\0'), key);
            (void)mo_span_cut(&seen, '\0');
        }
        if (key.n && value.n && !again)
            put_pair(b, key, value);
    }
}

int mo_otlp_target_resource(const struct mo_otlp_target *t,
                            struct mo_buf *resource)
{
    char id[MO_TOKEN_LEN(12) + 1];

    mo_random_token(id, 12);
    mo_buf_init(resource, RESOURCE_MAX);
    put_given(resource, t->attributes);
    put_pair(resource, MO_SPAN("service.name"), mo_span_cstr(t->service));
    put_pair(resource, MO_SPAN("service.version"), MO_SPAN(MO_VERSION));
    put_pair(resource, MO_SPAN("service.instance.id"),
             mo_span_cstr(t->instance ? t->instance : id));
    return mo_buf_err(resource);
}

/* --- the collector ------------------------------------------------------- */

struct mo_export *mo_otlp_target_export(const struct mo_otlp_target *t,
                                        const char *signal,
                                        struct mo_export_opts x,
                                        struct mo_err *e)
{
    struct mo_span base = mo_span_cstr(t->endpoint);
    mo_autobuf struct mo_buf url = {.max = RESOURCE_MAX};

    while (base.n && base.p[base.n - 1] == '/')
        base.n--;
    (void)mo_buf_span(&url, base);
    (void)mo_buf_puts(&url, "/v1/");
    (void)mo_buf_puts(&url, signal);
    x.loop = t->loop;
    x.what = signal;
    x.type = t->encoding == MO_OTLP_JSON ? "application/json"
                                         : "application/x-protobuf";
    x.headers = t->headers;
    x.nheaders = t->nheaders;
    x.url = mo_buf_cstr(&url);
    if (mo_buf_err(&url))
        return mo_null(mo_fail(e, mo_buf_err(&url), "telemetry"));
    return mo_export_new(&x, e);
}

/* --- a request ----------------------------------------------------------- */

static void put_resource(struct mo_otlp *o, const struct mo_buf *resource)
{
    struct mo_span rest = mo_buf_view(resource);

    mo_otlp_msg(o, 1, "resource");
    mo_otlp_list(o, "attributes");
    while (rest.n) {
        struct mo_span key = mo_span_cut(&rest, '\0');
        struct mo_span value = mo_span_cut(&rest, '\0');

        mo_otlp_attr(o, 1, key.p, value);
    }
    mo_otlp_list_end(o);
    mo_otlp_end(o);
}

static void put_scope(struct mo_otlp *o)
{
    mo_otlp_msg(o, 1, "scope");
    mo_otlp_text(o, 1, "name", MO_SPAN(SCOPE));
    mo_otlp_text(o, 2, "version", MO_SPAN(MO_VERSION));
    mo_otlp_end(o);
}

void mo_otlp_request(struct mo_otlp *o, struct mo_buf *body,
                     enum mo_otlp_encoding encoding,
                     const struct mo_buf *resource,
                     const struct mo_otlp_names *names)
{
    mo_otlp_init(o, body, encoding);
    mo_otlp_list(o, names->resources);
    mo_otlp_item(o, 1);
    put_resource(o, resource);
    mo_otlp_list(o, names->scopes);
    mo_otlp_item(o, 2);
    put_scope(o);
    mo_otlp_list(o, names->items);
}

int mo_otlp_request_end(struct mo_otlp *o)
{
    mo_otlp_list_end(o);
    mo_otlp_end(o);
    mo_otlp_list_end(o);
    mo_otlp_end(o);
    mo_otlp_list_end(o);
    return mo_otlp_fini(o);
}
