#include "audit/audit_lookup.h"

#define CANDIDATES_MAX 3
#define ROW_MAX        ((size_t)64 * 1024)

static void put_hit(struct mo_jw *w, struct mo_json hit)
{
    static const char *const keys[] = {"server", "tool",    "confidence",
                                       "words",  "meaning", "reason"};

    mo_jw_obj(w);
    for (size_t i = 0; i < MO_COUNT(keys); i++) {
        struct mo_json v = mo_json_get(hit, keys[i]);

        if (v.p)
            mo_jw_member_raw(w, keys[i], mo_json_text(v));
    }
    mo_jw_end(w);
}

static void put_hits(struct mo_jw *w, const char *key, struct mo_json list)
{
    struct mo_json_iter it;
    struct mo_json no, hit;

    mo_jw_member_arr(w, key);
    mo_json_iter(&it, list);
    for (size_t i = 0; i < CANDIDATES_MAX && mo_json_next(&it, &no, &hit); i++)
        put_hit(w, hit);
    mo_jw_end(w);
}

void mo_audit_lookup(struct mo_audit *a, const struct mo_audit_lookup *l)
{
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf b = {.max = ROW_MAX};
    struct mo_jw w;

    if (mo_json_parse(l->answer, 0, &doc, NULL) < 0)
        return;
    w = mo_jw_object(&b);
    mo_jw_member_opt(&w, "kind", MO_SPAN("route"));
    mo_jw_member_opt(&w, "via", mo_span_cstr(l->via));
    mo_jw_member_opt(&w, "who", l->who);
    mo_jw_member_opt(&w, "words", l->words);
    put_hits(&w, "candidates", mo_json_get(doc.root, "results"));
    put_hits(&w, "ruledOut", mo_json_get(doc.root, "ruledOut"));
    mo_jw_member_bool(&w, "acted", false);
    mo_jw_member_opt(&w, "outcome", MO_SPAN("looked"));
    mo_jw_end(&w);
    if (!mo_buf_err(&b))
        mo_audit_note(a, mo_span(b.p + 1, b.len - 2));
}
