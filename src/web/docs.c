#include "web/docs.h"

#include <string.h>

#include "codec/inflate.h"
#include "web/page.h"

#define GZIP_HEAD    10 /* bytes; no optional fields */
#define GZIP_TRAILER 8
#define DOC_MAX      ((size_t)1024 * 1024) /* decompressed */

static const struct mo_doc *find_doc(struct mo_span path)
{
    if (mo_span_is(path, "/docs/"))
        path = MO_SPAN("/docs");
    for (size_t i = 0; i < mo_ndocs; i++)
        if (mo_span_is(path, mo_docs[i].path))
            return &mo_docs[i];
    return NULL;
}

/* Puts the whole gzip file. */
static int join_parts(struct mo_buf *b, const struct mo_doc *d)
{
    struct mo_span trailer = d->text;
    struct mo_span text = mo_span_take(&trailer, d->text.n - GZIP_TRAILER);
    const struct mo_span *common = mo_docs_common;
    const struct mo_span page[] = {common[0], d->title,  common[1],
                                   text,      common[2], trailer};

    if (!d->title.n)
        return mo_buf_put(b, d->text.p, d->text.n);
    for (size_t i = 0; i < MO_COUNT(page); i++)
        (void)mo_buf_put(b, page[i].p, page[i].n);
    return mo_buf_err(b);
}

static int put_piece(void *ctx, struct mo_span piece, struct mo_err *e)
{
    if (mo_buf_put(ctx, piece.p, piece.n) < 0)
        return mo_fail(e, MO_ENOMEM, "document");
    return 0;
}

static int decompress(struct mo_buf *b, struct mo_span gzip, struct mo_err *e)
{
    struct mo_span in = mo_span_skip(gzip, GZIP_HEAD);

    in.n -= GZIP_TRAILER;
    return mo_inflate(in, DOC_MAX, put_piece, b, e);
}

static void send_doc(struct mo_req *rq, int status, const struct mo_doc *d)
{
    mo_autobuf struct mo_buf gzip = {.max = DOC_MAX}, plain = {.max = DOC_MAX};
    struct mo_err e;
    bool takes = mo_list_has(mo_http_get(rq->head, "Accept-Encoding"), "gzip");

    if (join_parts(&gzip, d) < 0 ||
        (!takes && decompress(&plain, mo_buf_view(&gzip), &e) < 0)) {
        mo_req_problem(rq, 503, "no_memory", "not enough memory");
        return;
    }
    if (takes)
        mo_req_header(rq, "Content-Encoding", MO_SPAN("gzip"));
    mo_req_reply(rq, status, d->type, mo_buf_view(takes ? &gzip : &plain));
}

static void on_doc(void *ctx, struct mo_req *rq)
{
    const struct mo_doc *d = find_doc(rq->path);
    struct mo_span has = mo_http_get(rq->head, "If-None-Match");
    bool is_there = d && strcmp(d->path, "/docs/404") != 0;

    (void)ctx;
    mo_req_header(rq, "Cache-Control", MO_SPAN("no-cache"));
    mo_req_header(rq, "Vary", MO_SPAN("Accept-Encoding"));
    if (!is_there) {
        send_doc(rq, 404, find_doc(MO_SPAN("/docs/404")));
        return;
    }
    mo_req_header(rq, "ETag", mo_span_cstr(d->tag));
    if (has.n > 0 && mo_list_has(has, d->tag))
        mo_req_reply(rq, 304, NULL, mo_span(NULL, 0));
    else
        send_doc(rq, 200, d);
}

void mo_docs_routes(struct mo_site *s)
{
    static const struct mo_route rows[] = {
        {MO_HTTP_GET, "/docs", 0, on_doc},
        {MO_HTTP_GET, "/docs/{page}", 0, on_doc},
        {MO_HTTP_GET, "/docs/", MO_ROUTE_PREFIX, on_doc},
    };

    (void)mo_site_add(s, rows, MO_COUNT(rows), NULL);
}
