/* page.h - the files of the page, linked into the program.
 *
 * The page is compiled from ui/ (docs/page.md) and carried three times: as it
 * is, and as gzip and brotli have packed it once, when the program was built.
 * Files with their checksum in the name may be kept by a browser for ever;
 * the others are asked for each time and answered by their tag. */
#ifndef MO_WEB_PAGE_H
#define MO_WEB_PAGE_H

#include "web/site.h"

struct mo_asset {
    const char *path, *type;
    const char *tag; /* a checksum in quotes, as ETag has it */
    struct mo_span plain, gzip, brotli; /* a packed one may be empty */
    bool lasting;                       /* its name changes with it */
};

/* Made by scripts/embed-page. */
extern const struct mo_asset mo_assets[];
extern const size_t mo_nassets;

/* Every asset, and the views of the page, as routes of the site. */
void mo_page_routes(struct mo_site *s);

#endif
