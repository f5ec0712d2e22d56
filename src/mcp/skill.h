/* skill.h - entries of the Skills extension (SEP-2640).
 *
 * A skill is a directory of resources with a SKILL.md at its root. Its entry
 * names the URI of that file, the file's frontmatter and every file of the
 * skill with size and digest, or "dynamic" instead of the files. The official
 * SDK refuses a whole list because of one bad entry, so entries are checked
 * when they are read. Pure functions; an entry may be hostile. */
#ifndef MO_MCP_SKILL_H
#define MO_MCP_SKILL_H

#include "codec/json/json.h"

#define MO_SKILL_FILE     "/SKILL.md"
#define MO_SKILL_NAME_MAX 64

/* Why the entry is not valid; NULL: it is. */
const char *mo_skill_check(struct mo_json entry);

/* The directory of a SKILL.md, without a slash at its end; empty: uri is not
 * the URI of a SKILL.md in a named directory. */
struct mo_span mo_skill_root(struct mo_span uri);
/* True if uri is a file or directory below root. */
bool mo_skill_has(struct mo_span root, struct mo_span uri);

/* Appends the part of an entry that people agree to, in the form of a tool's
 * definition, for pins: {"description", "inputSchema": {"frontmatter",
 * "resources"}, "annotations": {}}. */
int mo_skill_put_definition(struct mo_json entry, struct mo_buf *out);

/* Called for each URI of an entry, a listing of a directory or the contents of
 * a resource; appends the new one, in quotes. */
typedef int (*mo_skill_uri_fn)(void *ctx, struct mo_json uri,
                               struct mo_buf *out);
/* Appends v with the member "uri" of v itself (entry), and of each element of
 * the member `list`, replaced. All other bytes are kept. 0 or fn's error. */
int mo_skill_replace_uris(struct mo_json v, bool entry, const char *list,
                          mo_skill_uri_fn fn, void *ctx, struct mo_buf *out);

#endif
