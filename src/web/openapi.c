/* openapi.c - GET /api/openapi.json: the description of the HTTP API.
 *
 * The document is data/openapi.json, embedded at build time, with the
 * program's version in `info`. `x-routes` lists the routes that are served, so
 * that a test finds one that is not described. */
#include "web/api_job.h"

#define DOC_MAX   ((size_t)1024 * 1024)
#define ROUTE_MAX 1024 /* bytes of a path */

/* data/openapi.json */
extern const char mo_helper_openapi[], mo_helper_openapi_end[];

static void put_info(struct mo_jw *w, struct mo_json info)
{
    mo_jw_obj(w);
    mo_json_each (it, info) {
        mo_jw_key_span(w, mo_span(it.key.p + 1, it.key.n - 2));
        if (mo_json_str_eq(it.key, MO_SPAN("version")))
            mo_jw_cstr(w, MO_VERSION);
        else
            mo_jw_raw(w, mo_json_text(it.val));
    }
    mo_jw_end(w);
}

static void put_routes(struct mo_jw *w, const struct mo_site *s)
{
    const struct mo_route *v = NULL;
    size_t n = mo_site_routes(s, &v);
    mo_autobuf struct mo_buf path = {.max = ROUTE_MAX};

    mo_jw_arr(w);
    for (size_t i = 0; i < n; i++) {
        mo_buf_reset(&path);
        mo_buf_puts(&path, v[i].path);
        if (v[i].flags & MO_ROUTE_PREFIX)
            mo_buf_putc(&path, '*');
        mo_jw_str(w, mo_buf_view(&path));
    }
    mo_jw_end(w);
}

static int write_document(const struct mo_site *s, struct mo_buf *b)
{
    struct mo_span text = mo_span(
        mo_helper_openapi, (size_t)(mo_helper_openapi_end - mo_helper_openapi));
    struct mo_json_doc doc;
    struct mo_jw w;
    int rc = mo_json_parse(text, 0, &doc, NULL);

    if (rc < 0)
        return rc;
    w = mo_jw_object(b);
    mo_json_each (it, doc.root) {
        mo_jw_key_span(&w, mo_span(it.key.p + 1, it.key.n - 2));
        if (mo_json_str_eq(it.key, MO_SPAN("info")))
            put_info(&w, it.val);
        else
            mo_jw_raw(&w, mo_json_text(it.val));
    }
    mo_jw_key(&w, "x-routes");
    put_routes(&w, s);
    mo_jw_end(&w);
    return mo_buf_err(b);
}

static void on_get(void *ctx, struct mo_req *rq)
{
    mo_autobuf struct mo_buf b = {.max = DOC_MAX};

    if (write_document(ctx, &b) < 0 && !b.err)
        b.err = MO_ENOMEM;
    mo_api_send(rq, &b);
}

int mo_openapi_route(struct mo_site *s)
{
    const struct mo_route r = {MO_HTTP_GET, "/api/openapi.json", 0, on_get, s};

    return mo_site_route(s, &r);
}
