/* list.c - the objects of a namespace with a label, in parts; see list.h. */
#include "kube/list.h"

#include <stdio.h>

#include "codec/http/url.h"

int mo_kube_list_path(char out[MO_KUBE_PATH_MAX], const char *ns,
                      const char *kind, const char *selector, const char *place,
                      struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_KUBE_PATH_MAX - 1};

    (void)mo_buf_printf(&b,
                        "/api/v1/namespaces/%s/%s?labelSelector=%s&limit=%d",
                        ns, kind, selector, MO_KUBE_PART);
    if (place[0]) {
        (void)mo_buf_puts(&b, "&continue=");
        (void)mo_pct_encode(&b, mo_span_cstr(place));
    }
    if (mo_buf_err(&b))
        return mo_fail(e, mo_buf_err(&b), "list of %s", kind);
    (void)snprintf(out, MO_KUBE_PATH_MAX, "%s", mo_buf_cstr(&b));
    return 0;
}

int mo_kube_list_place(struct mo_json answer, char out[MO_KUBE_PLACE_MAX],
                       struct mo_err *e)
{
    struct mo_json place =
        mo_json_get(mo_json_get(answer, "metadata"), "continue");

    out[0] = '\0';
    if (!mo_json_is(place, MO_JSON_STRING))
        return 0;
    if (mo_json_str_copy(place, out, MO_KUBE_PLACE_MAX) == 0)
        return 0;
    out[0] = '\0';
    return mo_fail(e, MO_ETOOBIG,
                   "the cluster's place in a list is longer than %d bytes",
                   MO_KUBE_PLACE_MAX - 1);
}
