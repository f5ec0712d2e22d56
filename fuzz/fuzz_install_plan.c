/* A registry's server.json and the answer of npm or pip or a manifest,
 * separated by a newline.
 *
 * Beyond not crashing: a plan that is complete gives an entry that is valid
 * JSON with one thing to start, and its text has no control characters. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "install/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(const struct mo_install_plan *p)
{
    mo_autobuf struct mo_buf b = {.max = 4 << 20};
    struct mo_json_doc doc;

    mo_install_plan_entry(p, "/node", "/dir", &b);
    if (mo_buf_err(&b))
        return;
    if (mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) < 0 ||
        !mo_json_get(doc.root, "command").p +
                !mo_json_get(doc.root, "image").p +
                !mo_json_get(doc.root, "url").p !=
            2)
        abort();
}

static void check_text(const struct mo_install_plan *p)
{
    mo_autobuf struct mo_buf b = {.max = 4 << 20}, j = {.max = 4 << 20};
    struct mo_jw w;

    mo_install_plan_text(p, "/node", &b);
    for (size_t i = 0; !mo_buf_err(&b) && i < b.len; i++) {
        if ((unsigned char)b.p[i] < ' ' && b.p[i] != '\n')
            abort();
    }
    mo_jw_init(&w, &j);
    mo_install_plan_json(p, &w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const kinds[] = {NULL,   "npm", "pypi",
                                        "mcpb", "oci", "remote"};
    struct mo_span rest = {(const char *)data, size}, first;
    struct mo_json_doc server, view;
    struct mo_err e;

    first = mo_span_cut(&rest, '\n');
    if (mo_json_parse(first, 64, &server, NULL) < 0)
        return 0;
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        mo_autoplan struct mo_install_plan p = {.kind = MO_INSTALL_NPM};

        if (mo_install_plan_word(&p, MO_SPAN("io.github.a/b"), NULL, &e) < 0)
            abort();
        if (mo_install_plan_server(&p, server.root, kinds[i], &e) < 0)
            continue;
        if (p.kind == MO_INSTALL_NPM &&
            (!rest.p || mo_json_parse(rest, 64, &view, NULL) < 0 ||
             mo_install_plan_npm(&p, view.root, NULL, &e) < 0))
            continue;
        if (p.kind == MO_INSTALL_MCPB &&
            (!rest.p || mo_json_parse(rest, 64, &view, NULL) < 0 ||
             mo_install_plan_mcpb(&p, view.root, &e) < 0))
            continue;
        if (p.kind == MO_INSTALL_PYPI &&
            (!rest.p || mo_json_parse(rest, 64, &view, NULL) < 0 ||
             mo_install_plan_pypi(&p, view.root, NULL, &e) < 0))
            continue;
        mo_install_plan_judge(&p);
        if (mo_install_plan_check(&p, &e) == 0)
            check_entry(&p);
        check_text(&p);
    }
    return 0;
}
