/* answer.h - the params of a request to the toolbox that answers a call of a
 * script: its result, or an error of some kind.
 *
 * token: of the call of run_script; id: of the call, as the script counts. A
 * buffer that is full has its error. */
#ifndef MO_MCP_SCRIPT_ANSWER_H
#define MO_MCP_SCRIPT_ANSWER_H

#include "codec/json/json.h"

#define MO_SCRIPT_ANSWER "mcp-orchestrator/script/answer" /* the method */

/* The error of a result that does not fit into the params. */
#define MO_SCRIPT_TOO_LARGE                                                    \
    "The call was run, but its result is too large for a script."

void mo_script_put_result(struct mo_buf *params, uint64_t token, uint64_t id,
                          struct mo_span result);
void mo_script_put_error(struct mo_buf *params, uint64_t token, uint64_t id,
                         const char *kind, struct mo_span text);

#endif
