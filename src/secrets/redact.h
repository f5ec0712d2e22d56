/* redact.h - secrets are not repeated to clients by what a server says of its
 * troubles.
 *
 * Every secret that was resolved for a server is known to the log by its value
 * (mo_loop_secret). An error, a failed result or a log message of a server
 * that holds one has "[secret]" in its place, also where JSON writes it with
 * escapes. Good results are the server's own affair and cross as they are. */
#ifndef MO_SECRETS_REDACT_H
#define MO_SECRETS_REDACT_H

#include "mcp/client/conn.h"

/* One secret, as it is and as JSON has it between its quotes: if it is there
 * *text is what stands in b from then on. 0 or MO_ENOMEM. */
int mo_redact_secret(struct mo_span *text, struct mo_span secret,
                     struct mo_buf *b);
/* The text without them: in b if there was one, else as it is; none without
 * memory, for what cannot be cleaned must not cross. */
struct mo_json mo_redact(const struct mo_loop *l, struct mo_json text,
                         struct mo_buf *b);
/* Whether what is said of a task, in an answer or as news, is of that kind. */
bool mo_redact_task_failed(struct mo_json task);
/* What a reply says, its error or its result. */
struct mo_json mo_redact_reply(const struct mo_loop *l,
                               const struct mo_reply *r, struct mo_buf *b);

#endif
