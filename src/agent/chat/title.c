/*
 * title.c - see title.h.
 */
#include "agent/chat/title.h"

#include "agent/chat/chat_priv.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/session_memory.h"
#include "codec/text/utf8.h"

struct naming {
    mo_done_fn *done;
    void *ctx;
};

static void on_title_written(struct chat *c, void *arg,
                             const struct mo_err *why)
{
    struct naming n = *(struct naming *)arg;

    (void)c;
    mo_free(arg);
    n.done(n.ctx, why);
}

/* The audit row is written after the session's row, so the title is stored when
 * done() is called. */
static int store_title(struct chat *c, struct naming *n, struct mo_err *e)
{
    struct mo_write w = {.kind = MO_WRITE_AUDIT, .at = mo_wall_ms()};
    mo_autobuf struct mo_buf doc = {.max = 4096};

    mo_session_memory_save(c);
    mo_buf_puts(&doc, "{\"renamed\":");
    mo_json_quote(&doc, mo_buf_view(&c->title));
    mo_buf_putc(&doc, '}');
    w.doc = mo_buf_view(&doc);
    return mo_buf_err(&doc) ? mo_fail(e, doc.err, "out of memory")
                            : mo_chat_write(c, &w, 1, on_title_written, n, e);
}

static int set_title(struct chat *c, struct mo_span line, struct mo_err *e)
{
    mo_buf_reset(&c->title);
    mo_buf_put(&c->title, line.p, mo_utf8_cut(line, MO_TITLE_MAX));
    if (mo_buf_err(&c->title) == 0)
        return 0;
    mo_buf_reset(&c->title);
    return mo_fail(e, MO_ENOMEM, "out of memory");
}

int mo_agent_title(struct mo_agent *a, struct mo_span session,
                   struct mo_span title, mo_done_fn *done, void *ctx,
                   struct mo_err *e)
{
    struct mo_span line = mo_span_trim(mo_span_cut(&title, '\n'));
    struct chat *c = mo_map_get(&a->chats, session);
    struct naming *n = NULL;
    int rc = 0;

    if (line.n == 0)
        return mo_fail(e, MO_EINVAL, "the title must not be empty");
    if (c == NULL || c->hold == NULL || !c->ready)
        return mo_fail(e, MO_EPOLICY, "the conversation is not open");
    n = mo_new(struct naming);
    if (n == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *n = (struct naming){done, ctx};
    rc = set_title(c, line, e);
    if (rc == 0)
        rc = store_title(c, n, e);
    if (rc < 0)
        mo_free(n);
    return rc;
}
