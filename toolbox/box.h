/* box.h - the state shared by all tools: one root, one loop, the running
 * commands. Every tool is one file that exports its row of the table. */
#ifndef TB_BOX_H
#define TB_BOX_H

#include "toolbox/exec.h"
#include "toolbox/loop.h"
#include "toolbox/root.h"
#include "toolbox/tool.h"

#define TB_FILE_MAX ((size_t)8 * 1024 * 1024) /* to write, edit or search */

#define TB_TOOLS_MAX 8

struct tb_box {
    struct tb_root root;
    struct tb_loop loop;
    struct tb_exec exec;
    unsigned languages; /* of scripts, as tb_script_languages() */
    const struct tb_tool *tools[TB_TOOLS_MAX + 1]; /* those that can run */
};

extern const struct tb_tool tb_read_file;
extern const struct tb_tool tb_write_file;
extern const struct tb_tool tb_edit_file;
extern const struct tb_tool tb_list_files;
extern const struct tb_tool tb_search_files;
extern const struct tb_tool tb_execute_command;
extern const struct tb_tool tb_run_script;

/* All tools and all other methods, terminated by NULL. */
extern const struct tb_tool *const tb_tools[];
struct tb_method;
extern const struct tb_method *const tb_methods[];

/* Fill box->tools: run_script needs an interpreter. */
void tb_tools_choose(struct tb_box *box);

/* Read the arguments of a file tool, and the path among them. */
int tb_args_read(struct tb_box *box, struct mo_json args,
                 const struct tb_tool *t, struct mo_arena *a, void *out,
                 struct mo_span *path, struct tb_path *p, struct mo_err *e);

/* Append at most `max` bytes starting at `from`. Returns their number, or -1
 * and errno. */
ssize_t tb_read_bytes(int fd, off_t from, size_t max, struct mo_buf *b);

/* True for UTF-8 without NUL. */
bool tb_is_text(struct mo_span s);

enum tb_encoding { TB_UTF8, TB_BASE64 };

extern const char *const tb_encodings[]; /* and NULL */

#endif
