#include "people/share.h"

static const char *const names[] = {
    [MO_SHARE_NONE] = "none",
    [MO_SHARE_READ] = "read",
    [MO_SHARE_APPROVE] = "approve",
};

const char *mo_share_name(enum mo_share s)
{
    return names[s];
}

int mo_share_named(struct mo_json name)
{
    for (size_t i = 0; i < MO_COUNT(names); i++)
        if (mo_json_str_eq(name, mo_span_cstr(names[i])))
            return (int)i;
    return -1;
}

/* The list of the document; none if it cannot be read. */
static struct mo_json read_list(struct mo_span doc, struct mo_json_doc *d)
{
    if (!doc.n || mo_json_parse(doc, 0, d, NULL) < 0 ||
        !mo_json_is(d->root, MO_JSON_ARRAY))
        return (struct mo_json){NULL, 0};
    return d->root;
}

enum mo_share mo_share_of(struct mo_span doc, const struct mo_identity *who)
{
    struct mo_json_doc d;
    struct mo_json list = read_list(doc, &d);
    int most = MO_SHARE_NONE;

    if (!list.p)
        return MO_SHARE_NONE;
    mo_json_each (it, list) {
        mo_autobuf struct mo_buf with = {.max = 1024};
        int may = mo_share_named(mo_json_get(it.val, "may"));

        if (may > most &&
            mo_json_str_buf(mo_json_get(it.val, "with"), &with) == 0 &&
            mo_identity_is(who, mo_buf_view(&with)))
            most = may;
    }
    return (enum mo_share)most;
}

static void put_share(struct mo_jw *w, const struct mo_share_change *c)
{
    mo_jw_obj(w);
    mo_jw_member(w, "with", c->with);
    mo_jw_member_cstr(w, "may", names[c->may]);
    mo_jw_member_u64(w, "at", c->at);
    mo_jw_member_cstr(w, "by", c->by);
    mo_jw_end(w);
}

int mo_shares_change(struct mo_span doc, const struct mo_share_change *c,
                     struct mo_buf *out, struct mo_err *e)
{
    struct mo_json_doc d;
    struct mo_json list = read_list(doc, &d);
    bool was = false;
    size_t n = 0;
    struct mo_jw w;

    mo_jw_init(&w, out);
    mo_jw_arr(&w);
    if (list.p) {
        mo_json_each (it, list) {
            if (mo_json_str_eq(mo_json_get(it.val, "with"), c->with)) {
                was = true;
                continue;
            }
            mo_jw_raw(&w, mo_json_text(it.val));
            n++;
        }
    }
    if (c->may != MO_SHARE_NONE)
        put_share(&w, c);
    mo_jw_end(&w);
    if (c->may == MO_SHARE_NONE && !was)
        return mo_fail(e, MO_ENOTFOUND, "it is not shared with them");
    if (c->may != MO_SHARE_NONE && n >= MO_SHARES_MAX)
        return mo_fail(e, MO_EBUSY, "it is shared with %d already",
                       MO_SHARES_MAX);
    return mo_buf_err(out) ? mo_fail(e, MO_ENOMEM, "out of memory") : 0;
}
