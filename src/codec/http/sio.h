/* sio.h - Socket.IO protocol 5 packets (the data of an Engine.IO message).
 *
 *   <type>[<attachments>-][<namespace>,][<ack id>][JSON]
 *
 * Decoding validates the JSON too: an event is a non-empty array whose first
 * element is a string (none of the names that socket.io keeps for itself), an
 * ack an array with an id, connect an object or nothing. Of a packet with
 * binary attachments only the type is read: its receiver refuses it.
 *
 * Stricter than socket.io-parser where that guesses (an id rounded to a double,
 * a blank read as a digit, a namespace with JSON in it): a packet accepted here
 * is read there in the same way. tests/it/sio_diff holds the list.
 *
 * Ownership: a packet borrows the text; nothing is allocated. */
#ifndef MO_CODEC_HTTP_SIO_H
#define MO_CODEC_HTTP_SIO_H

#include "codec/json/json.h"

enum mo_sio_type {
    MO_SIO_CONNECT,
    MO_SIO_DISCONNECT,
    MO_SIO_EVENT,
    MO_SIO_ACK,
    MO_SIO_CONNECT_ERROR,
    MO_SIO_BINARY_EVENT,
    MO_SIO_BINARY_ACK,
};

#define MO_SIO_NSP_MAX   128
#define MO_SIO_DEPTH_MAX 64

struct mo_sio {
    enum mo_sio_type type;
    struct mo_span nsp; /* "/" when left out; else a path, without query */
    bool has_id;
    uint64_t id;
    struct mo_json data; /* or none */
    struct mo_json name; /* events: the first element, quoted */
};

/* MO_EPROTO leaves *out meaningless. */
int mo_sio_decode(struct mo_span text, struct mo_sio *out, struct mo_err *e);

/* Append a packet head (type, namespace, id); the caller appends the JSON.
 * nsp "/" or empty is left out. id < 0: none. Binary types are not sent. */
int mo_sio_put_head(struct mo_buf *b, enum mo_sio_type type, struct mo_span nsp,
                    int64_t id);
/* A whole event: name and its arguments as validated JSON text, comma-joined
 * without the array's brackets ("" = none). */
int mo_sio_put_event(struct mo_buf *b, struct mo_span nsp, int64_t id,
                     struct mo_span name, struct mo_span args);
int mo_sio_put_ack(struct mo_buf *b, struct mo_span nsp, uint64_t id,
                   struct mo_span args);

#endif
