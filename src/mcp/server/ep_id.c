#include "mcp/server/ep_id.h"

#include "codec/json/json.h"

#define FORM      "1" /* of the text in a seal */
#define BIND      MO_SPAN("session id")
#define TOLD_MAX  ((size_t)1024) /* bytes of caps and client together */
#define PLAIN_MAX (TOLD_MAX + 512)
#define LEAST     100 /* characters of an id: a seal of nothing has fewer */

static void put_member(struct mo_jw *w, struct mo_json from, const char *key)
{
    struct mo_json v = mo_json_get(from, key);

    if (mo_json_is(v, MO_JSON_STRING))
        mo_jw_member_raw(w, key, mo_json_text(v));
}

/* Name and version of a client that tells much more, such as its icons. */
static void put_short(struct mo_buf *b, struct mo_span client)
{
    struct mo_json_doc d;
    struct mo_jw w;

    if (mo_json_parse(client, 0, &d, NULL) < 0)
        return;
    w = mo_jw_object(b);
    put_member(&w, d.root, "name");
    put_member(&w, d.root, "version");
    mo_jw_end(&w);
}

static void put_field(struct mo_buf *b, struct mo_span s)
{
    (void)mo_buf_span(b, s);
    (void)mo_buf_putc(b, '\0');
}

static void put_text(struct mo_buf *b, const char *s)
{
    put_field(b, mo_span_cstr(s ? s : ""));
}

int mo_ep_id_put(const struct mo_ep_home *h, const struct mo_ep_id *id,
                 struct mo_buf *out)
{
    mo_autobuf struct mo_buf b = {.max = PLAIN_MAX}, less = {.max = TOLD_MAX};
    struct mo_span caps = id->caps, client = id->client;
    bool whole = true;

    if (caps.n + client.n > TOLD_MAX) {
        put_short(&less, client);
        client = mo_buf_err(&less) ? mo_span(NULL, 0) : mo_buf_view(&less);
        whole = client.n && caps.n + client.n <= TOLD_MAX;
    }
    put_text(&b, FORM);
    put_text(&b, h->instance);
    put_text(&b, id->view);
    put_text(&b, id->caller);
    (void)mo_buf_printf(&b, "%d", (int)id->version);
    (void)mo_buf_putc(&b, '\0');
    (void)mo_buf_printf(&b, "%llu", (unsigned long long)id->began);
    (void)mo_buf_putc(&b, '\0');
    put_text(&b, whole ? "whole" : "");
    put_field(&b, whole ? caps : mo_span(NULL, 0));
    put_field(&b, whole ? client : mo_span(NULL, 0));
    if (mo_buf_err(&b))
        return mo_buf_err(&b);
    return mo_seal_put(&h->seal, BIND, UINT64_MAX, mo_buf_view(&b), out);
}

bool mo_ep_id_is(struct mo_span text)
{
    return text.n >= LEAST && text.n <= MO_EP_ID_MAX;
}

static struct mo_span cut(struct mo_span *s)
{
    return mo_span_cut(s, '\0');
}

static int read_number(struct mo_span *s, uint64_t *out)
{
    return mo_span_u64(cut(s), out);
}

int mo_ep_id_open(const struct mo_ep_home *h, struct mo_span text,
                  struct mo_buf *plain, struct mo_ep_id *out)
{
    struct mo_span s;
    uint64_t version = 0;
    int rc;

    if (!mo_ep_home_has_key(h) || !mo_ep_id_is(text))
        return MO_EPROTO;
    rc = mo_seal_open(&h->seal, BIND, 0, text, plain);
    if (rc < 0)
        return rc;
    s = mo_buf_view(plain);
    *out = (struct mo_ep_id){.began = 0};
    if (!mo_span_is(cut(&s), FORM))
        return MO_EPROTO;
    out->instance = cut(&s).p;
    out->view = cut(&s).p;
    out->caller = cut(&s).p;
    if (!out->caller || read_number(&s, &version) < 0 ||
        read_number(&s, &out->began) < 0 || version <= MO_MCP_UNKNOWN ||
        version > MO_MCP_2025_11_25)
        return MO_EPROTO;
    out->version = (enum mo_mcp_version)version;
    out->whole = cut(&s).n > 0;
    out->caps = cut(&s);
    out->client = cut(&s);
    return 0;
}
