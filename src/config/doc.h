/* doc.h - descriptions of the configuration: schema, docs, effective values.
 *
 * All are made from the key table (keys.h) and written to the caller's buffer;
 * errors are the buffer's own. Secrets are masked here and nowhere else: a
 * literal becomes "***", a reference is shown unchanged. */
#ifndef MO_CONFIG_DOC_H
#define MO_CONFIG_DOC_H

#include "config/config.h"

/* Compact JSON Schema, draft-07, which editors support. */
void mo_config_schema(struct mo_buf *b);
/* The text of docs/configuration.md. */
void mo_config_docs(struct mo_buf *b);

/* One line per key: key, value, source. all: unset keys too. */
void mo_config_show(const struct mo_config *c, bool all, struct mo_buf *b);
void mo_config_show_json(const struct mo_config *c, bool all, struct mo_buf *b);

/* The URL with user, password, query and fragment masked. Every view that
 * people see uses it. */
void mo_config_put_url(struct mo_buf *b, const char *url);
/* The server's command, masked URL or image, without arguments. */
void mo_config_put_where(struct mo_buf *b, const struct mo_config_mcp *m);
/* The server's masked URL, or its image or command with the arguments. */
void mo_config_put_target(struct mo_buf *b, const struct mo_config_mcp *m);

#endif
