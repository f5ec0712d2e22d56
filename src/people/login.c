#include "people/login.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/rand.h"
#include "codec/sha256.h"

#define HOST_MAX     280
#define RENEW_S      ((uint64_t)1800) /* of an identity's hour */
#define RETRY_S      ((uint64_t)30)   /* after a provider that did not answer */
#define SECRET_BYTES 30

struct login {
    struct mo_logins *logins;
    struct mo_list node;            /* of all logins, oldest first */
    char digest[MO_SHA256_HEX + 1]; /* of the secret */
    char host[HOST_MAX];
    struct mo_person who;
    char *provider, *subject, *refresh, *claims;
    uint64_t began_s, retry_s;
    struct mo_exchange *renewal; /* NULL: none */
    struct mo_list waiting;
};

struct mo_logins {
    struct mo_people *people;
    struct mo_map by_digest;
    struct mo_list all;
    void (*ended)(void *ctx, const char *who);
    void *ctx;
};

static uint64_t now_s(void)
{
    return mo_wall_coarse_ms() / 1000;
}

static void wipe_text(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    mo_free(mo_take_ptr(text));
}

static void tell_waiting(struct login *g)
{
    struct mo_list all;

    mo_list_init(&all);
    mo_list_splice(&all, &g->waiting);
    mo_list_drain (w, &all, struct mo_provider_wait, node)
        w->done(w, NULL);
}

static void free_login(struct login *g)
{
    if (g->renewal)
        mo_exchange_cancel(g->renewal);
    (void)mo_map_del(&g->logins->by_digest, mo_span_cstr(g->digest));
    mo_list_del(&g->node);
    tell_waiting(g);
    mo_free(g->provider);
    mo_free(g->subject);
    mo_free(g->claims);
    wipe_text(&g->refresh);
    mo_free(g);
}

static void end_login(struct login *g)
{
    struct mo_logins *l = g->logins;
    char who[MO_PERSON_MAX];

    memcpy(who, g->who.name, sizeof(who));
    free_login(g);
    if (l->ended)
        l->ended(l->ctx, who);
}

/* --- renewal ------------------------------------------------------------- */

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

static void on_renewed(void *ctx, const struct mo_exchanged *got,
                       const struct mo_err *why)
{
    struct login *g = ctx;

    g->renewal = NULL;
    if (why && why->code != MO_EUNAVAIL) {
        end_login(g);
        return;
    }
    if (why) {
        g->retry_s = now_s() + RETRY_S;
    } else if (strcmp(got->who.name, g->who.name) != 0) {
        end_login(g); /* the name claim has changed */
        return;
    } else {
        take(g, got);
    }
    tell_waiting(g);
}

static void renew(struct login *g)
{
    const struct mo_exchange_opts o = {
        .people = g->logins->people,
        .provider = g->provider,
        .refresh = g->refresh,
        .subject = g->subject,
        .done = on_renewed,
        .ctx = g,
    };

    if (g->renewal || !g->refresh || g->retry_s > now_s())
        return;
    if (mo_exchange_start(&o, &g->renewal, NULL) < 0)
        g->retry_s = now_s() + RETRY_S;
}

/* --- the table ----------------------------------------------------------- */

static struct login *find(const struct mo_logins *l, struct mo_span secret)
{
    char digest[MO_SHA256_HEX + 1];

    if (!mo_span_starts(secret, MO_SPAN(MO_LOGIN_PREFIX)) ||
        secret.n > MO_LOGIN_SECRET)
        return NULL;
    mo_sha256_hex(secret, digest);
    return mo_map_get(&l->by_digest, mo_span_cstr(digest));
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
    if (n >= MO_LOGINS_PERSON)
        free_login(oldest);
}

static struct login *new_login(const struct mo_login_new *n)
{
    struct login *g = mo_new(struct login);

    if (!g)
        return NULL;
    take(g, n->got);
    g->began_s = now_s();
    g->provider = copy(n->provider);
    g->subject = copy(n->got->subject);
    (void)snprintf(g->host, sizeof(g->host), "%.*s", (int)n->host.n, n->host.p);
    mo_list_init(&g->node);
    mo_list_init(&g->waiting);
    return g;
}

int mo_login_begin(struct mo_logins *l, const struct mo_login_new *n,
                   char secret[MO_LOGIN_SECRET + 1], struct mo_err *e)
{
    struct login *g;

    _Static_assert(sizeof(MO_LOGIN_PREFIX) - 1 + MO_TOKEN_LEN(SECRET_BYTES) ==
                       MO_LOGIN_SECRET,
                   "secret");
    if (n->host.n >= HOST_MAX)
        return mo_fail(e, MO_EINVAL, "the host's name is too long");
    drop_oldest(l, n->got->who.name);
    memcpy(secret, MO_LOGIN_PREFIX, sizeof(MO_LOGIN_PREFIX));
    mo_random_token(secret + sizeof(MO_LOGIN_PREFIX) - 1, SECRET_BYTES);
    g = new_login(n);
    if (!g)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    g->logins = l;
    mo_sha256_hex(mo_span_cstr(secret), g->digest);
    if (!g->provider || !g->subject || !g->claims ||
        mo_map_add(&l->by_digest, mo_span_cstr(g->digest), g) < 0) {
        free_login(g);
        return mo_fail(e, MO_EBUSY, "too many people are signed in");
    }
    mo_list_push(&l->all, &g->node);
    return 0;
}

int mo_login_check(struct mo_logins *l, struct mo_span secret,
                   struct mo_span host, struct mo_person *out)
{
    struct login *g = find(l, secret);
    uint64_t now = now_s();

    if (!g || !mo_span_is(host, g->host))
        return MO_ENOTFOUND;
    if (now >= g->began_s + MO_LOGIN_S ||
        (now >= g->who.ends_s && !g->refresh)) {
        end_login(g);
        return MO_ENOTFOUND;
    }
    if (now + RENEW_S >= g->who.ends_s)
        renew(g);
    if (now >= g->who.ends_s)
        return g->renewal ? MO_EUNAVAIL : MO_ENOTFOUND;
    *out = g->who;
    return 0;
}

void mo_login_wait(struct mo_logins *l, struct mo_span secret,
                   struct mo_provider_wait *w)
{
    struct login *g = find(l, secret);

    MO_BUG_ON(!g || !g->renewal);
    mo_list_push(&g->waiting, &w->node);
}

void mo_login_end(struct mo_logins *l, struct mo_span secret, bool everywhere,
                  char who[MO_PERSON_MAX])
{
    struct login *g = find(l, secret);

    who[0] = '\0';
    if (!g)
        return;
    memcpy(who, g->who.name, MO_PERSON_MAX);
    end_login(g);
    if (!everywhere)
        return;
    mo_list_each_safe (it, &l->all) {
        g = mo_container_of(it, struct login, node);
        if (strcmp(g->who.name, who) == 0)
            free_login(g);
    }
}

static bool judge_again(const struct mo_logins *l, struct login *g)
{
    const struct mo_config_provider *c = NULL;
    struct mo_person who = {.ends_s = g->who.ends_s};
    struct mo_json_doc doc;

    if (!g->claims ||
        !mo_people_provider(l->people, mo_span_cstr(g->provider), &c) ||
        mo_json_parse(mo_span_cstr(g->claims), 0, &doc, NULL) < 0 ||
        mo_person_of_claims(mo_people_config(l->people), c, doc.root, &who,
                            NULL) < 0 ||
        strcmp(who.name, g->who.name) != 0)
        return false;
    g->who = who;
    return true;
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

void mo_logins_watch(struct mo_logins *l,
                     void (*ended)(void *ctx, const char *who), void *ctx)
{
    l->ended = ended;
    l->ctx = ctx;
}

int mo_logins_new(struct mo_people *people, struct mo_logins **out,
                  struct mo_err *e)
{
    struct mo_logins *l = mo_new(struct mo_logins);

    if (!l)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    l->people = people;
    mo_map_init(&l->by_digest, MO_LOGINS_MAX);
    mo_list_init(&l->all);
    *out = l;
    return 0;
}

void mo_logins_free(struct mo_logins *l)
{
    if (!l)
        return;
    l->ended = NULL;
    mo_list_each_safe (it, &l->all)
        free_login(mo_container_of(it, struct login, node));
    mo_map_fini(&l->by_digest);
    mo_free(l);
}
