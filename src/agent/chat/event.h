/* event.h - sends events to the members of a chat.
 *
 * Names and arguments are those of the Socket.IO contract. An event that cannot
 * be built is replaced by an error event. */
#ifndef MO_AGENT_CHAT_EVENT_H
#define MO_AGENT_CHAT_EVENT_H

#include "codec/json/json.h"

struct call;
struct chat;
struct elicit_view;
struct sampling_view;
struct entry;
struct mo_member;

/* The initial events of a member; of all members again, after the conversation
 * was replaced. */
void mo_chat_event_greet(struct mo_member *m);
void mo_chat_event_greet_all(struct chat *c);
void mo_chat_event_entry(struct chat *c, const struct entry *en);
/* The title or labels of the conversation have changed. */
void mo_chat_event_about(struct chat *c);
/* "session:history" again: the conversation is on another branch. */
void mo_chat_event_history(struct chat *c);
/* The alternatives of the current branch, if there are any. */
void mo_chat_event_branches(struct chat *c);
void mo_chat_event_thinking(struct chat *c);
void mo_chat_event_compacted(struct chat *c, const struct entry *summary);
void mo_chat_event_delta(struct chat *c, struct mo_span text);
void mo_chat_event_thought(struct chat *c, struct mo_span text);
/* The tools that are switched off, to all members. */
void mo_chat_event_skills(struct chat *c);
void mo_chat_event_tools_off(struct chat *c);
/* A subscribed resource has changed. */
void mo_chat_event_resource(struct chat *c, struct mo_json uri);
void mo_chat_event_response(struct chat *c, struct mo_span text,
                            const char *stop);
void mo_chat_event_error(struct chat *c, const char *code, struct mo_span text,
                         unsigned retry_ms);
/* only: one member; NULL: all. */
void mo_chat_event_message(struct chat *c, struct mo_member *only,
                           const char *text);
void mo_chat_event_queued(struct mo_member *m, unsigned position);
void mo_chat_event_idle(struct chat *c, unsigned seconds);
void mo_chat_event_closed(struct chat *c, const char *reason);
void mo_chat_event_approval(struct call *k);
/* One of several persons has approved it. */
void mo_chat_event_approved_by(struct call *k);
void mo_chat_event_resolved(struct call *k, bool approved);
/* A script has made the call, and it is stored ("script:call"). */
void mo_chat_event_made(struct call *k);
/* The grants of a script have changed ("script:grants"). */
void mo_chat_event_grants(struct call *k);
/* Sends params, an object from the server, with the id of the call, if it is
 * known ("tool:progress", "tool:log"). */
void mo_chat_event_relay(struct chat *c, const struct call *k, const char *name,
                         struct mo_json params);
void mo_chat_event_output(struct call *k);
/* The mode or the grants have changed. */
void mo_chat_event_approvals(struct chat *c);
void mo_chat_event_elicit(struct chat *c, struct mo_member *only,
                          const struct elicit_view *v);
/* A host that the box asks about, as in mo_connections_put(). */
void mo_chat_event_network(struct chat *c, struct mo_member *only,
                           struct mo_json pending);
void mo_chat_event_network_resolved(struct chat *c, const char *id,
                                    bool approved, const char *by);
/* A server asks for an answer of the model, or that answer waits. */
void mo_chat_event_sampling(struct chat *c, struct mo_member *only,
                            const struct sampling_view *v);
void mo_chat_event_elicited(struct chat *c, const char *id, const char *action,
                            const char *by);

#endif
