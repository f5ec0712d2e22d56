/* doctor.h - what works on this machine, what does not, what to do about it.
 *
 * A check is one row: a name, a question, and a function that looks and
 * answers in plain words. Checks only look: they change nothing, start
 * nothing that stays, and wait for nobody longer than MO_DOCTOR_WAIT_MS.
 * They print no secret, only whether there is one.
 *
 * This room blocks (it is a one-shot command, there is no loop to hold up)
 * and therefore has its own few lines of socket code; the server never
 * calls it. */
#ifndef MO_CLI_DOCTOR_DOCTOR_H
#define MO_CLI_DOCTOR_DOCTOR_H

#include "config/config.h"

#define MO_DOCTOR_WAIT_MS 1000

enum mo_health { MO_HEALTH_OK, MO_HEALTH_WARN, MO_HEALTH_FAIL };

struct mo_finding {
    enum mo_health health;
    char text[320]; /* what was seen */
    char todo[320]; /* what helps, or "" */
};

struct mo_doctor {
    const struct mo_config *cfg;        /* NULL: it is bad, see report */
    const struct mo_config_report *rep; /* of the load */
};

struct mo_check {
    const char *name;
    const char *what; /* the question it answers */
    void (*run)(const struct mo_doctor *d, struct mo_finding *f);
    bool needs_config;
};

extern const struct mo_check mo_checks[];
extern const size_t mo_nchecks;

/* Run all; text or JSON into b. The number of failed checks. */
unsigned mo_doctor_text(const struct mo_doctor *d, bool colour,
                        struct mo_buf *b);
unsigned mo_doctor_json(const struct mo_doctor *d, struct mo_buf *b);

/* For the checks. */
void mo_found(struct mo_finding *f, enum mo_health health, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void mo_advise(struct mo_finding *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* machine.c */
void mo_check_state(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_cgroup(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_userns(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_files(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_programs(const struct mo_doctor *d, struct mo_finding *f);
/* services.c */
void mo_check_port(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_docker(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_redis(const struct mo_doctor *d, struct mo_finding *f);

#endif
