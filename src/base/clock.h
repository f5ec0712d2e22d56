/* clock.h - two clocks that must not be mixed up.
 *
 * mo_now_ns() never jumps and is for every timeout and duration.
 * mo_wall_ms() is what a person's watch says and is only ever shown. */
#ifndef MO_BASE_CLOCK_H
#define MO_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define MO_MS ((uint64_t)1000 * 1000)
#define MO_S  ((uint64_t)1000 * MO_MS)

uint64_t mo_now_ns(void);
uint64_t mo_wall_ms(void);

#define MO_ISO8601_MAX 25 /* 2026-11-15T01:02:03.456Z and the NUL */

void mo_wall_format(uint64_t wall_ms, char out[MO_ISO8601_MAX]);

/* RFC 9110 date, as the Date header wants it. */
#define MO_HTTPDATE_MAX 30

void mo_wall_httpdate(uint64_t wall_ms, char out[MO_HTTPDATE_MAX]);

#endif
