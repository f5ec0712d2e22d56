/* dso.h - load large system libraries at first use.
 *
 * Linking libcurl and its 33 libraries costs 5.3 MB of memory and 4.5 ms at
 * every start, OpenSSL 1.7 MB and 0.8 ms. Most processes use neither. A wrapper
 * of such a library therefore declares a table of the functions it calls, typed
 * from the library's own header, and fills it with mo_dso_load() at first use.
 *
 * A loaded library is never unloaded: it may hold thread-local state and exit
 * handlers. In a static program (MO_STATIC) the linker has filled the table. */
#ifndef MO_LOOP_DSO_H
#define MO_LOOP_DSO_H

#include <stddef.h>

#include "base/err.h"

struct mo_dso_sym {
    const char *name;
    size_t at; /* offset of the function pointer in the table */
#ifdef MO_STATIC
    void (*fn)(void);
#endif
};

/* One row of an X-macro list: MO_DSO_SYM(struct table, SSL_new). */
#ifdef MO_STATIC
#    define MO_DSO_SYM(T, f)                                                   \
        {                                                                      \
            .name = #f, .at = offsetof(T, f), .fn = (void (*)(void))(f)        \
        }
#else
#    define MO_DSO_SYM(T, fn)                                                  \
        {                                                                      \
            .name = #fn, .at = offsetof(T, fn)                                 \
        }
#endif
/* The table member for a function; calls through it are type-checked. */
#define MO_DSO_MEMBER(fn) __typeof__(&fn) fn;

/* Fill the table from the library. On failure (MO_EUNAVAIL) the message names
 * the missing symbol or library and its package; the table is not usable
 * then. */
int mo_dso_load(const char *soname, const char *package,
                const struct mo_dso_sym *syms, size_t n, void *table,
                struct mo_err *e);

#endif
