/* files.h - methods for the program that owns the box, beside the tools.
 *
 * They serve the files of the workspace to people: list, read, write, remove.
 * They are no tools: no model sees them, and tools/list does not name them. All
 * of them are answered at once and keep nothing between two requests.
 *
 * Paths obey root.h: the kernel keeps them inside, reading follows links that
 * stay inside, writing and removing follow none. Limits: TB_BYTES_MAX bytes of
 * a file at a time, LIST_MAX entries, REMOVE_MAX removed entries a request; the
 * answer says how to go on. docs/toolbox.md describes the messages. */
#ifndef TB_FILES_H
#define TB_FILES_H

#include "toolbox/server.h"

/* All methods, terminated by a row without a name. ctx: struct tb_box. */
extern const struct tb_method tb_files_methods[];

/* A word for programs that says why a method failed. */
const char *tb_files_word(const struct mo_err *e);

#endif
