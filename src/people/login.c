/* login.c - the table of logins, and their renewal.
 *
 * Invariants
 *  1. g->phase is not IDLE while a renewal is under way; its steps find the
 *     login by its digest, so that it may be gone.
 *  2. A lease has a struct turn, which outlives the login until the store has
 *     called back. */
#include "people/login.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/rand.h"
#include "codec/sha256.h"

#define ROOM         "people"
#define RETRY_S      ((uint64_t)30) /* after a provider that did not answer */
#define TURN_MS      ((uint64_t)15000)
#define MISS_S       ((uint64_t)2) /* an unknown secret is not read again */
#define MISSES       256
#define SECRET_BYTES 30
#define EARLY_MS     ((uint64_t)10000) /* at most, for the store */

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
    struct mo_timer look, early;
    bool is_early; /* the store is being opened */
    uint64_t round;
    bool is_checking;
    char owner[MO_TOKEN_LEN(12) + 1]; /* of leases */
    struct miss misses[MISSES];
    struct mo_logins_ended own, *ended_now; /* &own, or that of all workers */
    unsigned seen;                          /* changes of ended_now */
    void (*ended)(void *ctx, const char *who);
    void *ctx;
};

static uint64_t now_s(void)
{
    return mo_wall_coarse_ms() / 1000;
}

static uint64_t identity_s(const struct mo_logins *l)
{
    return (uint64_t)mo_people_config(l->people)->people.renew_s;
}

static void wipe_text(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    mo_free(mo_take_ptr(text));
}

static void tell_all(struct mo_list *list)
{
    struct mo_list all;

    mo_list_init(&all);
    mo_list_splice(&all, list);
    mo_list_drain (w, &all, struct mo_provider_wait, node)
        w->done(w, NULL);
}

static struct login *by_digest(const struct mo_logins *l, const char *digest)
{
    return mo_map_get(&l->by_digest, mo_span_cstr(digest));
}

static void give_turn(struct login *g)
{
    struct turn *t = mo_take_ptr(&g->turn);

    if (!t)
        return;
    t->login = NULL;
    mo_lease_drop(t->lease);
    if (t->is_held) /* else on_held() follows */
        mo_free(t);
}

/* Of this process only. */
static void free_login(struct login *g)
{
    if (g->exchange)
        mo_exchange_cancel(g->exchange);
    give_turn(g);
    (void)mo_map_del(&g->logins->by_digest, mo_span_cstr(g->digest));
    mo_list_del(&g->node);
    tell_all(&g->waiting);
    tell_all(&g->saving);
    mo_free(g->provider);
    mo_free(g->subject);
    mo_free(g->claims);
    wipe_text(&g->refresh);
    mo_free(g);
}

/* Also what the person has open. */
static void close_login(struct login *g)
{
    struct mo_logins *l = g->logins;
    char who[MO_PERSON_MAX];

    memcpy(who, g->who.name, sizeof(who));
    free_login(g);
    if (l->ended)
        l->ended(l->ctx, who);
}

static void keep_ended(struct mo_logins *l, const char *digest, const char *who)
{
    bool was_seen = atomic_load(&l->ended_now->changes) == l->seen;

    mo_logins_ended_add(l->ended_now, digest, who, mo_wall_ms());
    if (was_seen && atomic_load(&l->ended_now->changes) == l->seen + 1)
        l->seen++; /* only this one */
}

static bool has_ended(const struct mo_logins *l, const char *digest,
                      const char *who, uint64_t began_ms)
{
    return mo_logins_ended_has(l->ended_now, digest, who, began_ms,
                               mo_wall_ms());
}

/* Ends what was signed out in another worker. */
static void heed_ended(struct mo_logins *l)
{
    unsigned now = atomic_load(&l->ended_now->changes);

    if (now == l->seen)
        return;
    l->seen = now;
    mo_list_each_safe (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);

        if (has_ended(l, g->digest, g->who.name, g->began_ms))
            close_login(g);
    }
}

/* In all processes. */
static void end_login(struct login *g)
{
    keep_ended(g->logins, g->digest, g->who.name);
    if (g->logins->rows)
        mo_login_rows_end(g->logins->rows, g->digest, g->who.name);
    close_login(g);
}

/* --- what a login knows -------------------------------------------------- */

static char *copy(const char *text)
{
    return text ? mo_strndup(text, strlen(text)) : NULL;
}

static void take(struct login *g, const struct mo_exchanged *got)
{
    g->who = got->who;
    wipe_text(&g->refresh);
    mo_free(g->claims);
    g->refresh = copy(got->refresh);
    g->claims = mo_strndup(got->claims.p, got->claims.n);
}

static bool judge_again(const struct mo_logins *l, struct login *g)
{
    const struct mo_config_provider *c = NULL;
    struct mo_person who = {.ends_s = g->who.ends_s};
    struct mo_json_doc doc;

    if (!g->claims || !g->provider ||
        !mo_people_provider(l->people, mo_span_cstr(g->provider), &c) ||
        mo_json_parse(mo_span_cstr(g->claims), 0, &doc, NULL) < 0 ||
        mo_person_of_claims(mo_people_config(l->people), c, doc.root, &who,
                            NULL) < 0 ||
        strcmp(who.name, g->who.name) != 0)
        return false;
    g->who = who;
    return true;
}

/* From the store; the role is that of the configuration now. False: none. */
static bool take_row(struct login *g, const struct mo_login_row *row)
{
    wipe_text(&g->refresh);
    mo_free(g->claims);
    g->refresh = copy(row->refresh);
    g->claims = copy(row->claims);
    g->who.ends_s = row->ends_s;
    g->is_saved = true;
    return judge_again(g->logins, g);
}

static void on_saved(void *ctx, const char *digest, const struct mo_err *why);

/* Writes it to the store. */
static int save(struct login *g)
{
    const struct mo_login_row row = {
        .name = g->who.name,
        .host = g->host,
        .provider = g->provider,
        .subject = g->subject,
        .claims = g->claims,
        .refresh = g->refresh,
        .began_s = g->began_s,
        .began_ms = g->began_ms,
        .ends_s = g->who.ends_s,
    };
    struct mo_logins *l = g->logins;
    struct mo_err e;
    int rc = MO_EUNAVAIL;

    if (!l->rows || !g->claims)
        return rc;
    rc = mo_login_rows_put(l->rows, g->digest, &row, on_saved, l, &e);
    g->is_saving = rc == 0;
    if (rc < 0)
        mo_log_err(mo_loop_log(l->loop), MO_WARN, ROOM, &e,
                   "a login is not in the store");
    return rc;
}

/* --- renewal ------------------------------------------------------------- */

static void end_renewal(struct login *g)
{
    g->phase = IDLE;
    give_turn(g);
    tell_all(&g->waiting);
}

static void fail_renewal(struct login *g)
{
    g->retry_s = now_s() + RETRY_S;
    end_renewal(g);
}

static void on_renewed(void *ctx, const struct mo_exchanged *got,
                       const struct mo_err *why)
{
    struct login *g = ctx;

    g->exchange = NULL;
    if (why && why->code == MO_EUNAVAIL) {
        fail_renewal(g);
    } else if (why || strcmp(got->who.name, g->who.name) != 0) {
        end_login(g); /* refused, or the name claim has changed */
    } else {
        take(g, got);
        g->phase = SAVE;
        if (save(g) < 0)
            end_renewal(g);
    }
}

static void on_saved(void *ctx, const char *digest, const struct mo_err *why)
{
    struct login *g = by_digest(ctx, digest);

    if (!g)
        return;
    g->is_saved = g->is_saved || !why;
    g->is_saving = false;
    tell_all(&g->saving);
    if (g->phase == SAVE)
        end_renewal(g);
}

static void exchange(struct login *g)
{
    const struct mo_exchange_opts o = {
        .people = g->logins->people,
        .provider = g->provider,
        .refresh = g->refresh,
        .subject = g->subject,
        .done = on_renewed,
        .ctx = g,
    };

    g->phase = EXCHANGE;
    if (mo_exchange_start(&o, &g->exchange, NULL) < 0)
        fail_renewal(g);
}

/* With the lease: another process may have been faster, or have ended it. */
static void on_row(void *ctx, const char *digest,
                   const struct mo_login_row *row, const struct mo_err *why)
{
    struct login *g = by_digest(ctx, digest);

    if (!g || g->phase != ROW)
        return;
    if (why) {
        fail_renewal(g);
    } else if (!row && g->is_saved) {
        close_login(g);
    } else if (row && row->ends_s > g->who.ends_s) {
        if (take_row(g, row))
            end_renewal(g);
        else
            close_login(g);
    } else {
        exchange(g);
    }
}

static void on_held(void *ctx, struct mo_lease *lease, uint64_t fence,
                    const struct mo_err *why)
{
    struct turn *t = ctx;
    struct login *g = t->login;

    (void)fence;
    (void)lease;
    if (why) { /* the lease is gone */
        if (g)
            g->turn = NULL;
        mo_free(t);
        if (g)
            fail_renewal(g);
        return;
    }
    t->is_held = true;
    if (!g) {
        mo_lease_drop(t->lease);
        mo_free(t);
        return;
    }
    g->phase = ROW;
    if (mo_login_rows_get(g->logins->rows, g->digest, on_row, g->logins, NULL) <
        0)
        fail_renewal(g);
}

static void on_lost(void *ctx, const struct mo_err *why)
{
    struct turn *t = ctx;

    (void)why; /* too late to stop: the provider was asked */
    if (t->login)
        t->login->turn = NULL;
    mo_free(t);
}

static int take_turn(struct login *g)
{
    static const struct mo_lease_cb cb = {on_held, on_lost};
    struct mo_logins *l = g->logins;
    char name[MO_STORE_ID_MAX];
    struct turn *t = mo_new(struct turn);

    if (!t)
        return MO_ENOMEM;
    t->login = g;
    (void)snprintf(name, sizeof(name), "login:%s", g->digest);
    if (mo_lease_take(mo_login_rows_store(l->rows), mo_span_cstr(name),
                      mo_span_cstr(l->owner), TURN_MS, &cb, t, &t->lease,
                      NULL) < 0) {
        mo_free(t);
        return MO_EUNAVAIL;
    }
    g->turn = t;
    return 0;
}

static void renew(struct login *g)
{
    if (g->phase != IDLE || !g->refresh || g->retry_s > now_s())
        return;
    g->phase = TURN;
    if (!g->logins->rows)
        exchange(g);
    else if (take_turn(g) < 0)
        fail_renewal(g);
}

/* --- the table ----------------------------------------------------------- */

static bool digest_of(struct mo_span secret, char digest[MO_SHA256_HEX + 1])
{
    if (!mo_span_starts(secret, MO_SPAN(MO_LOGIN_PREFIX)) ||
        secret.n != MO_LOGIN_SECRET)
        return false;
    mo_sha256_hex(secret, digest);
    return true;
}

/* Makes room for another login of this person. */
static void drop_oldest(struct mo_logins *l, const char *who)
{
    struct login *oldest = NULL;
    unsigned n = 0;

    mo_list_each (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);

        if (strcmp(g->who.name, who) != 0)
            continue;
        oldest = oldest ? oldest : g;
        n++;
    }
    if (n < MO_LOGINS_PERSON)
        return;
    keep_ended(l, oldest->digest, who);
    if (l->rows)
        mo_login_rows_end(l->rows, oldest->digest, oldest->who.name);
    free_login(oldest);
}

/* Makes room in memory: a login in the store can be read again. */
static void make_room(struct mo_logins *l)
{
    if (l->by_digest.len < MO_LOGINS_MAX)
        return;
    mo_list_each_safe (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);

        if (g->is_saved && g->phase == IDLE) {
            free_login(g);
            return;
        }
    }
}

static struct login *new_login(struct mo_logins *l, const char *digest,
                               struct mo_span host)
{
    struct login *g = mo_new(struct login);

    if (!g)
        return NULL;
    g->logins = l;
    g->began_ms = mo_wall_ms();
    g->began_s = g->began_ms / 1000;
    memcpy(g->digest, digest, sizeof(g->digest));
    (void)snprintf(g->host, sizeof(g->host), "%.*s", (int)host.n, host.p);
    mo_list_init(&g->node);
    mo_list_init(&g->waiting);
    mo_list_init(&g->saving);
    return g;
}

static int add_login(struct mo_logins *l, struct login *g)
{
    make_room(l);
    if (!g->provider || !g->subject || !g->claims ||
        mo_map_add(&l->by_digest, mo_span_cstr(g->digest), g) < 0) {
        free_login(g);
        return MO_EBUSY;
    }
    g->round = l->round;
    if (mo_list_empty(&l->all) && l->rows)
        mo_timer_start(l->loop, &l->look, MO_LOGIN_LOOK_MS);
    mo_list_push(&l->all, &g->node);
    return 0;
}

int mo_login_begin(struct mo_logins *l, const struct mo_login_new *n,
                   char secret[MO_LOGIN_SECRET + 1], struct mo_err *e)
{
    char digest[MO_SHA256_HEX + 1];
    struct login *g;

    _Static_assert(sizeof(MO_LOGIN_PREFIX) - 1 + MO_TOKEN_LEN(SECRET_BYTES) ==
                       MO_LOGIN_SECRET,
                   "secret");
    if (n->host.n >= MO_LOGIN_HOST_MAX)
        return mo_fail(e, MO_EINVAL, "the host's name is too long");
    drop_oldest(l, n->got->who.name);
    memcpy(secret, MO_LOGIN_PREFIX, sizeof(MO_LOGIN_PREFIX));
    mo_random_token(secret + sizeof(MO_LOGIN_PREFIX) - 1, SECRET_BYTES);
    mo_sha256_hex(mo_span_cstr(secret), digest);
    g = new_login(l, digest, n->host);
    if (!g)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    take(g, n->got);
    g->provider = copy(n->provider);
    g->subject = copy(n->got->subject);
    if (add_login(l, g) < 0)
        return mo_fail(e, MO_EBUSY, "too many people are signed in");
    (void)save(g);
    return 0;
}

bool mo_login_wait_saved(struct mo_logins *l, struct mo_provider_wait *w)
{
    struct login *g;

    if (mo_list_empty(&l->all))
        return false;
    g = mo_container_of(l->all.prev, struct login, node);
    if (g->is_saving)
        mo_list_push(&g->saving, &w->node);
    return g->is_saving;
}

/* --- logins of the store ------------------------------------------------- */

static struct miss *miss_of(struct mo_logins *l, const char *digest)
{
    unsigned at =
        (unsigned)(mo_hex_digit(digest[0]) * 16 + mo_hex_digit(digest[1]));

    return &l->misses[at % MISSES];
}

static void keep_miss(struct mo_logins *l, const char *digest)
{
    struct miss *m = miss_of(l, digest);

    memcpy(m->digest, digest, sizeof(m->digest));
    m->until_s = now_s() + MISS_S;
}

/* True if the row makes a login of this process. */
static bool adopt(struct mo_logins *l, const char *digest,
                  const struct mo_login_row *row)
{
    struct login *g;

    if (now_s() >= row->began_s + MO_LOGIN_S || by_digest(l, digest) ||
        has_ended(l, digest, row->name, row->began_ms) ||
        strlen(row->name) >= MO_PERSON_MAX ||
        strlen(row->host) >= MO_LOGIN_HOST_MAX)
        return false;
    g = new_login(l, digest, mo_span_cstr(row->host));
    if (!g)
        return false;
    (void)snprintf(g->who.name, sizeof(g->who.name), "%s", row->name);
    g->began_s = row->began_s;
    g->began_ms = row->began_ms;
    g->provider = copy(row->provider);
    g->subject = copy(row->subject);
    if (take_row(g, row))
        return add_login(l, g) == 0;
    free_login(g);
    return false;
}

static void end_person(struct mo_logins *l, const char *who)
{
    mo_list_each_safe (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);

        if (strcmp(g->who.name, who) == 0)
            free_login(g);
    }
    if (l->ended)
        l->ended(l->ctx, who);
}

static void on_loaded(void *ctx, const char *digest,
                      const struct mo_login_row *row, const struct mo_err *why)
{
    struct mo_logins *l = ctx;
    struct load *d = mo_map_del(&l->loads, mo_span_cstr(digest));

    if (!d)
        return;
    if (row && d->is_ended) {
        keep_ended(l, "", row->name);
        mo_login_rows_end(l->rows, digest, row->name);
        mo_login_rows_end_person(l->rows, row->name);
        end_person(l, row->name);
    } else if ((!row && !why) || (row && !adopt(l, digest, row))) {
        keep_miss(l, digest);
    }
    tell_all(&d->waiting);
    mo_free(d);
}

/* False: that cannot be; the load is gone. */
static bool ask_store(struct mo_logins *l, struct load *d)
{
    if (!l->rows) /* end_early() does it */
        return true;
    d->is_asked = true;
    if (mo_login_rows_get(l->rows, d->digest, on_loaded, l, NULL) == 0)
        return true;
    (void)mo_map_del(&l->loads, mo_span_cstr(d->digest));
    tell_all(&d->waiting);
    mo_free(d);
    return false;
}

/* NULL: it is not read, because it cannot be there. */
static struct load *start_load(struct mo_logins *l, const char *digest)
{
    struct load *d = mo_map_get(&l->loads, mo_span_cstr(digest));
    const struct miss *m = miss_of(l, digest);

    if (d)
        return d;
    if ((!l->rows && !l->is_early) ||
        (m->until_s > now_s() && strcmp(m->digest, digest) == 0))
        return NULL;
    d = mo_new(struct load);
    if (!d)
        return NULL;
    memcpy(d->digest, digest, sizeof(d->digest));
    mo_list_init(&d->waiting);
    if (mo_map_add(&l->loads, mo_span_cstr(d->digest), d) < 0) {
        mo_free(d);
        return NULL;
    }
    return ask_store(l, d) ? d : NULL;
}

static void drop_loads(struct mo_logins *l)
{
    mo_map_each (en, &l->loads) {
        struct load *d = en->value;

        tell_all(&d->waiting);
        mo_free(d);
    }
    mo_map_clear(&l->loads);
}

static struct load *not_asked(const struct mo_logins *l)
{
    mo_map_each (en, &l->loads) {
        struct load *d = en->value;

        if (!d->is_asked)
            return d;
    }
    return NULL;
}

/* The store is there, or will not come: those who wait go on. */
static void end_early(struct mo_logins *l)
{
    struct load *d;

    l->is_early = false;
    mo_timer_stop(l->loop, &l->early);
    if (!l->rows) {
        drop_loads(l);
        return;
    }
    for (d = not_asked(l); d; d = not_asked(l))
        (void)ask_store(l, d);
}

static void on_early(struct mo_timer *t)
{
    end_early(mo_container_of(t, struct mo_logins, early));
}

/* A login has ended elsewhere: is it one of these? One after the other. */
static void check_next(struct mo_logins *l);

static void on_checked(void *ctx, const char *digest,
                       const struct mo_login_row *row, const struct mo_err *why)
{
    struct mo_logins *l = ctx;
    struct login *g = by_digest(l, digest);

    l->is_checking = false;
    if (g && !why && !row && g->is_saved && !g->is_saving)
        close_login(g);
    check_next(l);
}

static void check_next(struct mo_logins *l)
{
    if (l->is_checking)
        return;
    mo_list_each (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);

        if (g->round == l->round || !g->is_saved)
            continue;
        g->round = l->round;
        l->is_checking =
            mo_login_rows_get(l->rows, g->digest, on_checked, l, NULL) == 0;
        return;
    }
}

static void on_changed(void *ctx)
{
    struct mo_logins *l = ctx;

    l->round++;
    check_next(l);
}

static void on_look(struct mo_timer *t)
{
    struct mo_logins *l = mo_container_of(t, struct mo_logins, look);

    if (!l->rows || mo_list_empty(&l->all))
        return;
    heed_ended(l);
    mo_login_rows_look(l->rows, on_changed, l);
    mo_timer_start(l->loop, &l->look, MO_LOGIN_LOOK_MS);
}

/* --- asked by the gate --------------------------------------------------- */

int mo_login_check(struct mo_logins *l, struct mo_span secret,
                   struct mo_span host, struct mo_person *out)
{
    char digest[MO_SHA256_HEX + 1];
    uint64_t now = now_s();
    struct login *g;

    if (!digest_of(secret, digest))
        return MO_ENOTFOUND;
    heed_ended(l);
    g = by_digest(l, digest);
    if (!g)
        return start_load(l, digest) ? MO_EUNAVAIL : MO_ENOTFOUND;
    if (!mo_span_is(host, g->host))
        return MO_ENOTFOUND;
    if (now >= g->began_s + MO_LOGIN_S ||
        (now >= g->who.ends_s && !g->refresh)) {
        end_login(g);
        return MO_ENOTFOUND;
    }
    if (now + identity_s(l) / 2 >= g->who.ends_s) {
        renew(g);
        g = by_digest(l, digest); /* it may have ended */
    }
    if (!g)
        return MO_ENOTFOUND;
    if (now >= g->who.ends_s)
        return g->phase != IDLE ? MO_EUNAVAIL : MO_ENOTFOUND;
    *out = g->who;
    return 0;
}

void mo_login_wait(struct mo_logins *l, struct mo_span secret,
                   struct mo_provider_wait *w)
{
    char digest[MO_SHA256_HEX + 1] = "";
    struct login *g = digest_of(secret, digest) ? by_digest(l, digest) : NULL;
    struct load *d = g ? NULL : mo_map_get(&l->loads, mo_span_cstr(digest));

    MO_BUG_ON(g ? g->phase == IDLE : !d);
    mo_list_push(g ? &g->waiting : &d->waiting, &w->node);
}

void mo_login_end(struct mo_logins *l, struct mo_span secret, bool everywhere,
                  char who[MO_PERSON_MAX])
{
    char digest[MO_SHA256_HEX + 1];
    struct login *g;
    struct load *d;

    who[0] = '\0';
    if (!digest_of(secret, digest))
        return;
    g = by_digest(l, digest);
    d = g ? NULL : start_load(l, digest);
    if (d)
        d->is_ended = true;
    if (!g)
        return;
    memcpy(who, g->who.name, MO_PERSON_MAX);
    end_login(g);
    if (!everywhere)
        return;
    keep_ended(l, "", who);
    if (l->rows)
        mo_login_rows_end_person(l->rows, who);
    mo_list_each_safe (it, &l->all) {
        g = mo_container_of(it, struct login, node);
        if (strcmp(g->who.name, who) == 0)
            free_login(g);
    }
}

void mo_logins_reload(struct mo_logins *l)
{
    mo_list_each_safe (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);

        if (!judge_again(l, g))
            end_login(g);
    }
}

bool mo_logins_member(const struct mo_logins *l, const char *name,
                      struct mo_span group)
{
    uint64_t now = now_s();

    mo_list_each (it, &l->all) {
        const struct login *g = mo_container_of(it, struct login, node);

        if (g->who.ends_s > now && mo_person_is_member(&g->who, name, group))
            return true;
    }
    return false;
}

void mo_logins_groups(const struct mo_logins *l, const char *name,
                      struct mo_buf *out)
{
    uint64_t now = now_s();

    mo_list_each (it, &l->all) {
        const struct login *g = mo_container_of(it, struct login, node);

        if (g->who.ends_s > now)
            mo_person_put_groups(&g->who, name, out);
    }
}

void mo_logins_watch(struct mo_logins *l,
                     void (*ended)(void *ctx, const char *who), void *ctx)
{
    l->ended = ended;
    l->ctx = ctx;
}

/* --- begin and end ------------------------------------------------------- */

int mo_logins_use(struct mo_logins *l, struct mo_store *store, struct mo_err *e)
{
    int rc = 0;

    if (!l->rows && store)
        rc = mo_login_rows_open(l->loop, store, mo_people_config(l->people),
                                &l->rows, e);
    if (l->is_early)
        end_early(l);
    return rc;
}

void mo_logins_expect(struct mo_logins *l)
{
    l->is_early = !l->rows;
    mo_timer_start(l->loop, &l->early, EARLY_MS);
}

int mo_logins_new(struct mo_people *people, struct mo_loop *loop,
                  struct mo_logins **out, struct mo_err *e)
{
    struct mo_logins *l = mo_new(struct mo_logins);

    if (!l)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (mo_logins_ended_init(&l->own, e) < 0) {
        mo_free(l);
        return e->code;
    }
    l->ended_now = &l->own;
    l->people = people;
    l->loop = loop;
    mo_map_init(&l->by_digest, MO_LOGINS_MAX);
    mo_map_init(&l->loads, MO_LOGIN_LOADS);
    mo_list_init(&l->all);
    mo_timer_init(&l->look, on_look);
    mo_timer_init(&l->early, on_early);
    mo_random_token(l->owner, 12);
    *out = l;
    return 0;
}

void mo_logins_share(struct mo_logins *l, struct mo_logins_ended *ended)
{
    l->ended_now = ended;
    l->seen = atomic_load(&ended->changes);
}

void mo_logins_free(struct mo_logins *l)
{
    if (!l)
        return;
    l->ended = NULL;
    mo_timer_stop(l->loop, &l->look);
    mo_timer_stop(l->loop, &l->early);
    l->is_early = false;
    mo_login_rows_close(mo_take_ptr(&l->rows));
    mo_list_each_safe (it, &l->all)
        free_login(mo_container_of(it, struct login, node));
    drop_loads(l);
    mo_map_fini(&l->by_digest);
    mo_map_fini(&l->loads);
    mo_free(l);
}
