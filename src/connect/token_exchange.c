/* token_exchange.c - see token_exchange.h.
 *
 * Invariants
 *  1. One request at a time for each pair; `waiters` wait for it, and later()
 *     ends those in `ready` with `why` (code 0: try again).
 *  2. A pair is freed when no link uses it and no request is running. */
#include "connect/token_exchange.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/http/url.h"
#include "mcp/oauth/oauth_ask.h"
#include "mcp/oauth/oauth_req.h"
#include "secrets/resolve.h"

#define KEY_MAX   ((size_t)1024)
#define TEXT_MAX  ((size_t)32 * 1024)
#define TOKEN_MAX ((size_t)8192)
#define ARENA_MAX ((size_t)128 * 1024)
#define TYPE      "urn:ietf:params:oauth:token-type:access_token"
#define GRANT     "urn:ietf:params:oauth:grant-type:token-exchange"

struct pair {
    struct mo_auth auth;
    struct mo_token_exchange *all;
    const struct mo_config *cfg;
    const struct mo_config_mcp *server;
    struct mo_buf key, person, url, header;
    unsigned links;
    uint64_t serial, expires_ms; /* wall clock; 0: not known */
    uint64_t asked_ns;           /* the last exchange began; 0: never */
    bool running;
    struct mo_oauth_ask q;
    struct mo_list waiters, ready;
    struct mo_err why;
    struct mo_later later;
};

struct mo_token_exchange {
    struct mo_loop *loop;
    struct mo_map subjects; /* person -> struct mo_buf */
    struct mo_map pairs;    /* server, NUL, person -> struct pair */
    bool closing;
    struct mo_later later;
    struct mo_gone gone;
};

/* --- subjects ------------------------------------------------------------- */

/* Tokens of our own are nobody else's business. */
static bool is_signed(struct mo_span token)
{
    struct mo_span rest = token;

    return token.n && token.n < TOKEN_MAX &&
           mo_span_starts(token, MO_SPAN("eyJ")) &&
           mo_span_between(token, '!', '~') && mo_span_cut(&rest, '.').n &&
           mo_span_cut(&rest, '.').n && rest.n && mo_span_find(rest, '.') < 0;
}

static void subject_free(struct mo_buf *b)
{
    if (b)
        mo_buf_wipe(b);
    mo_free(b);
}

void mo_token_exchange_subject(struct mo_token_exchange *t, const char *person,
                               struct mo_span token)
{
    struct mo_buf *b = mo_map_get(&t->subjects, mo_span_cstr(person));

    if (!is_signed(token) || (b && mo_span_eq(mo_buf_view(b), token)))
        return;
    if (!b) {
        b = mo_new(struct mo_buf);
        if (!b)
            return;
        mo_buf_init(b, TOKEN_MAX);
        if (mo_map_put(&t->subjects, mo_span_cstr(person), b, NULL) < 0) {
            mo_free(b);
            return;
        }
    }
    (void)mo_buf_set(b, token);
}

/* --- one pair ------------------------------------------------------------- */

static void check_gone(struct mo_token_exchange *t)
{
    if (t->closing)
        mo_loop_defer(t->loop, &t->later);
}

static void check_used(struct pair *p)
{
    struct mo_token_exchange *t = p->all;
    struct mo_buf *all[] = {&p->key, &p->person, &p->url, &p->header};

    if (p->links || p->running || !mo_list_empty(&p->ready))
        return;
    (void)mo_map_del(&t->pairs, mo_buf_view(&p->key));
    mo_later_cancel(&p->later);
    mo_oauth_ask_fini(&p->q);
    for (size_t i = 0; i < MO_COUNT(all); i++)
        mo_buf_wipe(all[i]);
    mo_config_unref(p->cfg);
    mo_free(p);
    check_gone(t);
}

static void on_pair_later(struct mo_later *d)
{
    struct pair *p = mo_container_of(d, struct pair, later);
    struct mo_err why = p->why;

    p->links++; /* stays until the end of this function */
    mo_list_drain (w, &p->ready, struct mo_auth_wait, node)
        w->done(w, why.code ? &why : NULL);
    p->links--;
    check_used(p);
}

static void end_waiters(struct pair *p, const struct mo_err *why)
{
    p->why = why ? *why : (struct mo_err){0};
    mo_list_splice(&p->ready, &p->waiters);
    mo_loop_defer(p->all->loop, &p->later);
}

static int take_token(struct pair *p, struct mo_err *e)
{
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    struct mo_token k = {.expires_ms = 0};
    struct mo_span body = mo_buf_view(&p->q.body);

    if (p->q.status >= 400 && p->q.status < 500)
        return mo_fail(e, MO_EPOLICY, "the exchange was refused: %.80s",
                       mo_oauth_error(&a, body));
    if (p->q.status != 200)
        return mo_fail(e, MO_EUNAVAIL, "the token endpoint answers %d",
                       p->q.status);
    if (mo_oauth_token_parse(&a, body, mo_wall_ms(), &k, e) < 0)
        return e->code;
    p->serial++;
    p->expires_ms = k.expires_ms;
    mo_buf_reset(&p->header);
    (void)mo_buf_printf(&p->header, "Bearer %s", k.access);
    return mo_buf_err(&p->header) ? mo_fail(e, MO_ENOMEM, "token") : 0;
}

static void on_answer(struct mo_oauth_ask *q, const struct mo_err *why)
{
    struct pair *p = mo_container_of(q, struct pair, q);
    struct mo_err e;

    p->running = false;
    if (!why && take_token(p, &e) < 0)
        why = &e;
    mo_buf_reset(&q->body);
    end_waiters(p, why);
}

static void put_pair(struct mo_buf *b, const char *key, const char *value)
{
    if (!value)
        return;
    (void)mo_buf_printf(b, "%s%s=", b->len ? "&" : "", key);
    (void)mo_pct_encode(b, mo_span_cstr(value));
}

static int start_exchange(struct pair *p, struct mo_err *e)
{
    const struct mo_config_exchange *c = &p->server->exchange;
    struct mo_buf *subject =
        mo_map_get(&p->all->subjects, mo_buf_view(&p->person));
    mo_autowipe struct mo_buf form = {.max = 8 * TOKEN_MAX},
                              id = {.max = TEXT_MAX},
                              secret = {.max = TEXT_MAX},
                              basic = {.max = 8 * TEXT_MAX};
    struct mo_oauth_client client;

    if (!subject)
        return mo_fail(e, MO_EPOLICY,
                       "there is no access token of a provider to exchange");
    if (p->asked_ns &&
        mo_now_ns() - p->asked_ns < MO_TOKEN_EXCHANGE_PAUSE_MS * MO_MS)
        return mo_fail(e, MO_EPOLICY, "the server refuses exchanged tokens");
    if ((c->client_id &&
         mo_reference_resolve(p->cfg, c->client_id, &id, e) < 0) ||
        (c->client_secret &&
         mo_reference_resolve(p->cfg, c->client_secret, &secret, e) < 0))
        return e->code;
    put_pair(&form, "grant_type", GRANT);
    put_pair(&form, "subject_token", mo_buf_cstr(subject));
    put_pair(&form, "subject_token_type", TYPE);
    put_pair(&form, "requested_token_type", TYPE);
    put_pair(&form, "resource", mo_buf_cstr(&p->url));
    put_pair(&form, "audience", c->audience);
    put_pair(&form, "scope", c->scope);
    client = (struct mo_oauth_client){mo_buf_cstr(&id), mo_buf_cstr(&secret),
                                      MO_OAUTH_BASIC};
    if (secret.len)
        (void)mo_oauth_basic(&basic, &client);
    else if (id.len)
        put_pair(&form, "client_id", mo_buf_cstr(&id));
    if (mo_buf_err(&form) || mo_buf_err(&basic))
        return mo_fail(e, MO_ENOMEM, "exchange");
    p->asked_ns = mo_now_ns();
    if (mo_oauth_ask(&p->q, c->url, "application/x-www-form-urlencoded",
                     mo_buf_view(&form), mo_buf_view(&basic), e) < 0)
        return e->code;
    p->running = true;
    return 0;
}

static struct mo_span get_header(struct mo_auth *a, uint64_t *serial)
{
    struct pair *p = mo_container_of(a, struct pair, auth);

    *serial = p->serial;
    if (p->expires_ms && p->expires_ms <= mo_wall_ms()) {
        mo_buf_reset(&p->header);
        p->asked_ns = 0;
    }
    return mo_buf_view(&p->header);
}

static int on_refused(struct mo_auth *a, struct mo_auth_wait *w, int status,
                      struct mo_span challenge, struct mo_err *e)
{
    struct pair *p = mo_container_of(a, struct pair, auth);
    bool newer = !p->running && w->serial != p->serial && p->header.len;
    int rc = 0;

    (void)challenge;
    if (p->all->closing || status != 401)
        return mo_fail(e, MO_EPOLICY, "the server forbids the request");
    if (!newer && !p->running)
        rc = start_exchange(p, e);
    if (rc < 0)
        return rc;
    mo_list_push(&p->waiters, &w->node);
    if (newer)
        end_waiters(p, NULL);
    return 0;
}

/* --- links ---------------------------------------------------------------- */

static int put_key(struct mo_buf *b, const char *server, struct mo_span person)
{
    (void)mo_buf_put(b, server, strlen(server) + 1);
    return mo_buf_span(b, person);
}

static struct pair *find(struct mo_token_exchange *t, const char *server,
                         struct mo_span person)
{
    mo_autobuf struct mo_buf key = {.max = KEY_MAX};

    return put_key(&key, server, person) < 0
               ? NULL
               : mo_map_get(&t->pairs, mo_buf_view(&key));
}

static struct pair *pair_new(struct mo_token_exchange *t,
                             const struct mo_config *cfg,
                             const struct mo_config_mcp *s, const char *url,
                             struct mo_span person)
{
    static const struct mo_auth_ops ops = {get_header, on_refused};
    struct pair *p = mo_new(struct pair);

    if (!p)
        return NULL;
    p->auth.ops = &ops;
    p->all = t;
    p->cfg = mo_config_ref(cfg);
    p->server = s;
    mo_buf_init(&p->key, KEY_MAX);
    mo_buf_init(&p->person, KEY_MAX);
    mo_buf_init(&p->url, TEXT_MAX);
    mo_buf_init(&p->header, TOKEN_MAX);
    mo_list_init(&p->waiters);
    mo_list_init(&p->ready);
    mo_later_init(&p->later, on_pair_later);
    mo_oauth_ask_init(&p->q);
    (void)mo_buf_puts(&p->url, url);
    (void)mo_buf_span(&p->person, person);
    if (put_key(&p->key, s->name, person) < 0 || mo_buf_err(&p->url) ||
        mo_map_put(&t->pairs, mo_buf_view(&p->key), p, NULL) < 0) {
        check_used(p);
        return NULL;
    }
    return p;
}

int mo_token_exchange_use(struct mo_token_exchange *t, struct mo_httpc *http,
                          const struct mo_config *cfg,
                          const struct mo_config_mcp *s, const char *url,
                          struct mo_span person, struct mo_auth **out,
                          struct mo_err *e)
{
    struct pair *p = find(t, s->name, person);

    if (!p)
        p = pair_new(t, cfg, s, url, person);
    if (!p)
        return mo_fail(e, MO_EBUSY, "too many persons use exchanged tokens");
    if (strcmp(mo_buf_cstr(&p->url), url) != 0)
        return mo_fail(e, MO_EUNAVAIL, "the server's address has changed");
    p->q.http = http;
    p->q.server = mo_buf_cstr(&p->url);
    p->q.local = true; /* the operator wrote the endpoint's address */
    p->q.done = on_answer;
    p->links++;
    *out = &p->auth;
    return 0;
}

void mo_token_exchange_release(struct mo_token_exchange *t, const char *server,
                               struct mo_span person)
{
    struct pair *p = find(t, server, person);

    if (!p || p->links == 0)
        return;
    p->links--;
    check_used(p);
}

/* --- open and close ------------------------------------------------------- */

static void on_later(struct mo_later *d)
{
    struct mo_token_exchange *t =
        mo_container_of(d, struct mo_token_exchange, later);
    struct mo_gone gone = t->gone;

    if (t->pairs.len)
        return;
    mo_map_each (en, &t->subjects)
        subject_free(en->value);
    mo_map_fini(&t->subjects);
    mo_map_fini(&t->pairs);
    mo_free(t);
    mo_gone_fire(gone);
}

int mo_token_exchange_new(struct mo_loop *l, struct mo_token_exchange **out,
                          struct mo_err *e)
{
    struct mo_token_exchange *t = mo_new(struct mo_token_exchange);

    if (!t)
        return mo_fail(e, MO_ENOMEM, "token exchange");
    t->loop = l;
    mo_map_init(&t->subjects, MO_TOKEN_EXCHANGE_MAX);
    mo_map_init(&t->pairs, MO_TOKEN_EXCHANGE_MAX);
    mo_later_init(&t->later, on_later);
    *out = t;
    return 0;
}

void mo_token_exchange_close(struct mo_token_exchange *t,
                             void (*gone)(void *ctx), void *ctx)
{
    t->closing = true;
    t->gone = (struct mo_gone){gone, ctx};
    mo_map_each (en, &t->pairs) {
        struct pair *p = en->value;

        if (p->running)
            (void)mo_oauth_ask_cancel(&p->q);
    }
    mo_loop_defer(t->loop, &t->later);
}
