/* transcript.h - a conversation as a document for people: Markdown, or HTML
 * that needs nothing else.
 *
 * Pure. Everything that people, models and tools have said is text: in HTML it
 * is escaped, nothing in it becomes an element, and the document has no script
 * and forbids all (Content-Security-Policy). Pictures are kept as data: URLs,
 * links to resources as links, if they are http or https. */
#ifndef MO_WEB_TRANSCRIPT_H
#define MO_WEB_TRANSCRIPT_H

#include "codec/json/json.h"

enum mo_transcript_form { MO_TRANSCRIPT_MARKDOWN, MO_TRANSCRIPT_HTML };

void mo_transcript_begin(struct mo_buf *b, enum mo_transcript_form form,
                         struct mo_span title);
/* An entry of a conversation (agent/llm/llm.h). */
void mo_transcript_entry(struct mo_buf *b, enum mo_transcript_form form,
                         struct mo_json entry);
void mo_transcript_end(struct mo_buf *b, enum mo_transcript_form form);

#endif
