/* tool_claims.c - the table of annotations and their defaults. */
#include "codec/tool_claims.h"

/* In the order of the bits. */
static const struct {
    const char *name;
    bool unsaid; /* the default */
} hints[MO_CLAIMS] = {
    {"readOnlyHint", false},
    {"destructiveHint", true},
    {"idempotentHint", false},
    {"openWorldHint", true},
};

const char *mo_claim_name(unsigned number)
{
    return hints[number].name;
}

unsigned mo_claim_bit(struct mo_span name)
{
    for (unsigned i = 0; i < MO_CLAIMS; i++)
        if (mo_span_is(name, hints[i].name))
            return 1u << i;
    return 0;
}

unsigned mo_claims_of(struct mo_json annotations)
{
    unsigned claims = 0;

    for (unsigned i = 0; i < MO_CLAIMS; i++) {
        bool on = hints[i].unsaid;

        if (mo_json_is(annotations, MO_JSON_OBJECT))
            mo_json_bool(mo_json_get(annotations, hints[i].name), &on);
        claims |= (unsigned)on << i;
    }
    if (claims & MO_CLAIM_READ_ONLY)
        claims &= ~(unsigned)MO_CLAIM_DESTRUCTIVE;
    return claims;
}
