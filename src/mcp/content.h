/* content.h - write the content of a tool result. */
#ifndef MO_MCP_CONTENT_H
#define MO_MCP_CONTENT_H

#include "codec/json/json.h"

/* [{"type":"text","text":...}] */
void mo_content_put_text(struct mo_buf *b, struct mo_span text);
/* Write one block: {"type":"text","text":...} */
void mo_content_put_block(struct mo_jw *w, struct mo_span text);

#endif
