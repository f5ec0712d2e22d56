/* bench_catalog.c - what a gateway's lists cost: a page next to copying the
 * same bytes, the start from the disk, and a list that has changed.
 *
 *   bench_catalog [DIR]
 *
 * 50 servers with 60 tools of about 700 bytes, two thirds of them prefixed.
 * Turns alternate; a ratio is taken within a turn, the median counts. The
 * cache is made in DIR, or in $TMPDIR, or in /tmp. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "gateway/catalog/catalog.h"

#define SERVERS     50
#define TOOLS       60
#define SMALL_TOOLS 10
#define TURNS       21
#define REPEAT      20
#define PAGE_GOAL   3.0 /* times a copy */
#define START_GOAL  3.0 /* ms, small ones */

struct bench {
    struct mo_gw_server servers[SERVERS];
    char names[SERVERS][16];
    struct mo_buf page, copy;
    char dir[256];
};

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "bench_catalog: %s\n", what);
    exit(1);
}

static double ms_since(uint64_t t0)
{
    return (double)(mo_now_ns() - t0) / 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double v[TURNS])
{
    qsort(v, TURNS, sizeof(v[0]), by_size);
    return v[TURNS / 2];
}

/* Every third tool has a name of its own. */
static void put_tools(struct mo_buf *b, int server, int n)
{
    mo_buf_reset(b);
    mo_buf_putc(b, '[');
    for (int i = 0; i < n; i++) {
        mo_buf_printf(b, "%s{\"name\":\"do_thing_%d_%d\",\"description\":\"",
                      i ? "," : "", i, i % 3 ? 0 : server);
        for (int j = 0; j < 10; j++)
            mo_buf_puts(b, "Does the thing that was asked for, well. ");
        mo_buf_puts(b, "\",\"inputSchema\":{\"type\":\"object\",\"properties\":"
                       "{\"path\":{\"type\":\"string\",\"description\":\"where "
                       "to do it\"},\"count\":{\"type\":\"integer\","
                       "\"minimum\":1,\"maximum\":100}},\"required\":"
                       "[\"path\"]},\"annotations\":{\"readOnlyHint\":true}}");
    }
    mo_buf_putc(b, ']');
}

static void fill(struct bench *b, struct mo_catalog *c, int tools)
{
    static const struct mo_json none = {NULL, 0};
    struct mo_json_doc d;
    struct mo_buf t;
    unsigned changed = 0;

    mo_buf_init(&t, (size_t)1 << 20);
    must(mo_catalog_servers(c, b->servers, SERVERS, NULL) == 0, "servers");
    for (unsigned i = 0; i < SERVERS; i++) {
        put_tools(&t, (int)i, tools);
        must(mo_json_parse(mo_buf_view(&t), 0, &d, NULL) == 0, "text");
        must(mo_catalog_put(c, i, MO_CAT_TOOLS, d.root, &changed) == 0, "put");
        mo_catalog_done(c, i, none, none);
    }
    mo_buf_fini(&t);
}

static void bench_page(struct bench *b)
{
    struct mo_catalog *c = mo_catalog_new(MO_GW_PREFIX_COLLISION, b->dir, NULL);
    size_t limit = (size_t)SERVERS * TOOLS;
    double ratio[TURNS], ms[TURNS];

    must(c != NULL, "memory");
    fill(b, c, TOOLS);
    for (int i = 0; i < TURNS; i++) {
        uint64_t t0 = mo_now_ns();
        double copy = 0;

        for (int j = 0; j < REPEAT; j++) {
            mo_buf_reset(&b->page);
            must(mo_catalog_page(c, MO_CAT_TOOLS, MO_SPAN(""), limit,
                                 &b->page) == 0,
                 "page");
        }
        ms[i] = ms_since(t0) / REPEAT;
        t0 = mo_now_ns();
        for (int j = 0; j < REPEAT; j++) {
            mo_buf_reset(&b->copy);
            mo_buf_span(&b->copy, mo_buf_view(&b->page));
        }
        copy = ms_since(t0) / REPEAT;
        ratio[i] = ms[i] / copy;
    }
    printf("page of %zu tools, %.1f MB: %.3f ms, %.2f times a copy (goal %.1f)"
           "\n",
           limit, (double)b->page.len / 1e6, median(ms), median(ratio),
           PAGE_GOAL);
    mo_catalog_free(c);
}

static void bench_change(struct bench *b)
{
    struct mo_catalog *c = mo_catalog_new(MO_GW_PREFIX_COLLISION, NULL, NULL);
    double ms[TURNS];
    struct mo_json_doc d;
    struct mo_buf t;

    mo_buf_init(&t, (size_t)1 << 20);
    must(c != NULL, "memory");
    fill(b, c, TOOLS);
    for (int i = 0; i < TURNS; i++) {
        uint64_t t0 = 0;
        unsigned changed = 0;

        put_tools(&t, 0, TOOLS - 1 - i % 2);
        must(mo_json_parse(mo_buf_view(&t), 0, &d, NULL) == 0, "text");
        t0 = mo_now_ns();
        must(mo_catalog_put(c, 0, MO_CAT_TOOLS, d.root, &changed) == 0, "put");
        ms[i] = ms_since(t0);
        must(changed, "no change");
    }
    printf("one server's list changes, %d in all: %.3f ms\n", SERVERS * TOOLS,
           median(ms));
    mo_buf_fini(&t);
    mo_catalog_free(c);
}

static void bench_start(struct bench *b, int tools)
{
    struct mo_catalog *c = mo_catalog_new(MO_GW_PREFIX_COLLISION, b->dir, NULL);
    double ms[TURNS];

    must(c != NULL, "memory");
    fill(b, c, tools);
    mo_catalog_free(c);
    for (int i = 0; i < TURNS; i++) {
        uint64_t t0 = mo_now_ns();

        c = mo_catalog_new(MO_GW_PREFIX_COLLISION, b->dir, NULL);
        must(c && mo_catalog_servers(c, b->servers, SERVERS, NULL) == 0,
             "servers");
        ms[i] = ms_since(t0);
        must(mo_catalog_count(c, MO_CAT_TOOLS) == (size_t)SERVERS * tools,
             "not all were read");
        mo_catalog_free(c);
    }
    printf("start, %d servers of %d tools from the disk: %.2f ms", SERVERS,
           tools, median(ms));
    if (tools == SMALL_TOOLS)
        printf(" (goal %.1f)", START_GOAL);
    printf("\n");
}

static int drop(const char *path, const struct stat *st, int type,
                struct FTW *f)
{
    (void)st;
    (void)type;
    (void)f;
    return remove(path);
}

int main(int argc, char **argv)
{
    static struct bench b;
    const char *tmp = getenv("TMPDIR");

    tmp = argc > 1 ? argv[1] : tmp ? tmp : "/tmp";
    (void)snprintf(b.dir, sizeof(b.dir), "%s/bench-catalog-XXXXXX", tmp);
    must(mkdtemp(b.dir) != NULL, "no directory");
    for (int i = 0; i < SERVERS; i++) {
        (void)snprintf(b.names[i], sizeof(b.names[i]), "server%d", i);
        b.servers[i].name = b.names[i];
        (void)snprintf(b.servers[i].digest, sizeof(b.servers[i].digest), "d");
    }
    mo_buf_init(&b.page, (size_t)64 << 20);
    mo_buf_init(&b.copy, (size_t)64 << 20);
    bench_page(&b);
    bench_change(&b);
    bench_start(&b, SMALL_TOOLS);
    bench_start(&b, TOOLS);
    mo_buf_fini(&b.page);
    mo_buf_fini(&b.copy);
    (void)nftw(b.dir, drop, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}
