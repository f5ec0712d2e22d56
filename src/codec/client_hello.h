/* client_hello.h - the host name in the first message of a TLS client.
 *
 * Reads no more than the name and whether HTTP/2 is offered: record layer,
 * ClientHello, extensions server_name (RFC 6066) and ALPN (RFC 7301). The
 * message may be spread over several records.
 *
 * Limit: MO_HELLO_MAX bytes; a longer message fails. A message that breaks the
 * format, names a host twice or is not a ClientHello fails, too. */
#ifndef MO_CODEC_CLIENT_HELLO_H
#define MO_CODEC_CLIENT_HELLO_H

#include "base/str.h"

#define MO_HELLO_MAX      ((size_t)16 * 1024) /* with the heads of records */
#define MO_HELLO_NAME_MAX 255

struct mo_hello {
    size_t name_len;                  /* 0: it names no host */
    char name[MO_HELLO_NAME_MAX + 1]; /* as sent; no NUL inside */
    bool h2;                          /* offers HTTP/2 */
};

/* Whether these first bytes of a stream can be the start of TLS. Without any
 * byte: true. */
bool mo_hello_starts(struct mo_span in);

/* `in` is everything that was received. 1: read. 0: more bytes are needed.
 * MO_EPROTO or MO_ETOOBIG. */
int mo_hello_read(struct mo_span in, struct mo_hello *out);

#endif
