/* script_recover.c - ends the calls of a script that were open when the process
 * died.
 *
 * The script died with its box's connection, so nothing of it goes on: a call
 * that was pending is rejected, a call that was running has an unknown outcome.
 * Neither is run again. The rows are found by their keys, which begin with that
 * of the script's call. */
#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/script_calls.h"
#include "mcp/content.h"

/* One call that was open when the process died. */
struct left_call {
    struct call *script;
    const struct mo_row *row;
    struct mo_json doc;
    enum mo_call_state to;
};

static const char gone_text[] =
    "The orchestrator was interrupted, and the script ended with it. The call "
    "was not run.";
static const char unknown_text[] =
    "The orchestrator was interrupted while this call was running. Whether it "
    "had an effect is unknown; it was not run again.";

static struct mo_span text_for(enum mo_call_state to)
{
    return to == MO_CALL_UNKNOWN ? mo_span_cstr(unknown_text)
                                 : mo_span_cstr(gone_text);
}

/* The document of the row with its outcome; the arguments only if the log keeps
 * them. */
static void put_left(const struct left_call *x, struct mo_buf *b)
{
    static const char *const ours[] = {"isError", "content", "by", NULL};
    bool keep = mo_audit_has_arguments(x->script->chat->agent->o.audit);
    struct mo_jw w = mo_jw_object(b);

    mo_json_each (at, x->doc) {
        if (mo_json_str_in(at.key, ours) ||
            (!keep && mo_json_str_eq(at.key, MO_SPAN("args"))))
            continue;
        mo_jw_key_raw(&w, at.key);
        mo_jw_raw(&w, mo_json_text(at.val));
    }
    if (x->to == MO_CALL_REJECTED)
        mo_jw_member_cstr(&w, "by", "cancel");
    else
        mo_jw_copy(&w, x->doc, "by");
    mo_jw_member_bool(&w, "isError", true);
    mo_jw_member_arr(&w, "content");
    mo_content_put_block(&w, text_for(x->to));
    mo_jw_end_all(&w);
}

static void note_left(const struct left_call *x)
{
    mo_autobuf struct mo_buf one = {.max = MO_STORE_DOC_MAX};
    struct mo_jw w = mo_jw_object(&one);

    mo_jw_member(&w, "key", x->row->id);
    mo_jw_copy(&w, x->doc, "line");
    mo_jw_copy(&w, x->doc, "name");
    mo_jw_copy(&w, x->doc, "server");
    mo_jw_member_cstr(&w, "state", mo_call_state_name(x->to));
    mo_jw_member_bool(&w, "isError", true);
    mo_jw_member(&w, "text", text_for(x->to));
    mo_jw_end(&w);
    mo_script_note_left(x->script, &one);
}

static void on_left_written(struct chat *c, void *arg, const struct mo_err *why)
{
    (void)arg;
    if (why)
        mo_chat_event_error(c, "state_unavailable", mo_span_cstr(why->msg), 0);
}

static void end_left(struct chat *c, const struct left_call *x)
{
    mo_autobuf struct mo_buf doc = {.max = MO_STORE_DOC_MAX};
    struct mo_write w[MO_OUTCOME_WRITES];
    struct mo_err e;

    put_left(x, &doc);
    w[0] = (struct mo_write){.kind = MO_WRITE_MOVE,
                             .id = x->row->id,
                             .from = MO_CALL_BIT(x->row->state),
                             .to = x->to,
                             .doc = mo_buf_view(&doc)};
    w[1] = mo_audit_row_write(mo_buf_view(&doc));
    note_left(x);
    if (mo_buf_err(&doc) == 0 &&
        mo_chat_write(c, w, MO_COUNT(w), on_left_written, NULL, &e) < 0)
        on_left_written(c, NULL, &e);
}

/* The call of run_script whose key is the first part of the id; or NULL. */
static struct call *script_of(struct chat *c, struct mo_span id)
{
    struct mo_span key = mo_span_cut(&id, '.');

    mo_list_each_entry (k, &c->calls.list, struct call, node)
        if (id.n > 0 && k->script && mo_span_is(key, k->key))
            return k;
    return NULL;
}

/* Tells the model about calls whose outcome is unknown. */
static void add_words(struct call *k, unsigned unknown, unsigned rejected)
{
    char text[200];

    if (k->content.len < 2 || unknown + rejected == 0)
        return;
    (void)snprintf(text, sizeof(text),
                   "Calls of the script that were open: the outcome of %u is "
                   "unknown, %u waited and were not run.",
                   unknown, rejected);
    k->content.len--; /* overwrite the closing bracket */
    mo_buf_puts(&k->content, ",{\"type\":\"text\",\"text\":");
    (void)mo_json_quote(&k->content, mo_span_cstr(text));
    mo_buf_puts(&k->content, "}]");
}

static void end_all_left(struct chat *c, const struct mo_rows *rows)
{
    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        unsigned unknown = 0, rejected = 0;

        for (size_t i = 0; k->script && i < rows->n; i++) {
            struct left_call x = {.script = k, .row = &rows->v[i]};
            struct mo_json_doc doc;

            if (script_of(c, x.row->id) != k ||
                mo_json_parse(x.row->doc, 0, &doc, NULL) < 0)
                continue;
            x.doc = doc.root;
            x.to = x.row->state == MO_CALL_PENDING ? MO_CALL_REJECTED
                                                   : MO_CALL_UNKNOWN;
            unknown += x.to == MO_CALL_UNKNOWN;
            rejected += x.to == MO_CALL_REJECTED;
            end_left(c, &x);
        }
        add_words(k, unknown, rejected);
    }
}

static void on_left_read(void *ctx, const struct mo_rows *rows,
                         const struct mo_err *why)
{
    struct chat *c = ctx;

    c->writes--;
    if (c->state != CHAT_OPENING) {
        mo_chat_settle(c);
        return;
    }
    if (why) {
        mo_chat_fail(c, why);
        return;
    }
    end_all_left(c, rows);
    mo_chat_calls_recovered(c);
}

bool mo_script_recover(struct chat *c)
{
    struct mo_read r = {.kind = MO_READ_CALLS,
                        .session = mo_span_cstr(c->id),
                        .from = MO_CALL_BIT(MO_CALL_PENDING) |
                                MO_CALL_BIT(MO_CALL_APPROVED) |
                                MO_CALL_BIT(MO_CALL_RUNNING),
                        .limit = MO_STORE_ROWS_MAX};
    bool any = false;
    struct mo_err e;

    mo_list_each_entry (k, &c->calls.list, struct call, node)
        if (k->state == MO_CALL_UNKNOWN &&
            mo_span_is(mo_buf_view(&k->name), MO_SCRIPT_TOOL))
            any |= mo_script_begin(k) == 0;
    if (!any)
        return false;
    if (mo_store_read(c->agent->o.store, &r, on_left_read, c, &e) < 0) {
        mo_chat_fail(c, &e);
        return true;
    }
    c->writes++;
    return true;
}
