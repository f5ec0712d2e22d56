/* write.c - write_file: create or replace a whole file in one step. */
#include "codec/text/base64.h"
#include "toolbox/box.h"
#include "toolbox/save.h"

struct args {
    struct mo_span path, content;
    unsigned encoding;
    bool parents;
};

static const struct tb_field in[] = {
    {"path", "File to write, relative to the workspace.", TB_TEXT, true,
     offsetof(struct args, path)},
    {"content", "The whole new content.", TB_TEXT, true,
     offsetof(struct args, content)},
    {"encoding", "How content is written. Default utf-8.", TB_CHOICE, false,
     offsetof(struct args, encoding), 0, 0, tb_encodings},
    {"create_dirs", "Make missing directories. Default true.", TB_BOOL, false,
     offsetof(struct args, parents)},
    {0},
};

static const struct tb_field out[] = {
    {"path", NULL, TB_TEXT, true, 0},
    {"bytes", "Bytes written.", TB_INT, true, 0},
    {"created", "There was no such file before.", TB_BOOL, true, 0},
    {0},
};

static void answer_write(struct tb_call *c, const struct tb_path *p,
                         size_t bytes, bool created)
{
    struct tb_result r;
    struct mo_jw w;

    tb_result_init(&r);
    mo_jw_init(&w, &r.data);
    mo_jw_obj(&w);
    mo_jw_member_cstr(&w, "path", p->text);
    mo_jw_member_u64(&w, "bytes", bytes);
    mo_jw_member_bool(&w, "created", created);
    mo_jw_end(&w);
    mo_buf_printf(&r.text, "%s %s (%zu bytes)",
                  created ? "Created" : "Replaced", p->text, bytes);
    tb_call_done(c, &r);
    tb_result_fini(&r);
}

static int run_write(void *ctx, struct tb_call *c, struct mo_json json,
                     struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    mo_autobuf struct mo_buf plain = {.max = TB_FILE_MAX};
    struct args a = {.parents = true};
    struct tb_box *box = ctx;
    struct tb_saved saved;
    struct tb_path p;

    if (tb_args_read(box, json, &tb_write_file, &arena, &a, &a.path, &p, e) < 0)
        return e->code;
    if (a.encoding == TB_BASE64) {
        if (mo_base64_decode(a.content, &plain) < 0)
            return mo_fail(e, MO_EINVAL,
                           "content is not base64 (RFC 4648, with padding, no "
                           "blanks) of at most %zu bytes",
                           TB_FILE_MAX);
        a.content = mo_buf_view(&plain);
    }
    if (a.content.n > TB_FILE_MAX)
        return mo_fail(e, MO_ETOOBIG, "content is larger than %zu bytes",
                       TB_FILE_MAX);
    if (tb_save(&box->root, &p, a.content, a.parents, &saved, e) < 0)
        return e->code;
    answer_write(c, &p, a.content.n, saved.created);
    return 0;
}

const struct tb_tool tb_write_file = {
    "write_file",
    "Write a file",
    "Create a file in the workspace or replace its whole content, in one step: "
    "readers see the old or the new content. Symbolic links are not followed.",
    TB_DESTRUCTIVE | TB_IDEMPOTENT,
    in,
    out,
    run_write,
};
