/* script_calls.h - the calls that a running script makes.
 *
 * `run_script` is a tool of the session's box. While a call of it runs, the box
 * reports what the script asks for (MO_CONN_SCRIPT). A call of a tool becomes a
 * struct call whose parent is the call of run_script: it is stored, judged,
 * shown, approved, counted and audited as a call of the model, and its key is
 * the parent's with ".1", ".2", ... Its outcome goes back to the script, not to
 * the model. A search is answered at once.
 *
 * Calls that arrive together are stored in one batch and then asked about
 * together. While a call is open, the timeouts of the script are paused. When
 * the script ends, its pending calls are rejected and its running calls are
 * cancelled; the step goes on when each of them has its outcome.
 *
 * Ended calls are freed. The entry with the result of the script names them
 * (mo_script_put_all()), so that a conversation shows them later.
 *
 * Limits: MO_SCRIPT_CALLS_MAX calls of a script, MO_SCRIPT_OPEN_MAX of them
 * open; more are answered with an error. LOG_MAX bytes and LOG_CALLS calls in
 * the list of ended calls; later ones are counted only. */
#ifndef MO_AGENT_CHAT_SCRIPT_CALLS_H
#define MO_AGENT_CHAT_SCRIPT_CALLS_H

#include "codec/json/json.h"

#define MO_SCRIPT_TOOL       "run_script"
#define MO_SCRIPT_CALLS_MAX  10000
#define MO_SCRIPT_OPEN_MAX   64
#define MO_SCRIPT_RESULT_MAX ((size_t)4 * 1024 * 1024 - 4096)

struct call;
struct chat;
struct mo_tool;

/* True for run_script of the box. NULL: false. */
bool mo_script_is(const struct mo_tool *t);
/* The call of run_script is about to be sent. MO_ENOMEM: it runs without
 * tools. */
int mo_script_begin(struct call *k);
/* The member _meta of its request: the libraries of the script. Nothing for
 * another call. */
void mo_script_put_meta(struct mo_jw *w, const struct call *k);
/* Callback of mo_call_opts.on_script; ctx: the call. */
void mo_script_frame(void *ctx, struct mo_json params);
/* The call has its answer: ends the calls of its script, if it is one. */
void mo_script_end(struct call *k);
void mo_script_free(struct call *k);
/* True while a call of the script is open. */
bool mo_script_waits(const struct call *k);
/* SHA-256 of the script's code; NULL: it is no script. */
const char *mo_script_digest(const struct call *k);

/* The outcome of a call is stored. If a script made it: answers the script. */
void mo_script_call_ended(struct call *k);
/* Adds it to the script's list, once. */
void mo_script_note(struct call *k);

/* --- as documents -------------------------------------------------------- */

/* The members parent, script and line; none for a call of the model. */
void mo_script_put_origin(struct mo_jw *w, const struct call *k);
/* The member scripts: an object for each script of the step, {"key","digest",
 * "language","total","callBytes","resultBytes"
 * (tool_tokens.h),"calls":[{"key","line","name","server","args"?,"state",
 * "isError","by","ms","text"?}]}. None: nothing. */
void mo_script_put_all(struct mo_jw *w, const struct chat *c);

/* --- after a restart: script_recover.c ------------------------------------ */

/* Ends the calls of scripts that were open. True: mo_chat_calls_recovered()
 * follows; false: there is nothing to do. */
bool mo_script_recover(struct chat *c);
/* Counts a call that was open, and adds it to the script's list. */
void mo_script_note_left(struct call *k, const struct mo_buf *one);

#endif
