/* shared_rows.h - rows of files that all servers of a store have.
 *
 * Processes with one store.dir share its files. Servers on other machines have
 * another store.dir: what they must have in common, they get through the store.
 *
 *   NAME:KIND:ID   a row, JSON; {"gone":true,"at":MS}: it was removed
 *   NAME-news      changes with each change of these
 *
 * A round reads all rows, lets each kind merge them into its file, and writes
 * what the store lacks. There is one at the start, one after each change here,
 * and one when `NAME-news` has changed, which is looked at every
 * MO_SHARED_ROWS_MS. Two servers that write the same row at the same time
 * overwrite each other; a merge must not depend on the order, so their next
 * rounds agree.
 *
 * A row that is removed must not come back by a server that still has it: so a
 * removal is written to the store first, and stays there.
 *
 * A store that is away is asked again every MO_SHARED_ROWS_MS. Ownership:
 * everything is borrowed until close; merge() is not called after it. */
#ifndef MO_STORE_SHARED_ROWS_H
#define MO_STORE_SHARED_ROWS_H

#include "base/map.h"
#include "store/store.h"

#define MO_SHARED_ROWS_MS   2000
#define MO_SHARED_ROWS_MAX  16384 /* of one kind; further ones are not read */
#define MO_SHARED_KINDS_MAX 4

struct mo_shared_rows;

struct mo_shared_row {
    bool is_gone;
    size_t n;
    char doc[];
};

struct mo_shared_kind {
    const char *name;
    /* theirs: id -> struct mo_shared_row *, all rows of this kind in the
     * store. Adds what they lack by mo_shared_rows_put(). */
    void (*merge)(void *ctx, const struct mo_map *theirs,
                  struct mo_shared_rows *r);
    void *ctx;
};

/* name: a literal. */
int mo_shared_rows_open(struct mo_loop *l, struct mo_store *store,
                        const char *name, const struct mo_shared_kind *kinds,
                        size_t n, struct mo_shared_rows **out,
                        struct mo_err *e);
void mo_shared_rows_close(struct mo_shared_rows *r); /* NULL is fine */

/* Within merge(): the store gets this row of that kind. */
void mo_shared_rows_put(struct mo_shared_rows *r, const char *kind,
                        struct mo_span id, struct mo_span doc);
/* A file here has changed: the others get it soon. */
void mo_shared_rows_changed(struct mo_shared_rows *r);
/* One row, at once. All callbacks fire once, even after close, with an error
 * then. write(): done() when it is durable. remove(): the same; the caller then
 * removes its own. read(): got() with its document, or an empty one. */
typedef void mo_shared_done_fn(void *ctx, const struct mo_err *why);
typedef void mo_shared_got_fn(void *ctx, struct mo_span doc,
                              const struct mo_err *why);
int mo_shared_rows_write(struct mo_shared_rows *r, const char *kind,
                         struct mo_span id, struct mo_span doc,
                         mo_shared_done_fn *done, void *ctx, struct mo_err *e);
int mo_shared_rows_remove(struct mo_shared_rows *r, const char *kind,
                          struct mo_span id, mo_shared_done_fn *done, void *ctx,
                          struct mo_err *e);
int mo_shared_rows_read(struct mo_shared_rows *r, const char *kind,
                        struct mo_span id, mo_shared_got_fn *got, void *ctx,
                        struct mo_err *e);
/* The document of a row that was removed at that time. */
void mo_shared_rows_put_gone(struct mo_buf *out, uint64_t at_ms);
/* True as soon as all rows have been read once. */
bool mo_shared_rows_are_read(const struct mo_shared_rows *r);

#endif
