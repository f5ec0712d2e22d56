#include "route/stem.h"

#include <limits.h>

/* The interface of all code that Snowball makes, as its manual has it ("Using
 * Snowball"): an environment begins with the word and where it ends. Debian's
 * package has the functions, but no header that says so. */
struct mo_stem {
    unsigned char *p; /* the word, not ended by a NUL */
    int c, l;         /* a place of its own; how long the word is */
};

struct mo_stem *english_UTF_8_create_env(void);
void english_UTF_8_close_env(struct mo_stem *z);
int english_UTF_8_stem(struct mo_stem *z);
int SN_set_current(struct mo_stem *z, int n, const unsigned char *word);

struct mo_stem *mo_stem_new(void)
{
    return english_UTF_8_create_env();
}

void mo_stem_free(struct mo_stem *s)
{
    if (s)
        english_UTF_8_close_env(s);
}

struct mo_span mo_stem(struct mo_stem *s, struct mo_span word)
{
    if (word.n > INT_MAX ||
        SN_set_current(s, (int)word.n, (const unsigned char *)word.p) < 0 ||
        english_UTF_8_stem(s) < 0)
        return word;
    return mo_span((const char *)s->p, (size_t)s->l);
}
