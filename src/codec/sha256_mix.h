/* sha256_mix.h - the one step of SHA-256 that costs time, done by whoever can.
 *
 * Processors with instructions for it take a tenth of the time. Which one may
 * be used is the processor's to say, each time: the answer stands in memory.
 * Nobody but sha256.c and its test includes this. */
#ifndef MO_CODEC_SHA256_MIX_H
#define MO_CODEC_SHA256_MIX_H

#include "codec/sha256.h"

extern const uint32_t mo_sha256_k[64];

/* n blocks at p. */
void mo_sha256_mix_plain(uint32_t h[8], const unsigned char *p, size_t n);
/* Only where the processor can. */
bool mo_sha256_can(void);
void mo_sha256_mix_cpu(uint32_t h[8], const unsigned char *p, size_t n);

#endif
