/* fuzz_script_files.c - definitions of tools as declarations. Promised: both
 * files are text in which every string and comment ends where it should, so
 * that nothing of a server stands outside them. */
#include <stdlib.h>

#include "mcp/script/files.h"

#define TOOLS_MAX 8
#define TEXT_MAX  ((size_t)4 << 20)

static void expect(bool ok)
{
    if (!ok)
        abort();
}

/* Behind the string or comment at s, or s itself. */
static struct mo_span skip_text(struct mo_span s)
{
    struct mo_span end = MO_SPAN("\"");

    if (mo_span_starts(s, MO_SPAN("/*")))
        return mo_span_skip(s, (size_t)mo_span_search(s, MO_SPAN("*/")) + 2);
    if (!mo_span_starts(s, end))
        return s;
    if (mo_span_starts(s, MO_SPAN("\"\"\"")))
        end = MO_SPAN("\"\"\"");
    s = mo_span_skip(s, end.n);
    while (s.n && !mo_span_starts(s, end)) {
        expect(end.n == 3 || *s.p != '\n');
        s = mo_span_skip(s, *s.p == '\\' ? 2 : 1);
    }
    expect(s.n > 0);
    return mo_span_skip(s, end.n);
}

static void check(struct mo_span s)
{
    while (s.n) {
        struct mo_span rest = skip_text(s);

        if (rest.p == s.p) {
            expect(mo_span_only(mo_span_head(s, 1),
                                MO_ALNUM "_ \n(){}[]<>:;,.?|=*@#/+-'"));
            rest = mo_span_skip(s, 1);
        }
        s = rest;
    }
}

static struct mo_span text_of(struct mo_json v, struct mo_arena *a)
{
    struct mo_span s = {NULL, 0};

    if (mo_json_is(v, MO_JSON_STRING))
        expect(mo_json_str(v, a, &s) == 0);
    return s;
}

static void use(struct mo_json root, enum mo_script_language l)
{
    struct mo_script_tool tools[TOOLS_MAX];
    mo_autoarena struct mo_arena a = {.cap = TEXT_MAX};
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};
    struct mo_script_use u = {.language = l, .tools = tools};
    struct mo_jw w = mo_jw_object(&b);
    struct mo_json_doc doc;

    u.code = text_of(mo_json_get(root, "code"), &a);
    mo_json_each_while (it, mo_json_get(root, "tools"), u.n < TOOLS_MAX)
        tools[u.n++] = (struct mo_script_tool){
            .name = text_of(mo_json_get(it.val, "name"), &a),
            .server = text_of(mo_json_get(it.val, "server"), &a),
            .description = text_of(mo_json_get(it.val, "description"), &a),
            .input = mo_json_get(it.val, "inputSchema"),
            .output = mo_json_get(it.val, "outputSchema"),
        };
    mo_script_files(&w, &u);
    mo_jw_end(&w);
    expect(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) == 0);
    check(text_of(mo_json_get(doc.root, l == MO_SCRIPT_PYTHON ? "stubs.py"
                                                              : "tools.d.mts"),
                  &a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mo_json_doc doc;

    if (size > 65536 ||
        mo_json_parse(mo_span((const char *)data, size), 0, &doc, NULL) < 0)
        return 0;
    use(doc.root, MO_SCRIPT_PYTHON);
    use(doc.root, MO_SCRIPT_JAVASCRIPT);
    return 0;
}
