/* tool_pins.h - the definitions of tools as they were first seen.
 *
 * A server that is looked at, approved and then changes the words under
 * which its tools are offered is the oldest trick there is. So each tool's
 * definition is kept when it is first seen, with its digest (policy/exact.h);
 * one that differs later is blocked until a person has seen what changed.
 *
 * One file of the state directory, read at the start, replaced as a whole.
 * Each change locks the file, reads it again and adds to it, so that processes
 * lose no pin of each other: of two that see a tool first, the first to write
 * wins; an accepted definition replaces the pin. A file that cannot be written
 * is said in the log; the pins then last as long as the process. Limits:
 * MO_TOOL_PINS_MAX tools, MO_TOOL_PINS_FILE_MAX bytes; beyond them tools are
 * taken as they are and the log says so. */
#ifndef MO_POLICY_TOOL_PINS_H
#define MO_POLICY_TOOL_PINS_H

#include "base/log.h"
#include "base/mem.h"
#include "policy/tool.h"

#define MO_TOOL_PINS_FILE     "pins.json"
#define MO_TOOL_PINS_MAX      8192
#define MO_TOOL_PINS_FILE_MAX ((size_t)32 * 1024 * 1024)

struct mo_tool_pins;

/* dir: the state directory. A broken file is an error: forgetting what was
 * seen must be a person's decision. */
int mo_tool_pins_open(const struct mo_log *log, const char *dir,
                      struct mo_tool_pins **out, struct mo_err *e);
void mo_tool_pins_close(struct mo_tool_pins *p); /* NULL is fine */

/* True if the tool is as it was first seen, or is new (and pinned now). If
 * not, `before` gets the JSON of the first definition. */
bool mo_tool_pins_look(struct mo_tool_pins *p, const struct mo_tool *t,
                       struct mo_buf *before);
int mo_tool_pins_accept(struct mo_tool_pins *p, const struct mo_tool *t);
/* Writes what was pinned since the last time. */
void mo_tool_pins_flush(struct mo_tool_pins *p);

/* A tool as its server lists it, read as conversations read it
 * (policy/tools.c), or the digests would differ. Texts are borrowed from
 * the item or live with the arena. 0 or MO_ENOMEM. */
int mo_tool_pins_read_tool(struct mo_span server, struct mo_span name,
                           struct mo_json item, struct mo_arena *a,
                           struct mo_tool *out);
/* Is it another one than was first seen? One that was never seen is not, and
 * is not kept by asking. ctx: struct mo_tool_pins, as mo_gw_find wants it. */
bool mo_tool_pins_changed(void *ctx, struct mo_span server, struct mo_span name,
                          struct mo_json item);

#endif
