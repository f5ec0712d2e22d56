/* branching.h - reads the current branch of a conversation, and the commands
 * that change it (branch.h). Each answers `ack` once, now or later. */
#ifndef MO_AGENT_CHAT_BRANCHING_H
#define MO_AGENT_CHAT_BRANCHING_H

#include "agent/chat/chat_priv.h"

/* Takes the rows of the store, oldest first, into memory. */
void mo_chat_take_rows(struct chat *c, const struct mo_rows *rows);
void mo_chat_reread(struct chat *c); /* they are taken, on another branch */

void mo_chat_edit(struct mo_member *m, const struct mo_wish *w,
                  struct ack *ack);
void mo_chat_regenerate(struct mo_member *m, const struct mo_wish *w,
                        struct ack *ack);
void mo_chat_continue(struct mo_member *m, const struct mo_wish *w,
                      struct ack *ack);
void mo_chat_switch_branch(struct mo_member *m, const struct mo_wish *w,
                           struct ack *ack);

#endif
