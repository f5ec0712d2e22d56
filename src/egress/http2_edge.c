/* http2_edge.c - HTTP/2 of http_edge.h.
 *
 * Frames of the program pass as they are, but for those with headers: these are
 * read (codec/http/hpack.h), checked and written anew. So flow control,
 * priorities and settings stay a matter of the program and the host, and
 * answers need no change at all.
 *
 * The body of a request must be as long as its content-length says: a front
 * end that translates to HTTP/1.1 may believe either. Frames of unknown types
 * are dropped. */
#include "codec/http/hpack.h"
#include "egress/http_edge_priv.h"

#define FRAME_HEAD   9
#define PAYLOAD_MAX  ((size_t)16 * 1024) /* of a frame that every peer takes */
#define BLOCK_MAX    ((size_t)64 * 1024)
#define FIELDS_MAX   (MO_HPACK_LIST_MAX * 2)
#define PRIORITY_LEN 5
#define STREAMS_MAX  1024 /* with a content-length and more to come */
#define NO_LENGTH    INT64_MAX

enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
    PRIORITY_UPDATE = 16,
};

enum { END_STREAM = 1, END_HEADERS = 4, PADDED = 8, WITH_PRIORITY = 32 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#define PREFACE_LEN (sizeof(preface) - 1)

/* A request whose body has this many bytes to come. */
struct body {
    uint32_t stream;
    int64_t left;
};

struct mo_http2_edge {
    struct mo_http_edge *x;
    size_t greeted;       /* bytes of the preface that came */
    struct mo_buf head;   /* of a frame, and the length of DATA's padding */
    size_t left;          /* bytes of the frame's payload to come */
    unsigned type, flags; /* of the frame */
    uint32_t stream;
    bool pass; /* its payload passes; else it is a block's, or dropped */
    /* A block of headers. */
    bool open; /* CONTINUATION must follow */
    uint32_t block_stream;
    unsigned block_flags;
    struct mo_buf block;
    struct mo_buf fields; /* for the host */
    struct mo_hpack *hpack;
    struct {
        bool method, scheme, path, authority, protocol, regular, connect;
        bool host;
        int64_t length;
    } seen; /* in the block */
    struct body *bodies;
    size_t nbodies;
};

static int refuse(struct mo_err *e, const char *what)
{
    return mo_fail(e, MO_EPROTO, "%s", what);
}

/* --- bodies -------------------------------------------------------------- */

static struct body *find_body(const struct mo_http2_edge *h, uint32_t stream)
{
    for (size_t i = 0; i < h->nbodies; i++)
        if (h->bodies[i].stream == stream)
            return &h->bodies[i];
    return NULL;
}

static void drop_body(struct mo_http2_edge *h, uint32_t stream)
{
    struct body *b = find_body(h, stream);

    if (b)
        *b = h->bodies[--h->nbodies];
}

static int add_body(struct mo_http2_edge *h, uint32_t stream, int64_t length,
                    struct mo_err *e)
{
    if (find_body(h, stream))
        return refuse(e, "a second request in a stream");
    if (h->nbodies == STREAMS_MAX)
        return refuse(e, "too many requests at a time");
    if (!h->bodies)
        h->bodies = mo_zalloc(STREAMS_MAX * sizeof(*h->bodies));
    if (!h->bodies)
        return mo_fail(e, MO_ENOMEM, "a request");
    h->bodies[h->nbodies++] = (struct body){stream, length};
    return 0;
}

static int count_body(struct mo_http2_edge *h, uint32_t stream, size_t n,
                      bool last, struct mo_err *e)
{
    struct body *b = find_body(h, stream);

    if (!b)
        return 0; /* it has no content-length */
    b->left -= (int64_t)n;
    if (b->left < 0 || (last && b->left))
        return refuse(e, "a body that is not as long as it says");
    if (last)
        drop_body(h, stream);
    return 0;
}

/* --- one field ----------------------------------------------------------- */

static bool is_value(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' && s.p[i] != '\t')
            return false;
    return mo_span_find(s, 0x7F) < 0;
}

static bool is_name(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= 'A' && s.p[i] <= 'Z')
            return false;
    return mo_http_is_token(s);
}

static int take_once(bool *seen, struct mo_err *e)
{
    if (*seen)
        return refuse(e, "a request with a field twice");
    *seen = true;
    return 0;
}

static int check_pseudo(struct mo_http2_edge *h, struct mo_span name,
                        struct mo_span value, struct mo_err *e)
{
    int rc;

    if (h->seen.regular || !mo_span_between(value, '!', '~'))
        return refuse(e, "a request with fields in disorder");
    if (mo_span_is(name, ":method")) {
        h->seen.connect = mo_span_is(value, "CONNECT");
        rc = take_once(&h->seen.method, e);
        if (rc == 0 && !h->seen.connect)
            rc = mo_http_edge_check_method(value, e);
        return rc;
    }
    if (mo_span_is(name, ":authority")) {
        rc = take_once(&h->seen.authority, e);
        return rc ? rc : mo_http_edge_check_host(h->x, value, e);
    }
    if (mo_span_is(name, ":scheme"))
        return mo_span_is(value, "https") ? take_once(&h->seen.scheme, e)
                                          : refuse(e, "a request for no https");
    if (mo_span_is(name, ":path"))
        return value.n && (value.p[0] == '/' || mo_span_is(value, "*"))
                   ? take_once(&h->seen.path, e)
                   : refuse(e, "a request whose target is no path");
    if (mo_span_is(name, ":protocol"))
        return take_once(&h->seen.protocol, e);
    return refuse(e, "a request with an unknown field");
}

static int check_length(struct mo_http2_edge *h, struct mo_span value,
                        struct mo_err *e)
{
    uint64_t n;

    if (h->seen.length != NO_LENGTH || mo_span_u64(value, &n) < 0 ||
        n >= NO_LENGTH)
        return refuse(e, "a request with a bad content-length");
    h->seen.length = (int64_t)n;
    return 0;
}

/* Fields that belong to a connection of HTTP/1.1 would mean something to a
 * front end that translates. */
static int check_regular(struct mo_http2_edge *h, struct mo_span name,
                         struct mo_span value, struct mo_err *e)
{
    static const char *const rows[] = {"connection", "keep-alive",
                                       "proxy-connection", "transfer-encoding",
                                       "upgrade"};
    int rc;

    h->seen.regular = true;
    if (!is_name(name) || !is_value(value))
        return refuse(e, "a request with a field that is not valid");
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (mo_span_is(name, rows[i]))
            return refuse(e, "a request with a field of HTTP/1.1");
    if (mo_span_is(name, "te") && !mo_span_is(value, "trailers"))
        return refuse(e, "a request with a field of HTTP/1.1");
    if (mo_span_is(name, "content-length"))
        return check_length(h, value, e);
    if (!mo_span_is(name, "host"))
        return 0;
    rc = take_once(&h->seen.host, e);
    return rc ? rc : mo_http_edge_check_host(h->x, value, e);
}

static int on_field(void *ctx, struct mo_span name, struct mo_span value,
                    struct mo_err *e)
{
    struct mo_http2_edge *h = ctx;
    int rc;

    if (name.n && name.p[0] == ':')
        rc = check_pseudo(h, name, value, e);
    else
        rc = check_regular(h, name, value, e);
    if (rc == 0 && !mo_http_edge_is_set(h->x, name))
        mo_hpack_put(&h->fields, name, value, false);
    return rc;
}

/* --- a block of fields --------------------------------------------------- */

static bool is_request(const struct mo_http2_edge *h)
{
    return h->seen.method || h->seen.scheme || h->seen.path ||
           h->seen.authority || h->seen.protocol;
}

static int check_request(struct mo_http2_edge *h, struct mo_err *e)
{
    bool last = h->block_flags & END_STREAM;

    if (!h->seen.method || !h->seen.scheme || !h->seen.path ||
        (!h->seen.authority && !h->seen.host))
        return refuse(e, "a request that lacks a field");
    if (h->seen.connect != h->seen.protocol) /* RFC 8441 */
        return refuse(e, "a CONNECT request");
    if (h->seen.length == NO_LENGTH || (last && h->seen.length == 0))
        return 0;
    if (last)
        return refuse(e, "a body that is not as long as it says");
    return add_body(h, h->block_stream, h->seen.length, e);
}

static int check_trailers(struct mo_http2_edge *h, struct mo_err *e)
{
    if (!(h->block_flags & END_STREAM) || h->seen.host ||
        h->seen.length != NO_LENGTH)
        return refuse(e, "fields that belong to no request");
    return count_body(h, h->block_stream, 0, true, e);
}

static void add_secrets(struct mo_http2_edge *h)
{
    const struct mo_http_edge_opts *o = &h->x->o;
    size_t room = 0;

    for (size_t i = 0; i < o->n; i++)
        room += strlen(o->headers[i].name) + o->headers[i].value.n + 16;
    (void)mo_buf_room(&h->fields, room); /* growing would leave copies */
    for (size_t i = 0; i < o->n; i++) {
        mo_autobuf struct mo_buf small = {.max = BLOCK_MAX};

        for (const char *p = o->headers[i].name; *p; p++)
            mo_buf_putc(&small, mo_lower(*p));
        mo_hpack_put(&h->fields, mo_buf_view(&small), o->headers[i].value,
                     true);
        if (mo_buf_err(&small))
            h->fields.err = mo_buf_err(&small);
    }
    h->x->count++;
}

static void put_frame(struct mo_buf *b, size_t n, unsigned type, unsigned flags,
                      uint32_t stream)
{
    const unsigned char head[FRAME_HEAD] = {(unsigned char)(n >> 16),
                                            (unsigned char)(n >> 8),
                                            (unsigned char)n,
                                            (unsigned char)type,
                                            (unsigned char)flags,
                                            (unsigned char)(stream >> 24),
                                            (unsigned char)(stream >> 16),
                                            (unsigned char)(stream >> 8),
                                            (unsigned char)stream};

    mo_buf_put(b, head, sizeof(head));
}

static void put_block(struct mo_http2_edge *h, struct mo_buf *b)
{
    struct mo_span rest = mo_buf_view(&h->fields);
    unsigned type = HEADERS, flags = h->block_flags & END_STREAM;

    do {
        struct mo_span part =
            mo_span_take(&rest, rest.n < PAYLOAD_MAX ? rest.n : PAYLOAD_MAX);

        put_frame(b, part.n, type, flags | (rest.n ? 0 : END_HEADERS),
                  h->block_stream);
        mo_buf_span(b, part);
        type = CONTINUATION;
        flags = 0;
    } while (rest.n);
}

static int end_block(struct mo_http2_edge *h, struct mo_buf *b,
                     struct mo_err *e)
{
    int rc;

    memset(&h->seen, 0, sizeof(h->seen));
    h->seen.length = NO_LENGTH;
    mo_buf_reset(&h->fields);
    mo_hpack_put_start(&h->fields);
    rc = mo_hpack_read(h->hpack, mo_buf_view(&h->block), on_field, h, e);
    if (rc == 0)
        rc = is_request(h) ? check_request(h, e) : check_trailers(h, e);
    if (rc == 0 && is_request(h))
        add_secrets(h);
    if (rc == 0)
        rc = mo_buf_err(&h->fields)
                 ? mo_fail(e, mo_buf_err(&h->fields), "a request")
                 : 0;
    if (rc == 0)
        put_block(h, b);
    mo_buf_wipe(&h->fields);
    mo_buf_shrink(&h->block, PAYLOAD_MAX);
    mo_buf_reset(&h->block);
    return rc;
}

/* --- frames -------------------------------------------------------------- */

/* The payload of HEADERS is complete: padding and priority go. */
static int strip_headers(struct mo_http2_edge *h, struct mo_err *e)
{
    struct mo_span s = mo_buf_view(&h->block);
    size_t pad = 0, skip = 0;

    if (h->flags & PADDED && s.n) {
        pad = (unsigned char)s.p[0];
        skip = 1;
    }
    if (h->flags & WITH_PRIORITY)
        skip += PRIORITY_LEN;
    if (s.n < pad + skip || (h->flags & PADDED && !s.n))
        return refuse(e, "a frame that is not valid");
    s = mo_span_skip(s, skip);
    if (skip && s.n > pad)
        memmove(h->block.p, s.p, s.n - pad);
    h->block.len = s.n - pad;
    return 0;
}

static int end_frame(struct mo_http2_edge *h, struct mo_buf *b,
                     struct mo_err *e)
{
    int rc = 0;

    if (h->type == HEADERS)
        rc = strip_headers(h, e);
    if (rc == 0 && (h->type == HEADERS || h->type == CONTINUATION)) {
        h->open = !(h->flags & END_HEADERS);
        if (!h->open)
            rc = end_block(h, b, e);
    }
    mo_buf_reset(&h->head);
    return rc;
}

static int begin_data(struct mo_http2_edge *h, struct mo_err *e)
{
    size_t pad = h->flags & PADDED
                     ? (size_t)1 + (unsigned char)h->head.p[FRAME_HEAD]
                     : 0;

    if (pad > h->left)
        return refuse(e, "a frame that is not valid");
    return count_body(h, h->stream, h->left - pad, h->flags & END_STREAM, e);
}

static int begin_frame(struct mo_http2_edge *h, struct mo_err *e)
{
    if (h->open != (h->type == CONTINUATION) ||
        (h->open && h->stream != h->block_stream))
        return refuse(e, "a frame that does not belong here");
    h->pass = true;
    switch (h->type) {
    case DATA:
        return begin_data(h, e);
    case HEADERS:
        h->block_stream = h->stream;
        h->block_flags = h->flags;
        h->pass = false;
        return h->stream ? 0 : refuse(e, "a frame that does not belong here");
    case CONTINUATION:
        h->pass = false;
        return 0;
    case RST_STREAM:
        drop_body(h, h->stream);
        return 0;
    case PRIORITY:
    case SETTINGS:
    case PING:
    case GOAWAY:
    case WINDOW_UPDATE:
    case PRIORITY_UPDATE:
        return 0;
    case PUSH_PROMISE:
        return refuse(e, "a frame that does not belong here");
    default:
        h->pass = false;
        return 0;
    }
}

/* Takes bytes of the head. 1: it is complete. */
static int take_head(struct mo_http2_edge *h, struct mo_span *in)
{
    const unsigned char *p;
    size_t want = FRAME_HEAD;

    for (;;) {
        size_t n = want - h->head.len;

        mo_buf_span(&h->head, mo_span_take(in, n < in->n ? n : in->n));
        if (mo_buf_err(&h->head))
            return mo_buf_err(&h->head);
        h->left = 0; /* not its payload yet */
        if (h->head.len < want)
            return 0;
        p = (const unsigned char *)h->head.p;
        h->left = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        h->type = p[3];
        h->flags = p[4];
        h->stream = (uint32_t)(p[5] & 127) << 24 | (uint32_t)p[6] << 16 |
                    (uint32_t)p[7] << 8 | p[8];
        if (want > FRAME_HEAD || h->type != DATA || !(h->flags & PADDED) ||
            h->left == 0)
            return 1;
        want++; /* the length of the padding is wanted, too */
    }
}

/* The head of a frame has come. */
static int use_head(struct mo_http2_edge *h, struct mo_buf *b, struct mo_err *e)
{
    bool empty_padded = h->type == DATA && h->flags & PADDED && h->left == 0;
    int rc = empty_padded ? refuse(e, "a frame that is not valid")
                          : begin_frame(h, e);

    if (rc == 0 && h->pass)
        mo_buf_span(b, mo_buf_view(&h->head));
    h->left -= h->head.len - FRAME_HEAD;
    return rc;
}

static int take_payload(struct mo_http2_edge *h, struct mo_span *in,
                        struct mo_buf *b, struct mo_err *e)
{
    struct mo_span part = mo_span_take(in, h->left < in->n ? h->left : in->n);
    bool block = h->type == HEADERS || h->type == CONTINUATION;

    h->left -= part.n;
    if (h->pass)
        mo_buf_span(b, part);
    else if (block && mo_buf_span(&h->block, part) < 0)
        return mo_fail(e, mo_buf_err(&h->block), "a request");
    return h->left ? 0 : end_frame(h, b, e);
}

static int take_preface(struct mo_http2_edge *h, struct mo_span *in,
                        struct mo_buf *b, struct mo_err *e)
{
    size_t n = PREFACE_LEN - h->greeted;
    struct mo_span part = mo_span_take(in, n < in->n ? n : in->n);

    if (part.n && memcmp(preface + h->greeted, part.p, part.n) != 0)
        return refuse(e, "HTTP/2 that does not begin as it must");
    h->greeted += part.n;
    mo_buf_span(b, part);
    return 0;
}

int mo_http2_edge_feed(struct mo_http2_edge *h, struct mo_span in,
                       struct mo_buf *b, struct mo_err *e)
{
    int rc = 0;

    while (rc == 0 && in.n) {
        if (h->greeted < PREFACE_LEN) {
            rc = take_preface(h, &in, b, e);
        } else if (h->left == 0) {
            int whole = take_head(h, &in);

            if (whole == 0)
                return 0;
            rc = whole < 0 ? mo_fail(e, whole, "a request") : use_head(h, b, e);
            if (rc == 0 && h->left == 0)
                rc = end_frame(h, b, e);
        } else {
            rc = take_payload(h, &in, b, e);
        }
    }
    return rc;
}

struct mo_http2_edge *mo_http2_edge_new(struct mo_http_edge *x)
{
    struct mo_http2_edge *h = mo_new(struct mo_http2_edge);

    if (!h)
        return NULL;
    h->x = x;
    h->hpack = mo_hpack_new();
    mo_buf_init(&h->head, FRAME_HEAD + 1);
    mo_buf_init(&h->block, BLOCK_MAX);
    mo_buf_init(&h->fields, FIELDS_MAX);
    if (h->hpack)
        return h;
    mo_http2_edge_free(h);
    return NULL;
}

void mo_http2_edge_free(struct mo_http2_edge *h)
{
    if (!h)
        return;
    mo_hpack_free(h->hpack);
    mo_buf_fini(&h->head);
    mo_buf_fini(&h->block);
    mo_buf_wipe(&h->fields);
    mo_free(h->bodies);
    mo_free(h);
}
