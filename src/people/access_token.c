#include "people/access_token.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/map.h"
#include "codec/sha256.h"

#define ARENA_MAX     ((size_t)64 * 1024)
#define KEPT_MAX      ((size_t)4096) /* bytes of a token that is remembered */
#define AUDIENCES_MAX 64
#define NAME_DIGEST   32 /* hexadecimal digits in place of a long name */
#define VALUE_MAX     ((size_t)1024)

struct mo_access_tokens {
    struct mo_map known; /* token -> struct mo_person */
};

int mo_access_tokens_new(struct mo_access_tokens **out, struct mo_err *e)
{
    struct mo_access_tokens *t = mo_new(struct mo_access_tokens);

    if (!t)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    mo_map_init(&t->known, MO_ACCESS_TOKENS_MAX);
    *out = t;
    return 0;
}

void mo_access_tokens_clear(struct mo_access_tokens *t)
{
    mo_map_each (en, &t->known)
        mo_free(en->value);
    mo_map_clear(&t->known);
}

void mo_access_tokens_free(struct mo_access_tokens *t)
{
    if (!t)
        return;
    mo_access_tokens_clear(t);
    mo_map_fini(&t->known);
    mo_free(t);
}

/* --- the person in the claims -------------------------------------------- */

/* Others write claims: only harmless characters stay as they are, and a name
 * that is too long is replaced by its digest. No other name has a '~', so
 * nobody can be called as somebody's digest. */
static int put_name(const char *provider, struct mo_span value,
                    char out[MO_PERSON_MAX])
{
    mo_autobuf struct mo_buf b = {.max = 4 * VALUE_MAX};
    char hex[MO_SHA256_HEX + 1];

    (void)mo_buf_printf(&b, "%s:", provider);
    for (size_t i = 0; i < value.n; i++)
        if (mo_span_only(mo_span(value.p + i, 1), MO_ALNUM "_.@-"))
            (void)mo_buf_putc(&b, value.p[i]);
        else
            (void)mo_buf_printf(&b, "%%%02X", (unsigned char)value.p[i]);
    if (mo_buf_err(&b))
        return mo_buf_err(&b);
    if (b.len >= MO_PERSON_MAX) {
        mo_sha256_hex(mo_buf_view(&b), hex);
        (void)snprintf(out, MO_PERSON_MAX, "%.48s:~%.*s", provider, NAME_DIGEST,
                       hex);
    } else {
        memcpy(out, mo_buf_cstr(&b), b.len + 1);
    }
    return 0;
}

/* An address that its owner did not confirm may be somebody else's. */
static bool is_confirmed(const char *claim, struct mo_json claims)
{
    return strcmp(claim, "email") != 0 ||
           mo_json_flag(claims, "email_verified");
}

/* A name with a line end is no group that anybody could name. */
static void put_groups(struct mo_json groups, char out[MO_GROUPS_MAX])
{
    mo_autobuf struct mo_buf all = {.max = MO_GROUPS_MAX - 1};

    out[0] = '\0';
    mo_json_each (it, groups) {
        mo_autobuf struct mo_buf one = {.max = VALUE_MAX};

        if (!mo_json_is(it.val, MO_JSON_STRING) ||
            mo_json_str_buf(it.val, &one) < 0 || one.len == 0 ||
            mo_span_find(mo_buf_view(&one), '\n') >= 0 ||
            all.len + one.len + 1 >= MO_GROUPS_MAX)
            continue;
        (void)mo_buf_span(&all, mo_buf_view(&one));
        (void)mo_buf_putc(&all, '\n');
    }
    if (mo_buf_err(&all) == 0 && all.len)
        memcpy(out, mo_buf_cstr(&all), all.len + 1);
}

/* The claim is a text or a list of texts. */
static void put_groups_claim(struct mo_json claim, char out[MO_GROUPS_MAX])
{
    mo_autobuf struct mo_buf list = {.max = VALUE_MAX + 2};
    struct mo_json_doc doc;

    if (!mo_json_is(claim, MO_JSON_STRING)) {
        put_groups(mo_json_is(claim, MO_JSON_ARRAY) ? claim
                                                    : (struct mo_json){NULL, 0},
                   out);
        return;
    }
    (void)mo_buf_putc(&list, '[');
    (void)mo_buf_span(&list, mo_json_text(claim));
    (void)mo_buf_putc(&list, ']');
    out[0] = '\0';
    if (mo_buf_err(&list) == 0 &&
        mo_json_parse(mo_buf_view(&list), 0, &doc, NULL) == 0)
        put_groups(doc.root, out);
}

bool mo_groups_have(struct mo_span groups, struct mo_span group)
{
    while (groups.n > 0)
        if (mo_span_eq(mo_span_cut(&groups, '\n'), group))
            return true;
    return false;
}

bool mo_person_is_member(const struct mo_person *p, const char *name,
                         struct mo_span group)
{
    return strcmp(p->name, name) == 0 &&
           mo_groups_have(mo_span_cstr(p->groups), group);
}

void mo_person_put_groups(const struct mo_person *p, const char *name,
                          struct mo_buf *out)
{
    struct mo_span rest = mo_span_cstr(p->groups);

    if (strcmp(p->name, name) != 0)
        return;
    while (rest.n > 0) {
        struct mo_span group = mo_span_cut(&rest, '\n');

        if (out->len + group.n + 2 > out->max ||
            mo_groups_have(mo_buf_view(out), group))
            continue;
        mo_buf_put(out, group.p, group.n);
        mo_buf_putc(out, '\n');
    }
}

bool mo_access_tokens_member(const struct mo_access_tokens *t, const char *name,
                             struct mo_span group)
{
    uint64_t now_s = mo_wall_coarse_ms() / 1000;

    mo_map_each (en, &t->known) {
        const struct mo_person *p = en->value;

        if (p->ends_s > now_s && mo_person_is_member(p, name, group))
            return true;
    }
    return false;
}

void mo_access_tokens_groups(const struct mo_access_tokens *t, const char *name,
                             struct mo_buf *out)
{
    uint64_t now_s = mo_wall_coarse_ms() / 1000;

    mo_map_each (en, &t->known) {
        const struct mo_person *p = en->value;

        if (p->ends_s > now_s)
            mo_person_put_groups(p, name, out);
    }
}

int mo_person_of_claims(const struct mo_config *c,
                        const struct mo_config_provider *provider,
                        struct mo_json claims, struct mo_person *out,
                        struct mo_err *e)
{
    mo_autobuf struct mo_buf value = {.max = VALUE_MAX};
    struct mo_json name = mo_json_get(claims, provider->name_claim);

    if (!mo_json_is(name, MO_JSON_STRING) ||
        mo_json_str_buf(name, &value) < 0 || value.len == 0)
        return mo_fail(e, MO_EPOLICY, "the claim %.64s names nobody",
                       provider->name_claim);
    if (!is_confirmed(provider->name_claim, claims))
        return mo_fail(e, MO_EPOLICY,
                       "the provider has not verified the e-mail address");
    if (put_name(provider->name, mo_buf_view(&value), out->name) < 0)
        return mo_fail(e, MO_EPOLICY, "the name is too long");
    put_groups_claim(mo_json_get(claims, provider->groups_claim), out->groups);
    out->role = mo_role_of_claims(c, provider->name, mo_buf_view(&value),
                                  mo_json_get(claims, provider->groups_claim));
    if (out->role == MO_ROLE_NONE)
        return mo_fail(e, MO_ENOTFOUND,
                       "%s has no role here; the operator gives roles in "
                       "people.roles",
                       out->name);
    return 0;
}

/* True if the entry of people.roles names this person, or everyone. */
static bool is_named(struct mo_span rest, const char *provider,
                     const char *person)
{
    char name[MO_PERSON_MAX];

    return rest.p[0] == ':' &&
           (mo_span_is(rest, ":*") ||
            (put_name(provider, mo_span_skip(rest, 1), name) == 0 &&
             strcmp(name, person) == 0));
}

/* The role that an entry for the role r can still give; a group above the role
 * that was seen is not theirs. */
static enum mo_role role_by_entry(const char *entry, const char *provider,
                                  const char *person, enum mo_role r,
                                  enum mo_role seen)
{
    struct mo_span rest = mo_span_cstr(entry);

    if (!mo_span_strip(&rest, mo_span_cstr(provider)) || rest.n < 2)
        return MO_ROLE_NONE;
    if (is_named(rest, provider, person))
        return r < seen ? r : seen;
    return rest.p[0] == '/' && r <= seen ? r : MO_ROLE_NONE;
}

static const char *provider_of(const struct mo_config *c, const char *person)
{
    const struct mo_config_providers *all = &c->people.providers;

    for (size_t i = 0; i < all->n; i++) {
        size_t n = strlen(all->v[i].name);

        if (strncmp(person, all->v[i].name, n) == 0 && person[n] == ':')
            return all->v[i].name;
    }
    return NULL;
}

enum mo_role mo_person_role_now(const struct mo_config *c, const char *person,
                                enum mo_role seen)
{
    const char *provider = provider_of(c, person);
    enum mo_role best = MO_ROLE_NONE;

    for (int r = MO_ROLE_OPERATOR; provider && r > MO_ROLE_NONE; r--) {
        const struct mo_config_list *who = mo_role_holders(c, (enum mo_role)r);

        for (size_t i = 0; i < who->n; i++) {
            enum mo_role one = role_by_entry(who->v[i], provider, person,
                                             (enum mo_role)r, seen);

            best = one > best ? one : best;
        }
    }
    return best;
}

/* --- one token ----------------------------------------------------------- */

/* The scopes of a token: "scope" as one text, or "scp" as a list. */
static bool has_scope(struct mo_json claims, struct mo_arena *a,
                      const char *scope)
{
    struct mo_json text = mo_json_get(claims, "scope");
    struct mo_span all;

    if (mo_json_is(text, MO_JSON_STRING) && mo_json_str(text, a, &all) == 0) {
        while (all.p)
            if (mo_span_is(mo_span_cut(&all, ' '), scope))
                return true;
        return false;
    }
    return mo_jwt_claim_has(mo_json_get(claims, "scp"), mo_span_cstr(scope));
}

static int check_scopes(const struct mo_config_list *need,
                        struct mo_json claims, struct mo_arena *a,
                        struct mo_err *e)
{
    mo_autobuf struct mo_buf list = {.max = sizeof(e->msg) - 1};
    bool missing = false;

    for (size_t i = 0; i < need->n; i++) {
        missing |= !has_scope(claims, a, need->v[i]);
        (void)mo_buf_printf(&list, "%s%s", list.len ? " " : "", need->v[i]);
    }
    if (!missing)
        return 0;
    return mo_fail(e, MO_EINVAL, "%s",
                   mo_buf_err(&list) ? "" : mo_buf_cstr(&list));
}

/* issuer: NULL if the claims need not name it. */
static int check_claims(const struct mo_access_opts *o, size_t i,
                        const char *issuer, const struct mo_jwt *t,
                        struct mo_person *out, struct mo_err *e)
{
    const struct mo_config_provider *c = &o->config->people.providers.v[i];
    const char *audiences[AUDIENCES_MAX] = {o->audience};
    struct mo_jwt_want want = {
        .issuer = issuer,
        .audiences = audiences,
        .naudiences = 1,
        .now_s = mo_wall_ms() / 1000,
    };

    for (size_t k = 0; k < c->audiences.n && k + 1 < AUDIENCES_MAX; k++)
        audiences[want.naudiences++] = c->audiences.v[k];
    return mo_jwt_check(t, &want, &out->ends_s, e);
}

/* The configured provider that the token names. It may lie: the signature
 * decides. */
static bool find_provider(const struct mo_access_opts *o,
                          const struct mo_jwt *t, size_t *out)
{
    const struct mo_config_providers *all = &o->config->people.providers;
    struct mo_json iss = mo_json_get(t->claims, "iss");

    for (*out = 0; *out < all->n; ++*out)
        if (mo_json_str_eq(iss, mo_span_cstr(all->v[*out].issuer)))
            return true;
    return false;
}

static int check_person(const struct mo_access_opts *o,
                        const struct mo_config_provider *c,
                        struct mo_json claims, struct mo_arena *a,
                        struct mo_person *out, struct mo_err *e)
{
    int rc = mo_proof_binding(claims, out->jkt, e);

    if (rc == 0)
        rc = mo_person_of_claims(o->config, c, claims, out, e);
    return rc < 0 ? rc : check_scopes(&c->needs_scopes, claims, a, e);
}

static int check_new(const struct mo_access_opts *o, struct mo_span token,
                     struct mo_person *out, struct mo_provider **from,
                     struct mo_err *e)
{
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    const struct mo_config_provider *c;
    struct mo_jwt t;
    size_t i = 0;
    int rc = mo_jwt_parse(token, &a, &t, e);

    if (rc < 0)
        return mo_fail(e, MO_EPOLICY, "the token is malformed");
    if (!find_provider(o, &t, &i))
        return mo_fail(e, MO_EPOLICY, "the token is of an unknown issuer");
    c = &o->config->people.providers.v[i];
    *from = o->providers[i];
    rc = check_claims(o, i, c->issuer, &t, out,
                      e); /* cheaper than the signature */
    if (rc == 0)
        rc = mo_provider_verify(*from, &t, e);
    return rc < 0 ? rc : check_person(o, c, t.claims, &a, out, e);
}

int mo_access_claims_check(const struct mo_access_opts *o, size_t index,
                           struct mo_json claims, struct mo_person *out,
                           struct mo_err *e)
{
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    const struct mo_config_provider *c = &o->config->people.providers.v[index];
    const struct mo_jwt t = {.claims = claims};
    bool has_issuer = mo_json_get(claims, "iss").p != NULL;
    int rc = check_claims(o, index, has_issuer ? c->issuer : NULL, &t, out, e);

    return rc < 0 ? rc : check_person(o, c, claims, &a, out, e);
}

static void remember(struct mo_access_tokens *t, struct mo_span token,
                     const struct mo_person *who)
{
    struct mo_person *copy;
    void *old = NULL;

    if (token.n > KEPT_MAX)
        return;
    if (t->known.len == MO_ACCESS_TOKENS_MAX)
        mo_access_tokens_clear(t);
    copy = mo_new(struct mo_person);
    if (!copy)
        return;
    *copy = *who;
    if (mo_map_put(&t->known, token, copy, &old) < 0)
        mo_free(copy);
    mo_free(old);
}

int mo_access_token_check(struct mo_access_tokens *t,
                          const struct mo_access_opts *o, struct mo_span token,
                          struct mo_person *out, struct mo_provider **from,
                          struct mo_err *e)
{
    const struct mo_person *known = mo_map_get(&t->known, token);
    int rc;

    if (known && known->ends_s > mo_wall_coarse_ms() / 1000) {
        *out = *known;
        return 0;
    }
    rc = check_new(o, token, out, from, e);
    if (rc == 0)
        remember(t, token, out);
    return rc;
}
