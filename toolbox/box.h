/* box.h - what the tools work on: one root, one loop, the running commands.
 * Every tool is one file that exports its row of the table. */
#ifndef TB_BOX_H
#define TB_BOX_H

#include "toolbox/exec.h"
#include "toolbox/loop.h"
#include "toolbox/root.h"
#include "toolbox/tool.h"

#define TB_FILE_MAX ((size_t)8 * 1024 * 1024) /* written, edited, searched */

struct tb_box {
    struct tb_root root;
    struct tb_loop loop;
    struct tb_exec exec;
};

extern const struct tb_tool tb_read_file;
extern const struct tb_tool tb_write_file;
extern const struct tb_tool tb_edit_file;
extern const struct tb_tool tb_list_files;
extern const struct tb_tool tb_search_files;
extern const struct tb_tool tb_execute_command;

/* All of them, NULL at the end. */
extern const struct tb_tool *const tb_tools[];

/* What a file tool begins with: the arguments, and the path among them. */
int tb_args_read(struct tb_box *box, struct mo_json args,
                 const struct tb_tool *t, struct mo_arena *a, void *out,
                 struct mo_span *path, struct tb_path *p, struct mo_err *e);

/* The bytes from `from` on, `max` at most, appended; the number, or -1 and
 * errno. */
ssize_t tb_read_bytes(int fd, off_t from, size_t max, struct mo_buf *b);

/* Bytes that are text: UTF-8 without NUL. */
bool tb_is_text(struct mo_span s);

enum tb_encoding { TB_UTF8, TB_BASE64 };

#define TB_ENCODINGS                                                           \
    {                                                                          \
        "utf-8", "base64"                                                      \
    }

#endif
