/* list.c - list_files: the entries of a directory, or of the tree below it.
 *
 * Names are sorted; symbolic links are listed, not followed. The text shows
 * control characters of a name by their code; `entries` has the exact name. At
 * most max_entries entries and TB_BYTES_MAX bytes of names are returned; the
 * answer says if there are more. Work is bounded too: VISIT_MAX entries are
 * visited. */
#include "codec/text/visible.h"
#include "toolbox/box.h"
#include "toolbox/glob.h"
#include "toolbox/walk.h"

#define ENTRIES_MAX 5000
#define ENTRIES     1000
#define VISIT_MAX   100000

struct args {
    struct mo_span path, glob;
    bool recursive;
    int64_t max;
};

static const struct tb_field in[] = {
    {"path", "Directory, relative to the workspace. Default: all of it.",
     TB_TEXT, false, offsetof(struct args, path)},
    {"recursive", "List what is below, too. Default false.", TB_BOOL, false,
     offsetof(struct args, recursive)},
    {"glob", "Only what fits, such as *.c or src/**/*.{ts,tsx}.", TB_TEXT,
     false, offsetof(struct args, glob)},
    {"max_entries", "Most entries wanted. Default 1000.", TB_INT, false,
     offsetof(struct args, max), 1, ENTRIES_MAX},
    {0},
};

static const char *const entry_types[] = {"file", "directory", "symlink",
                                          "other", NULL};

static const struct tb_field entry_out[] = {
    {"name", "Path below the listed directory.", TB_TEXT, true, 0},
    {"type", NULL, TB_CHOICE, true, 0, 0, 0, entry_types},
    {"size", "Bytes in a file.", TB_INT, false, 0},
    {0},
};

static const struct tb_field out[] = {
    {"path", NULL, TB_TEXT, true, 0},
    {"entries", NULL, TB_ITEMS, true, 0, 0, 0, NULL, entry_out},
    {"truncated", "There are more.", TB_BOOL, true, 0},
    {0},
};

struct listing {
    struct tb_walk walk;
    struct tb_result r;
    struct mo_jw w;
    size_t bytes;
    int64_t count;
    bool more;
};

static const char *type_of(mode_t m)
{
    if (S_ISREG(m))
        return "file";
    if (S_ISDIR(m))
        return "directory";
    return S_ISLNK(m) ? "symlink" : "other";
}

static void put_entry(struct listing *l)
{
    const struct tb_walk *k = &l->walk;
    mode_t m = k->st.st_mode;

    mo_jw_obj(&l->w);
    mo_jw_member_cstr(&l->w, "name", k->path);
    mo_jw_member_cstr(&l->w, "type", type_of(m));
    if (S_ISREG(m)) {
        mo_jw_member_u64(&l->w, "size", (uint64_t)k->st.st_size);
    }
    mo_jw_end(&l->w);
    mo_visible_name(&l->r.text, mo_span_cstr(k->path));
    if (S_ISREG(m))
        mo_buf_printf(&l->r.text, " (%lld bytes)", (long long)k->st.st_size);
    else if (!S_ISDIR(m))
        mo_buf_printf(&l->r.text, " (%s)", type_of(m));
    mo_buf_puts(&l->r.text, S_ISDIR(m) ? "/\n" : "\n");
    l->count++;
    l->bytes += strlen(k->path) + 1;
}

static int collect_entries(struct listing *l, const struct args *a,
                           struct mo_err *e)
{
    for (unsigned seen = 0;; seen++) {
        int rc = tb_walk_next(&l->walk, e);

        if (rc <= 0)
            return rc;
        l->more = seen == VISIT_MAX;
        if (l->more)
            return 0;
        if (a->glob.p && !tb_glob(a->glob, mo_span_cstr(l->walk.path)))
            continue;
        l->more = l->count == a->max || l->bytes >= TB_BYTES_MAX;
        if (l->more)
            return 0;
        put_entry(l);
    }
}

static void finish_list(struct listing *l)
{
    l->more |= l->walk.clipped;
    mo_jw_end(&l->w);
    mo_jw_member_bool(&l->w, "truncated", l->more);
    mo_jw_end(&l->w);
    if (l->count == 0)
        mo_buf_puts(&l->r.text, "(nothing there)\n");
    if (l->walk.denied)
        mo_buf_printf(&l->r.text, "[%u directories may not be read]\n",
                      l->walk.denied);
    if (l->more)
        mo_buf_printf(&l->r.text,
                      "[cut after %lld entries; list a directory below "
                      "or give a glob]\n",
                      (long long)l->count);
}

static int list_files(struct tb_box *box, struct tb_call *c, struct listing *l,
                      const struct args *a, const struct tb_path *p,
                      struct mo_err *e)
{
    int fd = tb_open_dir(&box->root, p, 0, e);
    int rc;

    if (fd < 0 ||
        tb_walk_open(&l->walk, fd, a->recursive ? TB_WALK_DEPTH : 1, e) < 0)
        return e->code;
    mo_jw_init(&l->w, &l->r.data);
    mo_jw_obj(&l->w);
    mo_jw_member_cstr(&l->w, "path", p->text);
    mo_jw_key(&l->w, "entries");
    mo_jw_arr(&l->w);
    rc = collect_entries(l, a, e);
    finish_list(l);
    tb_walk_close(&l->walk);
    if (rc == 0)
        tb_call_done(c, &l->r);
    return rc;
}

static int run_list(void *ctx, struct tb_call *c, struct mo_json json,
                    struct mo_err *e)
{
    mo_autofree struct listing *l = mo_new(struct listing);
    struct args a = {.path = MO_SPAN("."), .max = ENTRIES};
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    struct tb_path p;
    int rc;

    if (!l)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    tb_result_init(&l->r);
    rc = tb_args_read(ctx, json, &tb_list_files, &arena, &a, &a.path, &p, e);
    if (rc == 0)
        rc = list_files(ctx, c, l, &a, &p, e);
    tb_result_fini(&l->r);
    return rc;
}

const struct tb_tool tb_list_files = {
    "list_files",
    "List files",
    "List a directory of the workspace, or with recursive the tree below it. "
    "Names are sorted; symbolic links are not followed.",
    TB_READ_ONLY | TB_IDEMPOTENT,
    in,
    out,
    run_list,
};
