/* doctor.h - checks what works on this machine and suggests fixes.
 *
 * A check is one row: a name, a question, and a function that answers it.
 * Checks change nothing, leave nothing running, and wait at most
 * MO_DOCTOR_WAIT_MS. They never print a secret, only whether it exists.
 *
 * This code blocks (it is a one-shot command without a loop) and has its own
 * socket code; the server never calls it. */
#ifndef MO_CLI_DOCTOR_DOCTOR_H
#define MO_CLI_DOCTOR_DOCTOR_H

#include "config/config.h"

#define MO_DOCTOR_WAIT_MS 1000

enum mo_health { MO_HEALTH_OK, MO_HEALTH_WARN, MO_HEALTH_FAIL };

struct mo_finding {
    enum mo_health health;
    char text[320]; /* result */
    char todo[320]; /* suggested fix, or "" */
};

struct mo_doctor {
    const struct mo_config *cfg;        /* NULL: invalid, see rep */
    const struct mo_config_report *rep; /* report of loading it */
};

/* Used by the checks. */
void mo_found(struct mo_finding *f, enum mo_health health, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void mo_advise(struct mo_finding *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* machine.c */
void mo_check_state(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_cgroup(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_userns(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_files(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_isolation(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_programs(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_mounts(const struct mo_doctor *d, struct mo_finding *f);
/* versions.c */
void mo_check_versions(const struct mo_doctor *d, struct mo_finding *f);
/* services.c */
void mo_check_port(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_docker(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_redis(const struct mo_doctor *d, struct mo_finding *f);
void mo_check_embeddings(const struct mo_doctor *d, struct mo_finding *f);

#endif
