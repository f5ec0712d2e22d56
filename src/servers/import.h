/* import.h - the MCP servers of another program's configuration, as ours.
 *
 * Understood, by what is in the file:
 *   mcpServers           Claude Desktop, Claude Code, Cursor, Windsurf, and the
 *                        orchestrator of the seed's Node kind
 *   servers, mcp.servers VS Code (mcp.json; settings.json), with its inputs
 *   mcps                 the seed's registry.json
 *
 * Each server becomes the JSON of one of ours. Placeholders are translated:
 * ${input:ID} is ${secret:ID}, ${NAME} and ${env:NAME} are ${env:NAME}; those
 * that only mean something inside an editor are a reason not to take the
 * server, and so is one on a command line, which others can read. What has no
 * place here (lists of approved tools and the like) is named and left out.
 *
 * Values that look like keys are found; they can be given to the secret store
 * instead of the file.
 *
 * Pure: a text in. Ownership: everything is in the arena, keys included; the
 * caller wipes what he must (mo_import_wipe). Limits: MO_IMPORT_FILE_MAX,
 * MO_IMPORT_SERVERS_MAX (MO_ETOOBIG). */
#ifndef MO_SERVERS_IMPORT_H
#define MO_SERVERS_IMPORT_H

#include "codec/json/json.h"

#define MO_IMPORT_FILE_MAX    ((size_t)1024 * 1024)
#define MO_IMPORT_ARENA_MAX   ((size_t)32 * 1024 * 1024)
#define MO_IMPORT_SERVERS_MAX 512
#define MO_IMPORT_WHY_MAX     160

struct mo_import_secret {
    struct mo_import_secret *next;
    const char *name; /* in the store: "server.VARIABLE" */
    char *value;      /* NULL: to be asked for, an editor's input */
    size_t n;
};

struct mo_import_server {
    const char *name; /* ours */
    const char *was;  /* the file's, if that is no name here; else NULL */
    struct mo_json json;
    char cannot[MO_IMPORT_WHY_MAX]; /* "" or why not; json is none then */
    struct mo_buf left_out;         /* names of what was left out */
    bool key_in_args;               /* a key that everybody can read */
    struct mo_import_secret *secrets;
};

struct mo_import {
    const char *format; /* "VS Code" */
    struct mo_import_server *v;
    size_t n;
};

struct mo_import_opts {
    const char *home; /* for ${userHome}; NULL: not known */
    bool store;       /* keys become references to the secret store */
};

/* MO_EINVAL: no format of the above; MO_EPROTO: not even JSON. */
int mo_import_read(struct mo_arena *a, struct mo_span text,
                   const struct mo_import_opts *o, struct mo_import *out,
                   struct mo_err *e);
void mo_import_wipe(struct mo_import *im);

/* Does ours say the same as the imported one? What only we know (description,
 * limits, enabled) does not count, nor that a key stands in the store here. */
bool mo_import_same(struct mo_json ours, struct mo_json imported);

/* --- for import.c: one text ---------------------------------------------- */

struct mo_import_text {
    struct mo_arena *a;
    const struct mo_import_opts *o;
    struct mo_import_server *s;
    bool refs; /* references may stand in this one */
};

/* Translated placeholders, appended to b. MO_EINVAL: s->cannot says why. */
int mo_import_text(struct mo_import_text *t, struct mo_span text,
                   struct mo_buf *b);
/* Is this a key or a password? name is the variable's or header's, or "". */
bool mo_import_is_key(const char *name, struct mo_span value);

#endif
