#include "gateway/upstream/server_overrides.h"

struct server_overrides {
    struct mo_arena a;
    struct mo_config_list fallback;
    int retries;
    int64_t result_bytes;
    struct mo_map tools; /* own name -> struct mo_config_tool */
};

static const struct mo_config_tool no_override = {
    .retries = -1,
    .result_bytes = -1,
};

/* --- copies -------------------------------------------------------------- */

static int copy_text(struct mo_arena *a, const char **text)
{
    if (*text == NULL)
        return 0;
    *text = mo_arena_strndup(a, *text, strlen(*text));
    return *text ? 0 : MO_ENOMEM;
}

static int copy_texts(struct mo_arena *a, struct mo_config_list *t)
{
    const char **v = mo_arena_alloc(a, (t->n + 1) * sizeof(*v));

    if (v == NULL)
        return MO_ENOMEM;
    for (size_t i = 0; i < t->n; i++) {
        v[i] = t->v[i];
        if (copy_text(a, &v[i]) < 0)
            return MO_ENOMEM;
    }
    t->v = v;
    return 0;
}

static int put_tool(struct server_overrides *m,
                    const struct mo_config_tool *from)
{
    struct mo_config_tool *t = mo_arena_new(&m->a, struct mo_config_tool);

    if (t == NULL)
        return MO_ENOMEM;
    *t = *from;
    if (copy_text(&m->a, &t->name) < 0 || copy_text(&m->a, &t->rename) < 0 ||
        copy_text(&m->a, &t->describe) < 0 ||
        copy_texts(&m->a, &t->fallback) < 0)
        return MO_ENOMEM;
    return mo_map_put(&m->tools, mo_span_cstr(t->name), t, NULL);
}

struct server_overrides *mo_overrides_new(const struct mo_gw_server *s)
{
    struct server_overrides *m = mo_new(struct server_overrides);
    int rc = 0;

    if (m == NULL)
        return NULL;
    mo_arena_init(&m->a, OVERRIDES_TEXT_MAX);
    mo_map_init(&m->tools, MO_GW_TOOLS_MAX);
    m->fallback = s->fallback;
    m->retries = s->retries;
    m->result_bytes = s->result_bytes;
    rc = copy_texts(&m->a, &m->fallback);
    for (size_t i = 0; i < s->ntools && rc == 0; i++)
        rc = put_tool(m, &s->tools[i]);
    if (rc == 0)
        return m;
    mo_overrides_free(m);
    return NULL;
}

void mo_overrides_free(struct server_overrides *m)
{
    if (m == NULL)
        return;
    mo_map_fini(&m->tools);
    mo_arena_fini(&m->a);
    mo_free(m);
}

/* --- lookups ------------------------------------------------------------- */

const struct mo_config_tool *mo_overrides_tool(const struct server_overrides *m,
                                               struct mo_span own)
{
    const struct mo_config_tool *t =
        m && m->tools.len ? mo_map_get(&m->tools, own) : NULL;

    return t ? t : &no_override;
}

bool mo_overrides_fallback(const struct server_overrides *m,
                           struct mo_span tool, size_t i,
                           struct mo_span *server, struct mo_span *own)
{
    const struct mo_config_list *t = &mo_overrides_tool(m, tool)->fallback;
    struct mo_span rest;

    if (m && t->n == 0)
        t = &m->fallback;
    if (i >= t->n)
        return false;
    rest = mo_span_cstr(t->v[i]);
    *server = mo_span_cut(&rest, '/');
    *own = rest.n ? rest : tool;
    return true;
}

unsigned mo_overrides_retries(const struct server_overrides *m,
                              struct mo_span tool)
{
    int64_t own = mo_overrides_tool(m, tool)->retries;
    int64_t all = m ? m->retries : 0;

    return (unsigned)(own >= 0 ? own : all >= 0 ? all : MO_GW_RETRIES);
}

size_t mo_overrides_result_bytes(const struct server_overrides *m,
                                 struct mo_span tool, size_t usual)
{
    int64_t own = mo_overrides_tool(m, tool)->result_bytes;
    int64_t all = m ? m->result_bytes : -1;

    return own >= 0 ? (size_t)own : all >= 0 ? (size_t)all : usual;
}

bool mo_overrides_has_limit(const struct server_overrides *m)
{
    if (!m || m->result_bytes > 0)
        return m != NULL;
    mo_map_each (en, &m->tools) {
        const struct mo_config_tool *t = en->value;

        if (t->result_bytes > 0)
            return true;
    }
    return false;
}
