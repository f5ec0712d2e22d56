#include "tally.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"

#define CALLS_MAX 10000000
#define NUMBER    "########"

#define MESSAGE                                                                \
    "The quick brown fox jumps over the lazy dog, and the dog says that two "  \
    "hundred bytes of text are about what a tool is asked for when somebody "  \
    "wants to know what the weather is like in a town by the sea."

/* --- the call ------------------------------------------------------------ */

void wish_read(struct wish *w, int *argc, char ***argv)
{
    const struct {
        const char *name, **to;
    } opts[] = {
        {"--tool", &w->tool},
        {"--arguments", &w->arguments},
        {"--want", &w->want},
    };

    *w = (struct wish){"echo", "{\"message\":\"" MESSAGE "\"}", MESSAGE};
    while (*argc > 2 && (*argv)[1][0] == '-') {
        size_t i = 0;

        while (i < MO_COUNT(opts) && strcmp((*argv)[1], opts[i].name) != 0)
            i++;
        if (i == MO_COUNT(opts))
            meter_die("no such option: %s", (*argv)[1]);
        *opts[i].to = (*argv)[2];
        *argv += 2;
        *argc -= 2;
    }
}

void wish_put(const struct wish *w, char out[TALLY_TEXT_MAX])
{
    int n = snprintf(out, TALLY_TEXT_MAX,
                     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                     "\"params\":{\"name\":\"%s\",\"arguments\":%s}}",
                     w->tool, w->arguments);

    if (n < 0 || n >= TALLY_TEXT_MAX)
        meter_die("the call is too long");
}

char *wish_field(char *text)
{
    return strstr(text, NUMBER);
}

void wish_number(char *field, unsigned number)
{
    char digits[sizeof(NUMBER)];

    if (!field)
        return;
    (void)snprintf(digits, sizeof(digits), "%08u", number % 100000000);
    memcpy(field, digits, sizeof(digits) - 1);
}

/* --- counting ------------------------------------------------------------ */

void tally_init(struct tally *t, const char *warm, const char *calls)
{
    *t = (struct tally){.warm = meter_arg(warm, "warm", CALLS_MAX),
                        .calls = meter_arg(calls, "calls", CALLS_MAX)};
    t->ns = mo_alloc(t->calls * sizeof(*t->ns));
    if (!t->ns)
        meter_die("out of memory");
}

bool tally_next(struct tally *t)
{
    if (t->sent == t->warm + t->calls)
        return false;
    t->sent++;
    return true;
}

void tally_done(struct tally *t, uint64_t since)
{
    uint64_t ns = meter_now_ns() - since;

    t->done++;
    if (t->done > t->warm)
        t->ns[t->done - t->warm - 1] =
            (uint32_t)(ns < UINT32_MAX ? ns : UINT32_MAX);
    if (t->done == t->warm) {
        t->cpu0 = meter_cpu_ns(t->pid);
        t->wall0 = meter_now_ns();
    }
    if (t->done == t->warm + t->calls) {
        t->wall = meter_now_ns() - t->wall0;
        t->cpu = meter_cpu_ns(t->pid) - t->cpu0;
    }
}

bool tally_over(const struct tally *t)
{
    return t->done == t->warm + t->calls;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

void tally_print(struct tally *t)
{
    qsort(t->ns, t->calls, sizeof(*t->ns), by_size);
    printf("{\"ops\":%u,\"cpu_ns\":%llu,\"wall_ns\":%llu,\"p50_ns\":%u,"
           "\"p99_ns\":%u}\n",
           t->calls, (unsigned long long)t->cpu, (unsigned long long)t->wall,
           t->ns[t->calls / 2], t->ns[(size_t)t->calls * 99 / 100]);
    mo_free(t->ns);
}

int tally_dial(const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port =
                                htons((uint16_t)meter_arg(port, "port", 65535)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        meter_die("connect: %s", strerror(errno));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}
