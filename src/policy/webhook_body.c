/* webhook_body.c - the message of a webhook and its signature; see webhook.h.
 */
#include "policy/webhook.h"

#include <stdio.h>

#include "base/clock.h"
#include "codec/sha256.h"

void mo_webhook_sign(struct mo_span secret, uint64_t seconds,
                     struct mo_span body, char out[MO_WEBHOOK_MAC])
{
    unsigned char mac[MO_SHA256_LEN];
    char head[40], hex[MO_SHA256_HEX + 1];
    struct mo_hmac m;

    (void)snprintf(head, sizeof(head), "v1:%llu:", (unsigned long long)seconds);
    mo_hmac_init(&m, secret);
    mo_hmac_put(&m, head, strlen(head));
    mo_hmac_put(&m, body.p, body.n);
    mo_hmac_end(&m, mac);
    explicit_bzero(&m, sizeof(m));
    mo_hex(mac, sizeof(mac), hex);
    (void)snprintf(out, MO_WEBHOOK_MAC, "v1=%s", hex);
}

/* Chat services read <...> as links and mentions, so a tool whose name is one
 * could call everybody. */
static void put_plain(struct mo_buf *b, struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++)
        switch (s.p[i]) {
        case '&':
            (void)mo_buf_puts(b, "&amp;");
            break;
        case '<':
            (void)mo_buf_puts(b, "&lt;");
            break;
        case '>':
            (void)mo_buf_puts(b, "&gt;");
            break;
        default:
            (void)mo_buf_putc(b, (unsigned char)s.p[i] < 0x20 ? ' ' : s.p[i]);
        }
}

/* One line for a chat. */
static void put_text(struct mo_buf *b, const struct mo_webhook_event *ev,
                     const char *link)
{
    bool decided = strcmp(ev->kind, "approval.decided") == 0;

    put_plain(b, ev->server);
    (void)mo_buf_putc(b, '/');
    put_plain(b, ev->tool);
    (void)mo_buf_puts(b, decided ? ev->approved ? " was approved by "
                                                : " was rejected by "
                                 : " waits for approval, asked by ");
    put_plain(b, mo_span_cstr(!decided   ? mo_panel_shown(ev->asked_by)
                              : *ev->who ? ev->who
                                         : ev->by));
    if (!decided && *link)
        (void)mo_buf_printf(b, ": %s", link);
}

static void put_call(struct mo_jw *w, const struct mo_webhook_event *ev,
                     bool with)
{
    mo_jw_member_obj(w, "call");
    mo_jw_member_cstr(w, "id", ev->call);
    if (ev->conversation)
        mo_jw_member_cstr(w, "conversation", ev->conversation);
    mo_jw_member(w, "server", ev->server);
    mo_jw_member(w, "tool", ev->tool);
    mo_jw_member_cstr(w, "askedBy", mo_panel_shown(ev->asked_by));
    mo_panel_put(w, ev->panel, ev->said);
    mo_jw_member_u64(w, "expiresAt", ev->expires);
    if (with && ev->args.n <= MO_WEBHOOK_ARGS)
        mo_jw_member_raw(w, "args", ev->args);
    mo_jw_member_u64(w, "argsBytes", ev->args.n);
    mo_jw_end(w);
}

void mo_webhook_body(struct mo_buf *b, const struct mo_webhook_event *ev,
                     const char *id, const char *link, bool with)
{
    mo_autobuf struct mo_buf text = {.max = 4096};
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "event", ev->kind);
    mo_jw_member_cstr(&w, "id", id);
    mo_jw_member_u64(&w, "at", mo_wall_ms());
    put_call(&w, ev, with);
    if (strcmp(ev->kind, "approval.decided") == 0) {
        mo_jw_member_obj(&w, "decision");
        mo_jw_member_bool(&w, "approved", ev->approved);
        mo_jw_member_cstr(&w, "by", ev->by);
        if (*ev->who)
            mo_jw_member_cstr(&w, "who", ev->who);
        mo_jw_end(&w);
    }
    mo_jw_member_opt(&w, "reason", ev->reason);
    if (*link)
        mo_jw_member_cstr(&w, "link", link);
    put_text(&text, ev, link);
    if (mo_buf_err(&text) == 0)
        mo_jw_member(&w, "text", mo_buf_view(&text));
    mo_jw_end(&w);
}
