/* mcp_home_key.c - the key of session ids, and documents that are too old. See
 * mcp_home.h. */
#include <stdio.h>

#include "codec/json/json.h"
#include "web/mcp_home_priv.h"

#define KEY_MARK   "mcp-key"
#define KEY_LEASE  "mcp:key" /* not the id of a session, whose lease has it */
#define AGAIN_MS   500       /* the key */
#define SWEEP_MS   ((uint64_t)3600 * 1000)
#define SWEEP_ROWS 500

/* --- old documents -------------------------------------------------------- */

static void on_removed(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    (void)w;
    (void)why; /* the next sweep removes it */
    mo_mcp_home_op_ended(ctx);
}

static void remove_old(struct mo_mcp_home *h, const struct mo_row *row)
{
    struct mo_json_doc d;
    uint64_t at = 0;
    struct mo_err e;

    if (mo_json_parse(row->doc, 0, &d, NULL) == 0)
        (void)mo_json_u64(mo_json_get(d.root, "at"), &at);
    if (at + MO_MCP_KEEP_MS < mo_wall_ms() &&
        mo_mcp_home_write(h, row->id, mo_span(NULL, 0), on_removed, h, &e) == 0)
        h->pending++;
}

static void sweep(struct mo_mcp_home *h);

static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_mcp_home *h = ctx;
    bool more = !why && rows->more && rows->n > 0 && !h->closing;

    for (size_t i = 0; !why && !h->closing && i < rows->n; i++)
        remove_old(h, &rows->v[i]);
    h->swept[0] = '\0';
    if (more)
        (void)snprintf(h->swept, sizeof(h->swept), "%.*s",
                       (int)rows->v[rows->n - 1].id.n,
                       rows->v[rows->n - 1].id.p);
    if (more)
        sweep(h);
    else if (!h->closing)
        mo_timer_start(h->o.loop, &h->timer, SWEEP_MS);
    mo_mcp_home_op_ended(h);
}

static void sweep(struct mo_mcp_home *h)
{
    const struct mo_read r = {.kind = MO_READ_MARKS,
                              .text = MO_SPAN(MCP_MARK),
                              .id = mo_span_cstr(h->swept),
                              .limit = SWEEP_ROWS};
    struct mo_err e;

    if (mo_store_read(h->o.store, &r, on_rows, h, &e) == 0)
        h->pending++;
    else
        mo_timer_start(h->o.loop, &h->timer, SWEEP_MS);
}

/* --- the key -------------------------------------------------------------- */

static void key_later(struct mo_mcp_home *h, const struct mo_err *why)
{
    if (h->lease)
        mo_lease_drop(mo_take_ptr(&h->lease));
    if (h->closing)
        return;
    mo_log_err(mo_loop_log(h->o.loop), MO_WARN, "mcp", why,
               "sessions of clients are found in this process only");
    mo_timer_start(h->o.loop, &h->timer, AGAIN_MS);
}

static void use_key(struct mo_mcp_home *h)
{
    struct mo_ep_home *ep = h->o.ep;

    if (h->lease)
        mo_lease_drop(mo_take_ptr(&h->lease));
    mo_seal_share(&ep->seal, mo_span_cstr(h->key), "session id");
    explicit_bzero(h->key, sizeof(h->key));
    (void)snprintf(ep->instance, sizeof(ep->instance), "%s", h->o.instance);
    if (h->closing)
        return;
    h->o.keyed(h->o.ctx);
    sweep(h);
}

static void on_key_written(void *ctx, const struct mo_written *w,
                           const struct mo_err *why)
{
    struct mo_mcp_home *h = ctx;

    (void)w;
    if (why)
        key_later(h, why);
    else
        use_key(h);
    mo_mcp_home_op_ended(h);
}

static void make_key(struct mo_mcp_home *h)
{
    mo_autowipe struct mo_buf b = {.max = MCP_DOC_MAX};
    struct mo_jw w = mo_jw_object(&b);
    struct mo_err e;

    mo_random_token(h->key, MCP_KEY_BYTES);
    mo_jw_member_cstr(&w, "key", h->key);
    mo_jw_end(&w);
    if (mo_mcp_home_write(h, MO_SPAN(KEY_MARK), mo_buf_view(&b), on_key_written,
                          h, &e) < 0)
        key_later(h, &e);
    else
        h->pending++;
}

static void on_key(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct mo_mcp_home *h = ctx;
    struct mo_json_doc d;

    if (why)
        key_later(h, why);
    else if (rows->n && mo_json_parse(rows->v[0].doc, 0, &d, NULL) == 0 &&
             mo_json_str_copy(mo_json_get(d.root, "key"), h->key,
                              sizeof(h->key)) >= 0)
        use_key(h);
    else
        make_key(h);
    mo_mcp_home_op_ended(h);
}

static void on_key_held(void *ctx, struct mo_lease *l, uint64_t fence,
                        const struct mo_err *why)
{
    const struct mo_read r = {.kind = MO_READ_MARK, .id = MO_SPAN(KEY_MARK)};
    struct mo_mcp_home *h = ctx;
    struct mo_err e;

    (void)fence;
    h->taking = false;
    h->lease = why ? NULL : l;
    if (why)
        key_later(h, why);
    else if (mo_store_read(h->o.store, &r, on_key, h, &e) < 0)
        key_later(h, &e);
    else
        h->pending++;
    mo_mcp_home_op_ended(h);
}

static void on_key_lost(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct mo_mcp_home *)ctx)->lease = NULL;
}

void mo_mcp_home_take_key(struct mo_mcp_home *h)
{
    static const struct mo_lease_cb cb = {on_key_held, on_key_lost};
    struct mo_err e;

    if (mo_lease_take(h->o.store, MO_SPAN(KEY_LEASE),
                      mo_span_cstr(h->o.instance), MCP_LEASE_MS, &cb, h,
                      &h->lease, &e) < 0) {
        key_later(h, &e);
        return;
    }
    h->taking = true;
    h->pending++;
}

void mo_mcp_home_on_timer(struct mo_timer *t)
{
    struct mo_mcp_home *h = mo_container_of(t, struct mo_mcp_home, timer);

    if (mo_ep_home_has_key(h->o.ep))
        sweep(h);
    else
        mo_mcp_home_take_key(h);
}
