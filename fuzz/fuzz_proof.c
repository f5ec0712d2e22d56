/* Claims and proofs of tokens that are bound to a key.
 *
 * The first byte chooses: any text as the header DPoP, or a header and claims
 * (cut at the first line end) in the form of one. Whatever it is, nobody proves
 * a key that nobody has. */
#include <stdlib.h>

#include "codec/text/base64.h"
#include "people/proof.h"

#define JKT "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
#define NOW 1700000000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check(struct mo_span text)
{
    const struct mo_proof in = {
        .sent = true,
        .text = text,
        .method = MO_SPAN("POST"),
        .path = MO_SPAN("/mcp"),
        .token = MO_SPAN("t"),
        .url = "https://mo.example",
        .now_s = NOW,
    };
    struct mo_proofs seen;

    mo_proofs_init(&seen);
    must(mo_proof_check(&seen, &in, JKT, NULL) == MO_EPOLICY);
    must(seen.now.len == 0);
    mo_proofs_fini(&seen);
}

/* Parts in the clear, so that the fuzzer sees them. */
static void check_parts(struct mo_span in)
{
    struct mo_span head = mo_span_cut(&in, '\n');
    mo_autobuf struct mo_buf b = {.max = 65536};

    (void)mo_base64url_put(&b, head);
    (void)mo_buf_putc(&b, '.');
    (void)mo_base64url_put(&b, in);
    (void)mo_buf_puts(&b, ".c2ln");
    if (!mo_buf_err(&b))
        check(mo_buf_view(&b));
}

static void check_binding(struct mo_span in)
{
    char jkt[MO_PROOF_JKT + 1];
    struct mo_json_doc doc;

    if (mo_json_parse(in, 0, &doc, NULL) < 0 ||
        mo_proof_binding(doc.root, jkt, NULL) < 0)
        return;
    must(strlen(jkt) == (mo_json_get(doc.root, "cnf").p ? MO_PROOF_JKT : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct mo_span) = {check, check_parts,
                                                      check_binding};

    if (size > 0)
        readers[data[0] % MO_COUNT(readers)](
            mo_span((const char *)data + 1, size - 1));
    return 0;
}
