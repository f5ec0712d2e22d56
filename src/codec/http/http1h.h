/* http1h.h - one whole head of an HTTP/1.x message, read twice.
 *
 * Private to http1*.c. The caller has walked the lines already: every LF has
 * its CR before it, no line begins with a blank, only the last is empty. They
 * are split and checked here; then llhttp reads the same bytes and must come
 * to the same result. */
#ifndef MO_CODEC_HTTP_HTTP1H_H
#define MO_CODEC_HTTP_HTTP1H_H

#include "codec/http/http1.h"

/* A set of bytes. */
struct mo_http1_set {
    bool has[256];
};

static inline bool mo_http1_in(const struct mo_http1_set *s, char c)
{
    return s->has[(unsigned char)c];
}

/* Number of bytes at the start of s that are in the set. */
static inline size_t mo_http1_run(const struct mo_http1_set *set,
                                  struct mo_span s)
{
    size_t i = 0;

    while (i < s.n && mo_http1_in(set, s.p[i]))
        i++;
    return i;
}

extern const struct mo_http1_set mo_http1_token; /* RFC 9110 tchar */

/* No control byte but the tab. */
bool mo_http1_is_text(struct mo_span s);

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
