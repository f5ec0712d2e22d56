#include "web/access_log.h"

static bool is_below(struct mo_span path, struct mo_span root)
{
    return mo_span_starts(path, root) &&
           (path.n == root.n || path.p[root.n] == '/');
}

static enum mo_level level_of(struct mo_span path, int status)
{
    if (!is_below(path, MO_SPAN("/api")) && !is_below(path, MO_SPAN("/mcp")))
        return MO_DEBUG;
    return status >= 500 ? MO_WARN : MO_INFO;
}

/* "method path". What does not fit is left out: it is longer than a line. */
static struct mo_span join(char *buf, size_t max, struct mo_span method,
                           struct mo_span path)
{
    size_t n;

    method = mo_span_head(method, max - 1);
    memcpy(buf, method.p, method.n);
    buf[method.n] = ' ';
    n = method.n + 1;
    path = mo_span_head(path, max - n);
    memcpy(buf + n, path.p, path.n);
    return mo_span(buf, n + path.n);
}

void mo_access_log(const struct mo_log *l, const struct mo_req *rq, int status,
                   uint64_t ns)
{
    const struct mo_log_facts about = {
        .request = rq->number,
        .who = rq->who,
        .from = mo_req_peer(rq),
        .status = (uint64_t)status,
        .ns = ns,
    };
    char text[MO_LOG_LINE_MAX] MO_UNINITIALIZED;
    enum mo_level level = MO_DEBUG;
    struct mo_span line = MO_SPAN("no HTTP request"); /* httpd.c refused it */

    if (rq->head) {
        level = rq->from ? MO_DEBUG : level_of(rq->path, status);
        /* The path of a shared conversation is its token. */
        line = join(text, sizeof(text), rq->head->method_text,
                    is_below(rq->path, MO_SPAN("/shared")) ? MO_SPAN("/shared")
                                                           : rq->path);
    }
    mo_log_text(l, level, "access", &about, line);
}
