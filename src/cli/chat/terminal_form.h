/* terminal_form.h - a server's question (elicitation) in a terminal.
 *
 * Pure: writes the fields into a buffer and turns a typed line into the JSON of
 * one field. The agent checks the whole answer against the form
 * (agent/chat/chat.h); this file only refuses a line that cannot be a value.
 * Text of the server is shown as in terminal.h. */
#ifndef MO_CLI_CHAT_TERMINAL_FORM_H
#define MO_CLI_CHAT_TERMINAL_FORM_H

#include "codec/json/json.h"

/* An elicitation:required event: server, question, and the page to open if
 * there is one. */
void mo_term_question(struct mo_buf *b, struct mo_json question, bool tty);

/* "name, description (number, default 3): " */
void mo_term_field(struct mo_buf *b, struct mo_json key, struct mo_json field,
                   bool needed, bool tty);

/* True if the member is in "required". */
bool mo_term_needed(struct mo_json schema, struct mo_json key);

/* Converts a typed line to JSON. A choice is its value, its title or its
 * number; several are separated by commas. MO_EINVAL: not a valid value. */
int mo_term_value(struct mo_buf *b, struct mo_json field, struct mo_span text,
                  struct mo_err *e);

#endif
