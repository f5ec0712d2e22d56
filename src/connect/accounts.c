/* accounts.c - see accounts.h.
 *
 * Invariants
 *  1. A connection is in the map from account_new() to account_end().
 *  2. It ends when no link uses it and nothing of it is under way.
 *  3. Each waiter is called once. */
#include "connect/accounts.h"

#include <unistd.h>

#include "audit/audit.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/http/url.h"
#include "connect/server_link.h"
#include "mcp/oauth/oauth_revoke.h"
#include "secrets/key.h"
#include "secrets/resolve.h"

#define ROOM     "connections"
#define CALLBACK "/connections/callback"
#define URL_MAX  ((size_t)2048)
#define KEY_MAX  ((size_t)1024)

struct waiter {
    mo_accounts_done_fn *done; /* NULL: nobody waits */
    void *ctx;
};

struct account {
    struct mo_accounts *all;
    struct mo_sign_in *sign_in;
    char *server, *person;
    unsigned links;
    bool signing_in; /* the person was given an address */
    struct waiter begin, finish;
};

/* Asks the server who issues its tokens, by calling it without any. */
struct probe {
    struct mo_list node;
    struct mo_accounts *all;
    struct mo_conn *conn;
    char *server, *person;
    unsigned dials;
    bool accepted; /* it was let in */
    struct waiter begin;
};

struct revoking { /* the end of a connection */
    struct mo_list node;
    struct mo_accounts *all;
    struct mo_oauth_revoke *request; /* NULL: done, or none needed */
    struct mo_later later;
    struct mo_err why;
    struct waiter w;
};

struct mo_accounts {
    struct mo_accounts_opts o;
    const struct mo_config *cfg;
    struct mo_secrets *vault;          /* NULL: not needed yet */
    struct mo_shared_accounts *shared; /* other servers; or NULL */
    struct mo_audit *audit;
    struct mo_map map; /* server, NUL, person -> struct account */
    struct mo_list probes, revoking;
    struct mo_buf page;
    unsigned ending; /* sign-ins that are being closed */
    bool closing;
    struct mo_later later;
    struct mo_gone gone;
};

/* --- small things --------------------------------------------------------- */

static void fire(struct waiter *w, const char *text, const struct mo_err *why)
{
    struct waiter now = *w;

    *w = (struct waiter){NULL, NULL};
    if (now.done)
        now.done(now.ctx, text, why);
}

static void note(const struct mo_accounts *c, const char *server,
                 const char *person, const char *outcome, const char *reason)
{
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("account"),
        .server = mo_span_cstr(server),
        .outcome = outcome,
        .reason = reason,
        .who = mo_span_cstr(person),
    };

    if (c->audit)
        mo_audit_note(c->audit, &row);
}

static int put_key(struct mo_buf *b, const char *server, struct mo_span person)
{
    (void)mo_buf_put(b, server, strlen(server) + 1);
    return mo_buf_span(b, person);
}

static struct account *find(const struct mo_accounts *c, const char *server,
                            struct mo_span person)
{
    mo_autobuf struct mo_buf key = {.max = KEY_MAX};

    if (put_key(&key, server, person) < 0)
        return NULL;
    return mo_map_get(&c->map, mo_buf_view(&key));
}

static int open_vault(struct mo_accounts *c, struct mo_err *e)
{
    return c->vault ? 0 : mo_secrets_for(c->cfg, true, &c->vault, e);
}

/* --- one connection ------------------------------------------------------- */

static void check_gone(struct mo_accounts *c)
{
    if (c->closing)
        mo_loop_defer(c->o.loop, &c->later);
}

static void on_sign_in_gone(void *ctx)
{
    struct mo_accounts *c = ctx;

    c->ending--;
    check_gone(c);
}

static void account_end(struct account *x)
{
    struct mo_accounts *c = x->all;
    mo_autobuf struct mo_buf key = {.max = KEY_MAX};

    if (x->server && x->person &&
        put_key(&key, x->server, mo_span_cstr(x->person)) == 0)
        (void)mo_map_del(&c->map, mo_buf_view(&key));
    if (x->sign_in) {
        c->ending++;
        mo_sign_in_end(x->sign_in, on_sign_in_gone, c);
    }
    mo_free(x->server);
    mo_free(x->person);
    mo_free(x);
    check_gone(c);
}

/* Ends it if nobody needs it any more. */
static void check_used(struct account *x)
{
    if (x->links == 0 && !x->begin.done && !x->finish.done &&
        (!x->signing_in || x->all->closing))
        account_end(x);
}

static void drop_all(struct mo_tokens *t)
{
    for (const struct mo_token *k = mo_tokens_at(t, 0); k;
         k = mo_tokens_at(t, 0)) {
        mo_autofree char *server = mo_strndup(k->server, strlen(k->server));

        if (!server || mo_tokens_drop(t, NULL, server, NULL) < 0)
            return;
    }
}

/* Tokens that cannot be refreshed and are refused are of no use: without them
 * the person is asked to connect again. */
static void forget_if_dead(struct account *x, const char *reason)
{
    struct mo_tokens *t = x->sign_in->tokens;
    const struct mo_token *k;

    mo_tokens_sync(t);
    k = mo_tokens_get(t, NULL, x->sign_in->o.url);
    if (k && k->refresh)
        return;
    drop_all(t); /* also those for an address that the server had before */
    if (!k) {
        (void)mo_tokens_drop(t, NULL, x->sign_in->o.url, NULL);
        return; /* there was an empty file, perhaps */
    }
    note(x->all, x->server, x->person, "expired", reason);
}

/* The sign-in has an address for the person, or has ended. */
static void on_told(void *ctx, const char *url, const struct mo_err *why)
{
    struct account *x = ctx;

    if (url) {
        x->signing_in = true;
        fire(&x->begin, url, NULL);
        return;
    }
    if (x->finish.done || x->begin.done || x->signing_in)
        note(x->all, x->server, x->person,
             why ? "could not connect" : "connected", why ? why->msg : NULL);
    else if (why)
        note(x->all, x->server, x->person, "could not refresh", why->msg);
    if (why && why->code == MO_EPOLICY && !x->signing_in && !x->finish.done) {
        drop_all(x->sign_in->tokens); /* the issuer refuses the refresh token */
        mo_oauth_sync(mo_sign_in_oauth(x->sign_in));
    }
    x->signing_in = false;
    fire(&x->begin, NULL,
         why ? why : mo_error(MO_ECLOSED, "the sign-in has ended"));
    fire(&x->finish, x->server, why);
    check_used(x);
}

static struct account *account_new(struct mo_accounts *c,
                                   const struct mo_sign_in_opts *base,
                                   struct mo_err *e)
{
    struct account *x = mo_new(struct account);
    struct mo_sign_in_opts o = *base;
    mo_autobuf struct mo_buf key = {.max = KEY_MAX}, page = {.max = URL_MAX};
    int rc = x ? open_vault(c, e) : mo_fail(e, MO_ENOMEM, "connection");

    if (!x)
        return NULL;
    x->all = c;
    x->server = mo_strndup(o.server->name, strlen(o.server->name));
    x->person = mo_strndup(o.person, strlen(o.person));
    o.vault = c->vault;
    o.shared = &c->shared;
    o.told = on_told;
    o.ctx = x;
    if (c->page.len && !o.ask) {
        (void)mo_buf_printf(&page, "%s" CALLBACK, mo_buf_cstr(&c->page));
        o.page = mo_buf_cstr(&page);
    }
    if (rc == 0 && (!x->server || !x->person ||
                    put_key(&key, x->server, mo_span_cstr(x->person)) < 0))
        rc = mo_fail(e, MO_ENOMEM, "connection");
    if (rc == 0)
        rc = mo_map_put(&c->map, mo_buf_view(&key), x, NULL);
    if (rc == MO_ETOOBIG || rc == MO_EBUSY)
        rc = mo_fail(e, MO_EBUSY, "too many persons are connected");
    if (rc == 0)
        rc = mo_sign_in_new(&o, &x->sign_in, e);
    if (rc < 0) {
        account_end(x);
        return NULL;
    }
    return x;
}

/* --- links ---------------------------------------------------------------- */

int mo_accounts_use(struct mo_accounts *c, const struct mo_sign_in_opts *base,
                    struct mo_auth **out, struct mo_err *e)
{
    struct account *x = find(c, base->server->name, mo_span_cstr(base->person));

    if (!x)
        x = account_new(c, base, e);
    if (!x)
        return e->code;
    if (strcmp(x->sign_in->o.url, base->url) != 0) /* not to another host */
        return mo_fail(e, MO_EUNAVAIL,
                       "the server's address has changed, and calls to the old "
                       "one are under way; try again");
    x->links++;
    *out = mo_sign_in_auth(x->sign_in);
    return 0;
}

void mo_accounts_release(struct mo_accounts *c, const char *server,
                         struct mo_span person)
{
    struct account *x = find(c, server, person);

    if (!x || x->links == 0)
        return;
    if (mo_oauth_state(mo_sign_in_oauth(x->sign_in)) == MO_OAUTH_IS_BARRED)
        forget_if_dead(x, "the server refuses it");
    x->links--;
    check_used(x);
}

struct mo_sign_in *mo_accounts_sign_in(const struct mo_accounts *c,
                                       const char *server,
                                       struct mo_span person)
{
    const struct account *x = find(c, server, person);

    return x ? x->sign_in : NULL;
}

bool mo_accounts_has(struct mo_accounts *c, const char *server,
                     struct mo_span person)
{
    const struct account *x;

    if (mo_account_exists(c->cfg, mo_span_cstr(server), person))
        return true;
    x = find(c, server, person);
    if (x) /* another process removed it */
        mo_oauth_sync(mo_sign_in_oauth(x->sign_in));
    return false;
}

/* --- begin ---------------------------------------------------------------- */

static void probe_free(struct probe *p)
{
    struct mo_accounts *c = p->all;

    mo_list_del(&p->node);
    mo_free(p->server);
    mo_free(p->person);
    mo_free(p);
    check_gone(c);
}

static void on_probe_open(void *ctx, struct mo_conn *conn)
{
    struct probe *p = ctx;

    p->accepted = true;
    mo_conn_close(conn, NULL);
}

/* The server has answered; its refusal is known to the sign-in. */
static void begin_sign_in(struct probe *p, struct account *x)
{
    struct mo_err e;

    if (p->accepted && mo_sign_in_state(x->sign_in) != MO_SIGN_IN_READY) {
        (void)mo_fail(&e, MO_EPROTO, "%s does not ask anybody to sign in",
                      p->server);
        fire(&p->begin, NULL, &e);
        return;
    }
    x->begin = p->begin;
    p->begin = (struct waiter){NULL, NULL};
    if (mo_oauth_sign_in(mo_sign_in_oauth(x->sign_in), &e) < 0)
        fire(&x->begin, NULL, &e);
}

static void on_probe_close(void *ctx, const struct mo_err *why)
{
    struct probe *p = ctx;
    struct mo_accounts *c = p->all;
    struct account *x = find(c, p->server, mo_span_cstr(p->person));
    bool refused = !why || why->code == MO_EPOLICY || p->accepted;

    if (x && refused && !c->closing && !x->begin.done)
        begin_sign_in(p, x);
    fire(&p->begin, NULL,
         why ? why : mo_error(MO_EBUSY, "a sign-in is being begun"));
    while (p->dials--)
        mo_accounts_release(c, p->server, mo_span_cstr(p->person));
    probe_free(p);
}

static int on_probe_dial(void *ctx, struct mo_conn *conn, struct mo_err *e)
{
    struct probe *p = ctx;
    const struct mo_accounts_opts *o = &p->all->o;
    int rc = o->dial(o->ctx, p->server, mo_span_cstr(p->person), conn, e);

    p->dials += rc == 0;
    return rc;
}

static const struct mo_config_mcp *find_server(const struct mo_accounts *c,
                                               const char *server)
{
    const struct mo_config_mcp *s =
        mo_server_link_find(c->cfg, mo_span_cstr(server));

    return s && s->enabled && s->credentials == MO_CREDENTIALS_USER ? s : NULL;
}

bool mo_accounts_serves(const struct mo_accounts *c, const char *server)
{
    return find_server(c, server) != NULL;
}

static bool is_beginning(const struct mo_accounts *c, const char *server,
                         const char *person)
{
    const struct account *x = find(c, server, mo_span_cstr(person));

    mo_list_each_entry (p, &c->probes, const struct probe, node) {
        if (strcmp(p->server, server) == 0 && strcmp(p->person, person) == 0)
            return true;
    }
    return x && x->begin.done;
}

int mo_accounts_begin(struct mo_accounts *c, const char *server,
                      const char *person, mo_accounts_done_fn *done, void *ctx,
                      struct mo_err *e)
{
    static const struct mo_conn_cb cb = {.on_open = on_probe_open,
                                         .on_close = on_probe_close};
    const struct mo_config_mcp *s = find_server(c, server);
    struct mo_conn_opts o = {
        .open_ms = MO_ACCOUNTS_PROBE_MS, .dial = on_probe_dial, .cb = &cb};
    struct probe *p;
    int rc;

    if (!s)
        return mo_fail(e, MO_ENOTFOUND, "no such server");
    if (c->closing || is_beginning(c, server, person))
        return mo_fail(e, MO_EBUSY, "a sign-in is being begun");
    p = mo_new(struct probe);
    if (!p)
        return mo_fail(e, MO_ENOMEM, "connection");
    p->all = c;
    p->begin = (struct waiter){done, ctx};
    mo_list_push(&c->probes, &p->node);
    p->server = mo_strndup(server, strlen(server));
    p->person = mo_strndup(person, strlen(person));
    o.mode = mo_server_link_mode(s);
    o.ctx = p;
    rc = p->server && p->person ? mo_conn_open(c->o.loop, &o, &p->conn, e)
                                : mo_fail(e, MO_ENOMEM, "connection");
    if (rc < 0)
        probe_free(p);
    return rc;
}

/* --- finish --------------------------------------------------------------- */

int mo_accounts_finish(struct mo_accounts *c, const char *person,
                       struct mo_span query, mo_accounts_done_fn *done,
                       void *ctx, struct mo_err *e)
{
    mo_map_each (en, &c->map) {
        struct account *x = en->value;

        if (!x->signing_in || x->finish.done ||
            strcmp(x->person, person) != 0 ||
            mo_oauth_redirected(mo_sign_in_oauth(x->sign_in), query, NULL) < 0)
            continue;
        x->finish = (struct waiter){done, ctx};
        return 0;
    }
    return mo_fail(e, MO_EINVAL,
                   "no sign-in of yours waits for this answer; begin again");
}

/* --- remove --------------------------------------------------------------- */

static void revoking_free(struct revoking *r)
{
    struct mo_accounts *c = r->all;
    struct mo_err why = r->why;

    mo_list_del(&r->node);
    mo_later_cancel(&r->later);
    fire(&r->w, NULL, why.code ? &why : NULL);
    mo_free(r);
    check_gone(c);
}

static void on_revoked(void *ctx, const struct mo_err *why)
{
    struct revoking *r = ctx;

    r->request = NULL;
    if (why)
        r->why = *why;
    mo_loop_defer(r->all->o.loop, &r->later);
}

static void on_revoking_later(struct mo_later *d)
{
    revoking_free(mo_container_of(d, struct revoking, later));
}

/* Tells the issuer about the token that was put last. */
static void start_revoking(struct revoking *r, const struct mo_tokens *t,
                           const char *secret)
{
    struct mo_oauth_revoke_opts o = {
        .secret = secret, .done = on_revoked, .ctx = r};
    const struct mo_token *k = NULL;

    for (size_t i = 0; mo_tokens_at(t, i); i++)
        k = mo_tokens_at(t, i);
    o.token = k;
    o.http = r->all->o.http(r->all->o.ctx, &r->why);
    if (o.http && mo_oauth_revoke(&o, &r->request, &r->why) == MO_ENOTFOUND)
        mo_err_clear(&r->why); /* nothing that could be done */
    if (!r->request)
        mo_loop_defer(r->all->o.loop, &r->later);
}

/* The secret of a configured client is in the configuration only. */
static int resolve_secret(const struct mo_accounts *c, const char *server,
                          struct mo_buf *out)
{
    const struct mo_config_mcp *s = find_server(c, server);

    return s && s->oauth.client_secret
               ? mo_reference_resolve(c->cfg, s->oauth.client_secret, out, NULL)
               : 0;
}

int mo_accounts_remove(struct mo_accounts *c, const char *server,
                       const char *person, mo_accounts_done_fn *done, void *ctx,
                       struct mo_err *e)
{
    struct account *x = find(c, server, mo_span_cstr(person));
    mo_autowipe struct mo_buf secret = {.max = URL_MAX};
    struct mo_account_file f = {.path = NULL};
    struct mo_tokens *t = NULL;
    struct revoking *r;
    int rc;

    if (!mo_account_exists(c->cfg, mo_span_cstr(server), mo_span_cstr(person)))
        return mo_fail(e, MO_ENOTFOUND, "not connected");
    rc = open_vault(c, e);
    if (rc == 0)
        rc = mo_account_file_init(&f, c->cfg, c->vault, mo_span_cstr(server),
                                  mo_span_cstr(person), e);
    r = rc == 0 ? mo_new(struct revoking) : NULL;
    if (r) {
        mo_account_file_share(&f, &c->shared);
        r->all = c;
        r->w = (struct waiter){done, ctx};
        mo_later_init(&r->later, on_revoking_later);
        mo_list_push(&c->revoking, &r->node);
        (void)resolve_secret(c, server, &secret);
        if (mo_account_file_open(&f, &t, &r->why) == 0) {
            start_revoking(r, t, secret.len ? mo_buf_cstr(&secret) : NULL);
            drop_all(t);
        } else { /* it cannot be read: nothing to revoke */
            mo_loop_defer(c->o.loop, &r->later);
        }
        if (unlink(f.path) == 0 && c->shared)
            mo_shared_accounts_changed(c->shared, f.key, true);
        note(c, server, person, "disconnected", NULL);
    }
    if (x)
        mo_oauth_sync(mo_sign_in_oauth(x->sign_in));
    mo_tokens_close(t);
    mo_account_file_fini(&f);
    return r ? 0 : rc < 0 ? rc : mo_fail(e, MO_ENOMEM, "connection");
}

/* --- the list ------------------------------------------------------------- */

static void put_token(struct mo_accounts *c, const char *server,
                      const char *person, struct mo_jw *w)
{
    struct mo_account_file f = {.path = NULL};
    struct mo_tokens *t = NULL;
    const struct mo_token *k = NULL;
    struct mo_file_stamp stamp;
    struct mo_err e = {.code = 0};

    if (open_vault(c, &e) == 0 &&
        mo_account_file_init(&f, c->cfg, c->vault, mo_span_cstr(server),
                             mo_span_cstr(person), &e) == 0) {
        mo_file_stamp(f.path, &stamp);
        if (mo_account_file_open(&f, &t, &e) == 0)
            k = mo_tokens_at(t, 0);
    }
    if (k) {
        mo_jw_member_u64(w, "since", (uint64_t)stamp.mtime.tv_sec * 1000);
        mo_jw_member_opt(w, "issuer", mo_span_cstr(k->issuer));
        if (k->scope)
            mo_jw_member_cstr(w, "scope", k->scope);
    } else {
        mo_jw_member_cstr(w, "error", e.code ? e.msg : "no tokens");
    }
    mo_tokens_close(t);
    mo_account_file_fini(&f);
}

void mo_accounts_put(struct mo_accounts *c, const char *person, struct mo_jw *w)
{
    for (size_t i = 0; i < c->cfg->mcp.n; i++) {
        const struct mo_config_mcp *s = &c->cfg->mcp.v[i];
        bool connected;

        if (!find_server(c, s->name))
            continue;
        connected = mo_account_exists(c->cfg, mo_span_cstr(s->name),
                                      mo_span_cstr(person));
        mo_jw_obj(w);
        mo_jw_member_cstr(w, "server", s->name);
        if (s->description)
            mo_jw_member_cstr(w, "description", s->description);
        mo_jw_member_bool(w, "connected", connected);
        if (connected)
            put_token(c, s->name, person, w);
        mo_jw_end(w);
    }
}

unsigned mo_accounts_count(const struct mo_accounts *c)
{
    return (unsigned)c->map.len;
}

/* --- open and close ------------------------------------------------------- */

static void on_later(struct mo_later *d)
{
    struct mo_accounts *c = mo_container_of(d, struct mo_accounts, later);
    struct mo_gone gone = c->gone;

    if (c->map.len || c->ending || !mo_list_empty(&c->probes) ||
        !mo_list_empty(&c->revoking))
        return;
    mo_map_fini(&c->map);
    mo_buf_fini(&c->page);
    mo_secrets_close(c->vault);
    mo_config_unref(c->cfg);
    mo_free(c);
    mo_gone_fire(gone);
}

int mo_accounts_new(const struct mo_accounts_opts *o,
                    const struct mo_config *cfg, struct mo_accounts **out,
                    struct mo_err *e)
{
    struct mo_accounts *c = mo_new(struct mo_accounts);

    if (!c)
        return mo_fail(e, MO_ENOMEM, "connections");
    c->o = *o;
    c->cfg = mo_config_ref(cfg);
    mo_map_init(&c->map, MO_ACCOUNTS_MAX);
    mo_list_init(&c->probes);
    mo_list_init(&c->revoking);
    mo_buf_init(&c->page, URL_MAX);
    mo_later_init(&c->later, on_later);
    *out = c;
    return 0;
}

static struct account *any(const struct mo_accounts *c)
{
    mo_map_each (en, &c->map)
        return en->value;
    return NULL;
}

void mo_accounts_close(struct mo_accounts *c, void (*gone)(void *ctx),
                       void *ctx)
{
    const struct mo_err *why = mo_error(MO_ECANCELED, "closing");

    c->closing = true;
    c->gone = (struct mo_gone){gone, ctx};
    mo_accounts_unshare(c);
    mo_list_each_entry (p, &c->probes, struct probe, node)
        mo_conn_close(p->conn, why);
    mo_list_each_entry_safe (r, &c->revoking, struct revoking, node) {
        if (r->request)
            mo_oauth_revoke_cancel(r->request);
    }
    for (struct account *x = any(c); x; x = any(c)) {
        fire(&x->begin, NULL, why);
        fire(&x->finish, NULL, why);
        account_end(x);
    }
    mo_loop_defer(c->o.loop, &c->later);
}

int mo_accounts_share(struct mo_accounts *c,
                      const struct mo_accounts_sharing *w, struct mo_err *e)
{
    struct mo_shared_accounts_opts o = {
        .loop = c->o.loop,
        .store = w->store,
        .instance = w->instance,
        .cfg = c->cfg,
        .told = w->told,
        .ctx = w->ctx,
    };
    int rc = c->shared ? MO_EBUSY : open_vault(c, e);

    o.vault = c->vault;
    return rc < 0 ? rc : mo_shared_accounts_open(&o, &c->shared, e);
}

bool mo_accounts_are_read(const struct mo_accounts *c)
{
    return !c->shared || mo_shared_accounts_are_read(c->shared);
}

void mo_accounts_unshare(struct mo_accounts *c)
{
    mo_shared_accounts_close(mo_take_ptr(&c->shared));
}

void mo_accounts_config(struct mo_accounts *c, const struct mo_config *cfg)
{
    const struct mo_config *old = c->cfg;

    c->cfg = mo_config_ref(cfg);
    mo_config_unref(old);
}

void mo_accounts_audit(struct mo_accounts *c, struct mo_audit *a)
{
    c->audit = a;
}

int mo_accounts_page(struct mo_accounts *c, const char *url)
{
    return mo_buf_set(&c->page, mo_span_cstr(url));
}

void mo_accounts_put_page(const struct mo_accounts *c, const char *server,
                          struct mo_buf *out)
{
    if (!c->page.len)
        return;
    (void)mo_buf_span(out, mo_buf_view(&c->page));
    (void)mo_buf_puts(out, "/connections?server=");
    (void)mo_pct_encode(out, mo_span_cstr(server));
}
