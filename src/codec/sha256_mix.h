/* sha256_mix.h - the compression step of SHA-256, in plain C and in hardware.
 *
 * Processors with SHA instructions take a tenth of the time. Each call asks
 * whether this one has them; getauxval() answers from memory.
 * Private to sha256.c and its test. */
#ifndef MO_CODEC_SHA256_MIX_H
#define MO_CODEC_SHA256_MIX_H

#include "codec/sha256.h"

extern const uint32_t mo_sha256_k[64];

/* n blocks at p. */
void mo_sha256_mix_plain(uint32_t h[8], const unsigned char *p, size_t n);
/* True if the processor has the instructions that mix_cpu() uses. */
bool mo_sha256_can(void);
void mo_sha256_mix_cpu(uint32_t h[8], const unsigned char *p, size_t n);

#endif
