#include "config/trust.h"

#include <limits.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "codec/sha256.h"

#define TWO_BLANKS ((size_t)2) /* as in the output of sha256sum */

struct entry {
    char digest[MO_SHA256_HEX + 1];
    char path[PATH_MAX]; /* without links */
};

static bool make_entry(const char *path, struct mo_span text, struct entry *x)
{
    mo_sha256_hex(text, x->digest);
    return realpath(path, x->path) != NULL && !strchr(x->path, '\n');
}

/* The path of a line, and whether its digest is that of x. */
static struct mo_span path_of(struct mo_span line, const struct entry *x,
                              bool *same)
{
    *same = mo_span_starts(line, mo_span_cstr(x->digest));
    return mo_span_skip(line, MO_SHA256_HEX + TWO_BLANKS);
}

bool mo_trust_is_allowed(const char *list, const char *path,
                         struct mo_span text)
{
    mo_autobuf struct mo_buf lines = {.max = MO_TRUST_LIST_MAX};
    struct mo_file_stamp stamp;
    struct mo_span rest;
    struct entry x;

    if (!list[0] || !make_entry(path, text, &x) ||
        mo_file_read(list, MO_TRUST_LIST_MAX, &lines, &stamp, NULL) < 0 ||
        mo_file_trust(list, &stamp, false, NULL) < 0)
        return false;
    rest = mo_buf_view(&lines);
    while (rest.n > 0) {
        bool same = false;

        if (mo_span_is(path_of(mo_span_cut(&rest, '\n'), &x, &same), x.path) &&
            same)
            return true;
    }
    return false;
}

static int edit_list(void *ctx, struct mo_span text, struct mo_buf *out,
                     struct mo_err *e)
{
    const struct entry *x = ctx;

    (void)e;
    while (text.n > 0) {
        struct mo_span line = mo_span_cut(&text, '\n');
        bool same = false;

        if (mo_span_is(path_of(line, x, &same), x->path))
            continue;
        (void)mo_buf_span(out, line);
        (void)mo_buf_putc(out, '\n');
    }
    (void)mo_buf_printf(out, "%s  %s\n", x->digest, x->path);
    return 0;
}

int mo_trust_allow(const char *list, const char *path, struct mo_span text,
                   struct mo_err *e)
{
    struct entry x;
    const struct mo_file_change change = {
        .path = list,
        .max = MO_TRUST_LIST_MAX,
        .sync = true,
        .edit = edit_list,
        .ctx = &x,
    };
    mo_autofree char *dir = mo_strndup(list, strlen(list));
    char *slash = dir ? strrchr(dir, '/') : NULL;

    if (!list[0])
        return mo_fail(e, MO_EUNAVAIL,
                       "HOME is not set, so nothing can be remembered; name "
                       "the file with --config");
    if (!slash)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *slash = '\0';
    if (mo_file_mkdir(dir, e) < 0)
        return e->code;
    if (!make_entry(path, text, &x))
        return mo_fail_sys(e, "%s", path);
    return mo_file_change(&change, e);
}
