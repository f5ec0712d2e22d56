/* skill_file.h - verifies files of a skill that were read (SEP-2640).
 *
 * The entry of a skill names every file with its size and SHA-256 digest, and
 * repeats the frontmatter of SKILL.md. A file is used only if the bytes that
 * were read agree with the entry. A skill whose files are "dynamic" has nothing
 * to compare with but the frontmatter. Pure functions; entry and file may be
 * hostile. */
#ifndef MO_MCP_SKILL_FILE_H
#define MO_MCP_SKILL_FILE_H

#include "codec/json/json.h"

#define MO_SKILL_FILE_MAX ((size_t)16 * 1024 * 1024)

/* True if the files of the entry have digests. */
bool mo_skill_is_verifiable(struct mo_json entry);
/* The element of "resources" for the file of that URI; none: not listed. */
struct mo_json mo_skill_listed(struct mo_json entry, struct mo_span uri);

/* Appends the bytes of the file of that URI in the result of a resources/read.
 * MO_EPROTO: it has none, or text and blob; MO_ETOOBIG, MO_ENOMEM. */
int mo_skill_file_bytes(struct mo_json result, struct mo_span uri,
                        struct mo_buf *out, struct mo_err *e);
/* Compares the bytes of a file with the entry: size, digest and, of the skill's
 * own SKILL.md, the frontmatter. uri: as the entry spells it. MO_EPROTO: they
 * differ, or the file is not listed; MO_ENOMEM. */
int mo_skill_verify(struct mo_json entry, struct mo_span uri,
                    struct mo_span bytes, struct mo_err *e);

#endif
