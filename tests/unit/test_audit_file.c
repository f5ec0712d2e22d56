/* The audit log's file: groups, partial lines, several writers, rotation, and
 * detection of changes. */
#include "audit/audit_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/audit_anchor.h"
#include "audit/audit_journal.h"
#include "base/file.h"
#include "mo_net.h"
#include "mo_test.h"

static char dir[64];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof(dir), "/tmp/mo-audit-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static void path_of(char out[256], const char *name)
{
    (void)snprintf(out, 256, "%s/%.100s", dir, name);
}

static int tear_down(void **state)
{
    char names[64][64], path[256];
    struct mo_err e;
    size_t n = 0;

    (void)state;
    (void)mo_audit_file_files(dir, names, 64, &n, &e);
    for (size_t i = 0; i < n; i++) {
        path_of(path, names[i]);
        (void)unlink(path);
    }
    path_of(path, MO_AUDIT_FILE_HEAD);
    (void)unlink(path);
    path_of(path, MO_AUDIT_FILE_KEY);
    (void)unlink(path);
    return rmdir(dir);
}

static void slurp(const char *name, struct mo_buf *b)
{
    char path[256];
    struct mo_err e;

    path_of(path, name);
    mo_buf_reset(b);
    if (mo_file_read(path, b->max, b, NULL, &e) < 0)
        fail_msg("%s", e.msg);
}

static void spit(const char *name, struct mo_span text)
{
    char path[256];
    int fd;

    path_of(path, name);
    fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.p, text.n), text.n);
    (void)close(fd);
}

static struct mo_audit_file_report verify(void)
{
    struct mo_audit_file_report r;
    struct mo_err e;

    if (mo_audit_file_verify(dir, NULL, &r, &e) < 0)
        fail_msg("%s", e.msg);
    return r;
}

/* --- through the loop ---------------------------------------------------- */

static void set_flag(void *ctx)
{
    *(bool *)ctx = true;
}

static bool flag(void *ctx)
{
    return *(bool *)ctx;
}

struct sure {
    bool done;
    int code;
};

static void on_sure(void *ctx, const struct mo_err *why)
{
    struct sure *s = ctx;

    s->done = true;
    s->code = why ? why->code : 0;
}

static void close_it(struct mo_loop *l, struct mo_audit_file *g)
{
    bool gone = false;

    mo_audit_file_close(g, set_flag, &gone);
    assert_false(gone);
    assert_true(mo_loop_until(l, flag, &gone, WAIT_MS));
}

static void put_n(struct mo_audit_file *g, unsigned n)
{
    char row[64];

    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(row, sizeof(row), "\"n\":%u", i);
        assert_int_equal(mo_audit_file_put(g, mo_span_cstr(row)), 0);
    }
}

static void test_groups(void **state)
{
    const struct mo_audit_file_opts o = {.dir = dir};
    struct mo_loop *l = loop_new();
    struct mo_audit_file *g = NULL;
    struct mo_audit_file_report r;
    struct sure s = {0};
    struct mo_err e;
    struct stat st;
    char path[256];

    (void)state;
    r = verify(); /* an emptied directory is not all right */
    assert_true(!r.ok && r.rows == 0);
    assert_int_equal(mo_audit_file_open(l, &o, &g, &e), 0);
    path_of(path, MO_AUDIT_FILE_FILE);
    assert_int_not_equal(stat(path, &st), 0); /* not before the first row */
    put_n(g, 3);
    assert_int_equal(mo_audit_file_sure(g, on_sure, &s, &e), 0);
    assert_false(s.done);
    assert_true(mo_loop_until(l, flag, &s.done, WAIT_MS));
    assert_int_equal(s.code, 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    put_n(g, 1000); /* behind; the end waits for them */
    close_it(l, g);
    r = verify();
    assert_true(r.ok);
    assert_int_equal(r.rows, 1003);
    assert_int_equal(r.first, 1);
    assert_int_equal(r.last, 1003);
    /* the next run goes on */
    assert_int_equal(mo_audit_file_open(l, &o, &g, &e), 0);
    put_n(g, 2);
    close_it(l, g);
    r = verify();
    assert_true(r.ok);
    assert_int_equal(r.last, 1005);
    mo_loop_free(l);
}

static bool one_turn(void *ctx)
{
    return ++*(int *)ctx > 1;
}

struct written {
    struct mo_audit_file *g;
    uint64_t rows;
};

static bool are_written(void *ctx)
{
    const struct written *w = ctx;

    return mo_audit_file_stats(w->g).rows >= w->rows;
}

/* A row that comes while a group is being written does not wait for the next
 * one, which may never come. */
static void test_meanwhile(void **state)
{
    struct mo_audit_file_opts o = {.dir = dir};
    struct sure s = {.done = false};
    struct written both = {NULL, 2};
    struct mo_loop *l;
    struct mo_err e;
    int turns = 0;

    (void)state;
    l = mo_loop_new(NULL, &e);
    assert_non_null(l);
    assert_int_equal(mo_audit_file_open(l, &o, &both.g, &e), 0);
    put_n(both.g, 1);
    assert_int_equal(mo_audit_file_sure(both.g, on_sure, &s, &e), 0);
    (void)mo_loop_until(l, one_turn, &turns, WAIT_MS);
    put_n(both.g, 1);
    assert_true(mo_loop_until(l, are_written, &both, WAIT_MS));
    close_it(l, both.g);
    mo_loop_free(l);
    assert_true(verify().ok);
}

static void test_cannot(void **state)
{
    const struct mo_audit_file_opts o = {.dir = "/dev/null/log"};
    struct mo_loop *l = loop_new();
    struct mo_audit_file *g = NULL;
    struct sure s = {0};
    struct mo_err e;

    (void)state;
    assert_int_equal(mo_audit_file_open(l, &o, &g, &e), 0);
    put_n(g, 2);
    assert_int_equal(mo_audit_file_sure(g, on_sure, &s, &e), 0);
    assert_true(mo_loop_until(l, flag, &s.done, WAIT_MS));
    assert_int_equal(s.code, MO_EIO);
    assert_int_equal(mo_audit_file_stats(g).lost, 2);
    close_it(l, g);
    mo_loop_free(l);
}

static void body(void *ctx)
{
    const struct mo_audit_file_opts o = {.dir = dir};
    struct mo_loop *l = ctx;
    struct mo_audit_file *g = NULL;
    struct sure s = {0};
    struct mo_err e;

    if (mo_audit_file_open(l, &o, &g, &e) < 0)
        return;
    (void)mo_audit_file_put(g, MO_SPAN("\"a\":1"));
    if (mo_audit_file_sure(g, on_sure, &s, &e) == 0)
        assert_true(mo_loop_until(l, flag, &s.done, WAIT_MS));
    close_it(l, g);
}

static void test_torture(void **state)
{
    struct mo_loop *l = loop_new();

    (void)state;
    torture(body, l);
    assert_true(verify().ok);
    mo_loop_free(l);
}

/* --- the file alone ------------------------------------------------------ */

static void file_init(struct mo_audit_file_file *f, uint64_t max,
                      unsigned files)
{
    *f = (struct mo_audit_file_file){
        .max = max, .files = files, .fd = -1, .head = -1};
    (void)snprintf(f->dir, sizeof(f->dir), "%s", dir);
}

static void append(struct mo_audit_file_file *f, const char *rows)
{
    struct mo_err e;

    if (mo_audit_file_append(f, mo_span_cstr(rows), false, &e) < 0)
        fail_msg("%s", e.msg);
}

static void write_some(void)
{
    struct mo_audit_file_file f;

    file_init(&f, 4000, 100);
    for (int i = 0; i < 40; i++)
        append(&f, i % 2 ? "\"a\":1\n" : "\"b\":1\n\"b\":2\n");
    mo_audit_file_file_close(&f);
}

/* Processes that write one log at the same time, through many files. */
static void test_writers(void **state)
{
    struct mo_audit_file_report r;
    pid_t pids[4];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(pids); i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            write_some();
            _exit(0);
        }
    }
    for (size_t i = 0; i < MO_COUNT(pids); i++) {
        int how = -1;

        assert_int_equal(waitpid(pids[i], &how, 0), pids[i]);
        assert_int_equal(how, 0);
    }
    r = verify();
    if (!r.ok)
        fail_msg("%s line %llu: %s", r.file, (unsigned long long)r.line,
                 r.why.msg);
    assert_int_equal(r.rows, 4 * 60);
    assert_true(r.files > 1);
}

/* A crash: the group was not whole, so the head never heard of it. */
static void test_torn(void **state)
{
    struct mo_audit_file_file f;
    struct mo_audit_file_report r;
    struct mo_buf text, head;

    (void)state;
    mo_buf_init(&text, 65536);
    mo_buf_init(&head, 4096);
    file_init(&f, MO_AUDIT_FILE_MAX, 4);
    append(&f, "\"a\":1\n\"a\":2\n");
    slurp(MO_AUDIT_FILE_HEAD, &head);
    append(&f, "\"a\":3\n");
    slurp(MO_AUDIT_FILE_FILE, &text);
    mo_audit_file_file_close(&f);
    for (size_t cut = 1; cut < 40; cut++) {
        spit(MO_AUDIT_FILE_FILE, mo_span(text.p, text.len - cut));
        spit(MO_AUDIT_FILE_HEAD, mo_buf_view(&head));
        file_init(&f, MO_AUDIT_FILE_MAX, 4);
        append(&f, "\"a\":4\n");
        mo_audit_file_file_close(&f);
        r = verify();
        assert_true(r.ok);
        assert_int_equal(r.rows, 4); /* one of them says what was cut off */
    }
    slurp(MO_AUDIT_FILE_FILE, &text);
    assert_true(mo_span_search(mo_buf_view(&text), MO_SPAN("was cut off")) >=
                0);
    mo_buf_fini(&text);
    mo_buf_fini(&head);
}

static void test_full(void **state)
{
    struct mo_audit_file_file f;
    struct mo_audit_file_report r;
    char names[16][64], path[256];
    struct mo_err e;
    size_t n;

    (void)state;
    file_init(&f, 600, 3); /* three rows a file, three files */
    for (int i = 0; i < 30; i++)
        append(&f, "\"a\":1\n");
    mo_audit_file_file_close(&f);
    assert_int_equal(mo_audit_file_files(dir, names, 16, &n, &e), 0);
    assert_true(n >= 3 && n <= 4);
    r = verify();
    if (!r.ok)
        fail_msg("%s line %llu: %s", r.file, (unsigned long long)r.line,
                 r.why.msg);
    assert_int_equal(r.last, 30);
    assert_true(r.first > 1 && r.rows == r.last - r.first + 1);
    path_of(path, names[1]); /* one in the middle goes */
    assert_int_equal(unlink(path), 0);
    assert_false(verify().ok);
}

/* A last line that is none: set aside as it is, never written over. */
static void test_damaged(void **state)
{
    struct mo_audit_file_file f;
    struct mo_audit_file_report r;
    struct mo_buf text;
    char names[16][64];
    struct mo_err e;
    size_t n;

    (void)state;
    mo_buf_init(&text, 65536);
    file_init(&f, MO_AUDIT_FILE_MAX, 4);
    append(&f, "\"a\":1\n");
    slurp(MO_AUDIT_FILE_FILE, &text);
    text.p[text.len - 10] ^= 1;
    spit(MO_AUDIT_FILE_FILE, mo_buf_view(&text));
    mo_audit_file_file_close(&f);
    file_init(&f, MO_AUDIT_FILE_MAX, 4);
    append(&f, "\"a\":2\n");
    mo_audit_file_file_close(&f);
    assert_int_equal(mo_audit_file_files(dir, names, 16, &n, &e), 0);
    assert_int_equal(n, 2);
    r = verify();
    assert_false(r.ok);
    assert_string_equal(r.file, names[0]);
    assert_int_equal(r.line, 1);
    slurp(MO_AUDIT_FILE_FILE, &text);
    assert_true(mo_span_search(mo_buf_view(&text),
                               MO_SPAN("cannot be continued")) >= 0);
    mo_buf_fini(&text);
}

/* Every byte flipped, every line taken out, every pair swapped. */
static void test_tampered(void **state)
{
    struct mo_span lines[4], rest;
    struct mo_audit_file_file f;
    struct mo_buf text, head, other;

    (void)state;
    mo_buf_init(&text, 65536);
    mo_buf_init(&head, 65536);
    mo_buf_init(&other, 65536);
    file_init(&f, MO_AUDIT_FILE_MAX, 4);
    append(&f, "\"a\":1\n\"a\":2\n\"a\":3\n\"a\":4\n");
    mo_audit_file_file_close(&f);
    slurp(MO_AUDIT_FILE_FILE, &text);
    slurp(MO_AUDIT_FILE_HEAD, &head);
    assert_true(verify().ok);
    for (size_t i = 0; i < text.len; i++) {
        text.p[i] ^= 1;
        spit(MO_AUDIT_FILE_FILE, mo_buf_view(&text));
        if (verify().ok)
            fail_msg("byte %zu goes unnoticed", i);
        text.p[i] ^= 1;
    }
    for (size_t i = 0; i < head.len; i++) {
        head.p[i] ^= 1;
        spit(MO_AUDIT_FILE_FILE, mo_buf_view(&text));
        spit(MO_AUDIT_FILE_HEAD, mo_buf_view(&head));
        if (verify().ok && i > 20) /* a first row that may be missing */
            fail_msg("byte %zu of the head goes unnoticed", i);
        head.p[i] ^= 1;
    }
    spit(MO_AUDIT_FILE_HEAD, mo_buf_view(&head));
    rest = mo_buf_view(&text);
    for (size_t i = 0; i < 4; i++)
        lines[i] = mo_span_cut(&rest, '\n');
    for (size_t skip = 0; skip < 4; skip++) {
        mo_buf_reset(&other);
        for (size_t i = 0; i < 4; i++)
            if (i != skip)
                (void)mo_buf_printf(&other, "%.*s\n", (int)lines[i].n,
                                    lines[i].p);
        spit(MO_AUDIT_FILE_FILE, mo_buf_view(&other));
        if (verify().ok)
            fail_msg("line %zu can be taken out", skip);
    }
    for (size_t at = 0; at < 3; at++) {
        mo_buf_reset(&other);
        for (size_t i = 0; i < 4; i++) {
            size_t k = i == at ? at + 1 : i == at + 1 ? at : i;

            (void)mo_buf_printf(&other, "%.*s\n", (int)lines[k].n, lines[k].p);
        }
        spit(MO_AUDIT_FILE_FILE, mo_buf_view(&other));
        assert_false(verify().ok);
    }
    spit(MO_AUDIT_FILE_FILE, mo_span(NULL, 0));
    assert_false(verify().ok);
    mo_buf_fini(&text);
    mo_buf_fini(&head);
    mo_buf_fini(&other);
}

/* --- the key ------------------------------------------------------------- */

static struct mo_audit_file_report verify_with(uint64_t seq, const char *hash)
{
    struct mo_audit_witness w = {.seq = seq, .by = "the test"};
    struct mo_audit_file_report r;
    struct mo_err e;

    (void)snprintf(w.hash, sizeof(w.hash), "%.64s", hash);
    if (mo_audit_file_verify_with(dir, NULL, &w, 1, &r, &e) < 0)
        fail_msg("%s", e.msg);
    return r;
}

static void write_rows(const char *rows)
{
    struct mo_audit_file_file f;

    file_init(&f, MO_AUDIT_FILE_MAX, 4);
    append(&f, rows);
    mo_audit_file_file_close(&f);
}

/* Writes the rows as a version without keys did, and the head. */
static void write_unkeyed(unsigned n)
{
    struct mo_buf b, head;
    struct mo_chain c;
    struct mo_err e;

    mo_buf_init(&b, 65536);
    mo_buf_init(&head, 4096);
    mo_chain_init(&c, NULL);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(mo_chain_put(&c, MO_SPAN("\"a\":1"), &b, &e), 0);
    (void)mo_buf_printf(&head, "%020u %020llu %s\n", 1U,
                        (unsigned long long)c.seq, c.hash);
    spit(MO_AUDIT_FILE_FILE, mo_buf_view(&b));
    spit(MO_AUDIT_FILE_HEAD, mo_buf_view(&head));
    mo_buf_fini(&b);
    mo_buf_fini(&head);
}

/* Files of older versions verify, and keyed rows follow them. Then nobody
 * without the key can write the log anew. */
static void test_unkeyed(void **state)
{
    struct mo_audit_file_report r;

    (void)state;
    write_unkeyed(3);
    assert_true(verify().ok);
    write_rows("\"a\":2\n");
    r = verify();
    assert_true(r.ok);
    assert_int_equal(r.rows, 4);
    write_unkeyed(4); /* as many rows, and a head that fits */
    r = verify();
    assert_false(r.ok);
}

/* An attacker without the key: a shorter log with a head of its own. */
static void test_rewritten(void **state)
{
    struct mo_buf text, head;
    struct mo_chain c;
    struct mo_err e;

    (void)state;
    mo_buf_init(&text, 65536);
    mo_buf_init(&head, 4096);
    write_rows("\"a\":1\n\"a\":2\n\"a\":3\n");
    slurp(MO_AUDIT_FILE_FILE, &text);
    text.len = (size_t)mo_span_find(mo_buf_view(&text), '\n') + 1;
    mo_chain_init(&c, NULL);
    (void)mo_chain_resume(&c, mo_span(text.p, text.len - 1), &e);
    (void)snprintf(c.hash, sizeof(c.hash), "%.64s", text.p + text.len - 67);
    (void)mo_buf_printf(&head, "%020u %020u %s\n", 1U, 1U, c.hash);
    spit(MO_AUDIT_FILE_FILE, mo_buf_view(&text));
    assert_false(verify().ok); /* the head remembers */
    spit(MO_AUDIT_FILE_HEAD, mo_buf_view(&head));
    assert_false(verify().ok); /* and cannot be made up */
    mo_buf_fini(&text);
    mo_buf_fini(&head);
}

/* An older copy of file and head is authentic: only a witness knows better. A
 * writer that remembers leaves a gap. */
static void test_rolled_back(void **state)
{
    struct mo_audit_witness known = {.by = "the test"};
    struct mo_audit_file_file f;
    struct mo_buf text, head;

    (void)state;
    mo_buf_init(&text, 65536);
    mo_buf_init(&head, 4096);
    write_rows("\"a\":1\n");
    slurp(MO_AUDIT_FILE_FILE, &text);
    slurp(MO_AUDIT_FILE_HEAD, &head);
    file_init(&f, MO_AUDIT_FILE_MAX, 4);
    append(&f, "\"a\":2\n");
    known.seq = f.chain.seq;
    memcpy(known.hash, f.chain.hash, sizeof(known.hash));
    mo_audit_file_file_close(&f);
    assert_true(verify_with(2, known.hash).ok);
    assert_false(verify_with(2, text.p).ok); /* another row 2 */
    spit(MO_AUDIT_FILE_FILE, mo_buf_view(&text));
    spit(MO_AUDIT_FILE_HEAD, mo_buf_view(&head));
    assert_true(verify().ok);
    assert_false(verify_with(2, known.hash).ok);
    file_init(&f, MO_AUDIT_FILE_MAX, 4);
    f.known = known;
    append(&f, "\"a\":3\n");
    assert_int_equal(f.chain.seq, 4); /* a note, and the row */
    mo_audit_file_file_close(&f);
    assert_false(verify().ok);
    mo_buf_fini(&text);
    mo_buf_fini(&head);
}

/* Rows cut off while the writer runs. */
static void test_cut_meanwhile(void **state)
{
    struct mo_audit_file_file f;
    struct mo_buf text;

    (void)state;
    mo_buf_init(&text, 65536);
    file_init(&f, MO_AUDIT_FILE_MAX, 4);
    append(&f, "\"a\":1\n");
    slurp(MO_AUDIT_FILE_FILE, &text);
    append(&f, "\"a\":2\n");
    spit(MO_AUDIT_FILE_FILE, mo_buf_view(&text));
    append(&f, "\"a\":3\n");
    mo_audit_file_file_close(&f);
    assert_false(verify().ok);
    slurp(MO_AUDIT_FILE_FILE, &text);
    assert_true(mo_span_search(mo_buf_view(&text),
                               MO_SPAN("rows 2 to 2 were written and are "
                                       "missing")) > 0);
    mo_buf_fini(&text);
}

static void test_key_mode(void **state)
{
    struct mo_audit_file_file f;
    char path[256];
    struct mo_err e;

    (void)state;
    write_rows("\"a\":1\n");
    path_of(path, MO_AUDIT_FILE_KEY);
    assert_int_equal(chmod(path, 0644), 0);
    file_init(&f, MO_AUDIT_FILE_MAX, 4);
    assert_int_equal(mo_audit_file_append(&f, MO_SPAN("\"a\":2\n"), false, &e),
                     MO_EPOLICY);
    mo_audit_file_file_close(&f);
    assert_int_equal(unlink(path), 0); /* a new key cannot continue the file */
    write_rows("\"a\":3\n");
    assert_false(verify().ok);
}

static void test_anchor(void **state)
{
    struct mo_audit_witness *v = NULL;
    struct mo_audit_file_report r;
    struct mo_audit_file_file f;
    char path[256];
    struct mo_err e;
    size_t n = 0;

    (void)state;
    path_of(path, "anchor.txt");
    file_init(&f, MO_AUDIT_FILE_MAX, 4);
    (void)snprintf(f.anchor, sizeof(f.anchor), "file:%s", path);
    append(&f, "\"a\":1\n\"a\":2\n"); /* the first group is anchored */
    append(&f, "\"a\":3\n");
    mo_audit_file_anchor(&f);
    mo_audit_file_anchor(&f); /* once */
    mo_audit_file_file_close(&f);
    assert_int_equal(mo_audit_anchor_read(path, dir, &v, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_int_equal(v[0].seq, 2);
    assert_int_equal(v[1].seq, 3);
    assert_int_equal(mo_audit_file_verify_with(dir, NULL, v, n, &r, &e), 0);
    assert_true(r.ok);
    v[0].hash[0] = v[0].hash[0] == 'a' ? 'b' : 'a';
    assert_int_equal(mo_audit_file_verify_with(dir, NULL, v, n, &r, &e), 0);
    assert_false(r.ok);
    assert_int_equal(r.line, 2);
    mo_free(v);
    assert_int_equal(mo_audit_anchor_read(path, "/other", &v, &n, &e),
                     MO_ENOTFOUND);
    assert_int_equal(unlink(path), 0);
}

/* --- the journal --------------------------------------------------------- */

static unsigned count_text(const char *what)
{
    struct mo_span rest;
    struct mo_buf text;
    unsigned n = 0;

    mo_buf_init(&text, 1 << 20);
    slurp(MO_AUDIT_FILE_FILE, &text);
    rest = mo_buf_view(&text);
    for (ptrdiff_t at = mo_span_search(rest, mo_span_cstr(what)); at >= 0;
         at = mo_span_search(rest, mo_span_cstr(what)), n++)
        rest = mo_span_skip(rest, (size_t)at + 1);
    mo_buf_fini(&text);
    return n;
}

static struct mo_audit_open *begin(struct mo_audit_journal *j, const char *row)
{
    struct mo_audit_open *o = NULL;
    struct mo_err e;

    if (mo_audit_journal_begin(j, mo_span_cstr(row), &o, &e) < 0)
        fail_msg("%s", e.msg);
    return o;
}

/* Dies with three calls open, of which one has its row in the log. */
static void die_with_calls(void)
{
    struct mo_audit_journal j;
    struct mo_audit_open *b;

    mo_audit_journal_init(&j, dir);
    (void)begin(&j, "\"what\":{\"n\":\"first\"}");
    b = begin(&j, "\"what\":{\"n\":\"second\"}");
    mo_audit_journal_end(b, 1);
    mo_audit_journal_written(&j, 1);
    (void)begin(&j, "\"what\":{\"n\":\"third\"}");
    (void)kill(getpid(), SIGKILL);
}

static void test_killed(void **state)
{
    pid_t pid = fork();
    int how = 0;

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        die_with_calls();
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how));
    write_rows("\"a\":1\n");
    assert_true(verify().ok);
    assert_int_equal(count_text("\"outcome\":\"unknown\""), 2);
    assert_int_equal(count_text("first"), 1);
    assert_int_equal(count_text("second"), 0);
    assert_int_equal(count_text("third"), 1);
    write_rows("\"a\":2\n"); /* once only */
    assert_int_equal(verify().rows, 4);
}

/* Nobody takes the calls of a process that lives, also while its file is
 * written anew. */
static void test_alive(void **state)
{
    struct mo_audit_journal j;
    struct mo_audit_open *o, *last = NULL;
    uint64_t most = 0;
    char row[512];

    (void)state;
    (void)snprintf(row, sizeof(row), "\"what\":{\"n\":\"%0400d\"}", 1);
    mo_audit_journal_init(&j, dir);
    o = begin(&j, "\"what\":{\"n\":\"long\"}");
    for (unsigned i = 0; i < 6000; i++) {
        if (last)
            mo_audit_journal_end(last, i);
        mo_audit_journal_written(&j, i);
        last = begin(&j, row);
        most = j.size > most ? j.size : most;
    }
    assert_true(most < MO_AUDIT_JOURNAL_MAX + 4096);
    write_rows("\"a\":1\n");
    assert_int_equal(count_text("unknown"), 0);
    mo_audit_journal_end(o, 7000);
    mo_audit_journal_end(last, 7000);
    mo_audit_journal_written(&j, 7000);
    mo_audit_journal_fini(&j); /* removes its file */
    write_rows("\"a\":2\n");
    assert_int_equal(verify().rows, 2);
}

#define EACH(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(test_groups),  EACH(test_meanwhile), EACH(test_cannot),
        EACH(test_torture), EACH(test_writers),   EACH(test_torn),
        EACH(test_full),    EACH(test_damaged),   EACH(test_tampered),
        EACH(test_unkeyed), EACH(test_rewritten), EACH(test_rolled_back),
        EACH(test_anchor),  EACH(test_key_mode),  EACH(test_cut_meanwhile),
        EACH(test_killed),  EACH(test_alive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
