/* tool.h - one tool as people, rules and pins see it.
 *
 * Ownership: texts are borrowed from whoever read the definition. */
#ifndef MO_POLICY_TOOL_H
#define MO_POLICY_TOOL_H

#include "policy/exact.h"

struct mo_tool {
    struct mo_span name;    /* for the model */
    struct mo_tool_def def; /* as the server has it; but for its name there,
                             * as the gateway was told to describe it */
    struct mo_span title, output_schema;
    unsigned claims; /* mo_claim bits */
    unsigned source; /* index as given to mo_tools_load() */
    char digest[MO_EXACT_DIGEST];
};

#endif
