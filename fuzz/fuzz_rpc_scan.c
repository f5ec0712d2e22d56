/* fuzz_rpc_scan.c - pieces must not matter, and a message that is good JSON has
 * the kind and id that mo_rpc_parse() finds. */
#include <stdlib.h>

#include "codec/rpc_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static bool scan(struct mo_rpc_scan *s, struct mo_span in, size_t step)
{
    bool ok = true;

    mo_rpc_scan_init(s);
    for (; in.n; in = mo_span_skip(in, step))
        ok = mo_rpc_scan_feed(s, mo_span_head(in, step));
    return ok;
}

static bool no_id(struct mo_json id)
{
    return mo_json_type(id) <= MO_JSON_NULL;
}

/* An id that is too long is refused, and so are a batch and many blanks. An
 * error object's members are not checked. */
static void compare(struct mo_span in, const struct mo_rpc *m,
                    enum mo_rpc_kind kind, struct mo_json id)
{
    bool plain = m->kind != MO_RPC_INVALID && m->kind != MO_RPC_BATCH &&
                 m->id.n <= MO_RPC_SCAN_TEXT &&
                 m->root.p - in.p <= MO_RPC_SCAN_TEXT;

    if (plain)
        must(kind == m->kind);
    else
        must(kind == MO_RPC_INVALID || kind == MO_RPC_ERROR);
    if (kind == MO_RPC_INVALID)
        must(!id.p);
    else
        must(no_id(m->id) ? !id.p
                          : mo_span_eq(mo_json_text(id), mo_json_text(m->id)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span in = mo_span((const char *)data, n);
    struct mo_rpc_scan whole, cut;
    struct mo_json id, cut_id;
    bool ok = scan(&whole, in, n ? n : 1);
    enum mo_rpc_kind kind = mo_rpc_scan_end(&whole, &id);
    struct mo_rpc m;

    must(ok || kind == MO_RPC_INVALID);
    for (size_t step = 1; step < n; step += 1 + step / 2) {
        must(scan(&cut, in, step) == ok);
        must(mo_rpc_scan_end(&cut, &cut_id) == kind);
        must(mo_span_eq(mo_json_text(cut_id), mo_json_text(id)));
    }
    if (mo_rpc_parse(in, &m, NULL) == 0)
        compare(in, &m, kind, id);
    return 0;
}
