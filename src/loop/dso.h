/* dso.h - big system libraries, loaded when first needed.
 *
 * Linked in the usual way, libcurl and its 33 libraries cost 5.3 MB of
 * memory and 4.5 ms at every start, OpenSSL 1.7 MB and 0.8 ms; most
 * processes of ours never use either. So a room that wraps one of them
 * declares a table of the functions it calls, typed from the library's own
 * header, and fills it with mo_dso_load() at first use.
 *
 * A loaded library stays until the process ends: unloading one that keeps
 * thread-local state and exit handlers is asking for trouble. */
#ifndef MO_LOOP_DSO_H
#define MO_LOOP_DSO_H

#include <stddef.h>

#include "base/err.h"

struct mo_dso_sym {
    const char *name;
    size_t at; /* offset of the function pointer in the table */
};

/* MO_DSO_SYM(struct table, SSL_new): one row, for an X-macro list. */
#define MO_DSO_SYM(T, fn)                                                      \
    {                                                                          \
        .name = #fn, .at = offsetof(T, fn)                                     \
    }
/* The member for it; the compiler checks every call like a direct one. */
#define MO_DSO_MEMBER(fn) __typeof__(&fn) fn;

/* Fill table from the library. On failure (MO_EUNAVAIL) the message says
 * what is missing and which package has it, and the table is not usable. */
int mo_dso_load(const char *soname, const char *package,
                const struct mo_dso_sym *syms, size_t n, void *table,
                struct mo_err *e);

#endif
