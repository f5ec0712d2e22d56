/* rand.h - random bytes from the kernel.
 *
 * getrandom(2) cannot fail for small requests once the kernel's pool is ready.
 * If it does, the process aborts: continuing would mean guessable ids. */
#ifndef MO_BASE_RAND_H
#define MO_BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

void mo_random(void *p, size_t n);
uint64_t mo_random_u64(void);

/* A base64url token that is as hard to guess as n random bytes. n is at most
 * MO_TOKEN_MAX; out holds MO_TOKEN_LEN(n) + 1 bytes. It begins with a letter or
 * a digit: a command would take "-x" for an option. */
#define MO_TOKEN_MAX    48
#define MO_TOKEN_LEN(n) (((n)*8 + 5) / 6)

void mo_random_token(char *out, size_t n);

#endif
