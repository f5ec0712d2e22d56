/* page.h - the files of the page, linked into the program. */
#ifndef MO_WEB_PAGE_H
#define MO_WEB_PAGE_H

#include <stddef.h>

struct mo_asset {
    const char *path, *type;
    const char *data;
    size_t size;
};

extern const struct mo_asset mo_assets[];
extern const size_t mo_nassets;

#endif
