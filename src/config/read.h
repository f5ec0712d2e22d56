/* read.h - JSON text into a struct mo_config, by the key table.
 *
 * Reads everything it can and writes every mistake into the report: one run
 * shows a person all of them. After an error the values are not to be used.
 *
 * Ownership: texts are copied into the arena; the JSON may go afterwards. */
#ifndef MO_CONFIG_READ_H
#define MO_CONFIG_READ_H

#include "codec/json/json.h"
#include "config/keys.h"

#define MO_CONFIG_DEPTH_MAX 32 /* deeper than any key has use for */

/* What a load carries around; made by config.c. */
struct mo_config_load {
    struct mo_config *cfg;
    struct mo_arena *arena;
    struct mo_config_report *rep;
    const char *file;    /* the name in messages */
    struct mo_span text; /* of the file */
    const char *at;      /* of the last value looked at */
    bool literal_secret; /* one of the file's secrets is no reference */
    bool no_memory;      /* the arena or the machine is full */
};

/* MO_EINVAL when the text is no JSON object at all (also in the report),
 * MO_ENOMEM; 0 says nothing about the report. */
int mo_config_read(struct mo_config_load *l, struct mo_err *e);

/* What only the whole can tell: references between keys, missing halves. */
void mo_config_check(struct mo_config_load *l);

/* Set one scalar from plain text (default, environment, flag). The error is
 * a sentence about the value: "must be ...". */
int mo_config_set_text(struct mo_config_load *l, const struct mo_key *k,
                       void *field, const char *text, struct mo_err *e);

/* The same from JSON; on failure l->at is the bad value's place. */
int mo_config_set_json(struct mo_config_load *l, const struct mo_key *k,
                       void *field, struct mo_json v, struct mo_err *e);

/* Defaults of all keys in a struct described by keys. */
void mo_config_defaults(struct mo_config_load *l, const struct mo_keys *keys,
                        void *base);

/* Write down who set a field; the newest entry is found first. */
void mo_config_note(struct mo_config_load *l, const void *field,
                    enum mo_layer layer, const char *name, unsigned line,
                    unsigned col);

/* --- report -------------------------------------------------------------- */

void mo_config_error(struct mo_config_report *rep, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void mo_config_warn(struct mo_config_report *rep, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* At a place in the file; at points into l->text. */
void mo_config_error_at(struct mo_config_load *l, const char *at,
                        const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* At the place where a field was set (a file's line, a variable, a flag). */
void mo_config_error_of(struct mo_config_load *l, const void *field,
                        const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
