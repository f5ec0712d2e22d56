/* bench_json.c - what it costs to have a message ready to forward.
 *
 * Ours: mo_rpc_parse(), which validates everything and leaves the payload as
 * a span. The other: json-c parses, the members are fetched and the payload
 * is serialised again. Both run in turns in this one process and are charged
 * CPU time; the best batch of each counts, which is the one least disturbed. */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "codec/json/json.h"
#include "codec/rpc.h"

#define TURNS    12
#define TURN_NS  30e6 /* aim of one batch */
#define TEXT_MAX ((size_t)8 << 20)
#define GOAL     0.10

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "bench_json: %s\n", what);
    exit(1);
}

/* --- messages ------------------------------------------------------------ */

static void make_call(struct mo_buf *b)
{
    mo_buf_puts(
        b, "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,"
           "\"method\":\"tools/call\",\"params\":{\"name\":\"write_file\","
           "\"arguments\":{\"path\":\"notes/today.md\",\"mode\":420,"
           "\"content\":\"# Today\\n\\n- call \\\"Ann\\\" about the invoice\\n"
           "- na\xc3\xafve caf\xc3\xa9\\n\"},\"_meta\":{\"progressToken\":17,"
           "\"ratio\":0.125,\"dry\":false,\"parent\":null}}}");
}

static void make_tool(struct mo_jw *w, int i)
{
    static const char *const args[] = {"path", "pattern", "limit", "recursive"};
    static const char *const types[] = {"string", "string", "integer",
                                        "boolean"};
    char name[32];

    (void)snprintf(name, sizeof(name), "tool_number_%d", i);
    mo_jw_obj(w);
    mo_jw_key(w, "name");
    mo_jw_cstr(w, name);
    mo_jw_key(w, "description");
    mo_jw_cstr(w, "Searches files below a directory and says which lines "
                  "match.\nUse \"pattern\" for the words to look for.");
    mo_jw_key(w, "inputSchema");
    mo_jw_obj(w);
    mo_jw_key(w, "type");
    mo_jw_cstr(w, "object");
    mo_jw_key(w, "properties");
    mo_jw_obj(w);
    for (size_t k = 0; k < MO_COUNT(args); k++) {
        mo_jw_key(w, args[k]);
        mo_jw_obj(w);
        mo_jw_key(w, "type");
        mo_jw_cstr(w, types[k]);
        mo_jw_key(w, "description");
        mo_jw_cstr(w, "What to look at first");
        mo_jw_end(w);
    }
    mo_jw_end(w);
    mo_jw_key(w, "required");
    mo_jw_arr(w);
    mo_jw_cstr(w, args[0]);
    mo_jw_cstr(w, args[1]);
    mo_jw_end(w);
    mo_jw_key(w, "additionalProperties");
    mo_jw_bool(w, false);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void make_tools(struct mo_buf *b)
{
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "jsonrpc");
    mo_jw_cstr(&w, "2.0");
    mo_jw_key(&w, "id");
    mo_jw_i64(&w, 2);
    mo_jw_key(&w, "result");
    mo_jw_obj(&w);
    mo_jw_key(&w, "tools");
    mo_jw_arr(&w);
    for (int i = 0; b->len < 30000; i++)
        make_tool(&w, i);
    mo_jw_end(&w);
    mo_jw_end(&w);
    mo_jw_end(&w);
}

/* A tool's answer: rows with text of a log file, numbers and flags. */
static void make_result(struct mo_buf *b)
{
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "jsonrpc");
    mo_jw_cstr(&w, "2.0");
    mo_jw_key(&w, "id");
    mo_jw_cstr(&w, "call-77");
    mo_jw_key(&w, "result");
    mo_jw_obj(&w);
    mo_jw_key(&w, "content");
    mo_jw_arr(&w);
    for (int i = 0; b->len < 2000000; i++) {
        mo_jw_obj(&w);
        mo_jw_key(&w, "type");
        mo_jw_cstr(&w, "text");
        mo_jw_key(&w, "text");
        mo_jw_cstr(&w, "2025-01-01T00:00:00Z worker[12] info: read 4096 bytes "
                       "from the queue and passed them on to the next one\n"
                       "\tat line 12: \"done\" \xe2\x80\x94 all is well and "
                       "the machine is quiet again for a while\n");
        mo_jw_key(&w, "row");
        mo_jw_i64(&w, i);
        mo_jw_key(&w, "score");
        mo_jw_f64(&w, (double)i / 8);
        mo_jw_key(&w, "last");
        mo_jw_bool(&w, false);
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
    mo_jw_end(&w);
    mo_jw_end(&w);
}

/* --- the two ways -------------------------------------------------------- */

/* Bytes of the payload: both ways must have found the same thing. */
static size_t ours(struct mo_span text)
{
    struct mo_rpc m;

    if (mo_rpc_parse(text, &m, NULL) < 0 || m.kind == MO_RPC_INVALID)
        die("our parser refuses the message");
    return m.params.p ? m.params.n : m.result.n;
}

static size_t theirs(struct mo_span text)
{
    struct json_tokener *tok = json_tokener_new();
    struct json_object *root, *id, *payload;
    size_t n = 0;

    root = json_tokener_parse_ex(tok, text.p, (int)text.n);
    json_tokener_free(tok);
    if (!root || !json_object_object_get_ex(root, "id", &id))
        die("json-c refuses the message");
    if (!json_object_object_get_ex(root, "params", &payload) &&
        !json_object_object_get_ex(root, "result", &payload))
        die("json-c finds no payload");
    (void)json_object_to_json_string_length(
        payload, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &n);
    json_object_put(root);
    return n;
}

/* CPU ns of one run, over `runs` of them. */
static double batch(size_t (*way)(struct mo_span), struct mo_span text,
                    size_t runs)
{
    double t0 = cpu_ns();
    volatile size_t sink = 0;

    for (size_t i = 0; i < runs; i++)
        sink = sink + way(text);
    return (cpu_ns() - t0) / (double)runs;
}

static size_t runs_for(size_t (*way)(struct mo_span), struct mo_span text)
{
    double one = batch(way, text, 3);

    return one > TURN_NS ? 1 : (size_t)(TURN_NS / one) + 1;
}

static void measure(const char *name, void (*make)(struct mo_buf *))
{
    double best[2] = {1e30, 1e30};
    size_t runs[2];
    struct mo_buf b;
    struct mo_span text;

    mo_buf_init(&b, TEXT_MAX);
    make(&b);
    text = mo_buf_view(&b);
    if (ours(text) != theirs(text))
        printf("json: payload sizes differ (%s)\n", name);
    runs[0] = runs_for(ours, text);
    runs[1] = runs_for(theirs, text);
    for (int i = 0; i < TURNS; i++) {
        double a = batch(ours, text, runs[0]);
        double c = batch(theirs, text, runs[1]);

        best[0] = a < best[0] ? a : best[0];
        best[1] = c < best[1] ? c : best[1];
    }
    printf("json envelope %s: ours %.0f ns, json-c %.0f ns, ratio %.3f "
           "(goal <= %.2f; %zu bytes, %.2f GB/s)\n",
           name, best[0], best[1], best[0] / best[1], GOAL, text.n,
           (double)text.n / best[0]);
    mo_buf_fini(&b);
}

/* Walking text that is known to be good must cost less than checking it. */
static void measure_walk(void)
{
    double check = 1e30, walk = 1e30;
    struct mo_json_doc doc;
    struct mo_buf b;

    mo_buf_init(&b, TEXT_MAX);
    make_result(&b);
    for (int i = 0; i < TURNS; i++) {
        double t0 = cpu_ns(), t1;
        struct mo_json got;

        if (mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) < 0)
            die("our parser refuses the message");
        t1 = cpu_ns();
        check = t1 - t0 < check ? t1 - t0 : check;
        got = mo_json_get(doc.root, "result");
        t0 = cpu_ns();
        walk = t0 - t1 < walk ? t0 - t1 : walk;
        if (!mo_json_is(got, MO_JSON_OBJECT))
            die("the cursor lost the result");
    }
    printf("json cursor 2 MB: validate %.0f ns, get \"result\" %.0f ns, ratio "
           "%.2f (goal < 1)\n",
           check, walk, walk / check);
    mo_buf_fini(&b);
}

int main(void)
{
    measure("300 B", make_call);
    measure("30 KB", make_tools);
    measure("2 MB", make_result);
    measure_walk();
    return 0;
}
