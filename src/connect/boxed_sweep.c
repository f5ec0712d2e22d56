#include "connect/boxed_sweep.h"

#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/sha256.h"

#define SUSPECTS_MAX 64
#define SMALL_FILE   ((size_t)4096)
#define START_FIELD  19 /* field of /proc/PID/stat, counted after the name */

/* --- instance names ------------------------------------------------------- */

/* A pid is unique within one boot and one pid namespace. */
static uint32_t hash_boot_and_namespace(void)
{
    char ns[64] = "";
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;
    mo_autobuf struct mo_buf b = {.max = SMALL_FILE};

    mo_sha256_init(&h);
    if (mo_file_read("/proc/sys/kernel/random/boot_id", SMALL_FILE, &b, NULL,
                     NULL) == 0)
        mo_sha256_put(&h, b.p, b.len);
    if (readlink("/proc/self/ns/pid", ns, sizeof(ns) - 1) > 0)
        mo_sha256_put(&h, ns, sizeof(ns));
    mo_sha256_end(&h, sum);
    return (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 |
           (uint32_t)sum[2] << 8 | sum[3];
}

static uint64_t parse_start_time(struct mo_span stat)
{
    const char *name_end = memrchr(stat.p, ')', stat.n);
    struct mo_span rest;
    uint64_t ticks = 0;

    if (!name_end)
        return 0;
    rest = mo_span_skip(stat, (size_t)(name_end - stat.p) + 2);
    for (int i = 0; i < START_FIELD; i++)
        (void)mo_span_cut(&rest, ' ');
    (void)mo_span_u64(mo_span_cut(&rest, ' '), &ticks);
    return ticks;
}

/* Clock ticks from boot to the start of the process; 0: no such process. */
static uint64_t read_start_time(uint64_t pid)
{
    uint64_t ticks = 0;
    char path[48];
    mo_autobuf struct mo_buf b = {.max = SMALL_FILE};

    (void)snprintf(path, sizeof(path), "/proc/%llu/stat",
                   (unsigned long long)pid);
    if (mo_file_read(path, SMALL_FILE, &b, NULL, NULL) == 0 && b.len)
        ticks = parse_start_time(mo_buf_view(&b));
    return ticks;
}

void mo_boxed_link_name(char out[MO_BOXED_NAME_MAX])
{
    uint64_t pid = (uint64_t)getpid();

    (void)snprintf(out, MO_BOXED_NAME_MAX, "gw.%lu.%llu.%llu",
                   (unsigned long)hash_boot_and_namespace(),
                   (unsigned long long)pid,
                   (unsigned long long)read_start_time(pid));
}

bool mo_boxed_link_dead(struct mo_span instance)
{
    struct mo_span rest = instance;
    struct mo_span kind = mo_span_cut(&rest, '.');
    uint64_t where = 0, pid = 0, ticks = 0;

    if (!mo_span_is(kind, "gw") ||
        mo_span_u64(mo_span_cut(&rest, '.'), &where) < 0 ||
        mo_span_u64(mo_span_cut(&rest, '.'), &pid) < 0 ||
        mo_span_u64(rest, &ticks) < 0)
        return false;
    return where == hash_boot_and_namespace() && ticks &&
           read_start_time(pid) != ticks;
}

/* --- the sweep ----------------------------------------------------------- */

struct sweep {
    struct mo_boxes *bs;
    char ids[SUSPECTS_MAX][MO_BOX_ID_MAX];
    size_t n;
    struct mo_gone done;
};

static void remove_next(struct sweep *s);

static void on_removed(void *ctx, const struct mo_err *why)
{
    (void)why;
    remove_next(ctx);
}

static void remove_next(struct sweep *s)
{
    struct mo_gone done = s->done;

    while (s->n) {
        s->n--;
        if (mo_boxes_remove(s->bs, s->ids[s->n], on_removed, s, NULL) == 0)
            return;
    }
    mo_free(s);
    mo_gone_fire(done);
}

/* Parts are read until there are SUSPECTS_MAX; the next sweep finds the
 * others. */
static void on_list(void *ctx, const struct mo_box_rows *rows,
                    const struct mo_err *why)
{
    struct sweep *s = ctx;

    for (size_t i = 0; !why && i < rows->n && s->n < SUSPECTS_MAX; i++) {
        if (mo_boxed_link_dead(mo_span_cstr(rows->v[i].instance)))
            (void)snprintf(s->ids[s->n++], MO_BOX_ID_MAX, "%s", rows->v[i].id);
    }
    if (!why && rows->next && s->n < SUSPECTS_MAX &&
        mo_boxes_list(s->bs, rows->next, on_list, s, NULL) == 0)
        return;
    remove_next(s);
}

int mo_boxed_sweep(struct mo_boxes *bs, void (*done)(void *ctx), void *ctx,
                   struct mo_err *e)
{
    struct sweep *s = mo_new(struct sweep);
    int rc = 0;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "sweep");
    *s = (struct sweep){.bs = bs, .done = {done, ctx}};
    rc = mo_boxes_list(bs, NULL, on_list, s, e);
    if (rc < 0)
        mo_free(s);
    return rc;
}
