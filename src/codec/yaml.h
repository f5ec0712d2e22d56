/* yaml.h - the part of YAML that programs write, as JSON.
 *
 * A kubeconfig is YAML. This reads block mappings and sequences, plain, single
 * and double quoted scalars, plain scalars over several lines, literal blocks
 * ("|", "|-"), comments, and values in JSON notation on one line. Everything
 * else is refused with its line: anchors, aliases, tags, directives, several
 * documents, folded blocks, tabs as indentation.
 *
 * Plain true, false and null become those; every other scalar becomes a string,
 * numbers included. No I/O. Limits: MO_YAML_DEPTH levels, out's size. */
#ifndef MO_CODEC_YAML_H
#define MO_CODEC_YAML_H

#include "base/str.h"

#define MO_YAML_DEPTH 16

/* Appends the document to out. MO_EINVAL: not this kind of YAML; MO_ETOOBIG,
 * MO_ENOMEM. */
int mo_yaml_to_json(struct mo_span text, struct mo_buf *out, struct mo_err *e);

/* The same for texts that people write: plain numbers become numbers
 * (yaml_core.h), folded blocks and flow collections are read. */
int mo_yaml_core_to_json(struct mo_span text, struct mo_buf *out,
                         struct mo_err *e);

#endif
