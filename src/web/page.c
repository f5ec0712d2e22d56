#include "web/page.h"

#include <string.h>

#define FOREVER "public, max-age=31536000, immutable"
#define ASK     "no-cache"

/* "gzip;q=0" means no; any other weight counts as yes. */
static bool is_no(struct mo_span params)
{
    struct mo_span q = mo_span_trim(params);

    return mo_span_strip(&q, MO_SPAN("q=0")) && mo_span_only(q, ".0");
}

bool mo_list_has(struct mo_span list, const char *word)
{
    while (list.n > 0) {
        struct mo_span item = mo_span_cut(&list, ',');
        struct mo_span name = mo_span_trim(mo_span_cut(&item, ';'));

        if (mo_span_ieq(name, mo_span_cstr(word)))
            return !is_no(item);
    }
    return false;
}

static struct mo_span smallest(struct mo_req *rq, const struct mo_asset *a)
{
    struct mo_span takes = mo_http_get(rq->head, "Accept-Encoding");

    if (a->brotli.n > 0 && mo_list_has(takes, "br")) {
        mo_req_header(rq, "Content-Encoding", MO_SPAN("br"));
        return a->brotli;
    }
    if (a->gzip.n > 0 && (a->plain.n == 0 || mo_list_has(takes, "gzip"))) {
        mo_req_header(rq, "Content-Encoding", MO_SPAN("gzip"));
        return a->gzip;
    }
    return a->plain;
}

static void put_caching(struct mo_req *rq, const struct mo_asset *a)
{
    mo_req_header(rq, "Cache-Control",
                  mo_span_cstr(a->lasting ? FOREVER : ASK));
    mo_req_header(rq, "Vary", MO_SPAN("Accept-Encoding"));
}

/* The document of diagrams runs in a frame of the page, with an origin of its
 * own and no network. It says itself which script may run, by its checksum. */
static const char frame_policy[] =
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'";

static bool is_frame(const char *path)
{
    return strcmp(path, "/diagram.html") == 0;
}

/* Send the smallest form that the client accepts, or 304. */
static void on_asset(void *ctx, struct mo_req *rq)
{
    const struct mo_asset *a = ctx;
    struct mo_span has = mo_http_get(rq->head, "If-None-Match");

    if (is_frame(a->path))
        mo_req_header(rq, "Content-Security-Policy",
                      mo_span_cstr(frame_policy));
    put_caching(rq, a);
    mo_req_header(rq, "ETag", mo_span_cstr(a->tag));
    if (has.n > 0 && mo_list_has(has, a->tag))
        mo_req_reply(rq, 304, NULL, mo_span(NULL, 0));
    else
        mo_req_reply(rq, 200, a->type, smallest(rq, a));
}

/* Views of the page have their own addresses but the same document. */
static const struct {
    const char *path;
    unsigned flags;
} views[] = {
    {"/", 0},
    {"/s/", MO_ROUTE_PREFIX},
    {"/overview", 0},
    {"/servers", 0},
    {"/servers/", MO_ROUTE_PREFIX},
    {"/settings", 0},
    {"/views", 0},
    {"/router", 0},
    {"/approvals", 0},
    {"/connections", 0},
};

static void add(struct mo_site *s, const char *path, unsigned flags,
                const struct mo_asset *a)
{
    struct mo_route r = {MO_HTTP_GET, path, flags, on_asset,
                         (void *)(uintptr_t)a};

    (void)mo_site_route(s, &r);
}

/* The files of the sign-in page need no token; nor do the manifest and the
 * icons, which browsers fetch without cookies, nor the document of diagrams, as
 * a frame without an origin may have none. */
static bool is_open(const char *path)
{
    return strncmp(path, "/sign-in.", 9) == 0 ||
           strncmp(path, "/icon", 5) == 0 ||
           strcmp(path, "/manifest.webmanifest") == 0 || is_frame(path);
}

const struct mo_asset *mo_page_asset(const char *path)
{
    for (size_t i = 0; i < mo_nassets; i++)
        if (strcmp(mo_assets[i].path, path) == 0)
            return &mo_assets[i];
    return NULL;
}

bool mo_page_missing(struct mo_req *rq)
{
    const struct mo_asset *a = mo_page_asset("/index.html");
    bool is_data = mo_span_starts(rq->path, MO_SPAN("/api/")) ||
                   mo_span_starts(rq->path, MO_SPAN("/mcp/")) ||
                   mo_span_starts(rq->path, MO_SPAN("/assets/"));

    if (!a || is_data || rq->head->method != MO_HTTP_GET ||
        !mo_list_has(mo_http_get(rq->head, "Accept"), "text/html"))
        return false;
    put_caching(rq, a);
    mo_req_reply(rq, 404, a->type, smallest(rq, a));
    return true;
}

void mo_page_routes(struct mo_site *s)
{
    for (size_t i = 0; i < mo_nassets; i++) {
        const struct mo_asset *a = &mo_assets[i];

        add(s, a->path, is_open(a->path) ? MO_ROUTE_OPEN : 0, a);
        if (strcmp(a->path, "/index.html") != 0)
            continue;
        for (size_t k = 0; k < MO_COUNT(views); k++)
            add(s, views[k].path, views[k].flags | MO_ROUTE_VIEW, a);
    }
}
