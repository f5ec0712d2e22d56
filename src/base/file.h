/* file.h - read and write small files as a whole.
 *
 * Only regular files are read: a FIFO or a device under a configured name would
 * block the start. Files are opened non-blocking, checked on the descriptor and
 * read up to the caller's limit (MO_ETOOBIG). */
#ifndef MO_BASE_FILE_H
#define MO_BASE_FILE_H

#include <sys/types.h>
#include <time.h>

#include "base/str.h"

/* Identifies a version of a file: a different stamp means a changed file. */
struct mo_file_stamp {
    bool there;
    dev_t dev;
    ino_t ino;
    off_t size;
    mode_t mode;
    uid_t owner;
    gid_t group;
    struct timespec mtime;
};

/* Append the content to out. MO_ENOTFOUND if the file does not exist. stamp may
 * be NULL; it describes the opened file and is all zero on failure to open. */
int mo_file_read(const char *path, size_t max, struct mo_buf *out,
                 struct mo_file_stamp *stamp, struct mo_err *e);

void mo_file_stamp(const char *path, struct mo_file_stamp *out);
bool mo_file_same(const struct mo_file_stamp *a, const struct mo_file_stamp *b);

/* Append a file that only this program writes: a symbolic link is not followed,
 * and memory is allocated once. MO_ENOTFOUND: it cannot be read, is empty or
 * larger than out->max. MO_ENOMEM. */
int mo_file_read_own(const char *path, struct mo_buf *out);

/* Write everything, in several writes if needed, or fail with MO_EIO. */
int mo_file_write_all(int fd, struct mo_span text, struct mo_err *e);

/* Replace the content with mode 0600. The new content is written to a temporary
 * file beside it and renamed, so readers see the old or the new content. Not
 * synced: a crash of the machine can lose it. */
int mo_file_replace(const char *path, struct mo_span text, struct mo_err *e);

/* The same, synced: the content is on disk when the call returns. */
int mo_file_save(const char *path, struct mo_span text, mode_t mode,
                 struct mo_err *e);

/* Create a file (0600, synced) unless there is one. The text of the process
 * that was first stays. */
int mo_file_create(const char *path, struct mo_span text, struct mo_err *e);

/* Check that only we or root can have written an opened file: it belongs to us
 * or to root, and nobody else may write it. The group may, if it is the owner's
 * own (the same number), as many systems set it up. is_private: nobody else may
 * read it either. MO_EPOLICY; the error says what to do. */
int mo_file_trust(const char *path, const struct mo_file_stamp *stamp,
                  bool is_private, struct mo_err *e);

/* Take the write lock of a file among cooperating processes: a lock on its
 * directory, held by the returned descriptor until it is closed. MO_EBUSY after
 * ms. */
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

/* Create a directory (mode 0700) and its missing parents. */
int mo_file_mkdir(const char *path, struct mo_err *e);

#endif
