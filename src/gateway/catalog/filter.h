/* filter.h - which servers and tools belong to a view of the gateway.
 *
 * Servers: those of `servers`. Without that list: those that a pattern of
 * `tools` can choose, or all of them if there are no such patterns.
 *
 * Tools: patterns SERVER/TOOL of configured server names and the servers' own
 * tool names. `*` stands for any characters, `?` for one; a `!` in front leaves
 * tools out. The last pattern that fits decides. A tool that no pattern fits is
 * left out, unless the first pattern has a `!`.
 *
 * read_only: only tools that claim readOnlyHint. The claim is the server's; the
 * pins (policy/tool_pins.h) block a tool that changes it later.
 *
 * Resources and prompts follow their server.
 *
 * Pure. Ownership: a filter copies all texts. */
#ifndef MO_GATEWAY_CATALOG_FILTER_H
#define MO_GATEWAY_CATALOG_FILTER_H

#include "codec/json/json.h"
#include "config/config.h"

struct mo_filter;

/* NULL: out of memory. */
struct mo_filter *mo_filter_new(const struct mo_config_view *v);
void mo_filter_free(struct mo_filter *f); /* may be NULL */
bool mo_filter_same(const struct mo_filter *a, const struct mo_filter *b);

bool mo_filter_server(const struct mo_filter *f, struct mo_span server);
/* item: the tool as its server lists it; none: not known, then no claim
 * counts. */
bool mo_filter_tool(const struct mo_filter *f, struct mo_span server,
                    struct mo_span tool, struct mo_json item);

/* True if the text fits a pattern with `*` and `?`. */
bool mo_filter_glob(struct mo_span pattern, struct mo_span text);

#endif
