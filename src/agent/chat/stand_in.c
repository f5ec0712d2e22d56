/*
 * stand_in.c - runs a call on a stand-in when its server is down.
 *
 * For calls that needed no approval the gateway does this itself. A call that
 * waited for approval is sent only after its server confirmed that the tool is
 * unchanged. If the server cannot, its stand-ins are asked for their tool, in
 * the configured order. The approval was for the first server, so the rules are
 * applied again for the stand-in; if they require a person, the call becomes
 * pending again, shown with its new server. The result, the page and the audit
 * log name the server that ran the call.
 *
 * Limits: TEXT_MAX bytes of names and reasons; beyond that no stand-in is used.
 * Each stand-in is tried once. After a restart a call that is pending for a
 * stand-in continues with the stand-ins of that server.
 */
#include "agent/chat/stand_in.h"

#include "agent/chat/calls.h"
#include "agent/chat/changed_tools.h"
#include "agent/chat/chat_priv.h"
#include "agent/chat/router.h"
#include "agent/chat/run.h"
#include "agent/chat/verdict.h"
#include "gateway/inside.h"

#define TEXT_MAX ((size_t)64 * 1024)

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

static struct mo_span dup_span(struct stand_in *a, struct mo_span s)
{
    const char *p = mo_arena_strndup(&a->arena, s.p ? s.p : "", s.n);

    return mo_span(p, p ? s.n : 0);
}

static int new_stand_in(struct call *k, const char *why)
{
    struct stand_in *a = mo_new(struct stand_in);

    if (a == NULL)
        return MO_ENOMEM;
    mo_arena_init(&a->arena, TEXT_MAX);
    k->stand_in = a;
    a->server = dup_span(a, k->tool->def.server);
    a->tool = dup_span(a, k->tool->def.name);
    a->why = dup_span(a, mo_span_cstr(why)).p;
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
        a->to = dup_span(a, to);
        a->own = dup_span(a, own);
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

/* The format of gateway/call/failover.h. */
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
    mo_chat_call_fail(
        k, MO_CALL_DONE,
        "The call was not run: %.*s is down (%s), and %.*s, which stands "
        "in for it, %s%s%.*s.",
        (int)a->server.n, a->server.p, a->why, (int)a->to.n, a->to.p, because,
        reason.n > 0 ? ": " : "", (int)reason.n, reason.p);
}

static void judge_stand_in(struct call *k, const struct stand_in *a)
{
    struct mo_verdict v = mo_chat_call_verdict(k);

    switch (v.action) {
    case MO_ACTION_ALLOW:
        k->by = v.remembered ? "remembered" : "rule";
        k->who[0] = '\0';
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
    if (mo_chat_router_swap(k, a->to, a->own) < 0) {
        if (!check_next(k, a))
            fail_call(k, a, "does not have that tool", MO_SPAN(""));
        return;
    }
    mo_chat_calls_digest(k);
    if (put_route(k, a) < 0)
        fail_call(k, a, "cannot run it", MO_SPAN("out of memory"));
    else if (!mo_changed_tools_is_same(k->chat, k->tool))
        fail_call(k, a, "changed its tool since it was first seen",
                  MO_SPAN("a person must accept it"));
    else
        judge_stand_in(k, a);
}

/* --- note in the result -------------------------------------------------- */

static struct mo_span route_text(struct mo_json route, const char *key,
                                 struct mo_arena *a)
{
    struct mo_span s = {NULL, 0};

    if (mo_json_str(mo_json_get(route, key), a, &s) < 0)
        s.n = 0;
    return s;
}

void mo_stand_in_note(struct call *k)
{
    struct mo_json route = {k->route.p, k->route.len};
    struct mo_span from, to, why;
    mo_autoarena struct mo_arena a = {.cap = TEXT_MAX};
    struct mo_buf b;

    if (k->route.len == 0 || !mo_json_get(route, "insteadOf").p ||
        k->content.len < 2)
        return;
    mo_buf_init(&b, TEXT_MAX);
    from = route_text(route, "insteadOf", &a);
    to = route_text(route, "server", &a);
    why = route_text(route, "why", &a);
    (void)mo_buf_printf(&b,
                        "[%.*s ran this call in the place of %.*s, which is "
                        "down: %.*s]",
                        (int)to.n, to.p, (int)from.n, from.p, (int)why.n,
                        why.p);
    k->content.len--; /* overwrite the closing bracket */
    if (k->content.len > 1)
        (void)mo_buf_putc(&k->content, ',');
    (void)mo_buf_puts(&k->content, "{\"type\":\"text\",\"text\":");
    (void)mo_json_quote(&k->content, mo_buf_view(&b));
    (void)mo_buf_puts(&k->content, "}]");
    mo_buf_fini(&b);
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
