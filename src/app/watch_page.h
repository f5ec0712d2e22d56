/* watch_page.h - what the clients of one worker have subscribed to, in memory
 * that all workers share.
 *
 * One worker writes its page, the others read it before each request, so a
 * client that has just subscribed at one worker may call a tool at any. An
 * added text needs no more than its own bytes, on both sides; a page is written
 * anew when texts are removed, at most once in an iteration of the loop.
 *
 * Limit: MO_WATCH_PAGE_MAX bytes. Further texts are not in the page, and the
 * others do not know of them. */
#ifndef MO_APP_WATCH_PAGE_H
#define MO_APP_WATCH_PAGE_H

#include <stdatomic.h>

#include "base/str.h"

#define MO_WATCH_PAGE_MAX ((size_t)64 * 1024)

struct mo_watch_page {
    /* Odd while the page is being written anew, and for ever if its worker was
     * killed then: its successor begins another. */
    atomic_uint version;
    _Atomic size_t n;
    char text[MO_WATCH_PAGE_MAX]; /* each ends with a NUL */
};

/* How far a reader has read. */
struct mo_watch_seen {
    unsigned version;
    size_t n;
};

/* Replaces all; `texts`: each ends with a NUL. */
void mo_watch_page_write(struct mo_watch_page *p, struct mo_span texts);
/* False: there is no room for it, or it has a NUL. */
bool mo_watch_page_add(struct mo_watch_page *p, struct mo_span text);
/* Appends what was added since; *anew: it replaces what was read before. False:
 * nothing has changed, or it is being written: look again later. */
bool mo_watch_page_read(const struct mo_watch_page *p,
                        struct mo_watch_seen *seen, struct mo_buf *out,
                        bool *anew);

#endif
