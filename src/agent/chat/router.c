/* router.c - replaces the tool of a call: a call of `execute` by the tool it
 * would run, the tool of a server that is down by that of a stand-in.
 *
 * A model that is offered only the gateway's search tools runs all other tools
 * through execute, by name or by a description. The tool is chosen before
 * approval, so that rules, pins, the person and the audit log see the tool that
 * really runs, with its own arguments. If execute would run nothing (no match,
 * ambiguous, bad params), the call stays a call of execute, which has no effect
 * and explains the problem.
 *
 * A call whose server is down runs on a stand-in. For calls that needed no
 * approval the gateway does this itself. A call that waited for approval is
 * sent only after its server confirmed that the tool is unchanged. If the
 * server cannot, its stand-ins are asked for their tool, in the configured
 * order. The approval was for the first server, so the rules are applied again
 * for the stand-in; if they require a person, the call becomes pending again,
 * shown with its new server. The result, the page and the audit log name the
 * server that ran the call.
 *
 * Limits: TEXT_MAX bytes of names and reasons; beyond that no stand-in is used.
 * Each stand-in is tried once. After a restart a call that is pending for a
 * stand-in continues with the stand-ins of that server. */

#include "agent/chat/calls.h"
#include "agent/chat/load_tools.h"
#include "gateway/inside.h"

#define ROUTED_MAX ((size_t)8 * 1024 * 1024)
#define TEXT_MAX   ((size_t)64 * 1024)

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

/* Copies the current definition; on success the call owns it. */
static int take_tool(struct call *k, struct routed_tool *o,
                     struct mo_span server, struct mo_span tool)
{
    const struct mo_gateway *g = k->chat->agent->o.servers.gateway;
    const struct mo_cat_item *it = mo_gateway_tool(g, server, tool);
    struct mo_span own, host, text;

    if (it == NULL)
        return MO_ENOTFOUND;
    own = mo_span_dup(&o->arena, tool);
    host = mo_span_dup(&o->arena, server);
    text = mo_span_dup(&o->arena, mo_json_text(it->item));
    if (!own.p || !host.p || !text.p ||
        mo_tool_read(&o->arena, host, own, (struct mo_json){text.p, text.n},
                     &o->tool) < 0)
        return MO_ENOMEM;
    if (o->tool.app_only)
        return MO_ENOTFOUND;
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
        o->words = mo_span_dup(&o->arena,
                               words); /* the arguments are replaced later */
}

static void choose_tool(struct call *k)
{
    const struct mo_tool *before = k->tool;
    struct routed_tool *o = routed_new();
    struct mo_gw_choice ch;
    struct mo_json_doc doc;

    if (o == NULL)
        return;
    if (mo_json_parse(mo_buf_view(&k->args), 0, &doc, NULL) < 0 ||
        mo_gateway_choose(k->chat->agent->o.servers.gateway,
                          mo_gateway_client_peer(k->chat), doc.root, &o->arena,
                          &ch) < 0 ||
        take_tool(k, o, ch.server, ch.tool) < 0) {
        undo_choice(k, o, before);
        return;
    }
    take_words(o, doc.root, ch.sure);
    if (mo_chat_call_take_args(k, ch.params, NULL) < 0)
        undo_choice(k, o, before);
}

void mo_chat_router_choose(struct call *k)
{
    uint64_t since = mo_now_ns();

    choose_tool(k);
    mo_call_span_route(k, since);
}

/* The tool of that name: as a model sees it, as clients of the gateway see it,
 * or SERVER.TOOL. */
static const struct mo_cat_item *find_named(const struct mo_gateway *g,
                                            struct mo_span name)
{
    const struct mo_catalog *cat = mo_gateway_catalog(g);
    const struct mo_cat_item *it = mo_catalog_find(cat, MO_CAT_TOOLS, name);
    size_t n = mo_catalog_count(cat, MO_CAT_TOOLS);
    struct mo_span tool = name;
    struct mo_span server = mo_span_cut(&tool, '.');
    char shown[MO_TOOLS_NAME_MAX];

    if (it == NULL && tool.n > 0)
        it = mo_gateway_tool(g, server, tool);
    for (size_t i = 0; it == NULL && i < n; i++) {
        const struct mo_cat_item *x = mo_catalog_at(cat, MO_CAT_TOOLS, i);

        server = mo_span_cstr(mo_catalog_about(cat, x->server).name);
        mo_tools_name(server, x->given, false, false, shown);
        if (mo_span_is(name, shown))
            it = x;
    }
    return it;
}

void mo_chat_router_named(struct call *k, struct mo_span name)
{
    const struct mo_gateway *g = k->chat->agent->o.servers.gateway;
    const struct mo_cat_item *it = g ? find_named(g, name) : NULL;
    struct routed_tool *o = it ? routed_new() : NULL;
    struct mo_cat_about about;

    if (o == NULL)
        return;
    about = mo_catalog_about(mo_gateway_catalog(g), it->server);
    o->sure = 1;
    if (take_tool(k, o, mo_span_cstr(about.name), it->own) < 0)
        undo_choice(k, o, NULL);
}

void mo_chat_router_recall(struct call *k, struct mo_json kept)
{
    const struct mo_tool *before = k->tool;
    struct mo_span server, tool;
    struct routed_tool *o = routed_new();

    if (o == NULL)
        return;
    if (mo_json_str(mo_json_get(kept, "server"), &o->arena, &server) < 0 ||
        mo_json_str(mo_json_get(kept, "tool"), &o->arena, &tool) < 0 ||
        take_tool(k, o, server, tool) < 0 ||
        mo_chat_call_take_args(k, mo_json_get(kept, "args"), NULL) < 0)
        undo_choice(k, o, before);
}

struct mo_span mo_chat_router_words(const struct call *k, float *sure)
{
    *sure = k->routed ? k->routed->sure : 1;
    return k->routed ? k->routed->words : (struct mo_span){NULL, 0};
}

/* --- stand-ins ----------------------------------------------------------- */

struct stand_in {
    struct mo_arena arena;
    struct mo_span server, tool; /* the original target */
    const char *why;             /* why that server is down */
    struct mo_span to, own;      /* the stand-in that is checked */
    bool checking;
    unsigned next; /* index of the next stand-in */
};

void mo_stand_in_free(struct call *k)
{
    struct stand_in *a = mo_take_ptr(&k->stand_in);

    if (a == NULL)
        return;
    mo_arena_fini(&a->arena);
    mo_free(a);
}

static int new_stand_in(struct call *k, const char *why)
{
    struct stand_in *a = mo_new(struct stand_in);

    if (a == NULL)
        return MO_ENOMEM;
    mo_arena_init(&a->arena, TEXT_MAX);
    k->stand_in = a;
    a->server = mo_span_dup(&a->arena, k->tool->def.server);
    a->tool = mo_span_dup(&a->arena, k->tool->def.name);
    a->why = mo_span_dup(&a->arena, mo_span_cstr(why)).p;
    if (a->server.p && a->tool.p && a->why)
        return 0;
    mo_stand_in_free(k);
    return MO_ENOMEM;
}

/* Chooses the next stand-in; false: none is left. */
static bool choose_next(struct call *k, struct stand_in *a)
{
    const struct mo_gateway *g = k->chat->agent->o.servers.gateway;
    struct mo_span to, own;

    while (mo_gateway_stand_in(g, a->server, a->tool, a->next, &to, &own)) {
        a->next++;
        a->to = mo_span_dup(&a->arena, to);
        a->own = mo_span_dup(&a->arena, own);
        if (a->to.p && a->own.p && !mo_span_eq(to, a->server))
            return true;
    }
    return false;
}

static bool check_next(struct call *k, struct stand_in *a)
{
    struct mo_err e;

    a->checking =
        choose_next(k, a) && mo_chat_call_check_tool(k, a->to, &e) == 0;
    if (a->checking)
        k->chat->writes++;
    return a->checking;
}

bool mo_stand_in_next(struct call *k, const char *why)
{
    if (k->stand_in == NULL && new_stand_in(k, why) < 0)
        return false;
    return check_next(k, k->stand_in);
}

bool mo_stand_in_is_checking(const struct call *k)
{
    return k->stand_in && k->stand_in->checking;
}

const char *mo_stand_in_why(const struct call *k, const char *other)
{
    return k->stand_in ? k->stand_in->why : other;
}

/* Replaces the tool by that of the stand-in. MO_ENOTFOUND: it has no tool of
 * that name, and nothing changes. */
static int swap_tool(struct call *k, struct mo_span server, struct mo_span tool)
{
    struct routed_tool *old = k->routed, *o = routed_new();
    int rc = MO_ENOMEM;

    if (o == NULL)
        return rc;
    if (old) {
        o->words = mo_span_dup(&o->arena, old->words);
        o->sure = old->sure;
    }
    rc = take_tool(k, o, server, tool); /* changes nothing on failure */
    routed_free(rc < 0 ? o : old);
    return rc;
}

/* The format of gateway/call/failover.c. */
static int put_route(struct call *k, const struct stand_in *a)
{
    struct mo_jw w;

    mo_buf_reset(&k->route);
    w = mo_jw_object(&k->route);
    mo_jw_member(&w, "server", a->to);
    mo_jw_member(&w, "tool", a->own);
    mo_jw_member(&w, "insteadOf", a->server);
    mo_jw_member_cstr(&w, "why", a->why);
    mo_jw_end(&w);
    return mo_buf_err(&k->route);
}

static void fail_call(struct call *k, const struct stand_in *a,
                      const char *because, struct mo_span reason)
{
    mo_chat_call_skip(
        k, "%.*s is down (%s), and %.*s, which stands in for it, %s%s%.*s",
        (int)a->server.n, a->server.p, a->why, (int)a->to.n, a->to.p, because,
        reason.n > 0 ? ": " : "", (int)reason.n, reason.p);
}

/* The approval was for another server's tool, and so were the arguments. */
static void judge_stand_in(struct call *k, const struct stand_in *a)
{
    struct mo_verdict v = mo_chat_call_verdict(k);
    struct mo_err e;

    k->answered = MO_ANSWERED_NOT;
    k->door = (struct mo_door){NULL, false};
    if (mo_exact_fits(
            (struct mo_json){k->tool->def.schema.p, k->tool->def.schema.n},
            (struct mo_json){k->args.p, k->args.len}, &e) < 0) {
        fail_call(k, a, "cannot run it", mo_span_cstr(e.msg));
        return;
    }
    switch (v.action) {
    case MO_ACTION_ALLOW:
        mo_chat_call_allowed(k, &v);
        mo_chat_call_send(k);
        return;
    case MO_ACTION_DENY:
        fail_call(k, a, "may not run it",
                  v.rule ? v.rule->reason : MO_SPAN(""));
        return;
    default:
        mo_chat_call_ask_again(k);
    }
}

void mo_stand_in_list_read(struct call *k)
{
    struct stand_in *a = k->stand_in;

    a->checking = false;
    if (swap_tool(k, a->to, a->own) < 0) {
        if (!check_next(k, a))
            fail_call(k, a, "does not have that tool", MO_SPAN(""));
        return;
    }
    mo_chat_calls_digest(k);
    if (put_route(k, a) < 0)
        fail_call(k, a, "cannot run it", MO_SPAN("out of memory"));
    else if (!mo_policy_tool_is_pinned(k->chat->agent->o.policy, k->tool, NULL))
        fail_call(k, a, "changed its tool since it was first seen",
                  MO_SPAN("a person must accept it"));
    else
        judge_stand_in(k, a);
}

/* --- note in the result -------------------------------------------------- */

void mo_stand_in_note(struct call *k)
{
    struct mo_json route = {k->route.p, k->route.len};
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};

    if (k->route.len == 0 || !mo_json_get(route, "insteadOf").p ||
        k->content.len < 2)
        return;
    (void)mo_buf_putc(&b, '[');
    (void)mo_json_str_buf(mo_json_get(route, "server"), &b);
    (void)mo_buf_puts(&b, " ran this call in the place of ");
    (void)mo_json_str_buf(mo_json_get(route, "insteadOf"), &b);
    (void)mo_buf_puts(&b, ", which is down: ");
    (void)mo_json_str_buf(mo_json_get(route, "why"), &b);
    (void)mo_buf_putc(&b, ']');
    k->content.len--; /* overwrite the closing bracket */
    (void)mo_buf_puts(&k->content, k->content.len > 1 ? "," : "");
    (void)mo_buf_puts(&k->content, "{\"type\":\"text\",\"text\":");
    (void)mo_json_quote(&k->content, mo_buf_view(&b));
    (void)mo_buf_puts(&k->content, "}]");
}

bool mo_stand_in_recall(struct call *k, struct mo_json kept)
{
    struct mo_json route = mo_json_get(kept, "route");

    if (!mo_json_is(route, MO_JSON_OBJECT))
        return false;
    if (mo_json_compact(route, &k->route) < 0)
        mo_buf_reset(&k->route);
    return k->state == MO_CALL_PENDING;
}
