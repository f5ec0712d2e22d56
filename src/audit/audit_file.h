/* audit_file.h - the audit log as a file: appended to, chained, never
 * rewritten.
 *
 *   DIR/audit.jsonl       the rows (codec/chain.h), one a line, mode 0600
 *   DIR/audit-SEQ.jsonl   files that were full; SEQ: their last row
 *   DIR/audit.head        number and hash of the last row that was written, and
 *                         the number of the first that is kept
 *
 * Rows are written behind, in groups, by a thread of its own: putting one costs
 * a copy. A group is written WAIT_MS after its first row, when it is big, or at
 * once when somebody wants to be sure (mo_audit_file_sure), which is also when
 * it is synced to the disk; all others survive the end of this process but not
 * that of the machine.
 *
 * Several processes may write one log: each group takes the head's lock and
 * goes on from whatever the last row is by then. A line that a crash left half
 * is cut off and a row says so. A file whose last row cannot be read is set
 * aside as it is, and a row of the next one says so: verifying finds it.
 *
 * The head tells that rows are missing at either end. Who can write both files
 * can also write a whole new chain: for that, keep a hash elsewhere.
 *
 * Limits: MO_AUDIT_FILE_QUEUE bytes wait at most; rows beyond are lost,
 * counted, and a later row says how many. Files over `max` bytes are set aside,
 * and of those `files` are kept. Not known here: what rows mean. */
#ifndef MO_AUDIT_AUDIT_FILE_H
#define MO_AUDIT_AUDIT_FILE_H

#include "codec/chain.h"
#include "loop/loop.h"

#define MO_AUDIT_FILE_FILE  "audit.jsonl"
#define MO_AUDIT_FILE_HEAD  "audit.head"
#define MO_AUDIT_FILE_QUEUE ((size_t)16 * 1024 * 1024)
#define MO_AUDIT_FILE_LINE  ((size_t)8 * 1024 * 1024) /* the longest row */
#define MO_AUDIT_FILE_MAX   ((uint64_t)64 * 1024 * 1024)
#define MO_AUDIT_FILE_FILES 16

struct mo_audit_file;

struct mo_audit_file_opts {
    const char *dir;
    uint64_t max;   /* 0: MO_AUDIT_FILE_MAX */
    unsigned files; /* 0: MO_AUDIT_FILE_FILES */
};

/* Nothing is opened before the first row. */
int mo_audit_file_open(struct mo_loop *l, const struct mo_audit_file_opts *o,
                       struct mo_audit_file **out, struct mo_err *e);
/* What was put is written; gone(ctx) once, later. */
void mo_audit_file_close(struct mo_audit_file *g, void (*gone)(void *ctx),
                         void *ctx);

/* A row: its members as JSON, without the braces. MO_EBUSY: it is lost. */
int mo_audit_file_put(struct mo_audit_file *g, struct mo_span members);
/* done() once, later: all that was put so far is on the disk, or why not. */
int mo_audit_file_sure(struct mo_audit_file *g,
                       void (*done)(void *ctx, const struct mo_err *why),
                       void *ctx, struct mo_err *e);

struct mo_audit_file_stats {
    uint64_t rows, lost, fails; /* written; not; groups that failed */
};
struct mo_audit_file_stats mo_audit_file_stats(const struct mo_audit_file *g);

/* --- looking at it; these block ------------------------------------------ */

struct mo_audit_file_report {
    bool ok;
    uint64_t rows, first, last; /* how many, from which to which */
    unsigned files;
    uint64_t line;     /* not ok: of `file`, from 1 */
    char file[64];     /* its name in the directory */
    struct mo_err why; /* not ok: what is wrong there */
};

/* All files of the directory, oldest first, and the head; or one file alone.
 * 0 also when it is not ok; an error: it could not be looked at. */
int mo_audit_file_verify(const char *dir, const char *file,
                         struct mo_audit_file_report *r, struct mo_err *e);
/* {"ok":...} for programs. */
int mo_audit_file_put_report(const struct mo_audit_file_report *r,
                             struct mo_buf *out);

/* The directory's files, oldest first, as names; *n at most max. */
int mo_audit_file_files(const char *dir, char (*out)[64], size_t max, size_t *n,
                        struct mo_err *e);

/* --- for audit_file_io.c ---------------------------------------------------
 */

struct mo_audit_file_mark { /* what the head says */
    struct mo_chain last;
    uint64_t first; /* the first row that is kept */
};

/* One group: rows are members, an LF behind each. On the worker's thread. */
struct mo_audit_file_file {
    char dir[4096];
    uint64_t max;
    unsigned files;
    int fd, head; /* -1: not open */
    uint64_t size, first;
    struct mo_chain chain;
};

int mo_audit_file_append(struct mo_audit_file_file *f, struct mo_span rows,
                         bool sync, struct mo_err *e);
void mo_audit_file_file_close(struct mo_audit_file_file *f);
/* MO_ENOTFOUND: there is none, or it is not whole. */
int mo_audit_file_head(const char *dir, struct mo_audit_file_mark *out,
                       struct mo_err *e);

#endif
