/*
 * changed_tools.c - compares tools with their pins; see policy.h.
 *
 * tool_pins.h reads and digests a whole definition. To save that on each call,
 * a keyed hash of every definition that matched its pin is cached; only other
 * bytes are compared in full. Changed tools are listed until a person accepts
 * them.
 */
#include "policy/policy_priv.h"

#include "base/rand.h"

#define FLUSH_MS  1000  /* new pins are written in groups */
#define KNOWN_MAX 16384 /* cached hashes */
#define TEXT_MAX  ((size_t)4 * 1024 * 1024)

struct changed_tool {
    struct mo_list node;
    struct mo_tool tool; /* texts in the arena */
    struct mo_arena arena;
    struct mo_buf before;
};

#define KEY_MAX ((size_t)1024) /* longer ones are not cached */

/* Server, NUL, tool. Empty: too long. */
static struct mo_span make_key(char b[KEY_MAX], struct mo_span server,
                               struct mo_span tool)
{
    size_t n = server.n + 1 + tool.n;

    if (n > KEY_MAX || !server.n || !tool.n)
        return mo_span(NULL, 0);
    memcpy(b, server.p, server.n);
    b[server.n] = '\0';
    memcpy(b + server.n + 1, tool.p, tool.n);
    return mo_span(b, n);
}

/* --- the list of changed tools ------------------------------------------- */

static void drop_changed(struct mo_policy *p, struct changed_tool *c)
{
    mo_list_del(&c->node);
    p->nchanged--;
    mo_buf_fini(&c->before);
    mo_arena_fini(&c->arena);
    mo_free(c);
}

static struct changed_tool *find_changed(const struct mo_policy *p,
                                         struct mo_span server,
                                         struct mo_span tool)
{
    mo_list_each_entry (c, &p->changed, struct changed_tool, node)
        if (mo_span_eq(c->tool.def.server, server) &&
            mo_span_eq(c->tool.def.name, tool))
            return c;
    return NULL;
}

static int copy_span(struct mo_arena *a, struct mo_span *s)
{
    const char *p = s->n ? mo_arena_strndup(a, s->p, s->n) : "";

    if (!p)
        return MO_ENOMEM;
    s->p = p;
    return 0;
}

/* Without memory the tool is not listed, but still blocked. */
static void list_changed(struct mo_policy *p, const struct mo_tool *t,
                         struct mo_buf *before)
{
    struct changed_tool *c = find_changed(p, t->def.server, t->def.name);
    struct mo_tool_def *def;

    if (c && strcmp(c->tool.digest, t->digest) == 0)
        return;
    if (c)
        drop_changed(p, c);
    c = p->nchanged < MO_POLICY_CHANGED_MAX ? mo_new(struct changed_tool)
                                            : NULL;
    if (!c)
        return;
    mo_arena_init(&c->arena, TEXT_MAX);
    mo_buf_init(&c->before, TEXT_MAX);
    mo_list_push(&p->changed, &c->node);
    p->nchanged++;
    c->tool = *t;
    def = &c->tool.def;
    if (copy_span(&c->arena, &def->server) < 0 ||
        copy_span(&c->arena, &def->name) < 0 ||
        copy_span(&c->arena, &def->description) < 0 ||
        copy_span(&c->arena, &def->schema) < 0 ||
        copy_span(&c->arena, &def->annotations) < 0 ||
        mo_buf_span(&c->before, mo_buf_view(before)) < 0)
        drop_changed(p, c);
}

/* --- comparing ----------------------------------------------------------- */

static void on_flush(struct mo_timer *t)
{
    mo_policy_flush_pins(mo_container_of(t, struct mo_policy, flush));
}

void mo_policy_init_pins(struct mo_policy *p)
{
    p->key0 = mo_random_u64();
    p->key1 = mo_random_u64();
    mo_list_init(&p->changed);
    mo_map_init(&p->known, KNOWN_MAX);
    mo_timer_init(&p->flush, on_flush);
}

void mo_policy_fini_pins(struct mo_policy *p)
{
    mo_policy_flush_pins(p);
    mo_list_each_safe (n, &p->changed)
        drop_changed(p, mo_container_of(n, struct changed_tool, node));
    mo_map_fini(&p->known);
    mo_tool_pins_close(p->pins);
}

void mo_policy_flush_pins(struct mo_policy *p)
{
    mo_timer_stop(p->loop, &p->flush);
    if (p->pins)
        mo_tool_pins_flush(p->pins);
}

int mo_policy_load_pins(struct mo_policy *p, struct mo_err *e)
{
    return p->pins ? 0
                   : mo_tool_pins_open(mo_loop_log(p->loop), p->cfg->store.dir,
                                       &p->pins, e);
}

bool mo_policy_tool_is_pinned(struct mo_policy *p, const struct mo_tool *t,
                              struct mo_buf *before)
{
    struct changed_tool *c = find_changed(p, t->def.server, t->def.name);
    mo_autobuf struct mo_buf own = {.max = TEXT_MAX};
    struct mo_err e;
    bool same;

    if (mo_policy_load_pins(p, &e) < 0)
        return false;
    same = mo_tool_pins_look(p->pins, t, &own);
    if (!same)
        list_changed(p, t, &own);
    else if (c)
        drop_changed(p, c);
    if (!same && before)
        (void)mo_buf_span(before, mo_buf_view(&own));
    if (same && !mo_timer_on(&p->flush))
        mo_timer_start(p->loop, &p->flush, FLUSH_MS);
    return same;
}

/* Never 0: in the map, NULL means no entry. */
static uint64_t hash_item(const struct mo_policy *p, struct mo_json item)
{
    return mo_siphash(p->key0, p->key1, mo_json_text(item)) | 1;
}

/* True if these bytes matched the pin before. */
static bool is_known(const struct mo_policy *p, struct mo_span key,
                     uint64_t hash)
{
    return key.n && (uintptr_t)mo_map_get(&p->known, key) == (uintptr_t)hash;
}

bool mo_policy_item_is_pinned(struct mo_policy *p, struct mo_span server,
                              struct mo_span tool, struct mo_json item)
{
    uint64_t hash = hash_item(p, item);
    char buf[KEY_MAX];
    struct mo_span key = make_key(buf, server, tool);
    mo_autoarena struct mo_arena a = {.cap = TEXT_MAX};
    struct mo_tool t;
    bool same;

    if (is_known(p, key, hash))
        return true;
    same = mo_tool_pins_read_tool(server, tool, item, &a, &t) == 0 &&
           mo_policy_tool_is_pinned(p, &t, NULL);
    if (same && key.n)
        (void)mo_map_put(&p->known, key, (void *)(uintptr_t)hash, NULL);
    return same;
}

bool mo_policy_item_changed(void *ctx, struct mo_span server,
                            struct mo_span tool, struct mo_json item)
{
    struct mo_policy *p = ctx;
    struct mo_err e;
    char buf[KEY_MAX];

    if (p->cfg->gateway.approvals == MO_GW_NO_RULES ||
        is_known(p, make_key(buf, server, tool), hash_item(p, item)) ||
        mo_policy_load_pins(p, &e) < 0 ||
        !mo_tool_pins_changed(p->pins, server, tool, item))
        return false;
    /* Lists the tool, so that people see what changed. */
    return !mo_policy_item_is_pinned(p, server, tool, item);
}

/* --- accepting ----------------------------------------------------------- */

int mo_policy_accept_tool(struct mo_policy *p, const struct mo_tool *t)
{
    struct changed_tool *c = find_changed(p, t->def.server, t->def.name);
    struct mo_err e;
    int rc = mo_policy_load_pins(p, &e);

    if (rc == 0)
        rc = mo_tool_pins_accept(p->pins, t);
    if (rc < 0)
        return rc;
    mo_policy_flush_pins(p);
    if (c)
        drop_changed(p, c);
    return 0;
}

const struct mo_tool *mo_policy_find_changed(const struct mo_policy *p,
                                             struct mo_span server,
                                             struct mo_span tool)
{
    const struct changed_tool *c = find_changed(p, server, tool);

    return c ? &c->tool : NULL;
}

static void put_changed(struct mo_jw *w, const struct changed_tool *c)
{
    const struct mo_tool_def *d = &c->tool.def;

    mo_jw_obj(w);
    mo_jw_member(w, "server", d->server);
    mo_jw_member(w, "tool", d->name);
    mo_jw_member(w, "digest", mo_span_cstr(c->tool.digest));
    mo_jw_member_raw(w, "before", mo_buf_view(&c->before));
    mo_jw_member_obj(w, "now");
    mo_jw_member_opt(w, "description", d->description);
    mo_jw_member_raw(w, "inputSchema", d->schema);
    mo_jw_member_raw(w, "annotations", d->annotations);
    mo_jw_end(w);
    mo_jw_end(w);
}

void mo_policy_put_changed(struct mo_policy *p, struct mo_jw *w)
{
    mo_jw_arr(w);
    mo_list_each_entry_safe (c, &p->changed, struct changed_tool, node) {
        if (!mo_policy_tool_is_pinned(p, &c->tool, NULL))
            put_changed(w, c); /* otherwise it was accepted and c is freed */
    }
    mo_jw_end(w);
}
