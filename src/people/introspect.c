#include "people/introspect.h"

#include "base/clock.h"
#include "base/map.h"
#include "codec/http/url.h"
#include "codec/sha256.h"
#include "mcp/oauth/oauth_req.h"

#define FORM_MAX  (8 * MO_INTROSPECT_TOKEN_MAX)
#define ARENA_MAX ((size_t)64 * 1024)

struct known {
    int rc; /* 0: good */
    struct mo_person who;
    struct mo_err why;
    uint64_t until; /* ns of the loop */
};

/* One question to the provider. */
struct query {
    struct mo_list node;
    struct mo_introspect *x;
    char digest[MO_SHA256_HEX + 1];
    struct mo_buf form;
    struct mo_provider_wait meta; /* until its addresses are known */
    struct mo_oauth_ask ask;
    struct mo_later later; /* a request that could not begin */
    struct mo_list waiting;
};

struct mo_introspect {
    struct mo_introspect_opts o;
    const struct mo_config_provider *config;
    struct mo_map known; /* digest -> struct known */
    struct mo_list queries;
    size_t nqueries;
    uint64_t second; /* since when `asked` counts, ns */
    unsigned asked;
    bool is_closed;
};

static void free_introspect(struct mo_introspect *x)
{
    mo_map_each (en, &x->known)
        mo_free(en->value);
    mo_map_fini(&x->known);
    mo_free(x);
}

/* --- what is known ------------------------------------------------------- */

/* Makes room for one more: good tokens stay until they have expired, so that
 * many bad ones do not replace them. */
static void sweep(struct mo_introspect *x)
{
    uint64_t now = mo_loop_now(x->o.loop), now_s = mo_wall_ms() / 1000;
    bool found = true;

    while (found && x->known.len == MO_INTROSPECT_KNOWN_MAX) {
        found = false;
        mo_map_each (en, &x->known) {
            struct known *k = en->value;

            if (k->rc == 0 ? k->who.ends_s > now_s : k->until > now)
                continue;
            found = true;
            mo_free(mo_map_del(&x->known, mo_map_key(en)));
            break; /* entries may have moved */
        }
    }
}

static void remember(struct mo_introspect *x, const char *digest,
                     const struct known *what)
{
    struct known *k = mo_map_get(&x->known, mo_span_cstr(digest));

    if (k) {
        *k = *what;
        return;
    }
    sweep(x);
    k = mo_new(struct known);
    if (!k)
        return;
    *k = *what;
    if (mo_map_add(&x->known, mo_span_cstr(digest), k) < 0)
        mo_free(k);
}

static struct query *find_query(const struct mo_introspect *x,
                                const char *digest)
{
    mo_list_each_entry (q, &x->queries, struct query, node)
        if (strcmp(q->digest, digest) == 0)
            return q;
    return NULL;
}

/* True if one more question of this second is allowed. */
static bool may_ask(struct mo_introspect *x)
{
    uint64_t now = mo_loop_now(x->o.loop);

    if (now - x->second >= 1000 * MO_MS) {
        x->second = now;
        x->asked = 0;
    }
    return x->asked < MO_INTROSPECT_PER_S;
}

bool mo_introspect_member(const struct mo_introspect *x, const char *name,
                          struct mo_span group)
{
    mo_map_each (en, &x->known) {
        const struct known *k = en->value;

        if (k->rc == 0 && k->until > mo_loop_now(x->o.loop) &&
            mo_person_is_member(&k->who, name, group))
            return true;
    }
    return false;
}

void mo_introspect_groups(const struct mo_introspect *x, const char *name,
                          struct mo_buf *out)
{
    mo_map_each (en, &x->known) {
        const struct known *k = en->value;

        if (k->rc == 0 && k->until > mo_loop_now(x->o.loop))
            mo_person_put_groups(&k->who, name, out);
    }
}

int mo_introspect_check(struct mo_introspect *x, struct mo_span token,
                        struct mo_person *out, struct mo_err *e)
{
    char digest[MO_SHA256_HEX + 1];
    const struct known *k;

    if (token.n > MO_INTROSPECT_TOKEN_MAX)
        return mo_fail(e, MO_EPOLICY, "the token is too long");
    mo_sha256_hex(token, digest);
    k = mo_map_get(&x->known, mo_span_cstr(digest));
    if (k && k->until > mo_loop_now(x->o.loop)) {
        *out = k->who;
        if (k->rc < 0)
            *e = k->why;
        return k->rc;
    }
    if (!find_query(x, digest) && (x->nqueries == MO_INTROSPECT_ACTIVE ||
                                   (!(k && k->rc == 0) && !may_ask(x))))
        return mo_fail(e, MO_EBUSY,
                       "too many tokens are being checked; try again later");
    return mo_fail(e, MO_EUNAVAIL, "the provider must be asked");
}

/* --- the answer ---------------------------------------------------------- */

/* Without this a refresh token would do as well. */
static bool is_bearer(struct mo_json type)
{
    mo_autobuf struct mo_buf b = {.max = 32};

    return mo_json_is(type, MO_JSON_STRING) && mo_json_str_buf(type, &b) == 0 &&
           (mo_span_ieq(mo_buf_view(&b), MO_SPAN("bearer")) ||
            mo_span_is(mo_buf_view(&b), "access_token"));
}

static int read_answer(struct mo_introspect *x, struct mo_span json,
                       struct mo_person *out, struct mo_err *e)
{
    struct mo_json_doc doc;

    if (mo_json_parse(json, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EBUSY, "the provider's answer is not JSON");
    if (!mo_json_flag(doc.root, "active"))
        return mo_fail(e, MO_EPOLICY, "the token is not valid");
    if (!is_bearer(mo_json_get(doc.root, "token_type")))
        return mo_fail(e, MO_EPOLICY, "it is not an access token");
    return mo_access_claims_check(&x->o.access, x->o.index, doc.root, out, e);
}

static uint64_t keep_ms(const struct known *k)
{
    uint64_t now_s = mo_wall_ms() / 1000, left_ms;

    if (k->rc == MO_EBUSY)
        return MO_INTROSPECT_DOWN_MS;
    if (k->rc < 0)
        return MO_INTROSPECT_BAD_MS;
    left_ms = k->who.ends_s > now_s ? (k->who.ends_s - now_s) * 1000 : 0;
    return left_ms < MO_INTROSPECT_GOOD_MS ? left_ms : MO_INTROSPECT_GOOD_MS;
}

/* Those who are told may ask again, or close everything. */
static void end_query(struct query *q, const struct known *what)
{
    struct mo_introspect *x = q->x;
    struct mo_list waiting;

    mo_list_init(&waiting);
    mo_list_splice(&waiting, &q->waiting);
    if (what && !x->is_closed)
        remember(x, q->digest, what);
    mo_list_del(&q->node);
    x->nqueries--;
    mo_oauth_ask_fini(&q->ask);
    mo_buf_wipe(&q->form);
    mo_free(q);
    if (x->is_closed && x->nqueries == 0)
        free_introspect(x);
    mo_list_drain (w, &waiting, struct mo_provider_wait, node)
        w->done(w, what && what->rc == MO_EBUSY ? &what->why : NULL);
}

static void fail_query(struct query *q, const struct mo_err *why)
{
    struct known k = {.rc = MO_EBUSY, .why = *why};

    k.why.code = MO_EBUSY;
    k.until = mo_loop_now(q->x->o.loop) + MO_INTROSPECT_DOWN_MS * MO_MS;
    end_query(q, &k);
}

static void on_answer(struct mo_oauth_ask *ask, const struct mo_err *why)
{
    struct query *q = mo_container_of(ask, struct query, ask);
    struct known k = {.rc = 0};

    if (q->x->is_closed) {
        end_query(q, NULL);
    } else if (why) {
        fail_query(q, why);
    } else if (ask->status != 200) {
        fail_query(q, mo_error(MO_EBUSY, "introspection: HTTP status %d",
                               ask->status));
    } else {
        k.rc = read_answer(q->x, mo_buf_view(&ask->body), &k.who, &k.why);
        k.until = mo_loop_now(q->x->o.loop) + keep_ms(&k) * MO_MS;
        end_query(q, &k);
    }
}

/* --- the question -------------------------------------------------------- */

static void on_later(struct mo_later *d)
{
    fail_query(mo_container_of(d, struct query, later),
               mo_error(MO_EBUSY, "the provider cannot be asked"));
}

static int post(struct query *q, struct mo_err *e)
{
    const struct mo_config_provider *c = q->x->config;
    const struct mo_oauth_server *s = mo_provider_server(q->x->o.provider);
    mo_autowipe struct mo_buf basic = {.max = FORM_MAX};
    struct mo_oauth_client client = {.id = c->client_id,
                                     .secret = c->client_secret};

    if (!s || !s->introspection)
        return mo_fail(e, MO_EBUSY, "the metadata has no introspection");
    client.method = mo_oauth_pick(s->auth, client.secret);
    if (client.method == MO_OAUTH_BASIC)
        (void)mo_oauth_basic(&basic, &client);
    if (mo_oauth_introspect_body(&q->form, &client) < 0 || mo_buf_err(&basic))
        return mo_fail(e, MO_ENOMEM, "out of memory");
    return mo_oauth_ask(&q->ask, s->introspection,
                        "application/x-www-form-urlencoded",
                        mo_buf_view(&q->form), mo_buf_view(&basic), e);
}

static void on_meta(struct mo_provider_wait *w, const struct mo_err *why)
{
    struct query *q = mo_container_of(w, struct query, meta);
    struct mo_err e;

    if (q->x->is_closed)
        end_query(q, NULL);
    else if (why)
        fail_query(q, why);
    else if (post(q, &e) < 0)
        fail_query(q, &e);
}

static struct query *new_query(struct mo_introspect *x, const char *digest,
                               struct mo_span token)
{
    struct query *q = mo_new(struct query);

    if (!q)
        return NULL;
    q->x = x;
    memcpy(q->digest, digest, sizeof(q->digest));
    mo_buf_init(&q->form, FORM_MAX);
    (void)mo_buf_puts(&q->form, "token=");
    mo_pct_encode(&q->form, token);
    q->ask = (struct mo_oauth_ask){
        .http = x->o.http,
        .server = x->config->issuer,
        .local = true, /* configured, as in provider.c */
        .done = on_answer,
    };
    mo_oauth_ask_init(&q->ask);
    mo_later_init(&q->later, on_later);
    q->meta.done = on_meta;
    mo_list_init(&q->waiting);
    mo_list_push(&x->queries, &q->node);
    x->nqueries++;
    return q;
}

void mo_introspect_ask(struct mo_introspect *x, struct mo_span token,
                       struct mo_provider_wait *w)
{
    char digest[MO_SHA256_HEX + 1];
    struct query *q;

    mo_sha256_hex(token, digest);
    q = find_query(x, digest);
    if (q) {
        mo_list_push(&q->waiting, &w->node);
        return;
    }
    q = new_query(x, digest, token);
    if (!q) { /* the reading ends later, and the check fails then */
        mo_provider_read(x->o.provider, w);
        return;
    }
    x->asked++;
    mo_list_push(&q->waiting, &w->node);
    if (!mo_provider_server(x->o.provider))
        mo_provider_read(x->o.provider, &q->meta);
    else if (post(q, NULL) < 0)
        mo_loop_defer(x->o.loop, &q->later);
}

/* --- begin and end ------------------------------------------------------- */

int mo_introspect_new(const struct mo_introspect_opts *o,
                      struct mo_introspect **out, struct mo_err *e)
{
    struct mo_introspect *x = mo_new(struct mo_introspect);

    if (!x)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    x->o = *o;
    x->config = &o->access.config->people.providers.v[o->index];
    mo_map_init(&x->known, MO_INTROSPECT_KNOWN_MAX);
    mo_list_init(&x->queries);
    *out = x;
    return 0;
}

void mo_introspect_close(struct mo_introspect *x)
{
    if (!x)
        return;
    x->is_closed = true;
    x->nqueries++; /* it stays until the end of this function */
    mo_list_each_entry_safe (q, &x->queries, struct query, node) {
        mo_list_drain (w, &q->waiting, struct mo_provider_wait, node)
            w->done(w, mo_error(MO_ECANCELED, "the configuration was changed"));
        mo_provider_forget(&q->meta);
        mo_later_cancel(&q->later);
        if (!mo_oauth_ask_cancel(&q->ask))
            end_query(q, NULL);
    }
    x->nqueries--;
    if (x->nqueries == 0)
        free_introspect(x);
}
