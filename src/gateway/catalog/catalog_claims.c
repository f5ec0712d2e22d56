/* catalog_claims.c - URIs that servers use without listing them: the files of
 * skills and the apps of tools.
 *
 * They share one space with the listed resources. If two servers use the same
 * URI, or one lists a resource inside another's skill, both are prefixed. The
 * claims are made before all views, from the same lists. Without skills and
 * apps there are none. */
#include "gateway/catalog/catalog_priv.h"
#include "mcp/skill.h"

static const struct cat_list *shown_list(const struct mo_catalog *c,
                                         size_t server, enum mo_cat_kind kind)
{
    const struct cat_server *s = &c->v[server];

    return s->off || !s->lists || !is_shown(c, server) ? NULL
                                                       : s->lists->list[kind];
}

/* --- finding ------------------------------------------------------------- */

struct cat_claim *mo_catalog_claim(const struct cat_claims *cl,
                                   struct mo_span uri)
{
    struct cat_claim *x = NULL;

    if (cl->map.len == 0)
        return NULL;
    x = mo_map_get(&cl->map, uri);
    while (x == NULL && uri.n > 0) {
        while (uri.n > 0 && uri.p[uri.n - 1] != '/')
            uri.n--;
        while (uri.n > 0 && uri.p[uri.n - 1] == '/')
            uri.n--;
        x = mo_map_get(&cl->map, uri);
        if (x && !x->is_root)
            x = NULL;
    }
    return x;
}

bool mo_catalog_is_claimed(const struct cat_claims *cl, unsigned server,
                           struct mo_span uri)
{
    const struct cat_claim *x = mo_catalog_claim(cl, uri);

    return x && (x->many || x->server != server);
}

/* --- making -------------------------------------------------------------- */

static int add_claim(struct cat_claims *cl, unsigned server, struct mo_span uri,
                     bool is_root)
{
    struct cat_claim *x = mo_map_get(&cl->map, uri);

    if (x) {
        x->many |= x->server != server;
        x->is_root |= is_root;
        return 0;
    }
    x = mo_arena_zalloc(&cl->arena, sizeof(*x));
    if (x == NULL)
        return MO_ENOMEM;
    *x = (struct cat_claim){.server = server, .is_root = is_root};
    return mo_map_add(&cl->map, uri, x);
}

static int claim_skills(struct cat_claims *cl, const struct mo_catalog *c,
                        size_t server)
{
    const struct cat_list *l = shown_list(c, server, MO_CAT_SKILLS);
    int rc = 0;

    for (size_t i = 0; l && i < l->n && rc == 0; i++) {
        struct mo_span root = mo_skill_root(l->v[i].own);

        if (root.n)
            rc = add_claim(cl, (unsigned)server, root, true);
    }
    return rc;
}

static int claim_links(struct cat_claims *cl, const struct mo_catalog *c,
                       size_t server)
{
    const struct cat_list *l = shown_list(c, server, MO_CAT_TOOLS);
    int rc = 0;

    for (size_t i = 0; l && l->has_links && i < l->n; i++) {
        for (size_t k = 0; k < MO_COUNT(l->v[i].link) && rc == 0; k++) {
            struct mo_span uri = {NULL, 0};

            if (!l->v[i].link[k].p)
                continue;
            rc = mo_json_str(l->v[i].link[k], &cl->arena, &uri);
            if (rc == 0 && uri.n)
                rc = add_claim(cl, (unsigned)server, uri, false);
        }
    }
    return rc;
}

/* Marks the claims above or at a URI that a server uses. */
static void meet(const struct cat_claims *cl, unsigned server,
                 struct mo_span uri)
{
    struct cat_claim *x = mo_catalog_claim(cl, uri);

    if (x && x->server != server)
        x->many = true;
}

static void meet_resources(const struct cat_claims *cl,
                           const struct mo_catalog *c, size_t server)
{
    const struct cat_list *l = shown_list(c, server, MO_CAT_RESOURCES);

    for (size_t i = 0; l && i < l->n; i++)
        meet(cl, (unsigned)server, l->v[i].own);
}

/* A skill of one server inside a skill of another: both are marked. */
static void meet_claims(const struct cat_claims *cl)
{
    mo_map_each (en, &cl->map) {
        struct cat_claim *inner = en->value, *outer;
        struct mo_span above = mo_map_key(en);

        while (above.n > 0 && above.p[above.n - 1] != '/')
            above.n--;
        if (above.n > 0)
            above.n--;
        outer = mo_catalog_claim(cl, above);
        if (outer && outer->is_root && outer->server != inner->server)
            outer->many = inner->many = true;
    }
}

static int fill_claims(struct cat_claims *cl, const struct mo_catalog *c)
{
    int rc = 0;

    for (size_t i = 0; i < c->n && rc == 0; i++) {
        rc = claim_skills(cl, c, i);
        rc = rc < 0 ? rc : claim_links(cl, c, i);
    }
    for (size_t i = 0; cl->map.len && i < c->n; i++)
        meet_resources(cl, c, i);
    meet_claims(cl);
    return rc;
}

struct cat_claims *mo_catalog_claims_new(const struct mo_catalog *c)
{
    struct cat_claims *cl = mo_new(struct cat_claims);

    if (cl == NULL)
        return NULL;
    mo_arena_init(&cl->arena, CAT_VIEW_MAX);
    mo_map_init_lent(&cl->map, (size_t)MO_GW_SERVERS_MAX * MO_CAT_ITEMS_MAX);
    if (fill_claims(cl, c) == 0)
        return cl;
    mo_catalog_claims_free(cl);
    return NULL;
}

void mo_catalog_claims_free(struct cat_claims *cl)
{
    if (cl == NULL)
        return;
    mo_map_fini(&cl->map);
    mo_arena_fini(&cl->arena);
    mo_free(cl);
}

/* --- directories --------------------------------------------------------- */

struct listing {
    const struct mo_catalog *c;
    const struct cat_entry *skill;
    struct mo_span dir; /* the server's own URI of the directory */
    struct mo_map seen; /* subdirectories that are listed */
    struct mo_jw w;
    bool found;
};

static int put_child(struct listing *l, struct mo_span own, struct mo_span name,
                     struct mo_json size)
{
    mo_autobuf struct mo_buf uri = {.max = MO_GW_URI_MAX};
    int rc = mo_catalog_expose(l->c, l->skill->pub.server, own, &uri);

    if (rc < 0)
        return rc == MO_ENOTFOUND ? 0 : rc;
    mo_jw_obj(&l->w);
    mo_jw_member(&l->w, "uri", mo_buf_view(&uri));
    mo_jw_member(&l->w, "name", name);
    if (size.p)
        mo_jw_member_raw(&l->w, "size", mo_json_text(size));
    else
        mo_jw_member_cstr(&l->w, "mimeType", "inode/directory");
    mo_jw_end(&l->w);
    return 0;
}

/* Lists a file that is in the directory, or the subdirectory that holds it. */
static int put_file(struct listing *l, struct mo_json file)
{
    mo_autobuf struct mo_buf own = {.max = MO_GW_URI_MAX};
    struct mo_span uri, name, rest;
    int rc = mo_json_str_buf(mo_json_get(file, "uri"), &own);

    uri = mo_buf_view(&own);
    if (rc < 0 || !mo_skill_has(l->dir, uri))
        return rc;
    l->found = true;
    rest = mo_span_skip(uri, l->dir.n + 1);
    name = mo_span_cut(&rest, '/');
    if (rest.p == NULL)
        return put_child(l, uri, name, mo_json_get(file, "size"));
    rc = mo_map_add(&l->seen, name, l);
    if (rc < 0)
        return rc == MO_EEXISTS ? 0 : rc;
    uri.n = l->dir.n + 1 + name.n;
    return put_child(l, uri, name, (struct mo_json){NULL, 0});
}

/* The skill whose directory it is, or is in; NULL: none. */
static const struct cat_entry *skill_of(const struct mo_catalog *c,
                                        unsigned server, struct mo_span own)
{
    const struct cat_view *w = c->view[MO_CAT_SKILLS];

    for (size_t i = 0; i < w->n; i++) {
        const struct mo_cat_item *it = &w->at[i]->pub;
        struct mo_span root = mo_skill_root(it->own);

        if (it->server == server &&
            (mo_span_eq(root, own) || mo_skill_has(root, own)))
            return w->at[i];
    }
    return NULL;
}

int mo_catalog_skill_directory(const struct mo_catalog *c, struct mo_span uri,
                               struct mo_buf *out)
{
    struct listing l = {.c = c};
    unsigned server = 0;
    int rc = mo_catalog_resource(c, uri, &server, &l.dir);

    if (rc < 0)
        return rc;
    l.skill = skill_of(c, server, l.dir);
    if (l.skill == NULL)
        return MO_ENOTFOUND;
    mo_map_init(&l.seen, MO_CAT_ITEMS_MAX);
    l.w = mo_jw_object(out);
    mo_jw_member_arr(&l.w, "resources");
    mo_json_each (m, mo_json_get(l.skill->pub.item, "resources"))
        rc = rc < 0 ? rc : put_file(&l, m.val);
    mo_jw_end_all(&l.w);
    mo_map_fini(&l.seen);
    if (rc == 0)
        rc = l.found ? mo_buf_err(out) : MO_ENOTFOUND;
    return rc;
}
