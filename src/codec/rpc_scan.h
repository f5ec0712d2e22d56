/* rpc_scan.h - kind and id of a JSON-RPC message that is too long to keep.
 *
 * A reader that drops an over-long message still wants to know which call it
 * answers. This scanner takes the message in pieces of any size, follows its
 * structure and remembers only the top-level envelope. The id may stand
 * anywhere: many servers write it behind the result.
 *
 * Only members of the top-level object count. Strings, brackets, commas and
 * colons are checked everywhere, so text inside a nested value is never taken
 * for a member. Numbers, literals and the bytes inside nested strings are not
 * checked; use mo_rpc_parse() for a message that is to be read.
 *
 * Memory: none besides the struct. Limits: MO_RPC_SCAN_TEXT bytes of a
 * top-level key or scalar, as many blanks before the message, MO_JSON_DEPTH_MAX
 * levels. A message with a longer id or more blanks counts as malformed. */
#ifndef MO_CODEC_RPC_SCAN_H
#define MO_CODEC_RPC_SCAN_H

#include "codec/rpc.h"

#define MO_RPC_SCAN_TEXT 64 /* "jsonrpc" written in \u escapes takes 44 */

struct mo_rpc_scan {
    unsigned char state, member; /* private to rpc_scan.c */
    bool key;                    /* the string being read is a key */
    bool version_ok;
    unsigned depth, seen;
    size_t ntext, nid;
    char text[MO_RPC_SCAN_TEXT]; /* the top-level key or scalar being read */
    char id[MO_RPC_SCAN_TEXT];
    uint64_t obj[MO_JSON_DEPTH_MAX / 64]; /* which open levels are objects */
};

void mo_rpc_scan_init(struct mo_rpc_scan *s);
/* The next piece. false: the message is malformed, no piece can mend it. */
bool mo_rpc_scan_feed(struct mo_rpc_scan *s, struct mo_span piece);
/* After the last piece: the message's kind. For a request, result or error *id
 * is its id (string or number), borrowed from s; an error may have none.
 * MO_RPC_INVALID: malformed, incomplete, a batch, or no JSON-RPC envelope. */
enum mo_rpc_kind mo_rpc_scan_end(const struct mo_rpc_scan *s,
                                 struct mo_json *id);

#endif
