/* login.c - the table of logins, and what the gate asks about it. */
#include "people/login_priv.h"

#define SECRET_BYTES 30
#define EARLY_MS     ((uint64_t)10000) /* at most, for the store */

static uint64_t identity_s(const struct mo_logins *l)
{
    return (uint64_t)mo_people_config(l->people)->people.renew_s;
}

static void tell_all(struct mo_logins *l)
{
    struct mo_list all;

    mo_list_init(&all);
    mo_list_splice(&all, &l->told);
    mo_list_drain (w, &all, struct mo_provider_wait, node)
        w->done(w, NULL);
}

static void on_tell(struct mo_later *d)
{
    tell_all(mo_container_of(d, struct mo_logins, tell));
}

void mo_login_tell(struct mo_logins *l, struct mo_list *list)
{
    if (mo_list_empty(list))
        return;
    mo_list_splice(&l->told, list);
    mo_loop_defer(l->loop, &l->tell);
}

struct login *mo_login_find(const struct mo_logins *l, const char *digest)
{
    return mo_map_get(&l->by_digest, mo_span_cstr(digest));
}

/* Of this process only. */
void mo_login_free(struct login *g)
{
    if (g->exchange)
        mo_exchange_cancel(g->exchange);
    mo_login_give_turn(g);
    (void)mo_map_del(&g->logins->by_digest, mo_span_cstr(g->digest));
    mo_list_del(&g->node);
    mo_login_tell(g->logins, &g->waiting);
    mo_login_tell(g->logins, &g->saving);
    mo_free(g->provider);
    mo_free(g->subject);
    mo_free(g->claims);
    mo_login_wipe(&g->refresh);
    mo_free(g);
}

/* Also what the person has open. */
void mo_login_close(struct login *g)
{
    struct mo_logins *l = g->logins;
    char who[MO_PERSON_MAX];

    memcpy(who, g->who.name, sizeof(who));
    mo_login_free(g);
    if (l->ended)
        l->ended(l->ctx, who);
}

void mo_login_note_role(const struct login *g, enum mo_role was)
{
    const struct mo_logins *l = g->logins;

    if (g->who.role != was && l->ended)
        l->ended(l->ctx, g->who.name);
}

void mo_login_keep_ended(struct mo_logins *l, const char *digest,
                         const char *who)
{
    bool was_seen = atomic_load(&l->ended_now->changes) == l->seen;

    mo_logins_ended_add(l->ended_now, digest, who, mo_wall_ms());
    if (was_seen && atomic_load(&l->ended_now->changes) == l->seen + 1)
        l->seen++; /* only this one */
}

bool mo_login_has_ended(const struct mo_logins *l, const char *digest,
                        const char *who, uint64_t began_ms)
{
    return mo_logins_ended_has(l->ended_now, digest, who, began_ms,
                               mo_wall_ms());
}

/* Ends what was signed out in another worker. */
void mo_login_heed_ended(struct mo_logins *l)
{
    unsigned now = atomic_load(&l->ended_now->changes);

    if (now == l->seen)
        return;
    l->seen = now;
    mo_list_each_safe (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);

        if (mo_login_has_ended(l, g->digest, g->who.name, g->began_ms))
            mo_login_close(g);
    }
}

/* In all processes. */
void mo_login_end_everywhere(struct login *g)
{
    mo_login_keep_ended(g->logins, g->digest, g->who.name);
    if (g->logins->rows)
        mo_login_rows_end(g->logins->rows, g->digest, g->who.name);
    mo_login_close(g);
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
    mo_login_keep_ended(l, oldest->digest, who);
    if (l->rows)
        mo_login_rows_end(l->rows, oldest->digest, oldest->who.name);
    mo_login_free(oldest);
}

/* Makes room in memory: a login in the store can be read again. */
static void make_room(struct mo_logins *l)
{
    if (l->by_digest.len < MO_LOGINS_MAX)
        return;
    mo_list_each_safe (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);

        if (g->is_saved && g->phase == IDLE) {
            mo_login_free(g);
            return;
        }
    }
}

struct login *mo_login_make(struct mo_logins *l, const char *digest,
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

int mo_login_add(struct mo_logins *l, struct login *g)
{
    make_room(l);
    if (!g->provider || !g->subject || !g->claims ||
        mo_map_add(&l->by_digest, mo_span_cstr(g->digest), g) < 0) {
        mo_login_free(g);
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
    g = mo_login_make(l, digest, n->host);
    if (!g)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    mo_login_take(g, n->got);
    g->provider = mo_login_copy(n->provider);
    g->subject = mo_login_copy(n->got->subject);
    if (mo_login_add(l, g) < 0)
        return mo_fail(e, MO_EBUSY, "too many people are signed in");
    (void)mo_login_save(g);
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

/* --- asked by the gate --------------------------------------------------- */

int mo_login_check(struct mo_logins *l, struct mo_span secret,
                   struct mo_span host, struct mo_person *out)
{
    char digest[MO_SHA256_HEX + 1];
    uint64_t now = mo_login_now_s();
    struct login *g;

    if (!digest_of(secret, digest))
        return MO_ENOTFOUND;
    mo_login_heed_ended(l);
    g = mo_login_find(l, digest);
    if (!g)
        return mo_login_load(l, digest) ? MO_EUNAVAIL : MO_ENOTFOUND;
    if (!mo_span_is(host, g->host))
        return MO_ENOTFOUND;
    if (now >= g->began_s + MO_LOGIN_S ||
        (now >= g->who.ends_s && !g->refresh)) {
        mo_login_end_everywhere(g);
        return MO_ENOTFOUND;
    }
    if (now + identity_s(l) / 2 >= g->who.ends_s) {
        mo_login_renew(g);
        g = mo_login_find(l, digest); /* it may have ended */
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
    struct login *g =
        digest_of(secret, digest) ? mo_login_find(l, digest) : NULL;
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
    g = mo_login_find(l, digest);
    d = g ? NULL : mo_login_load(l, digest);
    if (d)
        d->is_ended = true;
    if (!g)
        return;
    memcpy(who, g->who.name, MO_PERSON_MAX);
    mo_login_end_everywhere(g);
    if (!everywhere)
        return;
    mo_login_keep_ended(l, "", who);
    if (l->rows)
        mo_login_rows_end_person(l->rows, who);
    mo_list_each_safe (it, &l->all) {
        g = mo_container_of(it, struct login, node);
        if (strcmp(g->who.name, who) == 0)
            mo_login_free(g);
    }
}

void mo_logins_reload(struct mo_logins *l)
{
    mo_list_each_safe (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);
        enum mo_role was = g->who.role;

        if (!mo_login_judge(l, g))
            mo_login_end_everywhere(g);
        else
            mo_login_note_role(g, was);
    }
}

bool mo_logins_member(const struct mo_logins *l, const char *name,
                      struct mo_span group)
{
    uint64_t now = mo_login_now_s();

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
    uint64_t now = mo_login_now_s();

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
        mo_logins_end_early(l);
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
    mo_list_init(&l->told);
    mo_later_init(&l->tell, on_tell);
    mo_timer_init(&l->look, mo_logins_on_look);
    mo_timer_init(&l->early, mo_logins_on_early);
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
        mo_login_free(mo_container_of(it, struct login, node));
    mo_logins_drop_loads(l);
    mo_later_cancel(&l->tell);
    tell_all(l);
    mo_map_fini(&l->by_digest);
    mo_map_fini(&l->loads);
    mo_free(l);
}
