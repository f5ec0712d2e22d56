/* oauth_device.h - the device authorization grant (RFC 8628): its requests and
 * answers.
 *
 * Pure functions, as oauth_req.h. The answer of the device endpoint is shown
 * to a person, so everything in it is checked: the address is https (or http on
 * this machine) and plain ASCII without blanks, the code is short and
 * printable. Numbers are brought into these bounds:
 *
 *   interval     MO_DEVICE_MIN_MS to MO_DEVICE_MAX_MS; none: MO_DEVICE_USUAL_MS
 *   expires_in   at most MO_DEVICE_LIFE_MS, also if there is none */
#ifndef MO_MCP_OAUTH_OAUTH_DEVICE_H
#define MO_MCP_OAUTH_OAUTH_DEVICE_H

#include "mcp/oauth/oauth_req.h"

#define MO_DEVICE_MIN_MS   ((uint64_t)1000)
#define MO_DEVICE_USUAL_MS ((uint64_t)5000)
#define MO_DEVICE_SLOW_MS  ((uint64_t)5000) /* added by slow_down */
#define MO_DEVICE_MAX_MS   ((uint64_t)60 * 1000)
#define MO_DEVICE_LIFE_MS  ((uint64_t)30 * 60 * 1000)
#define MO_DEVICE_CODE_MAX ((size_t)64) /* of what a person types */
#define MO_DEVICE_URL_MAX  ((size_t)2048)

struct mo_oauth_device {
    const char *device_code;       /* secret */
    const char *user_code, *url;   /* for the person */
    const char *url_with_code;     /* or NULL */
    uint64_t interval_ms, life_ms; /* from now */
};

/* Forms for the device endpoint and the token endpoint. */
int mo_oauth_device_body(struct mo_buf *b, const struct mo_oauth_client *c,
                         const struct mo_oauth_try *t);
int mo_oauth_device_poll_body(struct mo_buf *b, const struct mo_oauth_client *c,
                              const struct mo_oauth_try *t,
                              const struct mo_oauth_device *d);
/* server: as for mo_oauth_url_ok(). */
int mo_oauth_device_parse(struct mo_arena *a, struct mo_span json,
                          const char *server, struct mo_oauth_device *out,
                          struct mo_err *e);

enum mo_device_verdict {
    MO_DEVICE_REFUSED, /* or expired: the error says so */
    MO_DEVICE_PENDING,
    MO_DEVICE_SLOW_DOWN,
};

/* Reads the `error` of the token endpoint. */
enum mo_device_verdict mo_oauth_device_verdict(const char *error);

#endif
