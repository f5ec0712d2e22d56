#include "people/exchange.h"

#include "base/clock.h"
#include "mcp/oauth/oauth_req.h"
#include "secrets/resolve.h"

#define ARENA_MAX   ((size_t)512 * 1024)
#define TEXT_MAX    ((size_t)16 * 1024)
#define SUBJECT_MAX ((size_t)1024)

struct mo_exchange {
    struct mo_exchange_opts o; /* its texts are in `mem` */
    struct mo_arena mem;
    struct mo_oauth_ask ask;
    struct mo_provider_wait wait;
    const char *id_token, *access, *next_refresh; /* from the token endpoint */
    const char *found;                            /* the subject */
    bool is_userinfo, is_waiting, was_read, is_cancelled;
};

static void free_exchange(struct mo_exchange *x)
{
    mo_oauth_ask_fini(&x->ask);
    mo_arena_fini(&x->mem);
    mo_free(x);
}

static void end(struct mo_exchange *x, const struct mo_exchanged *got,
                const struct mo_err *why)
{
    if (!x->is_cancelled)
        x->o.done(x->o.ctx, got, why);
    free_exchange(x);
}

/* The provider and its configuration now: a reload may have replaced them. */
static struct mo_provider *provider_of(const struct mo_exchange *x,
                                       const struct mo_config_provider **c,
                                       struct mo_err *e)
{
    struct mo_provider *p =
        mo_people_provider(x->o.people, mo_span_cstr(x->o.provider), c);

    if (!p)
        (void)mo_fail(e, MO_EPOLICY, "there is no such provider any more");
    return p;
}

static void wait_for_provider(struct mo_exchange *x, struct mo_provider *p)
{
    x->is_waiting = true;
    x->was_read = true;
    mo_provider_read(p, &x->wait);
}

/* --- claims -------------------------------------------------------------- */

static void put_members(struct mo_jw *w, struct mo_json object)
{
    mo_json_each (it, object) {
        mo_jw_key_raw(w, it.key);
        mo_jw_raw(w, mo_json_text(it.val));
    }
}

/* Both in one object; those of the ID token count. */
static int join_claims(struct mo_exchange *x, struct mo_json id,
                       struct mo_json info, struct mo_json *out)
{
    mo_autobuf struct mo_buf b = {.max = MO_OAUTH_DOC_MAX};
    struct mo_jw w = mo_jw_object(&b);
    struct mo_json_doc doc;
    struct mo_span text;

    put_members(&w, info);
    put_members(&w, id);
    mo_jw_end(&w);
    if (mo_buf_err(&b) || mo_arena_span(&x->mem, mo_buf_view(&b), &text) < 0 ||
        mo_json_parse(text, 0, &doc, NULL) < 0)
        return MO_EPROTO;
    *out = doc.root;
    return 0;
}

static int take_subject(struct mo_exchange *x, struct mo_json claims,
                        struct mo_err *e)
{
    struct mo_json sub = mo_json_get(claims, "sub");
    struct mo_span text;

    if (!mo_json_is(sub, MO_JSON_STRING) || sub.n > SUBJECT_MAX ||
        mo_json_str(sub, &x->mem, &text) < 0 || text.n == 0 ||
        mo_oauth_keep(&x->mem, text, &x->found) < 0)
        return mo_fail(e, MO_EPOLICY, "the provider names no subject");
    if (x->o.subject && strcmp(x->o.subject, x->found) != 0)
        return mo_fail(e, MO_EPOLICY, "the provider names somebody else");
    return 0;
}

static int check_id_token(struct mo_exchange *x, struct mo_provider *p,
                          const struct mo_config_provider *c,
                          const char *client, struct mo_json *claims,
                          struct mo_err *e)
{
    const struct mo_jwt_want want = {
        .issuer = c->issuer,
        .audiences = &client,
        .naudiences = 1,
        .now_s = mo_wall_ms() / 1000,
    };
    struct mo_json azp, nonce;
    struct mo_jwt t;
    uint64_t ends;
    int rc = mo_jwt_parse(mo_span_cstr(x->id_token), &x->mem, &t, e);

    if (rc == 0)
        rc = mo_jwt_check(&t, &want, &ends, e);
    if (rc == 0)
        rc = mo_provider_verify(p, &t, e);
    if (rc < 0)
        return rc;
    azp = mo_json_get(t.claims, "azp");
    nonce = mo_json_get(t.claims, "nonce");
    if (azp.p ? !mo_json_str_eq(azp, mo_span_cstr(client))
              : mo_json_len(mo_json_get(t.claims, "aud")) > 1)
        return mo_fail(e, MO_EPOLICY, "the ID token is for another client");
    if (x->o.nonce && !mo_json_str_eq(nonce, mo_span_cstr(x->o.nonce)))
        return mo_fail(e, MO_EPOLICY, "the ID token is of another sign-in");
    *claims = t.claims;
    return take_subject(x, t.claims, e);
}

static void ask_userinfo(struct mo_exchange *x, const char *url)
{
    mo_autowipe struct mo_buf header = {.max = TEXT_MAX};
    struct mo_err e;

    (void)mo_buf_printf(&header, "Bearer %s", x->access);
    x->is_userinfo = true;
    if (mo_buf_err(&header) ||
        mo_oauth_ask_with(&x->ask, url, mo_buf_view(&header), &e) < 0)
        end(x, NULL, mo_error(MO_EPROTO, "userinfo cannot be asked"));
}

/* Does the ID token lack what the userinfo endpoint may know? */
static bool lacks_claims(const struct mo_config_provider *c, struct mo_json id)
{
    return !mo_json_get(id, c->name_claim).p ||
           !mo_json_get(id, c->groups_claim).p;
}

static int check_info(struct mo_exchange *x, struct mo_json info,
                      struct mo_err *e)
{
    if (x->id_token &&
        !mo_json_str_eq(mo_json_get(info, "sub"), mo_span_cstr(x->found)))
        return mo_fail(e, MO_EPOLICY, "userinfo is about somebody else");
    return take_subject(x, info, e);
}

static void end_with(struct mo_exchange *x, const struct mo_config_provider *c,
                     struct mo_json claims)
{
    struct mo_exchanged got = {
        .claims = claims,
        .subject = x->found,
        .refresh = x->next_refresh ? x->next_refresh : x->o.refresh,
    };
    struct mo_err e;
    int rc = mo_person_of_claims(mo_people_config(x->o.people), c, claims,
                                 &got.who, &e);

    got.who.ends_s = mo_wall_ms() / 1000 +
                     (uint64_t)mo_people_config(x->o.people)->people.renew_s;
    end(x, rc == 0 ? &got : NULL, rc == 0 ? NULL : &e);
}

/* Goes on when all claims are there. info: from the userinfo endpoint. */
static void judge(struct mo_exchange *x, struct mo_json info)
{
    mo_autobuf struct mo_buf client = {.max = TEXT_MAX};
    const struct mo_config *config = mo_people_config(x->o.people);
    const struct mo_config_provider *c = NULL;
    const struct mo_oauth_server *server;
    struct mo_json id = {NULL, 0}, all = {NULL, 0};
    struct mo_err e;
    struct mo_provider *p = provider_of(x, &c, &e);
    int rc = p ? mo_reference_resolve(config, c->client_id, &client, &e)
               : MO_EPOLICY;

    if (rc == 0 && x->id_token)
        rc = check_id_token(x, p, c, mo_buf_cstr(&client), &id, &e);
    if (rc == MO_EUNAVAIL && !x->was_read) {
        wait_for_provider(x, p);
        return;
    }
    server = p ? mo_provider_server(p) : NULL;
    if (rc == 0 && !info.p && server && server->userinfo &&
        lacks_claims(c, id)) {
        ask_userinfo(x, server->userinfo);
        return;
    }
    if (rc == 0 && info.p)
        rc = check_info(x, info, &e);
    if (rc == 0 && join_claims(x, id, info, &all) < 0)
        rc = mo_fail(&e, MO_EPROTO, "the claims are malformed");
    if (rc < 0)
        end(x, NULL, &e);
    else
        end_with(x, c, all);
}

/* --- the token endpoint -------------------------------------------------- */

static const char *keep_text(struct mo_exchange *x, struct mo_json root,
                             const char *key)
{
    struct mo_json v = mo_json_get(root, key);
    const char *text = NULL;
    struct mo_span s;

    if (mo_json_is(v, MO_JSON_STRING) && v.n <= TEXT_MAX &&
        mo_json_str(v, &x->mem, &s) == 0 && s.n > 0 &&
        mo_span_between(s, '!', '~'))
        (void)mo_oauth_keep(&x->mem, s, &text);
    return text;
}

static void on_tokens(struct mo_exchange *x)
{
    struct mo_json_doc doc;

    if (x->ask.status >= 500) {
        end(x, NULL,
            mo_error(MO_EUNAVAIL, "token endpoint: HTTP status %d",
                     x->ask.status));
        return;
    }
    if (x->ask.status != 200) {
        end(x, NULL,
            mo_error(MO_EPOLICY, "the provider refused: %.80s",
                     mo_oauth_error(&x->mem, mo_buf_view(&x->ask.body))));
        return;
    }
    if (mo_json_parse(mo_buf_view(&x->ask.body), 0, &doc, NULL) < 0) {
        end(x, NULL, mo_error(MO_EPROTO, "the answer is not JSON"));
        return;
    }
    x->id_token = keep_text(x, doc.root, "id_token");
    x->access = keep_text(x, doc.root, "access_token");
    x->next_refresh = keep_text(x, doc.root, "refresh_token");
    if (!x->access || (!x->id_token && !x->o.refresh))
        end(x, NULL, mo_error(MO_EPROTO, "the answer has no ID token"));
    else
        judge(x, (struct mo_json){NULL, 0});
}

static void on_info(struct mo_exchange *x)
{
    struct mo_json_doc doc;

    if (x->ask.status != 200)
        end(x, NULL,
            mo_error(MO_EPOLICY, "userinfo: HTTP status %d", x->ask.status));
    else if (mo_json_parse(mo_buf_view(&x->ask.body), 0, &doc, NULL) < 0 ||
             !mo_json_is(doc.root, MO_JSON_OBJECT))
        end(x, NULL, mo_error(MO_EPROTO, "userinfo is not a JSON object"));
    else
        judge(x, doc.root);
}

static void on_answer(struct mo_oauth_ask *q, const struct mo_err *why)
{
    struct mo_exchange *x = mo_container_of(q, struct mo_exchange, ask);

    if (x->is_cancelled)
        end(x, NULL, NULL);
    else if (why)
        end(x, NULL, mo_error(MO_EUNAVAIL, "%s", why->msg));
    else if (x->is_userinfo)
        on_info(x);
    else
        on_tokens(x);
}

static int put_form(struct mo_exchange *x, const struct mo_oauth_client *c,
                    struct mo_buf *body)
{
    const struct mo_token old = {.refresh = x->o.refresh};
    struct mo_oauth_try t = {.redirect = x->o.redirect};

    if (x->o.refresh)
        return mo_oauth_refresh_body(body, c, &old);
    memcpy(t.verifier, x->o.verifier, sizeof(t.verifier));
    return mo_oauth_code_body(body, c, &t, x->o.code);
}

static int ask_tokens(struct mo_exchange *x, struct mo_err *e)
{
    mo_autowipe struct mo_buf id = {.max = TEXT_MAX},
                              secret = {.max = TEXT_MAX},
                              body = {.max = 8 * TEXT_MAX},
                              basic = {.max = 8 * TEXT_MAX};
    const struct mo_config *config = mo_people_config(x->o.people);
    const struct mo_config_provider *c = NULL;
    struct mo_provider *p = provider_of(x, &c, e);
    const struct mo_oauth_server *s = p ? mo_provider_server(p) : NULL;
    struct mo_oauth_client client = {.id = NULL};
    int rc = p ? 0 : MO_EPOLICY;

    if (rc == 0 && !s)
        return mo_fail(e, MO_EUNAVAIL, "the provider does not answer");
    if (rc == 0)
        rc = mo_reference_resolve(config, c->client_id, &id, e);
    if (rc == 0 && c->client_secret)
        rc = mo_reference_resolve(config, c->client_secret, &secret, e);
    if (rc < 0)
        return rc;
    client.id = mo_buf_cstr(&id);
    client.secret = secret.len ? mo_buf_cstr(&secret) : NULL;
    client.method = mo_oauth_pick(s->auth, client.secret);
    rc = put_form(x, &client, &body);
    if (rc == 0 && client.method == MO_OAUTH_BASIC)
        rc = mo_oauth_basic(&basic, &client);
    if (rc < 0)
        return mo_fail(e, rc, "the request is too long");
    return mo_oauth_ask(&x->ask, s->token, "application/x-www-form-urlencoded",
                        mo_buf_view(&body), mo_buf_view(&basic), e);
}

/* --- begin and end ------------------------------------------------------- */

static void on_read(struct mo_provider_wait *w, const struct mo_err *why)
{
    struct mo_exchange *x = mo_container_of(w, struct mo_exchange, wait);
    struct mo_err e;

    x->is_waiting = false;
    if (why)
        end(x, NULL, mo_error(MO_EUNAVAIL, "%s", why->msg));
    else if (x->access) /* the keys were missing */
        judge(x, (struct mo_json){NULL, 0});
    else if (ask_tokens(x, &e) < 0)
        end(x, NULL, &e);
}

static int keep_opts(struct mo_exchange *x)
{
    struct mo_exchange_opts *o = &x->o;
    const char **texts[] = {&o->provider, &o->code,  &o->verifier,
                            &o->redirect, &o->nonce, &o->refresh,
                            &o->subject};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < MO_COUNT(texts); i++)
        rc = mo_oauth_copy(&x->mem, *texts[i], texts[i]);
    return rc;
}

int mo_exchange_start(const struct mo_exchange_opts *o,
                      struct mo_exchange **out, struct mo_err *e)
{
    const struct mo_config_provider *c = NULL;
    struct mo_exchange *x = mo_new(struct mo_exchange);
    struct mo_provider *p;

    if (!x)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    x->o = *o;
    x->wait.done = on_read;
    x->ask = (struct mo_oauth_ask){
        .http = mo_people_http(o->people), .local = true, .done = on_answer};
    mo_oauth_ask_init(&x->ask);
    mo_arena_init(&x->mem, ARENA_MAX);
    p = keep_opts(x) == 0 ? provider_of(x, &c, e) : NULL;
    if (!p || mo_oauth_copy(&x->mem, c->issuer, &x->ask.server) < 0) {
        free_exchange(x);
        return mo_fail(e, MO_EPOLICY, "there is no such provider");
    }
    if (!mo_provider_server(p)) {
        wait_for_provider(x, p);
        x->was_read = false;
    } else if (ask_tokens(x, e) < 0) {
        free_exchange(x);
        return e->code;
    }
    *out = x;
    return 0;
}

void mo_exchange_cancel(struct mo_exchange *x)
{
    x->is_cancelled = true;
    if (x->is_waiting) {
        mo_provider_forget(&x->wait);
        free_exchange(x);
    } else {
        (void)mo_oauth_ask_cancel(&x->ask);
    }
}
