/* audit_journal.h - calls that have left and whose outcome is not in the log.
 *
 *   DIR/audit.open-ID   one file per process, mode 0600, locked while the
 *                       process lives
 *     12 MEMBERS        call 12 leaves; MEMBERS: its row (audit_file.h)
 *     -12               the row with its outcome is in the log
 *
 * A row of the log is written in a group after its call; until then the call is
 * on record here. mo_audit_journal_begin() returns when the kernel has the
 * bytes, so a SIGKILL in the next instruction does not lose them. One write(2)
 * per call, one per group of rows.
 *
 * The next process that writes the log finds the files of dead processes and
 * adds a row for each call that is still open, with the outcome "unknown". A
 * process killed between the two writes at the end of a call leaves a second
 * row for it: never none.
 *
 * Limits: over MO_AUDIT_JOURNAL_MAX bytes the file is written anew with the
 * open calls only. A call holds its row in memory. */
#ifndef MO_AUDIT_AUDIT_JOURNAL_H
#define MO_AUDIT_AUDIT_JOURNAL_H

#include "base/list.h"
#include "base/str.h"

#define MO_AUDIT_JOURNAL_MAX ((uint64_t)1024 * 1024)

struct mo_audit_open; /* a call that has left */

struct mo_audit_journal {
    const char *dir; /* borrowed */
    char name[64];   /* of its file; empty: none yet */
    int fd;
    uint64_t size, last; /* last: number of the last call */
    struct mo_list open;
    struct mo_buf line;
};

void mo_audit_journal_init(struct mo_audit_journal *j, const char *dir);
/* Removes the file if no call is open. */
void mo_audit_journal_fini(struct mo_audit_journal *j);

/* members: JSON that ends with the object "what". On failure the call must not
 * leave. */
int mo_audit_journal_begin(struct mo_audit_journal *j, struct mo_span members,
                           struct mo_audit_open **out, struct mo_err *e);
/* The row with the outcome is in that group of the log (audit_file.h). */
void mo_audit_journal_end(struct mo_audit_open *o, uint64_t group);
/* The group was written: frees its calls. */
void mo_audit_journal_written(struct mo_audit_journal *j, uint64_t group);

/* --- files of dead processes; for the worker thread ---------------------- */

#define MO_AUDIT_LEFT_MAX 64

struct mo_audit_left {
    const char *dir;
    size_t n;
    struct {
        int fd;
        char name[64];
    } v[MO_AUDIT_LEFT_MAX];
};

/* Locks them and appends their open calls to `out`, an LF after each row. */
void mo_audit_journal_find(const char *dir, struct mo_audit_left *l,
                           struct mo_buf *out);
void mo_audit_journal_remove(struct mo_audit_left *l); /* the files */
void mo_audit_journal_leave(struct mo_audit_left *l);  /* unlocks them */

#endif
