/* format.h - a small printf for the static build.
 *
 * musl's printf brings floating point with it, a seventh of the program; the
 * toolbox formats strings and integers only. musl.h replaces snprintf and
 * vsnprintf by these.
 *
 * Supported: %% %c %s %d %u %x, with a width (optionally zero-filled), a
 * precision for %s, and the lengths l, ll, z. Anything else ends the text: the
 * compiler has checked the formats, and a test compares every format in use
 * with the real printf. */
#ifndef TB_FORMAT_H
#define TB_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* Like vsnprintf(3): returns the length of the whole text; writes at most n - 1
 * bytes and a NUL when n > 0. */
int tb_vsnprintf(char *out, size_t n, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
int tb_snprintf(char *out, size_t n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
