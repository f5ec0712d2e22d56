/* fuzz_mirror.c - any schema over any arguments: the input is two JSON texts
 * with a NUL between them. What is promised: it ends, what it makes are
 * tokens that differ, and no arguments make a bad schema good. */
#include <stdlib.h>

#include "mcp/client/mirror.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check_names(const struct mo_mirror *m)
{
    must(m->n <= MO_LINK_HTTP_PARAMS);
    for (size_t i = 0; i < m->n; i++) {
        struct mo_span name = m->v[i].name;

        must(name.n > 0 && name.n <= MO_MIRROR_NAME_MAX && m->v[i].value.p);
        for (size_t j = 0; j < name.n; j++)
            must(name.p[j] > 0x20 && name.p[j] < 0x7f && name.p[j] != ':');
        for (size_t j = 0; j < i; j++)
            must(!mo_span_ieq(name, m->v[j].name));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct mo_json none = {NULL, 0};
    struct mo_span rest = mo_span((const char *)data, n);
    struct mo_span schema = mo_span_cut(&rest, '\0');
    struct mo_json_doc s, v;
    struct mo_mirror m;
    int alone, rc;

    if (n > 16384 || !rest.p || mo_json_parse(schema, 0, &s, NULL) < 0 ||
        mo_json_parse(rest, 0, &v, NULL) < 0)
        return 0;
    alone = mo_mirror_init(&m, s.root, none, NULL);
    must(m.n == 0);
    mo_mirror_fini(&m);
    rc = mo_mirror_init(&m, s.root, v.root, NULL);
    must(rc == 0 || rc == MO_EPROTO);
    must(rc == 0 ? alone == 0 : true); /* looking up may add a refusal */
    check_names(&m);
    mo_mirror_fini(&m);
    return 0;
}
