#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

uint64_t mo_now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * MO_S + (uint64_t)t.tv_nsec;
}

uint64_t mo_wall_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / MO_MS;
}

uint64_t mo_wall_coarse_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / MO_MS;
}

static char *put_digits(char *at, unsigned v, unsigned width)
{
    for (unsigned i = width; i > 0; i--, v /= 10)
        at[i - 1] = (char)('0' + v % 10);
    return at + width;
}

/* Written by hand, and the second's text is kept: every line of the log has a
 * time, and calendar arithmetic would take longer than the rest of the line. */
void mo_wall_format(uint64_t wall_ms, char out[MO_ISO8601_MAX])
{
    static const char marks[] = "--T::.";
    static _Thread_local uint64_t kept_second = UINT64_MAX;
    static _Thread_local char kept[MO_ISO8601_MAX];
    time_t s = (time_t)(wall_ms / 1000);
    const size_t text_n = 20; /* "2026-11-16T09:30:00." */

    if (kept_second != (uint64_t)s) {
        struct tm tm;
        char *at = kept;

        (void)gmtime_r(&s, &tm);
        const unsigned parts[] = {
            (unsigned)tm.tm_year + 1900, (unsigned)tm.tm_mon + 1,
            (unsigned)tm.tm_mday,        (unsigned)tm.tm_hour,
            (unsigned)tm.tm_min,         (unsigned)tm.tm_sec,
        };

        for (size_t i = 0; i < MO_COUNT(parts); i++) {
            at = put_digits(at, parts[i], i == 0 ? 4 : 2);
            *at++ = marks[i];
        }
        kept_second = (uint64_t)s;
    }
    memcpy(out, kept, text_n);
    memcpy(put_digits(out + text_n, (unsigned)(wall_ms % 1000), 3), "Z", 2);
}

/* Not strftime(): its day and month names follow the locale. */
void mo_wall_httpdate(uint64_t wall_ms, char out[MO_HTTPDATE_MAX])
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed",
                                   "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t s = (time_t)(wall_ms / 1000);
    char tmp[64];
    struct tm tm;

    (void)gmtime_r(&s, &tm);
    (void)snprintf(tmp, sizeof(tmp), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                   days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon],
                   tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    (void)snprintf(out, MO_HTTPDATE_MAX, "%.29s", tmp);
}
