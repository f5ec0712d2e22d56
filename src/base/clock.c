#include "base/clock.h"

#include <stdio.h>
#include <time.h>

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

void mo_wall_format(uint64_t wall_ms, char out[MO_ISO8601_MAX])
{
    time_t s = (time_t)(wall_ms / 1000);
    char tmp[64];
    struct tm tm;

    (void)gmtime_r(&s, &tm);
    (void)snprintf(tmp, sizeof(tmp), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                   tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
                   tm.tm_min, tm.tm_sec, (int)(wall_ms % 1000));
    (void)snprintf(out, MO_ISO8601_MAX, "%.24s", tmp);
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
