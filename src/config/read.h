/* read.h - reads JSON text into a struct mo_config, by the key table.
 *
 * Reading continues after an error, so that the report has all of them. After
 * an error the values must not be used.
 *
 * Ownership: texts are copied to the arena; the JSON may be freed afterwards.
 */
#ifndef MO_CONFIG_READ_H
#define MO_CONFIG_READ_H

#include "codec/json/json.h"
#include "config/keys.h"

#define MO_CONFIG_DEPTH_MAX 32 /* deeper than any key needs */

/* State of one load; made by config.c. */
struct mo_config_load {
    struct mo_config *cfg;
    struct mo_arena *arena;
    struct mo_config_report *rep;
    const char *file;    /* the name in messages */
    struct mo_span text; /* of the file */
    const char *at;      /* the last value that was read */
    bool dotenv_matters; /* .env holds a variable of ours */
    bool literal_secret; /* a secret in the file is not a reference */
    bool no_memory;      /* an allocation failed */
};

/* MO_EINVAL: the text is not a JSON object (also in the report); or MO_ENOMEM.
 * Other errors are in the report only, and the result is 0. */
int mo_config_read(struct mo_config_load *l, struct mo_err *e);

/* Checks keys that depend on each other. */
void mo_config_check(struct mo_config_load *l);

/* Sets one scalar from plain text (default, environment, flag). The error is
 * a sentence without its subject: "must be ...". */
int mo_config_set_text(struct mo_config_load *l, const struct mo_key *k,
                       void *field, const char *text, struct mo_err *e);

/* The same from JSON; on failure l->at is the invalid value. */
int mo_config_set_json(struct mo_config_load *l, const struct mo_key *k,
                       void *field, struct mo_json v, struct mo_err *e);

/* Sets the defaults of all keys of a struct. */
void mo_config_defaults(struct mo_config_load *l, const struct mo_keys *keys,
                        void *base);

/* Records the source of a field; the newest entry is found first. */
void mo_config_note(struct mo_config_load *l, const void *field,
                    enum mo_layer layer, const char *name, unsigned line,
                    unsigned col);

/* --- report -------------------------------------------------------------- */

void mo_config_problem(struct mo_config_report *rep, bool warning,
                       const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define mo_config_error(rep, ...) mo_config_problem((rep), false, __VA_ARGS__)
#define mo_config_warn(rep, ...)  mo_config_problem((rep), true, __VA_ARGS__)
/* With line and column; at points into l->text. */
void mo_config_error_at(struct mo_config_load *l, const char *at,
                        const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* With the source of a field (line of a file, variable, flag). */
void mo_config_error_of(struct mo_config_load *l, const void *field,
                        const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
