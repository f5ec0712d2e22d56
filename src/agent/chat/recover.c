/* recover.c - restores the calls of an interrupted turn after a restart.
 *
 * Each call of the last entry is looked up in the store. A pending call becomes
 * pending again and a finished call keeps its outcome. A call that was running
 * may or may not have had an effect; it is never run again, and the person and
 * the model are told that its outcome is unknown. */
#include "agent/chat/calls.h"
#include "agent/chat/script_calls.h"
#include "mcp/content.h"

/* Maps the stored text to the constant that struct call points to. */
static const char *read_by(struct mo_json v)
{
    static const char *const known[] = {"person",     "rule",    "remembered",
                                        "time",       "cancel",  "ahead",
                                        "mode:reads", "mode:box"};

    for (size_t i = 0; i < MO_COUNT(known); i++)
        if (mo_json_str_eq(v, mo_span_cstr(known[i])))
            return known[i];
    return NULL;
}

static const char *read_door(struct mo_json v)
{
    static const char *const known[] = {"page", "token", "socket", "terminal",
                                        "open"};

    for (size_t i = 0; i < MO_COUNT(known); i++)
        if (mo_json_str_eq(v, mo_span_cstr(known[i])))
            return known[i];
    return NULL;
}

/* Restores the decision and the arguments it was made for. */
static void read_decision(struct call *k, struct mo_json doc)
{
    struct mo_json args = mo_json_get(doc, "args");

    k->by = read_by(mo_json_get(doc, "by"));
    k->door.name = read_door(mo_json_get(doc, "door"));
    (void)mo_json_str_copy(mo_json_get(doc, "who"), k->who, sizeof(k->who));
    (void)mo_json_str_copy(mo_json_get(doc, "digest"), k->digest,
                           sizeof(k->digest));
    if (mo_json_is(args, MO_JSON_OBJECT)) {
        mo_buf_reset(&k->args);
        (void)mo_exact_args(args, &k->args, NULL);
    }
}

static void read_outcome(struct call *k, struct mo_json doc)
{
    struct mo_json content = mo_json_get(doc, "content");
    uint64_t expires = 0, now = mo_wall_ms();

    mo_json_bool(mo_json_get(doc, "isError"), &k->is_error);
    mo_json_u64(mo_json_get(doc, "ms"), &k->took_ms);
    (void)mo_json_u64(mo_json_get(doc, "expires"), &expires);
    if (k->state == MO_CALL_PENDING)
        mo_chat_call_set_expiry(k, expires > now ? expires - now : 0);
    else
        k->expires = expires;
    if (mo_json_is(content, MO_JSON_ARRAY))
        mo_buf_span(&k->content, mo_json_text(content));
}

/* The call is pending again only if the tool is exactly the same. */
static void restore_pending(struct call *k, struct mo_json doc)
{
    char then[MO_EXACT_DIGEST];

    if (mo_json_get(doc, "card").p)
        (void)mo_json_str_copy(mo_json_get(doc, "card"), k->card,
                               sizeof(k->card));
    (void)mo_json_str_copy(mo_json_get(doc, "digest"), then, sizeof(then));
    if (k->tool)
        mo_chat_calls_digest(k);
    if (k->tool == NULL || strcmp(then, k->digest) != 0)
        mo_chat_call_refuse(
            k, "rule", "%s",
            "The tool changed while the call was waiting, so it "
            "was not run.");
}

static void set_unknown(struct call *k)
{
    k->is_error = true;
    k->state = MO_CALL_UNKNOWN;
    mo_buf_reset(&k->content);
    mo_content_put_text(
        &k->content,
        MO_SPAN("The orchestrator was interrupted while this call was running. "
                "Whether it had an effect is unknown; it was not run again."));
}

static void restore_call(struct call *k, const struct mo_row *row)
{
    struct mo_json_doc doc;

    k->state = row->state;
    if (mo_json_parse(row->doc, 0, &doc, NULL) < 0) {
        set_unknown(k);
        return;
    }
    if (mo_chat_router_is_run(k) || mo_stand_in_recall(k, doc.root))
        mo_chat_router_recall(k, doc.root);
    read_outcome(k, doc.root);
    mo_said_read(&k->said, doc.root);
    if (k->state == MO_CALL_PENDING)
        restore_pending(k, doc.root);
    else
        read_decision(k, doc.root);
    if (k->state == MO_CALL_RUNNING || k->state == MO_CALL_APPROVED)
        set_unknown(k);
}

static void on_call_read(void *ctx, const struct mo_rows *rows,
                         const struct mo_err *why)
{
    struct call *k = ctx; /* the chat keeps it while reads are under way */
    struct chat *c = k->chat;

    c->writes--;
    c->calls.recovering--;
    if (c->state != CHAT_OPENING) {
        mo_chat_settle(c);
        return;
    }
    if (why) {
        mo_chat_fail(c, why);
        return;
    }
    if (rows->n == 1)
        restore_call(k, &rows->v[0]);
    else
        set_unknown(k);
    if (c->calls.recovering == 0 && !mo_script_recover(c))
        mo_chat_calls_recovered(c);
}

static int look_up_call(struct chat *c, struct call *k, struct mo_err *e)
{
    struct mo_read r = {.kind = MO_READ_CALL,
                        .session = mo_span_cstr(c->id),
                        .id = mo_span_cstr(k->key)};

    if (mo_store_read(c->agent->o.store, &r, on_call_read, k, e) < 0)
        return e->code;
    c->writes++;
    c->calls.recovering++;
    return 0;
}

static int recover_call(struct chat *c, const struct mo_entry_call *from,
                        struct mo_err *e)
{
    struct call *k = mo_chat_calls_new(c);

    if (k == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    (void)mo_json_str_copy(from->key, k->key, sizeof(k->key));
    memcpy(k->card, k->key, sizeof(k->card));
    mo_json_str_buf(from->name, &k->name);
    if (from->id.p)
        mo_json_str_buf(from->id, &k->id);
    k->tool = mo_tools_find(c->tools, mo_buf_view(&k->name));
    if (mo_exact_args(from->args, &k->args, e) < 0)
        mo_buf_reset(&k->args);
    return look_up_call(c, k, e);
}

int mo_chat_calls_recover(struct chat *c, struct mo_json entry,
                          struct mo_err *e)
{
    struct mo_entry_call from;
    struct mo_json_iter it;
    int rc = 0;

    mo_entry_calls(&it, entry);
    while (rc == 0 && mo_entry_next_call(&it, &from))
        rc = recover_call(c, &from, e);
    return rc;
}
