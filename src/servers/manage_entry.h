/* manage_entry.h - a server as a request describes it, made into an entry of
 * the configuration file.
 *
 * The members are those of the file (docs/configuration.md) and are not judged
 * here: the loader does that before anything is written. Names that older
 * orchestrators use (containerImage and the like) are understood.
 *
 * Keys: a value of `env` or `headers` that is one (by its name or its look, or
 * because the request says so) is taken out, and ${secret:SERVER.NAME} stands
 * in its place. What was taken out is a list for the secret store.
 *
 * Pure: texts in, texts out. Ownership: the arena's; whoever has it wipes the
 * values (mo_entry_wipe). */
#ifndef MO_SERVERS_MANAGE_ENTRY_H
#define MO_SERVERS_MANAGE_ENTRY_H

#include "codec/json/json.h"

#define MO_ENTRY_JSON_MAX ((size_t)256 * 1024) /* of one server */

struct mo_entry_secret {
    struct mo_entry_secret *next;
    struct mo_span name; /* in the store: "server.VARIABLE" */
    char *value;
    size_t n;
};

struct mo_entry {
    struct mo_arena *a;
    const char *server;
    struct mo_json keep; /* true or none: what looks like a key; false: no
                          * value; a list: those names */
    struct mo_entry_secret *secrets;
};

/* Is it a name of the request's own, not of the server? */
bool mo_entry_reserved(struct mo_span key);

/* The whole entry, as one object. MO_EINVAL says what is wrong. */
int mo_entry_put(struct mo_entry *x, struct mo_json from, struct mo_buf *out,
                 struct mo_err *e);

/* One value of `env` or `headers`, with the key taken out. */
int mo_entry_value(struct mo_entry *x, struct mo_span name, struct mo_json v,
                   struct mo_buf *out, struct mo_err *e);
/* Are the values of that member such values? */
bool mo_entry_has_keys(struct mo_span member);

void mo_entry_wipe(struct mo_entry *x);

/* The entry as it may be shown: no literal that could be a key. */
void mo_entry_show(struct mo_jw *w, struct mo_json entry);

#endif
