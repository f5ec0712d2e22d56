/* login_priv.h - a login and the table of logins, as the login files see them.
 *
 * Invariants
 *  1. g->phase is not IDLE while a renewal is under way; its steps find the
 *     login by its digest, so that it may be gone.
 *  2. Those who wait for a login or a load are told by a deferred call, never
 *     while the table is walked or changed: they may end logins.
 *  3. A lease has a struct turn, which outlives the login until the store has
 *     called back. */
#ifndef MO_PEOPLE_LOGIN_PRIV_H
#define MO_PEOPLE_LOGIN_PRIV_H

#include <stdio.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/rand.h"
#include "codec/sha256.h"
#include "people/login.h"

#define MO_LOGIN_MISSES 256

enum phase { IDLE, TURN, ROW, EXCHANGE, SAVE };

struct login;

struct turn {            /* the right to renew, among all replicas */
    struct login *login; /* NULL: gone */
    struct mo_lease *lease;
    bool is_held;
};

struct login {
    struct mo_logins *logins;
    struct mo_list node;            /* of all logins, oldest first */
    char digest[MO_SHA256_HEX + 1]; /* of the secret */
    char host[MO_LOGIN_HOST_MAX];
    struct mo_person who;
    char *provider, *subject, *refresh, *claims;
    uint64_t began_ms, began_s, retry_s;
    uint64_t round; /* of the last look at the store */
    enum phase phase;
    struct mo_exchange *exchange; /* EXCHANGE */
    struct turn *turn;            /* NULL: none */
    bool is_saved;                /* in the store */
    bool is_saving;
    struct mo_list waiting; /* for the renewal */
    struct mo_list saving;  /* for the store */
};

struct load { /* a login that is read from the store */
    char digest[MO_SHA256_HEX + 1];
    struct mo_list waiting;
    bool is_asked; /* the store was asked */
    bool is_ended; /* sign it out when it is there */
};

struct miss {
    char digest[MO_SHA256_HEX + 1];
    uint64_t until_s;
};

struct mo_logins {
    struct mo_people *people;
    struct mo_loop *loop;
    struct mo_login_rows *rows; /* NULL: memory only */
    struct mo_map by_digest, loads;
    struct mo_list all;
    struct mo_list told; /* waiters whose wait is over; told by `tell` */
    struct mo_later tell;
    struct mo_timer look, early;
    bool is_early; /* the store is being opened */
    uint64_t round;
    bool is_checking;
    char owner[MO_TOKEN_LEN(12) + 1]; /* of leases */
    struct miss misses[MO_LOGIN_MISSES];
    struct mo_logins_ended own, *ended_now; /* &own, or that of all workers */
    unsigned seen;                          /* changes of ended_now */
    void (*ended)(void *ctx, const char *who);
    void *ctx;
};

static inline uint64_t mo_login_now_s(void)
{
    return mo_wall_coarse_ms() / 1000;
}

static inline char *mo_login_copy(const char *text)
{
    return text ? mo_strndup(text, strlen(text)) : NULL;
}

static inline void mo_login_wipe(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    mo_free(mo_take_ptr(text));
}

/* --- login.c: the table --------------------------------------------------- */

/* Everybody in it, later. */
void mo_login_tell(struct mo_logins *l, struct mo_list *waiting);
struct login *mo_login_find(const struct mo_logins *l, const char *digest);
/* NULL: out of memory. */
struct login *mo_login_make(struct mo_logins *l, const char *digest,
                            struct mo_span host);
/* Takes g, also on failure: MO_EBUSY. */
int mo_login_add(struct mo_logins *l, struct login *g);
/* Of this process only. */
void mo_login_free(struct login *g);
/* Also what the person has open. */
void mo_login_close(struct login *g);
/* The role may be another one now: then what the person has open is closed. */
void mo_login_note_role(const struct login *g, enum mo_role was);
/* In all processes. */
void mo_login_end_everywhere(struct login *g);
void mo_login_keep_ended(struct mo_logins *l, const char *digest,
                         const char *who);
bool mo_login_has_ended(const struct mo_logins *l, const char *digest,
                        const char *who, uint64_t began_ms);
/* Ends what was signed out in another worker. */
void mo_login_heed_ended(struct mo_logins *l);

/* --- login_renew.c: what it knows of the person, and its renewal ---------- */

void mo_login_take(struct login *g, const struct mo_exchanged *got);
/* From the store; the role is that of the configuration now. False: none. */
bool mo_login_take_row(struct login *g, const struct mo_login_row *row);
/* By the configuration now. False: the person may not sign in any more. */
bool mo_login_judge(const struct mo_logins *l, struct login *g);
int mo_login_save(struct login *g); /* writes it to the store */
void mo_login_renew(struct login *g);
void mo_login_give_turn(struct login *g);

/* --- login_load.c: logins of the store ------------------------------------ */

/* NULL: it is not read, because it cannot be there. */
struct load *mo_login_load(struct mo_logins *l, const char *digest);
void mo_logins_drop_loads(struct mo_logins *l);
/* The store is there, or will not come: those who wait go on. */
void mo_logins_end_early(struct mo_logins *l);
void mo_logins_on_early(struct mo_timer *t); /* callbacks of timers */
void mo_logins_on_look(struct mo_timer *t);

#endif
