/* doc.h - descriptions of the configuration: schema, docs, effective values.
 *
 * All are made from the key table (keys.h) and written to the caller's buffer;
 * errors are the buffer's own. Secrets are masked here and nowhere else: a
 * literal becomes "***", a reference is shown unchanged. */
#ifndef MO_CONFIG_DOC_H
#define MO_CONFIG_DOC_H

#include "codec/json/json.h"
#include "config/config.h"

struct mo_key;

/* Compact JSON Schema, draft-07, which editors support. */
void mo_config_schema(struct mo_buf *b);
/* The text of docs/configuration.md. */
void mo_config_docs(struct mo_buf *b);

/* One key of the table, or a whole section of it. */
struct mo_config_entry {
    const char *path;         /* "server.limits.body", "mcpServers.NAME.env" */
    struct mo_json text;      /* its meaning: a string without full stop */
    const struct mo_key *key; /* keys.h */
    bool is_section;          /* one of the first level, before its keys */
};
/* Calls fn for every section and its keys, in the order of the table. */
void mo_config_entries(void (*fn)(void *ctx, const struct mo_config_entry *x),
                       void *ctx);
/* Type and limits of a value in words; words of the file are in backticks. */
void mo_config_put_type(struct mo_buf *b, const struct mo_key *k);

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
