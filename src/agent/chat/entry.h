/* entry.h - the documents a conversation is made of (agent/llm/llm.h shows
 * them).
 *
 * Pure: writing the ones that are ours (what a person said, what tools
 * answered, what went wrong), reading those a model gave, and the shape in
 * which a page gets them: without the providers' own blocks, which are large,
 * opaque and nobody's business.
 *
 * These are ours alone and never reach a model: "note" (an error or a remark
 * shown in the conversation), "summary" (context_window.c gives a model its
 * words in another form) and assistant entries with the stop "canceled", which
 * hold what was on the screen when a person pressed stop: those do reach it, as
 * text without any raw block. */
#ifndef MO_AGENT_CHAT_ENTRY_H
#define MO_AGENT_CHAT_ENTRY_H

#include "codec/json/json.h"

#define MO_ENTRY_MAX        ((size_t)16 * 1024 * 1024)
/* What a model gets of one tool's answer; the rest stays with the call. */
#define MO_ENTRY_RESULT_MAX ((size_t)64 * 1024)

enum mo_entry_role {
    MO_ENTRY_OTHER,
    MO_ENTRY_USER,
    MO_ENTRY_ASSISTANT,
    MO_ENTRY_TOOL,
    MO_ENTRY_NOTE,
    MO_ENTRY_SUMMARY,
    MO_ENTRY_QUEUED, /* a message waits: queue.c. No page is shown it */
};

enum mo_entry_role mo_entry_role(struct mo_json entry);
/* user, assistant, tool: what a model is shown. */
bool mo_entry_for_model(enum mo_entry_role role);

/* id: the message's own, so that it is never taken twice. */
void mo_entry_user(struct mo_buf *b, struct mo_span id, struct mo_span text);
void mo_entry_queued(struct mo_buf *b, struct mo_span id, struct mo_span text);
/* A turn that was stopped. Empty text: a placeholder for the model, marked as
 * such for the page. */
void mo_entry_stopped(struct mo_buf *b, struct mo_span text);
void mo_entry_note(struct mo_buf *b, const char *code, struct mo_span text);

struct mo_entry_result {
    struct mo_span key, id, name;
    struct mo_span content; /* a JSON array of MCP content */
    bool is_error;
    const char *state; /* "done", "rejected" or "unknown" */
};

/* Contents are cut to MO_ENTRY_RESULT_MAX with a mark that says how much is
 * missing and under which call the whole is kept. */
void mo_entry_tool(struct mo_buf *b, const struct mo_entry_result *v, size_t n);

/* The same entry as a page sees it, `seq` and `at` (wall ms) added. */
void mo_entry_public(struct mo_buf *b, struct mo_json entry, uint64_t seq,
                     uint64_t at);

/* The text of a user or queued entry. */
int mo_entry_text(struct mo_json entry, struct mo_buf *out);

/* The words in it, for search. */
void mo_entry_words(struct mo_buf *b, struct mo_json entry);

/* The calls of an assistant entry, one after the other. */
struct mo_entry_call {
    struct mo_json key, id, name, args;
};
void mo_entry_calls(struct mo_json_iter *it, struct mo_json entry);
bool mo_entry_next_call(struct mo_json_iter *it, struct mo_entry_call *out);

#endif
