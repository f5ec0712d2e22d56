#include "codec/money.h"

#define DECIMALS 6

static int read_digits(struct mo_span s, int64_t *v)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!mo_is_digit(s.p[i]) || *v > MO_MONEY_MAX)
            return MO_EINVAL;
        *v = *v * 10 + (s.p[i] - '0');
    }
    return 0;
}

int mo_money_read(struct mo_span s, int64_t *out)
{
    struct mo_span whole = s, rest = {NULL, 0};
    ptrdiff_t point = mo_span_find(s, '.');
    int64_t v = 0;

    if (point >= 0) {
        whole = mo_span_head(s, (size_t)point);
        rest = mo_span_skip(s, (size_t)point + 1);
        if (!rest.n)
            return MO_EINVAL;
    }
    if (!whole.n || rest.n > DECIMALS || read_digits(whole, &v) < 0 ||
        v > MO_MONEY_MAX / MO_MONEY_ONE || read_digits(rest, &v) < 0)
        return MO_EINVAL;
    for (size_t i = rest.n; i < DECIMALS; i++)
        v *= 10;
    if (v > MO_MONEY_MAX)
        return MO_EINVAL;
    *out = v;
    return 0;
}

void mo_money_put(struct mo_buf *b, int64_t amount)
{
    uint64_t v = amount < 0 ? 0 - (uint64_t)amount : (uint64_t)amount;
    char rest[DECIMALS];
    size_t n = DECIMALS;

    if (amount < 0)
        mo_buf_putc(b, '-');
    mo_buf_u64(b, v / MO_MONEY_ONE);
    v %= MO_MONEY_ONE;
    for (size_t i = DECIMALS; i-- > 0; v /= 10)
        rest[i] = (char)('0' + v % 10);
    while (n > 0 && rest[n - 1] == '0')
        n--;
    if (n > 0) {
        mo_buf_putc(b, '.');
        mo_buf_put(b, rest, n);
    }
}
