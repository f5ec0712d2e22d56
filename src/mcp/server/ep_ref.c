#include "mcp/server/ep_ref.h"

#define FORM     "1" /* of the text in a seal */
#define BIND_MAX ((size_t)1024)

static void put_text(struct mo_buf *b, const char *s)
{
    (void)mo_buf_put(b, s, strlen(s) + 1);
}

static int put_bind(const struct mo_ep_ref *r, struct mo_buf *b)
{
    put_text(b, r->kind);
    put_text(b, r->view ? r->view : "");
    return mo_buf_span(b, r->caller);
}

int mo_ep_ref_put(const struct mo_ep_home *h, const struct mo_ep_ref *r,
                  struct mo_span own, struct mo_buf *out)
{
    mo_autobuf struct mo_buf bind = {.max = BIND_MAX};
    mo_autobuf struct mo_buf plain = {.max = MO_SEAL_MAX};
    int rc = put_bind(r, &bind);

    put_text(&plain, FORM);
    put_text(&plain, h->instance);
    (void)mo_buf_span(&plain, own);
    if (rc == 0)
        rc = mo_buf_err(&plain);
    if (rc == 0)
        rc = mo_seal_put_same(&h->seal, mo_buf_view(&bind), mo_buf_view(&plain),
                              out);
    return rc;
}

int mo_ep_ref_open(const struct mo_ep_home *h, const struct mo_ep_ref *r,
                   struct mo_span text, struct mo_buf *plain,
                   const char **instance, struct mo_span *own)
{
    mo_autobuf struct mo_buf bind = {.max = BIND_MAX};
    struct mo_span s;
    int rc = put_bind(r, &bind);

    if (rc == 0)
        rc = mo_seal_open(&h->seal, mo_buf_view(&bind), 0, text, plain);
    if (rc < 0)
        return rc;
    s = mo_buf_view(plain);
    if (!mo_span_is(mo_span_cut(&s, '\0'), FORM))
        return MO_EPROTO;
    *instance = mo_span_cut(&s, '\0').p;
    *own = s;
    return *instance && s.p ? 0 : MO_EPROTO;
}
