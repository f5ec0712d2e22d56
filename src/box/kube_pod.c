/* kube_pod.c - makes a pod's description from a spec. */
#include <stdio.h>

#include "base/clock.h"
#include "base/rand.h"
#include "box/box_trust.h"
#include "box/kube_priv.h"
#include "codec/ca_files.h"
#include "codec/sha256.h"

#define TOOLBOX     "/toolbox"
#define LAUNCHER    "/mo-box"
#define LABELS      3
#define ANNOTATIONS 9
#define NUMBER_MAX  24
#define HOLD_WORDS  8 /* before the command itself */

void mo_kb_label(const char *text, char out[KB_LABEL_MAX])
{
    struct mo_span s = mo_span_cstr(text ? text : "");
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;

    if (s.n > 0 && s.n < KB_LABEL_MAX && mo_span_only(s, MO_ALNUM)) {
        memcpy(out, s.p, s.n);
        out[s.n] = '\0';
        return;
    }
    mo_sha256_init(&h);
    mo_sha256_put(&h, s.p, s.n);
    mo_sha256_end(&h, sum);
    mo_hex(sum, 20, out);
}

bool mo_kb_is_ours(const struct kb *d, struct mo_json object, const char *role)
{
    struct mo_json labels =
        mo_json_get(mo_json_get(object, "metadata"), "labels");

    return mo_json_str_eq(mo_json_get(labels, "mo.store"),
                          mo_span_cstr(d->store)) &&
           mo_json_str_eq(mo_json_get(labels, "mo.role"), mo_span_cstr(role));
}

unsigned mo_kb_new_uid(void)
{
    return KB_UID_FIRST + (unsigned)(mo_random_u64() % KB_UID_COUNT);
}

/* --- program ------------------------------------------------------------- */

static const char *number(struct mo_arena *a, const char *prefix, uint64_t v)
{
    char text[NUMBER_MAX * 2];
    int n =
        snprintf(text, sizeof(text), "%s%llu", prefix, (unsigned long long)v);

    return mo_arena_strndup(a, text, (size_t)n);
}

/* Our image: mo-box waits until we have attached, sets the limits that a pod
 * cannot have, and runs the program. */
static int fill_held(struct kb_box *b)
{
    const struct mo_box_limits *lim = &b->spec.limits;
    size_t max = HOLD_WORDS + MO_BOX_WORDS_MAX + 2, n = 0, from = 0;
    const char **v = mo_arena_zalloc(&b->arena, max * sizeof(*v));
    bool ours = !b->spec.argv || mo_box_spec_names_toolbox(&b->spec);

    if (!v)
        return MO_ENOMEM;
    v[n++] = LAUNCHER;
    v[n++] = "--hold";
    v[n++] = number(&b->arena, "nofile=", lim->open_files);
    /* counted by user, who has mo-box too, and the network's two */
    v[n++] = number(&b->arena,
                    "nproc=", (uint64_t)lim->pids + (b->net.wanted ? 3 : 1));
    v[n++] = number(&b->arena, "fsize=", lim->file_size);
    if (ours)
        v[n++] = "openat2";
    if (b->net.wanted)
        v[n++] = "network";
    v[n++] = "--";
    for (size_t i = 0; i < n; i++)
        if (!v[i])
            return MO_ENOMEM;
    if (ours) {
        v[n++] = TOOLBOX;
        from = 1;
    }
    for (size_t i = from; b->spec.argv && b->spec.argv[i] && n + 1 < max; i++)
        v[n++] = b->spec.argv[i];
    b->pod.argv = v;
    b->pod.workdir = MO_POD_WORKSPACE;
    return 0;
}

/* --- environment and labels ---------------------------------------------- */

/* Where the certificates are that the network has for the box. */
static int fill_trust(struct kb_box *b, const char **v, size_t *n)
{
    for (size_t i = 0; b->net.files && i < MO_CA_VARIABLES; i++) {
        size_t name = strcspn(mo_ca_env[i], "=");
        size_t len = name + sizeof("=" MO_POD_FILES "/" MO_CA_BUNDLE);
        char *text = mo_arena_zalloc(&b->arena, len);

        if (!text)
            return MO_ENOMEM;
        (void)snprintf(text, len, "%.*s=" MO_POD_FILES "/" MO_CA_BUNDLE,
                       (int)name, mo_ca_env[i]);
        v[(*n)++] = text;
    }
    return 0;
}

static int fill_env(struct kb_box *b)
{
    const char **v = mo_arena_zalloc(
        &b->arena, (MO_BOX_WORDS_MAX + MO_CA_VARIABLES + 4) * sizeof(*v));
    size_t n = 0;

    if (!v || fill_trust(b, v, &n) < 0)
        return MO_ENOMEM;
    v[n++] = "HOME=" MO_POD_WORKSPACE;
    v[n++] = "LANG=C.UTF-8";
    for (const char *const *p = b->spec.env;
         p && *p && n < MO_BOX_WORDS_MAX + MO_CA_VARIABLES + 3; p++)
        v[n++] = *p;
    b->pod.env = v;
    return 0;
}

/* Labels are for selecting, and short; the rest are annotations. */
static int fill_labels(const struct kb *d, struct kb_box *b)
{
    struct mo_pod_pair *l = mo_arena_zalloc(&b->arena, LABELS * sizeof(*l));
    struct mo_pod_pair *a =
        mo_arena_zalloc(&b->arena, ANNOTATIONS * sizeof(*a));
    char *policy = mo_arena_zalloc(&b->arena, MO_BOX_DIGEST_MAX);
    const char *expires = number(&b->arena, "", b->spec.expires);
    const char *started = number(&b->arena, "", mo_wall_ms() / 1000);

    if (!l || !a || !policy || !expires || !started)
        return MO_ENOMEM;
    mo_box_spec_digest(&b->spec, policy);
    l[0] = (struct mo_pod_pair){"app.kubernetes.io/managed-by",
                                "mcp-orchestrator"};
    l[1] = (struct mo_pod_pair){"mo.role", "box"};
    l[2] = (struct mo_pod_pair){"mo.store", d->store};
    a[0] = (struct mo_pod_pair){"mo.instance", d->instance};
    a[1] = (struct mo_pod_pair){"mo.session",
                                b->spec.session ? b->spec.session : ""};
    a[2] = (struct mo_pod_pair){"mo.expires", expires};
    a[3] = (struct mo_pod_pair){"mo.started", started};
    a[4] = (struct mo_pod_pair){"mo.policy", policy};
    a[5] = (struct mo_pod_pair){"mo.warm", b->warm ? "1" : "0"};
    a[6] = (struct mo_pod_pair){"mo.net", b->net.ports};
    a[7] = (struct mo_pod_pair){"mo.trust", b->net.files ? "1" : "0"};
    a[8] = (struct mo_pod_pair){"mo.files", b->b.files};
    b->pod.labels = l;
    b->pod.nlabels = LABELS;
    b->pod.annotations = a;
    b->pod.nannotations = b->b.files[0] ? ANNOTATIONS : ANNOTATIONS - 1;
    return 0;
}

int mo_kbox_fill(struct kb *d, struct kb_box *b, struct mo_err *e)
{
    const struct mo_box_limits *lim = &b->spec.limits;
    bool foreign = b->spec.image && *b->spec.image;
    bool keeps = b->b.files[0];
    int rc;

    (void)snprintf(b->name, sizeof(b->name), "mo-box-%016llx",
                   (unsigned long long)mo_random_u64());
    b->pod = (struct mo_pod){
        .name = b->name,
        .image = foreign ? b->spec.image : d->image,
        .argv = b->spec.argv,
        .uid = keeps ? mo_kb_files_uid(b->b.files) : mo_kb_new_uid(),
        .policy_uid = d->policy_uid,
        .runtime_class = d->runtime_class,
        .node_selector = d->node_selector,
        .pull_secret = d->pull_secret,
        .pull_policy = d->pull_policy,
        .net_image = b->net.wanted ? d->image : NULL,
        .net_files = b->net.files,
        .once = b->spec.with_us,
        .memory = lim->memory,
        .workspace = lim->workspace,
        .claim = keeps ? b->b.files : NULL,
        .tmp = lim->tmp,
        .cpu_milli = lim->cpu_milli,
    };
    rc = foreign ? 0 : fill_held(b);
    if (rc == 0)
        rc = fill_env(b);
    if (rc == 0)
        rc = fill_labels(d, b);
    return rc < 0 ? mo_fail(e, rc, "box") : 0;
}
