/* log.h - the log: one line per event.
 *
 * On a terminal a line is text; elsewhere it is one JSON object. Every line
 * names its room, and levels can be set per room ("info,httpd=debug"). Peer
 * text is escaped, so a message never spans two lines.
 *
 * Secrets registered with mo_log_secret() are shown as "[secret]" in every
 * message, also when the message was cut inside one. This is the second line of
 * defence: a re-encoded secret is not recognised, so do not log secrets in the
 * first place.
 *
 * A secret that is renewed, such as a token, is given to mo_log_secret_renew():
 * its owner takes MO_LOG_RENEWED_MAX places of the table, whatever the number
 * of renewals.
 *
 * A line is built on the stack and written with one write(2), or together with
 * others (mo_log_collect()): no allocation, no lock, safe from worker threads.
 * A line that is too long ends in "[cut]". Only the loop's thread calls
 * mo_log_levels() and mo_log_secret*(); a line that a worker writes at that
 * moment uses the old or the new levels and secrets. */
#ifndef MO_BASE_LOG_H
#define MO_BASE_LOG_H

#include "base/str.h"

enum mo_level { MO_ERROR, MO_WARN, MO_INFO, MO_DEBUG };

#define MO_LOG_LINE_MAX    4096
#define MO_LOG_ROOMS_MAX   24
#define MO_LOG_SECRETS_MAX 256
#define MO_LOG_SECRET_MIN  6  /* shorter ones would hide ordinary words */
#define MO_LOG_RENEWED_MAX 8  /* newest texts of a secret that is renewed */
#define MO_LOG_RETIRED_MAX 16 /* replaced texts that a worker may read */

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
    bool renewed[MO_LOG_SECRETS_MAX]; /* that secret will be replaced */
    char *retired[MO_LOG_RETIRED_MAX];
    size_t nretired;
    unsigned readers;               /* threads that read secrets right now */
    uint8_t secret_grams[512];      /* a filter: see mo_log_may_hold_secret() */
    struct mo_log_pending *pending; /* NULL: every line is written at once */
    struct mo_log_queue *queue;     /* see log_queue.h; NULL: no export */
    unsigned worker; /* of `serve --workers`, named in every line; 0: none */
};

/* The places of a secret that is renewed, the oldest first. Zero: none yet.
 * Kept by the owner of the secret, for one log. */
struct mo_log_renewed {
    uint16_t at[MO_LOG_RENEWED_MAX];
    size_t n;
};

/* The span that a line belongs to, for an export (log_queue.h). */
struct mo_log_trace {
    uint8_t trace[16], span[8];
};

/* The subject of a line, as fields beside its message. Members that are NULL,
 * empty or 0 are left out. Never put arguments, results or secrets here. */
struct mo_log_facts {
    uint64_t request; /* number of the HTTP request */
    const char *session, *turn, *who, *from;
    struct mo_span call, server, tool;
    uint64_t status;
    uint64_t ns; /* how long it took; written as ms */
    const struct mo_err *err;
    const struct mo_log_trace *trace; /* not in the line; NULL: none */
};

void mo_log_init(struct mo_log *l, int fd); /* JSON unless fd is a tty */
void mo_log_fini(struct mo_log *l);

/* Set levels from "warn" or "info,httpd=debug,sio=error". MO_EINVAL leaves them
 * unchanged. */
int mo_log_levels(struct mo_log *l, struct mo_span spec, struct mo_err *e);
/* Hide this secret from now on. It is copied; a NUL ends it. Secrets below
 * MO_LOG_SECRET_MIN are ignored. MO_EBUSY when the table is full, MO_ENOMEM. */
int mo_log_secret(struct mo_log *l, struct mo_span secret);
/* The same for the next text of a secret that is renewed. Its newest
 * MO_LOG_RENEWED_MAX texts stay hidden: requests with them may be under way.
 * MO_EBUSY: the table is full and has none of them, or in each of the last
 * MO_LOG_RETIRED_MAX renewals a worker was writing a line. */
int mo_log_secret_renew(struct mo_log *l, struct mo_log_renewed *r,
                        struct mo_span secret);
/* Replace a secret in text by "[secret]", in place. Also replaces the beginning
 * of the secret at the end of a text that was cut there. */
void mo_log_blank(char *text, struct mo_span secret);
/* False if t surely holds no secret, also none that is cut at its end. */
bool mo_log_may_hold_secret(const struct mo_log *l, struct mo_span t);
bool mo_log_on(const struct mo_log *l, enum mo_level lv, const char *room);

/* A NULL log writes nothing. */
void mo_log(const struct mo_log *l, enum mo_level lv, const char *room,
            const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The same, followed by the error's text, code and errno. */
void mo_log_err(const struct mo_log *l, enum mo_level lv, const char *room,
                const struct mo_err *e, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* The same, with the subject as fields. */
void mo_log_about(const struct mo_log *l, enum mo_level lv, const char *room,
                  const struct mo_log_facts *about, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* The same with a finished message, for frequent lines. While lines are
 * collected (see below) it may be formatted later. room is a literal. */
void mo_log_text(const struct mo_log *l, enum mo_level lv, const char *room,
                 const struct mo_log_facts *about, struct mo_span text);

/* From now on collect this thread's lines of level info and debug, and write
 * them together: on mo_log_flush(), before a warning or an error, or when there
 * are many. The loop flushes every 10 ms. Without memory every line is written
 * at once. */
void mo_log_collect(struct mo_log *l);
bool mo_log_has_collected(const struct mo_log *l);
void mo_log_flush(const struct mo_log *l);

#endif
