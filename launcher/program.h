/* program.h - the program of a box that opened a connection.
 *
 * Looks for the connection among the sockets of our network namespace, which is
 * that of the box (net.h), and then for the process of the box that has this
 * socket open. The program is the path of that process's file. The box chooses
 * its files and their names, so the path is a claim.
 *
 * Limits: the constants in program.c. A connection behind them, one that has
 * ended, and one of a process that is hidden from us have no program. */
#ifndef MO_LAUNCHER_PROGRAM_H
#define MO_LAUNCHER_PROGRAM_H

#include "codec/boxreq.h"
#include "launcher/cgroup.h"

/* proc: /proc of the host. "": not known. Of a longer path the end remains. */
void mo_program_find(int proc, const struct mo_cg *g, const struct mo_boxwho *w,
                     char out[MO_BOXREQ_TEXT_MAX + 1]);

#endif
