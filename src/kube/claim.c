/* claim.c - a claim for the files of a box; see claim.h. */
#include "kube/claim.h"

#include <stdio.h>

#define MIB       ((uint64_t)1024 * 1024)
#define SHOWN_MAX 110 /* of the cluster's own words */

/* --- writing ------------------------------------------------------------- */

static void put_pairs(struct mo_jw *w, const char *key,
                      const struct mo_pod_pair *v, size_t n)
{
    mo_jw_member_obj(w, key);
    for (size_t i = 0; i < n; i++)
        mo_jw_member_cstr(w, v[i].key, v[i].value);
    mo_jw_end(w);
}

/* One node at a time may use it: a session has one box. */
int mo_claim_write(const struct mo_claim *c, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);
    char size[32];

    (void)snprintf(size, sizeof(size), "%lluMi",
                   (unsigned long long)((c->size + MIB - 1) / MIB));
    mo_jw_member_cstr(&w, "apiVersion", "v1");
    mo_jw_member_cstr(&w, "kind", "PersistentVolumeClaim");
    mo_jw_member_obj(&w, "metadata");
    mo_jw_member_cstr(&w, "name", c->name);
    put_pairs(&w, "labels", c->labels, c->nlabels);
    put_pairs(&w, "annotations", c->annotations, c->nannotations);
    mo_jw_end(&w);
    mo_jw_member_obj(&w, "spec");
    mo_jw_member_raw(&w, "accessModes", MO_SPAN("[\"ReadWriteOnce\"]"));
    if (c->storage_class && *c->storage_class)
        mo_jw_member_cstr(&w, "storageClassName", c->storage_class);
    mo_jw_member_obj(&w, "resources");
    mo_jw_member_obj(&w, "requests");
    mo_jw_member_cstr(&w, "storage", size);
    mo_jw_end_all(&w);
    return mo_buf_err(b);
}

/* --- why it has no volume ------------------------------------------------ */

/* The scheduler's words, and ours. */
static const struct {
    const char *said, *plain;
} placings[] = {
    {"volume node affinity conflict",
     "its volume belongs to a node that cannot take the pod"},
    {"find available persistent volumes to bind",
     "no node has a free volume of its class and size"},
    {"unbound immediate PersistentVolumeClaims", "it has no volume yet"},
    {"persistentvolumeclaim", "it cannot be used"},
    {"exceed max volume count", "the nodes cannot take one more volume"},
};

static const char *plain_placing(const char *said)
{
    for (size_t i = 0; i < MO_COUNT(placings); i++)
        if (strstr(said, placings[i].said))
            return placings[i].plain;
    return NULL;
}

bool mo_claim_is_meant(const char *placing)
{
    return plain_placing(placing) != NULL;
}

/* The newest event of type Warning, or FailedBinding, which is Normal. Times
 * are texts of one form, so they compare as texts. */
static struct mo_json newest(struct mo_json events)
{
    struct mo_json best = {NULL, 0};
    char last[40] = "", at_text[40];

    mo_json_each (at, mo_json_get(events, "items")) {
        struct mo_json time = mo_json_get(at.val, "lastTimestamp");

        if (!mo_json_str_eq(mo_json_get(at.val, "type"), MO_SPAN("Warning")) &&
            !mo_json_str_eq(mo_json_get(at.val, "reason"),
                            MO_SPAN("FailedBinding")))
            continue;
        at_text[0] = '\0';
        (void)mo_json_str_copy(time, at_text, sizeof(at_text));
        if (best.p && strcmp(at_text, last) < 0)
            continue;
        best = at.val;
        (void)snprintf(last, sizeof(last), "%s", at_text);
    }
    return best;
}

static void explain_event(struct mo_json event, struct mo_claim_trouble *t)
{
    struct mo_json reason = mo_json_get(event, "reason");
    mo_autobuf struct mo_buf said = {.max = 4096};

    (void)mo_json_str_buf(mo_json_get(event, "message"), &said);
    if (mo_json_str_eq(reason, MO_SPAN("FailedBinding"))) {
        t->hopeless = true;
        (void)snprintf(t->why, sizeof(t->why),
                       "the cluster has no default StorageClass, and no free "
                       "volume without one: set "
                       "'sandbox.kubernetes.storageClass'");
        return;
    }
    t->hopeless = mo_json_str_eq(reason, MO_SPAN("ProvisioningFailed"));
    if (t->hopeless && strstr(mo_buf_cstr(&said), "no volume plugin matched"))
        (void)snprintf(t->why, sizeof(t->why),
                       "its StorageClass makes no volumes, and none of those "
                       "that exist is free and large enough");
    else if (t->hopeless && strstr(mo_buf_cstr(&said), "not found"))
        (void)snprintf(t->why, sizeof(t->why),
                       "there is no such StorageClass, and no free volume "
                       "that names it: %.*s",
                       SHOWN_MAX, mo_buf_cstr(&said));
    else
        (void)snprintf(t->why, sizeof(t->why), "%.*s", SHOWN_MAX,
                       mo_buf_cstr(&said));
}

void mo_claim_explain(struct mo_json events, const char *placing,
                      struct mo_claim_trouble *out)
{
    struct mo_json event = newest(events);
    const char *plain = plain_placing(placing);

    *out = (struct mo_claim_trouble){.hopeless = false};
    if (event.p)
        explain_event(event, out);
    else if (plain)
        (void)snprintf(out->why, sizeof(out->why), "%s (%.*s)", plain,
                       SHOWN_MAX, placing);
    else
        (void)snprintf(out->why, sizeof(out->why), "%s",
                       *placing ? placing : "no reason is known");
}
