/* diff.c - compares two configurations, and registers secrets with the log. */
#include <strings.h>

#include "config/keys.h"
#include "config/reference.h"

/* --- equality ------------------------------------------------------------ */

static bool same_str(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_list(const struct mo_config_list *a,
                      const struct mo_config_list *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (!same_str(a->v[i], b->v[i]))
            return false;
    }
    return true;
}

static bool same_map(const struct mo_config_map *a,
                     const struct mo_config_map *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (!same_str(a->v[i].name, b->v[i].name) ||
            !same_str(a->v[i].value, b->v[i].value))
            return false;
    }
    return true;
}

static bool same_struct(const struct mo_keys *keys, const char *a,
                        const char *b);

static bool same_items(const struct mo_key *k, const void *a, const void *b)
{
    struct mo_key_items x = mo_key_items(a), y = mo_key_items(b);

    if (x.n != y.n)
        return false;
    for (size_t i = 0; i < x.n; i++) {
        if (!same_struct(k->sub, x.v + i * k->sub->size,
                         y.v + i * k->sub->size))
            return false;
    }
    return true;
}

static bool same_value(const struct mo_key *k, const char *a, const char *b)
{
    static const size_t plain[] = {
        [MO_KEY_BOOL] = sizeof(bool),  [MO_KEY_INT] = sizeof(int64_t),
        [MO_KEY_NUM] = sizeof(double), [MO_KEY_MONEY] = sizeof(int64_t),
        [MO_KEY_WORD] = sizeof(int),
    };

    switch (k->type) {
    case MO_KEY_STR:
        return same_str(*(const char *const *)a, *(const char *const *)b);
    case MO_KEY_LIST:
        return same_list((const void *)a, (const void *)b);
    case MO_KEY_MAP:
        return same_map((const void *)a, (const void *)b);
    case MO_KEY_SECTION:
        return same_struct(k->sub, a, b);
    case MO_KEY_DICT:
    case MO_KEY_ARRAY:
        return same_items(k, a, b);
    default:
        return memcmp(a, b, plain[k->type]) == 0;
    }
}

static bool same_struct(const struct mo_keys *keys, const char *a,
                        const char *b)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct mo_key *k = &keys->v[i];

        if (!same_value(k, a + k->off, b + k->off))
            return false;
    }
    return true;
}

/* --- diff ---------------------------------------------------------------- */

struct diff {
    const char *a, *b;
    mo_config_diff_fn *say;
    void *ctx;
};

static const char *find_named(const struct mo_key *k, struct mo_key_items items,
                              const char *name)
{
    for (size_t i = 0; i < items.n; i++) {
        const char *item = items.v + i * k->sub->size;

        if (same_str(*(const char *const *)(const void *)item, name))
            return item;
    }
    return NULL;
}

/* Reports elements of x that are not in y and, if `changed`, those that differ
 * there. */
static void diff_dict(struct diff *d, const char *path, const struct mo_key *k,
                      struct mo_key_items x, struct mo_key_items y,
                      bool changed)
{
    for (size_t i = 0; i < x.n; i++) {
        const char *item = x.v + i * k->sub->size;
        const char *name = *(const char *const *)(const void *)item;
        const char *other = find_named(k, y, name);
        char full[MO_KEY_PATH_MAX];

        if (other && (!changed || same_struct(k->sub, item, other)))
            continue;
        mo_key_join(full, path, name);
        d->say(d->ctx, full, false);
    }
}

static void diff_key(void *ctx, const char *path, const struct mo_key *k,
                     void *field)
{
    struct diff *d = ctx;
    size_t off = (size_t)((char *)field - d->a);
    const char *other = d->b + off;

    if (k->flags & MO_KEY_ALIAS)
        return;
    if (k->type == MO_KEY_DICT) {
        diff_dict(d, path, k, mo_key_items(field), mo_key_items(other), true);
        diff_dict(d, path, k, mo_key_items(other), mo_key_items(field), false);
    } else if (!same_value(k, field, other)) {
        d->say(d->ctx, path, k->flags & MO_KEY_RESTART);
    }
}

void mo_config_diff(const struct mo_config *a, const struct mo_config *b,
                    mo_config_diff_fn *say, void *ctx)
{
    struct mo_config copy = *a; /* the walk needs a writable struct */
    struct diff d = {(const char *)&copy, (const char *)b, say, ctx};

    mo_keys_walk(&mo_config_keys, &copy, diff_key, &d);
}

/* --- secrets ------------------------------------------------------------- */

struct hide {
    struct mo_log *log;
    int rc;
};

static void hide_text(struct hide *h, const char *text)
{
    int rc;

    if (!text || mo_reference_any(mo_span_cstr(text)))
        return;
    rc = mo_log_secret(h->log, mo_span_cstr(text));
    if (rc < 0)
        h->rc = rc;
}

/* Only names that suggest a secret: a server's "DEBUG=1" is none. */
static void hide_map(struct hide *h, const struct mo_config_map *m)
{
    for (size_t i = 0; i < m->n; i++) {
        bool header = strcasecmp(m->v[i].name, "authorization") == 0 ||
                      strcasecmp(m->v[i].name, "cookie") == 0;

        if (header || mo_dotenv_secret_name(m->v[i].name))
            hide_text(h, m->v[i].value);
    }
}

static void hide_value(void *ctx, const char *path, const struct mo_key *k,
                       const void *field)
{
    (void)path;
    if (!(k->flags & MO_KEY_SECRET))
        return;
    if (k->type == MO_KEY_MAP)
        hide_map(ctx, field);
    else
        hide_text(ctx, *(const char *const *)field);
}

int mo_config_hide(const struct mo_config *c, struct mo_log *log)
{
    struct hide h = {log, 0};

    mo_keys_values(&mo_config_keys, c, hide_value, &h);
    for (size_t i = 0; i < c->env.n; i++) {
        if (mo_dotenv_secret_name(c->env.v[i].name))
            hide_text(&h, c->env.v[i].value);
    }
    return h.rc;
}
