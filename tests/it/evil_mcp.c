/* evil_mcp - an MCP server over stdio that misbehaves in one way, named by
 * argv[1]; "ok" behaves. It speaks 2025-11-25 and answers server/discover
 * with -32601, unless that is its misbehaviour. Its one tool is "t", or what
 * the file argv[2] says when it is asked.
 *
 * It uses nothing of ours: it is the other side. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char id[64];

static void put(const char *s)
{
    size_t n = strlen(s);

    while (n) {
        ssize_t w = write(1, s, n);

        if (w <= 0)
            _exit(9);
        s += w;
        n -= (size_t)w;
    }
}

/* A line with the present id in it, by default as it came. */
static void answer_as(const char *as, const char *body)
{
    char line[1024];

    (void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n",
                   as, body);
    put(line);
}

#define GOOD                                                                   \
    "\"result\":{\"content\":[{\"type\":\"text\",\"text\":"                    \
    "\"gr\xc3\xbc\xc3\x9f\"}]}"
#define EVIL                                                                   \
    "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"forged\"}]}"
#define PROGRESS                                                               \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"   \
    "{\"progressToken\":1,\"progress\":1}}\n"

static void hang(void)
{
    for (;;)
        (void)pause();
}

/* --- what can be done instead of answering tools/call -------------------- */

static void ok(void)
{
    answer_as(id, GOOD);
}

/* C1: a line without end; 1 GB if somebody reads that long. */
static void long_line(void)
{
    static char x[65536];

    memset(x, 'x', sizeof(x) - 1);
    for (int i = 0; i < 16384; i++)
        put(x);
    hang();
}

/* C1: the same, but it begins as the answer and its id can be read. */
static void long_answer(void)
{
    char head[128];

    (void)snprintf(head, sizeof(head),
                   "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"x\":\"", id);
    put(head);
    long_line();
}

/* C1: one that ends, and then the answer once more. */
static void long_then_good(void)
{
    static char x[65536];
    char head[128];

    (void)snprintf(head, sizeof(head),
                   "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"x\":\"", id);
    put(head);
    memset(x, 'x', sizeof(x) - 1);
    for (int i = 0; i < 512; i++)
        put(x);
    put("\"}}\n");
    answer_as(id, EVIL);
    hang();
}

/* C2: one byte per write, and a pause in the middle of a character. */
static void bytes(void)
{
    char line[256];
    int n = snprintf(line, sizeof(line),
                     "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\r\n", id, GOOD);

    for (int i = 0; i < n; i++) {
        char one[2] = {line[i], 0};

        put(one);
        (void)usleep(500);
    }
}

/* C4: perfect answers, on the wrong stream. */
static void forge_stderr(void)
{
    (void)fprintf(stderr, "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", id, EVIL);
    (void)fflush(stderr);
    hang();
}

static void noise(int n)
{
    for (int i = 0; i < n; i++)
        put("Server is running, have a nice day\n");
}

static void some_noise(void)
{
    noise(10);
    ok();
}

static void much_noise(void)
{
    noise(1000);
    ok();
}

static void endless_noise(void)
{
    for (;;)
        noise(1000);
}

/* C6 */
static void ids(void)
{
    char as[128];

    (void)snprintf(as, sizeof(as), "\"%s\"", id);
    answer_as(as, EVIL);
    (void)snprintf(as, sizeof(as), "%s.0", id);
    answer_as(as, EVIL);
    (void)snprintf(as, sizeof(as), "%s0000000000000000000000", id);
    answer_as(as, EVIL);
    answer_as("null", "\"error\":{\"code\":1,\"message\":\"forged\"}");
    answer_as("1", EVIL); /* had its answer */
    answer_as(id, GOOD);
    answer_as(id, EVIL);
}

/* C8 */
static void flood(void)
{
    for (;;)
        put(PROGRESS);
}

static void flood_requests(void)
{
    for (;;)
        put("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
            "\"sampling/createMessage\",\"params\":{}}\n");
}

/* C9 */
static void leave(void)
{
    (void)fprintf(stderr, "last words\n");
    exit(0);
}

static void crash(void)
{
    (void)kill(getpid(), SIGKILL);
}

static void stop(void)
{
    (void)kill(getpid(), SIGSTOP);
}

static void close_stdout(void)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)close(1);
    hang();
}

static void grandchild(void)
{
    if (fork() == 0)
        hang();
    exit(7);
}

static const struct {
    const char *name;
    void (*call)(void);
} evils[] = {
    {"ok", ok},
    {"long-line", long_line},
    {"long-answer", long_answer},
    {"long-then-good", long_then_good},
    {"bytes", bytes},
    {"forge-stderr", forge_stderr},
    {"some-noise", some_noise},
    {"much-noise", much_noise},
    {"endless-noise", endless_noise},
    {"ids", ids},
    {"silent", hang},
    {"flood", flood},
    {"flood-requests", flood_requests},
    {"leave", leave},
    {"crash", crash},
    {"stop", stop},
    {"close-stdout", close_stdout},
    {"grandchild", grandchild},
    /* these misbehave before or after */
    {"stubborn", ok},
    {"init-silent", ok},
    {"init-leave", ok},
    {"probe-leave", ok},
    {"probe-silent", ok},
    {"no-server", ok},
};

/* --- the plain part ------------------------------------------------------ */

static bool take_id(const char *line)
{
    const char *p = strstr(line, "\"id\":");
    size_t n = p ? strcspn(p + 5, ",}") : 0;

    if (!p || n >= sizeof(id))
        return false;
    memcpy(id, p + 5, n);
    id[n] = '\0';
    return true;
}

static bool is(const char *line, const char *method)
{
    char want[80];

    (void)snprintf(want, sizeof(want), "\"method\":\"%s\"", method);
    return strstr(line, want) != NULL;
}

static void on_initialize(const char *evil)
{
    if (strcmp(evil, "init-silent") == 0)
        hang();
    if (strcmp(evil, "init-leave") == 0)
        exit(5);
    answer_as(id, "\"result\":{\"protocolVersion\":\"2025-11-25\","
                  "\"capabilities\":{\"tools\":{}},\"serverInfo\":"
                  "{\"name\":\"evil\",\"version\":\"6.6.6\"}}");
}

static void on_discover(const char *evil)
{
    if (strcmp(evil, "probe-leave") == 0)
        exit(4);
    if (strcmp(evil, "probe-silent") != 0)
        answer_as(id, "\"error\":{\"code\":-32601,\"message\":\"no\"}");
}

static void on_list(const char *file)
{
    char name[64] = "t", body[256];
    FILE *f = file ? fopen(file, "r") : NULL;

    if (f) {
        if (fscanf(f, "%63[a-z]", name) != 1)
            name[0] = 't'; /* an empty file */
        (void)fclose(f);
    }
    (void)snprintf(body, sizeof(body),
                   "\"result\":{\"tools\":[{\"name\":\"%s\","
                   "\"inputSchema\":{\"type\":\"object\"}}]}",
                   name);
    answer_as(id, body);
}

static void on_line(const char *line, size_t evil, const char *file)
{
    if (!take_id(line))
        return;
    if (strcmp(evils[evil].name, "no-server") == 0) {
        noise(100);
        hang();
    }
    if (is(line, "initialize"))
        on_initialize(evils[evil].name);
    else if (is(line, "server/discover"))
        on_discover(evils[evil].name);
    else if (is(line, "tools/call"))
        evils[evil].call();
    else if (is(line, "tools/list"))
        on_list(file);
    else
        answer_as(id, "\"result\":{}");
}

/* Neither the end of its input nor a signal that can be ignored ends it. */
static void be_stubborn(void)
{
    for (int sig = 1; sig < 32; sig++)
        (void)signal(sig, SIG_IGN);
}

int main(int argc, char **argv)
{
    static char line[65536];
    size_t evil = 0;
    bool stubborn;

    while (argc > 1 && evil < sizeof(evils) / sizeof(evils[0]) &&
           strcmp(evils[evil].name, argv[1]) != 0)
        evil++;
    if (argc < 2 || evil == sizeof(evils) / sizeof(evils[0]))
        return 2;
    stubborn = strcmp(evils[evil].name, "stubborn") == 0;
    if (stubborn)
        be_stubborn();
    while (fgets(line, sizeof(line), stdin))
        on_line(line, evil, argc > 2 ? argv[2] : NULL);
    if (stubborn)
        hang();
    return 0;
}
