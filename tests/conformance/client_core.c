/* client_core.c - the scenarios of the protocol itself. */
#include "conformance/client.h"

int core_scenario(struct driver *d, const char *name)
{
    (void)d;
    (void)name;
    return NO_SUCH_SCENARIO;
}
