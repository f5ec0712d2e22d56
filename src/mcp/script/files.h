/* files.h - the files beside a script: its library, and the tools it mentions.
 *
 * data/script/tools.py and tools.mjs are linked into the program. Beside them:
 *
 *   tools_shared.py        a part of tools.py that few scripts need
 *   names.json             identifiers of tools whose name is none
 *   stubs.py, tools.d.mts  declarations of the tools (stubs.h)
 *
 * Limits: MENTIONED_MAX tools, TEXTS_MAX bytes of declarations; tools beyond
 * can be called as all others, but are not declared. */
#ifndef MO_MCP_SCRIPT_FILES_H
#define MO_MCP_SCRIPT_FILES_H

#include "mcp/script/names.h"
#include "mcp/script/stubs.h"

/* One run of a script: all tools it may call. */
struct mo_script_use {
    enum mo_script_language language;
    struct mo_span code;
    const struct mo_script_tool *tools;
    size_t n;
};

/* The source of tools.py or tools.mjs. */
struct mo_span mo_script_library(enum mo_script_language l);

/* Writes the members of an object: names of files and their texts. An error is
 * the writer's. */
void mo_script_files(struct mo_jw *w, const struct mo_script_use *u);

/* The member files of a call of run_script. u: the tools; language and code are
 * those of the arguments, code up to code_max bytes. */
void mo_script_put_files_of(struct mo_jw *w, struct mo_json args,
                            size_t code_max, struct mo_script_use u);

/* True and the identifier, if the tool has one that no other tool has. */
bool mo_script_own_identifier(const struct mo_script_use *u, size_t i,
                              char out[MO_SCRIPT_ID_MAX]);

#endif
