#include "meter.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/str.h"

#define TEXT_MAX 4096

void meter_die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)fputs("bench: ", stderr);
    (void)vfprintf(stderr, fmt, ap);
    (void)fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

unsigned meter_arg(const char *text, const char *what, unsigned max)
{
    uint64_t v = 0;

    if (mo_span_u64(mo_span_cstr(text), &v) < 0 || v == 0 || v > max)
        meter_die("%s: not a number from 1 to %u: %s", what, max, text);
    return (unsigned)v;
}

uint64_t meter_now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Files of /proc come whole in one read. */
static struct mo_span slurp(const char *path, char text[TEXT_MAX])
{
    FILE *f = fopen(path, "re");
    size_t n = 0;

    if (f) {
        n = fread(text, 1, TEXT_MAX, f);
        (void)fclose(f);
    }
    return mo_span(text, n);
}

/* The first word of a thread's schedstat: ns on a processor. A thread that
 * ended meanwhile counts nothing. */
static uint64_t thread_ns(pid_t pid, const char *tid)
{
    char path[128], text[TEXT_MAX];
    struct mo_span s;
    uint64_t v = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, tid);
    s = slurp(path, text);
    if (mo_span_u64(mo_span_cut(&s, ' '), &v) < 0)
        return 0;
    return v;
}

uint64_t meter_cpu_ns(pid_t pid)
{
    char path[64];
    uint64_t sum = 0;
    DIR *d;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
    d = opendir(path);
    if (!d)
        meter_die("no process %d", pid);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        if (e->d_name[0] != '.')
            sum += thread_ns(pid, e->d_name);
    (void)closedir(d);
    return sum;
}

/* "Rss:    1234 kB" of smaps_rollup, in bytes. */
static uint64_t line_kb(struct mo_span text, const char *name)
{
    while (text.p && text.n) {
        struct mo_span line = mo_span_cut(&text, '\n');
        struct mo_span key = mo_span_cut(&line, ':');
        uint64_t v = 0;

        line = mo_span_trim(line);
        if (mo_span_is(key, name) &&
            mo_span_u64(mo_span_cut(&line, ' '), &v) == 0)
            return v * 1024;
    }
    return 0;
}

struct meter_mem meter_mem(pid_t pid)
{
    char path[64], text[TEXT_MAX];
    struct mo_span s;

    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
    s = slurp(path, text);
    if (s.n == 0)
        meter_die("cannot read the memory of process %d", pid);
    return (struct meter_mem){line_kb(s, "Rss"), line_kb(s, "Pss")};
}

unsigned meter_children(pid_t pid)
{
    char path[64], text[TEXT_MAX];
    struct mo_span s;
    unsigned n = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    s = slurp(path, text);
    while (s.n && mo_span_cut(&s, ' ').n)
        n++;
    return n;
}
