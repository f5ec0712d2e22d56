/* name.c - exposed names of tools and prompts. */
#include "gateway/catalog/name.h"

#include "codec/sha256.h"

void mo_gw_hash(struct mo_span a, struct mo_span b,
                char out[MO_GW_HASH_LEN + 1])
{
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;

    mo_sha256_init(&h);
    mo_sha256_put(&h, a.p, a.n);
    mo_sha256_put(&h, "", 1);
    mo_sha256_put(&h, b.p, b.n);
    mo_sha256_end(&h, sum);
    mo_hex(sum, MO_GW_HASH_LEN / 2, out);
}

static const bool plain[256] = {
    ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true,
    ['_'] = true,         ['-'] = true,
};

/* Appends s with every other character replaced by '_'. Returns the length
 * without the limit of size. */
static size_t put_plain(char *out, size_t size, size_t at, struct mo_span s,
                        bool *changed)
{
    for (size_t i = 0; i < s.n; i++, at++) {
        bool ok = plain[(unsigned char)s.p[i]];

        *changed |= !ok;
        if (at < size - 1)
            out[at] = ok ? s.p[i] : '_';
    }
    return at;
}

void mo_gw_name_in(struct mo_span prefix, struct mo_span name, bool prefixed,
                   bool taken, char *out, size_t size)
{
    bool changed = name.n == 0;
    size_t n = 0;

    MO_BUG_ON(size < MO_GW_HASH_LEN + 2);
    if (prefixed) {
        n = put_plain(out, size, n, prefix, &changed);
        n = put_plain(out, size, n, MO_SPAN("_"), &changed);
    }
    n = put_plain(out, size, n, name, &changed);
    if (n < size && !changed && !taken) {
        out[n] = '\0';
        return;
    }
    if (n > size - 2 - MO_GW_HASH_LEN)
        n = size - 2 - MO_GW_HASH_LEN;
    out[n] = '_';
    mo_gw_hash(prefix, name, out + n + 1);
}

void mo_gw_name(struct mo_span prefix, struct mo_span name, bool prefixed,
                bool taken, char out[MO_GW_NAME_MAX])
{
    mo_gw_name_in(prefix, name, prefixed, taken, out, MO_GW_NAME_MAX);
}
