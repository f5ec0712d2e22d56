/* fuzz_jschema.c - any schema over any value: the input is two JSON texts
 * with a NUL between them. What is promised: it ends, a verdict agrees with
 * its errors, texts are UTF-8 of one line, and the same value under
 * {"not": schema} gets the opposite verdict or a note. */
#include <stdlib.h>

#include "codec/json/jschema.h"
#include "codec/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check_text(const char *s)
{
    must(mo_utf8_valid(mo_span_cstr(s)));
    must(!strchr(s, '\n'));
}

/* Local references start from the root, so the text goes in as it is only
 * when it has none. */
static void check_opposite(struct mo_span schema, struct mo_json value,
                           const struct mo_jschema_result *r)
{
    static struct mo_jschema_result opposite;
    struct mo_json_doc doc;
    struct mo_buf b;

    mo_buf_init(&b, 1 << 20);
    mo_buf_puts(&b, "{\"not\":");
    mo_buf_span(&b, schema);
    mo_buf_puts(&b, "}");
    if (mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) == 0 &&
        mo_jschema_check(doc.root, value, NULL, &opposite, NULL) == 0 &&
        !(opposite.notes | r->notes))
        must(opposite.valid != r->valid);
    mo_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct mo_jschema_result r;
    struct mo_span rest = mo_span((const char *)data, n);
    struct mo_span schema = mo_span_cut(&rest, '\0');
    struct mo_jschema_opts o = {.steps = 20000};
    struct mo_json_doc s, v;
    int rc;

    if (n > 65536 || !rest.p || mo_json_parse(schema, 0, &s, NULL) < 0 ||
        mo_json_parse(rest, 0, &v, NULL) < 0)
        return 0;
    rc = mo_jschema_check(s.root, v.root, &o, &r, NULL);
    must(rc == 0 || rc == MO_ETOOBIG);
    must(rc || r.valid == (r.nerrors == 0));
    must(r.steps <= o.steps);
    for (size_t i = 0; i < r.nerrors && i < MO_JSCHEMA_ERRORS_MAX; i++) {
        check_text(r.errors[i].path);
        check_text(r.errors[i].text);
    }
    if (rc == 0 && mo_span_search(schema, MO_SPAN("ref")) < 0 &&
        mo_span_search(schema, MO_SPAN("\\")) < 0)
        check_opposite(schema, v.root, &r);
    return 0;
}
