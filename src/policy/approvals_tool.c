/*
 * approvals_tool.c - is the tool that is called the one that was first seen?
 *
 * Definitions are compared by tool_pins.h, which reads and digests them whole.
 * A call should not pay for that each time, so a keyed hash of the bytes that
 * were found to be good is kept; other bytes are looked at again.
 */
#include "policy/approvals_priv.h"

#define FLUSH_MS 1000 /* new ones are kept on disk in groups */
#define TEXT_MAX ((size_t)4 * 1024 * 1024)

static int read_tool(const struct mo_gw_case *k, struct mo_arena *a,
                     struct mo_tool *t)
{
    return mo_tool_pins_read_tool(k->server, k->tool, k->item, a, t);
}

#define KEY_MAX ((size_t)1024) /* longer ones are looked at each time */

/* Server, NUL, tool. Empty: too long. */
static struct mo_span key_of(char b[KEY_MAX], const struct mo_gw_case *k)
{
    size_t n = k->server.n + 1 + k->tool.n;

    if (n > KEY_MAX || !k->server.n || !k->tool.n)
        return mo_span(NULL, 0);
    memcpy(b, k->server.p, k->server.n);
    b[k->server.n] = '\0';
    memcpy(b + k->server.n + 1, k->tool.p, k->tool.n);
    return mo_span(b, n);
}

/* --- those that changed -------------------------------------------------- */

void mo_approvals_changed_free(struct mo_approvals *d, struct changed_tool *c)
{
    mo_list_del(&c->node);
    d->nchanged--;
    mo_buf_fini(&c->before);
    mo_arena_fini(&c->arena);
    mo_free(c);
}

static struct changed_tool *find_changed(struct mo_approvals *d,
                                         const struct mo_tool *t)
{
    mo_list_each (n, &d->changed) {
        struct changed_tool *c = mo_container_of(n, struct changed_tool, node);

        if (mo_span_eq(c->tool.def.server, t->def.server) &&
            mo_span_eq(c->tool.def.name, t->def.name))
            return c;
    }
    return NULL;
}

static int copy(struct mo_arena *a, struct mo_span *s)
{
    const char *p = s->n ? mo_arena_strndup(a, s->p, s->n) : "";

    if (!p)
        return MO_ENOMEM;
    s->p = p;
    return 0;
}

/* For people to look at; without memory it is refused all the same. */
static void remember(struct mo_approvals *d, const struct mo_tool *t,
                     struct mo_buf *before)
{
    struct changed_tool *c = find_changed(d, t);
    struct mo_tool_def *def;

    if (c && strcmp(c->tool.digest, t->digest) == 0)
        return;
    if (c)
        mo_approvals_changed_free(d, c);
    c = d->nchanged < CHANGED_MAX ? mo_new(struct changed_tool) : NULL;
    if (!c)
        return;
    mo_arena_init(&c->arena, TEXT_MAX);
    mo_buf_init(&c->before, TEXT_MAX);
    mo_list_push(&d->changed, &c->node);
    d->nchanged++;
    c->tool = *t;
    def = &c->tool.def;
    if (copy(&c->arena, &def->server) < 0 || copy(&c->arena, &def->name) < 0 ||
        copy(&c->arena, &def->description) < 0 ||
        copy(&c->arena, &def->schema) < 0 ||
        copy(&c->arena, &def->annotations) < 0 ||
        mo_buf_span(&c->before, mo_buf_view(before)) < 0)
        mo_approvals_changed_free(d, c);
}

/* --- looking ------------------------------------------------------------- */

static bool look(struct mo_approvals *d, const struct mo_tool *t)
{
    struct mo_agent_pins p = mo_tool_pins_for(d->pins);
    struct changed_tool *c = find_changed(d, t);
    struct mo_buf before;
    bool same;

    mo_buf_init(&before, TEXT_MAX);
    same = p.look(p.ctx, t, &before);
    if (!same)
        remember(d, t, &before);
    else if (c)
        mo_approvals_changed_free(d, c);
    mo_buf_fini(&before);
    if (same && !mo_timer_on(&d->flush))
        mo_timer_start(d->loop, &d->flush, FLUSH_MS);
    return same;
}

void mo_approvals_drop_accepted(struct mo_approvals *d)
{
    struct mo_list *n = d->changed.next;

    while (n != &d->changed) {
        struct changed_tool *c = mo_container_of(n, struct changed_tool, node);

        n = n->next; /* c may go */
        (void)look(d, &c->tool);
    }
}

/* Never 0: a map's value of NULL is none. */
static uint64_t hash_of(const struct mo_approvals *d,
                        const struct mo_gw_case *k)
{
    return mo_siphash(d->key0, d->key1, mo_json_text(k->item)) | 1;
}

/* It was looked at, and these bytes were good. */
static bool is_known(const struct mo_approvals *d, struct mo_span key,
                     uint64_t hash)
{
    return key.n && (uintptr_t)mo_map_get(&d->known, key) == (uintptr_t)hash;
}

bool mo_approvals_is_same(struct mo_approvals *d, struct mo_gw_case *k)
{
    uint64_t hash = hash_of(d, k);
    struct mo_tool t;
    struct mo_arena a;
    char room[KEY_MAX];
    struct mo_span key = key_of(room, k);
    bool same = is_known(d, key, hash);

    if (same)
        return true;
    mo_arena_init(&a, TEXT_MAX);
    same = read_tool(k, &a, &t) == 0 && look(d, &t);
    if (same && key.n)
        (void)mo_map_put(&d->known, key, (void *)(uintptr_t)hash, NULL);
    mo_arena_fini(&a);
    return same;
}

int mo_approvals_digest(const struct mo_gw_case *k, char out[MO_EXACT_DIGEST])
{
    struct mo_arena a;
    struct mo_tool t;
    int rc;

    mo_arena_init(&a, TEXT_MAX);
    rc = read_tool(k, &a, &t);
    if (rc == 0)
        memcpy(out, t.digest, MO_EXACT_DIGEST);
    mo_arena_fini(&a);
    return rc;
}

bool mo_approvals_changed(void *ctx, struct mo_span server, struct mo_span tool,
                          struct mo_json item)
{
    struct mo_gw_case k = {.server = server, .tool = tool, .item = item};
    struct mo_approvals *d = ctx;
    struct mo_tool_pins *pins;
    struct mo_err e;
    char room[KEY_MAX];

    if (d->cfg->gateway.approvals == MO_GW_NO_RULES ||
        is_known(d, key_of(room, &k), hash_of(d, &k)) ||
        mo_approvals_pins(d, &pins, &e) < 0 ||
        !mo_tool_pins_changed(pins, server, tool, item))
        return false;
    return !mo_approvals_is_same(d,
                                 &k); /* from now on people see what changed */
}
