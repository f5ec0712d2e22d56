/* musl.h - replacements for C library features that the static build lacks.
 * Included before every file of it (-include). */
#ifndef TB_MUSL_H
#define TB_MUSL_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "toolbox/format.h"

/* Strings and integers without floating point, and no stdio. */
#define snprintf  tb_snprintf
#define vsnprintf tb_vsnprintf

static inline __attribute__((format(printf, 2, 3))) int
tb_fprintf(const FILE *to, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = tb_vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    n = n < (int)sizeof(line) ? n : (int)sizeof(line) - 1;
    return n < 0 ? n : (int)write(to == stderr ? 2 : 1, line, (size_t)n);
}

#define fprintf tb_fprintf

#endif
