/* url.h - absolute URLs, Host headers, origins, queries and paths.
 *
 * Strict where others guess: a URL that two programs could read differently
 * (control bytes, backslashes, blanks, "host:80:80", "0x7f.1", a half percent
 * escape) is MO_EINVAL, not repaired. Nothing is decoded while splitting:
 * spans point into the caller's text and stay percent-encoded.
 *
 * No allocation, no state. This room knows no DNS and makes no connection. */
#ifndef MO_CODEC_HTTP_URL_H
#define MO_CODEC_HTTP_URL_H

#include "base/str.h"

#define MO_URL_MAX      ((size_t)8 * 1024)
#define MO_URL_HOST_MAX ((size_t)255)

struct mo_url {
    struct mo_span scheme;   /* as written: compare without case */
    struct mo_span userinfo; /* p == NULL: no '@' */
    struct mo_span host;     /* without the brackets of an IPv6 literal */
    struct mo_span path;     /* "" or begins with '/' */
    struct mo_span query;    /* after '?'; p == NULL: none */
    struct mo_span fragment; /* after '#'; p == NULL: none */
    uint16_t port;           /* written, or the scheme's, or 0 */
    bool has_port;           /* it was written */
    bool ipv6;               /* host is an IPv6 literal */
};

/* scheme "://" [userinfo "@"] host [":" port] path ["?" query] ["#" frag].
 * The host may be empty only for "unix" and "file", whose path must then not
 * be. 0 or MO_EINVAL, MO_ETOOBIG. */
int mo_url_parse(struct mo_span s, struct mo_url *u, struct mo_err *e);

/* --- hosts and origins --------------------------------------------------- */

struct mo_host {
    struct mo_span name; /* without brackets; as written */
    uint16_t port;       /* written, or the default given */
    bool has_port, ipv6;
};

/* A Host header: "localhost:3000", "[::1]:3000", "a.example". */
int mo_host_parse(struct mo_span s, uint16_t default_port, struct mo_host *h);
/* localhost, *.localhost, 127.0.0.0/8 in dotted form, ::1. */
bool mo_host_is_loopback(const struct mo_host *h);

/* An Origin header: scheme://host[:port] and nothing else, no userinfo, no
 * path. "null" is MO_EINVAL: it equals nothing, not even itself. */
int mo_origin_parse(struct mo_span s, struct mo_url *u);
/* Scheme, host and port, host and scheme without case. */
bool mo_origin_eq(const struct mo_url *a, const struct mo_url *b);
/* Does a page of that origin belong to the server asked as `host`, reached
 * by https (tls) or http? ws and wss count as their http kin. */
bool mo_origin_is_host(const struct mo_url *origin, const struct mo_host *host,
                       bool tls);

/* --- escapes ------------------------------------------------------------- */

/* Append s with %XX decoded (and '+' as a blank, for queries). A '%' without
 * two hex digits is MO_EINVAL; so is NUL, escaped or not. On failure b holds
 * what it held before, unless memory or room ran out. */
int mo_pct_decode(struct mo_buf *b, struct mo_span s, bool plus);
/* Append s with all but unreserved characters escaped. */
int mo_pct_encode(struct mo_buf *b, struct mo_span s);

/* Next key=value of *query (advanced), both still encoded; false at the end.
 * Empty pieces ("a=1&&b=2") are skipped; a piece without '=' has value.p
 * NULL. */
bool mo_query_next(struct mo_span *query, struct mo_span *key,
                   struct mo_span *value);
/* First value of that (decoded) key, decoded and appended to b. 0,
 * MO_ENOTFOUND, or MO_EINVAL for a bad escape in a key before it or in it. */
int mo_query_get(struct mo_span query, const char *key, struct mo_buf *b);

#endif
