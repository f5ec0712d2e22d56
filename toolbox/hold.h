/* hold.h - wait for a byte, set limits, run another program as its init.
 *
 * A pod starts its program before anyone has attached to it, and what the
 * program says until then is lost. A pod cannot limit open files, processes or
 * the size of a file, always has variables about the cluster, and its program
 * is process 1, to which most signals do nothing. So the program of a pod is
 * started by this one. */
#ifndef TB_HOLD_H
#define TB_HOLD_H

/* argv: limits such as "nofile=256", then "--", then a command. Returns its
 * exit status, 128 and the signal that killed it, or: 0 there was no byte, 2
 * usage, 126 and 127 as a shell. */
int tb_hold(int argc, char **argv);

#endif
