/* store_kit.h - a store to test, and calls that wait for their answer.
 *
 * The store is an SQLite file or a redis-server of its own, in a temporary
 * directory. Every test takes a struct backend as its initial state, so the
 * same function runs for each backend. put(), get(), who() and take_wait()
 * turn the loop until the answer has come and keep it in struct fix or struct
 * held. At exit the kit removes the directories of failed tests. */
#ifndef MO_STORE_KIT_H
#define MO_STORE_KIT_H

#include <sys/types.h>

#include "base/clock.h"
#include "base/rand.h"
#include "mo_test.h"
#include "store/store.h"

#define LONG 60000 /* ms; a deadline for hanging, not for speed */

struct backend {
    const char *name;
    bool redis;
};

struct fix {
    const struct backend *b;
    struct mo_loop *l;
    struct mo_store *s;
    struct mo_store_opts o;
    char dir[64], url[128];
    pid_t server;
    /* the last answer */
    int code;
    bool done, gone;
    char msg[240];
    struct mo_written w;
    struct mo_arena mem;
    struct mo_row *rows;
    size_t n;
    bool more;
    char owner[MO_STORE_ID_MAX + 1];
    uint64_t fence;
};

/* --- a redis-server of our own ------------------------------------------- */

/* The server dies with the test. */
pid_t redis_start(const char *dir);
void redis_stop(pid_t *pid);

/* --- opening and closing ------------------------------------------------- */

/* The text of a document: "NAME|TEXT". */
void kit_text(struct mo_span doc, struct mo_buf *out);
void fix_prepare(struct fix *f, const struct backend *b);
void fix_open(struct fix *f);
void fix_init(struct fix *f, const struct backend *b);
void kit_gone(void *ctx);
bool kit_is_gone(void *ctx);
void fix_close(struct fix *f);
void fix_fini(struct fix *f);

/* --- calls that wait ----------------------------------------------------- */

int put(struct fix *f, const char *session, uint64_t fence,
        const struct mo_write *w, size_t n);

#define PUT(f, session, ...)                                                   \
    put((f), (session), 0, (const struct mo_write[]){__VA_ARGS__},             \
        sizeof((const struct mo_write[]){__VA_ARGS__}) /                       \
            sizeof(struct mo_write))

void kit_rows(void *ctx, const struct mo_rows *rows, const struct mo_err *why);
int get(struct fix *f, struct mo_read r);

#define GET(f, ...) get((f), (struct mo_read){__VA_ARGS__})

bool row_is(const struct fix *f, size_t i, const char *doc);
int who(struct fix *f, const char *name);

/* --- leases -------------------------------------------------------------- */

struct held {
    struct fix *f;
    struct mo_lease *lease;
    uint64_t fence;
    int code;
    char msg[240];
    unsigned answered, lost;
    unsigned order; /* of the answers */
};

void take(struct fix *f, struct held *h, const char *name, const char *owner,
          uint64_t wait_ms);
bool kit_answered(void *ctx);
bool kit_has_lost(void *ctx);
int take_wait(struct fix *f, struct held *h, const char *name,
              const char *owner, uint64_t wait_ms);

#endif
