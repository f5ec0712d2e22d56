/* kube_label.c - the annotations of a warm box that a session has taken.
 *
 * Taking a warm box sends nothing to the cluster. Its pod is told whose it is
 * LABEL_MS later, together with all others taken meanwhile. Nothing depends on
 * it: the store knows which box and which claim a session has, and those
 * without the label are found by their name. So a failure is logged once and
 * not repeated. */
#include <stdio.h>

#include "box/kube_priv.h"

#define LABEL_MS 500

static void on_labelled(void *ctx, const struct mo_kube_reply *r,
                        const struct mo_err *why)
{
    struct kb *d = ctx;

    (void)r;
    if (!why || why->code != MO_EPOLICY || d->no_labels)
        return;
    d->no_labels = true;
    mo_log_err(mo_loop_log(d->bs.loop), MO_INFO, "box", why,
               "pods of warm boxes do not show their session");
}

static void put_labels(const struct kb_box *b, struct mo_buf *body)
{
    char expires[24];
    struct mo_jw w = mo_jw_object(body);

    (void)snprintf(expires, sizeof(expires), "%llu",
                   (unsigned long long)b->spec.expires);
    mo_jw_member_obj(&w, "metadata");
    mo_jw_member_cstr(&w, "uid", b->uid); /* only this pod */
    mo_jw_member_obj(&w, "annotations");
    mo_jw_member_cstr(&w, "mo.session", b->spec.session ? b->spec.session : "");
    mo_jw_member_cstr(&w, "mo.expires", expires);
    mo_jw_member_cstr(&w, "mo.warm", "0");
    mo_jw_end_all(&w);
}

static void on_claim_labelled(void *ctx, const struct mo_kube_reply *r,
                              const struct mo_err *why)
{
    struct kb *d = ctx;

    (void)r;
    if (!why || why->code != MO_EPOLICY || d->no_claim_labels)
        return;
    d->no_claim_labels = true;
    mo_log_err(mo_loop_log(d->bs.loop), MO_INFO, "box", why,
               "claims of warm boxes do not show their session");
}

static void label_claim(struct kb *d, const struct kb_box *b)
{
    mo_autobuf struct mo_buf body = {.max = KB_BODY_MAX};
    char path[MO_KUBE_PATH_MAX];
    struct mo_kube_req req = {.method = "PATCH", .path = path, .once = true};
    struct mo_jw w = mo_jw_object(&body);

    mo_jw_member_obj(&w, "metadata");
    mo_jw_member_obj(&w, "annotations");
    mo_jw_member_cstr(&w, "mo.session", b->spec.session ? b->spec.session : "");
    mo_jw_end_all(&w);
    (void)snprintf(path, sizeof(path),
                   "/api/v1/namespaces/%s/persistentvolumeclaims/%s", d->ns,
                   b->b.files);
    req.body = mo_buf_view(&body);
    if (!mo_buf_err(&body))
        (void)mo_kube_ask(d->api, &req, on_claim_labelled, d, NULL, NULL);
}

static void label_box(struct kb *d, struct kb_box *b)
{
    mo_autobuf struct mo_buf body = {.max = KB_BODY_MAX};
    char path[MO_KUBE_PATH_MAX];
    struct mo_kube_req req = {.method = "PATCH", .path = path, .once = true};
    struct mo_err e;

    put_labels(b, &body);
    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", d->ns,
                   b->name);
    req.body = mo_buf_view(&body);
    if (!mo_buf_err(&body))
        (void)mo_kube_ask(d->api, &req, on_labelled, d, NULL, &e);
}

static void on_relabel(struct mo_timer *t)
{
    struct kb *d = mo_container_of(t, struct kb, relabel);

    mo_list_each_entry (b, &d->bs.boxes, struct kb_box, b.node) {
        if (b->taken && b->step == KB_UP && !d->no_labels)
            label_box(d, b);
        if (b->taken && b->step == KB_UP && b->b.files[0] &&
            !d->no_claim_labels)
            label_claim(d, b);
        b->taken = false;
    }
}

void mo_kb_label_setup(struct kb *d)
{
    mo_timer_init(&d->relabel, on_relabel);
}

void mo_kbox_claim(struct mo_box *box, const struct mo_box_spec *spec)
{
    struct kb_box *b = mo_kbox_of(box);
    struct kb *d = mo_kb_of_box(b);
    const char *session = spec->session ? spec->session : "";

    mo_box_net_claim(&b->net.net, spec);
    b->warm = false;
    b->owned = true;
    b->spec.expires = spec->expires;
    b->spec.session = mo_arena_strndup(&b->arena, session, strlen(session));
    b->taken = true;
    if (!mo_timer_on(&d->relabel))
        mo_timer_start(d->bs.loop, &d->relabel, LABEL_MS);
}
