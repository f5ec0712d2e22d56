/* rand.h - randomness from the kernel, nowhere else.
 *
 * getrandom(2) cannot fail for small requests once the pool is up; if it
 * does, going on would mean guessable ids, so the process ends. */
#ifndef MO_BASE_RAND_H
#define MO_BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

void mo_random(void *p, size_t n);
uint64_t mo_random_u64(void);

/* Text of base64url digits that is as hard to guess as n random bytes, n at
 * most MO_TOKEN_MAX; out holds MO_TOKEN_LEN(n) + 1. */
#define MO_TOKEN_MAX    48
#define MO_TOKEN_LEN(n) (((n)*8 + 5) / 6)

void mo_random_token(char *out, size_t n);

#endif
