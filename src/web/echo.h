/* echo.h - Socket.IO callbacks for tests (`serve --test-echo`).
 *
 * Every event comes back to its sender with the same name and arguments, and
 * its ack, if it wants one, carries the arguments. A few names do more:
 *   join ROOM, leave ROOM   membership
 *   say ROOM args…          the event "said" to all in the room but oneself
 *   ask args…               the server asks "question" args… and sends what
 *                           was acked as "answer"
 *   kick, drop              the server disconnects the socket, or closes its
 *                           session below
 * A client whose auth has "refuse" is refused with that text. */
#ifndef MO_WEB_ECHO_H
#define MO_WEB_ECHO_H

#include "web/siod.h"

/* siod: where to find the server once it exists. */
void mo_echo_opts(struct mo_siod_opts *o, struct mo_siod **siod);

#endif
