#include "gateway/catalog/filter.h"

#include "base/mem.h"

#define TEXTS_MAX ((size_t)32 * 1024 * 1024)

struct pattern {
    struct mo_span server, tool;
    bool out; /* leaves tools out */
};

struct mo_filter {
    struct mo_arena arena;
    struct mo_span *servers;
    size_t nservers; /* 0: those that a pattern can choose */
    struct pattern *tools;
    size_t ntools; /* 0: all */
    bool read_only;
};

/* --- life ---------------------------------------------------------------- */

static bool copy_servers(struct mo_filter *f, const struct mo_config_list *from)
{
    f->servers = mo_arena_alloc(&f->arena, (from->n + 1) * sizeof(*f->servers));
    for (size_t i = 0; f->servers && i < from->n; i++) {
        if (mo_arena_span(&f->arena, mo_span_cstr(from->v[i]), &f->servers[i]) <
            0)
            return false;
        f->nservers++;
    }
    return f->servers != NULL;
}

static bool copy_patterns(struct mo_filter *f,
                          const struct mo_config_list *from)
{
    f->tools = mo_arena_alloc(&f->arena, (from->n + 1) * sizeof(*f->tools));
    for (size_t i = 0; f->tools && i < from->n; i++) {
        struct pattern *p = &f->tools[i];

        if (mo_arena_span(&f->arena, mo_span_cstr(from->v[i]), &p->tool) < 0)
            return false;
        p->out = mo_span_strip(&p->tool, MO_SPAN("!"));
        p->server = mo_span_cut(&p->tool, '/');
        f->ntools++;
    }
    return f->tools != NULL;
}

struct mo_filter *mo_filter_new(const struct mo_config_view *v)
{
    struct mo_filter *f = mo_new(struct mo_filter);

    if (!f)
        return NULL;
    mo_arena_init(&f->arena, TEXTS_MAX);
    f->read_only = v->read_only;
    if (copy_servers(f, &v->servers) && copy_patterns(f, &v->tools))
        return f;
    mo_filter_free(f);
    return NULL;
}

void mo_filter_free(struct mo_filter *f)
{
    if (!f)
        return;
    mo_arena_fini(&f->arena);
    mo_free(f);
}

bool mo_filter_same(const struct mo_filter *a, const struct mo_filter *b)
{
    bool same = a->read_only == b->read_only && a->nservers == b->nservers &&
                a->ntools == b->ntools;

    for (size_t i = 0; same && i < a->nservers; i++)
        same = mo_span_eq(a->servers[i], b->servers[i]);
    for (size_t i = 0; same && i < a->ntools; i++)
        same = a->tools[i].out == b->tools[i].out &&
               mo_span_eq(a->tools[i].server, b->tools[i].server) &&
               mo_span_eq(a->tools[i].tool, b->tools[i].tool);
    return same;
}

/* --- patterns ------------------------------------------------------------ */

/* Bytes of the character at the start of a text that is not empty. */
static size_t char_len(struct mo_span s)
{
    size_t n = 1;

    while (n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* Only the last `*` needs to be tried again: what an earlier one could take
 * besides, the last one can take too. */
bool mo_filter_glob(struct mo_span pattern, struct mo_span text)
{
    struct mo_span after = {NULL, 0}, taken = {NULL, 0};

    while (text.n || pattern.n) {
        if (pattern.n && pattern.p[0] == '*') {
            after = mo_span_skip(pattern, 1);
            taken = text;
            pattern = after;
        } else if (pattern.n && text.n &&
                   (pattern.p[0] == '?' || pattern.p[0] == text.p[0])) {
            text = mo_span_skip(text, pattern.p[0] == '?' ? char_len(text) : 1);
            pattern = mo_span_skip(pattern, 1);
        } else if (after.p && taken.n) {
            taken = mo_span_skip(taken, char_len(taken));
            text = taken;
            pattern = after;
        } else {
            return false;
        }
    }
    return true;
}

static bool patterns_take(const struct mo_filter *f, struct mo_span server,
                          struct mo_span tool)
{
    for (size_t i = f->ntools; i > 0; i--) {
        const struct pattern *p = &f->tools[i - 1];

        if (mo_filter_glob(p->server, server) && mo_filter_glob(p->tool, tool))
            return !p->out;
    }
    return f->ntools == 0 || f->tools[0].out;
}

/* --- servers and tools --------------------------------------------------- */

bool mo_filter_server(const struct mo_filter *f, struct mo_span server)
{
    for (size_t i = 0; i < f->nservers; i++)
        if (mo_span_eq(f->servers[i], server))
            return true;
    if (f->nservers)
        return false;
    for (size_t i = 0; i < f->ntools; i++)
        if (!f->tools[i].out && mo_filter_glob(f->tools[i].server, server))
            return true;
    return f->ntools == 0 || f->tools[0].out;
}

bool mo_filter_tool(const struct mo_filter *f, struct mo_span server,
                    struct mo_span tool, struct mo_json item)
{
    return mo_filter_server(f, server) && patterns_take(f, server, tool) &&
           (!f->read_only ||
            mo_json_flag(mo_json_get(item, "annotations"), "readOnlyHint"));
}
