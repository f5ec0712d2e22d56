#include "web/page.h"

#include <string.h>

#define FOREVER "public, max-age=31536000, immutable"
#define ASK     "no-cache"

const struct mo_asset *mo_page_find(const char *path)
{
    for (size_t i = 0; i < mo_nassets; i++)
        if (strcmp(mo_assets[i].path, path) == 0)
            return &mo_assets[i];
    return NULL;
}

/* "gzip;q=0" is a no; other weights are taken for a yes. */
static bool is_no(struct mo_span params)
{
    struct mo_span q = mo_span_trim(params);

    if (!mo_span_starts(q, MO_SPAN("q=0")))
        return false;
    q = mo_span_skip(q, 3);
    for (size_t i = 0; i < q.n; i++)
        if (q.p[i] != '.' && q.p[i] != '0')
            return false;
    return true;
}

/* One word of a list such as "gzip, br;q=0.9". */
static bool lists(struct mo_span list, const char *word)
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

    if (a->brotli.n > 0 && lists(takes, "br")) {
        mo_req_header(rq, "Content-Encoding", MO_SPAN("br"));
        return a->brotli;
    }
    if (a->gzip.n > 0 && lists(takes, "gzip")) {
        mo_req_header(rq, "Content-Encoding", MO_SPAN("gzip"));
        return a->gzip;
    }
    return a->plain;
}

void mo_page_reply(struct mo_req *rq, const struct mo_asset *a)
{
    struct mo_span has = mo_http_get(rq->head, "If-None-Match");

    mo_req_header(rq, "Cache-Control",
                  mo_span_cstr(a->lasting ? FOREVER : ASK));
    mo_req_header(rq, "ETag", mo_span_cstr(a->tag));
    mo_req_header(rq, "Vary", MO_SPAN("Accept-Encoding"));
    if (has.n > 0 && lists(has, a->tag))
        mo_req_reply(rq, 304, NULL, mo_span(NULL, 0));
    else
        mo_req_reply(rq, 200, a->type, smallest(rq, a));
}
