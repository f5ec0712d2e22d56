/* hold.h - wait for a line end, set limits, run another program as its init.
 *
 * A pod starts its program before anyone has attached to it, and what the
 * program says until then is lost. A pod cannot limit open files, processes or
 * the size of a file, always has variables about the cluster, and its program
 * is process 1, to which most signals do nothing. Its system calls are filtered
 * by the runtime of its node only. So the program of a pod is started by this
 * one. */
#ifndef LAUNCHER_HOLD_H
#define LAUNCHER_HOLD_H

/* Until a line end comes on stdin, each other byte is answered with the same on
 * stdout and stderr, so that the other end knows that it is heard.
 * argv: limits such as "nofile=256", "openat2" if the command is our toolbox,
 * which needs that call, "network" if it may use TCP and UDP, then "--", then a
 * command. Returns its exit status, 128 and the signal that killed it, or: 0
 * stdin has ended, 2 usage, 126 and 127 as a shell. */
int mo_hold(int argc, char **argv);

#endif
