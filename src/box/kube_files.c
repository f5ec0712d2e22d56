/* kube_files.c - workspaces that outlive their boxes: claims of the cluster.
 *
 * A claim (PersistentVolumeClaim) is named mo-files-UID-KEY. UID is the user id
 * of every pod that gets it, because files keep the id of their owner. Labels
 * say that it is ours, annotations whose it is, as those of a pod. It does not
 * belong to the NetworkPolicy, as pods do: files outlive it.
 *
 * A warm box has a claim of its own, which goes with it to the session. A
 * claim that no owner has seen (a warm box ends unused, a start fails) is
 * removed with its box; what is left by a crash is left to the sweep. */
#include <stdio.h>

#include "base/rand.h"
#include "box/kube_priv.h"
#include "kube/claim.h"

#define PREFIX      "mo-files-"
#define CLAIMS      "/api/v1/namespaces/%s/persistentvolumeclaims%s%s"
#define KEY_BYTES   8
#define NAME_TRIES  4
#define LABELS      3
#define ANNOTATIONS 2

unsigned mo_kb_files_uid(const char *name)
{
    struct mo_span rest = mo_span_cstr(name), uid;
    uint64_t n = 0;

    if (!mo_span_strip(&rest, MO_SPAN(PREFIX)))
        return 0;
    uid = mo_span_cut(&rest, '-');
    if (mo_span_u64(uid, &n) < 0 || n < KB_UID_FIRST ||
        n >= KB_UID_FIRST + KB_UID_COUNT || rest.n != 2 * KEY_BYTES ||
        !mo_span_only(rest, "0123456789abcdef"))
        return 0;
    return (unsigned)n;
}

static void choose_name(char out[MO_BOX_ID_MAX])
{
    unsigned char r[KEY_BYTES];
    char key[2 * KEY_BYTES + 1];

    mo_random(r, sizeof(r));
    mo_hex(r, sizeof(r), key);
    (void)snprintf(out, MO_BOX_ID_MAX, PREFIX "%u-%s", mo_kb_new_uid(), key);
}

static int ask_claims(struct kb_box *b, const char *method, const char *name,
                      struct mo_span body, mo_kube_done *done, struct mo_err *e)
{
    struct kb *d = mo_kb_of_box(b);
    char path[MO_KUBE_PATH_MAX];
    struct mo_kube_req req = {.method = method, .path = path, .body = body};

    (void)snprintf(path, sizeof(path), CLAIMS, d->ns, *name ? "/" : "", name);
    return mo_kube_ask(d->api, &req, done, b, &b->call, e);
}

/* --- a new one ----------------------------------------------------------- */

int mo_kb_put_claim(const struct kb *d, const char *name, const char *session,
                    uint64_t size, struct mo_buf *body)
{
    const struct mo_pod_pair labels[LABELS] = {
        {"app.kubernetes.io/managed-by", "mcp-orchestrator"},
        {"mo.role", KB_ROLE_FILES},
        {"mo.store", d->store}};
    const struct mo_pod_pair notes[ANNOTATIONS] = {
        {"mo.instance", d->instance}, {"mo.session", session ? session : ""}};
    const struct mo_claim c = {.name = name,
                               .labels = labels,
                               .nlabels = LABELS,
                               .annotations = notes,
                               .nannotations = ANNOTATIONS,
                               .storage_class = d->storage_class,
                               .size = size};

    return mo_claim_write(&c, body);
}

static void create_claim(struct kb_box *b);

static void refuse_claim(struct kb_box *b, const struct mo_err *why)
{
    struct mo_err e = *why;
    bool quota = strstr(why->msg, "exceeded quota") != NULL;

    (void)mo_wrap(&e, quota ? "no claim for its files: the namespace's quota "
                              "is used up"
                            : "no claim for its files");
    mo_kbox_give_up(b, &e);
}

static void on_claim_made(void *ctx, const struct mo_kube_reply *r,
                          const struct mo_err *why)
{
    struct kb_box *b = ctx;

    b->call = NULL;
    if (why && r->status >= 400 && r->status < 500) {
        b->claim_made = false;
        if (why->code == MO_EEXISTS && b->tries++ < NAME_TRIES && !b->stopping)
            create_claim(b);
        else
            refuse_claim(b, why);
    } else if (why) {
        refuse_claim(b, why);
    } else if (b->stopping) {
        mo_kbox_give_up(b, NULL);
    } else {
        b->tries = 0;
        mo_kbox_create(b);
    }
}

static void create_claim(struct kb_box *b)
{
    mo_autobuf struct mo_buf body = {.max = MO_CLAIM_BODY_MAX};
    struct mo_err e;
    int rc;

    choose_name(b->b.files);
    rc = mo_kb_put_claim(mo_kb_of_box(b), b->b.files, b->spec.session,
                         b->spec.limits.workspace, &body);
    if (rc < 0)
        (void)mo_fail(&e, rc, "box");
    else
        rc = ask_claims(b, "POST", "", mo_buf_view(&body), on_claim_made, &e);
    b->claim_made = rc == 0;
    if (rc < 0)
        mo_kbox_give_up(b, &e);
}

/* --- one that exists ----------------------------------------------------- */

/* Ours, of this session (a warm box's may not say whose), and not on its way
 * out. */
static bool may_use(const struct kb_box *b, struct mo_json claim)
{
    struct mo_json meta = mo_json_get(claim, "metadata");
    struct mo_json session =
        mo_json_get(mo_json_get(meta, "annotations"), "mo.session");
    struct mo_span mine = mo_span_cstr(b->spec.session ? b->spec.session : "");

    return mo_kb_is_ours(mo_kb_of_box(b), claim, KB_ROLE_FILES) &&
           !mo_json_is(mo_json_get(meta, "deletionTimestamp"),
                       MO_JSON_STRING) &&
           (mo_json_str_eq(session, mine) ||
            mo_json_str_eq(session, MO_SPAN("")));
}

static void on_claim_found(void *ctx, const struct mo_kube_reply *r,
                           const struct mo_err *why)
{
    struct kb_box *b = ctx;

    b->call = NULL;
    if (b->stopping || (why && why->code != MO_ENOTFOUND)) {
        mo_kbox_give_up(b, why);
    } else if (why || !may_use(b, r->json)) {
        create_claim(b);
    } else {
        b->b.old_files = true;
        (void)snprintf(b->b.files, sizeof(b->b.files), "%s", b->spec.files);
        mo_kbox_create(b);
    }
}

void mo_kbox_files_prepare(struct kb_box *b)
{
    const char *old = b->spec.files ? b->spec.files : "";
    struct mo_err e;

    if (!mo_kb_of_box(b)->claims || !b->spec.keep || b->b.files[0]) {
        mo_kbox_create(b);
        return;
    }
    mo_kbox_move(b, KB_CLAIMING);
    if (!mo_kb_files_uid(old))
        create_claim(b);
    else if (ask_claims(b, "GET", old, mo_span(NULL, 0), on_claim_found, &e) <
             0)
        mo_kbox_give_up(b, &e);
}

int mo_kbox_files_read(struct kb_box *b, struct mo_json notes, struct mo_err *e)
{
    struct mo_json name = mo_json_get(notes, "mo.files");

    if (!mo_json_is(name, MO_JSON_STRING))
        return 0;
    if (mo_json_str_copy(name, b->b.files, sizeof(b->b.files)) < 0 ||
        !mo_kb_files_uid(b->b.files)) {
        b->b.files[0] = '\0';
        return mo_fail(e, MO_EPOLICY, "box %s: its annotation mo.files",
                       b->name);
    }
    return 0;
}

/* --- one that nobody has seen -------------------------------------------- */

static void on_claim_dropped(void *ctx, const struct mo_kube_reply *r,
                             const struct mo_err *why)
{
    struct kb_box *b = ctx;

    (void)r;
    b->call = NULL;
    if (why && why->code != MO_ENOTFOUND)
        mo_log_err(mo_loop_log(mo_kb_of_box(b)->bs.loop), MO_INFO, "box", why,
                   "claim %s is left to the sweep", b->b.files);
    mo_kbox_down(b);
}

bool mo_kbox_files_drop(struct kb_box *b)
{
    mo_autobuf struct mo_buf body = {.max = KB_BODY_MAX};

    if (!b->claim_made || b->owned)
        return false;
    if (b->step != KB_REMOVING)
        mo_kbox_move(b, KB_REMOVING);
    return mo_kb_put_delete(&body, "") == 0 &&
           ask_claims(b, "DELETE", b->b.files, mo_buf_view(&body),
                      on_claim_dropped, NULL) == 0;
}

/* --- all of them --------------------------------------------------------- */

static int read_claims(struct kb *d, struct mo_json list, struct mo_arena *a,
                       struct mo_box_row *out, size_t *n)
{
    mo_json_each (at, list) {
        struct mo_json meta = mo_json_get(at.val, "metadata");
        struct mo_json notes = mo_json_get(meta, "annotations");
        struct mo_box_row *r = &out[*n];

        if (mo_boxes_files_row(a, mo_json_get(meta, "name"), notes, r) < 0)
            return MO_ENOMEM;
        if (mo_kb_files_uid(r->id) && !mo_boxes_use(&d->bs, r->id) &&
            !mo_json_is(mo_json_get(meta, "deletionTimestamp"),
                        MO_JSON_STRING) &&
            mo_kb_is_ours(d, at.val, KB_ROLE_FILES))
            ++*n;
    }
    return 0;
}

int mo_kb_files(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                void *ctx, struct mo_err *e)
{
    struct kb *d = mo_kb_of(bs);

    if (!d->claims)
        return mo_fail(e, MO_ENOTFOUND,
                       "box: 'sandbox.kubernetes.claims' is off");
    return mo_kb_query(d, "persistentvolumeclaims", KB_ROLE_FILES, from,
                       read_claims, done, ctx, e);
}

int mo_kb_forget(struct mo_boxes *bs, const char *files, mo_done_fn *done,
                 void *ctx, struct mo_err *e)
{
    if (!mo_kb_files_uid(files))
        return mo_fail(e, MO_EINVAL, "box: no such workspace");
    return mo_kb_remove_object(mo_kb_of(bs), "persistentvolumeclaims", files,
                               KB_ROLE_FILES, done, ctx, e);
}
