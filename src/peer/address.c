/* address.c - where the processes of a store can be reached.
 *
 * Each has a document in the store, "peer:INSTANCE", with the path of its
 * socket and the boot id of its machine's kernel: a path means nothing on
 * another machine. With a cluster (cluster.h) it also has "tcp", the address
 * for other machines; that one is used unless the boot id is ours and the
 * socket is there: containers of one machine have its boot id, and their own
 * files.
 *
 * "protocol" are the versions that it speaks (wire.h); a process that has none
 * of them in common is not connected to.
 *
 * The document is written at the start and removed at the end. A process that
 * was killed leaves it behind; the next that starts removes it once the lease
 * of that instance is free. With a cluster every process looks every SWEEP_MS,
 * since a connection to a machine that is gone takes long to fail; and writes
 * its own again if another took it for dead. So the clocks of machines do not
 * matter: only documents without "tcp" are kept for FRESH_MS by their date. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "codec/json/json.h"
#include "peer/others.h"
#include "peer/priv.h"

#define AGAIN_MS   2000
#define SWEEP_MS   10000
#define FRESH_MS   60000 /* its instance may be about to take its lease */
#define DOC_MAX    1024
#define ID_BUF     (sizeof(PEER_MARK) + MO_INSTANCE_MAX)
#define MARKS_MAX  100
#define BOOT_FILE  "/proc/sys/kernel/random/boot_id"
#define BOOT_BYTES 128

static bool has_socket(const char *path)
{
    struct stat st;

    return path[0] && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* "protocol": [from, to]. Versions before it was written spoke 1. */
static void read_versions(struct mo_json v, struct peer_address *out)
{
    struct mo_json_iter it;
    struct mo_json key, one;

    out->speaks[0] = out->speaks[1] = 1;
    mo_json_iter(&it, v);
    for (size_t i = 0; i < 2 && mo_json_next(&it, &key, &one); i++)
        if (mo_json_u64(one, &out->speaks[i]) < 0)
            out->speaks[i] = 0;
    out->version = mo_wire_common(out->speaks[0], out->speaks[1]);
}

bool mo_other_speaks(struct mo_span doc, uint64_t versions[2])
{
    struct peer_address a = {.at = 0};
    struct mo_json_doc d;

    if (mo_json_parse(doc, 0, &d, NULL) < 0)
        d.root = (struct mo_json){NULL, 0};
    read_versions(mo_json_get(d.root, "protocol"), &a);
    versions[0] = a.speaks[0];
    versions[1] = a.speaks[1];
    return a.version != 0;
}

const struct mo_err *mo_peer_no_version(struct mo_peers *p,
                                        const char *instance,
                                        const struct peer_address *a,
                                        struct mo_err *e)
{
    (void)mo_fail(e, MO_EPOLICY,
                  "instance %s speaks versions %llu to %llu between servers, "
                  "this one %u to %u: start the same program version on both "
                  "(docs/upgrade.md)",
                  instance, (unsigned long long)a->speaks[0],
                  (unsigned long long)a->speaks[1], MO_WIRE_MIN, MO_WIRE_MAX);
    if (strcmp(p->foreign, instance) != 0)
        mo_log_err(mo_loop_log(p->loop), MO_WARN, "peer", e,
                   "nothing is relayed to it");
    (void)snprintf(p->foreign, sizeof(p->foreign), "%s", instance);
    return e;
}

int mo_peer_address_read(const struct mo_peers *p, struct mo_span doc,
                         struct peer_address *out, struct mo_err *e)
{
    struct mo_json_doc d;
    char boot[PEER_BOOT_MAX] = "";

    *out = (struct peer_address){.at = 0};
    if (mo_json_parse(doc, 0, &d, e) < 0)
        return e->code;
    (void)mo_json_str_copy(mo_json_get(d.root, "unix"), out->path,
                           sizeof(out->path));
    (void)mo_json_str_copy(mo_json_get(d.root, "tcp"), out->far,
                           sizeof(out->far));
    if (out->path[0] ? out->path[0] != '/' : !out->far[0])
        return mo_fail(e, MO_EINVAL, "its address is not valid");
    (void)mo_json_str_copy(mo_json_get(d.root, "boot"), boot, sizeof(boot));
    (void)mo_json_u64(mo_json_get(d.root, "at"), &out->at);
    read_versions(mo_json_get(d.root, "protocol"), out);
    out->is_near = out->path[0] && boot[0] && strcmp(boot, p->boot) == 0;
    out->is_far =
        p->cluster && out->far[0] && !(out->is_near && has_socket(out->path));
    return 0;
}

void mo_peer_address_init(struct mo_peers *p)
{
    mo_autobuf struct mo_buf b = {.max = BOOT_BYTES};
    struct mo_span id;

    if (mo_file_read(BOOT_FILE, BOOT_BYTES, &b, NULL, NULL) < 0)
        return;
    id = mo_buf_view(&b);
    id = mo_span_cut(&id, '\n');
    (void)snprintf(p->boot, sizeof(p->boot), "%.*s", (int)id.n, id.p);
}

static void put_id(char out[ID_BUF], const char *instance)
{
    (void)snprintf(out, ID_BUF, PEER_MARK "%s", instance);
}

/* --- ours ----------------------------------------------------------------- */

static void op_ended(struct mo_peers *p)
{
    p->pending--;
    mo_peers_settle(p);
}

static int write_mark(struct mo_peers *p, const char *instance,
                      struct mo_span doc,
                      void (*done)(void *ctx, const struct mo_written *w,
                                   const struct mo_err *why),
                      struct mo_err *e)
{
    char id[ID_BUF];
    struct mo_write w = {.kind = MO_WRITE_MARK, .doc = doc};
    const struct mo_store_batch b = {.writes = &w, .n = 1};
    int rc;

    put_id(id, instance);
    w.id = mo_span_cstr(id);
    rc = mo_store_write(p->store, &b, done, p, e);
    p->pending += rc == 0;
    return rc;
}

static void write_later(struct mo_peers *p, const struct mo_err *why)
{
    if (p->stopped)
        return;
    mo_log_err(mo_loop_log(p->loop), MO_WARN, "peer", why,
               "other processes do not know our address");
    mo_timer_start(p->loop, &p->again, AGAIN_MS);
}

static void on_written(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    struct mo_peers *p = ctx;

    (void)w;
    if (why)
        write_later(p, why);
    op_ended(p);
}

static void write_own(struct mo_peers *p)
{
    mo_autobuf struct mo_buf b = {.max = DOC_MAX};
    struct mo_jw w = mo_jw_object(&b);
    struct mo_err e;

    if (p->path[0])
        mo_jw_member_cstr(&w, "unix", p->path);
    if (p->cluster)
        mo_jw_member_cstr(&w, "tcp", mo_cluster_address(p->cluster));
    mo_jw_member_cstr(&w, "boot", p->boot);
    mo_jw_key(&w, "protocol");
    mo_jw_arr(&w);
    mo_jw_u64(&w, MO_WIRE_MIN);
    mo_jw_u64(&w, MO_WIRE_MAX);
    mo_jw_end(&w);
    mo_jw_member_cstr(&w, "program", MO_VERSION);
    mo_jw_member_u64(&w, "at", mo_wall_ms());
    mo_jw_end(&w);
    if (write_mark(p, p->instance, mo_buf_view(&b), on_written, &e) < 0)
        write_later(p, &e);
}

static void on_again(struct mo_timer *t)
{
    write_own(mo_container_of(t, struct mo_peers, again));
}

static void on_removed(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    (void)w;
    (void)why; /* another start removes it */
    op_ended(ctx);
}

void mo_peer_address_remove(struct mo_peers *p)
{
    struct mo_err e;

    mo_timer_stop(p->loop, &p->again);
    mo_timer_stop(p->loop, &p->sweep);
    (void)write_mark(p, p->instance, mo_span(NULL, 0), on_removed, &e);
}

/* --- those of the dead ---------------------------------------------------- */

struct look { /* does that instance live? */
    struct mo_peers *p;
    char instance[MO_INSTANCE_MAX];
};

static void on_holder(void *ctx, struct mo_span owner, uint64_t fence,
                      const struct mo_err *why)
{
    struct look *l = ctx;
    struct mo_peers *p = l->p;
    struct mo_err e;

    (void)fence;
    if (!why && owner.n == 0 && !p->stopped)
        (void)write_mark(p, l->instance, mo_span(NULL, 0), on_removed, &e);
    mo_free(l);
    op_ended(p);
}

static void remove_if_dead(struct mo_peers *p, struct mo_span instance)
{
    char lease[sizeof(MO_INSTANCE_LEASE) + MO_INSTANCE_MAX];
    struct look *l = mo_new(struct look);
    struct mo_err e;

    if (!l)
        return;
    l->p = p;
    (void)snprintf(l->instance, sizeof(l->instance), "%.*s", (int)instance.n,
                   instance.p);
    (void)snprintf(lease, sizeof(lease), MO_INSTANCE_LEASE "%s", l->instance);
    if (mo_lease_holder(p->store, mo_span_cstr(lease), on_holder, l, &e) < 0)
        mo_free(l);
    else
        p->pending++;
}

static void on_marks(void *ctx, const struct mo_rows *rows,
                     const struct mo_err *why)
{
    struct mo_peers *p = ctx;
    uint64_t now = mo_wall_ms();
    bool has_own = false;

    for (size_t i = 0; !why && !p->stopped && i < rows->n; i++) {
        struct mo_span name = rows->v[i].id;
        struct peer_address a;
        struct mo_err e;

        if (!mo_span_strip(&name, MO_SPAN(PEER_MARK)) ||
            name.n >= MO_INSTANCE_MAX)
            continue;
        if (mo_span_is(name, p->instance))
            has_own = true;
        else if (mo_peer_address_read(p, rows->v[i].doc, &a, &e) < 0 ||
                 (p->cluster && a.far[0]) || a.at + FRESH_MS < now)
            remove_if_dead(p, name);
    }
    if (!why && !p->stopped && p->cluster && !has_own && rows->n < MARKS_MAX)
        write_own(p);
    op_ended(p);
}

static void read_marks(struct mo_peers *p)
{
    const struct mo_read r = {
        .kind = MO_READ_MARKS, .text = MO_SPAN(PEER_MARK), .limit = MARKS_MAX};
    struct mo_err e;

    p->pending += mo_store_read(p->store, &r, on_marks, p, &e) == 0;
}

static void on_sweep(struct mo_timer *t)
{
    struct mo_peers *p = mo_container_of(t, struct mo_peers, sweep);

    read_marks(p);
    mo_timer_start(p->loop, &p->sweep, SWEEP_MS);
}

void mo_peer_address_publish(struct mo_peers *p)
{
    mo_timer_init(&p->again, on_again);
    mo_timer_init(&p->sweep, on_sweep);
    if (p->path[0])
        write_own(p);
    read_marks(p);
}

void mo_peer_address_again(struct mo_peers *p)
{
    write_own(p);
    mo_timer_start(p->loop, &p->sweep, SWEEP_MS);
}
