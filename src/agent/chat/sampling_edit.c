/* sampling_edit.c - a request of a server for the model, as it is sent: with
 * the changes of the person who approved it. Pure. */
#include "agent/chat/sampling.h"

#define TEXT_BLANKS " \t\r\n"

struct edit { /* {systemPrompt?, texts?, maxTokens?} */
    struct mo_json system, texts;
    size_t used; /* texts that have found their place */
};

static bool is_text(struct mo_json block)
{
    return mo_json_str_eq(mo_json_get(block, "type"), MO_SPAN("text"));
}

static bool is_blank(struct mo_json text)
{
    mo_autobuf struct mo_buf b = {.max = MO_SAMPLE_BYTES};

    if (!mo_json_is(text, MO_JSON_STRING) || mo_json_str_buf(text, &b) < 0)
        return true;
    for (size_t i = 0; i < b.len; i++)
        if (!strchr(TEXT_BLANKS, b.p[i]))
            return false;
    return true;
}

/* A text is replaced by the next one of the edit; other members stay. */
static void put_block(struct mo_jw *w, struct mo_json block, struct edit *ed)
{
    if (!is_text(block) || !ed->texts.p) {
        mo_jw_raw(w, mo_json_text(block));
        return;
    }
    mo_jw_obj(w);
    mo_json_each (at, block) {
        struct mo_json val = at.val;

        if (mo_json_str_eq(at.key, MO_SPAN("text")))
            val = mo_json_at(ed->texts, ed->used);
        mo_jw_key_raw(w, at.key);
        mo_jw_raw(w, val.p ? mo_json_text(val) : MO_SPAN("\"\""));
    }
    ed->used++;
    mo_jw_end(w);
}

static void put_message(struct mo_jw *w, struct mo_json message,
                        struct edit *ed)
{
    struct mo_json content = mo_json_get(message, "content");

    mo_jw_obj(w);
    mo_jw_copy(w, message, "role");
    mo_jw_key(w, "content");
    if (mo_json_is(content, MO_JSON_ARRAY)) {
        mo_jw_arr(w);
        mo_json_each (at, content)
            put_block(w, at.val, ed);
        mo_jw_end(w);
    } else {
        put_block(w, content, ed);
    }
    mo_jw_end(w);
}

static int read_edit(struct mo_json root, struct edit *ed, unsigned most,
                     unsigned *tokens, struct mo_err *e)
{
    static const char *const known[] = {"systemPrompt", "texts", "maxTokens",
                                        NULL};
    struct mo_json n = mo_json_get(root, "maxTokens");
    uint64_t wanted = *tokens;

    mo_json_each (at, root)
        if (!mo_json_str_in(at.key, known))
            return mo_fail(e, MO_EINVAL,
                           "an edit is {systemPrompt?, texts?, maxTokens?}");
    ed->system = mo_json_get(root, "systemPrompt");
    ed->texts = mo_json_get(root, "texts");
    if (ed->system.p && !mo_json_is(ed->system, MO_JSON_STRING))
        return mo_fail(e, MO_EINVAL, "systemPrompt is a text");
    if (ed->texts.p && !mo_json_is(ed->texts, MO_JSON_ARRAY))
        return mo_fail(e, MO_EINVAL, "texts is a list of texts");
    mo_json_each (at, ed->texts)
        if (is_blank(at.val))
            return mo_fail(e, MO_EINVAL, "a message must not be empty");
    if (n.p && (mo_json_u64(n, &wanted) < 0 || wanted == 0 || wanted > most))
        return mo_fail(e, MO_EINVAL, "maxTokens is a number from 1 to %u",
                       most);
    *tokens = (unsigned)wanted;
    return 0;
}

int mo_sampling_edit(struct mo_json params, struct mo_span edit, unsigned most,
                     unsigned *tokens, struct mo_buf *out, struct mo_err *e)
{
    struct mo_json_doc doc = {.bad_at = 0};
    struct edit ed = {.used = 0};
    struct mo_jw w;
    int rc = 0;

    if (edit.n > 0)
        rc = mo_json_parse(edit, 0, &doc, e);
    if (rc == 0 && edit.n > 0 && !mo_json_is(doc.root, MO_JSON_OBJECT))
        rc = mo_fail(e, MO_EINVAL, "an edit is an object");
    if (rc == 0 && edit.n > 0)
        rc = read_edit(doc.root, &ed, most, tokens, e);
    if (rc < 0)
        return rc;
    w = mo_jw_object(out);
    mo_jw_member_arr(&w, "messages");
    mo_json_each (at, mo_json_get(params, "messages"))
        put_message(&w, at.val, &ed);
    mo_jw_end(&w);
    if (!ed.system.p)
        mo_jw_copy(&w, params, "systemPrompt");
    else if (!is_blank(ed.system))
        mo_jw_copy(&w, doc.root, "systemPrompt");
    mo_jw_copy(&w, params, "modelPreferences");
    mo_jw_member_u64(&w, "maxTokens", *tokens);
    mo_jw_end(&w);
    if (ed.texts.p && ed.used != mo_json_len(ed.texts))
        return mo_fail(e, MO_EINVAL, "texts has one text for each of theirs");
    return mo_buf_err(out) ? mo_fail(e, mo_buf_err(out), "the request") : 0;
}
