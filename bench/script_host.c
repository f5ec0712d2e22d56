/* script_host.c - a host of scripts that costs little: it starts a toolbox,
 * pings it, runs a script in it and answers each call of the script at once.
 *
 *   script_host TOOLBOX ROOT PINGS < REQUEST
 *
 * REQUEST is one line: a tools/call of run_script with the id 3 and the
 * progressToken 1. The result is one line of JSON: the median of the pings in
 * us, from the write to the answer, and the answer to REQUEST. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "meter.h"

#define LINE_MAX_BYTES ((size_t)4 << 20)
#define PINGS_MAX      100000

struct host {
    int to, from;
    char *in;
    size_t n, used; /* bytes of it; of the last line */
};

static void start_toolbox(struct host *h, char *program, char *root)
{
    char flag[] = "--root", *argv[] = {program, flag, root, NULL};
    int in[2], out[2];
    pid_t pid;

    if (pipe(in) < 0 || pipe(out) < 0)
        meter_die("pipe: %s", strerror(errno));
    pid = fork();
    if (pid < 0)
        meter_die("fork: %s", strerror(errno));
    if (pid == 0) {
        (void)dup2(in[0], 0);
        (void)dup2(out[1], 1);
        (void)close(in[1]);
        (void)close(out[0]);
        (void)execv(program, argv);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    h->to = in[1];
    h->from = out[0];
    h->in = mo_zalloc(LINE_MAX_BYTES);
    if (!h->in)
        meter_die("no memory");
}

static void tell(struct host *h, struct mo_span line)
{
    while (line.n) {
        ssize_t n = write(h->to, line.p, line.n);

        if (n <= 0)
            meter_die("write: %s", strerror(errno));
        line = mo_span_skip(line, (size_t)n);
    }
}

/* Valid until the next call; without its end. */
static struct mo_span next_line(struct host *h)
{
    h->n -= h->used;
    memmove(h->in, h->in + h->used, h->n);
    for (h->used = 0; h->used == 0;) {
        ptrdiff_t end = mo_span_find(mo_span(h->in, h->n), '\n');
        ssize_t n;

        if (end >= 0) {
            h->used = (size_t)end + 1;
            continue;
        }
        n = read(h->from, h->in + h->n, LINE_MAX_BYTES - h->n);
        if (n <= 0)
            meter_die("the toolbox has ended");
        h->n += (size_t)n;
    }
    return mo_span(h->in, h->used - 1);
}

static void wait_for(struct host *h, struct mo_span begin)
{
    while (!mo_span_starts(next_line(h), begin))
        continue;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static double ping(struct host *h, unsigned count)
{
    static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":2,"
                               "\"method\":\"ping\"}\n";
    uint64_t *ns = mo_zalloc(count * sizeof(*ns)), middle;

    if (!ns)
        meter_die("no memory");
    for (unsigned i = 0; i < count; i++) {
        uint64_t from = meter_now_ns();

        tell(h, mo_span_cstr(line));
        wait_for(h, MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":2,"));
        ns[i] = meter_now_ns() - from;
    }
    qsort(ns, count, sizeof(*ns), by_size);
    middle = ns[count / 2];
    mo_free(ns);
    return (double)middle / 1e3;
}

/* Nothing if the script only says that it has closed its end. */
static void answer_ask(struct host *h, struct mo_span note)
{
    static const char key[] = "\"progressToken\":1,\"id\":";
    ptrdiff_t at = mo_span_search(note, mo_span_cstr(key));
    struct mo_span id;
    char line[256];
    int n;

    if (at < 0)
        return;
    id = mo_span_skip(note, (size_t)at + sizeof(key) - 1);
    id = mo_span_cut(&id, ',');
    n = snprintf(line, sizeof(line),
                 "{\"jsonrpc\":\"2.0\",\"id\":4,"
                 "\"method\":\"mcp-orchestrator/script/answer\","
                 "\"params\":{\"arguments\":{\"progressToken\":1,\"id\":%.*s,"
                 "\"result\":{\"content\":[],"
                 "\"structuredContent\":{\"a\":1}}}}}\n",
                 (int)id.n, id.p);
    if (n < 0 || (size_t)n >= sizeof(line))
        meter_die("a strange id");
    tell(h, mo_span(line, (size_t)n));
}

static struct mo_span run(struct host *h, struct mo_span request)
{
    static const char note[] = "{\"jsonrpc\":\"2.0\",\"method\":"
                               "\"notifications/mcp-orchestrator/script\"";

    tell(h, request);
    for (;;) {
        struct mo_span line = next_line(h);

        if (mo_span_starts(line, MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":3,")))
            return line;
        if (mo_span_starts(line, mo_span_cstr(note)))
            answer_ask(h, line);
    }
}

int main(int argc, char **argv)
{
    static const char hello[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
        "\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n"
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    char *request = mo_zalloc(LINE_MAX_BYTES);
    struct mo_span answer;
    struct host h = {0};
    double us;
    size_t n;

    if (argc != 4 || !request)
        meter_die("usage: script_host TOOLBOX ROOT PINGS < REQUEST");
    n = fread(request, 1, LINE_MAX_BYTES, stdin);
    start_toolbox(&h, argv[1], argv[2]);
    tell(&h, mo_span_cstr(hello));
    wait_for(&h, MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":1,"));
    us = ping(&h, meter_arg(argv[3], "PINGS", PINGS_MAX));
    answer = run(&h, mo_span(request, n));
    printf("{\"ping_us\":%.1f,\"answer\":%.*s}\n", us, (int)answer.n, answer.p);
    (void)close(h.to);
    while (wait(NULL) > 0)
        continue;
    return 0;
}
