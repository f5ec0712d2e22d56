#include "base/nearest.h"

#define PREFIX_MIN ((size_t)3) /* shorter prefixes match too much */

static bool same_letter(char a, char b)
{
    return mo_lower(a) == mo_lower(b);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;

    return m < c ? m : c;
}

/* Compute one row of the table from the two above it; a swap looks two rows
 * up. */
static void fill_row(struct mo_span a, struct mo_span b, size_t i,
                     const unsigned *up2, const unsigned *up, unsigned *row)
{
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= b.n; j++) {
        unsigned change = up[j - 1] + !same_letter(a.p[i - 1], b.p[j - 1]);

        row[j] = min3(up[j] + 1, row[j - 1] + 1, change);
        if (i < 2 || j < 2)
            continue;
        if (same_letter(a.p[i - 1], b.p[j - 2]) &&
            same_letter(a.p[i - 2], b.p[j - 1]) && up2[j - 2] + 1 < row[j])
            row[j] = up2[j - 2] + 1;
    }
}

unsigned mo_nearest_distance(struct mo_span a, struct mo_span b)
{
    unsigned rows[3][MO_NEAREST_MAX + 1];

    if (a.n > MO_NEAREST_MAX || b.n > MO_NEAREST_MAX)
        return MO_NEAREST_MAX + 1;
    for (size_t j = 0; j <= b.n; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++)
        fill_row(a, b, i, rows[(i + 1) % 3], rows[(i - 1) % 3], rows[i % 3]);
    return rows[a.n % 3][b.n];
}

void mo_nearest_init(struct mo_nearest *s, struct mo_span word)
{
    unsigned allowed = (unsigned)(word.n / 3);

    *s = (struct mo_nearest){.word = word};
    s->distance = (allowed < 1 ? 1 : allowed) + 1; /* already too far */
}

void mo_nearest_offer(struct mo_nearest *s, const char *candidate)
{
    struct mo_span c = mo_span_cstr(candidate);
    unsigned d = mo_nearest_distance(s->word, c);

    if (s->word.n >= PREFIX_MIN && c.n > s->word.n && d > 1 &&
        mo_span_ieq(mo_span_head(c, s->word.n), s->word))
        d = 1;
    if (d >= s->distance || (s->word.n < 2 && d > 0))
        return;
    s->distance = d;
    s->best = candidate;
}
