#include "audit/audit_anchor.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#define WORD     "mcp-orchestrator-audit"
#define HOST_LEN 65
#define TEXT_MAX (PATH_MAX + 512)
#define FILE_MAX ((size_t)64 * 1024 * 1024)

/* "mcp-orchestrator-audit host=H log=DIR seq=": the same for all lines. */
static int put_start(char *out, size_t n, const char *dir)
{
    char host[HOST_LEN] = "";
    int len;

    if (gethostname(host, sizeof(host) - 1) < 0)
        host[0] = '\0';
    len = snprintf(out, n, WORD " host=%s log=%s seq=", host, dir);
    return len < 0 || (size_t)len >= n ? -1 : len;
}

static int append_file(const char *path, struct mo_span line)
{
    mo_autofd int fd = open(
        path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    return fd >= 0 && write(fd, line.p, line.n) == (ssize_t)line.n ? 0 : -1;
}

int mo_audit_anchor_put(const char *anchor, const char *dir,
                        const struct mo_audit_witness *w)
{
    struct mo_span path = mo_span_cstr(anchor);
    char line[TEXT_MAX], start[TEXT_MAX - 128], at[MO_ISO8601_MAX];
    int n;

    if (put_start(start, sizeof(start), dir) < 0)
        return -1;
    if (!mo_span_strip(&path, MO_SPAN(MO_AUDIT_ANCHOR_FILE))) {
        syslog(LOG_AUTHPRIV | LOG_NOTICE, "%s%llu mac=%s", start,
               (unsigned long long)w->seq, w->hash);
        return 0;
    }
    mo_wall_format(mo_wall_ms(), at);
    n = snprintf(line, sizeof(line), "%s %s%llu mac=%s\n", at, start,
                 (unsigned long long)w->seq, w->hash);
    return append_file(path.p, mo_span(line, (size_t)n));
}

/* --- reading ------------------------------------------------------------- */

static bool read_line(struct mo_span line, struct mo_span start,
                      struct mo_audit_witness *out)
{
    ptrdiff_t at = mo_span_search(line, start);
    struct mo_span seq;

    if (at < 0)
        return false;
    line = mo_span_skip(line, (size_t)at + start.n);
    seq = mo_span_cut(&line, ' ');
    if (mo_span_u64(seq, &out->seq) < 0 ||
        !mo_span_strip(&line, MO_SPAN("mac=")) || line.n < MO_CHAIN_HEX)
        return false;
    memcpy(out->hash, line.p, MO_CHAIN_HEX);
    out->hash[MO_CHAIN_HEX] = '\0';
    out->by = "the anchor";
    return true;
}

static int compare_seq(const void *a, const void *b)
{
    uint64_t x = ((const struct mo_audit_witness *)a)->seq;
    uint64_t y = ((const struct mo_audit_witness *)b)->seq;

    return (x > y) - (x < y);
}

int mo_audit_anchor_read(const char *path, const char *dir,
                         struct mo_audit_witness **out, size_t *n,
                         struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = FILE_MAX};
    struct mo_audit_witness *v = mo_alloc(MO_AUDIT_ANCHOR_MAX * sizeof(*v));
    char start[TEXT_MAX];
    struct mo_span rest;
    size_t seen = 0;
    int rc;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    rc = mo_file_read(path, FILE_MAX, &text, NULL, e);
    if (rc == 0 && put_start(start, sizeof(start), dir) < 0)
        rc = mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    rest = mo_buf_view(&text);
    while (rc == 0 && rest.n)
        seen += read_line(mo_span_cut(&rest, '\n'), mo_span_cstr(start),
                          &v[seen % MO_AUDIT_ANCHOR_MAX]);
    if (rc == 0 && seen == 0)
        rc = mo_fail(e, MO_ENOTFOUND, "%s has no line about %s", path, dir);
    if (rc < 0) {
        mo_free(v);
        return rc;
    }
    *n = seen < MO_AUDIT_ANCHOR_MAX ? seen : MO_AUDIT_ANCHOR_MAX;
    qsort(v, *n, sizeof(*v), compare_seq);
    *out = v;
    return 0;
}
