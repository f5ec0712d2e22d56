/* call_approval_shown.c - what a person is shown of a call that waits, as a
 * digest, and what they may put in its place: other arguments.
 *
 * Those are held against the tool's schema as it is now, and what will run is
 * what they say: the flight carries them, whoever the call goes to. */
#include "gateway/call/call_approval_priv.h"

#include <stdio.h>

#include "codec/sha256.h"

int mo_call_approval_shown(const struct forwarded_call *f,
                           const struct call_target *t,
                           char out[MO_EXACT_DIGEST])
{
    struct mo_exact_call what = {
        .session = mo_span_cstr(f->who),
        .server = mo_span_cstr(mo_upstream_server(t->slot->up)->name),
        .tool = t->own,
    };
    char def[MO_EXACT_DIGEST];
    mo_autobuf struct mo_buf exact = {.max = MO_EXACT_MAX};
    struct mo_err e;
    int rc;

    rc = mo_exact_args(mo_rewrite_args(f->down, t), &exact, &e);
    mo_sha256_hex(mo_json_text(t->item), def);
    what.args = mo_buf_view(&exact);
    what.tool_digest = def;
    if (rc == 0)
        mo_exact_call(&what, out);
    return rc;
}

bool mo_call_approval_is_same(const struct call_approval *j,
                              const struct call_target *t)
{
    char now[MO_EXACT_DIGEST];

    if (!mo_span_eq(j->pub.tool, t->own))
        return false;
    return !j->shown[0] || (mo_call_approval_shown(j->f, t, now) == 0 &&
                            strcmp(now, j->shown) == 0);
}

void mo_call_approval_digest(struct mo_json args, char out[MO_EXACT_DIGEST])
{
    mo_sha256_hex(args.p ? mo_json_text(args) : MO_SPAN("{}"), out);
}

/* --- other arguments ----------------------------------------------------- */

/* The edited arguments are the pending ones from now on. */
static int take(struct call_approval *j, struct call_target *t,
                struct mo_span args, struct mo_err *e)
{
    char shown[MO_EXACT_DIGEST];
    struct mo_buf kept;

    mo_buf_init(&kept, MO_EXACT_MAX);
    if (mo_buf_span(&kept, args) < 0)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    t->edited = (struct mo_json){kept.p, kept.len};
    if (mo_call_approval_shown(j->f, t, shown) < 0) {
        mo_buf_fini(&kept);
        return mo_fail(e, MO_ENOMEM, "out of memory");
    }
    mo_buf_fini(&j->f->edited);
    j->f->edited = kept;
    memcpy(j->shown, shown, sizeof(shown));
    if (!j->pub.before[0])
        memcpy(j->pub.before, j->pub.digest, sizeof(j->pub.before));
    mo_call_approval_digest(t->edited, j->pub.digest);
    j->pub.args_bytes = args.n;
    return 0;
}

int mo_call_approval_edit(struct mo_gw_case *k, struct mo_span args,
                          struct mo_err *e)
{
    struct call_approval *j = call_approval_of(k);
    struct mo_json_doc doc;
    struct call_target t;
    int rc;

    if (j->state != WAITS || k->by_client)
        return mo_fail(e, MO_ENOTFOUND, "it is decided already");
    if (mo_json_parse(args, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "arguments are one JSON object");
    if (mo_rewrite_target(j->f->g, j->f->down, &t) < 0)
        return mo_fail(e, MO_EPOLICY, "the tool is not there any more");
    t.edited = (struct mo_json){j->f->edited.p, j->f->edited.len};
    if (!mo_call_approval_is_same(j, &t))
        return mo_fail(e, MO_EPOLICY,
                       "the call is not what was shown; look at it again");
    rc = mo_exact_fits(mo_json_get(t.item, "inputSchema"), doc.root, e);
    return rc < 0 ? rc : take(j, &t, args, e);
}

bool mo_call_approval_fits(struct call_approval *j, const struct call_target *t)
{
    struct mo_json args = mo_rewrite_args(j->f->down, t);
    struct mo_err e;

    if (mo_exact_fits(mo_json_get(t->item, "inputSchema"),
                      args.p ? args : (struct mo_json){"{}", 2}, &e) == 0)
        return true;
    (void)snprintf(j->pub.reason, sizeof(j->pub.reason),
                   "%.*s stands in for its server, and %s",
                   (int)j->pub.server.n, j->pub.server.p, e.msg);
    return false;
}
