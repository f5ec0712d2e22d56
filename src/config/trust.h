/* trust.h - which files of the configuration may be used.
 *
 * A configuration starts programs and says where keys are sent, so it is
 * trusted like code:
 *
 *   - every file must belong to us or to root, and nobody else may write it
 *     (mo_file_trust());
 *   - mcp-orchestrator.json and .env of the working directory are used only if
 *     their present content was confirmed with `config allow`, if a file of
 *     that directory was named, or if it is the home directory. Otherwise a
 *     cloned repository could bring its own.
 *
 * The list of confirmed files is CONFIG_HOME/mcp-orchestrator/allowed: one line
 * per file, the SHA-256 of its content and its path. */
#ifndef MO_CONFIG_TRUST_H
#define MO_CONFIG_TRUST_H

#include "base/str.h"

#define MO_TRUST_LIST_MAX ((size_t)256 * 1024)

/* True if this content of the file was confirmed. list may be "": there is
 * none. */
bool mo_trust_is_allowed(const char *list, const char *path,
                         struct mo_span text);
/* Confirm this content, in place of an earlier one of the same path. */
int mo_trust_allow(const char *list, const char *path, struct mo_span text,
                   struct mo_err *e);

#endif
