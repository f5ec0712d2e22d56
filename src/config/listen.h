/* listen.h - tests on values of `server.listen`. */
#ifndef MO_CONFIG_LISTEN_H
#define MO_CONFIG_LISTEN_H

#include "base/str.h"

bool mo_listen_is_unix(const char *listen);
bool mo_listen_is_ipv6(const char *listen);
/* The host without brackets: "::1" for "::1" as well as for "[::1]". */
struct mo_span mo_listen_host(const char *listen);
/* True if only this machine can connect to it. */
bool mo_listen_is_local(const char *listen);

#endif
