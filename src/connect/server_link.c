#include "connect/server_link.h"

#include "connect/accounts.h"
#include "connect/boxed_link.h"
#include "connect/hidden_dirs.h"
#include "connect/npx_turn.h"
#include "connect/resolved_server.h"
#include "connect/sign_in.h"
#include "connect/token_exchange.h"
#include "loop/runner.h"
#include "mcp/link/link_sse.h"

#define ARENA_MAX    ((size_t)1024 * 1024) /* arena of one link */
/* Large results must not fail here if the client accepts them. */
#define MESSAGE_MAX  ((size_t)16 * 1024 * 1024)
/* Each legacy server over HTTP keeps one stream open. */
#define REQUESTS_MAX 2048

struct mo_server_link {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    const struct mo_config_mcp *extra; /* not configured; or NULL */
    bool ask;                          /* a person may be asked to sign in */
    int err;                           /* for messages to them; -1: none */
    struct mo_guard *guard;            /* NULL: no child started yet */
    struct mo_hide *hide;              /* NULL: no child started yet */
    bool warned;                       /* that servers see hidden directories */
    struct mo_httpc *http;             /* NULL: no request sent yet */
    struct mo_boxed_link *boxed;       /* NULL: no box needed yet */
    struct mo_list sign_ins;           /* struct mo_sign_in */
    unsigned nsign_ins;
    struct mo_accounts *accounts;       /* NULL: not needed yet */
    struct mo_accounts_sharing sharing; /* store NULL: with nobody */
    bool is_shared;
    struct mo_token_exchange *exchange; /* likewise */
    struct mo_stderr_tail *stderr_tail;
    struct mo_approvals *approvals; /* or NULL */
    struct mo_later later;          /* runs the next step of closing */
    struct mo_gone gone;
    size_t message_max; /* of a message of a server */
};

const struct mo_config_mcp *mo_server_link_find(const struct mo_config *cfg,
                                                struct mo_span name)
{
    for (size_t i = 0; i < cfg->mcp.n; i++) {
        if (mo_span_is(name, cfg->mcp.v[i].name))
            return &cfg->mcp.v[i];
    }
    return NULL;
}

enum mo_conn_mode mo_server_link_mode(const struct mo_config_mcp *s)
{
    static const enum mo_conn_mode modes[] = {
        [MO_SERVER_ERA_AUTO] = MO_CONN_AUTO,
        [MO_SERVER_ERA_MODERN] = MO_CONN_MODERN,
        [MO_SERVER_ERA_LEGACY] = MO_CONN_LEGACY,
    };

    return modes[s->era];
}

static const struct mo_config_mcp *find_server(const struct mo_server_link *d,
                                               const char *name)
{
    if (d->extra && strcmp(d->extra->name, name) == 0)
        return d->extra;
    if (d->cfg->gateway.scripts.server && strcmp(name, MO_CONFIG_SCRIPTS) == 0)
        return d->cfg->gateway.scripts.server;
    return mo_server_link_find(d->cfg, mo_span_cstr(name));
}

/* --- sign-ins ------------------------------------------------------------ */

static bool same_client(const struct mo_config_oauth *a,
                        const struct mo_config_oauth *b)
{
    return mo_server_link_same(a->client_id, b->client_id) &&
           mo_server_link_same(a->client_secret, b->client_secret) &&
           mo_server_link_same(a->client_url, b->client_url) &&
           mo_server_link_same(a->issuer, b->issuer) &&
           mo_server_link_same(a->scope, b->scope) &&
           mo_server_link_same(a->redirect, b->redirect);
}

/* Servers with different settings do not share their tokens. */
static struct mo_sign_in *find_sign_in(struct mo_server_link *d,
                                       const struct mo_config_mcp *s,
                                       const char *url)
{
    mo_list_each_entry (x, &d->sign_ins, struct mo_sign_in, node) {
        if (strcmp(x->o.url, url) == 0 &&
            strcmp(x->o.server->name, s->name) == 0 &&
            same_client(&x->o.server->oauth, &s->oauth))
            return x;
    }
    return NULL;
}

static struct mo_sign_in *new_sign_in(struct mo_server_link *d,
                                      const struct mo_config_mcp *s,
                                      const char *url, struct mo_err *e)
{
    struct mo_sign_in_opts o = {
        .loop = d->loop,
        .http = d->http,
        .cfg = d->cfg,
        .server = s,
        .url = url,
        .ask = d->ask,
        .err = d->err,
    };
    struct mo_sign_in *x = NULL;

    if (d->nsign_ins == MO_SERVER_LINK_SIGN_INS)
        return mo_null(
            mo_fail(e, MO_EBUSY, "too many sign-ins; restart the program"));
    if (mo_sign_in_new(&o, &x, e) < 0)
        return NULL;
    mo_list_push(&d->sign_ins, &x->node);
    d->nsign_ins++;
    return x;
}

/* Uses the tokens of that person. */
static int use_account(struct mo_server_link *d, const struct mo_config_mcp *s,
                       struct mo_resolved_server *t, struct mo_span person,
                       struct mo_err *e)
{
    struct mo_accounts *all = mo_server_link_accounts(d, e);
    mo_autofree char *name = mo_strndup(person.n ? person.p : "", person.n);
    const struct mo_sign_in_opts o = {
        .loop = d->loop,
        .http = d->http,
        .cfg = d->cfg,
        .server = s,
        .url = t->remote.url,
        .ask = d->ask,
        .err = d->err,
        .person = name,
    };

    if (!all)
        return e->code;
    if (!name)
        return mo_fail(e, MO_ENOMEM, "connection");
    return mo_accounts_use(all, &o, &t->remote.auth, e);
}

static int use_exchange(struct mo_server_link *d, const struct mo_config_mcp *s,
                        struct mo_resolved_server *t, struct mo_span person,
                        struct mo_err *e)
{
    if (!d->exchange && mo_token_exchange_new(d->loop, &d->exchange, e) < 0)
        return e->code;
    return mo_token_exchange_use(d->exchange, d->http, d->cfg, s, t->remote.url,
                                 person, &t->remote.auth, e);
}

void mo_server_link_subject(struct mo_server_link *d, const char *person,
                            struct mo_span token)
{
    bool wanted = d->exchange != NULL;

    for (size_t i = 0; i < d->cfg->mcp.n && !wanted; i++)
        wanted = d->cfg->mcp.v[i].credentials == MO_CREDENTIALS_EXCHANGE;
    if (wanted && (d->exchange ||
                   mo_token_exchange_new(d->loop, &d->exchange, NULL) == 0))
        mo_token_exchange_subject(d->exchange, person, token);
}

static int use_sign_in(struct mo_server_link *d, const struct mo_config_mcp *s,
                       struct mo_resolved_server *t, struct mo_span person,
                       struct mo_err *e)
{
    struct mo_sign_in *x = NULL;

    if (s->credentials == MO_CREDENTIALS_EXCHANGE)
        return use_exchange(d, s, t, person, e);
    if (s->credentials == MO_CREDENTIALS_USER)
        return use_account(d, s, t, person, e);
    if (t->old_sse || !mo_sign_in_wanted(s))
        return 0;
    x = find_sign_in(d, s, t->remote.url);
    if (!x)
        x = new_sign_in(d, s, t->remote.url, e);
    if (!x)
        return e->code;
    t->remote.auth = mo_sign_in_auth(x);
    return 0;
}

struct mo_sign_in *mo_server_link_sign_in(const struct mo_server_link *d,
                                          const struct mo_config_mcp *s)
{
    if (s->credentials == MO_CREDENTIALS_USER)
        return d->accounts
                   ? mo_accounts_sign_in(d->accounts, s->name, mo_span(NULL, 0))
                   : NULL;
    mo_list_each_entry (x, &d->sign_ins, struct mo_sign_in, node) {
        if (x->o.server == s)
            return x;
    }
    return NULL;
}

static struct mo_httpc *open_http(void *ctx, struct mo_err *e)
{
    const struct mo_httpc_opts o = {.active = REQUESTS_MAX,
                                    .waiting = REQUESTS_MAX};
    struct mo_server_link *d = ctx;

    if (!d->http)
        d->http = mo_httpc_new(d->loop, &o, e);
    return d->http;
}

struct mo_accounts *mo_server_link_accounts(struct mo_server_link *d,
                                            struct mo_err *e)
{
    const struct mo_accounts_opts o = {.loop = d->loop,
                                       .dial = mo_server_link_server,
                                       .http = open_http,
                                       .ctx = d};

    if (!d->accounts && mo_accounts_new(&o, d->cfg, &d->accounts, e) < 0)
        return NULL;
    if (d->approvals)
        mo_accounts_audit(d->accounts, mo_approvals_audit(d->approvals));
    return d->accounts;
}

/* Opens them if a server has connections of persons. */
static void share_accounts(struct mo_server_link *d)
{
    bool wanted = false;
    struct mo_err e;

    for (size_t i = 0; i < d->cfg->mcp.n && !wanted; i++)
        wanted = d->cfg->mcp.v[i].credentials == MO_CREDENTIALS_USER;
    if (!d->sharing.store || d->is_shared || !wanted)
        return;
    d->is_shared = true;
    if (!mo_server_link_accounts(d, &e) ||
        mo_accounts_share(d->accounts, &d->sharing, &e) < 0)
        mo_log_err(mo_loop_log(d->loop), MO_ERROR, "connections", &e,
                   "not shared with other servers");
}

void mo_server_link_share(struct mo_server_link *d,
                          const struct mo_accounts_sharing *w)
{
    d->sharing = *w;
    share_accounts(d);
}

void mo_server_link_unshare(struct mo_server_link *d)
{
    d->sharing = (struct mo_accounts_sharing){.store = NULL};
    if (d->accounts)
        mo_accounts_unshare(d->accounts);
}

const char *mo_server_link_why(void *ctx)
{
    const struct mo_server_link *d = ctx;

    return d->accounts && !mo_accounts_are_read(d->accounts)
               ? "connections of the other servers are not read yet"
               : NULL;
}

void mo_server_link_done(void *ctx, const char *server, struct mo_span who)
{
    struct mo_server_link *d = ctx;

    if (d->accounts)
        mo_accounts_release(d->accounts, server, who);
    if (d->exchange)
        mo_token_exchange_release(d->exchange, server, who);
}

bool mo_server_link_connected(void *ctx, const char *server,
                              struct mo_span person, struct mo_buf *address)
{
    struct mo_server_link *d = ctx;
    const struct mo_config_mcp *s = find_server(d, server);
    struct mo_accounts *all = mo_server_link_accounts(d, NULL);

    if (s && s->credentials == MO_CREDENTIALS_EXCHANGE)
        return true; /* the exchange decides */
    if (all && mo_accounts_has(all, server, person))
        return true;
    if (all)
        mo_accounts_put_page(all, server, address);
    return false;
}

/* --- opening a link ------------------------------------------------------- */

static int link_remote(struct mo_server_link *d, const struct mo_config_mcp *s,
                       struct mo_resolved_server *t, struct mo_span person,
                       struct mo_link **out, struct mo_err *e)
{
    int rc = 0;

    t->remote.http = open_http(d, e);
    if (!t->remote.http)
        return e->code;
    rc = use_sign_in(d, s, t, person, e);
    if (rc < 0)
        return rc;
    rc = t->old_sse ? mo_link_sse(d->loop, &t->remote, out, e)
                    : mo_link_http(d->loop, &t->remote, out, e);
    if (rc < 0 && s->credentials != MO_CREDENTIALS_SHARED)
        mo_server_link_done(d, s->name, person);
    return rc < 0 ? mo_wrap(e, "%s", t->remote.url) : 0;
}

static void on_stderr(void *ctx, const char *who, struct mo_span bytes,
                      bool first)
{
    struct mo_server_link *d = ctx;

    mo_stderr_tail_add(d->stderr_tail, who, bytes, first);
}

static void warn_visible(struct mo_server_link *d, const char *why)
{
    if (!d->warned)
        mo_log(mo_loop_log(d->loop), MO_WARN, "gateway",
               "servers that run as commands can read and change the state "
               "directory, secrets and rules included: %s; see "
               "`mcp-orchestrator doctor`",
               why);
    d->warned = true;
}

static int hide_dirs(struct mo_server_link *d, const struct mo_config_mcp *s,
                     struct mo_child_opts *o, struct mo_err *e)
{
    struct mo_err why;

    if (!s->isolate)
        return 0;
    if (!d->hide) {
        d->hide = mo_new(struct mo_hide);
        if (!d->hide)
            return mo_fail(e, MO_ENOMEM, "server link");
        if (mo_hidden_dirs_init(d->hide, d->cfg, &why) < 0)
            warn_visible(d, why.msg);
    }
    o->hide = d->hide;
    return mo_hidden_dirs_check(d->hide, s, e);
}

static int prepare_child(struct mo_server_link *d,
                         const struct mo_config_mcp *s, struct mo_child_opts *o,
                         struct mo_err *e)
{
    if (!d->guard)
        d->guard = mo_guard_new(d->loop, e);
    if (!d->guard)
        return e->code;
    o->said = on_stderr;
    o->said_ctx = d;
    o->who = s->name;
    o->runner = mo_runner_is(o->argv);
    return hide_dirs(d, s, o, e);
}

static int link_child(struct mo_server_link *d, const struct mo_config_mcp *s,
                      struct mo_resolved_server *t, struct mo_link **out,
                      struct mo_err *e)
{
    int rc = prepare_child(d, s, &t->child, e);

    if (rc < 0) {
        if (t->child.turn)
            mo_close_fd(&t->child.turn);
        return rc;
    }
    if (mo_link_child(d->guard, &t->child, out, e) < 0)
        return mo_wrap(e, "%s", t->child.argv[0]);
    if (t->child.hide && t->child.hide->refused)
        warn_visible(d, strerror(t->child.hide->refused));
    return 0;
}

/* turn: of npx, or 0; taken over. */
static int open_link(struct mo_server_link *d, const struct mo_config_mcp *s,
                     struct mo_span person, int turn, struct mo_link **out,
                     struct mo_err *e)
{
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    struct mo_resolved_server t;
    int rc = mo_resolved_server_init(&t, &a, d->cfg, s, e);

    if (rc < 0) {
        if (turn)
            mo_close_fd(&turn);
        return rc;
    }
    t.child.turn = turn;
    mo_resolved_server_hide(&t, d->loop, s->name);
    t.child.line_max = d->message_max;
    t.child.data_max = (uint64_t)s->memory_mb << 20;
    t.remote.message_max = d->message_max;
    rc = s->url ? link_remote(d, s, &t, person, out, e)
                : link_child(d, s, &t, out, e);
    if (rc < 0)
        mo_resolved_server_scrub(&t, e);
    mo_resolved_server_wipe(&t); /* the link has copied it */
    return rc;
}

static int link_box(struct mo_server_link *d, const struct mo_config_mcp *s,
                    struct mo_conn *c, struct mo_err *e)
{
    if (!d->boxed &&
        mo_boxed_link_new(d->loop, d->stderr_tail, &d->boxed, e) < 0)
        return e->code;
    mo_boxed_link_approvals(d->boxed, d->approvals);
    return mo_boxed_link_dial(d->boxed, d->cfg, s, c, e);
}

/* --- turns of npx --------------------------------------------------------- */

struct turn_wait { /* a connection that waits for another npx */
    struct mo_server_link *d;
    struct mo_conn *c;
    struct mo_timer timer;
    uint64_t until_ms;
    char *server, *who;
    size_t who_len;
};

static int take_turn(const struct mo_server_link *d,
                     const struct mo_config_mcp *s, int *turn)
{
    mo_autobuf struct mo_buf b = {.max = ARENA_MAX};

    *turn = 0;
    if (s->url || !s->command ||
        !mo_npx_turn_packages(s->command, s->args.v, s->args.n, &b))
        return 0;
    return mo_npx_turn_take(d->cfg->store.dir, mo_buf_view(&b), turn);
}

/* k NULL and no error: the connection ends anyway. */
static void end_turn_wait(struct turn_wait *w, struct mo_link *k,
                          const struct mo_err *why)
{
    struct mo_conn *c = w->c;

    mo_free(w->server);
    mo_free(w->who);
    mo_free(w);
    mo_conn_dialed(c, k, why);
}

static void on_turn(struct mo_timer *t)
{
    struct turn_wait *w = mo_container_of(t, struct turn_wait, timer);
    const struct mo_config_mcp *s = find_server(w->d, w->server);
    struct mo_link *k = NULL;
    struct mo_err e = {0};
    int turn = 0;

    if (mo_conn_is_closing(w->c)) {
        end_turn_wait(w, NULL, NULL);
        return;
    }
    if (!s) {
        (void)mo_fail(&e, MO_ENOTFOUND, "%s is not configured", w->server);
    } else if (take_turn(w->d, s, &turn) < 0) {
        if (mo_now_ns() / MO_MS < w->until_ms) {
            mo_timer_start(w->d->loop, &w->timer, MO_NPX_TURN_WAIT_MS);
            return;
        }
        (void)mo_fail(&e, MO_ETIMEOUT,
                      "another npx has been installing the same package for "
                      "%lld s (installTimeoutMs)",
                      (long long)s->install_ms / 1000);
    } else {
        (void)open_link(w->d, s, mo_span(w->who, w->who_len), turn, &k, &e);
    }
    end_turn_wait(w, k, k ? NULL : &e);
}

static int wait_for_turn(struct mo_server_link *d,
                         const struct mo_config_mcp *s, struct mo_span who,
                         struct mo_conn *c, struct mo_err *e)
{
    struct turn_wait *w = mo_new(struct turn_wait);

    if (!w)
        return mo_fail(e, MO_ENOMEM, "connection");
    *w = (struct turn_wait){
        .d = d,
        .c = c,
        .until_ms = mo_now_ns() / MO_MS + (uint64_t)s->install_ms,
        .server = mo_strndup(s->name, strlen(s->name)),
        .who = mo_strndup(who.n ? who.p : "", who.n),
        .who_len = who.n,
    };
    if (!w->server || !w->who) {
        mo_free(w->server);
        mo_free(w->who);
        mo_free(w);
        return mo_fail(e, MO_ENOMEM, "connection");
    }
    mo_log_about(mo_loop_log(d->loop), MO_INFO, "upstream",
                 &(struct mo_log_facts){.server = mo_span_cstr(s->name)},
                 "waits: another npx is installing the same package");
    mo_timer_init(&w->timer, on_turn);
    mo_timer_start(d->loop, &w->timer, MO_NPX_TURN_WAIT_MS);
    return 0;
}

int mo_server_link_server(void *ctx, const char *server, struct mo_span who,
                          struct mo_conn *c, struct mo_err *e)
{
    struct mo_server_link *d = ctx;
    const struct mo_config_mcp *s = find_server(d, server);
    struct mo_link *k = NULL;
    int rc = 0, turn = 0;

    if (!s)
        return mo_fail(e, MO_ENOTFOUND, "%s is not configured", server);
    if (mo_boxed_link_is(s))
        return link_box(d, s, c, e);
    if (take_turn(d, s, &turn) == MO_EBUSY)
        return wait_for_turn(d, s, who, c, e);
    /* a session needs only a link of its own, a person also credentials */
    rc = open_link(d, s, who, turn, &k, e);
    if (rc == 0)
        mo_conn_dialed(c, k, NULL);
    return rc;
}

/* --- eras ---------------------------------------------------------------- */

static bool key_of(struct mo_server_link *d, const char *server,
                   struct mo_era_cache_key *out)
{
    const struct mo_config_mcp *s = find_server(d, server);

    /* a box is new each time: no era to remember */
    return s && !mo_boxed_link_is(s) &&
           mo_resolved_server_key(d->cfg, s, out) == 0;
}

struct mo_conn_verdict mo_server_link_verdict(void *ctx, const char *server)
{
    struct mo_conn_verdict v = {.era = MO_ERA_UNKNOWN};
    struct mo_server_link *d = ctx;
    struct mo_era_cache_key key;

    if (key_of(d, server, &key))
        v = mo_era_cache_get(d->cfg->store.dir, &key);
    return v;
}

void mo_server_link_learnt(void *ctx, const char *server,
                           struct mo_conn_verdict v)
{
    struct mo_server_link *d = ctx;
    struct mo_era_cache_key key;

    if (key_of(d, server, &key))
        mo_era_cache_put(d->cfg->store.dir, &key, v);
}

void mo_server_link_noise(void *ctx, const char *server, struct mo_span line)
{
    struct mo_server_link *d = ctx;

    mo_stderr_tail_add(d->stderr_tail, server, MO_SPAN("[not JSON on stdout] "),
                       false);
    mo_stderr_tail_add(d->stderr_tail, server, mo_span_trim(line), false);
    mo_stderr_tail_add(d->stderr_tail, server, MO_SPAN("\n"), false);
}

/* --- open and close ------------------------------------------------------- */

/* Runs the next step of closing. */
static void on_gone(void *ctx)
{
    struct mo_server_link *d = ctx;

    mo_loop_defer(d->loop, &d->later);
}

/* Closes in reverse order: tokens, HTTP client, children. */
static void on_later(struct mo_later *w)
{
    struct mo_server_link *d = mo_container_of(w, struct mo_server_link, later);
    struct mo_gone gone = d->gone;
    struct mo_sign_in *x = mo_list_pop(&d->sign_ins, struct mo_sign_in, node);

    if (x) {
        mo_sign_in_end(x, on_gone, d);
    } else if (d->accounts) {
        mo_accounts_close(mo_take_ptr(&d->accounts), on_gone, d);
    } else if (d->exchange) {
        mo_token_exchange_close(mo_take_ptr(&d->exchange), on_gone, d);
    } else if (d->boxed) {
        mo_boxed_link_close(mo_take_ptr(&d->boxed), on_gone, d);
    } else if (d->http) {
        mo_httpc_close(mo_take_ptr(&d->http), on_gone, d);
    } else if (d->guard) {
        mo_guard_stop(mo_take_ptr(&d->guard), on_gone, d);
    } else {
        mo_stderr_tail_free(d->stderr_tail);
        mo_config_unref(d->cfg);
        mo_free(d->hide);
        mo_free(d);
        mo_gone_fire(gone);
    }
}

int mo_server_link_new(struct mo_loop *l, const struct mo_config *cfg,
                       struct mo_server_link **out, struct mo_err *e)
{
    struct mo_server_link *d = mo_new(struct mo_server_link);

    if (!d)
        return mo_fail(e, MO_ENOMEM, "server link");
    d->stderr_tail = mo_stderr_tail_new(l);
    if (!d->stderr_tail) {
        mo_free(d);
        return mo_fail(e, MO_ENOMEM, "server link");
    }
    d->loop = l;
    d->cfg = mo_config_ref(cfg);
    d->err = -1;
    d->message_max = MESSAGE_MAX;
    mo_list_init(&d->sign_ins);
    mo_later_init(&d->later, on_later);
    *out = d;
    return 0;
}

void mo_server_link_command(struct mo_server_link *d,
                            const struct mo_config_mcp *extra, bool ask,
                            int err)
{
    d->message_max = MO_LINK_LINE_MAX;
    d->extra = extra;
    d->ask = ask;
    d->err = err;
}

void mo_server_link_config(struct mo_server_link *d,
                           const struct mo_config *cfg)
{
    const struct mo_config *old = d->cfg;

    d->cfg = mo_config_ref(cfg);
    mo_config_unref(old);
    if (d->accounts)
        mo_accounts_config(d->accounts, cfg);
    share_accounts(d);
}

const struct mo_config *mo_server_link_now(const struct mo_server_link *d)
{
    return d->cfg;
}

void mo_server_link_approvals(struct mo_server_link *d,
                              struct mo_approvals *approvals)
{
    d->approvals = approvals;
    if (d->boxed)
        mo_boxed_link_approvals(d->boxed, approvals);
}

const struct mo_stderr_tail *mo_server_link_said(const struct mo_server_link *d)
{
    return d->stderr_tail;
}

void mo_server_link_close(struct mo_server_link *d, void (*gone)(void *ctx),
                          void *ctx)
{
    d->gone = (struct mo_gone){gone, ctx};
    on_gone(d);
}
