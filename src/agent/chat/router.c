/*
 * router.c - replaces a call of `execute` by the tool it would run.
 *
 * A model that is offered only the gateway's search tools runs all other tools
 * through execute, by name or by a description. The tool is chosen before
 * approval, so that rules, pins, the person and the audit log see the tool that
 * really runs, with its own arguments. If execute would run nothing (no match,
 * ambiguous, bad params), the call stays a call of execute, which has no effect
 * and explains the problem.
 */
#include "agent/chat/router.h"

#include "agent/chat/calls.h"
#include "agent/chat/chat_priv.h"
#include "agent/chat/gateway_client.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/verdict.h"
#include "gateway/inside.h"

#define ROUTED_MAX ((size_t)8 * 1024 * 1024)

struct routed_tool { /* a tool outside chat->tools */
    struct mo_arena arena;
    struct mo_tool tool;
    char name[MO_LLM_NAME_MAX];
    struct mo_span words; /* the description it was found by; or empty */
    float sure;
};

bool mo_chat_router_is_run(const struct call *k)
{
    return k->tool && k->tool->source == SOURCE_ROUTER &&
           mo_span_is(k->tool->def.name, "execute");
}

static void routed_free(struct routed_tool *o)
{
    if (o == NULL)
        return;
    mo_arena_fini(&o->arena);
    mo_free(o);
}

void mo_chat_router_free(struct call *k)
{
    routed_free(mo_take_ptr(&k->routed));
}

static struct routed_tool *routed_new(void)
{
    struct routed_tool *o = mo_new(struct routed_tool);

    if (o)
        mo_arena_init(&o->arena, ROUTED_MAX);
    return o;
}

static struct mo_span dup_span(struct routed_tool *o, struct mo_span s)
{
    const char *p = mo_arena_strndup(&o->arena, s.p ? s.p : "", s.n);

    return mo_span(p, p ? s.n : 0);
}

/* Copies the current definition; on success the call owns it. */
static int take_tool(struct call *k, struct routed_tool *o,
                     struct mo_span server, struct mo_span tool)
{
    const struct mo_gateway *g = k->chat->agent->o.servers.gateway;
    const struct mo_cat_item *it = mo_gateway_tool(g, server, tool);
    struct mo_span own, host, text;

    if (it == NULL)
        return MO_ENOTFOUND;
    own = dup_span(o, tool);
    host = dup_span(o, server);
    text = dup_span(o, mo_json_text(it->item));
    if (!own.p || !host.p || !text.p ||
        mo_tool_read(&o->arena, host, own, (struct mo_json){text.p, text.n},
                     &o->tool) < 0)
        return MO_ENOMEM;
    mo_tools_name(host, it->given, false, false, o->name);
    o->tool.name = mo_span_cstr(o->name);
    o->tool.source = SOURCE_SERVERS;
    k->routed = o;
    k->tool = &o->tool;
    return 0;
}

static void undo_choice(struct call *k, struct routed_tool *o,
                        const struct mo_tool *before)
{
    routed_free(o);
    k->routed = NULL;
    k->tool = before;
}

/* Keeps the description, unless the tool was named. */
static void take_words(struct routed_tool *o, struct mo_json args, float sure)
{
    struct mo_json request = mo_json_get(args, "request");
    struct mo_span words = {NULL, 0};

    o->sure = sure;
    if (!mo_json_get(args, "tool").p && mo_json_is(request, MO_JSON_STRING) &&
        mo_json_str(request, &o->arena, &words) == 0)
        o->words = dup_span(o, words); /* the arguments are replaced later */
}

void mo_chat_router_choose(struct call *k)
{
    const struct mo_tool *before = k->tool;
    struct routed_tool *o = routed_new();
    struct mo_gw_choice ch;
    struct mo_json_doc doc;
    int rc = MO_ENOMEM;

    if (o == NULL)
        return;
    rc = mo_json_parse(mo_buf_view(&k->args), 0, &doc, NULL);
    if (rc == 0)
        rc = mo_gateway_choose(k->chat->agent->o.servers.gateway,
                               mo_gateway_client_peer(k->chat), doc.root,
                               &o->arena, &ch);
    if (rc == 0)
        rc = take_tool(k, o, ch.server, ch.tool);
    if (rc == 0) {
        take_words(o, doc.root, ch.sure);
        rc = mo_chat_call_take_args(k, ch.params, NULL);
    }
    if (rc < 0)
        undo_choice(k, o, before);
}

void mo_chat_router_recall(struct call *k, struct mo_json kept)
{
    const struct mo_tool *before = k->tool;
    struct mo_span server = {NULL, 0}, tool = {NULL, 0};
    struct routed_tool *o = routed_new();
    int rc = MO_ENOMEM;

    if (o == NULL)
        return;
    rc = mo_json_str(mo_json_get(kept, "server"), &o->arena, &server);
    if (rc == 0)
        rc = mo_json_str(mo_json_get(kept, "tool"), &o->arena, &tool);
    if (rc == 0)
        rc = take_tool(k, o, server, tool);
    if (rc == 0)
        rc = mo_chat_call_take_args(k, mo_json_get(kept, "args"), NULL);
    if (rc < 0)
        undo_choice(k, o, before);
}

int mo_chat_router_swap(struct call *k, struct mo_span server,
                        struct mo_span tool)
{
    struct routed_tool *old = k->routed, *o = routed_new();
    int rc = MO_ENOMEM;

    if (o == NULL)
        return rc;
    if (old) {
        o->words = dup_span(o, old->words);
        o->sure = old->sure;
    }
    rc = take_tool(k, o, server, tool); /* changes nothing on failure */
    routed_free(rc < 0 ? o : old);
    return rc;
}

struct mo_span mo_chat_router_words(const struct call *k, float *sure)
{
    *sure = k->routed ? k->routed->sure : 1;
    return k->routed ? k->routed->words : (struct mo_span){NULL, 0};
}
