/* content.h - write the content of a tool result. */
#ifndef MO_MCP_CONTENT_H
#define MO_MCP_CONTENT_H

#include "codec/json/json.h"

/* Write one block: {"type":"text","text":...} */
static inline void mo_content_put_block(struct mo_jw *w, struct mo_span text)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "type", "text");
    mo_jw_member(w, "text", text);
    mo_jw_end(w);
}

/* [{"type":"text","text":...}] */
static inline void mo_content_put_text(struct mo_buf *b, struct mo_span text)
{
    struct mo_jw w = mo_jw_array(b);

    mo_content_put_block(&w, text);
    mo_jw_end(&w);
}

/* The content of a tool's result, or its structuredContent as a text if it has
 * no content. */
static inline void mo_content_put_result(struct mo_buf *b,
                                         struct mo_json result)
{
    struct mo_json content = mo_json_get(result, "content");
    struct mo_json structured = mo_json_get(result, "structuredContent");

    if (mo_json_is(content, MO_JSON_ARRAY) &&
        (mo_json_len(content) > 0 || structured.p == NULL))
        mo_json_compact(content, b);
    else if (structured.p)
        mo_content_put_text(b, mo_json_text(structured));
    else
        mo_buf_puts(b, "[]");
}

#endif
