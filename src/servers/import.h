/* import.h - reads MCP servers from the configuration of another program.
 *
 * Recognised by the top-level member of the file:
 *   mcpServers           Claude Desktop, Claude Code, Cursor, Windsurf, and the
 *                        earlier Node orchestrator
 *   servers, mcp.servers VS Code (mcp.json; settings.json), with its inputs
 *   mcps                 registry.json of the earlier orchestrator
 *
 * Each server becomes the JSON of one entry of our configuration. Placeholders
 * are translated: ${input:ID} becomes ${secret:ID}, ${NAME} and ${env:NAME}
 * become ${env:NAME}. A server is refused if it uses a placeholder that only an
 * editor can resolve, or a placeholder on the command line, which other users
 * can read. Members without an equivalent here (lists of approved tools and the
 * like) are reported and left out.
 *
 * Values that look like keys are detected; they can be moved to the secret
 * store.
 *
 * Pure: text in, structs out. Ownership: everything is in the arena, keys
 * included; the caller wipes the keys with mo_import_wipe(). Limits:
 * MO_IMPORT_FILE_MAX, MO_IMPORT_SERVERS_MAX (MO_ETOOBIG). */
#ifndef MO_SERVERS_IMPORT_H
#define MO_SERVERS_IMPORT_H

#include "codec/json/json.h"

#define MO_IMPORT_FILE_MAX    ((size_t)1024 * 1024)
#define MO_IMPORT_ARENA_MAX   ((size_t)32 * 1024 * 1024)
#define MO_IMPORT_SERVERS_MAX 512
#define MO_IMPORT_WHY_MAX     160

struct mo_import_secret {
    struct mo_import_secret *next;
    const char *name; /* in the secret store: "server.VARIABLE" */
    char *value;      /* NULL: the person must set it (an editor input) */
    size_t n;
};

struct mo_import_server {
    const char *name; /* name in our configuration */
    const char *was; /* name in the file if that is not valid here, else NULL */
    struct mo_json json;
    char cannot[MO_IMPORT_WHY_MAX]; /* reason of a refusal, or "" */
    struct mo_buf left_out;         /* names of the members left out */
    bool key_in_args;               /* a key is on the command line */
    struct mo_import_secret *secrets;
};

struct mo_import {
    const char *format; /* "VS Code" */
    struct mo_import_server *v;
    size_t n;
};

struct mo_import_opts {
    const char *home; /* for ${userHome}; NULL: unknown */
    bool store;       /* keys become references to the secret store */
};

/* MO_EINVAL: unknown format. MO_EPROTO: not JSON. */
int mo_import_read(struct mo_arena *a, struct mo_span text,
                   const struct mo_import_opts *o, struct mo_import *out,
                   struct mo_err *e);
void mo_import_wipe(struct mo_import *im);

/* In import_plan.c. True if our entry equals the imported one. Members that
 * only exist here (description, limits, enabled) are ignored, and a reference
 * to the secret store equals a key. */
bool mo_import_same(struct mo_json ours, struct mo_json imported);

/* --- used by import.c: one text ------------------------------------------- */

struct mo_import_text {
    struct mo_arena *a;
    const struct mo_import_opts *o;
    struct mo_import_server *s;
    bool refs; /* references are allowed in this text */
};

/* Appends the text to b with placeholders translated. MO_EINVAL: s->cannot says
 * why. */
int mo_import_text(struct mo_import_text *t, struct mo_span text,
                   struct mo_buf *b);
/* True if the value looks like a key or password. name: of the variable or
 * header, or "". */
bool mo_import_is_key(const char *name, struct mo_span value);
/* The same for an argument of a command line: "--api-key" VALUE, NAME=VALUE,
 * "Header: VALUE". before: the argument in front of it, or empty. */
bool mo_import_is_key_arg(struct mo_span before, struct mo_span arg);

#endif
