/* session_store.h - a store in memory with its leases, for session_kit.h.
 *
 * It defines mo_store_write(), mo_store_read() and mo_lease_*(), so it takes
 * the place of the real store at link time. Every answer comes from the loop.
 * The test owns struct mo_store and may change its rows and leases; fail[]
 * makes one kind of operation fail. */
#ifndef MO_SESSION_STORE_H
#define MO_SESSION_STORE_H

#include "mo_test.h"
#include "session/session.h"

#define ROWS   32
#define LEASES 32

struct row {
    bool used;
    char id[MO_SESSION_ID_MAX + 1];
    char doc[2048];
    uint64_t at;
};

struct held {
    char name[MO_STORE_ID_MAX + 1], owner[MO_STORE_ID_MAX + 1];
    uint64_t fence;
    struct mo_lease *by; /* NULL: somebody elsewhere */
};

enum op_kind { OP_WRITE, OP_READ, OP_WHO, OP_BREAK, OP_KINDS };

struct mo_store {
    struct mo_loop *l;
    struct row rows[ROWS];
    struct held leases[LEASES];
    char history[ROWS][MO_SESSION_ID_MAX + 1]; /* sessions with messages */
    struct mo_list waiting;                    /* leases */
    uint64_t fence;
    unsigned ops, writes;
    bool fail[OP_KINDS];
};

struct mo_lease {
    struct mo_list node; /* waiting */
    struct mo_store *s;
    struct mo_later later;
    struct mo_timer wait;
    const struct mo_lease_cb *cb;
    void *ctx;
    char name[MO_STORE_ID_MAX + 1], owner[MO_STORE_ID_MAX + 1];
    uint64_t wait_ms;
    bool dropped, late;
};

void put(char *out, size_t size, struct mo_span s);
struct row *row_of(struct mo_store *s, const char *id, bool make);
struct held *held_of(struct mo_store *s, const char *name);
struct held *hold_lease(struct mo_store *s, const char *name, const char *owner,
                        struct mo_lease *by);
void free_lease(struct mo_store *s, const char *name);
bool has_history(const struct mo_store *s, const char *id);

/* Records that a session has history, or forgets it. */
void say_something(struct mo_store *s, const char *id, bool on);

/* Another instance takes the lease: its holder gets on_lost(). */
void steal_lease(struct mo_store *s, const char *name);

#endif
