#include "connect/sign_in.h"

#include <limits.h>
#include <stdio.h>
#include <strings.h>

#include "base/file.h"
#include "connect/machine_grant.h"
#include "secrets/resolve.h"

#define TEXT_MAX  ((size_t)32 * 1024) /* bytes of a client id or secret */
#define ARENA_MAX ((size_t)256 * 1024)
#define FOREVER_MS                                                             \
    ((uint64_t)24 * 3600 * 1000) /* no limit here: flows have their own */

bool mo_sign_in_wanted(const struct mo_config_mcp *s)
{
    for (size_t i = 0; i < s->headers.n; i++) {
        if (strcasecmp(s->headers.v[i].name, "authorization") == 0)
            return false;
    }
    return s->oauth.enabled;
}

/* --- callbacks of a flow -------------------------------------------------- */

/* The address has passed mo_oauth_url_ok() and is plain ASCII. */
static void on_url(void *ctx, const char *url)
{
    struct mo_sign_in *s = ctx;

    s->asked = true;
    if (s->o.page) {
        s->o.told(s->o.ctx, url, NULL);
        return;
    }
    (void)dprintf(s->o.err,
                  "%s wants you to sign in. Open this address in a browser on "
                  "this machine:\n\n  %s\n\nWaiting for %llu seconds.\n",
                  s->o.server->name, url, (unsigned long long)(s->ms / 1000));
}

static void on_end(void *ctx, const struct mo_err *why)
{
    struct mo_sign_in *s = ctx;

    s->ended = true;
    s->answered = s->asked; /* maybe before mo_sign_in_wait() is called */
    s->why = why ? *why : (struct mo_err){0};
    if (s->o.page)
        s->asked = false; /* nobody waits for it here */
    if (s->o.told)
        s->o.told(s->o.ctx, NULL, why);
}

static bool has_ended(void *ctx)
{
    return ((struct mo_sign_in *)ctx)->ended;
}

static bool under_way(const struct mo_sign_in *s)
{
    enum mo_oauth_state st = mo_oauth_state(s->oauth);

    return st == MO_OAUTH_IS_WORKING || st == MO_OAUTH_IS_SIGN_IN;
}

/* Tells the person why the next run asks again. */
static void warn_unsaved(struct mo_sign_in *s)
{
    if (!mo_tokens_unsaved(s->tokens) || s->warned)
        return;
    s->warned = true;
    (void)dprintf(s->o.err,
                  "warning: the sign-in cannot be kept: %s is not writable\n",
                  s->o.cfg->store.dir);
}

int mo_sign_in_wait(struct mo_sign_in *s, struct mo_err *e)
{
    if (mo_oauth_state(s->oauth) == MO_OAUTH_IS_BARRED)
        return mo_fail(e, MO_EPOLICY, "a person must sign in at %s",
                       s->o.server->name);
    if (!s->answered) {
        if (!under_way(s))
            return MO_ENOTFOUND;
        s->ended = false;
        (void)mo_loop_until(s->o.loop, has_ended, s, FOREVER_MS);
    }
    s->answered = false;
    s->asked = s->asked && s->why.code;
    if (!s->why.code) {
        warn_unsaved(s);
        return 0;
    }
    *e = s->why;
    return mo_wrap(e, "sign-in at %s", s->o.server->name);
}

/* --- open and close ------------------------------------------------------- */

static int resolve_ref(struct mo_sign_in *s, const struct mo_config *cfg,
                       const char *text, const char **out, struct mo_err *e)
{
    mo_autowipe struct mo_buf b = {.max = TEXT_MAX};

    *out = NULL;
    if (!text)
        return 0;
    if (mo_reference_resolve(cfg, text, &b, e) < 0)
        return e->code;
    *out = mo_arena_strndup(&s->a, b.len ? b.p : "", b.len);
    return *out && !mo_buf_err(&b)
               ? 0
               : mo_fail(e, MO_ENOMEM, "client of a sign-in");
}

static int open_sealed(struct mo_sign_in *s, struct mo_err *e)
{
    const struct mo_sign_in_opts *o = &s->o;
    struct mo_span server = mo_span_cstr(o->server->name);
    int rc = mo_account_file_init(&s->file, o->cfg, o->vault, server,
                                  mo_span_cstr(o->person), e);

    if (rc == 0)
        rc = mo_account_client_init(&s->client_file, o->cfg, o->vault, server,
                                    e);
    if (rc == 0 && o->shared) {
        mo_account_file_share(&s->file, o->shared);
        mo_account_file_share(&s->client_file, o->shared);
    }
    if (rc == 0)
        rc = mo_account_file_open(&s->file, &s->tokens, e);
    return rc < 0 ? rc : mo_account_file_open(&s->client_file, &s->clients, e);
}

static int open_tokens(struct mo_sign_in *s, const char *dir, struct mo_err *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/" MO_SIGN_IN_FILE, dir);

    if (n < 0 || (size_t)n >= sizeof(path))
        return mo_fail(e, MO_ETOOBIG, "the path of the token file");
    (void)mo_file_mkdir(dir, NULL); /* if this fails, saving reports it */
    return mo_tokens_open(path, &s->tokens, e);
}

static int open_oauth(struct mo_sign_in *s, const struct mo_sign_in_opts *o,
                      struct mo_err *e)
{
    const struct mo_config_oauth *c = &o->server->oauth;
    struct mo_oauth_opts oo = {
        .loop = o->loop,
        .http = o->http,
        .server = s->o.url,
        .client_url = c->client_url,
        .issuer = c->issuer,
        .scope = c->scope,
        .redirect = s->o.page,
        .back = c->redirect,
        .mute = !o->ask,
        .lazy = s->o.person != NULL,
        .sign_in_ms = s->ms,
        .on_sign_in = on_url,
        .on_end = on_end,
        .ctx = s,
    };
    int rc =
        s->o.person ? open_sealed(s, e) : open_tokens(s, o->cfg->store.dir, e);

    if (rc == 0)
        rc = resolve_ref(s, o->cfg, c->client_id, &oo.client_id, e);
    if (rc == 0)
        rc = resolve_ref(s, o->cfg, c->client_secret, &oo.client_secret, e);
    if (rc == 0)
        rc = mo_machine_grant(o->cfg, c, &s->a, &oo.machine, e);
    oo.tokens = s->tokens;
    oo.clients = s->clients;
    return rc < 0 ? rc : mo_oauth_new(&oo, &s->oauth, e);
}

static void sign_in_free(struct mo_sign_in *s)
{
    mo_tokens_close(s->tokens);
    mo_tokens_close(s->clients);
    mo_account_file_fini(&s->file);
    mo_account_file_fini(&s->client_file);
    mo_config_unref(s->o.cfg);
    mo_arena_fini(&s->a);
    mo_free(s);
}

static int copy_texts(struct mo_sign_in *s)
{
    const char **texts[] = {&s->o.url, &s->o.person, &s->o.page};

    for (size_t i = 0; i < MO_COUNT(texts); i++) {
        if (!*texts[i])
            continue;
        *texts[i] = mo_arena_strndup(&s->a, *texts[i], strlen(*texts[i]));
        if (!*texts[i])
            return MO_ENOMEM;
    }
    return 0;
}

int mo_sign_in_new(const struct mo_sign_in_opts *o, struct mo_sign_in **out,
                   struct mo_err *e)
{
    struct mo_sign_in *s = mo_new(struct mo_sign_in);
    int rc;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "sign-in");
    mo_arena_init(&s->a, ARENA_MAX);
    s->o = *o;
    s->o.cfg = mo_config_ref(o->cfg);
    s->ms = (uint64_t)o->server->oauth.sign_in_seconds * 1000;
    rc = copy_texts(s) == 0 ? open_oauth(s, o, e)
                            : mo_fail(e, MO_ENOMEM, "sign-in");
    if (rc < 0)
        sign_in_free(s);
    else
        *out = s;
    return rc;
}

static void on_over(void *ctx)
{
    struct mo_sign_in *s = ctx;
    struct mo_gone gone = s->gone;

    sign_in_free(s);
    mo_gone_fire(gone);
}

void mo_sign_in_end(struct mo_sign_in *s, void (*gone)(void *ctx), void *ctx)
{
    s->gone = (struct mo_gone){gone, ctx};
    mo_oauth_close(s->oauth, on_over, s);
}

/* --- accessors ------------------------------------------------------------ */

struct mo_oauth *mo_sign_in_oauth(const struct mo_sign_in *s)
{
    return s->oauth;
}

struct mo_auth *mo_sign_in_auth(struct mo_sign_in *s)
{
    return mo_oauth_auth(s->oauth);
}

enum mo_sign_in_state mo_sign_in_state(const struct mo_sign_in *s)
{
    enum mo_oauth_state st = mo_oauth_state(s->oauth);

    if (st == MO_OAUTH_IS_BARRED || s->asked)
        return MO_SIGN_IN_NEEDED;
    return st == MO_OAUTH_IS_READY ? MO_SIGN_IN_READY : MO_SIGN_IN_NONE;
}

const struct mo_token *mo_sign_in_token(const struct mo_sign_in *s)
{
    return mo_sign_in_state(s) == MO_SIGN_IN_READY
               ? mo_tokens_get(s->tokens, NULL, s->o.url)
               : NULL;
}
