/* stubs_driver.c - mcp/script as a filter: a line with one JSON object
 * {"language", "code", "tools": [definitions with "server"]} in, the files
 * beside the script as one JSON object out. */
#include <stdio.h>
#include <stdlib.h>

#include "mcp/script/files.h"

#define TOOLS_MAX 2000

static struct mo_span text_of(struct mo_json v, struct mo_arena *a)
{
    struct mo_span s = {NULL, 0};

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str(v, a, &s) < 0)
        abort();
    return s;
}

static void answer(struct mo_json root)
{
    static struct mo_script_tool tools[TOOLS_MAX];
    mo_autoarena struct mo_arena a = {.cap = (size_t)64 << 20};
    mo_autobuf struct mo_buf b = {.max = (size_t)16 << 20};
    struct mo_script_use u = {.tools = tools};
    struct mo_jw w = mo_jw_object(&b);

    u.language =
        mo_json_str_eq(mo_json_get(root, "language"), MO_SPAN("python"))
            ? MO_SCRIPT_PYTHON
            : MO_SCRIPT_JAVASCRIPT;
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
    puts(mo_buf_cstr(&b));
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n = getline(&line, &room, stdin);

    while (n > 0) {
        struct mo_json_doc doc;

        if (mo_json_parse(mo_span(line, (size_t)n), 0, &doc, NULL) == 0)
            answer(doc.root);
        else
            puts("not-json");
        (void)fflush(stdout);
        n = getline(&line, &room, stdin);
    }
    free(line);
    return 0;
}
