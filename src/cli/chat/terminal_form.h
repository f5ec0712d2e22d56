/* terminal_form.h - a server's question to the person (elicitation) in a
 * terminal: what is asked, field by field, and what a typed line means.
 *
 * Pure: texts into a buffer, a line into the JSON of one field. Whether the
 * whole answer fits the form is decided elsewhere (agent/chat/chat.h); here
 * only what a line cannot mean is refused. What the server says is shown as in
 * terminal.h. */
#ifndef MO_CLI_CHAT_TERMINAL_FORM_H
#define MO_CLI_CHAT_TERMINAL_FORM_H

#include "codec/json/json.h"

/* An elicitation:required: who asks what, and the page to open if it is one. */
void mo_term_question(struct mo_buf *b, struct mo_json question, bool tty);

/* "name, description (number, default 3): " */
void mo_term_field(struct mo_buf *b, struct mo_json key, struct mo_json field,
                   bool needed, bool tty);

/* Is that member in the form's "required"? */
bool mo_term_needed(struct mo_json schema, struct mo_json key);

/* What was typed, as JSON. A choice is its value, its title or its number;
 * several are separated by commas. MO_EINVAL: it cannot be that. */
int mo_term_value(struct mo_buf *b, struct mo_json field, struct mo_span text,
                  struct mo_err *e);

#endif
