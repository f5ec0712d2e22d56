/* edit.c - edit_file: replace an exact text.
 *
 * The text must occur once, or replace_all be set: an edit that could mean two
 * places is refused with their line numbers. */
#include "toolbox/edit.h"

#include <errno.h>
#include <limits.h>

#include "toolbox/box.h"
#include "toolbox/save.h"

#define PLACES 5 /* line numbers listed if there are several */

struct args {
    struct mo_span path, old, new;
    bool all;
};

static const struct tb_field in[] = {
    {"path", "File to change, relative to the workspace.", TB_TEXT, true,
     offsetof(struct args, path)},
    {"old_string",
     "Text to replace, exactly as in the file, blanks and line ends included.",
     TB_TEXT, true, offsetof(struct args, old)},
    {"new_string", "Text to put there.", TB_TEXT, true,
     offsetof(struct args, new)},
    {"replace_all",
     "Replace every occurrence; without it there must be exactly one.", TB_BOOL,
     false, offsetof(struct args, all)},
    {0},
};

static const struct tb_field out[] = {
    {"path", NULL, TB_TEXT, true, 0},
    {"replacements", NULL, TB_INT, true, 0},
    {"bytes", "Bytes in the file now.", TB_INT, true, 0},
    {0},
};

/* --- replace, without I/O ------------------------------------------------ */

static int fail_ambiguous(struct mo_span text, struct mo_span old,
                          struct mo_err *e)
{
    unsigned line = 1, count = 0;
    mo_autobuf struct mo_buf places = {.max = 128};
    ptrdiff_t at;

    for (;;) {
        at = mo_span_search(text, old);
        if (at < 0 || !text.p)
            break;
        for (size_t i = 0; i < (size_t)at; i++)
            line += text.p[i] == '\n';
        if (count++ < PLACES)
            mo_buf_printf(&places, " %u", line);
        for (size_t i = (size_t)at; i < (size_t)at + old.n; i++)
            line += text.p[i] == '\n';
        text = mo_span_skip(text, (size_t)at + old.n);
    }
    return mo_fail(e, MO_EEXISTS,
                   "old_string occurs %u times, at lines%s%s: add text around "
                   "it to name one place, or set replace_all",
                   count, mo_buf_cstr(&places), count > PLACES ? " ..." : "");
}

int tb_edit(struct mo_span text, struct mo_span old, struct mo_span new,
            bool all, struct mo_buf *b, struct mo_err *e)
{
    struct mo_span rest = text;
    int count = 0;

    if (old.n == 0)
        return mo_fail(e, MO_EINVAL, "old_string is empty");
    for (;;) {
        ptrdiff_t at = count < INT_MAX ? mo_span_search(rest, old) : -1;

        if (at < 0)
            break;
        if (count == 1 && !all)
            return fail_ambiguous(text, old, e);
        mo_buf_span(b, mo_span_head(rest, (size_t)at));
        mo_buf_span(b, new);
        rest = mo_span_skip(rest, (size_t)at + old.n);
        count++;
    }
    if (count == 0)
        return mo_fail(e, MO_ENOTFOUND,
                       "old_string does not occur in the file: read it again "
                       "and copy the text exactly");
    if (mo_buf_span(b, rest) < 0)
        return mo_fail(e, mo_buf_err(b), "the edited file would be too large");
    return count;
}

/* --- the tool ------------------------------------------------------------ */

static void answer_edit(struct tb_call *c, const struct tb_path *p, int count,
                        size_t bytes)
{
    struct tb_result r;
    struct mo_jw w;

    tb_result_init(&r);
    mo_jw_init(&w, &r.data);
    mo_jw_obj(&w);
    mo_jw_member_cstr(&w, "path", p->text);
    mo_jw_member_i64(&w, "replacements", count);
    mo_jw_member_u64(&w, "bytes", bytes);
    mo_jw_end(&w);
    mo_buf_printf(&r.text, "Replaced %d occurrence%s in %s", count,
                  count == 1 ? "" : "s", p->text);
    tb_call_done(c, &r);
    tb_result_fini(&r);
}

static int load_file(struct tb_box *box, const struct tb_path *p,
                     struct mo_buf *b, struct mo_err *e)
{
    struct stat st;
    mo_autofd int fd = tb_open_file(&box->root, p, &st, e);

    if (fd < 0)
        return e->code;
    if ((uint64_t)st.st_size > TB_FILE_MAX)
        return mo_fail(e, MO_ETOOBIG,
                       "the file is larger than %zu bytes: change it with "
                       "execute_command",
                       TB_FILE_MAX);
    if (tb_read_bytes(fd, 0, (size_t)st.st_size, b) < 0)
        return tb_path_fail(e, errno, p->text);
    return 0;
}

static int run_edit(void *ctx, struct tb_call *c, struct mo_json json,
                    struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    mo_autobuf struct mo_buf before = {.max = TB_FILE_MAX};
    mo_autobuf struct mo_buf after = {.max = TB_FILE_MAX};
    struct tb_box *box = ctx;
    struct args a = {0};
    struct tb_saved saved;
    struct tb_path p;
    int count;

    if (tb_args_read(box, json, &tb_edit_file, &arena, &a, &a.path, &p, e) <
            0 ||
        load_file(box, &p, &before, e) < 0)
        return e->code;
    count = tb_edit(mo_buf_view(&before), a.old, a.new, a.all, &after, e);
    if (count < 0)
        return count;
    if (tb_save(&box->root, &p, mo_buf_view(&after), false, &saved, e) < 0)
        return e->code;
    answer_edit(c, &p, count, after.len);
    return 0;
}

const struct tb_tool tb_edit_file = {
    "edit_file",
    "Edit a file",
    "Replace an exact text in a file of the workspace. old_string must occur "
    "exactly once, or set replace_all.",
    TB_DESTRUCTIVE,
    in,
    out,
    run_edit,
};
