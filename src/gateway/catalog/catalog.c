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

static void views_free(struct cat_view *v[MO_CAT_KINDS])
{
    for (size_t k = 0; k < MO_CAT_KINDS; k++) {
        mo_catalog_view_free(v[k]);
        v[k] = NULL;
    }
}

static int views_new(const struct mo_catalog *c, const struct cat_server *v,
                     size_t n, struct cat_view *out[MO_CAT_KINDS])
{
    for (size_t k = 0; k < MO_CAT_KINDS; k++) {
        out[k] =
            mo_catalog_view_new((enum mo_cat_kind)k, c->prefix, v, n, NULL);
        if (out[k] == NULL) {
            views_free(out);
            return MO_ENOMEM;
        }
    }
    return 0;
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
static void swap_servers(struct mo_catalog *c, struct cat_server *v, size_t n,
                         struct cat_view *views[MO_CAT_KINDS])
{
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
    c->v = v;
    c->n = n;
    views_free(c->view);
    memcpy(c->view, views, sizeof(c->view));
    c->version++;
    refresh_why(c);
}

int mo_catalog_servers(struct mo_catalog *c, const struct mo_gw_server *v,
                       size_t n, struct mo_err *e)
{
    struct cat_view *views[MO_CAT_KINDS] = {NULL};
    struct cat_server *next = NULL;
    int rc = 0;

    if (n > MO_GW_SERVERS_MAX)
        return mo_fail(e, MO_ETOOBIG, "more than %d servers",
                       MO_GW_SERVERS_MAX);
    next = mo_zalloc((n + 1) * sizeof(*next));
    if (next == NULL)
        return mo_fail(e, MO_ENOMEM, "catalogue: out of memory");
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = server_init(&next[i], &v[i]);
        rc = rc < 0 ? rc : load_lists(c, next, i);
    }
    if (rc == 0)
        rc = views_new(c, next, n, views);
    if (rc < 0) {
        servers_free(next, n);
        return mo_fail(e, MO_ENOMEM, "catalogue: out of memory");
    }
    swap_servers(c, next, n, views);
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
    if (c && (cache == NULL || c->cache) && views_new(c, NULL, 0, c->view) == 0)
        return c;
    mo_catalog_free(c);
    return mo_null(mo_fail(e, MO_ENOMEM, "catalogue: out of memory"));
}

void mo_catalog_free(struct mo_catalog *c)
{
    if (c == NULL)
        return;
    views_free(c->view);
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

/* Stores the list if its view can be made. */
static int swap_list(struct mo_catalog *c, unsigned server,
                     enum mo_cat_kind kind, struct cat_list *l, bool *changed)
{
    struct server_lists *s = c->v[server].lists;
    struct cat_list *old = s->list[kind];
    struct cat_view *w = NULL;

    s->list[kind] = l;
    w = mo_catalog_view_new(kind, c->prefix, c->v, c->n, NULL);
    if (w == NULL) {
        s->list[kind] = old;
        mo_catalog_list_free(l);
        return MO_ENOMEM;
    }
    *changed = !mo_catalog_view_same(c->view[kind], w);
    mo_catalog_view_free(c->view[kind]);
    c->view[kind] = w;
    mo_catalog_list_free(old);
    c->version++;
    s->dirty = true;
    refresh_why(c);
    return 0;
}

int mo_catalog_put(struct mo_catalog *c, unsigned server, enum mo_cat_kind kind,
                   struct mo_json items, bool *changed)
{
    struct cat_list *l = NULL;
    struct server_lists *s = NULL;

    MO_BUG_ON(server >= c->n);
    *changed = false;
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
    struct cat_view *views[MO_CAT_KINDS] = {NULL};

    s->lists = l;
    if (views_new(c, c->v, c->n, views) < 0) {
        s->lists = old;
        return MO_ENOMEM;
    }
    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        changed[k] = !mo_catalog_view_same(c->view[k], views[k]);
    views_free(c->view);
    memcpy(c->view, views, sizeof(c->view));
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
