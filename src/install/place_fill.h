/* place_fill.h - fills the directory of a new installation; private to place.c
 * and the files of the kinds. */
#ifndef MO_INSTALL_PLACE_FILL_H
#define MO_INSTALL_PLACE_FILL_H

#include "install/place.h"

struct mo_fill {
    const struct mo_install_plan *plan;
    const struct mo_place_tools *tools;
    const struct mo_run_user *owner; /* of the files until they are sealed, or
                                        NULL: the caller */
    const char *dir;                 /* empty */
    bool allow_scripts;
    struct mo_installed *x;
    struct mo_jw *w; /* the entry of the lock file; gets "packages" */
};

int mo_place_join(char out[PATH_MAX], const char *dir, const char *name,
                  struct mo_err *e);

/* Writes a file of ours into the directory. */
int mo_fill_write(const struct mo_fill *f, const char *name,
                  struct mo_span text, struct mo_err *e);

int mo_fill_npm(const struct mo_fill *f, struct mo_err *e);
int mo_fill_pypi(const struct mo_fill *f, struct mo_err *e);
int mo_fill_mcpb(const struct mo_fill *f, struct mo_err *e);

#endif
