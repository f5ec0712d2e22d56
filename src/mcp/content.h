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

#endif
