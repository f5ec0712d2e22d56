/* tool_pins.h - tool definitions as they were first seen.
 *
 * A malicious server can offer a harmless tool, wait for approval and then
 * change its description. So each definition is stored when it is first seen,
 * with its digest (policy/exact.h). A tool that differs later is blocked until
 * a person accepts the change.
 *
 * A pin also says when it was made, and whether a person accepted it.
 *
 * The pins are one file in the state directory, replaced as a whole. A change
 * locks the file, reads it again and merges, so several processes can share
 * it: of two that see a tool first, the first to write wins; an accepted
 * definition replaces the pin.
 *
 * Failure: if the file cannot be written, the log says so and the pins last as
 * long as the process. Limits: MO_TOOL_PINS_MAX tools, MO_TOOL_PINS_FILE_MAX
 * bytes; further tools are not pinned and the log says so. */
#ifndef MO_POLICY_TOOL_PINS_H
#define MO_POLICY_TOOL_PINS_H

#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "policy/exact.h"
#include "store/shared_rows.h"

#define MO_TOOL_PINS_FILE     "pins.json"
#define MO_TOOL_PINS_MAX      8192
#define MO_TOOL_PINS_FILE_MAX ((size_t)32 * 1024 * 1024)

struct mo_tool_pins;

/* dir: the state directory. A damaged file is an error: only a person may
 * discard pins. */
int mo_tool_pins_open(const struct mo_log *log, const char *dir,
                      struct mo_tool_pins **out, struct mo_err *e);
void mo_tool_pins_close(struct mo_tool_pins *p); /* NULL is fine */

/* True if the tool is as it was first seen, or is new (and pinned now). If
 * not, `before` gets the JSON of the first definition. */
bool mo_tool_pins_look(struct mo_tool_pins *p, const struct mo_tool *t,
                       struct mo_buf *before);
int mo_tool_pins_accept(struct mo_tool_pins *p, const struct mo_tool *t);
/* Writes new pins to the file. */
void mo_tool_pins_flush(struct mo_tool_pins *p);

/* Shares the pins with other workers, which have the same file: `changes`
 * counts how often it was written. */
void mo_tool_pins_share(struct mo_tool_pins *p, atomic_uint *changes);
/* Reads the file again if another worker has written it. True: it was, or
 * pins of other servers were taken. */
bool mo_tool_pins_catch_up(struct mo_tool_pins *p);

/* changed(ctx) when new pins were written. */
void mo_tool_pins_on_change(struct mo_tool_pins *p, void (*changed)(void *ctx),
                            void *ctx);
/* Shares the pins with servers that have another file (store/shared_rows.h),
 * one row for each MCP server. Of two pins of a tool the one counts that a
 * person accepted last; if nobody did, the one that was seen first. */
#define MO_TOOL_PINS_KIND "pins"
void mo_tool_pins_merge(struct mo_tool_pins *p, const struct mo_map *theirs,
                        struct mo_shared_rows *r);

/* True if the definition differs from the pinned one. An unknown tool counts
 * as unchanged and is not pinned. ctx: struct mo_tool_pins. */
bool mo_tool_pins_changed(void *ctx, struct mo_span server, struct mo_span name,
                          struct mo_json item);

#endif
