#include "gateway/call/rewrite.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcp/app.h"
#include "mcp/content.h"
#include "mcp/edit.h"
#include "mcp/skill.h"

#define MAC_LEN   16                  /* hex digits */
#define NAME_MAX_ ((size_t)64 * 1024) /* of a name or URI in JSON */

static const struct mo_json none = {NULL, 0};

enum what { TOOL, PROMPT, RESOURCE, REF, TASK, SKILL, DIRECTORY, NOTHING };

static const struct row {
    const char *method, *key;
    enum what what;
} methods[] = {
    {"tools/call", "name", TOOL},
    {"prompts/get", "name", PROMPT},
    {"resources/read", "uri", RESOURCE},
    {"completion/complete", NULL, REF},
    {"tasks/get", "taskId", TASK},
    {"tasks/update", "taskId", TASK},
    {"tasks/cancel", "taskId", TASK},
    {"skills/get", "uri", SKILL},
    {"resources/directory/read", "uri", DIRECTORY},
};

static const struct row *method_row(const struct mo_ep_call *c)
{
    static const struct row nothing = {"", NULL, NOTHING};

    for (size_t i = 0; i < MO_COUNT(methods); i++) {
        if (mo_span_is(c->method, methods[i].method))
            return &methods[i];
    }
    return &nothing;
}

bool mo_rewrite_is_task_method(const struct mo_ep_call *c)
{
    return method_row(c)->what == TASK;
}

void mo_rewrite_who(uint64_t peer, struct mo_span caller,
                    char out[MO_GW_WHO_MAX])
{
    uint64_t digits = htobe64(peer);

    if (peer)
        mo_hex(&digits, sizeof(digits), out);
    else
        (void)snprintf(out, MO_GW_WHO_MAX, "c:%.*s", (int)caller.n, caller.p);
}

void mo_rewrite_client(const struct mo_ep_call *c, char out[MO_GW_WHO_MAX])
{
    const struct mo_gw_view *v = c->scope;

    if (c->peer || !v || !v->part)
        mo_rewrite_who(c->peer, c->caller, out);
    else
        (void)snprintf(out, MO_GW_WHO_MAX, "v:%s:c:%.*s", v->name,
                       (int)c->caller.n, c->caller.p);
}

void mo_rewrite_person(struct mo_span person, char out[MO_GW_WHO_MAX])
{
    _Static_assert(MO_EP_PERSON_MAX + sizeof(MO_UPSTREAM_PERSON) <=
                       MO_GW_WHO_MAX,
                   "a name is never cut");
    MO_BUG_ON(person.n >= MO_EP_PERSON_MAX);
    (void)snprintf(out, MO_GW_WHO_MAX, MO_UPSTREAM_PERSON "%.*s", (int)person.n,
                   person.n ? person.p : "");
}

void mo_rewrite_put_text(struct mo_jw *w, struct mo_span text)
{
    mo_jw_member_arr(w, "content");
    mo_content_put_block(w, text);
    mo_jw_end(w);
}

void mo_rewrite_answer(struct mo_ep_call *c, const struct mo_buf *b)
{
    if (mo_buf_err(b))
        mo_ep_call_error(c, MO_RPC_INTERNAL, "out of memory", mo_span(NULL, 0));
    else
        mo_ep_call_result(c, mo_buf_view(b));
}

struct mo_span mo_rewrite_caps(const struct mo_gateway *g,
                               const struct mo_ep_call *c)
{
    struct mo_span caps = mo_json_text(c->caps);

    if (mo_mcp_is_modern(c->version) && !g->single)
        return mo_span(NULL, 0);
    return caps.n ? caps : MO_SPAN("{}");
}

uint64_t mo_rewrite_peer(struct mo_span who)
{
    char text[17];

    if (who.n != 16)
        return 0;
    (void)snprintf(text, sizeof(text), "%.*s", (int)who.n, who.p);
    return strspn(text, "0123456789abcdef") == 16 ? strtoull(text, NULL, 16)
                                                  : 0;
}

/* --- tasks --------------------------------------------------------------- */

/* Writes the MAC_LEN digits of the hash. rest: the id after them. */
static int put_mac(const struct mo_gateway *g, const struct mo_ep_call *c,
                   const struct server_slot *s, struct mo_span rest,
                   struct mo_buf *b)
{
    const char *server = mo_upstream_server(s->up)->name;
    char who[MO_GW_WHO_MAX];
    mo_autobuf struct mo_buf in = {.max = NAME_MAX_};
    int rc;

    mo_rewrite_client(c, who);
    (void)mo_buf_put(&in, who, strlen(who) + 1);
    (void)mo_buf_put(&in, server, strlen(server) + 1);
    rc = mo_buf_span(&in, rest);
    if (rc == 0)
        rc = mo_buf_printf(
            b, "%016llx",
            (unsigned long long)mo_siphash(g->key0, g->key1, mo_buf_view(&in)));
    return rc;
}

static bool is_task_of(const struct mo_gateway *g, const struct mo_ep_call *c,
                       const struct server_slot *s, struct mo_span id)
{
    mo_autobuf struct mo_buf mac = {.max = MAC_LEN};

    return put_mac(g, c, s, mo_span_skip(id, MAC_LEN), &mac) == 0 &&
           mo_span_eq_ct(mo_buf_view(&mac), mo_span_head(id, MAC_LEN));
}

int mo_rewrite_task(struct mo_gateway *g, const struct mo_ep_call *c,
                    struct mo_span id, struct call_target *t)
{
    t->own = mo_span_skip(id, MAC_LEN);
    (void)mo_span_cut(&t->own, '.');
    for (size_t i = 0; t->own.n && i < g->n; i++) {
        t->slot = g->v[i];
        if (mo_gw_shows(mo_gw_view_of(g, c), t->slot) &&
            is_task_of(g, c, t->slot, id))
            return 0;
    }
    return MO_ENOTFOUND;
}

/* Writes the part between the hash and the server's own id. */
static void put_task_limit(const struct result_limit *how, struct mo_buf *b)
{
    if (how->max)
        (void)mo_buf_printf(b, "-%llx%s%s", (unsigned long long)how->max,
                            how->has_output_schema ? "p" : "",
                            how->by_execute ? "x" : "");
    (void)mo_buf_putc(b, '.');
}

void mo_rewrite_task_limit(struct mo_span id, struct result_limit *how)
{
    struct mo_span rest = mo_span_skip(id, MAC_LEN);
    struct mo_span said = mo_span_cut(&rest, '.');
    char text[32];

    (void)snprintf(text, sizeof(text), "%.*s", (int)said.n, said.p);
    how->max = text[0] == '-' ? (size_t)strtoull(text + 1, NULL, 16) : 0;
    how->has_output_schema = strchr(text, 'p') != NULL;
    how->by_execute = strchr(text, 'x') != NULL;
}

int mo_rewrite_task_result(struct mo_gateway *g, const struct mo_ep_call *c,
                           const struct server_slot *s,
                           const struct result_limit *how,
                           struct mo_json result, struct mo_buf *out)
{
    struct mo_edit ed = {"taskId", {NULL, 0}};
    struct mo_json id = mo_json_get(result, "taskId");
    mo_autobuf struct mo_buf text = {.max = NAME_MAX_};
    mo_autobuf struct mo_buf name = {.max = NAME_MAX_};
    mo_autobuf struct mo_buf rest = {.max = NAME_MAX_};
    int rc = 0;

    if (mo_json_is(id, MO_JSON_STRING) && s->up) {
        put_task_limit(how, &rest);
        (void)mo_json_str_buf(id, &rest);
        rc = put_mac(g, c, s, mo_buf_view(&rest), &name);
        (void)mo_buf_span(&name, mo_buf_view(&rest));
        (void)mo_json_quote(&text, mo_buf_view(&name));
        ed.to = mo_buf_view(&text);
    }
    rc = rc < 0 ? rc : mo_buf_err(&text);
    if (rc == 0)
        rc = mo_edit(out, result, &ed, ed.to.p ? 1 : 0);
    return rc;
}

/* --- targets ------------------------------------------------------------- */

void mo_rewrite_use_item(struct call_target *t, const struct mo_cat_item *it)
{
    t->own = it->own;
    t->given = it->given;
    t->item = it->item;
    t->execution = it->execution;
    t->has_output_schema = it->has_output_schema;
}

static int find_item(struct mo_gateway *g, const struct mo_ep_call *c,
                     enum mo_cat_kind kind, struct mo_span name,
                     struct call_target *t)
{
    const struct mo_cat_item *it =
        mo_catalog_find(mo_gw_cat_of(g, c), kind, name);

    if (it && it->app_only && !mo_app_can_show(c->caps))
        it = NULL; /* the call can only be the model's */
    t->slot = it ? mo_gw_slot(g, it->server) : NULL;
    if (!t->slot)
        return MO_ENOTFOUND;
    mo_rewrite_use_item(t, it);
    return 0;
}

static int find_resource(struct mo_gateway *g, const struct mo_ep_call *c,
                         struct call_target *t)
{
    unsigned no;
    int rc = mo_catalog_resource(mo_gw_cat_of(g, c), c->name, &no, &t->own);

    t->slot = rc == 0 ? mo_gw_slot(g, no) : NULL;
    return t->slot ? 0 : MO_ENOTFOUND;
}

/* A skill need not be listed: any server with skills may know it. */
static int find_skill(struct mo_gateway *g, const struct mo_ep_call *c,
                      struct call_target *t)
{
    int rc = find_item(g, c, MO_CAT_SKILLS, c->name, t);

    t->item = none;
    if (rc < 0)
        rc = find_resource(g, c, t);
    return rc == 0 && !mo_catalog_extension(g->cat, t->slot->no,
                                            MO_MCP_EXT_SKILLS, NULL)
               ? MO_ENOTFOUND
               : rc;
}

static struct mo_json ref_of(const struct mo_ep_call *c)
{
    return mo_json_get(c->params, "ref");
}

static const char *ref_key(struct mo_json ref)
{
    bool prompt =
        mo_json_str_eq(mo_json_get(ref, "type"), MO_SPAN("ref/prompt"));

    return prompt ? "name" : "uri";
}

static int find_ref(struct mo_gateway *g, const struct mo_ep_call *c,
                    struct call_target *t)
{
    struct mo_json ref = ref_of(c);
    const char *key = ref_key(ref);
    struct mo_json v = mo_json_get(ref, key);
    mo_autobuf struct mo_buf b = {.max = NAME_MAX_};
    int rc;

    if (!mo_json_is(v, MO_JSON_STRING))
        return MO_EINVAL;
    rc = mo_json_str_buf(v, &b);
    if (rc == 0 && key[0] == 'n') {
        rc = find_item(g, c, MO_CAT_PROMPTS, mo_buf_view(&b), t);
    } else if (rc == 0) {
        rc = find_item(g, c, MO_CAT_TEMPLATES, mo_buf_view(&b), t);
        if (rc < 0)
            rc = find_item(g, c, MO_CAT_RESOURCES, mo_buf_view(&b), t);
    }
    return rc;
}

int mo_rewrite_target(struct mo_gateway *g, const struct mo_ep_call *c,
                      struct call_target *t)
{
    int rc = 0;

    *t = (struct call_target){.item = none};
    if (g->script.target(g, c, t))
        return 0;
    if (g->execute_target(g, c, t, &rc))
        return rc;
    switch (method_row(c)->what) {
    case TOOL:
        return find_item(g, c, MO_CAT_TOOLS, c->name, t);
    case PROMPT:
        return find_item(g, c, MO_CAT_PROMPTS, c->name, t);
    case RESOURCE:
    case DIRECTORY:
        return find_resource(g, c, t);
    case SKILL:
        return find_skill(g, c, t);
    case REF:
        return find_ref(g, c, t);
    case TASK:
        return mo_rewrite_task(g, c, c->name, t);
    case NOTHING:
        break;
    }
    return MO_EINVAL;
}

void mo_rewrite_refuse(struct mo_ep_call *c)
{
    static const char *const words[] = {
        [TOOL] = "no such tool: ",
        [PROMPT] = "no such prompt: ",
        [RESOURCE] = "no such resource: ",
        [REF] = "params.ref names no known prompt or resource",
        [TASK] = "no such task: ",
        [SKILL] = "no such skill: ",
        [DIRECTORY] = "no such directory: ",
        [NOTHING] = "no such method: ",
    };
    enum what what = method_row(c)->what;
    mo_autobuf struct mo_buf msg = {.max = NAME_MAX_};
    mo_autobuf struct mo_buf data = {.max = NAME_MAX_};

    (void)mo_buf_puts(&msg, words[what]);
    (void)mo_buf_span(&msg, what == NOTHING ? c->method : c->name);
    if (what == RESOURCE || what == SKILL || what == DIRECTORY) {
        (void)mo_buf_puts(&data, "{\"uri\":");
        (void)mo_json_quote(&data, c->name);
        (void)mo_buf_putc(&data, '}');
    }
    mo_ep_call_error(c, MO_RPC_INVALID_PARAMS, mo_buf_cstr(&msg),
                     mo_buf_view(&data));
}

/* --- URIs in results ----------------------------------------------------- */

bool mo_rewrite_is_prefixed(const struct mo_ep_call *c,
                            const struct call_target *t)
{
    enum what what = method_row(c)->what;

    return (what == RESOURCE || what == SKILL || what == DIRECTORY) &&
           !mo_span_eq(c->name, t->own);
}

bool mo_rewrite_has_links(const struct mo_ep_call *c)
{
    enum what what = method_row(c)->what;

    return what == TOOL || what == PROMPT || what == TASK;
}

static int put_prefixed(void *ctx, struct mo_json uri, struct mo_buf *out)
{
    mo_autobuf struct mo_buf own = {.max = NAME_MAX_};
    mo_autobuf struct mo_buf to = {.max = NAME_MAX_};
    int rc = mo_json_str_buf(uri, &own);

    if (rc == 0)
        rc = mo_gw_uri(ctx, mo_buf_view(&own), &to);
    return rc < 0 ? rc : mo_json_quote(out, mo_buf_view(&to));
}

int mo_rewrite_result_uris(const struct mo_ep_call *c, struct mo_json result,
                           struct mo_buf *out)
{
    enum what what = method_row(c)->what;
    struct mo_edit skill = {"skill", {NULL, 0}};
    mo_autobuf struct mo_buf entry = {.max = GW_TEXT_MAX};
    char label[MO_GW_LABEL_MAX];
    struct mo_span text, rest;
    int rc;

    if (!mo_gw_uri_split(c->name, &text, &rest) || text.n >= sizeof(label))
        return MO_EINVAL;
    (void)snprintf(label, sizeof(label), "%.*s", (int)text.n, text.p);
    if (what != SKILL)
        return mo_skill_replace_uris(
            result, false, what == RESOURCE ? "contents" : "resources",
            put_prefixed, label, out);
    rc = mo_skill_replace_uris(mo_json_get(result, "skill"), true, "resources",
                               put_prefixed, label, &entry);
    skill.to = mo_buf_view(&entry);
    return rc < 0 ? rc : mo_edit(out, result, &skill, 1);
}

/* --- params -------------------------------------------------------------- */

bool mo_rewrite_is_task(const struct call_target *t, const struct mo_conn *conn)
{
    struct mo_json how = mo_json_get(t->execution, "taskSupport");

    return mo_conn_info(conn)->version == MO_MCP_2025_11_25 &&
           mo_json_str_eq(how, MO_SPAN("required")) &&
           mo_conn_can(conn, "tasks");
}

/* True if any of the edits changes params. */
static bool has_effect(struct mo_json params, const struct mo_edit *v, size_t n,
                       struct mo_span own)
{
    mo_json_each (m, params) {
        for (size_t i = 0; i < n; i++) {
            if (!mo_json_str_eq(m.key, mo_span_cstr(v[i].key)))
                continue;
            if (i > 0 || !mo_json_str_eq(m.val, own))
                return true;
        }
    }
    return false;
}

struct mo_json mo_rewrite_args(const struct mo_ep_call *c,
                               const struct call_target *t)
{
    if (t->edited.p)
        return t->edited;
    return t->arguments.p ? t->arguments : c->arguments;
}

int mo_rewrite_params(const struct mo_ep_call *c, const struct call_target *t,
                      bool as_task, struct mo_buf *b, struct mo_span *out)
{
    const struct row *r = method_row(c);
    bool other = t->arguments.p || t->edited.p;
    struct mo_edit v[5] = {
        {r->key ? r->key : "ref", {NULL, 0}},
        {"requestState", {NULL, 0}},
        {"inputResponses", {NULL, 0}},
        {"task", {NULL, 0}},
        {"arguments", mo_json_text(mo_rewrite_args(c, t))},
    };
    /* tasks/update keeps inputResponses: they are its arguments. */
    size_t n = r->what == TASK ? 1 : other ? 5 : 4;
    mo_autobuf struct mo_buf ref = {.max = NAME_MAX_};
    mo_autobuf struct mo_buf own = {.max = NAME_MAX_};
    int rc = 0;

    *out = mo_json_text(c->params);
    if (r->what != REF && !as_task && !other &&
        !has_effect(c->params, v, n, t->own))
        return 0;
    rc = mo_json_quote(&own, t->own);
    v[0].to = mo_buf_view(&own);
    if (rc == 0 && r->what == REF) {
        const struct mo_edit ed = {ref_key(ref_of(c)), mo_buf_view(&own)};

        rc = mo_edit(&ref, ref_of(c), &ed, 1);
        v[0].to = mo_buf_view(&ref);
    }
    if (as_task)
        v[3].to = MO_SPAN("{}");
    /* Answers without a state of ours are answers to the server. */
    if (!mo_json_get(c->params, "requestState").p)
        v[2].to = mo_json_text(mo_json_get(c->params, "inputResponses"));
    if (rc == 0)
        rc = mo_edit(b, c->params, v, n);
    *out = mo_buf_view(b);
    return rc;
}
