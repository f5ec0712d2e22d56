/* agree.h - compares an engine's description of a container with the request.
 *
 * Engines return values in forms of their own: an empty value may be null, "",
 * [], {}, 0, false or missing; lists may be reordered; podman adds to some.
 * Each function is one way in which two values count as equal. No allocation;
 * handles as in codec/json/json.h. */
#ifndef MO_ENGINE_AGREE_H
#define MO_ENGINE_AGREE_H

#include "codec/json/json.h"

bool mo_agree_nothing(struct mo_json v);
/* Equal, or both empty. */
bool mo_agree_same(struct mo_json a, struct mo_json b);
/* Arrays: the same elements in any order; more: theirs may have extra ones. */
bool mo_agree_set(struct mo_json ours, struct mo_json theirs, bool more);
/* Objects: all members of ours are in theirs and equal; longer: their texts
 * may continue after ours. */
bool mo_agree_ours(struct mo_json ours, struct mo_json theirs, bool longer);

#endif
