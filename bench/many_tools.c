/* many_tools.c - a server on stdio with many tools, for catalogues of a size
 * that people complain about.
 *
 *   many_tools PLACE
 *
 * PLACE (0 to 49) is where it is: a bakery, a museum. It has 60 tools, what
 * can be done there with ten things in six ways; each says back which one it
 * is. Lines in, lines out, of the old kind of client only; whatever it does
 * not know is no method of it. Ends with its input. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "codec/rpc.h"

#define TEXT_MAX  ((size_t)1024 * 1024)
#define LINE_MAX_ 65536

static const char *const places[] = {
    "bakery",       "museum",      "airport",     "hospital", "library",
    "farm",         "theatre",     "harbour",     "school",   "brewery",
    "garage",       "pharmacy",    "orchestra",   "zoo",      "hotel",
    "kindergarten", "stadium",     "laboratory",  "vineyard", "lighthouse",
    "courthouse",   "aquarium",    "bank",        "embassy",  "cinema",
    "monastery",    "sawmill",     "observatory", "casino",   "campsite",
    "fishery",      "foundry",     "gallery",     "quarry",   "nursery",
    "prison",       "shipyard",    "spa",         "tannery",  "university",
    "warehouse",    "windmill",    "cemetery",    "dairy",    "florist",
    "opera",        "planetarium", "railway",     "tavern",   "veterinary",
};
static const char *const verbs[] = {"create", "list",   "delete",
                                    "update", "search", "export"};
static const char *const things[] = {
    "invoice", "customer", "schedule", "report",  "photo",
    "message", "delivery", "payment",  "address", "complaint"};

/* --- answers ------------------------------------------------------------- */

static void put_tool(struct mo_jw *w, const char *place, const char *verb,
                     const char *thing)
{
    char text[512];

    mo_jw_obj(w);
    mo_jw_key(w, "name");
    (void)snprintf(text, sizeof(text), "%s_%s", verb, thing);
    mo_jw_cstr(w, text);
    mo_jw_key(w, "description");
    (void)snprintf(text, sizeof(text),
                   "%c%s the %s of the %s. Only what belongs to the %s can be "
                   "named; whoever works there sees it at once, and everybody "
                   "else is told the next morning.",
                   verb[0] - 'a' + 'A', verb + 1, thing, place, place);
    mo_jw_cstr(w, text);
    mo_jw_key(w, "inputSchema");
    mo_jw_raw(w,
              MO_SPAN("{\"type\":\"object\",\"properties\":{\"reference\":{"
                      "\"type\":\"string\",\"description\":\"Which one, as it "
                      "is written on the label\"},\"note\":{\"type\":"
                      "\"string\",\"description\":\"What people should know "
                      "about it\"},\"limit\":{\"type\":\"integer\",\"minimum\":"
                      "1,\"maximum\":100}}}"));
    mo_jw_end(w);
}

static void put_tools(struct mo_buf *b, const char *place)
{
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "tools");
    mo_jw_arr(&w);
    for (size_t v = 0; v < MO_COUNT(verbs); v++) {
        for (size_t t = 0; t < MO_COUNT(things); t++)
            put_tool(&w, place, verbs[v], things[t]);
    }
    mo_jw_end(&w);
    mo_jw_end(&w);
}

static void put_welcome(struct mo_buf *b, const char *place)
{
    (void)mo_buf_printf(b,
                        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":"
                        "{\"tools\":{}},\"serverInfo\":{\"name\":\"%s\","
                        "\"version\":\"1\"}}",
                        place);
}

static void put_said(struct mo_buf *b, const char *place, struct mo_json name)
{
    (void)mo_buf_printf(b,
                        "{\"content\":[{\"type\":\"text\",\"text\":"
                        "\"done at the %s: %.*s\"}]}",
                        place, (int)(name.n - 2), name.p + 1);
}

static void answer(const struct mo_rpc *m, const char *place, struct mo_buf *b)
{
    struct mo_json name = mo_json_get(m->params, "name");

    if (mo_json_str_eq(m->method, MO_SPAN("initialize")))
        put_welcome(b, place);
    else if (mo_json_str_eq(m->method, MO_SPAN("tools/list")))
        put_tools(b, place);
    else if (mo_json_str_eq(m->method, MO_SPAN("tools/call")) &&
             mo_json_is(name, MO_JSON_STRING))
        put_said(b, place, name);
}

static void on_line(struct mo_span line, const char *place)
{
    struct mo_buf result, out;
    struct mo_rpc m;

    if (mo_rpc_parse(line, &m, NULL) < 0 || m.kind != MO_RPC_REQUEST)
        return;
    mo_buf_init(&result, TEXT_MAX);
    mo_buf_init(&out, 2 * TEXT_MAX);
    answer(&m, place, &result);
    if (result.len)
        (void)mo_rpc_put_result(&out, mo_json_text(m.id), mo_buf_view(&result));
    else
        (void)mo_rpc_put_error(&out, mo_json_text(m.id),
                               MO_RPC_METHOD_NOT_FOUND,
                               MO_SPAN("no such method"), mo_span(NULL, 0));
    (void)mo_buf_putc(&out, '\n');
    (void)fwrite(out.p, 1, out.len, stdout);
    (void)fflush(stdout);
    mo_buf_fini(&result);
    mo_buf_fini(&out);
}

int main(int argc, char **argv)
{
    uint64_t no = MO_COUNT(places);
    char line[LINE_MAX_];

    if (argc == 2)
        (void)mo_span_u64(mo_span_cstr(argv[1]), &no);
    if (no >= MO_COUNT(places)) {
        (void)fputs("usage: many_tools PLACE (0 to 49)\n", stderr);
        return 1;
    }
    while (fgets(line, sizeof(line), stdin))
        on_line(mo_span(line, strcspn(line, "\n")), places[no]);
    return 0;
}
