#include "mcp/script/files.h"

#include <stdio.h>

#define MENTIONED_MAX 64
#define NAME_BYTES    256 /* bytes of a name that is declared */
#define TEXTS_MAX     ((size_t)256 * 1024)

/* data/script */
extern const char mo_helper_tools_py[], mo_helper_tools_py_end[];
extern const char mo_helper_tools_mjs[], mo_helper_tools_mjs_end[];
extern const char mo_helper_tools_shared_py[], mo_helper_tools_shared_py_end[];

struct mo_span mo_script_library(enum mo_script_language l)
{
    return l == MO_SCRIPT_PYTHON
               ? mo_span(mo_helper_tools_py,
                         (size_t)(mo_helper_tools_py_end - mo_helper_tools_py))
               : mo_span(mo_helper_tools_mjs, (size_t)(mo_helper_tools_mjs_end -
                                                       mo_helper_tools_mjs));
}

bool mo_script_own_identifier(const struct mo_script_use *u, size_t i,
                              char out[MO_SCRIPT_ID_MAX])
{
    char other[MO_SCRIPT_ID_MAX];

    mo_script_identifier(u->tools[i].name, out);
    for (size_t k = 0; out[0] && k < u->n; k++) {
        if (k == i)
            continue;
        mo_script_identifier(u->tools[k].name, other);
        if (strcmp(out, other) == 0)
            out[0] = '\0';
    }
    return out[0] != '\0';
}

/* "server_tool", if no tool has this name. False: it cannot be used. */
static bool server_identifier(const struct mo_script_use *u, size_t i,
                              char out[MO_SCRIPT_ID_MAX])
{
    char server[MO_SCRIPT_ID_MAX], tool[MO_SCRIPT_ID_MAX];
    char other[MO_SCRIPT_ID_MAX];
    int n;

    mo_script_identifier(u->tools[i].server, server);
    mo_script_identifier(u->tools[i].name, tool);
    if (!server[0] || !tool[0] ||
        (strncmp(tool, server, strlen(server)) == 0 &&
         tool[strlen(server)] == '_')) /* it is in the name already */
        return false;
    n = snprintf(out, MO_SCRIPT_ID_MAX, "%s_%s", server, tool);
    if (n < 0 || n >= MO_SCRIPT_ID_MAX)
        return false;
    for (size_t k = 0; k < u->n; k++) {
        mo_script_identifier(u->tools[k].name, other);
        if (strcmp(out, other) == 0)
            return false;
    }
    return true;
}

struct texts {
    const struct mo_script_use *u;
    struct mo_jw names;
    struct mo_buf list, types, stubs;
    size_t count, left_out;
};

static void add_tool(struct texts *t, size_t i)
{
    const struct mo_script_tool *tool = &t->u->tools[i];
    char id[MO_SCRIPT_ID_MAX], by_server[MO_SCRIPT_ID_MAX];
    bool python = t->u->language == MO_SCRIPT_PYTHON;

    if (t->count == MENTIONED_MAX || tool->name.n > NAME_BYTES ||
        t->types.len + t->stubs.len > TEXTS_MAX) {
        t->left_out++;
        return;
    }
    t->count++;
    if (mo_script_own_identifier(t->u, i, id) && !mo_span_is(tool->name, id))
        mo_jw_member(&t->names, id, tool->name);
    if (server_identifier(t->u, i, by_server))
        mo_jw_member(&t->names, by_server, tool->name);
    mo_stub_put(tool, id, t->u->language, python ? &t->types : NULL, &t->stubs);
}

static void put_stubs(struct mo_jw *w, struct texts *t)
{
    enum mo_script_language l = t->u->language;
    mo_autobuf struct mo_buf all = {.max = 4 * TEXTS_MAX};

    mo_stubs_head(l, &all);
    mo_buf_span(&all, mo_buf_view(&t->types));
    if (l == MO_SCRIPT_PYTHON && t->stubs.len)
        mo_buf_putc(&all, '\n');
    mo_buf_span(&all, mo_buf_view(&t->stubs));
    if (t->left_out)
        mo_buf_printf(&all, "%s %zu more tools are not declared here\n",
                      l == MO_SCRIPT_PYTHON ? "#" : "  //", t->left_out);
    mo_stubs_tail(l, &all);
    mo_buf_pass_err(&all, &t->types);
    mo_buf_pass_err(&all, &t->stubs);
    mo_jw_key(w, l == MO_SCRIPT_PYTHON ? "stubs.py" : "tools.d.mts");
    mo_jw_buf(w, &all);
}

static void put_library(struct mo_jw *w, enum mo_script_language l)
{
    bool python = l == MO_SCRIPT_PYTHON;

    mo_jw_member(w, python ? "tools.py" : "tools.mjs", mo_script_library(l));
    if (python)
        mo_jw_member(w, "tools_shared.py",
                     mo_span(mo_helper_tools_shared_py,
                             (size_t)(mo_helper_tools_shared_py_end -
                                      mo_helper_tools_shared_py)));
}

void mo_script_files(struct mo_jw *w, const struct mo_script_use *u)
{
    struct texts t = {.u = u};

    mo_buf_init(&t.list, TEXTS_MAX);
    mo_buf_init(&t.types, 2 * TEXTS_MAX);
    mo_buf_init(&t.stubs, 2 * TEXTS_MAX);
    t.names = mo_jw_object(&t.list);
    for (size_t i = 0; i < u->n; i++) {
        if (mo_script_mentions(u->code, u->tools[i].name))
            add_tool(&t, i);
    }
    mo_jw_end(&t.names);
    put_library(w, u->language);
    mo_jw_key(w, "names.json");
    mo_jw_buf(w, &t.list);
    put_stubs(w, &t);
    mo_buf_fini(&t.list);
    mo_buf_fini(&t.types);
    mo_buf_fini(&t.stubs);
}

void mo_script_put_files_of(struct mo_jw *w, struct mo_json args,
                            size_t code_max, struct mo_script_use u)
{
    mo_autobuf struct mo_buf code = {.max = code_max};

    u.language =
        mo_json_str_eq(mo_json_get(args, "language"), MO_SPAN("javascript"))
            ? MO_SCRIPT_JAVASCRIPT
            : MO_SCRIPT_PYTHON;
    if (mo_json_str_buf(mo_json_get(args, "code"), &code) < 0)
        mo_buf_reset(&code);
    u.code = mo_buf_view(&code);
    mo_jw_member_obj(w, "files");
    mo_script_files(w, &u);
    mo_jw_end(w);
}
