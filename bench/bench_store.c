/* bench_store.c - appending to a conversation so that it is durable: one
 * writer, and many at once.
 *
 *   bench_store [DIR]
 *
 * A writer is a session that appends an entry of 500 bytes and waits for its
 * done() before it appends the next. What is compared is wall clock: the
 * disk's fsync is what a writer waits for, and group commit is what lets many
 * wait for the same one. Turns alternate; a ratio is taken within a turn, the
 * median counts.
 *
 * The files are made in DIR, or in $TMPDIR, or in the present directory: a
 * /tmp in memory has no fsync to speak of. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/store.h"

#define TURNS    5
#define TURN_MS  700
#define DOC      500
#define MANY_MAX 100
#define GOAL     5.0

struct bench {
    struct mo_loop *l;
    struct mo_store *s;
    struct mo_timer end;
    unsigned writers, busy;
    uint64_t appended;
    bool over, gone;
    char doc[DOC];
};

struct writer {
    struct bench *b;
    char session[16];
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_store: %s\n", what);
    exit(1);
}

static void append(struct writer *w);

static void on_appended(void *ctx, const struct mo_written *r,
                        const struct mo_err *why)
{
    struct writer *w = ctx;

    (void)r;
    if (why)
        die(why->msg);
    w->b->busy--;
    w->b->appended++;
    if (!w->b->over)
        append(w);
}

static void ask(struct writer *w, const struct mo_write *what)
{
    struct mo_store_batch batch = {mo_span_cstr(w->session), 0, what, 1};
    struct mo_err e;

    w->b->busy++;
    if (mo_store_write(w->b->s, &batch, on_appended, w, &e) < 0)
        die(e.msg);
}

static void append(struct writer *w)
{
    struct mo_write entry = {.kind = MO_WRITE_ENTRY,
                             .doc = mo_span(w->b->doc, DOC),
                             .text = MO_SPAN("what was said in this message")};

    ask(w, &entry);
}

static bool is_idle(void *ctx)
{
    struct bench *b = ctx;

    return b->busy == 0;
}

static void on_end(struct mo_timer *t)
{
    mo_container_of(t, struct bench, end)->over = true;
}

/* Appends a second. */
static double run(struct bench *b, struct writer *w, unsigned writers)
{
    uint64_t began = mo_now_ns();

    b->over = false;
    b->appended = 0;
    mo_timer_start(b->l, &b->end, TURN_MS);
    for (unsigned i = 0; i < writers; i++)
        append(&w[i]);
    while (!b->over || b->busy)
        (void)mo_loop_until(b->l, is_idle, b, 1000);
    return (double)b->appended * 1e9 / (double)(mo_now_ns() - began);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, TURNS, sizeof(*v), by_size);
    return v[TURNS / 2];
}

static void measure(struct bench *b, struct writer *w, unsigned many)
{
    double one[TURNS], all[TURNS], ratio[TURNS];

    for (int i = 0; i < TURNS; i++) {
        if (i % 2)
            all[i] = run(b, w, many);
        one[i] = run(b, w, 1);
        if (i % 2 == 0)
            all[i] = run(b, w, many);
        ratio[i] = all[i] / one[i];
    }
    (void)printf("sqlite, durable appends/s: 1 writer %.0f, %u writers %.0f, "
                 "ratio %.1f (goal >= %.0f)\n",
                 median(one), many, median(all), median(ratio), GOAL);
}

static void on_gone(void *ctx)
{
    ((struct bench *)ctx)->gone = true;
}

static bool is_gone(void *ctx)
{
    return ((struct bench *)ctx)->gone;
}

static int rm_one(const char *p, const struct stat *st, int flag, struct FTW *f)
{
    (void)st;
    (void)flag;
    (void)f;
    return remove(p);
}

int main(int argc, char **argv)
{
    static const unsigned many[] = {20, MANY_MAX};
    static struct bench b;
    static struct writer w[MANY_MAX];
    struct mo_write session = {.kind = MO_WRITE_SESSION, .doc = MO_SPAN("{}")};
    const char *tmp = getenv("TMPDIR");
    char dir[512], url[600];
    struct mo_store_opts o = {.url = url, .deadline_ms = 60000};
    struct mo_err e;

    (void)snprintf(dir, sizeof(dir), "%s/bench-store-XXXXXX",
                   argc > 1 ? argv[1]
                   : tmp    ? tmp
                            : ".");
    if (!mkdtemp(dir))
        die("no directory to write in");
    (void)snprintf(url, sizeof(url), "sqlite:%s/store.db", dir);
    memset(b.doc, 'x', sizeof(b.doc));
    mo_timer_init(&b.end, on_end);
    b.l = mo_loop_new(NULL, &e);
    if (!b.l || mo_store_open(b.l, &o, &b.s, &e) < 0)
        die(e.msg);
    for (unsigned i = 0; i < MANY_MAX; i++) {
        w[i].b = &b;
        (void)snprintf(w[i].session, sizeof(w[i].session), "s%u", i);
        b.over = true;
        ask(&w[i], &session);
    }
    if (!mo_loop_until(b.l, is_idle, &b, 60000))
        die("no answer");
    for (size_t i = 0; i < MO_COUNT(many); i++)
        measure(&b, w, many[i]);
    mo_store_close(b.s, on_gone, &b);
    if (!mo_loop_until(b.l, is_gone, &b, 60000))
        die("it does not close");
    mo_loop_free(b.l);
    (void)nftw(dir, rm_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
