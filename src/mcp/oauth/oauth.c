/* oauth.c - the state of one server's tokens.
 *
 * Invariants
 *  1. At most one flow; o->flow is set until its done.
 *  2. Tickets in `waiters` wait for the flow; on_later() ends those in
 *     `ready` with o->why (code 0: try again).
 *  3. on_later() frees the object, when it is closing and has no flow and no
 *     listener that is still closing. */
#include "mcp/oauth/oauth.h"

#include "base/mem.h"
#include "mcp/oauth/dpop.h"
#include "mcp/oauth/oauth_addr.h"
#include "mcp/oauth/oauth_back.h"
#include "mcp/oauth/oauth_flow.h"

#define ROOM         "oauth"
#define ARENA_MAX    ((size_t)128 * 1024)
#define HEADER_MAX   (MO_OAUTH_TEXT_MAX + 16)
#define URL_MAX      ((size_t)32 * 1024)
#define LATER_MAX_MS ((uint64_t)24 * 3600 * 1000) /* of a timer */

struct mo_oauth {
    struct mo_auth auth;
    struct mo_oauth_opts o;
    struct mo_arena a; /* texts of the options */
    struct mo_flow *flow;
    bool refreshing; /* the flow is a refresh */
    bool queued;     /* another process refreshes; `turn` checks again */
    int claim;       /* descriptor of the claim while we refresh, or -1 */
    struct mo_timer turn;
    bool barred; /* mute, and a sign-in is needed */
    bool used;   /* a request was sent with the token */
    bool begin;  /* a sign-in follows the end of this flow */
    bool local;  /* the server was seen at a private address */
    struct mo_back *back;
    unsigned backs; /* listeners that are still closing */
    struct mo_list waiters, ready;
    struct mo_err why; /* for `ready` */
    struct mo_buf header, url;
    struct mo_dpop dpop; /* the key of the token in use */
    struct mo_buf proof; /* the last one */
    struct mo_buf asked; /* scopes of the last sign-in and step-ups */
    struct mo_buf told;  /* the last challenge */
    uint64_t serial;
    uint64_t refreshed; /* mo_now_ns() of the last refresh; 0: none */
    unsigned step_ups;
    uint64_t stepped; /* mo_now_ns() of the last step-up */
    struct mo_timer timer;
    struct mo_later later;
    bool closing;
    struct mo_gone gone;
};

/* --- who waits ----------------------------------------------------------- */

/* End all waiting tickets with why, later. */
static void end_waiters(struct mo_oauth *o, const struct mo_err *why)
{
    o->why = why ? *why : (struct mo_err){0};
    mo_list_splice(&o->ready, &o->waiters);
    mo_loop_defer(o->o.loop, &o->later);
}

static void oauth_free(struct mo_oauth *o)
{
    struct mo_buf *secret[] = {&o->header, &o->url, &o->asked, &o->told,
                               &o->proof};

    for (size_t i = 0; i < MO_COUNT(secret); i++)
        mo_buf_wipe(secret[i]);
    mo_timer_stop(o->o.loop, &o->timer);
    mo_timer_stop(o->o.loop, &o->turn);
    mo_later_cancel(&o->later);
    mo_tokens_unclaim(o->o.tokens, &o->claim);
    mo_dpop_fini(&o->dpop);
    mo_arena_fini(&o->a);
    mo_free(o);
}

static void on_later(struct mo_later *d)
{
    struct mo_oauth *o = mo_container_of(d, struct mo_oauth, later);
    struct mo_gone gone = o->gone;
    struct mo_err why = o->why;

    mo_list_drain (w, &o->ready, struct mo_auth_wait, node)
        w->done(w, why.code ? &why : NULL);
    if (!o->closing || o->flow || o->backs)
        return;
    oauth_free(o);
    mo_gone_fire(gone);
}

/* --- the token ----------------------------------------------------------- */

static const struct mo_token *current_token(const struct mo_oauth *o)
{
    return mo_tokens_get(o->o.tokens, NULL, o->o.server);
}

/* Write the header for the token and start the refresh timer. */
static int use_token(struct mo_oauth *o, const struct mo_token *k)
{
    uint64_t now = mo_wall_ms(), ms = 0;

    mo_buf_reset(&o->header);
    mo_timer_stop(o->o.loop, &o->timer);
    o->serial++;
    o->used = false;
    if (!k || !k->access)
        return 0;
    if (mo_dpop_read(&o->dpop, k->dpop, NULL) < 0)
        return 0; /* as without a token */
    mo_buf_puts(&o->header, k->dpop ? "DPoP " : "Bearer ");
    mo_buf_puts(&o->header, k->access);
    if (k->refresh && k->expires_ms) {
        if (k->expires_ms > now + MO_OAUTH_AHEAD_MS)
            ms = k->expires_ms - now - MO_OAUTH_AHEAD_MS;
        else if (k->expires_ms > now) /* at half its life */
            ms = (k->expires_ms - now) / 2;
        mo_timer_start(o->o.loop, &o->timer,
                       ms < LATER_MAX_MS ? ms : LATER_MAX_MS);
    }
    return mo_buf_err(&o->header);
}

static struct mo_span get_header(struct mo_auth *a, uint64_t *serial)
{
    struct mo_oauth *o = mo_container_of(a, struct mo_oauth, auth);

    *serial = o->serial;
    o->used = true;
    return mo_buf_view(&o->header);
}

/* The token in the header; empty: none. */
static struct mo_span token_in_use(const struct mo_oauth *o)
{
    struct mo_span token = mo_buf_view(&o->header);

    (void)mo_span_cut(&token, ' ');
    return token;
}

static struct mo_span get_proof(struct mo_auth *a, const char *method,
                                const char *url)
{
    struct mo_oauth *o = mo_container_of(a, struct mo_oauth, auth);
    const struct mo_dpop_request r = {method, url, token_in_use(o)};
    struct mo_err e;

    mo_buf_reset(&o->proof);
    if (o->dpop.key && r.access.n &&
        mo_dpop_proof(&o->dpop, &r, &o->proof, &e) < 0)
        mo_log_err(mo_loop_log(o->o.loop), MO_WARN, ROOM, &e, "no proof");
    return mo_buf_view(&o->proof);
}

static void take_nonce(struct mo_auth *a, struct mo_span nonce)
{
    mo_dpop_nonce(&mo_container_of(a, struct mo_oauth, auth)->dpop, nonce);
}

/* True if another process has stored a newer token. */
static bool has_newer_token(struct mo_oauth *o)
{
    struct mo_span now = token_in_use(o);
    const struct mo_token *k;

    mo_tokens_sync(o->o.tokens);
    k = current_token(o);
    return k && k->access && !mo_span_is(now, k->access);
}

/* Use the newer token of another process. */
static bool use_newer_token(struct mo_oauth *o)
{
    return has_newer_token(o) && use_token(o, current_token(o)) == 0 &&
           o->header.len;
}

/* --- flows --------------------------------------------------------------- */

static void on_url(void *ctx, const char *url);
static void on_client(void *ctx, const struct mo_token *k);
static void on_done(void *ctx, const struct mo_token *k, const char *asked,
                    const struct mo_err *why);

static struct mo_flow_opts flow_opts(struct mo_oauth *o)
{
    const char *asked = mo_buf_cstr(&o->asked);

    return (struct mo_flow_opts){
        .oauth = &o->o,
        .redirect = o->back ? mo_back_uri(o->back) : o->o.redirect,
        .scope = asked[0] ? asked : NULL,
        .local = o->local,
        .on_url = on_url,
        .on_client = on_client,
        .done = on_done,
        .ctx = o,
    };
}

static int on_query(void *ctx, struct mo_span query)
{
    struct mo_oauth *o = ctx;

    if (!o->flow)
        return MO_EINVAL;
    return mo_flow_redirected(o->flow, query, NULL);
}

static void on_back_gone(void *ctx)
{
    struct mo_oauth *o = ctx;

    o->backs--;
    mo_loop_defer(o->o.loop, &o->later);
}

static void close_back(struct mo_oauth *o)
{
    if (o->back)
        mo_back_close(mo_take_ptr(&o->back), on_back_gone, o);
}

/* Listen on the port of the last sign-in, if it is free. */
static int open_back(struct mo_oauth *o, struct mo_err *e)
{
    const char *want = o->o.back ? o->o.back : MO_BACK_URI;
    const struct mo_token *k = current_token(o);
    int rc = MO_ENOTFOUND;

    if (k && k->redirect && mo_back_same(want, k->redirect))
        rc = mo_back_open(o->o.loop, k->redirect, on_query, o, &o->back, NULL);
    if (rc < 0)
        rc = mo_back_open(o->o.loop, want, on_query, o, &o->back, e);
    if (rc == 0)
        o->backs++;
    return rc;
}

static int fail_sign_in_needed(struct mo_err *e)
{
    return mo_fail(e, MO_EPOLICY, "the server needs a sign-in by a person");
}

static int begin_sign_in(struct mo_oauth *o, struct mo_err *e)
{
    struct mo_oauth_challenge c;
    struct mo_flow_opts fo;
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    int rc = 0;

    if (!o->o.redirect && !o->back && !o->o.machine.grant)
        rc = open_back(o, e);
    if (rc < 0)
        return rc;
    fo = flow_opts(o);
    (void)mo_oauth_challenge(&a, mo_buf_view(&o->told), &c);
    rc = mo_flow_start(&fo, &c, &o->flow, e);
    if (rc < 0)
        close_back(o);
    o->refreshing = false;
    return rc;
}

static int start_sign_in(struct mo_oauth *o, struct mo_err *e)
{
    if (!o->o.mute || o->o.machine.grant)
        return begin_sign_in(o, e);
    o->barred = true;
    return fail_sign_in_needed(e);
}

static int start_refresh(struct mo_oauth *o, struct mo_err *e)
{
    struct mo_flow_opts fo = flow_opts(o);
    const struct mo_token *k;
    int rc = mo_tokens_claim(o->o.tokens, &o->claim);

    if (rc == MO_EBUSY || has_newer_token(o)) { /* by another process */
        mo_tokens_unclaim(o->o.tokens, &o->claim);
        o->queued = true;
        mo_timer_start(o->o.loop, &o->turn, MO_OAUTH_TURN_MS);
        return 0;
    }
    k = current_token(o);
    if (!k || !k->refresh)
        rc = mo_fail(e, MO_EPOLICY, "there is nothing to refresh");
    else
        rc = mo_flow_refresh(&fo, k, &o->flow, e);
    if (rc < 0)
        mo_tokens_unclaim(o->o.tokens, &o->claim);
    o->refreshing = rc == 0;
    return rc;
}

static void end_flow(struct mo_oauth *o, const struct mo_err *why)
{
    end_waiters(o, why);
    if (o->o.on_end && !o->closing)
        o->o.on_end(o->o.ctx, why);
}

static void on_turn(struct mo_timer *t)
{
    struct mo_oauth *o = mo_container_of(t, struct mo_oauth, turn);
    struct mo_err e;

    o->queued = false;
    if (use_newer_token(o))
        end_flow(o, NULL);
    else if (start_refresh(o, &e) < 0)
        end_flow(o, &e);
}

static void on_timer(struct mo_timer *t)
{
    struct mo_oauth *o = mo_container_of(t, struct mo_oauth, timer);
    const struct mo_token *k = current_token(o);
    struct mo_err e;

    if (o->flow || o->queued || o->closing || !k)
        return;
    if (k->expires_ms > mo_wall_ms() + LATER_MAX_MS) { /* not yet */
        mo_timer_start(o->o.loop, &o->timer, LATER_MAX_MS);
        return;
    }
    if (o->o.lazy && !o->used)
        return; /* a refusal will lead to the refresh */
    if (!use_newer_token(o) && start_refresh(o, &e) < 0)
        mo_log_err(mo_loop_log(o->o.loop), MO_DEBUG, ROOM, &e, "no refresh");
}

static void on_url(void *ctx, const char *url)
{
    struct mo_oauth *o = ctx;
    struct mo_err e;

    mo_buf_reset(&o->url);
    if (mo_buf_put(&o->url, url, strlen(url) + 1) < 0) {
        mo_buf_reset(&o->url);
        mo_flow_cancel(o->flow); /* nobody would see the URL */
        return;
    }
    if (o->o.on_sign_in)
        o->o.on_sign_in(o->o.ctx, url);
    if (o->o.wait)
        return;
    (void)fail_sign_in_needed(&e);
    end_waiters(o, &e);
}

/* Save the client at once, unless there are tokens of an older client: those
 * are replaced when there are new ones. */
static void on_client(void *ctx, const struct mo_token *k)
{
    struct mo_oauth *o = ctx;
    struct mo_tokens *to = o->o.clients ? o->o.clients : o->o.tokens;
    const struct mo_token *old =
        k ? mo_tokens_get(to, k->issuer, k->server) : NULL;
    struct mo_err e;
    int rc = 0;

    if (!k)
        rc = mo_tokens_drop(to, NULL, o->o.server, &e);
    else if (!old || (!old->access && !old->refresh))
        rc = mo_tokens_put(to, k, &e);
    if (rc < 0)
        mo_log_err(mo_loop_log(o->o.loop), MO_WARN, ROOM, &e,
                   "registration is not saved");
}

static int keep_token(struct mo_oauth *o, const struct mo_token *k,
                      const char *asked, struct mo_err *e)
{
    int rc;

    if (o->refreshing || o->o.machine.grant)
        o->refreshed = mo_now_ns();
    o->barred = false;
    mo_buf_set(&o->asked, mo_span_cstr(asked));
    rc = mo_tokens_put(o->o.tokens, k, e);
    if (rc == MO_EIO) {
        mo_log_err(mo_loop_log(o->o.loop), MO_WARN, ROOM, e,
                   "tokens are not saved");
        rc = 0;
    }
    if (rc == 0)
        rc = use_token(o, k);
    return rc < 0 ? mo_fail(e, rc, "token") : 0;
}

static void on_done(void *ctx, const struct mo_token *k, const char *asked,
                    const struct mo_err *why)
{
    struct mo_oauth *o = ctx;
    bool refused = why && why->code == MO_EPOLICY && o->refreshing;
    struct mo_err e;

    o->flow = NULL;
    mo_buf_reset(&o->url);
    close_back(o);
    if (!why && keep_token(o, k, asked, &e) < 0)
        why = &e;
    mo_tokens_unclaim(o->o.tokens, &o->claim);
    if (why)
        mo_log_err(mo_loop_log(o->o.loop), MO_INFO, ROOM, why, "no token");
    if (refused && use_newer_token(o)) { /* another process was faster */
        refused = false;
        why = NULL;
    }
    if (o->begin && !o->closing) {
        o->begin = false;
        if (begin_sign_in(o, &e) == 0)
            return;
        why = &e;
    }
    if (refused && !o->closing && !mo_list_empty(&o->waiters)) {
        if (start_sign_in(o, &e) == 0)
            return;
        why = &e;
    }
    end_flow(o, why);
}

/* --- refusals ------------------------------------------------------------ */

/* Handle a 403: request more scopes if that may help. */
static int step_up(struct mo_oauth *o, struct mo_span challenge,
                   struct mo_err *e)
{
    struct mo_oauth_challenge c;
    const char *all = NULL;
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    int rc;

    if (mo_now_ns() - o->stepped > MO_OAUTH_STEP_MS * MO_MS)
        o->step_ups = 0;
    (void)mo_oauth_challenge(&a, challenge, &c);
    if (!c.bearer || !c.error || strcmp(c.error, "insufficient_scope") != 0)
        rc = mo_fail(e, MO_EPOLICY, "the server forbids the request");
    else if (!c.scope || mo_oauth_scope_covers(mo_buf_cstr(&o->asked), c.scope))
        rc = mo_fail(e, MO_EPOLICY, "the granted scopes are not enough");
    else if (o->step_ups >= MO_OAUTH_STEP_UPS)
        rc =
            mo_fail(e, MO_EPOLICY, "the server asks for more scopes each time");
    else
        rc = mo_oauth_scope_union(&a, mo_buf_cstr(&o->asked), c.scope, &all);
    if (rc == 0) {
        o->step_ups++;
        o->stepped = mo_now_ns();
        rc = mo_buf_set(&o->asked, mo_span_cstr(all));
    }
    return rc;
}

static bool may_refresh(const struct mo_oauth *o)
{
    const struct mo_token *k = current_token(o);

    if (!k || !k->refresh ||
        (o->o.issuer && !mo_oauth_same_issuer(o->o.issuer, k->issuer)))
        return false;
    return !o->refreshed ||
           mo_now_ns() - o->refreshed > MO_OAUTH_AGAIN_MS * MO_MS;
}

/* No person is there who would stop asking. */
static bool is_refused_at_once(const struct mo_oauth *o)
{
    const struct mo_token *k = current_token(o);

    return o->o.machine.grant && o->refreshed &&
           mo_now_ns() - o->refreshed < MO_OAUTH_AGAIN_MS * MO_MS &&
           !(k && k->expires_ms && k->expires_ms <= mo_wall_ms());
}

static int start_flow(struct mo_oauth *o, int status, struct mo_span challenge,
                      struct mo_err *e)
{
    int rc = status == 403 ? step_up(o, challenge, e) : 0;

    if (rc < 0)
        return rc;
    if (mo_buf_set(&o->told, challenge) < 0)
        return mo_fail(e, mo_buf_err(&o->told), "challenge");
    if (status == 401 && may_refresh(o))
        return start_refresh(o, e);
    if (status == 401 && is_refused_at_once(o))
        return mo_fail(e, MO_EPOLICY, "the server refuses a new token");
    return start_sign_in(o, e);
}

/* True if the server wants its nonce in the proof, and we have it now. */
static bool wants_nonce(const struct mo_oauth *o, int status,
                        struct mo_span challenge)
{
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    struct mo_oauth_challenge c;

    if (!o->dpop.key || !o->dpop.nonce[0] || status != 401)
        return false;
    (void)mo_oauth_challenge(&a, challenge, &c);
    return c.nonce;
}

static int on_refused(struct mo_auth *a, struct mo_auth_wait *w, int status,
                      struct mo_span challenge, struct mo_err *e)
{
    struct mo_oauth *o = mo_container_of(a, struct mo_oauth, auth);
    bool idle = !o->flow && !o->queued;
    bool newer = !o->flow && w->serial != o->serial && o->header.len;
    int rc = 0;

    if (o->closing)
        return mo_fail(e, MO_ECLOSED, "closed");
    if (o->url.len && !o->o.wait)
        return fail_sign_in_needed(e);
    o->local = o->local || w->local;
    if (!newer && wants_nonce(o, status, challenge)) {
        if (w->nonced)
            return mo_fail(e, MO_EPOLICY, "the server refuses its own nonce");
        w->nonced = true;
        newer = idle; /* a flow that is under way ends first */
    }
    if (!newer && idle && status == 401)
        newer = use_newer_token(o);
    if (!newer && idle)
        rc = start_flow(o, status, challenge, e);
    if (rc == 0)
        mo_list_push(&o->waiters, &w->node);
    if (newer) /* there is a newer token already */
        end_waiters(o, NULL);
    return rc;
}

static const struct mo_auth_ops auth_ops = {
    .header = get_header,
    .refused = on_refused,
    .proof = get_proof,
    .nonce = take_nonce,
};

/* --- making one ---------------------------------------------------------- */

static int copy_texts(struct mo_oauth *o)
{
    const char **texts[] = {
        &o->o.server,
        &o->o.client_name,
        &o->o.client_id,
        &o->o.client_secret,
        &o->o.client_url,
        &o->o.scope,
        &o->o.redirect,
        &o->o.back,
        &o->o.issuer,
        &o->o.machine.private_key,
        &o->o.machine.assertion,
        &o->o.machine.assertion_file,
        &o->o.machine.idp_token,
        &o->o.machine.idp_client,
        &o->o.machine.idp_secret,
    };

    int rc = 0;

    for (size_t i = 0; i < MO_COUNT(texts) && rc == 0; i++)
        rc = mo_oauth_copy(&o->a, *texts[i], texts[i]);
    return rc;
}

int mo_oauth_new(const struct mo_oauth_opts *opts, struct mo_oauth **out,
                 struct mo_err *e)
{
    struct mo_oauth *o = mo_new(struct mo_oauth);
    const struct mo_token *k;
    int rc;

    if (!o)
        return mo_fail(e, MO_ENOMEM, "authorization");
    o->auth.ops = &auth_ops;
    o->o = *opts;
    if (!o->o.client_name)
        o->o.client_name = "MCP Orchestrator";
    mo_arena_init(&o->a, ARENA_MAX);
    mo_buf_init(&o->header, HEADER_MAX);
    mo_buf_init(&o->url, URL_MAX);
    mo_buf_init(&o->proof, MO_DPOP_PROOF_MAX);
    mo_buf_init(&o->asked, MO_OAUTH_TEXT_MAX);
    mo_buf_init(&o->told, MO_OAUTH_TEXT_MAX);
    mo_list_init(&o->waiters);
    mo_list_init(&o->ready);
    mo_timer_init(&o->timer, on_timer);
    mo_timer_init(&o->turn, on_turn);
    o->claim = -1;
    mo_later_init(&o->later, on_later);
    rc = copy_texts(o);
    k = rc == 0 ? current_token(o) : NULL;
    if (rc == 0)
        rc = mo_buf_puts(&o->asked, k && k->scope ? k->scope
                                    : opts->scope ? opts->scope
                                                  : "");
    if (rc == 0)
        rc = use_token(o, k);
    if (rc < 0) {
        oauth_free(o);
        return mo_fail(e, rc, "authorization");
    }
    *out = o;
    return 0;
}

void mo_oauth_close(struct mo_oauth *o, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(o->closing);
    o->closing = true;
    o->gone = (struct mo_gone){gone, ctx};
    mo_timer_stop(o->o.loop, &o->timer);
    mo_timer_stop(o->o.loop, &o->turn);
    end_waiters(o, mo_error(MO_ECANCELED, "closed"));
    if (o->flow)
        mo_flow_cancel(o->flow);
}

struct mo_auth *mo_oauth_auth(struct mo_oauth *o)
{
    return &o->auth;
}

enum mo_oauth_state mo_oauth_state(const struct mo_oauth *o)
{
    if (o->url.len)
        return MO_OAUTH_IS_SIGN_IN;
    if (o->flow || o->queued)
        return MO_OAUTH_IS_WORKING;
    if (o->barred)
        return MO_OAUTH_IS_BARRED;
    return o->header.len ? MO_OAUTH_IS_READY : MO_OAUTH_IS_NONE;
}

const char *mo_oauth_url(const struct mo_oauth *o)
{
    return o->url.len ? o->url.p : NULL;
}

int mo_oauth_sign_in(struct mo_oauth *o, struct mo_err *e)
{
    if (o->closing || o->queued || (o->flow && o->refreshing))
        return mo_fail(e, MO_EBUSY, "a token is being refreshed; try again");
    if (!o->flow)
        return begin_sign_in(o, e);
    o->begin = true;
    mo_buf_reset(&o->url);
    mo_flow_cancel(o->flow);
    return 0;
}

void mo_oauth_sync(struct mo_oauth *o)
{
    const struct mo_token *k;

    if (o->flow || o->queued || o->closing)
        return;
    mo_tokens_sync(o->o.tokens);
    k = current_token(o);
    if (!k || !k->access)
        (void)use_token(o, NULL);
    else if (has_newer_token(o))
        (void)use_token(o, k);
}

int mo_oauth_redirected(struct mo_oauth *o, struct mo_span url,
                        struct mo_err *e)
{
    ptrdiff_t at = mo_span_find(url, '?');
    struct mo_span query = at < 0 ? url : mo_span_skip(url, (size_t)at + 1);

    if (!o->flow)
        return mo_fail(e, MO_EINVAL, "no sign-in is pending");
    return mo_flow_redirected(o->flow, mo_span_cut(&query, '#'), e);
}
