/* yaml_core.h - scalars and flow collections as YAML 1.2's core schema has
 * them, for texts that people write (the frontmatter of a skill).
 *
 * Plain null, true and false in their three spellings and all numbers become
 * those of JSON, which keep their digits. A flow collection ends on its line.
 * No I/O. Anything that two parsers could read differently is refused. */
#ifndef MO_CODEC_YAML_CORE_H
#define MO_CODEC_YAML_CORE_H

#include "codec/json/json.h"

/* Writes a plain scalar. MO_EINVAL: a number that JSON cannot have. */
int mo_yaml_core_plain(struct mo_jw *w, struct mo_span s);
/* Writes a collection in brackets or braces. MO_EINVAL: not one. */
int mo_yaml_core_flow(struct mo_jw *w, struct mo_span s);

#endif
