/* fuzz_definition.c - any list of definitions: the first byte is the kind, the
 * rest a JSON array. What is promised: the mended list is JSON, has no more
 * items, and needs no further mending; a right list is not touched. */
#include <stdlib.h>

#include "mcp/definition.h"

#define TEXT_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    enum mo_definition_kind kind = MO_DEFINITION_TOOL;
    struct mo_definition_notes notes = {.nmended = 0}, more = {.nmended = 0};
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX}, again = {.max = TEXT_MAX};
    struct mo_json_doc doc, mended;
    struct mo_json got;

    if (n < 1 || n > 16384)
        return 0;
    kind = (enum mo_definition_kind)(data[0] % MO_DEFINITION_KINDS);
    if (mo_json_parse(mo_span((const char *)data + 1, n - 1), 0, &doc, NULL) <
            0 ||
        !mo_json_is(doc.root, MO_JSON_ARRAY))
        return 0;
    got = mo_definition_mend(kind, doc.root, &b, &notes);
    must(got.p != NULL);
    must((got.p == doc.root.p) == (notes.nmended + notes.nleft_out == 0));
    must(mo_json_len(got) + notes.nleft_out == mo_json_len(doc.root));
    must(mo_json_parse(mo_json_text(got), 0, &mended, NULL) == 0);
    got = mo_definition_mend(kind, mended.root, &again, &more);
    must(got.p == mended.root.p && more.nmended + more.nleft_out == 0);
    return 0;
}
