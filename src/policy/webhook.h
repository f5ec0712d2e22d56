/* webhook.h - tells other systems (`approvals.webhooks`) that a call waits for
 * a person, and that it was decided.
 *
 * Each message is a POST with a JSON body, signed with the webhook's secret:
 *
 *   X-MCP-Orchestrator-Timestamp: 1763330000        seconds
 *   X-MCP-Orchestrator-Signature: v1=HEX   HMAC-SHA256 of "v1:TIMESTAMP:BODY"
 *
 * The answer decides nothing: a body is never read, and the link in the message
 * has no rights. Whoever follows it signs in and decides as a person.
 *
 * Nothing waits for a webhook. Messages of one webhook are sent in order, one
 * at a time; a failure is repeated MO_WEBHOOK_TRIES times with growing pauses.
 * Redirects are not followed. Loopback, private and link-local addresses are
 * refused unless the webhook has `private`.
 *
 * Limits: MO_WEBHOOK_QUEUE messages of one webhook wait; further ones are
 * dropped and logged. Arguments over MO_WEBHOOK_ARGS are left out.
 *
 * Ownership: the configuration is referenced, the loop borrowed. */
#ifndef MO_POLICY_WEBHOOK_H
#define MO_POLICY_WEBHOOK_H

#include "policy/panel.h"

#define MO_WEBHOOK_TRIES    6
#define MO_WEBHOOK_PAUSE_MS 1000 /* after the first failure; then doubled */
#define MO_WEBHOOK_QUEUE    256
#define MO_WEBHOOK_ARGS     ((size_t)16 * 1024)
#define MO_WEBHOOK_MAC      72 /* "v1=", 64 digits, NUL */

struct mo_webhooks;

struct mo_webhook_event {
    const char *kind;            /* "approval.waiting", "approval.decided" */
    const char *call;            /* id, as in /api/approvals; "": none there */
    const char *conversation;    /* the session, or NULL */
    struct mo_span server, tool; /* of the call */
    struct mo_span args;         /* JSON */
    struct mo_span reason;       /* of the rule, or of the decision; or empty */
    const char *asked_by;        /* the person's name; "": the operator */
    const struct mo_panel *panel;
    const struct mo_said *said;
    uint64_t expires; /* wall ms */
    bool approved;    /* decided: how, by whom */
    const char *by;   /* "person", "time", "rule", ... */
    const char *who;  /* the last person who decided, or "" */
};

int mo_webhooks_new(struct mo_loop *l, const struct mo_config *cfg,
                    struct mo_webhooks **out, struct mo_err *e);
/* If the webhooks have changed, what waits for the old ones is dropped. */
int mo_webhooks_reload(struct mo_webhooks *w, const struct mo_config *cfg,
                       struct mo_err *e);
/* Drops what waits. gone(ctx) is called once, later. */
void mo_webhooks_close(struct mo_webhooks *w, void (*gone)(void *ctx),
                       void *ctx);
/* Copies the event. w: NULL does nothing. */
void mo_webhooks_tell(struct mo_webhooks *w, const struct mo_webhook_event *ev);

void mo_webhook_sign(struct mo_span secret, uint64_t seconds,
                     struct mo_span body, char out[MO_WEBHOOK_MAC]);
/* The body of a message (pure). id: the same when it is repeated; link: or "";
 * with: arguments are told. */
void mo_webhook_body(struct mo_buf *b, const struct mo_webhook_event *ev,
                     const char *id, const char *link, bool with);

#endif
