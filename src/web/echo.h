/* echo.h - Socket.IO callbacks for tests (`serve --test-echo`).
 *
 * Every event is sent back with the same name and arguments; its ack, if
 * requested, carries the arguments. A few names do more:
 *   join ROOM, leave ROOM   membership
 *   say ROOM args…          the event "said" to all others in the room
 *   kick, drop              the server disconnects the socket, or closes its
 *                           Engine.IO session
 * A client whose auth has "refuse" is refused with that text. */
#ifndef MO_WEB_ECHO_H
#define MO_WEB_ECHO_H

#include "web/siod.h"

/* siod: where the server's pointer will be stored. */
void mo_echo_opts(struct mo_siod_opts *o, struct mo_siod **siod);

#endif
