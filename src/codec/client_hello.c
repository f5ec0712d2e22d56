#include "codec/client_hello.h"

#define RECORD_HEAD    5
#define RECORD_MAX     ((size_t)16 * 1024)
#define HANDSHAKE      22
#define CLIENT_HELLO   1
#define MESSAGE_HEAD   4
#define VERSION_RANDOM 34
#define SERVER_NAME    0
#define HOST_NAME      0
#define ALPN           16

static size_t number_at(const char *p, unsigned bytes)
{
    size_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

bool mo_hello_starts(struct mo_span in)
{
    return (in.n < 1 || in.p[0] == HANDSHAKE) && (in.n < 2 || in.p[1] == 3);
}

/* --- the message --------------------------------------------------------- */

/* A field with its length in front of it, in `bytes` bytes. */
static bool take_field(struct mo_span *in, unsigned bytes, struct mo_span *out)
{
    size_t n;

    if (in->n < bytes)
        return false;
    n = number_at(in->p, bytes);
    *in = mo_span_skip(*in, bytes);
    if (in->n < n)
        return false;
    *out = mo_span_take(in, n);
    return true;
}

/* One host name, and nothing else. */
static bool read_server_name(struct mo_span in, struct mo_hello *out)
{
    struct mo_span list, name;

    if (out->name_len || !take_field(&in, 2, &list) || in.n || list.n < 1 ||
        list.p[0] != HOST_NAME)
        return false;
    list = mo_span_skip(list, 1);
    if (!take_field(&list, 2, &name) || list.n || name.n == 0 ||
        name.n > MO_HELLO_NAME_MAX || mo_span_find(name, '\0') >= 0)
        return false;
    memcpy(out->name, name.p, name.n);
    out->name[name.n] = '\0';
    out->name_len = name.n;
    return true;
}

static bool read_alpn(struct mo_span in, struct mo_hello *out)
{
    struct mo_span list, name;

    if (!take_field(&in, 2, &list) || in.n)
        return false;
    while (list.n) {
        if (!take_field(&list, 1, &name))
            return false;
        out->h2 |= mo_span_is(name, "h2");
    }
    return true;
}

static bool read_extensions(struct mo_span in, struct mo_hello *out)
{
    while (in.n) {
        struct mo_span body;
        size_t type;

        if (in.n < 2)
            return false;
        type = number_at(in.p, 2);
        in = mo_span_skip(in, 2);
        if (!take_field(&in, 2, &body))
            return false;
        if (type == SERVER_NAME && !read_server_name(body, out))
            return false;
        if (type == ALPN && !read_alpn(body, out))
            return false;
    }
    return true;
}

static bool read_message(struct mo_span in, struct mo_hello *out)
{
    struct mo_span skipped, extensions;

    if (in.n < VERSION_RANDOM)
        return false;
    in = mo_span_skip(in, VERSION_RANDOM);
    if (!take_field(&in, 1, &skipped) || !take_field(&in, 2, &skipped) ||
        !take_field(&in, 1, &skipped))
        return false;
    if (in.n == 0)
        return true; /* before TLS 1.3 a client need not have extensions */
    return take_field(&in, 2, &extensions) && in.n == 0 &&
           read_extensions(extensions, out);
}

/* --- records ------------------------------------------------------------- */

/* Takes one record off *in. 0: it is not complete. */
static int take_record(struct mo_span *in, struct mo_span *out)
{
    size_t n;

    if (!mo_hello_starts(*in))
        return MO_EPROTO;
    if (in->n < RECORD_HEAD)
        return 0;
    n = number_at(in->p + 3, 2);
    if (n == 0 || n > RECORD_MAX)
        return MO_EPROTO;
    if (in->n < RECORD_HEAD + n)
        return 0;
    *in = mo_span_skip(*in, RECORD_HEAD);
    *out = mo_span_take(in, n);
    return 1;
}

/* Joins records until the message is complete. */
int mo_hello_read(struct mo_span in, struct mo_hello *out)
{
    mo_autobuf struct mo_buf message = {.max = MO_HELLO_MAX};
    size_t want = MESSAGE_HEAD;
    bool full = in.n >= MO_HELLO_MAX;
    int rc = 1;

    out->name_len = 0;
    out->h2 = false;
    while (rc == 1 && message.len < want) {
        struct mo_span part;

        rc = take_record(&in, &part);
        if (rc == 1 && mo_buf_span(&message, part) < 0)
            return mo_buf_err(&message);
        if (message.len && message.p[0] != CLIENT_HELLO)
            return MO_EPROTO;
        if (message.len >= MESSAGE_HEAD)
            want = MESSAGE_HEAD + number_at(message.p + 1, 3);
        if (want > MO_HELLO_MAX)
            return MO_ETOOBIG;
    }
    if (rc == 0)
        return full ? MO_ETOOBIG : 0;
    if (rc < 0)
        return rc;
    return read_message(mo_span(message.p + MESSAGE_HEAD, want - MESSAGE_HEAD),
                        out)
               ? 1
               : MO_EPROTO;
}
