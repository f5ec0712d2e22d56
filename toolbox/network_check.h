/* network_check.h - tries a box's network from inside, for `doctor --sandbox`.
 *
 * Outside, the host MO_CHECK_ALLOWED may be reached at one port, where somebody
 * answers MO_CHECK_ANSWER. At another port somebody listens, too, with TCP and
 * UDP, but the box must not reach it. Prints a line for each control: '+' if it
 * holds, else '-', and its name.
 *
 * Nothing may hang: a try without an answer in WAIT_S fails its control. */
#ifndef TB_NETWORK_CHECK_H
#define TB_NETWORK_CHECK_H

#define MO_CHECK_ALLOWED "allowed.test"
#define MO_CHECK_OTHER   "other.test"
#define MO_CHECK_ANSWER  "here"

int tb_network_check(const char *port, const char *closed);

#endif
