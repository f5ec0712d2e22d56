/* echo.h - Socket.IO callbacks for tests (`serve --test-echo`).
 *
 * Every event is sent back with the same name and arguments; its ack, if
 * requested, carries the arguments. A few names do more:
 *   listen      this socket gets the event "said" for each say
 *   say args…   the event "said" to the socket that listens
 *   kick, drop  the server disconnects the socket, or closes its Engine.IO
 *               session
 * A client whose auth has "refuse" is refused with that text. */
#ifndef MO_WEB_ECHO_H
#define MO_WEB_ECHO_H

#include "web/siod.h"

/* listener: NULL at first; outlives the server. */
void mo_echo_opts(struct mo_siod_opts *o, struct mo_sock **listener);

#endif
