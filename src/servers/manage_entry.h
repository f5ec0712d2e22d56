/* manage_entry.h - turns the server description of a request into an entry of
 * the configuration file.
 *
 * The members are those of the file (docs/configuration.md). They are not
 * checked here: the loader does that before anything is written. Member names
 * of older orchestrators (containerImage and the like) are accepted.
 *
 * Keys: a value of `env` or `headers` that is a key (by its name, its form, or
 * because the request says so) is replaced by ${secret:SERVER.NAME} and listed
 * for the secret store.
 *
 * Pure: text in, text out. Ownership: the arena; its owner wipes the values
 * with mo_entry_wipe(). */
#ifndef MO_SERVERS_MANAGE_ENTRY_H
#define MO_SERVERS_MANAGE_ENTRY_H

#include "codec/json/json.h"

#define MO_ENTRY_JSON_MAX ((size_t)256 * 1024) /* bytes of one server */

struct mo_entry_secret {
    struct mo_entry_secret *next;
    struct mo_span name; /* in the secret store: "server.VARIABLE" */
    char *value;
    size_t n;
};

struct mo_entry {
    struct mo_arena *a;
    const char *server;
    /* Values to move to the store. true or absent: those that look like keys;
     * false: none; a list: these names. */
    struct mo_json keep;
    struct mo_entry_secret *secrets;
};

/* True if the member belongs to the request, not to the server. */
bool mo_entry_reserved(struct mo_span key);

/* Writes the entry as one object. MO_EINVAL: the error says what is wrong. */
int mo_entry_put(struct mo_entry *x, struct mo_json from, struct mo_buf *out,
                 struct mo_err *e);

/* Writes one value of `env` or `headers`, or a reference if it is a key. */
int mo_entry_value(struct mo_entry *x, struct mo_span name, struct mo_json v,
                   struct mo_buf *out, struct mo_err *e);
/* True if the values of this member may be keys. */
bool mo_entry_has_keys(struct mo_span member);

void mo_entry_wipe(struct mo_entry *x);

/* Writes the entry with every literal masked that could be a key. */
void mo_entry_show(struct mo_jw *w, struct mo_json entry);

#endif
