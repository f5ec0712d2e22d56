/* wire.h - joins, commands and answers as frames (codec/peer_frame.h).
 *
 * The same functions read what a guest sends and what a seat has kept, so a
 * command means the same here and there. Pure, except mo_wire_run().
 *
 *   JOIN     version, session, model, key, who, owner, name with a NUL,
 *            role (4), groups with a NUL, personal token, reads (4), door or
 *            absent
 *   PING     groups with a NUL: those of the member now
 *   COMMAND  number (4), kind (4), again (4), fields of the kind
 *   ACK      number (4), ok (4), code, message, extra
 *   CLOSED   reason, code of the error (4; 0: none), message */
#ifndef MO_PEER_WIRE_H
#define MO_PEER_WIRE_H

#include "agent/chat/chat.h"
#include "codec/peer_frame.h"

/* Versions of this protocol that we speak, the HTTP between servers included
 * (web/relay.h). Two processes use the highest that both speak. */
#define MO_WIRE_MIN         1
#define MO_WIRE_MAX         2 /* 2: wishes */
/* From a seat: a message, or a decision with edited arguments. */
#define MO_WIRE_COMMAND_MAX ((size_t)2 * 1024 * 1024)
/* From a guest: an event. */
#define MO_WIRE_EVENT_MAX   (MO_CHAT_EVENT_MAX + 4096)
#define MO_WIRE_CODE_MAX    64
#define MO_WIRE_GROUPS_MAX  4096 /* with the NUL */
/* Code of an ACK: the chat ended without the command, and CLOSED follows. */
#define MO_WIRE_ENDED       "chat ended"
#define MO_WIRE_REASON      "another version" /* of CLOSED: cannot join there */

enum mo_wire_kind {
    MO_WIRE_SAY,
    MO_WIRE_DECIDE,
    MO_WIRE_ANSWER,
    MO_WIRE_ACCEPT,
    MO_WIRE_CANCEL,
    MO_WIRE_RESET,
    MO_WIRE_END,
    MO_WIRE_WISH, /* since version 2 */
    MO_WIRE_KINDS,
};

/* --- joins ---------------------------------------------------------------- */

/* The highest version that we and a process that speaks min to max have in
 * common; 0: none. */
unsigned mo_wire_common(uint64_t min, uint64_t max);

void mo_wire_put_join(struct mo_buf *b, const struct mo_join *j,
                      unsigned version);
/* Of a JOIN's data; the spans point into it. MO_EPOLICY: a version that we do
 * not speak. */
int mo_wire_join(struct mo_span data, struct mo_join *out, struct mo_err *e);

void mo_wire_put_ping(struct mo_buf *b, const char *groups);
/* groups: into the data. */
bool mo_wire_ping(struct mo_span data, const char **groups);

/* --- commands ------------------------------------------------------------- */

void mo_wire_put_say(struct mo_buf *b, uint32_t no, struct mo_span id,
                     struct mo_span text);
void mo_wire_put_decide(struct mo_buf *b, uint32_t no,
                        const struct mo_decision *d);
void mo_wire_put_answer(struct mo_buf *b, uint32_t no,
                        const struct mo_answer *a);
void mo_wire_put_accept(struct mo_buf *b, uint32_t no, struct mo_span tool,
                        struct mo_span digest);
void mo_wire_put_wish(struct mo_buf *b, uint32_t no, const struct mo_wish *w);
void mo_wire_put_plain(struct mo_buf *b, uint32_t no, enum mo_wire_kind kind);
void mo_wire_set_again(char *frame); /* of a whole COMMAND */

bool mo_wire_number(struct mo_span data, uint32_t *no);
/* Does what the COMMAND's data says; done() once. MO_EPROTO: it is none, and
 * done() is not called. */
int mo_wire_run(struct mo_member *m, struct mo_span data, mo_ack_fn *done,
                void *ctx);

/* --- answers -------------------------------------------------------------- */

void mo_wire_put_ack(struct mo_buf *b, uint32_t no, const struct mo_ack *a);
/* code: for the answer's text. */
bool mo_wire_ack(struct mo_span data, uint32_t *no, struct mo_ack *out,
                 char code[MO_WIRE_CODE_MAX]);

void mo_wire_put_closed(struct mo_buf *b, const char *reason,
                        const struct mo_err *why);
/* The reason is one of the known ones, or "failed". why->code 0: none. */
bool mo_wire_closed(struct mo_span data, const char **reason,
                    struct mo_err *why);

#endif
