/* about.h - what a person says about a conversation: its title, whether it is
 * pinned or archived, its tags, its instructions, the tools it offers.
 *
 * They are members of the document that the session keeps (session_memory.h):
 *
 *   "title":"...","named":true,"pinned":true,"archived":true,"tags":["..."],
 *   "system":"...","offer":"code"
 *
 * `system` are instructions for the model, behind those of the operator.
 * `offer` is used in place of the configured `llm.tools`.
 *
 * Pure. A change is such a document with the members that change. */
#ifndef MO_AGENT_CHAT_ABOUT_H
#define MO_AGENT_CHAT_ABOUT_H

#include "codec/json/json.h"

#define MO_TITLE_MAX        120 /* bytes; longer titles are cut */
#define MO_ABOUT_TAGS       8
#define MO_ABOUT_TAG_MAX    40   /* bytes of one */
#define MO_ABOUT_SYSTEM_MAX 8192 /* bytes of the instructions */
#define MO_ABOUT_MAX        ((size_t)24 * 1024)

/* Checks what a client wants ({title?, pinned?, archived?, tags?, system?,
 * offer?}) and writes it as a change. A title is marked as given by hand. */
int mo_about_change(struct mo_json wish, struct mo_buf *change,
                    struct mo_err *e);
/* Writes the document with the change: its members replace those of the
 * document. false, [] and "" are left out. */
void mo_about_apply(struct mo_json doc, struct mo_json change,
                    struct mo_buf *out);
/* The title of a conversation that begins with this message: its first line
 * with words, without marks of Markdown, at most 80 bytes. Empty: it has no
 * words. */
void mo_about_title(struct mo_span message, struct mo_buf *out);

#endif
