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

/* A tool:approval_required event: the call to run, as a diff if it writes. */
void mo_term_card(struct mo_buf *b, struct mo_json card, bool tty, bool all);

/* A tool:output event: args are its two arguments. */
void mo_term_output(struct mo_buf *b, struct mo_json args, bool tty);

/* One message of session:history. */
void mo_term_message(struct mo_buf *b, struct mo_json message, bool tty);

#endif
