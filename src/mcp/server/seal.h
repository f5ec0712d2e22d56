/* seal.h - state that a stranger carries for us and cannot read or change.
 *
 * A modern server keeps nothing between the rounds of a call: what it must
 * remember goes to the client as requestState and comes back. So it is
 * encrypted and signed with keys that this process drew at start and tells
 * nobody: a seal is worthless after a restart, and to any other process.
 *
 * bind is what the seal is good for (who, which call); it is signed but not
 * contained, so opening needs the same bind. A seal also has an expiry.
 *
 * Construction: keystream block i = HMAC(k1, nonce, i), ciphertext = plain
 * xor keystream, tag = HMAC(k2, lengths, bind, nonce, expiry, ciphertext);
 * the text is base64url of nonce, expiry, ciphertext, tag. The tag is
 * compared in constant time before anything else is looked at. */
#ifndef MO_MCP_SERVER_SEAL_H
#define MO_MCP_SERVER_SEAL_H

#include "base/str.h"

#define MO_SEAL_MAX ((size_t)256 * 1024) /* of the text */

struct mo_seal {
    unsigned char k1[32], k2[32];
};

void mo_seal_init(struct mo_seal *s);

/* Append to out. now and ttl in ns of mo_now_ns(). MO_ETOOBIG, MO_ENOMEM. */
int mo_seal_put(const struct mo_seal *s, struct mo_span bind, uint64_t expires,
                struct mo_span plain, struct mo_buf *out);
/* Append the plain bytes. MO_EPROTO: not ours, changed, or for something
 * else (which of them is nobody's business); MO_ETIMEOUT: too old. */
int mo_seal_open(const struct mo_seal *s, struct mo_span bind, uint64_t now,
                 struct mo_span text, struct mo_buf *plain);

#endif
