/* search.c - search_files: lines that contain a text or match a pattern.
 *
 * The tree is searched in small idle steps, so a big search delays nobody and
 * can be cancelled. A regular expression is one of codec/json/jregex.h, which
 * has bounded work; it sees the first LINE_MAX_RE bytes of a line.
 *
 * Skipped and counted: files over TB_FILE_MAX and files that are not text.
 * Directories named .git are not entered. Long lines are shown in part. Limits:
 * max_results matches, TB_BYTES_MAX bytes of text, VISIT_MAX entries
 * visited. */
#include <errno.h>
#include <unistd.h>

#include "codec/json/jregex.h"
#include "codec/text/utf8.h"
#include "codec/text/visible.h"
#include "toolbox/box.h"
#include "toolbox/glob.h"
#include "toolbox/walk.h"

#define RESULTS     100
#define RESULTS_MAX 1000
#define CONTEXT_MAX 10
#define VISIT_MAX   1000000
#define STEP_BYTES  ((size_t)128 * 1024) /* of text per step */
#define LINE_STEPS  4000000             /* of the regular expression per line */
#define LINE_MAX_RE ((size_t)64 * 1024) /* bytes of a line that it sees */
#define LINE_SHOWN  400                 /* bytes of a line in the answer */
#define DATA_MAX    ((size_t)1536 * 1024)

struct args {
    struct mo_span pattern, path, glob;
    bool regex, fold;
    int64_t context, max;
};

static const struct tb_field in[] = {
    {"pattern", "Text to look for.", TB_TEXT, true,
     offsetof(struct args, pattern)},
    {"path", "File or directory, relative to the workspace. Default: all.",
     TB_TEXT, false, offsetof(struct args, path)},
    {"glob", "Only files that fit, such as *.py or src/**/*.{c,h}.", TB_TEXT,
     false, offsetof(struct args, glob)},
    {"regex", "pattern is a regular expression. Default false.", TB_BOOL, false,
     offsetof(struct args, regex)},
    {"ignore_case", "For the letters A to Z. Default false.", TB_BOOL, false,
     offsetof(struct args, fold)},
    {"context", "Lines shown before and after each match. Default 0.", TB_INT,
     false, offsetof(struct args, context), 0, CONTEXT_MAX},
    {"max_results", "Most matches wanted. Default 100.", TB_INT, false,
     offsetof(struct args, max), 1, RESULTS_MAX},
    {0},
};

static const struct tb_field match_out[] = {
    {"path", NULL, TB_TEXT, true, 0},
    {"line", "Counted from 1.", TB_INT, true, 0},
    {"text", "The line; a long one in part.", TB_TEXT, true, 0},
    {"before", NULL, TB_TEXTS, false, 0},
    {"after", NULL, TB_TEXTS, false, 0},
    {0},
};

static const struct tb_field out[] = {
    {"matches", NULL, TB_ITEMS, true, 0, 0, 0, NULL, match_out},
    {"files_searched", NULL, TB_INT, true, 0},
    {"files_skipped", "Too large, no text, or not permitted.", TB_INT, true, 0},
    {"truncated", "There may be more.", TB_BOOL, true, 0},
    {0},
};

struct search {
    struct tb_idle idle;
    struct tb_call *call;
    struct args a;
    struct mo_arena arena; /* owns the texts in a */
    struct mo_jregex *re;
    struct tb_path from;
    struct tb_walk walk;
    bool single; /* one file, no walk */

    /* the current file */
    char shown[2 * TB_PATH_MAX];
    struct mo_buf text, folded;
    size_t at; /* of the next line */
    uint64_t line, last_shown;
    unsigned after; /* lines of context still to show */
    bool in_file;

    struct mo_buf quoted; /* a line for the regular expression */
    struct tb_result r;
    struct mo_jw w;
    int64_t matches;
    uint64_t searched, skipped, visited;
    bool more, over;
};

static void search_free(struct search *s)
{
    tb_idle_stop(&s->idle);
    tb_walk_close(&s->walk);
    tb_result_fini(&s->r);
    mo_buf_fini(&s->text);
    mo_buf_fini(&s->folded);
    mo_buf_fini(&s->quoted);
    mo_arena_fini(&s->arena);
    mo_free(s->re);
    mo_free(s);
}

/* --- lines --------------------------------------------------------------- */

static struct mo_span line_at(struct mo_span all, size_t at)
{
    struct mo_span rest = mo_span_skip(all, at);
    ptrdiff_t lf = mo_span_find(rest, '\n');

    return lf < 0 ? rest : mo_span_head(rest, (size_t)lf);
}

/* Start of the line before the one that starts at `at` (> 0). */
static size_t line_before(struct mo_span all, size_t at)
{
    at--;
    while (at && all.p[at - 1] != '\n')
        at--;
    return at;
}

/* A long line in part: around the match, if its place is known. */
static struct mo_span part_of(struct mo_span line, size_t place)
{
    size_t from = place > LINE_SHOWN / 2 && line.n > LINE_SHOWN
                      ? place - LINE_SHOWN / 4
                      : 0;

    while (from && from < line.n && mo_utf8_is_tail(line.p[from]))
        from++;
    line = mo_span_skip(line, from);
    return mo_span_head(line, mo_utf8_cut(line, LINE_SHOWN));
}

static void show_line(struct search *s, char mark, uint64_t number,
                      struct mo_span line, size_t place)
{
    struct mo_span part = part_of(line, place);

    mo_visible_name(&s->r.text, mo_span_cstr(s->shown));
    mo_buf_printf(&s->r.text, "%c%llu%c", mark, (unsigned long long)number,
                  mark);
    mo_buf_span(&s->r.text, part);
    mo_buf_puts(&s->r.text, part.n < line.n ? " [line cut]\n" : "\n");
    s->last_shown = number;
}

/* Start of the line `n` before the one at `at`, or of the first; *n becomes the
 * number of lines there were. */
static size_t lines_before(struct mo_span all, size_t at, unsigned *n)
{
    unsigned want = *n;

    for (*n = 0; *n < want && at; (*n)++)
        at = line_before(all, at);
    return at;
}

static void data_lines(struct search *s, const char *key, size_t at, unsigned n)
{
    struct mo_span all = mo_buf_view(&s->text);

    mo_jw_key(&s->w, key);
    mo_jw_arr(&s->w);
    for (unsigned i = 0; i < n && at < all.n; i++) {
        struct mo_span line = line_at(all, at);

        mo_jw_str(&s->w, part_of(line, 0));
        at += line.n + 1;
    }
    mo_jw_end(&s->w);
}

static void data_match(struct search *s, size_t at, struct mo_span line,
                       size_t place)
{
    unsigned before = (unsigned)s->a.context;
    size_t from = lines_before(mo_buf_view(&s->text), at, &before);

    mo_jw_obj(&s->w);
    mo_jw_member_cstr(&s->w, "path", s->shown);
    mo_jw_member_u64(&s->w, "line", s->line);
    mo_jw_key(&s->w, "text");
    mo_jw_str(&s->w, part_of(line, place));
    if (s->a.context) {
        data_lines(s, "before", from, before);
        data_lines(s, "after", at + line.n + 1, (unsigned)s->a.context);
    }
    mo_jw_end(&s->w);
}

/* Show a match with its context; lines shown before are not repeated. */
static void show_match(struct search *s, size_t at, struct mo_span line,
                       size_t place)
{
    struct mo_span all = mo_buf_view(&s->text);
    unsigned before = (unsigned)s->a.context;
    size_t from;

    if (before >= s->line - s->last_shown)
        before = (unsigned)(s->line - s->last_shown) - 1;
    from = lines_before(all, at, &before);
    if (s->a.context && s->matches && s->line - before > s->last_shown + 1)
        mo_buf_puts(&s->r.text, "--\n");
    for (uint64_t n = s->line - before; n < s->line; n++) {
        struct mo_span l = line_at(all, from);

        show_line(s, '-', n, l, 0);
        from += l.n + 1;
    }
    show_line(s, ':', s->line, line, place);
    data_match(s, at, line, place);
    s->matches++;
    s->after = (unsigned)s->a.context;
}

/* --- matching ------------------------------------------------------------ */

/* 1 and the place, 0, or an error. */
static int match_line(struct search *s, struct mo_span line, size_t *place,
                      struct mo_err *e)
{
    uint64_t steps = LINE_STEPS;
    ptrdiff_t at;
    int rc;

    *place = 0;
    if (!s->re) {
        at = mo_span_search(line, s->a.pattern);
        *place = at < 0 ? 0 : (size_t)at;
        return at >= 0;
    }
    mo_buf_reset(&s->quoted);
    line = mo_span_head(line, mo_utf8_cut(line, LINE_MAX_RE));
    if (mo_json_quote(&s->quoted, line) < 0)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    rc = mo_jregex_search(s->re, (struct mo_json){s->quoted.p, s->quoted.len},
                          &steps);
    if (rc < 0)
        return mo_fail(e, MO_ETOOBIG,
                       "the pattern needs too long for line %llu of %.100s: "
                       "make it simpler, or leave that file out with a glob",
                       (unsigned long long)s->line, s->shown);
    return rc;
}

static int search_line(struct search *s, struct mo_err *e)
{
    struct mo_span line = line_at(mo_buf_view(&s->text), s->at);
    struct mo_span key =
        s->a.fold ? mo_span(s->folded.p + s->at, line.n) : line;
    size_t place;
    int rc = match_line(s, key, &place, e);

    if (rc < 0)
        return rc;
    if (rc && s->matches == s->a.max)
        s->more = s->over = true;
    else if (rc)
        show_match(s, s->at, line, place);
    else if (s->after) {
        s->after--;
        show_line(s, '-', s->line, line, 0);
    }
    if (s->r.text.len > TB_BYTES_MAX || s->r.data.len > DATA_MAX)
        s->more = s->over = true;
    s->at += line.n + 1;
    s->line++;
    return 0;
}

static int search_lines(struct search *s, struct mo_err *e)
{
    size_t until = s->at + STEP_BYTES;

    while (!s->over && s->at < s->text.len && s->at < until) {
        if (search_line(s, e) < 0)
            return e->code;
    }
    s->in_file = !s->over && s->at < s->text.len;
    return 0;
}

/* --- files --------------------------------------------------------------- */

static void fold_case(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(p[i] >= 'A' && p[i] <= 'Z' ? p[i] + 32 : p[i]);
}

/* Like fold_case(), but keeps \W and \w. */
static void fold_pattern(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\\')
            i++;
        else
            fold_case(p + i, 1);
    }
}

static int load_file(struct search *s, int fd, struct mo_err *e)
{
    struct stat st;

    mo_buf_reset(&s->text);
    mo_buf_reset(&s->folded);
    if (fstat(fd, &st) < 0 || (uint64_t)st.st_size > TB_FILE_MAX ||
        tb_read_bytes(fd, 0, (size_t)st.st_size, &s->text) < 0 ||
        !tb_is_text(mo_buf_view(&s->text))) {
        s->skipped++;
        return mo_buf_err(&s->text) == MO_ENOMEM
                   ? mo_fail(e, MO_ENOMEM, "out of memory")
                   : 0;
    }
    if (s->a.fold) {
        if (mo_buf_span(&s->folded, mo_buf_view(&s->text)) < 0)
            return mo_fail(e, MO_ENOMEM, "out of memory");
        fold_case(s->folded.p, s->folded.len);
    }
    s->searched++;
    s->at = 0;
    s->line = 1;
    s->last_shown = 0;
    s->after = 0;
    s->in_file = true;
    return 0;
}

static void name_file(struct search *s)
{
    bool top = strcmp(s->from.text, ".") == 0;
    size_t n = top ? 0 : strlen(s->from.text);
    size_t m = s->single ? 0 : strlen(s->walk.path);

    memcpy(s->shown, s->from.text, n);
    if (n && m)
        s->shown[n++] = '/';
    memcpy(s->shown + n, s->walk.path, m);
    s->shown[n + m] = '\0';
}

static int next_file(struct search *s, struct mo_err *e)
{
    int rc = tb_walk_next(&s->walk, e);
    mo_autofd int fd = -1;

    if (rc <= 0) {
        s->over = rc == 0;
        return rc;
    }
    if (++s->visited > VISIT_MAX) {
        s->more = s->over = true;
        return 0;
    }
    if (S_ISDIR(s->walk.st.st_mode) && strcmp(s->walk.name, ".git") == 0)
        tb_walk_skip(&s->walk);
    if (!S_ISREG(s->walk.st.st_mode) ||
        (s->a.glob.p && !tb_glob(s->a.glob, mo_span_cstr(s->walk.path))))
        return 0;
    fd = tb_walk_file(&s->walk);
    if (fd < 0) {
        s->skipped++;
        return 0;
    }
    name_file(s);
    return load_file(s, fd, e);
}

/* --- the answer ---------------------------------------------------------- */

static void finish_search(struct search *s)
{
    s->more |= s->walk.clipped;
    mo_jw_end(&s->w);
    mo_jw_member_u64(&s->w, "files_searched", s->searched);
    mo_jw_member_u64(&s->w, "files_skipped", s->skipped + s->walk.denied);
    mo_jw_member_bool(&s->w, "truncated", s->more);
    mo_jw_end(&s->w);
    if (!s->matches)
        mo_buf_printf(&s->r.text, "No match in %llu files.\n",
                      (unsigned long long)s->searched);
    if (s->more)
        mo_buf_printf(&s->r.text,
                      "[cut after %lld matches: narrow the pattern, the "
                      "path or the glob]\n",
                      (long long)s->matches);
    tb_call_done(s->call, &s->r);
    search_free(s);
}

static void on_step(struct tb_idle *i)
{
    struct search *s = mo_container_of(i, struct search, idle);
    struct mo_err e = {0};
    int rc = 0;

    if (s->in_file)
        rc = search_lines(s, &e);
    else if (s->single)
        s->over = true;
    else
        rc = next_file(s, &e);
    if (rc < 0) {
        tb_call_fail(s->call, &e);
        search_free(s);
    } else if (s->over) {
        finish_search(s);
    }
}

static void on_cancel(struct tb_call *c)
{
    search_free(c->job);
}

/* --- the arguments ------------------------------------------------------- */

static int compile_pattern(struct search *s, struct mo_err *e)
{
    mo_autofree struct mo_jregex *re = NULL;
    char *own = mo_arena_strndup(&s->arena, s->a.pattern.p, s->a.pattern.n);

    if (s->a.pattern.n == 0 || mo_span_find(s->a.pattern, '\n') >= 0)
        return mo_fail(e, MO_EINVAL, "pattern must be a text within one line");
    if (!own)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (s->a.fold && s->a.regex)
        fold_pattern(own, s->a.pattern.n);
    else if (s->a.fold)
        fold_case(own, s->a.pattern.n);
    s->a.pattern.p = own;
    if (!s->a.regex)
        return 0;
    re = mo_new(struct mo_jregex);
    if (!re || mo_json_quote(&s->quoted, s->a.pattern) < 0)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (mo_jregex_compile(re, (struct mo_json){s->quoted.p, s->quoted.len}) < 0)
        return mo_fail(e, MO_EINVAL,
                       "pattern is no regular expression that is understood "
                       "here (no look-around, no back references): make it "
                       "simpler or leave regex out");
    s->re = mo_take_ptr(&re);
    return 0;
}

static int open_from(struct tb_box *box, struct search *s, struct mo_err *e)
{
    struct stat st;
    mo_autofd int fd = tb_open_any(&box->root, &s->from, &st, e);

    if (fd < 0)
        return e->code;
    if (S_ISDIR(st.st_mode))
        return tb_walk_open(&s->walk, mo_take_fd(&fd), TB_WALK_DEPTH, e);
    s->single = true;
    name_file(s);
    return load_file(s, fd, e);
}

static int prepare_search(struct tb_box *box, struct search *s,
                          struct mo_json json, struct mo_err *e)
{
    if (tb_args_read(box, json, &tb_search_files, &s->arena, &s->a, &s->a.path,
                     &s->from, e) < 0 ||
        compile_pattern(s, e) < 0)
        return e->code;
    if (s->a.glob.p) {
        s->a.glob.p = mo_arena_strndup(&s->arena, s->a.glob.p, s->a.glob.n);
        if (!s->a.glob.p)
            return mo_fail(e, MO_ENOMEM, "out of memory");
    }
    mo_jw_init(&s->w, &s->r.data);
    mo_jw_obj(&s->w);
    mo_jw_key(&s->w, "matches");
    mo_jw_arr(&s->w);
    return open_from(box, s, e);
}

static int run_search(void *ctx, struct tb_call *c, struct mo_json json,
                      struct mo_err *e)
{
    struct tb_box *box = ctx;
    struct search *s = mo_new(struct search);

    if (!s)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    s->call = c;
    s->a = (struct args){.path = MO_SPAN("."), .max = RESULTS};
    mo_arena_init(&s->arena, TB_ARGS_MAX);
    mo_buf_init(&s->text, TB_FILE_MAX);
    mo_buf_init(&s->folded, TB_FILE_MAX);
    mo_buf_init(&s->quoted, 6 * LINE_MAX_RE + 2);
    tb_result_init(&s->r);
    tb_idle_init(&s->idle, on_step);
    if (prepare_search(box, s, json, e) < 0) {
        search_free(s);
        return e->code;
    }
    c->job = s;
    c->cancel = on_cancel;
    tb_idle_start(&box->loop, &s->idle);
    return 0;
}

const struct tb_tool tb_search_files = {
    "search_files",
    "Search in files",
    "Find the lines of files in the workspace that hold a text, or with regex "
    "fit a pattern; optionally with lines around them.",
    TB_READ_ONLY | TB_IDEMPOTENT,
    in,
    out,
    run_search,
};
