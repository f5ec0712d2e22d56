/* tool_claims.h - the annotations of an MCP tool as bits.
 *
 * A server claims them; nothing proves that they are true. */
#ifndef MO_CODEC_TOOL_CLAIMS_H
#define MO_CODEC_TOOL_CLAIMS_H

#include "codec/json/json.h"

enum mo_claim { /* annotations, as the server claims them */
                MO_CLAIM_READ_ONLY = 1 << 0,
                MO_CLAIM_DESTRUCTIVE = 1 << 1,
                MO_CLAIM_IDEMPOTENT = 1 << 2,
                MO_CLAIM_OPEN_WORLD = 1 << 3,
};

#define MO_CLAIMS 4 /* number of bits */

/* mo_claim bits of an annotations object, with the protocol's defaults for
 * what is not said (destructive and open unless told otherwise). */
unsigned mo_claims_of(struct mo_json annotations);
unsigned mo_claim_bit(struct mo_span name); /* 0: no such annotation */
/* The annotation of the bit with that number, from 0. */
const char *mo_claim_name(unsigned number);

#endif
