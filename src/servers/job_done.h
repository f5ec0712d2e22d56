/* job_done.h - how a request about servers is answered. */
#ifndef MO_SERVERS_JOB_DONE_H
#define MO_SERVERS_JOB_DONE_H

#include "base/err.h"
#include "base/str.h"

/* Called once, from the loop, with a JSON object or the reason of failure. */
typedef void mo_job_done_fn(void *arg, struct mo_span json,
                            const struct mo_err *why);

#endif
