/* agree.h - does an engine's account agree with what it was asked?
 *
 * Engines write back what they were given in forms of their own: nothing may
 * be null, "", [], {}, 0, false or not there at all; lists may come in another
 * order; podman adds to some. Each function is one way in which two values
 * are as good as equal. No allocation; handles as in codec/json/json.h. */
#ifndef MO_ENGINE_AGREE_H
#define MO_ENGINE_AGREE_H

#include "codec/json/json.h"

bool mo_agree_nothing(struct mo_json v);
/* Equal, or both nothing. */
bool mo_agree_same(struct mo_json a, struct mo_json b);
/* Arrays: the same elements in any order; more: theirs may have others. */
bool mo_agree_set(struct mo_json ours, struct mo_json theirs, bool more);
/* Objects: all members of ours are in theirs, equal; longer: their texts may
 * go on where ours end. */
bool mo_agree_ours(struct mo_json ours, struct mo_json theirs, bool longer);

#endif
