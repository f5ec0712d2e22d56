/* tools.c - the table of tools, and functions that several of them share. */
#include <errno.h>
#include <unistd.h>

#include "codec/text/utf8.h"
#include "toolbox/box.h"
#include "toolbox/files.h"
#include "toolbox/script.h"

const struct tb_tool *const tb_tools[] = {
    &tb_read_file,    &tb_write_file,      &tb_edit_file,  &tb_list_files,
    &tb_search_files, &tb_execute_command, &tb_run_script, NULL,
};

const char *const tb_encodings[] = {"utf-8", "base64", NULL};

const struct tb_method *const tb_methods[] = {tb_files_methods,
                                              tb_script_methods, NULL};

void tb_tools_choose(struct tb_box *box)
{
    size_t n = 0;

    box->languages = tb_script_languages();
    for (size_t i = 0; tb_tools[i]; i++) {
        if (tb_tools[i] != &tb_run_script || box->languages)
            box->tools[n++] = tb_tools[i];
    }
    box->tools[n] = NULL;
}

/* An empty optional path counts as absent. */
static bool is_optional(const struct tb_tool *t, const void *out,
                        const struct mo_span *path)
{
    size_t at = (size_t)((const char *)path - (const char *)out);

    for (const struct tb_field *f = t->in; f->name; f++) {
        if (f->at == at)
            return !f->required;
    }
    return false;
}

int tb_args_read(struct tb_box *box, struct mo_json args,
                 const struct tb_tool *t, struct mo_arena *a, void *out,
                 struct mo_span *path, struct tb_path *p, struct mo_err *e)
{
    int rc = tb_fields_read(args, t->in, a, out, e);

    if (rc < 0)
        return rc;
    if (path->n == 0 && is_optional(t, out, path))
        *path = MO_SPAN(".");
    return tb_path_read(&box->root, *path, p, e);
}

ssize_t tb_read_bytes(int fd, off_t from, size_t max, struct mo_buf *b)
{
    size_t got = 0;

    while (got < max) {
        size_t want = max - got < 65536 ? max - got : 65536;
        char *to = mo_buf_room(b, want);
        ssize_t n;

        if (!to) {
            errno = ENOMEM;
            return -1;
        }
        n = pread(fd, to, want, from + (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        mo_buf_add(b, (size_t)n);
        got += (size_t)n;
    }
    return (ssize_t)got;
}

bool tb_is_text(struct mo_span s)
{
    return !(s.n && memchr(s.p, '\0', s.n)) && mo_utf8_valid(s);
}
