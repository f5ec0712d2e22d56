#include "loop/dso.h"

#include <dlfcn.h>
#include <string.h>

#ifdef MO_STATIC

int mo_dso_load(const char *soname, const char *package,
                const struct mo_dso_sym *syms, size_t n, void *table,
                struct mo_err *e)
{
    (void)soname;
    (void)package;
    (void)e;
    for (size_t i = 0; i < n; i++)
        memcpy((char *)table + syms[i].at, &syms[i].fn, sizeof(syms[i].fn));
    return 0;
}

#else

int mo_dso_load(const char *soname, const char *package,
                const struct mo_dso_sym *syms, size_t n, void *table,
                struct mo_err *e)
{
    void *lib = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!lib)
        return mo_fail(e, MO_EUNAVAIL,
                       "library %s cannot be loaded; install the package %s "
                       "(%s)",
                       soname, package, dlerror());
    for (size_t i = 0; i < n; i++) {
        void *fn = dlsym(lib, syms[i].name);

        if (!fn)
            return mo_fail(e, MO_EUNAVAIL,
                           "library %s is too old: it has no %s; update the "
                           "package %s",
                           soname, syms[i].name, package);
        /* ISO C has no cast from object to function pointer. */
        memcpy((char *)table + syms[i].at, &fn, sizeof(fn));
    }
    return 0;
}

#endif
