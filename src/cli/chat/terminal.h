/* terminal.h - what a person sees of a conversation in a terminal.
 *
 * Pure: texts into a buffer. Whatever a model or a tool says is data: control
 * characters and those that turn or hide text are shown as what they are
 * (<1b>, <U+202E>), so that no answer can repaint a question. Text that goes
 * to a file or a pipe (`tty` false) is left as it is. */
#ifndef MO_CLI_CHAT_TERMINAL_H
#define MO_CLI_CHAT_TERMINAL_H

#include "codec/json/json.h"

#define MO_TERM_LINES 40 /* of a card or an output, before "more" */

void mo_term_text(struct mo_buf *b, struct mo_span text, bool tty);

/* A tool:approval_required: what is to run, as a diff where it writes. */
void mo_term_card(struct mo_buf *b, struct mo_json card, bool tty, bool all);

/* A tool:output: args are the two of the event. */
void mo_term_output(struct mo_buf *b, struct mo_json args, bool tty);

/* One message of session:history. */
void mo_term_message(struct mo_buf *b, struct mo_json message, bool tty);

#endif
