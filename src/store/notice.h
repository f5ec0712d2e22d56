/* notice.h - "a lease was given back", said to every process that shares a
 * file with us.
 *
 * Beside the database stands a directory with a few empty files. Who gives a
 * lease back opens and closes the one that its name hashes to; who waits is
 * told by inotify which file that was. Nothing is read or written, nothing
 * has to be cleaned up after a crash, and a process that dies is forgotten
 * by the kernel.
 *
 * A wake-up says "look", not "it is yours": names share files, and on file
 * systems where inotify sees nothing of others (network ones) there is no
 * wake-up at all; then the end of the holder's term remains. */
#ifndef MO_STORE_NOTICE_H
#define MO_STORE_NOTICE_H

#include "loop/stream.h"

#define MO_NOTICE_FILES 64

struct mo_notice {
    struct mo_loop *loop;
    int dir;               /* descriptor of the directory */
    struct mo_stream *ear; /* NULL: nobody listens */
    void (*heard)(void *ctx, unsigned file);
    void (*gone)(void *ctx);
    void *ctx;
    bool closing;
};

/* path: of the directory; made if it is not there. */
int mo_notice_open(struct mo_notice *n, struct mo_loop *l, const char *path,
                   struct mo_err *e);
/* From now on heard() is called for every notice; MO_NOTICE_FILES: for one
 * that was lost, look at everything. Again: nothing happens. */
int mo_notice_listen(struct mo_notice *n,
                     void (*heard)(void *ctx, unsigned file), void *ctx,
                     struct mo_err *e);
unsigned mo_notice_file(struct mo_span name);
/* From any thread. */
void mo_notice_give(const struct mo_notice *n, struct mo_span name);
/* gone(ctx), once; at once when nobody listened. */
void mo_notice_close(struct mo_notice *n, void (*gone)(void *ctx), void *ctx);

#endif
