#include "people/provider.h"

#include "base/clock.h"

#define META_MAX ((size_t)512 * 1024)

/* What one reading of the metadata found. */
struct meta {
    struct mo_arena arena;
    struct mo_oauth_server server;
    struct mo_oauth_urls urls; /* where the metadata may be */
};

struct mo_provider {
    struct mo_loop *loop;
    struct mo_oauth_ask ask;
    struct mo_later later;
    char *issuer;
    struct meta now, next; /* next: of the reading under way */
    size_t url;            /* of next.urls, the one being read */
    struct mo_jwk *keys[MO_PROVIDER_KEYS_MAX];
    size_t nkeys;
    uint64_t read_at;  /* the last reading that succeeded */
    uint64_t tried_at; /* the last one that began */
    bool is_read, is_reading, is_reading_keys, is_ending, is_closed;
    struct mo_list waiting;
};

static void free_keys(struct mo_provider *p)
{
    for (size_t i = 0; i < p->nkeys; i++)
        mo_jwk_free(p->keys[i]);
    p->nkeys = 0;
}

static void free_provider(struct mo_provider *p)
{
    free_keys(p);
    mo_oauth_ask_fini(&p->ask);
    mo_arena_fini(&p->now.arena);
    mo_arena_fini(&p->next.arena);
    mo_free(p->issuer);
    mo_free(p);
}

/* --- reading ------------------------------------------------------------- */

static void tell_all(struct mo_provider *p, const struct mo_err *why)
{
    struct mo_list all;

    mo_list_init(&all);
    mo_list_splice(&all, &p->waiting);
    mo_list_drain (w, &all, struct mo_provider_wait, node)
        w->done(w, why);
}

static void keep_meta(struct mo_provider *p)
{
    struct meta old = p->now;

    p->now = p->next;
    p->next = (struct meta){.arena = {.cap = META_MAX}};
    mo_arena_fini(&old.arena);
    p->read_at = mo_loop_now(p->loop);
    p->is_read = true;
}

/* Who is told may begin another reading, or close the provider. */
static void end_reading(struct mo_provider *p, const struct mo_err *why)
{
    p->is_reading = p->is_reading_keys = false;
    if (!why)
        keep_meta(p);
    p->is_ending = true;
    tell_all(p, why);
    p->is_ending = false;
    if (p->is_closed && !p->is_reading)
        free_provider(p);
}

static void fail_reading(struct mo_provider *p, const struct mo_err *why)
{
    struct mo_err e = *why;

    (void)mo_wrap(&e, "provider %s", p->issuer);
    end_reading(p, &e);
}

static int take_keys(struct mo_provider *p, struct mo_span json,
                     struct mo_err *e)
{
    struct mo_jwk *keys[MO_PROVIDER_KEYS_MAX];
    struct mo_json_doc doc;
    size_t n = 0;

    if (mo_json_parse(json, 0, &doc, NULL) < 0)
        return mo_fail(e, MO_EPROTO, "the key set is not JSON");
    mo_json_each_while (it, mo_json_get(doc.root, "keys"),
                        n < MO_PROVIDER_KEYS_MAX)
        if (mo_jwk_new(it.val, &keys[n], e) == 0)
            n++;
        else if (e->code != MO_EINVAL) /* others are for other purposes */
            break;
    if (n == 0)
        return mo_fail(e, MO_EPROTO,
                       "the key set has no key for RS256, ES256 or EdDSA");
    free_keys(p);
    for (size_t i = 0; i < n; i++)
        p->keys[i] = keys[i];
    p->nkeys = n;
    return 0;
}

static void on_keys(struct mo_provider *p)
{
    struct mo_err e;

    if (p->ask.status != 200)
        fail_reading(
            p, mo_error(MO_EUNAVAIL, "key set: HTTP status %d", p->ask.status));
    else if (take_keys(p, mo_buf_view(&p->ask.body), &e) < 0)
        fail_reading(p, &e);
    else
        end_reading(p, NULL);
}

static void ask_meta(struct mo_provider *p);

static int take_meta(struct mo_provider *p, struct mo_err *e)
{
    struct mo_oauth_server *s = &p->next.server;
    int rc = mo_oauth_server_parse(&p->next.arena, mo_buf_view(&p->ask.body),
                                   p->issuer, p->issuer, s, e);

    if (rc == 0 && !s->keys)
        rc = mo_fail(e, MO_EPROTO, "the metadata has no jwks_uri");
    if (rc < 0)
        return rc;
    p->is_reading_keys = true;
    return mo_oauth_ask(&p->ask, s->keys, NULL, mo_span(NULL, 0),
                        mo_span(NULL, 0), e);
}

static void on_meta(struct mo_provider *p)
{
    struct mo_err e;

    if (p->ask.status == 404 && p->url + 1 < p->next.urls.n) {
        p->url++;
        ask_meta(p);
    } else if (p->ask.status != 200) {
        fail_reading(p, mo_error(MO_EUNAVAIL, "metadata: HTTP status %d",
                                 p->ask.status));
    } else if (take_meta(p, &e) < 0) {
        fail_reading(p, &e);
    }
}

static void on_answer(struct mo_oauth_ask *q, const struct mo_err *why)
{
    struct mo_provider *p = mo_container_of(q, struct mo_provider, ask);

    if (p->is_closed)
        end_reading(p, mo_error(MO_ECANCELED, "closed"));
    else if (why)
        fail_reading(p, why);
    else if (p->is_reading_keys)
        on_keys(p);
    else
        on_meta(p);
}

/* A request that could not begin fails later, from the loop. */
static void on_later(struct mo_later *d)
{
    fail_reading(mo_container_of(d, struct mo_provider, later),
                 mo_error(MO_EUNAVAIL, "it cannot be asked now; try again in "
                                       "a few seconds"));
}

static void ask_meta(struct mo_provider *p)
{
    if (mo_oauth_ask(&p->ask, p->next.urls.v[p->url], NULL, mo_span(NULL, 0),
                     mo_span(NULL, 0), NULL) < 0)
        mo_loop_defer(p->loop, &p->later);
}

static void begin_reading(struct mo_provider *p)
{
    p->is_reading = true;
    p->tried_at = mo_loop_now(p->loop);
    p->url = 0;
    mo_arena_reset(&p->next.arena);
    p->next.urls.n = 0;
    if (mo_oauth_issuer_urls(&p->next.arena, p->issuer, &p->next.urls) < 0 ||
        p->next.urls.n == 0)
        mo_loop_defer(p->loop, &p->later);
    else
        ask_meta(p);
}

/* Everyone can begin a sign-in, so this must not flood a provider that does not
 * answer. */
void mo_provider_read(struct mo_provider *p, struct mo_provider_wait *w)
{
    uint64_t since = mo_loop_now(p->loop) - p->tried_at;

    mo_list_push(&p->waiting, &w->node);
    if (p->is_reading)
        return;
    if (p->is_read || !p->tried_at || since >= MO_PROVIDER_PAUSE_MS * MO_MS) {
        begin_reading(p);
    } else {
        p->is_reading = true;
        mo_loop_defer(p->loop, &p->later);
    }
}

void mo_provider_forget(struct mo_provider_wait *w)
{
    if (w->node.next)
        mo_list_del(&w->node);
}

const struct mo_oauth_server *mo_provider_server(const struct mo_provider *p)
{
    return p->is_read ? &p->now.server : NULL;
}

const char *mo_provider_issuer(const struct mo_provider *p)
{
    return p->issuer;
}

/* --- signatures ---------------------------------------------------------- */

/* 1: signed by one of the keys; 0: not; -1: there is no key for it. */
static int try_keys(const struct mo_provider *p, const struct mo_jwt *t)
{
    bool tried = false;

    for (size_t i = 0; i < p->nkeys; i++) {
        struct mo_jwk *k = p->keys[i];

        if (mo_jwk_alg(k) != t->alg ||
            (t->kid.p && !mo_span_eq(mo_jwk_id(k), t->kid)))
            continue;
        tried = true;
        if (mo_jwk_verify(k, t->signed_part, t->signature))
            return 1;
    }
    return tried ? 0 : -1;
}

int mo_provider_verify(struct mo_provider *p, const struct mo_jwt *t,
                       struct mo_err *e)
{
    uint64_t now = mo_loop_now(p->loop), age = now - p->read_at;
    bool may_read =
        !p->tried_at || now - p->tried_at >= MO_PROVIDER_PAUSE_MS * MO_MS;
    bool is_usable = p->is_read && age < MO_PROVIDER_STALE_MS * MO_MS;
    int found = is_usable ? try_keys(p, t) : -1;

    if (found < 0 && (may_read || p->is_reading))
        return mo_fail(e, MO_EUNAVAIL, "the provider's keys must be read");
    if (!is_usable)
        return mo_fail(e, MO_EPOLICY,
                       "the provider's keys cannot be read; try again later");
    if (age >= MO_PROVIDER_FRESH_MS * MO_MS && may_read && !p->is_reading)
        begin_reading(p);
    if (found == 1)
        return 0;
    return mo_fail(e, MO_EPOLICY, "the token's signature is wrong");
}

/* --- begin and end ------------------------------------------------------- */

int mo_provider_new(struct mo_loop *l, struct mo_httpc *http,
                    const char *issuer, struct mo_provider **out,
                    struct mo_err *e)
{
    struct mo_provider *p = mo_new(struct mo_provider);

    if (p)
        p->issuer = mo_strndup(issuer, strlen(issuer));
    if (!p || !p->issuer) {
        mo_free(p);
        return mo_fail(e, MO_ENOMEM, "out of memory");
    }
    p->loop = l;
    p->ask = (struct mo_oauth_ask){
        .http = http,
        .server = p->issuer, /* configured, so it may be at a private address */
        .local = true,
        .done = on_answer,
    };
    mo_oauth_ask_init(&p->ask);
    mo_arena_init(&p->now.arena, META_MAX);
    mo_arena_init(&p->next.arena, META_MAX);
    mo_later_init(&p->later, on_later);
    mo_list_init(&p->waiting);
    *out = p;
    return 0;
}

void mo_provider_close(struct mo_provider *p)
{
    p->is_closed = true;
    tell_all(p, mo_error(MO_ECANCELED, "the configuration was changed"));
    if (p->is_reading && mo_oauth_ask_cancel(&p->ask))
        return; /* on_answer() frees it */
    mo_later_cancel(&p->later);
    p->is_reading = false;
    if (!p->is_ending)
        free_provider(p);
}
