/* log.h - one line per decision.
 *
 * On a terminal a line is for a person; elsewhere it is one JSON object for a
 * machine. Every line names its room, and levels can be set per room
 * ("info,httpd=debug"). Peer text is escaped: a line is always one line.
 *
 * Secrets never: what was registered with mo_log_secret() is shown as
 * "[secret]" wherever it stands in a message, whoever wrote it, also when the
 * message was cut in the middle of it. That is the second fence; the first is
 * not to log such things: a secret that was re-encoded is not recognised.
 *
 * A line is built on the stack and written with one write(2): no allocation,
 * no lock, safe from worker threads; a line that is too long ends in "[cut]".
 * mo_log_levels() and mo_log_secret() are called by the loop's thread only; a
 * line that a worker writes in that instant may go by the old or the new
 * levels. */
#ifndef MO_BASE_LOG_H
#define MO_BASE_LOG_H

#include "base/str.h"

enum mo_level { MO_ERROR, MO_WARN, MO_INFO, MO_DEBUG };

#define MO_LOG_LINE_MAX    4096
#define MO_LOG_ROOMS_MAX   24
#define MO_LOG_SECRETS_MAX 256
#define MO_LOG_SECRET_MIN  6 /* shorter ones would blank out plain words */

struct mo_log {
    int fd;
    bool json;
    bool colour;
    enum mo_level level;
    struct {
        char room[16];
        enum mo_level level;
    } rooms[MO_LOG_ROOMS_MAX];
    size_t nrooms;
    char *secrets[MO_LOG_SECRETS_MAX];
    size_t nsecrets;
};

void mo_log_init(struct mo_log *l, int fd); /* json unless fd is a tty */
void mo_log_fini(struct mo_log *l);

/* "warn" or "info,httpd=debug,sio=error". Unchanged on MO_EINVAL. */
int mo_log_levels(struct mo_log *l, struct mo_span spec, struct mo_err *e);
/* Copied. A secret is text: a NUL ends it. Too short ones are ignored;
 * MO_EBUSY when the table is full, MO_ENOMEM. */
int mo_log_secret(struct mo_log *l, struct mo_span secret);
/* A secret blanked out of a text in place, as the log would; also the front
 * part of one with which the text was cut off. */
void mo_log_blank(char *text, struct mo_span secret);
bool mo_log_on(const struct mo_log *l, enum mo_level lv, const char *room);

/* l may be NULL: nothing is written. */
void mo_log(const struct mo_log *l, enum mo_level lv, const char *room,
            const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The same with an error's text, code and errno behind it. */
void mo_log_err(const struct mo_log *l, enum mo_level lv, const char *room,
                const struct mo_err *e, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
