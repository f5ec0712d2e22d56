/* catalog_kit.h - builds catalogues from short specs and shows their
 * contents as text.
 *
 * A spec is "SERVER PREFIX ITEM ITEM ...;SERVER ...": PREFIX "-" means no
 * prefix is configured (the name is used), "''" the empty prefix. An item is a
 * name, or a name and further members: "read,\"x\":1".
 *
 * kit_new() makes a catalogue from a spec, kit_put() replaces the items of one
 * server, kit_words() lists them. kit_dir() and kit_undir() make and remove a
 * directory for the cache. */
#ifndef MO_CATALOG_KIT_H
#define MO_CATALOG_KIT_H

#include "gateway/catalog/catalog_priv.h"
#include "mo_test.h"

#define KIT_SERVERS 8

extern const struct mo_json nothing;

#define COLLISION MO_GW_PREFIX_COLLISION
#define ALWAYS    MO_GW_PREFIX_ALWAYS
#define NEVER     MO_GW_PREFIX_NEVER

struct mo_json js(const char *text);

struct kit_servers {
    struct mo_gw_server v[KIT_SERVERS];
    size_t n;
    char text[4096];
    char *items[KIT_SERVERS]; /* the rest of each */
};

void kit_spec(struct kit_servers *k, const char *spec);
int kit_put(struct mo_catalog *c, unsigned server, enum mo_cat_kind kind,
            const char *words, unsigned *changed);
struct mo_catalog *kit_new(enum mo_gw_prefix mode, const char *cache,
                           enum mo_cat_kind kind, const char *spec);

/* Writes "EXPOSED=SERVER/OWN ..." to b and returns it. */
const char *kit_words(const struct mo_catalog *c, enum mo_cat_kind kind,
                      struct mo_buf *b);

void kit_dir(char dir[64]);
void kit_undir(const char *dir);

#endif
