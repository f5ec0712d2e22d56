/* login_renew.c - what a login knows of its person, and its renewal. */
#include "people/login_priv.h"

#define ROOM    "people"
#define RETRY_S ((uint64_t)30) /* after a provider that did not answer */
#define TURN_MS ((uint64_t)15000)

void mo_login_take(struct login *g, const struct mo_exchanged *got)
{
    g->who = got->who;
    mo_login_wipe(&g->refresh);
    mo_free(g->claims);
    g->refresh = mo_login_copy(got->refresh);
    g->claims = mo_strndup(got->claims.p, got->claims.n);
}

bool mo_login_judge(const struct mo_logins *l, struct login *g)
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
bool mo_login_take_row(struct login *g, const struct mo_login_row *row)
{
    mo_login_wipe(&g->refresh);
    mo_free(g->claims);
    g->refresh = mo_login_copy(row->refresh);
    g->claims = mo_login_copy(row->claims);
    g->who.ends_s = row->ends_s;
    g->is_saved = true;
    return mo_login_judge(g->logins, g);
}

static void on_saved(void *ctx, const char *digest, const struct mo_err *why);

/* Writes it to the store. */
int mo_login_save(struct login *g)
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

void mo_login_give_turn(struct login *g)
{
    struct turn *t = mo_take_ptr(&g->turn);

    if (!t)
        return;
    t->login = NULL;
    mo_lease_drop(t->lease);
    if (t->is_held) /* else on_held() follows */
        mo_free(t);
}

static void end_renewal(struct login *g)
{
    g->phase = IDLE;
    mo_login_give_turn(g);
    mo_login_tell(g->logins, &g->waiting);
}

static void fail_renewal(struct login *g)
{
    g->retry_s = mo_login_now_s() + RETRY_S;
    end_renewal(g);
}

static void on_renewed(void *ctx, const struct mo_exchanged *got,
                       const struct mo_err *why)
{
    struct login *g = ctx;
    enum mo_role was = g->who.role;

    g->exchange = NULL;
    if (why && why->code == MO_EUNAVAIL) {
        fail_renewal(g);
    } else if (why || strcmp(got->who.name, g->who.name) != 0) {
        mo_login_end_everywhere(g); /* refused, or the name claim has changed */
    } else {
        mo_login_take(g, got);
        mo_login_note_role(g, was);
        g->phase = SAVE;
        if (mo_login_save(g) < 0)
            end_renewal(g);
    }
}

static void on_saved(void *ctx, const char *digest, const struct mo_err *why)
{
    struct login *g = mo_login_find(ctx, digest);

    if (!g)
        return;
    g->is_saved = g->is_saved || !why;
    g->is_saving = false;
    mo_login_tell(g->logins, &g->saving);
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
    struct login *g = mo_login_find(ctx, digest);
    enum mo_role was = g ? g->who.role : MO_ROLE_NONE;

    if (!g || g->phase != ROW)
        return;
    if (why) {
        fail_renewal(g);
    } else if (!row && g->is_saved) {
        mo_login_close(g);
    } else if (row && row->ends_s > g->who.ends_s) {
        if (mo_login_take_row(g, row)) {
            mo_login_note_role(g, was);
            end_renewal(g);
        } else {
            mo_login_close(g);
        }
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

void mo_login_renew(struct login *g)
{
    if (g->phase != IDLE || !g->refresh || g->retry_s > mo_login_now_s())
        return;
    g->phase = TURN;
    if (!g->logins->rows)
        exchange(g);
    else if (take_turn(g) < 0)
        fail_renewal(g);
}
