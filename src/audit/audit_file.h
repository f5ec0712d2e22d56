/* audit_file.h - the audit log as an append-only file of chained rows.
 *
 *   DIR/audit.jsonl       the rows (codec/chain.h), one per line, mode 0600
 *   DIR/audit-SEQ.jsonl   full files; SEQ: the number of the last row
 *   DIR/audit.head        number and MAC of the last row, the number of the
 *                         first row that is kept, and the MAC of these
 *   DIR/audit.key         the key of the MACs, 64 hex digits, mode 0600; made
 *                         with the first row
 *
 * A worker thread writes rows in groups; adding a row only copies it. A group
 * is written WAIT_MS after its first row, when it reaches GROUP_SOON bytes, or
 * at once for mo_audit_file_sure(), which also syncs it to disk. Other groups
 * survive a crash of the process but not of the machine. A call must not leave
 * before it is on record: audit_journal.h.
 *
 * Several processes may write one log: for each group they lock the head and
 * continue from the last row in the file. A partial line left by a crash is cut
 * off, and a row says so. A file whose last row cannot be read is renamed
 * unchanged, and the first row of the next file says so; verification reports
 * it. If rows at the end are gone that the head, this process or the store
 * (mo_audit_file_known()) remembers, the numbers go on after them, so that
 * verification always finds the gap.
 *
 * The head reveals missing rows at either end. Whoever has no key cannot write
 * rows or a head, but can bring back an older file with its head. Witnesses
 * reveal that: the store, and the anchors of audit_anchor.h.
 *
 * Limits: MO_AUDIT_FILE_QUEUE bytes wait at most; further rows are lost, and a
 * later row has their number. A file over `max` bytes is rotated; `files` files
 * are kept. The content of rows is not interpreted here. */
#ifndef MO_AUDIT_AUDIT_FILE_H
#define MO_AUDIT_AUDIT_FILE_H

#include "codec/chain.h"
#include "loop/loop.h"

#define MO_AUDIT_FILE_FILE  "audit.jsonl"
#define MO_AUDIT_FILE_HEAD  "audit.head"
#define MO_AUDIT_FILE_KEY   "audit.key"
#define MO_AUDIT_FILE_QUEUE ((size_t)16 * 1024 * 1024)
#define MO_AUDIT_FILE_LINE  ((size_t)8 * 1024 * 1024) /* the longest row */
#define MO_AUDIT_FILE_MAX   ((uint64_t)64 * 1024 * 1024)
#define MO_AUDIT_FILE_FILES 16

struct mo_audit_file;

/* Number and MAC of a row, remembered outside of the files. */
struct mo_audit_witness {
    uint64_t seq; /* 0: none */
    char hash[MO_CHAIN_HEX + 1];
    const char *by; /* for messages: "the store", "the anchor" */
};

struct mo_audit_file_opts {
    const char *dir;
    uint64_t max;       /* 0: MO_AUDIT_FILE_MAX */
    unsigned files;     /* 0: MO_AUDIT_FILE_FILES */
    const char *anchor; /* as mo_audit_anchor_put(); NULL: none */
    /* A group was written (or lost): `group` as of mo_audit_file_group(). */
    void (*written)(void *ctx, uint64_t group, bool ok);
    void *ctx;
};

/* No file is opened before the first row. */
int mo_audit_file_open(struct mo_loop *l, const struct mo_audit_file_opts *o,
                       struct mo_audit_file **out, struct mo_err *e);
/* Writes all rows, then calls gone(ctx) once, later. */
void mo_audit_file_close(struct mo_audit_file *g, void (*gone)(void *ctx),
                         void *ctx);

/* Adds a row. members: JSON without the braces. MO_EBUSY: the row is lost. */
int mo_audit_file_put(struct mo_audit_file *g, struct mo_span members);
/* Calls done() once, later, when all rows so far are synced to disk, or with
 * the error. */
int mo_audit_file_sure(struct mo_audit_file *g, mo_done_fn *done, void *ctx,
                       struct mo_err *e);

/* Writes a group now, even an empty one, so that key, file and head exist. */
void mo_audit_file_flush(struct mo_audit_file *g);
/* The number of the group that the last row belongs to. */
uint64_t mo_audit_file_group(const struct mo_audit_file *g);
/* True if the last group could not be written. The next row tries again. */
bool mo_audit_file_is_failing(const struct mo_audit_file *g);
/* The last row that was written; seq 0: none yet. */
struct mo_audit_witness mo_audit_file_last(const struct mo_audit_file *g);
/* A row that was written once, as the store remembers it. If the files end
 * before it, the next row gets a number behind it. */
void mo_audit_file_known(struct mo_audit_file *g,
                         const struct mo_audit_witness *w);

struct mo_audit_file_stats {
    uint64_t rows, lost, fails; /* written; lost; failed groups */
};
struct mo_audit_file_stats mo_audit_file_stats(const struct mo_audit_file *g);

/* --- verification (audit_verify.c); these functions block ---------------- */

struct mo_audit_file_report {
    bool ok;
    uint64_t rows, first, last; /* count; numbers of both ends */
    unsigned files;
    uint64_t line;     /* not ok: line in `file`, from 1 */
    char file[64];     /* its name in the directory */
    struct mo_err why; /* not ok: the problem there */
};

/* Verifies all files of the directory, oldest first, and the head; or `file`
 * alone. Returns 0 even if r->ok is false; an error means that a file could not
 * be read. */
int mo_audit_file_verify(const char *dir, const char *file,
                         struct mo_audit_file_report *r, struct mo_err *e);
/* The same, and every witness (in order of seq) must agree with the rows. */
int mo_audit_file_verify_with(const char *dir, const char *file,
                              const struct mo_audit_witness *v, size_t n,
                              struct mo_audit_file_report *r, struct mo_err *e);
/* The report as JSON: {"ok":...}. */
int mo_audit_file_put_report(const struct mo_audit_file_report *r,
                             struct mo_buf *out);

/* The names of the directory's files, oldest first; at most max. */
int mo_audit_file_files(const char *dir, char (*out)[64], size_t max, size_t *n,
                        struct mo_err *e);

/* --- for audit_file_io.c ------------------------------------------------- */

struct mo_audit_file_mark { /* content of the head */
    struct mo_chain last;
    uint64_t first; /* number of the oldest row that is kept */
    bool keyed;     /* it has a MAC, which is right */
};

/* The open files; used by the worker thread only. */
struct mo_audit_file_file {
    char dir[4096];
    char anchor[4096]; /* empty: none */
    uint64_t max;
    unsigned files;
    int fd, head; /* -1: not open */
    uint64_t size, first;
    struct mo_hmac key;
    bool has_key, looked; /* looked for the journals of dead processes */
    struct mo_chain chain;
    struct mo_audit_witness known; /* see mo_audit_file_known() */
    uint64_t anchored, anchored_ns;
};

/* Writes one group. rows: members, an LF after each row. */
int mo_audit_file_append(struct mo_audit_file_file *f, struct mo_span rows,
                         bool sync, struct mo_err *e);
/* Writes the last row to the anchor, unless it is there. */
void mo_audit_file_anchor(struct mo_audit_file_file *f);
void mo_audit_file_file_close(struct mo_audit_file_file *f);
/* key: NULL if there is none. MO_ENOTFOUND: the head is missing or incomplete;
 * MO_EPROTO: its MAC is wrong. */
int mo_audit_file_head(const char *dir, const struct mo_hmac *key,
                       struct mo_audit_file_mark *out, struct mo_err *e);
/* Reads the key; make: creates a missing one. MO_ENOTFOUND; MO_EPOLICY: others
 * may read or write it. */
int mo_audit_file_key(const char *dir, bool make, struct mo_hmac *out,
                      struct mo_err *e);

#endif
