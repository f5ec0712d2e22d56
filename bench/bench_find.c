/* bench_find.c - the cost of the full-text index in Redis for the writes that
 * a turn waits for, and the time of a search.
 *
 *   bench_find URL
 *
 * URL is that of an empty Redis. 20 sessions append a message of 120 words
 * every 50 ms: with an index, and without. Turns alternate; a ratio is taken
 * within a pair, the median counts. Then one writer that appends without a
 * pause. Then a search of two words in all of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/store.h"

#define PAIRS   7
#define TURN_MS 2500
#define FAST_MS 400
#define EVERY   50
#define WRITERS 20
#define WORDS   120
#define SAMPLES 200000

struct writer {
    struct bench *b;
    struct mo_timer timer;
    char session[24];
    char doc[WORDS * 12];
    uint64_t asked;
    bool waits;
};

struct bench {
    struct mo_loop *l;
    struct mo_store *s;
    struct mo_timer end;
    struct writer w[WRITERS];
    unsigned turn, busy;
    uint64_t state; /* of the random words */
    double *took;   /* ns */
    size_t n, rows;
    bool over, gone, fast;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_find: %s\n", what);
    exit(1);
}

static void text_of(struct mo_span doc, struct mo_buf *out)
{
    mo_buf_span(out, doc);
}

/* Few words are frequent and many are rare: the n-th with a chance of 1/n. */
static unsigned next_word(struct bench *b)
{
    unsigned word = 1;

    do {
        b->state = b->state * 6364136223846793005u + 1442695040888963407u;
        word *= 2;
    } while (word < 65536 && (b->state >> 60) > 1);
    b->state = b->state * 6364136223846793005u + 1442695040888963407u;
    return word + (unsigned)(b->state >> 33) % word;
}

static void make_doc(struct writer *w)
{
    size_t at = 0;

    for (int i = 0; i < WORDS; i++)
        at += (size_t)snprintf(w->doc + at, sizeof(w->doc) - at, "word%u ",
                               next_word(w->b));
}

static void append(struct writer *w);

static void on_appended(void *ctx, const struct mo_written *r,
                        const struct mo_err *why)
{
    struct writer *w = ctx;
    struct bench *b = w->b;

    (void)r;
    if (why)
        die(why->msg);
    b->busy--;
    w->waits = false;
    if (b->n < SAMPLES)
        b->took[b->n++] = (double)(mo_now_ns() - w->asked);
    if (b->fast && !b->over)
        append(w);
}

static void write_one(struct writer *w, struct mo_write what)
{
    struct mo_store_batch batch = {mo_span_cstr(w->session), 0, &what, 1};
    struct mo_err e;

    w->b->busy++;
    w->waits = true;
    w->asked = mo_now_ns();
    if (mo_store_write(w->b->s, &batch, on_appended, w, &e) < 0)
        die(e.msg);
}

static void append(struct writer *w)
{
    make_doc(w);
    write_one(w, (struct mo_write){.kind = MO_WRITE_ENTRY,
                                   .doc = mo_span_cstr(w->doc)});
}

static void on_tick(struct mo_timer *t)
{
    struct writer *w = mo_container_of(t, struct writer, timer);

    if (w->b->over)
        return;
    mo_timer_start(w->b->l, t, EVERY);
    if (!w->waits)
        append(w);
}

static bool is_idle(void *ctx)
{
    return ((struct bench *)ctx)->busy == 0;
}

static bool is_over(void *ctx)
{
    const struct bench *b = ctx;

    return b->over && !b->busy;
}

static void on_end(struct mo_timer *t)
{
    mo_container_of(t, struct bench, end)->over = true;
}

static void on_gone(void *ctx)
{
    ((struct bench *)ctx)->gone = true;
}

static bool is_gone(void *ctx)
{
    return ((struct bench *)ctx)->gone;
}

static void open_store(struct bench *b, const char *url, bool index)
{
    struct mo_store_opts o = {
        .url = url, .deadline_ms = 60000, .text_of = index ? text_of : NULL};
    struct mo_err e;

    b->l = mo_loop_new(NULL, &e);
    if (!b->l || mo_store_open(b->l, &o, &b->s, &e) < 0)
        die(e.msg);
}

static void close_store(struct bench *b)
{
    b->gone = false;
    mo_store_close(b->s, on_gone, b);
    if (!mo_loop_until(b->l, is_gone, b, 60000))
        die("it does not close");
    mo_loop_free(b->l);
}

static void make_sessions(struct bench *b)
{
    b->turn++;
    b->fast = false;
    for (unsigned i = 0; i < WRITERS; i++) {
        struct writer *w = &b->w[i];

        w->b = b;
        mo_timer_init(&w->timer, on_tick);
        (void)snprintf(w->session, sizeof(w->session), "t%u-%u", b->turn, i);
        write_one(w, (struct mo_write){.kind = MO_WRITE_SESSION,
                                       .doc = MO_SPAN("{}")});
    }
    if (!mo_loop_until(b->l, is_idle, b, 60000))
        die("no answer");
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), by_size);
    return v[n / 2];
}

/* The median time of a write, in us. */
static double run(struct bench *b, const char *url, bool index, bool fast)
{
    open_store(b, url, index);
    make_sessions(b);
    b->n = 0;
    b->over = false;
    b->fast = fast;
    mo_timer_init(&b->end, on_end);
    mo_timer_start(b->l, &b->end, fast ? FAST_MS : TURN_MS);
    for (unsigned i = 0; i < WRITERS && !fast; i++)
        mo_timer_start(b->l, &b->w[i].timer, 1 + i * EVERY / WRITERS);
    if (fast)
        append(&b->w[0]);
    if (!mo_loop_until(b->l, is_over, b, 60000))
        die("no end");
    for (unsigned i = 0; i < WRITERS; i++)
        mo_timer_stop(b->l, &b->w[i].timer);
    close_store(b);
    return median(b->took, b->n) / 1000;
}

static void compare(struct bench *b, const char *url, bool fast,
                    const char *what)
{
    double with[PAIRS], without[PAIRS], ratio[PAIRS];

    for (int i = 0; i < PAIRS; i++) {
        if (i % 2)
            with[i] = run(b, url, true, fast);
        without[i] = run(b, url, false, fast);
        if (i % 2 == 0)
            with[i] = run(b, url, true, fast);
        ratio[i] = with[i] / without[i];
    }
    (void)printf("redis, %s: write %.0f us, with the index %.0f us, "
                 "ratio %.3f\n",
                 what, median(without, PAIRS), median(with, PAIRS),
                 median(ratio, PAIRS));
}

static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct bench *b = ctx;

    if (why)
        die(why->msg);
    b->rows = rows->n;
    b->busy--;
}

static double search(struct bench *b, const char *text)
{
    struct mo_read r = {
        .kind = MO_READ_SEARCH, .text = mo_span_cstr(text), .limit = 20};
    uint64_t began = mo_now_ns();
    struct mo_err e;

    b->busy++;
    if (mo_store_read(b->s, &r, on_rows, b, &e) < 0 ||
        !mo_loop_until(b->l, is_idle, b, 60000))
        die("no search");
    return (double)(mo_now_ns() - began) / 1e6;
}

int main(int argc, char **argv)
{
    static struct bench b;
    double first, v[PAIRS];

    if (argc < 2)
        return 0; /* scripts/bench: there is no Redis */
    b.took = mo_alloc(SAMPLES * sizeof(*b.took));
    if (!b.took)
        die("no memory");
    compare(&b, argv[1], false, "20 sessions, a message every 50 ms");
    compare(&b, argv[1], true, "one session without a pause");
    open_store(&b, argv[1], true);
    first = search(&b, "word5 word9");
    for (int i = 0; i < PAIRS; i++)
        v[i] = search(&b, "word5 word9");
    (void)printf("search in %u sessions: %.1f ms, the first one, which indexes "
                 "the rest: %.0f ms\n",
                 b.turn * WRITERS, median(v, PAIRS), first);
    close_store(&b);
    mo_free(b.took);
    return 0;
}
