/* record.h - records all messages between the gateway and its servers in a
 * file.
 *
 * The file has JSON lines: a head {"recording":1,...}, then for each message
 *
 *   {"ms":12,"server":"NAME","child":3,"to":"server"|"client","message":{...}}
 *
 * The message is stored as it was sent. child distinguishes the connections of
 * one server. Secrets known to this process are blanked out before anything is
 * written. If a message is no longer JSON after that, it is left out and a line
 * says so. Secrets that clients or tools put into messages are not detected, so
 * only the owner may read the file (0600).
 *
 * An existing file is not overwritten: opening fails. The first failed write is
 * logged and ends the recording; the gateway continues. replay.h plays the
 * file. */
#ifndef MO_CONNECT_RECORD_H
#define MO_CONNECT_RECORD_H

#include "loop/loop.h"

struct mo_record;

/* The loop is borrowed: its clock, and its log, which knows the secrets. */
struct mo_record *mo_record_open(struct mo_loop *l, const char *path,
                                 struct mo_err *e);
void mo_record_close(struct mo_record *r); /* NULL is fine */

/* Callback for struct mo_upstream_opts; ctx is the struct mo_record. */
void mo_record_message(void *ctx, const char *server, uint64_t child,
                       bool to_server, struct mo_span text);

#endif
