/* meter.h - what a process has cost so far: CPU time and memory.
 *
 * The machine these benchmarks run on is shared, so wall clock says more about
 * the neighbours than about us. CPU time of the measured process (all of its
 * threads, from the scheduler's own count) moves by a few per cent only.
 * Everything is read from /proc; what cannot be read ends the program. */
#ifndef MO_BENCH_METER_H
#define MO_BENCH_METER_H

#include <stdint.h>
#include <sys/types.h>

struct meter_mem {
    uint64_t rss, pss; /* bytes; pss shares a page among its users */
};

uint64_t meter_now_ns(void); /* monotonic */
uint64_t meter_cpu_ns(pid_t pid);
struct meter_mem meter_mem(pid_t pid);
unsigned meter_children(pid_t pid); /* processes it has started, now */

/* Say "bench: ..." and exit 1: a figure that is not there must be missed. */
void meter_die(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), noreturn));
/* A decimal argument between 1 and max, or meter_die(). */
unsigned meter_arg(const char *text, const char *what, unsigned max);

#endif
