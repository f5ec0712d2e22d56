/* clock.h - the monotonic clock and the wall clock.
 *
 * Use mo_now_ns() for every timeout and duration: it never jumps. Use
 * mo_wall_ms() only for times that are shown or stored: it follows the system
 * clock, which can be set. */
#ifndef MO_BASE_CLOCK_H
#define MO_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define MO_MS ((uint64_t)1000 * 1000)
#define MO_S  ((uint64_t)1000 * MO_MS)

uint64_t mo_now_ns(void);
uint64_t mo_wall_ms(void);
/* The same up to 10 ms ago, and several times as fast. */
uint64_t mo_wall_coarse_ms(void);

#define MO_ISO8601_MAX 25 /* 2026-11-15T01:02:03.456Z and the NUL */

void mo_wall_format(uint64_t wall_ms, char out[MO_ISO8601_MAX]);

/* Date in the format of RFC 9110, for the Date header. */
#define MO_HTTPDATE_MAX 30

void mo_wall_httpdate(uint64_t wall_ms, char out[MO_HTTPDATE_MAX]);

#endif
