/* notice.h - tells every process that shares a database file that a lease was
 * given back.
 *
 * Beside the database is a directory with a few empty files. To announce a
 * release, a process opens and closes the file that the lease's name hashes
 * to; inotify tells waiting processes which file that was. Nothing is read or
 * written, nothing has to be cleaned up after a crash, and the kernel forgets
 * a process that dies.
 *
 * A wake-up means "try again", not "it is yours": names share files. On file
 * systems where inotify does not see other machines (network ones) there is no
 * wake-up; then the end of the holder's term remains. */
#ifndef MO_STORE_NOTICE_H
#define MO_STORE_NOTICE_H

#include "loop/stream.h"

#define MO_NOTICE_FILES 64

struct mo_notice {
    struct mo_loop *loop;
    int dir;               /* descriptor of the directory */
    struct mo_stream *ear; /* NULL: not listening */
    void (*heard)(void *ctx, unsigned file);
    void (*gone)(void *ctx);
    void *ctx;
    bool closing;
};

/* path: the directory; created if missing. */
int mo_notice_open(struct mo_notice *n, struct mo_loop *l, const char *path,
                   struct mo_err *e);
/* From now on heard() is called for every notice; with MO_NOTICE_FILES if
 * notices were lost: then look at everything. A second call does nothing. */
int mo_notice_listen(struct mo_notice *n,
                     void (*heard)(void *ctx, unsigned file), void *ctx,
                     struct mo_err *e);
unsigned mo_notice_file(struct mo_span name);
/* From any thread. */
void mo_notice_give(const struct mo_notice *n, struct mo_span name);
/* gone(ctx), once; from inside this call if it was not listening. */
void mo_notice_close(struct mo_notice *n, void (*gone)(void *ctx), void *ctx);

#endif
