/* tool.h - one tool, as used by people, rules and pins.
 *
 * Ownership: texts are borrowed from the reader of the definition. */
#ifndef MO_POLICY_TOOL_H
#define MO_POLICY_TOOL_H

#include "policy/exact.h"

struct mo_tool {
    struct mo_span name;    /* for the model */
    struct mo_tool_def def; /* the server's name of the tool; everything else
                             * with the overrides of the configuration */
    struct mo_span title, output_schema;
    unsigned claims; /* mo_claim bits */
    unsigned source; /* index as given to mo_tools_load() */
    char digest[MO_EXACT_DIGEST];
};

#endif
