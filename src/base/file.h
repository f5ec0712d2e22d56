/* file.h - small files of ours, read and written whole.
 *
 * Only regular files: a FIFO or a device under a configured name would make
 * the start hang. Opened without blocking, checked on the descriptor, read
 * up to the caller's cap (MO_ETOOBIG). */
#ifndef MO_BASE_FILE_H
#define MO_BASE_FILE_H

#include <sys/types.h>
#include <time.h>

#include "base/str.h"

/* Enough to see that a file is not the one that was read. */
struct mo_file_stamp {
    bool there;
    dev_t dev;
    ino_t ino;
    off_t size;
    mode_t mode;
    struct timespec mtime;
};

/* MO_ENOTFOUND when there is none. stamp may be NULL; it is of the opened
 * file, or all zero. */
int mo_file_read(const char *path, size_t max, struct mo_buf *out,
                 struct mo_file_stamp *stamp, struct mo_err *e);

void mo_file_stamp(const char *path, struct mo_file_stamp *out);
bool mo_file_same(const struct mo_file_stamp *a, const struct mo_file_stamp *b);

/* All of it or MO_EIO: pipes take less than asked for. */
int mo_file_write_all(int fd, struct mo_span text, struct mo_err *e);

/* The whole content, mode 0600, by way of a file beside it: who reads sees the
 * old or the new one. Not synced: for what can be lost. */
int mo_file_replace(const char *path, struct mo_span text, struct mo_err *e);

/* The same for what must not be lost: on the disk when it returns. */
int mo_file_save(const char *path, struct mo_span text, mode_t mode,
                 struct mo_err *e);

/* The right to write the file, among those who ask for it: a lock on its
 * directory, held by the descriptor that is returned. MO_EBUSY after ms. */
int mo_file_lock(const char *path, unsigned ms, struct mo_err *e);

/* A change of a whole file that other processes change too: takes the lock,
 * reads the file, calls edit() and replaces the file (0600).
 *
 * edit() gets the present text (p NULL: there is no file) and appends the next
 * one to `out`; if it appends nothing, nothing is written. On failure the file
 * is unchanged: MO_EBUSY after MO_FILE_LOCK_MS, MO_ETOOBIG for more than `max`
 * bytes, or the result of edit(). */
#define MO_FILE_LOCK_MS 5000

struct mo_file_change {
    const char *path;
    size_t max; /* bytes, of the old and the new text */
    bool sync;  /* on the disk when it returns, as mo_file_save() */
    int (*edit)(void *ctx, struct mo_span text, struct mo_buf *out,
                struct mo_err *e);
    void *ctx;
};
int mo_file_change(const struct mo_file_change *c, struct mo_err *e);

/* A directory of ours (0700) and those above it, where they are missing. */
int mo_file_mkdir(const char *path, struct mo_err *e);

#endif
