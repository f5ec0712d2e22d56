/* entry.h - reads and writes the documents of a conversation (entries).
 * agent/llm/llm.h describes their format.
 *
 * Pure functions: they write entries for user messages, tool results and
 * errors, read assistant entries, and produce the public form of an entry for
 * members, without the raw blocks of providers, which are large and opaque.
 *
 * Entries that are never sent to a model: "note" (an error or a remark shown in
 * the conversation) and "summary" (context_window.c sends its text in another
 * form). An assistant entry with the stop "canceled" holds the text shown when
 * a person pressed stop; it is sent as text without raw blocks. */
#ifndef MO_AGENT_CHAT_ENTRY_H
#define MO_AGENT_CHAT_ENTRY_H

#include "codec/json/json.h"

#define MO_ENTRY_MAX        ((size_t)16 * 1024 * 1024)
/* Bytes of one tool result sent to a model; the call keeps the rest. */
#define MO_ENTRY_RESULT_MAX ((size_t)64 * 1024)

/* Bytes of an entry with images; the store takes little more. */
#define MO_ENTRY_STORED ((size_t)3584 * 1024)

enum mo_entry_role {
    MO_ENTRY_OTHER,
    MO_ENTRY_USER,
    MO_ENTRY_ASSISTANT,
    MO_ENTRY_TOOL,
    MO_ENTRY_NOTE,
    MO_ENTRY_SUMMARY,
    MO_ENTRY_QUEUED, /* a message waits: write_ahead.c. No page is shown it */
    MO_ENTRY_BRANCH, /* the conversation goes on elsewhere: branch.h */
};

enum mo_entry_role mo_entry_role(struct mo_json entry);
/* True for user, assistant and tool entries: those a model is sent. */
bool mo_entry_for_model(enum mo_entry_role role);

/* A message of the person; role: "user" or "queued"; id: so that it is never
 * stored twice, or empty; by: the person's name, or empty. */
void mo_entry_message(struct mo_buf *b, const char *role, struct mo_span id,
                      struct mo_span by, struct mo_span text);
/* A message of the person with more blocks: images (images.h), comma-joined. */
void mo_entry_said(struct mo_buf *b, struct mo_span id, struct mo_span by,
                   struct mo_span text, struct mo_span images);
/* The same in the program's words, marked as such: the person pressed a
 * button. */
void mo_entry_auto(struct mo_buf *b, struct mo_span id, struct mo_span by,
                   struct mo_span text);
/* A turn that was stopped. Empty text: a placeholder for the model, marked as
 * such for the page. */
void mo_entry_stopped(struct mo_buf *b, struct mo_span text);
void mo_entry_note(struct mo_buf *b, const char *code, struct mo_span text);
/* The note between the answers of two models, with the code "model". */
void mo_entry_model(struct mo_buf *b, struct mo_span model);
bool mo_entry_is_model(struct mo_json entry);

/* When a call was asked about, decided, begun and ended: wall ms; 0: not.
 * Members get it with the result, for the trace of the turn. */
struct mo_entry_times {
    uint64_t asked, decided, began, ended;
    uint64_t route_us; /* the router's choice */
    uint64_t box_ms;   /* until its box was there */
};

struct mo_entry_result {
    struct mo_span key, id, name;
    struct mo_span content; /* a JSON array of MCP content */
    bool is_error;
    const char *state; /* "done", "rejected" or "unknown" */
    struct mo_span
        app; /* JSON for the tool's app; no model gets it; or empty */
    struct mo_entry_times times;
};

/* Contents are cut to MO_ENTRY_RESULT_MAX; a note in the text says how much is
 * missing and which call keeps all of it. Images do not count: they are kept
 * while the entry stays below MO_ENTRY_STORED. */
void mo_entry_tool(struct mo_buf *b, const struct mo_entry_result *v, size_t n);

/* True for a block with the bytes of an image. */
bool mo_entry_is_image(struct mo_json block);

/* The public form of the entry, with `seq` and `at` (wall ms) added. Images of
 * a person are without their bytes, and large ones of tools are left out. */
void mo_entry_public(struct mo_buf *b, struct mo_json entry, uint64_t seq,
                     uint64_t at);

/* The text of a user or queued entry. */
int mo_entry_text(struct mo_json entry, struct mo_buf *out);

/* The text of the entry, for full-text search. */
void mo_entry_words(struct mo_buf *b, struct mo_json entry);
/* The same of a stored document: mo_store_opts.text_of. */
void mo_entry_search_text(struct mo_span doc, struct mo_buf *b);

/* Iterates over the calls of an assistant entry. */
struct mo_entry_call {
    struct mo_json key, id, name, args;
};
void mo_entry_calls(struct mo_json_iter *it, struct mo_json entry);
bool mo_entry_next_call(struct mo_json_iter *it, struct mo_entry_call *out);

#endif
