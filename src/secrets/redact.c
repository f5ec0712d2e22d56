/* redact.c - replaces secrets in texts; see redact.h. */
#include "secrets/redact.h"

#include "loop/loop.h"

#define TEXT_MAX   ((size_t)32 * 1024 * 1024) /* of one message */
#define MARK       "[secret]"
#define NEEDLE_MAX ((size_t)64 * 1024)

/* Replaces every needle in *text by MARK; the new text is in b. */
static int replace_all(struct mo_span *text, struct mo_span needle,
                       struct mo_buf *b)
{
    ptrdiff_t at = mo_span_search(*text, needle);
    struct mo_span rest = *text;
    struct mo_buf next;
    int rc;

    if (at < 0)
        return 0;
    mo_buf_init(&next, 2 * TEXT_MAX);
    for (; at >= 0; at = mo_span_search(rest, needle)) {
        (void)mo_buf_span(&next, mo_span_head(rest, (size_t)at));
        (void)mo_buf_puts(&next, MARK);
        rest = mo_span_skip(rest, (size_t)at + needle.n);
    }
    rc = mo_buf_span(&next, rest);
    mo_buf_fini(b);
    *b = next;
    *text = mo_buf_view(b);
    return rc;
}

int mo_redact_secret(struct mo_span *text, struct mo_span secret,
                     struct mo_buf *b)
{
    mo_autobuf struct mo_buf quoted = {.max = NEEDLE_MAX};
    struct mo_span inner;
    int rc;

    rc = mo_json_quote(&quoted, secret);
    if (rc < 0)
        return rc;
    inner = mo_span_skip(mo_span_head(mo_buf_view(&quoted), quoted.len - 1), 1);
    rc = replace_all(text, inner, b);
    if (rc == 0 && !mo_span_eq(inner, secret))
        rc = replace_all(text, secret, b);
    return rc;
}

struct mo_json mo_redact(const struct mo_loop *l, struct mo_json text,
                         struct mo_buf *b)
{
    const struct mo_log *log = mo_loop_log(l);
    struct mo_span s = mo_json_text(text);

    for (size_t i = 0; log && i < log->nsecrets; i++)
        if (mo_redact_secret(&s, mo_span_cstr(log->secrets[i]), b) < 0)
            return (struct mo_json){NULL, 0};
    return (struct mo_json){s.p, s.n};
}

static bool result_failed(struct mo_json result)
{
    bool is_error = false;

    (void)mo_json_bool(mo_json_get(result, "isError"), &is_error);
    return is_error;
}

bool mo_redact_task_failed(struct mo_json task)
{
    return mo_json_get(task, "error").p ||
           mo_json_str_eq(mo_json_get(task, "status"), MO_SPAN("failed")) ||
           result_failed(mo_json_get(task, "result"));
}

struct mo_json mo_redact_reply(const struct mo_loop *l,
                               const struct mo_reply *r, struct mo_buf *b)
{
    const struct mo_log *log = mo_loop_log(l);
    bool any = log && log->nsecrets > 0;

    if (r->error.p)
        return any ? mo_redact(l, r->error, b) : r->error;
    if (!any || !result_failed(r->result))
        return r->result;
    return mo_redact(l, r->result, b);
}
