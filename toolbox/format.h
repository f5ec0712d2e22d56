/* format.h - printf's small half, for the static build.
 *
 * musl's printf brings floating point with it, a seventh of the program; the
 * toolbox writes texts and integers only. musl.h puts these in the place of
 * snprintf and vsnprintf.
 *
 * Understood: %% %c %s %d %u %x, with a width (zero filled on demand), a
 * precision for %s, and the lengths l, ll, z. Anything else ends the text:
 * the compiler has checked the formats, and a test holds every one that is
 * used against the real printf. */
#ifndef TB_FORMAT_H
#define TB_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* As vsnprintf(3): the length the whole text has, cut to n - 1 and ended by
 * NUL when n > 0. */
int tb_vsnprintf(char *out, size_t n, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
int tb_snprintf(char *out, size_t n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
