#include "agent/chat/tools_off.h"

#include "agent/chat/chat_priv.h"
#include "agent/chat/event.h"
#include "agent/chat/session_memory.h"

struct tools_off {
    struct mo_arena arena;
    size_t n;
    struct {
        struct mo_span server, tool; /* tool empty: all of the server */
    } v[MO_TOOLS_OFF_MAX];
};

static void list_free(struct tools_off *o)
{
    if (o == NULL)
        return;
    mo_arena_fini(&o->arena);
    mo_free(o);
}

void mo_tools_off_free(struct chat *c)
{
    list_free(mo_take_ptr(&c->off));
}

/* A copy: text without escapes is borrowed from the document. */
static int read_name(struct tools_off *o, struct mo_json v, struct mo_span *out)
{
    struct mo_span name;

    if (mo_json_str(v, &o->arena, &name) < 0 || name.n == 0)
        return MO_EINVAL;
    *out = mo_span_dup(&o->arena, name);
    return out->p ? 0 : MO_ENOMEM;
}

static int read_row(struct tools_off *o, struct mo_json row)
{
    struct mo_json tool = mo_json_get(row, "tool");
    int rc = 0;

    if (o->n >= MO_TOOLS_OFF_MAX)
        return MO_ETOOBIG;
    rc = read_name(o, mo_json_get(row, "server"), &o->v[o->n].server);
    if (rc == 0 && tool.p)
        rc = read_name(o, tool, &o->v[o->n].tool);
    if (rc == 0)
        o->n++;
    return rc;
}

int mo_tools_off_read(struct chat *c, struct mo_json list, struct mo_err *e)
{
    struct tools_off *o = mo_new(struct tools_off);
    int rc = o ? 0 : MO_ENOMEM;

    if (o)
        mo_arena_init(&o->arena, MO_TOOLS_OFF_BYTES);
    if (rc == 0 && list.p && !mo_json_is(list, MO_JSON_ARRAY))
        rc = MO_EINVAL;
    if (rc == 0)
        mo_json_each (at, list)
            if (rc == 0)
                rc = read_row(o, at.val);
    if (rc < 0) {
        list_free(o);
        return mo_fail(e, rc == MO_ENOMEM ? rc : MO_EINVAL,
                       "off is a list of at most %d {server, tool?}",
                       MO_TOOLS_OFF_MAX);
    }
    mo_tools_off_free(c);
    c->off = o;
    return 0;
}

bool mo_tools_off_has(const struct chat *c, const struct mo_tool *t)
{
    for (size_t i = 0; c->off && i < c->off->n; i++)
        if (mo_span_eq(c->off->v[i].server, t->def.server) &&
            (c->off->v[i].tool.n == 0 ||
             mo_span_eq(c->off->v[i].tool, t->name)))
            return true;
    return false;
}

void mo_tools_off_put(struct mo_jw *w, const struct chat *c)
{
    mo_jw_member_arr(w, "toolsOff");
    for (size_t i = 0; c->off && i < c->off->n; i++) {
        mo_jw_obj(w);
        mo_jw_member(w, "server", c->off->v[i].server);
        mo_jw_member_opt(w, "tool", c->off->v[i].tool);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

int mo_agent_tools_off(struct mo_agent *a, struct mo_span session,
                       struct mo_json list, struct mo_err *e)
{
    struct chat *c = mo_map_get(&a->chats, session);
    int rc = 0;

    if (c == NULL || c->hold == NULL || !c->ready)
        return mo_fail(e, MO_EPOLICY, "the conversation is not open");
    rc = mo_tools_off_read(c, list, e);
    if (rc < 0)
        return rc;
    c->stale = c->stale || c->skills; /* read_skill names what is on */
    mo_session_memory_save(c);
    mo_chat_event_tools_off(c);
    return 0;
}
