/* reply.h - write the server's messages in the peer's revision of MCP. Private
 * to server.c; each function sends one message. */
#ifndef TB_REPLY_H
#define TB_REPLY_H

#include "toolbox/server.h"

#define TB_NAME "mo-toolbox"

void tb_reply_error(struct tb_server *s, struct mo_span id, int code,
                    const char *why);
void tb_reply_unsupported(struct tb_server *s, struct mo_span id,
                          struct mo_json requested);
void tb_reply_empty(struct tb_server *s, struct mo_span id);
void tb_reply_welcome(struct tb_server *s, struct mo_span id);
void tb_reply_discover(struct tb_server *s, struct mo_span id);
void tb_reply_tools(struct tb_server *s, struct mo_span id, enum tb_version v);
void tb_reply_result(struct tb_call *c, const struct tb_result *r);
void tb_reply_failure(struct tb_call *c, const struct mo_err *e);
/* Runs the method and sends its result, or an error with the word of it. */
void tb_reply_method(struct tb_server *s, struct mo_span id, enum tb_version v,
                     const struct tb_method *m, struct mo_json args);
void tb_reply_progress(struct tb_call *c, struct mo_span text);
void tb_reply_log(struct tb_call *c, const char *stream, struct mo_span text);

#endif
