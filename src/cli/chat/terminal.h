/* terminal.h - text of a conversation for a terminal.
 *
 * Pure: writes into a buffer. Text from a model or a tool is data: control
 * characters and characters that change direction or are invisible are shown by
 * their code (<1b>, <U+202E>), so that no answer can overwrite a question. Text
 * for a file or a pipe (`tty` false) is not changed. */
#ifndef MO_CLI_CHAT_TERMINAL_H
#define MO_CLI_CHAT_TERMINAL_H

#include "codec/json/json.h"

#define MO_TERM_LINES 40 /* lines of a card or an output, before "more" */

void mo_term_text(struct mo_buf *b, struct mo_span text, bool tty);
/* The text of a JSON string; another value is written as JSON. */
void mo_term_json(struct mo_buf *b, struct mo_json v, bool tty);

/* A tool:approval_required event: the call to run, as a diff if it writes. */
void mo_term_card(struct mo_buf *b, struct mo_json card, bool tty, bool all);

/* A tool:output event: args are its two arguments. */
void mo_term_output(struct mo_buf *b, struct mo_json args, bool tty);

/* One message of session:history. */
void mo_term_message(struct mo_buf *b, struct mo_json message, bool tty);

/* --- a server's question (elicitation): terminal_form.c -------------------
 *
 * Writes the fields and turns a typed line into the JSON of one field. The
 * agent checks the whole answer against the form (agent/chat/chat.h); a line is
 * refused here only if it cannot be a value. */

/* An elicitation:required event: server, question, and the page to open if
 * there is one. */
void mo_term_question(struct mo_buf *b, struct mo_json question, bool tty);

/* A sampling:required event: what the server sends to the model, or the answer.
 */
void mo_term_sample(struct mo_buf *b, struct mo_json sample, bool tty);

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
