/* rpc.h - the JSON-RPC 2.0 envelope, in one pass over the bytes.
 *
 * One scan validates the whole text and finds the envelope's members; the
 * payload (params, result, error) stays the span it was. A duplicate of any
 * envelope member is refused, also when one of the two is written with escapes,
 * because two readers could take different ones. Unknown members are legal and
 * survive in the raw text.
 *
 * Batches are recognised (MO_RPC_BATCH): the caller walks root as an array
 * and gives each element to mo_rpc_parse() again. */
#ifndef MO_CODEC_RPC_H
#define MO_CODEC_RPC_H

#include "codec/json/json.h"

enum mo_rpc_kind {
    MO_RPC_INVALID,      /* JSON, but no JSON-RPC message */
    MO_RPC_REQUEST,      /* method and id */
    MO_RPC_NOTIFICATION, /* method, no id */
    MO_RPC_RESULT,       /* id and result */
    MO_RPC_ERROR,        /* error; id may be null or missing */
    MO_RPC_BATCH,        /* a non-empty array */
};

enum {
    MO_RPC_PARSE_ERROR = -32700,
    MO_RPC_INVALID_REQUEST = -32600,
    MO_RPC_METHOD_NOT_FOUND = -32601,
    MO_RPC_INVALID_PARAMS = -32602,
    MO_RPC_INTERNAL = -32603,
};

struct mo_rpc {
    enum mo_rpc_kind kind;
    struct mo_json root;   /* the whole message */
    struct mo_json id;     /* string or number (null, none: an error's); its
                            * text is the identity: 1.0 is not 1 */
    struct mo_json method; /* string, quoted */
    struct mo_json params; /* object or array, or none */
    struct mo_json result;
    struct mo_json error; /* object with integer code and string message */
    bool has_nl;
};

/* MO_EPROTO: not JSON (answer MO_RPC_PARSE_ERROR). 0 with MO_RPC_INVALID:
 * JSON but a bad envelope (answer MO_RPC_INVALID_REQUEST); *e holds the
 * reason in this case, too, and out->id is set when it is usable. */
int mo_rpc_parse(struct mo_span text, struct mo_rpc *out, struct mo_err *e);

/* Writers: append one message without newline. params/result are validated
 * text or empty (params left out, result {}). id: raw JSON text. */
int mo_rpc_put_notification(struct mo_buf *b, const char *method,
                            struct mo_span params);
int mo_rpc_put_result(struct mo_buf *b, struct mo_span id,
                      struct mo_span result);
int mo_rpc_put_error(struct mo_buf *b, struct mo_span id, int code,
                     struct mo_span message, struct mo_span data);

#endif
