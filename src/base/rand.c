#include "base/rand.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"

void mo_random(void *p, size_t n)
{
    char *at = p;

    while (n) {
        ssize_t got = getrandom(at, n, 0);

        if (got < 0 && errno == EINTR)
            continue;
        MO_BUG_ON(got <= 0);
        at += got;
        n -= (size_t)got;
    }
}

uint64_t mo_random_u64(void)
{
    uint64_t v;

    mo_random(&v, sizeof(v));
    return v;
}

void mo_random_token(char *out, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
                                 "qrstuvwxyz0123456789-_";
    size_t chars = MO_TOKEN_LEN(n);
    unsigned char raw[MO_TOKEN_LEN(MO_TOKEN_MAX)];

    MO_BUG_ON(n > MO_TOKEN_MAX);
    mo_random(raw, chars); /* 6 bits of each byte are used */
    for (size_t i = 0; i < chars; i++)
        out[i] = digits[i == 0 ? raw[i] % 62 : raw[i] & 63];
    out[chars] = '\0';
    explicit_bzero(raw, sizeof(raw));
}
