/* script_tools.h - the tools that a script of a conversation may call: its
 * libraries, its search, and the words about it for the model. */
#ifndef MO_AGENT_CHAT_SCRIPT_TOOLS_H
#define MO_AGENT_CHAT_SCRIPT_TOOLS_H

#include "codec/json/json.h"
#include "config/choices.h"

struct chat;

/* The tools that the model is to be offered: the person's choice, or the
 * configured one. */
enum mo_gw_expose mo_script_offer(const struct chat *c);
/* True if the model is told to write scripts: that is offered, or there are
 * many tools, and the box has run_script. */
bool mo_script_is_offered(const struct chat *c);
/* "all", "search" or "code": what the tools of now are. */
const char *mo_script_offered(const struct chat *c);
/* Says how to write a script, and which tools fit the person's last message.
 * The same words for all requests of a turn. */
void mo_script_put_words(struct chat *c, struct mo_buf *out);

/* True if the person has switched the tool off. */
bool mo_script_tool_is_off(const struct chat *c, struct mo_span server,
                           const char *name);
/* Bytes of those words in the last request; 0: there were none. */
uint64_t mo_script_words_bytes(const struct chat *c);
/* Bytes of the definitions of all tools that a script may call. */
uint64_t mo_script_tools_bytes(const struct chat *c);

/* Answers {"find": words, "limit"?} as a CallToolResult whose structuredContent
 * is {"tools":[{"name","server","tool","description"?,"confidence"}]}, the
 * tools of the box and of servers, best first. Starts no server. 0 or
 * MO_ENOMEM. (script_find.c) */
int mo_script_find(struct chat *c, struct mo_json params, struct mo_buf *out);
/* The member files: names and texts of the files beside the script. args: of
 * the call of run_script. */
void mo_script_put_files(struct mo_jw *w, const struct chat *c,
                         struct mo_json args);

#endif
