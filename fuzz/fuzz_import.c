/* Other programs' configuration files, with comments and all.
 *
 * Beyond not crashing: what is taken over is an object with one thing to start,
 * can be put into a file of ours and taken out of it again, and equals itself;
 * what is not has a reason. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "config/json_edit.h"
#include "servers/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void there_and_back(const struct mo_import_server *s)
{
    static const char ours[] = "{\n\t\"log\": {\"level\": \"info\"}\n}\n";
    const char *path[] = {"mcpServers", s->name, NULL};
    const char *outer[] = {"mcpServers", NULL};
    struct mo_buf with, without;
    struct mo_json_doc doc;

    mo_buf_init(&with, 16 << 20);
    mo_buf_init(&without, 16 << 20);
    if (mo_json_edit_set(mo_span_cstr(ours), path, mo_json_text(s->json), &with,
                         NULL) < 0 ||
        mo_json_parse(mo_buf_view(&with), 0, &doc, NULL) < 0 ||
        !mo_import_same(
            mo_json_get(mo_json_get(doc.root, "mcpServers"), s->name),
            s->json) ||
        mo_json_edit_del(mo_buf_view(&with), outer, &without, NULL) < 0 ||
        !mo_span_is(mo_buf_view(&without), ours))
        abort();
    mo_buf_fini(&with);
    mo_buf_fini(&without);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mo_span text = {(const char *)data, size};
    struct mo_import_opts o = {.home = "/home/me", .store = size % 2};
    struct mo_err e = {0};
    struct mo_import im;
    struct mo_arena a;

    mo_arena_init(&a, MO_IMPORT_ARENA_MAX);
    if (mo_import_read(&a, text, &o, &im, &e) == 0) {
        for (size_t i = 0; i < im.n; i++) {
            if ((im.v[i].cannot[0] == '\0') != (im.v[i].json.p != NULL))
                abort();
            if (im.v[i].json.p)
                there_and_back(&im.v[i]);
        }
        mo_import_wipe(&im);
    } else if (e.code == 0) {
        abort();
    }
    mo_arena_fini(&a);
    return 0;
}
