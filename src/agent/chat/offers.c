/* offers.c - the prompts and resources of servers, for the person in a
 * conversation.
 *
 * The lists are those of the gateway's catalogue. Requests go through the
 * conversation's own connection (gateway_client.c), so that a server knows
 * whose they are, and a subscribed resource is reported to the conversation. */
#include "agent/chat/chat_priv.h"
#include "agent/chat/load_tools.h"
#include "gateway/catalog/catalog.h"
#include "gateway/gateway.h"

#define ASK_MS 30000

/* --- the lists ----------------------------------------------------------- */

static void put_item(struct mo_jw *w, const struct mo_catalog *cat,
                     const struct mo_cat_item *it)
{
    static const char *const members[] = {"title", "description", "arguments",
                                          "mimeType", "size"};
    struct mo_json name = mo_json_get(it->item, "name");

    mo_jw_obj(w);
    mo_jw_member_cstr(w, "server", mo_catalog_about(cat, it->server).name);
    mo_jw_member(w, "id", it->name);
    if (name.p)
        mo_jw_member_raw(w, "name", mo_json_text(name));
    for (size_t i = 0; i < MO_COUNT(members); i++) {
        struct mo_json v = mo_json_get(it->item, members[i]);

        if (v.p)
            mo_jw_member_raw(w, members[i], mo_json_text(v));
    }
    mo_jw_end(w);
}

static void put_items(struct mo_jw *w, const struct mo_catalog *cat,
                      enum mo_cat_kind kind, const char *member)
{
    size_t n = cat ? mo_catalog_count(cat, kind) : 0;

    mo_jw_member_arr(w, member);
    for (size_t i = 0; i < n && i < MO_OFFERS_MAX; i++)
        put_item(w, cat, mo_catalog_at(cat, kind, i));
    mo_jw_end(w);
}

int mo_agent_put_offers(const struct mo_agent *a, struct mo_buf *out)
{
    const struct mo_gateway *g = a->o.servers.gateway;
    const struct mo_catalog *cat = g ? mo_gateway_catalog(g) : NULL;
    struct mo_jw w = mo_jw_object(out);

    put_items(&w, cat, MO_CAT_PROMPTS, "prompts");
    put_items(&w, cat, MO_CAT_RESOURCES, "resources");
    put_items(&w, cat, MO_CAT_TEMPLATES, "templates");
    mo_jw_end(&w);
    return mo_buf_err(out);
}

/* --- requests ------------------------------------------------------------ */

struct asking {
    mo_offer_fn *done;
    void *ctx;
};

static void on_reply(void *ctx, const struct mo_reply *r)
{
    struct asking k = *(struct asking *)ctx;
    mo_autoarena struct mo_arena a = {.cap = 65536};
    struct mo_span text = MO_SPAN("no reason given");
    struct mo_err e;

    mo_free(ctx);
    if (r->result.p) {
        k.done(k.ctx, mo_json_text(r->result), NULL);
        return;
    }
    if (r->error.p) {
        (void)mo_json_str(mo_json_get(r->error, "message"), &a, &text);
        mo_fail(&e, MO_EPROTO, "the server refused: %.*s",
                (int)(text.n > 180 ? 180 : text.n), text.p);
    } else {
        mo_fail(&e, MO_EUNAVAIL, "%s", r->err ? r->err->msg : "no answer");
    }
    k.done(k.ctx, mo_span(NULL, 0), &e);
}

int mo_agent_ask_server(struct mo_agent *a, struct mo_span session,
                        const char *method, struct mo_span params,
                        mo_offer_fn *done, void *ctx, struct mo_err *e)
{
    struct chat *c = mo_map_get(&a->chats, session);
    struct mo_conn *conn = c && c->ready ? mo_gateway_client_conn(c) : NULL;
    struct asking *k = NULL;
    struct mo_call_opts o = {.hard_ms = ASK_MS, .done = on_reply};

    if (c == NULL || !c->ready)
        return mo_fail(e, MO_EPOLICY, "the conversation is not open");
    if (conn == NULL)
        return mo_fail(e, MO_EUNAVAIL, "no server is connected");
    k = mo_new(struct asking);
    if (k == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *k = (struct asking){done, ctx};
    o.ctx = k;
    if (mo_conn_request(conn, method, params, &o, e))
        return 0;
    mo_free(k);
    return e->code;
}
