/* A conversation from a file (agent/chat/imported.h). Beyond not crashing: what
 * is accepted, written as an export again, is accepted again with the same
 * number of entries, and its last turn is over. */
#include <stdlib.h>

#include "agent/chat/imported.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_file(const struct mo_imported *im, struct mo_buf *file)
{
    struct mo_jw w = mo_jw_object(file);

    mo_jw_member_cstr(&w, "format", MO_EXPORT_FORMAT);
    mo_jw_member_u64(&w, "version", MO_EXPORT_VERSION);
    mo_jw_member_arr(&w, "entries");
    for (size_t i = 0; i < mo_imported_count(im); i++) {
        mo_autobuf struct mo_buf doc = {.max = MO_STORE_DOC_MAX};
        mo_autobuf struct mo_buf shown = {.max = MO_STORE_DOC_MAX};
        struct mo_json_doc parsed;

        mo_imported_put(im, i, MO_SPAN("ann"), &doc);
        if (mo_json_parse(mo_buf_view(&doc), 0, &parsed, NULL) < 0)
            abort();
        mo_entry_public(&shown, parsed.root, i + 1, 1);
        mo_jw_raw(&w, mo_buf_view(&shown));
    }
    mo_jw_end_all(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mo_autobuf struct mo_buf file = {.max = MO_IMPORTED_MAX};
    struct mo_imported im, again;
    struct mo_err e;

    if (mo_imported_read(mo_span((const char *)data, size), &im, &e) == 0) {
        put_file(&im, &file);
        if (mo_imported_read(mo_buf_view(&file), &again, &e) < 0 ||
            again.n != mo_imported_count(&im) || again.nclosing)
            abort();
        mo_imported_fini(&again);
    }
    mo_imported_fini(&im);
    return 0;
}
