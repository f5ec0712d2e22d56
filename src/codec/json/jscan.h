/* jscan.h - validates JSON text in one pass.
 *
 * The scanner checks grammar (RFC 8259), UTF-8, control characters and depth
 * in a single pass and builds nothing. json.h uses it for whole texts; rpc.h
 * steps it through the members of the top object, so that reading an envelope
 * needs no second pass over the payload.
 *
 * Choices where RFC 8259 leaves them open: a byte order mark is refused, a lone
 * surrogate written as an escape is accepted (it reads as U+FFFD), numbers may
 * be of any size, a duplicate key is legal, depth is limited.
 *
 * After a failure `p` is the first wrong byte: the bytes before it could begin
 * valid JSON. `p` equal to `end` means that the text was cut.
 *
 * Private to the JSON rooms; others use json.h and codec/rpc.h. */
#ifndef MO_CODEC_JSON_JSCAN_H
#define MO_CODEC_JSON_JSCAN_H

#include "codec/json/json.h"

struct mo_jscan {
    const char *p, *end, *start;
    unsigned depth, max;
    bool has_nl;                          /* a raw LF or CR was passed */
    bool any;                             /* mo_jscan_member() has seen one */
    const char *why;                      /* set by a failure */
    uint64_t obj[MO_JSON_DEPTH_MAX / 64]; /* which open levels are objects */
};

/* Stands on the first byte that is no blank. depth as in mo_json_parse(). */
void mo_jscan_init(struct mo_jscan *s, struct mo_span text, int depth);

/* One value, blanks in front of it allowed. */
bool mo_jscan_value(struct mo_jscan *s, struct mo_json *out);

/* Standing on '{': go in. Then member by member: 1, 0 after the '}', -1. */
void mo_jscan_enter(struct mo_jscan *s);
int mo_jscan_member(struct mo_jscan *s, struct mo_json *key,
                    struct mo_json *val);

/* Nothing but blanks may follow. */
bool mo_jscan_end(struct mo_jscan *s);

/* After a failure: MO_EPROTO with what and where. */
int mo_jscan_fail(const struct mo_jscan *s, struct mo_err *e);

/* For text known to be good: p is on the opening quote; returns the place
 * behind the closing one. */
const char *mo_json_skip_string(const char *p, const char *end);

#endif
