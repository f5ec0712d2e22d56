/* tool_claims.c - the table of annotations and their defaults. */
#include "codec/tool_claims.h"

static const struct {
    const char *name;
    unsigned bit;
    bool unsaid; /* the default */
} hints[] = {
    {"readOnlyHint", MO_CLAIM_READ_ONLY, false},
    {"destructiveHint", MO_CLAIM_DESTRUCTIVE, true},
    {"idempotentHint", MO_CLAIM_IDEMPOTENT, false},
    {"openWorldHint", MO_CLAIM_OPEN_WORLD, true},
};

unsigned mo_claim_bit(struct mo_span name)
{
    for (size_t i = 0; i < MO_COUNT(hints); i++)
        if (mo_span_is(name, hints[i].name))
            return hints[i].bit;
    return 0;
}

unsigned mo_claims_of(struct mo_json annotations)
{
    unsigned claims = 0;

    for (size_t i = 0; i < MO_COUNT(hints); i++) {
        bool on = hints[i].unsaid;

        if (mo_json_is(annotations, MO_JSON_OBJECT))
            mo_json_bool(mo_json_get(annotations, hints[i].name), &on);
        claims |= on ? hints[i].bit : 0;
    }
    if (claims & MO_CLAIM_READ_ONLY)
        claims &= ~(unsigned)MO_CLAIM_DESTRUCTIVE;
    return claims;
}
