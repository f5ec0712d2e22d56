/* sqlite_priv.h - shared by the files of the SQLite backend: sqlite.c (two
 * lanes of operations), sqlite_write.c, sqlite_lease.c and sqlite_index.c (the
 * writer's thread), sqlite_read.c (the reader's thread), sqlite_check.c (the
 * check of a large file), notice.h (wake-ups between processes). */
#ifndef MO_STORE_SQLITE_PRIV_H
#define MO_STORE_SQLITE_PRIV_H

#include "loop/work.h"
#include "store/notice.h"
#include "store/priv.h"
#include "store/sql.h"

#define MO_SQLITE_GROUP_MAX 256 /* operations of one transaction */

struct mo_sqlite;

/* Operations wait in `waiting` (the loop's) while the thread runs `group`. */
struct mo_lane {
    struct mo_sqlite *q;
    struct mo_work *work;
    struct mo_job job;
    struct mo_list waiting, group;
    struct mo_later go;
    bool running; /* the thread has the group */
    bool spoilt;  /* a write without savepoint failed: run the group again */
    unsigned max; /* of a group */
    struct mo_sql sql;
    struct mo_err err; /* of the whole group; code 0: none */
};

/* Belongs to the writer's thread while a job runs, else to the loop. */
struct mo_sqlite_index {
    bool due;           /* idle: move on by one chunk */
    size_t rows, bytes; /* appended and not indexed, estimated; 0: none */
    struct mo_err err;  /* of the last chunk; code 0: none */
    bool failing;       /* the failure was logged */
};

/* sqlite_check.c; the thread's while it runs, else the loop's. */
struct mo_sqlite_check {
    struct mo_sqlite *q;
    struct mo_timer timer;
    struct mo_work *work; /* NULL: no check was needed yet */
    struct mo_job job;
    struct mo_sql sql; /* open while the check runs */
    struct mo_err err; /* MO_EIO: the damage; code 0: none found */
    uint64_t began_ns;
    bool damaged; /* every operation fails with err */
    bool closing;
};

struct mo_sqlite {
    struct mo_store s; /* first */
    struct mo_sqlite_lib lib;
    struct mo_lane writer, reader;
    struct mo_sqlite_index index;
    struct mo_sqlite_check check;
    struct mo_timer quiet; /* fires when the index may be moved on */
    uint64_t last_ns;      /* when the writer's last group ended */
    struct mo_notice notice;
    struct mo_job closing;
    char boot[40]; /* of this run of the machine */
    char *path;
};

/* On the writer's thread, inside a transaction. 0; a refusal (MO_EPOLICY,
 * MO_EEXISTS, MO_ENOTFOUND) or MO_EUNAVAIL, in op->err. */
int mo_sqlite_write(struct mo_sqlite *q, struct mo_op *op);
int mo_sqlite_lease(struct mo_sqlite *q, struct mo_op *op);
int mo_sqlite_count(struct mo_sqlite *q, struct mo_op *op);
int mo_sqlite_sweep(struct mo_sqlite *q, struct mo_op *op);
/* MO_EPOLICY unless the session's lease is held under that fence. */
int mo_sqlite_fence(struct mo_sqlite *q, struct mo_op *op);

/* Moves the full-text index on if it is due; `back` of a search in the group
 * says which lane it goes to next. Outside of a transaction. */
void mo_sqlite_index(struct mo_sqlite *q);

/* True if a write-ahead log stands beside the file at `path`: ask before the
 * file is opened. */
bool mo_sqlite_log_left(const char *path);
void mo_sqlite_check_init(struct mo_sqlite *q);
/* Check the whole file, a moment from now. */
void mo_sqlite_check_later(struct mo_sqlite *q);
/* Interrupts a check; gone(ctx) once, now or later. */
void mo_sqlite_check_stop(struct mo_sqlite *q, void (*gone)(void *ctx),
                          void *ctx);

/* On the reader's thread. */
/* 1: the index has not reached the last entry, op->index_to; 0; or an error. */
int mo_sqlite_index_lags(struct mo_sqlite *q, struct mo_op *op);
void mo_sqlite_read(struct mo_sqlite *q, struct mo_op *op);
void mo_sqlite_who(struct mo_sqlite *q, struct mo_op *op);

#endif
