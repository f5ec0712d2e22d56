#include "people/grant.h"

#include <stdio.h>

#include "base/clock.h"

#define VIEW_CHARS MO_ALNUM "_.-"

/* --- the text ------------------------------------------------------------ */

bool mo_grant_looks_like(struct mo_span text)
{
    return text.n == MO_GRANT_TEXT &&
           mo_span_starts(text, MO_SPAN(MO_GRANT_PREFIX)) &&
           text.p[4 + MO_GRANT_ID] == '_' && mo_span_only(text, MO_ALNUM "_-");
}

struct mo_span mo_grant_id_of(struct mo_span text)
{
    return mo_span_head(mo_span_skip(text, 4), MO_GRANT_ID);
}

bool mo_grant_is(const struct mo_grant *g, struct mo_span text)
{
    char hash[MO_SHA256_HEX + 1];

    mo_sha256_hex(text, hash);
    return mo_span_eq_ct(mo_span(hash, MO_SHA256_HEX),
                         mo_span(g->hash, MO_SHA256_HEX));
}

void mo_grant_make(struct mo_grant *g, char text[MO_GRANT_TEXT + 1])
{
    char secret[MO_GRANT_SECRET + 1];

    mo_random_token(g->id, 16);
    mo_random_token(secret, 24);
    (void)snprintf(text, MO_GRANT_TEXT + 1, MO_GRANT_PREFIX "%s_%s", g->id,
                   secret);
    explicit_bzero(secret, sizeof(secret));
    mo_sha256_hex(mo_span(text, MO_GRANT_TEXT), g->hash);
    g->created = mo_wall_ms();
}

/* --- what its maker says ------------------------------------------------- */

static bool is_visible(const char *text)
{
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return false;
    return text[0] && text[0] != ' ';
}

int mo_grant_set_name(struct mo_grant *g, struct mo_json v, struct mo_err *e)
{
    if (mo_json_is(v, MO_JSON_STRING) &&
        mo_json_str_copy(v, g->name, sizeof(g->name)) == 0 &&
        is_visible(g->name))
        return 0;
    return mo_fail(e, MO_EINVAL, "a token's name has 1 to %d bytes",
                   MO_GRANT_NAME_MAX - 1);
}

int mo_grant_set_views(struct mo_grant *g, struct mo_json v, struct mo_err *e)
{
    g->nviews = 0;
    if (!v.p)
        return 0;
    if (!mo_json_is(v, MO_JSON_ARRAY) || mo_json_len(v) > MO_GRANT_VIEWS_MAX)
        return mo_fail(e, MO_EINVAL, "views is a list of at most %d names",
                       MO_GRANT_VIEWS_MAX);
    mo_json_each (it, v) {
        char *to = g->views[g->nviews];

        if (!mo_json_is(it.val, MO_JSON_STRING) ||
            mo_json_str_copy(it.val, to, MO_GRANT_NAME_MAX) < 0 || !to[0] ||
            !mo_span_only(mo_span_cstr(to), VIEW_CHARS))
            return mo_fail(e, MO_EINVAL,
                           "a view's name has letters, digits "
                           "and _ . - only");
        g->nviews++;
    }
    return 0;
}

bool mo_grant_has_view(const struct mo_grant *g, struct mo_span name)
{
    for (size_t i = 0; i < g->nviews; i++)
        if (mo_span_is(name, g->views[i]))
            return true;
    return false;
}

/* --- the document -------------------------------------------------------- */

void mo_grant_show(const struct mo_grant *g, struct mo_jw *w)
{
    mo_jw_member_cstr(w, "id", g->id);
    mo_jw_member_cstr(w, "owner", g->owner);
    mo_jw_member_cstr(w, "name", g->name);
    mo_jw_member_cstr(w, "role", mo_role_name(g->role));
    mo_jw_member_arr(w, "views");
    for (size_t i = 0; i < g->nviews; i++)
        mo_jw_cstr(w, g->views[i]);
    mo_jw_end(w);
    mo_jw_member_u64(w, "created", g->created);
    mo_jw_member_u64(w, "expires", g->expires);
    if (g->used)
        mo_jw_member_u64(w, "used", g->used);
}

void mo_grant_put(const struct mo_grant *g, struct mo_buf *doc)
{
    struct mo_jw w = mo_jw_object(doc);

    mo_grant_show(g, &w);
    mo_jw_member_cstr(&w, "sha256", g->hash);
    mo_jw_end(&w);
}

/* The owner must be there: without one it would be the operator's. */
int mo_grant_parse(struct mo_span id, struct mo_span doc, struct mo_grant *out,
                   struct mo_err *e)
{
    struct mo_json_doc d;
    struct mo_json owner;
    char role[16] = "";

    *out = (struct mo_grant){.nviews = 0};
    if (id.n != MO_GRANT_ID || mo_json_parse(doc, 0, &d, NULL) < 0)
        return mo_fail(e, MO_EPROTO, "a stored token is damaged");
    memcpy(out->id, id.p, id.n);
    owner = mo_json_get(d.root, "owner");
    if (!mo_json_is(owner, MO_JSON_STRING) ||
        mo_json_str_copy(owner, out->owner, sizeof(out->owner)) < 0 ||
        mo_json_str_copy(mo_json_get(d.root, "role"), role, sizeof(role)) < 0 ||
        mo_json_u64(mo_json_get(d.root, "created"), &out->created) < 0 ||
        mo_json_u64(mo_json_get(d.root, "expires"), &out->expires) < 0 ||
        mo_json_str_copy(mo_json_get(d.root, "sha256"), out->hash,
                         sizeof(out->hash)) < 0 ||
        strlen(out->hash) != MO_SHA256_HEX ||
        mo_grant_set_name(out, mo_json_get(d.root, "name"), NULL) < 0 ||
        mo_grant_set_views(out, mo_json_get(d.root, "views"), NULL) < 0)
        return mo_fail(e, MO_EPROTO, "the stored token %s is damaged", out->id);
    out->role = mo_role_named(mo_span_cstr(role));
    return 0;
}
