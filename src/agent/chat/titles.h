/* titles.h - titles of conversations that the model writes (`llm.titles`).
 *
 * A conversation has the title of the rule (about.h) from its first message on.
 * After its first answer its own provider is asked once for a better one: one
 * request without tools, of MO_TITLE_TOKENS tokens at most, beside whatever the
 * conversation does meanwhile. It counts in usage and budgets, and it has two
 * rows in the audit log: one before it leaves, one when it is over.
 *
 * Once: that it was asked for is stored before the request leaves, so a crash
 * loses the title and never repeats the request. Any failure keeps the title
 * that there is, and so does a title that a person has set meanwhile. */
#ifndef MO_AGENT_CHAT_TITLES_H
#define MO_AGENT_CHAT_TITLES_H

#include "base/str.h"

struct chat;

#define MO_TITLE_TOKENS 512   /* of the answer; models that think need some */
#define MO_TITLE_MS     30000 /* timeout of the request, retries included */

/* An answer was stored: asks for a title if it is due. */
void mo_titles_answered(struct chat *c);
void mo_titles_stop(struct chat *c); /* the chat ends */
void mo_titles_free(struct chat *c);

/* The title in the answer of a model: its first line without marks, quotation
 * marks and full stop, cut like that of the rule. Empty: it has none, or has
 * characters that cannot be seen. Pure. */
void mo_title_clean(struct mo_span answer, struct mo_buf *out);

#endif
