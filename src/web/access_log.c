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

void mo_access_log(const struct mo_log *l, const struct mo_req *rq, int status,
                   uint64_t ns)
{
    const struct mo_log_facts about = {
        .request = rq->number,
        .who = rq->caller,
        .from = mo_req_peer(rq),
        .status = (uint64_t)status,
        .ns = ns,
    };

    if (!rq->head) /* httpd.c refused it */
        mo_log_about(l, MO_DEBUG, "access", &about, "no HTTP request");
    else
        mo_log_about(l, level_of(rq->path, status), "access", &about,
                     "%.*s %.*s", (int)rq->head->method_text.n,
                     rq->head->method_text.p, (int)rq->path.n, rq->path.p);
}
