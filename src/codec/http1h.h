/* http1h.h - one whole head of an HTTP/1.x message, read twice.
 *
 * Private to http1.c. The caller has walked the lines already: each ends in
 * CRLF with no other CR or LF inside, none begins with a blank, the last one
 * is empty and there are `lines` before it. We split and judge them here,
 * then llhttp reads the same bytes and must come to the same result. */
#ifndef MO_CODEC_HTTP1H_H
#define MO_CODEC_HTTP1H_H

#include "codec/http1.h"

struct mo_http1_refusal {
    int status; /* to answer with */
    const char *why;
};

/* Fill *hd and headers[] (room for one a line) with spans into s. 0 or -1
 * with *no filled. */
int mo_http1_read_head(enum mo_http1_kind kind, struct mo_span s,
                       struct mo_http_head *hd, struct mo_http_header *headers,
                       struct mo_http1_refusal *no);

/* 1xx, 204, 304: no body whatever the head says. */
bool mo_http1_bodiless(int status);

#endif
