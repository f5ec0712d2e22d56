#include "web/page.h"

#include <string.h>

#include "codec/inflate.h"

#define FOREVER "public, max-age=31536000, immutable"
#define ASK     "no-cache"

/* A gzip file of scripts/page: no name, no comment. */
#define GZIP_HEAD    10
#define GZIP_TAIL    8
#define UNPACKED_MAX ((size_t)8 * 1024 * 1024)

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

static int add_piece(void *ctx, struct mo_span piece, struct mo_err *e)
{
    struct mo_buf *b = ctx;

    mo_buf_span(b, piece);
    return mo_buf_err(b) == 0 ? 0 : mo_fail(e, MO_ENOMEM, "out of memory");
}

/* A client that takes no compressed form is rare: it is unpacked each time. */
static void send_unpacked(struct mo_req *rq, int status,
                          const struct mo_asset *a)
{
    mo_autobuf struct mo_buf b = {.max = UNPACKED_MAX};
    struct mo_span body =
        mo_span(a->gzip.p + GZIP_HEAD, a->gzip.n - GZIP_HEAD - GZIP_TAIL);
    struct mo_err e = {0};

    if (mo_inflate(body, UNPACKED_MAX, add_piece, &b, &e) < 0)
        mo_req_problem(rq, 503, "unavailable", e.msg);
    else
        mo_req_reply(rq, status, a->type, mo_buf_view(&b));
}

/* Send the smallest form that the client accepts. */
static void send_asset(struct mo_req *rq, int status, const struct mo_asset *a)
{
    struct mo_span takes = mo_http_get(rq->head, "Accept-Encoding");

    if (a->plain.n > 0) {
        mo_req_reply(rq, status, a->type, a->plain);
    } else if (a->brotli.n > 0 && mo_list_has(takes, "br")) {
        mo_req_header(rq, "Content-Encoding", MO_SPAN("br"));
        mo_req_reply(rq, status, a->type, a->brotli);
    } else if (mo_list_has(takes, "gzip")) {
        mo_req_header(rq, "Content-Encoding", MO_SPAN("gzip"));
        mo_req_reply(rq, status, a->type, a->gzip);
    } else {
        send_unpacked(rq, status, a);
    }
}

void mo_page_send(struct mo_req *rq, const struct mo_asset *a)
{
    mo_req_header(rq, "Vary", MO_SPAN("Accept-Encoding"));
    send_asset(rq, 200, a);
}

static void put_caching(struct mo_req *rq, const struct mo_asset *a)
{
    mo_req_header(rq, "Cache-Control",
                  mo_span_cstr(a->lasting ? FOREVER : ASK));
    mo_req_header(rq, "Vary", MO_SPAN("Accept-Encoding"));
}

/* The documents of diagrams and of apps run in a frame of the page, with an
 * origin of their own and no network. That of diagrams says itself which script
 * may run, by its checksum. That of apps is shown by /app-frame, with a policy
 * for the app (api_apps.c). */
static const char frame_policy[] =
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'";

static bool is_frame(const char *path)
{
    return strcmp(path, "/diagram.html") == 0 || strcmp(path, "/app.html") == 0;
}

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
        send_asset(rq, 200, a);
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

bool mo_page_is_looked_for(const struct mo_req *rq)
{
    bool is_data = mo_span_starts(rq->path, MO_SPAN("/api/")) ||
                   mo_span_starts(rq->path, MO_SPAN("/mcp/")) ||
                   mo_span_starts(rq->path, MO_SPAN("/assets/"));

    return !is_data && rq->head->method == MO_HTTP_GET &&
           mo_list_has(mo_http_get(rq->head, "Accept"), "text/html");
}

bool mo_page_missing(struct mo_req *rq)
{
    const struct mo_asset *a = mo_page_asset("/index.html");

    if (!a || !mo_page_is_looked_for(rq))
        return false;
    put_caching(rq, a);
    send_asset(rq, 404, a);
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
