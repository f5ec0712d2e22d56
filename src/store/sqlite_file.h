/* sqlite_file.h - a database file as a whole: copied while it is in use,
 * checked, brought to our version. For commands; every call blocks. */
#ifndef MO_STORE_SQLITE_FILE_H
#define MO_STORE_SQLITE_FILE_H

#include "codec/state_version.h"

/* One snapshot of the database at `path` into `to`, a file that is empty. */
int mo_sqlite_file_copy(const char *path, const char *to, struct mo_err *e);
/* Refuses a file that is not ours, newer or damaged; migrates an older one. */
int mo_sqlite_file_adopt(const char *path, struct mo_err *e);

/* Its version, and row() for each of the first 100 marks whose id begins with
 * `prefix`, letters and a colon. Reads little, and changes nothing. */
int mo_sqlite_file_peek(const char *path, const char *prefix,
                        struct mo_state_version *out,
                        void (*row)(void *ctx, struct mo_span id,
                                    struct mo_span doc),
                        void *ctx, struct mo_err *e);

struct mo_sqlite_facts {
    struct mo_state_version version; /* format: user_version */
    uint64_t bytes, sessions, conversations, entries, calls, audit;
    uint64_t lost_calls;   /* of no session and no conversation */
    uint64_t lost_entries; /* of no conversation */
    struct mo_err why;     /* code 0: no damage was found */
};
/* Reads every page, and changes nothing. A version that is too new is `why`. */
int mo_sqlite_file_check(const char *path, struct mo_sqlite_facts *out,
                         struct mo_err *e);

#endif
