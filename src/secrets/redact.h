/* redact.h - removes secrets from errors that servers send to clients.
 *
 * Every secret that was resolved for a server is registered with the log
 * (mo_loop_secret). In errors, failed results and log messages of a server it
 * is replaced by "[secret]", also in its escaped JSON form. Successful results
 * are not changed. */
#ifndef MO_SECRETS_REDACT_H
#define MO_SECRETS_REDACT_H

#include "mcp/client/conn.h"

/* Replaces one secret, as plain text and as escaped JSON. If it occurs, the new
 * text is in b and *text refers to it. 0 or MO_ENOMEM. */
int mo_redact_secret(struct mo_span *text, struct mo_span secret,
                     struct mo_buf *b);
/* Replaces all registered secrets. The result is in b, or `text` itself if it
 * has none. Without memory the result is none: text that was not checked must
 * not be sent. */
struct mo_json mo_redact(const struct mo_loop *l, struct mo_json text,
                         struct mo_buf *b);
/* True if a task, in an answer or a notification, has failed. */
bool mo_redact_task_failed(struct mo_json task);
/* The error or result of a reply; redacted if it is an error. */
struct mo_json mo_redact_reply(const struct mo_loop *l,
                               const struct mo_reply *r, struct mo_buf *b);

#endif
