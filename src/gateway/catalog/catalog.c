/* catalog.c - the servers and their lists: replacing, storing, queries. */
#include "gateway/catalog/catalog.h"

#include <stdio.h>

#include "gateway/catalog/catalog_priv.h"

/* --- servers ------------------------------------------------------------- */

static void server_fini(struct cat_server *s)
{
    if (!s->borrowed)
        mo_catalog_lists_free(s->lists);
    mo_overrides_free(s->overrides);
    mo_arena_fini(&s->a);
}

static void servers_free(struct cat_server *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        server_fini(&v[i]);
    mo_free(v);
}

static int copy_text(struct cat_server *s, const char **to, const char *text)
{
    *to = text ? mo_arena_strndup(&s->a, text, strlen(text)) : NULL;
    return text && !*to ? MO_ENOMEM : 0;
}

static int server_init(struct cat_server *s, const struct mo_gw_server *from)
{
    const char *prefix = from->prefix ? from->prefix : from->name;

    mo_arena_init(&s->a, OVERRIDES_TEXT_MAX);
    s->never_prefix = prefix[0] == '\0';
    s->overrides = mo_overrides_new(from);
    s->off = from->off;
    if (s->overrides == NULL || copy_text(s, &s->name, from->name) < 0 ||
        copy_text(s, &s->prefix, prefix) < 0 ||
        copy_text(s, &s->description, from->description) < 0 ||
        copy_text(s, &s->keywords, from->keywords) < 0 ||
        copy_text(s, &s->categories, from->categories) < 0)
        return MO_ENOMEM;
    mo_gw_label(mo_span_cstr(from->name), s->label);
    snprintf(s->digest, sizeof(s->digest), "%s", from->digest);
    return 0;
}

/* The old entry of the same server with the same digest; NULL: none. */
static struct cat_server *find_unchanged(const struct mo_catalog *c,
                                         const struct cat_server *s)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->v[i].name, s->name) == 0)
            return strcmp(c->v[i].digest, s->digest) == 0 ? &c->v[i] : NULL;
    return NULL;
}

static bool are_lists_lent(const struct cat_server *v, size_t n,
                           const struct server_lists *s)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].lists == s)
            return true;
    return false;
}

/* Gives v[i] its old lists, or those in the cache. */
static int load_lists(const struct mo_catalog *c, struct cat_server *v,
                      size_t i)
{
    struct cat_server *s = &v[i];
    const struct cat_server *was = find_unchanged(c, s);

    if (was && !are_lists_lent(v, i, was->lists)) {
        s->lists = was->lists;
        s->borrowed = true;
        memcpy(s->fail, was->fail, sizeof(s->fail));
        return 0;
    }
    s->lists = mo_catalog_lists_new();
    if (s->lists == NULL)
        return MO_ENOMEM;
    return c->cache
               ? mo_catalog_cache_read(c->cache, s->name, s->digest, s->lists)
               : 0;
}

/* --- views --------------------------------------------------------------- */

static void refresh_why(struct mo_catalog *c)
{
    for (size_t i = 0; i < c->n; i++)
        mo_catalog_describe_missing(c, i, MO_CAT_KINDS, c->v[i].why);
}

void mo_catalog_unbuild(struct mo_catalog *c)
{
    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        mo_catalog_view_free(mo_take_ptr(&c->view[k]));
    mo_catalog_claims_free(mo_take_ptr(&c->claims));
}

/* Names of resources come first: tools link to them. */
int mo_catalog_build(struct mo_catalog *c)
{
    static const enum mo_cat_kind order[] = {
        MO_CAT_RESOURCES, MO_CAT_TEMPLATES, MO_CAT_SKILLS,
        MO_CAT_TOOLS,     MO_CAT_PROMPTS,
    };
    bool built = true;

    _Static_assert(MO_COUNT(order) == MO_CAT_KINDS, "every kind is built");
    memset(c->view, 0, sizeof(c->view)); /* NOLINT: an array of pointers */
    c->claims = mo_catalog_claims_new(c);
    built = c->claims != NULL;
    for (size_t i = 0; i < MO_COUNT(order) && built; i++) {
        c->view[order[i]] = mo_catalog_view_new(c, order[i]);
        built = c->view[order[i]] != NULL;
    }
    if (!built)
        mo_catalog_unbuild(c);
    return built ? 0 : MO_ENOMEM;
}

static bool has_name(const struct cat_server *v, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(v[i].name, name) == 0)
            return true;
    return false;
}

static void forget_removed(const struct mo_catalog *c,
                           const struct cat_server *v, size_t n)
{
    for (size_t i = 0; c->cache && i < c->n; i++)
        if (!has_name(v, n, c->v[i].name))
            mo_catalog_forget(c->cache, c->v[i].name);
}

/* The new table is complete: it takes over the borrowed lists. */
static void swap_servers(struct mo_catalog *c, const struct mo_catalog *next)
{
    struct cat_server *v = next->v;
    size_t n = next->n;

    forget_removed(c, v, n);
    for (size_t i = 0; i < n; i++) {
        if (!v[i].borrowed)
            continue;
        v[i].borrowed = false;
        for (size_t j = 0; j < c->n; j++)
            if (c->v[j].lists == v[i].lists)
                c->v[j].lists = NULL;
    }
    servers_free(c->v, c->n);
    mo_catalog_unbuild(c);
    *c = *next;
    c->version++;
    refresh_why(c);
}

int mo_catalog_servers(struct mo_catalog *c, const struct mo_gw_server *v,
                       size_t n, struct mo_err *e)
{
    struct mo_catalog next = *c;
    int rc = 0;

    if (n > MO_GW_SERVERS_MAX)
        return mo_fail(e, MO_ETOOBIG, "more than %d servers",
                       MO_GW_SERVERS_MAX);
    next.v = mo_zalloc((n + 1) * sizeof(*next.v));
    next.n = n;
    if (next.v == NULL)
        return mo_fail(e, MO_ENOMEM, "catalogue: out of memory");
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = server_init(&next.v[i], &v[i]);
        rc = rc < 0 ? rc : load_lists(c, next.v, i);
    }
    if (rc == 0)
        rc = mo_catalog_build(&next);
    if (rc < 0) {
        servers_free(next.v, n);
        return mo_fail(e, MO_ENOMEM, "catalogue: out of memory");
    }
    swap_servers(c, &next);
    return 0;
}

struct mo_catalog *mo_catalog_new(enum mo_gw_prefix prefix, const char *cache,
                                  struct mo_err *e)
{
    struct mo_catalog *c = mo_new(struct mo_catalog);

    if (c) {
        c->prefix = prefix;
        c->cache = cache ? mo_strndup(cache, strlen(cache)) : NULL;
    }
    if (c && (cache == NULL || c->cache) && mo_catalog_build(c) == 0)
        return c;
    mo_catalog_free(c);
    return mo_null(mo_fail(e, MO_ENOMEM, "catalogue: out of memory"));
}

void mo_catalog_free(struct mo_catalog *c)
{
    if (c == NULL)
        return;
    mo_catalog_unbuild(c);
    if (c->of == NULL)
        servers_free(c->v, c->n);
    mo_filter_free(c->filter);
    mo_free(c->shown);
    mo_free(c->cache);
    mo_free(c);
}

/* --- lists of a server --------------------------------------------------- */

static bool same_list(const struct cat_list *a, const struct cat_list *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->unnamed == b->unnamed && a->over_limit == b->over_limit &&
           mo_span_eq(mo_buf_view(&a->text), mo_buf_view(&b->text));
}

static unsigned changed_views(const struct mo_catalog *a,
                              const struct mo_catalog *b)
{
    unsigned changed = 0;

    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        if (!mo_catalog_view_same(a->view[k], b->view[k]))
            changed |= 1u << k;
    return changed;
}

/* True if a list of this kind decides about no other's names. */
static bool stands_alone(const struct mo_catalog *c, enum mo_cat_kind kind,
                         const struct cat_list *a, const struct cat_list *b)
{
    if (kind == MO_CAT_PROMPTS)
        return true;
    return kind != MO_CAT_SKILLS && c->claims->map.len == 0 &&
           !(a && a->has_links) && !(b && b->has_links);
}

/* Makes the views that a change of one list can change, or all. */
static int rebuild(struct mo_catalog *c, struct mo_catalog *next,
                   enum mo_cat_kind kind, bool alone, unsigned *changed)
{
    if (!alone) {
        if (mo_catalog_build(next) < 0)
            return MO_ENOMEM;
        *changed = changed_views(c, next);
        mo_catalog_unbuild(c);
        return 0;
    }
    next->view[kind] = mo_catalog_view_new(next, kind);
    if (next->view[kind] == NULL)
        return MO_ENOMEM;
    *changed = changed_views(c, next);
    mo_catalog_view_free(c->view[kind]);
    return 0;
}

/* Stores the list if its view can be made. */
static int swap_list(struct mo_catalog *c, unsigned server,
                     enum mo_cat_kind kind, struct cat_list *l,
                     unsigned *changed)
{
    struct server_lists *s = c->v[server].lists;
    struct cat_list *old = s->list[kind];
    struct mo_catalog next = *c;

    s->list[kind] = l;
    if (rebuild(c, &next, kind, stands_alone(c, kind, old, l), changed) < 0) {
        s->list[kind] = old;
        mo_catalog_list_free(l);
        return MO_ENOMEM;
    }
    *c = next;
    mo_catalog_list_free(old);
    c->version++;
    s->dirty = true;
    refresh_why(c);
    return 0;
}

int mo_catalog_put(struct mo_catalog *c, unsigned server, enum mo_cat_kind kind,
                   struct mo_json items, unsigned *changed)
{
    struct cat_list *l = NULL;
    struct server_lists *s = NULL;

    MO_BUG_ON(server >= c->n);
    *changed = 0;
    s = c->v[server].lists;
    if (s->faults[kind])
        s->faults[kind]->unread[0] = '\0';
    if (mo_json_is(items, MO_JSON_ARRAY)) {
        l = mo_catalog_lists_parse(s, kind, items);
        if (l == NULL)
            return MO_ENOMEM;
    }
    if (same_list(s->list[kind], l)) {
        mo_catalog_list_free(l);
        return 0;
    }
    return swap_list(c, server, kind, l, changed);
}

void mo_catalog_note(struct mo_catalog *c, unsigned server,
                     enum mo_cat_kind kind,
                     const struct mo_definition_notes *notes)
{
    struct server_lists *s = NULL;
    const struct mo_definition_notes *old = NULL;
    struct list_faults *to = NULL;

    MO_BUG_ON(server >= c->n);
    s = c->v[server].lists;
    old = &mo_catalog_lists_faults(s, kind)->notes;
    if (strcmp(old->mended, notes->mended) == 0 &&
        strcmp(old->left_out, notes->left_out) == 0 &&
        old->nmended == notes->nmended && old->nleft_out == notes->nleft_out)
        return;
    to = mo_catalog_lists_own_faults(s, kind);
    if (to)
        to->notes = *notes;
    s->dirty = true;
    refresh_why(c);
}

/* A value that is too long, or for which there is no memory, is not kept. */
static void store_extra(struct server_lists *s, struct mo_buf *to,
                        struct mo_json v)
{
    struct mo_buf b;

    mo_buf_init(&b, CAT_EXTRA_MAX);
    if (mo_json_is(v, MO_JSON_OBJECT))
        (void)mo_json_compact(v, &b);
    if (mo_span_eq(mo_buf_view(to), mo_buf_view(&b))) {
        mo_buf_fini(&b);
        return;
    }
    if (mo_buf_err(&b))
        mo_buf_fini(&b);
    mo_buf_fini(to);
    *to = b;
    s->dirty = true;
}

static bool has_unread(const struct server_lists *s)
{
    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        if (mo_catalog_lists_faults(s, k)->unread[0])
            return true;
    return false;
}

bool mo_catalog_done(struct mo_catalog *c, unsigned server,
                     struct mo_json capabilities, struct mo_json info)
{
    struct cat_server *s = NULL;
    bool written = false;

    MO_BUG_ON(server >= c->n);
    s = &c->v[server];
    store_extra(s->lists, &s->lists->caps, capabilities);
    store_extra(s->lists, &s->lists->info, info);
    s->lists->known = true;
    s->lists->late = false;
    s->fail[0] = '\0';
    if (c->cache && s->lists->dirty && !has_unread(s->lists))
        written =
            mo_catalog_cache_write(c->cache, s->name, s->digest, s->lists) == 0;
    if (written)
        s->lists->dirty = false;
    refresh_why(c);
    return written;
}

/* Takes over the lists if the views can be made. */
static int swap_lists(struct mo_catalog *c, unsigned server,
                      struct server_lists *l, bool changed[MO_CAT_KINDS])
{
    struct cat_server *s = &c->v[server];
    struct server_lists *old = s->lists;
    struct mo_catalog next = *c;
    unsigned differ;

    s->lists = l;
    if (mo_catalog_build(&next) < 0) {
        s->lists = old;
        return MO_ENOMEM;
    }
    differ = changed_views(c, &next);
    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        changed[k] = differ & 1u << k;
    mo_catalog_unbuild(c);
    *c = next;
    mo_catalog_lists_free(old);
    s->fail[0] = '\0';
    c->version++;
    refresh_why(c);
    return 0;
}

int mo_catalog_reread(struct mo_catalog *c, unsigned server,
                      bool changed[MO_CAT_KINDS])
{
    struct server_lists *l = c->cache ? mo_catalog_lists_new() : NULL;
    const struct cat_server *s = NULL;
    int rc;

    MO_BUG_ON(server >= c->n);
    memset(changed, 0, MO_CAT_KINDS * sizeof(*changed));
    s = &c->v[server];
    if (!l)
        return c->cache ? MO_ENOMEM : 0;
    rc = mo_catalog_cache_read(c->cache, s->name, s->digest, l);
    if (rc == 0 && l->known)
        rc = swap_lists(c, server, l, changed);
    if (c->v[server].lists != l)
        mo_catalog_lists_free(l);
    return rc;
}

void mo_catalog_fail(struct mo_catalog *c, unsigned server, const char *why)
{
    MO_BUG_ON(server >= c->n);
    snprintf(c->v[server].fail, sizeof(c->v[server].fail), "%s",
             why ? why : "");
    mo_catalog_describe_missing(c, server, MO_CAT_KINDS, c->v[server].why);
}

void mo_catalog_fail_list(struct mo_catalog *c, unsigned server,
                          enum mo_cat_kind kind, const char *why)
{
    struct list_faults *to =
        mo_catalog_lists_own_faults(c->v[server].lists, kind);

    if (to)
        snprintf(to->unread, sizeof(to->unread), "%s", why);
    refresh_why(c);
}

void mo_catalog_note_late(struct mo_catalog *c, unsigned server)
{
    struct cat_server *s = &c->v[server];

    if (s->lists->known || s->lists->late)
        return;
    s->lists->late = s->lists->dirty = true;
    if (c->cache)
        (void)mo_catalog_cache_write(c->cache, s->name, s->digest, s->lists);
}

bool mo_catalog_was_late(const struct mo_catalog *c, unsigned server)
{
    return server < c->n && c->v[server].lists->late;
}

/* --- queries ------------------------------------------------------------- */

bool mo_catalog_known(const struct mo_catalog *c, unsigned server)
{
    return server < c->n && c->v[server].lists->known;
}

const char *mo_catalog_failed(const struct mo_catalog *c, unsigned server)
{
    return server < c->n && c->v[server].fail[0] ? c->v[server].fail : NULL;
}

const char *mo_catalog_why(const struct mo_catalog *c, unsigned server)
{
    if (c->of)
        return mo_catalog_failed(c, server);
    return server < c->n && c->v[server].why[0] ? c->v[server].why : NULL;
}

bool mo_catalog_extension(const struct mo_catalog *c, unsigned server,
                          const char *id, const char *flag)
{
    struct mo_span caps = server < c->n ? mo_buf_view(&c->v[server].lists->caps)
                                        : mo_span(NULL, 0);
    struct mo_json all, ext;

    if (!caps.n)
        return true;
    all = mo_json_get((struct mo_json){caps.p, caps.n}, "extensions");
    ext = mo_json_get(all, id);
    return mo_json_is(ext, MO_JSON_OBJECT) &&
           (flag == NULL || mo_json_flag(ext, flag));
}

struct mo_json mo_catalog_info(const struct mo_catalog *c, unsigned server)
{
    struct mo_span s = server < c->n ? mo_buf_view(&c->v[server].lists->info)
                                     : mo_span(NULL, 0);

    return (struct mo_json){s.n ? s.p : NULL, s.n};
}

void mo_catalog_put_mended(const struct mo_catalog *c, unsigned server,
                           struct mo_buf *out)
{
    for (size_t k = 0; server < c->n && k < MO_CAT_KINDS; k++) {
        const struct mo_definition_notes *n =
            &mo_catalog_lists_faults(c->v[server].lists, k)->notes;

        if (n->nmended)
            mo_buf_printf(out, "%s%zu %s mended: %s", out->len ? "; " : "",
                          n->nmended, mo_catalog_kinds[k].what, n->mended);
    }
}

static void append_reason(char out[CAT_WHY_MAX], size_t n, const char *kind,
                          const char *what)
{
    size_t at = strlen(out);

    if (n)
        snprintf(out + at, CAT_WHY_MAX - at, "%s%zu %s %s", at ? "; " : "", n,
                 kind, what);
}

static void append_left_out(const struct mo_definition_notes *n,
                            const char *kind, char out[CAT_WHY_MAX])
{
    size_t at = 0;

    append_reason(out, n->nleft_out, kind, "left out");
    at = strlen(out);
    if (n->nleft_out && n->left_out[0])
        snprintf(out + at, CAT_WHY_MAX - at, ": %s", n->left_out);
}

static void append_kind_reasons(const struct mo_catalog *c, size_t server,
                                size_t kind, char out[CAT_WHY_MAX])
{
    const struct cat_list *l = c->v[server].lists->list[kind];
    const struct cat_omitted *omitted = &c->view[kind]->omitted[server];
    const struct list_faults *faults =
        mo_catalog_lists_faults(c->v[server].lists, kind);
    const char *what = mo_catalog_kinds[kind].what;

    if (faults->unread[0]) {
        size_t at = strlen(out);

        snprintf(out + at, CAT_WHY_MAX - at, "%sits %s cannot be read: %s",
                 at ? "; " : "", what, faults->unread);
    }
    if (c->of) /* the rest may name what a part leaves out */
        return;
    append_left_out(&faults->notes, what, out);
    if (l == NULL)
        return;
    append_reason(out, l->over_limit, what, "beyond the limit");
    append_reason(out, l->unnamed, what, "without a usable name");
    append_reason(out, omitted->duplicates, what, "listed twice");
    append_reason(out, omitted->hidden, what, "hidden by others of that name");
}

void mo_catalog_describe_missing(const struct mo_catalog *c, size_t server,
                                 enum mo_cat_kind kind, char out[CAT_WHY_MAX])
{
    snprintf(out, CAT_WHY_MAX, "%s", c->v[server].fail);
    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        if (kind == MO_CAT_KINDS || k == kind)
            append_kind_reasons(c, server, k, out);
}
