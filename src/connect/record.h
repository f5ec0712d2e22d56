/* record.h - all that the gateway and its servers say to each other, in a file.
 *
 * JSON lines: a head {"recording":1,...}, then for each message
 *
 *   {"ms":12,"server":"NAME","child":3,"to":"server"|"client","message":{...}}
 *
 * with the message as it was sent. child tells the connections of one server
 * apart. Values of secrets that this process knows are blanked out before
 * anything is written; a message that is no JSON any more after that is left
 * out, which a line says. What clients and tools put into messages by
 * themselves is in it: the file is for its owner's eyes (0600).
 *
 * A file that is there already is not touched. The first failed write ends the
 * recording and is logged; the gateway goes on. replay.h plays it. */
#ifndef MO_CONNECT_RECORD_H
#define MO_CONNECT_RECORD_H

#include "loop/loop.h"

struct mo_record;

/* The loop is borrowed: its clock, and its log with the secrets. */
struct mo_record *mo_record_open(struct mo_loop *l, const char *path,
                                 struct mo_err *e);
void mo_record_close(struct mo_record *r); /* NULL is fine */

/* For struct mo_gateway_opts; ctx is the struct mo_record. */
void mo_record_message(void *ctx, const char *server, uint64_t child,
                       bool to_server, struct mo_span text);

#endif
