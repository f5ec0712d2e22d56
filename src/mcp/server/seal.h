/* seal.h - encrypted and signed state that the client keeps for us.
 *
 * A modern server keeps nothing between the rounds of a call: its state goes to
 * the client as requestState and comes back. So it is encrypted and signed with
 * random keys that this process made at start and never reveals: a seal is
 * invalid after a restart and in any other process. Session ids (ep_id.h) and
 * ids of tasks (ep_ref.h) are sealed with keys that the processes of one store
 * share.
 *
 * bind is the purpose of the seal (caller and call); it is signed but not
 * contained, so opening needs the same bind. A seal also expires.
 *
 * Construction: keystream block i = HMAC(k1, nonce, i), ciphertext = plain xor
 * keystream, tag = HMAC(k2, lengths, bind, nonce, expiry, ciphertext); the text
 * is base64url of nonce, expiry, ciphertext, tag. The tag is compared in
 * constant time before anything else is read. */
#ifndef MO_MCP_SERVER_SEAL_H
#define MO_MCP_SERVER_SEAL_H

#include "base/str.h"

#define MO_SEAL_MAX ((size_t)256 * 1024) /* bytes of the text */

struct mo_seal {
    unsigned char k1[32], k2[32];
};

void mo_seal_init(struct mo_seal *s);
/* Keys derived from a secret that other processes have too: a seal of one is
 * valid in all of them. `use` keeps the seals of different uses apart. */
void mo_seal_share(struct mo_seal *s, struct mo_span secret, const char *use);

/* Append a seal to out. now and ttl in ns of mo_now_ns(). MO_ETOOBIG,
 * MO_ENOMEM. */
int mo_seal_put(const struct mo_seal *s, struct mo_span bind, uint64_t expires,
                struct mo_span plain, struct mo_buf *out);
/* The same without an end, and without chance: equal arguments give equal
 * seals, because the nonce is an HMAC of them. */
int mo_seal_put_same(const struct mo_seal *s, struct mo_span bind,
                     struct mo_span plain, struct mo_buf *out);
/* Append the plain bytes. MO_EPROTO: not ours, changed, or for another purpose
 * (deliberately not told apart); MO_ETIMEOUT: expired. */
int mo_seal_open(const struct mo_seal *s, struct mo_span bind, uint64_t now,
                 struct mo_span text, struct mo_buf *plain);

#endif
